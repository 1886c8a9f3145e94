/* src/helper_process.c and tools/jitgemm-compile.c, the true helper: what it keeps of its host, when it ends, what it says to people, and
 * that it makes the same code as a thread. */
#include "helper_process.h"

#include "compile.h"
#include "helper.h"
#include "helper_fixture.h"
#include "helper_wire.h"
#include "nvrtc_api.h"
#include "status.h"
#include "text.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

static void read_greeting(const helper_process *p)
{
    wire_greeting got, own;
    wire_greet(&own);
    assert_int_equal(recv(p->channel, &got, sizeof got, MSG_WAITALL), sizeof got);
    assert_memory_equal(&got, &own, sizeof own);
}

/* A helper that has done to itself what it does, and waits for a request. */
static helper_process start(void)
{
    helper_process p;
    assert_int_equal(helper_process_start(true_helper_path(), environ, &p), 0);
    read_greeting(&p);
    return p;
}

static void assert_ended(int pid, int code)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

/* For the helpers that have ended by themselves. */
static void let_go(helper_process *p)
{
    if (p->pidfd >= 0) close(p->pidfd);
    close(p->channel);
}

/* --- what it keeps --- */

static void no_descriptor_of_the_host_stays_open(void **state)
{
    (void)state;
    int ends[2];
    char folder[64];
    assert_int_equal(pipe(ends), 0); /* without O_CLOEXEC */
    assert_int_equal(dup2(ends[1], 700), 700);
    for (int fd = 300; fd < 600; fd++) assert_int_equal(dup2(ends[1], fd), fd);
    const int before = open_descriptors();
    helper_process p = start();
    snprintf(folder, sizeof folder, "/proc/%d/fd", p.pid);
    assert_int_equal(count_entries(folder), 5); /* 0, 1, 2, and the two names of every folder */
    /* So whoever reads the pipe sees its end. */
    close(ends[1]);
    close(700);
    for (int fd = 300; fd < 600; fd++) close(fd);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0);
    helper_process_end(&p);
    close(ends[0]);
    assert_int_equal(open_descriptors(), before - 303);
    assert_no_children();
}

static void *start_and_look(void *argument)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    helper_process p = start();
    snprintf(argument, 16384, "%s", process_text(p.pid, "status"));
    helper_process_end(&p);
    return NULL;
}

/* Nothing is blocked, and only what is sent to all of a terminal or service is ignored, whatever the host does. */
static void signals_are_its_own(void **state)
{
    (void)state;
    static char status[16384];
    static const int to_all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    const uint64_t of_the_c_library = UINT64_C(3) << 31; /* 32 and 33: glibc's posix_spawn leaves them ignored */
    pthread_t thread;
    uint64_t expected = 0;
    for (int i = 0; i < 4; i++) expected |= UINT64_C(1) << (to_all[i] - 1);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    const struct sigaction before = child_action();
    assert_int_equal(pthread_create(&thread, NULL, start_and_look, status), 0);
    pthread_join(thread, NULL);
    assert_int_equal(status_mask(status, "SigBlk"), 0);
    assert_int_equal(status_mask(status, "SigIgn") & ~of_the_c_library, expected);
    if (!SANITIZED) assert_int_equal(status_mask(status, "SigCgt"), 0);
    const struct sigaction after = child_action();
    assert_true(after.sa_handler == before.sa_handler && after.sa_flags == before.sa_flags);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
}

static void signals_to_all_do_not_end_it(void **state)
{
    (void)state;
    helper_process p = start();
    const int to_all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (int i = 0; i < 4; i++) assert_int_equal(kill(p.pid, to_all[i]), 0);
    nap_ms(20);
    char letter, name[32];
    int parent;
    assert_true(process_stat(p.pid, &letter, &parent, name));
    assert_int_not_equal(letter, 'Z');
    assert_string_equal(name, "jitgemm-compile");
    const helper_exit e = helper_process_end(&p);
    assert_int_equal(e.signal, SIGKILL);
}

