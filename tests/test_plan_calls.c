/* jg_plan on the fake driver: alignment, what a plan tells of itself, how a choice is explained, and plans of the other candidates. */
#include "gemm_fixture.h"

static _Alignas(256) float room_a[1024], room_b[1024], room_c[1024];
static const jg_operands good = {.a = room_a, .b = room_b, .c = room_c};

/* A plan wants what its problem promised. */
static void plans_check_their_alignment(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F16);
    jg_problem narrow = p;
    narrow.align_bytes = 4;
    fixture_plant(&p, JG_FORM_AUTO);
    fixture_plant(&narrow, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    jg_plan *wide, *tight;
    assert_status(jg_plan_create(c, &p, &wide), JG_OK);
    assert_status(jg_plan_create(c, &narrow, &tight), JG_OK);
    const jg_operands by_4 = {.a = (char *)room_a + 4, .b = room_b, .c = room_c};
    const jg_operands by_2 = {.a = (char *)room_a + 2, .b = room_b, .c = room_c};
    assert_status(jg_plan_run(wide, &good), JG_OK);
    assert_status(jg_plan_run(wide, &by_4), JG_ERR_MISALIGNED);
    assert_says(jg_last_error(), "operands.a");
    assert_status(jg_plan_run(tight, &by_4), JG_OK);
    assert_status(jg_plan_run(tight, &by_2), JG_ERR_MISALIGNED);
    /* jg_gemm looks at the pointers, so the narrow kernel is found for them. */
    assert_status(jg_gemm(c, &p, &(jg_operands){.a = (char *)room_a + 4, .b = (char *)room_b + 4, .c = (char *)room_c + 4}),
                  JG_OK);
    jg_plan_destroy(wide);
    jg_plan_destroy(tight);
    assert_status(jg_close(c), JG_OK);
}

static void plan_info_tells_the_kernel_and_where_it_came_from(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F16);
    fixture_plant(&p, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    jg_plan *first, *second;
    jg_plan_details d;
    assert_status(jg_plan_create(c, &p, &first), JG_OK);
    assert_status(jg_plan_create(c, &p, &second), JG_OK);
    assert_status(jg_plan_info(first, &d), JG_OK);
    assert_string_equal(d.kernel, fixture_name(&p, JG_FORM_AUTO));
    assert_string_equal(d.family, "mma");
    assert_int_equal(d.source, JG_SOURCE_DISK);
    assert_int_equal(d.form, JG_FORM_SPECIALISED);
    assert_int_equal(d.arch, 87);
    assert_int_equal(d.registers, 77); /* the driver's figure */
    assert_true(d.compile_ms == 12);
    assert_true(d.threads >= 32 && d.grid_x == 1 && d.grid_y == 1 && d.blocks_per_sm > 0 && d.waves > 0);
    assert_status(jg_plan_info(second, &d), JG_OK);
    assert_int_equal(d.source, JG_SOURCE_MEMORY);
    jg_plan_destroy(first);
    assert_status(jg_close(c), JG_ERR_BUSY);
    assert_says(jg_last_error(), "1 plan is not destroyed");
    assert_status(jg_plan_run(second, &good), JG_OK); /* nothing happened */
    jg_plan_destroy(second);
    assert_status(jg_close(c), JG_OK);
}

