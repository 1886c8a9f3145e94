/* src/startup.c on the fake driver: the problems that options.prewarm and prewarm_problems ask for, and the sizes that earlier
 * runs met. What the files have is loaded by jg_open; what they lack the worker makes, and jg_poll puts in place. */
#include "background_fixture.h"

#include "misses.h"
#include "options.h"
#include "worker_state.h"

#include <errno.h>

static size_t generic_count;

static jg_options prewarm_options(void)
{
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.worker.per_minute = 1; /* what is asked for at the start does not count */
    atomic_store(&nvrtc_double->accepts, 1);
    return options;
}

static int setup(void **state)
{
    int failed = background_setup(state);
    generic_count = plant_generic(fx.cache, JG_RESIDENT_F32);
    return failed;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

/* Opens while NVRTC does not come to an end, so that jg_open cannot have waited for it. */
static jg_context *open_held(jg_options options)
{
    events_forget();
    atomic_store(&nvrtc_double->holds, 1);
    jg_context *c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).compiles, 0);
    assert_int_equal(events_of(JG_EVENT_WAIT) + events_of(JG_EVENT_COMPILE), 0);
    return c;
}

static void let_go(jg_context *c)
{
    atomic_store(&nvrtc_double->holds, 0);
    settle(c);
}

static int is_own_loaded(jg_problem p)
{
    return fx.fake->is_loaded(fixture_name(&p, JG_FORM_AUTO));
}

static void runs_on(jg_context *c, jg_problem p, jg_form form)
{
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, form));
}

/* Adds to the cache file's list of misses, as a run that met these problems does. */
static void add_misses(const jg_problem *list, const uint64_t *counts, size_t count)
{
    jg_options given = background_options(), options;
    assert_status(options_resolve(&given, &options), JG_OK);
    images *files = images_open(&options, 0);
    met **mets = malloc(count * sizeof(met *));
    assert_true(files && mets);
    for (size_t i = 0; i < count; i++) {
        problem p;
        assert_status(problem_canonicalise(&list[i], &p), JG_OK);
        const problem_key key = problem_key_of(&p, problem_promised_access(&p));
        const kernel_spec spec = fixture_spec(&list[i], JG_FORM_AUTO);
        assert_non_null(mets[i] = met_create(&key, &spec, 1));
    }
    misses_add(files, 87, mets, counts, count);
    for (size_t i = 0; i < count; i++) met_drop(mets[i]);
    free(mets);
    images_drop(files);
}

