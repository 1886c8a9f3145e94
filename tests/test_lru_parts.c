/* The memory LRU in several parts: what goes, against a slow model; the order across parts; pins; and that a trim looks at a
 * bounded number of entries. Which part a key falls into is computed here as in lru.c, by the high bits of its XXH64. */
#include "cache/lru.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

enum { KEYS = 400, STEPS = 20000, LOOKS = 64 };

/* What is known of a key: the model. */
typedef struct known {
    int key, present, pinned;
    long used;         /* by the model's own clock */
    lru_entry *entry;  /* while present */
} known;

static known all[KEYS];
static long clock_now;

static unsigned part_of(int key, unsigned parts)
{
    return (unsigned)((XXH64(&key, sizeof key, 0) >> 32) * parts >> 32);
}

/* The least recently used unpinned key of a part, or of all parts (part < 0); null if there is none. */
static known *oldest_of(int part, unsigned parts)
{
    known *oldest = NULL;
    for (int i = 0; i < KEYS; i++) {
        known *k = &all[i];
        if (!k->present || k->pinned || (part >= 0 && part_of(i, parts) != (unsigned)part)) continue;
        if (!oldest || k->used < oldest->used) oldest = k;
    }
    return oldest;
}

static size_t count_of(int part, unsigned parts)
{
    size_t count = 0;
    for (int i = 0; i < KEYS; i++)
        count += all[i].present && (part < 0 || part_of(i, parts) == (unsigned)part);
    return count;
}

static void forget_all(void)
{
    memset(all, 0, sizeof all);
    for (int i = 0; i < KEYS; i++)
        all[i].key = i;
    clock_now = 0;
}

static void insert(lru *map, int key)
{
    int existed;
    known *k = &all[key];
    k->entry = lru_insert(map, &key, sizeof key, k, 1, &existed);
    assert_non_null(k->entry);
    assert_int_equal(existed, k->present);
    lru_release(k->entry);
    k->present = 1;
    k->used = ++clock_now;
}

static int touch(lru *map, int key)
{
    known *k = &all[key];
    lru_entry *entry = lru_acquire(map, &key, sizeof key);
    assert_int_equal(entry != NULL, k->present);
    if (!entry) return 0;
    assert_ptr_equal(entry, k->entry);
    lru_release(entry);
    k->used = ++clock_now;
    return 1;
}

/* What was evicted, in order. */
typedef struct log {
    size_t count;
    known *gone[KEYS];
} log;

static void note(void *user, void *value)
{
    log *evicted = user;
    known *k = value;
    assert_int_equal(k->present, 1);
    evicted->gone[evicted->count++] = k;
}

/* Every victim must be the oldest of its part just then, and no part may be left over its share. */
static void check_trim(lru *map, unsigned parts, size_t bound)
{
    log evicted = {0};
    size_t count = lru_trim(map, note, &evicted);
    assert_int_equal(count, evicted.count);
    for (size_t i = 0; i < count; i++) {
        unsigned part = part_of(evicted.gone[i]->key, parts);
        assert_true(count_of((int)part, parts) > bound);
        assert_ptr_equal(evicted.gone[i], oldest_of((int)part, parts));
        evicted.gone[i]->present = 0;
    }
    int over = 0;
    for (unsigned part = 0; part < parts; part++)
        if (count_of((int)part, parts) > bound) {
            assert_null(oldest_of((int)part, parts)); /* all pinned */
            over = 1;
        }
    assert_int_equal(lru_over(map) != 0, over);
}

static void evicts_what_a_model_evicts(void **state)
{
    (void)state;
    static const unsigned parts[] = {1, 2, 8};
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        const size_t bound = 10;
        unsigned random = 1;
        lru_stats stats;
        uint64_t hits = 0, misses = 0;
        lru *map = lru_create(bound * parts[p], 0, parts[p]);
        forget_all();
        for (int i = 0; i < STEPS; i++) {
            random = random * 1103515245u + 12345u;
            int key = (int)(random >> 16) % (int)(bound * parts[p] * 2), what = (int)(random >> 8 & 7);
            if (what < 4) {
                if (touch(map, key)) hits++;
                else misses++;
            } else if (what < 7) {
                insert(map, key);
                if (what < 6) check_trim(map, parts[p], bound); /* else two or three go later, at once */
            } else {
                log evicted = {0};
                size_t went = lru_remove(map, &key, sizeof key, note, &evicted);
                assert_int_equal(went, all[key].present);
                all[key].present = 0;
            }
        }
        lru_get_stats(map, &stats);
        assert_int_equal(stats.entries, count_of(-1, 1));
        assert_int_equal(stats.bytes, stats.entries);
        assert_int_equal(stats.hits, hits);
        assert_int_equal(stats.misses, misses);
        lru_destroy(map, NULL, NULL);
    }
}

