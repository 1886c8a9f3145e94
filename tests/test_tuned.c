/* Recorded plans: what is recorded is what is used from then on, by every way that leads to a kernel, at its place and nowhere else. */
#include "tuned_fixture.h"

#include "cache/record.h"

static void candidates_are_described_without_kernels(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16), nothing = {.m = 0, .n = 8, .k = 8};
    jg_plan_details d, same;
    size_t count, all, planned = 0;
    tuned_plant(fx.cache, &p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    assert_status(jg_plan_count_candidates(c, &p, &count, &all), JG_OK);
    for (size_t i = 0; i < all; i++) {
        jg_plan *made;
        d = tuned_describe(c, &p, i);
        assert_int_equal(fixture_stats(c).kernels, i);
        assert_status(jg_plan_create_candidate(c, &p, i, &made), JG_OK);
        assert_status(jg_plan_info(made, &same), JG_OK);
        assert_string_equal(d.kernel, same.kernel);
        assert_true(d.estimate_clocks == same.estimate_clocks && d.threads == same.threads && d.slices == same.slices);
        assert_true(d.registers > 0 && d.compile_ms == 0 && same.registers == 77);
        assert_int_equal(d.is_planned, strcmp(d.kernel, fixture_name(&p, JG_FORM_AUTO)) == 0);
        assert_int_equal(d.is_planned, same.is_planned);
        assert_int_equal(d.is_tuned, 0);
        assert_true(!d.is_planned || i < count);
        planned += (size_t)d.is_planned;
        assert_status(fixture_run_plan(made, &p), JG_OK);
        assert_int_equal(fixture_stats(c).kernels, i + 1);
        jg_plan_destroy(made);
    }
    assert_int_equal(planned, 1);
    assert_status(jg_plan_describe_candidate(c, &p, all, &d), JG_ERR_VALUE);
    assert_says(jg_last_error(), "the problem has");
    assert_status(jg_plan_describe_candidate(c, &nothing, 0, &d), JG_OK);
    assert_string_equal(d.kernel, "cpu");
    assert_status(jg_plan_describe_candidate(c, &nothing, 1, &d), JG_ERR_VALUE);
    assert_status(jg_plan_describe_candidate(NULL, &p, 0, &d), JG_ERR_NULL);
    assert_status(jg_plan_describe_candidate(c, NULL, 0, &d), JG_ERR_NULL);
    assert_status(jg_plan_describe_candidate(c, &p, 0, NULL), JG_ERR_NULL);
    assert_status(jg_close(c), JG_OK);
}

/* By jg_plan_create, jg_gemm and jg_prewarm, in this context and in one opened later. */
static void a_recorded_plan_is_used_from_then_on(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    tuned_plant(fx.cache, &p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    const jg_plan_details wanted = tuned_describe(c, &p, tuned_other(c, &p));
    assert_status(tuned_record(c, &p, tuned_other(c, &p)), JG_OK);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(fixture_stats(c).tuned, 1);
        assert_string_equal(fixture_stats(c).place, TUNED_PLACE);
        jg_plan_details d = tuned_chosen(c, &p);
        assert_string_equal(d.kernel, wanted.kernel);
        assert_int_equal(d.is_tuned, 1);
        assert_int_equal(d.is_planned, 0);
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        assert_string_equal(fx.fake->last_launch().kernel, wanted.kernel);
        assert_status(jg_close(c), JG_OK);
        c = fixture_open_without_nvrtc();
    }
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, wanted.kernel);
    assert_status(jg_close(c), JG_OK);
    c = fixture_open_without_nvrtc();
    assert_status(jg_prewarm(c, &p, 1, NULL, NULL), JG_OK);
    assert_int_equal(fixture_stats(c).kernels, 1);
    assert_string_equal(tuned_chosen(c, &p).kernel, wanted.kernel);
    assert_int_equal(fixture_stats(c).kernels, 1);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(candidates_are_described_without_kernels), FIXTURE_TEST(a_recorded_plan_is_used_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
