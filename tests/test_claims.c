/* Claims: who excludes whom, what the death of a holder frees, what a fork keeps, and that a place where no file can be
 * made grants everything. */
#include "cache/claims.h"
#include "store_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000, IDS = 3 };

static const char *side(void)
{
    return scratch_path(folder, "kernels.db-claims");
}

static claims *must_open(const char *path)
{
    claims *c = claims_open(path);
    assert_non_null(c);
    return c;
}

static void two_objects_exclude_each_other(void **state)
{
    (void)state;
    static const uint64_t ids[] = {0, 1, 2, 0x7fffffffffffffff, UINT64_MAX - 1, 0x123456789abcdef0};
    enum { COUNT = sizeof ids / sizeof ids[0] };
    claims *a = must_open(file), *b = must_open(file);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(claims_try(b, ids[i]), 1); /* another id's claim is none of this one's business */
        claims_release(b, ids[i]);
        assert_int_equal(claims_try(a, ids[i]), 1);
        assert_int_equal(claims_try(b, ids[i]), 0);
        assert_int_equal(claims_try(a, ids[i]), 1);
    }
    for (int i = 0; i < COUNT; i++) {
        claims_release(b, ids[i]); /* what one does not have, one cannot give back */
        assert_int_equal(claims_try(b, ids[i]), 0);
        claims_release(a, ids[i]);
        assert_int_equal(claims_try(b, ids[i]), 1);
        assert_int_equal(claims_try(a, ids[i]), 0);
    }
    claims_close(b);
    assert_int_equal(claims_try(a, 1), 1);
    claims_close(a);
    claims_close(NULL);
}

static void claims_by_all_64_bits_but_one(void **state)
{
    (void)state;
    claims *a = must_open(file), *b = must_open(file);
    assert_int_equal(claims_try(a, 0x0123456789abcdef), 1);
    for (int bit = 0; bit < 63; bit++)
        assert_int_equal(claims_try(b, 0x0123456789abcdef ^ (uint64_t)1 << bit), 1);
    assert_int_equal(claims_try(b, 0x8123456789abcdef), 0);
    claims_close(a);
    claims_close(b);
}

static void leaves_an_empty_owner_only_file(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 0777};
    size_t bytes;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        unlink(side());
        mode_t old = umask(masks[i]);
        claims *c = must_open(file);
        umask(old);
        assert_int_equal(claims_try(c, 1), 1);
        claims_close(c);
        assert_int_equal(scratch_mode(side()), 0600);
        free(scratch_read(side(), &bytes));
        assert_int_equal(bytes, 0);
    }
}

static int last_descriptor; /* that open_descriptors found */

