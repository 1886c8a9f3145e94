/* Suites of products in jitgemm-bench, from outside, on the software GPU: names, lists and sizes in; rows with counters, their check,
 * and what is wrong with the input out. Tests that compile are skipped without NVRTC. */
#include "cli_bench_fixture.h"

/* ---- rows ---- */

static const cJSON *row_at(int i)
{
    const cJSON *row = cJSON_GetArrayItem(get(root, "rows"), i);
    if (!row) fail_msg("no row %d in:\n%s\n%s", i, out, err);
    return row;
}

static int count_rows(void)
{
    return cJSON_GetArraySize(get(root, "rows"));
}

/* All that bench_result.h promises of a row on the software GPU. */
static void check_row(const cJSON *row)
{
    static const char *const texts[] = {"suite", "list", "problem", "type", "data", "kernel", "plan"};
    static const char *const counters[] = {"instructions", "fma", "mma", "global_load_requests", "global_load_sectors",
                                           "global_store_sectors", "shared_load_cycles", "shared_load_conflicts",
                                           "shared_store_conflicts", "barriers", "blocks", "blocks_run"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_true(*get_text(row, texts[i]) != 0);
    const double m = get_number(row, "m"), n = get_number(row, "n"), k = get_number(row, "k"), batch = get_number(row, "batch");
    assert_true(m >= 1 && n >= 1 && k >= 1 && batch >= 1);
    assert_true(get_number(row, "flops") == 2 * m * n * k * batch);
    assert_true(get_number(row, "bytes") >= m * n * batch);
    assert_string_equal(get_text(cJSON_GetArrayItem(get(row, "contestants"), 0), "name"), "jitgemm");
    const double check = get_number(get(row, "check"), "reference");
    if (!(check >= 0 && check <= 1)) fail_msg("%s: check %g", get_text(row, "problem"), check);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) get_number(get(row, "counters"), counters[i]);
    assert_true(get_number(get(row, "counters"), "instructions") > 0);
    assert_true(get_number(get(row, "counters"), "blocks_run") == get_number(get(row, "counters"), "blocks"));
    assert_string_equal(get_text(row, "data"), "resident"); /* there is no L2 cache to be out of */
    assert_null(get(row, "ratio"));
    assert_null(strstr(out, "\"us\""));
}

static void check_rows(void)
{
    assert_true(count_rows() > 0);
    for (int i = 0; i < count_rows(); i++) check_row(row_at(i));
}

/* Rows as "LIST PROBLEM", one a line. */
static const char *row_names(void)
{
    static char names[TEXT_MAX];
    size_t length = 0;
    names[0] = 0;
    for (int i = 0; i < count_rows(); i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s %s\n", get_text(row_at(i), "list"),
                                   get_text(row_at(i), "problem"));
    return names;
}

/* Each kind is a group of its own, and right. */
static void every_type(void **state)
{
    (void)state;
    static const struct { const char *type, *ceiling, *problem; double bytes; } kinds[] = {
        {"s8", "s8", "33x20x70:s8", 33 * 70 + 70 * 20 + 4 * 33 * 20},
        {"u8.s8-u8:scale_n:requantize:relu", "s8", "33x20x70:u8.s8-u8:scale_n:requantize:relu", 33 * 70 + 70 * 20 + 33 * 20 + 80},
        {"f16.s4:group=32:zeros", "f16", "33x20x70:f16.s4:group=32:zeros", 2 * 33 * 70 + 700 + 2 * 33 * 20 + 3 * 20 * 3},
        {"e4m3-f16", "e4m3", "33x20x70:e4m3-f16:nt", 33 * 70 + 70 * 20 + 2 * 33 * 20},
        {"f32:tf32", "tf32", "33x20x70:tf32", 4 * (33 * 70 + 70 * 20 + 33 * 20)},
        {"f16:f16acc", "f16acc", "33x20x70:f16:f16acc", 2 * (33 * 70 + 70 * 20 + 33 * 20)}};
    need_nvrtc();
    assert_bench(0, "--size 33x20x70 --type s8,u8.s8-u8:relu:scale_n:requantize,f16.s4:group=32:zeros,e4m3-f16:nt,tf32,"
                    "f16:f16acc");
    check_rows();
    assert_int_equal(count_rows(), sizeof kinds / sizeof *kinds);
    for (int i = 0; i < count_rows(); i++) {
        assert_string_equal(get_text(row_at(i), "type"), kinds[i].type);
        assert_string_equal(get_text(row_at(i), "ceiling"), kinds[i].ceiling);
        assert_string_equal(get_text(row_at(i), "problem"), kinds[i].problem);
        assert_true(get_number(row_at(i), "bytes") == kinds[i].bytes);
    }
}

