/* jitgemm-prewarm --tune from outside, on the software GPU, which counts instructions: command lines, cache files and signals in; plans
 * in the cache file, texts and exit statuses out. Sizes and candidates are few, for each is compiled. */
#include "cache/store.h"
#include "cli_tools_fixture.h"
#include "sample_records.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TUNE "JITGEMM_DRIVER=swgpu JITGEMM_SWGPU_DEVICE=orin-agx exec \"$P\" --tune --cache k.db "

/* Temporary files go to a folder of the test's own, where nothing may be left. */
static int set_up(void **state)
{
    char path[PATH_MAX + 64];
    make_folder(state);
    snprintf(path, sizeof path, "%s/tmp", folder);
    setenv("TMPDIR", path, 1);
    return mkdir(path, 0700);
}

static int tear_down(void **state)
{
    unsetenv("TMPDIR");
    return remove_folder(state);
}

static size_t count_temporary(void)
{
    size_t count = 0;
    DIR *list = opendir(scratch_path(folder, "tmp"));
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static int is_there(const char *name)
{
    return access(scratch_path(folder, name), F_OK) == 0;
}

static void assert_ends(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    if (length < wanted || strcmp(text + length - wanted, end) != 0) fail_msg("not the end, \"%s\", of:\n%s", end, text);
}

static void usage_errors(void **state)
{
    (void)state;
    static const struct { const char *arguments, *message; } rows[] = {
        {"--retune 64", "--retune says how to tune, and needs --tune"},
        {"--exhaustive 64", "--exhaustive says how to tune"},
        {"--allow-new-bits 64", "--allow-new-bits says how to tune"},
        {"--candidates 3 64", "--candidates says how to tune"},
        {"--tune --candidates 0", "--candidates: \"0\""},
        {"--tune --arch 87 64", "--tune measures on this machine's GPU, so it cannot tune for another one"},
        {"--sms 8 64", "--sms needs --arch, or --tune"},
        {"--tune --generic 64", "--tune leaves the generic kernels as they are"},
        {"--tune --seal 64", "--tune does not seal"},
        {"--tune --exhaustive --candidates 3 64", "--exhaustive measures all candidates"},
        {"--suite nonsense", "--suite: \"nonsense\" is none"},
        {"--suite common16, --arch 87", "--suite: \"\" is none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_run(2, "\"$P\" %s", rows[i].arguments);
        assert_has(err, rows[i].message);
        assert_string_equal(out, "");
    }
}

static void suites_are_for_plain_prewarming_too(void **state)
{
    (void)state;
    assert_run(0, "\"$P\" --arch 87 --suite tiny --dry-run");
    assert_has(out, "planned  32x32x32x256:f16  jg_sm87_");
    assert_has(out, "planned  32x32x32x256  jg_sm87_");
    assert_run(0, "\"$P\" --arch 87 --suite tiny --type bf16 --dry-run");
    assert_has(out, "planned  32x32x32x256:bf16  ");
    assert_has_not(out, ":f16");
}

static void without_a_device(void **state)
{
    (void)state;
    assert_run(1, "JITGEMM_DRIVER=cpu \"$P\" --tune 16");
    assert_has(err, "--tune measures on the device, and JITGEMM_DRIVER=cpu says to use none");
    assert_run(1, "JITGEMM_DRIVER=/nowhere/libcuda.so \"$P\" --tune 16");
    assert_has(err, "--tune measures on the device, and there is none: no CUDA driver: /nowhere/libcuda.so");
    assert_ends(out, "tuned 0, kept 0, failed 0, left 0\n");
}

static void a_file_that_cannot_be_written(void **state)
{
    (void)state;
    assert_run(1, TUNE "--cache /dev/null/k.db 16");
    assert_has(err, "there is no cache file to record plans in");
    assert_int_equal(count_temporary(), 0);
}

static void a_dry_run_changes_nothing(void **state)
{
    (void)state;
    assert_run(0, TUNE "--dry-run --candidates 2 16x16x16:f16 0x1x1 32");
    assert_begins(out, "left   16:f16  2 of ");
    assert_has(out, "empty  0x1x1\n");
    assert_has(out, "4 plans would be compiled and measured; plans recorded for sm_87 16sm ");
    assert_ends(out, "tuned 0, kept 0, failed 0, left 2\n");
    assert_false(is_there("k.db"));
    assert_int_equal(count_temporary(), 0);
}

static void a_part_of_the_device(void **state)
{
    (void)state;
    assert_run(0, TUNE "--dry-run --sms 8 32:f16");
    assert_has(out, "plans recorded for sm_87 8sm ");
    assert_run(1, TUNE "--sms 17 32:f16");
    assert_has(err, "--sms 17: this GPU has 16 multiprocessors");
    assert_false(is_there("k.db"));
}

/* Losers do not reach the file, and a second run has nothing to do. */
static void the_best_plan_is_recorded(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, TUNE "--candidates 3 32:f16");
    assert_begins(out, "[1/1] tuned  1."); /* the model's choice is another one, so what follows is the recorded plan's */
    assert_has(out, " instructions  32:f16  jg_sm87_mma_");
    assert_has(out, "Counted instructions take the place of times: the software GPU has none.\n");
    assert_has(out, "AGX Orin (software GPU) (sm_87 16sm ");
    assert_has(out, ", left 0\n");
    assert_string_equal(err, "");
    assert_int_equal(count_temporary(), 0);
    assert_run(0, "\"$C\" ls --cache k.db");
    assert_has(out, "\n1 kernel");
    assert_run(0, "\"$C\" plans --cache k.db");
    assert_has(out, "     3 of ");
    assert_has(out, "  32:f16\n");
    assert_run(0, "JITGEMM_DRIVER=swgpu \"$P\" --cache k.db 32:f16"); /* its kernel is there */
    assert_ends(out, "compiled 0, cached 1, failed 0\n");
    assert_run(0, "JITGEMM_DRIVER=swgpu \"$P\" --cache k.db --dry-run 32:f16");
    assert_begins(out, "cached   32:f16  jg_sm87_mma_");
    assert_run(0, TUNE "--candidates 3 32:f16");
    assert_has(out, "known  ");
    assert_has(out, " ago, --retune measures again)\n");
    assert_ends(out, "already tuned: 1; --retune measures again\ntuned 0, kept 0, failed 0, left 0\n");
    assert_run(0, TUNE "--dry-run --retune --candidates 3 32:f16");
    assert_has(out, "3 plans would be compiled and measured");
    assert_run(0, TUNE "--dry-run --exhaustive 32:f16");
    assert_begins(out, "left   32:f16  ");
}

