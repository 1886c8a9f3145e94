/* Opening jitgemm for a run: options of a policy, generic kernels ahead of time, and a cache folder of its own if asked for. */
#ifndef PIPELINE_SETUP_H
#define PIPELINE_SETUP_H

#include <signal.h>

#include "args.h"
#include "gpu.h"
#include "jitgemm.h"

/* Becomes 1 with Ctrl-C (SIGINT) or SIGTERM: then a run ends as soon as its frame is done. A second signal ends the program. */
extern volatile sig_atomic_t interrupted;
void catch_signals(void);

/* Opens a context on the GPU's current one, or on the host, whose launches on own kernels are counted in *own_launches, which
 * this thread may set back. With --fresh its cache file is in a folder of its own, which setup_close and the end of the program
 * remove. Except with WAIT, which uses none, the generic kernels are made first, and progress told on standard error. Returns
 * null if that was interrupted. */
jg_context *setup_open(const arguments *a, const gpu *g, unsigned policy, int *own_launches);
void setup_close(jg_context *context);

#endif
