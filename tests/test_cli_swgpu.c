/* The command line of jitgemm-swgpu, from outside: arguments and lists in; exit status, texts and counts out. Counts are
 * compared with what follows from a kernel's name by arithmetic. Tests that compile are skipped without NVRTC. */
#include "cli_swgpu_fixture.h"

#include <cjson/cJSON.h>
#include <inttypes.h>

/* ---- command lines ---- */

static void usage_errors(void **state)
{
    (void)state;
    static const struct { const char *arguments, *message; } rows[] = {
        {"", "which sizes?"},
        {"--time --json", "which sizes?"},
        {"--frobnicate", "bad option --frobnicate"},
        {"-x 64", "unknown option -x"},
        {"-\xc3\xa9 64", "unknown option -?"},
        {"--json=1 64", "bad option --json=1"},
        {"--list", "--list needs a value"},
        {"64x64", "\"64x64\" is not a size"},
        {"64 96:f19", "\"f19\" is not known"},
        {"-- --time", "--time"},
        {"''", "jitgemm-swgpu: "},
        {"--type f17 64", "--type: \"f17\" is no type"},
        {"--type f16, 64", "--type: \"\" is no type"},
        {"--type nt 64", "--type: \"nt\" is no type"},
        {"--type f32:xx 64", "--type: \"f32:xx\" is no type"},
        {"--cache '' 64", "--cache needs a file name"},
        {"--device= 64", "--device needs a value"},
        {"--checks '' 64", "--checks needs a value"},
        {"--csv --json 64", "--json and --csv exclude each other"},
        {"--list no-such-file", "no-such-file: No such file or directory"},
        {"--list /dev/null", "the lists hold no size"},
        {"--device orin 64", "--device: JITGEMM_SWGPU_DEVICE is \"orin\"; known devices are orin-nano, "},
        {"--checks race,foo 64", "--checks: JITGEMM_SWGPU_CHECKS is \"race,foo\"; it must be \"all\", \"none\""},
        {"--blocks 0 64", "--blocks: JITGEMM_SWGPU_BLOCKS is \"0\""},
        {"--blocks 3x 64", "--blocks: JITGEMM_SWGPU_BLOCKS is \"3x\""},
        {"--threads 65 64", "--threads: JITGEMM_SWGPU_THREADS is \"65\"; it must be 1 to 64\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = run("\"$T\" %s", rows[i].arguments);
        if (status != 2) fail_msg("%s: status %d, not 2", rows[i].arguments, status);
        assert_has(err, rows[i].message);
        assert_int_equal(strncmp(err, "jitgemm-swgpu: ", 15), 0);
        assert_int_equal(count_lines(err), 1);
        assert_string_equal(out, "");
    }
    /* A variable is judged as the option is, but it is not the option's fault. */
    assert_int_equal(run("JITGEMM_SWGPU_DEVICE=orin \"$T\" 64"), 2);
    assert_int_equal(strncmp(err, "jitgemm-swgpu: JITGEMM_SWGPU_DEVICE is \"orin\"", 44), 0);
    assert_int_equal(run("JITGEMM_SWGPU_DEVICE=orin \"$T\" --device t4 0x1x1"), 0);
    assert_int_equal(run("printf '64\\nbad\\n' | \"$T\" -"), 2);
    assert_has(err, "standard input:2: ");
}

static void help_and_version(void **state)
{
    (void)state;
    assert_int_equal(run("\"$T\" --help"), 0);
    assert_int_equal(strncmp(out, "usage: jitgemm-swgpu [OPTION]... [SIZE]...\n", 43), 0);
    assert_string_equal(err, "");
    assert_int_equal(run("\"$T\" --version"), 0);
    assert_string_equal(out, "jitgemm-swgpu " JG_VERSION_STRING "\n");
}

/* The help and the page name the devices that there are, in the same order. */
static void every_device_is_named(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    const char *given = getenv("JG_TEST_TOOLS_DIR");
    assert_int_equal(run("\"$T\" --device x 64 2>&1 | sed 's/.*known devices are //; s/, /\\n/g' >known; "
                         "\"$T\" --help | sed -n '/--device/,/--blocks/p' | grep -v -e --blocks | sed 's/.*NAME//; s/ (default)//' | "
                         "tr -d ' \\n' | tr ',' '\\n' >helped; echo >>helped; test $(wc -l <known) -ge 13 && diff known helped"), 0);
    if (!realpath(given ? given : "tools", folder)) {
        print_message("SKIP the tools folder is not there\n");
        skip();
    }
    assert_int_equal(run("for d in $(cat known); do grep -q \"^\\.B[RI]* .*$(echo $d | sed 's/-/.*-/')\" '%s'/jitgemm-swgpu.1 || "
                         "echo $d; done", folder), 0);
    assert_string_equal(out, "");
}

