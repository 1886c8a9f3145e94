/* All candidates of one product measured, on the software GPU: which are timed again, what the planner's choice costs over the best,
 * and what becomes of those that are wrong or refuse. Times are made up: each kernel has its own. */
#include "race_fixture.h"

#include <math.h>

#include "tools/bench_race.h"

/* ---- races ---- */

static cJSON *row;           /* of the last race */
static bench_race_faults faults;

static bench_product make_product(const char *text, size_t rotated_bytes)
{
    bench_product product = {.suite = "layers", .list = "resnet50", .text = text, .rotated = rotated_bytes > 0};
    assert_ok(jg_problem_parse(text, &product.problem));
    assert_ok(bench_layout_make(&product.problem, rotated_bytes, 100, &product.layout));
    return product;
}

static int reset_race(void **state)
{
    reset_arena(state);
    cJSON_Delete(row);
    row = NULL;
    memset(&faults, 0, sizeof faults);
    reset_field();
    return 0;
}

static void race(const char *text, size_t rotated_bytes)
{
    const bench_product product = make_product(text, rotated_bytes);
    need_nvrtc();
    assert_ok(bench_race(&arena, &product, 0, &row, &faults));
    assert_non_null(row);
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(object, name);
    if (!cJSON_IsNumber(found)) fail_msg("no number %s in %s", name, cJSON_Print(row));
    return found->valuedouble;
}

static void assert_number(const cJSON *object, const char *name, double value)
{
    const double found = number(object, name);
    if (fabs(found - value) > 1e-5 * fabs(value)) fail_msg("%s is %.9g, not %.9g", name, found, value);
}

static const cJSON *candidate(size_t i)
{
    const cJSON *one = cJSON_GetArrayItem(cJSON_GetObjectItem(row, "candidates"), (int)i);
    if (!one) fail_msg("no candidate %zu in %s", i, cJSON_Print(row));
    return one;
}

static size_t chosen(void)
{
    return (size_t)number(row, "chosen");
}

/* The kernel with a number, as a candidate. */
static size_t runner(size_t number)
{
    return number == 0 ? chosen() : number <= chosen() ? number - 1 : number;
}

static size_t count_all(void)
{
    return (size_t)cJSON_GetArraySize(cJSON_GetObjectItem(row, "candidates"));
}

/* ---- tests ---- */

static void a_whole_row(void **state)
{
    (void)state;
    field.us[0] = 12;
    field.us[1] = 10.5;
    field.us[2] = 10;
    race("64x48x32:f16", 0);
    size_t count, all;
    const bench_product product = make_product("64x48x32:f16", 0);
    assert_ok(jg_plan_count_candidates(arena.context, &product.problem, &count, &all));
    assert_true(count >= 4);
    assert_int_equal(count_all(), count);
    assert_int_equal(field.count, count);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "suite")), "layers");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "problem")), "64x48x32:f16");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "data")), "resident");
    assert_number(row, "m", 64);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "kernel")),
                        cJSON_GetStringValue(cJSON_GetObjectItem(candidate(chosen()), "kernel")));
    assert_number(row, "best", (double)runner(2));
    assert_number(row, "gap", 1.2);
    for (size_t i = 0; i < count; i++) { /* each is what a plan of its number says it is */
        jg_plan *made;
        jg_plan_details d;
        assert_ok(jg_plan_create_candidate(arena.context, &product.problem, i, &made));
        assert_ok(jg_plan_info(made, &d));
        jg_plan_destroy(made);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(candidate(i), "kernel")), d.kernel);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(candidate(i), "family")), "mma");
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(candidate(i), "of_class")));
        const struct { const char *name; double value; } numbers[] = {
            {"tile_m", d.tile_m}, {"tile_n", d.tile_n}, {"tile_k", d.tile_k}, {"warp_m", d.warp_m}, {"warp_n", d.warp_n},
            {"stages", d.stages}, {"slices", d.slices}, {"threads", d.threads}, {"grid_x", (double)d.grid_x},
            {"grid_y", (double)d.grid_y}, {"shared_bytes", d.shared_bytes}, {"registers", d.registers},
            {"blocks_per_sm", d.blocks_per_sm}, {"waves", d.waves}, {"estimate_clocks", d.estimate_clocks}};
        for (size_t n = 0; n < COUNT(numbers); n++) assert_number(candidate(i), numbers[n].name, numbers[n].value);
        assert_true(d.estimate_clocks > 0);
        assert_null(cJSON_GetObjectItem(candidate(i), "wrong"));
        assert_null(cJSON_GetObjectItem(candidate(i), "refused"));
    }
    assert_true(number(candidate(chosen()), "check") <= 1); /* the first of its class; the others have its bits */
    assert_null(cJSON_GetObjectItem(candidate(runner(1)), "check"));
    assert_int_equal(faults.wrong + faults.refused, 0);
}

