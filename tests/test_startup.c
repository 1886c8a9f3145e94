/* src/startup.c on the fake driver: which generic kernels jg_open loads, from which file, what a sealed context lacks and how it
 * says so, and errors on the way. What prewarming asks for: test_startup_prewarm.c. */
#include "background_fixture.h"

#include "sample_records.h"

#include <sys/stat.h>
#include <unistd.h>

#define ALL_TYPES PLAN_RESIDENT_ALL

static char factory[4200];

/* A folder for the factory file, so that what lies in it can be counted. */
static int setup(void **state)
{
    int failed = background_setup(state);
    snprintf(factory, sizeof factory, "%s/factory/factory.db", fx.folder);
    return failed;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

static jg_options sealed_options(void)
{
    jg_options options = background_options();
    options.compile = JG_COMPILE_NEVER;
    return options;
}

static void seal(const char *file)
{
    jg_cache *cache;
    assert_status(jg_cache_open(file, 1, &cache), JG_OK);
    assert_status(jg_cache_seal(cache), JG_OK);
    jg_cache_close(cache);
}

static int is_set_loaded(uint32_t types)
{
    const spec_list list = generic_set(types);
    int loaded = 0;
    for (size_t i = 0; i < list.count; i++) {
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&list.specs[i], name);
        loaded += fx.fake->is_loaded(name);
    }
    return loaded == (int)list.count;
}

/* --- which --- */

static void options_say_which_are_resident(void **state)
{
    (void)state;
    static const struct {
        uint32_t resident, types;
        jg_compile compile;
    } cases[] = {
        {0, COMMON_TYPES, JG_COMPILE_BACKGROUND},
        {0, COMMON_TYPES, JG_COMPILE_DEFAULT},
        {0, COMMON_TYPES, JG_COMPILE_NEVER},
        {0, 0, JG_COMPILE_WAIT},
        {JG_RESIDENT_F16, JG_RESIDENT_F16, JG_COMPILE_WAIT},
        {JG_RESIDENT_F32, JG_RESIDENT_F32, JG_COMPILE_BACKGROUND},
        {JG_RESIDENT_BF16, JG_RESIDENT_BF16, JG_COMPILE_BACKGROUND},
        {ALL_TYPES, ALL_TYPES, JG_COMPILE_NEVER},
        {JG_RESIDENT_U8, JG_RESIDENT_U8, JG_COMPILE_NEVER},
        {JG_RESIDENT_S8 | JG_RESIDENT_S4, JG_RESIDENT_S8 | JG_RESIDENT_S4, JG_COMPILE_BACKGROUND},
        {JG_RESIDENT_E4M3, JG_RESIDENT_E4M3, JG_COMPILE_BACKGROUND},
        {JG_RESIDENT_TF32 | JG_RESIDENT_3XTF32, JG_RESIDENT_TF32 | JG_RESIDENT_3XTF32, JG_COMPILE_BACKGROUND},
        {JG_RESIDENT_NONE, 0, JG_COMPILE_BACKGROUND},
        {JG_RESIDENT_NONE, 0, JG_COMPILE_NEVER},
    };
    plant_generic(fx.cache, ALL_TYPES);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t count = generic_set(cases[i].types).count;
        jg_options options = background_options();
        options.compile = cases[i].compile;
        options.resident = cases[i].resident;
        options.memory_max_kernels = 1; /* no bound holds for them */
        jg_context *c = fixture_open_with(options);
        assert_int_equal(fx.fake->modules(), count);
        assert_true(is_set_loaded(cases[i].types));
        const jg_stats s = fixture_stats(c);
        assert_int_equal(s.resident, count);
        assert_int_equal(s.kernels, count);
        assert_int_equal(s.disk_hits, count);
        assert_int_equal(s.compiles + s.compile_failures + s.waits + s.queued + s.evictions, 0);
        assert_status(jg_close(c), JG_OK);
    }
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);
}