static void man_page_matches(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    const char *given = getenv("JG_TEST_TOOLS_DIR");
    if (!realpath(given ? given : "tools", folder)) {
        print_message("SKIP the tools folder is not there\n");
        skip();
    }
    int status = run("\"$T\" --help | grep -o -e '--[a-z][a-z-]*' | sort -u >in-help; sed 's/\\\\f.//g; s/\\\\//g' "
                     "'%s'/jitgemm-swgpu.1 >page; grep -o -e '--[a-z][a-z-]*' page | sort -u >in-page; "
                     "test -s in-help && diff in-help in-page", folder);
    if (status != 0) fail_msg("help and page differ:\n%s", out);
    assert_int_equal(run("for p in $(sed -n 's/^.BR \\(jitgemm[^ ]*\\) (1).*/\\1/p' page); do "
                         "test -e '%s'/$p.1 || { echo no page $p; exit 1; }; done", folder), 0);
}

static void empty_products(void **state)
{
    (void)state;
    static const char *const sizes[] = {"0x5x5", "5x0x3:f16", "5x5x5x0:sa=25"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(run("\"$T\" --time %s", sizes[i]), 0);
        assert_has(out, "  nothing to compute\n");
        assert_has(out, "\ncounted 1, found 0, failed 0\n");
        assert_has_not(out, "jg_sm");
    }
    assert_int_equal(run("\"$T\" --csv 0x5x5"), 0);
    assert_has(out, ",ms\n0x5x5,,0,0,0,");
}

static void missing_nvrtc(void **state)
{
    (void)state;
    assert_int_equal(run("JITGEMM_NVRTC=no-such-library.so \"$T\" --cache none.db 64 0x1x1"), 1);
    assert_has(err, "jitgemm-swgpu: 64: ");
    assert_has(err, "no-such-library.so");
    assert_has(out, "\ncounted 1, found 0, failed 1\n"); /* it went on */
}

/* ---- counts ---- */

/* The text of a CSV field of a line (1 is the first product's) of `out`, in one of a few static buffers. */
static const char *field(size_t line, const char *name)
{
    static char fields[8][256];
    static unsigned next;
    const char *heading = out, *row = out;
    for (size_t i = 0; i < line; i++) {
        row = strchr(row, '\n');
        if (!row++ || !*row) fail_msg("no line %zu in:\n%s", line, out);
    }
    for (size_t length = strlen(name); strncmp(heading, name, length) != 0 || !strchr(",\n", heading[length]);) {
        heading += strcspn(heading, ",\n");
        row += strcspn(row, ",\n");
        if (*heading++ != ',' || *row++ != ',') fail_msg("no field %s in line %zu of:\n%s", name, line, out);
    }
    char *text = fields[next++ % 8];
    snprintf(text, sizeof fields[0], "%.*s", (int)strcspn(row, ",\n"), row);
    return text;
}

static uint64_t count(size_t line, const char *name)
{
    char *end;
    const char *text = field(line, name);
    uint64_t value = strtoull(text, &end, 10);
    if (!*text || *end) fail_msg("%s is \"%s\", no number", name, text);
    return value;
}

static uint64_t classes(size_t line)
{
    static const char *const names[] = {"arithmetic", "fma", "special", "logic", "compare", "move", "convert", "load", "store", "atomic",
                                        "copy", "mma", "warp", "barrier", "branch", "other"};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sum += count(line, names[i]);
    return sum;
}

