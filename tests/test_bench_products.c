/* Suites of products as jitgemm-bench runs them, on the software GPU: command line in, document out. What is timed is tested in
 * test_bench_contest.c; here it is which sizes are measured, how they are planned, and what is refused. */
#include "bench_gpu_fixture.h"
#include "output_fixture.h"

#include "tools/bench_products.h"
#include "tools/bench_run.h"

static bench_run run;
static cJSON *document;    /* of the last run */
static char no_nvrtc[600]; /* why there is none; "": there is */

/* ---- running ---- */

/* Measures with these arguments, on a chip. Returns the exit status; what was written, errors too, is in `out`. */
static int measure(const char *device, const char *arguments)
{
    static char text[16384], program[] = "jitgemm-bench";
    char *argv[64] = {program};
    int argc = 1;
    setenv("JITGEMM_SWGPU_DEVICE", device, 1);
    unsetenv("JITGEMM_SWGPU_BLOCKS");
    snprintf(text, sizeof text, "%s --driver %s --cache %s --json", arguments, swgpu_path(),
             scratch_path(folder, "kernels.db"));
    for (char *word = strtok(text, " "); word && argc < 63; word = strtok(NULL, " ")) argv[argc++] = word;
    cJSON_Delete(document);
    document = NULL;
    optind = 0; /* getopt begins anew, as a process does */
    memset(&run, 0, sizeof run);
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    catch_output();
    dup2(STDOUT_FILENO, STDERR_FILENO);
    int status = bench_args_parse(argc, argv, &run.args);
    if (status < 0) {
        run.report = (bench_report){.format = run.args.format};
        progress_begin(&run.progress, stderr, PROGRESS_NONE, "");
        status = bench_gpu_open(run.args.driver_path, &run.gpu) == JG_OK ? BENCH_EXIT_DONE : BENCH_EXIT_FAILED;
        bench_args_resolve(&run.args, run.gpu.software);
        bench_report_command(&run.report, bench_args_title(&run.args, BENCH_PRODUCTS));
        if (status == BENCH_EXIT_DONE) status = bench_products(&run);
        bench_clean_up(&run);
        document = bench_report_take(&run.report);
    }
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    take_output();
    return status;
}

static void measures(const char *device, const char *arguments)
{
    if (no_nvrtc[0]) {
        print_message("SKIP %s\n", no_nvrtc);
        skip();
    }
    const int status = measure(device, arguments);
    if (status != BENCH_EXIT_DONE) fail_msg("%s: %d\n%s", arguments, status, out);
    assert_non_null(document);
}

static const cJSON *rows(void)
{
    return cJSON_GetObjectItem(document, "rows");
}

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, name));
    return text ? text : "";
}

/* The texts of all rows, with a blank between them. */
static void assert_rows(const char *expected)
{
    char text[1024] = "";
    size_t length = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, rows())
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length ? " " : "", text_of(row, "problem"));
    assert_string_equal(text, expected);
}

static void assert_note(const char *part)
{
    const cJSON *note;
    cJSON_ArrayForEach(note, cJSON_GetObjectItem(document, "notes"))
        if (strstr(cJSON_GetStringValue(note), part)) return;
    fail_msg("no note has \"%s\"", part);
}

static double fact(const char *name)
{
    const cJSON *found = cJSON_GetObjectItem(cJSON_GetObjectItem(document, "environment"), name);
    return cJSON_IsNumber(found) ? found->valuedouble : -1;
}

/* ---- which sizes ---- */

