/* Recorded plans in use: what is recorded is what every way to a kernel leads to from then on, at its place and nowhere else. */
#include "tuned_fixture.h"

#include "tuned.h"

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
        assert_string_equal(d.numeric_class, same.numeric_class);
        assert_true(d.estimate_clocks == same.estimate_clocks && d.threads == same.threads && d.grid_x == same.grid_x);
        assert_true(d.registers > 0 && d.compile_ms == 0 && same.registers == 77 && d.waves > 0);
        assert_int_equal(d.is_planned, strcmp(d.kernel, fixture_name(&p, JG_FORM_AUTO)) == 0);
        assert_int_equal(d.is_planned, same.is_planned);
        assert_int_equal(d.is_tuned, 0);
        assert_true(!d.is_planned || i < count);
        planned += (size_t)d.is_planned;
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

/* Into the cache file, touching no device. */
static void candidates_are_compiled_ahead(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16), nothing = {.m = 0, .n = 8, .k = 8};
    jg_options options = fixture_options();
    jg_plan *made;
    jg_plan_details d;
    size_t all, count;
    jg_context *c = tuned_open();
    assert_status(jg_plan_count_candidates(c, &p, &count, &all), JG_OK);
    const uint64_t before = fx.fake->all_calls();
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < 3; i++) assert_status(jg_plan_compile_candidate(c, &p, i), JG_OK);
    assert_int_equal(fx.fake->all_calls(), before);
    assert_int_equal(fixture_stats(c).compiles, 3); /* the second time they are there */
    assert_int_equal(fixture_stats(c).disk_entries, 3);
    assert_status(jg_plan_create_candidate(c, &p, 2, &made), JG_OK);
    assert_status(jg_plan_info(made, &d), JG_OK);
    assert_int_equal(d.source, JG_SOURCE_DISK);
    jg_plan_destroy(made);
    assert_status(jg_plan_compile_candidate(c, &nothing, 0), JG_OK);
    assert_status(jg_plan_compile_candidate(c, &p, all), JG_ERR_VALUE);
    assert_status(jg_plan_compile_candidate(NULL, &p, 0), JG_ERR_NULL);
    assert_status(jg_plan_compile_candidate(c, NULL, 0), JG_ERR_NULL);
    atomic_store(&nvrtc_double->accepts, 0);
    assert_status(jg_plan_compile_candidate(c, &p, 3), JG_ERR_COMPILE);
    assert_status(jg_close(c), JG_OK);

    options.compile = JG_COMPILE_NEVER;
    options.resident = JG_RESIDENT_NONE;
    c = fixture_open_with(options);
    assert_status(jg_plan_compile_candidate(c, &p, 0), JG_OK);
    assert_status(jg_plan_compile_candidate(c, &p, 3), JG_ERR_NOT_READY);
    assert_status(jg_close(c), JG_OK);
    options = fixture_options();
    options.cache_path = "";
    options.nvrtc_path = "/nonexistent/libnvrtc.so";
    c = fixture_open_with(options);
    assert_status(jg_plan_compile_candidate(c, &p, 0), JG_OK); /* there is nowhere to put it */
    assert_status(jg_close(c), JG_OK);
}