/* Four layouts of each size, the aligned one first; there are no times, so nothing costs anything. */
static void misaligned(void **state)
{
    (void)state;
    static const char *const layouts[] = {"aligned", "odd ld", "offset", "padded"};
    need_nvrtc();
    assert_bench(0, "misalign --type s8");
    check_rows();
    assert_int_equal(count_rows(), 12); /* without 1024 */
    for (int i = 0; i < count_rows(); i++) {
        assert_string_equal(get_text(row_at(i), "layout"), layouts[i % 4]);
        assert_null(get(row_at(i), "cost"));
    }
    assert_has(row_names(), "misalign 256:s8:lda=257:ldb=257:ldc=257\nmisalign 256:s8:align=1\n"
                            "misalign 256:s8:lda=272:ldb=272:ldc=288\n");
}

static void a_suite(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "poison --type f16");
    static const char *const members[] = {"environment", "ceilings", "rows", "summaries", "compiles", "series", "counts", "targets",
                                          "notes", "missed"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) assert_non_null(get(root, members[i]));
    assert_string_equal(get_text(root, "format"), "jitgemm-bench result");
    assert_true(get_number(root, "format_version") == 1);
    assert_string_equal(get_text(root, "version"), JG_VERSION_STRING);
    assert_int_equal(strlen(get_text(root, "started")), 20);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), 0)), "poison");
    assert_true(cJSON_IsFalse(get(root, "interrupted")));
    assert_true(get_number(get(root, "environment"), "sm_count") == 16);
    check_rows();
    assert_has(row_names(), "poison 127:f16\n");
    assert_string_equal(get_text(row_at(0), "suite"), "poison");
    assert_has(out, "\"Left out, too large for the software GPU: 11 sizes.\"");
    assert_string_equal(err, "");
}

static void list_of_a_suite(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "mobilenet_v2 --type f16");
    check_rows();
    assert_true(count_rows() > 10);
    for (int i = 0; i < count_rows(); i++) {
        assert_string_equal(get_text(row_at(i), "suite"), "layers");
        assert_string_equal(get_text(row_at(i), "list"), "mobilenet_v2");
    }
}

/* Type by type, whatever types lines bring with them; the same from a file and from standard input. */
static void lists_of_the_user(void **state)
{
    (void)state;
    need_nvrtc();
    static const char expected[] = "16\n5x6x7\n16:f16\n5x6x7:f16\n5x6x7x2:f16-f32:nt\n";
    write_file("sizes.txt", "# sizes\n16\r\n  5x6x7x2:f16-f32:nt # of a layer\n\n5x6x7");
    write_file("fifteen.txt", "15\n");
    assert_run(0, "\"$B\" --driver swgpu --cache filled.db --list ./sizes.txt --type f32,f16 --json");
    cJSON_Delete(root);
    root = cJSON_Parse(out);
    check_rows();
    char names[512] = "";
    for (const char *line = expected; *line; line = strchr(line, '\n') + 1)
        snprintf(names + strlen(names), sizeof names - strlen(names), "sizes.txt %.*s\n", (int)strcspn(line, "\n"), line);
    assert_string_equal(row_names(), names);
    assert_true(get_number(row_at(4), "batch") == 2);
    assert_string_equal(get_text(row_at(4), "type"), "f16-f32");
    assert_string_equal(get_text(row_at(4), "suite"), "list");

    assert_run(0, "\"$B\" --driver swgpu --cache filled.db --list - --type f32,f16 --csv <sizes.txt");
    const char *at = strstr(out, "\nlist,-,16,");
    assert_non_null(at);
    for (const char *line = expected; *line; line = strchr(line, '\n') + 1) {
        char part[64];
        snprintf(part, sizeof part, "\nlist,-,%.*s,", (int)strcspn(line, "\n"), line);
        at = strstr(at, part);
        if (!at) fail_msg("%s is not, or is too early, in:\n%s", part, out);
    }
    assert_bench(0, "--size 9 --list fifteen.txt --type f16 --size 3x1x2:bf16");
    assert_string_equal(row_names(), "fifteen.txt 15:f16\nsize 9:f16\nsize 3x1x2:bf16\n");
}

