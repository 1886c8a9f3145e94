/* Which plans are worth measuring, and how they are compiled ahead: problems in; ranks, and kernels in a cache file, out. On the
 * software GPU. */
#include "bench_gpu_fixture.h"

#include "fake_helper.h"
#include "scratch.h"
#include "tools/progress.h"
#include "tools/tune_compile.h"
#include "tools/tune_rank.h"

static char folder[4096];
static jg_context *context;
static tune_rank rank;
static tune_compile work;

static int set_up(void **state)
{
    (void)state;
    scratch_make(folder);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE,
                                .plans = JG_PLANS_MODEL, .prewarm = JG_PREWARM_NO_MET, .factory_path = "",
                                .cache_path = scratch_path(folder, "kernels.db"), .driver_path = swgpu_path()};
    return jg_open(&options, &context) == JG_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tune_compile_stop(&work);
    tune_rank_free(&rank);
    const int left = jg_close(context) != JG_OK;
    context = NULL;
    scratch_remove(folder);
    return left ? -1 : 0;
}

static jg_problem parse(const char *text)
{
    jg_problem p = {0};
    assert_ok(jg_problem_parse(text, &p));
    return p;
}

static jg_plan_details describe(const jg_problem *p, size_t index)
{
    jg_plan_details d;
    assert_ok(jg_plan_describe_candidate(context, p, index, &d));
    return d;
}

/* ---- ranks ---- */

/* The model's choice, then by estimate; each once. */
static void assert_ranked(const jg_problem *p)
{
    assert_true(describe(p, rank.indices[0]).is_planned);
    for (size_t i = 1; i < rank.count; i++) {
        assert_false(describe(p, rank.indices[i]).is_planned);
        if (i > 1) assert_true(describe(p, rank.indices[i]).estimate_clocks >= describe(p, rank.indices[i - 1]).estimate_clocks);
        for (size_t before = 0; before < i; before++) assert_true(rank.indices[before] != rank.indices[i]);
    }
}

static double least_estimate(const jg_problem *p, size_t count)
{
    double least = describe(p, 0).estimate_clocks;
    for (size_t i = 1; i < count; i++)
        if (describe(p, i).estimate_clocks < least) least = describe(p, i).estimate_clocks;
    return least;
}

static void the_best_by_estimate(void **state)
{
    (void)state;
    const jg_problem p = parse("512:f16");
    size_t of_class, all;
    assert_ok(jg_plan_count_candidates(context, &p, &of_class, &all));
    assert_true(of_class > 5 && all > of_class);
    assert_ok(tune_rank_make(context, &p, 0, 5, &rank));
    assert_int_equal(rank.count, 5);
    assert_int_equal(rank.all, of_class);
    assert_ranked(&p);
    for (size_t i = 0; i < 5; i++) assert_true(rank.indices[i] < of_class);
}

/* Whatever the number asked for, what is estimated hopeless is left out; not so where all are asked for. */
static void hopeless_ones(void **state)
{
    (void)state;
    const jg_problem p = parse("1024x64x64:f16");
    size_t of_class, all, worth = 0;
    assert_ok(jg_plan_count_candidates(context, &p, &of_class, &all));
    const double least = least_estimate(&p, of_class);
    for (size_t i = 0; i < of_class; i++) worth += describe(&p, i).estimate_clocks <= 1.6 * least;
    assert_true(worth > 0 && worth < of_class);
    assert_ok(tune_rank_make(context, &p, 0, 1000, &rank));
    assert_int_equal(rank.count, worth);
    assert_ranked(&p);
    tune_rank_free(&rank);
    assert_ok(tune_rank_make(context, &p, 0, 0, &rank));
    assert_int_equal(rank.count, of_class);
    assert_ranked(&p);
    tune_rank_free(&rank);
    assert_ok(tune_rank_make(context, &p, 1, 0, &rank));
    assert_int_equal(rank.count, all);
    assert_int_equal(rank.all, all);
    assert_ranked(&p);
}

static void a_bad_problem(void **state)
{
    (void)state;
    jg_problem p = parse("64");
    p.type_a = (jg_type)77;
    assert_int_equal(tune_rank_make(context, &p, 0, 5, &rank), JG_ERR_TYPE);
    assert_int_equal(rank.count, 0);
}

/* ---- compiling ---- */

static size_t count_kernels(void)
{
    jg_stats stats;
    assert_ok(jg_cache_stats(context, &stats));
    return stats.disk_entries;
}