static void record_gain(jg_problem p, double gain)
{
    jg_options options = background_options();
    options.resident = JG_RESIDENT_NONE;
    options.prewarm = JG_PREWARM_NO_MET;
    jg_context *c = fixture_open_with(options);
    assert_status(jg_record_gain(c, &p, gain), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

/* --- a list of problems --- */

static void a_list_is_loaded_or_made(void **state)
{
    (void)state;
    const jg_problem there = square(8, JG_F32), missing = square(9, JG_F32), met_before = square(10, JG_F32);
    jg_problem list[] = {there, missing, {.m = 0, .n = 4, .k = 4}, there, missing, met_before};
    fixture_plant(&there, JG_FORM_AUTO);
    jg_options options = prewarm_options();
    options.prewarm_problems = list;
    options.prewarm_count = sizeof list / sizeof list[0];
    jg_context *c = open_held(options);
    memset(list, 0x55, sizeof list); /* they were copied */
    assert_int_equal(fx.fake->modules(), generic_count + 1);
    runs_on(c, there, JG_FORM_AUTO);
    runs_on(c, met_before, JG_FORM_GENERIC);
    assert_int_equal(fixture_stats(c).waits, 0);
    let_go(c);
    assert_int_equal(fixture_stats(c).compiles, 2);
    const jg_poll_result r = poll_once(c);
    assert_int_equal(r.loaded, 2);
    assert_int_equal(r.swapped, 1);
    runs_on(c, missing, JG_FORM_AUTO); /* it has never been on a generic kernel */
    runs_on(c, met_before, JG_FORM_AUTO);
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.launches_generic, 1);
    assert_int_equal(s.launches_own, 3);
    assert_status(jg_close(c), JG_OK);

    atomic_store(&nvrtc_double->accepts, 0);
    list[0] = missing, list[1] = met_before;
    options.prewarm_count = 2;
    c = fixture_open_with(options);
    assert_int_equal(fx.fake->modules(), generic_count + 2); /* all in the file by now */
    assert_status(jg_close(c), JG_OK);
}

/* Types and math that no JG_RESIDENT_ flag stands for: their other sizes do not wait either. */
static void types_without_a_flag_bring_their_generic_kernels(void **state)
{
    (void)state;
    const jg_problem listed = {.m = 8, .n = 8, .k = 32, .type_a = JG_F16, .type_b = JG_S4, .group_k = 32};
    const jg_problem other = {.m = 24, .n = 16, .k = 64, .type_a = JG_F16, .type_b = JG_S4};
    jg_options options = prewarm_options();
    options.prewarm_problems = &listed;
    options.prewarm_count = 1;
    jg_context *c = open_held(options);
    let_go(c);
    assert_int_equal(fixture_stats(c).compiles, 3); /* two generic kernels, and its own */
    poll_once(c);
    assert_int_equal(fixture_stats(c).resident, generic_count + 2);
    runs_on(c, other, JG_FORM_GENERIC);
    assert_int_equal(fixture_stats(c).waits, 0);
    assert_status(jg_close(c), JG_OK);

    /* Not where nothing is to be resident, and a sealed context opens without them. */
    atomic_store(&nvrtc_double->accepts, 0);
    const char *file = options.cache_path;
    options.cache_path = "";
    options.resident = JG_RESIDENT_NONE;
    options.compile = JG_COMPILE_NEVER;
    c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).resident, 0);
    assert_status(jg_close(c), JG_OK);
    options.cache_path = file;
    options.resident = JG_RESIDENT_F32;
    c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).resident, generic_count + 2);
    assert_status(jg_close(c), JG_OK);
}

/* A sealed context takes what is there, and one that waits asks the worker as any. */
static void other_modes_take_a_list_too(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), square(9, JG_F32)};
    fixture_plant(&list[0], JG_FORM_AUTO);
    jg_options options = prewarm_options();
    options.prewarm_problems = list;
    options.prewarm_count = 2;
    options.compile = JG_COMPILE_NEVER;
    jg_context *c = open_held(options);
    assert_int_equal(fx.fake->modules(), generic_count + 1);
    assert_int_equal(fixture_stats(c).queued, 0);
    settle(c);
    assert_int_equal(poll_once(c).loaded, 0);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
    assert_int_equal(events_of(JG_EVENT_FAIL), 0); /* the worker was not even asked */
    runs_on(c, list[0], JG_FORM_AUTO);
    runs_on(c, list[1], JG_FORM_GENERIC);
    assert_status(jg_close(c), JG_OK);

    options.compile = JG_COMPILE_WAIT;
    options.resident = 0;
    c = open_held(options);
    assert_int_equal(fx.fake->modules(), 1);
    let_go(c);
    assert_int_equal(poll_once(c).loaded, 1);
    const uint64_t loads = LOADS();
    runs_on(c, list[0], JG_FORM_AUTO);
    runs_on(c, list[1], JG_FORM_AUTO);
    assert_int_equal(LOADS(), loads);
    assert_status(jg_close(c), JG_OK);
}

