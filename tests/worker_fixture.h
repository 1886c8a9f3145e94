/* A worker whose hooks are doubles: no compiler, no file, no device.
 *
 * Kernels are numbers (spec.m); what bringing one does is set in scene.kernels. What the hooks were asked is kept in a text, e.g.
 * "f3 c3" (kernel 3 looked for in the files, then compiled). The clock stands still unless a test moves it. */
#ifndef JG_TEST_WORKER_FIXTURE_H
#define JG_TEST_WORKER_FIXTURE_H

#include "src/compile.h"
#include "src/worker_state.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { KERNELS = 256 };

/* What bringing a kernel does. */
typedef struct scripted {
    jg_status cached, compiled;
    size_t bytes;
    int blocks;      /* waits for scene.go, after posting scene.entered */
} scripted;

typedef struct scene {
    worker *w;
    pthread_mutex_t lock;        /* guards the texts */
    char brought[8192];          /* "f3" and "c3" */
    char traced[8192];           /* "ready3", "fail3", "drop3" */
    char label[JG_PROBLEM_TEXT_BYTES]; /* the last one that bring was given */
    scripted kernels[KERNELS];
    double gain;                 /* what the gain hook says */
    int gain_blocks;             /* so many times, as scripted.blocks */
    int record_blocks;
    sem_t entered, go;
    atomic_int released, gains, records, compiles;
    atomic_uint_fast64_t recorded;
    int stored;                  /* a compiled kernel is found in the files afterwards */
    void (*inside)(struct scene *s); /* called by bring, if set */
} scene;

static _Atomic double fixture_time = 1e6;

static inline double fixture_now(void)
{
    return atomic_load(&fixture_time);
}

static inline void append(scene *s, char *text, size_t size, const char *what, int number)
{
    pthread_mutex_lock(&s->lock);
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s%d", length ? " " : "", what, number);
    pthread_mutex_unlock(&s->lock);
}

static inline jg_status fixture_bring(void *user, const kernel_spec *spec, const char *label, bring_how how, image *out)
{
    scene *s = user;
    const int number = (int)spec->m;
    scripted *k = &s->kernels[number % KERNELS];
    append(s, s->brought, sizeof s->brought, how == BRING_CACHED ? "f" : "c", number);
    if (s->inside) s->inside(s);
    if (k->blocks) {
        sem_post(&s->entered);
        sem_wait(&s->go);
    }
    pthread_mutex_lock(&s->lock);
    snprintf(s->label, sizeof s->label, "%s", label);
    jg_status status = how == BRING_CACHED ? k->cached : k->compiled;
    const size_t bytes = k->bytes ? k->bytes : 8;
    pthread_mutex_unlock(&s->lock);
    if (status != JG_OK) return status;
    if (how == BRING_COMPILED) {
        atomic_fetch_add(&s->compiles, 1);
        pthread_mutex_lock(&s->lock);
        if (s->stored) k->cached = JG_OK;
        pthread_mutex_unlock(&s->lock);
    }
    *out = (image){.cubin = malloc(1), .cubin_bytes = bytes}; /* the bytes are only counted */
    return JG_OK;
}

static inline double fixture_gain(void *user, const problem_key *key)
{
    scene *s = user;
    (void)key;
    atomic_fetch_add(&s->gains, 1);
    if (s->gain_blocks > 0) {
        s->gain_blocks--;
        sem_post(&s->entered);
        sem_wait(&s->go);
    }
    return s->gain;
}

static inline void fixture_record(void *user, met *const *mets, const uint64_t *counts, size_t count)
{
    scene *s = user;
    for (size_t i = 0; i < count; i++) {
        assert_true(mets[i]->key.problem.m > 0 && counts[i] > 0);
        atomic_fetch_add(&s->recorded, counts[i]);
    }
    atomic_fetch_add(&s->records, 1);
    if (s->record_blocks > 0) {
        s->record_blocks--;
        sem_post(&s->entered);
        sem_wait(&s->go);
    }
}

