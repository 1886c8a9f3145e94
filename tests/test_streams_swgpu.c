/* Many threads on one context with real kernels, on the software GPU: callers on streams of their own, one thread that polls,
 * one that asks and prewarms, and room for so few kernels that they come and go. Whichever kernel runs, a size's results
 * are the same bits as its first. More of this, and faster, with planted kernels: test_streams.c. */
#include "warm_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CALLERS = 4, SIZES = 8, SEEN = 4, ROUNDS = 24, ROOM = 2, MOST_BYTES = 64 * 64 * 4 };

/* The own kernels of the first SEEN are in the cache file. k is so large that the order of additions shows. */
static const jg_problem sizes[SIZES] = {
    {.m = 40, .n = 24, .k = 75},
    {.m = 17, .n = 33, .k = 90},
    {.m = 24, .n = 40, .k = 64, .type_a = JG_F16},
    {.m = 33, .n = 17, .k = 80, .type_a = JG_F16, .op_b = JG_T},
    {.m = 19, .n = 28, .k = 101},
    {.m = 20, .n = 36, .k = 60, .op_a = JG_T},
    {.m = 21, .n = 20, .k = 96, .type_a = JG_F16},
    {.m = 32, .n = 32, .k = 72, .type_a = JG_F16, .type_c = JG_F32},
};

static struct {
    jg_context *context;
    product products[SIZES];   /* A and B are everybody's; C is the first caller's */
    pthread_mutex_t lock;      /* guards the next two */
    unsigned char first[SIZES][MOST_BYTES];
    int known[SIZES];
    atomic_int stop, failures;
    char failure[1024];        /* the first one */
    atomic_uint_fast64_t launches;
} shared;

static int make_warm_cache(void **state)
{
    (void)state;
    warm_setup(JG_RESIDENT_F32 | JG_RESIDENT_F16, sizes, SEEN);
    return 0;
}

/* cmocka's own assertions must not be used on other threads. */
static void note_failure(const char *what, const char *why)
{
    if (!atomic_fetch_add(&shared.failures, 1)) snprintf(shared.failure, sizeof shared.failure, "%s: %s", what, why);
}

#define EXPECT(call, fine)                                             \
    do {                                                               \
        const jg_status got = (call);                                  \
        if (!(fine)) note_failure(jg_status_name(got), jg_last_error()); \
    } while (0)

/* --- callers --- */

typedef struct caller {
    uint64_t random;
    CUstream stream;
    void *c[SIZES];
    jg_plan *plan; /* of size 0, over all rounds */
} caller;

static unsigned below(caller *me, unsigned bound)
{
    return (unsigned)(reference_random(&me->random) >> 33) % bound;
}

/* The block of C, from its element 0 on. */
static void compare(caller *me, int size)
{
    unsigned char now[MOST_BYTES];
    const reference_matrix *c = &shared.products[size].ref.c;
    const size_t bytes = c->block_bytes - c->offset_bytes;
    EXPECT(jg_synchronize(shared.context, me->stream), got == JG_OK);
    EXPECT(jg_copy(shared.context, now, (char *)me->c[size] + c->offset_bytes, bytes), got == JG_OK);
    pthread_mutex_lock(&shared.lock);
    if (!shared.known[size]) memcpy(shared.first[size], now, bytes);
    shared.known[size] = 1;
    const int same = memcmp(shared.first[size], now, bytes) == 0;
    pthread_mutex_unlock(&shared.lock);
    if (!same) note_failure("other bits than the first time", "see the size's kernels");
}

static void call_once(caller *me)
{
    static const jg_compile policies[] = {JG_COMPILE_DEFAULT, JG_COMPILE_DEFAULT, JG_COMPILE_NEVER, JG_COMPILE_WAIT};
    const int size = (int)below(me, SIZES);
    jg_problem p = sizes[size];
    jg_operands data = product_operands(&shared.products[size], me->stream);
    data.c = (char *)me->c[size] + shared.products[size].ref.c.offset_bytes;
    p.compile = policies[below(me, 4)];
    if (size == 0 && below(me, 2)) EXPECT(jg_plan_run(me->plan, &data), got == JG_OK);
    else EXPECT(jg_gemm(shared.context, &p, &data), got == JG_OK);
    atomic_fetch_add(&shared.launches, 1);
    compare(me, size);
}

static void *run_caller(void *argument)
{
    for (int round = 0; round < ROUNDS && !atomic_load(&shared.failures); round++) call_once(argument);
    return NULL;
}

/* --- the others --- */

static void *run_poller(void *argument)
{
    caller *me = argument;
    while (!atomic_load(&shared.stop)) {
        const jg_poll_limits limits = {.max_kernels = 1 + below(me, 3), .max_ms = 0.2};
        EXPECT(jg_poll(shared.context, &limits, NULL), got == JG_OK);
    }
    return NULL;
}

