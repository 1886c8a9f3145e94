/* src/images.c without a device: where the bytes of a kernel come from, what a failed compile leaves behind, what a fault of a
 * file costs, and who closes it all. */
#include "background_fixture.h"

#include "images.h"

#include <dirent.h>
#include <sched.h>
#include <sqlite3.h>
#include <unistd.h>

static char factory[4200];

static int images_setup(void **state)
{
    int status = background_setup(state);
    snprintf(factory, sizeof factory, "%s/factory.db", fx.folder);
    return status;
}

#define IMAGES_TEST(function) cmocka_unit_test_setup_teardown(function, images_setup, fixture_teardown)

static jg_options options_for(const char *cache, const char *below)
{
    return (jg_options){.cache_path = cache, .factory_path = below, .nvrtc_path = fake_nvrtc_path(), .log = fixture_log,
                        .log_user = &fx, .log_level = JG_LOG_DEBUG, .trace = events_trace};
}

static images *open_with(const char *cache, const char *below)
{
    const jg_options options = options_for(cache, below);
    images *i = images_open(&options, 0);
    assert_non_null(i);
    return i;
}

static kernel_spec spec_of(int64_t size)
{
    const jg_problem p = square(size, JG_F32);
    return fixture_spec(&p, JG_FORM_AUTO);
}

static jg_status get(images *i, int64_t size, effort how, jg_source *source)
{
    const kernel_spec spec = spec_of(size);
    image img = {0};
    jg_status status = images_get(i, &spec, "label", how, &img, source);
    if (status == JG_OK) {
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&spec, name);
        assert_true(img.cubin_bytes > 0 && img.ptx_bytes > 0);
        assert_says(img.ptx, name);
        assert_int_equal(img.ptx[img.ptx_bytes], 0);
    }
    image_free(&img);
    return status;
}

static void plant(const char *file, int64_t size)
{
    const kernel_spec spec = spec_of(size);
    fixture_plant_specs(file, &spec, 1);
}

static int has(images *i, int64_t size)
{
    const kernel_spec spec = spec_of(size);
    kernel_key key;
    kernel_encode_key(&spec, &key);
    return images_have(i, &key);
}

static void spoil(const char *file, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* --- files --- */

static void the_cache_goes_first_then_the_factory_file(void **state)
{
    (void)state;
    jg_source source = JG_SOURCE_CPU;
    plant(factory, 16);
    plant(factory, 17);
    plant(fx.cache, 17);
    plant(fx.cache, 18);
    images *i = open_with(fx.cache, factory);
    assert_string_equal(i->path, fx.cache);
    assert_string_equal(i->factory_path, factory);
    for (int64_t size = 16; size < 19; size++) {
        assert_int_equal(has(i, size), 1);
        assert_status(get(i, size, EFFORT_DISK, &source), JG_OK);
        assert_int_equal(source, JG_SOURCE_DISK);
    }
    assert_int_equal(has(i, 19), 0);
    assert_status(get(i, 19, EFFORT_DISK, &source), JG_ERR_NOT_READY);
    assert_says(jg_last_error(), "not cached");
    assert_int_equal(atomic_load(&i->disk_hits), 3);
    assert_int_equal(atomic_load(&i->disk_misses), 1); /* one, whatever the number of files */
    assert_int_equal(atomic_load(&i->disk_faults), 0);
    images_drop(i);

    i = open_with("", ""); /* neither */
    assert_int_equal(has(i, 16), 0);
    assert_status(get(i, 16, EFFORT_DISK, &source), JG_ERR_NOT_READY);
    assert_int_equal(atomic_load(&i->disk_misses), 0);
    images_drop(i);
    i = open_with("", factory);
    assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_OK);
    assert_int_equal(source, JG_SOURCE_DISK);
    images_drop(i);
}

/* A damaged record is as good as none: the factory file's serves, else it is compiled. It is said once. */
static void damage_costs_a_look_further(void **state)
{
    (void)state;
    jg_source source;
    for (int64_t size = 16; size < 19; size++) plant(fx.cache, size);
    plant(factory, 16);
    spoil(fx.cache, "UPDATE records SET binary = zeroblob(length(binary))");
    images *i = open_with(fx.cache, factory);
    fx.logs[JG_LOG_WARNING] = 0;
    assert_status(get(i, 16, EFFORT_DISK, &source), JG_OK);
    assert_status(get(i, 17, EFFORT_DISK, &source), JG_ERR_NOT_READY);
    atomic_store(&nvrtc_double->accepts, 1);
    assert_status(get(i, 18, EFFORT_COMPILE, &source), JG_OK);
    assert_int_equal(source, JG_SOURCE_COMPILED);
    assert_int_equal(atomic_load(&i->disk_faults), 3);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    assert_status(get(i, 18, EFFORT_DISK, &source), JG_OK); /* written anew */
    images_drop(i);
}

