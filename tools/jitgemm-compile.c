/* jitgemm-compile: one kernel's source in, its code out, by NVRTC, in a process of its own.
 *
 * The library starts it (src/helper.c), with a socket as standard input and nothing else of the host's; helper_wire.h has what is
 * said there. The main thread watches for the host's end, a second one with a large stack compiles. Once the answer is sent, the host
 * kills it. Exit status: 2 if it was not started by the library, 3 if it was asked nonsense, 4 if the host is gone, 5 if the
 * machine has no memory or thread for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper_wire.h"
#include "jitgemm.h"
#include "nvrtc_api.h"

enum { EXIT_USAGE = 2, EXIT_NONSENSE = 3, EXIT_ALONE = 4, EXIT_NO_ROOM = 5 };

#define CHANNEL STDIN_FILENO
#define STACK_BYTES ((size_t)8 << 20)

/* --- by hand --- */

static const char usage[] =
    "jitgemm-compile: the compile helper of jitgemm. The library starts it; there is nothing to do with it by hand.\n"
    "\n"
    "  --help      this text\n"
    "  --version   the version\n"
    "\n"
    "JITGEMM_HELPER names another one, or none if it is empty; so do jg_options.helper and helper_path (jitgemm.h).\n";

/* The exit status if there is nothing to compile, else -1. */
static int answer_by_hand(int count, char **arguments)
{
    struct stat info;
    if (count > 1 && strcmp(arguments[1], "--help") == 0) return fputs(usage, stdout) < 0 || fflush(stdout) != 0;
    if (count > 1 && strcmp(arguments[1], "--version") == 0)
        return printf("jitgemm-compile %s\n", JG_VERSION_STRING) < 0 || fflush(stdout) != 0;
    if (count > 1) {
        fprintf(stderr, "jitgemm-compile: unknown argument %s; see --help\n", arguments[1]);
        return EXIT_USAGE;
    }
    if (fstat(CHANNEL, &info) == 0 && S_ISSOCK(info.st_mode)) return -1;
    fputs("jitgemm-compile: this is the compile helper of jitgemm, which the library starts; see --help\n", stderr);
    return EXIT_USAGE;
}

/* --- what it does to itself --- */

/* What the host has open without O_CLOEXEC: a pipe that stays open here would never end for whoever reads it. Not by close_range, for
 * which the filters of older services (systemd 245, of JetPack 5) kill a process. */
static void close_the_hosts_files(void)
{
    DIR *entries = opendir("/proc/self/fd");
    if (!entries) {
        for (int fd = STDERR_FILENO + 1; fd < 65536; fd++) close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));) {
        const int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != dirfd(entries)) close(fd);
    }
    closedir(entries);
}

/* If memory runs out, this process goes, not the pipeline. Raising one's own is always allowed. */
static void be_the_first_to_go(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "1000", 4) < 0) {} /* then the system decides */
    close(fd);
}

/* A crash is the host's to tell of. A limit of 1 also keeps programs that collect cores away, which 0 does not (core(5)). */
static void leave_no_core(void)
{
    struct rlimit none = {1, 1};
    if (setrlimit(RLIMIT_CORE, &none) == 0) return;
    none.rlim_cur = none.rlim_max = 0;
    setrlimit(RLIMIT_CORE, &none);
}

/* Signals that are sent to all of a terminal or of a service are for the host, which may want to finish what is under way. The kernel
 * sends SIGKILL when the host's thread is gone. */
static void follow_the_host(void)
{
    static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) signal(ignored[i], SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* --- the channel --- */

static void receive(void *data, size_t bytes)
{
    for (char *at = data; bytes > 0;) {
        const ssize_t got = read(CHANNEL, at, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) _exit(EXIT_ALONE);
        at += got;
        bytes -= (size_t)got;
    }
}

static void transmit(const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t put = write(CHANNEL, at, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) _exit(EXIT_ALONE);
        at += put;
        bytes -= (size_t)put;
    }
}

static char *receive_text(uint32_t bytes)
{
    char *text = malloc(bytes);
    if (!text) _exit(EXIT_NO_ROOM);
    receive(text, bytes);
    if (!wire_is_text(text, bytes)) _exit(EXIT_NONSENSE);
    return text;
}

/* --- compiling --- */

typedef struct job {
    wire_request request;
    char *nvrtc_path, *name, *source;
} job;

static void receive_job(job *j)
{
    receive(&j->request, sizeof j->request);
    if (!wire_is_request(&j->request)) _exit(EXIT_NONSENSE);
    j->nvrtc_path = receive_text(j->request.nvrtc_path_bytes);
    j->name = receive_text(j->request.name_bytes);
    j->source = receive_text(j->request.source_bytes);
}

static jg_status compile(const job *j, image *out)
{
    nvrtc *lib;
    jg_status status = nvrtc_open(*j->nvrtc_path ? j->nvrtc_path : NULL, &lib);
    if (status != JG_OK) return status;
    nvrtc_never_exits(lib);
    return nvrtc_compile(lib, j->source, j->name, j->request.arch, j->request.line_info, out);
}

/* The process ends as soon as this has answered, without the exit handlers of NVRTC. */
static void *compile_and_answer(void *argument)
{
    image img = {0};
    wire_reply reply = {.status = compile(argument, &img)};
    const char *text = reply.status == JG_OK ? "" : jg_last_error();
    memcpy(reply.magic, WIRE_REPLY_MAGIC, sizeof reply.magic);
    memcpy(reply.provenance, img.provenance, sizeof reply.provenance);
    reply.text_bytes = (uint32_t)strlen(text) + 1;
    reply.cubin_bytes = img.cubin_bytes;
    reply.ptx_bytes = img.ptx_bytes;
    transmit(&reply, sizeof reply);
    transmit(text, reply.text_bytes);
    transmit(img.cubin, img.cubin_bytes);
    transmit(img.ptx, img.ptx_bytes);
    _exit(EXIT_SUCCESS);
}

static void wait_for_the_hosts_end(void)
{
    struct pollfd channel = {.fd = CHANNEL, .events = POLLIN | POLLRDHUP};
    while (poll(&channel, 1, -1) < 0 && errno == EINTR) {}
}

int main(int count, char **arguments)
{
    static job j;
    pthread_attr_t attributes;
    pthread_t thread;
    wire_greeting greeting;
    const int status = answer_by_hand(count, arguments);
    if (status >= 0) return status;
    close_the_hosts_files();
    follow_the_host();
    be_the_first_to_go();
    leave_no_core();
    wire_greet(&greeting);
    transmit(&greeting, sizeof greeting);
    receive_job(&j);
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0) _exit(EXIT_NO_ROOM);
    if (pthread_create(&thread, &attributes, compile_and_answer, &j) != 0) _exit(EXIT_NO_ROOM);
    wait_for_the_hosts_end();
    _exit(EXIT_ALONE);
}
