/* The misses of a disk store: adding up, order, bound, gains, damage; and files of the first version, which have none. */
#include "cache/store.h"
#include "store_fixture.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

static store_miss miss(const char *key, const char *target, uint64_t count)
{
    return (store_miss){.key = key, .key_bytes = strlen(key), .target = target, .label = "a label", .record = 7, .count = count};
}

static store_status add(store *s, const char *key, const char *target, uint64_t count)
{
    store_miss one = miss(key, target, count);
    return store_add_misses(s, &one, 1);
}

/* All that a listing gives, in one text: "key target count label record gain cached;" */
typedef struct listing {
    char text[2000];
    size_t used;
    int count, stop_after;
} listing;

static int note(void *user, const store_miss *m)
{
    listing *all = user;
    assert_non_null(m->key);
    if (++all->count <= 20)
        all->used += (size_t)snprintf(all->text + all->used, sizeof all->text - all->used, "%.*s %s %llu %s %llu %g %d;",
                                      (int)m->key_bytes, (const char *)m->key, m->target, (unsigned long long)m->count, m->label,
                                      (unsigned long long)m->record, m->gain, m->cached);
    assert_true(m->used >= (int64_t)time(NULL) - 60 && m->used <= (int64_t)time(NULL));
    return all->count == all->stop_after;
}

static void check_list(store *s, const char *target, const char *expected)
{
    listing all = {0};
    assert_int_equal(store_list_misses(s, target, note, &all), STORE_OK);
    assert_string_equal(all.text, expected);
}

static double gain_of(store *s, const char *key, const char *target)
{
    double gain = -1;
    assert_int_equal(store_get_gain(s, key, strlen(key), target, &gain), STORE_OK);
    return gain;
}

static void adds_up_and_lists_most_counted_first(void **state)
{
    (void)state;
    listing two = {.stop_after = 2};
    store *s = sample_open(file, 0, 0);
    check_list(s, NULL, "");
    store_miss batch[] = {miss("a", "sm_80", 2), miss("b", "sm_80", 9), miss("a", "sm_90", 4), miss("c", "sm_80", 2)};
    assert_int_equal(store_add_misses(s, batch, 4), STORE_OK);
    assert_int_equal(store_add_misses(s, batch, 0), STORE_OK);
    assert_int_equal(add(s, "a", "sm_80", 3), STORE_OK);
    assert_int_equal(add(s, "d", "sm_80", 2), STORE_OK);
    for (int pass = 0; pass < 2; pass++) { /* from this connection, then from the file */
        check_list(s, NULL, "b sm_80 9 a label 7 0 0;a sm_80 5 a label 7 0 0;a sm_90 4 a label 7 0 0;"
                            "d sm_80 2 a label 7 0 0;c sm_80 2 a label 7 0 0;"); /* of equal ones the last used first */
        check_list(s, "sm_90", "a sm_90 4 a label 7 0 0;");
        check_list(s, "sm_9", "");
        assert_int_equal(store_list_misses(s, NULL, note, &two), STORE_OK);
        assert_int_equal(two.count, 2 * (pass + 1));
        two.stop_after = 4;
        store_close(s);
        s = sample_open(file, 0, 0);
    }
    store_close(s);
}

static void takes_what_was_said_last(void **state)
{
    (void)state;
    store_miss m = miss("a", "sm_80", 1);
    store *s = sample_open(file, 0, 0);
    store_add_misses(s, &m, 1);
    sample_sql(file, "UPDATE misses SET used=1000"); /* the count's time is told from the gain's below */
    m.label = "renamed";
    m.record = UINT64_MAX;
    m.gain = 1.5;
    m.count = 0;
    store_add_misses(s, &m, 1);
    assert_int_equal(sample_sql(file, "SELECT used FROM misses"), 1000); /* a gain is no miss */
    m.gain = 0;
    m.count = 1;
    store_add_misses(s, &m, 1);
    check_list(s, NULL, "a sm_80 2 renamed 18446744073709551615 1.5 0;");
    store_close(s);
}

