/* See exit_guard.h. Without locks: a child of fork() must not find one held. */
#include "exit_guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* No compile takes longer on any device we know; then leaving is better than hanging. */
#define LONGEST_WAIT_MS 10000

static atomic_int running, leaving;
static atomic_long process; /* that `running` is about */

static void wait_for_compiles(void)
{
    atomic_store(&leaving, 1);
    for (int ms = 0; ms < LONGEST_WAIT_MS && atomic_load(&process) == getpid() && atomic_load(&running) > 0; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void arm(void)
{
    atexit(wait_for_compiles);
}

void exit_guard_arm(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, arm);
}

int exit_guard_enter(void)
{
    long before = atomic_load(&process), now = getpid();
    if (before != now && atomic_compare_exchange_strong(&process, &before, now)) atomic_store(&running, 0);
    atomic_fetch_add(&running, 1);
    if (!atomic_load(&leaving)) return 1;
    atomic_fetch_sub(&running, 1);
    return 0;
}

void exit_guard_leave(void)
{
    atomic_fetch_sub(&running, 1);
}

int exit_guard_is_leaving(void)
{
    return atomic_load(&leaving);
}
