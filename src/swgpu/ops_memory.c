/* ld, ldu, st and prefetch. access.c finds and checks where each lane's bytes are; here they move between them and the
 * registers: one element of a vector after another, for all lanes. */
#include "variant.h"

#include "access.h"
#include "opcodes.h"

extern ptx_bind BIND(ld), BIND(ldu), BIND(st), BIND(prefetch);

#define MAX_BYTES 32 /* of one lane */

static unsigned type_bits(unsigned type)
{
    static const uint8_t bits[] = {
#define MEMBER(name, text, width) width,
        PTX_TYPES(MEMBER)
#undef MEMBER
    };
    return bits[type];
}

static int is_signed(unsigned type)
{
    return type == TYPE_S8 || type == TYPE_S16 || type == TYPE_S32 || type == TYPE_S64;
}

/* ---- moving ---- */

/* T: the type in memory. Registers of 8 and 16 bits keep their upper bits 0. */
#define LOAD_ELEMENT(name, T)                                                                                          \
    static void load_##name(const access_request *r, uint32_t mask, const ptx_operand *o, uint32_t offset)                 \
    {                                                                                                                  \
        if (o->bits == 64) {                                                                                           \
            uint64_t *to = slot64(r->w, o->slot);                                                                      \
            FOR_LANES(mask, lane, {                                                                                    \
                T value;                                                                                               \
                memcpy(&value, r->at[lane] + offset, sizeof value);                                                    \
                to[lane] = (uint64_t)value;                                                                            \
            });                                                                                                        \
        } else {                                                                                                       \
            uint32_t *to = slot32(r->w, o->slot);                                                                      \
            const uint32_t cut = o->bits == 32 ? ~0u : (1u << o->bits) - 1;                                            \
            FOR_LANES(mask, lane, {                                                                                    \
                T value;                                                                                               \
                memcpy(&value, r->at[lane] + offset, sizeof value);                                                    \
                to[lane] = (uint32_t)value & cut;                                                                      \
            });                                                                                                        \
        }                                                                                                              \
    }

LOAD_ELEMENT(u8, uint8_t)
LOAD_ELEMENT(s8, int8_t)
LOAD_ELEMENT(u16, uint16_t)
LOAD_ELEMENT(s16, int16_t)
LOAD_ELEMENT(u32, uint32_t)
LOAD_ELEMENT(s32, int32_t)
LOAD_ELEMENT(u64, uint64_t)

#define STORE_ELEMENT(name, T)                                                                                         \
    static void store_##name(const access_request *r, uint32_t mask, const ptx_operand *o, uint32_t offset)                \
    {                                                                                                                  \
        if (o->bits == 64) {                                                                                           \
            const uint64_t *from = slot64(r->w, o->slot);                                                              \
            FOR_LANES(mask, lane, {                                                                                    \
                const T value = (T)from[lane];                                                                         \
                memcpy(r->at[lane] + offset, &value, sizeof value);                                                    \
            });                                                                                                        \
        } else {                                                                                                       \
            const uint32_t *from = slot32(r->w, o->slot);                                                              \
            FOR_LANES(mask, lane, {                                                                                    \
                const T value = (T)from[lane];                                                                         \
                memcpy(r->at[lane] + offset, &value, sizeof value);                                                    \
            });                                                                                                        \
        }                                                                                                              \
    }

STORE_ELEMENT(8, uint8_t)
STORE_ELEMENT(16, uint16_t)
STORE_ELEMENT(32, uint32_t)
STORE_ELEMENT(64, uint64_t)

typedef void move_element(const access_request *r, uint32_t mask, const ptx_operand *o, uint32_t offset);

/* By the logarithm of the bytes and the sign. */
static move_element *const loads[4][2] = {{load_u8, load_s8}, {load_u16, load_s16}, {load_u32, load_s32}, {load_u64, load_u64}};
static move_element *const stores[4] = {store_8, store_16, store_32, store_64};

static int run_load(warp *w, const ptx_instruction *i, uint32_t mask)
{
    access_request r;
    const unsigned type = i->type[0], count = i->count[0];
    const uint32_t bytes = type_bits(type) / 8;
    access_begin(&r, w, i, mask, operand_at(i, 1, 0), i->modifier[MOD_SPACE], ACCESS_READ, bytes * count);
    if (access_resolve(&r)) return 1;
    move_element *move = loads[__builtin_ctz(bytes)][is_signed(type)];
    for (unsigned n = 0; n < count; n++) {
        const ptx_operand *o = operand_at(i, 0, n);
        if (o->kind != OPERAND_SINK) move(&r, mask, o, n * bytes);
    }
    access_fence_after(i);
    return 0;
}

