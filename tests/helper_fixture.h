/* Common ground of the tests of compile helpers: what children and descriptors this process has, and how to look into another process. */
#ifndef JG_TESTS_HELPER_FIXTURE_H
#define JG_TESTS_HELPER_FIXTURE_H

#include "fake_helper.h"
#include "scratch.h"

#include "clock.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef assert_says
#define assert_says(text, part)                                                      \
    do {                                                                             \
        if (!strstr(text, part)) {                                                   \
            print_error("\"%s\" does not say \"%s\"\n", text, part);                 \
            fail();                                                                  \
        }                                                                            \
    } while (0)
#endif

/* Sanitizers catch signals. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static inline void nap_ms(double ms)
{
    nanosleep(&(struct timespec){(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000}, NULL);
}

static inline int count_entries(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    while (readdir(entries)) count++;
    closedir(entries);
    return count;
}

static inline int open_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

/* A process's state letter, parent and name; 0 if there is none. */
static inline int process_stat(int pid, char *state, int *parent, char name[32])
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = 0;
    const char *open = strchr(text, '('), *end = strrchr(text, ')');
    if (!open || !end || sscanf(end + 1, " %c %d", state, parent) != 2) return 0;
    snprintf(name, 32, "%.*s", (int)(end - open - 1), open + 1);
    return 1;
}

/* How many children this process has, zombies among them too; *first (may be null): one of them. */
static inline int count_children(int *first)
{
    int count = 0;
    DIR *entries = opendir("/proc");
    assert_non_null(entries);
    for (struct dirent *e; (e = readdir(entries));) {
        char state, name[32];
        int parent, pid = atoi(e->d_name);
        if (pid <= 0 || !process_stat(pid, &state, &parent, name) || parent != (int)getpid()) continue;
        if (first) *first = pid;
        count++;
    }
    closedir(entries);
    return count;
}

static inline void assert_no_children(void)
{
    assert_int_equal(count_children(NULL), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Whether a process is gone, or about to be; waits for that for at most so long. */
static inline int is_gone_within(int pid, double ms)
{
    char state, name[32];
    int parent;
    for (const double end = clock_now_ms() + ms; clock_now_ms() < end; nap_ms(1))
        if (!process_stat(pid, &state, &parent, name) || state == 'Z' || state == 'X') return 1;
    return 0;
}

/* A file of /proc/PID, in a static buffer. */
static inline const char *process_text(int pid, const char *file)
{
    static char text[16384];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = 0;
    fclose(stream);
    return text;
}

/* The value of a line of /proc/PID/status such as "SigBlk", as it stands there; "" if there is none. */
static inline const char *status_value(const char *text, const char *label)
{
    static char value[64];
    const char *at = strstr(text, label);
    value[0] = 0;
    if (at) sscanf(at + strlen(label), ": %63s", value);
    return value;
}

static inline uint64_t status_mask(const char *text, const char *label)
{
    return strtoull(status_value(text, label), NULL, 16);
}

/* All that SIGCHLD is set to, for comparison. */
static inline struct sigaction child_action(void)
{
    struct sigaction action;
    sigaction(SIGCHLD, NULL, &action);
    return action;
}

#endif
