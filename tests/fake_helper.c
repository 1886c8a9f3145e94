/* The compile helper of the tests: see fake_helper.h. What it "compiles" is what the fake driver takes for a kernel. */
#include "helper_wire.h"
#include "jitgemm.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char word[32];

/* Takes this process's word out of the list. */
static void choose_word(void)
{
    const char *list = getenv("FAKE_HELPER"), *file = getenv("FAKE_HELPER_STARTS");
    const int fd = file ? open(file, O_WRONLY | O_APPEND) : -1;
    long turn = 0;
    if (fd >= 0 && write(fd, "x", 1) == 1) turn = (long)lseek(fd, 0, SEEK_CUR) - 1;
    close(fd);
    for (list = list ? list : "ok"; turn > 0 && strchr(list, ','); turn--) list = strchr(list, ',') + 1;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(list, ","), list);
}

static int is(const char *wanted)
{
    return strcmp(word, wanted) == 0;
}

static void hang(void)
{
    for (;;) pause();
}

static void nap(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void transmit(const void *data, size_t bytes)
{
    if (write(STDIN_FILENO, data, bytes) != (ssize_t)bytes) _exit(90);
}

static void receive(void *data, size_t bytes)
{
    for (char *at = data; bytes > 0;) {
        const ssize_t got = read(STDIN_FILENO, at, bytes);
        if (got <= 0) _exit(91);
        at += got;
        bytes -= (size_t)got;
    }
}

/* --- answers --- */

static void answer(wire_reply *r, const char *text, const void *cubin, const char *ptx)
{
    memcpy(r->magic, WIRE_REPLY_MAGIC, sizeof r->magic);
    snprintf(r->provenance, sizeof r->provenance, "fake");
    if (!r->text_bytes) r->text_bytes = (uint32_t)strlen(text) + 1;
    r->ptx_bytes = strlen(ptx);
    transmit(r, sizeof *r);
    transmit(text, strlen(text) + 1);
    if (cubin) transmit(cubin, r->cubin_bytes);
    transmit(ptx, r->ptx_bytes);
}

static void refuse(jg_status status, const char *text)
{
    answer(&(wire_reply){.status = status}, text, NULL, "");
}

static void compile(const char *name)
{
    unsigned char code[sizeof(Elf64_Ehdr) + 1 + 256] = {0};
    char ptx[512];
    const size_t length = strnlen(name, 255);
    wire_reply r = {.status = JG_OK, .cubin_bytes = sizeof(Elf64_Ehdr) + 1 + length + 1};
    Elf64_Ehdr header = {.e_shoff = r.cubin_bytes};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    memcpy(code, &header, sizeof header);
    memcpy(code + sizeof header + 1, name, length);
    snprintf(ptx, sizeof ptx, ".version 7.4\n.target sm_87\n.visible .entry %.255s()\n", name);
    answer(&r, "", code, ptx);
}

/* What this process got from its host: open files, signals, priority, and one variable. SigQ is left out: it counts what is queued for
 * all processes of the user. */
static void tell_state(void)
{
    static char text[8192];
    char line[512];
    int length = 0;
    struct stat info;
    for (int fd = 0; fd < 1024; fd++)
        if (fstat(fd, &info) == 0) length += snprintf(text + length, sizeof text - (size_t)length, "fd %d\n", fd);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "Sig", 3) == 0 && line[3] != 'Q') length += snprintf(text + length, sizeof text - (size_t)length, "%s", line);
    const char *mark = getenv("FAKE_HELPER_MARK");
    snprintf(text + length, sizeof text - (size_t)length, "nice %d\nmark %s\n", getpriority(PRIO_PROCESS, 0), mark ? mark : "");
    answer(&(wire_reply){.status = JG_OK}, "", NULL, text);
}

static void greet(void)
{
    wire_greeting greeting;
    wire_greet(&greeting);
    if (is("early")) raise(SIGKILL);
    if (is("quits")) _exit(7);
    if (is("late")) hang();
    if (is("stranger")) memset(&greeting, 'x', sizeof greeting);
    if (is("other")) snprintf(greeting.build, sizeof greeting.build, "9.9.9 build 1");
    transmit(&greeting, sizeof greeting);
    if (is("deaf")) hang();
    if (is("leaves")) nap(50), _exit(8);
}

int main(void)
{
    static char path[WIRE_MAX_TEXT_BYTES], name[WIRE_MAX_TEXT_BYTES], source[WIRE_MAX_SOURCE_BYTES];
    wire_request request;
    choose_word();
    greet();
    receive(&request, sizeof request);
    if (!wire_is_request(&request)) _exit(92);
    receive(path, request.nvrtc_path_bytes);
    receive(name, request.name_bytes);
    receive(source, request.source_bytes);
    if (is("crash")) raise(SIGABRT);
    else if (is("exits")) _exit(3);
    else if (is("hang")) hang();
    else if (is("closes")) close(STDIN_FILENO), hang();
    else if (is("cut")) transmit(&(wire_reply){.status = JG_OK}, sizeof(wire_reply) / 2);
    else if (is("junk")) transmit(&(wire_reply){.status = JG_OK}, sizeof(wire_reply));
    else if (is("huge")) answer(&(wire_reply){.status = JG_OK, .cubin_bytes = WIRE_MAX_IMAGE_BYTES + 1ull}, "", NULL, "");
    else if (is("short")) answer(&(wire_reply){.status = JG_OK, .cubin_bytes = 1000}, "", NULL, "");
    else if (is("endless")) answer(&(wire_reply){.status = JG_ERR_COMPILE, .text_bytes = 3}, "abc", NULL, "");
    else if (is("wrong")) refuse(JG_ERR_CANCELLED, "not for a helper to say");
    else if (is("refuse")) refuse(JG_ERR_COMPILE, "fake refusal");
    else if (is("no_nvrtc")) refuse(JG_ERR_NO_NVRTC, "fake: no NVRTC");
    else if (is("state")) tell_state();
    else if (is("asked")) refuse(JG_ERR_ARCH, path[0] ? path : source);
    else if (is("slow")) nap(200), compile(name);
    else compile(name);
    return 0;
}