/* If memory runs out it goes first, and a crash leaves no file. */
static void it_does_no_harm_when_it_goes(void **state)
{
    (void)state;
    helper_process p = start();
    assert_int_equal(atoi(process_text(p.pid, "oom_score_adj")), 1000);
    unsigned long soft = 99, hard = 99;
    const char *line = strstr(process_text(p.pid, "limits"), "Max core file size");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "Max core file size %lu %lu", &soft, &hard), 2);
    assert_true(soft <= 1 && hard <= 1);
    helper_process_end(&p);
}

/* --- when it ends --- */

static void it_ends_with_its_channel(void **state)
{
    (void)state;
    helper_process p = start();
    shutdown(p.channel, SHUT_RDWR);
    assert_ended(p.pid, 4);
    let_go(&p);
    assert_no_children();
}

static void nonsense_ends_it(void **state)
{
    (void)state;
    const wire_request good = {.magic = WIRE_REQUEST_MAGIC, .arch = 87, .nvrtc_path_bytes = 1, .name_bytes = 3, .source_bytes = 1};
    wire_request bad = good;
    bad.magic[0]++;
    helper_process p = start();
    assert_int_equal(send(p.channel, &bad, sizeof bad, 0), sizeof bad);
    assert_ended(p.pid, 3);
    let_go(&p);
    p = start();
    assert_int_equal(send(p.channel, &good, sizeof good, 0), sizeof good);
    assert_int_equal(send(p.channel, "\0abc\0", 5, 0), 5); /* the name has no end where it should */
    assert_ended(p.pid, 3);
    let_go(&p);
}

static void a_stopped_one_can_be_ended(void **state)
{
    (void)state;
    helper_process p = start();
    assert_int_equal(kill(p.pid, SIGSTOP), 0);
    assert_int_equal(helper_process_end(&p).signal, SIGKILL);
    assert_no_children();
}

/* A host in a process of its own, which says its helper's number. With `heir`, a child that it forked has the channel open as well, as
 * happens in programs that fork without exec. */
typedef struct host {
    int pipe[2];
    int heir;
} host;

static void be_a_host(const host *h)
{
    helper_process p;
    wire_greeting greeting;
    close(h->pipe[0]);
    if (helper_process_start(true_helper_path(), environ, &p) != 0) _exit(1);
    if (recv(p.channel, &greeting, sizeof greeting, MSG_WAITALL) != sizeof greeting) _exit(2);
    if (h->heir && fork() == 0) {
        close(h->pipe[1]);
        nap_ms(3000);
        _exit(0);
    }
    if (write(h->pipe[1], &p.pid, sizeof p.pid) != sizeof p.pid) _exit(3);
    for (;;) pause();
}

