/* jg_record_plan and the files around it: what is refused, what is written, who reads it. */
#include "tuned_fixture.h"

#include "sample_records.h"

#include <math.h>
#include <time.h>
#include <unistd.h>

static const jg_measured measured = {.us = 10, .planned_us = 12.5};

static jg_context *open_file(const char *cache, const char *factory)
{
    jg_options options = background_options();
    atomic_store(&nvrtc_double->accepts, 1);
    options.compile = JG_COMPILE_WAIT;
    options.resident = JG_RESIDENT_NONE;
    options.cache_path = cache;
    options.factory_path = factory;
    return fixture_open_with(options);
}

static const char *other_file(void)
{
    return scratch_path(fx.folder, "other.db");
}

/* --- what is refused --- */

static void refuses_what_is_no_measurement(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16), nothing = {.m = 0, .n = 8, .k = 8};
    static const double bad[] = {0, -1, NAN, INFINITY};
    jg_plan *made, *own, *empty;
    jg_context *c = tuned_open();
    assert_status(jg_plan_create_candidate(c, &p, 0, &made), JG_OK);
    assert_status(jg_plan_create_candidate(c, &nothing, 0, &empty), JG_OK);
    assert_status(jg_plan_create(c, &p, &own), JG_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_status(jg_record_plan(c, made, &(jg_measured){.us = bad[i]}), JG_ERR_VALUE);
        assert_says(jg_last_error(), "us is ");
    }
    assert_status(jg_record_plan(c, made, &(jg_measured){.us = 1, .reserved = 1}), JG_ERR_VALUE);
    assert_says(jg_last_error(), "reserved");
    assert_status(jg_record_plan(c, own, &measured), JG_ERR_VALUE);
    assert_says(jg_last_error(), "not a plan that jg_plan_create_candidate gave");
    assert_status(jg_record_plan(c, empty, &measured), JG_ERR_VALUE);
    assert_status(jg_record_plan(NULL, made, &measured), JG_ERR_NULL);
    assert_says(jg_last_error(), "context is null");
    assert_status(jg_record_plan(c, NULL, &measured), JG_ERR_NULL);
    assert_status(jg_record_plan(c, made, NULL), JG_ERR_NULL);
    assert_int_equal(fixture_stats(c).tuned, 0);
    assert_int_equal(sample_sql(fx.cache, "SELECT COUNT(*) FROM choices"), 0);
    jg_plan_destroy(made);
    jg_plan_destroy(own);
    jg_plan_destroy(empty);
    assert_status(jg_close(c), JG_OK);
}

