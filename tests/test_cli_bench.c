/* The command line of jitgemm-bench, from outside: arguments and signals in; exit status, texts and counts out. Nothing is
 * measured here: on the software GPU the same steps run and are counted. Tests that compile are skipped without NVRTC. */
#include "cli_bench_fixture.h"

/* ---- command lines ---- */

static void usage_errors(void **state)
{
    (void)state;
    static const struct { const char *arguments, *message; } rows[] = {
        {"", "what? A suite such as common16, or first-call, dispatch, cold-start, compile, memory, planner or all; see --help"},
        {"--json", "what? A suite"},
        {"frobnicate", "\"frobnicate\" is no suite; use common16, poison, misalign, skinny, layers, large, tiny, compile, memory, first-call, dispatch, "
                       "cold-start, plans, planner or all, or --list FILE"},
        {"products", "\"products\" is no suite"},
        {"dispatch frobnicate", "\"frobnicate\" is no suite"},
        {"-- dispatch --json", "\"--json\" is no suite"},
        {"dispatch --frobnicate", "bad option --frobnicate"},
        {"dispatch -x", "unknown option -x"},
        {"dispatch --check=1", "bad option --check=1"},
        {"first-call --sizes", "--sizes needs a value"},
        {"first-call --sizes 0", "--sizes: \"0\" is not a number from 1 to 1000000"},
        {"first-call --sizes 1000001", "--sizes: \"1000001\" is not a number"},
        {"first-call --sizes 5x", "--sizes: \"5x\" is not a number"},
        {"first-call --seed -1", "--seed: \"-1\" is not a number from 0 to "},
        {"first-call --busy 1001", "--busy: \"1001\" is not a number from 0 to 1000"},
        {"first-call --launches 9", "--launches is only for --neighbour"},
        {"first-call --neighbour --launches 7", "--launches: \"7\" is not a number from 8"},
        {"first-call --neighbour --sizes 5", "--neighbour and --sizes exclude each other"},
        {"first-call --poll 5 --neighbour", "--neighbour and --poll exclude each other"},
        {"first-call --neighbour --compiling", "--neighbour compiles in turn by itself"},
        {"first-call --runs 5", "--runs is not for first-call"},
        {"cold-start --threads 5", "--threads is not for cold-start"},
        {"dispatch --compiling", "--compiling is not for dispatch"},
        {"dispatch --no-peer", "--no-peer is not for dispatch"},
        {"common16 poison compile --runs 5", "--runs is not for common16 poison, compile; see --help"},
        {"compile --rounds 5", "--rounds is not for compile"},
        {"compile common16 --fill", "--fill is not for compile, common16"},
        {"dispatch --type f16", "--type is not for dispatch"},
        {"dispatch --size ''", "--size needs a value"},
        {"dispatch --list ''", "--list needs a value"},
        {"$(yes -- --size 5 | head -65)", "--size: at most 64 times"},
        {"$(yes -- --list x | head -65)", "--list: at most 64 times"},
        {"common16 $(yes -- --type f16 | head -129)", "the command line is too long"},
        {"common16 --type f17", "--type: \"f17\" is no type; use f32, f16, bf16, s8, s4, e4m3, A-C such as f16-f32"},
        {"common16 --type f16,", "--type: \"\" is no type"},
        {"common16 --type f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16", "--type: at most 16 types"},
        {"common16 --data cold", "--data: \"cold\" is neither resident nor rotated"},
        {"common16 --rounds 2", "--rounds: \"2\" is not a number from 3 to 1000"},
        {"common16 --sample 9", "--sample: \"9\" is not a number from 10 to 1000000"},
        {"common16 --sms 0", "--sms: \"0\" is not a number from 1 to 1024"},
        {"common16 --as-arch sm_87", "--as-arch: \"sm_87\" is not a number from 0 to 999"},
        {"compile --jobs 65", "--jobs: \"65\" is not a number from 1 to 64"},
        {"common16 --record", "--record needs --cache FILE, where it is kept"},
        {"common16 --record --cache a.db --save b", "--record: only for a run without --save and --against"},
        {"common16 --check --against b", "--check: only for a run without --save and --against"},
        {"common16 --percent 5", "--percent is only for --save and --against"},
        {"common16 --processes 10", "--processes is only for --save and --against"},
        {"common16 --save a --processes 9", "--processes: \"9\" is not a number from 10 to 1000"},
        {"common16 --save a --percent 1001", "--percent: \"1001\" is not a number from 0 to 1000"},
        {"--list - --save a", "--list -: standard input can be read once only, not in each process; use a file"},
        {"--list - --list -", "--list -: standard input can be read once only"},
        {"common16 --html a --save a", "--html and --save are the same file"},
        {"common16 --html a --cache a", "--html and --cache are the same file"},
        {"common16 --html a --against a", "--html and --against are the same file"},
        {"common16 --save a --cache a", "--save and --cache are the same file"},
        {"common16 --cache a --against a", "--cache and --against are the same file"},
        {"common16 --html ''", "--html needs a file name"},
        {"dispatch --threads 65", "--threads: \"65\" is not a number from 1 to 64"},
        {"dispatch --problem 5x5", "\"5x5\" is not a size"},
        {"dispatch --problem 0x5x5", "--problem: there is nothing to compute"},
        {"dispatch --cache ''", "--cache needs a file name"},
        {"dispatch --cpus ''", "--cpus: \"\" is no list of processors"},
        {"dispatch --cpus 1,", "--cpus: \"1,\" is no list of processors"},
        {"dispatch --cpus 3-1", "--cpus: \"3-1\" is no list of processors"},
        {"dispatch --cpus 1-", "--cpus: \"1-\" is no list of processors"},
        {"dispatch --cpus 1024", "--cpus: \"1024\" is no list of processors"},
        {"dispatch --cpus 0:1", "--cpus: \"0:1\" is no list of processors"},
        {"dispatch --cpus 1023", "--cpus: none of these processors is there"},
        {"dispatch --csv --json", "--json and --csv exclude each other"},
        {"memory --compiles 0", "--compiles: \"0\" is not a number from 1 to 1000"},
        {"memory --cache a.db", "--cache is not for memory"},
        {"memory --sms 8", "--sms is not for memory"},
        {"memory --html a", "--html is not for memory"},
        {"compile --helper a", "--helper is not for compile"},
        {"cold-start-child jitgemm", "cold-start-child is started by cold-start only"},
        {"memory-child thread", "memory-child is started by memory only"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = run("\"$B\" %s", rows[i].arguments);
        if (status != 2) fail_msg("%s: status %d, not 2", rows[i].arguments, status);
        assert_has(err, rows[i].message);
        assert_int_equal(strncmp(err, "jitgemm-bench: ", 15), 0);
        assert_int_equal(count_lines(err), 1);
        assert_string_equal(out, "");
    }
}

static void help_and_version(void **state)
{
    (void)state;
    assert_int_equal(run("\"$B\" --help"), 0);
    assert_int_equal(strncmp(out, "usage: jitgemm-bench WHAT... [OPTION]...\n", 41), 0);
    static const char *const words[] = {"common16", "poison", "misalign", "skinny", "layers", "resnet50", "mobilenet_v2", "vit_b16", "yolo_v8n",
                                        "whisper_base", "large", "tiny", "plans", "compile", "memory", "all", "first-call", "dispatch", "cold-start"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(strstr(out, "SUITES"), words[i])) fail_msg("no %s in:\n%s", words[i], out);
    assert_string_equal(err, "");
    assert_int_equal(run("\"$B\" dispatch --version"), 0);
    assert_string_equal(out, "jitgemm-bench " JG_VERSION_STRING "\n");
    assert_int_equal(run("\"$B\" --help >/dev/full"), 1);
    assert_has(err, "standard output: No space left on device");
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
    int status = run("\"$B\" --help | grep -o -e '--[a-z][a-z-]*' | sort -u >in-help; sed 's/\\\\f.//g; s/\\\\//g' "
                     "'%s'/jitgemm-bench.1 >page; grep -o -e '--[a-z][a-z-]*' page | sort -u >in-page; "
                     "test -s in-help && diff in-help in-page", folder);
    if (status != 0) fail_msg("help and page differ:\n%s", out);
    assert_int_equal(run("for p in $(sed -n 's/^.BR \\(jitgemm[^ ]*\\) (1).*/\\1/p' page); do "
                         "test -e '%s'/$p.1 || { echo no page $p; exit 1; }; done", folder), 0);
    /* Every default that the help gives is the page's too. */
    assert_int_equal(run("\"$B\" --help | sed -n 's/^  --\\([a-z-]*\\).*default \\([0-9][0-9x]*\\).*/\\1 \\2/p' >defaults; "
                         "test $(wc -l <defaults) -ge 9 && while read name value; do "
                         "sed -n \"/^.BI --$name /,/^.TP/p\" page | grep -q \"default $value[.; ]\" || "
                         "{ echo $name $value; exit 1; }; done <defaults"), 0);
}

static void no_gpu(void **state)
{
    (void)state;
    static const char *const commands[] = {"first-call", "first-call --neighbour", "dispatch", "cold-start", "compile",
                                            "common16", "dispatch compile --save b.json", "all"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(run("\"$B\" %s --driver no-such-driver.so", commands[i]), 1);
        assert_has(err, "jitgemm-bench: no GPU here to measure (--driver swgpu counts without one): no CUDA driver: no-such-");
        assert_int_equal(count_lines(err), 1);
        assert_string_equal(out, "");
        assert_int_equal(run("JITGEMM_DRIVER=cpu \"$B\" --json %s", commands[i]), 1);
        assert_has(err, "the cpu device launches nothing that could be measured");
        assert_string_equal(out, "");
    }
}

/* ---- what a run writes ---- */

static const cJSON *find_count(const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(root, "counts"))
        if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(item, "name")), name) == 0) return cJSON_GetObjectItem(item, "value");
    return NULL;
}