/* The page's example: what ran on generic kernels, as a list. */
static void list_of_misses(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$B\" first-call --driver swgpu --cache misses.db --fill --sizes 6");
    assert_run(0, "\"${B%%bench}cache\" --cache misses.db misses | awk '/ sm_/ {print $NF}' >misses.txt && "
                  "\"$B\" --driver swgpu --cache misses.db --list - --type f32 --csv <misses.txt | grep -c ^list,-,");
    assert_string_equal(out, "6\n");
    assert_run(0, "grep -c f16 misses.txt");
    assert_string_equal(out, "3\n"); /* the others are f32, which a text need not say */
}

static void without_a_type(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "--size 8 --size 8:f16");
    assert_string_equal(row_names(), "size 8\nsize 8:f16\nsize 8:bf16\n");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), 0)), "sizes");
}

/* ---- table, CSV ---- */

static void as_a_table(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$B\" --driver swgpu --cache filled.db --size 16 --size 24x8x40 --type f32,f16");
    assert_has(out, "jitgemm " JG_VERSION_STRING ", sizes\nAGX Orin (software GPU), sm_87, ");
    assert_has(out, "\nsize, f32, operands resident\n  size  ");
    assert_has(out, "\nsize, f16, operands resident\n  size  ");
    assert_has(out, "\n  24x8x40:f16  ");
    assert_has(out, "instructions");
    assert_has_not(out, "WRONG");
    assert_has_not(out, "ratio");
}

/* A table a kind, each with its own header and as many fields in each line. */
static void as_csv(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$B\" --driver swgpu --cache filled.db --size 16 --size 24x8x40 --type f32,f16 --csv >csv && awk -F, '"
                  "/^$/ {n = 0; tables++; next} n == 0 {n = NF} NF != n {print \"line \" NR \": \" NF \" fields, not \" n; bad = 1} "
                  "END {exit bad || tables != 1}' csv && grep -c ^size, csv");
    assert_string_equal(out, "4\n");
    assert_run(0, "cat csv");
    assert_has(out, "\n\nsuite,list,problem,m,n,k,batch,type,data,kernel,instructions,");
    assert_has(out, "\nsize,size,24x8x40:f16,24,8,40,1,f16,resident,jg_sm87_");
}

/* ---- several commands ---- */

static const cJSON *find(const char *array, const char *command, const char *name)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, get(root, array))
        if (strcmp(get_text(each, "command"), command) == 0 && strncmp(get_text(each, "name"), name, strlen(name)) == 0) return each;
    fail_msg("no %s: %s in %s of:\n%s", command, name, array, out);
    return NULL;
}

static void several_commands(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "compile poison first-call --size 12:f16 --type f16 --sizes 4 --jobs 2");
    static const char *const commands[] = {"compile", "poison sizes", "first-call"};
    assert_int_equal(cJSON_GetArraySize(get(root, "commands")), 3);
    for (int i = 0; i < 3; i++) assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(get(root, "commands"), i)), commands[i]);
    check_rows();
    assert_has(row_names(), "poison 127:f16\n");
    assert_has(row_names(), "size 12:f16\n");
    assert_int_equal(cJSON_GetArraySize(get(root, "compiles")), 16);
    const cJSON *each;
    cJSON_ArrayForEach(each, get(root, "compiles"))
    {
        assert_true(*get_text(each, "problem") && get_number(each, "ms") > 0);
        assert_int_equal(strncmp(get_text(each, "kernel"), "jg_sm87_", 8), 0);
    }
    /* Compile times are the host's: they are there, the other command's are not. */
    assert_true(get_number(find("series", "compile", "a specialised kernel, one at a time"), "n") == 16);
    assert_true(get_number(find("series", "compile", "all 16 of them, 2 at once"), "p50") > 0);
    find("series", "compile", "first in the process");
    find("targets", "compile", "a specialised kernel, median");
    assert_int_equal(cJSON_GetArraySize(get(root, "targets")), 1);
    assert_int_equal(cJSON_GetArraySize(get(root, "series")), 4);
    assert_true(get_number(find("counts", "first-call", "jitgemm: samples"), "value") == 4);
    assert_string_equal(err, "");
}

/* ---- results ---- */

static cJSON *take_rows(void)
{
    cJSON *document = cJSON_Parse(out), *rows = cJSON_DetachItemFromObject(document, "rows");
    cJSON_Delete(document);
    assert_true(cJSON_GetArraySize(rows) == 4);
    return rows;
}

