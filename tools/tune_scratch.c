/* A temporary folder and the signals: see tune_scratch.h. */
#include "tune_scratch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INTERRUPTED = 130 };

/* ---- the folder ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX]; /* "": there is none */

const char *tune_scratch_make(void)
{
    const char *in = getenv("TMPDIR");
    pthread_mutex_lock(&lock);
    const int length = snprintf(folder, sizeof folder, "%s/jitgemm-tune-XXXXXX", in && *in ? in : "/tmp");
    errno = ENAMETOOLONG;
    const int failed = (size_t)length >= sizeof folder || !mkdtemp(folder);
    if (failed) folder[0] = 0;
    pthread_mutex_unlock(&lock);
    return failed ? NULL : folder;
}

void tune_scratch_remove(void)
{
    pthread_mutex_lock(&lock);
    DIR *list = folder[0] ? opendir(folder) : NULL;
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlinkat(dirfd(list), entry->d_name, 0);
    if (list) closedir(list);
    if (folder[0]) rmdir(folder);
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
