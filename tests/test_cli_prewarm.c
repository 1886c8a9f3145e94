/* The command line of jitgemm-prewarm, from outside: arguments, lists and signals in; exit status, texts and the
 * cache file out. It runs the built tool (folder: $JG_TEST_BIN_DIR) in a scratch folder, always with
 * --arch, so that it behaves the same with and without a GPU. Compiling tests are skipped without NVRTC. */
#include "cache/store.h"
#include "cli_tools_fixture.h"
#include "sample_records.h"

#include <cjson/cJSON.h>
#include <signal.h>

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

/* Reads the three counts of a text's last line and insists on its exact form. */
static void last_line(const char *text, size_t *compiled, size_t *cached, size_t *failed)
{
    char expected[128];
    size_t length = strlen(text);
    assert_true(length > 0 && text[length - 1] == '\n');
    const char *line = text + length - 1;
    while (line > text && line[-1] != '\n') line--;
    if (sscanf(line, "compiled %zu, cached %zu, failed %zu", compiled, cached, failed) != 3)
        fail_msg("not the last line: %s", line);
    snprintf(expected, sizeof expected, "compiled %zu, cached %zu, failed %zu\n", *compiled, *cached, *failed);
    assert_string_equal(line, expected);
}

static void assert_counts(const char *text, size_t compiled, size_t cached, size_t failed)
{
    size_t got_compiled, got_cached, got_failed;
    last_line(text, &got_compiled, &got_cached, &got_failed);
    assert_int_equal(got_compiled, compiled);
    assert_int_equal(got_cached, cached);
    assert_int_equal(got_failed, failed);
}

/* ---- tests that compile nothing ---- */

static void usage_errors(void **state)
{
    (void)state;
    static const struct { const char *arguments, *message; } rows[] = {
        {"--frobnicate", "bad option --frobnicate"},
        {"-x", "unknown option -x"},
        {"-xy 64", "unknown option -x"},
        {"-\xc3\xa9 64", "unknown option -?"},
        {"--json=1", "bad option --json=1"},
        {"--list", "--list needs a value"},
        {"64x64", "64x64"},
        {"64:f16:zz", "zz"},
        {"-- --quiet", "--quiet"},
        {"''", "jitgemm-prewarm: "},
        {"--type f17", "--type: \"f17\" is no type"},
        {"--type f16,", "--type: \"\" is no type"},
        {"--type nt", "--type: \"nt\" is no type"},
        {"--type f32:xx", "--type: \"f32:xx\" is no type"},
        {"--op nx", "--op: \"nx\""},
        {"--order diagonal", "--order: \"diagonal\""},
        {"--arch 9000", "--arch: \"9000\""},
        {"--arch sm_90a", "--arch: \"sm_90a\""},
        {"--arch 87,", "--arch: \"\""},
        {"--arch 9", "--arch: \"9\""},
        {"--arch 00 --dry-run", "--arch: \"00\""}, /* 0 means this machine's GPU inside the tool */
        {"--arch 87,000 --dry-run", "--arch: \"000\""},
        {"--arch sm_08 --dry-run", "--arch: \"sm_08\""},
        {"--arch 087 --dry-run", "--arch: \"087\""},
        {"--sms 8", "--sms needs --arch"},
        {"--arch 87 --sms 0", "--sms: \"0\""},
        {"--jobs 1x", "--jobs: \"1x\""},
        {"--jobs -3", "--jobs: \"-3\""},
        {"--budget 0", "--budget: \"0\""},
        {"--budget -1s", "--budget: \"-1s\""},
        {"--budget 5h", "--budget: \"5h\" is no time"},
        {"--budget 0x10", "--budget: \"0x10\""},
        {"--budget nan", "--budget: \"nan\""},
        {"--budget s", "--budget: \"s\""},
        {"--budget 1441min", "--budget: \"1441min\""},
        {"--budget=", "--budget: \"\""},
        {"--cache ''", "--cache needs a file name"},
        {"--nvrtc=", "--nvrtc needs a file name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = run("\"$P\" %s", rows[i].arguments);
        if (status != 2) fail_msg("%s: status %d, not 2", rows[i].arguments, status);
        assert_has(err, rows[i].message);
        assert_int_equal(strncmp(err, "jitgemm-prewarm: ", 17), 0);
        assert_int_equal(count_lines(err), 1);
        assert_string_equal(out, "");
    }
}