/* In background mode the worker makes what is missing, outside its budget, and it stays like the others. */
static void what_the_files_lack_the_worker_makes(void **state)
{
    (void)state;
    const spec_list list = generic_set(JG_RESIDENT_F32);
    const size_t missing = 2;
    fixture_plant_specs(fx.cache, list.specs, list.count - missing);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.worker.per_minute = 1;
    atomic_store(&nvrtc_double->accepts, 1);
    atomic_store(&nvrtc_double->holds, 1); /* so jg_open does not wait for it */
    char before[1024];
    snprintf(before, sizeof before, "%s", jg_last_error());
    jg_context *c = fixture_open_with(options);
    assert_string_equal(jg_last_error(), before); /* nothing has failed */
    assert_int_equal(fx.fake->modules(), list.count - missing);
    assert_int_equal(fixture_stats(c).resident, list.count - missing);
    assert_int_equal(fixture_stats(c).compiles, 0);
    atomic_store(&nvrtc_double->holds, 0);
    settle(c);
    const jg_poll_result r = poll_once(c);
    assert_int_equal(r.loaded, missing);
    assert_int_equal(r.swapped, 0);
    assert_true(is_set_loaded(JG_RESIDENT_F32));
    const jg_stats s = fixture_stats(c);
    assert_int_equal(s.resident, list.count);
    assert_int_equal(s.compiles, missing);
    assert_status(jg_close(c), JG_OK);

    atomic_store(&nvrtc_double->accepts, 0); /* they are in the file now */
    c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).resident, list.count);
    assert_status(jg_close(c), JG_OK);
}

/* A kernel that the driver refuses is as good as none: said, and left to the worker. */
static void a_refused_generic_kernel_is_made_again(void **state)
{
    (void)state;
    const size_t count = plant_generic(fx.cache, JG_RESIDENT_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    atomic_store(&nvrtc_double->accepts, 1);
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_NOT_SUPPORTED, FAKE_ONCE);
    jg_context *c = fixture_open_with(options);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_int_equal(fixture_stats(c).resident, count - 1);
    settle(c);
    assert_int_equal(poll_once(c).loaded, 1);
    assert_int_equal(fixture_stats(c).resident, count);
    assert_status(jg_close(c), JG_OK);

    options.compile = JG_COMPILE_NEVER;
    fx.fake->fail_call("cuModuleLoadDataEx", 1, CUDA_ERROR_NOT_SUPPORTED, FAKE_ONCE);
    assert_status(jg_open(&options, &c), JG_ERR_NOT_READY);
}

/* --- sealed --- */

#define refuses(options, ...)                                                                            \
    do {                                                                                                 \
        const char *const parts_[] = {__VA_ARGS__};                                                      \
        jg_context *c_ = (jg_context *)&factory;                                                         \
        assert_status(jg_open(&(options), &c_), JG_ERR_NOT_READY);                                       \
        assert_null(c_);                                                                                 \
        for (size_t i_ = 0; i_ < sizeof parts_ / sizeof parts_[0]; i_++) assert_says(jg_last_error(), parts_[i_]); \
        assert_int_equal(fx.fake->modules(), 0);                                                         \
    } while (0)

static int says(const char *part)
{
    return strstr(jg_last_error(), part) != NULL;
}

static void a_sealed_context_says_what_is_missing(void **state)
{
    (void)state;
    const spec_list list = generic_set(COMMON_TYPES);
    char all[64], one[64], name[KERNEL_NAME_BYTES];
    snprintf(all, sizeof all, "%zu of the %zu generic kernels", list.count, list.count);
    snprintf(one, sizeof one, "1 of the %zu generic kernels", list.count);
    kernel_format_name(&list.specs[list.count - 1], name);
    jg_options options = sealed_options();

    refuses(options, "sealed", "JG_COMPILE_NEVER", all, fx.cache, "jitgemm-prewarm --generic");
    assert_false(says("factory") || says("another version"));

    fixture_plant_specs(fx.cache, list.specs, list.count - 1);
    refuses(options, one, name, fx.cache);
    assert_false(says("another version"));

    const jg_problem p = square(8, JG_F32);
    const kernel_spec own = fixture_spec(&p, JG_FORM_AUTO);
    fixture_plant_specs(factory, &own, 1);
    seal(factory);
    options.factory_path = factory;
    refuses(options, one, name, fx.cache, factory);

    options.factory_path = "";
    options.cache_path = "";
    refuses(options, all, "(none)");
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 0);

    options.resident = JG_RESIDENT_NONE;
    assert_status(jg_close(fixture_open_with(options)), JG_OK);
}