/* How many descriptors of this process are of the claims file; each must be closed by an exec. */
static int open_descriptors(void)
{
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    assert_non_null(list);
    for (struct dirent *one; (one = readdir(list));) {
        char link[64], target[PATH_MAX + 64];
        snprintf(link, sizeof link, "/proc/self/fd/%.20s", one->d_name);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        if (strcmp(target, side()) != 0) continue;
        last_descriptor = atoi(one->d_name);
        assert_int_equal(fcntl(last_descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        count++;
    }
    closedir(list);
    return count;
}

static void closes_its_file(void **state)
{
    (void)state;
    claims *a = must_open(file), *b = must_open(file), *c = must_open(file);
    assert_int_equal(open_descriptors(), 3);
    claims_close(b); /* from the middle of the list, then its ends */
    claims_close(c);
    assert_int_equal(open_descriptors(), 1);
    claims_close(a);
    assert_int_equal(open_descriptors(), 0);
}

static void gives_the_file_to_the_owner_of_the_store(void **state)
{
    (void)state;
    struct stat info;
    if (geteuid() != 0) {
        print_message("SKIP only root can give files away\n");
        skip();
    }
    make_sound();
    assert_int_equal(chown(file, NOBODY, NOBODY - 1), 0);
    claims_close(must_open(file));
    assert_int_equal(stat(side(), &info), 0);
    assert_int_equal(info.st_uid, NOBODY);
    assert_int_equal(info.st_gid, NOBODY - 1);
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

/* Runs `body` in a child, and returns once it has written its byte to the pipe it is given. */
static pid_t start(void (*body)(void *user, int pipe), void *user)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        body(user, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void say_and_wait(int pipe)
{
    alarm(60); /* should the test fail and forget us */
    if (write(pipe, "x", 1) != 1) _exit(2);
    for (;;) pause();
}

static void end(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void claim_and_wait(void *user, int pipe)
{
    (void)user;
    claims *c = claims_open(file);
    if (!c || !claims_try(c, 5)) _exit(3);
    say_and_wait(pipe);
}

static void a_killed_process_keeps_nothing(void **state)
{
    (void)state;
    pid_t child = start(claim_and_wait, NULL);
    claims *c = must_open(file);
    assert_int_equal(claims_try(c, 5), 0);
    assert_int_equal(claims_try(c, 6), 1);
    end(child);
    assert_int_equal(claims_try(c, 5), 1);
    claims_close(c);
}

static void just_wait(void *user, int pipe)
{
    (void)user;
    say_and_wait(pipe);
}

static void claim_fork_and_wait(void *user, int pipe)
{
    claims *c = claims_open(file), *another = claims_open(file);
    if (!c || !another || !claims_try(c, 5) || !claims_try(another, 6)) _exit(3);
    *(pid_t *)user = start(just_wait, NULL);
    say_and_wait(pipe);
}

/* The holder dies while a child that it forked lives on. */
static void a_forked_child_keeps_no_claim_alive(void **state)
{
    (void)state;
    void *shared = mmap(NULL, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    pid_t *grandchild = shared;
    pid_t child = start(claim_fork_and_wait, grandchild);
    claims *c = must_open(file);
    assert_int_equal(claims_try(c, 5), 0);
    end(child);
    int first = claims_try(c, 5), second = claims_try(c, 6);
    kill(*grandchild, SIGKILL);
    assert_int_equal(first, 1);
    assert_int_equal(second, 1);
    claims_close(c);
    munmap(shared, sizeof(pid_t));
}

static int use_inherited(void *user)
{
    claims *c = user, *own = claims_open(file); /* a child's own object works as ever, maybe with c's old descriptor */
    if (!own || claims_try(own, 5) || !claims_try(own, 7)) return 1;
    if (!claims_try(c, 5) || !claims_try(c, 7)) return 2;
    claims_release(c, 5);
    claims_close(c);
    return open_descriptors() == 1 ? 0 : 3;
}

static void a_forked_child_takes_no_claim_away(void **state)
{
    (void)state;
    claims *c = must_open(file), *other = must_open(file);
    assert_int_equal(claims_try(c, 5), 1);
    assert_int_equal(scratch_child(use_inherited, c, 0), 0);
    assert_int_equal(claims_try(other, 5), 0);
    claims_close(c);
    claims_close(other);
}

/* A duplicate that no handler could close, as of a fork made by a bare system call. */
static void closing_frees_what_a_duplicate_would_keep(void **state)
{
    (void)state;
    claims *c = must_open(file);
    assert_int_equal(open_descriptors(), 1);
    int copy = dup(last_descriptor);
    claims *other = must_open(file);
    assert_int_equal(claims_try(c, 5), 1);
    claims_close(c);
    assert_int_equal(claims_try(other, 5), 1);
    claims_close(other);
    close(copy);
}

/* ---- where there can be no file --------------------------------------------------------------------------------- */

/* 0 if two objects both get every claim, as they do only without a file. */
static int grants_everything(void *path)
{
    claims *a = claims_open(path), *b = claims_open(path);
    if (!a || !b) return 1;
    int granted = claims_try(a, 5) && claims_try(b, 5) && claims_try(a, UINT64_MAX) && claims_try(b, UINT64_MAX);
    claims_release(a, 5);
    claims_close(a);
    claims_close(b);
    return granted ? 0 : 2;
}

static void grants_everything_where_no_file_can_be(void **state)
{
    (void)state;
    char longest[PATH_MAX + 100], missing[PATH_MAX + 64];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(grants_everything(longest), 0);
    size_t used = (size_t)snprintf(longest, sizeof longest, "%s", folder);
    for (; used < PATH_MAX - 16; used += 2)
        memcpy(longest + used, "/.", 2);
    memcpy(longest + used, "/kernels.db", sizeof "/kernels.db"); /* fits, with "-claims" it does not */
    assert_int_equal(grants_everything(longest), 0);
    snprintf(missing, sizeof missing, "%s/none/kernels.db", folder);
    assert_int_equal(grants_everything(missing), 0);
    assert_false(scratch_exists(scratch_path(folder, "none")));
    assert_int_equal(mkdir(side(), 0700), 0);
    assert_int_equal(grants_everything(file), 0);
}

/* What a full disk and a lack of descriptors have in common: the open fails. */
static int grants_without_descriptors(void *path)
{
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 3;
    return grants_everything(path);
}

static int grants_in_a_read_only_folder(void *path)
{
    return access(folder, W_OK) == 0 ? 77 : grants_everything(path);
}

static void grants_everything_where_nothing_can_be_made(void **state)
{
    (void)state;
    assert_int_equal(scratch_child(grants_without_descriptors, file, 0), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    int result = scratch_child(grants_in_a_read_only_folder, file, geteuid() == 0 ? NOBODY : 0);
    if (result == 77) {
        print_message("SKIP permissions do not bind this user\n");
        skip();
    }
    assert_int_equal(result, 0);
}

static void uses_no_file_that_others_could_lock(void **state)
{
    (void)state;
    const char *target = scratch_path(folder, "target");
    assert_int_equal(symlink(target, side()), 0);
    assert_int_equal(grants_everything(file), 0);
    assert_false(scratch_exists(target)); /* a dangling link makes no file */
    scratch_write(target, "", 0);
    assert_int_equal(grants_everything(file), 0);
    unlink(side());
    scratch_write(side(), "", 0);
    assert_int_equal(chmod(side(), 0622), 0);
    assert_int_equal(grants_everything(file), 0);
    assert_int_equal(chmod(side(), 0600), 0);
    assert_int_not_equal(grants_everything(file), 0); /* the same file, and sound */
    if (geteuid() != 0) return;
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(chown(side(), NOBODY - 1, NOBODY - 1), 0);
    assert_int_equal(chmod(side(), 0644), 0);
    assert_int_equal(scratch_child(grants_everything, file, NOBODY), 0);
}

static void grants_everything_where_locking_fails(void **state)
{
    (void)state;
    claims *a = must_open(file), *b = must_open(file);
    assert_int_equal(open_descriptors(), 2);
    close(last_descriptor);
    assert_int_equal(claims_try(a, 5), 1);
    assert_int_equal(claims_try(b, 5), 1);
    claims_close(a);
    claims_close(b);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

typedef struct contest {
    atomic_int holders[IDS], faults, granted;
} contest;

static void *contend(void *argument)
{
    contest *all = argument;
    claims *own = claims_open(file);
    if (!own) abort();
    for (int i = 0; i < ROUNDS; i++) {
        claims *another = i % 50 ? NULL : claims_open(file); /* the list of objects changes meanwhile */
        int id = i % IDS;
        if (claims_try(own, (uint64_t)id)) {
            if (atomic_fetch_add(&all->holders[id], 1) != 0) atomic_fetch_add(&all->faults, 1);
            atomic_fetch_add(&all->granted, 1);
            atomic_fetch_sub(&all->holders[id], 1);
            claims_release(own, (uint64_t)id);
        }
        claims_close(another);
    }
    claims_close(own);
    return NULL;
}

static void one_of_many_threads_holds_a_claim(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    contest all = {0};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, contend, &all), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&all.faults), 0);
    assert_true(atomic_load(&all.granted) > 0);
    assert_int_equal(open_descriptors(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(two_objects_exclude_each_other),
        TEST(claims_by_all_64_bits_but_one),
        TEST(leaves_an_empty_owner_only_file),
        TEST(closes_its_file),
        TEST(gives_the_file_to_the_owner_of_the_store),
        TEST(a_killed_process_keeps_nothing),
        TEST(a_forked_child_keeps_no_claim_alive),
        TEST(a_forked_child_takes_no_claim_away),
        TEST(closing_frees_what_a_duplicate_would_keep),
        TEST(grants_everything_where_no_file_can_be),
        TEST(grants_everything_where_nothing_can_be_made),
        TEST(grants_everything_where_locking_fails),
        TEST(uses_no_file_that_others_could_lock),
        TEST(one_of_many_threads_holds_a_claim),
    };
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
