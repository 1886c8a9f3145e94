/* The disk store with many records: no call does more work because the file is large, and the sums that this takes to keep
 * in mind stay right. Work is counted in steps of SQLite's virtual machine, so that nothing depends on the clock. */
#include "cache/store_sql.h"
#include "store_fixture.h"

#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

/* Steps and sorts of all statements since the last call. */
static int work_done(store *s, int *sorts)
{
    int steps = 0;
    *sorts = 0;
    for (int i = 0; i < SQL_STATEMENTS; i++) {
        steps += sqlite3_stmt_status(s->statements[i], SQLITE_STMTSTATUS_VM_STEP, 1);
        *sorts += sqlite3_stmt_status(s->statements[i], SQLITE_STMTSTATUS_SORT, 1);
    }
    return steps;
}

static int stop_at_once(void *user, const store_record *record)
{
    (void)record;
    ++*(int *)user;
    return 1;
}

static int stop_at_miss(void *user, const store_miss *miss)
{
    *(uint64_t *)user = miss->count;
    return 1;
}

enum { PUT = 0, PUT_WITH_EVICTION, GET, HAS, TOTALS, LIST_FIRST, WRITE_STAMPS, FIRST_MISS, GAIN, CALLS };

/* What each call costs in a file of `count` records. */
static void measure(int count, int cost[CALLS])
{
    int sorts, has, seen = 0;
    size_t bytes, evicted;
    store_totals totals;
    store_record record;
    unlink(file);
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(sample_put(s, i, 100, "text"), STORE_OK);
    work_done(s, &sorts);
    sample_put(s, count, 100, "text");
    cost[PUT] = work_done(s, &sorts);
    sample_get(s, count / 2);
    cost[GET] = work_done(s, &sorts);
    store_write_stamps(s);
    cost[WRITE_STAMPS] = work_done(s, &sorts);
    const void *key = sample_key(count / 2, &bytes);
    store_has(s, XXH64(key, bytes, 0), &has);
    cost[HAS] = work_done(s, &sorts);
    assert_int_equal(has, 1);
    store_get_totals(s, &totals);
    cost[TOTALS] = work_done(s, &sorts);
    store_list(s, stop_at_once, &seen);
    cost[LIST_FIRST] = work_done(s, &sorts);
    assert_int_equal(seen, 1);
    assert_int_equal(sorts, 0);
    uint64_t most = 0;
    double gain;
    for (int i = 0; i < count; i++) {
        store_miss m = {.key = sample_key(i, &bytes), .target = "t", .count = (uint64_t)(i * 7 % count + 1)};
        m.key_bytes = bytes;
        assert_int_equal(store_add_misses(s, &m, 1), STORE_OK);
    }
    work_done(s, &sorts);
    store_list_misses(s, "t", stop_at_miss, &most);
    cost[FIRST_MISS] = work_done(s, &sorts);
    assert_int_equal(most, count);
    key = sample_key(3, &bytes);
    store_get_gain(s, key, bytes, "t", &gain);
    cost[GAIN] = work_done(s, &sorts);
    assert_int_equal(sorts, 0);
    s->max_bytes = totals.bytes;
    sample_record(&record, count + 1, 100, "text");
    assert_int_equal(store_put(s, &record, &evicted), STORE_OK);
    cost[PUT_WITH_EVICTION] = work_done(s, &sorts);
    assert_int_equal(evicted, 1);
    assert_int_equal(sorts, 0);
    store_close(s);
}

static void does_no_more_work_in_a_large_file(void **state)
{
    (void)state;
    int small[CALLS], large[CALLS];
    measure(20, small);
    measure(1000, large);
    for (int i = 0; i < CALLS; i++) {
        assert_in_range(small[i], 1, 1000);
        assert_in_range(large[i], small[i], small[i] + small[i] / 5);
    }
}

static void check_sums(store *s)
{
    store_totals totals;
    assert_int_equal(store_get_totals(s, &totals), STORE_OK);
    assert_int_equal(totals.entries, sample_sql(file, "SELECT COUNT(*) FROM records"));
    assert_int_equal(totals.bytes, sample_sql(file, "SELECT (SELECT IFNULL(SUM(bytes),0) FROM usage)"
                                                    " + (SELECT IFNULL(SUM(LENGTH(text)),0) FROM sources)"));
}

/* Two connections take turns, so that each finds its sums out of date now and then. */
static void keeps_its_sums_right(void **state)
{
    (void)state;
    static const char *const sources[] = {NULL, "one source", "another, longer source"};
    unsigned random = 12345;
    store *both[] = {sample_open(file, 0, 0), sample_open(file, 0, 0)};
    both[0]->max_bytes = both[1]->max_bytes = 9000;
    for (int i = 0; i < 400; i++) {
        random = random * 1103515245u + 12345u;
        store *s = both[random >> 9 & random >> 10 & 1];
        int index = (int)(random >> 16) % 40;
        if (i % 50 == 49) assert_int_equal(store_clear(s, NULL), STORE_OK);
        if (i % 20 == 19) { /* a damaged record is discarded */
            sample_sql(file, "UPDATE records SET name='damaged' WHERE entry=(SELECT MIN(entry) FROM records)");
            for (int k = 0; k < 40; k++)
                sample_get(s, k);
        }
        assert_int_equal(sample_put(s, index, random >> 20 & 511, sources[i % 3]), STORE_OK);
        check_sums(s);
        assert_true(s->sums.bytes <= 9000);
    }
    store_close(both[0]);
    check_sums(both[1]);
    assert_int_equal(store_verify(both[1], NULL, NULL, NULL, NULL), STORE_OK);
    store_close(both[1]);
}

static void forgets_what_a_failed_put_counted(void **state)
{
    (void)state;
    store_totals before, after;
    store *s = sample_open(file, 0, 0);
    sample_put(s, 1, 100, "text");
    store_get_totals(s, &before);
    sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, 5000);
    assert_int_not_equal(sample_put(s, 2, 10000, "new text"), STORE_OK); /* after its source had been written */
    store_get_totals(s, &after);
    assert_int_equal(after.entries, before.entries);
    assert_int_equal(after.bytes, before.bytes);
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources"), 1);
}

/* A source without a record, as only damage leaves it, that alone is over the cap. */
static void ends_where_nothing_is_left_to_evict(void **state)
{
    (void)state;
    size_t evicted;
    store_record record;
    store *s = sample_open(file, 0, 2000);
    sample_put(s, 1, 100, NULL);
    sample_sql(file, "INSERT INTO sources(hash, text) VALUES(1, zeroblob(5000))");
    sample_record(&record, 2, 100, NULL);
    assert_int_equal(store_put(s, &record, &evicted), STORE_OK);
    assert_int_equal(evicted, 2);
    check_sums(s);
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(does_no_more_work_in_a_large_file),
        TEST(keeps_its_sums_right),
        TEST(forgets_what_a_failed_put_counted),
        TEST(ends_where_nothing_is_left_to_evict),
    };
    return cmocka_run_group_tests_name("store scale", tests, NULL, NULL);
}
