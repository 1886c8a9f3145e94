/* Runs a process and reads it to its end: see bench_child.h.
 *
 * Both its outputs are read as they come, as a full pipe would stop it. Its end, not theirs, counts: a process that it left
 * behind may hold them open. */
#include "bench_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST_BYTES ((size_t)64 << 20) /* of an output; more is no result */
#define LOOK_MS 100                      /* how often we look whether to end; rare enough not to disturb what is measured */
#define CLEAN_UP_NS 10000000000          /* what a process that is asked to end may take */

/* What a process wrote so far. */
typedef struct text {
    char *bytes;
    size_t length, capacity;
    int file; /* our end of the pipe; -1 after its end */
} text;

typedef struct child {
    bench_run *run;
    pid_t pid;
    text output, errors;
    int ended, wait_status;
    int failed;         /* no memory, or too much output */
    int64_t asked_ns;   /* when it was asked to end; 0: it was not */
} child;

/* ---- start ---- */

/* In the new process. Only calls that are safe beside other threads' locks. */
static void become(const char *program, char *const *argv, int output, int errors, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none); /* we block SIGINT, and a process shall end with it */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const int nothing = open("/dev/null", O_RDONLY);
    if (getppid() == parent && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(errors, STDERR_FILENO) >= 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0)
        execv(program ? program : "/proc/self/exe", argv);
    _exit(127);
}

static int start(child *c, const char *program, char *const *argv)
{
    int output[2], errors[2];
    if (pipe2(output, O_CLOEXEC) != 0) return bench_fail(c->run, "a pipe: %s", strerror(errno));
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close(output[0]);
        close(output[1]);
        return bench_fail(c->run, "a pipe: %s", strerror(errno));
    }
    const pid_t parent = getpid();
    c->pid = fork();
    if (c->pid == 0) become(program, argv, output[1], errors[1], parent);
    const int reason = errno;
    close(output[1]);
    close(errors[1]);
    c->output.file = output[0];
    c->errors.file = errors[0];
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    fcntl(errors[0], F_SETFL, O_NONBLOCK);
    if (c->pid < 0) return bench_fail(c->run, "a process cannot be started: %s", strerror(reason));
    setpgid(c->pid, c->pid); /* whichever of the two is first */
    return BENCH_EXIT_DONE;
}

/* ---- reading ---- */

static void close_text(text *t)
{
    if (t->file >= 0) close(t->file);
    t->file = -1;
}

/* Takes what is there now. Returns -1 if there is no room for it. */
static int read_some(text *t)
{
    while (t->file >= 0) {
        if (t->capacity - t->length < 2) {
            const size_t capacity = t->capacity ? 2 * t->capacity : 65536;
            char *grown = capacity <= LONGEST_BYTES ? realloc(t->bytes, capacity) : NULL;
            if (!grown) return -1;
            t->bytes = grown;
            t->capacity = capacity;
            t->bytes[t->length] = 0; /* there may be nothing to read yet */
        }
        const ssize_t got = read(t->file, t->bytes + t->length, t->capacity - t->length - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) close_text(t);
        else t->length += (size_t)got;
        t->bytes[t->length] = 0;
    }
    return 0;
}

/* Shows whole lines, and forgets them; at the end also what is left without a line's end. */
static void pass_on(child *c, int all)
{
    text *t = &c->errors;
    char *line = t->bytes;
    if (!line) return;
    for (char *end; (end = strchr(line, '\n')); line = end + 1)
        progress_message(&c->run->progress, "%.*s", (int)(end - line), line);
    if (all && *line) {
        progress_message(&c->run->progress, "%s", line);
        line += strlen(line);
    }
    t->length = strlen(line); /* a byte of 0, and what is behind it, is no message */
    memmove(t->bytes, line, t->length + 1);
}

static void read_both(child *c)
{
    if (read_some(&c->output) != 0 || read_some(&c->errors) != 0) c->failed = 1;
    pass_on(c, 0);
}

/* ---- end ---- */

/* Asks the process to end if we are to, or if nothing can come of it; makes it end if it does not. */
static void end_in_time(child *c)
{
    if (!c->failed && !bench_stop_requested()) return;
    const int64_t now_ns = bench_now_ns();
    if (c->asked_ns && now_ns - c->asked_ns < CLEAN_UP_NS) return;
    kill(-c->pid, c->asked_ns ? SIGKILL : SIGTERM);
    c->asked_ns = now_ns;
}

/* Waits for output, and until the process has ended. */
static void follow(child *c)
{
    while (!c->ended) {
        struct pollfd files[] = {{.fd = c->failed ? -1 : c->output.file, .events = POLLIN}, /* below 0: poll leaves it out */
                                 {.fd = c->failed ? -1 : c->errors.file, .events = POLLIN}};
        poll(files, 2, files[0].fd < 0 && files[1].fd < 0 ? 1 : LOOK_MS);
        const pid_t got = waitpid(c->pid, &c->wait_status, WNOHANG);
        c->ended = got == c->pid || (got < 0 && errno != EINTR);
        if (!c->failed) read_both(c);
        if (!c->ended) end_in_time(c);
    }
}

int bench_child_run(bench_run *run, const char *program, char *const *argv, char **output, int *wait_status)
{
    child c = {.run = run, .output = {.file = -1}, .errors = {.file = -1}};
    *output = NULL;
    int status = start(&c, program, argv);
    if (status == BENCH_EXIT_DONE) {
        follow(&c);
        pass_on(&c, 1);
        if (bench_stop_requested()) status = BENCH_EXIT_INTERRUPTED;
        else if (c.failed) status = bench_fail(run, "a process wrote more than can be held");
    }
    close_text(&c.output);
    close_text(&c.errors);
    free(c.errors.bytes);
    if (status == BENCH_EXIT_DONE) *output = c.output.bytes;
    else free(c.output.bytes);
    *wait_status = c.wait_status;
    return status;
}