static void *run_observer(void *argument)
{
    caller *me = argument;
    jg_stats s;
    while (!atomic_load(&shared.stop)) {
        EXPECT(jg_cache_stats(shared.context, &s), got == JG_OK);
        EXPECT(jg_wait_idle(shared.context, 2), got == JG_OK || got == JG_ERR_NOT_READY);
        EXPECT(jg_prewarm(shared.context, &sizes[below(me, SEEN)], 1, NULL, NULL), got == JG_OK);
    }
    return NULL;
}

/* --- the test --- */

static void run_threads(caller *callers, uint64_t seed)
{
    pthread_t threads[CALLERS + 2];
    atomic_store(&shared.stop, 0);
    for (int i = 0; i < CALLERS + 2; i++) {
        callers[i].random = seed + (uint64_t)i;
        void *(*const body)(void *) = i < CALLERS ? run_caller : i == CALLERS ? run_poller : run_observer;
        assert_int_equal(pthread_create(&threads[i], NULL, body, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    atomic_store(&shared.stop, 1);
    for (int i = CALLERS; i < CALLERS + 2; i++) pthread_join(threads[i], NULL);
    if (shared.failures) WARM_FAIL("%s", shared.failure);
}

static void make_callers(caller *callers)
{
    jg_context *c = shared.context;
    for (int i = 0; i < SIZES; i++) product_make_of(&shared.products[i], c, &sizes[i], REFERENCE_UNIFORM, 7);
    for (int t = 0; t < CALLERS; t++) {
        WORKS(gpu.create_stream(&callers[t].stream, CU_STREAM_NON_BLOCKING));
        assert_status(jg_plan_create(c, &sizes[0], &callers[t].plan), JG_OK);
        for (int i = 0; i < SIZES; i++) {
            const reference_matrix *block = &shared.products[i].ref.c;
            assert_in_range(block->block_bytes, 1, MOST_BYTES);
            assert_status(jg_alloc(c, JG_DEVICE_MEMORY, block->block_bytes, &callers[t].c[i]), JG_OK);
            assert_status(jg_copy(c, callers[t].c[i], block->block, block->block_bytes), JG_OK);
        }
    }
}

static void free_callers(caller *callers)
{
    for (int t = 0; t < CALLERS; t++) {
        WORKS(gpu.destroy_stream(callers[t].stream));
        jg_plan_destroy(callers[t].plan);
        for (int i = 0; i < SIZES; i++) assert_status(jg_free(shared.context, JG_DEVICE_MEMORY, callers[t].c[i]), JG_OK);
    }
    for (int i = 0; i < SIZES; i++) product_free(&shared.products[i]);
}

/* The first result of each size, which all others were equal to, against the oracle. */
static void check_first_results(void)
{
    for (int i = 0; i < SIZES; i++) {
        reference *ref = &shared.products[i].ref;
        assert_true(shared.known[i]);
        memcpy(ref->c.block + ref->c.offset_bytes, shared.first[i], ref->c.block_bytes - ref->c.offset_bytes);
        const reference_result r = reference_check(ref, 1, 0);
        assert_int_equal(r.failures + r.stray, 0);
    }
}

static void a_swap_is_never_visible(void **state)
{
    (void)state;
    caller callers[CALLERS + 2] = {0};
    jg_context *c = warm_open((jg_options){.resident = JG_RESIDENT_F32 | JG_RESIDENT_F16});
    const uint64_t residents = warm_stats(c).resident;
    assert_status(jg_close(c), JG_OK);
    memset(&shared, 0, sizeof shared);
    pthread_mutex_init(&shared.lock, NULL);
    c = shared.context = warm_open((jg_options){.resident = JG_RESIDENT_F32 | JG_RESIDENT_F16,
                                                .memory_max_kernels = (uint32_t)residents + ROOM});
    make_callers(callers);
    for (int i = 0; i < 3; i++) { /* between these the worker makes what was met: in the first all are new, in the last none */
        run_threads(callers, (uint64_t)(100 * i + 1));
        assert_status(jg_wait_idle(c, 0), JG_OK);
    }
    check_first_results();
    free_callers(callers);
    warm_poll(c);
    const jg_stats s = warm_stats(c);
    assert_int_equal(s.launches_own + s.launches_generic, shared.launches);
    assert_int_equal(shared.launches, 3 * CALLERS * ROUNDS);
    assert_true(s.launches_own > 0 && s.launches_generic > 0 && s.swaps > 0 && s.evictions > ROOM);
    assert_true(s.compiles >= SIZES - SEEN);
    assert_int_equal(s.kernels, residents + ROOM);
    assert_int_equal(s.compile_failures + s.disk_faults + s.captured, 0);
    assert_status(jg_close(c), JG_OK);
    pthread_mutex_destroy(&shared.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WARM_TEST(a_swap_is_never_visible),
    };
    return cmocka_run_group_tests(tests, make_warm_cache, warm_teardown);
}
