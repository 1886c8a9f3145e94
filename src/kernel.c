/* From a kernel_spec to its key, its name, the #define lines of its source, and the resources it needs. */
#include "kernel.h"

#include "problem.h"
#include "template.h"
#include "text.h"

#include <string.h>

static void put(kernel_key *key, size_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) key->bytes[(*at)++] = (uint8_t)(value >> (8 * i));
}

/* Narrow members share a word, each in bits of its own. */
void kernel_encode_key(const kernel_spec *s, kernel_key *key)
{
    memset(key, 0, sizeof *key);
    size_t at = 0;
    memcpy(key->bytes, "jgkernel", 8);
    at += 8;
    put(key, &at, (uint64_t)KERNEL_KEY_FORMAT << 32 | KERNEL_ABI);
    put(key, &at, template_digest(s->family));
    put(key, &at, (uint64_t)s->family << 32 | s->arch);
    put(key, &at, (uint64_t)s->form << 32 | (uint64_t)s->type_a << 16 | s->type_b);
    put(key, &at, (uint64_t)s->math << 32 | s->fusion);
    put(key, &at, (uint64_t)s->trans_a << 48 | (uint64_t)s->trans_b << 40 | (uint64_t)s->vec_a << 32 |
                      (uint64_t)s->vec_b << 24 | (uint64_t)s->vec_c << 16 | (uint64_t)s->grouped << 8 | s->single);
    put(key, &at, (uint64_t)s->tile.m << 32 | s->tile.n);
    put(key, &at, (uint64_t)s->tile.k << 32 | (uint64_t)s->tile.slices << 16 | s->tile.stages);
    put(key, &at, (uint64_t)s->tile.warp_m << 32 | s->tile.warp_n);
    const int64_t sizes[] = {s->m, s->n, s->k, s->lda, s->ldb, s->ldc};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) put(key, &at, (uint64_t)sizes[i]);
    put(key, &at, (uint64_t)kernel_min_blocks(s));
}

uint32_t kernel_fusion(const problem *p)
{
    const uint32_t group = p->group_k ? 1 + (p->group_k > 32) + (p->group_k > 64) : 0;
    return p->epilogue | (uint32_t)p->activation << FUSION_ACTIVATION_SHIFT | (uint32_t)p->type_c << FUSION_TYPE_C_SHIFT |
           (uint32_t)p->type_bias << FUSION_TYPE_BIAS_SHIFT | group << FUSION_GROUP_SHIFT | (p->zero_points ? FUSION_ZERO_POINTS : 0);
}

static char op_letter(uint8_t trans)
{
    return trans == SPEC_ARGUMENT ? 'x' : trans ? 't' : 'n';
}

/* A size in a name. */
static const char *size_text(int64_t size, char text[24])
{
    size_t n = 0;
    if (size) text_append(text, 24, &n, "%lld", (long long)size);
    else text_append(text, 24, &n, "x");
    return text;
}

static const char *type_c_name(const kernel_spec *s)
{
    return s->fusion == SPEC_FUSION_ARGUMENT ? "x" : type_name((jg_type)(s->fusion >> FUSION_TYPE_C_SHIFT & 15));
}

