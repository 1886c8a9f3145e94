/* jg_close while the worker is in each of its phases, on the fake driver: it comes back soon, calls no hook and no driver
 * afterwards, and what it abandons ends by itself. Phases in which something is compiled need NVRTC, and others planted kernels.
 *
 * How long closing took at most is printed; only a generous bound is asserted. */
#include "gemm_fixture.h"

#include "cache/store_sql.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_CLOSE_MS 5000.0
#define LONGEST_COMPILE_MS 60000.0

static _Alignas(256) float ones[64 * 64];

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void nap(double ms)
{
    nanosleep(&(struct timespec){(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000}, NULL);
}

static int count_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count - 2;
}

/* --- hooks that know whether their context is closed --- */

enum { MOST_CONTEXTS = 1024 };
static atomic_int closed[MOST_CONTEXTS];
static atomic_int next_context, late_calls;

static void on_log(void *user, jg_log_level level, const char *text)
{
    (void)level, (void)text;
    if (atomic_load((atomic_int *)user)) atomic_fetch_add(&late_calls, 1);
}

static void on_trace(void *user, const jg_trace *trace)
{
    (void)trace;
    if (atomic_load((atomic_int *)user)) atomic_fetch_add(&late_calls, 1);
}

/* --- one life of a context --- */

typedef struct life {
    const char *cache;
    const jg_problem *prewarm; /* demanded at jg_open */
    int sizes, calls;          /* of jg_gemm: so many sizes, each so often */
    int polls, waits;          /* jg_poll, jg_wait_idle */
    uint32_t threads;
    int nice;
    int first;                 /* number of the first size, which no kernel is made for yet */
    double delay_ms;           /* from the last call to jg_close */
    jg_status status;          /* of whatever failed first */
    char error[512];
    double close_ms;
} life;

static jg_problem sized(int i)
{
    return (jg_problem){.m = 1 + i % 61, .n = 1 + i / 61 % 61, .k = 1 + i / 61 / 61 + i % 3};
}

/* Contexts may live side by side, on other threads than the test's. */
static void note(life *l, jg_status status)
{
    if (status == JG_OK || l->status != JG_OK) return;
    l->status = status;
    snprintf(l->error, sizeof l->error, "%s: %s", jg_status_name(status), jg_last_error());
}

static void use(life *l, jg_context *c)
{
    static _Thread_local _Alignas(256) float out[64 * 64];
    const jg_operands data = {.a = ones, .b = ones, .c = out};
    for (int round = 0; round < l->calls; round++)
        for (int i = 0; i < l->sizes; i++) {
            const jg_problem p = sized(l->first + i);
            note(l, jg_gemm(c, &p, &data));
        }
    if (l->waits) note(l, jg_wait_idle(c, 0));
    for (int i = 0; i < l->polls; i++) {
        jg_poll_result polled = {0};
        note(l, jg_poll(c, &(jg_poll_limits){.max_kernels = 1}, &polled));
        if (l->waits && !polled.loaded) note(l, JG_ERR_INTERNAL); /* the phase is not what it is meant to be */
    }
    if (l->delay_ms > 0) nap(l->delay_ms);
}

static void live(life *l)
{
    jg_context *c = NULL;
    atomic_int *is_closed = &closed[atomic_fetch_add(&next_context, 1) % MOST_CONTEXTS];
    jg_options options = fixture_options();
    atomic_store(is_closed, 0);
    options.cache_path = l->cache;
    options.compile = JG_COMPILE_BACKGROUND;
    options.resident = JG_RESIDENT_F32;
    options.prewarm = JG_PREWARM_NO_MET; /* what earlier lives have met is new to this one */
    options.log = on_log;
    options.trace = on_trace;
    options.log_user = options.trace_user = is_closed;
    options.prewarm_problems = l->prewarm;
    options.prewarm_count = l->prewarm ? 1 : 0;
    options.worker = (jg_worker_options){.per_minute = 100000, .nice = l->nice, .threads = l->threads};
    note(l, jg_open(&options, &c));
    if (!c) return;
    use(l, c);
    const double start = now_ms();
    note(l, jg_close(c));
    l->close_ms = now_ms() - start;
    atomic_store(is_closed, 1);
}

/* --- what is in the cache file --- */

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

/* The generic kernels, and the own kernels of the first `count` sizes. */
static void plant(int count)
{
    char error[512];
    limits l;
    store *s;
    for (int i = 0; i < 64 * 64; i++) ones[i] = 1;
    if (store_open(fx.cache, 0, 0, &s, error, sizeof error) != STORE_OK) FIXTURE_FAIL("%s", error);
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    plan_generic_set(&(plan_class){JG_F32, JG_F32, JG_MATH_DEFAULT, 0}, &l, plant_spec, s);
    for (int i = 0; i < count; i++) {
        const jg_problem p = sized(i);
        const kernel_spec spec = fixture_spec(&p, JG_FORM_AUTO);
        plant_spec(s, &spec);
    }
    store_close(s);
}

/* --- phases --- */

static double longest, shortest; /* of a phase */

static void check_life(const life *l, const char *what)
{
    if (l->status != JG_OK) FIXTURE_FAIL("%s, %g ms: %s", what, l->delay_ms, l->error);
    if (l->close_ms > longest) longest = l->close_ms;
    if (l->close_ms < shortest) shortest = l->close_ms;
    if (l->close_ms > LONGEST_CLOSE_MS) FIXTURE_FAIL("%s, %g ms: jg_close took %g ms", what, l->delay_ms, l->close_ms);
}

