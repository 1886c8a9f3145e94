/* An NVRTC for tests: tests/fake_nvrtc.c builds into libfake_nvrtc.so, which the library opens as its NVRTC, and which a test
 * steers through this table.
 *
 * At first it refuses every source. Told to accept them, it makes what the fake driver (fake_cuda.h) takes for a kernel, in no
 * time; told to hold, a compile goes on until it is let go, or until the library's flow callback says stop. */
#ifndef JG_TESTS_FAKE_NVRTC_H
#define JG_TESTS_FAKE_NVRTC_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fake_nvrtc {
    atomic_int compiles;   /* begun */
    atomic_int running;    /* begun and not ended */
    atomic_int cancelled;  /* ended by the flow callback */
    atomic_int accepts;    /* nonzero: sources compile */
    atomic_int refuses;    /* so many of the next compiles are refused all the same */
    atomic_int holds;      /* nonzero: compiles do not end */
    atomic_int is_deaf;    /* nonzero: no flow callback, as before NVRTC 12.9 */
    atomic_int version;    /* 12080 for 12.8; 0: 99.9 */
    atomic_int warm_ups;   /* compiles of nothing that make exit() safe */
    char options[512];     /* of the last compile of a kernel, a blank behind each; for a test that compiles on one thread */
} fake_nvrtc;

/* The file that the Makefile builds. */
static inline const char *fake_nvrtc_path(void)
{
    static char path[1024];
    const char *build = getenv("JG_TEST_BUILD_DIR");
    snprintf(path, sizeof path, "%s/tests/libfake_nvrtc.so", build && *build ? build : "build");
    return path;
}

/* Opens it, as it is at first, for contexts that compile in this process. Aborts if it is not there, since no test means anything
 * then. */
static inline fake_nvrtc *fake_nvrtc_open(void)
{
    setenv("JITGEMM_HELPER", "", 1);
    void *handle = dlopen(fake_nvrtc_path(), RTLD_NOW | RTLD_LOCAL);
    fake_nvrtc *fake = handle ? dlsym(handle, "fake_nvrtc_controls") : NULL;
    if (!fake) {
        fprintf(stderr, "%s; make build/tests/libfake_nvrtc.so\n", dlerror());
        abort();
    }
    atomic_store(&fake->compiles, 0);
    atomic_store(&fake->cancelled, 0);
    atomic_store(&fake->accepts, 0);
    atomic_store(&fake->refuses, 0);
    atomic_store(&fake->holds, 0);
    atomic_store(&fake->is_deaf, 0);
    atomic_store(&fake->version, 0);
    atomic_store(&fake->warm_ups, 0);
    return fake;
}

#endif
