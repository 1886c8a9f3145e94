/* Misses from outside: files whose list of misses is written here in; what jitgemm-cache misses and jitgemm-prewarm
 * --from-misses say and make of it out. */
#include "cache/store.h"
#include "cli_tools_fixture.h"
#include "jitgemm.h"
#include "sample_records.h"

#include <cjson/cJSON.h>

static char file[PATH_MAX + 64]; /* the cache file, default of both tools in the test's environment */

static void add_miss(const char *problem, const char *target, uint64_t count, double gain, uint64_t record)
{
    store *s = sample_open(file, 0, 0);
    store_miss miss = {.key = problem, .key_bytes = strlen(problem), .target = target, .label = problem, .record = record,
                       .count = count, .gain = gain};
    assert_int_equal(store_add_misses(s, &miss, 1), STORE_OK);
    store_close(s);
}

/* Three kernels and three misses, of two targets; the kernel of one is there. */
static void fill(void)
{
    store_record record;
    size_t bytes;
    uint64_t id = 0;
    const void *key = sample_key(1, &bytes);
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 3; i++)
        sample_put(s, i, 512, "the source\n");
    assert_int_equal(store_get(s, key, bytes, &record), STORE_OK);
    id = record.id;
    store_record_free(&record);
    store_close(s);
    add_miss("196x768x768:f16", "sm_87", 41, 0, id);
    add_miss("197x197x64x12:f16-f32:nt:sa=64:lda=768:align=2", "sm_87", 1200, 1.25, 0x1111);
    add_miss("1021", "sm_90", 1, 0, 0x2222);
}

static int set_up(void **state)
{
    make_folder(state);
    snprintf(file, sizeof file, "%s/kernels.db", folder);
    setenv("F", file, 1);
    return 0;
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsString(item));
    return item->valuestring;
}

/* ---- jitgemm-cache misses --------------------------------------------------------------------------------------- */

static void lists_the_most_counted_first(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$C\" misses --cache $F");
    assert_begins(out, "     COUNT  LAST USED         TARGET   CACHED     GAIN  PROBLEM\n      1200  20");
    assert_has(out, "  sm_87    no        1.25x  197x197x64x12:f16-f32:nt:sa=64:lda=768:align=2\n        41  ");
    assert_has(out, "  sm_87    yes           -  196x768x768:f16\n         1  ");
    assert_has(out, "  sm_90    no            -  1021\n3 misses, 1242 launches\n");
    assert_string_equal(err, "");
    /* The problem column is a SIZE as it stands. */
    assert_run(0, "\"$C\" misses --cache $F | sed '1d;$d' | awk '{print $NF}' | xargs \"$P\" --arch 87 --dry-run");
    assert_has(out, "planned  197x197x64x12:f16-f32:nt:lda=768:sa=64:align=2  jg_sm87_mma");
    assert_has(out, "planned  1021  jg_sm87_simt");
}

static void lists_as_json(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$C\" --json misses --cache $F");
    cJSON *root = cJSON_Parse(out);
    const cJSON *misses = cJSON_GetObjectItem(root, "misses");
    const cJSON *first = cJSON_GetArrayItem(misses, 0), *second = cJSON_GetArrayItem(misses, 1);
    assert_string_equal(text(root, "path"), file);
    assert_int_equal(cJSON_GetArraySize(misses), 3);
    assert_string_equal(text(first, "problem"), "197x197x64x12:f16-f32:nt:sa=64:lda=768:align=2");
    assert_string_equal(text(first, "target"), "sm_87");
    assert_true(number(first, "count") == 1200 && number(first, "gain") == 1.25 && number(first, "used") > 1.6e9);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(first, "cached")));
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(second, "cached")));
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(second, "gain")));
    cJSON_Delete(root);
}

static void lists_as_sizes_for_prewarm(void **state)
{
    (void)state;
    fill();
    add_miss("64:f16:from-the-future\033[2J", "sm_87", 2000, 0, 0);
    assert_run(0, "\"$C\" misses --sizes --cache $F | tee sizes.txt");
    assert_begins(out, "# What ran on generic kernels, most counted first, from /");
    assert_has(out, "/kernels.db\n# not understood: 64:f16:from-the-future");
    assert_has(out, "\n197x197x64x12:f16-f32:nt:sa=64:lda=768:align=2\n196x768x768:f16\n1021\n");
    assert_null(strchr(out, '\033'));
    assert_run(0, "\"$P\" --arch 87 --dry-run --list sizes.txt --cache none.db");
    assert_has(out, "planned  197x197x64x12:f16-f32:nt:lda=768:sa=64:align=2  jg_sm87_mma");
    assert_has(out, "planned  196x768x768:f16  jg_sm87_mma");
    assert_has(out, "planned  1021  jg_sm87_simt");
    assert_run(0, "\"$C\" misses --clear --cache $F; \"$C\" misses --sizes --cache $F | tail -n +2");
    assert_has(out, "forgotten\n"); /* and nothing after it */
    assert_string_equal(strchr(out, '\n'), "\n");
    assert_run(2, "\"$C\" misses --sizes --clear --cache $F");
    assert_has(err, "--sizes goes with neither --clear nor --json");
    assert_run(2, "\"$C\" misses --sizes --json --cache $F");
    assert_has(err, "--sizes goes with neither --clear nor --json");
    assert_run(2, "\"$C\" plans --sizes --cache $F");
    assert_has(err, "plans takes no --sizes");
}