static long count(const char *name)
{
    const cJSON *value = find_count(name);
    if (!value) fail_msg("no count \"%s\" in:\n%s\n%s", name, out, err);
    return (long)value->valuedouble;
}

static void assert_no_times(const char *command)
{
    assert_non_null(root);
    const cJSON *commands = cJSON_GetObjectItem(root, "commands");
    assert_int_equal(cJSON_GetArraySize(commands), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(commands, 0)), command);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "series")), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "targets")), 0);
    const cJSON *environment = cJSON_GetObjectItem(root, "environment");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(environment, "software")));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(environment, "device")), "AGX Orin (software GPU)");
    assert_int_equal(strncmp(cJSON_GetStringValue(cJSON_GetObjectItem(environment, "compiler")), "NVRTC 1", 7), 0);
    assert_has(out, "so times would mean nothing: counts only.");
}

static void first_call(void **state)
{
    (void)state;
    need_nvrtc();
    if (bench("first-call --sizes 24 --poll 6 --check") != 0) fail_msg("%s", err);
    assert_no_times("first-call");
    assert_int_equal(count("jitgemm: samples"), 24);
    assert_int_equal(count("jitgemm f16: samples"), 12);
    assert_int_equal(count("jitgemm f32: samples"), 12);
    assert_int_equal(count("launches on generic kernels"), 24);
    assert_int_equal(count("launches on own kernels"), 0);
    assert_int_equal(count("calls that waited"), 0);
    assert_int_equal(count("compiles during the calls"), 0);
    assert_int_equal(count("calls of jg_poll"), 4);
    assert_int_equal(count("jg_poll with nothing to do: samples"), 4);
    assert_true(count("generic kernels loaded by jg_open") > 0);
    assert_null(find_count("sizes fed to the worker"));
    assert_string_equal(err, "");
}

