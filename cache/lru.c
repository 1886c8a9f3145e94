/* Memory LRU on uthash.
 *
 * In: keys and values of the caller. Out: pinned entries, and evicted values handed to a callback.
 *
 * One rwlock guards the table. A lookup runs under the read lock and only stores two atomics, a pin and a use stamp,
 * so lookups never wait for each other. Whoever holds the write lock therefore sees stamps and pins that cannot rise:
 * an entry found unpinned there can be taken out safely. The order of use is computed from the stamps at eviction.
 *
 * After fork() the child may find the lock held for ever: it must neither use nor destroy a map made before. */
#include "cache/lru.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A failed allocation inside uthash leaves the table as it was and the entry without one (hh.tbl null). */
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, bytes, hash) ((hash) = (unsigned)XXH64((key), (bytes), 0))
#include <uthash.h>

struct lru_entry {
    UT_hash_handle hh;
    void *value;
    size_t bytes;
    atomic_uint_fast64_t stamp; /* the map's clock at the last use */
    atomic_size_t pins;
    lru_entry *next_victim; /* only once out of the table */
    unsigned char key[];
};

struct lru {
    pthread_rwlock_t lock;
    lru_entry *table; /* uthash head */
    size_t max_entries, max_bytes;
    size_t bytes;
    uint64_t evictions;
    atomic_uint_fast64_t clock, hits, misses;
};

lru *lru_create(size_t max_entries, size_t max_bytes, unsigned parts)
{
    (void)parts;
    lru *map = calloc(1, sizeof *map);
    if (!map) return NULL;
    if (pthread_rwlock_init(&map->lock, NULL) != 0) {
        free(map);
        return NULL;
    }
    map->max_entries = max_entries ? max_entries : SIZE_MAX;
    map->max_bytes = max_bytes ? max_bytes : SIZE_MAX;
    return map;
}

void lru_destroy(lru *map, void (*destroy)(void *user, void *value), void *user)
{
    lru_entry *entry, *next;
    if (!map) return;
    HASH_ITER(hh, map->table, entry, next) {
        HASH_DEL(map->table, entry);
        if (destroy) destroy(user, entry->value);
        free(entry);
    }
    pthread_rwlock_destroy(&map->lock);
    free(map);
}

static uint64_t tick(lru *map)
{
    return atomic_fetch_add_explicit(&map->clock, 1, memory_order_relaxed) + 1;
}

/* Finds, stamps and pins. The caller holds the lock, either way. */
static lru_entry *find(lru *map, const void *key, size_t key_bytes, unsigned hash)
{
    lru_entry *entry;
    HASH_FIND_BYHASHVALUE(hh, map->table, key, key_bytes, hash, entry);
    if (entry) {
        atomic_store_explicit(&entry->stamp, tick(map), memory_order_relaxed);
        lru_pin(entry);
    }
    return entry;
}

lru_entry *lru_acquire(lru *map, const void *key, size_t key_bytes)
{
    unsigned hash;
    if (!key) key = ""; /* an empty key; memcmp wants a pointer even for no bytes */
    HASH_VALUE(key, key_bytes, hash);
    pthread_rwlock_rdlock(&map->lock);
    lru_entry *entry = find(map, key, key_bytes, hash);
    pthread_rwlock_unlock(&map->lock);
    atomic_fetch_add_explicit(entry ? &map->hits : &map->misses, 1, memory_order_relaxed);
    return entry;
}

static lru_entry *make_entry(const void *key, size_t key_bytes, void *value, size_t bytes)
{
    if (key_bytes > UINT_MAX) return NULL; /* uthash counts key bytes in an unsigned */
    lru_entry *entry = malloc(sizeof *entry + key_bytes);
    if (!entry) return NULL;
    memset(entry, 0, sizeof *entry);
    memcpy(entry->key, key, key_bytes);
    entry->value = value;
    entry->bytes = bytes;
    atomic_init(&entry->pins, 1);
    return entry;
}

lru_entry *lru_insert(lru *map, const void *key, size_t key_bytes, void *value, size_t bytes, int *existed)
{
    unsigned hash;
    if (!key) key = "";
    *existed = 0;
    lru_entry *fresh = make_entry(key, key_bytes, value, bytes);
    if (!fresh) return NULL;
    HASH_VALUE(key, key_bytes, hash);

    pthread_rwlock_wrlock(&map->lock);
    lru_entry *entry = find(map, key, key_bytes, hash);
    if (entry) {
        *existed = 1;
    } else {
        atomic_init(&fresh->stamp, tick(map));
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, map->table, fresh->key, key_bytes, hash, fresh);
        if (fresh->hh.tbl) {
            map->bytes += bytes;
            entry = fresh;
        }
    }
    pthread_rwlock_unlock(&map->lock);
    if (entry != fresh) free(fresh);
    return entry;
}

void lru_pin(lru_entry *entry)
{
    atomic_fetch_add_explicit(&entry->pins, 1, memory_order_relaxed);
}

void lru_touch(lru *map, lru_entry *entry)
{
    atomic_store_explicit(&entry->stamp, tick(map), memory_order_relaxed);
}