static void counts_follow_from_the_product(void **state)
{
    (void)state;
    need_nvrtc();
    static const struct { const char *device, *size; uint64_t m, n, k, items, fma_lanes, mma_size, c_bytes; } rows[] = {
        {"orin-agx", "64", 64, 64, 64, 1, 32, 0, 4},
        {"orin-agx", "128x64x32x3", 128, 64, 32, 3, 32, 0, 4},
        {"orin-agx", "64:f16", 64, 64, 64, 1, 0, 16 * 8 * 16, 2},
        {"orin-agx", "256:bf16-f32", 256, 256, 256, 1, 0, 16 * 8 * 16, 4},
        {"h200", "256x128x64:f16:generic", 256, 128, 64, 1, 0, 16 * 8 * 16, 2},
        {"t4", "64:f16", 64, 64, 64, 1, 32, 0, 2}, /* without tensor cores of this kind */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t tile_m, tile_n, tile_k, work = rows[i].m * rows[i].n * rows[i].k * rows[i].items;
        assert_int_equal(run("\"$T\" --csv --cache counts.db --device %s %s", rows[i].device, rows[i].size), 0);
        assert_int_equal(count_lines(out), 2);
        assert_string_equal(field(1, "size"), rows[i].size);
        const char *kernel = field(1, "kernel"), *sizes = kernel;
        for (; sizes && sscanf(sizes, "_%" SCNu64 "x%" SCNu64 "x%" SCNu64, &tile_m, &tile_n, &tile_k) != 3;)
            sizes = strchr(sizes + 1, '_');
        assert_non_null(sizes);
        if (rows[i].m % tile_m || rows[i].n % tile_n || rows[i].k % tile_k) fail_msg("%s does not divide %s", kernel, rows[i].size);
        uint64_t blocks = rows[i].m / tile_m * (rows[i].n / tile_n) * rows[i].items;
        assert_int_equal(count(1, "multiply_adds"), work);
        assert_int_equal(count(1, "blocks"), blocks);
        assert_int_equal(count(1, "blocks_run"), blocks);
        assert_int_equal(count(1, "fma"), rows[i].fma_lanes ? work / rows[i].fma_lanes : 0);
        assert_int_equal(count(1, "mma"), rows[i].mma_size ? work / rows[i].mma_size : 0);
        assert_int_equal(count(1, "global_store_sectors"), rows[i].m * rows[i].n * rows[i].items * rows[i].c_bytes / 32);
        assert_int_equal(count(1, "instructions"), classes(1));
        assert_true(count(1, "barriers") > 0);
        assert_true(count(1, "barrier") >= count(1, "barriers")); /* one a warp, one a block */
        assert_string_equal(field(1, "ms"), "");
    }
}

/* Threads and checks change nothing. */
static void counts_are_the_same_every_time(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$T\" --csv --cache counts.db --threads 1 100x60x30:f16 77:generic >a && "
                         "\"$T\" --csv --cache counts.db --threads 3 --checks none 100x60x30:f16 77:generic >b && cmp a b"), 0);
    assert_int_equal(run("wc -l <a"), 0);
    assert_int_equal(atoi(out), 3);
}

static void csv_and_json_agree(void **state)
{
    (void)state;
    need_nvrtc();
    static const char sizes[] = "64 96x80x112:f16:nt 0x5x5 40:bf16:generic";
    assert_int_equal(run("\"$T\" --json --cache counts.db %s", sizes), 0);
    cJSON *root = cJSON_Parse(out);
    assert_non_null(root);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "device")), "orin-agx");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "checks")), "all");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "counted")) == 4);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(root, "interrupted")));
    const cJSON *products = cJSON_GetObjectItem(root, "products");
    assert_int_equal(cJSON_GetArraySize(products), 4);
    assert_int_equal(run("\"$T\" --csv --cache counts.db %s", sizes), 0);
    assert_int_equal(count_lines(out), 5);
    for (int i = 0; i < 4; i++) {
        const cJSON *product = cJSON_GetArrayItem(products, i), *counters = cJSON_GetObjectItem(product, "counters"), *counter;
        const size_t line = (size_t)i + 1;
        int compared = 0;
        assert_string_equal(field(line, "size"), cJSON_GetStringValue(cJSON_GetObjectItem(product, "size")));
        assert_string_equal(field(line, "kernel"), cJSON_GetStringValue(cJSON_GetObjectItem(product, "kernel")));
        assert_true((double)count(line, "multiply_adds") == cJSON_GetNumberValue(cJSON_GetObjectItem(product, "multiply_adds")));
        assert_null(cJSON_GetObjectItem(product, "ms"));
        cJSON_ArrayForEach(counter, counters) {
            if ((double)count(line, counter->string) != counter->valuedouble) fail_msg("%d: %s differs", i, counter->string);
            compared++;
        }
        assert_int_equal(compared, sizeof(jg_counters) / sizeof(uint64_t));
    }
    cJSON_Delete(root);
}

