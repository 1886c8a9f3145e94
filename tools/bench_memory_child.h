/* One process of jitgemm-bench memory: what it is told on its command line, and what it tells on its standard output. */
#ifndef JG_TOOLS_BENCH_MEMORY_CHILD_H
#define JG_TOOLS_BENCH_MEMORY_CHILD_H

/* Arguments: MEMORY_COMMAND MODE DRIVER NVRTC HELPER COMPILES, MEMORY_NONE for a path that was not given. */
#define MEMORY_COMMAND "memory-child"
#define MEMORY_NONE "-"
#define MEMORY_THREAD "thread"
#define MEMORY_HELPER "helper"

/* When it looks at itself. */
enum { MEMORY_BEFORE, MEMORY_OPEN, MEMORY_FIRST, MEMORY_ALL, MEMORY_CLOSED, MEMORY_MOMENTS };

/* The process' main function: opens a context, compiles kernels one after the other, closes it, and writes one object of
 * "memory" (bench_result.h) but for "command". Returns its exit status: 0, also if nothing could be compiled in a helper, which
 * the object then says; or 1 after a message on standard error. */
int memory_child_main(int argc, char **argv);

#endif