static void says_that_there_is_none(void **state)
{
    (void)state;
    store_close(sample_open(file, 0, 0));
    assert_run(0, "\"$C\" misses --cache $F");
    assert_begins(out, "no misses in /");
    assert_has(out, "/kernels.db\n");
    assert_run(0, "\"$C\" misses --cache $F --json");
    cJSON *root = cJSON_Parse(out);
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(root, "misses")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "misses")), 0);
    cJSON_Delete(root);
}

static void counts_one_in_words(void **state)
{
    (void)state;
    add_miss("64", "sm_87", 1, 0, 0);
    assert_run(0, "\"$C\" misses --cache $F");
    assert_has(out, "\n1 miss, 1 launch\n");
}

static void forgets(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$C\" misses --clear --cache $F");
    assert_string_equal(out, "3 forgotten\n");
    assert_run(0, "\"$C\" misses --cache $F");
    assert_has(out, "no misses in ");
    assert_run(0, "\"$C\" verify --cache $F");
    assert_string_equal(out, "3 good, 0 bad\n"); /* the kernels are still there */
    add_miss("64", "sm_87", 7, 0, 0);
    assert_run(0, "\"$C\" misses --json --clear --cache $F");
    cJSON *root = cJSON_Parse(out);
    assert_true(number(root, "removed") == 1);
    cJSON_Delete(root);
    assert_run(0, "\"$C\" misses --clear --cache $F");
    assert_string_equal(out, "0 forgotten\n");
}

/* Looking is no change: not for the list, and not of a file that must not be changed. */
static void only_clear_changes_the_file(void **state)
{
    (void)state;
    fill();
    assert_run(0, "cp $F before; \"$C\" misses --cache $F && cmp before $F");
    assert_run(0, "\"$C\" clear --yes --cache $F && \"$C\" misses --cache $F");
    assert_has(out, "3 removed\nno misses in ");
}

static void refuses(void **state)
{
    (void)state;
    static const struct { const char *line; int status; const char *message; } rows[] = {
        {"\"$C\" misses more", 2, "too many arguments for misses"},
        {"\"$C\" misses --yes", 2, "misses takes no --yes"},
        {"\"$C\" misses --force", 2, "misses takes no --cubin"},
        {"\"$C\" ls --clear", 2, "ls takes no --clear"},
        {"\"$C\" clear --clear --yes", 2, "clear takes no --clear"},
        {"\"$C\" misses --cache none.db", 1, "there is no cache file none.db; jitgemm-prewarm makes one"},
        {"\"$C\" misses --clear --cache none.db", 1, "there is no cache file none.db"},
        {"echo hello >text; \"$C\" misses --cache text", 1, "text: is not a jitgemm cache"},
        {"echo hello >text; \"$C\" misses --clear --cache text", 1, "text: is not a jitgemm cache"},
        {"\"$C\" misses --cache ''", 1, "no cache file"},
        {"\"$C\" misses --cache $F >/dev/full", 1, "standard output: No space left on device"},
    };
    fill();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_run(rows[i].status, "%s", rows[i].line);
        assert_string_equal(out, "");
        assert_begins(err, "jitgemm-cache: ");
        assert_has(err, rows[i].message);
    }
    assert_run(0, "test ! -e none.db && test \"$(cat text)\" = hello");
    assert_run(0, "\"$C\" misses --cache $F");
    assert_has(out, "\n3 misses, ");
}

static void commands_no_terminal(void **state)
{
    (void)state;
    add_miss("64\033[2J", "sm_87\033", 3, 0, 0);
    assert_run(0, "\"$C\" misses --cache $F");
    assert_null(strchr(out, '\033'));
    assert_has(out, "  64?[2J\n");
    assert_run(0, "\"$C\" misses --help && \"$C\" --help");
    assert_has(out, "usage: jitgemm-cache misses [--sizes | --clear]");
    assert_has(out, "remove everything, the misses and plans too");
}