static void help_and_version(void **state)
{
    (void)state;
    assert_int_equal(run("\"$P\" --help"), 0);
    assert_int_equal(strncmp(out, "usage: jitgemm-prewarm", 22), 0);
    assert_string_equal(err, "");
    assert_int_equal(run("\"$P\" --version"), 0);
    assert_int_equal(strncmp(out, "jitgemm-prewarm ", 16), 0);
}

/* Puts the resolved tools folder of the source tree into `folder`, or skips. */
static void need_tools_folder(char tools[PATH_MAX])
{
    const char *given = getenv("JG_TEST_TOOLS_DIR");
    if (realpath(given ? given : "tools", tools) && access(tools, R_OK) == 0) return;
    print_message("SKIP the tools folder is not there\n");
    skip();
}

static void man_pages_match(void **state)
{
    (void)state;
    char tools[PATH_MAX];
    need_tools_folder(tools);
    static const struct { const char *tool, *commands; } rows[] = {{"prewarm", ""}, {"cache", "misses plans clear seal extract"}};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run("sed 's/\\\\f.//g; s/\\\\//g' '%s/jitgemm-%s.1' >page", tools, rows[i].tool), 0);
        /* Every option of the help is in the page, and the other way round. (dump-sass is cuobjdump's.) */
        int status = run("C=\"${P%%prewarm}%s\"; { \"$C\" --help; for c in %s; do \"$C\" $c --help; done; } >help; "
                         "grep -o -e '--[a-z][a-z-]*' help | sort -u >in-help; "
                         "grep -v dump-sass page | grep -o -e '--[a-z][a-z-]*' | sort -u >in-page; "
                         "test -s in-help && diff in-help in-page", rows[i].tool, rows[i].commands);
        if (status != 0) fail_msg("help and page of jitgemm-%s differ:\n%s", rows[i].tool, out);
        /* Every page of ours that it refers to is there. */
        assert_int_equal(run("for p in $(sed -n 's/^.BR \\(jitgemm[^ ]*\\) (1).*/\\1/p' page); do "
                             "test -e '%s'/$p.1 || { echo no page $p; exit 1; }; done", tools), 0);
    }
}