/* Within 10 % of the best, and the planner's choice. */
static void the_best_are_timed_again(void **state)
{
    (void)state;
    field.us[0] = 60; /* hopeless, but it is the choice */
    field.us[1] = 10.9;
    field.us[2] = 10;
    field.us[3] = 11.1;
    race("64x48x32:f16", 0);
    static const struct { int samples; double us; } expected[] = {{5, 60}, {5, 10.9}, {5, 10}, {1, 11.1}};
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_number(candidate(runner(i)), "us", expected[i].us);
        assert_number(candidate(runner(i)), "samples", expected[i].samples);
    }
    assert_number(row, "gap", 6);
    assert_in_range(field.calls[2], 49, 50); /* 500 us, but for the rounding of a float */
    assert_in_range(field.calls[3], 9, 10);  /* 100 us of the fastest until then */
    assert_int_equal(field.graphs[0], 3); /* one call, a short graph, and a long one; 60 us need no start to be hidden */
    assert_int_equal(field.graphs[1], 2);
    assert_int_equal(field.graphs[3], 1);
    /* In turns, and each round begins with another one. */
    const size_t launches = times.launches, finalists = 3, rounds = 5;
    assert_true(launches >= finalists * rounds && launches <= COUNT(times.launched));
    const int *launched = &times.launched[launches - finalists * rounds];
    for (size_t round = 0; round < rounds; round++) {
        int seen = 0;
        for (size_t i = 0; i < finalists; i++) seen |= 1 << launched[round * finalists + i];
        assert_int_equal(seen, 7);
    }
}

/* Each call finds its operands in memory, so a graph has all sets. */
static void rotated_operands(void **state)
{
    (void)state;
    race("32x32x32:f16", 60000);
    const bench_product product = make_product("32x32x32:f16", 60000);
    assert_true(product.layout.sets > 5);
    for (size_t i = 1; i < field.count; i++) assert_true(field.calls[i] >= product.layout.sets);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "data")), "rotated");
}

/* The first of a class is right; another one must have its bits. It is no best. */
static void other_bits_are_wrong(void **state)
{
    (void)state;
    field.us[2] = 1;
    field.spoils = 2;
    race("64x48x32:f16", 0);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(candidate(runner(2)), "wrong")));
    assert_number(candidate(runner(2)), "us", 1);
    assert_int_equal(faults.wrong, 1);
    assert_int_equal(faults.refused, 0);
    assert_true((size_t)number(row, "best") != runner(2));
    assert_number(row, "gap", 1);
    assert_number(candidate(runner(1)), "samples", 5); /* by the fastest that is right */
    assert_number(candidate(runner(2)), "samples", 1);
}

/* The choice itself is wrong: the next is held against the reference, and there is no gap. */
static void a_wrong_choice(void **state)
{
    (void)state;
    field.spoils = 0;
    race("64x48x32:f16", 0);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(candidate(chosen()), "wrong")));
    assert_true(number(candidate(chosen()), "check") > 1);
    assert_true(number(candidate(runner(1)), "check") <= 1);
    assert_null(cJSON_GetObjectItem(row, "gap"));
    assert_non_null(cJSON_GetObjectItem(row, "best"));
    assert_int_equal(faults.wrong, 1);
}