/* With the same kernels: NVRTC may make others of the same source next time. */
static void counters_repeat(void **state)
{
    (void)state;
    need_nvrtc();
    static const char line[] = "JITGEMM_SWGPU_THREADS=%d \"$B\" --size 100 --size 33x65x129:nt --type f32,f16 --json --driver swgpu "
                               "--cache repeat.db";
    assert_run(0, line, 1);
    cJSON *first = take_rows();
    assert_run(0, line, 3);
    cJSON *second = take_rows();
    assert_true(cJSON_Compare(first, second, 1));
    cJSON_Delete(first);
    cJSON_Delete(second);
}

/* A kernel that stores nothing: the run goes on, says it, and fails. Needs no compiler. */
static void wrong_results(void **state)
{
    (void)state;
    plant("wrong.db", "64:f16", "");
    assert_run(1, "\"$B\" --driver swgpu --cache wrong.db --size 64:f16 --type f16");
    assert_has(out, "  WRONG RESULT\n");
    assert_string_equal(err, "jitgemm-bench: 1 of 1 results are wrong, see check\n");
    assert_run(1, "\"$B\" --driver swgpu --cache wrong.db --size 64:f16 --type f16 --json");
    cJSON_Delete(root);
    root = cJSON_Parse(out);
    assert_true(get_number(get(row_at(0), "check"), "reference") > 1);
}

static void a_kernel_that_faults(void **state)
{
    (void)state;
    plant("fault.db", "64:f16", "st.global.u16 [%rd3+1000000], %rs1;");
    assert_run(1, "\"$B\" --driver swgpu --cache fault.db --size 64:f16 --type f16");
    assert_has(err, "jitgemm-bench: 64:f16: ");
    assert_has(err, "out of bounds: write of 2 bytes");
    assert_has_not(out, "64:f16 "); /* no row */
}

static void generic_kernels(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "--size 48 --type f16 --generic");
    const cJSON *contestants = get(row_at(0), "contestants");
    assert_int_equal(cJSON_GetArraySize(contestants), 2);
    assert_string_equal(get_text(cJSON_GetArrayItem(contestants, 1), "name"), "generic");
    assert_null(get(cJSON_GetArrayItem(contestants, 1), "refused"));
}

/* ---- what is wrong with the input ---- */

/* Each is told before anything is measured: in one line, with nothing on standard output. */
static void bad_input(void **state)
{
    (void)state;
    static const struct { const char *arguments; int status; const char *message; } rows[] = {
        {"--list none.txt", 2, "none.txt: No such file or directory"},
        {"first-call --list none.txt", 2, "none.txt: No such file or directory"},
        {"--list none.txt --save drift.json", 2, "none.txt: No such file or directory"},
        {"--list bad.txt", 2, "bad.txt:3: problem text \"17x18x\": \"17x18x\" is not a size"},
        {"--list good.txt --list bad.txt", 2, "bad.txt:3: "},
        {"--list - <bad.txt", 2, "standard input:3: "},
        {"--list .", 2, ".: Is a directory"},
        {"--list empty.txt", 1, "there is no size to measure"},
        {"--list /dev/null", 1, "there is no size to measure"},
        {"--list - </dev/null", 1, "there is no size to measure"},
        {"compile --size 5x", 2, "--size: problem text \"5x\": \"5x\" is not a size"},
        {"--size 5:u9", 2, "--size: problem text \"5:u9\": \"u9\" is not known"},
        {"--size 3000000000", 2, "m = 3000000000 is out of range"},
        {"--size 0x5x5 --type f16", 1, "0x5x5:f16: there is nothing to compute"},
        {"large --type f16", 1, "every size is too large for the software GPU"},
        {"--size 2000000000x1x1 --type f16", 1, "every size is too large for the software GPU"},
        {"first-call --size 5 --sms 17", 1, "--sms 17: this GPU has 16 multiprocessors"},
        {"first-call --size 5 --as-arch 90", 1, "--as-arch 90: this GPU is sm_87, which runs kernels of its own and of older"},
        {"--size 5 --as-arch 42", 1, "--as-arch: sm_42 is not a known architecture; known are sm_75"},
        {"--size 5 --record --cache r.db", 1, "--record: the software GPU has no times, so there is no gain to record"},
        {"--size 5 --html none/page.html", 1, "--html: none/page.html cannot be written: No such file or directory"},
        {"--size 5 --html .", 1, "--html: . is not a regular file"},
        {"--size 5 --html none/page.html --save drift.json", 1, "--html: none/page.html cannot be written: No such"},
        {"--size 5 --save none/drift.json --csv", 1, "none/drift.json cannot be written: No such file or directory"},
    };
    write_file("good.txt", "16\n");
    write_file("bad.txt", "16\n# comment\n17x18x\n");
    write_file("empty.txt", "# nothing\n\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int status = run("\"$B\" --driver swgpu %s", rows[i].arguments);
        if (status != rows[i].status) fail_msg("%s: status %d, not %d: %s", rows[i].arguments, status, rows[i].status, err);
        assert_int_equal(strncmp(err, "jitgemm-bench: ", 15), 0);
        assert_has(err, rows[i].message);
        assert_int_equal(count_lines(err), 1);
        assert_string_equal(out, "");
    }
    assert_run(0, "test ! -e r.db && test ! -e drift.json"); /* nothing was begun */
}

