/* The choices of a disk store: what replaces what, order, bound, damage, a writer that dies; and files of older versions, which have
 * none. */
#include "cache/store.h"
#include "store_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

static store_choice choice(const char *key, const char *place, const char *value)
{
    return (store_choice){.key = key, .key_bytes = strlen(key), .place = place, .label = key, .value = value, .value_bytes = strlen(value),
                          .details = "why", .details_bytes = 4, .record = 7};
}

static store_status put(store *s, const char *key, const char *place, const char *value)
{
    const store_choice one = choice(key, place, value);
    return store_put_choice(s, &one);
}

/* All that a listing gives, in one text: "key place value label record cached;" */
typedef struct listing {
    char text[2000];
    size_t used;
    int count, stop_after;
} listing;

static int note(void *user, const store_choice *c)
{
    listing *all = user;
    if (++all->count <= 20)
        all->used += (size_t)snprintf(all->text + all->used, sizeof all->text - all->used, "%.*s %s %.*s %s %llu %d;", (int)c->key_bytes,
                                      (const char *)c->key, c->place, (int)c->value_bytes, (const char *)c->value, c->label,
                                      (unsigned long long)c->record, c->cached);
    assert_int_equal(c->details_bytes, 4);
    assert_string_equal(c->details, "why");
    assert_true(c->created >= (int64_t)time(NULL) - 60 && c->created <= (int64_t)time(NULL));
    return all->count == all->stop_after;
}

static void check_list(store *s, const char *place, const char *expected)
{
    listing all = {0};
    assert_int_equal(store_list_choices(s, place, note, &all), STORE_OK);
    assert_string_equal(all.text, expected);
}

static void the_last_word_counts(void **state)
{
    (void)state;
    listing one = {.stop_after = 1};
    store *s = sample_open(file, 0, 0);
    check_list(s, NULL, "");
    check_list(s, "here", "");
    assert_int_equal(put(s, "b", "here", "1"), STORE_OK);
    assert_int_equal(put(s, "a", "there", "2"), STORE_OK);
    assert_int_equal(put(s, "c", "here", "3"), STORE_OK);
    assert_int_equal(put(s, "a", "here", "4"), STORE_OK);
    assert_int_equal(put(s, "b", "here", "5"), STORE_OK);
    for (int pass = 0; pass < 2; pass++) { /* from this connection, then from the file */
        check_list(s, NULL, "a here 4 a 7 0;b here 5 b 7 0;c here 3 c 7 0;a there 2 a 7 0;");
        check_list(s, "here", "c here 3 c 7 0;a here 4 a 7 0;b here 5 b 7 0;"); /* the oldest first */
        check_list(s, "there", "a there 2 a 7 0;");
        check_list(s, "her", "");
        assert_int_equal(store_list_choices(s, NULL, note, &one), STORE_OK);
        assert_int_equal(one.count, 1);
        one.count = 0;
        store_close(s);
        s = sample_open(file, pass ? STORE_READ_ONLY : 0, 0);
    }
    assert_int_equal(put(s, "d", "here", "1"), STORE_IO);
    assert_int_equal(store_clear_choices(s, NULL), STORE_IO);
    store_close(s);
}

static void keys_and_values_are_bytes(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    store_choice zero = choice("k", "p", "v");
    zero.key = "k\0x";
    zero.key_bytes = 3;
    zero.value = "v\0w";
    zero.value_bytes = 3;
    assert_int_equal(store_put_choice(s, &zero), STORE_OK);
    assert_int_equal(put(s, "k", "p", ""), STORE_OK);
    assert_int_equal(store_put_choice(s, &(store_choice){.details = "why", .details_bytes = 4}), STORE_OK); /* all else unknown */
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM choices"), 3);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM choices WHERE key=x'6b0078' AND value=x'760077'"), 1);
    check_list(s, "", "    0 0;");
    store_close(s);
}

/* The record that goes with it is in the file, or not. */
static void tells_whether_the_record_is_there(void **state)
{
    (void)state;
    size_t bytes;
    const void *key = sample_key(1, &bytes);
    make_sound();
    store *s = sample_open(file, 0, 0);
    store_choice one = choice("a", "p", "1");
    one.record = XXH64(key, bytes, 0);
    assert_int_equal(store_put_choice(s, &one), STORE_OK);
    listing all = {0};
    assert_int_equal(store_list_choices(s, "p", note, &all), STORE_OK);
    assert_non_null(strstr(all.text, " 1;"));
    store_close(s);
}