/* As in the sandbox of an older service: a call that is not on the list fails with EPERM, and pidfd_send_signal is none. */
static int deny_signals_by_descriptor(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Exit status 0: it was ended; a hang ends by SIGALRM. */
static void a_filter_of_calls_does_not_keep_it_alive(void **state)
{
    (void)state;
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        helper_process p;
        alarm(30);
        if (!deny_signals_by_descriptor()) _exit(77);
        if (helper_process_start(true_helper_path(), environ, &p) != 0) _exit(1);
        const helper_exit e = helper_process_end(&p);
        _exit(!(e.known && e.signal == SIGKILL));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("SKIP no filter of system calls can be set here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void it_ends_with_a_host_that_is_killed(void **state)
{
    (void)state;
    for (int heir = 0; heir < 2; heir++) {
        host h = {.heir = heir};
        int helper_pid = 0, status;
        assert_int_equal(pipe(h.pipe), 0);
        const pid_t child = fork();
        if (child == 0) be_a_host(&h);
        close(h.pipe[1]);
        assert_int_equal(read(h.pipe[0], &helper_pid, sizeof helper_pid), sizeof helper_pid);
        assert_false(is_gone_within(helper_pid, 5));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        assert_true(is_gone_within(helper_pid, 2000));
        close(h.pipe[0]);
    }
}

/* --- compiling --- */

static const char source[] = "extern \"C\" __global__ void k(float *p) { p[0] = p[1] * p[2] + p[3]; }";
static const kernel_spec tiny = {.family = FAMILY_SIMT, .arch = 80, .form = JG_FORM_GENERIC, .type_a = JG_F32, .type_b = JG_F32,
                                 .fusion = SPEC_FUSION_ARGUMENT, .trans_a = SPEC_ARGUMENT, .trans_b = SPEC_ARGUMENT,
                                 .vec_a = SPEC_ARGUMENT, .vec_b = SPEC_ARGUMENT, .vec_c = SPEC_ARGUMENT, .tile = {32, 32, 16, 4, 4, 2, 1}};

#define NEEDS_NVRTC()                                               \
    do {                                                            \
        nvrtc *lib_;                                                \
        if (nvrtc_open(getenv("JITGEMM_NVRTC"), &lib_) != JG_OK) {  \
            print_message("SKIP no NVRTC: %s\n", jg_last_error());  \
            skip();                                                 \
        }                                                           \
        nvrtc_close(lib_);                                          \
    } while (0)

static image compile_tiny(jg_helper mode, int line_info)
{
    image img;
    journal quiet;
    journal_open(&quiet, &(jg_options){0});
    compiler *c = compiler_create(getenv("JITGEMM_NVRTC"), line_info);
    assert_non_null(c);
    if (mode == JG_HELPER_PROCESS) assert_true(compiler_use_helper(c, mode, true_helper_path(), 60e3, &quiet));
    if (compile_on_thread(c, &tiny, &img) != JG_OK) {
        print_error("%s\n", jg_last_error());
        fail();
    }
    assert_int_equal(compiler_helpers_lost(c), 0);
    compiler_destroy(c);
    journal_destroy(&quiet);
    return img;
}

static void it_makes_the_same_code_as_a_thread(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    for (int line_info = 0; line_info < 2; line_info++) {
        image thread = compile_tiny(JG_HELPER_THREAD, line_info), process = compile_tiny(JG_HELPER_PROCESS, line_info);
        assert_int_equal(thread.cubin_bytes, process.cubin_bytes);
        assert_memory_equal(thread.cubin, process.cubin, thread.cubin_bytes);
        assert_string_equal(thread.ptx, process.ptx);
        assert_int_equal(thread.ptx_bytes, process.ptx_bytes);
        assert_string_equal(thread.provenance, process.provenance);
        assert_int_equal(strstr(process.provenance, "line-info") != NULL, line_info);
        image_free(&thread);
        image_free(&process);
    }
    assert_no_children();
}

static jg_status ask(const char *nvrtc_path, const char *text, int arch)
{
    static atomic_int never;
    char why[256];
    image img;
    jg_status status = JG_OK;
    helper *h = helper_create(true_helper_path(), 60e3);
    const helper_job job = {nvrtc_path, "k", text, arch, 0};
    const helper_outcome outcome = helper_compile(h, &job, &never, &status, &img, why, sizeof why);
    helper_destroy(h);
    assert_int_equal(outcome, HELPER_ANSWERED);
    image_free(&img);
    return status;
}

static void what_nvrtc_says_comes_back(void **state)
{
    (void)state;
    assert_int_equal(ask("/nonexistent/libnvrtc.so", source, 80), JG_ERR_NO_NVRTC);
    assert_says(jg_last_error(), "/nonexistent/libnvrtc.so");
    NEEDS_NVRTC();
    const char *path = getenv("JITGEMM_NVRTC");
    assert_int_equal(ask(path, "extern \"C\" __global__ void k() { not_declared = 1; }", 80), JG_ERR_COMPILE);
    assert_says(jg_last_error(), "not_declared");
    assert_int_equal(ask(path, source, 20), JG_ERR_ARCH);
    assert_says(jg_last_error(), "it knows sm_");
    assert_no_children();
}

/* A kernel of 20,000 statements, which takes seconds to compile. */
static const char *long_source(void)
{
    static char text[2 << 20];
    size_t length = 0;
    text_append(text, sizeof text, &length, "extern \"C\" __global__ void k(float *p) { float x = 0;\n");
    for (int i = 0; i < 20000; i++) text_append(text, sizeof text, &length, "x = x * p[%d] + p[%d];\n", i * 7, i * 3);
    text_append(text, sizeof text, &length, "p[0] = x; }");
    assert_true(length < sizeof text);
    return text;
}

static void its_channel_ends_a_compile(void **state)
{
    (void)state;
    NEEDS_NVRTC();
    const char *text = long_source(), *path = getenv("JITGEMM_NVRTC");
    if (!path) path = "";
    const wire_request request = {.magic = WIRE_REQUEST_MAGIC, .arch = 87, .nvrtc_path_bytes = (uint32_t)strlen(path) + 1, .name_bytes = 2,
                                  .source_bytes = (uint32_t)strlen(text) + 1};
    helper_process p = start();
    assert_int_equal(send(p.channel, &request, sizeof request, 0), sizeof request);
    assert_int_equal(send(p.channel, path, request.nvrtc_path_bytes, 0), request.nvrtc_path_bytes);
    assert_int_equal(send(p.channel, "k", 2, 0), 2);
    assert_int_equal(send(p.channel, text, request.source_bytes, 0), request.source_bytes);
    nap_ms(100);
    assert_false(is_gone_within(p.pid, 5));
    shutdown(p.channel, SHUT_RDWR);
    assert_ended(p.pid, 4);
    let_go(&p);
}

/* --- by hand --- */

static int by_hand(const char *arguments, char said[4096])
{
    char command[2048];
    snprintf(command, sizeof command, "%s %s 2>&1", true_helper_path(), arguments);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    said[fread(said, 1, 4095, out)] = 0;
    return WEXITSTATUS(pclose(out));
}

static void people_are_told_what_it_is(void **state)
{
    (void)state;
    char said[4096];
    assert_int_equal(by_hand("--help", said), 0);
    assert_says(said, "JITGEMM_HELPER");
    assert_int_equal(by_hand("--version", said), 0);
    assert_string_equal(said, "jitgemm-compile " JG_VERSION_STRING "\n");
    static const char *const others[] = {"</dev/null", "kernel.cu </dev/null", "--help >/dev/full"};
    static const int statuses[] = {2, 2, 1};
    for (int i = 0; i < 3; i++) assert_int_equal(by_hand(others[i], said), statuses[i]);
    by_hand("</dev/null", said);
    assert_says(said, "which the library starts; see --help");
    by_hand("kernel.cu", said);
    assert_says(said, "unknown argument kernel.cu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_descriptor_of_the_host_stays_open),
        cmocka_unit_test(signals_are_its_own),
        cmocka_unit_test(signals_to_all_do_not_end_it),
        cmocka_unit_test(it_does_no_harm_when_it_goes),
        cmocka_unit_test(it_ends_with_its_channel),
        cmocka_unit_test(nonsense_ends_it),
        cmocka_unit_test(a_stopped_one_can_be_ended),
        cmocka_unit_test(a_filter_of_calls_does_not_keep_it_alive),
        cmocka_unit_test(it_ends_with_a_host_that_is_killed),
        cmocka_unit_test(it_makes_the_same_code_as_a_thread),
        cmocka_unit_test(what_nvrtc_says_comes_back),
        cmocka_unit_test(its_channel_ends_a_compile),
        cmocka_unit_test(people_are_told_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
