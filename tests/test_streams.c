/* Many threads on one context, on the fake driver with planted kernels, and room for so few that kernels come and go all the
 * time: callers on streams of their own, one that polls, one that asks and prewarms. For ThreadSanitizer; and in the end what was
 * counted adds up, every result was right, and nothing was misused or leaked. With real kernels: test_streams_swgpu.c. */
#include "gemm_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { CALLERS = 4, SIZES = 24, PLANTED = 16, ROOM = 3, SIDE = 32 };
enum { ROUNDS = 500, MOST_ROUNDS = 100000 }; /* of each caller: more than ROUNDS only until there was enough traffic */

static _Alignas(256) float ones[SIDE * SIDE];

/* The first PLANTED have their own kernel in the cache file; that of the others cannot be made. */
static jg_problem sized(int i)
{
    return (jg_problem){.m = 4 + i, .n = 28 - i, .k = 5 + i % 7};
}

static void plant_spec(void *user, const kernel_spec *spec)
{
    kernel_key key;
    char name[KERNEL_NAME_BYTES];
    unsigned char cubin[1024];
    kernel_encode_key(spec, &key);
    kernel_format_name(spec, name);
    const store_record record = {.key = key.bytes, .key_bytes = sizeof key.bytes, .name = name, .target = "sm_87",
                                 .label = "planted", .provenance = "planted", .binary = cubin,
                                 .binary_bytes = fixture_cubin(name, cubin), .source = "none", .build_ms = 12};
    assert_int_equal(store_put(user, &record, NULL), STORE_OK);
}

static void plant_all(void)
{
    char error[512];
    limits l;
    store *s;
    if (store_open(fx.cache, 0, 0, &s, error, sizeof error) != STORE_OK) FIXTURE_FAIL("%s", error);
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    plan_generic_set(&(plan_class){JG_F32, JG_F32, JG_MATH_DEFAULT, 0}, &l, plant_spec, s);
    for (int i = 0; i < PLANTED; i++) {
        const jg_problem p = sized(i);
        const kernel_spec spec = fixture_spec(&p, JG_FORM_AUTO);
        plant_spec(s, &spec);
    }
    store_close(s);
}

/* --- what all threads share --- */

static struct {
    jg_context *context;
    atomic_int stop, failures;
    atomic_int enough;                  /* has_traffic */
    char failure[1024];                 /* the first one */
    atomic_uint_fast64_t launches, lookups;
    atomic_uint_fast64_t events[JG_EVENT_DROP + 1];
    atomic_size_t loaded, swapped, unloaded; /* by jg_poll */
} shared;

/* cmocka's own assertions must not be used on other threads. */
static void note_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note_failure(const char *format, ...)
{
    va_list args;
    if (atomic_fetch_add(&shared.failures, 1)) return;
    va_start(args, format);
    vsnprintf(shared.failure, sizeof shared.failure, format, args);
    va_end(args);
}

