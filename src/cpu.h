/* The cpu device: a product in plain C on the host, with the arithmetic of the generated kernels. */
#ifndef JG_CPU_H
#define JG_CPU_H

#include "operands.h"

/* Computes a canonical problem, with all that is fused in, for every batch item. The pointers are host memory, aligned to their
 * elements, and have been checked (operands_check); one that is not read by the BLAS rules may be null. Blocks until done;
 * allocates nothing; uses about 48 KiB of stack. Thread-safe. Always JG_OK: p has been checked. */
jg_status cpu_gemm(const problem *p, const operands *o);

#endif
