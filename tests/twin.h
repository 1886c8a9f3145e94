/* A second device for a numeric test: while the products run on a GPU, the software GPU that plays the same chip
 * computes each of them too, and the bits are compared.
 *
 *     twin_open(90);
 *     twin_compare(&ref, alpha, beta);      after the GPU's C is in ref.c.block
 *     twin_report(); twin_close();
 */
#ifndef JG_TESTS_TWIN_H
#define JG_TESTS_TWIN_H

#include "reference.h"

/* Opens the software GPU as a chip of this architecture. Returns 0, or -1 with the reason in jg_last_error(). Sets
 * JITGEMM_SWGPU_DEVICE, so no other thread may be running. */
int twin_open(int arch);
void twin_close(void);
int twin_is_open(void);

/* Runs the problem of ref, form and all, on C as it was before, and compares with what is in ref.c.block. exact: a
 * different bit is a failure; else a difference above the bound of the oracle is. Returns 0, or 1 with a text. */
int twin_compare(const reference *ref, float alpha, float beta, int exact, char *text, size_t size);

/* Prints, for f32 and for the other types: products, elements, elements with other bits, largest difference. */
void twin_report(void);

#endif