/* Type by type, each with counters and a right result. */
static void sizes_of_each_type(void **state)
{
    (void)state;
    const cJSON *row;
    measures("orin-agx", "--size 16x24x8 --size 9:nt --type f32,f16-f32");
    assert_rows("16x24x8 9:nt 16x24x8:f16-f32 9:f16-f32:nt");
    cJSON_ArrayForEach(row, rows())
    {
        const cJSON *check = cJSON_GetObjectItem(cJSON_GetObjectItem(row, "check"), "reference");
        const cJSON *instructions = cJSON_GetObjectItem(cJSON_GetObjectItem(row, "counters"), "instructions");
        assert_true(cJSON_IsNumber(check) && check->valuedouble >= 0 && check->valuedouble <= 1);
        assert_true(cJSON_IsNumber(instructions) && instructions->valuedouble > 0);
        assert_string_equal(text_of(row, "suite"), "size");
        assert_string_equal(text_of(row, "list"), "size");
        assert_string_equal(text_of(row, "data"), "resident");
    }
    assert_string_equal(text_of(cJSON_GetArrayItem(rows(), 0), "type"), "f32");
    assert_string_equal(text_of(cJSON_GetArrayItem(rows(), 2), "type"), "f16-f32");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetObjectItem(document, "environment"), "software")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(document, "ceilings")), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(document, "summaries")), 0);
    assert_note("Counters of the software GPU");
}

/* Of the same name rows could not be told apart, so each is measured once: what is given twice, and what types leave the same. */
static void each_size_once(void **state)
{
    (void)state;
    char arguments[2048], file[512];
    snprintf(file, sizeof file, "%s", scratch_path(folder, "mine.txt"));
    scratch_write(file, "8\n8:f16\n8x8x8 # the same\n", 24);
    snprintf(arguments, sizeof arguments, "--list %s --size 8 --size 8x8x8 --list %s --type f32,f16", file, file);
    measures("orin-agx", arguments);
    assert_rows("8 8:f16 8 8:f16");
    assert_string_equal(text_of(cJSON_GetArrayItem(rows(), 0), "list"), "mine.txt");
    assert_string_equal(text_of(cJSON_GetArrayItem(rows(), 0), "suite"), "list");
    assert_string_equal(text_of(cJSON_GetArrayItem(rows(), 2), "suite"), "size");
}

/* Collects for the software GPU: what these words name, to be forgotten by the caller. */
static products collect(char *first, char *second)
{
    char program[] = "jitgemm-bench", option[] = "--type=f16";
    char *argv[] = {program, option, first, second, NULL};
    products s = {.run = &run};
    optind = 0;
    memset(&run, 0, sizeof run);
    assert_true(bench_args_parse(second ? 4 : 3, argv, &run.args) < 0);
    run.gpu.software = 1;
    assert_int_equal(bench_products_collect(&s), BENCH_EXIT_DONE);
    return s;
}

/* A list by its own name and as a part of its suite is measured once, where it is first named, and left out once. */
static void a_list_and_its_suite(void **state)
{
    (void)state;
    char list[] = "vit_b16", suite[] = "layers";
    products alone = collect(suite, NULL), both = collect(list, suite);
    assert_true(alone.left_out > 0);
    assert_int_equal(both.left_out, alone.left_out);
    assert_int_equal(both.count, alone.count);
    assert_string_equal(both.list[0].list, "vit_b16");
    assert_string_not_equal(alone.list[0].list, "vit_b16");
    size_t lists = 0;
    for (size_t i = 0; i < both.count; i++) {
        assert_string_equal(both.list[i].suite, "layers");
        lists += i == 0 || strcmp(both.list[i].list, both.list[i - 1].list) != 0;
    }
    assert_int_equal(lists, 5);
    bench_products_forget(&alone);
    bench_products_forget(&both);
}

/* What would take the software GPU minutes is left out, and said so. */
static void too_large(void **state)
{
    (void)state;
    measures("orin-agx", "--size 4096 --size 8 --type f32");
    assert_rows("8");
    assert_note("Left out, too large for the software GPU: 1 sizes.");
    assert_int_equal(measure("orin-agx", "--size 4096 --size 2048 --type f32"), BENCH_EXIT_FAILED);
    assert_has("every size is too large for the software GPU");
    assert_null(document);
}

