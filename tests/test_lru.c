/* The memory LRU: bounds, pins, order of use, and many threads at once (run it under ThreadSanitizer as well).
 *
 * Values are counters in an array, so that a value handed out twice, or never, shows. */
#include "cache/lru.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>

#include <cmocka.h>

enum { MANY = 100000, THREADS = 4, ROUNDS = 20000, KEYS = 64 };

/* What was evicted, in order. */
typedef struct log {
    size_t count;
    int values[256];
} log;

static void note(void *user, void *value)
{
    log *evicted = user;
    if (evicted->count < 256) evicted->values[evicted->count] = *(int *)value;
    evicted->count++;
}

static int numbers[256];

static void add(lru *map, int key, size_t bytes)
{
    int existed;
    numbers[key] = key;
    lru_entry *entry = lru_insert(map, &key, sizeof key, &numbers[key], bytes, &existed);
    assert_non_null(entry);
    assert_int_equal(existed, 0);
    lru_release(entry);
}

/* Looks a key up without counting on it: 1 if present. It is a use, as every look-up is. */
static int touch(lru *map, int key)
{
    lru_entry *entry = lru_acquire(map, &key, sizeof key);
    if (!entry) return 0;
    assert_ptr_equal(lru_value(entry), &numbers[key]);
    lru_release(entry);
    return 1;
}

static void holds_exactly_its_capacity(void **state)
{
    (void)state;
    log evicted = {0};
    lru_stats stats;
    lru *map = lru_create(8, 0, 1);
    for (int i = 0; i < 8; i++)
        add(map, i, 1);
    assert_int_equal(lru_over(map), 0);
    assert_int_equal(lru_trim(map, note, &evicted), 0);
    add(map, 8, 1);
    assert_int_equal(lru_over(map), 1);
    assert_int_equal(lru_trim(map, note, &evicted), 1);
    assert_int_equal(evicted.values[0], 0);
    lru_get_stats(map, &stats);
    assert_int_equal(stats.entries, 8);
    assert_int_equal(stats.bytes, 8);
    assert_int_equal(stats.evictions, 1);
    lru_destroy(map, note, &evicted);
    assert_int_equal(evicted.count, 9);
}

static void keeps_within_its_bytes(void **state)
{
    (void)state;
    log evicted = {0};
    lru_stats stats;
    lru *map = lru_create(0, 100, 1);
    for (int i = 0; i < 5; i++)
        add(map, i, 20);
    assert_int_equal(lru_over(map), 0);
    add(map, 5, 41); /* 141: 0 and 1 leave 101, so 2 goes too */
    assert_int_equal(lru_trim(map, note, &evicted), 3);
    lru_get_stats(map, &stats);
    assert_int_equal(stats.bytes, 81);
    add(map, 6, 101); /* alone over the bound: everything goes, itself last */
    assert_int_equal(lru_trim(map, note, &evicted), 4);
    assert_int_equal(evicted.values[6], 6);
    lru_get_stats(map, &stats);
    assert_int_equal(stats.entries, 0);
    assert_int_equal(stats.bytes, 0);
    add(map, 7, 1); /* an emptied map works on */
    assert_int_equal(touch(map, 7), 1);
    lru_destroy(map, NULL, NULL);
}