static void the_oldest_go_first(void **state)
{
    (void)state;
    enum { MORE = 3 };
    char key[16];
    listing all = {0};
    store *s = sample_open(file, 0, 0);
    assert_int_equal(put(s, "0", "p", "v"), STORE_OK);
    assert_int_equal(put(s, "1", "p", "v"), STORE_OK);
    /* As if recorded one by one, which would take a while. */
    store_close(s);
    sample_sql(file, "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i<4095) INSERT INTO choices(place, key, label, "
                     "record, created, turn, checksum, value, details) SELECT 'p', CAST(i AS TEXT), 'l', 0, 0, i+1, 0, '', '' FROM n");
    s = sample_open(file, 0, 0);
    assert_int_equal(put(s, "0", "p", "again"), STORE_OK); /* the latest now */
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM choices"), STORE_MAX_CHOICES);
    for (int i = 0; i < MORE; i++) {
        snprintf(key, sizeof key, "new%d", i);
        assert_int_equal(put(s, key, "q", "v"), STORE_OK);
        assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM choices"), STORE_MAX_CHOICES);
    }
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM choices WHERE CAST(key AS TEXT) IN ('1','2','3')"), 0);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM choices WHERE CAST(key AS TEXT) IN ('0','4','new0','new1','new2')"), 5);
    assert_int_equal(store_list_choices(s, "q", note, &all), STORE_OK);
    assert_int_equal(all.count, MORE);
    store_close(s);
}

/* Outside the cap on bytes: neither counts towards it nor is evicted. */
static void choices_are_outside_the_cap(void **state)
{
    (void)state;
    store_totals before, after;
    store *s = sample_open(file, 0, 8000);
    assert_int_equal(sample_put(s, 0, 3000, NULL), STORE_OK);
    assert_int_equal(store_get_totals(s, &before), STORE_OK);
    assert_int_equal(put(s, "a", "p", "v"), STORE_OK);
    assert_int_equal(store_get_totals(s, &after), STORE_OK);
    assert_int_equal(after.bytes, before.bytes);
    for (int i = 1; i < 8; i++) assert_int_equal(sample_put(s, i, 3000, NULL), STORE_OK);
    check_list(s, NULL, "a p v a 7 0;");
    store_close(s);
}

static void clears(void **state)
{
    (void)state;
    size_t removed = 9;
    make_sound();
    store *s = sample_open(file, 0, 0);
    assert_int_equal(store_clear_choices(s, &removed), STORE_OK);
    assert_int_equal(removed, 0);
    assert_int_equal(put(s, "a", "p", "1"), STORE_OK);
    assert_int_equal(put(s, "b", "p", "1"), STORE_OK);
    assert_int_equal(store_clear_choices(s, &removed), STORE_OK);
    assert_int_equal(removed, 2);
    check_list(s, NULL, "");
    assert_int_equal(sample_get(s, 1), STORE_OK); /* records stay */
    assert_int_equal(put(s, "a", "p", "1"), STORE_OK);
    assert_int_equal(store_clear(s, &removed), STORE_OK);
    assert_int_equal(removed, RECORDS);
    check_list(s, NULL, "");
    assert_int_equal(put(s, "c", "p", "1"), STORE_OK);
    assert_int_equal(store_seal(s), STORE_OK);
    store_close(s);
    s = sample_open(file, STORE_READ_ONLY | STORE_IMMUTABLE, 0);
    check_list(s, NULL, "c p 1 c 7 0;");
    store_close(s);
}

/* Each part of a row is under its checksum; a damaged one is passed over, told of, and made good by writing it anew. */
static void passes_over_damaged_rows(void **state)
{
    (void)state;
    static const char *const damages[] = {"key=x'71'", "place='p2'", "label='other'", "value=x'31'", "value=''", "details=x'77687900'||x'00'",
                                          "record=8", "created=created+1", "checksum=checksum+1"};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char sql[128];
        size_t good, bad;
        unlink(file);
        store *s = sample_open(file, 0, 0);
        assert_int_equal(put(s, "a", "p", "2"), STORE_OK);
        assert_int_equal(put(s, "b", "p", "3"), STORE_OK);
        store_close(s);
        snprintf(sql, sizeof sql, "UPDATE choices SET %s WHERE label='a'", damages[i]);
        sample_sql(file, sql);
        s = sample_open(file, 0, 0);
        check_list(s, NULL, "b p 3 b 7 0;");
        check_list(s, "p", "b p 3 b 7 0;");
        assert_int_equal(store_verify(s, NULL, NULL, &good, &bad), STORE_CORRUPT);
        assert_int_equal(bad, 1);
        if (i >= 2) {
            assert_int_equal(put(s, "a", "p", "4"), STORE_OK);
            check_list(s, "p", "b p 3 b 7 0;a p 4 a 7 0;");
            assert_int_equal(store_verify(s, NULL, NULL, &good, &bad), STORE_OK);
        }
        store_close(s);
    }
}

/* ---- files of older versions ------------------------------------------------------------------------------------ */

static void reads_files_of_older_versions(void **state)
{
    (void)state;
    static const unsigned flags[] = {STORE_READ_ONLY, STORE_READ_ONLY | STORE_IMMUTABLE};
    for (int version = 1; version <= 2; version++) {
        size_t before, after;
        unlink(file);
        make_sound();
        if (version == 1) make_first_version();
        else make_second_version();
        unsigned char *old = scratch_read(file, &before);
        for (int i = 0; i < 2; i++) {
            store *s = sample_open(file, flags[i], 0);
            assert_int_equal(sample_get(s, 1), STORE_OK);
            check_list(s, NULL, "");
            check_list(s, "p", "");
            assert_int_equal(put(s, "a", "p", "1"), STORE_IO);
            assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
            store_close(s);
        }
        unsigned char *now = scratch_read(file, &after);
        assert_int_equal(after, before);
        assert_memory_equal(now, old, before);
        free(old);
        free(now);
    }
}

