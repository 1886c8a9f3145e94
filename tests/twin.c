/* The software GPU beside a GPU: runs the same product, compares the bits. */
#include "twin.h"
#include "on_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)480 << 20)

static jg_context *twin;
static void *arena;

typedef struct tally {
    long products;
    long long elements, different;
    double largest; /* |GPU - software GPU| / bound of a result */
} tally;

static tally tallies[2]; /* f32 in; other types in */

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
    return jg_alloc(twin, JG_DEVICE_MEMORY, ARENA_BYTES, &arena) == JG_OK ? 0 : -1;
}

void twin_close(void)
{
    if (!twin) return;
    jg_free(twin, JG_DEVICE_MEMORY, arena);
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
    jg_operands data;
    jg_status status = on_device_upload(twin, arena, ARENA_BYTES, ref, &alpha, &beta, &data);
    if (status == JG_OK) status = jg_gemm(twin, &ref->problem, &data);
    if (status == JG_OK) status = jg_synchronize(twin, NULL);
    return status == JG_OK ? on_device_download(twin, &data, ref, out) : status;
}

/* What one unit in the last place is of a value, at most; 1 for integers. */
static double last_place(jg_type type, double value)
{
    switch (type) {
    case JG_F32: return fabs(value) * 0x1p-23;
    case JG_F16: return fabs(value) * 0x1p-10;
    case JG_BF16: return fabs(value) * 0x1p-7;
    case JG_E4M3: return fabs(value) * 0x1p-3;
    case JG_E5M2: return fabs(value) * 0x1p-2;
    default: return 1;
    }
}

/* Goes through the elements that differ. The bound is that of float32 sums in any order, and one place of C's type. */
static void measure(const reference *ref, const unsigned char *other, float alpha, float beta, tally *t, double *worst)
{
    const size_t elements = (size_t)(ref->m * ref->n) + 1;
    double *r = malloc(elements * sizeof *r), *e = malloc(elements * sizeof *e);
    reference copy = *ref;
    if (!r || !e) abort();
    copy.c.block = (unsigned char *)other;
    for (int64_t item = 0; item < ref->batch; item++) {
        reference_product(ref, item, alpha, beta, r, e);
        for (int64_t at = 0; at < ref->m * ref->n; at++) {
            const int64_t i = at / ref->n, j = at % ref->n;
            if (reference_get_bits(&ref->c, item, i, j) == reference_get_bits(&copy.c, item, i, j)) continue;
            const double difference = fabs(reference_get(&ref->c, item, i, j) - reference_get(&copy.c, item, i, j));
            const double ratio = difference / (e[at] + last_place(ref->c.type, r[at]));
            t->different++;
            if (!(ratio <= *worst)) *worst = ratio;
        }
    }
    free(r);
    free(e);
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
    static const char *const names[] = {"f32", "other types"};
    for (int i = 0; i < 2; i++)
        printf("# GPU against software GPU, %s: %ld products, %lld elements, %lld with other bits, largest difference %.3g of the "
               "bound\n", names[i], tallies[i].products, tallies[i].elements, tallies[i].different, tallies[i].largest);
}