static inline void fixture_trace(void *user, jg_event event, const met *m, const kernel_spec *spec)
{
    scene *s = user;
    const char *what = event == JG_EVENT_READY ? "ready" : event == JG_EVENT_FAIL ? "fail" : "drop";
    if (m) assert_true(m->key.problem.m > 0);
    append(s, s->traced, sizeof s->traced, what, (int)spec->m);
}

static inline void fixture_release(void *user)
{
    atomic_fetch_add(&((scene *)user)->released, 1);
}

static inline worker_hooks fixture_hooks(scene *s)
{
    return (worker_hooks){s, fixture_bring, fixture_gain, fixture_record, fixture_trace, fixture_release};
}

/* At the test's own niceness, so that a machine with much to do does not keep it waiting. */
static inline jg_worker_options fixture_options(void)
{
    return (jg_worker_options){.threads = 1, .nice = JG_NICE_INHERIT, .queue = 256, .per_minute = 60};
}

static inline jg_worker_options options_with(uint32_t threads, uint32_t queue, uint32_t per_minute)
{
    return (jg_worker_options){.threads = threads, .nice = JG_NICE_INHERIT, .queue = queue, .per_minute = per_minute};
}

/* --- starting threads --- */

static int spawn_error;             /* what the double says instead of starting one */
static atomic_int spawns;
static pthread_t spawner;           /* who asked for the last one */

static inline int fixture_spawn(pthread_t *thread, void *(*body)(void *), void *argument)
{
    atomic_fetch_add(&spawns, 1);
    spawner = pthread_self();
    return spawn_error ? spawn_error : compile_spawn(thread, body, argument);
}

/* Threads begin only when a test lets them, so that it can act while none runs. */
static sem_t held_threads;
static void *(*held_body)(void *);

static inline void *run_held(void *argument)
{
    sem_wait(&held_threads);
    return held_body(argument);
}

static inline int held_spawn(pthread_t *thread, void *(*body)(void *), void *argument)
{
    held_body = body;
    return compile_spawn(thread, run_held, argument);
}

static inline void scene_hold(scene *s)
{
    (void)s;
    sem_init(&held_threads, 0, 0);
    worker_spawn = held_spawn;
}

static inline void scene_release(scene *s)
{
    (void)s;
    sem_post(&held_threads);
}

static inline void nap(double ms)
{
    nanosleep(&(struct timespec){(time_t)(ms / 1e3), (long)(fmod(ms, 1e3) * 1e6)}, NULL);
}

/* --- scenes --- */

/* Nothing is in the files, everything compiles. */
static inline void scene_init(scene *s)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    sem_init(&s->entered, 0, 0);
    sem_init(&s->go, 0, 0);
    for (int i = 0; i < KERNELS; i++)
        s->kernels[i].cached = JG_ERR_NOT_READY;
    worker_now_ms = fixture_now;
    worker_spawn = fixture_spawn;
    worker_stop_ms = 60e3; /* however slow the machine */
    worker_nap_ms = 0;
    spawn_error = 0;
    atomic_store(&spawns, 0);
    alarm(300); /* a test that hangs fails */
}

static inline void scene_start(scene *s, const jg_worker_options *options, int may_compile, int has_store)
{
    const worker_hooks hooks = fixture_hooks(s);
    s->stored = has_store;
    s->w = worker_create(options, may_compile, has_store, &hooks);
    assert_non_null(s->w);
}

/* The usual one. */
static inline void scene_open(scene *s)
{
    const jg_worker_options options = fixture_options();
    scene_init(s);
    scene_start(s, &options, 1, 1);
}

static inline void scene_stop(scene *s)
{
    worker_stop(s->w);
    assert_int_equal(atomic_load(&s->released), 1);
}

static inline void scene_end(scene *s)
{
    pthread_mutex_destroy(&s->lock);
    sem_destroy(&s->entered);
    sem_destroy(&s->go);
}

