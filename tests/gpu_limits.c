/* Sizes at the limits, on a GPU: offsets past 2^31 and 2^32 elements, m and n in the millions, batches above 65,535.
 *
 * Offsets: three items (or rows) that lie 2^31 + 1024 elements apart, each of small integers, so that results are exact.
 * Where an offset cut to 31 or 32 bits would point, A and B hold NaN (or a number that spoils the sum) and C holds a mark
 * that must stay. That takes up to 52 GB of device memory: skipped, with the reason, where there is less, as on the software
 * GPU. */
#include "jitgemm.h"
#include "reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FAR (((int64_t)1 << 31) + 1024) /* cut, it is past the first item */
#define MOST_FAR_BYTES ((size_t)(2 * FAR + 4096) * 4)
#define MARK 0x5a
#define SIZE 17 /* rows and columns of a far item, at most */

static jg_context *gpu;
static void *far_memory[3];
static char why_not[512], why_not_far[512];

static int open_gpu(void **state)
{
    (void)state;
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT};
    const jg_problem tiny = {.m = 1, .n = 1, .k = 1};
    if (jg_open(&options, &gpu) != JG_OK || jg_prewarm(gpu, &tiny, 1, NULL, NULL) != JG_OK) {
        snprintf(why_not, sizeof why_not, "%s", jg_last_error());
        jg_close(gpu);
        gpu = NULL;
        return 0;
    }
    const char *driver = getenv("JITGEMM_DRIVER");
    if (driver && strcmp(driver, "swgpu") == 0) {
        snprintf(why_not_far, sizeof why_not_far, "the software GPU has no %zu GB of memory", 3 * MOST_FAR_BYTES >> 30);
        return 0;
    }
    for (int i = 0; i < 3 && !why_not_far[0]; i++)
        if (jg_alloc(gpu, JG_DEVICE_MEMORY, MOST_FAR_BYTES, &far_memory[i]) != JG_OK)
            snprintf(why_not_far, sizeof why_not_far, "%s", jg_last_error());
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    if (!gpu) return 0;
    for (int i = 0; i < 3; i++) jg_free(gpu, JG_DEVICE_MEMORY, far_memory[i]);
    return jg_close(gpu) == JG_OK ? 0 : -1;
}

static void need(const char *reason)
{
    if (!reason[0]) return;
    print_message("SKIP %s\n", reason);
    skip();
}

static void must(jg_status status)
{
    if (status != JG_OK) fail_msg("%s: %s", jg_status_name(status), jg_last_error());
}

/* Small integers, other ones for each item, row and column. */
static int value(int matrix, int64_t item, int64_t i, int64_t j)
{
    return (int)((item * 5 + i * 3 + j * 7 + matrix) % 5) - 2;
}

static void encode(unsigned char *row, jg_type type, int64_t at, double v)
{
    const int integer = (int)v;
    const uint32_t bits = type == JG_F32 || type == JG_F16 || type == JG_BF16 ? reference_encode(type, v) : (uint32_t)integer;
    if (type == JG_S4) row[at / 2] = (unsigned char)(at % 2 ? (row[at / 2] & 15) | bits << 4 : (row[at / 2] & 0xf0) | (bits & 15));
    else memcpy(row + jg_type_bytes(type, at), &bits, (size_t)jg_type_bytes(type, 1));
}

/* Rows of a matrix: `ld` elements apart within an item, items `stride` apart. */
typedef struct layout {
    jg_type type;
    int64_t rows, cols, ld, stride;
} layout;

static char *address(int matrix, jg_type type, int64_t element)
{
    return (char *)far_memory[matrix] + jg_type_bytes(type, element);
}

/* Where an offset that is cut to so many bits would point; -1 if that is where it points. */
static int64_t cut(int64_t element, int bits)
{
    const int64_t low = element & (((int64_t)1 << bits) - 1);
    return low == element ? -1 : low;
}