/* With one part that is exactly as the model says; pins as well. */
static void keeps_the_exact_order_around_pins(void **state)
{
    (void)state;
    unsigned random = 7;
    lru *map = lru_create(10, 0, 1);
    forget_all();
    for (int i = 0; i < STEPS; i++) {
        random = random * 1103515245u + 12345u;
        known *k = &all[(random >> 16) % 20];
        if (k->pinned) {
            lru_release(k->entry);
            k->pinned = 0;
        } else if (k->present && (random >> 8 & 3) == 0) {
            lru_pin(lru_acquire(map, &k->key, sizeof k->key));
            lru_release(k->entry);
            k->pinned = 1;
            k->used = ++clock_now;
        } else if (k->present) {
            touch(map, k->key);
        } else {
            insert(map, k->key);
        }
        if (random >> 12 & 1) check_trim(map, 1, 10);
    }
    lru_destroy(map, NULL, NULL);
}

/* ---- across parts ----------------------------------------------------------------------------------------------- */

static void evicts_in_order_across_parts(void **state)
{
    (void)state;
    log evicted = {0};
    lru *map = lru_create(0, 0, 16);
    forget_all();
    for (int i = 0; i < KEYS; i++)
        insert(map, (i * 7) % KEYS);
    assert_int_equal(lru_over(map), 0); /* no bounds */
    assert_int_equal(lru_evict_oldest(map, 0, note, &evicted), 0);
    for (size_t count = 1; count <= 64; count *= 2)
        assert_int_equal(lru_evict_oldest(map, count, note, &evicted), count);
    for (size_t i = 0; i < evicted.count; i++)
        assert_int_equal(evicted.gone[i]->key, i * 7 % KEYS); /* insertions are in order whatever their parts */
    assert_int_equal(lru_evict_oldest(map, KEYS, note, &evicted), KEYS - 127); /* as many as there are */
    assert_int_equal(evicted.count, KEYS);
    assert_int_equal(lru_evict_oldest(map, 1, note, &evicted), 0);
    lru_destroy(map, NULL, NULL);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* After hits the order is that of lru_last_use. */
static void evicts_by_last_use_across_parts(void **state)
{
    (void)state;
    unsigned random = 3;
    uint64_t stamps[KEYS], of_key[KEYS];
    log evicted = {0};
    lru *map = lru_create(0, 0, 16);
    forget_all();
    for (int i = 0; i < KEYS; i++)
        insert(map, i);
    for (int i = 0; i < 3 * KEYS; i++) {
        random = random * 1103515245u + 12345u;
        touch(map, (int)(random >> 16) % KEYS);
    }
    for (int i = 0; i < KEYS; i++)
        stamps[i] = of_key[i] = lru_last_use(all[i].entry);
    qsort(stamps, KEYS, sizeof stamps[0], by_number);
    assert_int_equal(lru_evict_oldest(map, 100, note, &evicted), 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(of_key[evicted.gone[i]->key], stamps[i]);
    lru_destroy(map, NULL, NULL);
}

static void later_uses_have_later_times(void **state)
{
    (void)state;
    enum { PARTS = 16 };
    uint64_t latest = 0, of_part[PARTS] = {0};
    unsigned random = 5;
    lru *map = lru_create(0, 0, PARTS);
    forget_all();
    for (int i = 0; i < KEYS; i++) {
        insert(map, i);
        uint64_t now = lru_last_use(all[i].entry);
        assert_true(now > latest); /* an insertion is later than all that was before */
        latest = now;
        for (int n = 0; n < 100; n++) {
            random = random * 1103515245u + 12345u;
            int key = (int)(random >> 16) % (i + 1);
            unsigned part = part_of(key, PARTS);
            touch(map, key);
            now = lru_last_use(all[key].entry);
            assert_true(now > of_part[part]); /* a use is later than those of its part */
            of_part[part] = now;
            if (now > latest) latest = now;
        }
    }
    lru_destroy(map, NULL, NULL);
}

static void shares_its_bounds(void **state)
{
    (void)state;
    lru_stats stats;
    lru *map = lru_create(0, 1000, 4); /* 250 bytes each */
    forget_all();
    int filled[4] = {0}, existed;
    for (int i = 0; i < KEYS; i++) {
        unsigned part = part_of(i, 4);
        if (filled[part] == 3) continue;
        filled[part]++;
        lru_release(lru_insert(map, &i, sizeof i, &all[i], 83, &existed));
    }
    assert_int_equal(lru_over(map), 0); /* 249 in each */
    for (int i = 0; i < 4; i++)
        assert_int_equal(filled[i], 3);
    int more = KEYS + 1;
    lru_release(lru_insert(map, &more, sizeof more, NULL, 2, &existed));
    assert_int_equal(lru_over(map), 1);
    assert_int_equal(lru_trim(map, NULL, NULL), 1);
    lru_get_stats(map, &stats);
    assert_int_equal(stats.bytes, 11 * 83 + 2);
    lru_destroy(map, NULL, NULL);
    map = lru_create(5, 0, 4); /* rounded up: two each */
    for (int i = 0; i < KEYS; i++)
        lru_release(lru_insert(map, &i, sizeof i, NULL, 1, &existed));
    lru_trim(map, NULL, NULL);
    lru_get_stats(map, &stats);
    assert_int_equal(stats.entries, 8);
    lru_destroy(map, NULL, NULL);
    map = lru_create(0, 0, LRU_MAX_PARTS);
    assert_non_null(map);
    lru_destroy(map, NULL, NULL);
}

/* ---- bounded work ----------------------------------------------------------------------------------------------- */

/* Fills a map of two parts with keys of the first alone, one more than its share; returns how many. */
static int fill_one_part(lru **map, int keys[KEYS])
{
    int count = 0;
    for (int i = 0; i < KEYS; i++)
        if (part_of(i, 2) == 0) keys[count++] = i;
    assert_true(count > LOOKS + 50);
    *map = lru_create(2 * (size_t)(count - 1), 0, 2);
    forget_all();
    for (int i = 0; i < count; i++)
        insert(*map, keys[i]);
    return count;
}

/* Where everything was used, mostly in the opposite order, the oldest entry is at the far end: a trim does not go so far. */
static void looks_at_few_entries(void **state)
{
    (void)state;
    lru *map;
    int keys[KEYS];
    log evicted = {0};
    int count = fill_one_part(&map, keys);
    touch(map, keys[count - 1]);
    touch(map, keys[LOOKS / 2]);
    for (int i = count - 2; i >= 0; i--)
        if (i != LOOKS / 2) touch(map, keys[i]);
    assert_int_equal(lru_trim(map, note, &evicted), 1);
    assert_int_equal(evicted.gone[0]->key, keys[LOOKS / 2]); /* the oldest of those that it looked at */
    assert_int_equal(lru_over(map), 0);
    evicted.gone[0]->present = 0;
    assert_int_equal(lru_evict_oldest(map, 1, note, &evicted), 1); /* this one goes as far as it takes */
    assert_ptr_equal(evicted.gone[1], oldest_of(-1, 2));
    lru_destroy(map, NULL, NULL);
}

/* More pinned entries than it looks at must not keep the map from shrinking, nor be met again each time. */
static void gets_past_many_pinned_entries(void **state)
{
    (void)state;
    lru *map;
    int keys[KEYS];
    log evicted = {0};
    fill_one_part(&map, keys);
    for (int i = 0; i < LOOKS + 20; i++)
        lru_pin(all[keys[i]].entry); /* which is no use */
    assert_int_equal(lru_trim(map, note, &evicted), 1);
    assert_ptr_equal(evicted.gone[0], &all[keys[LOOKS + 20]]);
    for (int i = 0; i < LOOKS + 20; i++)
        lru_release(all[keys[i]].entry);
    assert_int_equal(lru_evict_oldest(map, 1, note, &evicted), 1);
    assert_ptr_equal(evicted.gone[1], &all[keys[LOOKS + 21]]); /* found pinned, they count as used then */
    lru_destroy(map, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evicts_what_a_model_evicts),
        cmocka_unit_test(keeps_the_exact_order_around_pins),
        cmocka_unit_test(evicts_in_order_across_parts),
        cmocka_unit_test(evicts_by_last_use_across_parts),
        cmocka_unit_test(later_uses_have_later_times),
        cmocka_unit_test(shares_its_bounds),
        cmocka_unit_test(looks_at_few_entries),
        cmocka_unit_test(gets_past_many_pinned_entries),
    };
    return cmocka_run_group_tests_name("lru parts", tests, NULL, NULL);
}
