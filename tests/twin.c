/* The software GPU beside a GPU: runs the same product, compares the bits. */
#include "twin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)160 << 20)

static jg_context *twin;
static void *arena[3];

typedef struct tally {
    long products;
    long long elements, different;
    double largest; /* |GPU - software GPU| / bound of a result */
} tally;

static tally tallies[2]; /* f32 in; 16-bit types in */

static const struct {
    int arch;
    const char *device;
} chips[] = {{75, "t4"}, {80, "a100"}, {86, "rtx3090"}, {87, "orin-agx"}, {89, "l4"},
             {90, "h200"}, {100, "b200"}, {110, "thor"}, {120, "rtx5090"}};

int twin_open(int arch)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (chips[i].arch == arch) setenv("JITGEMM_SWGPU_DEVICE", chips[i].device, 1);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .driver_path = "swgpu",
                                .memory_max_kernels = 100000};
    if (jg_open(&options, &twin) != JG_OK) return -1;
    for (int i = 0; i < 3; i++)
        if (jg_alloc(twin, JG_DEVICE_MEMORY, ARENA_BYTES, &arena[i]) != JG_OK) return -1;
    return 0;
}

void twin_close(void)
{
    if (!twin) return;
    for (int i = 0; i < 3; i++) jg_free(twin, JG_DEVICE_MEMORY, arena[i]);
    jg_close(twin);
    twin = NULL;
}

int twin_is_open(void)
{
    return twin != NULL;
}

/* Computes the problem of ref; its C block goes to out. */
static jg_status run(const reference *ref, float alpha, float beta, unsigned char *out)
{
    const reference_matrix *x[3] = {&ref->a, &ref->b, &ref->c};
    for (int i = 0; i < 3; i++) {
        jg_status status = jg_copy(twin, arena[i], i == 2 ? ref->before : x[i]->block, x[i]->block_bytes);
        if (status != JG_OK) return status;
    }
    const jg_operands data = {.a = (char *)arena[0] + ref->a.offset_bytes, .b = (char *)arena[1] + ref->b.offset_bytes,
                              .c = (char *)arena[2] + ref->c.offset_bytes, .alpha = &alpha, .beta = &beta};
    jg_status status = jg_gemm(twin, &ref->problem, &data);
    if (status == JG_OK) status = jg_synchronize(twin, NULL);
    return status == JG_OK ? jg_copy(twin, out, arena[2], ref->c.block_bytes) : status;
}

static size_t element_bytes(const reference *ref)
{
    return ref->c.type == JG_F32 ? 4 : 2;
}

/* Goes through the elements that differ. The bound is that of float32 sums in any order, and one place of C's type. */
static void measure(const reference *ref, const unsigned char *other, float alpha, float beta, tally *t, double *worst)
{
    const size_t elements = (size_t)(ref->m * ref->n) + 1;
    double *r = malloc(elements * sizeof *r), *s = malloc(elements * sizeof *s);
    reference copy = *ref;
    if (!r || !s) abort();
    copy.c.block = (unsigned char *)other;
    for (int64_t item = 0; item < ref->batch; item++) {
        reference_product(ref, item, alpha, beta, r, s);
        for (int64_t e = 0; e < ref->m * ref->n; e++) {
            const int64_t i = e / ref->n, j = e % ref->n;
            const size_t element = (size_t)(item * ref->c.stride + i * ref->c.row_step + j * ref->c.col_step);
            const size_t at = ref->c.offset_bytes + element * element_bytes(ref);
            if (memcmp(ref->c.block + at, other + at, element_bytes(ref)) == 0) continue;
            const double difference = fabs(reference_get(&ref->c, item, i, j) - reference_get(&copy.c, item, i, j));
            const double last_place = ref->c.type == JG_F32 ? 0x1p-23 : ref->c.type == JG_F16 ? 0x1p-10 : 0x1p-7;
            const double bound = (double)(ref->k > 8 ? ref->k : 8) * 0x1p-23 * s[e] + fabs(r[e]) * last_place;
            const double ratio = difference / bound;
            t->different++;
            if (!(ratio <= *worst)) *worst = ratio;
        }
    }
    free(r);
    free(s);
}

int twin_compare(const reference *ref, float alpha, float beta, int exact, char *text, size_t size)
{
    tally *t = &tallies[ref->a.type != JG_F32];
    unsigned char *out = malloc(ref->c.block_bytes);
    if (!out) abort();
    double worst = 0;
    int failed = 0;
    jg_status status = run(ref, alpha, beta, out);
    if (status != JG_OK) {
        snprintf(text, size, "software GPU: %s: %s", jg_status_name(status), jg_last_error());
        failed = 1;
    } else if (memcmp(out, ref->c.block, ref->c.block_bytes) != 0) {
        const long long before = t->different;
        measure(ref, out, alpha, beta, t, &worst);
        failed = exact || t->different == before || !(worst <= 1);
        snprintf(text, size, "the software GPU gives other bits in %lld elements, largest difference %.3g of the bound",
                 t->different - before, worst);
    }
    t->products++;
    t->elements += ref->batch * ref->m * ref->n;
    if (!(worst <= t->largest)) t->largest = worst;
    free(out);
    return failed;
}

void twin_report(void)
{
    static const char *const names[] = {"f32", "f16 and bf16"};
    for (int i = 0; i < 2; i++)
        printf("# GPU against software GPU, %s: %ld products, %lld elements, %lld with other bits, largest difference %.3g of the "
               "bound\n", names[i], tallies[i].products, tallies[i].elements, tallies[i].different, tallies[i].largest);
}