static void bad_sizes(void **state)
{
    (void)state;
    char arguments[2048], file[512];
    snprintf(file, sizeof file, "%s", scratch_path(folder, "bad.txt"));
    scratch_write(file, "8\n\n8y8\n", 7);
    snprintf(arguments, sizeof arguments, "--list %s", file);
    assert_int_equal(measure("orin-agx", arguments), BENCH_EXIT_USAGE);
    assert_has("bad.txt:3:");
    assert_int_equal(measure("orin-agx", "--list no-such-file.txt"), BENCH_EXIT_USAGE);
    assert_has("no-such-file.txt");
    assert_int_equal(measure("orin-agx", "--size 8:f17"), BENCH_EXIT_USAGE);
    assert_has("--size: ");
    assert_has("f17");
    assert_int_equal(measure("orin-agx", "--size 0x8x8"), BENCH_EXIT_FAILED);
    assert_has("there is nothing to compute");
    assert_null(document);
}

/* ---- how they are planned ---- */

static void assert_kernel(const char *start)
{
    const char *kernel = text_of(cJSON_GetArrayItem(rows(), 0), "kernel");
    if (strncmp(kernel, start, strlen(start)) != 0) fail_msg("%s is not %s...", kernel, start);
}

/* For so many multiprocessors: as for an Orin, unless another architecture is given; without green contexts on all of them. */
static void narrow(void **state)
{
    (void)state;
    measures("h200", "--size 24:f16 --type f16");
    assert_kernel("jg_sm90_");
    assert_true(fact("sms") == -1 && fact("as_arch") == -1 && fact("sm_count") == 132);
    measures("h200", "--size 24:f16 --type f16 --sms 8");
    assert_kernel("jg_sm87_");
    assert_true(fact("sms") == 8 && fact("as_arch") == 87 && fact("sm_count") == 132);
    assert_note("No green context here: planned for 8 of 132 multiprocessors; planned as for sm_87.");
    assert_has("Planned for 8 multiprocessors, but run on all 132: this driver has no green contexts");
    measures("h200", "--size 24:f16 --type f16 --sms 8 --as-arch 0");
    assert_kernel("jg_sm90_");
    assert_true(fact("as_arch") == 90);
    measures("h200", "--size 24:f16 --type f16 --as-arch 80");
    assert_kernel("jg_sm80_");
    assert_int_equal(measure("h200", "--size 24:f16 --sms 133"), BENCH_EXIT_FAILED);
    assert_has("--sms 133: this GPU has 132 multiprocessors");
    assert_null(document);
}

static void no_compiler(void **state)
{
    (void)state;
    assert_int_equal(measure("orin-agx", "--size 40 --nvrtc no-such-nvrtc.so"), BENCH_EXIT_FAILED);
    assert_has("jitgemm-bench: making the kernels: ");
    assert_has("no-such-nvrtc.so");
    assert_int_equal(count_of("\n"), 1);
}

/* ---- all of them ---- */

static int setup(void **state)
{
    make_folder(state);
    if (measure("orin-agx", "--size 8 --type f32") == BENCH_EXIT_FAILED && strstr(out, "NVRTC")) {
        out[strcspn(out, "\n")] = 0;
        snprintf(no_nvrtc, sizeof no_nvrtc, "no NVRTC: %.500s", out);
    }
    return 0;
}

static int teardown(void **state)
{
    cJSON_Delete(document);
    if (driver_open(swgpu_path(), &gpu.driver) != JG_OK) findings_left = 1;
    else findings_left = count_findings();
    driver_close(gpu.driver);
    remove_folder(state);
    return findings_left ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_each_type), cmocka_unit_test(each_size_once), cmocka_unit_test(a_list_and_its_suite),
        cmocka_unit_test(too_large),          cmocka_unit_test(bad_sizes),      cmocka_unit_test(narrow),
        cmocka_unit_test(no_compiler),
    };
    return run_on_swgpu(tests, setup, teardown);
}
