/* Options and environment: one place that knows every variable and default. */
#ifndef JG_OPTIONS_H
#define JG_OPTIONS_H

#include "jitgemm.h"

#define OPTIONS_CACHE_MAX_BYTES (256ull << 20)
#define OPTIONS_MEMORY_MAX_KERNELS 1024u
#define OPTIONS_MEMORY_MAX_BYTES (256ull << 20)
#define OPTIONS_WORKER_QUEUE 256u
#define OPTIONS_WORKER_PER_MINUTE 60u
#define OPTIONS_WORKER_MAX_THREADS 16u
#define OPTIONS_CPU_ARCH 87
#define OPTIONS_HELPER_TIMEOUT_MS 60e3

/* Resolves the cache file: given, else $JITGEMM_CACHE, else ${XDG_CACHE_HOME:-$HOME/.cache}/jitgemm/kernels.db.
 * path becomes "" for memory only: given or the variable is "", or there is no home (*no_home is then 1).
 * Error: FILE if the path does not fit. */
jg_status options_cache_path(const char *given, char *path, size_t size, int *no_home);

/* Resolves the factory file: given, else $JITGEMM_FACTORY, else share/jitgemm/factory.db beside the library's or the program's
 * folder, if it is there. path becomes "" if there is none. Returns 1 if it was named, 0 if it was found. */
int options_factory_path(const char *given, char *path, size_t size);

/* Resolves the compile helper: given, else $JITGEMM_HELPER, else libexec/jitgemm/jitgemm-compile beside the library's or the program's
 * folder, if it is there. path becomes "" if there is none. Returns 1 if it was named, 0 if it was found. */
int options_helper_path(const char *given, char *path, size_t size);

/* Checks `in` (may be null) and fills in *out with every default but the strings, which are resolved from the
 * environment by the functions here. Error: VALUE, naming the member. */
jg_status options_resolve(const jg_options *in, jg_options *out);

/* The NVRTC library to open first, or null for the usual names. */
const char *options_nvrtc_path(const char *given);

/* JITGEMM_LINE_INFO=1: kernels keep the template lines they came from. */
int options_line_info(void);

/* The driver library to open ("libcuda.so.1" by default), or "cpu". */
const char *options_driver_path(const char *given);

#endif
