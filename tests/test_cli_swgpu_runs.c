/* What jitgemm-swgpu does when something goes wrong or takes long, from outside: planted kernels, faults on demand and
 * signals in; findings, exit status and a clean terminal out. Nothing here needs NVRTC. */
#include "cli_swgpu_fixture.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

/* ---- findings ---- */

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

/* ---- times and interrupts ---- */

/* With launches that take 250 ms at least, five of them are past the second. */
static void times_are_medians(void **state)
{
    (void)state;
    plant("slow.db", "32", "st.global.u32 [%rd3], 1;");
    static const char slow[] = "JITGEMM_SWGPU_SLOW=cuLaunchKernel:250";
    assert_int_equal(run("%s \"$T\" --time --threads 1 --cache slow.db 32", slow), 0);
    assert_has(out, "\nTimes are those of the simulation on this host, not a GPU's; worker threads: 1.\n");
    assert_has(out, " ms on this host, the median of 5 runs\n");
    assert_int_equal(run("%s \"$T\" --time --json --cache slow.db 32", slow), 0);
    cJSON *root = cJSON_Parse(out);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "products"), 0), "ms")) >= 250);
    cJSON_Delete(root);
}

/* Starts a run of three products: 32 is quick, 64 takes for ever. */
static pid_t start_endless(const char *arguments)
{
    char line[256];
    plant("endless.db", "32", "st.global.u32 [%rd3], 1;");
    plant("endless.db", "64", "NEXT: bra NEXT;");
    plant("endless.db", "96", "trap;");
    snprintf(line, sizeof line, "exec \"$T\" --cache endless.db %s", arguments);
    return start(line);
}

/* Waits until the run has written `part` into a file of the temporary home. */
static void wait_for(const char *file, const char *part)
{
    static char text[TEXT_MAX];
    for (int waits = 0; waits < 3000; waits++) {
        read_text(file, text);
        if (strstr(text, part)) return;
        pause_ms(10);
    }
    fail_msg("no \"%s\" within 30 s", part);
}

/* finish(), for a run that has been told to stop: one that does not is killed, and the test fails. */
static int finish_soon(pid_t pid)
{
    siginfo_t ended = {0};
    for (int waits = 0; waits < 3000 && !ended.si_pid; waits++) {
        pause_ms(10);
        assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    if (!ended.si_pid) kill(pid, SIGKILL);
    return finish(pid);
}

static void interrupts_end_it(void **state)
{
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        pid_t pid = start_endless("32 64 0x1x1");
        wait_for("out", "\n32\n");
        kill(pid, signals[i]);
        assert_int_equal(finish_soon(pid), 130);
        assert_string_equal(err, "jitgemm-swgpu: interrupted: 2 of 3 products are left\n");
        assert_has(out, "\n32\n");
        assert_has(out, "\ncounted 1, found 0, failed 0\n");
    }
    pid_t pid = start_endless("--json 96 64 32");
    wait_for("err", "96: FOUND: trap: ");
    kill(pid, SIGINT);
    assert_int_equal(finish_soon(pid), 130);
    assert_has(err, "jitgemm-swgpu: interrupted: 2 of 3 products are left\n");
    cJSON *root = cJSON_Parse(out);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "interrupted")));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "products")), 1);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "found")) == 1);
    cJSON_Delete(root);
}

/* Reads what the tool writes on a terminal until `part` is in it, or until the end, or for 30 s. */
static void read_terminal(int terminal, char *text, size_t *length, const char *part)
{
    while (*length + 1 < TEXT_MAX && !(part && strstr(text, part))) {
        if (poll(&(struct pollfd){.fd = terminal, .events = POLLIN}, 1, 30000) != 1) return;
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
    snprintf(options, sizeof options, "--csv 32 64 0x1x1 >%s 2>&1", ptsname(terminal));
    int slave = open(ptsname(terminal), O_RDWR | O_NOCTTY); /* keeps the terminal while nobody else has it open */
    pid_t pid = start_endless(options);
    read_terminal(terminal, shown, &length, "1/3");
    kill(pid, SIGINT);
    read_terminal(terminal, shown, &length, "interrupted: 2 of 3 products are left\r\n");
    assert_int_equal(finish_soon(pid), 130);
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
    int full = fcntl(ends[1], F_GETPIPE_SZ) - 256; /* a line has less, and is written whole */
    assert_int_equal(run("for i in $(seq 1000); do echo 0x${i}x1; done >many"), 0);
    snprintf(line, sizeof line, "exec \"$T\" --csv --list many >&%d %d<&-", ends[1], ends[0]);
    pid_t pid = start(line);
    for (int waits = 0; waits < 200 && (waiting < full || waiting != before); waits++) {
        before = waiting;
        pause_ms(100);
        assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
    }
    kill(pid, SIGINT);
    pause_ms(300);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGINT);
    assert_int_equal(finish_soon(pid), 1000 + SIGINT);
    close(ends[0]);
    close(ends[1]);
}

/* ---- group ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_are_told),
        cmocka_unit_test(operands_are_filled),
        cmocka_unit_test(checks_can_be_chosen),
        cmocka_unit_test(leaks_are_found),
        cmocka_unit_test(faults_of_calls),
        cmocka_unit_test(times_are_medians),
        cmocka_unit_test(interrupts_end_it),
        cmocka_unit_test(terminal_is_left_clean),
        cmocka_unit_test(second_interrupt_ends_it_at_once),
    };
    return cmocka_run_group_tests_name("jitgemm-swgpu, runs", tests, make_home, remove_home);
}
