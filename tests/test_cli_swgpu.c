/* The command line of jitgemm-swgpu, from outside: arguments, lists and signals in; exit status, texts and counts out.
 * It runs the built tool (folder: $JG_TEST_BIN_DIR) in a temporary home of its own. Counts are compared with what follows
 * from a kernel's name by arithmetic. What the checks find is provoked by kernels that are planted in a cache file, and
 * needs no NVRTC; tests that compile are skipped without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/store.h"
#include "context.h"

#define TEXT_MAX 65536

static char home[64];                     /* the temporary folder */
static char out[TEXT_MAX], err[TEXT_MAX]; /* what the last run wrote */
static const char *no_nvrtc;              /* why nothing can be compiled, or null */

/* ---- running the tool ---- */

static void read_text(const char *name, char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", home, name);
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    text[length] = 0;
    if (file) fclose(file);
}

static void write_file(const char *name, const char *content)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", home, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Starts a shell line in which $T is the tool; it runs in `home` with nothing of the user's own caches and settings. */
static pid_t start(const char *line)
{
    static const char *const variables[] = {
        "JITGEMM_CACHE", "JITGEMM_DRIVER", "XDG_CACHE_HOME", "JITGEMM_SWGPU_DEVICE", "JITGEMM_SWGPU_MEMORY", "JITGEMM_SWGPU_THREADS",
        "JITGEMM_SWGPU_BLOCKS", "JITGEMM_SWGPU_CHECKS", "JITGEMM_SWGPU_COUNTERS", "JITGEMM_SWGPU_REPORT", "JITGEMM_SWGPU_FAULT",
        "JITGEMM_SWGPU_SLOW"};
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    setenv("HOME", home, 1);
    if (chdir(home) != 0 || !freopen("out", "w", stdout) || !freopen("err", "w", stderr)) _exit(126);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

static int finish(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    read_text("out", out);
    read_text("err", err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

__attribute__((format(printf, 1, 2)))
static int run(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return finish(start(line));
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("\"%s\" is in:\n%s", part, text);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void need_nvrtc(void)
{
    if (!no_nvrtc) return;
    print_message("SKIP %s\n", no_nvrtc);
    skip();
}

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
        {"--type f32:nt 64", "--type: \"f32:nt\" is no type"},
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

/* ---- findings, provoked by planted kernels ---- */

/* Puts PTX under the key of a problem's kernel into the cache file `name` of the temporary home. The body finds the
 * addresses of A, B and C in %rd1, %rd2 and %rd3. */
static void plant(const char *name, const char *problem_text, const char *body)
{
    char path[128], ptx[4096], kernel[KERNEL_NAME_BYTES], error[512];
    jg_problem in = {0};
    problem p;
    limits l;
    plan chosen;
    kernel_key key;
    store *s;
    assert_int_equal(jg_problem_parse(problem_text, &in), JG_OK);
    assert_int_equal(problem_canonicalise(&in, &p), JG_OK);
    assert_int_equal(limits_of_arch(87, 16, &l), JG_OK);
    assert_int_equal(plan_choose(&p, gemm_promised_access(&p), gemm_planned_form(&p), &l, &chosen), JG_OK);
    kernel_encode_key(&chosen.spec, &key);
    kernel_format_name(&chosen.spec, kernel);
    int length = snprintf(ptx, sizeof ptx,
                          ".version 7.4\n.target sm_87\n.address_size 64\n.visible .entry %s(.param .align 8 .b8 args[%zu])\n{\n"
                          ".reg .b64 %%rd<9>;\n.reg .b32 %%r<9>;\n.reg .b16 %%rs<9>;\n.reg .pred %%p<9>;\n"
                          "ld.param.u64 %%rd1, [args+%zu];\nld.param.u64 %%rd2, [args+%zu];\nld.param.u64 %%rd3, [args+%zu];\n"
                          "%s\nret;\n}\n",
                          kernel, sizeof(launch_args), offsetof(launch_args, a), offsetof(launch_args, b), offsetof(launch_args, c),
                          body);
    assert_true(length > 0 && (size_t)length < sizeof ptx);
    const store_record record = {.key = key.bytes, .key_bytes = sizeof key.bytes, .name = kernel, .target = "sm_87",
                                 .label = "planted", .provenance = "planted", .portable = ptx, .portable_bytes = (size_t)length + 1,
                                 .defines = "", .source = "none", .build_ms = 12};
    snprintf(path, sizeof path, "%s/%s", home, name);
    if (store_open(path, 0, 0, &s, error, sizeof error) != STORE_OK) fail_msg("%s", error);
    assert_int_equal(store_put(s, &record, NULL), STORE_OK);
    store_close(s);
}

/* Each product's own fault is found with all that is known of it, and the next one runs in a fresh context. */
static void findings_are_told(void **state)
{
    (void)state;
    static const struct { const char *size, *body, *found; } rows[] = {
        /* Exactly as large as the matrix: A is 64x48 f32, B 48x80, C 64x80. */
        {"64x80x48", "ld.global.u32 %r1, [%rd1+12284];\nld.global.u32 %r1, [%rd1+12288];", "an allocation of 12288 bytes"},
        {"64x80x48", "ld.global.u32 %r1, [%rd2+15356];\nld.global.u32 %r1, [%rd2+15360];", "an allocation of 15360 bytes"},
        {"64x80x48", "st.global.u32 [%rd3+20476], %r1;\nst.global.u32 [%rd3+20480], %r1;", "an allocation of 20480 bytes"},
        /* Batches: 3 items of A, 60 bytes apart and 50 long; one of B. */
        {"5x4x5x3:f16:sa=30:sb=0", "ld.global.u16 %rs1, [%rd1+168];\nld.global.u16 %rs1, [%rd1+170];", "an allocation of 170 bytes"},
        {"5x4x5x3:f16:sa=30:sb=0", "ld.global.u16 %rs1, [%rd2+38];\nld.global.u16 %rs1, [%rd2+40];", "an allocation of 40 bytes"},
        /* As stored: A is 7x5 if transposed, with rows of 6; column-major B, a kernel's A, has 7 columns of 9. */
        {"5x8x7:tn:lda=6", "ld.global.u32 %r1, [%rd1+160];\nld.global.u32 %r1, [%rd1+164];", "an allocation of 164 bytes"},
        {"5x7x8:col:ldb=9", "ld.global.u32 %r1, [%rd1+244];\nld.global.u32 %r1, [%rd1+248];", "an allocation of 248 bytes"},
        /* C is left as it was. */
        {"64x80x48", "ld.global.u32 %r1, [%rd3+400];", "uninitialised: "},
        /* Not more aligned than promised. */
        {"64x80x48:align=8", "ld.global.v2.u32 {%r1,%r2}, [%rd1];\nld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];", "misaligned: "},
        {"64x80x48:align=4", "ld.global.u32 %r1, [%rd2];\nld.global.v2.u32 {%r1,%r2}, [%rd2];", "misaligned: "},
        {"64x80x48", "trap;", "trap: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char cache[32], prefix[128];
        snprintf(cache, sizeof cache, "planted%zu.db", i);
        snprintf(prefix, sizeof prefix, "%s: FOUND: ", rows[i].size);
        plant(cache, rows[i].size, rows[i].body);
        plant(cache, "32", "st.global.u32 [%rd3], 1;");
        assert_int_equal(run("\"$T\" --cache %s %s 32", cache, rows[i].size), 1);
        if (strncmp(err, prefix, strlen(prefix)) != 0) fail_msg("row %zu: \"%s\" instead of \"%s\"", i, err, prefix);
        assert_has(err, rows[i].found);
        assert_has(err, "; kernel jg_sm87_");
        assert_has(err, ", block (0, 0, 0), thread (0, 0, 0), PTX line ");
        assert_int_equal(count_lines(err), 1);
        assert_has(out, "\n32\n  jg_sm87_");
        assert_has(out, "\ncounted 1, found 1, failed 0\n");
    }
}

/* Numbers of both operands are within [-1, 1), not all alike, and of both signs. The kernel traps if not. */
static void operands_are_filled(void **state)
{
    (void)state;
    static const char *const pointers[] = {"%rd1", "%rd2"};
    static const struct { const char *size, *load; int bytes; } types[] = {
        {"32", "ld.global.f32 %f1, [%rd5];", 4},
        {"32:f16", "ld.global.b16 %rs1, [%rd5]; cvt.f32.f16 %f1, %rs1;", 2},
        {"32:bf16", "ld.global.u16 %r5, [%rd5]; shl.b32 %r5, %r5, 16; mov.b32 %f1, %r5;", 2},
    };
    for (size_t i = 0; i < 6; i++) {
        char body[2048], cache[32];
        snprintf(cache, sizeof cache, "values%zu.db", i);
        /* %r1: the element, to 1024; %r2, %r3: how many are below 0, and below -0.5 */
        snprintf(body, sizeof body,
                 ".reg .f32 %%f<9>;\nmov.u32 %%r1, 0; mov.u32 %%r2, 0; mov.u32 %%r3, 0;\nmov.u64 %%rd5, %s;\n"
                 "NEXT:\n%s\nsetp.ltu.f32 %%p1, %%f1, 0fBF800000; @%%p1 trap;\nsetp.geu.f32 %%p1, %%f1, 0f3F800000; @%%p1 trap;\n"
                 "setp.lt.f32 %%p1, %%f1, 0f00000000; @%%p1 add.u32 %%r2, %%r2, 1;\n"
                 "setp.lt.f32 %%p1, %%f1, 0fBF000000; @%%p1 add.u32 %%r3, %%r3, 1;\n"
                 "add.u64 %%rd5, %%rd5, %d; add.u32 %%r1, %%r1, 1; setp.lt.u32 %%p1, %%r1, 1024; @%%p1 bra NEXT;\n"
                 /* 512 and 256 are expected; 8 standard deviations are 128 and 111 */
                 "setp.lt.u32 %%p1, %%r2, 384; @%%p1 trap; setp.gt.u32 %%p1, %%r2, 640; @%%p1 trap;\n"
                 "setp.lt.u32 %%p1, %%r3, 145; @%%p1 trap; setp.gt.u32 %%p1, %%r3, 367; @%%p1 trap;",
                 pointers[i % 2], types[i / 2].load, types[i / 2].bytes);
        plant(cache, types[i / 2].size, body);
        if (run("\"$T\" --cache %s %s", cache, types[i / 2].size) != 0) fail_msg("%s, %s: %s", types[i / 2].size, pointers[i % 2], err);
    }
}

static void checks_can_be_chosen(void **state)
{
    (void)state;
    plant("reads-c.db", "64", "ld.global.u32 %r1, [%rd3];");
    assert_int_equal(run("\"$T\" --cache reads-c.db --checks race,uninitialised 64"), 1);
    assert_has(err, "64: FOUND: uninitialised: ");
    assert_int_equal(run("\"$T\" --cache reads-c.db --checks race,operands,leak 64"), 0);
    assert_has(out, "; checks: race,operands,leak; ");
    assert_string_equal(err, "");
    assert_int_equal(run("\"$T\" --cache reads-c.db --checks none 64"), 0);
    assert_int_equal(run("JITGEMM_SWGPU_CHECKS=none \"$T\" --cache reads-c.db 64"), 0);
    assert_int_equal(run("JITGEMM_SWGPU_CHECKS=none \"$T\" --cache reads-c.db --checks all 64"), 1);
}

/* A failing cuMemFree leaves memory behind, which is found when the context ends. */
static void leaks_are_found(void **state)
{
    (void)state;
    static const char fault[] = "JITGEMM_SWGPU_FAULT=cuMemFree:2:CUDA_ERROR_INVALID_VALUE";
    plant("quiet.db", "64x80x48", "st.global.u32 [%rd3], 1;");
    assert_int_equal(run("%s \"$T\" --cache quiet.db 64x80x48", fault), 1);
    assert_has(err, "jitgemm-swgpu: 64x80x48: cuMemFree: CUDA_ERROR_INVALID_VALUE");
    assert_has(err, "\njitgemm-swgpu: FOUND: leak: 1 allocation of 15360 bytes was never freed\n");
    assert_has(out, "\ncounted 0, found 1, failed 1\n");
    assert_int_equal(run("%s \"$T\" --json --cache quiet.db 64x80x48", fault), 1);
    cJSON *root = cJSON_Parse(out);
    const cJSON *leak = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "products"), 1);
    assert_null(cJSON_GetObjectItem(leak, "size"));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(leak, "outcome")), "found");
    assert_has(cJSON_GetStringValue(cJSON_GetObjectItem(leak, "text")), "leak: ");
    cJSON_Delete(root);
    /* A report of the user's own gets the findings instead. */
    assert_int_equal(run("%s JITGEMM_SWGPU_REPORT=report \"$T\" --cache quiet.db 64x80x48; cat report", fault), 0);
    assert_has(out, "leak: 1 allocation");
    assert_has_not(err, "leak");
}

static void faults_of_calls(void **state)
{
    (void)state;
    plant("three.db", "32", "st.global.u32 [%rd3], 1;");
    plant("three.db", "64", "st.global.u32 [%rd3], 1;");
    plant("three.db", "96", "st.global.u32 [%rd3], 1;");
    /* Calls are counted anew in the fresh context. */
    assert_int_equal(run("JITGEMM_SWGPU_FAULT=cuStreamSynchronize:2:CUDA_ERROR_ILLEGAL_ADDRESS \"$T\" --cache three.db 32 64 96"), 1);
    assert_int_equal(strncmp(err, "64: FOUND: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS", 58), 0);
    assert_int_equal(count_lines(err), 1);
    assert_has(out, "\n32\n");
    assert_has(out, "\n96\n");
    assert_has(out, "\ncounted 2, found 1, failed 0\n");
    /* Nothing is found if memory runs out; it fails, with the first error's text. */
    assert_int_equal(run("JITGEMM_SWGPU_FAULT=cuMemAlloc:3:2,cuMemFree:1:CUDA_ERROR_INVALID_VALUE \"$T\" --cache three.db 32 64"), 1);
    assert_int_equal(strncmp(err, "jitgemm-swgpu: 32: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", 55), 0);
    assert_has(out, "\ncounted 1, found 1, failed 1\n");
    assert_int_equal(run("JITGEMM_SWGPU_FAULT=cuStreamSynchronize:1:CUDA_ERROR_ILLEGAL_ADDRESS \"$T\" --cache three.db 32 64"), 1);
    assert_has(out, "\ncounted 0, found 2, failed 0\n");
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
        {"orin-agx", "128x64x32x3", 128, 64, 32, 3, 32, 0, 0}, /* the compiler cuts some stores of a batch in four */
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
        if (rows[i].c_bytes) assert_int_equal(count(1, "global_store_sectors"), rows[i].m * rows[i].n * rows[i].c_bytes / 32);
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
    assert_has(out, "\n    fma                65,536  ");
    assert_has(out, "\n  global stores           128 requests         2,048 sectors    16.00 a request\n");
    assert_has(out, " for 1,000 multiply-adds\n");
    assert_has_not(out, "special");
    assert_has_not(out, " 0.0 %");
    assert_has_not(out, "host");
    assert_string_equal(err, "");
    for (const char *line = out; *line; line += strcspn(line, "\n") + 1) assert_true(strcspn(line, "\n") <= 80);
    assert_int_equal(run("JITGEMM_SWGPU_COUNTERS=0 \"$T\" --cache counts.db --device h200 128"), 0);
    assert_has(out, "\n  nothing was counted: JITGEMM_SWGPU_COUNTERS is 0\n");
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
    char line[128];
    snprintf(line, sizeof line, "\n  blocks run                3 of %s; all counts are those of the blocks that ran\n", field(1, "blocks"));
    assert_int_equal(run("\"$T\" --cache counts.db --blocks 3 512:f16"), 0);
    assert_has(out, line);
    assert_has(out, "; blocks of large products: 3\n");
    assert_has(out, ", about ");
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

/* With launches that take 250 ms at least, five of them are past the second. */
static void times_are_medians(void **state)
{
    (void)state;
    plant("slow.db", "32", "st.global.u32 [%rd3], 1;");
    static const char slow[] = "JITGEMM_SWGPU_SLOW=cuLaunchKernel:250";
    assert_int_equal(run("%s \"$T\" --time --csv --cache slow.db 32", slow), 0);
    assert_true(atof(field(1, "ms")) >= 250);
    assert_int_equal(run("%s \"$T\" --time --threads 1 --cache slow.db 32", slow), 0);
    assert_has(out, "\nTimes are those of the simulation on this host, not a GPU's; worker threads: 1.\n");
    assert_has(out, " ms on this host, the median of 5 runs\n");
    assert_int_equal(run("%s \"$T\" --time --json --cache slow.db 32", slow), 0);
    cJSON *root = cJSON_Parse(out);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "products"), 0), "ms")) >= 250);
    cJSON_Delete(root);
}