static void refuses_a_plan_of_another_place(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    const jg_options cpu = {.device = JG_DEVICE_CPU, .cache_path = fx.cache};
    jg_context *c = tuned_open(), *host;
    jg_options fewer = background_options();
    fewer.compile = JG_COMPILE_WAIT;
    fewer.sm_count = 8;
    jg_context *small = fixture_open_with(fewer);
    jg_plan *made, *of_host;
    assert_status(jg_open(&cpu, &host), JG_OK);
    assert_status(jg_plan_create_candidate(c, &p, 0, &made), JG_OK);
    assert_status(jg_plan_create_candidate(host, &p, 0, &of_host), JG_OK);
    assert_status(jg_record_plan(small, made, &measured), JG_ERR_VALUE);
    assert_says(jg_last_error(), "the plan is for sm_87 16sm unknown, and this context for sm_87 8sm unknown");
    assert_status(jg_record_plan(host, made, &measured), JG_ERR_VALUE);
    assert_says(jg_last_error(), "the cpu device");
    assert_status(jg_record_plan(host, of_host, &measured), JG_ERR_VALUE);
    assert_string_equal(fixture_stats(host).place, "");
    jg_plan_destroy(made);
    jg_plan_destroy(of_host);
    assert_status(jg_close(host), JG_OK);
    assert_status(jg_close(small), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

static void needs_a_file_to_write(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    jg_context *c = open_file("", "");
    assert_status(tuned_record(c, &p, 0), JG_ERR_FILE);
    assert_says(jg_last_error(), "no cache file");
    assert_status(jg_close(c), JG_OK);
    tuned_plant(fx.cache, &p, JG_FORM_AUTO);
    c = tuned_open();
    assert_status(tuned_record(c, &p, 0), JG_OK);
    assert_int_equal(unlink(fx.cache), 0);
    assert_status(tuned_record(c, &p, 1), JG_ERR_FILE);
    assert_says(jg_last_error(), "deleted or replaced");
    assert_int_equal(fixture_stats(c).tuned, 1); /* only what is in the file is used, too */
    assert_status(jg_close(c), JG_OK);
}

/* --- what is written --- */

typedef struct seen_plan {
    int count, stop_after;
    char problem[JG_PROBLEM_TEXT_BYTES], place[64], kernel[256], planned[256], runner_up[256], reason[512], device[64], power_mode[64];
    jg_measured measured;
    int64_t created;
    int cached;
} seen_plan;

static int see(void *user, const jg_cache_plan *row)
{
    seen_plan *s = user;
    const jg_measured *m = &row->measured;
    const struct {
        char *to;
        size_t size;
        const char *from;
    } texts[] = {{s->problem, sizeof s->problem, row->problem}, {s->place, sizeof s->place, row->place},
                 {s->kernel, sizeof s->kernel, row->kernel},    {s->planned, sizeof s->planned, m->planned},
                 {s->runner_up, sizeof s->runner_up, m->runner_up}, {s->reason, sizeof s->reason, m->reason},
                 {s->device, sizeof s->device, m->device},      {s->power_mode, sizeof s->power_mode, m->power_mode}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) snprintf(texts[i].to, texts[i].size, "%s", texts[i].from);
    s->measured = *m;
    s->created = row->created;
    s->cached = row->cached;
    return ++s->count == s->stop_after;
}

static seen_plan listed(const char *path)
{
    seen_plan s = {.count = 0};
    jg_cache *cache;
    assert_status(jg_cache_open(path, 0, &cache), JG_OK);
    assert_status(jg_cache_plans(cache, see, &s), JG_OK);
    jg_cache_close(cache);
    return s;
}

static void all_that_was_measured_is_kept(void **state)
{
    (void)state;
    const jg_problem p = {.m = 24, .n = 40, .k = 64, .type_a = JG_F16, .type_c = JG_F32};
    char long_text[1000];
    const jg_measured all = {.us = 10.25, .planned_us = 12.5, .runner_up_us = 10.5, .planned = "jg_planned", .runner_up = "jg_second",
                             .reason = "waves", .measured = 6, .all = 20, .device = "Orin", .sm_mhz = 1300, .power_mode = "MAXN"};
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    jg_context *c = tuned_open();
    char name[192];
    snprintf(name, sizeof name, "%s", tuned_describe(c, &p, 1).kernel);
    assert_status(tuned_record_as(c, c, &p, 1, &all), JG_OK);
    seen_plan s = listed(fx.cache);
    assert_int_equal(s.count, 1);
    assert_string_equal(s.problem, "24x40x64:f16-f32");
    assert_string_equal(s.place, TUNED_PLACE);
    assert_string_equal(s.kernel, name);
    assert_string_equal(s.planned, "jg_planned");
    assert_string_equal(s.runner_up, "jg_second");
    assert_string_equal(s.reason, "waves");
    assert_string_equal(s.device, "Orin");
    assert_string_equal(s.power_mode, "MAXN");
    assert_true(s.measured.us == 10.25 && s.measured.planned_us == 12.5 && s.measured.runner_up_us == 10.5 && s.measured.sm_mhz == 1300);
    assert_true(s.measured.measured == 6 && s.measured.all == 20 && s.cached);
    assert_true(s.created <= (int64_t)time(NULL) && s.created > (int64_t)time(NULL) - 60);
    /* A later one takes its place; what is not known is empty, and a long text is cut. */
    assert_status(tuned_record_as(c, c, &p, 0, &(jg_measured){.us = 9, .reason = long_text}), JG_OK);
    s = listed(fx.cache);
    assert_int_equal(s.count, 1);
    assert_int_equal(fixture_stats(c).tuned, 1);
    assert_string_not_equal(s.kernel, name);
    assert_string_equal(s.planned, "");
    assert_int_equal(strlen(s.reason), 255);
    assert_true(s.measured.us == 9 && s.measured.planned_us == 0 && s.measured.all == 0);
    assert_status(jg_close(c), JG_OK);
}

/* By place, then by problem; until the visitor has seen enough. */
static void plans_are_listed_and_forgotten(void **state)
{
    (void)state;
    static const int64_t sizes[] = {32, 16, 24};
    jg_cache *cache;
    seen_plan first = {.stop_after = 1};
    size_t removed = 9;
    jg_context *c = tuned_open();
    for (size_t i = 0; i < 3; i++) {
        const jg_problem p = square(sizes[i], JG_F16);
        assert_status(tuned_record(c, &p, 0), JG_OK);
    }
    assert_status(jg_cache_open(fx.cache, 1, &cache), JG_OK);
    assert_status(jg_cache_plans(cache, see, &first), JG_OK);
    assert_int_equal(first.count, 1);
    assert_string_equal(first.problem, "16:f16");
    assert_status(jg_cache_plans(NULL, see, &first), JG_ERR_NULL);
    assert_status(jg_cache_plans(cache, NULL, NULL), JG_ERR_NULL);
    assert_says(jg_last_error(), "visit is null");
    assert_status(jg_cache_verify(cache, NULL, NULL, NULL, NULL), JG_OK);
    assert_status(jg_cache_clear_plans(NULL, &removed), JG_ERR_NULL);
    assert_int_equal(removed, 0);
    assert_status(jg_cache_clear_plans(cache, &removed), JG_OK);
    assert_int_equal(removed, 3);
    assert_status(jg_cache_clear_plans(cache, NULL), JG_OK);
    assert_int_equal(fixture_stats(c).disk_entries, 3); /* their kernels stay */
    jg_cache_close(cache);
    assert_status(jg_close(c), JG_OK);
    c = tuned_open();
    assert_int_equal(fixture_stats(c).tuned, 0);
    const jg_problem p = square(32, JG_F16);
    assert_status(tuned_record(c, &p, 0), JG_OK);
    assert_status(jg_close(c), JG_OK);
    assert_status(jg_cache_open(fx.cache, 1, &cache), JG_OK);
    assert_status(jg_cache_clear(cache, &removed), JG_OK);
    jg_cache_close(cache);
    assert_int_equal(listed(fx.cache).count, 0);
}

/* A miss of the size is served by the recorded kernel from then on, and the list says so. */
static int note_cached(void *user, const jg_cache_miss *miss)
{
    *(int *)user = 10 * *(int *)user + 1 + (miss->cached != 0);
    return 0;
}

static void misses_follow_the_record(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F32), q = square(25, JG_F32);
    jg_cache *cache;
    int seen = 0;
    plant_generic(fx.cache, JG_RESIDENT_F32);
    jg_context *c = background_open(); /* its NVRTC refuses */
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    finish(c);
    c = tuned_open();
    assert_status(tuned_record(c, &p, tuned_other(c, &p)), JG_OK);
    assert_status(tuned_record(c, &q, tuned_other(c, &q)), JG_OK); /* never met: no miss */
    assert_status(jg_close(c), JG_OK);
    assert_status(jg_cache_open(fx.cache, 0, &cache), JG_OK);
    assert_status(jg_cache_misses(cache, note_cached, &seen), JG_OK);
    assert_int_equal(seen, 2);
    assert_status(jg_cache_verify(cache, NULL, NULL, NULL, NULL), JG_OK);
    jg_cache_close(cache);
}

static void explaining_tells_of_it(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    char text[8192], line[512], day[32];
    const time_t now = time(NULL);
    struct tm utc;
    jg_context *c = tuned_open();
    assert_status(jg_plan_explain(c, &p, text, sizeof text, NULL), JG_OK);
    assert_null(strstr(text, "tuned"));
    const size_t other = tuned_other(c, &p);
    assert_status(tuned_record(c, &p, other), JG_OK);
    assert_status(jg_plan_explain(c, &p, text, sizeof text, NULL), JG_OK);
    snprintf(line, sizeof line, "chosen    %s:", tuned_describe(c, &p, other).kernel);
    assert_memory_equal(text, line, strlen(line));
    strftime(day, sizeof day, "%Y-%m-%d", gmtime_r(&now, &utc));
    snprintf(line, sizeof line, "\ntuned     the fastest measured on %s, %s: 10.00 us, 1.25x as fast as what the planner's model chooses\n", day,
             TUNED_PLACE);
    assert_says(text, line);
    snprintf(line, sizeof line, "\nother     %s:", fixture_name(&p, JG_FORM_AUTO));
    assert_says(text, line);
    assert_status(jg_close(c), JG_OK);
}

/* --- files --- */

/* Measured in one context, which has a file of its own, for another: only what is recorded gets there. */
static void a_plan_brings_its_kernel(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    jg_context *c = tuned_open(), *scratch = open_file(other_file(), "");
    jg_plan *made;
    for (size_t i = 0; i < 3; i++) assert_status(jg_plan_compile_candidate(scratch, &p, i), JG_OK);
    atomic_store(&nvrtc_double->accepts, 0);
    const jg_plan_details wanted = tuned_describe(scratch, &p, 1);
    assert_status(jg_plan_create_candidate(scratch, &p, 1, &made), JG_OK);
    assert_status(jg_record_plan(c, made, &measured), JG_OK);
    assert_int_equal(fixture_stats(c).disk_entries, 1);
    assert_int_equal(fixture_stats(c).compiles, 0);
    assert_string_equal(tuned_chosen(c, &p).kernel, wanted.kernel);
    assert_int_equal(tuned_describe(scratch, &p, 1).is_tuned, 0);
    jg_plan_destroy(made);
    assert_status(jg_close(scratch), JG_OK);
    assert_status(jg_close(c), JG_OK);
    assert_int_equal(sample_sql(fx.cache, "SELECT COUNT(*) FROM records WHERE LENGTH(provenance)>0 AND LENGTH(defines)>0"), 1);

    /* From a context without a file it is made; where it cannot be, nothing is recorded. */
    const jg_problem q = square(32, JG_F16);
    c = tuned_open();
    scratch = open_file("", "");
    assert_status(jg_plan_create_candidate(scratch, &q, 0, &made), JG_OK);
    atomic_store(&nvrtc_double->accepts, 0);
    assert_status(jg_record_plan(c, made, &measured), JG_ERR_COMPILE);
    assert_int_equal(fixture_stats(c).tuned, 1);
    assert_int_equal(sample_sql(fx.cache, "SELECT COUNT(*) FROM choices"), 1);
    jg_plan_destroy(made);
    assert_status(jg_close(scratch), JG_OK);
    assert_status(jg_close(c), JG_OK);
}

/* The factory file's plans are used, but those of the cache file go before them. */
static void the_cache_file_goes_before_the_factory_file(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16), q = square(32, JG_F16);
    jg_cache *cache;
    char factory[4200];
    snprintf(factory, sizeof factory, "%s", other_file());
    jg_context *c = open_file(factory, "");
    const size_t of_p = tuned_other(c, &p), of_q = tuned_other(c, &q);
    assert_status(tuned_record(c, &p, of_p), JG_OK);
    assert_status(tuned_record(c, &q, of_q), JG_OK);
    char wanted[192];
    snprintf(wanted, sizeof wanted, "%s", tuned_describe(c, &q, of_q).kernel);
    assert_status(jg_close(c), JG_OK);
    assert_status(jg_cache_open(factory, 1, &cache), JG_OK);
    assert_status(jg_cache_seal(cache), JG_OK);
    jg_cache_close(cache);
    c = open_file("", factory); /* no file but this */
    assert_int_equal(fixture_stats(c).tuned, 2);
    assert_string_equal(tuned_chosen(c, &q).kernel, wanted);
    assert_status(jg_close(c), JG_OK);
    c = open_file(fx.cache, factory);
    assert_status(tuned_record(c, &q, of_q), JG_OK);
    assert_int_equal(fixture_stats(c).disk_entries, 0); /* the factory file has the kernel */
    size_t count, third = 0;
    assert_status(jg_plan_count_candidates(c, &p, &count, NULL), JG_OK);
    while (third == of_p || tuned_describe(c, &p, third).is_planned) third++;
    assert_true(third < count);
    assert_status(tuned_record(c, &p, third), JG_OK);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(fixture_stats(c).tuned, 2);
        assert_string_equal(tuned_chosen(c, &p).kernel, tuned_describe(c, &p, third).kernel);
        assert_string_equal(tuned_chosen(c, &q).kernel, wanted);
        assert_status(jg_close(c), JG_OK);
        c = open_file(fx.cache, factory);
    }
    assert_status(jg_close(c), JG_OK);
}