static void first_call_while_compiling(void **state)
{
    (void)state;
    need_nvrtc();
    if (bench("first-call --sizes 16 --compiling --cpus 0") != 0) fail_msg("%s", err);
    assert_no_times("first-call");
    assert_int_equal(count("jitgemm, compiling: samples"), 16);
    assert_int_equal(count("calls that waited"), 0);
    assert_true(count("sizes fed to the worker") >= 8);
    assert_true(count("problems swapped") + count("problems swapped afterwards") > 0);
    const cJSON *environment = cJSON_GetObjectItem(root, "environment");
    assert_int_equal(cJSON_GetObjectItem(environment, "allowed")->valueint, 1);
}

/* Without generic kernels in the file, calls wait, which is what the command is to find. */
static void waiting_is_an_error(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$B\" first-call --sizes 2 --driver swgpu --cache empty.db"), 1);
    assert_has(err, "calls that waited for their kernel: ");
    assert_has(err, "--fill");
    assert_int_equal(run("\"$B\" first-call --sizes 2 --driver swgpu --cache empty2.db --fill"), 0);
}

static void neighbour(void **state)
{
    (void)state;
    need_nvrtc();
    if (bench("first-call --neighbour --launches 16") != 0) fail_msg("%s", err);
    assert_no_times("first-call");
    assert_int_equal(count("worker idle: samples"), 16);
    assert_int_equal(count("worker compiling: samples"), 16);
    assert_true(count("kernels compiled") > 0);
    assert_int_equal(count("calls that waited"), 0);
}

