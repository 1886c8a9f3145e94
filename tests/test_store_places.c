/* The disk store where something is wrong with the place: folders and files that others can write or own, symbolic links,
 * read-only places, a full disk, a locked file, a file deleted while open. */
#include "cache/store.h"
#include "store_fixture.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- unsafe places ---------------------------------------------------------------------------------------------- */

static void refuses_symbolic_links(void **state)
{
    (void)state;
    const char *link = scratch_path(folder, "link.db"), *dangling = scratch_path(folder, "dangling.db");
    make_sound();
    assert_int_equal(symlink(file, link), 0);
    assert_int_equal(open_status(link, 0), STORE_UNSAFE);
    assert_non_null(strstr(error, "symbolic link"));
    assert_int_equal(open_status(link, STORE_READ_ONLY), STORE_UNSAFE);
    assert_int_equal(symlink(scratch_path(folder, "target.db"), dangling), 0);
    assert_int_equal(open_status(dangling, 0), STORE_UNSAFE);
    assert_false(scratch_exists(scratch_path(folder, "target.db")));
    assert_int_equal(symlink("/dev/null", scratch_path(folder, "kernels.db-wal")), 0);
    assert_int_equal(open_status(file, 0), STORE_UNSAFE);
}

static void resolves_a_linked_folder(void **state)
{
    (void)state;
    make_sound();
    assert_int_equal(symlink(folder, scratch_path(folder, "here")), 0);
    store *s = sample_open(scratch_path(folder, "here/kernels.db"), 0, 0);
    assert_string_equal(store_path(s), file);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    store_close(s);
}

static void refuses_what_others_can_write(void **state)
{
    (void)state;
    static const struct {
        mode_t folder_mode, file_mode;
        store_status expected;
    } cases[] = {
        {0777, 0600, STORE_UNSAFE}, {0770, 0600, STORE_UNSAFE},  {0702, 0600, STORE_UNSAFE},
        {01777, 0600, STORE_OK},    {0755, 0644, STORE_OK},      {0700, 0660, STORE_UNSAFE},
        {0700, 0602, STORE_UNSAFE}, {01777, 0666, STORE_UNSAFE}, {0700, 0600, STORE_OK},
    };
    make_sound();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(chmod(folder, cases[i].folder_mode), 0);
        assert_int_equal(chmod(file, cases[i].file_mode), 0);
        assert_int_equal(open_status(file, 0), cases[i].expected);
        assert_int_equal(open_status(file, STORE_READ_ONLY), cases[i].expected);
    }
}

static int is_unsafe(void *user)
{
    return open_status(user, 0) == STORE_UNSAFE && open_status(user, STORE_READ_ONLY) == STORE_UNSAFE ? 0 : 1;
}

static int is_fine(void *user)
{
    return open_status(user, STORE_READ_ONLY) == STORE_OK ? 0 : 1;
}

static void refuses_what_others_own(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("SKIP only root can give files away\n");
        skip();
    }
    make_sound();
    assert_int_equal(chmod(file, 0644), 0);
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(scratch_child(is_fine, file, NOBODY), 0); /* root's file, in root's sticky folder */
    assert_int_equal(chown(file, NOBODY - 1, NOBODY - 1), 0);
    assert_int_equal(scratch_child(is_unsafe, file, NOBODY), 0);
    assert_int_equal(open_status(file, STORE_READ_ONLY), STORE_OK); /* root may look into anybody's */
    assert_int_equal(chown(file, NOBODY, NOBODY), 0);
    assert_int_equal(chown(folder, NOBODY - 1, NOBODY - 1), 0);
    assert_int_equal(scratch_child(is_unsafe, file, NOBODY), 0); /* the folder's owner could swap the file */
}

static void makes_owner_only_files_whatever_the_umask(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 0022, 0777};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "new%zu/deep/er/kernels.db", i);
        const char *path = scratch_path(folder, name);
        mode_t old = umask(masks[i]);
        store *s = sample_open(path, 0, 0);
        sample_put(s, 1, 100000, "text");
        umask(old);
        assert_int_equal(scratch_mode(path), 0600);
        for (int side = 0; side < 2; side++) {
            char with_suffix[PATH_MAX + 80];
            snprintf(with_suffix, sizeof with_suffix, "%s%s", path, side ? "-shm" : "-wal");
            assert_int_equal(scratch_mode(with_suffix), 0600);
        }
        snprintf(name, sizeof name, "new%zu", i);
        assert_int_equal(scratch_mode(scratch_path(folder, name)), 0700);
        snprintf(name, sizeof name, "new%zu/deep/er", i);
        assert_int_equal(scratch_mode(scratch_path(folder, name)), 0700);
        store_close(s);
    }
}