static void tells_keys_and_targets_apart(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    const store_miss all[] = {
        {.key = "k\0a", .key_bytes = 3, .target = "t", .count = 1}, {.key = "k\0b", .key_bytes = 3, .target = "t", .count = 2},
        {.key = "k\0a", .key_bytes = 2, .target = "t", .count = 3}, {.key = "k\0a", .key_bytes = 3, .target = "T", .count = 4},
        {.key = NULL, .key_bytes = 0, .target = NULL, .count = 5},
    };
    store_add_misses(s, all, 5);
    store_add_misses(s, all, 5);
    listing seen = {0};
    assert_int_equal(store_list_misses(s, NULL, note, &seen), STORE_OK);
    assert_int_equal(seen.count, 5);
    assert_memory_equal(seen.text, "  10  0 0 0;k", 13); /* no key, no target, no label */
    assert_int_equal(sample_sql(file, "SELECT SUM(count) FROM misses"), 30);
    store_close(s);
}

static void keeps_the_most_counted(void **state)
{
    (void)state;
    enum { MORE = STORE_MAX_MISSES + 10 };
    static store_miss all[MORE];
    static char keys[MORE][16];
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < MORE; i++) {
        snprintf(keys[i], sizeof keys[i], "%d", i);
        all[i] = miss(keys[i], "t", i == 5 ? 1 : i < 20 ? 2 : 3);
    }
    assert_int_equal(store_add_misses(s, all, MORE), STORE_OK); /* ten too many: the one of count 1, then the oldest of 2 */
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM misses"), STORE_MAX_MISSES);
    assert_int_equal(sample_sql(file, "SELECT MIN(CAST(CAST(key AS TEXT) AS INT)) FROM misses"), 10);
    assert_int_equal(add(s, "rare", "t", 1), STORE_OK); /* rarer than all: goes again at once */
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM misses WHERE key=CAST('rare' AS BLOB)"), 0);
    assert_int_equal(add(s, "10", "t", 0), STORE_OK); /* used: 11 is the oldest now */
    assert_int_equal(add(s, "frequent", "t", 9), STORE_OK);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM misses WHERE key=CAST('11' AS BLOB)"), 0);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM misses"), STORE_MAX_MISSES);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM misses WHERE key=CAST('10' AS BLOB)"), 1);
    store_close(s);
}

