/* NVRTC through dlopen: the one file that calls it. Works with the libraries of CUDA 11.2 to 13. */
#ifndef JG_NVRTC_API_H
#define JG_NVRTC_API_H

#include "image.h"
#include "jitgemm.h"

typedef struct nvrtc nvrtc;

/* Opens NVRTC: `path` (null: the usual names, newest first, then the toolkit's folders). The library stays loaded
 * for the life of the process. Errors: NO_NVRTC, the text listing what was tried; NO_MEMORY; CANCELLED if the process is
 * leaving. */
jg_status nvrtc_open(const char *path, nvrtc **out);
void nvrtc_close(nvrtc *lib);

/* For a process that ends by _exit or a signal alone: saves the short compile that makes exit() safe, 25 ms. Before the first compile. */
void nvrtc_never_exits(nvrtc *lib);

/* Makes compiles under way, where NVRTC can be stopped (12.9 and later), and all later ones fail with CANCELLED. */
void nvrtc_cancel(nvrtc *lib);

/* Compiles one translation unit for sm_<arch> to cubin and PTX. Call it on a thread with an 8 MiB stack (see
 * compile.c). Thread-safe. The source must define the kernel `name`. line_info: keep source lines in the cubin and the PTX.
 * Errors: ARCH (with the list this NVRTC knows), COMPILE (with the log), NO_NVRTC (builtins missing), NO_MEMORY, CANCELLED. */
jg_status nvrtc_compile(nvrtc *lib, const char *source, const char *name, int arch, int line_info, image *out);

#endif