/* By jg_plan_create, jg_gemm and jg_prewarm, in this context and in those opened later. */
static void a_recorded_plan_is_used_from_then_on(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    tuned_plant(fx.cache, &p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    assert_int_equal(fixture_stats(c).tuned, 0);
    const jg_plan_details wanted = tuned_describe(c, &p, tuned_other(c, &p));
    assert_status(tuned_record(c, &p, tuned_other(c, &p)), JG_OK);
    assert_int_equal(tuned_describe(c, &p, tuned_other(c, &p)).is_tuned, 1);
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

/* jg_open loads it for options.prewarm_problems, and for a size that an earlier run met, whose kernel was another then. */
static void a_recorded_plan_is_loaded_at_open(void **state)
{
    (void)state;
    const jg_problem p = {.m = 40, .n = 24, .k = 24, .type_a = JG_F32, .dynamic = JG_DYNAMIC_M};
    jg_problem measured = p; /* for all from 33 to 64 */
    measured.m = 50;
    plant_generic(fx.cache, JG_RESIDENT_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    jg_context *c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK); /* a miss; its kernel is refused */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    finish(c);
    c = tuned_open();
    const jg_plan_details wanted = tuned_describe(c, &measured, tuned_other(c, &measured));
    assert_status(tuned_record(c, &measured, tuned_other(c, &measured)), JG_OK);
    finish(c);
    atomic_store(&nvrtc_double->accepts, 0);
    for (int asked = 0; asked < 2; asked++) {
        options.prewarm = asked ? JG_PREWARM_NO_MET : 0;
        options.prewarm_problems = &p;
        options.prewarm_count = (size_t)asked;
        c = fixture_open_with(options);
        assert_true(fx.fake->is_loaded(wanted.kernel));
        assert_false(fx.fake->is_loaded(fixture_name(&p, JG_FORM_AUTO)));
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        assert_string_equal(fx.fake->last_launch().kernel, wanted.kernel);
        finish(c);
    }
}

/* In background mode: a generic kernel of the same class first, then its own by the worker and jg_poll. */
static void the_worker_makes_what_is_recorded(void **state)
{
    (void)state;
    const jg_problem p = {.m = 1024, .n = 1024, .k = 8, .type_a = JG_F16, .dynamic = JG_DYNAMIC_N | JG_DYNAMIC_K | JG_DYNAMIC_BATCH};
    char text[16384];
    plant_generic(fx.cache, JG_RESIDENT_F16);
    jg_context *c = tuned_open();
    size_t other = tuned_other(c, &p), count;
    assert_status(jg_plan_count_candidates(c, &p, &count, NULL), JG_OK);
    for (size_t i = 0; i < count; i++)
        if (tuned_describe(c, &p, i).estimate_clocks > tuned_describe(c, &p, other).estimate_clocks) other = i;
    const jg_plan_details wanted = tuned_describe(c, &p, other);
    assert_status(tuned_record(c, &p, other), JG_OK);
    /* By the estimate, which is the worst of a kernel with few constants, it would not be worth its while. */
    assert_status(jg_plan_explain(c, &p, text, sizeof text, NULL), JG_OK);
    double gain = 9;
    assert_int_equal(sscanf(strstr(text, "gain "), "gain %lfx", &gain), 1);
    assert_true(gain < PLAN_GAIN_WORTHWHILE);
    assert_says(text, ": worth its own kernel");
    finish(c);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F16;
    options.prewarm = JG_PREWARM_NO_MET;
    c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_int_equal(fixture_stats(c).launches_generic, 2);
    assert_int_equal(tuned_chosen(c, &p).slices, wanted.slices);
    settle(c);
    assert_int_equal(poll_once(c).swapped, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, wanted.kernel);
    assert_int_equal(tuned_chosen(c, &p).is_tuned, 1);
    finish(c);
}

/* A plan that is recorded while the worker makes the model's kernel does not get its launch: the fake driver checks that against the
 * kernel's name. */
static void recording_meanwhile_leaves_what_is_under_way(void **state)
{
    (void)state;
    const jg_problem p = {.m = 100, .n = 100, .k = 64, .type_a = JG_F32};
    plant_generic(fx.cache, JG_RESIDENT_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    atomic_store(&nvrtc_double->accepts, 1);
    jg_context *c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    settle(c);
    const size_t other = tuned_other(c, &p);
    const jg_plan_details wanted = tuned_describe(c, &p, other), planned = tuned_chosen(c, &p);
    assert_true(wanted.threads != planned.threads || wanted.tile_m != planned.tile_m || wanted.tile_n != planned.tile_n);
    assert_status(tuned_record(c, &p, other), JG_OK);
    assert_int_equal(poll_once(c).swapped, 1);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_AUTO));
    finish(c);
    c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, wanted.kernel);
    finish(c);
}

/* --- where it holds --- */

