/* Where and when the worker's threads may run: as jg_worker_options say, relative to the thread that opened the context.
 *
 * A new thread inherits from whichever thread starts it, here the first that meets a new size: perhaps one that is pinned to a
 * processor or has a real-time policy. So the opener's placing is kept and put on each thread by itself. What is not allowed is
 * left: a worker that runs too eagerly is better than none. */
#include "worker_state.h"

#include <sys/resource.h>
#include <unistd.h>

/* Of the calling thread, as for the kernel 0 is. */
#define SELF 0

void place_capture(place *p)
{
    p->has_cpus = sched_getaffinity(SELF, sizeof p->cpus, &p->cpus) == 0;
    p->policy = sched_getscheduler(SELF);
    if (p->policy >= 0) sched_getparam(SELF, &p->parameters);
    p->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
}

/* The kernel ignores processors that the machine does not have, and refuses a set that it would leave empty. */
static void apply_cpus(const place *p, uint64_t wanted)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < 64; i++)
        if (wanted >> i & 1) CPU_SET(i, &set);
    if (wanted && sched_setaffinity(SELF, sizeof set, &set) == 0) return;
    if (p->has_cpus) sched_setaffinity(SELF, sizeof p->cpus, &p->cpus);
}

static void apply_nice(int nice)
{
    setpriority(PRIO_PROCESS, (id_t)gettid(), nice);
}

void place_apply(const place *p, const jg_worker_options *options)
{
    const struct sched_param none = {0};
    apply_cpus(p, options->cpus);
    if (options->nice == 0) {
        if (sched_setscheduler(SELF, SCHED_IDLE, &none) != 0) apply_nice(19);
    } else if (options->nice > 0) {
        sched_setscheduler(SELF, SCHED_OTHER, &none); /* under a real-time policy niceness means nothing */
        apply_nice(options->nice > p->nice ? options->nice : p->nice);
    } else if (p->policy >= 0) {
        sched_setscheduler(SELF, p->policy, &p->parameters);
        apply_nice(p->nice);
    }
}

void place_lift(pthread_t thread)
{
    int policy;
    struct sched_param parameters;
    const struct sched_param none = {0};
    if (pthread_getschedparam(thread, &policy, &parameters) == 0 && policy == SCHED_IDLE)
        pthread_setschedparam(thread, SCHED_OTHER, &none);
}
