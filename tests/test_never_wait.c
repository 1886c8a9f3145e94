/* The promise itself, on the software GPU with the real NVRTC: what a call may not do is made impossible, and calls go on.
 *
 * Outside jg_open, jg_poll and jg_close every driver call that loads, unloads, allocates or frees fails; and while a thread is inside
 * a call, every file-system call, dlopen and call of NVRTC that it makes is refused and noted (guard.h). */
#include "context.h"
#include "guard.h"
#include "jitgemm.h"
#include "scratch.h"
#include "swgpu/swgpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FORBIDDEN                                                                                                       \
    "cuModuleLoadDataEx:1+:CUDA_ERROR_NOT_PERMITTED,cuModuleUnload:1+:CUDA_ERROR_NOT_PERMITTED,"                        \
    "cuModuleGetFunction:1+:CUDA_ERROR_NOT_PERMITTED,cuMemAlloc_v2:1+:CUDA_ERROR_NOT_PERMITTED,"                        \
    "cuMemFree_v2:1+:CUDA_ERROR_NOT_PERMITTED,cuStreamSynchronize:1+:CUDA_ERROR_NOT_PERMITTED,"                         \
    "cuCtxSynchronize:1+:CUDA_ERROR_NOT_PERMITTED,cuMemcpy:1+:CUDA_ERROR_NOT_PERMITTED"

enum { THREADS = 3, SIZES = 8, ROUNDS = 3, SIDE = 96, BYTES = SIDE * SIDE * 4 };

static char folder[4096], warm[4200];
static int (*set_faults)(const char *);
static const char *nvrtc_path; /* the watched one */

static const char *build_folder(void)
{
    const char *folder_of_tests = getenv("JG_TEST_BUILD_DIR");
    return folder_of_tests ? folder_of_tests : "build";
}

/* The NVRTC that the guarded one passes calls on to: the first that the usual places have. */
static void find_real_nvrtc(void)
{
    static const char *const places[] = {"/usr/local/cuda/lib64/libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
    const char *given = getenv("JITGEMM_NVRTC");
    if (given && *given) {
        setenv("JG_GUARDED_NVRTC", given, 1);
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        void *handle = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        if (!handle) continue;
        setenv("JG_GUARDED_NVRTC", places[i], 1);
        return;
    }
}

/* --- the cache that an integrator would ship: the generic set and nothing else --- */

static int make_warm_cache(void **state)
{
    (void)state;
    jg_context *c;
    scratch_make(folder);
    snprintf(warm, sizeof warm, "%s/warm.db", folder);
    const jg_options options = {.driver_path = "swgpu", .compile = JG_COMPILE_WAIT, .cache_path = warm, .factory_path = "",
                                .nvrtc_path = nvrtc_path};
    const jg_prewarm_options generic = {.types = JG_RESIDENT_F32 | JG_RESIDENT_F16};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    jg_status status = jg_prewarm(c, NULL, 0, &generic, NULL);
    jg_close(c);
    if (status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", jg_last_error());
        warm[0] = 0;
        return 0;
    }
    if (status != JG_OK) fail_msg("%s", jg_last_error());
    char path[4200];
    snprintf(path, sizeof path, "%s/lib/libjitgemm-swgpu.so", build_folder());
    void *swgpu = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!swgpu) fail_msg("%s", dlerror());
    *(void **)&set_faults = dlsym(swgpu, "swgpuSetFaults");
    assert_non_null(set_faults);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

/* A cache file of the test's own, with the generic set in it. */
static const char *own_cache(const char *name)
{
    if (!warm[0]) skip();
    char command[3 * 4200];
    const char *path = scratch_path(folder, name);
    snprintf(command, sizeof command, "cp '%s' '%s'", warm, path);
    assert_int_equal(system(command), 0);
    return path;
}

static jg_context *open_context(const char *cache, jg_compile policy)
{
    jg_context *c;
    const jg_options options = {.driver_path = "swgpu", .compile = policy, .cache_path = cache, .factory_path = "",
                                .nvrtc_path = nvrtc_path, .worker = {.per_minute = 100000, .nice = JG_NICE_INHERIT}};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    return c;
}

static void forbid(int on)
{
    assert_int_equal(set_faults(on ? FORBIDDEN : ""), 0);
}

static jg_stats stats_of(jg_context *c)
{
    jg_stats s;
    assert_int_equal(jg_cache_stats(c, &s), JG_OK);
    return s;
}

/* Takes in all that is ready. */
static jg_poll_result poll_all(jg_context *c)
{
    jg_poll_result sum = {0}, one;
    do {
        if (jg_poll(c, NULL, &one) != JG_OK) fail_msg("jg_poll: %s", jg_last_error());
        sum.loaded += one.loaded;
        sum.swapped += one.swapped;
        sum.unloaded += one.unloaded;
    } while (one.left);
    return sum;
}

/* --- callers --- */

typedef struct caller {
    jg_context *context;
    int index;
    void *a, *b, *c[SIZES];
    jg_status status;
    char error[512];
} caller;

/* Sizes no two of which are equal, in both types, so that each is a kernel of its own. */
static jg_problem problem_of(int thread, int i)
{
    const int number = thread * SIZES + i;
    return (jg_problem){.m = 17 + number, .n = 90 - number, .k = 33 + i, .type_a = i & 1 ? JG_F16 : JG_F32};
}

static void *call(void *argument)
{
    caller *me = argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SIZES && me->status == JG_OK; i++) {
            const jg_problem p = problem_of(me->index, i);
            const jg_operands data = {.a = me->a, .b = me->b, .c = me->c[i]};
            guard_enter();
            me->status = jg_gemm(me->context, &p, &data);
            guard_leave();
            if (me->status != JG_OK) snprintf(me->error, sizeof me->error, "%s", jg_last_error());
        }
    }
    return NULL;
}