static void explains_a_path_that_cannot_be(void **state)
{
    (void)state;
    char longest[PATH_MAX + 100];
    make_sound();
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(open_status("", 0), STORE_IO);
    assert_int_equal(open_status(scratch_path(folder, ""), 0), STORE_IO);
    assert_int_equal(open_status(scratch_path(folder, ".."), 0), STORE_IO);
    assert_int_equal(open_status(longest, 0), STORE_IO);
    assert_int_equal(open_status(scratch_path(folder, "kernels.db/x/y.db"), 0), STORE_IO);
    assert_int_equal(open_status(scratch_path(folder, "none/kernels.db"), STORE_READ_ONLY), STORE_IO);
    assert_false(scratch_exists(scratch_path(folder, "none")));
    assert_int_equal(mkdir(scratch_path(folder, "sub"), 0700), 0);
    assert_int_equal(open_status(scratch_path(folder, "sub"), 0), STORE_UNSAFE); /* a folder itself */
}

/* 0 if a cache below a folder that cannot be written is refused with the true reason; 77 if modes mean nothing to us. */
static int is_told_permission_denied(void *path)
{
    if (access(folder, W_OK) == 0) return 77;
    return open_status(path, 0) == STORE_IO && strstr(error, "Permission denied") ? 0 : 1;
}

static void tells_why_a_folder_cannot_be_made(void **state)
{
    (void)state;
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/.cache/jitgemm/kernels.db", folder);
    assert_int_equal(chmod(folder, 0555), 0);
    int result = scratch_child(is_told_permission_denied, path, geteuid() == 0 ? NOBODY : 0);
    if (result == 77) {
        print_message("SKIP permissions do not bind this user\n");
        skip();
    }
    assert_int_equal(result, 0);
}

/* ---- reading only ----------------------------------------------------------------------------------------------- */

static void changes_nothing_when_read_only(void **state)
{
    (void)state;
    size_t before, after;
    make_sound();
    unsigned char *old = scratch_read(file, &before);
    store *s = sample_open(file, STORE_READ_ONLY, 0);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(sample_put(s, 7, 10, NULL), STORE_IO);
    assert_non_null(strstr(store_error(s), "reading only"));
    assert_int_equal(store_clear(s, NULL), STORE_IO);
    store_close(s);
    unsigned char *now = scratch_read(file, &after);
    assert_int_equal(after, before);
    assert_memory_equal(now, old, before);
    assert_false(scratch_exists(scratch_path(folder, "kernels.db-wal"))); /* and leaves nothing lying about */
    assert_false(scratch_exists(scratch_path(folder, "kernels.db-shm")));
    free(old);
    free(now);
    assert_int_equal(open_status(scratch_path(folder, "missing.db"), STORE_READ_ONLY), STORE_IO);
    assert_non_null(strstr(error, "does not exist"));
    assert_false(scratch_exists(scratch_path(folder, "missing.db")));
}

/* What a crashed writer left is read, but merging it is the next writer's business. */
static void reads_what_a_crash_left_without_merging_it(void **state)
{
    (void)state;
    size_t before, after;
    const char *copy = scratch_path(folder, "copy.db"), *wal = scratch_path(folder, "copy.db-wal");
    make_sound();
    store *s = sample_open(file, 0, 0);
    sample_put(s, 9, 100, NULL);
    copy_file(file, copy);
    copy_file(scratch_path(folder, "kernels.db-wal"), wal);
    store_close(s);
    unsigned char *old = scratch_read(copy, &before);
    s = sample_open(copy, STORE_READ_ONLY, 0);
    assert_int_equal(sample_get(s, 9), STORE_OK);
    store_close(s);
    unsigned char *now = scratch_read(copy, &after);
    assert_int_equal(after, before);
    assert_memory_equal(now, old, before);
    assert_true(scratch_exists(wal));
    free(old);
    free(now);
    s = sample_open(copy, 0, 0);
    assert_int_equal(sample_get(s, 9), STORE_OK);
    store_close(s);
    assert_false(scratch_exists(wal));
}

static void reads_beside_a_writer(void **state)
{
    (void)state;
    store *writer = sample_open(file, 0, 0);
    sample_put(writer, 0, 3000, NULL);
    store *reader = sample_open(file, STORE_READ_ONLY, 0);
    sample_put(writer, 1, 3000, NULL);
    assert_int_equal(sample_get(reader, 1), STORE_OK);
    store_close(reader);
    assert_int_equal(sample_put(writer, 2, 3000, NULL), STORE_OK);
    store_close(writer);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 3);
}

/* 0 if a store whose file or folder cannot be written serves reads, by either way of opening it. */
static int read_where_nothing_can_be_written(void *user)
{
    for (unsigned flags = 0; flags < 2; flags++) {
        store *s = NULL;
        if (access(folder, W_OK) == 0 && access(user, W_OK) == 0) return 77; /* permissions mean nothing to us */
        if (store_open(user, flags, 0, &s, error, sizeof error) != STORE_OK) return 1;
        if (sample_get(s, 1) != STORE_OK) return 2;
        if (sample_put(s, 8, 10, NULL) != STORE_IO || !strstr(store_error(s), "reading only")) return 3;
        if (store_verify(s, NULL, NULL, NULL, NULL) != STORE_OK) return 4;
        store_close(s);
    }
    return 0;
}