/* What was abandoned ends, and in the end nothing of it has called the driver or a hook. */
static void check_abandoned(const char *what, int threads_before)
{
    const uint64_t calls = fx.fake->all_calls();
    const double end = now_ms() + LONGEST_COMPILE_MS;
    while (count_threads() > threads_before && now_ms() < end) nap(5);
    assert_int_equal(count_threads(), threads_before);
    assert_int_equal(fx.fake->all_calls(), calls);
    assert_int_equal(atomic_load(&late_calls), 0);
    printf("# jg_close, %s: at most %.1f ms\n", what, longest);
    fflush(stdout);
}

/* Lives a phase with each delay, on kernels never made before, with a worker of each priority. */
static void live_through(const char *what, life pattern, const double *delays, int count)
{
    static int next_size = 100;
    const int threads = count_threads();
    longest = 0;
    shortest = INFINITY;
    for (int i = 0; i < 2 * count; i++) {
        life l = pattern;
        const jg_problem p = sized(next_size);
        l.cache = fx.cache;
        l.delay_ms = delays[i / 2];
        l.nice = i & 1 ? JG_NICE_INHERIT : 0;
        if (l.prewarm) l.prewarm = &p;
        if (!l.first) l.first = next_size;
        next_size += l.sizes + 1;
        live(&l);
        check_life(&l, what);
    }
    check_abandoned(what, threads);
}

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

static const double short_delays[] = {0, 0, 0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5};
static const double compile_delays[] = {0, 0.5, 2, 5, 10, 20, 40, 80, 120, 200};

static void closed_unused(void **state)
{
    (void)state;
    plant(0);
    live_through("unused", (life){.calls = 0}, short_delays, COUNT(short_delays));
}

/* The first sighting starts the thread, which looks into the files and finds nothing. */
static void closed_after_a_sighting(void **state)
{
    (void)state;
    plant(0);
    live_through("after a sighting", (life){.sizes = 1, .calls = 1}, short_delays, COUNT(short_delays));
    live_through("after many sightings", (life){.sizes = 40, .calls = 1, .threads = 4}, short_delays, COUNT(short_delays));
}

/* ... or finds the kernel, which is ready then, and maybe taken. */
static void closed_with_kernels_ready(void **state)
{
    (void)state;
    plant(32);
    live_through("with kernels ready", (life){.first = 1, .sizes = 31, .calls = 1}, short_delays, COUNT(short_delays));
    live_through("with kernels taken", (life){.first = 1, .sizes = 31, .calls = 1, .waits = 1, .polls = 5}, short_delays,
                 COUNT(short_delays));
}

static void closed_while_it_compiles(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    plant(0);
    live_through("while it compiles", (life){.sizes = 1, .calls = 2}, compile_delays, COUNT(compile_delays));
    live_through("when it has compiled", (life){.sizes = 1, .calls = 2, .waits = 1, .polls = 1}, compile_delays, 1);
    live_through("while four threads compile", (life){.sizes = 6, .calls = 2, .threads = 4}, compile_delays,
                 COUNT(compile_delays));
}

static void closed_after_a_demand(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    static const jg_problem some;
    plant(0);
    live_through("after a demand", (life){.prewarm = &some}, compile_delays, COUNT(compile_delays));
}

/* Another process is writing to the cache file all the time: what was met cannot be recorded, which costs no time. */
static void closed_while_another_writes(void **state)
{
    (void)state;
    sqlite3 *db;
    plant(0);
    assert_int_equal(sqlite3_open(fx.cache, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    live_through("while another writes", (life){.sizes = 3, .calls = 1}, short_delays, 4);
    assert_true(shortest < STORE_BUSY_MS / 2); /* any one may be held up by the machine */
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* --- contexts side by side --- */

enum { SIDES = 3, LIVES = 12 };

static void *live_often(void *argument)
{
    life *lives = argument;
    for (int i = 0; i < LIVES; i++) live(&lives[i]);
    return NULL;
}

/* They share the cache file, and some of their sizes. */
static void closed_side_by_side(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    static life lives[SIDES][LIVES];
    pthread_t threads[SIDES];
    plant(0);
    longest = 0;
    shortest = INFINITY;
    const int before = count_threads();
    memset(lives, 0, sizeof lives);
    for (int t = 0; t < SIDES; t++)
        for (int i = 0; i < LIVES; i++)
            lives[t][i] = (life){.cache = fx.cache, .first = 1000 + 2 * i + t, .sizes = 2, .calls = 1 + i % 2,
                                 .threads = 1 + (unsigned)i % 2, .delay_ms = compile_delays[i % COUNT(compile_delays)] / 2,
                                 .polls = 1, .nice = JG_NICE_INHERIT};
    for (int t = 0; t < SIDES; t++) assert_int_equal(pthread_create(&threads[t], NULL, live_often, lives[t]), 0);
    for (int t = 0; t < SIDES; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < SIDES; t++)
        for (int i = 0; i < LIVES; i++) check_life(&lives[t][i], "side by side");
    check_abandoned("side by side", before);
}

static void *do_nothing(void *argument)
{
    return argument;
}

/* ThreadSanitizer has a thread of its own, from the program's first one on. */
static int start_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    return pthread_create(&thread, NULL, do_nothing, NULL) || pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(closed_unused),
        FIXTURE_TEST(closed_after_a_sighting),
        FIXTURE_TEST(closed_with_kernels_ready),
        FIXTURE_TEST(closed_while_it_compiles),
        FIXTURE_TEST(closed_after_a_demand),
        FIXTURE_TEST(closed_while_another_writes),
        FIXTURE_TEST(closed_side_by_side),
    };
    return cmocka_run_group_tests(tests, start_a_thread, NULL);
}
