/* Recorded plans with real kernels on the software GPU: a plan of the problem's class gives the same bits as what ran before; one of
 * another class gives others, and then every form and alignment of the problem gives those. */
#include "warm_fixture.h"

/* So that the order of additions shows. */
static const jg_problem p = {.m = 32, .n = 32, .k = 160, .type_a = JG_F16, .type_c = JG_F32};
enum { BYTES = 32 * 32 * 4 };

static int make_warm_cache(void **state)
{
    (void)state;
    warm_setup(0, &p, 1);
    return 0;
}

static jg_context *open_waiting(const char *cache)
{
    return warm_open((jg_options){.compile = JG_COMPILE_WAIT, .resident = JG_RESIDENT_NONE, .cache_path = cache});
}

/* What a product gives, by the kernel that a problem (the same in another form or alignment) gets now. */
static void run(jg_context *c, const jg_problem *as, unsigned char *bits, jg_plan_details *d)
{
    product x;
    jg_plan *made;
    product_make_of(&x, c, &p, REFERENCE_UNIFORM, 7);
    const jg_operands data = product_operands(&x, NULL);
    assert_status(jg_plan_create(c, as, &made), JG_OK);
    assert_status(jg_plan_info(made, d), JG_OK);
    assert_status(jg_plan_run(made, &data), JG_OK);
    assert_int_equal(x.ref.c.block_bytes - x.ref.c.offset_bytes >= BYTES, 1);
    assert_status(jg_copy(c, bits, data.c, BYTES), JG_OK);
    jg_plan_destroy(made);
    product_free(&x);
}

/* The first candidate from `index` on that the model does not choose. */
static void record(jg_context *c, size_t index, uint32_t allow_new_bits)
{
    jg_plan *made;
    jg_plan_details d;
    while (jg_plan_describe_candidate(c, &p, index, &d) == JG_OK && d.is_planned) index++;
    assert_status(jg_plan_create_candidate(c, &p, index, &made), JG_OK);
    assert_status(jg_record_plan(c, made, &(jg_measured){.us = 1, .allow_new_bits = allow_new_bits}), JG_OK);
    jg_plan_destroy(made);
}

static void bits_are_kept_but_on_request(void **state)
{
    (void)state;
    unsigned char before[BYTES], after[BYTES], now[BYTES];
    jg_problem generic = p, narrow = p;
    jg_plan_details planned, d;
    size_t count;
    const char *cache = warm_copy();
    generic.form = JG_FORM_GENERIC;
    narrow.align_bytes = 2;
    jg_context *c = open_waiting(cache);
    run(c, &p, before, &planned);
    assert_int_equal(planned.source, JG_SOURCE_DISK);
    assert_int_equal(planned.is_planned, 1);
    assert_status(jg_plan_count_candidates(c, &p, &count, NULL), JG_OK);
    record(c, 0, 0);
    assert_status(jg_close(c), JG_OK);

    c = open_waiting(cache);
    run(c, &p, now, &d);
    assert_int_equal(d.is_tuned, 1);
    assert_int_equal(d.is_planned, 0);
    assert_int_equal(d.source, JG_SOURCE_DISK);
    assert_memory_equal(now, before, BYTES);
    record(c, count, 1);
    assert_status(jg_close(c), JG_OK);

    c = open_waiting(cache);
    run(c, &p, after, &d);
    assert_int_equal(d.is_tuned, 1);
    assert_string_not_equal(d.numeric_class, planned.numeric_class);
    assert_memory_not_equal(after, before, BYTES);
    run(c, &generic, now, &d);
    assert_int_equal(d.form, JG_FORM_GENERIC);
    assert_memory_equal(now, after, BYTES);
    run(c, &narrow, now, &d);
    assert_int_equal(d.is_tuned, 0);
    assert_memory_equal(now, after, BYTES);
    assert_true(strstr(warm_stats(c).place, "software") != NULL);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WARM_TEST(bits_are_kept_but_on_request)};
    return cmocka_run_group_tests(tests, make_warm_cache, warm_teardown);
}