/* A record of a kernel's name under a key that differs, as other templates give it. */
static void plant_namesake(const char *file, const kernel_spec *spec)
{
    char name[KERNEL_NAME_BYTES], error[512];
    kernel_key key;
    store *s;
    kernel_format_name(spec, name);
    kernel_encode_key(spec, &key);
    key.bytes[9] ^= 1;
    assert_int_equal(store_open(file, 0, 0, &s, error, sizeof error), STORE_OK);
    const store_record record = {.key = key.bytes, .key_bytes = sizeof key.bytes, .name = name, .target = "sm_87", .binary = "x",
                                 .binary_bytes = 1};
    assert_int_equal(store_put(s, &record, NULL), STORE_OK);
    store_close(s);
}

static void a_kernel_of_other_templates_is_hinted_at(void **state)
{
    (void)state;
    const spec_list list = generic_set(JG_RESIDENT_F32);
    jg_options options = sealed_options();
    options.resident = JG_RESIDENT_F32;

    plant_namesake(fx.cache, &list.specs[list.count - 1]); /* the first that is missing is what is looked for */
    refuses(options, fx.cache);
    assert_false(says("another version"));
    plant_namesake(fx.cache, &list.specs[0]);
    refuses(options, fx.cache, "another version's templates");

    plant_namesake(factory, &list.specs[0]);
    seal(factory);
    options.factory_path = factory;
    options.cache_path = scratch_path(fx.folder, "empty.db");
    refuses(options, factory, "another version's templates");
}

/* --- the factory file --- */

static void kernels_come_from_the_factory_file(void **state)
{
    (void)state;
    const size_t count = plant_generic(factory, COMMON_TYPES);
    seal(factory);
    assert_int_equal(chmod(factory, 0444), 0);
    assert_int_equal(chmod(scratch_path(fx.folder, "factory"), 0555), 0);
    size_t bytes_before, bytes_after;
    unsigned char *before = scratch_read(factory, &bytes_before);
    jg_options options = sealed_options();
    options.factory_path = factory;
    jg_context *c = fixture_open_with(options);
    jg_stats s = fixture_stats(c);
    assert_int_equal(s.resident, count);
    assert_string_equal(s.factory, factory);
    assert_string_equal(s.path, fx.cache);
    assert_int_equal(s.disk_entries, 0); /* nothing is copied */
    assert_int_equal(fx.logs[JG_LOG_WARNING] + fx.logs[JG_LOG_ERROR], 0);
    const jg_problem p = square(8, JG_F32);
    assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
    assert_true(ran_on(&p, JG_FORM_GENERIC));
    assert_status(jg_close(c), JG_OK);

    assert_int_equal(setenv("JITGEMM_FACTORY", factory, 1), 0);
    options.factory_path = NULL;
    options.cache_path = "";
    c = fixture_open_with(options);
    s = fixture_stats(c);
    assert_int_equal(s.resident, count);
    assert_string_equal(s.factory, factory);
    assert_string_equal(s.path, "");
    assert_status(jg_close(c), JG_OK);
    assert_int_equal(setenv("JITGEMM_FACTORY", "", 1), 0);
    c = NULL;
    assert_status(jg_open(&options, &c), JG_ERR_NOT_READY);

    unsigned char *after = scratch_read(factory, &bytes_after); /* and nothing was written */
    assert_int_equal(bytes_before, bytes_after);
    assert_memory_equal(before, after, bytes_after);
    free(before);
    free(after);
}

/* The user's file is asked first; where a kernel of it is damaged, the factory's serves. */
static void the_users_file_goes_before_it(void **state)
{
    (void)state;
    const size_t count = plant_generic(factory, JG_RESIDENT_F32);
    plant_generic(fx.cache, JG_RESIDENT_F32);
    sample_sql(factory, "UPDATE records SET binary=x'00'"); /* would be found damaged */
    seal(factory);
    jg_options options = sealed_options();
    options.resident = JG_RESIDENT_F32;
    options.factory_path = factory;
    jg_context *c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).resident, count);
    assert_int_equal(fixture_stats(c).disk_faults, 0);
    assert_status(jg_close(c), JG_OK);

    assert_int_equal(unlink(factory), 0);
    plant_generic(factory, JG_RESIDENT_F32);
    seal(factory);
    sample_sql(fx.cache, "UPDATE records SET binary=x'00'");
    c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).resident, count);
    assert_int_equal(fixture_stats(c).disk_faults, count);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_status(jg_close(c), JG_OK);
}