static void evicts_in_order_of_use(void **state)
{
    (void)state;
    static const int uses[] = {3, 0, 5, 3};
    static const int expected[] = {1, 2, 4, 0, 5, 3};
    log evicted = {0};
    lru *map = lru_create(0, 0, 1);
    for (int i = 0; i < 6; i++)
        add(map, i, 1);
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        assert_int_equal(touch(map, uses[i]), 1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(lru_evict_oldest(map, 1, note, &evicted), 1);
    assert_int_equal(lru_evict_oldest(map, 1, note, &evicted), 0);
    assert_memory_equal(evicted.values, expected, sizeof expected);
    lru_destroy(map, NULL, NULL);
}

static void evicts_as_many_as_asked(void **state)
{
    (void)state;
    static const int expected[] = {1, 2, 0};
    log evicted = {0};
    lru *map = lru_create(0, 0, 1);
    for (int i = 0; i < 4; i++)
        add(map, i, 1);
    assert_int_equal(touch(map, 0), 1);
    assert_int_equal(lru_evict_oldest(map, 0, note, &evicted), 0);
    lru_entry *pinned = lru_acquire(map, &(int){3}, sizeof(int));
    assert_non_null(pinned);
    assert_int_equal(lru_evict_oldest(map, 2, note, &evicted), 2);
    assert_int_equal(lru_evict_oldest(map, 9, note, &evicted), 1); /* the pinned one stays */
    assert_memory_equal(evicted.values, expected, sizeof expected);
    lru_release(pinned);
    lru_destroy(map, NULL, NULL);
}

static void removes_by_key(void **state)
{
    (void)state;
    log evicted = {0};
    lru *map = lru_create(0, 0, 1);
    for (int i = 0; i < 3; i++)
        add(map, i, 1);
    lru_entry *pinned = lru_acquire(map, &(int){1}, sizeof(int));
    assert_int_equal(lru_remove(map, &(int){7}, sizeof(int), note, &evicted), 0);
    assert_int_equal(lru_remove(map, &(int){1}, sizeof(int), note, &evicted), 0);
    assert_int_equal(lru_remove(map, &(int){2}, sizeof(int), note, &evicted), 1);
    assert_int_equal(evicted.count, 1);
    assert_int_equal(evicted.values[0], 2);
    assert_int_equal(touch(map, 2), 0);
    lru_release(pinned);
    assert_int_equal(lru_remove(map, &(int){1}, sizeof(int), note, &evicted), 1);
    lru_destroy(map, NULL, NULL);
}

/* The many-at-once path sorts; its order must be the same. */
static void trims_many_in_order_of_use(void **state)
{
    (void)state;
    log evicted = {0};
    lru *map = lru_create(1, 0, 1);
    for (int i = 0; i < 100; i++)
        add(map, i, 1);
    for (int i = 99; i >= 0; i--)
        touch(map, i);
    int held = 98;
    lru_entry *entry = lru_acquire(map, &held, sizeof held);
    touch(map, 0);
    assert_int_equal(lru_trim(map, note, &evicted), 99);
    for (int i = 0, expected = 99; i < 98; i++, expected -= expected == 99 ? 2 : 1)
        assert_int_equal(evicted.values[i], expected);
    assert_int_equal(evicted.values[98], 0); /* the youngest, but what is older is held */
    lru_release(entry);
    assert_int_equal(touch(map, held), 1);
    lru_destroy(map, NULL, NULL);
}

static void never_evicts_a_pinned_entry(void **state)
{
    (void)state;
    log evicted = {0};
    int existed, a = 0, b = 1;
    lru *map = lru_create(1, 0, 1);
    lru_entry *first = lru_insert(map, &a, sizeof a, &numbers[0], 1, &existed);
    lru_entry *second = lru_insert(map, &b, sizeof b, &numbers[1], 1, &existed);
    lru_pin(first);
    numbers[1] = 1;
    assert_int_equal(lru_trim(map, note, &evicted), 0); /* over, but both are held */
    assert_int_equal(lru_over(map), 1);
    lru_release(first);
    assert_int_equal(lru_trim(map, note, &evicted), 0); /* the second pin still holds */
    lru_release(second);
    assert_int_equal(lru_trim(map, note, &evicted), 1); /* the younger goes, since the older is pinned */
    assert_int_equal(evicted.values[0], 1);
    assert_int_equal(lru_evict_oldest(map, 1, note, &evicted), 0);
    lru_release(first);
    assert_int_equal(lru_evict_oldest(map, 1, note, &evicted), 1);
    lru_destroy(map, NULL, NULL);
}

static void refuses_a_duplicate(void **state)
{
    (void)state;
    int existed = 7, key = 3, other = 0;
    lru_stats stats;
    lru *map = lru_create(4, 0, 1);
    lru_entry *entry = lru_insert(map, &key, sizeof key, &numbers[3], 10, &existed);
    assert_int_equal(existed, 0);
    lru_entry *again = lru_insert(map, &key, sizeof key, &other, 99, &existed);
    assert_int_equal(existed, 1);
    assert_ptr_equal(again, entry);
    assert_ptr_equal(lru_value(again), &numbers[3]);
    lru_release(entry);
    assert_int_equal(lru_evict_oldest(map, 1, NULL, NULL), 0); /* the second insert pinned it as well */
    lru_release(again);
    lru_get_stats(map, &stats);
    assert_int_equal(stats.entries, 1);
    assert_int_equal(stats.bytes, 10);
    lru_destroy(map, NULL, NULL);
}

static void takes_any_key(void **state)
{
    (void)state;
    enum { LONG = 1 << 20 };
    int existed;
    char *text = malloc(LONG);
    assert_non_null(text);
    memset(text, 'x', LONG);
    lru *map = lru_create(0, 0, 1);
    lru_entry *empty = lru_insert(map, NULL, 0, &numbers[0], 1, &existed);
    lru_entry *large = lru_insert(map, text, LONG, &numbers[1], 1, &existed);
    lru_entry *shorter = lru_insert(map, text, LONG - 1, &numbers[2], 1, &existed); /* a prefix is another key */
    assert_int_equal(existed, 0);
    text[LONG - 1] = 'y'; /* keys are copied */
    assert_null(lru_acquire(map, text, LONG));
    text[LONG - 1] = 'x';
    assert_ptr_equal(lru_acquire(map, text, LONG), large);
    assert_ptr_equal(lru_acquire(map, text, LONG - 1), shorter);
    assert_ptr_equal(lru_acquire(map, "", 0), empty);
    assert_null(lru_acquire(map, "\0", 1));
    lru_destroy(map, NULL, NULL);
    free(text);
}

static void counts_hits_and_misses(void **state)
{
    (void)state;
    lru_stats stats;
    lru *map = lru_create(0, 0, 1);
    add(map, 1, 1);
    for (int i = 0; i < 3; i++)
        touch(map, 1);
    for (int i = 0; i < 2; i++)
        touch(map, 2);
    lru_get_stats(map, &stats);
    assert_int_equal(stats.hits, 3);
    assert_int_equal(stats.misses, 2);
    lru_destroy(map, NULL, NULL);
}

/* A trim of nearly everything from a large map: quadratic work would take minutes. */
static void trims_a_large_map(void **state)
{
    (void)state;
    int existed;
    lru *map = lru_create(10, 0, 1);
    for (int i = 0; i < MANY; i++)
        lru_release(lru_insert(map, &i, sizeof i, NULL, 1, &existed));
    assert_int_equal(lru_trim(map, NULL, NULL), MANY - 10);
    for (int i = MANY - 10; i < MANY; i++)
        lru_release(lru_acquire(map, &i, sizeof i)); /* the latest ones are there */
    lru_destroy(map, NULL, NULL);
}

/* ---- many threads ----------------------------------------------------------------------------------------------- */

typedef struct value {
    int key;
    int alive; /* plain, not atomic: a use after eviction is a data race that ThreadSanitizer sees */
} value;

typedef struct crowd {
    lru *map;
    atomic_size_t made, destroyed;
    atomic_int faults;
} crowd;

static void destroy_value(void *user, void *pointer)
{
    crowd *c = user;
    value *v = pointer;
    if (!v->alive) atomic_fetch_add(&c->faults, 1);
    v->alive = 0;
    free(v);
    atomic_fetch_add(&c->destroyed, 1);
}

static lru_entry *get_or_make(crowd *c, int key)
{
    int existed;
    lru_entry *entry = lru_acquire(c->map, &key, sizeof key);
    if (entry) return entry;
    value *v = malloc(sizeof *v);
    if (!v) abort();
    *v = (value){key, 1};
    entry = lru_insert(c->map, &key, sizeof key, v, sizeof *v, &existed);
    if (existed) free(v);
    else atomic_fetch_add(&c->made, 1);
    return entry;
}

static void *work(void *argument)
{
    crowd *c = argument;
    unsigned random = (unsigned)(uintptr_t)&random;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245u + 12345u;
        int key = (int)(random >> 16) % KEYS;
        lru_entry *entry = get_or_make(c, key);
        value *v = lru_value(entry);
        if (!v->alive || v->key != key) atomic_fetch_add(&c->faults, 1);
        if (i % 7 == 0) { /* a second pin, given back first */
            lru_pin(entry);
            lru_release(entry);
        }
        lru_release(entry);
        if (i % 5 == 0) lru_trim(c->map, destroy_value, c);
        if (i % 97 == 0) lru_evict_oldest(c->map, 1 + (size_t)i % 3, destroy_value, c);
        if (i % 53 == 0) lru_remove(c->map, &key, sizeof key, destroy_value, c);
        if (i % 31 == 0) lru_over(c->map);
    }
    return NULL;
}

