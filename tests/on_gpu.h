/* What the GPU tests share: a context on a GPU or on the software GPU (JITGEMM_DRIVER=swgpu), and products of the oracle's data
 * on it. Without a device every test is skipped, with the reason.
 *
 *   JG_TEST_FILTER=PATTERN   only these tests
 *   JG_TEST_STRIDE=N         only every N-th case of a test, where it has many */
#ifndef JG_TESTS_ON_GPU_H
#define JG_TESTS_ON_GPU_H

#include "reference.h"

#define ON_GPU_ARENA_BYTES ((size_t)64 << 20)

extern jg_context *on_gpu_context;
extern void *on_gpu_arena;
extern size_t on_gpu_stride;

/* Set-up and tear-down of a group of tests. */
int on_gpu_open(void **state);
int on_gpu_close(void **state);

/* Each test begins with the first, which skips it where there is no device. The second skips it on sm_75, which has no mode but
 * the default and strict ones. The last fails the test if there was a complaint in it. */
void on_gpu_need(void);
void on_gpu_need_modes(void);
void on_gpu_verdict(void);

int on_gpu_is_software(void);
int on_gpu_architecture(void);

/* Counts a failure of the test and prints the first ones. */
void on_gpu_complain(const jg_problem *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Complains if it is an error. Returns whether it is none. */
int on_gpu_must(const jg_problem *p, jg_status status);

/* Uploads the operands, computes ref->problem and brings C back. The second takes operands that on_device_upload gave, maybe with
 * some of them changed. They return whether C is there; if not they have complained. */
int on_gpu_run(reference *ref, float alpha, float beta);
int on_gpu_run_on(reference *ref, const jg_operands *data);

/* Complains of what the oracle finds. `exact`: C must be R rounded. */
void on_gpu_judge(const reference *ref, const char *what, float alpha, float beta, int exact);

/* For products that a test launches by itself: one more in the count that is printed at the end. */
void on_gpu_count(void);

/* Compiles so many problems' kernels, side by side. */
void on_gpu_prewarm(const jg_problem *problems, size_t count);

#endif
