/* See exit_guard.h. Without locks: a child of fork() must not find one held. */
#include "exit_guard.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* No compile takes longer on any device we know; then leaving is better than hanging. */
#define LONGEST_WAIT_MS 10000

/* How many there are of something in this process: its number in the upper half, the count in the lower. As one number, so that a
 * child of fork() starts from 0 whichever of its threads is the first. */
typedef atomic_uint_least64_t process_count;

static process_count compiles, first_uses; /* under way */
static atomic_int leaving, waited;

static uint32_t count_of(process_count *c)
{
    const uint64_t state = atomic_load(c);
    return state >> 32 == (uint64_t)getpid() ? (uint32_t)state : 0;
}

static void add_to(process_count *c, uint32_t change)
{
    const uint64_t process = (uint64_t)getpid();
    uint64_t before = atomic_load(c), after;
    do {
        after = process << 32 | (uint32_t)((before >> 32 == process ? (uint32_t)before : 0) + change);
    } while (!atomic_compare_exchange_weak(c, &before, after));
}

static void wait_for_none(process_count *c)
{
    for (int ms = 0; ms < LONGEST_WAIT_MS && count_of(c) > 0; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* --- exit handlers --- */

/* It is registered several times: one wait is enough. */
static void wait_for_compiles(void)
{
    atomic_store(&leaving, 1);
    if (!atomic_exchange(&waited, 1)) wait_for_none(&compiles);
}

void exit_guard_first_use(int (*use)(void *user), void *user)
{
    add_to(&first_uses, 1);
    if (use(user)) atexit(wait_for_compiles);
    add_to(&first_uses, UINT32_MAX);
}

int exit_guard_enter(void)
{
    add_to(&compiles, 1);
    if (!atomic_load(&leaving)) return 1;
    exit_guard_leave();
    return 0;
}

void exit_guard_leave(void)
{
    add_to(&compiles, UINT32_MAX);
}

int exit_guard_is_leaving(void)
{
    return atomic_load(&leaving);
}

/* --- the destructor of a thread's own variables, which exit() calls before all handlers --- */

/* Of the C library, for the use of C++ compilers; null in those that lack it. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *object), void *object, void *library) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void wait_for_first_uses(void *unused)
{
    (void)unused;
    wait_for_none(&first_uses);
}

void exit_guard_watch_thread(void)
{
    static _Thread_local int watched;
    if (watched || !__cxa_thread_atexit_impl) return;
    watched = __cxa_thread_atexit_impl(wait_for_first_uses, NULL, &__dso_handle) == 0;
}
