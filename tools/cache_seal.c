/* jitgemm-cache seal: a cache file in, the same file ready to be shipped as a factory file out.
 *
 * It says what the file holds now and, since a factory file is mostly read by other users than the one who made it, whether
 * they can. The mode itself is left to the owner. */
#include "cache_commands.h"
#include "cache_format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int count_one(void *user, const jg_cache_entry *entry)
{
    (void)entry;
    ++*(size_t *)user;
    return 0;
}

int cache_seal(const cache_args *args, jg_cache *cache)
{
    const char *path = jg_cache_path(cache);
    size_t kernels = 0;
    struct stat info;
    if (jg_cache_seal(cache) != JG_OK || jg_cache_list(cache, count_one, &kernels) != JG_OK)
        return cache_fail("%s", jg_last_error());
    if (stat(path, &info) != 0) return cache_fail("%s: %s", path, strerror(errno));
    int others_read = (info.st_mode & S_IRGRP) && (info.st_mode & S_IROTH);
    if (args->json) {
        int ok = 1;
        cJSON *object = cJSON_CreateObject();
        cache_json_text(object, "path", path, &ok);
        cache_json_number(object, "kernels", (double)kernels, &ok);
        cache_json_number(object, "file_bytes", (double)info.st_size, &ok);
        if (!cJSON_AddBoolToObject(object, "others_read", others_read)) ok = 0;
        return cache_json_print(object, ok);
    }
    fputs("sealed ", stdout);
    cache_put_text(path);
    printf(": %zu kernel%s, %s\n", kernels, kernels == 1 ? "" : "s", cache_format_bytes((uint64_t)info.st_size).text);
    if (!others_read) puts("only its owner can read it; chmod 644 lets the programs of other users use it");
    return CACHE_EXIT_DONE;
}