void lru_release(lru_entry *entry)
{
    /* Release order: what the holder did with the value comes before its eviction. The entry may be gone right after. */
    atomic_fetch_sub_explicit(&entry->pins, 1, memory_order_release);
}

void *lru_value(const lru_entry *entry)
{
    return entry->value;
}

const void *lru_key(const lru_entry *entry)
{
    return entry->key;
}

uint64_t lru_last_use(const lru_entry *entry)
{
    return atomic_load_explicit(&entry->stamp, memory_order_relaxed);
}

int lru_is_pinned(const lru_entry *entry)
{
    return atomic_load_explicit(&entry->pins, memory_order_acquire) != 0;
}

static int over(const lru *map)
{
    return HASH_COUNT(map->table) > map->max_entries || map->bytes > map->max_bytes;
}

static int is_pinned(lru_entry *entry)
{
    return atomic_load_explicit(&entry->pins, memory_order_acquire) != 0;
}

static uint64_t stamp_of(lru_entry *entry)
{
    return atomic_load_explicit(&entry->stamp, memory_order_relaxed);
}

static int by_stamp(lru_entry *a, lru_entry *b)
{
    uint64_t x = stamp_of(a), y = stamp_of(b);
    return (x > y) - (x < y);
}

/* Takes an entry out of the table and puts it in front of the victims. Write lock held. */
static void take_out(lru *map, lru_entry *entry, lru_entry **victims)
{
    HASH_DEL(map->table, entry);
    map->bytes -= entry->bytes;
    map->evictions++;
    entry->next_victim = *victims;
    *victims = entry;
}

/* Takes the least recently used unpinned entry out; 0 if there is none. Write lock held. */
static size_t take_oldest(lru *map, lru_entry **victims)
{
    lru_entry *oldest = NULL;
    for (lru_entry *entry = map->table; entry; entry = entry->hh.next)
        if (!is_pinned(entry) && (!oldest || stamp_of(entry) < stamp_of(oldest))) oldest = entry;
    if (!oldest) return 0;
    take_out(map, oldest, victims);
    return 1;
}

/* Takes entries out, oldest first: at least `count` of them, and on until the bounds hold. Write lock held. The sort is
 * uthash's own merge sort of the table's list: it needs no memory, so trimming cannot fail. */
static void take_many(lru *map, size_t count, lru_entry **victims)
{
    lru_entry *entry, *next;
    HASH_SORT(map->table, by_stamp);
    HASH_ITER(hh, map->table, entry, next) {
        if (!count && !over(map)) return;
        if (is_pinned(entry)) continue;
        take_out(map, entry, victims);
        if (count) count--;
    }
}

/* Hands the victims over, oldest first, and frees them. No lock held. */
static size_t dispose(lru_entry *victims, void (*evict)(void *user, void *value), void *user)
{
    lru_entry *ordered = NULL;
    size_t count = 0;
    while (victims) {
        lru_entry *entry = victims;
        victims = entry->next_victim;
        entry->next_victim = ordered;
        ordered = entry;
    }
    while (ordered) {
        lru_entry *entry = ordered;
        ordered = entry->next_victim;
        if (evict) evict(user, entry->value);
        free(entry);
        count++;
    }
    return count;
}

size_t lru_trim(lru *map, void (*evict)(void *user, void *value), void *user)
{
    lru_entry *victims = NULL;
    pthread_rwlock_wrlock(&map->lock);
    /* Most trims follow one insertion and evict one entry: a scan is enough then, and keeps lookups waiting for less. */
    if (over(map) && take_oldest(map, &victims) && over(map)) take_many(map, 0, &victims);
    pthread_rwlock_unlock(&map->lock);
    return dispose(victims, evict, user);
}

size_t lru_evict_oldest(lru *map, size_t count, void (*evict)(void *user, void *value), void *user)
{
    lru_entry *victims = NULL;
    pthread_rwlock_wrlock(&map->lock);
    if (count == 1) take_oldest(map, &victims);
    else if (count) take_many(map, count, &victims);
    pthread_rwlock_unlock(&map->lock);
    return dispose(victims, evict, user);
}

size_t lru_remove(lru *map, const void *key, size_t key_bytes, void (*evict)(void *user, void *value), void *user)
{
    lru_entry *entry, *victims = NULL;
    if (!key) key = "";
    pthread_rwlock_wrlock(&map->lock);
    HASH_FIND(hh, map->table, key, key_bytes, entry);
    if (entry && !is_pinned(entry)) take_out(map, entry, &victims);
    pthread_rwlock_unlock(&map->lock);
    return dispose(victims, evict, user);
}

int lru_over(lru *map)
{
    pthread_rwlock_rdlock(&map->lock);
    int result = over(map);
    pthread_rwlock_unlock(&map->lock);
    return result;
}

void lru_get_stats(lru *map, lru_stats *stats)
{
    pthread_rwlock_rdlock(&map->lock);
    stats->entries = HASH_COUNT(map->table);
    stats->bytes = map->bytes;
    stats->evictions = map->evictions;
    pthread_rwlock_unlock(&map->lock);
    stats->hits = atomic_load_explicit(&map->hits, memory_order_relaxed);
    stats->misses = atomic_load_explicit(&map->misses, memory_order_relaxed);
}