/* A file that cannot be written costs nothing but the next process's compile. */
static void a_failed_write_is_said_once(void **state)
{
    (void)state;
    jg_source source;
    atomic_store(&nvrtc_double->accepts, 1);
    images *i = open_with(fx.cache, "");
    spoil(fx.cache, "DROP TABLE records");
    fx.logs[JG_LOG_WARNING] = 0;
    for (int64_t size = 16; size < 19; size++) {
        assert_status(get(i, size, EFFORT_COMPILE, &source), JG_OK);
        assert_int_equal(source, JG_SOURCE_COMPILED);
    }
    assert_true(atomic_load(&i->disk_faults) >= 3);
    assert_int_equal(fx.logs[JG_LOG_WARNING], 1);
    images_drop(i);
}

/* --- compiling --- */

static void a_compile_is_told_and_kept(void **state)
{
    (void)state;
    jg_source source;
    atomic_store(&nvrtc_double->accepts, 1);
    images *i = open_with(fx.cache, "");
    assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_OK);
    assert_string_equal(events_text(), "C");
    assert_string_equal(events_last(JG_EVENT_COMPILE).problem, "label");
    assert_true(events_last(JG_EVENT_COMPILE).ms > 0);
    assert_says(fx.log, " for label");
    assert_int_equal(fx.logs[JG_LOG_INFO], 1);
    images_drop(i);
    i = open_with(fx.cache, "");
    assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_OK);
    assert_int_equal(source, JG_SOURCE_DISK);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    assert_int_equal(atomic_load(&i->compiles), 0);
    images_drop(i);
}

/* What NVRTC refuses is not tried by calls again; those who compile on their own thread may, and what they make good is
 * forgotten. */
static void a_refusal_is_remembered(void **state)
{
    (void)state;
    jg_source source;
    images *i = open_with("", "");
    for (int round = 0; round < 3; round++) {
        assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_ERR_COMPILE);
        assert_says(jg_last_error(), "planted refusal");
        assert_int_equal(atomic_load(&nvrtc_double->compiles), 1);
    }
    assert_status(get(i, 17, EFFORT_COMPILE, &source), JG_ERR_COMPILE); /* another kernel */
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 2);
    assert_status(get(i, 16, EFFORT_COMPILE_HERE, &source), JG_ERR_COMPILE);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 3);
    assert_int_equal(atomic_load(&i->compile_failures), 3);
    atomic_store(&nvrtc_double->accepts, 1);
    assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_ERR_COMPILE);
    assert_status(get(i, 16, EFFORT_COMPILE_HERE, &source), JG_OK);
    assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_OK); /* without a file, so compiled once more */
    assert_status(get(i, 17, EFFORT_COMPILE, &source), JG_ERR_COMPILE);
    assert_int_equal(atomic_load(&nvrtc_double->compiles), 5);
    images_drop(i);
}

/* NVRTC may be installed while the process runs. */
static void a_missing_compiler_is_not_remembered(void **state)
{
    (void)state;
    jg_source source;
    const char *link = scratch_path(fx.folder, "libnvrtc.so");
    jg_options options = options_for("", "");
    options.nvrtc_path = link;
    images *i = images_open(&options, 0);
    assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_ERR_NO_NVRTC);
    assert_says(jg_last_error(), link);
    atomic_store(&nvrtc_double->accepts, 1);
    char path[4096];
    assert_non_null(realpath(fake_nvrtc_path(), path));
    assert_int_equal(symlink(path, link), 0);
    assert_status(get(i, 16, EFFORT_COMPILE, &source), JG_OK);
    images_drop(i);
}

