/* A temporary folder and the signals: see tune_scratch.h. */
#include "tune_scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 130 };

/* ---- the folder ---- */

#define NAME "jitgemm-tune-"
#define LOCK_NAME "lock"
#define MAKING_S 60 /* a younger one may be without its lock as yet */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX]; /* "": there is none */
static int folder_lock = -1;

static int open_lock(const char *path, int flags)
{
    char name[PATH_MAX + sizeof LOCK_NAME + 1];
    snprintf(name, sizeof name, "%s/%s", path, LOCK_NAME);
    return open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

static void remove_folder(const char *path)
{
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(dirfd(list), entry->d_name, 0);
    if (list) closedir(list);
    rmdir(path);
}

/* Whether a folder is this user's, and its process is gone. */
static int is_abandoned(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) return 0;
    if (time(NULL) - info.st_mtime <= MAKING_S) return 0;
    const int fd = open_lock(path, 0);
    if (fd < 0) return errno == ENOENT;
    const int is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return is_free;
}

static void remove_abandoned(const char *in)
{
    char path[PATH_MAX];
    DIR *list = opendir(in);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strncmp(entry->d_name, NAME, sizeof NAME - 1) == 0 &&
            (size_t)snprintf(path, sizeof path, "%s/%s", in, entry->d_name) < sizeof path && is_abandoned(path))
            remove_folder(path);
    if (list) closedir(list);
}

/* Where there are no locks, nobody takes it for abandoned either. Returns 0, or -1 with errno set. */
static int make_folder(const char *in)
{
    errno = ENAMETOOLONG;
    if ((size_t)snprintf(folder, sizeof folder, "%s/" NAME "XXXXXX", in) >= sizeof folder || !mkdtemp(folder)) return -1;
    folder_lock = open_lock(folder, O_CREAT);
    if (folder_lock < 0) {
        const int error = errno;
        remove_folder(folder);
        errno = error;
        return -1;
    }
    if (flock(folder_lock, LOCK_EX | LOCK_NB) != 0) {} /* see above */
    return 0;
}

const char *tune_scratch_make(void)
{
    const char *given = getenv("TMPDIR"), *in = given && *given ? given : "/tmp";
    pthread_mutex_lock(&lock);
    remove_abandoned(in);
    const int failed = make_folder(in) != 0;
    if (failed) folder[0] = 0;
    pthread_mutex_unlock(&lock);
    return failed ? NULL : folder;
}

void tune_scratch_remove(void)
{
    pthread_mutex_lock(&lock);
    if (folder[0]) remove_folder(folder);
    if (folder_lock >= 0) close(folder_lock);
    folder_lock = -1;
    folder[0] = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- signals ---- */

static atomic_int stop_requested;
static void (*on_stop)(void *user);
static void *on_stop_user;

/* Waits for signals that all threads block. A handler would not do: NVRTC puts one of its own in its place while it first compiles,
 * which ends the process with status 0. */
static void *wait_for_stop(void *user)
{
    int number;
    while (sigwait(user, &number) == 0) {
        if (atomic_exchange(&stop_requested, 1)) {
            tune_scratch_remove();
            _exit(EXIT_INTERRUPTED);
        }
        if (on_stop) on_stop(on_stop_user);
    }
    return NULL;
}

int tune_catch_stop_signals(void (*told)(void *user), void *user)
{
    static sigset_t stops;
    pthread_t thread;
    on_stop = told;
    on_stop_user = user;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGHUP);
    signal(SIGINT, SIG_DFL); /* a shell may have started this with SIGINT ignored */
    pthread_sigmask(SIG_BLOCK, &stops, NULL);
    if (pthread_create(&thread, NULL, wait_for_stop, &stops) != 0) return -1;
    pthread_detach(thread);
    return 0;
}

int tune_stop_requested(void)
{
    return atomic_load(&stop_requested);
}