static void one_that_refuses(void **state)
{
    (void)state;
    field.refuses = 1;
    race("64x48x32:f16", 0);
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(candidate(runner(1)), "refused"));
    assert_non_null(why);
    assert_non_null(strstr(why, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
    assert_null(cJSON_GetObjectItem(candidate(runner(1)), "us"));
    assert_int_equal(faults.refused, 1);
    assert_number(row, "gap", 1);
    assert_number(candidate(runner(2)), "us", 20);
}

static void a_lost_device_ends_it(void **state)
{
    (void)state;
    const bench_product product = make_product("64x48x32:f16", 0);
    need_nvrtc();
    field.stops_at = 1;
    assert_int_equal(bench_race(&arena, &product, 0, &row, &faults), JG_ERR_DEVICE_LOST);
    assert_null(row);
}

/* ---- some of the candidates ---- */

/* Numbers of the planner's choice and three others. */
static void choose(const bench_product *product, size_t indices[4])
{
    size_t count, all, others = 1;
    jg_plan_details d;
    assert_ok(jg_plan_count_candidates(arena.context, &product->problem, &count, &all));
    for (size_t i = count; i-- > 0;) {
        assert_ok(jg_plan_describe_candidate(arena.context, &product->problem, i, &d));
        if (d.is_planned) indices[0] = i;
        else if (others < 4) indices[others++] = i;
    }
    assert_int_equal(others, 4);
}

static void some_of_them(void **state)
{
    (void)state;
    size_t indices[4];
    bench_race_result result;
    const bench_product product = make_product("64x48x32:f16", 0);
    need_nvrtc();
    choose(&product, indices);
    const bench_race_options how = {.indices = indices, .count = 4};
    field.us[2] = 15;
    assert_ok(bench_race_run(&arena, &product, &how, &result));
    assert_int_equal(result.count, 4);
    assert_int_equal(field.count, 4);
    assert_int_equal(result.planned, 0);
    assert_int_equal(result.best, 2);
    for (size_t i = 0; i < 4; i++) {
        jg_plan_details d;
        assert_ok(jg_plan_describe_candidate(arena.context, &product.problem, indices[i], &d));
        assert_int_equal(result.all[i].index, indices[i]);
        assert_string_equal(result.all[i].details.kernel, d.kernel);
        assert_true(bench_runner_is_right(&result.all[i]));
        assert_true(fabs(result.all[i].us - field.us[i]) < 1e-3);
    }
    assert_int_equal(result.all[0].samples, 5); /* the choice, and who is close to the best */
    assert_int_equal(result.all[2].samples, 5);
    assert_int_equal(result.all[1].samples, 1);
    bench_race_free(&result);
    assert_int_equal(result.count, 0);
}

/* No two samples are alike. */
static CUresult CUDAAPI wobbling_time(float *ms, CUevent from, CUevent to)
{
    static unsigned count;
    times.scale = 1 + 0.002 * (count++ % 7);
    return made_up_time(ms, from, to);
}

/* Two that cannot be told apart run to the end; whoever is slower beyond doubt does not. */
static void it_ends_early(void **state)
{
    (void)state;
    size_t indices[4];
    bench_race_result result;
    const bench_product product = make_product("64x48x32:f16", 0);
    need_nvrtc();
    choose(&product, indices);
    const bench_race_options how = {.indices = indices, .count = 4, .ends_early = 1};
    arena.rounds = 25;
    arena.sample_us = 40;
    field.us[1] = 19;
    field.us[2] = 20;
    field.us[3] = 40;
    assert_ok(bench_race_run(&arena, &product, &how, &result));
    assert_int_equal(result.best, 1);
    assert_int_equal(result.all[1].samples, 5);
    assert_int_equal(result.all[0].samples, 5);
    assert_true(result.all[0].is_beaten && result.all[2].is_beaten && !result.all[1].is_beaten);
    bench_race_free(&result);
    reset_field();
    arena.sample_us = 40;
    field.us[2] = 21;
    hooked.event_elapsed = wobbling_time;
    assert_ok(bench_race_run(&arena, &product, &how, &result));
    hooked.event_elapsed = made_up_time;
    assert_int_equal(result.all[0].samples, 25);
    assert_int_equal(result.all[1].samples, 25);
    assert_int_equal(result.all[2].samples, 5);
    assert_int_equal(result.all[3].samples, 25);
    bench_race_free(&result);
}

/* No times; every kernel is counted and checked. */
static void on_the_software_gpu(void **state)
{
    (void)state;
    hooked.software = 1;
    race("64x48x32:f16", 0);
    assert_null(cJSON_GetObjectItem(row, "gap"));
    assert_null(cJSON_GetObjectItem(row, "best"));
    for (size_t i = 0; i < count_all(); i++) {
        assert_true(number(candidate(i), "instructions") > 0);
        assert_null(cJSON_GetObjectItem(candidate(i), "us"));
    }
    assert_int_equal(times.launches, 0);
    assert_int_equal(faults.wrong + faults.refused, 0);
}

static void nothing_to_compute(void **state)
{
    (void)state;
    bench_product product = make_product("64x48x32:f16", 0);
    product.problem.type_a = (jg_type)77;
    assert_int_equal(bench_race(&arena, &product, 0, &row, &faults), JG_ERR_TYPE);
    assert_null(row);
}

static int close_all(void **state)
{
    cJSON_Delete(row);
    arena.context->device.driver->launch = field.launch;
    return close_arena(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_whole_row, reset_race),
        cmocka_unit_test_setup(the_best_are_timed_again, reset_race),
        cmocka_unit_test_setup(rotated_operands, reset_race),
        cmocka_unit_test_setup(other_bits_are_wrong, reset_race),
        cmocka_unit_test_setup(a_wrong_choice, reset_race),
        cmocka_unit_test_setup(one_that_refuses, reset_race),
        cmocka_unit_test_setup(a_lost_device_ends_it, reset_race),
        cmocka_unit_test_setup(some_of_them, reset_race),
        cmocka_unit_test_setup(it_ends_early, reset_race),
        cmocka_unit_test_setup(on_the_software_gpu, reset_race),
        cmocka_unit_test_setup(nothing_to_compute, reset_race),
    };
    return run_on_swgpu(tests, open_arena, close_all);
}
