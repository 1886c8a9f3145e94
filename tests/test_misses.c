/* src/misses.c on the fake driver: the list of misses there and back, rows of others, recorded gains and what they decide, and
 * prewarming what was missed. */
#include "background_fixture.h"

#include "misses.h"
#include "options.h"
#include "sample_records.h"

#include <math.h>

static limits orin(void)
{
    limits l;
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    return l;
}

/* The key of a problem whose operands are aligned so, in bytes. */
static problem_key key_with(const jg_problem *in, unsigned a, unsigned b, unsigned c)
{
    problem p;
    assert_status(problem_canonicalise(in, &p), JG_OK);
    return problem_key_of(&p, plan_access(&p, a, b, c));
}

static plan plan_of(const problem_key *key, jg_form form)
{
    const limits l = orin();
    plan chosen;
    assert_status(plan_choose(&key->problem, key->access, form, &l, &chosen), JG_OK);
    return chosen;
}

static images *open_images(const char *cache)
{
    jg_options given = background_options(), options;
    given.cache_path = cache;
    assert_status(options_resolve(&given, &options), JG_OK);
    images *files = images_open(&options, 0);
    assert_non_null(files);
    return files;
}

static void add(images *files, int sm, const problem_key *key, uint64_t count)
{
    const kernel_spec spec = plan_of(key, JG_FORM_SPECIALISED).spec;
    met *m = met_create(key, &spec, 1);
    assert_non_null(m);
    misses_add(files, sm, &m, &count, 1);
    met_drop(m);
}

static miss_list read_all(images *files, int sm, size_t expected)
{
    miss_list list;
    assert_status(misses_read(files, sm, &list), JG_OK);
    assert_int_equal(list.count, expected);
    return list;
}

/* --- the file's list, as others see it --- */

typedef struct row {
    char problem[JG_PROBLEM_TEXT_BYTES], target[16];
    uint64_t count;
    double gain;
    int cached;
} row;

static struct {
    row rows[64];
    size_t count;
} listed;

static int take_row(void *user, const jg_cache_miss *m)
{
    (void)user;
    row *r = &listed.rows[listed.count++];
    snprintf(r->problem, sizeof r->problem, "%s", m->problem);
    snprintf(r->target, sizeof r->target, "%s", m->target);
    r->count = m->count;
    r->gain = m->gain;
    r->cached = m->cached;
    return listed.count == 64;
}

static size_t list_file(void)
{
    jg_cache *cache;
    listed.count = 0;
    assert_status(jg_cache_open(fx.cache, 0, &cache), JG_OK);
    assert_status(jg_cache_misses(cache, take_row, NULL), JG_OK);
    jg_cache_close(cache);
    return listed.count;
}

#define assert_row(index, problem_, target_, count_, gain_)          \
    do {                                                             \
        assert_string_equal(listed.rows[index].problem, problem_);   \
        assert_string_equal(listed.rows[index].target, target_);     \
        assert_int_equal(listed.rows[index].count, count_);          \
        assert_true(listed.rows[index].gain == (gain_));             \
    } while (0)

static void misses_come_back_as_they_were(void **state)
{
    (void)state;
    const jg_problem eight = square(8, JG_F32);
    const jg_problem tall = {.m = 17, .n = 8, .k = 24, .type_a = JG_F16, .op_b = JG_T, .dynamic = JG_DYNAMIC_M};
    const problem_key wide = key_with(&eight, 16, 16, 16), narrow = key_with(&eight, 4, 4, 4);
    const problem_key mixed = key_with(&eight, 16, 4, 16), other = key_with(&tall, 16, 16, 16);
    fixture_plant(&eight, JG_FORM_AUTO);
    images *files = open_images(fx.cache);
    add(files, 87, &wide, 3);
    add(files, 87, &narrow, 10);
    add(files, 87, &other, 5);
    add(files, 87, &mixed, 1);
    add(files, 87, &wide, 4);
    miss_list list = read_all(files, 87, 4);
    const problem_key *const order[] = {&narrow, &wide, &other, &mixed};
    const uint64_t counts[] = {10, 7, 5, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_memory_equal(&list.misses[i].key, order[i], sizeof *order[i]);
        assert_int_equal(list.misses[i].count, counts[i]);
        assert_int_equal(list.misses[i].cached, order[i] == &wide);
        assert_true(list.misses[i].gain == 0);
    }
    misses_free(&list);
    assert_int_equal(list.count, 0);
    misses_free(&list); /* nothing is left to free */
    images_drop(files);

    assert_int_equal(list_file(), 4);
    assert_row(0, "8:align=4", "sm_87", 10, 0);
    assert_row(1, "8", "sm_87", 7, 0);
    assert_row(2, "17x8x24:f16:nt:dyn=m", "sm_87", 5, 0);
    assert_true(listed.rows[1].cached && !listed.rows[0].cached);
}