static int run_store(warp *w, const ptx_instruction *i, uint32_t mask)
{
    access_request r;
    const unsigned count = i->count[1];
    const uint32_t bytes = type_bits(i->type[0]) / 8;
    access_begin(&r, w, i, mask, operand_at(i, 0, 0), i->modifier[MOD_SPACE], ACCESS_WRITE, bytes * count);
    if (access_resolve(&r)) return 1;
    access_fence_before(i);
    for (unsigned n = 0; n < count; n++) stores[__builtin_ctz(bytes)](&r, mask, operand_at(i, 1, n), n * bytes);
    return 0;
}

/* Vectors of 32-bit words into or from 32-bit registers, which is most of what kernels do: four lanes at a time, as a
 * transposed block, so that whole rows and whole parts of registers move. */
typedef uint32_t words __attribute__((vector_size(16)));
#ifdef __clang__
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (words){__VA_ARGS__})
#endif

static inline void transpose(words x[4])
{
    const words a = SHUFFLE(x[0], x[1], 0, 4, 1, 5), b = SHUFFLE(x[2], x[3], 0, 4, 1, 5);
    const words c = SHUFFLE(x[0], x[1], 2, 6, 3, 7), d = SHUFFLE(x[2], x[3], 2, 6, 3, 7);
    x[0] = SHUFFLE(a, b, 0, 1, 4, 5);
    x[1] = SHUFFLE(a, b, 2, 3, 6, 7);
    x[2] = SHUFFLE(c, d, 0, 1, 4, 5);
    x[3] = SHUFFLE(c, d, 2, 3, 6, 7);
}

static int run_load_v4(warp *w, const ptx_instruction *i, uint32_t mask)
{
    if (mask != FULL_MASK) return run_load(w, i, mask);
    access_request r;
    access_begin(&r, w, i, mask, operand_at(i, 1, 0), i->modifier[MOD_SPACE], ACCESS_READ, 16);
    if (access_resolve(&r)) return 1;
    for (unsigned lane = 0; lane < PTX_LANES; lane += 4) {
        words x[4];
        for (unsigned n = 0; n < 4; n++) memcpy(&x[n], r.at[lane + n], 16);
        transpose(x);
        for (unsigned n = 0; n < 4; n++) memcpy(slot32(w, operand_at(i, 0, n)->slot) + lane, &x[n], 16);
    }
    access_fence_after(i);
    return 0;
}

static int run_store_v4(warp *w, const ptx_instruction *i, uint32_t mask)
{
    if (mask != FULL_MASK) return run_store(w, i, mask);
    access_request r;
    access_begin(&r, w, i, mask, operand_at(i, 0, 0), i->modifier[MOD_SPACE], ACCESS_WRITE, 16);
    if (access_resolve(&r)) return 1;
    access_fence_before(i);
    for (unsigned lane = 0; lane < PTX_LANES; lane += 4) {
        words x[4];
        for (unsigned n = 0; n < 4; n++) memcpy(&x[n], slot32(w, operand_at(i, 1, n)->slot) + lane, 16);
        transpose(x);
        for (unsigned n = 0; n < 4; n++) memcpy(r.at[lane + n], &x[n], 16);
    }
    return 0;
}

static int run_nothing(warp *w, const ptx_instruction *i, uint32_t mask)
{
    (void)w, (void)i, (void)mask;
    return 0;
}

/* ---- binding ---- */

/* A vector's length, size and registers. */
static int data_fits(const ptx_instruction *i, unsigned group, int is_load)
{
    static const uint8_t lengths[] = {[VECTOR_NONE] = 1, [VECTOR_2] = 2, [VECTOR_4] = 4, [VECTOR_8] = 8};
    const unsigned bits = type_bits(i->type[0]), length = lengths[i->modifier[MOD_VECTOR]];
    if (i->count[group] != length || bits / 8 * length > MAX_BYTES || (length == 8 && bits != 32)) return 0;
    for (unsigned n = 0; n < length; n++) {
        const ptx_operand *o = operand_at(i, group, n);
        if (is_load && o->kind == OPERAND_SINK) continue;
        if (o->kind != OPERAND_REGISTER && (is_load || o->kind != OPERAND_IMMEDIATE)) return 0;
        if (o->bits < bits && (o->kind != OPERAND_IMMEDIATE || bits == 64)) return 0;
        if (o->bits == 1) return 0;
    }
    return 1;
}