static void json(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, TUNE "--json --candidates 1 16x16x16:f16");
    cJSON *root = cJSON_Parse(out);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "rows"), 0);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "unit")), "instructions");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "outcome")), "kept");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(row, "problem")), "16:f16");
    assert_true(cJSON_GetObjectItem(row, "us")->valuedouble > 0);
    assert_true(cJSON_GetObjectItem(row, "gain")->valuedouble == 1);
    assert_true(cJSON_GetObjectItem(root, "kept")->valuedouble == 1 && cJSON_GetObjectItem(root, "compiled")->valuedouble == 1);
    assert_ends(err, "tuned 0, kept 1, failed 0, left 0\n");
    cJSON_Delete(root);
}

/* A budget that ends is no failure. */
static void a_budget_ends(void **state)
{
    (void)state;
    assert_run(0, TUNE "--budget 1ms 16x16x16:f16");
    assert_has(err, "the budget is used up; run again to go on");
    assert_ends(out, "tuned 0, kept 0, failed 0, left 1\n");
    assert_int_equal(count_temporary(), 0);
}

/* Two passes: three candidates of each size, then the rest. */
static void passes_within_a_budget(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, TUNE "--budget 10min --candidates 4 16x16x16:f16 16x24x16:f16");
    const char *first = strstr(out, "[pass 1  1/4] "), *second = strstr(out, "[pass 1  2/4] "), *third = strstr(out, "[pass 2  3/4] ");
    assert_true(first && second && third && first < second && second < third);
    assert_has(out, "[pass 2  4/4] ");
    assert_has(out, ", failed 0, left 0\n");
    assert_run(0, TUNE "--candidates 4 16x16x16:f16 16x24x16:f16");
    assert_has(out, "already tuned: 2");
}

static void no_nvrtc_here(void **state)
{
    (void)state;
    assert_run(1, TUNE "--nvrtc /nowhere/libnvrtc.so 16x16x16:f16");
    assert_has(err, "jitgemm-prewarm: no NVRTC library can be opened (/nowhere/libnvrtc.so");
    assert_ends(out, "left 1\n");
    assert_int_equal(count_temporary(), 0);
}

