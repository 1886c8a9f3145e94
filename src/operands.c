/* The caller's operands in canonical order, and whether they can be used. */
#include "operands.h"
#include "hot.h"

#include "status.h"

HOT operands operands_canonicalise(const problem *p, const jg_operands *in)
{
    operands o = {in->a, in->b, in->c, in->alpha ? *in->alpha : 1.0f, in->beta ? *in->beta : 0.0f, "a", "b"};
    if (p->swapped) {
        o.a = in->b;
        o.b = in->a;
        o.name_a = "b";
        o.name_b = "a";
    }
    if (p->k == 0) o.alpha = 0.0f; /* an empty sum is 0 even if alpha is infinite */
    return o;
}

HOT int operands_read_ab(const operands *o)
{
    return o->alpha != 0.0f;
}

HOT unsigned operands_alignment(const void *pointer)
{
    uintptr_t bits = (uintptr_t)pointer | 16;
    return (unsigned)(bits & -bits);
}

HOT static jg_status check_pointer(const char *name, const void *pointer, unsigned needed, int is_used)
{
    if (!is_used) return JG_OK;
    if (!pointer) return status_set(JG_ERR_NULL, "operands.%s is null", name);
    if (operands_alignment(pointer) < needed)
        return status_set(JG_ERR_MISALIGNED, "operands.%s is %p, which is not a multiple of %u bytes", name, pointer, needed);
    return JG_OK;
}

HOT jg_status operands_check(const operands *o, unsigned need_a, unsigned need_b, unsigned need_c)
{
    RETURN_IF_ERROR(check_pointer(o->name_a, o->a, need_a, operands_read_ab(o)));
    RETURN_IF_ERROR(check_pointer(o->name_b, o->b, need_b, operands_read_ab(o)));
    return check_pointer("c", o->c, need_c, 1);
}
