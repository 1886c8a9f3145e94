/* The disk store where something is wrong with the file: records and files damaged in every way, and foreign files.
 * A fault must give a status and a text, never a crash and never a wrong record. Places are in test_store_places.c. */
#include "cache/store.h"
#include "store_fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- damaged records -------------------------------------------------------------------------------------------- */

typedef struct faults {
    int count;
    uint64_t id;
    char what[256];
} faults;

static void note(void *user, uint64_t id, const char *what)
{
    faults *f = user;
    f->count++;
    f->id = id;
    snprintf(f->what, sizeof f->what, "%s", what);
}

static void never_hands_out_a_damaged_record(void **state)
{
    (void)state;
    /* One change of each thing that a record is made of, seen by get as `expected`. */
    static const struct {
        const char *sql;
        store_status expected;
    } damages[] = {
        {"UPDATE records SET name='kernel_000009' WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET target='sm_99' WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET label=NULLIF(label,'')||'x' WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET provenance='' WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET defines=x'00' WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET binary=CAST(x'ff'||SUBSTR(binary,2) AS BLOB) WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET binary=SUBSTR(binary,1,2999) WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET portable=x'' WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET created=created+1 WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET build_ms=build_ms+1 WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET checksum=checksum+1 WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET source=NULL WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE records SET source=77 WHERE name='kernel_000001'", STORE_CORRUPT},
        {"UPDATE usage SET bytes=bytes+1 WHERE entry=(SELECT entry FROM records WHERE name='kernel_000001')", STORE_CORRUPT},
        {"DELETE FROM usage WHERE entry=(SELECT entry FROM records WHERE name='kernel_000001')", STORE_CORRUPT},
        {"UPDATE records SET id=id+1 WHERE name='kernel_000001'", STORE_ABSENT},
        {"UPDATE records SET key=x'00' WHERE name='kernel_000001'", STORE_ABSENT},
    };
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        unlink(file);
        make_sound();
        sample_sql(file, damages[i].sql);
        faults found = {0};
        size_t good = 0, bad = 0;
        store *s = sample_open(file, STORE_READ_ONLY, 0);
        assert_int_equal(sample_get(s, 1), damages[i].expected);
        assert_int_equal(sample_get(s, 1), damages[i].expected); /* reading only, it stays */
        assert_int_equal(store_verify(s, note, &found, &good, &bad), STORE_CORRUPT);
        assert_int_equal(good, RECORDS - 1);
        assert_true(bad >= 1 && found.count == (int)bad);
        store_close(s);
        s = sample_open(file, 0, 0);
        assert_int_equal(sample_get(s, 1), damages[i].expected);
        assert_int_equal(sample_get(s, 1), STORE_ABSENT); /* it was removed */
        assert_int_equal(sample_get(s, 2), STORE_OK);
        assert_int_equal(sample_put(s, 1, 3000, "the source text"), STORE_OK);
        assert_int_equal(sample_get(s, 1), STORE_OK);
        store_close(s);
    }
}

static void notices_a_damaged_shared_source(void **state)
{
    (void)state;
    make_sound();
    sample_sql(file, "UPDATE sources SET text=CAST('the Source text' AS BLOB)");
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(sample_get(s, i), STORE_CORRUPT);
    store_close(s);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM sources"), 0);
}

static void verify_finds_planted_faults(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *what;
    } plants[] = {
        {"INSERT INTO usage VALUES(99, 1, 1, 1, 1)", "a use stamp belongs to no record"},
        {"INSERT INTO sources(hash, text) VALUES(1, x'41')", "a source text belongs to no record"},
        {"INSERT INTO records SELECT 99,id,source,created,build_ms,checksum,key,name,target,label,provenance,defines,"
         "binary,portable FROM records WHERE entry=1; INSERT INTO usage SELECT 99,turn,used,uses,bytes FROM usage"
         " WHERE entry=1", "two records have one key"},
        {"PRAGMA writable_schema=1; UPDATE sqlite_master SET sql='CREATE INDEX records_by_source ON records(created)'"
         " WHERE name='records_by_source'", NULL}, /* an index that is wrong; the words are SQLite's */
    };
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        unlink(file);
        make_sound();
        sample_sql(file, plants[i].sql);
        faults found = {0};
        size_t good, bad;
        store *s = sample_open(file, STORE_READ_ONLY, 0);
        assert_int_equal(store_verify(s, note, &found, &good, &bad), STORE_CORRUPT);
        assert_true(bad >= 1);
        if (plants[i].what) assert_string_equal(found.what, plants[i].what);
        store_close(s);
    }
}

/* ---- damaged files ---------------------------------------------------------------------------------------------- */