static void make_foreign(void)
{
    scratch_write(factory, "not a store at all", 18);
}

static void make_truncated(void)
{
    size_t bytes;
    plant_generic(factory, JG_RESIDENT_F32);
    seal(factory);
    unsigned char *all = scratch_read(factory, &bytes);
    scratch_write(factory, all, bytes / 2 / 4096 * 4096);
    free(all);
}

static void make_other_database(void)
{
    assert_int_equal(sample_sql(factory, "CREATE TABLE t(x)"), -1);
}

static void make_unsealed(void)
{
    plant_generic(factory, JG_RESIDENT_F32);
    scratch_write(scratch_path(fx.folder, "factory/factory.db-wal"), "x", 1);
}

static void make_nothing(void)
{
}

static void a_factory_file_that_cannot_be_used_is_said_once(void **state)
{
    (void)state;
    static void (*const make[])(void) = {make_nothing, make_foreign, make_unsealed, make_truncated, make_other_database};
    jg_options options = background_options();
    options.resident = JG_RESIDENT_NONE;
    options.factory_path = factory;
    plant_generic(factory, JG_RESIDENT_F32); /* for its folder */
    for (size_t i = 0; i < sizeof make / sizeof make[0]; i++) {
        unlink(factory);
        unlink(scratch_path(fx.folder, "factory/factory.db-wal"));
        if (make[i] == make_other_database) scratch_write(factory, "", 0);
        make[i]();
        memset(fx.logs, 0, sizeof fx.logs);
        jg_context *c = fixture_open_with(options);
        assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
        assert_string_equal(fixture_stats(c).factory, "");
        assert_int_equal(fx.logs[JG_LOG_ERROR], 0);
        assert_string_equal(fixture_stats(c).path, fx.cache);
        assert_status(jg_close(c), JG_OK);
    }
}

/* --- errors --- */

/* Whichever load it is that fails, the error is returned and nothing is left behind. */
static void a_lost_device_ends_jg_open(void **state)
{
    (void)state;
    const jg_problem list[] = {square(8, JG_F32), square(9, JG_F32)};
    const size_t loads = plant_generic(fx.cache, JG_RESIDENT_F32) + 2;
    plant_squares(8, 2, JG_F32);
    jg_options options = background_options();
    options.resident = JG_RESIDENT_F32;
    options.prewarm_problems = list;
    options.prewarm_count = 2;
    for (unsigned nth = 1; nth <= loads; nth++) {
        static const struct {
            CUresult result;
            jg_status status;
        } errors[] = {{CUDA_ERROR_ILLEGAL_ADDRESS, JG_ERR_DEVICE_LOST}, {CUDA_ERROR_OUT_OF_MEMORY, JG_ERR_NO_MEMORY}};
        for (size_t e = 0; e < 2; e++) {
            jg_context *c;
            fx.fake->fail_call("cuModuleLoadDataEx", nth, errors[e].result, FAKE_ONCE);
            assert_status(jg_open(&options, &c), errors[e].status);
            assert_null(c);
            assert_says(jg_last_error(), "loading the cubin of");
            assert_string_equal(fx.fake->leaks(), "");
        }
    }
    jg_context *c = fixture_open_with(options);
    assert_int_equal(fixture_stats(c).kernels, loads);
    assert_status(jg_close(c), JG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(options_say_which_are_resident),
        TEST(what_the_files_lack_the_worker_makes),
        TEST(a_refused_generic_kernel_is_made_again),
        TEST(a_sealed_context_says_what_is_missing),
        TEST(a_kernel_of_other_templates_is_hinted_at),
        TEST(kernels_come_from_the_factory_file),
        TEST(the_users_file_goes_before_it),
        TEST(a_factory_file_that_cannot_be_used_is_said_once),
        TEST(a_lost_device_ends_jg_open),
    };
    return cmocka_run_group_tests_name("startup", tests, NULL, NULL);
}