/* Waits for a step, however slow the machine is. */
static int wait_for(size_t step)
{
    int result = 0;
    for (int i = 0; i < 600 && result == 0; i++) result = tune_compile_wait(&work, step, 100);
    if (result < 0 && work.status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", work.error);
        skip();
    }
    return result;
}

static void steps_are_compiled_ahead(void **state)
{
    (void)state;
    const jg_problem first = parse("16x16x16:f16"), second = parse("24x16x16:f16");
    const tune_job jobs[] = {{&first, 0, 0}, {&first, 1, 0}, {&second, 100000, 1}, {&second, 0, 1}};
    assert_ok(tune_compile_start(&work, context, jobs, 4, 2, 2, 0));
    assert_int_equal(wait_for(0), 1);
    assert_true(count_kernels() >= 2);
    assert_int_equal(wait_for(1), 1); /* a job that fails is finished too */
    assert_int_equal(tune_compile_wait(&work, 1, 0), 1);
    tune_compile_stop(&work);
    assert_int_equal(work.compiled, 4);
    assert_int_equal(work.status, JG_OK);
    assert_int_equal(count_kernels(), 3);
    jg_plan *made;
    jg_plan_details d;
    assert_ok(jg_plan_create_candidate(context, &first, 1, &made));
    assert_ok(jg_plan_info(made, &d));
    assert_int_equal(d.source, JG_SOURCE_DISK);
    jg_plan_destroy(made);
}

static void nothing_is_begun_without_time(void **state)
{
    (void)state;
    const jg_problem p = parse("16x16x24:f16");
    const tune_job jobs[] = {{&p, 0, 0}};
    assert_ok(tune_compile_start(&work, context, jobs, 1, 1, 2, progress_now_ms() - 1));
    assert_int_equal(tune_compile_wait(&work, 0, 50), 0);
    tune_compile_stop(&work);
    assert_int_equal(work.compiled, 0);
    assert_int_equal(count_kernels(), 0);
}

/* That it would take for ever shows that it is not waited for: after two tries of 20 s it would count as finished. */
static void what_is_at_work_is_abandoned(void **state)
{
    (void)state;
    const jg_problem p = parse("16x16x32:f16");
    const tune_job jobs[] = {{&p, 0, 0}, {&p, 1, 1}};
    assert_int_equal(jg_close(context), JG_OK);
    fake_helper_does(folder, "hang");
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE, .factory_path = "",
                                .cache_path = scratch_path(folder, "other.db"), .driver_path = swgpu_path(),
                                .helper = JG_HELPER_PROCESS, .helper_path = fake_helper_path(), .helper_timeout_ms = 20e3};
    assert_ok(jg_open(&options, &context));
    assert_ok(tune_compile_start(&work, context, jobs, 2, 2, 1, 0));
    for (int i = 0; i < 600 && fake_helper_starts() == 0; i++) assert_int_equal(tune_compile_wait(&work, 0, 50), 0);
    assert_int_equal(fake_helper_starts(), 1);
    tune_compile_stop(&work);
    assert_int_equal(work.compiled, 0);
    assert_int_equal(work.status, JG_OK);
}

static void without_nvrtc(void **state)
{
    (void)state;
    const jg_problem p = parse("16x16x40:f16");
    const tune_job jobs[] = {{&p, 0, 0}, {&p, 1, 1}};
    assert_int_equal(jg_close(context), JG_OK);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE, .factory_path = "",
                                .cache_path = scratch_path(folder, "other.db"), .driver_path = swgpu_path(),
                                .nvrtc_path = "/nowhere/libnvrtc.so"};
    assert_ok(jg_open(&options, &context));
    assert_ok(tune_compile_start(&work, context, jobs, 2, 2, 1, 0));
    int result = 0;
    for (int i = 0; i < 600 && result == 0; i++) result = tune_compile_wait(&work, 1, 100);
    assert_int_equal(result, -1);
    assert_int_equal(work.status, JG_ERR_NO_NVRTC);
    assert_non_null(strstr(work.error, "/nowhere/libnvrtc.so"));
    tune_compile_stop(&work);
    tune_compile_stop(&work); /* twice does no harm */
    assert_int_equal(work.compiled, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_best_by_estimate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hopeless_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bad_problem, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_are_compiled_ahead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_begun_without_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_at_work_is_abandoned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_nvrtc, set_up, tear_down),
    };
    return run_on_swgpu(tests, open_swgpu, close_swgpu);
}