/* What fixes the bits, of each kind of sum; all of them on an Orin. */
static void plan_info_tells_what_fixes_the_bits(void **state)
{
    (void)state;
    static const struct {
        jg_type a, b;
        uint32_t math;
        const char *family, *numeric_class;
    } rows[] = {
        {JG_F32, JG_F32, JG_MATH_DEFAULT, "simt", "fma.f32 ascending-k split%d"},
        {JG_F32, JG_F32, JG_MATH_STRICT, "simt", "mul+add.f32 ascending-k split1"},
        {JG_F32, JG_F32, JG_MATH_TF32, "tf32", "mma.m16n8k8.tf32 ascending-k split%d"},
        {JG_F32, JG_F32, JG_MATH_F32_3XTF32, "tf32", "mma.m16n8k8.3xtf32 ascending-k split%d"},
        {JG_F16, JG_F16, JG_MATH_DEFAULT, "mma", "mma.m16n8k16.f32 ascending-k split%d"},
        {JG_F16, JG_F16, JG_MATH_F16, "mma", "mma.m16n8k16.f16 ascending-k split%d"},
        {JG_F16, JG_F16, JG_MATH_STRICT, "simt", "mul+add.f32 ascending-k split1"},
        {JG_BF16, JG_BF16, JG_MATH_DEFAULT, "mma", "mma.m16n8k16.f32 ascending-k split%d"},
        {JG_E4M3, JG_E5M2, JG_MATH_DEFAULT, "mma", "mma.m16n8k16.f32 ascending-k split%d"},
        {JG_F16, JG_S8, JG_MATH_DEFAULT, "mma", "mma.m16n8k16.f32 ascending-k split%d"},
        {JG_S4, JG_BF16, JG_MATH_STRICT, "simt", "mul+add.f32 ascending-k split1"},
        {JG_S8, JG_U8, JG_MATH_DEFAULT, "mma", "exact.s32"},
        {JG_S4, JG_S4, JG_MATH_STRICT, "simt", "exact.s32"},
        {JG_F32, JG_F32, JG_MATH_STRICT | JG_MATH_FLUSH, "simt", "mul+add.f32 ascending-k split1 flush"},
        {JG_F16, JG_F16, JG_MATH_FLUSH | JG_MATH_SANITIZE, "mma", "mma.m16n8k16.f32 ascending-k split%d flush sanitize"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++) {
            const jg_problem p = {.m = 16, .n = 16, .k = 32, .type_a = rows[i].a, .type_b = rows[i].b, .math = rows[i].math,
                                  .form = (jg_form)form};
            fixture_plant(&p, JG_FORM_AUTO);
            jg_context *c = fixture_open_without_nvrtc();
            jg_plan *made;
            jg_plan_details d;
            char expected[64];
            assert_status(jg_plan_create(c, &p, &made), JG_OK);
            assert_status(jg_plan_info(made, &d), JG_OK);
            snprintf(expected, sizeof expected, rows[i].numeric_class, d.slices);
            assert_string_equal(d.numeric_class, expected);
            assert_string_equal(d.family, rows[i].family);
            assert_string_equal(d.kernel, fixture_name(&p, JG_FORM_AUTO));
            assert_status(jg_plan_run(made, &good), JG_OK);
            jg_plan_destroy(made);
            assert_status(jg_close(c), JG_OK);
        }
}

/* On a chip whose tensor cores lack it, a mode is refused by every call, whatever a cache holds. */
static void a_mode_that_the_chip_lacks_is_refused(void **state)
{
    (void)state;
    static const struct {
        jg_type type;
        uint32_t math;
        const char *name;
    } rows[] = {{JG_F32, JG_MATH_TF32, "JG_MATH_TF32"},
                {JG_F32, JG_MATH_F32_3XTF32, "JG_MATH_F32_3XTF32"},
                {JG_F16, JG_MATH_F16, "JG_MATH_F16"}};
    fx.fake->set_capability(75);
    jg_context *c = fixture_open_without_nvrtc();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jg_problem p = square(8, rows[i].type);
        jg_plan *made = (jg_plan *)room_a;
        char text[256], expected[160];
        snprintf(expected, sizeof expected, "sm_75 has no tensor cores for math = %s; nearest that works: JG_MATH_DEFAULT",
                 rows[i].name);
        p.math = rows[i].math;
        assert_status(jg_gemm(c, &p, &good), JG_ERR_UNSUPPORTED);
        assert_says(jg_last_error(), expected);
        assert_status(jg_plan_create(c, &p, &made), JG_ERR_UNSUPPORTED);
        assert_null(made);
        assert_says(jg_last_error(), expected);
        assert_status(jg_plan_explain(c, &p, text, sizeof text, NULL), JG_ERR_UNSUPPORTED);
        assert_says(jg_last_error(), expected);
    }
    assert_int_equal(fx.fake->modules(), 0);
    assert_status(jg_close(c), JG_OK);
}