static void it_holds_at_its_place_alone(void **state)
{
    (void)state;
    static const struct {
        CUdevice_attribute attribute;
        int value;
        const char *place;
    } others[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 8, "sm_87 8sm 256bit shared"},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 128, "sm_87 16sm 128bit shared"},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0, "sm_87 16sm 256bit dedicated"},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, -1, "sm_87 16sm 256bit unknown"},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 306000, "sm_87 16sm 256bit shared"}, /* a power mode is no other place */
    };
    const jg_problem p = square(24, JG_F16);
    jg_options options = background_options();
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED, 1);
    fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1300000);
    jg_context *c = tuned_open();
    assert_string_equal(fixture_stats(c).place, "sm_87 16sm 256bit shared");
    const jg_plan_details wanted = tuned_describe(c, &p, tuned_other(c, &p));
    assert_status(tuned_record(c, &p, tuned_other(c, &p)), JG_OK);
    assert_status(jg_close(c), JG_OK);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16);
        fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256);
        fx.fake->set_attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED, 1);
        fx.fake->set_attribute(others[i].attribute, others[i].value);
        c = tuned_open();
        const int is_same = others[i].attribute == CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
        assert_string_equal(fixture_stats(c).place, others[i].place);
        assert_int_equal(fixture_stats(c).tuned, is_same);
        assert_int_equal(tuned_chosen(c, &p).is_tuned, is_same);
        assert_int_equal(strcmp(tuned_chosen(c, &p).kernel, wanted.kernel) == 0, is_same);
        assert_status(jg_close(c), JG_OK);
    }
    /* What is planned for counts, not what is there. */
    options.compile = JG_COMPILE_WAIT;
    options.sm_count = 8;
    c = fixture_open_with(options);
    assert_string_equal(fixture_stats(c).place, "sm_87 8sm 256bit shared");
    assert_int_equal(fixture_stats(c).tuned, 0);
    assert_status(jg_close(c), JG_OK);
}

static void the_model_alone_on_request(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    jg_context *c = tuned_open();
    assert_status(tuned_record(c, &p, tuned_other(c, &p)), JG_OK);
    assert_status(jg_close(c), JG_OK);
    jg_options options = background_options();
    options.compile = JG_COMPILE_WAIT;
    options.plans = JG_PLANS_MODEL;
    c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).tuned, 0);
    assert_int_equal(tuned_chosen(c, &p).is_planned, 1);
    assert_int_equal(tuned_describe(c, &p, tuned_other(c, &p)).is_tuned, 0);
    const jg_problem q = square(32, JG_F16);
    assert_status(tuned_record(c, &q, tuned_other(c, &q)), JG_OK); /* for others */
    assert_int_equal(tuned_chosen(c, &q).is_planned, 1);
    assert_status(jg_close(c), JG_OK);
    c = tuned_open();
    assert_int_equal(fixture_stats(c).tuned, 2);
    assert_int_equal(tuned_chosen(c, &q).is_tuned, 1);
    assert_status(jg_close(c), JG_OK);
    options.plans = (jg_plans)2;
    assert_status(jg_open(&options, &c), JG_ERR_VALUE);
    assert_says(jg_last_error(), "options.plans is 2");
}

/* Another alignment is another problem to a kernel; a form that comes to the same is not. */
static void alignments_and_forms(void **state)
{
    (void)state;
    jg_problem p = square(24, JG_F16), narrow = p, same = p, generic = p;
    narrow.align_bytes = 4;
    same.form = JG_FORM_SPECIALISED;
    generic.form = JG_FORM_GENERIC;
    jg_context *c = tuned_open();
    assert_status(tuned_record(c, &p, tuned_other(c, &p)), JG_OK);
    assert_int_equal(tuned_chosen(c, &same).is_tuned, 1);
    assert_int_equal(tuned_chosen(c, &narrow).is_tuned, 0);
    assert_int_equal(tuned_chosen(c, &narrow).is_planned, 1);
    jg_problem fused = p;
    fused.activation = JG_ACTIVATION_RELU;
    assert_int_equal(tuned_chosen(c, &fused).is_tuned, 0);
    /* The transposed product is the same one. */
    const jg_problem turned = {.m = 24, .n = 24, .k = 24, .type_a = JG_F16, .order = JG_COL_MAJOR};
    assert_int_equal(tuned_chosen(c, &turned).is_tuned, 1);
    const size_t other = tuned_other(c, &generic);
    const jg_plan_details wanted = tuned_describe(c, &generic, other);
    assert_int_equal(wanted.form, JG_FORM_GENERIC);
    assert_status(tuned_record(c, &generic, other), JG_OK);
    assert_string_equal(tuned_chosen(c, &generic).kernel, wanted.kernel);
    assert_int_equal(tuned_chosen(c, &p).form, JG_FORM_SPECIALISED);
    assert_int_equal(fixture_stats(c).tuned, 2);
    assert_status(jg_close(c), JG_OK);
}