static void a_bad_problem_is_named(void **state)
{
    (void)state;
    static const struct {
        jg_problem problem;
        jg_status status;
    } bad[] = {
        {{.m = -1, .n = 1, .k = 1}, JG_ERR_SIZE},
        {{.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .type_c = JG_S32}, JG_ERR_TYPE},
        {{.m = 8, .n = 8, .k = 8, .lda = 7}, JG_ERR_LEADING_DIMENSION},
        {{.m = 8, .n = 8, .k = 8, .reserved = 1}, JG_ERR_VALUE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const jg_problem list[] = {square(8, JG_F32), square(9, JG_F32), bad[i].problem};
        jg_context *c;
        jg_options options = prewarm_options();
        options.prewarm_problems = list;
        options.prewarm_count = 3;
        assert_status(jg_open(&options, &c), bad[i].status);
        assert_null(c);
        assert_says(jg_last_error(), "options.prewarm_problems[2]: ");
        assert_string_equal(fx.fake->leaks(), "");
    }
}

/* What the driver refuses costs the kernel, not the context. */
static void a_refused_kernel_is_said_and_passed_over(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), square(9, JG_F32)};
    fixture_plant(&list[0], JG_FORM_AUTO);
    fixture_plant(&list[1], JG_FORM_AUTO);
    jg_options options = prewarm_options();
    options.prewarm_problems = list;
    options.prewarm_count = 2;
    fx.fake->fail_call("cuModuleLoadDataEx", (unsigned)generic_count + 1, CUDA_ERROR_NOT_SUPPORTED, FAKE_ONCE);
    jg_context *c = fixture_open_with(options);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    runs_on(c, list[0], JG_FORM_GENERIC);
    runs_on(c, list[1], JG_FORM_AUTO);
    assert_status(jg_close(c), JG_OK);
}

/* --- the common sizes --- */

static void the_common_sizes_are_of_the_resident_types(void **state)
{
    (void)state;
    static const struct {
        uint32_t resident;
        size_t types;
    } cases[] = {{JG_RESIDENT_F32, 1}, {JG_RESIDENT_F32 | JG_RESIDENT_F16, 2}, {JG_RESIDENT_NONE, 0}};
    const jg_problem there[] = {square(64, JG_F32), square(1024, JG_F32)};
    plant_generic(fx.cache, JG_RESIDENT_F16);
    for (int i = 0; i < 2; i++) fixture_plant(&there[i], JG_FORM_AUTO);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        jg_options options = prewarm_options();
        options.prewarm = JG_PREWARM_COMMON;
        options.resident = cases[i].resident;
        jg_context *c = open_held(options);
        const size_t generic = fixture_stats(c).resident, before = fx.fake->modules();
        if (i == 0) assert_int_equal(before, generic + 2);
        let_go(c);
        poll_once(c);
        assert_int_equal(fx.fake->modules(), generic + 16 * cases[i].types);
        if (cases[i].types) {
            for (int64_t size = 64; size <= 1024; size += 64) assert_true(is_own_loaded(square(size, JG_F32)));
            runs_on(c, square(128, JG_F32), JG_FORM_AUTO);
        }
        assert_status(jg_close(c), JG_OK);
    }
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 14 + 16);
}

/* --- sizes that earlier runs met --- */

static void sizes_met_before_are_loaded(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), square(9, JG_F32), square(10, JG_F32)};
    const uint64_t counts[] = {5, 6, 7};
    fixture_plant(&list[0], JG_FORM_AUTO);
    fixture_plant(&list[2], JG_FORM_AUTO);
    add_misses(list, counts, 3);
    const jg_problem never_met = square(11, JG_F32);
    fixture_plant(&never_met, JG_FORM_AUTO);

    static const struct {
        jg_compile compile;
        uint32_t prewarm;
        size_t loaded;
    } cases[] = {{JG_COMPILE_BACKGROUND, 0, 2}, {JG_COMPILE_NEVER, 0, 2}, {JG_COMPILE_BACKGROUND, JG_PREWARM_NO_MET, 0},
                 {JG_COMPILE_NEVER, JG_PREWARM_NO_MET, 0}, {JG_COMPILE_WAIT, 0, 0}, {JG_COMPILE_NEVER, JG_PREWARM_MISSES, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        jg_options options = prewarm_options();
        options.compile = cases[i].compile;
        options.prewarm = cases[i].prewarm;
        jg_context *c = open_held(options);
        assert_int_equal(fx.fake->modules(), generic_count + cases[i].loaded);
        assert_int_equal(fixture_stats(c).queued, 0); /* nothing is asked of the worker */
        if (cases[i].loaded) {
            runs_on(c, list[0], JG_FORM_AUTO);
            runs_on(c, list[1], JG_FORM_GENERIC);
            runs_on(c, list[2], JG_FORM_AUTO);
        }
        atomic_store(&nvrtc_double->holds, 0);
        assert_status(jg_close(c), JG_OK);
    }
}

