/* The key of a problem in the memory map: the canonical problem, and how wide its operands may be accessed. */
#ifndef JG_PROBLEM_KEY_H
#define JG_PROBLEM_KEY_H

#include "plan.h"

typedef struct problem_key {
    problem problem;
    access_widths access;
    uint8_t zero[5];              /* no padding: the bytes are the key */
} problem_key;

/* The key of a problem. */
problem_key problem_key_of(const problem *p, access_widths access);

/* How wide operands may be accessed by the problem's own promise (align_bytes). */
access_widths problem_promised_access(const problem *p);

/* The problem's text form, as jg_problem_format's; JG_PROBLEM_TEXT_BYTES are enough. Of the accesses it says what one promise for
 * all three matrices can: where they differ, reading it back gives accesses that are narrower, never wider. */
void problem_key_format(const problem_key *key, char *text, size_t size);

#endif