/* ---- jitgemm-prewarm --from-misses ------------------------------------------------------------------------------ */

static void dry_run_shows_the_misses_of_the_target(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$P\" --arch 87 --dry-run --from-misses --cache $F");
    assert_begins(out, "planned  197x197x64x12:f16-f32:nt:lda=768:sa=64:align=2  jg_sm87_mma");
    assert_has(out, "\nplanned  196x768x768:f16  jg_sm87_mma");
    assert_has_not(out, "1021");
    assert_string_equal(err, "");
    assert_run(0, "\"$P\" --arch 90,87 --dry-run --from-misses --type bf16 --cache $F 64 --json");
    cJSON *root = cJSON_Parse(out);
    assert_true(number(root, "misses") == 3);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "kernels")), 2 + 3);
    cJSON_Delete(root);
    assert_has(err, "planned  64:bf16  jg_sm90");
    assert_has(err, "planned  1021  jg_sm90_simt_f32"); /* --type is for sizes; a miss says its own */
}

static void dry_run_without_misses_says_so(void **state)
{
    (void)state;
    fill();
    assert_run(0, "\"$P\" --arch 86 --dry-run --from-misses --cache $F");
    assert_string_equal(out, "compiled 0, cached 0, failed 0\n");
    assert_has(err, "jitgemm-prewarm: no misses for sm_86 in /");
    assert_run(0, "\"$P\" --arch 87 --dry-run --from-misses --cache none.db");
    assert_has(err, "jitgemm-prewarm: no misses for sm_87: there is no cache file none.db");
    assert_run(0, "\"$P\" --arch 87 --dry-run --from-misses --quiet --cache none.db; test ! -e none.db");
    assert_string_equal(err, "");
}

static void a_miss_that_cannot_be_read_is_told(void **state)
{
    (void)state;
    add_miss("64:f16:from-the-future\033[2J", "sm_87", 3, 0, 0);
    add_miss("64:f16", "sm_87", 2, 0, 0);
    assert_run(0, "\"$P\" --arch 87 --dry-run --from-misses --cache $F");
    assert_has(out, "planned  64:f16  jg_sm87");
    assert_has(out, "failed 0\n"); /* as in a real run, which passes over it too */
    assert_begins(err, "jitgemm-prewarm: warning: a miss is passed over: ");
    assert_has(err, "from-the-future");
    assert_null(strchr(err, '\033'));
}

static void no_misses_is_no_error(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$P\" --arch 87 --from-misses --cache $F");
    assert_has(err, "jitgemm-prewarm: no misses for sm_87 in /");
    assert_string_equal(out, "compiled 0, cached 0, failed 0\n"); /* and not the common sizes */
    assert_run(0, "\"$P\" --arch 87 --from-misses --cache $F 64:f16");
    assert_has(err, "no misses for sm_87 in ");
    assert_has(out, "\ncompiled 1, cached 0, failed 0\n");
    assert_run(0, "\"$P\" --arch 87 --from-misses --cache $F --quiet");
    assert_string_equal(err, "");
    assert_run(0, "echo '# none yet' >sizes.txt; \"$P\" --arch 87 --from-misses --list sizes.txt --cache $F");
    assert_string_equal(out, "compiled 0, cached 0, failed 0\n");
}

/* One product on the software GPU; the matrices lie so many bytes past what is aligned. */
static void multiply(jg_context *c, int64_t size, size_t offset_ab, size_t offset_c)
{
    const size_t bytes = (size_t)(size * size) * 4;
    char *a, *b, *result;
    char *const zeros = calloc(1, bytes + 16);
    assert_non_null(zeros);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, bytes + 16, (void **)&a), JG_OK);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, bytes + 16, (void **)&b), JG_OK);
    assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, bytes + 16, (void **)&result), JG_OK);
    assert_int_equal(jg_copy(c, a, zeros, bytes + 16), JG_OK);
    assert_int_equal(jg_copy(c, b, zeros, bytes + 16), JG_OK);
    const jg_problem problem = {.m = size, .n = size, .k = size};
    const jg_operands operands = {.a = a + offset_ab, .b = b + offset_ab, .c = result + offset_c};
    if (jg_gemm(c, &problem, &operands) != JG_OK) fail_msg("%s", jg_last_error());
    assert_int_equal(jg_synchronize(c, NULL), JG_OK);
    free(zeros);
    jg_free(c, JG_DEVICE_MEMORY, a);
    jg_free(c, JG_DEVICE_MEMORY, b);
    jg_free(c, JG_DEVICE_MEMORY, result);
}