void kernel_format_name(const kernel_spec *s, char name[KERNEL_NAME_BYTES])
{
    static const char *const modes[] = {"", "", "_3x", "_strict", "_f16acc"}; /* the family says tf32 */
    size_t n = 0;
    const size_t size = KERNEL_NAME_BYTES;
    text_append(name, size, &n, "jg_sm%d_%s_%s%s%s%s%s%s", s->arch, family_name(s->family), type_name((jg_type)s->type_a),
                type_name((jg_type)s->type_b), type_c_name(s), modes[s->math & MATH_MODE], s->math & JG_MATH_FLUSH ? "_ftz" : "",
                s->math & JG_MATH_SANITIZE ? "_san" : "");
    text_append(name, size, &n, "_%c%c", op_letter(s->trans_a), op_letter(s->trans_b));
    text_append(name, size, &n, "_%dx%dx%d_%c%dx%d_s%d", s->tile.m, s->tile.n, s->tile.k, s->family == FAMILY_SIMT ? 't' : 'w',
           s->tile.warp_m, s->tile.warp_n, s->tile.stages);
    if (s->tile.slices > 1) text_append(name, size, &n, "_k%d", s->tile.slices);
    if (s->vec_a == SPEC_ARGUMENT) text_append(name, size, &n, "_ax");
    else if (s->vec_a == s->vec_b) text_append(name, size, &n, "_a%d", s->vec_a);
    else text_append(name, size, &n, "_a%d_%d", s->vec_a, s->vec_b);
    if (s->grouped) text_append(name, size, &n, "_g%d", KERNEL_GROUP);
    if (s->form == JG_FORM_GENERIC) return;
    char x[3][24];
    text_append(name, size, &n, "_m%sn%sk%s", size_text(s->m, x[0]), size_text(s->n, x[1]), size_text(s->k, x[2]));
    text_append(name, size, &n, "_l%s_%s_%s", size_text(s->lda, x[0]), size_text(s->ldb, x[1]), size_text(s->ldc, x[2]));
    text_append(name, size, &n, "%s%s", s->vec_c ? "_c4" : "_c1", s->single ? "" : "_b");
    const uint32_t fused = s->fusion & ~(15u << FUSION_TYPE_C_SHIFT);
    if (fused) text_append(name, size, &n, "_e%x", (unsigned)fused);
}

size_t kernel_render_defines(const kernel_spec *s, char *text, size_t size)
{
    size_t n = 0;
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(s, name);
    text_append(text, size, &n, "#define JG_KERNEL %s\n", name);
    const struct {
        const char *macro;
        int64_t value;
        int leave_out;
    } rows[] = {
        {"JG_FAMILY", s->family, 0},
        {"JG_TYPE_A", s->type_a, 0},
        {"JG_TYPE_B", s->type_b, 0},
        {"JG_MODE", s->math & MATH_MODE, 0},
        {"JG_FLUSH", 1, !(s->math & JG_MATH_FLUSH)},
        {"JG_SANITIZE", 1, !(s->math & JG_MATH_SANITIZE)},
        {"JG_BM", s->tile.m, 0},
        {"JG_BN", s->tile.n, 0},
        {"JG_BK", s->tile.k, 0},
        {"JG_WM", s->tile.warp_m, 0},
        {"JG_WN", s->tile.warp_n, 0},
        {"JG_STAGES", s->tile.stages, 0},
        {"JG_SLICES", s->tile.slices, 0},
        {"JG_MIN_BLOCKS", kernel_min_blocks(s), 0},
        {"JG_VEC_A", s->vec_a, s->vec_a == SPEC_ARGUMENT},
        {"JG_VEC_B", s->vec_b, s->vec_b == SPEC_ARGUMENT},
        {"JG_TRANS_A", s->trans_a, s->trans_a == SPEC_ARGUMENT},
        {"JG_TRANS_B", s->trans_b, s->trans_b == SPEC_ARGUMENT},
        {"JG_FUSION", s->fusion, s->fusion == SPEC_FUSION_ARGUMENT},
        {"JG_VEC_C", s->vec_c, s->vec_c == SPEC_ARGUMENT},
        {"JG_SINGLE", 1, !s->single},
        {"JG_GROUPED", KERNEL_GROUP, !s->grouped},
        {"JG_M", s->m, !s->m},
        {"JG_N", s->n, !s->n},
        {"JG_K", s->k, !s->k},
        {"JG_LDA", s->lda, !s->lda},
        {"JG_LDB", s->ldb, !s->ldb},
        {"JG_LDC", s->ldc, !s->ldc},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!rows[i].leave_out) text_append(text, size, &n, "#define %s %lld\n", rows[i].macro, (long long)rows[i].value);
    return n;
}

jg_type kernel_multiply_type(const kernel_spec *s)
{
    return type_multiplied((jg_type)s->type_a, (jg_type)s->type_b);
}