/* .volatile, an order with its scope, and a cache operator exclude each other. */
static int order_fits(const ptx_instruction *i, unsigned strong)
{
    const unsigned order = i->modifier[MOD_ORDER];
    const int scoped = order == ORDER_RELAXED || order == strong;
    if (order > ORDER_WEAK && !scoped) return 0;
    if (scoped != (i->modifier[MOD_SCOPE] != SCOPE_NONE)) return 0;
    if (i->modifier[MOD_VOLATILE] && (order || i->modifier[MOD_CACHE])) return 0;
    return !(scoped && i->modifier[MOD_CACHE]);
}

/* Whether all elements of a group have 32 bits. */
static int all_words(const ptx_instruction *i, unsigned group)
{
    for (unsigned n = 0; n < i->count[group]; n++)
        if (operand_at(i, group, n)->bits != 32) return 0;
    return 1;
}

static int is_address(const ptx_operand *o)
{
    return o->kind == OPERAND_ADDRESS && (o->bits == 32 || o->bits == 64);
}

static int is_words_v4(const ptx_instruction *i, unsigned group)
{
    return i->modifier[MOD_VECTOR] == VECTOR_4 && type_bits(i->type[0]) == 32 && all_words(i, group);
}

ptx_run *BIND(ld)(const ptx_instruction *i)
{
    static const uint32_t caches = 1u << CACHE_NONE | 1u << CACHE_CA | 1u << CACHE_CG | 1u << CACHE_CS | 1u << CACHE_LU |
                                   1u << CACHE_CV | 1u << CACHE_NC;
    const unsigned space = i->modifier[MOD_SPACE], cache = i->modifier[MOD_CACHE];
    if (i->types != 1 || i->groups != 2 || !is_address(operand_at(i, 1, 0))) return NULL;
    if (!(caches >> cache & 1) || (cache == CACHE_NC && space != SPACE_GLOBAL)) return NULL;
    if (!data_fits(i, 0, 1) || !order_fits(i, ORDER_ACQUIRE)) return NULL;
    return is_words_v4(i, 0) ? run_load_v4 : run_load;
}

ptx_run *BIND(ldu)(const ptx_instruction *i)
{
    const unsigned space = i->modifier[MOD_SPACE];
    if (i->types != 1 || i->groups != 2 || !is_address(operand_at(i, 1, 0)) || !data_fits(i, 0, 1)) return NULL;
    if (space != SPACE_GLOBAL && space != SPACE_GENERIC) return NULL;
    if (i->modifier[MOD_CACHE] || i->modifier[MOD_ORDER] || i->modifier[MOD_SCOPE] || i->modifier[MOD_VOLATILE]) return NULL;
    return run_load;
}

ptx_run *BIND(st)(const ptx_instruction *i)
{
    static const uint32_t caches = 1u << CACHE_NONE | 1u << CACHE_WB | 1u << CACHE_CG | 1u << CACHE_CS | 1u << CACHE_WT;
    static const uint32_t spaces = 1u << SPACE_GENERIC | 1u << SPACE_GLOBAL | 1u << SPACE_SHARED | 1u << SPACE_LOCAL;
    if (i->types != 1 || i->groups != 2 || !is_address(operand_at(i, 0, 0))) return NULL;
    if (!(spaces >> i->modifier[MOD_SPACE] & 1) || !(caches >> i->modifier[MOD_CACHE] & 1)) return NULL;
    if (!data_fits(i, 1, 0) || !order_fits(i, ORDER_RELEASE)) return NULL;
    return is_words_v4(i, 1) ? run_store_v4 : run_store;
}

/* A hint: the address is not even looked at, as on a GPU. */
ptx_run *BIND(prefetch)(const ptx_instruction *i)
{
    static const uint32_t spaces = 1u << SPACE_GENERIC | 1u << SPACE_GLOBAL | 1u << SPACE_LOCAL;
    if (i->groups != 1 || !is_address(operand_at(i, 0, 0)) || !i->modifier[MOD_HINT]) return NULL;
    return spaces >> i->modifier[MOD_SPACE] & 1 ? run_nothing : NULL;
}
