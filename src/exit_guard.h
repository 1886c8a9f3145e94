/* NVRTC may not be running when the process leaves through exit(): its destructors would pull the ground from under it, and
 * the process would crash. So exit() waits for compiles under way, which are told to end.
 *
 * exit() calls first what was registered last. NVRTC registers destructors while it is opened, and a few more while it compiles
 * for the first time: so the guard registers itself after each of the two. That exit() does not come in the middle of them, which
 * takes some 40 ms once in a process, is seen to for the threads that have opened a context; from others it may still crash.
 *
 * All this is not for a process that ends otherwise (_exit, a signal), and not for a child of fork(), where the compiling thread
 * is missing. */
#ifndef JG_EXIT_GUARD_H
#define JG_EXIT_GUARD_H

/* If the calling thread calls exit(), it waits for first uses under way. So it does when the thread ends. */
void exit_guard_watch_thread(void);

/* Calls `use`, which opens NVRTC, or compiles with it for the first time, and returns nonzero if it did; then registers the guard.
 * The caller has entered. */
void exit_guard_first_use(int (*use)(void *user), void *user);

/* Around each use of NVRTC. enter returns 0, and nothing may be begun, if the process is leaving. Thread-safe. */
int exit_guard_enter(void);
void exit_guard_leave(void);

/* Nonzero once exit() was called. */
int exit_guard_is_leaving(void);

#endif