static void explaining_loads_nothing(void **state)
{
    (void)state;
    const jg_problem p = square(256, JG_F16);
    jg_context *c = fixture_open_without_nvrtc();
    uint64_t before = fx.fake->all_calls();
    size_t length = 0, again = 0;
    char text[8192], cut[20];
    assert_status(jg_plan_explain(c, &p, text, sizeof text, &length), JG_OK);
    assert_int_equal(strlen(text), length);
    assert_ptr_equal(strstr(text, "chosen    jg_sm87_mma_f16f16f16"), text);
    assert_says(text, "slower    ");
    assert_says(text, fixture_name(&p, JG_FORM_AUTO));
    char last[KERNEL_NAME_BYTES + 100];
    snprintf(last, sizeof last, "x estimated over the generic kernel %s: worth its own kernel\n",
             fixture_name(&p, JG_FORM_GENERIC));
    assert_string_equal(text + length - strlen(last), last);
    assert_says(text, "\ngain      1.");
    assert_status(jg_plan_explain(c, &p, cut, sizeof cut, &again), JG_OK);
    assert_int_equal(again, length);
    assert_memory_equal(cut, text, sizeof cut - 1);
    assert_int_equal(cut[sizeof cut - 1], 0);
    assert_status(jg_plan_explain(c, &p, NULL, 0, &again), JG_OK);
    assert_int_equal(again, length);
    assert_int_equal(fx.fake->all_calls(), before);
    assert_status(jg_close(c), JG_OK);
}

/* A problem that leaves its sizes to the launch, and one that is to have no kernel of its own. */
static void explaining_says_what_an_own_kernel_gains(void **state)
{
    (void)state;
    jg_problem p = square(512, JG_F16);
    p.dynamic = JG_DYNAMIC_M | JG_DYNAMIC_N | JG_DYNAMIC_K | JG_DYNAMIC_BATCH;
    jg_context *c = fixture_open_without_nvrtc();
    char text[8192];
    assert_status(jg_plan_explain(c, &p, text, sizeof text, NULL), JG_OK);
    assert_says(text, ": not worth its own kernel\n");
    p.form = JG_FORM_GENERIC;
    assert_status(jg_plan_explain(c, &p, text, sizeof text, NULL), JG_OK);
    assert_null(strstr(text, "gain"));
    assert_status(jg_close(c), JG_OK);
}

/* Less than what was promised is enough where the kernel needs less: rows of odd length are read element by element. */
static void plans_want_no_more_than_their_kernel(void **state)
{
    (void)state;
    const jg_problem odd = {.m = 8, .n = 7, .k = 9, .type_a = JG_F16};
    fixture_plant(&odd, JG_FORM_AUTO);
    jg_context *c = fixture_open_without_nvrtc();
    jg_plan *made;
    assert_status(jg_plan_create(c, &odd, &made), JG_OK);
    const jg_operands by_2 = {.a = (char *)room_a + 2, .b = (char *)room_b + 2, .c = (char *)room_c + 2};
    const jg_operands by_1 = {.a = (char *)room_a + 1, .b = room_b, .c = room_c};
    assert_status(jg_plan_run(made, &by_2), JG_OK);
    assert_status(jg_plan_run(made, &by_1), JG_ERR_MISALIGNED);
    jg_plan_destroy(made);
    assert_status(jg_close(c), JG_OK);

    const jg_options cpu = {.device = JG_DEVICE_CPU, .cache_path = ""};
    const jg_problem p = square(8, JG_F32);
    assert_status(jg_open(&cpu, &c), JG_OK);
    assert_status(jg_plan_create(c, &p, &made), JG_OK);
    assert_status(jg_plan_run(made, &(jg_operands){.a = room_a + 1, .b = room_b + 1, .c = room_c + 1}), JG_OK);
    jg_plan_destroy(made);
    assert_status(jg_close(c), JG_OK);
}

/* One kernel, planted for one m, serves the others up to the next power of two. */
static void a_dynamic_dimension_shares_a_kernel(void **state)
{
    (void)state;
    jg_problem p = {.m = 17, .n = 16, .k = 24, .type_a = JG_F16, .form = JG_FORM_SPECIALISED, .dynamic = JG_DYNAMIC_M};
    fixture_plant(&p, JG_FORM_AUTO);
    assert_says(fixture_name(&p, JG_FORM_AUTO), "_mxn16k24_l24_16_16_");
    jg_context *c = fixture_open_without_nvrtc();
    for (p.m = 17; p.m <= 32; p.m += 3) {
        jg_plan *made;
        assert_status(jg_plan_create(c, &p, &made), JG_OK);
        assert_status(fixture_run_plan(made, &p), JG_OK);
        jg_plan_destroy(made);
    }
    assert_int_equal(fixture_stats(c).kernels, 1);
    assert_status(jg_close(c), JG_OK);
}

