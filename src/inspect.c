/* Tier 4 of the public header: looking into a cache file and maintaining it, without a driver or a compiler.
 *
 * In: a path and keys as people give them (names, ids, prefixes). Out: entries, parts and faults of the disk store, in the
 * words of the public header. It exists so that tools need nothing but jitgemm.h. */
#include "jitgemm.h"

#include "cache/store.h"
#include "options.h"
#include "status.h"
#include "tuned_row.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct jg_cache {
    store *store;          /* null while the file is damaged */
    char damage[1024];     /* why, then */
    store_record held;     /* what the last entry or part that was handed out points into */
    char *source;          /* the same for a source part */
    char id[17];
    char path[PATH_MAX];
};

static jg_status of_store(store_status status)
{
    static const jg_status statuses[] = {
        [STORE_OK] = JG_OK,
        [STORE_ABSENT] = JG_ERR_NOT_FOUND,
        [STORE_CORRUPT] = JG_ERR_CACHE,
        [STORE_FOREIGN] = JG_ERR_CACHE,
        [STORE_UNSAFE] = JG_ERR_FILE,
        [STORE_IO] = JG_ERR_FILE,
        [STORE_TOO_BIG] = JG_ERR_FILE,
        [STORE_NO_MEMORY] = JG_ERR_NO_MEMORY,
    };
    return statuses[status];
}

static jg_status from_store(const jg_cache *cache, store_status status)
{
    return status == STORE_OK ? JG_OK : status_set(of_store(status), "%s", store_error(cache->store));
}

