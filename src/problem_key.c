/* From a canonical problem to its key, and back to words. */
#include "problem_key.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(problem_key) == 120, "padding in a key would make equal keys differ");

problem_key problem_key_of(const problem *p, access_widths access)
{
    problem_key key;
    memset(&key, 0, sizeof key);
    key.problem = *p;
    key.problem.swapped = 0;      /* one kernel serves both orders */
    key.problem.align_bytes = 0;  /* what matters of it is in access */
    key.access = access;
    return key;
}

/* By a promise for all three matrices. Each is aligned to its own element besides. */
static access_widths promised(const problem *p, uint32_t align)
{
    const uint8_t types[] = {p->type_a, p->type_b, p->type_c};
    unsigned aligned[3];
    for (int i = 0; i < 3; i++) {
        const unsigned element = (unsigned)type_bytes((jg_type)types[i]);
        aligned[i] = align > element ? align : element;
    }
    return plan_access(p, aligned[0], aligned[1], aligned[2]);
}

access_widths problem_promised_access(const problem *p)
{
    return promised(p, p->align_bytes);
}

static int is_within(access_widths inner, access_widths outer)
{
    return inner.a <= outer.a && inner.b <= outer.b && inner.c <= outer.c;
}

/* What a text can say of the accesses: the default promise if it makes none of them wider than they are; else of those that
 * do not, and allow the widest accesses, the weakest. Below the smallest element there is nothing to promise. */
static uint32_t promise_of(const problem_key *key)
{
    const problem *p = &key->problem;
    const uint32_t least = (uint32_t)problem_smallest_element(p);
    uint32_t align = 16;
    if (is_within(promised(p, align), key->access)) return align;
    while (align > least && !is_within(promised(p, align), key->access)) align /= 2;
    const access_widths most = promised(p, align);
    while (align > least && is_within(most, promised(p, align / 2))) align /= 2;
    return align;
}

void problem_key_format(const problem_key *key, char *text, size_t size)
{
    jg_problem public = problem_as_given(&key->problem);
    public.align_bytes = promise_of(key);
    if (jg_problem_format(&public, text, size, NULL) != JG_OK) snprintf(text, size, "?");
}
