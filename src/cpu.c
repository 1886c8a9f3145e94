/* The cpu device. In: a canonical problem and host memory. Out: C, with the bits that the simt kernels
 * give, but for the payload of a NaN:
 *     acc = fma(a, b, acc) in ascending k from +0, in float32
 *     c = beta == 0 ? alpha * acc : fma(alpha, acc, beta * c), rounded once to the type of C
 * A tile of C is kept as float32 on the stack; blocks of A and B are widened and laid out beside it, so that types,
 * ops and leading dimensions matter only while loading and storing, and the multiplying loop is the same for all.
 * No sum of products is written with + below, so the compiler has nothing to contract. */
#include "cpu.h"
#include "half.h"

#include <string.h>

/* Elements. The three blocks of a tile are 16 KiB each: they stay in the first two cache levels. */
enum { TILE_M = 64, TILE_N = 64, TILE_K = 64 };

/* What the multiplying loop holds in registers: 4 x 16 sums are 4 to 16 vector registers, which covers the latency of
 * the fma. Both divide the tile. */
enum { BLOCK_M = 4, BLOCK_N = 16 };

typedef struct tile {
    float acc[TILE_M][TILE_N];
    float a[TILE_M][TILE_K];
    float b[TILE_K][TILE_N];
} tile;

/* A matrix op(X) of one batch item: element (i, j) is at i * row_step + j * col_step. */
typedef struct view {
    const void *data;
    int64_t row_step, col_step;
    jg_type type;
} view;

/* On x86-64 the loader picks the version for the processor. fmaf is one instruction in the first two and the C
 * library's exact function in the last, so all give the same bits. Sanitizers run code in the resolver before they
 * are set up, and clang has no arch= here: they get the default version. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

static void read_f32(const void *data, int64_t first, int64_t step, int count, float *out)
{
    const float *in = (const float *)data + first;
    for (int i = 0; i < count; i++) out[i] = in[i * step];
}

static void read_f16(const void *data, int64_t first, int64_t step, int count, float *out)
{
    const uint16_t *in = (const uint16_t *)data + first;
    for (int i = 0; i < count; i++) out[i] = half_f16_to_f32(in[i * step]);
}

static void read_bf16(const void *data, int64_t first, int64_t step, int count, float *out)
{
    const uint16_t *in = (const uint16_t *)data + first;
    for (int i = 0; i < count; i++) out[i] = half_bf16_to_f32(in[i * step]);
}

static void write_f32(void *data, int64_t first, int count, const float *in)
{
    memcpy((float *)data + first, in, (size_t)count * sizeof *in);
}

static void write_f16(void *data, int64_t first, int count, const float *in)
{
    uint16_t *out = (uint16_t *)data + first;
    for (int i = 0; i < count; i++) out[i] = half_f32_to_f16(in[i]);
}

static void write_bf16(void *data, int64_t first, int count, const float *in)
{
    uint16_t *out = (uint16_t *)data + first;
    for (int i = 0; i < count; i++) out[i] = half_f32_to_bf16(in[i]);
}

/* How a run of elements becomes float32 and back, by jg_type. */
static const struct {
    void (*read)(const void *data, int64_t first, int64_t step, int count, float *out);
    void (*write)(void *data, int64_t first, int count, const float *in);
} element[] = {
    [JG_F32] = {read_f32, write_f32},
    [JG_F16] = {read_f16, write_f16},
    [JG_BF16] = {read_bf16, write_bf16},
};

/* Widens rows x cols elements from (i, j) on into a block whose rows are `width` floats apart. */
static void load(const view *v, int64_t i, int64_t j, int rows, int cols, float *block, int width)
{
    for (int r = 0; r < rows; r++)
        element[v->type].read(v->data, (i + r) * v->row_step + j * v->col_step, v->col_step, cols, block + r * width);
}