/* The text of a problem is kept whole, however long. */
static void long_texts_are_not_cut(void **state)
{
    (void)state;
    const jg_problem eight = square(8, JG_F32);
    const jg_problem far = {.m = 1, .n = 1, .k = 2147483647, .batch = 2, .type_a = JG_S8, .type_b = JG_BF16, .op_a = JG_T,
                            .form = JG_FORM_SPECIALISED, .ldc = INT64_C(2000000000000000000),
                            .ld_residual = INT64_C(3000000000000000000), .stride_a = INT64_C(4000000000000000000),
                            .stride_b = INT64_C(1000000000000000000), .stride_c = INT64_C(2000000000000000001),
                            .stride_residual = INT64_C(2000000000000000001),
                            .math = JG_MATH_STRICT | JG_MATH_FLUSH | JG_MATH_SANITIZE,
                            .epilogue = 0xffu & ~JG_EPILOGUE_RESIDUAL, .activation = JG_ACTIVATION_GELU_TANH,
                            .type_bias = JG_BF16, .group_k = 128, .zero_points = 1};
    char text[JG_PROBLEM_TEXT_BYTES];
    assert_status(jg_problem_format(&far, text, sizeof text, NULL), JG_OK);
    assert_true(strlen(text) > 256);
    const problem_key plain = key_with(&eight, 16, 16, 16), key = key_with(&far, 16, 16, 16);
    const kernel_spec spec = plan_of(&plain, JG_FORM_SPECIALISED).spec; /* any */
    images *files = open_images(fx.cache);
    met *m = met_create(&key, &spec, 1);
    misses_add(files, 87, &m, &(uint64_t){3}, 1);
    met_drop(m);
    miss_list list = read_all(files, 87, 1);
    assert_memory_equal(&list.misses[0].key, &key, sizeof key);
    misses_free(&list);
    images_drop(files);
    assert_int_equal(list_file(), 1);
    assert_row(0, text, "sm_87", 3, 0);
}

static void other_rows_are_passed_over(void **state)
{
    (void)state;
    const jg_problem eight = square(8, JG_F32), nine = square(9, JG_F32);
    const problem_key ours = key_with(&eight, 16, 16, 16), theirs = key_with(&nine, 16, 16, 16);
    images *files = open_images(fx.cache);
    add(files, 87, &ours, 1);
    add(files, 80, &theirs, 100);
    unsigned char blob[8 + sizeof(problem_key) + 1] = "jgmiss02";
    memcpy(blob + 8, &theirs, sizeof theirs);
    const store_miss longer = {.key = blob, .key_bytes = sizeof blob, .target = "sm_87", .label = "longer", .count = 50};
    const store_miss shorter = {.key = blob, .key_bytes = 8, .target = "sm_87", .label = "shorter", .count = 49};
    assert_int_equal(store_add_misses(files->store, &longer, 1), STORE_OK);
    assert_int_equal(store_add_misses(files->store, &shorter, 1), STORE_OK);
    blob[7] = '3';
    const store_miss later = {.key = blob, .key_bytes = sizeof blob - 1, .target = "sm_87", .label = "later", .count = 48};
    assert_int_equal(store_add_misses(files->store, &later, 1), STORE_OK);

    miss_list list = read_all(files, 87, 1);
    assert_memory_equal(&list.misses[0].key, &ours, sizeof ours);
    misses_free(&list);
    list = read_all(files, 80, 1);
    assert_memory_equal(&list.misses[0].key, &theirs, sizeof theirs);
    misses_free(&list);
    list = read_all(files, 90, 0);
    misses_free(&list);
    images_drop(files);
    assert_int_equal(list_file(), 5);
    assert_status(jg_close(background_open()), JG_OK);
}

static void without_a_file_there_are_none(void **state)
{
    (void)state;
    const jg_problem eight = square(8, JG_F32);
    const problem_key key = key_with(&eight, 16, 16, 16);
    images *files = open_images("");
    add(files, 87, &key, 1);
    miss_list list = read_all(files, 87, 0);
    assert_true(misses_gain(files, 87, &key) == 0);
    misses_free(&list);
    assert_int_equal(files->disk_faults, 0);
    images_drop(files);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 0);
}

