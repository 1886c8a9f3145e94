/* The disk store where nothing is wrong: round trips, replacing, the cap and its order, shared sources, listing, and
 * several threads and processes on one file. Faults are in test_store_faults.c. */
#include "cache/store.h"
#include "store_fixture.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

static uint64_t own_bytes(int index, size_t binary_bytes)
{
    store_record r;
    sample_record(&r, index, binary_bytes, NULL);
    return r.key_bytes + strlen(r.name) + strlen(r.target) + strlen(r.label) + strlen(r.provenance) +
           strlen(r.defines) + r.binary_bytes + r.portable_bytes;
}

static void gives_back_what_was_put(void **state)
{
    (void)state;
    store_record put, got;
    store *s = sample_open(file, 0, 0);
    for (int pass = 0; pass < 2; pass++) { /* from this connection, then from the file alone */
        if (pass == 0) assert_int_equal(sample_put(s, 1, 100000, "source text"), STORE_OK);
        sample_record(&put, 1, 100000, "source text");
        assert_int_equal(store_get(s, put.key, put.key_bytes, &got), STORE_OK);
        assert_true(sample_equal(&put, &got));
        assert_int_equal(got.id, XXH64(put.key, put.key_bytes, 0));
        assert_int_equal(got.record_bytes, own_bytes(1, 100000));
        assert_in_range((uint64_t)got.created, (uint64_t)time(NULL) - 60, (uint64_t)time(NULL));
        assert_int_equal(((const char *)got.portable)[got.portable_bytes], 0);
        store_record_free(&got);
        store_close(s);
        s = sample_open(file, 0, 0);
    }
    store_close(s);
}

static void takes_empty_parts(void **state)
{
    (void)state;
    store_record empty = {.build_ms = -0.0}, got;
    store *s = sample_open(file, 0, 0);
    assert_int_equal(store_put(s, &empty, NULL), STORE_OK);
    assert_int_equal(store_get(s, NULL, 0, &got), STORE_OK);
    assert_string_equal(got.name, "");
    assert_string_equal(got.source, "");
    assert_int_equal(got.binary_bytes + got.portable_bytes + got.key_bytes, 0);
    store_record_free(&got);
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources"), 0);
}

static void tells_what_is_absent(void **state)
{
    (void)state;
    size_t bytes;
    store_record got;
    store *s = sample_open(file, 0, 0);
    sample_put(s, 1, 10, NULL);
    const void *present = sample_key(1, &bytes), *absent = sample_key(2, &bytes);
    assert_int_equal(store_get(s, present, bytes - 1, &got), STORE_ABSENT);
    assert_int_equal(store_get(s, absent, bytes, &got), STORE_ABSENT);
    assert_null(got.key);
    assert_int_equal(store_get_id(s, XXH64(present, bytes, 0), &got), STORE_OK);
    assert_string_equal(got.name, "kernel_000001");
    store_record_free(&got);
    assert_int_equal(store_get_id(s, 12345, &got), STORE_ABSENT);
    store_close(s);
}

static void replaces_the_record_of_a_key(void **state)
{
    (void)state;
    store_record record, got;
    store_totals totals;
    store *s = sample_open(file, 0, 0);
    sample_put(s, 1, 1000, "first source");
    sample_record(&record, 1, 500, "second source");
    record.name = "renamed";
    assert_int_equal(store_put(s, &record, NULL), STORE_OK);
    assert_int_equal(store_get(s, record.key, record.key_bytes, &got), STORE_OK);
    assert_true(sample_equal(&record, &got));
    store_record_free(&got);
    store_get_totals(s, &totals);
    assert_int_equal(totals.entries, 1);
    uint64_t renamed = own_bytes(1, 500) - strlen("kernel_000001") + strlen("renamed");
    assert_int_equal(totals.bytes, renamed + strlen("second source"));
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources"), 1);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM usage"), 1);
}

/* Two 64-byte keys with one XXH64. Each of its lanes is round(acc, x) = rotl(acc + x * P2, 31) * P1, and P2 has an
 * inverse, so a change of the first word of a lane can be undone by its second. */
