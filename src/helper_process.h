/* A compile helper as a process: started with nothing of its host's but a channel, and ended without a trace.
 *
 * The host's signal handlers, masks and descriptors are not touched. As with any child process the host gets a SIGCHLD when a helper
 * has ended, which by default is ignored. A host that waits for all its children, or ignores SIGCHLD, may take the helper's exit
 * status from us: then only how it ended is unknown. */
#ifndef JG_HELPER_PROCESS_H
#define JG_HELPER_PROCESS_H

#include <stddef.h>

typedef struct helper_process {
    int pid;
    int pidfd;    /* names the process even if its number is given to another one; -1 where the kernel has none */
    int channel;  /* our end of the socket pair; the helper's is its standard input */
} helper_process;

/* Starts a program with this environment (ended by null). Its standard output and error are /dev/null, all signals are at their
 * defaults and none is blocked; processors and priority are the calling thread's. Thread-safe. Returns 0 or an errno. */
int helper_process_start(const char *path, char *const *environment, helper_process *out);

/* How a process ended. */
typedef struct helper_exit {
    int known;    /* 0: somebody else has taken its exit status */
    int signal;   /* that killed it; 0: none */
    int code;     /* exit status, without a signal */
} helper_exit;

/* Kills the process if it still runs, waits for its end and closes the channel. What it had ended of before is what is told. Blocks for
 * moments. */
helper_exit helper_process_end(helper_process *p);

#endif