static void add_miss(const char *problem, const char *target, uint64_t count)
{
    store *s = sample_open(scratch_path(folder, "k.db"), 0, 0);
    store_miss miss = {.key = problem, .key_bytes = strlen(problem), .target = target, .label = problem, .count = count};
    assert_int_equal(store_add_misses(s, &miss, 1), STORE_OK);
    store_close(s);
}

/* Most counted first, of this architecture. */
static void what_the_pipeline_met(void **state)
{
    (void)state;
    add_miss("24:f16", "sm_87", 5);
    add_miss("16:f16:align=2", "sm_87", 50);
    add_miss("40:f16", "sm_90", 500);
    assert_run(0, TUNE "--dry-run --from-misses --candidates 2");
    assert_begins(out, "left   16:f16:align=2  ");
    assert_has(out, "\nleft   24:f16  ");
    assert_has_not(out, "40:f16");
    need_nvrtc();
    assert_run(0, TUNE "--from-misses --candidates 1");
    assert_has(out, "\nmisses         f16               2      2       0   1.000x  -\n");
    assert_ends(out, "tuned 0, kept 2, failed 0, left 0\n");
    assert_run(0, TUNE "--cache other.db --from-misses");
    assert_has(err, "no misses for sm_87 in ");
    assert_ends(out, "tuned 0, kept 0, failed 0, left 0\n");
}

/* Waits until the tool has written something to standard output. */
static void wait_for_output(const char *part)
{
    for (int i = 0; i < 6000; i++) {
        read_text("out", out);
        if (strstr(out, part)) return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("no \"%s\" in:\n%s", part, out);
}

static void an_interrupt_keeps_what_is_done(void **state)
{
    (void)state;
    need_nvrtc();
    const pid_t pid = start(TUNE "--candidates 2 --jobs 1 16x16x16:f16 16x16x24:f16 16x16x40:f16 16x16x48:f16 16x16x56:f16");
    wait_for_output("[1/5] ");
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(finish(pid), 130);
    assert_has(err, "stopping after the measurement at work; interrupt again to exit at once");
    assert_has(err, " sizes are left; run again to go on");
    assert_has_not(out, "left 0\n");
    assert_int_equal(count_temporary(), 0);
    assert_run(0, TUNE "--dry-run --candidates 2 16x16x16:f16");
    assert_begins(out, "known  ");
}

/* A killed one's is removed by a later run, but not one whose process works, or is just making it, and no file. */
static void folders_of_killed_processes_go(void **state)
{
    (void)state;
    static const char *const names[] = {"tmp/jitgemm-tune-killed", "tmp/jitgemm-tune-atwork", "tmp/jitgemm-tune-making",
                                        "tmp/jitgemm-tune-nolock"};
    static const char *const files[] = {"tmp/jitgemm-tune-killed/lock", "tmp/jitgemm-tune-killed/kernels.db",
                                        "tmp/jitgemm-tune-atwork/lock", "tmp/jitgemm-tune-afile"};
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    need_nvrtc();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_int_equal(mkdir(scratch_path(folder, names[i]), 0700), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_int_equal(close(open(scratch_path(folder, files[i]), O_CREAT | O_WRONLY, 0600)), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (i != 2) assert_int_equal(utimensat(AT_FDCWD, scratch_path(folder, names[i]), long_ago, 0), 0);
    const int held = open(scratch_path(folder, "tmp/jitgemm-tune-atwork/lock"), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
    assert_run(0, TUNE "--candidates 1 32:f16");
    assert_false(is_there("tmp/jitgemm-tune-killed"));
    assert_false(is_there("tmp/jitgemm-tune-nolock"));
    assert_true(is_there("tmp/jitgemm-tune-atwork/lock"));
    assert_true(is_there("tmp/jitgemm-tune-making"));
    assert_true(is_there("tmp/jitgemm-tune-afile"));
    assert_int_equal(count_temporary(), 3);
    close(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(usage_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(suites_are_for_plain_prewarming_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dry_run_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_of_the_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_best_plan_is_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_budget_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(passes_within_a_budget, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_nvrtc_here, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_pipeline_met, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_interrupt_keeps_what_is_done, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_of_killed_processes_go, set_up, tear_down),
    };
    return find_tools() == 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
