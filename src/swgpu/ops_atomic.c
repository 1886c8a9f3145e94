/* atom and red: lane after lane in order, and really atomic, since blocks on other worker threads may do the same.
 *
 * An operation is a function from the old value (and one or two operands) to the new one; a compare-exchange loop makes
 * it atomic. */
#include "variant.h"

#include "access.h"
#include "formats.h"
#include "opcodes.h"

extern ptx_bind BIND(atom), BIND(red);

/* In shared memory sums of f32 keep denormals, in global memory they are flushed. */
typedef uint64_t atomic_function(uint64_t old, uint64_t b, uint64_t c, int in_global);

#define FUNCTION(name, ...)                                                                                            \
    static uint64_t name(uint64_t old, uint64_t b, uint64_t c, int in_global)                                          \
    {                                                                                                                  \
        (void)old, (void)b, (void)c, (void)in_global;                                                                  \
        return __VA_ARGS__;                                                                                            \
    }

/* The value is cut to its width when it is stored. */
FUNCTION(do_and, old & b)
FUNCTION(do_or, old | b)
FUNCTION(do_xor, old ^ b)
FUNCTION(do_exchange, b)
FUNCTION(do_add, old + b)
FUNCTION(do_inc, old >= b ? 0 : old + 1)
FUNCTION(do_dec, old == 0 || old > b ? b : old - 1)
FUNCTION(do_min_u, b < old ? b : old)
FUNCTION(do_max_u, b > old ? b : old)
FUNCTION(do_min_s32, (int32_t)b < (int32_t)old ? b : old)
FUNCTION(do_max_s32, (int32_t)b > (int32_t)old ? b : old)
FUNCTION(do_min_s64, (int64_t)b < (int64_t)old ? b : old)
FUNCTION(do_max_s64, (int64_t)b > (int64_t)old ? b : old)
FUNCTION(do_compare, old == b ? c : old)