static inline void scene_close(scene *s)
{
    scene_stop(s);
    scene_end(s);
}

static inline kernel_spec spec_of(int number)
{
    return (kernel_spec){.family = FAMILY_SIMT, .arch = 87, .form = JG_FORM_SPECIALISED, .type_a = JG_F32, .type_b = JG_F32,
                         .fusion = JG_F32 << FUSION_TYPE_C_SHIFT, .tile = {64, 64, 8, 4, 4, 2, 1}, .m = number, .n = 1, .k = 1};
}

/* A problem that wants kernel `number`; one of several, told apart by its batch. */
static inline met *met_of(int number, int batch)
{
    problem_key key;
    memset(&key, 0, sizeof key);
    key.problem = (problem){.m = number, .n = 1, .k = 1, .batch = batch, .lda = 1, .ldb = 1, .ldc = 1, .type_a = JG_F32,
                            .type_b = JG_F32, .type_c = JG_F32, .stride_a = number, .stride_b = 1, .stride_c = number};
    const kernel_spec spec = spec_of(number);
    met *m = met_create(&key, &spec, 1);
    assert_non_null(m);
    return m;
}

/* --- doing --- */

/* What is told to the worker in between is seen by it all at once. */
static inline void freeze(scene *s)
{
    pthread_mutex_lock(&s->w->lock);
}

static inline void thaw(scene *s)
{
    pthread_mutex_unlock(&s->w->lock);
}

static inline void sight(scene *s, met *m, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(worker_sight(s->w, m), 0);
}

static inline void demand_number(scene *s, int number)
{
    const kernel_spec spec = spec_of(number);
    assert_int_equal(worker_demand(s->w, &spec, NULL, 0), JG_OK);
}

/* Waits as long as a slow machine may need. */
static inline void settle(scene *s)
{
    assert_int_equal(worker_wait_idle(s->w, 60e3), 1);
}

/* Waits until all threads sleep and nobody has woken one. Unlike settle it does not make the worker record. */
static inline void rest(scene *s)
{
    for (int asleep = 0; !asleep; nap(0.2)) {
        int value;
        pthread_mutex_lock(&s->w->lock);
        sem_getvalue(&s->w->wake, &value);
        asleep = !value && !atomic_load(&s->w->wake_posted) && (int)s->w->sleeping == atomic_load(&s->w->threads);
        pthread_mutex_unlock(&s->w->lock);
    }
}

/* Makes the worker look at the clock. */
static inline void poke(scene *s)
{
    worker_wake(s->w);
    rest(s);
}

/* After so many milliseconds of the worker's clock. */
static inline void pass_time(double ms)
{
    atomic_store(&fixture_time, atomic_load(&fixture_time) + ms);
}

/* What the hooks were asked since the last time. */
static inline void assert_brought(scene *s, const char *expected)
{
    pthread_mutex_lock(&s->lock);
    assert_string_equal(s->brought, expected);
    s->brought[0] = 0;
    pthread_mutex_unlock(&s->lock);
}

static inline void assert_traced(scene *s, const char *expected)
{
    pthread_mutex_lock(&s->lock);
    assert_string_equal(s->traced, expected);
    s->traced[0] = 0;
    pthread_mutex_unlock(&s->lock);
}

/* The kernels taken, as a text; frees them. */
static inline void assert_taken(scene *s, const char *expected)
{
    char text[4096] = "";
    ready_kernel *list = worker_take(s->w);
    while (list) {
        ready_kernel *next = list->next;
        const size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%d", length ? " " : "", (int)list->spec.m);
        ready_free(list);
        list = next;
    }
    assert_string_equal(text, expected);
}

static inline void take_all(scene *s)
{
    for (ready_kernel *list = worker_take(s->w), *next; list; list = next) {
        next = list->next;
        ready_free(list);
    }
}

static inline worker_stats stats_of(scene *s)
{
    worker_stats stats;
    worker_get_stats(s->w, &stats);
    return stats;
}

#endif