/* A record stands for all sizes of a dynamic dimension between two powers of two, with the leading dimensions that follow it. */
static void dynamic_dimensions(void **state)
{
    (void)state;
    const jg_problem p = {.m = 40, .n = 64, .k = 64, .type_a = JG_F16, .dynamic = JG_DYNAMIC_M};
    jg_problem q = p;
    jg_context *c = tuned_open();
    const size_t other = tuned_other(c, &p);
    const jg_plan_details wanted = tuned_describe(c, &p, other);
    assert_status(tuned_record(c, &p, other), JG_OK);
    for (q.m = 33; q.m <= 64; q.m += 31) {
        const jg_plan_details d = tuned_chosen(c, &q);
        assert_string_equal(d.kernel, wanted.kernel);
        assert_int_equal(d.is_tuned, 1);
        assert_status(fixture_gemm(c, &q, 1, 0), JG_OK);
    }
    q.m = 32;
    assert_int_equal(tuned_chosen(c, &q).is_tuned, 0);
    q.m = 65;
    assert_int_equal(tuned_chosen(c, &q).is_tuned, 0);
    q.m = 40;
    q.dynamic = 0;
    assert_int_equal(tuned_chosen(c, &q).is_tuned, 0);
    /* Column-major with dynamic m: C's and A's leading dimensions follow, as those of n do in row-major. */
    jg_problem t = {.m = 48, .n = 64, .k = 64, .type_a = JG_F16, .order = JG_COL_MAJOR, .dynamic = JG_DYNAMIC_M};
    assert_status(tuned_record(c, &t, tuned_other(c, &t)), JG_OK);
    t.m = 56;
    assert_int_equal(tuned_chosen(c, &t).is_tuned, 1);
    t.m = 50; /* not aligned to 16 bytes any more */
    assert_int_equal(tuned_chosen(c, &t).is_tuned, 0);
    jg_problem batch = {.m = 16, .n = 16, .k = 64, .batch = 6, .type_a = JG_F16, .stride_a = 1024, .stride_b = 1024, .stride_c = 256,
                        .dynamic = JG_DYNAMIC_K | JG_DYNAMIC_BATCH};
    assert_status(tuned_record(c, &batch, tuned_other(c, &batch)), JG_OK);
    batch.batch = 8;
    batch.k = 48;
    batch.stride_a = 768;
    assert_int_equal(tuned_chosen(c, &batch).is_tuned, 1);
    batch.stride_a = 0; /* shared: another problem */
    assert_int_equal(tuned_chosen(c, &batch).is_tuned, 0);
    batch.stride_a = 768;
    batch.batch = 9;
    assert_int_equal(tuned_chosen(c, &batch).is_tuned, 0);
    assert_int_equal(fixture_stats(c).tuned, 3);
    assert_status(jg_close(c), JG_OK);
}

/* --- other bits --- */

