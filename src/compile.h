/* From a kernel_spec to an image, on threads of our own or in helper processes. Knows NVRTC and templates, not the device. */
#ifndef JG_COMPILE_H
#define JG_COMPILE_H

#include "image.h"
#include "journal.h"
#include "kernel.h"

#include <pthread.h>

typedef struct compiler compiler;

/* Does not open NVRTC yet: that happens at the first compile, so a process that finds all in its caches never maps it.
 * `nvrtc_path` (may be null) is copied. line_info: keep the template lines in cubin and PTX, for profilers and the software
 * GPU; the code is the same, the cubin about four times as large. Null if out of memory. */
compiler *compiler_create(const char *nvrtc_path, int line_info);
void compiler_destroy(compiler *c);

/* Before the first compile: from now on compile in helper processes, as `mode` says; without this, on the calling thread. path: the
 * program; "" if there is none. What becomes of helpers is written to the journal, which must live longer. Returns 0 if out of memory. */
int compiler_use_helper(compiler *c, jg_helper mode, const char *path, double timeout_ms, journal *log);

/* Helpers that crashed, were killed, or ran out of time. */
uint64_t compiler_helpers_lost(const compiler *c);

/* Stops compiles under way as far as NVRTC can, kills helpers, and refuses later compiles: CANCELLED. For closing. */
void compiler_cancel(compiler *c);

/* Compiles on the calling thread, which must be one that compile_on_thread or compile_spawn made, or in a helper while it waits.
 * Thread-safe. A lost helper is tried again once.
 * Errors: NO_NVRTC, ARCH, COMPILE, NO_MEMORY (also to start a helper), HELPER, CANCELLED. */
jg_status compile_here(compiler *c, const kernel_spec *spec, image *out);

/* Runs compile_here on a thread of its own and waits for it. The error text is the calling thread's. */
jg_status compile_on_thread(compiler *c, const kernel_spec *spec, image *out);

/* Starts a thread fit for NVRTC: 8 MiB of stack, all signals blocked, the C locale. Returns 0 or an errno. */
int compile_spawn(pthread_t *thread, void *(*body)(void *), void *argument);

#endif