int kernel_step_k(const kernel_spec *s)
{
    return s->family == FAMILY_SIMT ? 1 : s->family == FAMILY_TF32 ? 8 : kernel_multiply_type(s) == JG_S8 ? 32 : 16;
}

int kernel_threads(const kernel_spec *s)
{
    const int parts = s->tile.slices * (s->tile.m / s->tile.warp_m) * (s->tile.n / s->tile.warp_n);
    return s->family == FAMILY_SIMT ? parts : parts * 32;
}

/* Shared memory, as the templates lay it out: stages, in whose place the sums are afterwards. */

/* A row of simt's stages, in elements. */
static int padded(int row)
{
    return row % 8 ? row : row + 4;
}

static int shared_bytes_simt(const kernel_spec *s)
{
    const tile *t = &s->tile;
    const int stages = t->stages * t->k * (padded(t->m) + padded(t->n)) * 4;
    const int sums = t->slices * t->m / (t->warp_m / 4) * (t->n + 4) * 4;
    return stages > sums ? stages : sums;
}

static int slabs_bytes(const kernel_spec *s)
{
    const int rows = s->tile.warp_m % 32 == 0 ? 32 : 16;
    return kernel_threads(s) / 32 * rows * s->tile.warp_n * 4;
}

/* Whether an mma kernel's operand is turned on its way, through registers. */
static int is_turned(const kernel_spec *s, int vec, int k_contiguous)
{
    return (vec == SPEC_REALIGN || vec >= 4) && kernel_multiply_type(s) == JG_S8 && !k_contiguous;
}

/* Where k is known to be of fewer steps than there are stages, those alone; and the sums beside them, if the batch is one item and
 * the other stages would have held them. */
static int shared_bytes_mma(const kernel_spec *s)
{
    const tile *t = &s->tile;
    const int stage = (t->m + t->n) * t->k * (kernel_multiply_type(s) == JG_S8 ? 1 : 2), slabs = slabs_bytes(s);
    int bytes = t->stages * stage;
    const int64_t steps = s->k ? (s->k + t->k - 1) / t->k : 0;
    if (steps > 0 && steps < t->stages && !is_turned(s, s->vec_a, !s->trans_a) && !is_turned(s, s->vec_b, s->trans_b)) {
        const int least = (int)steps * stage;
        bytes = least + (s->single && least + slabs <= bytes ? slabs : 0);
    }
    return bytes > slabs ? bytes : slabs;
}

static int shared_bytes_tf32(const kernel_spec *s)
{
    const tile *t = &s->tile;
    const int stages = t->stages * t->k * (t->m + (s->trans_a ? 8 : 0) + t->n + (s->trans_b ? 0 : 8)) * 4, slabs = slabs_bytes(s);
    return stages > slabs ? stages : slabs;
}

int kernel_shared_bytes(const kernel_spec *s)
{
    return s->family == FAMILY_SIMT ? shared_bytes_simt(s) : s->family == FAMILY_MMA ? shared_bytes_mma(s) : shared_bytes_tf32(s);
}

/* Whether elements are changed on their way into shared memory. */
static int converts(const kernel_spec *s)
{
    const jg_type multiply = kernel_multiply_type(s);
    return s->math & MATH_FLAGS || type_bits((jg_type)s->type_a) != type_bits(multiply) || type_bits((jg_type)s->type_b) != type_bits(multiply);
}

/* What an mma kernel's operand takes for the way that it comes (realign.cuh). What is turned is under way in registers: one for each
 * word of 4 bytes, two if it is realigned too. What comes in pieces has more addresses, and what is shifted there a register for
 * each 512 bytes that a warp shifts at once. */
static int realign_registers(const kernel_spec *s, int vec, int mn, int k_contiguous)
{
    const int bytes = kernel_multiply_type(s) == JG_S8, threads = kernel_threads(s);
    const int words = (mn * s->tile.k / (bytes ? 4 : 2) + threads - 1) / threads;
    if (vec != SPEC_REALIGN && vec != 8 && vec != 4) return 0;
    if (is_turned(s, vec, k_contiguous)) return vec == SPEC_REALIGN ? 2 * words : words;
    return 4 + (vec == SPEC_REALIGN ? words / 4 : 0);
}