static void a_sealed_context_uses_what_is_recorded(void **state)
{
    (void)state;
    const jg_problem p = square(24, JG_F16);
    jg_context *c = tuned_open();
    const size_t other = tuned_other(c, &p);
    assert_status(jg_plan_compile_candidate(c, &p, 0), JG_OK);
    assert_status(tuned_record(c, &p, other), JG_OK);
    assert_status(jg_close(c), JG_OK);
    jg_options options = fixture_options();
    options.compile = JG_COMPILE_NEVER;
    options.resident = JG_RESIDENT_NONE;
    options.prewarm_problems = &p;
    options.prewarm_count = 1;
    c = fixture_open_with(options);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_string_equal(fx.fake->last_launch().kernel, tuned_describe(c, &p, other).kernel);
    assert_status(tuned_record(c, &p, 0), JG_OK); /* it is in the file */
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(refuses_what_is_no_measurement), BACKGROUND_TEST(refuses_a_plan_of_another_place),
        BACKGROUND_TEST(needs_a_file_to_write), BACKGROUND_TEST(all_that_was_measured_is_kept),
        BACKGROUND_TEST(plans_are_listed_and_forgotten), BACKGROUND_TEST(misses_follow_the_record),
        BACKGROUND_TEST(explaining_tells_of_it), BACKGROUND_TEST(a_plan_brings_its_kernel),
        BACKGROUND_TEST(the_cache_file_goes_before_the_factory_file), BACKGROUND_TEST(a_sealed_context_uses_what_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
