/* Memory LRU: a bounded map from key bytes to a caller's value, with pins.
 *
 * In: keys and values of any kind (the cache knows neither matrices nor CUDA).
 * Out: pinned entries. Eviction is a separate step (lru_trim), because destroying a value can be
 * slow or forbidden where the caller stands; nothing else ever drops a value.
 *
 * All functions are thread-safe except create and destroy. A lookup takes only a read lock that is
 * never held while a value is made or destroyed, allocates nothing, and makes no system call unless
 * the lock is contended; it stores an atomic use stamp, and the order of use is computed at eviction. */
#ifndef JG_CACHE_LRU_H
#define JG_CACHE_LRU_H

#include <stddef.h>
#include <stdint.h>

typedef struct lru lru;
typedef struct lru_entry lru_entry;

typedef struct lru_stats {
    uint64_t hits, misses, evictions;
    size_t entries, bytes;
} lru_stats;

#define LRU_MAX_PARTS 1024

/* max_entries or max_bytes = 0: no such bound. parts: how many parts the map is split into by hash, a power of two up to
 * LRU_MAX_PARTS. Null if out of memory.
 *
 * Each part has a lock and an equal share of the bounds, rounded up, of its own. With many parts an insertion, and the trim
 * after it, hold a lock for a time that does not grow with the map; but as hashes do not fall evenly, a part can be over its
 * share and evict while the map as a whole is not full yet: for parts of 512, from about 85 % on.
 * With one part, the least recently used unpinned entry is what is evicted, exactly. With many this holds within a part, but
 * that lru_trim looks at no more than 64 entries for a victim (it takes the oldest of them where all were used since they were
 * last looked at), and that an entry found pinned counts as used then. */
lru *lru_create(size_t max_entries, size_t max_bytes, unsigned parts);

/* Destroys the map, handing every value to destroy (may be null). No entry may be pinned by others. */
void lru_destroy(lru *map, void (*destroy)(void *user, void *value), void *user);

/* Finds and pins the entry of a key; null if absent. Counts a hit or a miss. */
lru_entry *lru_acquire(lru *map, const void *key, size_t key_bytes);

/* Adds a value of `bytes` bytes under a key (copied) and returns the entry, pinned. If the key is present already, the
 * value is not taken: *existed is set to 1 and the present entry is returned, pinned. Null if out of memory. May
 * leave the map over its bounds until the next lru_trim. */
lru_entry *lru_insert(lru *map, const void *key, size_t key_bytes, void *value, size_t bytes, int *existed);

/* Adds a pin to an entry that the caller already holds pinned. */
void lru_pin(lru_entry *entry);

/* Marks an entry that the caller holds pinned as used now, as a lookup does: counts a hit. */
void lru_touch(lru *map, lru_entry *entry);

/* Takes a pin away. The entry may be evicted from then on. */
void lru_release(lru_entry *entry);

void *lru_value(const lru_entry *entry);

/* The entry's key, and the time of its last use: larger is later, exactly so within a part and for insertions; a hit can read
 * as up to 64 uses of each part too early. The caller holds the entry pinned, or knows otherwise that it is in the map. */
const void *lru_key(const lru_entry *entry);
uint64_t lru_last_use(const lru_entry *entry);
int lru_is_pinned(const lru_entry *entry);

/* Evicts unpinned entries, least recently used first, until each part is within its bounds or only pinned ones are left in it.
 * Each value is handed to evict outside the lock. Returns how many were evicted. Looks only at the parts that are over. */
size_t lru_trim(lru *map, void (*evict)(void *user, void *value), void *user);

/* Evicts the `count` least recently used unpinned entries of the whole map, by lru_last_use, whatever the bounds. Returns how
 * many there were. Looks at every part first, which takes 0.2 us for each. */
size_t lru_evict_oldest(lru *map, size_t count, void (*evict)(void *user, void *value), void *user);

/* Evicts the entry of a key if it is there and unpinned. Returns 1 if it went, else 0. */
size_t lru_remove(lru *map, const void *key, size_t key_bytes, void (*evict)(void *user, void *value), void *user);

/* Nonzero if a part is over one of its bounds. A few ns, without a lock. */
int lru_over(lru *map);

void lru_get_stats(lru *map, lru_stats *stats);

#endif