static void cache_is_used(void **state)
{
    (void)state;
    need_nvrtc();
    assert_int_equal(run("\"$T\" --cache kept.db 40:f16 && JITGEMM_NVRTC=no-such-library.so \"$T\" --cache kept.db 40:f16"), 0);
    assert_int_equal(run("JITGEMM_CACHE=kept.db JITGEMM_NVRTC=no-such-library.so \"$T\" 40:f16"), 0);
}

/* ---- interrupts and output ---- */

/* Starts a run whose second product takes for ever, and waits until the first one is out. */
static pid_t start_endless(const char *options)
{
    char line[256];
    plant("endless.db", "32", "st.global.u32 [%rd3], 1;");
    plant("endless.db", "64", "NEXT: bra NEXT;");
    snprintf(line, sizeof line, "exec \"$T\" --cache endless.db %s 32 64 0x1x1", options);
    return start(line);
}

static void interrupts_end_it(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        pid_t pid = start_endless("");
        for (int waits = 0; waits < 1000 && !strstr(out, "\n32\n"); waits++) pause_ms(10), read_text("out", out);
        kill(pid, signals[i]);
        assert_int_equal(finish(pid), 130);
        assert_string_equal(err, "jitgemm-swgpu: interrupted: 2 of 3 products are left\n");
        assert_has(out, "\n32\n");
        assert_has(out, "\ncounted 1, found 0, failed 0\n");
        out[0] = 0;
    }
    pid_t pid = start_endless("--json 2>&1");
    pause_ms(500); /* the first product may be there or not */
    kill(pid, SIGINT);
    assert_int_equal(finish(pid), 130);
    char *end = strstr(out, "jitgemm-swgpu: interrupted: ");
    assert_non_null(end);
    cJSON *root = cJSON_Parse(end == out ? strchr(out, '\n') : (*end = 0, out));
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "interrupted")));
    cJSON_Delete(root);
}