static void no_compiler(void **state)
{
    (void)state;
    assert_run(1, "\"$B\" --driver swgpu --nvrtc no-such-nvrtc.so --size 77:f16");
    assert_has(err, "jitgemm-bench: making the kernels: 77:f16: no NVRTC library can be opened (no-such-nvrtc.so: ");
    need_nvrtc();
    assert_run(0, "\"$B\" --driver swgpu --cache kept.db --size 77:f16"); /* kernels that are there need none */
    assert_run(0, "\"$B\" --driver swgpu --cache kept.db --size 77:f16 --nvrtc no-such-nvrtc.so");
}

/* ---- as a smaller or older GPU ---- */

static void few_multiprocessors(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "--size 512:f16 --sms 16");
    assert_has(err, "jitgemm-bench: Planned for 16 multiprocessors, but run on all 16: this driver has no green contexts");
    assert_has(out, "\"No green context here: planned for 16 of 16 multiprocessors; planned as for sm_87.\"");
    assert_true(get_number(get(root, "environment"), "sms") == 16);
    assert_true(get_number(get(root, "environment"), "as_arch") == 87);
    char wide[64];
    snprintf(wide, sizeof wide, "%s", get_text(row_at(0), "plan"));
    assert_bench(0, "--size 512:f16 --sms 2");
    if (strcmp(get_text(row_at(0), "plan"), wide) == 0) fail_msg("%s for 2 multiprocessors too", wide);
    assert_true(get_number(get(root, "environment"), "sms") == 2);
}

static void as_an_older_gpu(void **state)
{
    (void)state;
    need_nvrtc();
    assert_bench(0, "--size 64:f16 --as-arch 75");
    check_rows();
    assert_int_equal(strncmp(get_text(row_at(0), "kernel"), "jg_sm75_", 8), 0);
    assert_run(0, "JITGEMM_SWGPU_DEVICE=h200 \"$B\" --driver swgpu --size 64:f16 --sms 8 --json");
    cJSON_Delete(root);
    root = cJSON_Parse(out);
    assert_int_equal(strncmp(get_text(row_at(0), "kernel"), "jg_sm87_", 8), 0); /* by itself as an Orin */
    assert_run(0, "JITGEMM_SWGPU_DEVICE=h200 \"$B\" --driver swgpu --size 64:f16 --sms 8 --as-arch 0 --json");
    cJSON_Delete(root);
    root = cJSON_Parse(out);
    assert_int_equal(strncmp(get_text(row_at(0), "kernel"), "jg_sm90_", 8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suite),
        cmocka_unit_test(every_type),
        cmocka_unit_test(misaligned),
        cmocka_unit_test(list_of_a_suite),
        cmocka_unit_test(lists_of_the_user),
        cmocka_unit_test(list_of_misses),
        cmocka_unit_test(without_a_type),
        cmocka_unit_test(as_a_table),
        cmocka_unit_test(as_csv),
        cmocka_unit_test(several_commands),
        cmocka_unit_test(counters_repeat),
        cmocka_unit_test(wrong_results),
        cmocka_unit_test(a_kernel_that_faults),
        cmocka_unit_test(generic_kernels),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(no_compiler),
        cmocka_unit_test(few_multiprocessors),
        cmocka_unit_test(as_an_older_gpu),
    };
    return cmocka_run_group_tests(tests, make_bench_home, remove_bench_home);
}