/* NaN, or as many bits as there are, in a row at each place that a cut offset would reach. */
static void spoil(int matrix, const layout *l, int64_t items, unsigned char byte)
{
    unsigned char row[SIZE * 4];
    memset(row, byte, sizeof row);
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < l->rows; i++)
            for (int bits = 31; bits <= 32; bits++) {
                const int64_t at = cut(item * l->stride + i * l->ld, bits);
                if (at >= 0) must(jg_copy(gpu, address(matrix, l->type, at), row, (size_t)jg_type_bytes(l->type, l->cols)));
            }
}

static void put(int matrix, const layout *l, int64_t items)
{
    spoil(matrix, l, items, 0xff);
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < l->rows; i++) {
            unsigned char row[SIZE * 4] = {0};
            for (int64_t j = 0; j < l->cols; j++) encode(row, l->type, j, value(matrix, item, i, j));
            must(jg_copy(gpu, address(matrix, l->type, item * l->stride + i * l->ld), row, (size_t)jg_type_bytes(l->type, l->cols)));
        }
}

/* Row-major, no transposes: C against sums of integers, and the marks. */
static void judge(const layout *c, int64_t items, int64_t k)
{
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < c->rows; i++) {
            unsigned char row[SIZE * 4], right[SIZE * 4] = {0};
            must(jg_copy(gpu, row, address(2, c->type, item * c->stride + i * c->ld), (size_t)jg_type_bytes(c->type, c->cols)));
            for (int64_t j = 0; j < c->cols; j++) {
                int sum = 0;
                for (int64_t x = 0; x < k; x++) sum += value(0, item, i, x) * value(1, item, x, j);
                encode(right, c->type, j, sum);
            }
            if (memcmp(row, right, (size_t)jg_type_bytes(c->type, c->cols)) != 0)
                fail_msg("item %lld, row %lld is wrong", (long long)item, (long long)i);
            for (int bits = 31; bits <= 32; bits++) {
                const int64_t at = cut(item * c->stride + i * c->ld, bits);
                if (at < 0) continue;
                must(jg_copy(gpu, row, address(2, c->type, at), (size_t)jg_type_bytes(c->type, c->cols)));
                for (int64_t b = 0; b < jg_type_bytes(c->type, c->cols); b++)
                    if (row[b] != MARK) fail_msg("item %lld, row %lld went to its offset cut to %d bits", (long long)item, (long long)i, bits);
            }
        }
}

static const jg_type types[][3] = {{JG_F32, JG_F32, JG_F32}, {JG_F16, JG_F16, JG_F16}, {JG_BF16, JG_BF16, JG_F32}, {JG_S8, JG_S8, JG_S32},
                                   {JG_S8, JG_S8, JG_S8},    {JG_S4, JG_S4, JG_S32},   {JG_F16, JG_S4, JG_F16}};
#define TYPES (sizeof types / sizeof types[0])

static void run_far(const jg_problem *p, layout a, layout b, layout c, int64_t items)
{
    spoil(2, &c, items, MARK);
    put(0, &a, items);
    put(1, &b, items);
    for (int form = JG_FORM_GENERIC; form <= JG_FORM_SPECIALISED; form++) {
        jg_problem q = *p;
        q.form = (jg_form)form;
        const jg_operands o = {.a = far_memory[0], .b = far_memory[1], .c = far_memory[2]};
        must(jg_gemm(gpu, &q, &o));
        must(jg_synchronize(gpu, NULL));
        judge(&c, items, p->k);
    }
}

static void test_far_items(void **state)
{
    (void)state;
    need(why_not);
    need(why_not_far);
    for (size_t t = 0; t < TYPES; t++)
        for (int size = 16; size <= SIZE; size++) {
            const int64_t even = size + size % 2;
            const jg_problem p = {.m = size, .n = size, .k = size, .batch = 3, .type_a = types[t][0], .type_b = types[t][1], .type_c = types[t][2],
                                  .lda = even, .ldb = even, .ldc = even, .stride_a = FAR, .stride_b = FAR, .stride_c = FAR};
            run_far(&p, (layout){p.type_a, size, size, even, FAR}, (layout){p.type_b, size, size, even, FAR},
                    (layout){p.type_c, size, size, even, FAR}, 3);
        }
}

