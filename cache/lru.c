/* Memory LRU on uthash.
 *
 * In: keys and values of the caller. Out: pinned entries, and evicted values handed to a callback.
 *
 * Each part has a table and an rwlock. A lookup runs under the read lock and only changes atomics, a pin and a use stamp, so
 * lookups never wait for each other. Whoever holds the write lock therefore sees stamps and pins that cannot rise: an entry
 * found unpinned there can be taken out safely.
 *
 * The order of use is a heap of entries by the stamp that each had when it was last looked at. Lookups leave the heap alone;
 * an eviction brings the top up to date until it is: then nothing can be older, since stamps only rise.
 *
 * After fork() the child may find a lock held for ever: it must neither use nor destroy a map made before. */
#include "cache/lru.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A failed allocation inside uthash leaves the table as it was and the entry without one (hh.tbl null). */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A part's table has from the start the buckets that its bound asks for, so that no insertion ever has to rehash. Where uthash
 * makes a table there is a variable of this name. */
#undef HASH_INITIAL_NUM_BUCKETS
#undef HASH_INITIAL_NUM_BUCKETS_LOG2
#define HASH_INITIAL_NUM_BUCKETS (1U << bucket_bits)
#define HASH_INITIAL_NUM_BUCKETS_LOG2 bucket_bits

enum {
    LINE = 64,              /* bytes that processors pass between them */
    CLOCK_BITS = 6,         /* uses of a part to one tick of the map's clock, as a power of two */
    LOOKS = 64,             /* entries that an eviction looks at, in a map of several parts */
    WORD_BITS = 64,
    LEAST_BUCKET_BITS = 5,
    MOST_BUCKET_BITS = 16
};

struct lru_entry {
    UT_hash_handle hh;
    void *value;
    /* A second line: what lookups write is apart from what they read of the entries that they only pass. */
    atomic_uint_fast64_t stamp; /* the time of the last use, see use_now */
    atomic_size_t pins;
    size_t bytes;
    struct part *part; /* that it is in */
    lru_entry *next; /* only once out of the heap: the next victim, or the next one set aside */
    unsigned char key[];
};

/* An entry in the heap, and the latest stamp that it is known to have. */
typedef struct place {
    uint64_t stamp;
    lru_entry *entry;
} place;

typedef struct part {
    _Alignas(LINE) pthread_rwlock_t lock;
    atomic_uint_fast64_t uses; /* beside the lock, since whoever counts one has just written that */
    _Alignas(LINE) lru_entry *table; /* uthash head */
    size_t bytes;
    place *heap; /* heap[0] has the smallest stamp, heap[i] none smaller than heap[(i - 1) / 2] */
    size_t count, room; /* of the heap; count is that of the table but for entries set aside */
    uint64_t other_uses; /* that are not hits */
    uint64_t evictions;
    atomic_uint_fast64_t misses;
} part;

struct lru {
    size_t max_entries, max_bytes; /* of each part */
    unsigned part_count, part_bits, bucket_bits;
    size_t looks;
    _Alignas(LINE) atomic_uint_fast64_t clock;
    _Alignas(LINE) atomic_uint_fast64_t over[LRU_MAX_PARTS / WORD_BITS]; /* a bit for each part that is over its bounds */
    part parts[];
};

static unsigned bits_of(size_t number)
{
    unsigned bits = 0;
    while (bits < MOST_BUCKET_BITS && (size_t)1 << bits < number)
        bits++;
    return bits;
}

static size_t share(size_t whole, unsigned parts)
{
    return whole ? whole / parts + (whole % parts != 0) : SIZE_MAX;
}

lru *lru_create(size_t max_entries, size_t max_bytes, unsigned parts)
{
    lru *map = aligned_alloc(LINE, sizeof *map + parts * sizeof map->parts[0]);
    if (!map) return NULL;
    memset(map, 0, sizeof *map + parts * sizeof map->parts[0]);
    map->max_entries = share(max_entries, parts);
    map->max_bytes = share(max_bytes, parts);
    map->part_bits = bits_of(parts);
    map->bucket_bits = max_entries ? bits_of(map->max_entries) : 0;
    if (map->bucket_bits < LEAST_BUCKET_BITS) map->bucket_bits = LEAST_BUCKET_BITS;
    map->looks = parts == 1 ? SIZE_MAX : LOOKS;
    for (; map->part_count < parts; map->part_count++) {
        if (pthread_rwlock_init(&map->parts[map->part_count].lock, NULL) == 0) continue;
        lru_destroy(map, NULL, NULL);
        return NULL;
    }
    return map;
}

