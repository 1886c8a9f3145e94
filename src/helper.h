/* A compile in a process of its own: NVRTC's memory, its crashes and its hangs stay out of the host.
 *
 * In: a rendered source. Out: its image, or what became of the helper. Each compile has its own process, which ends with it. */
#ifndef JG_HELPER_H
#define JG_HELPER_H

#include "image.h"
#include "jitgemm.h"

#include <stdatomic.h>

typedef struct helper helper;

/* path (of the program) and the environment are copied. timeout_ms: of one compile. Null if out of memory. */
helper *helper_create(const char *path, double timeout_ms);
void helper_destroy(helper *h);

const char *helper_path(const helper *h);

/* What is to be compiled, as for nvrtc_compile. nvrtc_path: as for nvrtc_open, may be null. */
typedef struct helper_job {
    const char *nvrtc_path, *name, *source;
    int arch, line_info;
} helper_job;

typedef enum helper_outcome {
    HELPER_ANSWERED,  /* *status is NVRTC's answer, or NO_MEMORY; so is the error text */
    HELPER_LOST,      /* it crashed, was killed, hung, or answered nonsense */
    HELPER_UNUSABLE,  /* it cannot be started, is none, or is of another build: that will not pass by waiting */
    HELPER_NO_ROOM,   /* no memory, processes or descriptors are left to start it with */
    HELPER_CANCELLED
} helper_outcome;

/* Compiles in a new process. Unless it answered, why becomes the end of a sentence about the helper, e.g. "was killed by signal 9".
 * Blocks until the process has ended, which it soon does once *cancelled is not 0. out->compile_ms is what all of it took. Thread-safe. */
helper_outcome helper_compile(const helper *h, const helper_job *job, const atomic_int *cancelled, jg_status *status, image *out,
                              char *why, size_t why_bytes);

#endif