static void dispatch_counts(void **state)
{
    (void)state;
    need_nvrtc();
    if (bench("dispatch --batches 3 --problem 16:f16") != 0) fail_msg("%s", err);
    assert_no_times("dispatch");
    assert_int_equal(count("cuLaunchKernel alone: samples"), 3);
    assert_int_equal(count("jg_gemm: samples"), 3);
    assert_int_equal(count("jg_plan_run: samples"), 3);
    assert_int_equal(count("calls that waited"), 0);
    /* Two rounds more to warm up; batches of 4 launches by jg_gemm and by jg_plan_run. */
    assert_int_equal(count("launches on own kernels"), (3 + 2) * 4 * 2);
    assert_int_equal(count("problems remembered"), 1);
    assert_has(out, "The problem is 16:f16, on jg_sm87_");
    assert_null(find_count("jg_gemm, among 27: samples"));

    if (bench("dispatch --batches 2 --threads 3 --problems 27") != 0) fail_msg("%s", err);
    assert_int_equal(count("jg_gemm: samples"), 6);
    assert_int_equal(count("jg_gemm, among 27: samples"), 6);
    assert_int_equal(count("jg_gemm, another each time, among 27: samples"), 6);
    assert_in_range(count("problems remembered"), 28, 28);
    assert_int_equal(count("calls that waited"), 0);
}

static void cold_start(void **state)
{
    (void)state;
    need_nvrtc();
    if (bench("cold-start --runs 3") != 0) fail_msg("%s", err);
    assert_no_times("cold-start");
    assert_int_equal(count("jitgemm: process start to main: samples"), 3);
    assert_int_equal(count("jitgemm: over context creation: samples"), 3);
    assert_null(find_count("cublas: first product: samples"));
    assert_int_equal(count("first products that waited"), 0);
    assert_int_equal(count("first products on an own kernel") + count("first products on a generic kernel"), 1);
    assert_true(count("kernels in the cache file") > 0);
    assert_true(count("of them generic ones that stay loaded") > 0);
    assert_true(count("kernels loaded") >= count("of them generic ones that stay loaded"));
}

/* A process that fails is told of, by itself and by the command. */
static void cold_start_that_fails(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("JITGEMM_SWGPU_FAULT=cuStreamSynchronize:1:CUDA_ERROR_INVALID_VALUE "
                         "\"$B\" cold-start --driver swgpu --cache filled.db"), 1);
    assert_has(err, "jitgemm-bench: the first product: cuStreamSynchronize");
    assert_has(err, "jitgemm-bench: the process for jitgemm ended with status 1");
}

/* ---- files, formats, interrupts ---- */