/* The whole way: a program meets sizes with no compiler at hand, the next start makes their kernels. */
static void what_a_program_met_is_made_at_the_next_start(void **state)
{
    (void)state;
    need_nvrtc();
    jg_context *c;
    assert_run(0, "\"$P\" --arch 87 --generic=f32 --cache $F --quiet");
    const jg_options options = {.driver_path = "swgpu", .cache_path = file, .factory_path = "",
                                .nvrtc_path = "no-such-library.so", .resident = JG_RESIDENT_F32, .log_level = JG_LOG_ERROR};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    multiply(c, 48, 0, 0);
    for (int i = 0; i < 3; i++) multiply(c, 40, 4, 4);
    assert_int_equal(jg_close(c), JG_OK);
    assert_run(0, "\"$C\" misses --cache $F");
    assert_has(out, "  sm_87    no            -  40:align=4\n         1  ");
    assert_has(out, "  sm_87    no            -  48\n2 misses, 4 launches\n");
    /* Read from the list or given as words, it is the same kernels. */
    assert_run(0, "\"$C\" misses --cache $F | sed '1d;$d' | awk '{print $NF}' | xargs \"$P\" --arch 87 --dry-run >words; "
                  "\"$P\" --arch 87 --dry-run --from-misses --cache $F >list; cat list; cmp words list");
    assert_has(out, "planned  40:align=4  jg_sm87_simt");
    assert_run(0, "\"$P\" --arch 87 --from-misses --cache $F; \"$C\" misses --cache $F");
    assert_has(out, "compiled 2, cached 0, failed 0\n");
    assert_has(out, "  sm_87    yes           -  40:align=4\n         1  ");
    assert_has(out, "  sm_87    yes           -  48\n2 misses");
    assert_run(0, "sed 's/.* //' list | grep jg_ | while read -r kernel; do \"$C\" show $kernel --cache $F || exit; done");
    assert_run(0, "\"$P\" --arch 87 --from-misses --cache $F --nvrtc no-such-library.so 64:generic --json");
    assert_has(out, "\"misses\":\t2");
}

/* Where the matrices differ in alignment a text says the least of it; --from-misses knows what each was met with. */
static void misses_are_made_as_they_were_met(void **state)
{
    (void)state;
    need_nvrtc();
    jg_context *c;
    assert_run(0, "\"$P\" --arch 87 --generic=f32 --cache $F --quiet");
    jg_options options = {.driver_path = "swgpu", .cache_path = file, .factory_path = "", .nvrtc_path = "no-such-library.so",
                          .resident = JG_RESIDENT_F32, .log_level = JG_LOG_ERROR};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    multiply(c, 40, 4, 0);
    assert_int_equal(jg_close(c), JG_OK);
    assert_run(0, "\"$C\" misses --cache $F");
    assert_has(out, "  40:align=4\n1 miss, 1 launch\n");
    assert_run(0, "\"$P\" --arch 87 --from-misses --cache $F");
    assert_has(out, "compiled 1, cached 0, failed 0\n");
    options.compile = JG_COMPILE_NEVER;
    jg_stats stats;
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    multiply(c, 40, 4, 0);
    assert_int_equal(jg_cache_stats(c, &stats), JG_OK);
    assert_int_equal(stats.launches_own, 1);
    assert_int_equal(stats.launches_generic, 0);
    assert_int_equal(jg_close(c), JG_OK);
}

static void sizes_are_wanted_for_what_describes_them(void **state)
{
    (void)state;
    static const char *const options[] = {"--type f16", "--op nt", "--order col"};
    for (size_t i = 0; i < 3; i++) {
        assert_run(2, "\"$P\" --arch 87 --dry-run --from-misses --cache $F %s", options[i]);
        assert_string_equal(err, "jitgemm-prewarm: --type, --op and --order say how to read sizes, and there is none\n");
    }
    assert_run(2, "\"$P\" --from-misses=3");
    assert_has(err, "bad option --from-misses=3");
}

int main(void)
{
    if (find_tools() != 0) return 0;
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(lists_the_most_counted_first),
        TEST(lists_as_json),
        TEST(lists_as_sizes_for_prewarm),
        TEST(says_that_there_is_none),
        TEST(counts_one_in_words),
        TEST(forgets),
        TEST(only_clear_changes_the_file),
        TEST(refuses),
        TEST(commands_no_terminal),
        TEST(dry_run_shows_the_misses_of_the_target),
        TEST(dry_run_without_misses_says_so),
        TEST(a_miss_that_cannot_be_read_is_told),
        TEST(no_misses_is_no_error),
        TEST(what_a_program_met_is_made_at_the_next_start),
        TEST(misses_are_made_as_they_were_met),
        TEST(sizes_are_wanted_for_what_describes_them),
    };
    return cmocka_run_group_tests_name("misses", tests, NULL, NULL);
}
