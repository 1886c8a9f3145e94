/* Claims on open-file-description locks. See claims.h.
 *
 * In: a store's path and ids. Out: at most one holder of an id at a time, over threads' objects and processes.
 *
 * fork() duplicates the descriptor, and a lock lives as long as any duplicate of it: a child that never execs would keep
 * the claims of a killed parent for as long as it lives. So all objects are in a list, and the child closes its duplicates. */
#include "cache/claims.h"

#include "cache/store_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct claims {
    int file; /* -1: everything is granted */
    claims *next;
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static claims *all;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&all_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&all_lock);
}

static void after_fork_in_child(void)
{
    for (; all; all = all->next) {
        if (all->file >= 0) close(all->file);
        all->file = -1;
    }
    pthread_mutex_unlock(&all_lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); /* no memory for it: see claims.h, less the child */
}

/* The mode and the owner are set after the fact: a umask may have taken our own bits, and a file that root makes beside a
 * user's store must serve the user. */
static int create_file(const char *path, const char *store_path)
{
    struct stat owner;
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    int failed = fchmod(file, 0600);
    if (geteuid() == 0 && lstat(store_path, &owner) == 0) failed |= fchown(file, owner.st_uid, owner.st_gid);
    if (!failed) return file;
    unlink(path);
    close(file);
    return -1;
}

/* -1 where there is no file that only we and root can lock. */
static int open_file(const char *store_path)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s-claims", store_path);
    if (length < 0 || (size_t)length >= sizeof path) return -1;
    if (store_path_check(path) == STORE_ABSENT) {
        int file = create_file(path, store_path);
        if (file >= 0 || errno != EEXIST) return file; /* else another process was faster, and its file is as good */
    }
    return store_path_check(path) == STORE_OK ? open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
}

claims *claims_open(const char *store_path)
{
    claims *c = malloc(sizeof *c);
    if (!c) return NULL;
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&all_lock);
    c->file = open_file(store_path);
    c->next = all;
    all = c;
    pthread_mutex_unlock(&all_lock);
    return c;
}

/* Sets or takes away the lock of `bytes` bytes from `start` on; 0 to the end. Returns 0 or an errno. */
static int set_lock(const claims *c, short type, off_t start, off_t bytes)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = bytes}; /* l_pid must be 0 */
    while (fcntl(c->file, F_OFD_SETLK, &lock) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

/* An offset has a bit less than an id. Two ids that differ in that bit alone share a claim, which costs a wait. */
static off_t offset_of(uint64_t id)
{
    return (off_t)(id & (UINT64_MAX >> 1 >> (64 - 8 * sizeof(off_t))));
}

int claims_try(claims *c, uint64_t id)
{
    if (c->file < 0) return 1;
    int failed = set_lock(c, F_WRLCK, offset_of(id), 1);
    return failed != EAGAIN && failed != EACCES; /* a file system that cannot lock grants everything */
}

void claims_release(claims *c, uint64_t id)
{
    if (c->file >= 0) set_lock(c, F_UNLCK, offset_of(id), 1);
}

void claims_close(claims *c)
{
    if (!c) return;
    pthread_mutex_lock(&all_lock);
    claims **link = &all;
    while (*link && *link != c)
        link = &(*link)->next;
    if (*link) *link = c->next;
    if (c->file >= 0) {
        set_lock(c, F_UNLCK, 0, 0); /* whoever else may have the descriptor, e.g. by a fork that ran no handlers */
        close(c->file);
    }
    pthread_mutex_unlock(&all_lock);
    free(c);
}