static void temporary_cache(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("mkdir tmp; TMPDIR=$PWD/tmp \"$B\" dispatch --driver swgpu --batches 1 --csv; s=$?; "
                         "ls -A tmp >&2; exit $s"), 0);
    assert_string_equal(err, "");
    assert_has(out, "kind,name,unit,n,min,p25,p50,p75,p99,p99.9,max,value,limit,met\n");
    assert_has(out, "\ncount,problems remembered,,,,,,,,,,1,,\n");
    assert_int_equal(run("TMPDIR=$PWD/no-such \"$B\" dispatch --driver swgpu"), 1);
    assert_has(err, "no temporary cache file can be made in ");
    assert_int_equal(run("ls -A .cache 2>/dev/null"), 2); /* the user's own is not touched */
}

static void output_that_cannot_be_written(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$B\" dispatch --driver swgpu --cache filled.db --batches 1 >/dev/full"), 1);
    assert_has(err, "jitgemm-bench: standard output: No space left on device\n");
}

/* Interrupts a run `ms` after its report has begun. */
static void interrupt_run(const char *arguments, int number, long ms)
{
    char line[256];
    snprintf(line, sizeof line, "exec \"$B\" %s --driver swgpu --csv --cache filled.db", arguments);
    pid_t pid = start(line);
    for (int i = 0; i < 6000 && !strstr(out, "environment,compiler"); i++) {
        pause_ms(10);
        read_text("out", out);
    }
    pause_ms(ms);
    kill(pid, number);
    const int status = finish(pid);
    if (status != 130) fail_msg("%s: status %d, not 130: %s", arguments, status, err);
}

/* What was finished is reported. How much that is depends on the machine, so it gets more time if it was nothing. */
static void interrupts(void **state)
{
    (void)state;
    need_nvrtc();
    static const struct { const char *arguments, *has; } rows[] = {
        {"first-call --sizes 12000", "\ncount,jitgemm: samples,"},
        {"dispatch --batches 900000", "\ncount,jg_gemm: samples,"},
        {"cold-start --runs 9000", "\ncount,jitgemm: jg_open: samples,"},
        {"first-call --neighbour --launches 9000000", "\ncount,worker idle: samples,"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        long ms = 200;
        do {
            out[0] = 0;
            interrupt_run(rows[i].arguments, i % 2 ? SIGTERM : SIGINT, ms);
            ms *= 5;
        } while (ms < 30000 && !strstr(out, rows[i].has));
        assert_string_equal(err, "jitgemm-bench: interrupted; the results are of what was finished\n");
        assert_has(out, rows[i].has);
        assert_has(out, "\nnote,,,,,,,,,,,Interrupted: ");
    }
}

/* Also while a temporary cache is filled, before there is anything to report; it is not left behind. Not before the first
 * kernel is there: NVRTC ignores SIGINT for a moment when it first compiles. */
static void interrupt_while_filling(void **state)
{
    (void)state;
    need_nvrtc();
    pid_t pid = start("mkdir -p tmp; TMPDIR=$PWD/tmp exec \"$B\" first-call --driver swgpu --json 2>said");
    for (int i = 0; i < 500 && run("\"${B%%bench}cache\" --cache tmp/*/kernels.db ls | grep jg_sm") != 0; i++) pause_ms(10);
    kill(pid, SIGINT);
    assert_int_equal(finish(pid), 130);
    assert_int_equal(run("cat said; ls -A tmp"), 0);
    assert_string_equal(out, "jitgemm-bench: interrupted; the results are of what was finished\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(man_page_matches),
        cmocka_unit_test(no_gpu),
        cmocka_unit_test(first_call),
        cmocka_unit_test(first_call_while_compiling),
        cmocka_unit_test(waiting_is_an_error),
        cmocka_unit_test(neighbour),
        cmocka_unit_test(dispatch_counts),
        cmocka_unit_test(cold_start),
        cmocka_unit_test(cold_start_that_fails),
        cmocka_unit_test(temporary_cache),
        cmocka_unit_test(output_that_cannot_be_written),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(interrupt_while_filling),
    };
    return cmocka_run_group_tests(tests, make_bench_home, remove_bench_home);
}