static uint32_t flush32(uint32_t bits)
{
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

static uint64_t do_add_f32(uint64_t old, uint64_t b, uint64_t c, int in_global)
{
    (void)c;
    uint32_t x = (uint32_t)old, y = (uint32_t)b;
    if (in_global) x = flush32(x), y = flush32(y);
    const uint32_t sum = format_canonical32(format_float(x) + format_float(y));
    return in_global ? flush32(sum) : sum;
}

FUNCTION(do_add_f64, format_canonical64(format_double(old) + format_double(b)))

/* A float has more than twice the digits, so rounding twice rounds as once. */
static uint32_t add_f16(uint32_t a, uint32_t b)
{
    const float sum = format_float(format_f16_to_f32(a & 0xffff)) + format_float(format_f16_to_f32(b & 0xffff));
    return format_f32_to_f16(format_bits(sum));
}

static uint32_t add_bf16(uint32_t a, uint32_t b)
{
    const float sum = format_float(format_bf16_to_f32(a & 0xffff)) + format_float(format_bf16_to_f32(b & 0xffff));
    return format_f32_to_bf16(format_bits(sum));
}

FUNCTION(do_add_f16, add_f16((uint32_t)old, (uint32_t)b))
FUNCTION(do_add_bf16, add_bf16((uint32_t)old, (uint32_t)b))
FUNCTION(do_add_f16x2, add_f16((uint32_t)old, (uint32_t)b) | add_f16((uint32_t)old >> 16, (uint32_t)b >> 16) << 16)
FUNCTION(do_add_bf16x2, add_bf16((uint32_t)old, (uint32_t)b) | add_bf16((uint32_t)old >> 16, (uint32_t)b >> 16) << 16)

static const struct operation {
    uint8_t operation, type, bytes;
    uint8_t noftz;  /* must be given */
    atomic_function *apply;
} operations[] = {
    {ATOM_AND, TYPE_B32, 4, 0, do_and},           {ATOM_AND, TYPE_B64, 8, 0, do_and},
    {ATOM_OR, TYPE_B32, 4, 0, do_or},             {ATOM_OR, TYPE_B64, 8, 0, do_or},
    {ATOM_XOR, TYPE_B32, 4, 0, do_xor},           {ATOM_XOR, TYPE_B64, 8, 0, do_xor},
    {ATOM_EXCH, TYPE_B32, 4, 0, do_exchange},     {ATOM_EXCH, TYPE_B64, 8, 0, do_exchange},
    {ATOM_CAS, TYPE_B16, 2, 0, do_compare},       {ATOM_CAS, TYPE_B32, 4, 0, do_compare},
    {ATOM_CAS, TYPE_B64, 8, 0, do_compare},       {ATOM_ADD, TYPE_U32, 4, 0, do_add},
    {ATOM_ADD, TYPE_S32, 4, 0, do_add},           {ATOM_ADD, TYPE_U64, 8, 0, do_add},
    {ATOM_ADD, TYPE_F32, 4, 0, do_add_f32},       {ATOM_ADD, TYPE_F64, 8, 0, do_add_f64},
    {ATOM_ADD, TYPE_F16, 2, 1, do_add_f16},       {ATOM_ADD, TYPE_BF16, 2, 1, do_add_bf16},
    {ATOM_ADD, TYPE_F16X2, 4, 1, do_add_f16x2},   {ATOM_ADD, TYPE_BF16X2, 4, 1, do_add_bf16x2},
    {ATOM_INC, TYPE_U32, 4, 0, do_inc},           {ATOM_DEC, TYPE_U32, 4, 0, do_dec},
    {ATOM_MIN, TYPE_U32, 4, 0, do_min_u},         {ATOM_MAX, TYPE_U32, 4, 0, do_max_u},
    {ATOM_MIN, TYPE_U64, 8, 0, do_min_u},         {ATOM_MAX, TYPE_U64, 8, 0, do_max_u},
    {ATOM_MIN, TYPE_S32, 4, 0, do_min_s32},       {ATOM_MAX, TYPE_S32, 4, 0, do_max_s32},
    {ATOM_MIN, TYPE_S64, 8, 0, do_min_s64},       {ATOM_MAX, TYPE_S64, 8, 0, do_max_s64},
};

static const struct operation *find_operation(const ptx_instruction *i)
{
    for (size_t n = 0; n < sizeof operations / sizeof *operations; n++)
        if (operations[n].operation == i->modifier[MOD_ATOM] && operations[n].type == i->type[0]) return &operations[n];
    return NULL;
}

/* ---- running ---- */

typedef uint16_t __attribute__((may_alias)) word16;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

/* Returns the old value. */
#define CHANGE(T)                                                                                                      \
    do {                                                                                                               \
        T *at = (T *)(void *)bytes_at, old = __atomic_load_n(at, __ATOMIC_RELAXED);                                    \
        while (!__atomic_compare_exchange_n(at, &old, (T)o->apply(old, b, c, in_global), 0, __ATOMIC_SEQ_CST,          \
                                            __ATOMIC_RELAXED)) {}                                                      \
        return old;                                                                                                    \
    } while (0)

static uint64_t change(const struct operation *o, uint8_t *bytes_at, uint64_t b, uint64_t c, int in_global)
{
    switch (o->bytes) {
    case 2: CHANGE(word16);
    case 4: CHANGE(word32);
    default: CHANGE(word64);
    }
}

/* address: the address operand's group; the operands follow it, the destination comes before. */
static int run_atomic(warp *w, const ptx_instruction *i, uint32_t mask, unsigned address)
{
    const struct operation *o = find_operation(i);
    const ptx_operand *b = operand_at(i, address + 1, 0), *c = i->groups > address + 2 ? operand_at(i, address + 2, 0) : b;
    const ptx_operand *d = address ? operand_at(i, 0, 0) : NULL;
    access_request r;
    access_begin(&r, w, i, mask, operand_at(i, address, 0), i->modifier[MOD_SPACE], ACCESS_ATOMIC, o->bytes);
    if (access_resolve(&r)) return 1;
    const uint64_t cut = o->bytes == 8 ? ~0ull : (1ull << o->bytes * 8) - 1;
    FOR_LANES(mask, lane, {
        const uint64_t old = change(o, r.at[lane], operand_get(w, b, lane) & cut, operand_get(w, c, lane) & cut,
                                    r.global >> lane & 1);
        if (d && d->kind != OPERAND_SINK) operand_set(w, d, lane, old);
    });
    return 0;
}

static int run_atom(warp *w, const ptx_instruction *i, uint32_t mask)
{
    return run_atomic(w, i, mask, 1);
}

static int run_red(warp *w, const ptx_instruction *i, uint32_t mask)
{
    return run_atomic(w, i, mask, 0);
}

/* ---- binding ---- */

static int value_fits(const ptx_operand *o, unsigned bits, int is_destination)
{
    if (o->kind == OPERAND_SINK) return is_destination;
    if (o->kind == OPERAND_IMMEDIATE) return !is_destination && o->bits != 1 && (o->bits == 64) == (bits == 64);
    return o->kind == OPERAND_REGISTER && o->bits == bits;
}

static int is_atomic_form(const ptx_instruction *i, unsigned address)
{
    const struct operation *o = i->types == 1 ? find_operation(i) : NULL;
    const unsigned space = i->modifier[MOD_SPACE], order = i->modifier[MOD_ORDER], values = o && o->operation == ATOM_CAS ? 2 : 1;
    if (!o || i->groups != address + 1 + values || o->noftz != (i->modifier[MOD_NOFTZ] != 0)) return 0;
    if (space != SPACE_GLOBAL && space != SPACE_SHARED && space != SPACE_GENERIC) return 0;
    if (order == ORDER_WEAK || order == ORDER_SC) return 0;
    for (unsigned n = 0; n < i->groups; n++) {
        const ptx_operand *v = operand_at(i, n, 0);
        if (i->count[n] != 1) return 0;
        const int is_address = v->kind == OPERAND_ADDRESS && (v->bits == 32 || v->bits == 64);
        if (n == address ? !is_address : !value_fits(v, o->bytes * 8u, n < address)) return 0;
    }
    return 1;
}

ptx_run *BIND(atom)(const ptx_instruction *i)
{
    return is_atomic_form(i, 1) ? run_atom : NULL;
}

/* There is no red.exch or red.cas, and red knows no acquire. */
ptx_run *BIND(red)(const ptx_instruction *i)
{
    const unsigned operation = i->modifier[MOD_ATOM], order = i->modifier[MOD_ORDER];
    if (operation == ATOM_EXCH || operation == ATOM_CAS || order == ORDER_ACQUIRE || order == ORDER_ACQ_REL) return NULL;
    return is_atomic_form(i, 0) ? run_red : NULL;
}