/* The list of misses lies in the user's file; the kernels may lie in the factory's. */
static void their_kernels_may_be_in_the_factory_file(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32);
    const kernel_spec spec = fixture_spec(&p, JG_FORM_AUTO);
    const char *factory = scratch_path(fx.folder, "factory.db");
    jg_options options = prewarm_options();
    options.factory_path = factory;
    fixture_plant_specs(factory, &spec, 1);
    add_misses(&p, &(uint64_t){3}, 1);
    jg_context *c = open_held(options);
    assert_int_equal(fx.fake->modules(), generic_count + 1);
    runs_on(c, p, JG_FORM_AUTO);
    let_go(c);
    assert_status(jg_close(c), JG_OK);
}

enum { MET = 300, MOST = 256 };

static void meet_many(jg_problem *list)
{
    uint64_t counts[MET];
    for (int i = 0; i < MET; i++) {
        list[i] = square(8 + i, JG_F32);
        counts[i] = 1 + (uint64_t)(i * 7 % MET); /* 7 and 300 have no divisor in common: all are different */
    }
    plant_squares(8, MET, JG_F32);
    add_misses(list, counts, MET);
}

static int rank(int i)
{
    return MET - 1 - i * 7 % MET;
}

static void at_most_256_are_loaded_the_most_used(void **state)
{
    (void)state;
    static jg_problem list[MET];
    meet_many(list);
    jg_context *c = open_held(prewarm_options());
    assert_int_equal(fx.fake->modules(), generic_count + MOST);
    for (int i = 0; i < MET; i++) assert_int_equal(is_own_loaded(list[i]), rank(i) < MOST);
    assert_status(jg_close(c), JG_OK);
}

/* Where there is less room, what stays is what was used most, and no more than that is loaded. */
static void a_bound_leaves_the_most_used(void **state)
{
    (void)state;
    enum { ROOM = 5 };
    static jg_problem list[MET];
    meet_many(list);
    jg_options options = prewarm_options();
    options.memory_max_kernels = (uint32_t)generic_count + ROOM;
    jg_context *c = open_held(options);
    assert_int_equal(fx.fake->modules(), generic_count + ROOM);
    for (int i = 0; i < MET; i++) assert_int_equal(is_own_loaded(list[i]), rank(i) < ROOM);
    assert_int_equal(LOADS(), generic_count + ROOM);
    assert_status(jg_close(c), JG_OK);

    options.memory_max_kernels = 0;
    options.memory_max_bytes = 6000; /* a planted kernel has about 140 */
    c = open_held(options);
    const size_t stay = fixture_stats(c).kernels - generic_count;
    assert_true(stay > 5 && stay < MOST);
    for (int i = 0; i < MET; i++) assert_int_equal(is_own_loaded(list[i]), rank(i) < (int)stay);
    assert_status(jg_close(c), JG_OK);
}

/* --- JG_PREWARM_MISSES --- */

static void misses_are_made_if_they_pay(void **state)
{
    (void)state;
    const jg_problem unknown = square(8, JG_F32), pays = square(9, JG_F32), does_not = square(10, JG_F32),
                     there = square(11, JG_F32), only_measured = square(12, JG_F32);
    const jg_problem list[] = {unknown, pays, does_not, there};
    add_misses(list, (const uint64_t[]){1, 2, 3, 4}, 4);
    record_gain(pays, 1.02);
    record_gain(does_not, 1.01);
    record_gain(there, 0.5);
    record_gain(only_measured, 2);
    fixture_plant(&there, JG_FORM_AUTO);
    jg_options options = prewarm_options();
    options.prewarm = JG_PREWARM_MISSES;
    jg_context *c = open_held(options);
    assert_int_equal(fx.fake->modules(), generic_count + 1); /* what is there is there */
    let_go(c);
    assert_int_equal(poll_once(c).loaded, 2);
    assert_true(is_own_loaded(unknown) && is_own_loaded(pays) && is_own_loaded(there));
    assert_false(is_own_loaded(does_not) || is_own_loaded(only_measured));
    assert_int_equal(fixture_stats(c).compiles, 2);
    assert_status(jg_close(c), JG_OK);

    options.prewarm |= JG_PREWARM_NO_MET; /* nothing of what is there, and all have a kernel or are not worth one */
    c = open_held(options);
    assert_int_equal(fx.fake->modules(), generic_count);
    let_go(c);
    assert_int_equal(fixture_stats(c).compiles + fixture_stats(c).ready, 0);
    assert_status(jg_close(c), JG_OK);
}