#define EXPECT(call, fine)                                                                                   \
    do {                                                                                                     \
        const jg_status got = (call);                                                                        \
        if (!(fine)) note_failure("%s: %s (%s)", #call, jg_status_name(got), jg_last_error());               \
    } while (0)

static void count_event(void *user, const jg_trace *trace)
{
    (void)user;
    atomic_fetch_add(&shared.events[trace->event], 1);
}

/* --- callers --- */

typedef struct caller {
    uint64_t random;
    CUstream stream;
    int captures;   /* its stream is being captured now and then */
    int wildcard;   /* policies change from call to call; else that of the context */
    _Alignas(256) float c[SIDE * SIDE];
} caller;

static unsigned below(caller *me, unsigned bound)
{
    return (unsigned)(reference_random(&me->random) >> 33) % bound;
}

static jg_problem any_problem(caller *me)
{
    static const jg_compile policies[] = {JG_COMPILE_DEFAULT, JG_COMPILE_BACKGROUND, JG_COMPILE_WAIT, JG_COMPILE_NEVER};
    jg_problem p = sized((int)below(me, SIZES));
    if (me->wildcard) p.compile = policies[below(me, 4)];
    return p;
}

static jg_operands any_operands(caller *me)
{
    memset(me->c, 0, sizeof me->c);
    return (jg_operands){.a = ones, .b = ones, .c = me->c, .stream = me->stream};
}

static void check(const caller *me, const jg_problem *p)
{
    atomic_fetch_add(&shared.launches, 1);
    for (int64_t i = 0; i < SIDE * SIDE; i++) {
        const float expected = i < p->m * p->n ? (float)p->k : 0;
        if (me->c[i] == expected) continue;
        note_failure("%dx%dx%d: element %d is %g instead of %g", (int)p->m, (int)p->n, (int)p->k, (int)i, me->c[i], expected);
        return;
    }
}

static void call_gemm(caller *me)
{
    const jg_problem p = any_problem(me);
    const jg_operands data = any_operands(me);
    atomic_fetch_add(&shared.lookups, 1);
    EXPECT(jg_gemm(shared.context, &p, &data), got == JG_OK);
    check(me, &p);
}

/* No generic kernel can stand in for this one. */
static void call_specialised(caller *me)
{
    jg_problem p = any_problem(me);
    const jg_operands data = any_operands(me);
    int ran = 0;
    p.form = JG_FORM_SPECIALISED;
    atomic_fetch_add(&shared.lookups, 1);
    EXPECT(jg_gemm(shared.context, &p, &data), (ran = got == JG_OK) || got == JG_ERR_NOT_READY || got == JG_ERR_NO_NVRTC);
    if (ran) check(me, &p);
}

static void call_plan(caller *me)
{
    const jg_problem p = any_problem(me);
    jg_plan *made = NULL;
    jg_plan_details details;
    atomic_fetch_add(&shared.lookups, 1);
    EXPECT(jg_plan_create(shared.context, &p, &made), got == JG_OK);
    for (unsigned runs = below(me, 4); made && runs; runs--) {
        const jg_operands data = any_operands(me);
        EXPECT(jg_plan_run(made, &data), got == JG_OK);
        check(me, &p);
        if (runs == 2) sched_yield();
    }
    if (made) EXPECT(jg_plan_info(made, &details), got == JG_OK);
    jg_plan_destroy(made);
}

static void *run_caller(void *argument)
{
    caller *me = argument;
    for (int round = 0; round < ROUNDS || (!atomic_load(&shared.enough) && round < MOST_ROUNDS); round++) {
        if (atomic_load(&shared.failures)) break;
        if (me->captures && round % 20 == 0) fx.fake->set_capturing(me->stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
        if (me->captures && round % 20 == 5) fx.fake->set_capturing(me->stream, CU_STREAM_CAPTURE_STATUS_NONE);
        const unsigned what = below(me, 10);
        if (what < 6) call_gemm(me);
        else if (what < 9) call_plan(me);
        else call_specialised(me);
    }
    return NULL;
}

/* --- the others --- */

static void add_polled(const jg_poll_result *one)
{
    atomic_fetch_add(&shared.loaded, one->loaded);
    atomic_fetch_add(&shared.swapped, one->swapped);
    atomic_fetch_add(&shared.unloaded, one->unloaded);
}

static void *run_poller(void *argument)
{
    caller *me = argument;
    while (!atomic_load(&shared.stop)) {
        jg_poll_result one = {0};
        const jg_poll_limits bounds = {.max_kernels = 1 + below(me, 3), .max_ms = 0.05 * (1 + below(me, 4))};
        EXPECT(jg_poll(shared.context, below(me, 8) ? &bounds : NULL, &one), got == JG_OK);
        add_polled(&one);
        sched_yield();
    }
    return NULL;
}

static void check_growth(const jg_stats *now, jg_stats *before)
{
    const uint64_t rows[][2] = {
        {now->launches_own, before->launches_own}, {now->launches_generic, before->launches_generic}, {now->swaps, before->swaps},
        {now->evictions, before->evictions}, {now->waits, before->waits}, {now->captured, before->captured},
        {now->memory_hits, before->memory_hits}, {now->disk_hits, before->disk_hits},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i][0] < rows[i][1])
            note_failure("counter %d has fallen from %d to %d", (int)i, (int)rows[i][1], (int)rows[i][0]);
    *before = *now;
}

/* That the test has met what it is about. */
static int has_traffic(const jg_stats *s)
{
    return s->launches_own && s->launches_generic && s->swaps && s->evictions > 2 * ROOM && s->captured && shared.loaded &&
           shared.swapped && shared.unloaded;
}

static void *run_observer(void *argument)
{
    caller *me = argument;
    jg_stats before = {0}, now;
    char text[4096];
    while (!atomic_load(&shared.stop)) {
        const jg_problem p = sized((int)below(me, SIZES)), planted = sized((int)below(me, PLANTED));
        EXPECT(jg_cache_stats(shared.context, &now), got == JG_OK);
        check_growth(&now, &before);
        if (has_traffic(&now)) atomic_store(&shared.enough, 1);
        EXPECT(jg_wait_idle(shared.context, 0.5), got == JG_OK || got == JG_ERR_NOT_READY);
        EXPECT(jg_prewarm(shared.context, &planted, 1, NULL, NULL), got == JG_OK);
        EXPECT(jg_prewarm(shared.context, &p, 1, NULL, NULL), got == JG_OK || got == JG_ERR_NO_NVRTC);
        EXPECT(jg_plan_explain(shared.context, &p, text, sizeof text, NULL), got == JG_OK);
    }
    return NULL;
}

/* --- the test --- */

static void run_threads(int wildcard)
{
    static caller callers[CALLERS + 2];
    pthread_t threads[CALLERS + 2];
    memset(callers, 0, sizeof callers);
    for (int i = 0; i < CALLERS + 2; i++) {
        callers[i] = (caller){.random = (uint64_t)(i + 1), .stream = (CUstream)(uintptr_t)(0x1000 * (i + 1)), .captures = i == 0,
                              .wildcard = wildcard};
        void *(*const body)(void *) = i < CALLERS ? run_caller : i == CALLERS ? run_poller : run_observer;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    atomic_store(&shared.stop, 1);
    for (int i = CALLERS; i < CALLERS + 2; i++) pthread_join(threads[i], NULL);
    if (shared.failures) FIXTURE_FAIL("%s", shared.failure);
}

/* What the worker has held back, since too many kernels were ready, comes once those are taken. */
static void poll_the_rest(void)
{
    const jg_poll_limits bounds = {.max_kernels = 1000, .max_ms = 1e6};
    jg_poll_result one;
    do {
        assert_status(jg_wait_idle(shared.context, 0), JG_OK);
        assert_status(jg_poll(shared.context, &bounds, &one), JG_OK);
        add_polled(&one);
    } while (one.loaded + one.unloaded || fixture_stats(shared.context).ready);
}

static void check_sums(const jg_stats *s)
{
    const uint64_t loads = fx.fake->calls("cuModuleLoadDataEx"), unloads = fx.fake->calls("cuModuleUnload");
    assert_int_equal(s->launches_own + s->launches_generic, shared.launches);
    assert_int_equal(fx.fake->calls("cuLaunchKernel"), shared.launches);
    assert_int_equal(s->memory_hits + s->memory_misses, shared.lookups);
    assert_int_equal(loads - unloads, s->kernels);
    assert_int_equal(fx.fake->modules(), s->kernels);
    assert_int_equal(fx.fake->calls("cuThreadExchangeStreamCaptureMode"), 2 * (loads + unloads));
    assert_true(s->evictions <= unloads); /* a kernel that two threads have loaded at once is unloaded, not evicted */
    assert_true(shared.loaded <= loads);
    assert_true(shared.unloaded <= s->evictions);
    assert_true(shared.swapped <= s->swaps);
    assert_int_equal(shared.events[JG_EVENT_HIT], s->launches_own);
    assert_int_equal(shared.events[JG_EVENT_GENERIC], s->launches_generic);
    assert_int_equal(shared.events[JG_EVENT_SWAP], s->swaps);
    assert_int_equal(shared.events[JG_EVENT_EVICT], s->evictions);
    assert_int_equal(shared.events[JG_EVENT_WAIT], s->waits);
    assert_int_equal(shared.events[JG_EVENT_DROP], s->dropped);
    assert_int_equal(s->compiles, 0);
    assert_int_equal(s->disk_faults, 0);
    assert_int_equal(s->dropped, 0);
    assert_int_equal(s->ready, 0);
}

static void share_a_context(int wildcard)
{
    jg_options options = fixture_options();
    uint64_t residents = 0;
    limits l;
    memset(&shared, 0, sizeof shared);
    for (int i = 0; i < SIDE * SIDE; i++) ones[i] = 1;
    plant_all();
    options.compile = JG_COMPILE_BACKGROUND;
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    options.resident = JG_RESIDENT_F32;
    options.trace = count_event;
    options.worker = (jg_worker_options){.nice = JG_NICE_INHERIT, .per_minute = 100000, .threads = 2};
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    jg_context *c = fixture_open_with(options);
    residents = fixture_stats(c).resident;
    assert_true(residents > 0);
    assert_status(jg_close(c), JG_OK);
    fx.fake->reset();

    options.memory_max_kernels = (uint32_t)residents + ROOM;
    shared.context = fixture_open_with(options);
    run_threads(wildcard);
    poll_the_rest();
    const jg_stats s = fixture_stats(shared.context);
    check_sums(&s);
    assert_true(has_traffic(&s));
    assert_int_equal(s.resident, residents);
    assert_true(s.kernels <= residents + (s.captured > ROOM ? s.captured : ROOM));
    assert_status(jg_close(shared.context), JG_OK);
}

static void callers_in_background_mode(void **state)
{
    (void)state;
    share_a_context(0);
    assert_true(shared.events[JG_EVENT_READY] > 0);
}

static void callers_with_all_policies(void **state)
{
    (void)state;
    share_a_context(1);
    assert_true(shared.events[JG_EVENT_WAIT] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(callers_in_background_mode),
        FIXTURE_TEST(callers_with_all_policies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
