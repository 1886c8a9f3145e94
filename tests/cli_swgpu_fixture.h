/* What the tests of jitgemm-swgpu share: they run the built tool (folder: $JG_TEST_BIN_DIR) in a temporary home of its own,
 * and plant kernels in cache files, so that what a kernel does is theirs to choose and needs no NVRTC. */
#ifndef JG_TESTS_CLI_SWGPU_FIXTURE_H
#define JG_TESTS_CLI_SWGPU_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/store.h"
#include "context.h"

#define TEXT_MAX 262144

static char home[64];                     /* the temporary folder */
static char out[TEXT_MAX], err[TEXT_MAX]; /* what the last run wrote */
static const char *no_nvrtc;              /* why nothing can be compiled, or null */

static inline void read_text(const char *name, char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", home, name);
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    text[length] = 0;
    if (file) fclose(file);
}

static inline void write_file(const char *name, const char *content)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", home, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Starts a shell line in which $T is the tool; it runs in `home` with nothing of the user's own caches and settings. */
static inline pid_t start(const char *line)
{
    static const char *const variables[] = {
        "JITGEMM_CACHE", "JITGEMM_DRIVER", "XDG_CACHE_HOME", "JITGEMM_SWGPU_DEVICE", "JITGEMM_SWGPU_MEMORY", "JITGEMM_SWGPU_THREADS",
        "JITGEMM_SWGPU_BLOCKS", "JITGEMM_SWGPU_CHECKS", "JITGEMM_SWGPU_COUNTERS", "JITGEMM_SWGPU_REPORT", "JITGEMM_SWGPU_FAULT",
        "JITGEMM_SWGPU_SLOW"};
    write_file("out", ""); /* nobody shall read what an earlier run wrote */
    write_file("err", "");
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

static inline int finish(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    read_text("out", out);
    read_text("err", err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

__attribute__((format(printf, 1, 2)))
static inline int run(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return finish(start(line));
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
    if (strstr(text, part)) fail_msg("\"%s\" is in:\n%s", part, text);
}

static inline size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static inline void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static inline void need_nvrtc(void)
{
    if (!no_nvrtc) return;
    print_message("SKIP %s\n", no_nvrtc);
    skip();
}

/* Puts PTX under the key of a problem's kernel into the cache file `name` of the temporary home. One thread
 * runs the body, with the addresses of A, B and C in %rd1, %rd2 and %rd3. */
static inline void plant(const char *name, const char *problem_text, const char *body)
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
    assert_int_equal(plan_choose(&p, problem_promised_access(&p), gemm_planned_form(&p), &l, &chosen), JG_OK);
    kernel_encode_key(&chosen.spec, &key);
    kernel_format_name(&chosen.spec, kernel);
    int length = snprintf(ptx, sizeof ptx,
                          ".version 7.4\n.target sm_87\n.address_size 64\n.visible .entry %s(.param .align 8 .b8 args[%zu])\n{\n"
                          ".reg .b64 %%rd<9>;\n.reg .b32 %%r<9>;\n.reg .b16 %%rs<9>;\n.reg .pred %%p<9>;\n"
                          "ld.param.u64 %%rd1, [args+%zu];\nld.param.u64 %%rd2, [args+%zu];\nld.param.u64 %%rd3, [args+%zu];\n"
                          "mov.u32 %%r6, %%tid.x; mov.u32 %%r7, %%ctaid.x; mov.u32 %%r8, %%ctaid.y;\n"
                          "or.b32 %%r6, %%r6, %%r7; or.b32 %%r6, %%r6, %%r8; setp.ne.u32 %%p8, %%r6, 0; @%%p8 ret;\n"
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

/* ---- group setup and teardown ---- */

static inline int make_home(void **state)
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

static inline int remove_home(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", home);
    return system(line);
}

#endif