static void list_errors(void **state)
{
    (void)state;
    char long_line[1024];
    memset(long_line, '7', sizeof long_line);
    const struct { const char *content; size_t bytes; const char *message; } rows[] = {
        {"64\n# fine\n96:f19\n", 16, "sizes:3: "},
        {"64\n# fine\n96:f19\n", 16, "f19"},
        {"64 96\n", 6, "sizes:1: \"64 96\": one size a line"},
        {"64\n9\0006\n", 7, "sizes:2: the line holds a NUL byte"},
        {long_line, sizeof long_line, "sizes:1: the line is longer than 512 bytes"},
        {"\n# nothing\n", 11, "the lists hold no size"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scratch_write(scratch_path(folder, "sizes"), rows[i].content, rows[i].bytes);
        assert_int_equal(run("\"$P\" --arch 87 --cache new.db --list sizes"), 2);
        assert_has(err, rows[i].message);
    }
    assert_int_equal(run("\"$P\" --list no-such-file"), 2);
    assert_has(err, "no-such-file: No such file or directory");
    assert_int_equal(run("\"$P\" --list ."), 2);
    assert_has(err, ".: Is a directory");
    assert_int_equal(run("echo bad | \"$P\" -"), 2);
    assert_has(err, "standard input:1: ");
    assert_int_equal(run("test ! -e new.db"), 0); /* refused before anything was opened */
}

static void list_forms(void **state)
{
    (void)state;
    static const char content[] = "# sizes\r\n\r\n  64:f16\t# small\r\n96x80x112\r\n#\n128"; /* no newline at the end */
    scratch_write(scratch_path(folder, "sizes"), content, sizeof content - 1);
    static const char *const commands[] = {"\"$P\" --arch 87 --dry-run --list sizes",
                                           "\"$P\" --arch 87 --dry-run - <sizes",
                                           "\"$P\" --arch 87 --dry-run --list - <sizes"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(run("%s", commands[i]), 0);
        assert_int_equal(count_lines(out), 4);
        assert_has(out, "planned  64:f16  jg_sm87_");
        assert_has(out, "planned  96x80x112  jg_sm87_");
        assert_counts(out, 0, 0, 0);
    }
}

static void options_are_defaults(void **state)
{
    (void)state;
    /* Two types and two ops make four of the plain size; the other has a type of its own, so two. */
    assert_int_equal(run("\"$P\" --arch 87 --dry-run 64 --type f16,f16-f32 --op nn,nt 96:bf16"), 0);
    assert_int_equal(count_lines(out), 4 + 2 + 1);
    assert_has(out, "64:f16  ");
    assert_has(out, "64:f16:nt  ");
    assert_has(out, "64:f16-f32  ");
    assert_has(out, "64:f16-f32:nt  ");
    assert_has(out, "96:bf16:nt  ");
    /* Words behind a type count as if they were said, but --op and --order are stronger. */
    assert_int_equal(run("\"$P\" --arch 87 --dry-run 64 --type f16:nt:col,f16-f32:tt"), 0);
    assert_has(out, "64:f16:nt:col  ");
    assert_has(out, "64:f16-f32:tt  ");
    assert_int_equal(run("\"$P\" --arch 87 --dry-run 64 --type f16:nt:col --op tn --order row"), 0);
    assert_has(out, "64:f16:tn  ");
    assert_int_equal(run("\"$P\" --arch 87 --dry-run 64 --type u8.s8-u8:relu,tf32,f16.s4:group=64"), 0);
    assert_has(out, "64:u8.s8-u8:relu  ");
    assert_has(out, "64:tf32  ");
    assert_has(out, "64:f16.s4:group=64  ");
    /* The common sizes take the options too. */
    assert_int_equal(run("\"$P\" --arch 87 --dry-run --type bf16 --order col"), 0);
    assert_int_equal(count_lines(out), 16 + 1);
    assert_has(out, "1024:bf16:col  ");
}

static void dry_run_touches_nothing(void **state)
{
    (void)state;
    assert_int_equal(run("rm -rf .cache; \"$P\" --arch sm_87,90 --dry-run --verbose 64:f16"), 0);
    assert_has(out, "jg_sm87_");
    assert_has(out, "jg_sm90_");
    assert_counts(out, 0, 0, 0);
    assert_int_equal(run("test ! -e .cache"), 0);
}

static void dry_run_tells_what_it_leaves_out(void **state)
{
    (void)state;
    assert_int_equal(run("\"$P\" --arch 87,90 --dry-run --generic 0x5x5 64:f16 5x5x5x0:sa=25"), 0);
    assert_int_equal(count_lines(out), 2 + 1 + 1);
    assert_null(strstr(out, "x5")); /* nothing to compute: no kernel, as in a real run */
    assert_has(out, "\ngeneric set: not listed by --dry-run\ncompiled 0, ");
    assert_int_equal(run("\"$P\" --arch 87 --dry-run --generic --json 0x5x5 64:f16"), 0);
    cJSON *root = cJSON_Parse(out);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "kernels")), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "generic_set")), "not listed by --dry-run");
    cJSON_Delete(root);
    assert_has(err, "generic set: not listed by --dry-run\n");
    assert_int_equal(run("\"$P\" --arch 87 --dry-run 64:f16"), 0);
    assert_null(strstr(out, "generic"));
    assert_int_equal(run("\"$P\" --arch 87 --cache empty.db --nvrtc no-such-library.so 0x5x5"), 0);
    assert_counts(out, 0, 0, 0); /* the real run agrees */
}