static void check_many_threads(unsigned parts)
{
    pthread_t threads[THREADS];
    lru_stats stats;
    crowd c = {.map = lru_create(KEYS / 4, 0, parts)};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &c), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    lru_trim(c.map, destroy_value, &c);
    lru_get_stats(c.map, &stats);
    assert_true(stats.entries <= KEYS / 4);
    assert_int_equal(stats.evictions, atomic_load(&c.destroyed));
    assert_int_equal(stats.hits + stats.misses, (uint64_t)THREADS * ROUNDS);
    assert_true(stats.evictions > 0 && stats.hits > 0);
    lru_destroy(c.map, destroy_value, &c);
    assert_int_equal(atomic_load(&c.made), atomic_load(&c.destroyed));
    assert_int_equal(atomic_load(&c.faults), 0);
}

static void serves_many_threads(void **state)
{
    (void)state;
    check_many_threads(1);
    check_many_threads(4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_exactly_its_capacity),
        cmocka_unit_test(keeps_within_its_bytes),
        cmocka_unit_test(evicts_in_order_of_use),
        cmocka_unit_test(evicts_as_many_as_asked),
        cmocka_unit_test(removes_by_key),
        cmocka_unit_test(trims_many_in_order_of_use),
        cmocka_unit_test(never_evicts_a_pinned_entry),
        cmocka_unit_test(refuses_a_duplicate),
        cmocka_unit_test(takes_any_key),
        cmocka_unit_test(counts_hits_and_misses),
        cmocka_unit_test(trims_a_large_map),
        cmocka_unit_test(serves_many_threads),
    };
    return cmocka_run_group_tests_name("lru", tests, NULL, NULL);
}