static void remembers_gains(void **state)
{
    (void)state;
    store_miss m = {.key = "a", .key_bytes = 1, .target = "sm_80", .label = "l", .gain = 1.25};
    store *s = sample_open(file, 0, 0);
    assert_true(gain_of(s, "a", "sm_80") == 0);
    store_add_misses(s, &m, 1);
    assert_true(gain_of(s, "a", "sm_80") == 1.25);
    assert_true(gain_of(s, "a", "sm_90") == 0);
    assert_true(gain_of(s, "b", "sm_80") == 0);
    const double unknown[] = {0, -1, (double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        m.gain = unknown[i];
        assert_int_equal(store_add_misses(s, &m, 1), STORE_OK);
        assert_true(gain_of(s, "a", "sm_80") == 1.25);
    }
    m.gain = 0.5; /* slower than the generic kernel: known, too */
    store_add_misses(s, &m, 1);
    assert_true(gain_of(s, "a", "sm_80") == 0.5);
    check_list(s, NULL, "a sm_80 0 l 0 0.5 0;");
    store_close(s);
}

static void tells_what_is_in_the_file(void **state)
{
    (void)state;
    size_t bytes;
    int has = 7;
    const void *key = sample_key(1, &bytes);
    store_miss m = miss("a", "sm_80", 1);
    m.record = XXH64(key, bytes, 0);
    store *s = sample_open(file, 0, 0);
    store_add_misses(s, &m, 1);
    assert_int_equal(store_has(s, m.record, &has), STORE_OK);
    assert_int_equal(has, 0);
    sample_put(s, 1, 100, NULL);
    assert_int_equal(store_has(s, m.record, &has), STORE_OK);
    assert_int_equal(has, 1);
    assert_int_equal(store_has(s, m.record + 1, &has), STORE_OK);
    assert_int_equal(has, 0);
    listing all = {0};
    store_list_misses(s, NULL, note, &all);
    assert_non_null(strstr(all.text, " 1;")); /* cached */
    assert_int_equal(store_clear(s, NULL), STORE_OK);
    check_list(s, NULL, ""); /* clearing takes the misses too */
    store_close(s);
}

static void clears_misses_alone(void **state)
{
    (void)state;
    size_t removed = 7;
    store *s = sample_open(file, 0, 0);
    sample_put(s, 1, 100, NULL);
    add(s, "a", "t", 1);
    add(s, "b", "t", 1);
    assert_int_equal(store_clear_misses(s, &removed), STORE_OK);
    assert_int_equal(removed, 2);
    check_list(s, NULL, "");
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(store_clear_misses(s, NULL), STORE_OK);
    store_close(s);
}

static void counts_stop_at_the_top(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(add(s, "a", "t", UINT64_MAX), STORE_OK);
    check_list(s, NULL, "a t 4611686018427387904 a label 7 0 0;");
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
}

/* ---- faults ----------------------------------------------------------------------------------------------------- */

static void count_fault(void *user, uint64_t id, const char *what)
{
    assert_int_equal(id, 0);
    if (strcmp(what, "a miss is damaged") == 0) ++*(int *)user;
}

static void passes_over_damaged_misses(void **state)
{
    (void)state;
    static const char *const damages[] = {
        "UPDATE misses SET label='other' WHERE key=CAST('b' AS BLOB)",
        "UPDATE misses SET record=record+1 WHERE key=CAST('b' AS BLOB)",
        "UPDATE misses SET checksum=checksum+1 WHERE key=CAST('b' AS BLOB)",
        "UPDATE misses SET count=-1 WHERE key=CAST('b' AS BLOB)",
        "UPDATE misses SET gain=-1 WHERE key=CAST('b' AS BLOB)",
        "UPDATE misses SET gain=9e999 WHERE key=CAST('b' AS BLOB)",
        "UPDATE misses SET key=CAST('c' AS BLOB) WHERE key=CAST('b' AS BLOB)",
        "UPDATE misses SET target='u' WHERE key=CAST('b' AS BLOB)",
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        int faults = 0;
        size_t good = 7, bad = 0;
        unlink(file);
        store *s = sample_open(file, 0, 0);
        add(s, "a", "t", 3);
        add(s, "b", "t", 2);
        sample_put(s, 1, 100, NULL);
        sample_sql(file, damages[i]);
        check_list(s, NULL, "a t 3 a label 7 0 0;");
        assert_int_equal(store_verify(s, count_fault, &faults, &good, &bad), STORE_CORRUPT);
        assert_int_equal(faults, 1);
        assert_int_equal(bad, 1);
        assert_int_equal(good, 1); /* records */
        store_close(s);
    }
    store *s = sample_open(file, 0, 0);
    sample_sql(file, "UPDATE misses SET target='t', label='x' WHERE key=CAST('b' AS BLOB)");
    assert_int_equal(add(s, "b", "t", 1), STORE_OK); /* adding makes it good */
    check_list(s, NULL, "b t 3 a label 7 0 0;a t 3 a label 7 0 0;");
    store_close(s);
}

static void changes_nothing_when_read_only(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    add(s, "a", "t", 1);
    store_close(s);
    s = sample_open(file, STORE_READ_ONLY, 0);
    assert_int_equal(add(s, "a", "t", 1), STORE_IO);
    assert_non_null(strstr(store_error(s), "reading only"));
    assert_int_equal(store_clear_misses(s, NULL), STORE_IO);
    check_list(s, NULL, "a t 1 a label 7 0 0;");
    store_close(s);
}

static int fill_the_disk(void *user)
{
    enum { COUNT = 3000 };
    static store_miss all[COUNT];
    static char keys[COUNT][200];
    struct rlimit limit = {200000, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < COUNT; i++) {
        snprintf(keys[i], sizeof keys[i], "%0190d", i);
        all[i] = miss(keys[i], "t", 1);
    }
    store *s = sample_open(user, 0, 0);
    if (add(s, "a", "t", 1) != STORE_OK || setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (store_add_misses(s, all, COUNT) != STORE_IO) return 2;
    listing seen = {0};
    if (store_list_misses(s, NULL, note, &seen) != STORE_OK || seen.count != 1) return 3; /* all or nothing */
    if (add(s, "a", "t", 1) != STORE_OK) return 4;
    store_close(s);
    return 0;
}

static void survives_a_full_disk(void **state)
{
    (void)state;
    assert_int_equal(scratch_child(fill_the_disk, file, 0), 0);
    assert_int_equal(sample_sql(file, "SELECT SUM(count) FROM misses"), 2);
}

static int use_inherited(void *user)
{
    double gain;
    int has;
    return add(user, "a", "t", 1) == STORE_IO && store_clear_misses(user, NULL) == STORE_IO &&
           store_list_misses(user, NULL, note, NULL) == STORE_IO && store_get_gain(user, "a", 1, "t", &gain) == STORE_IO &&
           store_has(user, 1, &has) == STORE_IO && store_seal(user) == STORE_IO ? 0 : 1;
}

static void refuses_to_cross_a_fork(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    assert_int_equal(scratch_child(use_inherited, s, 0), 0);
    store_close(s);
}

static int add_many(store *s)
{
    int faults = 0;
    for (int i = 0; i < 100; i++) {
        store_miss two[] = {miss("a", "t", 1), miss(i % 2 ? "b" : "c", "t", 1)};
        if (store_add_misses(s, two, 2) != STORE_OK) faults++;
    }
    return faults;
}

static void *add_in_a_thread(void *s)
{
    return (void *)(intptr_t)add_many(s);
}

static void counts_of_threads_and_processes_add_up(void **state)
{
    (void)state;
    pthread_t threads[2];
    pid_t child = fork();
    if (child == 0) {
        store *own = sample_open(file, 0, 0);
        int faults = add_many(own);
        store_close(own);
        _exit(faults);
    }
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_in_a_thread, s), 0);
    for (int i = 0; i < 2; i++) {
        void *faults;
        pthread_join(threads[i], &faults);
        assert_null(faults);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    check_list(s, "t", "a t 300 a label 7 0 0;b t 150 a label 7 0 0;c t 150 a label 7 0 0;"); /* each ends with b */
    store_close(s);
}

/* Another record and label for a miss that is there, whose counts stay; none for one that is not. */
static void follows_another_record(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    store_miss one = miss("a", "t", 3);
    one.gain = 1.5;
    assert_int_equal(store_add_misses(s, &one, 1), STORE_OK);
    one.record = 9;
    one.label = "b label";
    one.count = 100;
    one.gain = 9;
    assert_int_equal(store_renew_miss(s, &one), STORE_OK);
    one.target = "u";
    assert_int_equal(store_renew_miss(s, &one), STORE_OK);
    check_list(s, NULL, "a t 3 b label 9 1.5 0;");
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
    s = sample_open(file, STORE_READ_ONLY, 0);
    assert_int_equal(store_renew_miss(s, &one), STORE_IO);
    store_close(s);
}

/* ---- files of the first version --------------------------------------------------------------------------------- */

static void reads_a_file_of_the_first_version(void **state)
{
    (void)state;
    static const unsigned flags[] = {STORE_READ_ONLY, STORE_READ_ONLY | STORE_IMMUTABLE};
    size_t before, after;
    make_sound();
    make_first_version();
    unsigned char *old = scratch_read(file, &before);
    for (int i = 0; i < 2; i++) {
        int has;
        size_t bytes;
        const void *key = sample_key(1, &bytes);
        store *s = sample_open(file, flags[i], 0);
        assert_int_equal(sample_get(s, 1), STORE_OK);
        assert_int_equal(store_has(s, XXH64(key, bytes, 0), &has), STORE_OK);
        assert_int_equal(has, 1);
        check_list(s, NULL, "");
        assert_true(gain_of(s, "a", "t") == 0);
        assert_int_equal(add(s, "a", "t", 1), STORE_IO);
        assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
        store_close(s);
    }
    unsigned char *now = scratch_read(file, &after);
    assert_int_equal(after, before);
    assert_memory_equal(now, old, before);
    free(old);
    free(now);
}

static void upgrades_a_file_in_place(void **state)
{
    (void)state;
    make_sound();
    make_first_version();
    store *reader = sample_open(file, STORE_READ_ONLY, 0), *s = sample_open(file, 0, 0);
    assert_int_equal(add(s, "a", "t", 1), STORE_OK);
    assert_int_equal(sample_get(reader, 1), STORE_OK); /* opened before: goes on without misses */
    check_list(reader, NULL, "");
    store *late = sample_open(file, STORE_READ_ONLY, 0); /* the change is in the -wal as yet */
    check_list(late, NULL, "a t 1 a label 7 0 0;");
    store_close(late);
    store_close(reader);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(sample_put(s, 9, 100, NULL), STORE_OK);
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
    assert_int_equal(sample_sql(file, "PRAGMA user_version"), 3);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sqlite_master WHERE name='usage_by_turn'"), 1);
    s = sample_open(file, 0, 0);
    check_list(s, NULL, "a t 1 a label 7 0 0;");
    store_close(s);
}

static void processes_upgrade_at_once(void **state)
{
    (void)state;
    enum { PROCESSES = 4, ROUNDS = 10 };
    for (int round = 0; round < ROUNDS; round++) {
        pid_t children[PROCESSES];
        unlink(file);
        make_sound();
        make_first_version();
        for (int i = 0; i < PROCESSES; i++) {
            if ((children[i] = fork()) != 0) continue;
            store *s = sample_open(file, 0, 0);
            store_status status = add(s, "a", "t", 1);
            store_close(s);
            _exit(status);
        }
        for (int i = 0; i < PROCESSES; i++) {
            int status;
            waitpid(children[i], &status, 0);
            assert_int_equal(status, 0);
        }
        assert_int_equal(sample_sql(file, "SELECT SUM(count) FROM misses"), PROCESSES);
    }
}

static int open_on_a_full_disk(void *path)
{
    struct rlimit limit = {100, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    store *s = sample_open(path, 0, 0);
    if (sample_get(s, 1) != STORE_OK) return 2;
    if (add(s, "a", "t", 1) != STORE_IO || !strstr(store_error(s), "older format")) return 3;
    if (store_clear_misses(s, NULL) != STORE_IO) return 4;
    check_list(s, NULL, "");
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    size_t removed;
    if (sample_put(s, 9, 100, NULL) != STORE_OK || store_clear(s, &removed) != STORE_OK || removed != RECORDS + 1) return 5;
    if (sample_put(s, 1, 100, NULL) != STORE_OK) return 6;
    store_close(s);
    return 0;
}

static void serves_a_file_that_it_cannot_upgrade(void **state)
{
    (void)state;
    make_sound();
    make_first_version();
    sample_sql(file, "PRAGMA journal_mode=DELETE"); /* else it is the -shm that does not fit */
    assert_int_equal(scratch_child(open_on_a_full_disk, file, 0), 0);
    store *s = sample_open(file, 0, 0); /* and does so later */
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(add(s, "a", "t", 1), STORE_OK);
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(adds_up_and_lists_most_counted_first),
        TEST(takes_what_was_said_last),
        TEST(tells_keys_and_targets_apart),
        TEST(keeps_the_most_counted),
        TEST(remembers_gains),
        TEST(tells_what_is_in_the_file),
        TEST(clears_misses_alone),
        TEST(counts_stop_at_the_top),
        TEST(passes_over_damaged_misses),
        TEST(changes_nothing_when_read_only),
        TEST(survives_a_full_disk),
        TEST(refuses_to_cross_a_fork),
        TEST(counts_of_threads_and_processes_add_up),
        TEST(follows_another_record),
        TEST(reads_a_file_of_the_first_version),
        TEST(upgrades_a_file_in_place),
        TEST(processes_upgrade_at_once),
        TEST(serves_a_file_that_it_cannot_upgrade),
    };
    return cmocka_run_group_tests_name("store misses", tests, NULL, NULL);
}