/* What every call begins with: a usable cache, and nothing held of the call before. */
static jg_status begin(jg_cache *cache, const char *function)
{
    if (!cache) return status_set(JG_ERR_NULL, "%s: cache is null", function);
    store_record_free(&cache->held);
    free(cache->source);
    cache->source = NULL;
    return cache->store ? JG_OK : status_set(JG_ERR_CACHE, "%s", cache->damage);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static jg_status find_file(const char *given, char *path, size_t size)
{
    int no_home;
    struct stat info;
    RETURN_IF_ERROR(options_cache_path(given, path, size, &no_home));
    if (!*path)
        return status_set(JG_ERR_FILE, "no cache file: %s; give a path",
                          no_home ? "neither JITGEMM_CACHE nor HOME is set" : "an empty path means memory only");
    if (lstat(path, &info) != 0 && errno == ENOENT)
        return status_set(JG_ERR_FILE, "there is no cache file %s; jitgemm-prewarm makes one", path);
    return JG_OK;
}

jg_status jg_cache_open(const char *path, int writable, jg_cache **cache)
{
    if (!cache) return status_set(JG_ERR_NULL, "jg_cache_open: cache is null");
    *cache = NULL;
    jg_cache *opened = calloc(1, sizeof *opened);
    if (!opened) return status_set(JG_ERR_NO_MEMORY, "jg_cache_open: out of memory");
    jg_status status = find_file(path, opened->path, sizeof opened->path);
    if (status == JG_OK) {
        store_status result = store_open(opened->path, writable ? 0 : STORE_READ_ONLY, 0, &opened->store, opened->damage,
                                         sizeof opened->damage);
        /* A damaged file can still be cleared, so a writable handle is given all the same. */
        if (result != STORE_OK && !(result == STORE_CORRUPT && writable))
            status = status_set(of_store(result), "%s", opened->damage);
    }
    if (status != JG_OK) {
        free(opened);
        return status;
    }
    *cache = opened;
    return JG_OK;
}

void jg_cache_close(jg_cache *cache)
{
    if (!cache) return;
    store_close(cache->store);
    store_record_free(&cache->held);
    free(cache->source);
    free(cache);
}

const char *jg_cache_path(const jg_cache *cache)
{
    return cache ? cache->path : "";
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static void fill_entry(jg_cache *cache, const store_record *record, jg_cache_entry *entry)
{
    snprintf(cache->id, sizeof cache->id, "%016" PRIx64, record->id);
    *entry = (jg_cache_entry){
        .id = cache->id, .kernel = record->name, .target = record->target, .problem = record->label,
        .provenance = record->provenance, .cubin_bytes = record->binary_bytes, .ptx_bytes = record->portable_bytes,
        .record_bytes = record->record_bytes, .compile_ms = record->build_ms, .created = record->created,
        .used = record->used, .uses = record->uses};
}

typedef struct listing {
    jg_cache *cache;
    int (*visit)(void *user, const jg_cache_entry *entry);
    void *user;
} listing;

static int list_one(void *user, const store_record *record)
{
    listing *list = user;
    jg_cache_entry entry;
    fill_entry(list->cache, record, &entry);
    return list->visit(list->user, &entry);
}

jg_status jg_cache_list(jg_cache *cache, int (*visit)(void *user, const jg_cache_entry *entry), void *user)
{
    RETURN_IF_ERROR(begin(cache, "jg_cache_list"));
    if (!visit) return status_set(JG_ERR_NULL, "jg_cache_list: visit is null");
    listing list = {cache, visit, user};
    return from_store(cache, store_list(cache->store, list_one, &list));
}

/* A search by name, id or prefix. A whole name or id goes before a prefix, since one name may begin another. */
typedef struct search {
    const char *key;
    size_t whole, begun;          /* entries that fit, either way */
    uint64_t whole_id, begun_id;  /* the first of them */
} search;

static int compare_one(void *user, const store_record *record)
{
    search *wanted = user;
    char id[17];
    size_t length = strlen(wanted->key);
    snprintf(id, sizeof id, "%016" PRIx64, record->id);
    if (strcmp(wanted->key, record->name) == 0 || strcmp(wanted->key, id) == 0) {
        if (!wanted->whole++) wanted->whole_id = record->id;
    } else if (strncmp(wanted->key, record->name, length) == 0 || strncmp(wanted->key, id, length) == 0) {
        if (!wanted->begun++) wanted->begun_id = record->id;
    }
    return 0;
}

/* Finds the one record that a key fits and holds it. */
static jg_status hold(jg_cache *cache, const char *key)
{
    search wanted = {.key = key};
    RETURN_IF_ERROR(from_store(cache, store_list(cache->store, compare_one, &wanted)));
    size_t fits = wanted.whole ? wanted.whole : wanted.begun;
    if (fits == 0) return status_set(JG_ERR_NOT_FOUND, "%s: no entry \"%s\"", cache->path, key);
    if (fits > 1)
        return status_set(JG_ERR_VALUE, "%s: \"%s\" fits %zu entries; give more of the name, or the id", cache->path,
                          key, fits);
    uint64_t id = wanted.whole ? wanted.whole_id : wanted.begun_id;
    return from_store(cache, store_get_id(cache->store, id, &cache->held));
}

jg_status jg_cache_find(jg_cache *cache, const char *key, jg_cache_entry *entry)
{
    RETURN_IF_ERROR(begin(cache, "jg_cache_find"));
    if (!key || !entry) return status_set(JG_ERR_NULL, "jg_cache_find: %s is null", key ? "entry" : "key");
    RETURN_IF_ERROR(hold(cache, key));
    fill_entry(cache, &cache->held, entry);
    return JG_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* The source as the compiler got it: the record's own macros, then the text that records share. */
static jg_status join_source(jg_cache *cache, const void **data, size_t *bytes)
{
    size_t head = strlen(cache->held.defines), tail = strlen(cache->held.source);
    *bytes = tail ? head + tail : 0;
    if (!tail) return JG_OK;
    cache->source = malloc(head + tail + 1);
    if (!cache->source) return status_set(JG_ERR_NO_MEMORY, "jg_cache_extract: out of memory");
    memcpy(cache->source, cache->held.defines, head);
    memcpy(cache->source + head, cache->held.source, tail + 1);
    *data = cache->source;
    return JG_OK;
}

jg_status jg_cache_extract(jg_cache *cache, const char *key, jg_part part, const void **data, size_t *bytes)
{
    static const char *const names[] = {"cubin", "PTX", "source"};
    RETURN_IF_ERROR(begin(cache, "jg_cache_extract"));
    if (!key || !data || !bytes)
        return status_set(JG_ERR_NULL, "jg_cache_extract: %s is null", !key ? "key" : !data ? "data" : "bytes");
    if ((unsigned)part > JG_PART_SOURCE)
        return status_set(JG_ERR_VALUE, "jg_cache_extract: part is %d; it must be JG_PART_CUBIN, _PTX or _SOURCE",
                          (int)part);
    *data = NULL;
    *bytes = 0;
    RETURN_IF_ERROR(hold(cache, key));
    if (part == JG_PART_SOURCE) {
        RETURN_IF_ERROR(join_source(cache, data, bytes));
    } else {
        *data = part == JG_PART_CUBIN ? cache->held.binary : cache->held.portable;
        *bytes = part == JG_PART_CUBIN ? cache->held.binary_bytes : cache->held.portable_bytes;
    }
    if (*bytes) return JG_OK;
    *data = NULL;
    return status_set(JG_ERR_NOT_FOUND, "%s: entry \"%s\" has no %s", cache->path, key, names[part]);
}

/* ---- misses ----------------------------------------------------------------------------------------------------- */

typedef struct miss_listing {
    int (*visit)(void *user, const jg_cache_miss *miss);
    void *user;
} miss_listing;

static int list_miss(void *user, const store_miss *miss)
{
    const miss_listing *list = user;
    const jg_cache_miss one = {.problem = miss->label, .target = miss->target, .count = miss->count, .used = miss->used,
                               .gain = miss->gain, .cached = miss->cached};
    return list->visit(list->user, &one);
}

jg_status jg_cache_misses(jg_cache *cache, int (*visit)(void *user, const jg_cache_miss *miss), void *user)
{
    RETURN_IF_ERROR(begin(cache, "jg_cache_misses"));
    if (!visit) return status_set(JG_ERR_NULL, "jg_cache_misses: visit is null");
    miss_listing list = {visit, user};
    return from_store(cache, store_list_misses(cache->store, NULL, list_miss, &list));
}

jg_status jg_cache_clear_misses(jg_cache *cache, size_t *removed)
{
    if (removed) *removed = 0;
    RETURN_IF_ERROR(begin(cache, "jg_cache_clear_misses"));
    return from_store(cache, store_clear_misses(cache->store, removed));
}

/* ---- recorded plans --------------------------------------------------------------------------------------------- */

typedef struct plan_listing {
    int (*visit)(void *user, const jg_cache_plan *plan);
    void *user;
} plan_listing;

static int list_plan(void *user, const store_choice *row)
{
    const plan_listing *list = user;
    jg_cache_plan one = {.problem = row->label, .place = row->place, .created = row->created, .cached = row->cached};
    return tuned_row_read(row, NULL, NULL, &one.kernel, &one.measured) ? list->visit(list->user, &one) : 0;
}

jg_status jg_cache_plans(jg_cache *cache, int (*visit)(void *user, const jg_cache_plan *plan), void *user)
{
    RETURN_IF_ERROR(begin(cache, "jg_cache_plans"));
    if (!visit) return status_set(JG_ERR_NULL, "jg_cache_plans: visit is null");
    plan_listing list = {visit, user};
    return from_store(cache, store_list_choices(cache->store, NULL, list_plan, &list));
}

jg_status jg_cache_clear_plans(jg_cache *cache, size_t *removed)
{
    if (removed) *removed = 0;
    RETURN_IF_ERROR(begin(cache, "jg_cache_clear_plans"));
    return from_store(cache, store_clear_choices(cache->store, removed));
}

/* ---- maintenance ------------------------------------------------------------------------------------------------ */

typedef struct faults {
    void (*report)(void *user, const char *id, const char *what);
    void *user;
} faults;

static void report_one(void *user, uint64_t id, const char *what)
{
    faults *found = user;
    char text[17] = ""; /* stays so for a fault of the file as a whole */
    if (id) snprintf(text, sizeof text, "%016" PRIx64, id);
    if (found->report) found->report(found->user, text, what);
}

jg_status jg_cache_verify(jg_cache *cache, void (*report)(void *user, const char *id, const char *what), void *user,
                          size_t *good, size_t *bad)
{
    faults found = {report, user};
    if (good) *good = 0;
    if (bad) *bad = 0;
    RETURN_IF_ERROR(begin(cache, "jg_cache_verify"));
    return from_store(cache, store_verify(cache->store, report_one, &found, good, bad));
}

jg_status jg_cache_seal(jg_cache *cache)
{
    RETURN_IF_ERROR(begin(cache, "jg_cache_seal"));
    return from_store(cache, store_seal(cache->store));
}

jg_status jg_cache_clear(jg_cache *cache, size_t *removed)
{
    if (removed) *removed = 0;
    jg_status status = begin(cache, "jg_cache_clear");
    if (status == JG_ERR_NULL) return status;
    if (cache->store) return from_store(cache, store_clear(cache->store, removed));
    store_status result = store_recreate(cache->path, cache->damage, sizeof cache->damage);
    if (result == STORE_OK)
        result = store_open(cache->path, 0, 0, &cache->store, cache->damage, sizeof cache->damage);
    return result == STORE_OK ? JG_OK : status_set(of_store(result), "%s", cache->damage);
}