static void table_says_what_it_is(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$T\" --cache counts.db --device h200 128"), 0);
    static const char opening[] = "software GPU: h200; checks: all; blocks of large products: all\n"
                                  "Below are counts of what the kernels did, not times: nothing ran on a GPU.\n\n128\n  jg_sm90_simt_";
    assert_int_equal(strncmp(out, opening, sizeof opening - 1), 0);
    assert_has(out, " fma                65,536  ");
    assert_has(out, "\n  global stores           128 requests         2,048 sectors    16.00 a request\n");
    assert_has(out, " for 1,000 multiply-adds\n");
    assert_has_not(out, "special");
    assert_has_not(out, " 0.0 %");
    assert_has_not(out, "host");
    assert_string_equal(err, "");
    for (const char *line = out; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 80 || strncmp(line, "  jg_", 5) == 0); /* a name is as long as it is */
    assert_int_equal(run("JITGEMM_SWGPU_COUNTERS=0 \"$T\" --cache counts.db --device h200 128"), 0);
    assert_has(out, "\n  blocks run              128 of 128\n  nothing was counted: JITGEMM_SWGPU_COUNTERS is 0\n");
}

/* 512^3 is above the limit, 256^3 below. */
static void fewer_blocks(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$T\" --csv --cache counts.db --blocks 3 512:f16 256:f16"), 0);
    assert_int_equal(count(1, "blocks_run"), 3);
    assert_int_equal(count(1, "mma"), 3 * 512 * 512 * 512 / (16 * 8 * 16) / count(1, "blocks"));
    assert_int_equal(count(2, "blocks_run"), count(2, "blocks"));
    char line[128], rate[64];
    double thousands = 512.0 * 512 * 512 / 1000 * 3 / (double)count(1, "blocks");
    snprintf(rate, sizeof rate, ", about %.2f for 1,000 multiply-adds\n", (double)count(1, "instructions") / thousands);
    snprintf(line, sizeof line, "\n  blocks run                3 of %s; all counts are those of the blocks that ran\n", field(1, "blocks"));
    assert_int_equal(run("\"$T\" --cache counts.db --blocks 3 512:f16"), 0);
    assert_has(out, line);
    assert_has(out, "; blocks of large products: 3\n");
    assert_has(out, rate);
}

static void lists_and_types(void **state)
{
    (void)state;
    need_nvrtc();
    write_file("sizes", "# sizes\r\n\n 32 # one\r\n64:f32\n");
    static const char *const commands[] = {"--list sizes", "- <sizes", "--list - <sizes", "--list sizes --type f16 --type bf16-f32",
                                           "--type f16,bf16-f32 64:f32 --list sizes"};
    static const char *const sizes[][4] = {{"32", "64"}, {"32", "64"}, {"32", "64"}, {"32:f16", "32:bf16-f32", "64"},
                                           {"64", "32:f16", "32:bf16-f32", "64"}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        size_t line = 0;
        assert_int_equal(run("\"$T\" --csv --cache counts.db %s", commands[i]), 0);
        for (; line < 4 && sizes[i][line]; line++) assert_string_equal(field(line + 1, "size"), sizes[i][line]);
        assert_int_equal(count_lines(out), line + 1);
    }
}

static void cache_is_used(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$T\" --cache kept.db 40:f16 && JITGEMM_NVRTC=no-such-library.so \"$T\" --cache kept.db 40:f16"), 0);
    assert_int_equal(run("JITGEMM_CACHE=kept.db JITGEMM_NVRTC=no-such-library.so \"$T\" 40:f16"), 0);
}

/* ---- output ---- */

static void full_output_is_an_error(void **state)
{
    (void)state;
    static const char *const commands[] = {"--help", "--version", "0x1x1", "--csv 0x1x1", "--json 0x1x1"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int status = run("\"$T\" %s >/dev/full", commands[i]);
        if (status != 1) fail_msg("%s: status %d, not 1", commands[i], status);
        assert_string_equal(err, "jitgemm-swgpu: standard output: No space left on device\n");
    }
    assert_int_equal(run("\"$T\" --frobnicate >/dev/full"), 2);
    assert_int_equal(count_lines(err), 1);
}

/* ---- group ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(every_device_is_named),
        cmocka_unit_test(man_page_matches),
        cmocka_unit_test(empty_products),
        cmocka_unit_test(missing_nvrtc),
        cmocka_unit_test(counts_follow_from_the_product),
        cmocka_unit_test(counts_are_the_same_every_time),
        cmocka_unit_test(csv_and_json_agree),
        cmocka_unit_test(table_says_what_it_is),
        cmocka_unit_test(fewer_blocks),
        cmocka_unit_test(lists_and_types),
        cmocka_unit_test(cache_is_used),
        cmocka_unit_test(full_output_is_an_error),
    };
    return cmocka_run_group_tests_name("jitgemm-swgpu", tests, make_home, remove_home);
}
