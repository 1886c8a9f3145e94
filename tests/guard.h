/* A watch over the calling threads: while a thread is inside guard_enter ... guard_leave, every file-system call, every dlopen and
 * every call of NVRTC that it makes is refused and noted.
 *
 * The program's own open, read, stat ... stand before the C library's for all libraries of the process, SQLite among them.
 * NVRTC is watched by tests/guard_nvrtc.c, a library that passes calls on to the real one. */
#ifndef JG_TESTS_GUARD_H
#define JG_TESTS_GUARD_H

/* From now on this thread may touch no file and no compiler. */
void guard_enter(void);
void guard_leave(void);

/* While set, NVRTC may be called on no thread at all. */
void guard_seal(int sealed);

/* How many calls were refused, and the name of the first; calls that pass since the start, to see that the watch works. */
int guard_refused(const char **first);
long guard_passed(void);

/* For the watchers: 1 if the call must be refused, which is then noted. is_nvrtc: the call is one of NVRTC's. */
int guard_refuses(const char *name, int is_nvrtc);

#endif