/* A plan of nothing, and a plan on the cpu, have no kernel and are fine. */
static void plans_without_a_kernel(void **state)
{
    (void)state;
    const jg_problem nothing = {.m = 0, .n = 8, .k = 8}, p = square(2, JG_F32);
    jg_context *c = fixture_open_without_nvrtc();
    jg_plan *made;
    jg_plan_details d;
    assert_status(jg_plan_create(c, &nothing, &made), JG_OK);
    assert_status(jg_plan_run(made, &(jg_operands){0}), JG_OK);
    jg_plan_destroy(made);
    assert_status(jg_close(c), JG_OK);
    const jg_options cpu = {.device = JG_DEVICE_CPU, .cache_path = ""};
    assert_status(jg_open(&cpu, &c), JG_OK);
    assert_status(jg_plan_create(c, &p, &made), JG_OK);
    assert_status(jg_plan_info(made, &d), JG_OK);
    assert_string_equal(d.family, "cpu");
    assert_int_equal(d.source, JG_SOURCE_CPU);
    const float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    float out[4] = {0};
    assert_status(jg_plan_run(made, &(jg_operands){.a = a, .b = b, .c = out}), JG_OK);
    const float expected[4] = {19, 22, 43, 50};
    assert_memory_equal(out, expected, sizeof out);
    jg_plan_destroy(made);
    assert_status(jg_close(c), JG_OK);
}

/* ---- candidates ---- */

typedef struct spec_list {
    kernel_spec specs[64];
    double clocks[64];
    size_t count, of_class;
    int slices, others;      /* of the class; take the others */
} spec_list;

static void add_legal(void *user, const plan *candidate, const char *reason)
{
    spec_list *list = user;
    if (reason[0] || (list->slices && candidate->spec.tile.slices != list->slices) != list->others) return;
    assert_true(list->count < 64);
    list->clocks[list->count] = candidate->clocks;
    list->specs[list->count++] = candidate->spec;
}

/* The legal candidates of a problem on an Orin, in the planner's order, those of its numeric class first. */
static void list_candidates(const jg_problem *in, spec_list *list)
{
    problem p;
    limits l;
    memset(list, 0, sizeof *list);
    assert_status(problem_canonicalise(in, &p), JG_OK);
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    list->slices = plan_slices(&p, &l);
    plan_each(&p, problem_promised_access(&p), gemm_planned_form(&p), &l, add_legal, list);
    list->of_class = list->count;
    list->others = 1;
    plan_each(&p, problem_promised_access(&p), gemm_planned_form(&p), &l, add_legal, list);
    assert_true(list->count > 1);
}

/* Each has the kernel of its number, runs on data, and changes nothing for others. */
static void candidates_in_the_planners_order(void **state)
{
    (void)state;
    static spec_list list;
    const jg_problem problems[] = {square(24, JG_F16), square(12, JG_F32),
                                   {.m = 24, .n = 40, .k = 16, .type_a = JG_F16, .form = JG_FORM_GENERIC},
                                   {.m = 9, .n = 7, .k = 5, .type_a = JG_F32, .order = JG_COL_MAJOR, .op_b = JG_T}};
    for (size_t n = 0; n < sizeof problems / sizeof problems[0]; n++) {
        const jg_problem *p = &problems[n];
        jg_plan *made[64];
        size_t count = 0, all = 0;
        list_candidates(p, &list);
        fixture_plant_specs(fx.cache, list.specs, list.count);
        jg_context *c = fixture_open_without_nvrtc();
        assert_status(jg_plan_count_candidates(c, p, &count, &all), JG_OK);
        assert_int_equal(count, list.of_class);
        assert_int_equal(all, list.count);
        assert_status(jg_plan_count_candidates(c, p, &count, NULL), JG_OK);
        assert_int_equal(count, list.of_class);
        count = all;
        assert_int_equal(fixture_stats(c).kernels, 0);
        for (size_t i = 0; i < count; i++) {
            char name[KERNEL_NAME_BYTES];
            jg_plan_details d;
            kernel_format_name(&list.specs[i], name);
            assert_status(jg_plan_create_candidate(c, p, i, &made[i]), JG_OK);
            assert_status(jg_plan_info(made[i], &d), JG_OK);
            assert_string_equal(d.kernel, name);
            assert_int_equal(d.source, JG_SOURCE_DISK);
            assert_int_equal(d.form, gemm_planned_form(&(problem){.form = (uint8_t)p->form, .k = p->k}));
            assert_true(d.estimate_clocks == list.clocks[i] && d.estimate_clocks > 0);
            assert_status(fixture_run_plan(made[i], p), JG_OK);
        }
        assert_int_equal(fixture_stats(c).kernels, count);
        assert_int_equal(fixture_stats(c).problems, 0);
        assert_int_equal(fixture_stats(c).launches_own + fixture_stats(c).launches_generic, count);
        assert_status(jg_close(c), JG_ERR_BUSY);
        jg_plan *own;
        jg_plan_details d;
        assert_status(jg_plan_create(c, p, &own), JG_OK);
        assert_status(jg_plan_info(own, &d), JG_OK);
        assert_string_equal(d.kernel, fixture_name(p, JG_FORM_AUTO));
        assert_int_equal(d.source, JG_SOURCE_MEMORY); /* as one of the candidates */
        jg_plan_destroy(own);
        for (size_t i = 0; i < count; i++) jg_plan_destroy(made[i]);
        assert_status(jg_close(c), JG_OK);
    }
}

