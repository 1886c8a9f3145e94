/* jitgemm-bench of suites with recorded plans, from outside: a cache file with one recorded plan in; which kernel is measured, and
 * what is said of it, out. Skipped without NVRTC. */
#include "cli_bench_fixture.h"

static char recorded[192], planned[192]; /* kernel names */

static void must(jg_status status)
{
    if (status != JG_OK) fail_msg("%s: %s", jg_status_name(status), jg_last_error());
}

/* Of 64:f16, a plan that the model would not choose. */
static void record_another(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/tuned.db", home);
    const jg_options options = {.device = JG_DEVICE_CUDA, .driver_path = "swgpu", .cache_path = path, .factory_path = "",
                                .compile = JG_COMPILE_WAIT, .helper = JG_HELPER_THREAD};
    const jg_problem square = {.m = 64, .n = 64, .k = 64, .type_a = JG_F16};
    const jg_measured measured = {.us = 8, .planned_us = 10};
    jg_plan_details details;
    jg_context *context;
    jg_plan *own;
    size_t count, other = SIZE_MAX;
    must(jg_open(&options, &context));
    must(jg_plan_count_candidates(context, &square, &count, NULL));
    for (size_t i = 0; i < count; i++) {
        must(jg_plan_describe_candidate(context, &square, i, &details));
        if (details.is_planned) memcpy(planned, details.kernel, sizeof planned);
        else if (other == SIZE_MAX) other = i;
    }
    must(jg_plan_create_candidate(context, &square, other, &own));
    must(jg_plan_info(own, &details));
    memcpy(recorded, details.kernel, sizeof recorded);
    must(jg_record_plan(context, own, &measured));
    jg_plan_destroy(own);
    must(jg_close(context));
    assert_string_not_equal(recorded, planned);
}

static const cJSON *measure(const char *options)
{
    cJSON_Delete(root);
    root = NULL;
    assert_run(0, "\"$B\" --driver swgpu --cache tuned.db --size 64:f16 --json %s", options);
    root = cJSON_Parse(out);
    return cJSON_GetArrayItem(get(root, "rows"), 0);
}

static void recorded_plans_are_measured(void **state)
{
    (void)state;
    need_nvrtc();
    record_another();
    const cJSON *row = measure("");
    assert_string_equal(get_text(row, "kernel"), recorded);
    assert_true(cJSON_IsTrue(get(row, "tuned")));
    assert_string_equal(get_text(get(root, "environment"), "plans"), "auto");
    assert_true(get_number(get(root, "environment"), "recorded_plans") == 1);
    assert_has(out, "\"Recorded plans for sm_87 16sm ");
    assert_has(out, ": 1; else those of the planner's model.\"");

    row = measure("--plans model");
    assert_string_equal(get_text(row, "kernel"), planned);
    assert_null(get(row, "tuned"));
    assert_string_equal(get_text(get(root, "environment"), "plans"), "model");
    assert_has(out, "Plans are those of the planner's model alone.");

    assert_run(0, "\"$B\" --driver swgpu --cache tuned.db --size 64:f16 --size 48:f16");
    assert_has(out, " tuned\n");
    const char *other = strstr(out, "\n  48:f16");
    assert_non_null(other);
    assert_null(strstr(other, " tuned\n"));
}

static void without_recorded_plans(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$B\" --driver swgpu --size 48:f16");
    assert_has_not(out, "Recorded plans");
    assert_has_not(out, "tuned");
}

static int make_tuned_home(void **state)
{
    if (make_home(state) != 0) return -1;
    char tool[2048];
    snprintf(tool, sizeof tool, "%s", getenv("T"));
    char *slash = strrchr(tool, '/');
    snprintf(slash, sizeof tool - (size_t)(slash - tool), "/jitgemm-bench");
    return setenv("B", tool, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_plans_are_measured), cmocka_unit_test(without_recorded_plans)};
    return cmocka_run_group_tests(tests, make_tuned_home, remove_bench_home);
}