void lru_destroy(lru *map, void (*destroy)(void *user, void *value), void *user)
{
    if (!map) return;
    for (unsigned i = 0; i < map->part_count; i++) {
        part *p = &map->parts[i];
        lru_entry *entry, *next;
        HASH_ITER(hh, p->table, entry, next) {
            HASH_DEL(p->table, entry);
            if (destroy) destroy(user, entry->value);
            free(entry);
        }
        free(p->heap);
        pthread_rwlock_destroy(&p->lock);
    }
    free(map);
}

/* ---- time and parts --------------------------------------------------------------------------------------------- */

/* The time of a use: the map's clock, then the low bits of the part's count of uses. Every use of a part has a later one than
 * those before it. The clock, which all threads share, moves once in 2^CLOCK_BITS uses and at every insertion. */
static uint64_t use_now(lru *map, part *p, int is_insertion)
{
    const uint64_t low = ((uint64_t)1 << CLOCK_BITS) - 1;
    uint64_t use = atomic_fetch_add_explicit(&p->uses, 1, memory_order_relaxed), clock;
    if (is_insertion || (use & low) == 0) clock = atomic_fetch_add_explicit(&map->clock, 1, memory_order_relaxed) + 1;
    else clock = atomic_load_explicit(&map->clock, memory_order_relaxed);
    return clock << CLOCK_BITS | (use & low);
}

/* The part by the hash's high bits, since uthash takes its buckets by the low ones. */
static part *part_of(lru *map, const void *key, size_t key_bytes, unsigned *hash)
{
    uint64_t whole = XXH64(key, key_bytes, 0);
    *hash = (unsigned)whole;
    return &map->parts[whole >> 32 >> (32 - map->part_bits)];
}

static int over(const lru *map, const part *p)
{
    return HASH_COUNT(p->table) > map->max_entries || p->bytes > map->max_bytes;
}

