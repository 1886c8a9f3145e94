/* One problem tuned on the software GPU with made-up times: what is raced, what is recorded, and what becomes of wrong results. */
#include "race_fixture.h"

#include <math.h>

#include "tools/tune_known.h"
#include "tools/tune_measure.h"

static tune_measure m;
static tune_list list;

/* What is recorded of the problem: the last row. */
static struct {
    size_t count;
    char problem[256], kernel[192], planned[192], runner_up[192], reason[256], device[128], power_mode[64], place[64];
    jg_measured measured;
} recorded;

static int take(void *user, const jg_cache_plan *row)
{
    (void)user;
    recorded.count++;
    recorded.measured = row->measured;
    snprintf(recorded.problem, sizeof recorded.problem, "%s", row->problem);
    snprintf(recorded.kernel, sizeof recorded.kernel, "%s", row->kernel);
    snprintf(recorded.planned, sizeof recorded.planned, "%s", row->measured.planned);
    snprintf(recorded.runner_up, sizeof recorded.runner_up, "%s", row->measured.runner_up);
    snprintf(recorded.reason, sizeof recorded.reason, "%s", row->measured.reason);
    snprintf(recorded.device, sizeof recorded.device, "%s", row->measured.device);
    snprintf(recorded.power_mode, sizeof recorded.power_mode, "%s", row->measured.power_mode);
    snprintf(recorded.place, sizeof recorded.place, "%s", row->place);
    return 0;
}

static void read_recorded(void)
{
    jg_cache *cache;
    memset(&recorded, 0, sizeof recorded);
    assert_ok(jg_cache_open(scratch_path(folder, "kept.db"), 0, &cache));
    assert_ok(jg_cache_plans(cache, take, NULL));
    jg_cache_close(cache);
}

static tune_problem *only(void)
{
    return &list.problems[0];
}

static const char *kernel(size_t rank)
{
    static jg_plan_details d;
    assert_ok(jg_plan_describe_candidate(m.kept, &only()->product.problem, only()->rank.indices[rank], &d));
    return d.kernel;
}

/* A context with a new cache file, and a problem with six candidates ranked. */
static int set_up(void **state)
{
    char text[] = "64x48x32:f16", *texts[] = {text};
    size_t passed;
    if (reset_arena(state) != 0) return -1;
    reset_field();
    remove(scratch_path(folder, "kept.db"));
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE,
                                .plans = JG_PLANS_MODEL, .prewarm = JG_PREWARM_NO_MET, .factory_path = "",
                                .cache_path = scratch_path(folder, "kept.db"), .driver_path = swgpu_path()};
    m = (tune_measure){.gpu = hooked, .arena = arena, .power_mode = "MAXN"};
    m.arena.rounds = 10;
    m.arena.sample_us = 40;
    if (jg_open(&options, &m.kept) != JG_OK || tune_list_add_texts(&list, "sizes", texts, 1, &passed) != 0) return -1;
    return tune_rank_make(m.kept, &only()->product.problem, 0, 6, &only()->rank) == JG_OK && only()->rank.count >= 5 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tune_list_free(&list);
    return jg_close(m.kept) == JG_OK ? 0 : -1;
}

static void the_winner_is_recorded(void **state)
{
    (void)state;
    need_nvrtc();
    field.us[0] = 12;
    field.us[1] = 10;
    field.us[2] = 11;
    assert_ok(tune_measure_problem(&m, only(), 3));
    assert_int_equal(field.count, 3);
    assert_int_equal(only()->outcome, TUNE_TUNED);
    assert_int_equal(only()->tried, 3);
    assert_int_equal(only()->best, only()->rank.indices[1]);
    assert_string_equal(only()->error, "");
    assert_true(fabs(tune_gain(&only()->found) - 1.2) < 1e-5);
    read_recorded();
    assert_int_equal(recorded.count, 1);
    assert_string_equal(recorded.problem, "64x48x32:f16");
    assert_string_equal(recorded.kernel, kernel(1));
    assert_string_equal(recorded.planned, kernel(0));
    assert_string_equal(recorded.runner_up, kernel(2));
    assert_string_equal(recorded.device, gpu.name);
    assert_string_equal(recorded.power_mode, "MAXN");
    assert_string_equal(recorded.reason, only()->found.reason);
    assert_non_null(strstr(recorded.reason, "the model took it for"));
    assert_true(fabs(recorded.measured.us - 10) < 1e-3 && fabs(recorded.measured.planned_us - 12) < 1e-3);
    assert_true(fabs(recorded.measured.runner_up_us - 11) < 1e-3);
    assert_int_equal(recorded.measured.measured, 3);
    assert_int_equal(recorded.measured.all, only()->rank.all);
}

/* A later pass: the choice, the best so far, and those that were not measured. */
static void a_later_pass(void **state)
{
    (void)state;
    need_nvrtc();
    field.us[1] = 15;
    assert_ok(tune_measure_problem(&m, only(), 3));
    const size_t first = only()->best;
    reset_field();
    field.us[1] = 15; /* the best so far */
    field.us[3] = 14;
    assert_ok(tune_measure_problem(&m, only(), 5));
    assert_int_equal(field.count, 4);
    assert_int_equal(only()->tried, 5);
    assert_int_equal(first, only()->rank.indices[1]);
    assert_int_equal(only()->best, only()->rank.indices[4]);
    read_recorded();
    assert_int_equal(recorded.count, 1);
    assert_string_equal(recorded.kernel, kernel(4));
    assert_string_equal(recorded.runner_up, kernel(1));
    assert_int_equal(recorded.measured.measured, 5);
}

