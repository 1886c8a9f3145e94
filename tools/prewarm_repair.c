/* Makes a damaged cache file anew: see prewarm_repair.h. */
#include "prewarm_repair.h"

#include <stddef.h>

#include "jitgemm.h"

static int stop_at_the_first(void *user, const jg_cache_entry *entry)
{
    (void)user, (void)entry;
    return 1;
}

const char *prewarm_repair(const char *path, int *repaired)
{
    jg_cache *cache;
    *repaired = 0;
    jg_status status = jg_cache_open(path, 0, &cache);
    if (status == JG_OK) jg_cache_close(cache);
    if (status != JG_ERR_CACHE) return NULL; /* what else is wrong with it the library will say */
    if (jg_cache_open(path, 1, &cache) != JG_OK) return NULL; /* foreign */
    if (jg_cache_list(cache, stop_at_the_first, NULL) == JG_ERR_CACHE) *repaired = jg_cache_clear(cache, NULL) == JG_OK;
    jg_cache_close(cache);
    return *repaired ? NULL : jg_last_error();
}
