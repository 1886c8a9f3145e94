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

access_widths problem_promised_access(const problem *p)
{
    return plan_access(p, p->align_bytes, p->align_bytes, p->align_bytes);
}

static int is_within(access_widths inner, access_widths outer)
{
    return inner.a <= outer.a && inner.b <= outer.b && inner.c <= outer.c;
}

/* What a text can say of the accesses: the default promise if it makes none of them wider than they are; else of those that
 * do not, and allow the widest accesses, the weakest. */
static uint32_t promise_of(const problem_key *key)
{
    const problem *p = &key->problem;
    uint32_t align = 16;
    if (is_within(plan_access(p, align, align, align), key->access)) return align;
    while (align > 2 && !is_within(plan_access(p, align, align, align), key->access)) align /= 2;
    const access_widths most = plan_access(p, align, align, align);
    const size_t in = type_bytes((jg_type)p->type_a), out = type_bytes((jg_type)p->type_c);
    while (align / 2 >= in && align / 2 >= out && is_within(most, plan_access(p, align / 2, align / 2, align / 2))) align /= 2;
    return align;
}

void problem_key_format(const problem_key *key, char *text, size_t size)
{
    const problem *p = &key->problem;
    const jg_problem public = {
        .m = p->m, .n = p->n, .k = p->k, .batch = p->batch,
        .type_a = (jg_type)p->type_a, .type_b = (jg_type)p->type_b, .type_c = (jg_type)p->type_c,
        .op_a = (jg_op)p->op_a, .op_b = (jg_op)p->op_b, .form = (jg_form)p->form,
        .lda = p->lda, .ldb = p->ldb, .ldc = p->ldc,
        .stride_a = p->stride_a, .stride_b = p->stride_b, .stride_c = p->stride_c, .dynamic = p->dynamic,
        .align_bytes = promise_of(key),
    };
    if (jg_problem_format(&public, text, size, NULL) != JG_OK) snprintf(text, size, "?");
}