static void compiles_are_expected_to_take_what_they_took(void **state)
{
    (void)state;
    jg_source source;
    atomic_store(&nvrtc_double->accepts, 1);
    images *i = open_with("", "");
    assert_true(images_expected_ms(i) == 300);
    for (int64_t size = 16; size < 18; size++) assert_status(get(i, size, EFFORT_COMPILE, &source), JG_OK);
    const double mean = (double)atomic_load(&i->compile_us) * 1e-3 / 2;
    assert_true(mean > 0 && images_expected_ms(i) == mean);
    atomic_store(&nvrtc_double->accepts, 0);
    assert_status(get(i, 19, EFFORT_COMPILE, &source), JG_ERR_COMPILE); /* does not count */
    assert_true(images_expected_ms(i) == mean);
    images_drop(i);
}

/* --- cancelling --- */

typedef struct compiling {
    images *images;
    jg_status status;
    char error[512];
} compiling;

static void *compile_16(void *argument)
{
    compiling *c = argument;
    jg_source source;
    c->status = get(c->images, 16, EFFORT_COMPILE_HERE, &source);
    if (c->status != JG_OK) snprintf(c->error, sizeof c->error, "%s", jg_last_error());
    return NULL;
}

/* A compile under way is stopped where NVRTC can be, later ones are refused; neither is a failure of the kernel. */
static void cancelling_ends_compiles(void **state)
{
    (void)state;
    jg_source source;
    for (int is_deaf = 0; is_deaf < 2; is_deaf++) {
        pthread_t thread;
        compiling c = {.images = open_with("", "")};
        atomic_store(&nvrtc_double->accepts, 1);
        atomic_store(&nvrtc_double->cancelled, 0);
        atomic_store(&nvrtc_double->holds, 1);
        atomic_store(&nvrtc_double->is_deaf, is_deaf);
        assert_int_equal(compile_spawn(&thread, compile_16, &c), 0);
        while (!atomic_load(&nvrtc_double->running)) sched_yield();
        compiler_cancel(c.images->compiler);
        if (is_deaf) atomic_store(&nvrtc_double->holds, 0);
        pthread_join(thread, NULL);
        atomic_store(&nvrtc_double->holds, 0);
        assert_int_equal(c.status, is_deaf ? JG_OK : JG_ERR_CANCELLED);
        if (!is_deaf) assert_says(c.error, "cancelled");
        assert_int_equal(atomic_load(&nvrtc_double->cancelled), !is_deaf);
        const int compiles = atomic_load(&nvrtc_double->compiles);
        for (int64_t size = 16; size < 18; size++) assert_status(get(c.images, size, EFFORT_COMPILE, &source), JG_ERR_CANCELLED);
        assert_int_equal(atomic_load(&nvrtc_double->compiles), compiles);
        assert_int_equal(atomic_load(&c.images->compile_failures), 0);
        images_drop(c.images);
    }
    /* One whose NVRTC was not open yet; others are not touched. */
    images *closed = open_with("", ""), *other = open_with("", "");
    compiler_cancel(closed->compiler);
    assert_status(get(closed, 16, EFFORT_COMPILE, &source), JG_ERR_CANCELLED);
    assert_status(get(other, 16, EFFORT_COMPILE, &source), JG_OK);
    images_drop(closed);
    images_drop(other);
}

/* --- who closes it --- */

static int open_files(void)
{
    int count = 0;
    DIR *entries = opendir("/proc/self/fd");
    while (readdir(entries)) count++;
    closedir(entries);
    return count;
}

static void the_last_one_closes_the_files(void **state)
{
    (void)state;
    jg_source source;
    plant(fx.cache, 16);
    plant(factory, 17);
    const int before = open_files();
    images *i = open_with(fx.cache, factory);
    assert_true(open_files() > before);
    assert_ptr_equal(images_keep(i), i);
    assert_ptr_equal(images_keep(i), i);
    images_drop(i);
    assert_status(get(i, 16, EFFORT_DISK, &source), JG_OK);
    images_drop(i);
    assert_status(get(i, 17, EFFORT_DISK, &source), JG_OK);
    images_drop(i);
    assert_int_equal(open_files(), before);
    images_drop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IMAGES_TEST(the_cache_goes_first_then_the_factory_file),
        IMAGES_TEST(damage_costs_a_look_further),
        IMAGES_TEST(a_failed_write_is_said_once),
        IMAGES_TEST(a_compile_is_told_and_kept),
        IMAGES_TEST(a_refusal_is_remembered),
        IMAGES_TEST(a_missing_compiler_is_not_remembered),
        IMAGES_TEST(compiles_are_expected_to_take_what_they_took),
        IMAGES_TEST(cancelling_ends_compiles),
        IMAGES_TEST(the_last_one_closes_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
