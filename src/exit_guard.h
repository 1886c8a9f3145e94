/* NVRTC may not be running when the process leaves through exit(): its destructors would pull the ground from under it, and
 * the process would crash. So exit() waits for compiles under way, which are told to end.
 *
 * Not where the process ends otherwise (_exit, a signal), and not in a child of fork(), where the compiling thread is missing. */
#ifndef JG_EXIT_GUARD_H
#define JG_EXIT_GUARD_H

/* To be called after NVRTC was opened, so that the guard's exit handler runs before NVRTC's own. Once is enough. */
void exit_guard_arm(void);

/* Around each use of NVRTC. enter returns 0, and nothing may be begun, if the process is leaving. Thread-safe. */
int exit_guard_enter(void);
void exit_guard_leave(void);

/* Nonzero once exit() was called. */
int exit_guard_is_leaving(void);

#endif
