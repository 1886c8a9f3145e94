/* The bytes of kernels: cache file, factory file, compiler. Never touches the device.
 *
 * In: what kernel is wanted. Out: its image. A fault of the cache file costs a compile and one warning, never a call. Shared by
 * a context and its worker, and counted: a compile that jg_close abandoned still holds it. Thread-safe. */
#ifndef JG_IMAGES_H
#define JG_IMAGES_H

#include "cache/claims.h"
#include "cache/store.h"
#include "compile.h"
#include "journal.h"

#include <stdatomic.h>

/* How far a call may go for a kernel. From DISK on it may load, and so wait for the device. */
typedef enum effort {
    EFFORT_MEMORY,       /* only what is loaded */
    EFFORT_DISK,         /* also what the cache and factory files have */
    EFFORT_COMPILE,      /* also compile, on a thread of its own */
    EFFORT_COMPILE_HERE  /* the same on the calling thread, which compile_spawn made; also what failed before */
} effort;

typedef struct images {
    atomic_uint references;
    journal journal;
    compiler *compiler;
    store *store, *factory;       /* either may be null */
    claims *claims;               /* null without a store */
    char path[512], factory_path[512]; /* "" where there is none */
    atomic_int store_warned;
    atomic_uint_fast64_t disk_hits, disk_misses, disk_faults, compiles, compile_failures, compile_us;
    pthread_mutex_t failed_lock;  /* guards failed */
    struct failed *failed;        /* kernels that do not compile */
} images;

/* Opens cache and factory files as the resolved options say; one that cannot be used is logged. options' strings are read here and
 * not kept. The caller holds the one reference. Null if out of memory. */
images *images_open(const jg_options *options, int line_info);
images *images_keep(images *i);
void images_drop(images *i); /* null is allowed */

/* For closing: stops compiles under way, refuses later ones, and waits no more than moments for a cache file that others have. */
void images_cancel(images *i);

/* Brings the image of a kernel from the files, else compiles it and stores it. `label` is the problem that asked.
 * Errors: NOT_READY (absent and how < EFFORT_COMPILE), and compile_here's. */
jg_status images_get(images *i, const kernel_spec *spec, const char *label, effort how, image *out, jg_source *source);

/* Compiles and stores without looking. how: COMPILE or COMPILE_HERE. Errors: compile_here's. */
jg_status images_compile(images *i, const kernel_spec *spec, const char *label, effort how, image *out);

/* Copies a kernel from the files of `from` into the cache file of `to`, which has one, unless a file of that has the kernel. Errors:
 * NOT_READY (in no file of `from`), FILE (it cannot be written). */
jg_status images_copy(images *to, images *from, const kernel_key *key);

/* Counts a fault of a file, and says the first one. */
void images_fault(images *i, const store *s, const char *what);

/* Whether a file has the kernel. Reads no image. */
int images_have(images *i, const kernel_key *key);

/* What a compile takes by what compiles have taken so far; ms. */
double images_expected_ms(images *i);

#endif