static void a_fault_is_said_once(void **state)
{
    (void)state;
    const jg_problem eight = square(8, JG_F32);
    const problem_key key = key_with(&eight, 16, 16, 16);
    images *files = open_images(fx.cache);
    sample_sql(fx.cache, "DROP TABLE misses");
    add(files, 87, &key, 1);
    assert_int_equal(files->disk_faults, 1);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_says(fx.log, "list of misses");
    miss_list list = read_all(files, 87, 0);
    misses_free(&list);
    assert_int_equal(files->disk_faults, 2);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_true(misses_gain(files, 87, &key) == 0);
    images_drop(files);
}

/* --- recorded gains --- */

static jg_context *open_small(void)
{
    jg_options options = background_options();
    options.prewarm = JG_PREWARM_NO_MET;
    return fixture_open_with(options);
}

static void record(jg_problem p, double gain)
{
    jg_options options = background_options();
    options.resident = JG_RESIDENT_NONE;
    jg_context *c = fixture_open_with(options);
    assert_status(jg_record_gain(c, &p, gain), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

static void bad_gains_are_refused(void **state)
{
    (void)state;
    static const double bad[] = {0, -1, -0.0, NAN, INFINITY, -INFINITY};
    const jg_problem p = square(8, JG_F32), negative = {.m = -1, .n = 1, .k = 1}, empty = {.m = 0, .n = 1, .k = 1};
    jg_options options = background_options();
    options.resident = JG_RESIDENT_NONE;
    jg_context *c = fixture_open_with(options);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_status(jg_record_gain(c, &p, bad[i]), JG_ERR_VALUE);
        assert_says(jg_last_error(), "gain");
    }
    assert_status(jg_record_gain(NULL, &p, 1), JG_ERR_NULL);
    assert_says(jg_last_error(), "context");
    assert_status(jg_record_gain(c, NULL, 1), JG_ERR_NULL);
    assert_says(jg_last_error(), "problem");
    assert_status(jg_record_gain(c, &negative, 1), JG_ERR_SIZE);
    assert_status(jg_record_gain(c, &empty, 1), JG_OK);
    assert_int_equal(list_file(), 0);
    sample_sql(fx.cache, "DROP TABLE misses");
    assert_status(jg_record_gain(c, &p, 1), JG_ERR_FILE);
    assert_true(jg_last_error()[0] != 0);
    assert_status(jg_close(c), JG_OK);

    options.cache_path = "";
    c = fixture_open_with(options);
    assert_status(jg_record_gain(c, &p, 1), JG_ERR_FILE);
    assert_says(jg_last_error(), "no cache file");
    assert_status(jg_close(c), JG_OK);
}

static void a_gain_and_counts_share_a_row(void **state)
{
    (void)state;
    const jg_problem eight = square(8, JG_F32);
    const jg_problem odd = {.m = 8, .n = 8, .k = 8, .align_bytes = 4};
    const problem_key key = key_with(&eight, 16, 16, 16);
    record(eight, 1.25);
    assert_int_equal(list_file(), 1);
    assert_row(0, "8", "sm_87", 0, 1.25);
    images *files = open_images(fx.cache);
    miss_list list = read_all(files, 87, 0); /* it was measured, and not missed */
    misses_free(&list);
    add(files, 87, &key, 3);
    assert_true(misses_gain(files, 87, &key) == 1.25);
    assert_true(misses_gain(files, 80, &key) == 0);
    images_drop(files);
    record(eight, 0.5);
    record(odd, 7);
    assert_int_equal(list_file(), 2);
    assert_row(0, "8", "sm_87", 3, 0.5);
    assert_row(1, "8:align=4", "sm_87", 0, 7);

    jg_options options = background_options(); /* a build host records for what it builds for */
    options.device = JG_DEVICE_CPU;
    options.arch = 90;
    jg_context *c = fixture_open_with(options);
    assert_status(jg_record_gain(c, &eight, 9), JG_OK);
    assert_status(jg_close(c), JG_OK);
    assert_int_equal(list_file(), 3);
    int of_90 = 0;
    for (size_t i = 0; i < listed.count; i++) of_90 += !strcmp(listed.rows[i].target, "sm_90") && listed.rows[i].gain == 9;
    assert_int_equal(of_90, 1);
}

/* Launches on host memory, operands so many bytes past a multiple of 256; alpha = 0 spares the arithmetic. */
static void launch(jg_context *c, const jg_problem *p, float alpha, size_t off_a, size_t off_b, size_t off_c)
{
    const size_t bytes = (size_t)(p->m * p->n) * 4 + 4096;
    unsigned char *memory[3];
    for (int i = 0; i < 3; i++) {
        assert_non_null(memory[i] = aligned_alloc(256, (bytes + 255) / 256 * 256));
        memset(memory[i], 0, (bytes + 255) / 256 * 256);
    }
    const jg_operands data = {.a = memory[0] + off_a, .b = memory[1] + off_b, .c = memory[2] + off_c, .alpha = &alpha};
    assert_status(jg_gemm(c, p, &data), JG_OK);
    for (int i = 0; i < 3; i++) free(memory[i]);
}

/* Whether background mode makes the kernel of a problem that is used often. */
static int is_made(jg_problem p, size_t offset)
{
    jg_context *c = open_small();
    const int before = atomic_load(&nvrtc_double->compiles);
    for (int i = 0; i < 4; i++) launch(c, &p, 0, offset, offset, offset);
    if (!offset) assert_true(ran_on(&p, JG_FORM_GENERIC));
    settle(c);
    const int made = (int)poll_once(c).loaded;
    assert_int_equal(atomic_load(&nvrtc_double->compiles) - before, made);
    assert_status(jg_close(c), JG_OK);
    return made;
}

static void a_gain_below_the_threshold_is_not_made(void **state)
{
    (void)state;
    plant_generic(fx.cache, COMMON_TYPES);
    atomic_store(&nvrtc_double->accepts, 1);
    record(square(8, JG_F32), 1.01);
    record(square(12, JG_F32), 1.02);
    assert_false(is_made(square(8, JG_F32), 0));
    assert_true(is_made(square(8, JG_F32), 4)); /* with other accesses it is another problem */
    assert_true(is_made(square(12, JG_F32), 0));
    assert_true(is_made(square(16, JG_F32), 0));
}

/* A product in whose own kernel nothing is known but its types: the estimate sees no gain. */
static jg_problem find_worthless(void)
{
    const jg_problem p = {.m = 64, .n = 64, .k = 64, .type_a = JG_F16,
                          .dynamic = JG_DYNAMIC_M | JG_DYNAMIC_N | JG_DYNAMIC_K | JG_DYNAMIC_BATCH};
    const problem_key key = key_with(&p, 16, 16, 16);
    const plan own = plan_of(&key, JG_FORM_SPECIALISED), generic = plan_of(&key, JG_FORM_GENERIC);
    assert_true(plan_gain(&generic, &own) < PLAN_GAIN_WORTHWHILE);
    return p;
}

static void a_gain_above_it_is_made_whatever_the_estimate(void **state)
{
    (void)state;
    const jg_problem p = find_worthless();
    plant_generic(fx.cache, COMMON_TYPES);
    atomic_store(&nvrtc_double->accepts, 1);
    assert_false(is_made(p, 0));
    assert_int_equal(list_file(), 1); /* but counted */
    assert_int_equal(listed.rows[0].count, 4);
    record(p, 1.5);
    assert_true(is_made(p, 0));
}

/* --- prewarming what was missed --- */

typedef struct sighting {
    jg_problem problem;
    size_t a, b, c; /* offsets, bytes */
} sighting;

static kernel_spec spec_of(const sighting *s)
{
    const unsigned offsets[] = {(unsigned)s->a, (unsigned)s->b, (unsigned)s->c};
    unsigned align[3];
    for (int i = 0; i < 3; i++) align[i] = offsets[i] % 16 ? offsets[i] & -offsets[i] : 16;
    const problem_key key = key_with(&s->problem, align[0], align[1], align[2]);
    return plan_of(&key, JG_FORM_SPECIALISED).spec;
}

static void what_was_missed_is_prewarmed(void **state)
{
    (void)state;
    const sighting seen[] = {
        {square(8, JG_F32), 0, 0, 0},  {square(12, JG_F32), 4, 4, 4}, {square(16, JG_F32), 0, 4, 0},
        {square(32, JG_F16), 0, 0, 0}, {square(64, JG_F16), 2, 0, 0}, {square(48, JG_F16), 4, 8, 2},
    };
    enum { SEEN = sizeof seen / sizeof seen[0] };
    const size_t generic_count = plant_generic(fx.cache, COMMON_TYPES);
    jg_options options = background_options(); /* the first run can compile nothing */
    jg_context *c = fixture_open_with(options);
    for (size_t i = 0; i < SEEN; i++)
        for (size_t j = 0; j <= i; j++) launch(c, &seen[i].problem, 1, seen[i].a, seen[i].b, seen[i].c);
    settle(c);
    assert_int_equal(fixture_stats(c).compiles, 0);
    assert_int_equal(fixture_stats(c).launches_generic, SEEN * (SEEN + 1) / 2);
    assert_status(jg_close(c), JG_OK);
    assert_int_equal(list_file(), SEEN);
    for (size_t i = 0; i < SEEN; i++) assert_int_equal(listed.rows[i].count, SEEN - i);

    atomic_store(&nvrtc_double->accepts, 1);
    c = open_small();
    jg_prewarm_result r;
    assert_status(jg_prewarm(c, NULL, 0, &(jg_prewarm_options){.from_misses = 1, .jobs = 2}, &r), JG_OK);
    assert_int_equal(r.compiled, SEEN);
    assert_int_equal(r.cached + r.failed, 0);
    for (size_t i = 0; i < SEEN; i++) {
        const kernel_spec spec = spec_of(&seen[i]);
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&spec, name);
        assert_true(fx.fake->is_loaded(name));
        launch(c, &seen[i].problem, 1, seen[i].a, seen[i].b, seen[i].c);
        assert_string_equal(fx.fake->last_launch().kernel, name);
    }
    const jg_problem more = square(20, JG_F32);
    assert_status(jg_prewarm(c, &more, 1, &(jg_prewarm_options){.from_misses = 1}, &r), JG_OK);
    assert_int_equal(r.compiled, 1);
    assert_int_equal(r.cached, SEEN);
    assert_status(jg_close(c), JG_OK);

    options.compile = JG_COMPILE_NEVER; /* and a sealed run after it has them from the start */
    c = fixture_open_with(options);
    assert_int_equal(fx.fake->modules(), generic_count + SEEN);
    for (size_t i = 0; i < SEEN; i++) launch(c, &seen[i].problem, 1, seen[i].a, seen[i].b, seen[i].c);
    assert_int_equal(fixture_stats(c).launches_own, SEEN);
    assert_status(jg_close(c), JG_OK);
}

