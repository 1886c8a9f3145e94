/* Fills a cache file for measuring at scale: copies one of its kernels under other keys until it holds so many.
 *
 *     fill_cache FILE COUNT
 *
 * The copies are found by nothing but their number; they make the file, its indices and its sums as large as a long life would. */
#include "cache/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int take_id(void *user, const store_record *record)
{
    *(uint64_t *)user = record->id;
    return 1;
}

int main(int argc, char **argv)
{
    char error[1024];
    store *s;
    store_record model;
    store_totals totals;
    uint64_t id = 0;
    const unsigned long wanted = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (!wanted) return fprintf(stderr, "usage: fill_cache FILE COUNT\n"), 2;
    if (store_open(argv[1], 0, UINT64_C(1) << 40, &s, error, sizeof error) != STORE_OK) return fprintf(stderr, "%s\n", error), 1;
    if (store_list(s, take_id, &id) != STORE_OK || store_get_id(s, id, &model) != STORE_OK || store_get_totals(s, &totals) != STORE_OK)
        return fprintf(stderr, "%s\n", store_error(s)), 1;
    unsigned char *key = malloc(model.key_bytes);
    if (!key || model.key_bytes < 16) return 1;
    store_record copy = model;
    copy.portable_bytes = 0;
    copy.key = key;
    for (unsigned long i = totals.entries; i < wanted; i++) {
        memcpy(key, model.key, model.key_bytes);
        memcpy(key + model.key_bytes - 8, &i, 8);
        if (store_put(s, &copy, NULL) != STORE_OK) return fprintf(stderr, "%s\n", store_error(s)), 1;
    }
    store_get_totals(s, &totals);
    printf("%s: %lu kernels, %.0f MiB\n", argv[1], (unsigned long)totals.entries, (double)totals.bytes / 1048576);
    free(key);
    store_record_free(&model);
    store_close(s);
    return 0;
}