/* Reads what the tool writes on a terminal until `part` is in it, or until the end. */
static void read_terminal(int terminal, char *text, size_t *length, const char *part)
{
    while (*length + 1 < TEXT_MAX && !(part && strstr(text, part))) {
        ssize_t got = read(terminal, text + *length, TEXT_MAX - 1 - *length);
        if (got <= 0) return; /* EIO: the other side is closed */
        *length += (size_t)got;
        text[*length] = 0;
    }
}

static void terminal_is_left_clean(void **state)
{
    (void)state;
    static char shown[TEXT_MAX];
    size_t length = 0;
    char options[128];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
        print_message("SKIP no pseudo-terminals\n");
        skip();
    }
    setenv("TERM", "xterm", 1);
    snprintf(options, sizeof options, "--csv >%s 2>&1", ptsname(terminal));
    int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY); /* keeps the terminal while nobody else has it open */
    pid_t pid = start_endless(options);
    read_terminal(terminal, shown, &length, "1/3");
    kill(pid, SIGINT);
    read_terminal(terminal, shown, &length, "interrupted: 2 of 3 products are left\r\n");
    assert_int_equal(finish(pid), 130);
    close(slave);
    close(terminal);
    assert_has(shown, "\r\033[K0/3 ");
    assert_has(shown, "\r\033[K32,jg_sm87_"); /* never in the middle of the bar */
    const char *bar = strstr(shown, "\r\033[K1/3 ");
    assert_non_null(bar);
    const char *erased = strstr(bar + 1, "\r\033[K");
    assert_non_null(erased);
    assert_string_equal(erased, "\r\033[Kjitgemm-swgpu: interrupted: 2 of 3 products are left\r\n");
    /* One product needs no bar, and a terminal that cannot erase has none. */
    assert_int_equal(run("TERM=dumb \"$T\" 0x1x1 0x2x2 2>&1 >/dev/null"), 0);
    assert_string_equal(out, "");
}