/* A problem that was met, and measured: the recorded gain decides here as it does in background mode. */
static void a_measured_gain_decides_what_is_prewarmed(void **state)
{
    (void)state;
    const jg_problem slow = square(8, JG_F32), fast = square(24, JG_F32);
    plant_generic(fx.cache, COMMON_TYPES);
    jg_context *c = fixture_open_with(background_options()); /* it can compile nothing */
    for (int i = 0; i < 2; i++) {
        launch(c, &slow, 1, 0, 0, 0);
        launch(c, &fast, 1, 0, 0, 0);
    }
    settle(c);
    assert_status(jg_close(c), JG_OK);
    record(slow, 1.01);
    record(fast, 1.03);
    atomic_store(&nvrtc_double->accepts, 1);
    c = open_small();
    jg_prewarm_result r;
    assert_status(jg_prewarm(c, NULL, 0, &(jg_prewarm_options){.from_misses = 1}, &r), JG_OK);
    assert_int_equal(r.compiled, 1);
    assert_true(fx.fake->is_loaded(fixture_name(&fast, JG_FORM_SPECIALISED)));
    assert_false(fx.fake->is_loaded(fixture_name(&slow, JG_FORM_SPECIALISED)));
    assert_status(jg_close(c), JG_OK);
}

static void an_empty_list_prewarms_nothing(void **state)
{
    (void)state;
    atomic_store(&nvrtc_double->accepts, 1);
    plant_generic(fx.cache, COMMON_TYPES);
    record(square(8, JG_F32), 3);
    jg_context *c = open_small();
    jg_prewarm_result r;
    assert_status(jg_prewarm(c, NULL, 0, &(jg_prewarm_options){.from_misses = 1}, &r), JG_OK);
    assert_int_equal(r.compiled + r.cached + r.failed, 0);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(misses_come_back_as_they_were),
        BACKGROUND_TEST(long_texts_are_not_cut),
        BACKGROUND_TEST(other_rows_are_passed_over),
        BACKGROUND_TEST(without_a_file_there_are_none),
        BACKGROUND_TEST(a_fault_is_said_once),
        BACKGROUND_TEST(bad_gains_are_refused),
        BACKGROUND_TEST(a_gain_and_counts_share_a_row),
        BACKGROUND_TEST(a_gain_below_the_threshold_is_not_made),
        BACKGROUND_TEST(a_gain_above_it_is_made_whatever_the_estimate),
        BACKGROUND_TEST(what_was_missed_is_prewarmed),
        BACKGROUND_TEST(a_measured_gain_decides_what_is_prewarmed),
        BACKGROUND_TEST(an_empty_list_prewarms_nothing),
    };
    return cmocka_run_group_tests_name("misses", tests, NULL, NULL);
}
