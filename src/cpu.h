/* The cpu device: a product in plain C on the host, with the arithmetic of the generated kernels. */
#ifndef JG_CPU_H
#define JG_CPU_H

#include "problem.h"

/* Computes C = alpha op(A) op(B) + beta C for every batch item of a canonical problem; `a` is the canonical A
 * (the caller's B where p->swapped). The pointers are host memory, aligned to their elements; one that is not read
 * by the BLAS rules may be null. Blocks until done; allocates nothing; uses about 48 KiB of stack. Thread-safe.
 * Always JG_OK: p has been checked. */
jg_status cpu_gemm(const problem *p, const void *a, const void *b, void *c, float alpha, float beta);

#endif