static void the_choice_is_kept(void **state)
{
    (void)state;
    need_nvrtc();
    assert_ok(tune_measure_problem(&m, only(), 2));
    assert_int_equal(only()->outcome, TUNE_KEPT);
    assert_true(tune_gain(&only()->found) == 1);
    read_recorded();
    assert_string_equal(recorded.kernel, kernel(0));
    assert_string_equal(recorded.reason, "");
}

/* It is never recorded; the next best is. */
static void a_wrong_one(void **state)
{
    (void)state;
    need_nvrtc();
    field.us[1] = 5;
    field.us[2] = 10;
    field.spoils = 1;
    assert_ok(tune_measure_problem(&m, only(), 3));
    assert_true(only()->is_wrong);
    assert_non_null(strstr(only()->error, kernel(1)));
    assert_non_null(strstr(only()->error, "wrong results"));
    assert_int_equal(only()->outcome, TUNE_TUNED);
    read_recorded();
    assert_string_equal(recorded.kernel, kernel(2));
}

static void nothing_is_right(void **state)
{
    (void)state;
    need_nvrtc();
    field.spoils = 0;
    assert_ok(tune_measure_problem(&m, only(), 1));
    assert_int_equal(only()->outcome, TUNE_FAILED);
    assert_true(only()->is_wrong);
    read_recorded();
    assert_int_equal(recorded.count, 0);
}

static void a_refused_one_is_told_of(void **state)
{
    (void)state;
    need_nvrtc();
    field.refuses = 1;
    assert_ok(tune_measure_problem(&m, only(), 3));
    assert_int_equal(only()->outcome, TUNE_KEPT);
    assert_false(only()->is_wrong);
    assert_non_null(strstr(only()->error, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
}

static void a_lost_device(void **state)
{
    (void)state;
    need_nvrtc();
    field.stops_at = 1;
    assert_int_equal(tune_measure_problem(&m, only(), 3), JG_ERR_DEVICE_LOST);
    read_recorded();
    assert_int_equal(recorded.count, 0);
}

static void instructions_take_the_place_of_times(void **state)
{
    (void)state;
    need_nvrtc();
    hooked.software = m.gpu.software = 1;
    assert_ok(tune_measure_problem(&m, only(), 3));
    read_recorded();
    assert_int_equal(recorded.count, 1);
    assert_true(recorded.measured.us > 100 && recorded.measured.us == floor(recorded.measured.us));
    assert_int_equal(times.launches, 0);
}

/* ---- what the next run knows ---- */

/* Measured in part: it goes on from there; measured as far as is asked: it is known. */
static void the_next_run(void **state)
{
    (void)state;
    size_t total;
    char text[] = "64x48x32:f16", other[] = "48:f16", *texts[] = {text, other};
    size_t passed;
    tune_list next = {0};
    need_nvrtc();
    field.us[2] = 10;
    assert_ok(tune_measure_problem(&m, only(), 3));
    read_recorded();
    assert_int_equal(tune_list_add_texts(&next, "sizes", texts, 2, &passed), 0);
    tune_problem *p = &next.problems[0];
    assert_ok(tune_rank_make(m.kept, &p->product.problem, 0, 6, &p->rank));
    assert_null(tune_known_read(&next, m.kept, scratch_path(folder, "kept.db"), recorded.place, &total));
    assert_int_equal(total, 1);
    assert_int_equal(p->outcome, TUNE_LEFT);
    assert_int_equal(p->tried, 3);
    assert_int_equal(p->best, p->rank.indices[2]);
    assert_true(tune_is_recorded(p));
    assert_int_equal(next.problems[1].created, 0);
    assert_false(tune_is_recorded(&next.problems[1]));
    p->created = 0;
    p->tried = 0;
    p->rank.count = 3;
    assert_null(tune_known_read(&next, m.kept, scratch_path(folder, "kept.db"), recorded.place, &total));
    assert_int_equal(p->outcome, TUNE_KNOWN);
    assert_string_equal(p->found.kernel, recorded.kernel);
    assert_true(fabs(tune_gain(&p->found) - 2) < 1e-5);
    p->created = 0;
    p->outcome = TUNE_LEFT;
    p->rank.all++; /* now also those of other bits */
    assert_null(tune_known_read(&next, m.kept, scratch_path(folder, "kept.db"), recorded.place, &total));
    assert_int_equal(p->outcome, TUNE_LEFT);
    assert_int_equal(p->tried, 0);
    p->created = 0;
    assert_null(tune_known_read(&next, m.kept, scratch_path(folder, "kept.db"), "sm_87 8sm", &total));
    assert_int_equal(total, 0);
    assert_int_equal(p->created, 0);
    assert_non_null(tune_known_read(&next, m.kept, scratch_path(folder, "none.db"), recorded.place, &total));
    tune_list_free(&next);
}

static int close_all(void **state)
{
    arena.context->device.driver->launch = field.launch;
    return close_arena(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_winner_is_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_later_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_choice_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refused_one_is_told_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(instructions_take_the_place_of_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_next_run, set_up, tear_down),
    };
    return run_on_swgpu(tests, open_arena, close_all);
}