/* While it is stuck in a write the first interrupt waits, the second one ends it. */
static void second_interrupt_ends_it_at_once(void **state)
{
    (void)state;
    char line[128];
    int ends[2], waiting = 0, before = -1;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(run("for i in $(seq 1000); do echo 0x${i}x1; done >many"), 0);
    snprintf(line, sizeof line, "exec \"$T\" --csv --list many >&%d %d<&-", ends[1], ends[0]);
    pid_t pid = start(line);
    for (int waits = 0; waits < 200 && (waiting < 32768 || waiting != before); waits++) { /* until the pipe is full */
        before = waiting;
        pause_ms(100);
        assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
    }
    kill(pid, SIGINT);
    pause_ms(300);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGINT);
    assert_int_equal(finish(pid), 1000 + SIGINT);
    close(ends[0]);
    close(ends[1]);
}

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

static int make_home(void **state)
{
    (void)state;
    static char reason[512];
    char tool[2048], folder[1024];
    const char *bin = getenv("JG_TEST_BIN_DIR");
    if (!realpath(bin ? bin : "build/bin", folder)) return -1;
    snprintf(tool, sizeof tool, "%s/jitgemm-swgpu", folder);
    setenv("T", tool, 1);
    snprintf(home, sizeof home, "/tmp/jg-swgpu-XXXXXX");
    if (access(tool, X_OK) != 0 || !mkdtemp(home)) return -1;
    if (run("\"$T\" --cache probe.db 64:f16") != 0 && strstr(err, "NVRTC")) {
        snprintf(reason, sizeof reason, "no NVRTC: %.400s", err);
        no_nvrtc = reason;
    }
    return 0;
}

static int remove_home(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", home);
    return system(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(every_device_is_named),
        cmocka_unit_test(man_page_matches),
        cmocka_unit_test(empty_products),
        cmocka_unit_test(missing_nvrtc),
        cmocka_unit_test(findings_are_told),
        cmocka_unit_test(operands_are_filled),
        cmocka_unit_test(checks_can_be_chosen),
        cmocka_unit_test(leaks_are_found),
        cmocka_unit_test(faults_of_calls),
        cmocka_unit_test(counts_follow_from_the_product),
        cmocka_unit_test(counts_are_the_same_every_time),
        cmocka_unit_test(csv_and_json_agree),
        cmocka_unit_test(table_says_what_it_is),
        cmocka_unit_test(fewer_blocks),
        cmocka_unit_test(lists_and_types),
        cmocka_unit_test(times_are_medians),
        cmocka_unit_test(cache_is_used),
        cmocka_unit_test(interrupts_end_it),
        cmocka_unit_test(terminal_is_left_clean),
        cmocka_unit_test(second_interrupt_ends_it_at_once),
        cmocka_unit_test(full_output_is_an_error),
    };
    return cmocka_run_group_tests_name("jitgemm-swgpu", tests, make_home, remove_home);
}
