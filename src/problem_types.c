/* Element types: what is known of each, which of them are multiplied by each other, and what a product's types are by default. */
#include "problem.h"
#include "hot.h"
#include "status.h"

enum { FLOATING, INTEGER };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define SET(type) (1u << (type))
#define OF_BYTES (SET(JG_S8) | SET(JG_U8))
#define OF_WEIGHTS (SET(JG_S8) | SET(JG_S4))
#define OF_SMALL_FLOATS (SET(JG_E4M3) | SET(JG_E5M2))

/* By jg_type. */
static const struct {
    const char *name;
    unsigned bits;
    int kind;
    unsigned partners; /* the types that it is multiplied by, as a set: it is one of theirs too */
} types[] = {
    [JG_F32] = {"f32", 32, FLOATING, SET(JG_F32)},
    [JG_F16] = {"f16", 16, FLOATING, SET(JG_F16) | OF_WEIGHTS},
    [JG_BF16] = {"bf16", 16, FLOATING, SET(JG_BF16) | OF_WEIGHTS},
    [JG_S8] = {"s8", 8, INTEGER, OF_BYTES | SET(JG_F16) | SET(JG_BF16)},
    [JG_U8] = {"u8", 8, INTEGER, OF_BYTES},
    [JG_S4] = {"s4", 4, INTEGER, SET(JG_S4) | SET(JG_F16) | SET(JG_BF16)},
    [JG_S32] = {"s32", 32, INTEGER, 0},
    [JG_E4M3] = {"e4m3", 8, FLOATING, OF_SMALL_FLOATS},
    [JG_E5M2] = {"e5m2", 8, FLOATING, OF_SMALL_FLOATS},
};

/* Of pairs that are as near to what was asked, the one that comes first here is named. */
static const jg_type common_first[] = {JG_F32, JG_F16, JG_BF16, JG_S8, JG_U8, JG_S4, JG_E4M3, JG_E5M2};

HOT unsigned type_bits(jg_type type)
{
    return (unsigned)type < COUNT(types) ? types[type].bits : 0;
}

HOT size_t type_bytes(jg_type type)
{
    return (type_bits(type) + 7) / 8;
}

int64_t type_row_bytes(jg_type type, int64_t elements)
{
    return type == JG_S4 ? elements / 2 + elements % 2 : elements * (int64_t)type_bytes(type);
}

const char *type_name(jg_type type)
{
    return type_bits(type) ? types[type].name : "?";
}

int type_is_integer(jg_type type)
{
    return type_bits(type) && types[type].kind == INTEGER;
}

static int is_half(jg_type type)
{
    return type == JG_F16 || type == JG_BF16;
}

int problem_is_weights(const problem *p, int operand_b)
{
    const jg_type own = (jg_type)(operand_b ? p->type_b : p->type_a), other = (jg_type)(operand_b ? p->type_a : p->type_b);
    return type_is_integer(own) && is_half(other);
}

size_t problem_smallest_element(const problem *p)
{
    const size_t a = type_bytes((jg_type)p->type_a), b = type_bytes((jg_type)p->type_b), c = type_bytes((jg_type)p->type_c);
    const size_t least = a < b ? a : b;
    return least < c ? least : c;
}

jg_type type_default_result(jg_type a, jg_type b)
{
    if (a == JG_F32 || is_half(a)) return a;
    if (is_half(b)) return b;
    return type_is_integer(a) && type_is_integer(b) ? JG_S32 : JG_F32;
}

static int is_result(jg_type a, jg_type b, jg_type c)
{
    return c != JG_S4 && (c != JG_S32 || (type_is_integer(a) && type_is_integer(b)));
}

/* How far a type is from the one that was asked for: another type of the other kind is further away, two others still more. */
static int distance(jg_type asked, jg_type type)
{
    if (asked == type) return 0;
    return types[asked].kind == types[type].kind ? 2 : 3;
}

static void find_nearest_pair(jg_type a, jg_type b, jg_type nearest[2])
{
    int least = 99;
    for (size_t i = 0; i < COUNT(common_first); i++) {
        for (size_t j = 0; j < COUNT(common_first); j++) {
            const jg_type x = common_first[i], y = common_first[j];
            const int far = distance(a, x) + distance(b, y);
            if (far >= least || !(types[x].partners & SET(y))) continue;
            least = far;
            nearest[0] = x;
            nearest[1] = y;
        }
    }
}

jg_status problem_resolve_types(const jg_problem *in, problem *p)
{
    const jg_type a = in->type_a ? in->type_a : JG_F32, b = in->type_b ? in->type_b : a;
    const jg_type c = in->type_c ? in->type_c : type_default_result(a, b);
    if (!(types[a].partners & SET(b)) || !is_result(a, b, c)) {
        jg_type near[2] = {JG_F32, JG_F32};
        find_nearest_pair(a, b, near);
        const jg_type right = in->type_c && is_result(near[0], near[1], c) ? c : type_default_result(near[0], near[1]);
        return status_set(JG_ERR_TYPE,
                          "no kernels for type_a x type_b -> type_c = %s x %s -> %s; nearest that works: %s x %s -> %s",
                          type_name(a), type_name(b), type_name(c), type_name(near[0]), type_name(near[1]), type_name(right));
    }
    p->type_a = (uint8_t)a;
    p->type_b = (uint8_t)b;
    p->type_c = (uint8_t)c;
    return JG_OK;
}

jg_status problem_check_math(const problem *p)
{
    const unsigned mode = problem_math_mode(p);
    const jg_type a = (jg_type)p->type_a, b = (jg_type)p->type_b;
    if ((mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32) && a != JG_F32)
        return status_set(JG_ERR_TYPE,
                          "math = %s is for f32 x f32, not for %s x %s; nearest that works: JG_MATH_DEFAULT",
                          mode == JG_MATH_TF32 ? "JG_MATH_TF32" : "JG_MATH_F32_3XTF32", type_name(a), type_name(b));
    if (mode == JG_MATH_F16 && (a != JG_F16 || b != JG_F16))
        return status_set(JG_ERR_TYPE,
                          "math = JG_MATH_F16 is for f16 x f16, not for %s x %s; nearest that works: JG_MATH_DEFAULT",
                          type_name(a), type_name(b));
    return JG_OK;
}