/* Records with the kernel names of a dry run's output, in file `name` of the scratch folder. The texts and binaries are
 * no kernels; a dry run does not look at them. `suffix` is added to each name; `copies` records get the same one. */
static void fake_cache(const char *name, const char *listing, const char *suffix, int copies)
{
    char kernel[256], with_suffix[300];
    int index = 0;
    store *s = sample_open(scratch_path(folder, name), 0, 0);
    for (const char *at = listing; (at = strstr(at, "  jg_sm")); at++) {
        assert_int_equal(sscanf(at, " %255s", kernel), 1);
        snprintf(with_suffix, sizeof with_suffix, "%s%s", kernel, suffix);
        for (int i = 0; i < copies; i++) {
            store_record record;
            sample_record(&record, index++, 16, NULL);
            record.name = with_suffix;
            assert_int_equal(store_put(s, &record, NULL), STORE_OK);
        }
    }
    store_close(s);
    assert_true(index > 0);
}

static void a_longer_name_is_another_kernel(void **state)
{
    (void)state;
    assert_int_equal(run("\"$P\" --arch 87 --dry-run 64:f16:specialised"), 0);
    assert_has(out, "_c4\n");
    fake_cache("batched.db", out, "_b", 1);
    fake_cache("versions.db", out, "", 2);
    assert_int_equal(run("\"$P\" --arch 87 --dry-run --cache batched.db 64:f16:specialised"), 0);
    assert_has(out, "planned  64:f16:specialised");
    assert_int_equal(run("\"$P\" --arch 87 --dry-run --cache versions.db 64:f16:specialised"), 0);
    assert_has(out, "cached   64:f16:specialised");
}

static void default_list_is_the_default(void **state)
{
    (void)state;
    char path[PATH_MAX];
    need_tools_folder(path);
    assert_int_equal(run("\"$P\" --arch 87 --dry-run | sort >default; "
                         "\"$P\" --arch 87 --dry-run --list '%s/sizes-default.txt' | sort >file; "
                         "cmp default file", path), 0);
}

static void cache_that_cannot_be(void **state)
{
    (void)state;
    scratch_write(scratch_path(folder, "plain"), "x", 1);
    assert_int_equal(run("\"$P\" --arch 87 --cache plain/kernels.db 64"), 1);
    assert_has(err, "plain/kernels.db");
    assert_has(err, "jitgemm-prewarm: warning: ");
    assert_has(err, "there is no cache file to fill; give a usable one with --cache FILE");
    assert_counts(out, 0, 0, 0);
    assert_int_equal(run("unset HOME; \"$P\" --arch 87 64"), 1);
    assert_has(err, "--cache FILE");
    assert_counts(out, 0, 0, 0);
    assert_int_equal(run("\"$P\" --arch 12 64"), 1);
    assert_has(err, "12");
    assert_counts(out, 0, 0, 0);
}

static void missing_nvrtc(void **state)
{
    (void)state;
    assert_int_equal(run("\"$P\" --arch 87 --cache none.db --nvrtc no-such-library.so 64 96"), 1);
    assert_has(err, "no-such-library.so");
    size_t compiled, cached, failed;
    last_line(out, &compiled, &cached, &failed);
    assert_int_equal(compiled + cached, 0);
}

/* ---- tests that compile ---- */

