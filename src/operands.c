/* The caller's operands in canonical order, and whether they can be used. */
#include "operands.h"
#include "hot.h"

#include "status.h"

HOT operands operands_canonicalise(const problem *p, const jg_operands *in)
{
    operands o = {in->a, in->b, in->c, in->alpha ? *in->alpha : 1.0f, in->beta ? *in->beta : 0.0f, "a", "b", in, p->swapped};
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

fused_operands operands_fused(const operands *o)
{
    const jg_operands *in = o->given;
    const int swapped = o->swapped;
    return (fused_operands){
        .scale = in->scale,
        .scale_m = swapped ? in->scale_n : in->scale_m,
        .scale_n = swapped ? in->scale_m : in->scale_n,
        .bias_m = swapped ? in->bias_n : in->bias_m,
        .bias_n = swapped ? in->bias_m : in->bias_n,
        .residual = in->residual,
        .group_scales = in->group_scales,
        .group_zeros = in->group_zeros,
        .clamp_low = in->clamp_low,
        .clamp_high = in->clamp_high,
        .out_scale = in->out_scale,
        .out_zero = in->out_zero,
    };
}

static jg_status check_fused(const problem *p, const operands *o)
{
    const jg_operands *in = o->given;
    /* The caller's flags, by the caller's names. */
    const unsigned flags = o->swapped ? problem_transposed_epilogue(p->epilogue) : p->epilogue;
    const unsigned bias = (unsigned)type_bytes((jg_type)p->type_bias), residual = (unsigned)type_bytes((jg_type)p->type_c);
    const int reads = operands_read_ab(o) && p->group_k;
    RETURN_IF_ERROR(check_pointer("scale", in->scale, 4, flags & JG_EPILOGUE_SCALE));
    RETURN_IF_ERROR(check_pointer("scale_m", in->scale_m, 4, flags & JG_EPILOGUE_SCALE_M));
    RETURN_IF_ERROR(check_pointer("scale_n", in->scale_n, 4, flags & JG_EPILOGUE_SCALE_N));
    RETURN_IF_ERROR(check_pointer("bias_m", in->bias_m, bias, flags & JG_EPILOGUE_BIAS_M));
    RETURN_IF_ERROR(check_pointer("bias_n", in->bias_n, bias, flags & JG_EPILOGUE_BIAS_N));
    RETURN_IF_ERROR(check_pointer("residual", in->residual, residual,
                                  flags & (JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER)));
    RETURN_IF_ERROR(check_pointer("group_scales", in->group_scales, 2, reads));
    RETURN_IF_ERROR(check_pointer("group_zeros", in->group_zeros, 1, reads && p->zero_points));
    if (p->activation == JG_ACTIVATION_CLAMP && !(in->clamp_low <= in->clamp_high))
        return status_set(JG_ERR_VALUE, "operands.clamp_low = %g must not be above clamp_high = %g", (double)in->clamp_low,
                          (double)in->clamp_high);
    return JG_OK;
}

HOT jg_status operands_check(const problem *p, const operands *o, unsigned need_a, unsigned need_b, unsigned need_c)
{
    RETURN_IF_ERROR(check_pointer(o->name_a, o->a, need_a, operands_read_ab(o)));
    RETURN_IF_ERROR(check_pointer(o->name_b, o->b, need_b, operands_read_ab(o)));
    if (problem_is_fused(p)) RETURN_IF_ERROR(check_fused(p, o));
    return check_pointer("c", o->c, need_c, 1);
}