static void candidates_past_the_end(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16), nothing = {.m = 0, .n = 8, .k = 8}, bad = {.m = -1, .n = 8, .k = 8};
    jg_context *c = fixture_open_without_nvrtc();
    jg_plan *made = (jg_plan *)room_a;
    size_t count, all;
    char text[128];
    assert_status(jg_plan_count_candidates(c, &p, &count, &all), JG_OK);
    snprintf(text, sizeof text, "candidate %zu; the problem has %zu, numbered from 0", all, all);
    assert_status(jg_plan_create_candidate(c, &p, all, &made), JG_ERR_VALUE);
    assert_null(made);
    assert_string_equal(jg_last_error(), text);
    assert_status(jg_plan_create_candidate(c, &p, (size_t)-1, &made), JG_ERR_VALUE);
    /* Nothing to compute: one that does nothing. */
    assert_status(jg_plan_count_candidates(c, &nothing, &count, &all), JG_OK);
    assert_int_equal(count, 1);
    assert_int_equal(all, 1);
    assert_status(jg_plan_create_candidate(c, &nothing, 1, &made), JG_ERR_VALUE);
    assert_status(jg_plan_create_candidate(c, &nothing, 0, &made), JG_OK);
    assert_status(jg_plan_run(made, &(jg_operands){0}), JG_OK);
    jg_plan_destroy(made);
    assert_status(jg_plan_create_candidate(c, &bad, 0, &made), JG_ERR_SIZE);
    assert_status(jg_plan_count_candidates(c, &bad, &count, &all), JG_ERR_SIZE);
    assert_status(jg_plan_create_candidate(NULL, &p, 0, &made), JG_ERR_NULL);
    assert_says(jg_last_error(), "context is null");
    assert_status(jg_plan_create_candidate(c, NULL, 0, &made), JG_ERR_NULL);
    assert_status(jg_plan_create_candidate(c, &p, 0, NULL), JG_ERR_NULL);
    assert_status(jg_plan_count_candidates(NULL, &p, &count, &all), JG_ERR_NULL);
    assert_status(jg_plan_count_candidates(c, NULL, &count, &all), JG_ERR_NULL);
    assert_status(jg_plan_count_candidates(c, &p, NULL, &all), JG_ERR_NULL);
    assert_says(jg_last_error(), "count is null");
    /* Neither compiler nor file has it. */
    assert_status(jg_plan_create_candidate(c, &p, 0, &made), JG_ERR_NO_NVRTC);
    assert_null(made);
    assert_status(jg_close(c), JG_OK);
}

