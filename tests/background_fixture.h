/* Common ground of the tests of background mode on the fake driver: cache files with the generic set, contexts with the fake
 * NVRTC, and a record of what the trace hook is told. */
#ifndef JG_TESTS_BACKGROUND_FIXTURE_H
#define JG_TESTS_BACKGROUND_FIXTURE_H

#include "fake_nvrtc.h"
#include "gemm_fixture.h"

#include "worker_state.h"

#include <errno.h>
#include <pthread.h>

/* --- events --- */

enum { EVENT_KINDS = JG_EVENT_DROP + 1, MAX_EVENTS = 4096 };

typedef struct seen_event {
    jg_event event;
    char problem[JG_PROBLEM_TEXT_BYTES], kernel[KERNEL_NAME_BYTES];
    double ms;
} seen_event;

/* The events of all contexts of a test, in order. */
static struct {
    pthread_mutex_t lock;
    size_t count;
    seen_event list[MAX_EVENTS];
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void events_trace(void *user, const jg_trace *trace)
{
    (void)user;
    pthread_mutex_lock(&events.lock);
    if (events.count < MAX_EVENTS) {
        seen_event *e = &events.list[events.count++];
        e->event = trace->event;
        e->ms = trace->ms;
        snprintf(e->problem, sizeof e->problem, "%s", trace->problem);
        snprintf(e->kernel, sizeof e->kernel, "%s", trace->kernel);
    }
    pthread_mutex_unlock(&events.lock);
}

static inline void events_forget(void)
{
    pthread_mutex_lock(&events.lock);
    events.count = 0;
    pthread_mutex_unlock(&events.lock);
}

/* How many of a kind there were. */
static inline int events_of(jg_event event)
{
    int count = 0;
    pthread_mutex_lock(&events.lock);
    for (size_t i = 0; i < events.count; i++) count += events.list[i].event == event;
    pthread_mutex_unlock(&events.lock);
    return count;
}

/* The last of a kind; zeros if there was none. */
static inline seen_event events_last(jg_event event)
{
    seen_event last = {.event = event};
    pthread_mutex_lock(&events.lock);
    for (size_t i = 0; i < events.count; i++)
        if (events.list[i].event == event) last = events.list[i];
    pthread_mutex_unlock(&events.lock);
    return last;
}

/* All since events_forget, one letter each: Hit, Generic, Wait, Compile, Ready, Swap, Evict, Fail, Drop. */
static inline const char *events_text(void)
{
    static char text[MAX_EVENTS + 1];
    pthread_mutex_lock(&events.lock);
    for (size_t i = 0; i < events.count; i++) text[i] = "HGWCRSEFD"[events.list[i].event];
    text[events.count] = 0;
    pthread_mutex_unlock(&events.lock);
    return text;
}

/* --- files --- */

typedef struct spec_list {
    kernel_spec specs[256];
    size_t count;
} spec_list;

static inline void add_spec(void *user, const kernel_spec *spec)
{
    spec_list *list = user;
    assert_true(list->count < sizeof list->specs / sizeof list->specs[0]);
    list->specs[list->count++] = *spec;
}

typedef struct set_request {
    const limits *l;
    spec_list *list;
} set_request;

static inline void add_class(void *user, const plan_class *what)
{
    set_request *request = user;
    plan_generic_set(what, request->l, add_spec, request->list);
}

/* The generic kernels of types, JG_RESIDENT_ flags, as an Orin wants them. */
static inline spec_list generic_set(uint32_t types)
{
    spec_list list = {.count = 0};
    limits l;
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    set_request request = {&l, &list};
    plan_each_resident(types, add_class, &request);
    return list;
}

#define COMMON_TYPES (JG_RESIDENT_F32 | JG_RESIDENT_F16)

/* Puts the generic set into a file; returns how many kernels it has. */
static inline size_t plant_generic(const char *file, uint32_t types)
{
    const spec_list list = generic_set(types);
    fixture_plant_specs(file, list.specs, list.count);
    return list.count;
}

/* Puts the kernels of squares of consecutive sizes into the cache file. */
static inline void plant_squares(int64_t first, size_t count, jg_type type)
{
    kernel_spec specs[512];
    assert_true(count <= sizeof specs / sizeof specs[0]);
    for (size_t i = 0; i < count; i++) {
        const jg_problem p = square(first + (int64_t)i, type);
        specs[i] = fixture_spec(&p, JG_FORM_AUTO);
    }
    fixture_plant_specs(fx.cache, specs, count);
}

/* --- contexts --- */

static fake_nvrtc *nvrtc_double;

static inline int background_setup(void **state)
{
    nvrtc_double = fake_nvrtc_open();
    events_forget();
    return fixture_setup(state);
}

#define BACKGROUND_TEST(function) cmocka_unit_test_setup_teardown(function, background_setup, fixture_teardown)

/* Background mode with the fake NVRTC, which refuses at first, and the trace hook. */
static inline jg_options background_options(void)
{
    jg_options options = fixture_options();
    options.compile = JG_COMPILE_BACKGROUND;
    options.nvrtc_path = fake_nvrtc_path();
    options.log_level = JG_LOG_INFO;
    options.trace = events_trace;
    options.worker.nice = JG_NICE_INHERIT;
    options.worker.per_minute = 100000;
    return options;
}

static inline jg_context *background_open(void)
{
    return fixture_open_with(background_options());
}

static inline void settle(jg_context *c)
{
    assert_status(jg_wait_idle(c, 0), JG_OK);
}

/* Closes a context whose worker has ended its work, so that nothing of it runs into the next test. */
static inline void finish(jg_context *c)
{
    settle(c);
    assert_status(jg_close(c), JG_OK);
}

static inline jg_poll_result poll_once(jg_context *c)
{
    jg_poll_result result;
    assert_status(jg_poll(c, &(jg_poll_limits){.max_kernels = 10000, .max_ms = 1e9}, &result), JG_OK);
    return result;
}

/* Whether the last launch was of a problem's kernel in this form. */
static inline int ran_on(const jg_problem *p, jg_form form)
{
    return strcmp(fx.fake->last_launch().kernel, fixture_name(p, form)) == 0;
}

#define LOADS() fx.fake->calls("cuModuleLoadDataEx")
#define LAUNCHES() fx.fake->calls("cuLaunchKernel")

#endif