static void second_run_is_cached(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$P\" --arch 87 --cache twice.db 64:f16 96x80x112 64:f16"), 0);
    assert_counts(out, 2, 0, 0); /* equal kernels are made once */
    assert_has(out, "[1/2] compiled");
    assert_has(out, "[2/2] compiled");
    assert_int_equal(run("\"$P\" --arch 87 --cache twice.db 64:f16 96x80x112 128:f16"), 0);
    assert_counts(out, 1, 2, 0);
    assert_int_equal(run("\"$P\" --arch 87 --cache twice.db --quiet 64:f16 96x80x112"), 0);
    assert_string_equal(out, "compiled 0, cached 2, failed 0\n");
    assert_int_equal(run("\"$P\" --arch 87 --cache twice.db --dry-run 64:f16 200:f16"), 0);
    assert_has(out, "cached   64:f16  ");
    assert_has(out, "planned  200:f16  ");
    assert_int_equal(run("\"$P\" --arch 87,86 --sms 8 --cache twice.db 64:f16"), 0);
    assert_counts(out, 1, 1, 0);
}

static void warm_cache_needs_no_nvrtc(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$P\" --arch 87 --cache warm.db 64:f16"), 0);
    assert_int_equal(run("\"$P\" --arch 87 --cache warm.db --nvrtc no-such-library.so 64:f16"), 0);
    assert_counts(out, 0, 1, 0);
}

static void generic_set(void **state)
{
    (void)state;
    need_nvrtc();
    size_t compiled, cached, failed;
    assert_int_equal(run("\"$P\" --arch 87 --cache generic.db --generic 64:f16"), 0);
    last_line(out, &compiled, &cached, &failed);
    assert_true(compiled >= 2);
    assert_has(out, "  generic  jg_sm87_");
}

static void json_parses(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$P\" --arch 87 --cache json.db --json 64:f16 96x80x112"), 0);
    cJSON *root = cJSON_Parse(out);
    assert_non_null(root);
    const cJSON *kernels = cJSON_GetObjectItem(root, "kernels");
    assert_int_equal(cJSON_GetArraySize(kernels), 2);
    const cJSON *row = cJSON_GetArrayItem(kernels, 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "target")), "sm_87");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "outcome")), "compiled");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(row, "ms")) > 0);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "compiled")) == 2);
    assert_has(cJSON_GetStringValue(cJSON_GetObjectItem(root, "cache")), "json.db");
    cJSON_Delete(root);
    assert_counts(err, 2, 0, 0);
}

/* Starts a run of many sizes and waits until it has reported its first kernel. */
static pid_t start_many(const char *cache)
{
    char line[256];
    snprintf(line, sizeof line, "exec \"$P\" --arch 87 --jobs 1 --cache %s --type f16,bf16,f32", cache);
    pid_t pid = start(line);
    for (int i = 0; i < 1000; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        read_text("out", out);
        if (strchr(out, '\n')) return pid;
    }
    kill(pid, SIGKILL);
    fail_msg("no kernel within 10 s");
    return pid;
}

static void interrupt_keeps_what_is_done(void **state)
{
    (void)state;
    need_nvrtc();
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        size_t done, cached, failed, compiled_later, cached_later;
        char cache[32];
        snprintf(cache, sizeof cache, "stop%zu.db", i);
        pid_t pid = start_many(cache);
        kill(pid, signals[i]);
        assert_int_equal(finish(pid), 130);
        assert_has(err, "of 48 kernels are left; run again to go on");
        last_line(out, &done, &cached, &failed);
        assert_true(done >= 1 && done < 48);
        assert_int_equal(cached + failed, 0);
        /* The first sizes again: what the interrupted run made is there, and one more is made. */
        assert_int_equal(run("\"$P\" --arch 87 --cache %s --type f16 64 1000", cache), 0);
        last_line(out, &compiled_later, &cached_later, &failed);
        assert_int_equal(compiled_later, 1);
        assert_int_equal(cached_later, 1);
    }
}