static void candidates_on_other_devices(void **state)
{
    (void)state;
    const jg_problem p = square(8, JG_F32), tf32 = {.m = 8, .n = 8, .k = 8, .type_a = JG_F32, .math = JG_MATH_TF32};
    const jg_options cpu = {.device = JG_DEVICE_CPU, .cache_path = ""};
    jg_options sealed = fixture_options();
    jg_context *c;
    jg_plan *made;
    size_t count, all;
    assert_status(jg_open(&cpu, &c), JG_OK);
    assert_status(jg_plan_count_candidates(c, &p, &count, &all), JG_OK);
    assert_int_equal(count, 1);
    assert_int_equal(all, 1);
    assert_status(jg_plan_create_candidate(c, &p, 1, &made), JG_ERR_VALUE);
    assert_says(jg_last_error(), "candidate 1; the problem has 1");
    assert_status(jg_plan_create_candidate(c, &p, 0, &made), JG_OK);
    assert_status(fixture_run_plan(made, &p), JG_OK);
    jg_plan_destroy(made);
    assert_status(jg_close(c), JG_OK);
    sealed.compile = JG_COMPILE_NEVER;
    sealed.resident = JG_RESIDENT_NONE;
    assert_status(jg_open(&sealed, &c), JG_OK);
    assert_status(jg_plan_create_candidate(c, &p, 0, &made), JG_ERR_NOT_READY);
    assert_status(jg_close(c), JG_OK);
    fx.fake->set_capability(75);
    c = fixture_open_without_nvrtc();
    assert_status(jg_plan_count_candidates(c, &tf32, &count, &all), JG_ERR_UNSUPPORTED);
    assert_says(jg_last_error(), "sm_75 has no tensor cores for math = JG_MATH_TF32");
    assert_status(jg_plan_create_candidate(c, &tf32, 0, &made), JG_ERR_UNSUPPORTED);
    assert_null(made);
    assert_status(jg_close(c), JG_OK);
}

/* A plan pins its kernel: with room for one, two stay while they are held. */
static void candidates_are_pinned(void **state)
{
    (void)state;
    static spec_list list;
    const jg_problem p = square(24, JG_F16);
    list_candidates(&p, &list);
    fixture_plant_specs(fx.cache, list.specs, list.count);
    jg_options options = fixture_options();
    options.memory_max_kernels = 1;
    options.resident = JG_RESIDENT_NONE;
    jg_context *c = fixture_open_with(options);
    jg_plan *first, *second, *third;
    assert_status(jg_plan_create_candidate(c, &p, 0, &first), JG_OK);
    assert_status(jg_plan_create_candidate(c, &p, 1, &second), JG_OK);
    assert_int_equal(fixture_stats(c).kernels, 2);
    assert_status(fixture_run_plan(first, &p), JG_OK);
    assert_status(fixture_run_plan(second, &p), JG_OK);
    jg_plan_destroy(first);
    jg_plan_destroy(second);
    assert_status(jg_plan_create_candidate(c, &p, 2, &third), JG_OK);
    assert_int_equal(fixture_stats(c).kernels, 1);
    assert_status(fixture_run_plan(third, &p), JG_OK);
    jg_plan_destroy(third);
    assert_status(jg_close(c), JG_OK);
}

/* They want the alignment that the problem promised, as other plans do. */
static void candidates_check_their_alignment(void **state)
{
    (void)state;
    static spec_list list;
    jg_problem p = square(24, JG_F16);
    p.align_bytes = 4;
    list_candidates(&p, &list);
    fixture_plant_specs(fx.cache, list.specs, list.count);
    jg_context *c = fixture_open_without_nvrtc();
    jg_plan *made;
    assert_status(jg_plan_create_candidate(c, &p, 1, &made), JG_OK);
    assert_status(jg_plan_run(made, &(jg_operands){.a = (char *)room_a + 4, .b = room_b, .c = room_c}), JG_OK);
    assert_status(jg_plan_run(made, &(jg_operands){.a = (char *)room_a + 2, .b = room_b, .c = room_c}), JG_ERR_MISALIGNED);
    jg_plan_destroy(made);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(plans_check_their_alignment), FIXTURE_TEST(plan_info_tells_the_kernel_and_where_it_came_from),
        FIXTURE_TEST(plan_info_tells_what_fixes_the_bits), FIXTURE_TEST(a_mode_that_the_chip_lacks_is_refused),
        FIXTURE_TEST(explaining_loads_nothing), FIXTURE_TEST(explaining_says_what_an_own_kernel_gains),
        FIXTURE_TEST(plans_want_no_more_than_their_kernel), FIXTURE_TEST(plans_without_a_kernel),
        FIXTURE_TEST(a_dynamic_dimension_shares_a_kernel), FIXTURE_TEST(candidates_in_the_planners_order),
        FIXTURE_TEST(candidates_past_the_end), FIXTURE_TEST(candidates_on_other_devices), FIXTURE_TEST(candidates_are_pinned),
        FIXTURE_TEST(candidates_check_their_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