/* Enters whether a part is over its bounds. Write lock held, as by whatever changed that. */
static void note_over(lru *map, const part *p)
{
    size_t index = (size_t)(p - map->parts);
    uint64_t bit = (uint64_t)1 << index % WORD_BITS;
    atomic_uint_fast64_t *word = &map->over[index / WORD_BITS];
    int was = (atomic_load_explicit(word, memory_order_relaxed) & bit) != 0, is = over(map, p);
    if (is && !was) atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    if (was && !is) atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

/* ---- the heap. Write lock held ---------------------------------------------------------------------------------- */

static int make_room(part *p)
{
    if (p->count < p->room) return 1;
    size_t room = p->room ? 2 * p->room : 16;
    place *grown = realloc(p->heap, room * sizeof *grown);
    if (!grown) return 0;
    p->heap = grown;
    p->room = room;
    return 1;
}

static void sift_up(part *p, size_t at)
{
    place moved = p->heap[at];
    for (; at && p->heap[(at - 1) / 2].stamp > moved.stamp; at = (at - 1) / 2)
        p->heap[at] = p->heap[(at - 1) / 2];
    p->heap[at] = moved;
}

static void sift_down(part *p, size_t at)
{
    place moved = p->heap[at];
    for (size_t child; (child = 2 * at + 1) < p->count; at = child) {
        if (child + 1 < p->count && p->heap[child + 1].stamp < p->heap[child].stamp) child++;
        if (p->heap[child].stamp >= moved.stamp) break;
        p->heap[at] = p->heap[child];
    }
    p->heap[at] = moved;
}

/* There is room: see make_room, and nothing takes any away. */
static void push(part *p, lru_entry *entry, uint64_t stamp)
{
    p->heap[p->count] = (place){stamp, entry};
    sift_up(p, p->count++);
}

static void pull(part *p, size_t at)
{
    p->heap[at] = p->heap[--p->count];
    sift_down(p, at);
    sift_up(p, at);
}

/* ---- lookup and insertion --------------------------------------------------------------------------------------- */

/* Finds, stamps and pins. The caller holds the lock, either way. */
static lru_entry *find(lru *map, part *p, const void *key, size_t key_bytes, unsigned hash)
{
    lru_entry *entry;
    HASH_FIND_BYHASHVALUE(hh, p->table, key, key_bytes, hash, entry);
    if (entry) {
        atomic_store_explicit(&entry->stamp, use_now(map, p, 0), memory_order_relaxed);
        lru_pin(entry);
    }
    return entry;
}

lru_entry *lru_acquire(lru *map, const void *key, size_t key_bytes)
{
    unsigned hash;
    if (!key) key = ""; /* an empty key; memcmp wants a pointer even for no bytes */
    part *p = part_of(map, key, key_bytes, &hash);
    pthread_rwlock_rdlock(&p->lock);
    lru_entry *entry = find(map, p, key, key_bytes, hash);
    pthread_rwlock_unlock(&p->lock);
    if (!entry) atomic_fetch_add_explicit(&p->misses, 1, memory_order_relaxed);
    return entry;
}

/* hot: see to it that it lies with the rest of what a launch runs through. */
__attribute__((hot)) void lru_touch(lru *map, lru_entry *entry)
{
    atomic_store_explicit(&entry->stamp, use_now(map, entry->part, 0), memory_order_relaxed);
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

/* Returns 0 if out of memory. Write lock held. */
static int add(lru *map, part *p, lru_entry *entry, size_t key_bytes, unsigned hash)
{
    const unsigned bucket_bits = map->bucket_bits;
    if (!make_room(p)) return 0;
    uint64_t now = use_now(map, p, 1);
    entry->part = p;
    p->other_uses++;
    atomic_init(&entry->stamp, now);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, p->table, entry->key, key_bytes, hash, entry);
    if (!entry->hh.tbl) return 0;
    push(p, entry, now);
    p->bytes += entry->bytes;
    note_over(map, p);
    return 1;
}

lru_entry *lru_insert(lru *map, const void *key, size_t key_bytes, void *value, size_t bytes, int *existed)
{
    unsigned hash;
    if (!key) key = "";
    *existed = 0;
    lru_entry *fresh = make_entry(key, key_bytes, value, bytes);
    if (!fresh) return NULL;
    part *p = part_of(map, key, key_bytes, &hash);

    pthread_rwlock_wrlock(&p->lock);
    lru_entry *entry = find(map, p, key, key_bytes, hash);
    *existed = entry != NULL;
    p->other_uses += entry != NULL;
    if (!entry && add(map, p, fresh, key_bytes, hash)) entry = fresh;
    pthread_rwlock_unlock(&p->lock);
    if (entry != fresh) free(fresh);
    return entry;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

void lru_pin(lru_entry *entry)
{
    atomic_fetch_add_explicit(&entry->pins, 1, memory_order_relaxed);
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

/* ---- eviction --------------------------------------------------------------------------------------------------- */

/* Finds the least recently used unpinned entry, which may lie anywhere in the heap. Pinned ones before it are taken out of
 * the heap and put before *aside, see put_back. After `looks` entries that turn out to be younger than they were thought, it
 * takes the oldest of these, to bound the time. Null if all are pinned. Write lock held. */
static lru_entry *find_oldest(part *p, size_t looks, lru_entry **aside)
{
    lru_entry *best = NULL;
    while (p->count) {
        place *top = p->heap;
        lru_entry *entry = top->entry;
        uint64_t stamp = lru_last_use(entry);
        if (lru_is_pinned(entry)) {
            pull(p, 0);
            entry->next = *aside;
            *aside = entry;
        } else if (stamp <= top->stamp) {
            return entry;
        } else {
            if (!best || stamp < lru_last_use(best)) best = entry;
            top->stamp = stamp;
            sift_down(p, 0);
        }
        if (looks) looks--;
        if (!looks && best) return best;
    }
    return NULL;
}

/* Puts the pinned ones that find_oldest met back into the heap. In a map of several parts they go to its end, as if used just
 * now, which they are: there the next eviction must not meet all of them again. Write lock held. */
static void put_back(lru *map, part *p, lru_entry *aside)
{
    uint64_t now = atomic_load_explicit(&map->clock, memory_order_relaxed) << CLOCK_BITS;
    for (lru_entry *next; aside; aside = next) {
        next = aside->next;
        push(p, aside, map->part_count == 1 ? lru_last_use(aside) : now);
    }
}

/* Takes an entry out and puts it in front of the victims. Write lock held. */
static void take_out(lru *map, part *p, lru_entry *entry, lru_entry **victims)
{
    size_t at = 0;
    while (p->heap[at].entry != entry)
        at++;
    pull(p, at);
    HASH_DEL(p->table, entry);
    p->bytes -= entry->bytes;
    p->evictions++;
    note_over(map, p);
    entry->next = *victims;
    *victims = entry;
}

/* Hands the victims over, oldest first, and frees them. No lock held. */
static size_t dispose(lru_entry *victims, void (*evict)(void *user, void *value), void *user)
{
    lru_entry *ordered = NULL;
    size_t count = 0;
    while (victims) {
        lru_entry *entry = victims;
        victims = entry->next;
        entry->next = ordered;
        ordered = entry;
    }
    while (ordered) {
        lru_entry *entry = ordered;
        ordered = entry->next;
        if (evict) evict(user, entry->value);
        free(entry);
        count++;
    }
    return count;
}

static void trim_part(lru *map, part *p, lru_entry **victims)
{
    lru_entry *entry, *aside = NULL;
    pthread_rwlock_wrlock(&p->lock);
    while (over(map, p) && (entry = find_oldest(p, map->looks, &aside)))
        take_out(map, p, entry, victims);
    put_back(map, p, aside);
    pthread_rwlock_unlock(&p->lock);
}

size_t lru_trim(lru *map, void (*evict)(void *user, void *value), void *user)
{
    lru_entry *victims = NULL;
    for (unsigned first = 0; first < map->part_count; first += WORD_BITS) {
        uint64_t bits = atomic_load_explicit(&map->over[first / WORD_BITS], memory_order_relaxed);
        for (unsigned i = first; bits; bits >>= 1, i++)
            if (bits & 1) trim_part(map, &map->parts[i], &victims);
    }
    return dispose(victims, evict, user);
}

/* Takes the `most` oldest entries out of a part. Returns the stamp of the oldest that is left; UINT64_MAX if there is none. */
static uint64_t take_oldest(lru *map, part *p, size_t most, lru_entry **victims)
{
    lru_entry *entry, *aside = NULL;
    pthread_rwlock_wrlock(&p->lock);
    while ((entry = find_oldest(p, SIZE_MAX, &aside)) && most--)
        take_out(map, p, entry, victims);
    uint64_t oldest = entry ? lru_last_use(entry) : UINT64_MAX;
    put_back(map, p, aside);
    pthread_rwlock_unlock(&p->lock);
    return oldest;
}

/* Goes on where the oldest entry is, by what each part had when it was last looked at. What was used meanwhile goes all the
 * same: else those who use the map faster than we look at it could keep us here. */
size_t lru_evict_oldest(lru *map, size_t count, void (*evict)(void *user, void *value), void *user)
{
    uint64_t oldest[LRU_MAX_PARTS]; /* 0: not looked at; no stamp is 0 */
    lru_entry *victims = NULL;
    if (map->part_count == 1) {
        take_oldest(map, map->parts, count, &victims);
        return dispose(victims, evict, user);
    }
    memset(oldest, 0, map->part_count * sizeof oldest[0]);
    while (count) {
        unsigned at = 0;
        for (unsigned i = 1; i < map->part_count; i++)
            if (oldest[i] < oldest[at]) at = i;
        if (oldest[at] == UINT64_MAX) break;
        size_t most = oldest[at] != 0;
        oldest[at] = take_oldest(map, &map->parts[at], most, &victims);
        count -= most;
    }
    return dispose(victims, evict, user);
}

size_t lru_remove(lru *map, const void *key, size_t key_bytes, void (*evict)(void *user, void *value), void *user)
{
    unsigned hash;
    lru_entry *entry, *victims = NULL;
    if (!key) key = "";
    part *p = part_of(map, key, key_bytes, &hash);
    pthread_rwlock_wrlock(&p->lock);
    HASH_FIND_BYHASHVALUE(hh, p->table, key, key_bytes, hash, entry);
    if (entry && !lru_is_pinned(entry)) take_out(map, p, entry, &victims);
    pthread_rwlock_unlock(&p->lock);
    return dispose(victims, evict, user);
}

int lru_over(lru *map)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < map->part_count; i += WORD_BITS)
        any |= atomic_load_explicit(&map->over[i / WORD_BITS], memory_order_relaxed);
    return any != 0;
}

void lru_get_stats(lru *map, lru_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    for (unsigned i = 0; i < map->part_count; i++) {
        part *p = &map->parts[i];
        pthread_rwlock_rdlock(&p->lock);
        stats->entries += HASH_COUNT(p->table);
        stats->bytes += p->bytes;
        stats->evictions += p->evictions;
        stats->hits += atomic_load_explicit(&p->uses, memory_order_relaxed) - p->other_uses;
        stats->misses += atomic_load_explicit(&p->misses, memory_order_relaxed);
        pthread_rwlock_unlock(&p->lock);
    }
}