static double json_number(const cJSON *root, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(root, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* The time is over when the first kernel is done: the generic one, though the size was named first. */
static void budget_leaves_the_rest_for_the_next_run(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$P\" --arch 87,90 --cache budget.db --jobs 1 --budget 1ms --json 64:s4 64:s4:generic"), 0);
    cJSON *root = cJSON_Parse(out);
    assert_non_null(root);
    const cJSON *kernels = cJSON_GetObjectItem(root, "kernels");
    assert_int_equal(cJSON_GetArraySize(kernels), 1);
    assert_has(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(kernels, 0), "problem")), ":generic");
    assert_true(json_number(root, "budget_ms") == 1 && json_number(root, "left") == 1 && json_number(root, "archs_left") == 1);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(root, "interrupted")));
    cJSON_Delete(root);
    assert_has(err, "time is over; 1 kernel is left for the next run\n");
    assert_has(err, "time is over: architectures not begun: 1; run again to go on\n");
    assert_counts(err, 1, 0, 0);

    /* What is left is not shipped. */
    assert_int_equal(run("\"$P\" --arch 87 --cache budget.db --jobs 1 --budget 1ms --seal --quiet 64:s4 64:s4:generic"), 1);
    assert_has(err, "is not sealed, for not everything is in it");

    /* In a budget that is enough all is made, and nothing is said of it. */
    assert_int_equal(run("\"$P\" --arch 87 --cache budget.db --budget 1min 64:s4 64:s4:generic"), 0);
    assert_counts(out, 1, 1, 0);
    assert_string_equal(err, "");
}

static void second_interrupt_exits_at_once(void **state)
{
    (void)state;
    need_nvrtc();
    pid_t pid = start_many("twice-stopped.db");
    kill(pid, SIGINT);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* equal pending signals would merge */
    kill(pid, SIGINT);
    assert_int_equal(finish(pid), 130);
    /* What was finished is sound. */
    assert_int_equal(run("\"$P\" --arch 87 --cache twice-stopped.db 64:f16"), 0);
}

static void full_output_is_an_error(void **state)
{
    (void)state;
    static const char *const commands[] = {"--help", "--version", "--arch 87 --dry-run 64", "--arch 87 --dry-run --json 64",
                                           "--arch 87 --dry-run --quiet 64"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int status = run("\"$P\" %s >/dev/full", commands[i]);
        if (status != 1) fail_msg("%s: status %d, not 1", commands[i], status);
        assert_has(err, "jitgemm-prewarm: standard output: No space left on device\n");
    }
    assert_int_equal(run("\"$P\" --frobnicate >/dev/full"), 2);
    assert_int_equal(count_lines(err), 1);
}

static void full_output_of_a_real_run_is_an_error(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$P\" --arch 87 --cache full.db 64:f16 >/dev/full"), 1);
    assert_has(err, "standard output: ");
}

int main(void)
{
    if (find_tools() != 0) return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(man_pages_match),
        cmocka_unit_test(list_errors),
        cmocka_unit_test(list_forms),
        cmocka_unit_test(options_are_defaults),
        cmocka_unit_test(dry_run_touches_nothing),
        cmocka_unit_test(dry_run_tells_what_it_leaves_out),
        cmocka_unit_test(a_longer_name_is_another_kernel),
        cmocka_unit_test(default_list_is_the_default),
        cmocka_unit_test(cache_that_cannot_be),
        cmocka_unit_test(missing_nvrtc),
        cmocka_unit_test(second_run_is_cached),
        cmocka_unit_test(warm_cache_needs_no_nvrtc),
        cmocka_unit_test(generic_set),
        cmocka_unit_test(json_parses),
        cmocka_unit_test(interrupt_keeps_what_is_done),
        cmocka_unit_test(budget_leaves_the_rest_for_the_next_run),
        cmocka_unit_test(second_interrupt_exits_at_once),
        cmocka_unit_test(full_output_is_an_error),
        cmocka_unit_test(full_output_of_a_real_run_is_an_error),
    };
    return cmocka_run_group_tests_name("jitgemm-prewarm", tests, make_folder, remove_folder);
}