static void make_colliding_keys(uint64_t a[8], uint64_t b[8])
{
    const uint64_t p1 = 0x9E3779B185EBCA87u, p2 = 0xC2B2AE3D27D4EB4Fu;
    uint64_t inverse = 1, after_a, after_b;
    for (int i = 0; i < 6; i++) /* Newton's iteration doubles the right bits */
        inverse *= 2 - p2 * inverse;
    for (int i = 0; i < 8; i++)
        a[i] = b[i] = (uint64_t)i * 0x0123456789abcdefu;
    b[0] = a[0] + 1;
    after_a = p1 + p2 + a[0] * p2;
    after_a = (after_a << 31 | after_a >> 33) * p1;
    after_b = p1 + p2 + b[0] * p2;
    after_b = (after_b << 31 | after_b >> 33) * p1;
    b[4] = a[4] + (after_a - after_b) * inverse;
}

static void tells_colliding_keys_apart(void **state)
{
    (void)state;
    uint64_t a[8], b[8];
    store_record record, got;
    make_colliding_keys(a, b);
    assert_int_equal(XXH64(a, sizeof a, 0), XXH64(b, sizeof b, 0));
    store *s = sample_open(file, 0, 0);
    sample_record(&record, 1, 10, NULL);
    record.key = a;
    record.key_bytes = sizeof a;
    record.name = "a";
    assert_int_equal(store_put(s, &record, NULL), STORE_OK);
    assert_int_equal(store_get(s, b, sizeof b, &got), STORE_ABSENT);
    record.key = b;
    record.name = "b";
    assert_int_equal(store_put(s, &record, NULL), STORE_OK);
    assert_int_equal(store_get(s, a, sizeof a, &got), STORE_OK);
    assert_string_equal(got.name, "a");
    store_record_free(&got);
    assert_int_equal(store_get(s, b, sizeof b, &got), STORE_OK);
    assert_string_equal(got.name, "b");
    store_record_free(&got);
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
}

static void keeps_exactly_to_its_cap(void **state)
{
    (void)state;
    size_t evicted;
    store_record record;
    store_totals totals;
    uint64_t one = own_bytes(0, 1000);
    store *s = sample_open(file, 0, 3 * one);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sample_put(s, i, 1000, NULL), STORE_OK);
    store_get_totals(s, &totals);
    assert_int_equal(totals.bytes, 3 * one); /* full to the byte, and nothing evicted */
    assert_int_equal(totals.entries, 3);
    assert_int_equal(totals.max_bytes, 3 * one);
    assert_true(totals.file_bytes > 3 * one);
    sample_record(&record, 3, 1, NULL);
    assert_int_equal(store_put(s, &record, &evicted), STORE_OK);
    assert_int_equal(evicted, 1);
    assert_int_equal(sample_get(s, 0), STORE_ABSENT);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    sample_record(&record, 4, 1000 + 2 * (size_t)one, NULL); /* just the cap: all others go */
    assert_int_equal(store_put(s, &record, &evicted), STORE_OK);
    assert_int_equal(evicted, 3);
    sample_record(&record, 5, 1001 + 2 * (size_t)one, NULL);
    assert_int_equal(store_put(s, &record, &evicted), STORE_TOO_BIG);
    assert_int_equal(sample_get(s, 4), STORE_OK); /* a refused record pushes nobody out */
    store_close(s);
}

static void keeps_the_order_of_use_over_a_reopen(void **state)
{
    (void)state;
    uint64_t one = own_bytes(0, 1000);
    store *s = sample_open(file, 0, 4 * one);
    for (int i = 0; i < 4; i++)
        sample_put(s, i, 1000, NULL);
    assert_int_equal(sample_get(s, 0), STORE_OK);
    store_close(s);
    s = sample_open(file, 0, 4 * one);
    assert_int_equal(sample_get(s, 1), STORE_OK); /* a stamp that is still in memory counts as well */
    sample_put(s, 4, 1000, NULL);
    sample_put(s, 5, 1000, NULL);
    assert_int_equal(sample_get(s, 2), STORE_ABSENT);
    assert_int_equal(sample_get(s, 3), STORE_ABSENT);
    assert_int_equal(sample_get(s, 0), STORE_OK);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT uses FROM usage JOIN records USING(entry) WHERE name='kernel_000000'"), 2);
}