static void serves_reads_from_read_only_places(void **state)
{
    (void)state;
    static const struct {
        mode_t folder, file;
    } modes[] = {{0555, 0444}, {0555, 0644}, {0755, 0444}};
    unsigned uid = geteuid() == 0 ? NOBODY : 0; /* root needs to become somebody whom modes bind */
    make_sound();
    char odd[PATH_MAX + 64];
    snprintf(odd, sizeof odd, "%s/a?b#c%%41.db", folder); /* what a URI would take for something else */
    assert_int_equal(rename(file, odd), 0);
    if (uid) assert_int_equal(chown(odd, uid, uid), 0);
    if (uid) assert_int_equal(chown(folder, uid, uid), 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(odd, modes[i].file), 0);
        assert_int_equal(chmod(folder, modes[i].folder), 0);
        int result = scratch_child(read_where_nothing_can_be_written, odd, uid);
        if (result == 77) print_message("SKIP permissions do not bind this user\n");
        if (result == 77) skip();
        assert_int_equal(result, 0);
    }
}

/* ---- full, locked, gone ----------------------------------------------------------------------------------------- */

static int fill_the_disk(void *user)
{
    struct rlimit limit = {400000, RLIM_INFINITY};
    store_status status = STORE_OK;
    int puts = 0;
    signal(SIGXFSZ, SIG_IGN);
    store *s = sample_open(user, 0, 0);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    while (status == STORE_OK && puts < 1000)
        status = sample_put(s, 100 + puts++, 30000, "text");
    if (status != STORE_IO) return 2;
    if (!strstr(store_error(s), "write")) return 3;
    if (sample_get(s, 1) != STORE_OK || sample_get(s, 100) != STORE_OK) return 4; /* what was there still serves */
    if (sample_get(s, 100 + puts - 1) != STORE_ABSENT) return 5;
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (sample_put(s, 5000, 30000, "text") != STORE_OK) return 6; /* and goes on once there is room */
    store_close(s);
    return 0;
}

static void survives_a_full_disk(void **state)
{
    (void)state;
    make_sound();
    assert_int_equal(scratch_child(fill_the_disk, file, 0), 0);
    store *s = sample_open(file, 0, 0);
    assert_int_equal(store_verify(s, NULL, NULL, NULL, NULL), STORE_OK);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    assert_int_equal(sample_get(s, 5000), STORE_OK);
    store_close(s);
}

static void gives_up_on_a_locked_file(void **state)
{
    (void)state;
    sqlite3 *other;
    make_sound();
    store *s = sample_open(file, 0, 0);
    assert_int_equal(sqlite3_open(file, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sample_get(s, 1), STORE_OK); /* a writer does not keep readers out */
    assert_int_equal(sample_put(s, 9, 10, NULL), STORE_IO);
    assert_non_null(strstr(store_error(s), "locked"));
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    assert_int_equal(sample_put(s, 9, 10, NULL), STORE_OK);
    sqlite3_close(other);
    store_close(s);
}

static void notices_a_deleted_file(void **state)
{
    (void)state;
    make_sound();
    store *s = sample_open(file, 0, 0);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    unlink(file);
    assert_int_equal(sample_put(s, 9, 10, NULL), STORE_IO);
    assert_non_null(strstr(store_error(s), "deleted"));
    assert_int_equal(sample_get(s, 2), STORE_OK); /* what is open can still be read */
    unlink(scratch_path(folder, "kernels.db-wal"));
    unlink(scratch_path(folder, "kernels.db-shm"));
    store *fresh = sample_open(file, 0, 0);
    assert_int_equal(sample_put(fresh, 3, 10, NULL), STORE_OK);
    assert_int_equal(sample_put(s, 9, 10, NULL), STORE_IO); /* replaced is as good as deleted */
    store_close(s);
    assert_int_equal(sample_get(fresh, 3), STORE_OK);
    store_close(fresh);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(refuses_symbolic_links),
        TEST(resolves_a_linked_folder),
        TEST(refuses_what_others_can_write),
        TEST(refuses_what_others_own),
        TEST(makes_owner_only_files_whatever_the_umask),
        TEST(explains_a_path_that_cannot_be),
        TEST(tells_why_a_folder_cannot_be_made),
        TEST(changes_nothing_when_read_only),
        TEST(reads_what_a_crash_left_without_merging_it),
        TEST(reads_beside_a_writer),
        TEST(serves_reads_from_read_only_places),
        TEST(survives_a_full_disk),
        TEST(gives_up_on_a_locked_file),
        TEST(notices_a_deleted_file),
    };
    return cmocka_run_group_tests_name("store places", tests, NULL, NULL);
}