/* Everything a file may be asked for. What comes out must be right: 1 if it was, though less may have come out. */
static int use_all(const char *path, unsigned flags)
{
    store *s = NULL;
    int right = 1;
    if (store_open(path, flags, 0, &s, error, sizeof error) != STORE_OK) return strlen(error) > 10;
    for (int i = 0; i < RECORDS; i++) {
        store_record expected, got;
        sample_record(&expected, i, 3000, "the source text");
        if (store_get(s, expected.key, expected.key_bytes, &got) != STORE_OK) continue;
        right = right && sample_equal(&expected, &got);
        store_record_free(&got);
    }
    store_verify(s, NULL, NULL, NULL, NULL);
    if (!flags) sample_put(s, 9, 3000, "more source");
    store_close(s);
    return right;
}

static void survives_truncation(void **state)
{
    (void)state;
    size_t bytes;
    make_sound();
    unsigned char *sound = scratch_read(file, &bytes);
    const char *copy = scratch_path(folder, "copy.db");
    for (size_t length = 1; length < bytes; length += length < 200 ? 33 : 1711) {
        scratch_write(copy, sound, length);
        chmod(copy, 0600);
        assert_true(use_all(copy, STORE_READ_ONLY));
        assert_true(use_all(copy, 0));
        unlink(copy);
    }
    free(sound);
}

static void survives_flipped_bits(void **state)
{
    (void)state;
    size_t bytes;
    make_sound();
    unsigned char *sound = scratch_read(file, &bytes);
    const char *copy = scratch_path(folder, "copy.db");
    for (size_t at = 0; at < bytes; at += at < 4096 ? 97 : 397) {
        sound[at] ^= 0x55;
        scratch_write(copy, sound, bytes);
        sound[at] ^= 0x55;
        chmod(copy, 0600);
        assert_true(use_all(copy, at % 3 ? STORE_READ_ONLY : 0));
        unlink(copy);
    }
    free(sound);
}

/* Damage that SQLite itself sees: the file's pages are overwritten, its header is not. */
static void makes_a_damaged_file_anew(void **state)
{
    (void)state;
    size_t bytes, removed;
    for (int open_first = 0; open_first < 2; open_first++) {
        unlink(file);
        make_sound();
        store *s = open_first ? sample_open(file, 0, 0) : NULL;
        unsigned char *data = scratch_read(file, &bytes);
        memset(data + 100, 0xa5, bytes - 100);
        int descriptor = open(file, O_WRONLY);
        assert_int_equal(write(descriptor, data, bytes), (ssize_t)bytes);
        close(descriptor);
        free(data);
        if (open_first) {
            assert_int_equal(store_clear(s, &removed), STORE_OK);
        } else {
            assert_int_equal(open_status(file, 0), STORE_CORRUPT);
            assert_int_equal(store_recreate(file, error, sizeof error), STORE_OK);
            s = sample_open(file, 0, 0);
        }
        assert_int_equal(sample_put(s, 1, 3000, "the source text"), STORE_OK);
        assert_int_equal(sample_get(s, 1), STORE_OK);
        assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
        store_close(s);
        assert_int_equal(open_status(file, STORE_READ_ONLY), STORE_OK);
        assert_int_equal(scratch_mode(file), 0600);
    }
}

/* ---- foreign files ---------------------------------------------------------------------------------------------- */

static void check_untouched(const char *path, const char *hint)
{
    size_t before, after;
    char side[PATH_MAX + 80];
    unsigned char *old = scratch_read(path, &before);
    assert_int_equal(open_status(path, 0), STORE_FOREIGN);
    assert_non_null(strstr(error, hint));
    assert_non_null(strstr(error, path));
    assert_int_equal(open_status(path, STORE_READ_ONLY), STORE_FOREIGN);
    assert_int_equal(store_recreate(path, error, sizeof error), STORE_FOREIGN);
    unsigned char *now = scratch_read(path, &after);
    assert_int_equal(after, before);
    assert_memory_equal(now, old, before);
    snprintf(side, sizeof side, "%s-wal", path);
    assert_false(scratch_exists(side));
    free(old);
    free(now);
}

static void leaves_foreign_files_alone(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text);
    scratch_write(file, text, sizeof text);
    chmod(file, 0600);
    check_untouched(file, "not a jitgemm cache");
    scratch_write(file, "short", 5);
    check_untouched(file, "not a jitgemm cache");
    unlink(file);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    sample_sql(file, "CREATE TABLE records(entry)"); /* a database of somebody else, table names alike */
    check_untouched(file, "not a jitgemm cache");
    unlink(file);
    make_sound();
    sample_sql(file, "PRAGMA user_version=4");
    check_untouched(file, "format 4");
    sample_sql(file, "PRAGMA user_version=0");
    check_untouched(file, "format 0");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(never_hands_out_a_damaged_record),
        TEST(notices_a_damaged_shared_source),
        TEST(verify_finds_planted_faults),
        TEST(survives_truncation),
        TEST(survives_flipped_bits),
        TEST(makes_a_damaged_file_anew),
        TEST(leaves_foreign_files_alone),
    };
    return cmocka_run_group_tests_name("store faults", tests, NULL, NULL);
}