/* Boot media wear out: a use must not cost a write, a thousand uses one at most. */
static void writes_nothing_for_a_use(void **state)
{
    (void)state;
    size_t before, after;
    store *s = sample_open(file, 0, 0);
    sample_put(s, 1, 10, NULL);
    sample_put(s, 2, 10, NULL);
    free(scratch_read(scratch_path(folder, "kernels.db-wal"), &before));
    for (int i = 0; i < 1000; i++)
        sample_get(s, 1 + i % 2);
    free(scratch_read(scratch_path(folder, "kernels.db-wal"), &after));
    assert_true(before > 0);
    assert_int_equal(after, before);
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT SUM(uses) FROM usage"), 1000);
}

static void stores_a_shared_source_once(void **state)
{
    (void)state;
    store_totals totals;
    uint64_t one = own_bytes(0, 1000), source = strlen("shared source");
    store *s = sample_open(file, 0, 4 * one);
    for (int i = 0; i < 3; i++)
        sample_put(s, i, 1000, "shared source");
    store_get_totals(s, &totals);
    assert_int_equal(totals.bytes, 3 * one + source);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources"), 1);
    sample_put(s, 3, 1000 - (size_t)source - 1, "another source"); /* one byte too long: 0 goes, the shared source stays */
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources"), 2);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    for (int i = 10; i < 13; i++)
        sample_put(s, i, 1000, NULL); /* now all users of the shared source are pushed out */
    assert_int_equal(sample_get(s, 2), STORE_ABSENT);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources WHERE text=CAST('shared source' AS BLOB)"), 0);
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
}

/* Evicting the last user of a source frees the source too, and that can be just enough. */
static void counts_a_freed_source(void **state)
{
    (void)state;
    char source[1001];
    size_t evicted;
    store_record record;
    memset(source, 's', 1000);
    source[1000] = 0;
    uint64_t one = own_bytes(0, 1000);
    store *s = sample_open(file, 0, 3 * one + 1000);
    sample_put(s, 0, 1000, source);
    sample_put(s, 1, 1000, NULL);
    sample_put(s, 2, 1000, NULL);
    sample_record(&record, 3, 2000, NULL);
    assert_int_equal(store_put(s, &record, &evicted), STORE_OK);
    assert_int_equal(evicted, 1);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    store_close(s);
}

typedef struct seen {
    int count, stop_after;
    char names[8][32];
} seen;

static int look(void *user, const store_record *record)
{
    seen *all = user;
    assert_null(record->binary);
    assert_null(record->source);
    assert_int_equal(record->binary_bytes, 100);
    assert_int_equal(record->portable_bytes, 12);
    snprintf(all->names[all->count], sizeof all->names[0], "%s", record->name);
    return ++all->count == all->stop_after;
}

static void lists_most_recently_used_first(void **state)
{
    (void)state;
    seen all = {0}, first = {.stop_after = 1};
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 3; i++)
        sample_put(s, i, 100, "text");
    sample_get(s, 0);
    sample_put(s, 3, 100, "text");
    sample_sql(file, "INSERT INTO usage VALUES(99, 99, 1, 1, 1)"); /* of no record: nothing to list */
    assert_int_equal(store_list(s, look, &all), STORE_OK);
    assert_int_equal(all.count, 4);
    assert_string_equal(all.names[0], "kernel_000003");
    assert_string_equal(all.names[1], "kernel_000000");
    assert_string_equal(all.names[2], "kernel_000002");
    assert_string_equal(all.names[3], "kernel_000001");
    assert_int_equal(store_list(s, look, &first), STORE_OK);
    assert_int_equal(first.count, 1);
    store_close(s);
}

static void gives_the_space_back_when_cleared(void **state)
{
    (void)state;
    size_t removed, bytes;
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 20; i++)
        sample_put(s, i, 100000, "text");
    assert_int_equal(store_clear(s, &removed), STORE_OK);
    assert_int_equal(removed, 20);
    free(scratch_read(file, &bytes));
    assert_in_range(bytes, 1, 100000);
    free(scratch_read(scratch_path(folder, "kernels.db-wal"), &bytes));
    assert_int_equal(bytes, 0);
    assert_int_equal(sample_put(s, 1, 10, "text"), STORE_OK); /* and goes on */
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 1);
}