static void test_far_rows(void **state)
{
    (void)state;
    need(why_not);
    need(why_not_far);
    for (size_t t = 0; t < TYPES; t++) {
        const jg_problem p = {.m = 3, .n = SIZE, .k = 3, .type_a = types[t][0], .type_b = types[t][1], .type_c = types[t][2], .lda = FAR, .ldb = FAR,
                              .ldc = FAR};
        run_far(&p, (layout){p.type_a, 3, 3, FAR, 0}, (layout){p.type_b, 3, SIZE, FAR, 0}, (layout){p.type_c, 3, SIZE, FAR, 0}, 1);
    }
}

static int is_software(void)
{
    return why_not_far[0] != 0;
}

/* A product of ones: every element of C is k, and as many as there are. */
static void ones(int64_t m, int64_t n, int64_t k, int64_t batch, jg_type type)
{
    const jg_problem p = {.m = m, .n = n, .k = k, .batch = batch, .type_a = type, .type_c = type, .stride_a = m * k, .stride_b = k * n,
                          .stride_c = m * n};
    const size_t element = (size_t)jg_type_bytes(type, 1), bytes_a = (size_t)(m * k * batch) * element,
                 bytes_b = (size_t)(k * n * batch) * element, bytes_c = (size_t)(m * n * batch) * element;
    const size_t most = bytes_a > bytes_b ? bytes_a > bytes_c ? bytes_a : bytes_c : bytes_b > bytes_c ? bytes_b : bytes_c;
    void *a, *b, *c;
    unsigned char *host = malloc(most), right[4];
    assert_non_null(host);
    for (size_t i = 0; i < most / element; i++) encode(host, type, (int64_t)i, 1);
    must(jg_alloc(gpu, JG_DEVICE_MEMORY, bytes_a, &a));
    must(jg_alloc(gpu, JG_DEVICE_MEMORY, bytes_b, &b));
    must(jg_alloc(gpu, JG_DEVICE_MEMORY, bytes_c, &c));
    must(jg_copy(gpu, a, host, bytes_a));
    must(jg_copy(gpu, b, host, bytes_b));
    encode(right, type, 0, (double)k);
    const int last = is_software() && batch > 1 ? JG_FORM_GENERIC : JG_FORM_SPECIALISED; /* a minute is saved */
    for (int form = JG_FORM_GENERIC; form <= last; form++) {
        jg_problem q = p;
        q.form = (jg_form)form;
        memset(host, 0xff, bytes_c);
        must(jg_copy(gpu, c, host, bytes_c));
        must(jg_gemm(gpu, &q, &(jg_operands){.a = a, .b = b, .c = c}));
        must(jg_synchronize(gpu, NULL));
        must(jg_copy(gpu, host, c, bytes_c));
        for (size_t i = 0; i < bytes_c; i += element)
            if (memcmp(host + i, right, element) != 0)
                fail_msg("%lldx%lldx%lldx%lld: element %zu is not k", (long long)m, (long long)n, (long long)k, (long long)batch, i / element);
    }
    free(host);
    jg_free(gpu, JG_DEVICE_MEMORY, a);
    jg_free(gpu, JG_DEVICE_MEMORY, b);
    jg_free(gpu, JG_DEVICE_MEMORY, c);
}

static void test_millions_of_rows(void **state)
{
    (void)state;
    need(why_not);
    const int64_t many = is_software() ? 40001 : 5000003;
    ones(many, 1, 3, 1, JG_F32);
    ones(many, 2, 1, 1, JG_F16);
}

static void test_millions_of_columns(void **state)
{
    (void)state;
    need(why_not);
    const int64_t many = is_software() ? 40001 : 5000003;
    ones(1, many, 3, 1, JG_F32);
    ones(2, many, 1, 1, JG_F16);
}

static void test_large_batches(void **state)
{
    (void)state;
    need(why_not);
    need(is_software() && getenv("JG_TEST_STRIDE") ? "two minutes on the software GPU; JG_TEST_STRIDE asks for a part of the tests" : "");
    ones(2, 1, 1, 65537, JG_F16);
    if (!is_software()) ones(3, 3, 3, 200000, JG_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_items),        cmocka_unit_test(test_far_rows),      cmocka_unit_test(test_millions_of_rows),
        cmocka_unit_test(test_millions_of_columns), cmocka_unit_test(test_large_batches),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