/* What a step's operands take, and the next step's. tf32's elements are there as they were read, and of all of B and a row of A as
 * they are multiplied; in 3xtf32 that are two steps, with rests beside, and a row of sums is added up apart. simt's elements that
 * cannot be copied wait in registers. */
static int operand_registers(const kernel_spec *s)
{
    const tile *t = &s->tile;
    const int fragments = t->warp_m / 16 * 4 + t->warp_n / 8 * 2, quads = t->k * (t->m + t->n) / kernel_threads(s);
    switch (s->family) {
    case FAMILY_MMA:
        return fragments * 2 + (converts(s) ? 32 : 0) +
               realign_registers(s, s->vec_a, t->m, !s->trans_a) + realign_registers(s, s->vec_b, t->n, s->trans_b);
    case FAMILY_TF32:
        return (s->math & MATH_MODE) == JG_MATH_F32_3XTF32 ? fragments * 2 + t->warp_n + 16 + t->warp_n / 2 : fragments + t->warp_n / 4 + 8;
    default: return 2 * (t->warp_m + t->warp_n) + (converts(s) || s->type_a != JG_F32 || s->arch < 80 ? quads : 0);
    }
}

static int blocks_of_registers(const kernel_spec *s, int registers)
{
    return 65536 / (registers * kernel_threads(s));
}

/* Whether an mma kernel's fragments may take turns: the next step's of one operand the places of this one's, and ptxas finds a
 * few registers more. Of stages of two steps and with known sizes, where two blocks fit the most shared memory that an SM has. */
#define MOST_SHARED_PER_SM (228 * 1024)
static int may_take_turns(const kernel_spec *s)
{
    const int two_steps = 64 * s->tile.slices / (kernel_multiply_type(s) == JG_S8 ? 1 : 2);
    return s->family == FAMILY_MMA && !converts(s) && s->tile.k <= two_steps && s->tile.warp_m * s->tile.warp_n >= 2048 && s->m && s->n &&
           s->k && 2 * (kernel_shared_bytes(s) + 1024) <= MOST_SHARED_PER_SM;
}

/* Sums, operands, what is under way from global memory, and about 40 (simt: 32) for addresses and the like. */
int kernel_registers(const kernel_spec *s)
{
    const int simt = s->family == FAMILY_SIMT, wm = s->tile.warp_m, wn = s->tile.warp_n;
    const int sums = wm * wn / (simt ? 1 : 32);
    const int registers = sums + operand_registers(s) + (simt ? 32 : 40);
    /* That makes two blocks an SM of one. */
    if (may_take_turns(s) && blocks_of_registers(s, registers) == 1) {
        const int in_turns = registers - (wm > wn ? wm : wn) / 4 - 8;
        if (blocks_of_registers(s, in_turns) == 2) return in_turns;
    }
    return registers < 64 ? 64 : registers;
}

int kernel_min_blocks(const kernel_spec *s)
{
    const int blocks = blocks_of_registers(s, kernel_registers(s));
    return blocks < 1 ? 1 : blocks;
}

const char *family_name(int family)
{
    return family == FAMILY_MMA ? "mma" : family == FAMILY_TF32 ? "tf32" : "simt";
}

void family_numeric_class(int family, int integer, unsigned math, int slices, char *text, size_t size)
{
    const unsigned mode = math & MATH_MODE;
    const char *const arithmetic = family == FAMILY_TF32  ? mode == JG_MATH_TF32 ? "mma.m16n8k8.tf32" : "mma.m16n8k8.3xtf32"
                                   : family == FAMILY_MMA ? mode == JG_MATH_F16 ? "mma.m16n8k16.f16" : "mma.m16n8k16.f32"
                                                          : mode == JG_MATH_STRICT ? "mul+add.f32" : "fma.f32";
    size_t n = 0;
    if (integer) text_append(text, size, &n, "exact.s32");
    else text_append(text, size, &n, "%s ascending-k split%d", arithmetic, slices);
}
