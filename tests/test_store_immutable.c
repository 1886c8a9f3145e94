/* Files of a disk store that nobody writes any more: opened as immutable, from a place of root's that cannot be written; what
 * is not complete in itself and refused so; and sealing, which makes it complete. */
#include "cache/store.h"
#include "store_fixture.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const unsigned immutable = STORE_READ_ONLY | STORE_IMMUTABLE;

/* 0 if somebody else's file in a folder that cannot be written serves reads. */
static int read_immutable(void *path)
{
    store *s = NULL;
    if (access(folder, W_OK) == 0) return 77;
    if (store_open(path, immutable, 0, &s, error, sizeof error) != STORE_OK) return 1;
    if (sample_get(s, 1) != STORE_OK || sample_get(s, 9) != STORE_ABSENT) return 2;
    if (sample_put(s, 8, 10, NULL) != STORE_IO || !strstr(store_error(s), "reading only")) return 3;
    if (store_seal(s) != STORE_IO || store_clear(s, NULL) != STORE_IO) return 4;
    if (store_verify(s, NULL, NULL, NULL, NULL) != STORE_OK) return 5;
    store_close(s);
    return 0;
}

static void serves_a_factory_file_of_root(void **state)
{
    (void)state;
    for (int sealed = 0; sealed < 2; sealed++) {
        unlink(file);
        make_sound(); /* its header says WAL; sealed, it does not */
        store *s = sealed ? sample_open(file, 0, 0) : NULL;
        if (s) assert_int_equal(store_seal(s), STORE_OK);
        store_close(s);
        assert_int_equal(chmod(file, 0444), 0);
        assert_int_equal(chmod(folder, 0555), 0);
        int result = scratch_child(read_immutable, file, geteuid() == 0 ? NOBODY : 0);
        assert_int_equal(chmod(folder, 0700), 0);
        if (result == 77) print_message("SKIP permissions do not bind this user\n");
        if (result == 77) skip();
        assert_int_equal(result, 0);
    }
}

static void takes_no_lock_and_makes_no_file_when_immutable(void **state)
{
    (void)state;
    sqlite3 *other;
    make_sound();
    sample_sql(file, "PRAGMA journal_mode=DELETE");
    assert_int_equal(sqlite3_open(file, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    store *s = sample_open(file, immutable, 0); /* would wait, were it to lock */
    assert_int_equal(sample_get(s, 1), STORE_OK);
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(other);
    store_close(s);
    sample_sql(file, "PRAGMA journal_mode=WAL");
    s = sample_open(file, STORE_IMMUTABLE, 0); /* implies reading only */
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(sample_put(s, 9, 10, NULL), STORE_IO);
    assert_false(scratch_exists(scratch_path(folder, "kernels.db-wal")));
    assert_false(scratch_exists(scratch_path(folder, "kernels.db-shm")));
    store_close(s);
    assert_int_equal(open_status(scratch_path(folder, "missing.db"), STORE_IMMUTABLE), STORE_IO);
    assert_false(scratch_exists(scratch_path(folder, "missing.db")));
}

/* Without what lies beside it, such a file is old or torn, and SQLite would not notice. */
static void refuses_an_incomplete_file_as_immutable(void **state)
{
    (void)state;
    static const char *const sides[] = {"copy.db-wal", "copy.db-journal"};
    const char *copy = scratch_path(folder, "copy.db");
    make_sound();
    store *s = sample_open(file, 0, 0);
    sample_put(s, 9, 100, NULL);
    copy_file(file, copy);
    copy_file(scratch_path(folder, "kernels.db-wal"), scratch_path(folder, sides[0]));
    store_close(s);
    assert_int_equal(open_status(copy, immutable), STORE_IO);
    assert_non_null(strstr(error, "jg_cache_seal"));
    s = sample_open(copy, 0, 0);
    assert_int_equal(store_seal(s), STORE_OK);
    store_close(s);
    s = sample_open(copy, immutable, 0);
    assert_int_equal(sample_get(s, 9), STORE_OK);
    store_close(s);
    for (int i = 0; i < 2; i++) {
        const char *path = scratch_path(folder, sides[i]);
        scratch_write(path, "", 0); /* an empty one holds nothing back */
        chmod(path, 0600);
        assert_int_equal(open_status(copy, immutable), STORE_OK);
        scratch_write(path, "x", 1);
        assert_int_equal(open_status(copy, immutable), STORE_IO);
        unlink(path);
    }
}

static void seals_a_file(void **state)
{
    (void)state;
    size_t bytes;
    make_sound();
    store *s = sample_open(file, 0, 0);
    store_record large;
    sample_record(&large, 9, 500000, NULL);
    store_put(s, &large, NULL);
    large.binary_bytes = 10; /* what replaces it leaves free pages */
    store_put(s, &large, NULL);
    sample_get(s, 1);
    assert_int_equal(store_seal(s), STORE_OK);
    assert_int_equal(sample_sql(file, "SELECT uses FROM usage JOIN records USING(entry) WHERE name='kernel_000001'"), 1);
    assert_false(scratch_exists(scratch_path(folder, "kernels.db-wal")));
    assert_false(scratch_exists(scratch_path(folder, "kernels.db-shm")));
    unsigned char *data = scratch_read(file, &bytes);
    assert_in_range(bytes, 1, 100000);
    assert_int_equal(data[18], 1); /* written, and to be read, without WAL */
    assert_int_equal(data[19], 1);
    free(data);
    assert_int_equal(scratch_mode(file), 0600);
    assert_int_equal(sample_put(s, 5, 10, NULL), STORE_OK); /* and goes on, if it must */
    assert_int_equal(store_seal(s), STORE_OK);
    store_close(s);
    assert_int_equal(sample_sql(file, "PRAGMA freelist_count"), 0);
    s = sample_open(file, immutable, 0);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(sample_get(s, 5), STORE_OK);
    store_close(s);
}

static void seals_no_file_that_others_have_open_or_deleted(void **state)
{
    (void)state;
    make_sound();
    store *s = sample_open(file, 0, 0), *other = sample_open(file, STORE_READ_ONLY, 0);
    sample_get(other, 1);
    assert_int_equal(store_seal(s), STORE_IO);
    assert_non_null(strstr(store_error(s), "somebody else"));
    assert_int_equal(store_seal(other), STORE_IO);
    assert_int_equal(sample_put(s, 5, 10, NULL), STORE_OK);
    assert_int_equal(sample_get(other, 5), STORE_OK);
    store_close(other);
    assert_int_equal(store_seal(s), STORE_OK);
    unlink(file);
    assert_int_equal(store_seal(s), STORE_IO);
    assert_non_null(strstr(store_error(s), "deleted"));
    store_close(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(serves_a_factory_file_of_root),
        TEST(takes_no_lock_and_makes_no_file_when_immutable),
        TEST(refuses_an_incomplete_file_as_immutable),
        TEST(seals_a_file),
        TEST(seals_no_file_that_others_have_open_or_deleted),
    };
    return cmocka_run_group_tests_name("store immutable", tests, NULL, NULL);
}
