/* Starting and ending a compile helper. See helper_process.h. */
#include "helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Not in the headers of older systems. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#define WAIT_FOR_PIDFD ((idtype_t)3)

/* Output goes to /dev/null, so that a library which prints cannot spoil the channel. */
static int describe_files(posix_spawn_file_actions_t *files, int channel)
{
    int error = posix_spawn_file_actions_adddup2(files, channel, STDIN_FILENO);
    if (!error) error = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    return error ? error : posix_spawn_file_actions_adddup2(files, STDOUT_FILENO, STDERR_FILENO);
}

static int describe_signals(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawnattr_setsigdefault(attributes, &all);
    if (!error) error = posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

static int spawn(const char *path, char *const *environment, int channel, pid_t *pid)
{
    char name[] = "jitgemm-compile";
    char *const arguments[] = {name, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&files);
    if (error) return error;
    if (!(error = posix_spawnattr_init(&attributes))) {
        error = describe_files(&files, channel);
        if (!error) error = describe_signals(&attributes);
        if (!error) error = posix_spawn(pid, path, &files, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Both ends close on exec: another thread may be starting a process just now, and would take them along. */
int helper_process_start(const char *path, char *const *environment, helper_process *out)
{
    int ends[2];
    pid_t pid;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno;
    const int error = spawn(path, environment, ends[1], &pid);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return error;
    }
    *out = (helper_process){.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), .channel = ends[0]};
    return 0;
}

/* By number only where there is no other way: the kernel has no pidfd, or a filter of system calls does not let us use it. */
static void kill_it(const helper_process *p)
{
    if (p->pidfd >= 0 && (syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0) == 0 || errno == ESRCH)) return;
    kill(p->pid, SIGKILL);
}

/* By pidfd first: if the host has taken the exit status, the number may be that of another child of its own by now. */
static int wait_for_it(const helper_process *p, siginfo_t *info)
{
    int result = -1;
    errno = EINVAL;
    if (p->pidfd >= 0)
        while ((result = waitid(WAIT_FOR_PIDFD, (id_t)p->pidfd, info, WEXITED)) != 0 && errno == EINTR) {}
    if (result != 0 && errno == EINVAL) /* a kernel that cannot */
        while ((result = waitid(P_PID, (id_t)p->pid, info, WEXITED)) != 0 && errno == EINTR) {}
    return result == 0;
}

helper_exit helper_process_end(helper_process *p)
{
    siginfo_t info = {0};
    helper_exit end = {0};
    kill_it(p);
    if (wait_for_it(p, &info)) {
        end.known = 1;
        if (info.si_code == CLD_EXITED) end.code = info.si_status;
        else end.signal = info.si_status;
    }
    if (p->pidfd >= 0) close(p->pidfd);
    close(p->channel);
    *p = (helper_process){-1, -1, -1};
    return end;
}
