/* cuBLAS and cuBLASLt for tests without a GPU, in one library: tests/fake_cublas.c builds into libfake_cublas.so, which a test
 * opens as either of them and steers through this table. libfake_cublas_old.so is the same without cublasSetSmCountTarget.
 *
 * Device memory is host memory; a product is computed at once, by plain loops. Arguments that the real ones would refuse are
 * refused with the same status. */
#ifndef JG_TESTS_FAKE_CUBLAS_H
#define JG_TESTS_FAKE_CUBLAS_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_CUBLAS_CHOICES 40 /* more than anybody asks for */

typedef struct fake_cublas {
    /* What it does. */
    const char *refuse;              /* this call fails, with `status`, from the time that it has passed `passes` times */
    int status, passes;
    int choices;                     /* found by the heuristic; at first 3 */
    struct { int state; size_t workspace_bytes; } choice[FAKE_CUBLAS_CHOICES];

    /* What it was asked. */
    int handles, descriptors;        /* alive */
    int products;
    int workspaces;                  /* calls of cublasSetWorkspace_v2 */
    int asked;                       /* choices, at most */
    uint64_t max_workspace_bytes;    /* of the preference, as are */
    uint32_t alignments[4];
    int heuristic_sm_target;

    /* The last product. */
    const char *call;
    int compute;                     /* cublasComputeType_t */
    void *stream, *workspace;
    size_t workspace_bytes;
    int sm_target, batch, choice_used; /* choice_used: by its place in the heuristic's own list; cuBLAS: -1 */
} fake_cublas;

/* A file that the Makefile builds. */
static inline const char *fake_cublas_path(const char *name)
{
    static char path[1024];
    const char *build = getenv("JG_TEST_BUILD_DIR");
    snprintf(path, sizeof path, "%s/tests/%s", build && *build ? build : "build", name);
    return path;
}

/* Opens it, as it is at first. Aborts if it is not there, since no test means anything then. */
static inline fake_cublas *fake_cublas_open(const char *name)
{
    void *library = dlopen(fake_cublas_path(name), RTLD_NOW | RTLD_LOCAL);
    fake_cublas *fake = library ? dlsym(library, "fake_cublas_controls") : NULL;
    if (!fake) {
        fprintf(stderr, "%s; make build/tests/%s\n", dlerror(), name);
        abort();
    }
    memset(fake, 0, sizeof *fake);
    fake->choices = 3;
    return fake;
}

#endif