/* Also where nothing is loaded at the start. */
static void misses_are_made_in_other_modes(void **state)
{
    (void)state;
    const jg_problem missing[] = {square(8, JG_F32), square(9, JG_F32)}, there = square(10, JG_F32);
    fixture_plant(&there, JG_FORM_AUTO);
    add_misses(&there, &(uint64_t){1}, 1);
    for (int i = 0; i < 2; i++) {
        add_misses(&missing[i], &(uint64_t){1}, 1);
        jg_options options = prewarm_options();
        options.prewarm = JG_PREWARM_MISSES | (i ? JG_PREWARM_NO_MET : 0);
        options.compile = i ? JG_COMPILE_BACKGROUND : JG_COMPILE_WAIT;
        jg_context *c = open_held(options);
        assert_int_equal(fx.fake->modules(), generic_count);
        let_go(c);
        assert_int_equal(poll_once(c).loaded, 1);
        assert_true(is_own_loaded(missing[i]));
        assert_status(jg_close(c), JG_OK);
    }
}

static void the_most_used_are_made_first(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), square(9, JG_F32), square(10, JG_F32)};
    add_misses(list, (const uint64_t[]){2, 9, 4}, 3);
    jg_options options = prewarm_options();
    options.prewarm = JG_PREWARM_MISSES;
    jg_context *c = open_held(options);
    let_go(c);
    static const int order[] = {1, 2, 0};
    for (int i = 0; i < 3; i++) {
        jg_poll_result r;
        assert_status(jg_poll(c, &(jg_poll_limits){1, 1e9}, &r), JG_OK);
        assert_true(is_own_loaded(list[order[i]]));
        assert_int_equal(r.left, 2 - i);
    }
    assert_status(jg_close(c), JG_OK);
}

static int refuse_thread(pthread_t *thread, void *(*body)(void *), void *argument)
{
    (void)thread, (void)body, (void)argument;
    return EAGAIN;
}

/* A worker that cannot start costs what it would have made, not the context. */
static void without_a_worker_the_context_opens(void **state)
{
    (void)state;
    const jg_problem list[] = {square(16, JG_F32), square(17, JG_F32)};
    const size_t count = generic_set(COMMON_TYPES).count;
    int (*const spawn)(pthread_t *, void *(*)(void *), void *) = worker_spawn;
    worker_spawn = refuse_thread;
    jg_options options = background_options();
    options.prewarm_problems = list;
    options.prewarm_count = 2;
    jg_context *c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).dropped, count + 2);
    assert_int_equal(events_of(JG_EVENT_DROP), count + 2);
    assert_string_equal(events_last(JG_EVENT_DROP).kernel, fixture_name(&list[1], JG_FORM_AUTO));
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "cannot start the worker thread");
    worker_spawn = spawn;
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(without_a_worker_the_context_opens),
        TEST(a_list_is_loaded_or_made),
        TEST(types_without_a_flag_bring_their_generic_kernels),
        TEST(other_modes_take_a_list_too),
        TEST(a_bad_problem_is_named),
        TEST(a_refused_kernel_is_said_and_passed_over),
        TEST(the_common_sizes_are_of_the_resident_types),
        TEST(sizes_met_before_are_loaded),
        TEST(their_kernels_may_be_in_the_factory_file),
        TEST(at_most_256_are_loaded_the_most_used),
        TEST(a_bound_leaves_the_most_used),
        TEST(misses_are_made_if_they_pay),
        TEST(misses_are_made_in_other_modes),
        TEST(the_most_used_are_made_first),
    };
    return cmocka_run_group_tests_name("startup prewarm", tests, NULL, NULL);
}