/* Refused, unless asked for; then all forms and alignments of the problem sum alike, from the first call on. */
static void a_plan_of_another_class(void **state)
{
    (void)state;
    const jg_measured measured = {.us = 10}, with_new_bits = {.us = 10, .allow_new_bits = 1};
    jg_problem p = {.m = 64, .n = 64, .k = 256, .type_a = JG_F32}, narrow = p, generic = p, odd_rows = p;
    narrow.align_bytes = 4;
    generic.form = JG_FORM_GENERIC;
    odd_rows.lda = 259;
    jg_context *c = tuned_open();
    const size_t foreign = tuned_foreign(c, &p);
    const jg_plan_details wanted = tuned_describe(c, &p, foreign);
    const int before = tuned_describe(c, &p, 0).slices;
    char text[64];
    snprintf(text, sizeof text, "and the problem's class in %d", before);
    assert_int_not_equal(wanted.slices, before);
    assert_status(tuned_record_as(c, c, &p, foreign, &measured), JG_ERR_VALUE);
    assert_says(jg_last_error(), text);
    assert_int_equal(fixture_stats(c).tuned, 0);
    assert_status(tuned_record_as(c, c, &p, foreign, &with_new_bits), JG_OK);
    for (int pass = 0; pass < 2; pass++) {
        assert_string_equal(tuned_chosen(c, &p).kernel, wanted.kernel);
        assert_string_equal(tuned_chosen(c, &narrow).numeric_class, wanted.numeric_class);
        assert_string_equal(tuned_chosen(c, &generic).numeric_class, wanted.numeric_class);
        assert_string_equal(tuned_chosen(c, &odd_rows).numeric_class, wanted.numeric_class);
        assert_int_equal(tuned_chosen(c, &narrow).is_tuned, 0);
        const jg_problem larger = {.m = 64, .n = 64, .k = 260, .type_a = JG_F32};
        assert_int_equal(tuned_chosen(c, &larger).is_planned, 1);
        assert_status(jg_close(c), JG_OK);
        c = tuned_open();
    }
    assert_status(jg_close(c), JG_OK);
    /* A first call in the background: a generic kernel of that class. */
    plant_generic(fx.cache, JG_RESIDENT_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.prewarm = JG_PREWARM_NO_MET;
    c = fixture_open_with(options);
    const jg_plan_details first = tuned_chosen(c, &p);
    assert_int_equal(first.form, JG_FORM_GENERIC);
    assert_string_equal(first.numeric_class, wanted.numeric_class);
    finish(c);
    /* A later record of the problem's own class takes it all back. */
    c = tuned_open();
    assert_status(tuned_record_as(c, c, &narrow, 0, &with_new_bits), JG_OK);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(fixture_stats(c).tuned, 2);
        assert_int_equal(tuned_chosen(c, &p).slices, before);
        assert_int_equal(tuned_chosen(c, &p).is_tuned, 0);
        assert_int_equal(tuned_chosen(c, &narrow).is_tuned, 1);
        assert_status(jg_close(c), JG_OK);
        c = tuned_open();
    }
    assert_status(jg_close(c), JG_OK);
}

/* Sums of integers are exact in any order: there is one class. */
static void integers_have_one_class(void **state)
{
    (void)state;
    const jg_problem p = {.m = 64, .n = 64, .k = 256, .type_a = JG_S8};
    size_t count, all;
    jg_context *c = tuned_open();
    assert_status(jg_plan_count_candidates(c, &p, &count, &all), JG_OK);
    assert_int_equal(count, all);
    const int planned = tuned_chosen(c, &p).slices;
    size_t i = 0;
    while (i < all && tuned_describe(c, &p, i).slices == planned) i++;
    assert_true(i < all);
    const jg_plan_details wanted = tuned_describe(c, &p, i);
    assert_status(jg_close(c), JG_OK);
    c = tuned_open();
    assert_status(tuned_record(c, &p, i), JG_OK);
    assert_string_equal(tuned_chosen(c, &p).kernel, wanted.kernel);
    assert_status(jg_close(c), JG_OK);
}

static void which_classes_there_are(void **state)
{
    (void)state;
    problem p;
    limits l;
    const jg_problem in = square(64, JG_F32), strict = {.m = 8, .n = 8, .k = 8, .math = JG_MATH_STRICT};
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    assert_status(problem_canonicalise(&in, &p), JG_OK);
    assert_true(plan_has_class(&p, &l, plan_slices(&p, &l)) && plan_has_class(&p, &l, 1) && plan_has_class(&p, &l, 2));
    assert_false(plan_has_class(&p, &l, 0) || plan_has_class(&p, &l, 3) || plan_has_class(&p, &l, -1) || plan_has_class(&p, &l, 64));
    assert_status(problem_canonicalise(&strict, &p), JG_OK);
    assert_true(plan_has_class(&p, &l, 1));
    assert_false(plan_has_class(&p, &l, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(candidates_are_described_without_kernels), BACKGROUND_TEST(candidates_are_compiled_ahead),
        BACKGROUND_TEST(a_recorded_plan_is_used_from_then_on), BACKGROUND_TEST(a_recorded_plan_is_loaded_at_open),
        BACKGROUND_TEST(the_worker_makes_what_is_recorded), BACKGROUND_TEST(recording_meanwhile_leaves_what_is_under_way),
        BACKGROUND_TEST(it_holds_at_its_place_alone), BACKGROUND_TEST(the_model_alone_on_request),
        BACKGROUND_TEST(alignments_and_forms), BACKGROUND_TEST(dynamic_dimensions), BACKGROUND_TEST(a_plan_of_another_class),
        BACKGROUND_TEST(integers_have_one_class), BACKGROUND_TEST(which_classes_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
