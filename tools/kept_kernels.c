/* Keeps the kernel names of cache files, sorted: see kept_kernels.h. */
#include "kept_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "jitgemm.h"

static int add_name(void *user, const jg_cache_entry *entry)
{
    kept_kernels *kept = user;
    if (kept->count == kept->capacity) {
        size_t capacity = 2 * kept->capacity + 64;
        char **names = realloc(kept->names, capacity * sizeof *names);
        if (!names) return kept->out_of_memory = 1;
        kept->names = names;
        kept->capacity = capacity;
    }
    char *name = strdup(entry->kernel);
    if (!name) return kept->out_of_memory = 1;
    kept->names[kept->count++] = name;
    return 0;
}

static int compare_names(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

const char *kept_kernels_read(kept_kernels *kept, const char *path)
{
    jg_cache *cache;
    size_t before = kept->count;
    if (jg_cache_open(path, 0, &cache) != JG_OK) return jg_last_error();
    jg_status status = jg_cache_list(cache, add_name, kept);
    jg_cache_close(cache);
    const char *error = kept->out_of_memory ? "out of memory" : status != JG_OK ? jg_last_error() : NULL;
    while (error && kept->count > before) free(kept->names[--kept->count]);
    if (!error && kept->count) qsort(kept->names, kept->count, sizeof *kept->names, compare_names);
    return error;
}

int kept_kernels_has(const kept_kernels *kept, const char *name)
{
    return kept->count && bsearch(&name, kept->names, kept->count, sizeof *kept->names, compare_names);
}

void kept_kernels_free(kept_kernels *kept)
{
    for (size_t i = 0; i < kept->count; i++) free(kept->names[i]);
    free(kept->names);
    *kept = (kept_kernels){0};
}