/* Adds the products of a depth of `depth` to the sums. Rows and columns are rounded up to whole blocks; what the
 * excess ones hold is never stored. */
FOR_EACH_PROCESSOR
static void multiply(tile *t, int rows, int cols, int depth)
{
    for (int i = 0; i < rows; i += BLOCK_M) {
        for (int j = 0; j < cols; j += BLOCK_N) {
            float acc[BLOCK_M][BLOCK_N];
            for (int r = 0; r < BLOCK_M; r++)
                for (int s = 0; s < BLOCK_N; s++) acc[r][s] = t->acc[i + r][j + s];
            for (int k = 0; k < depth; k++)
                for (int r = 0; r < BLOCK_M; r++)
                    for (int s = 0; s < BLOCK_N; s++)
                        acc[r][s] = __builtin_fmaf(t->a[i + r][k], t->b[k][j + s], acc[r][s]);
            for (int r = 0; r < BLOCK_M; r++)
                for (int s = 0; s < BLOCK_N; s++) t->acc[i + r][j + s] = acc[r][s];
        }
    }
}

/* Applies alpha and beta to one row of sums and writes it to C from element `first` on. */
static void store_row(jg_type type, void *c, int64_t first, int count, const float *acc, float alpha, float beta)
{
    float row[TILE_N];
    if (beta == 0) {
        for (int j = 0; j < count; j++) row[j] = alpha * acc[j];
    } else {
        element[type].read(c, first, 1, count, row);
        for (int j = 0; j < count; j++) {
            float scaled = beta * row[j];
            row[j] = __builtin_fmaf(alpha, acc[j], scaled);
        }
    }
    element[type].write(c, first, count, row);
}

static int clip(int64_t left, int most)
{
    return left < most ? (int)left : most;
}

/* Computes the tile of C at (i, j); depth = 0 leaves A and B unread. */
static void compute_tile(const view *a, const view *b, int64_t i, int64_t j, int rows, int cols, int64_t depth, tile *t)
{
    memset(t->acc, 0, sizeof t->acc);
    for (int64_t k = 0; k < depth; k += TILE_K) {
        int step = clip(depth - k, TILE_K);
        load(a, i, k, rows, step, t->a[0], TILE_K);
        load(b, k, j, step, cols, t->b[0], TILE_N);
        multiply(t, rows, cols, step);
    }
}

/* op(X) of one batch item as a view. */
static view view_of(const void *data, uint8_t type, uint8_t op, int64_t ld, int64_t offset)
{
    view v = {NULL, op == JG_T ? 1 : ld, op == JG_T ? ld : 1, (jg_type)type};
    if (data) v.data = (const char *)data + offset * (int64_t)type_bytes(v.type);
    return v;
}

jg_status cpu_gemm(const problem *p, const operands *o)
{
    const void *a = o->a, *b = o->b;
    void *c = o->c;
    const float alpha = o->alpha, beta = o->beta;
    if (problem_is_empty(p)) return JG_OK;
    int64_t depth = alpha == 0 ? 0 : p->k;
    tile t;
    memset(&t, 0, sizeof t);
    for (int64_t item = 0; item < p->batch; item++) {
        view va = view_of(a, p->type_a, p->op_a, p->lda, item * p->stride_a);
        view vb = view_of(b, p->type_b, p->op_b, p->ldb, item * p->stride_b);
        for (int64_t i = 0; i < p->m; i += TILE_M) {
            for (int64_t j = 0; j < p->n; j += TILE_N) {
                int rows = clip(p->m - i, TILE_M), cols = clip(p->n - j, TILE_N);
                compute_tile(&va, &vb, i, j, rows, cols, depth, &t);
                int64_t first = item * p->stride_c + i * p->ldc + j;
                for (int r = 0; r < rows; r++)
                    store_row((jg_type)p->type_c, c, first + r * p->ldc, cols, t.acc[r], alpha, beta);
            }
        }
    }
    return JG_OK;
}