static void run_callers(caller *callers)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        if (callers[i].status != JG_OK) fail_msg("caller %d: %s: %s", i, jg_status_name(callers[i].status), callers[i].error);
}

/* Small integers, exact in both types whichever way their bytes are read. */
static void fill(jg_context *c, void *to)
{
    static unsigned short half[BYTES / 2];
    for (size_t i = 0; i < BYTES / 2; i++) half[i] = (unsigned short)(0x3c00 + i * 7 % 64);
    assert_int_equal(jg_copy(c, to, half, BYTES), JG_OK);
}

static void make_callers(jg_context *c, caller *callers)
{
    memset(callers, 0, THREADS * sizeof *callers);
    for (int t = 0; t < THREADS; t++) {
        callers[t].context = c;
        callers[t].index = t;
        assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, BYTES, &callers[t].a), JG_OK);
        assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, BYTES, &callers[t].b), JG_OK);
        fill(c, callers[t].a);
        fill(c, callers[t].b);
        for (int i = 0; i < SIZES; i++) assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, BYTES, &callers[t].c[i]), JG_OK);
    }
}

static void free_callers(jg_context *c, caller *callers)
{
    for (int t = 0; t < THREADS; t++) {
        jg_free(c, JG_DEVICE_MEMORY, callers[t].a);
        jg_free(c, JG_DEVICE_MEMORY, callers[t].b);
        for (int i = 0; i < SIZES; i++) jg_free(c, JG_DEVICE_MEMORY, callers[t].c[i]);
    }
}

/* All results, one after the other; then they are wiped. */
static unsigned char *take_results(jg_context *c, const caller *callers)
{
    static const unsigned char wiped[BYTES];
    unsigned char *all = malloc((size_t)THREADS * SIZES * BYTES);
    assert_non_null(all);
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < SIZES; i++) {
            const jg_problem p = problem_of(t, i);
            const size_t bytes = (size_t)(p.m * p.n) * (i & 1 ? 2 : 4);
            unsigned char *to = all + (size_t)(t * SIZES + i) * BYTES;
            memset(to, 0, BYTES);
            assert_int_equal(jg_copy(c, to, callers[t].c[i], bytes), JG_OK);
            assert_memory_not_equal(to, wiped, bytes);
            assert_int_equal(jg_copy(c, callers[t].c[i], wiped, BYTES), JG_OK);
        }
    }
    return all;
}

static void assert_guard_kept(void)
{
    const char *first = NULL;
    if (guard_refused(&first)) fail_msg("%d forbidden calls on a caller's thread; the first was %s", guard_refused(NULL), first);
    assert_true(guard_passed() > 100); /* the watch sees the calls of SQLite and NVRTC that are allowed */
}

/* --- tests --- */

static void unseen_sizes_run_at_once_and_later_on_their_own_kernels(void **state)
{
    (void)state;
    caller callers[THREADS];
    jg_context *c = open_context(own_cache("background.db"), JG_COMPILE_BACKGROUND);
    const uint64_t loaded = stats_of(c).kernels;
    assert_true(loaded >= 17);
    assert_int_equal(stats_of(c).resident, loaded);
    make_callers(c, callers);

    forbid(1);
    run_callers(callers);
    if (jg_wait_idle(c, 0) != JG_OK) fail_msg("%s", jg_last_error());
    forbid(0);
    jg_stats s = stats_of(c);
    assert_int_equal(s.launches_generic, THREADS * SIZES * ROUNDS);
    assert_int_equal(s.launches_own, 0);
    assert_int_equal(s.waits, 0);
    assert_int_equal(s.kernels, loaded);
    assert_int_equal(s.compiles, THREADS * SIZES);
    assert_int_equal(s.ready, THREADS * SIZES);
    unsigned char *generic = take_results(c, callers);

    const jg_poll_result polled = poll_all(c);
    assert_int_equal(polled.loaded, THREADS * SIZES);
    assert_int_equal(polled.swapped, THREADS * SIZES);

    forbid(1);
    run_callers(callers);
    assert_int_equal(jg_wait_idle(c, 0), JG_OK);
    forbid(0);
    s = stats_of(c);
    assert_int_equal(s.launches_own, THREADS * SIZES * ROUNDS);
    assert_int_equal(s.launches_generic, THREADS * SIZES * ROUNDS);
    assert_int_equal(s.swaps, THREADS * SIZES);
    assert_int_equal(s.compiles, THREADS * SIZES);
    unsigned char *own = take_results(c, callers);
    assert_memory_equal(generic, own, (size_t)THREADS * SIZES * BYTES); /* a swap is never visible */
    free(generic);
    free(own);
    free_callers(c, callers);
    assert_int_equal(jg_close(c), JG_OK);
    assert_guard_kept();
}