/* ---- threads and processes -------------------------------------------------------------------------------------- */

static void *put_and_get(void *argument)
{
    store *s = argument;
    intptr_t faults = 0;
    for (int i = 0; i < 50; i++) {
        size_t bytes;
        char key[16];
        store_record record = {.key = key, .name = "n", .binary = "code", .binary_bytes = 4, .source = "shared"};
        record.key_bytes = bytes = (size_t)snprintf(key, sizeof key, "%d", i % 10);
        if (store_put(s, &record, NULL) != STORE_OK) faults++;
        if (store_get(s, key, bytes, &record) != STORE_OK || memcmp(record.binary, "code", 4) != 0) faults++;
        store_record_free(&record);
        if (store_get(s, "absent", 6, &record) != STORE_ABSENT || !strstr(store_error(s), "no such record")) faults++;
    }
    return (void *)faults; /* a number, for lack of another way out of a thread */
}

static void serves_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_and_get, s), 0);
    for (int i = 0; i < 4; i++) {
        void *faults;
        pthread_join(threads[i], &faults);
        assert_null(faults);
    }
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 10);
}

static int put_all(void *user)
{
    (void)user;
    store *s = sample_open(file, 0, 0);
    int faults = 0;
    for (int i = 0; i < 30; i++) {
        if (sample_put(s, i % 10, 20000, "shared") != STORE_OK) faults++;
        if (sample_get(s, i % 10) != STORE_OK) faults++;
    }
    store_close(s);
    return faults;
}

/* The file does not exist at first, so creating it is part of the race. */
static void serves_several_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 3 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        if ((children[i] = fork()) == 0) _exit(put_all(NULL));
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        waitpid(children[i], &status, 0);
        assert_int_equal(status, 0);
    }
    store *s = sample_open(file, 0, 0);
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 10);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources"), 1);
}

static void survives_a_killed_writer(void **state)
{
    (void)state;
    size_t good, bad;
    for (int round = 0; round < 6; round++) {
        pid_t child = fork();
        if (child == 0) {
            store *s = sample_open(file, 0, 1 << 20);
            for (int i = 0;; i++)
                sample_put(s, round * 1000 + i, 60000, "text");
        }
        struct timespec delay = {0, (40 + 7 * round) * 1000000L};
        nanosleep(&delay, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        store *s = sample_open(file, 0, 1 << 20);
        assert_int_equal(store_verify(s, NULL, NULL, &good, &bad), STORE_OK);
        assert_int_equal(sample_put(s, 999999, 100, "text"), STORE_OK);
        store_close(s);
    }
    assert_in_range(good, 2, 18); /* 17 fill the cap, and the small one of the round before */
    assert_int_equal(bad, 0);
}

static int use_inherited(void *user)
{
    store *s = user;
    if (sample_put(s, 2, 10, NULL) != STORE_IO) return 1;
    if (sample_get(s, 1) != STORE_IO) return 2;
    if (!strstr(store_error(s), "fork")) return 3;
    store_close(s);
    return 0;
}

static void refuses_to_cross_a_fork(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    sample_put(s, 1, 10, NULL);
    sample_get(s, 1);
    assert_int_equal(scratch_child(use_inherited, s, 0), 0);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_true(scratch_exists(scratch_path(folder, "kernels.db-wal")));
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT uses FROM usage"), 2); /* the child's close wrote nothing */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(gives_back_what_was_put),
        TEST(takes_empty_parts),
        TEST(tells_what_is_absent),
        TEST(replaces_the_record_of_a_key),
        TEST(tells_colliding_keys_apart),
        TEST(keeps_exactly_to_its_cap),
        TEST(keeps_the_order_of_use_over_a_reopen),
        TEST(writes_nothing_for_a_use),
        TEST(stores_a_shared_source_once),
        TEST(counts_a_freed_source),
        TEST(lists_most_recently_used_first),
        TEST(gives_the_space_back_when_cleared),
        TEST(serves_many_threads),
        TEST(serves_several_processes),
        TEST(survives_a_killed_writer),
        TEST(refuses_to_cross_a_fork),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