static void upgrades_a_file_of_the_second_version(void **state)
{
    (void)state;
    make_sound();
    store *s = sample_open(file, 0, 0);
    const store_miss miss = {.key = "m", .key_bytes = 1, .target = "t", .label = "l", .count = 3};
    assert_int_equal(store_add_misses(s, &miss, 1), STORE_OK);
    store_close(s);
    make_second_version();
    store *reader = sample_open(file, STORE_READ_ONLY, 0);
    s = sample_open(file, 0, 0);
    assert_int_equal(put(s, "a", "p", "1"), STORE_OK);
    assert_int_equal(sample_get(reader, 1), STORE_OK); /* opened before: goes on without choices */
    check_list(reader, NULL, "");
    store_close(reader);
    store_close(s);
    assert_int_equal(sample_sql(file, "PRAGMA user_version"), 3);
    assert_int_equal(sample_sql(file, "SELECT SUM(count) FROM misses"), 3);
    s = sample_open(file, 0, 0);
    check_list(s, NULL, "a p 1 a 7 0;");
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    store_close(s);
}

static int open_on_a_full_disk(void *path)
{
    struct rlimit limit = {100, RLIM_INFINITY};
    size_t removed;
    const store_miss miss = {.key = "m", .key_bytes = 1, .target = "t", .label = "l", .count = 3};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    store *s = sample_open(path, 0, 0);
    if (sample_get(s, 1) != STORE_OK) return 2;
    if (put(s, "a", "p", "1") != STORE_IO || !strstr(store_error(s), "older format")) return 3;
    if (store_clear_choices(s, NULL) != STORE_IO) return 4;
    check_list(s, NULL, "");
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (store_add_misses(s, &miss, 1) != STORE_OK) return 5; /* those it has */
    if (store_clear(s, &removed) != STORE_OK || removed != RECORDS) return 6;
    store_close(s);
    return 0;
}

static void serves_a_file_that_it_cannot_upgrade(void **state)
{
    (void)state;
    make_sound();
    make_second_version();
    sample_sql(file, "PRAGMA journal_mode=DELETE"); /* else it is the -shm that does not fit */
    assert_int_equal(scratch_child(open_on_a_full_disk, file, 0), 0);
    store *s = sample_open(file, 0, 0); /* and does so later */
    assert_int_equal(put(s, "a", "p", "1"), STORE_OK);
    store_close(s);
}

/* ---- accidents -------------------------------------------------------------------------------------------------- */

/* A full disk in the middle: what was there stays. */
static int put_on_a_full_disk(void *path)
{
    store *s = sample_open(path, 0, 0);
    struct rlimit limit = {4096, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (put(s, "b", "p", "2") != STORE_IO) return 2;
    check_list(s, NULL, "a p 1 a 7 0;");
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (put(s, "c", "p", "3") != STORE_OK) return 3;
    store_close(s);
    return 0;
}

static void a_full_disk_leaves_the_rows(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    assert_int_equal(put(s, "a", "p", "1"), STORE_OK);
    store_close(s);
    assert_int_equal(scratch_child(put_on_a_full_disk, file, 0), 0);
    s = sample_open(file, STORE_READ_ONLY, 0);
    check_list(s, NULL, "a p 1 a 7 0;c p 3 c 7 0;");
    store_close(s);
}

/* A writer that is killed at any point leaves whole rows, each either as before or as after. */
static void a_killed_writer_leaves_whole_rows(void **state)
{
    (void)state;
    for (int round = 0; round < 8; round++) {
        listing all = {0};
        pid_t child = fork();
        if (child == 0) {
            store *s = sample_open(file, 0, 0);
            for (int i = 0;; i++) put(s, i % 2 ? "a" : "b", "p", i % 3 ? "old" : "new");
        }
        usleep((useconds_t)(3000 + 4000 * round));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (!scratch_exists(file)) continue;
        store *s = sample_open(file, 0, 0);
        assert_int_equal(store_list_choices(s, "p", note, &all), STORE_OK);
        assert_true(all.count <= 2);
        assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
        assert_int_equal(put(s, "a", "p", "after"), STORE_OK);
        store_close(s);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_last_word_counts),
        TEST(keys_and_values_are_bytes),
        TEST(tells_whether_the_record_is_there),
        TEST(the_oldest_go_first),
        TEST(choices_are_outside_the_cap),
        TEST(clears),
        TEST(passes_over_damaged_rows),
        TEST(reads_files_of_older_versions),
        TEST(upgrades_a_file_of_the_second_version),
        TEST(serves_a_file_that_it_cannot_upgrade),
        TEST(a_full_disk_leaves_the_rows),
        TEST(a_killed_writer_leaves_whole_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