/* jg_poll was never called: the next jg_open loads the kernels of the sizes that the run before met. */
static void the_next_open_knows_the_sizes_of_this_run(void **state)
{
    (void)state;
    caller callers[THREADS];
    const char *cache = own_cache("unpolled.db");
    jg_context *c = open_context(cache, JG_COMPILE_BACKGROUND);
    make_callers(c, callers);
    run_callers(callers);
    assert_int_equal(jg_wait_idle(c, 0), JG_OK);
    assert_int_equal(stats_of(c).launches_own, 0);
    free_callers(c, callers);
    assert_int_equal(jg_close(c), JG_OK);

    c = open_context(cache, JG_COMPILE_BACKGROUND);
    make_callers(c, callers);
    forbid(1);
    run_callers(callers);
    forbid(0);
    const jg_stats s = stats_of(c);
    assert_int_equal(s.launches_own, THREADS * SIZES * ROUNDS);
    assert_int_equal(s.launches_generic, 0);
    assert_int_equal(s.compiles, 0);
    free_callers(c, callers);
    assert_int_equal(jg_close(c), JG_OK);
    assert_guard_kept();
}

/* A sealed context serves from what it loaded; NVRTC is not even opened. */
static void sealed_never_touches_nvrtc(void **state)
{
    (void)state;
    caller callers[THREADS];
    const char *cache = own_cache("sealed.db");
    guard_seal(1);
    jg_context *c = open_context(cache, JG_COMPILE_NEVER);
    make_callers(c, callers);
    forbid(1);
    run_callers(callers);
    assert_int_equal(jg_wait_idle(c, 0), JG_OK);
    forbid(0);
    const jg_stats s = stats_of(c);
    assert_int_equal(s.launches_generic, THREADS * SIZES * ROUNDS);
    assert_int_equal(s.compiles + s.compile_failures + s.waits + s.ready, 0);
    free_callers(c, callers);
    assert_int_equal(jg_close(c), JG_OK);
    guard_seal(0);
    assert_guard_kept();
}

/* The watch and the faults work: a call that may wait runs into both. */
static void a_waiting_call_is_caught(void **state)
{
    (void)state;
    jg_context *c = open_context(own_cache("caught.db"), JG_COMPILE_WAIT);
    const int before = guard_refused(NULL);
    const jg_problem p = {.m = 5, .n = 5, .k = 5};
    void *x;
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, BYTES, &x), JG_OK);
    const jg_operands data = {.a = x, .b = x, .c = (char *)x + 4096};
    fill(c, x);
    forbid(1);
    assert_int_equal(jg_gemm(c, &p, &data), JG_ERR_LOAD); /* compiled on a thread of its own, and not to be loaded */
    guard_enter();
    assert_int_not_equal(jg_gemm(c, &(jg_problem){.m = 6, .n = 5, .k = 5}, &data), JG_OK); /* it reads the cache file here */
    guard_leave();
    forbid(0);
    assert_true(guard_refused(NULL) > before);
    jg_free(c, JG_DEVICE_MEMORY, x);
    assert_int_equal(jg_close(c), JG_OK);
}

int main(void)
{
    char guarded[4200];
    snprintf(guarded, sizeof guarded, "%s/tests/libguard_nvrtc.so", build_folder());
    setenv("JITGEMM_HELPER", "", 1); /* it watches this process */
    nvrtc_path = guarded;
    find_real_nvrtc();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unseen_sizes_run_at_once_and_later_on_their_own_kernels),
        cmocka_unit_test(the_next_open_knows_the_sizes_of_this_run),
        cmocka_unit_test(sealed_never_touches_nvrtc),
        cmocka_unit_test(a_waiting_call_is_caught), /* last, as its violations stay noted */
    };
    return cmocka_run_group_tests(tests, make_warm_cache, remove_folder);
}
