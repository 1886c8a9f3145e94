/* Compiles candidates on threads: see tune_compile.h. */
#include "tune_compile.h"

#include "context.h"
#include "progress.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Whether no other kernel can be made either. */
static int is_final(jg_status status)
{
    return status == JG_ERR_NO_NVRTC || status == JG_ERR_NO_MEMORY || status == JG_ERR_ARCH || status == JG_ERR_NOT_READY ||
           jg_status_is_fatal(status);
}

/* Called with the lock. */
static int has_next(const tune_compile *c)
{
    if (c->stops || c->status != JG_OK || c->next == c->count) return 0;
    return c->deadline_ms <= 0 || progress_now_ms() + c->typical_ms < c->deadline_ms;
}

/* Called with the lock, which is given back while it compiles. */
static void make_one(tune_compile *c)
{
    const tune_job *job = &c->jobs[c->next++];
    pthread_mutex_unlock(&c->lock);
    const double began_ms = progress_now_ms();
    const jg_status status = jg_plan_compile_candidate(c->context, job->problem, job->index);
    const double took_ms = progress_now_ms() - began_ms;
    pthread_mutex_lock(&c->lock);
    c->typical_ms = c->typical_ms > 0 ? 0.8 * c->typical_ms + 0.2 * took_ms : took_ms;
    if (status == JG_ERR_CANCELLED) return;
    c->compiled++;
    c->left[job->step]--;
    if (is_final(status) && c->status == JG_OK) {
        c->status = status;
        snprintf(c->error, sizeof c->error, "%s", jg_last_error());
    }
    pthread_cond_broadcast(&c->progressed);
}

static void *work(void *user)
{
    tune_compile *c = user;
    pthread_mutex_lock(&c->lock);
    while (has_next(c)) make_one(c);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

jg_status tune_compile_start(tune_compile *c, jg_context *context, const tune_job *jobs, size_t count, size_t steps, size_t threads,
                             double deadline_ms)
{
    pthread_condattr_t attributes;
    *c = (tune_compile){.context = context, .jobs = jobs, .count = count, .deadline_ms = deadline_ms};
    c->left = calloc(steps ? steps : 1, sizeof *c->left);
    if (!c->left) return status_set(JG_ERR_NO_MEMORY, "out of memory for jobs");
    for (size_t i = 0; i < count; i++) c->left[jobs[i].step]++;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->progressed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (threads > TUNE_JOBS_MAX) threads = TUNE_JOBS_MAX;
    while (c->thread_count < threads && pthread_create(&c->threads[c->thread_count], NULL, work, c) == 0) c->thread_count++;
    return JG_OK;
}

static struct timespec after(double ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    const double ns = (double)at.tv_nsec + ms * 1e6;
    const double seconds = (double)(long)(ns / 1e9);
    at.tv_sec += (time_t)seconds;
    at.tv_nsec = (long)(ns - seconds * 1e9);
    return at;
}

int tune_compile_wait(tune_compile *c, size_t step, double wait_ms)
{
    const struct timespec until = after(wait_ms);
    int timed_out = 0;
    pthread_mutex_lock(&c->lock);
    if (c->thread_count == 0 && has_next(c)) make_one(c); /* none could be started */
    while (c->left[step] > 0 && c->status == JG_OK && !timed_out && c->thread_count > 0)
        timed_out = pthread_cond_timedwait(&c->progressed, &c->lock, &until) != 0;
    const int result = c->status != JG_OK ? -1 : c->left[step] == 0;
    pthread_mutex_unlock(&c->lock);
    return result;
}

void tune_compile_stop(tune_compile *c)
{
    if (!c->left) return;
    pthread_mutex_lock(&c->lock);
    c->stops = 1;
    pthread_mutex_unlock(&c->lock);
    images_cancel(c->context->images); /* some take seconds, and time may be over */
    for (size_t i = 0; i < c->thread_count; i++) pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->progressed);
    pthread_mutex_destroy(&c->lock);
    free(c->left);
    c->left = NULL;
    c->thread_count = 0;
}
