/* Help for who lays out matrices: bytes of a type, good leading dimensions, and two elements in a byte. Plain arithmetic on host
 * memory; needs no context. */
#include "problem.h"
#include "status.h"

#define ROW_BYTES 16        /* what a row begins at a multiple of: the widest load */
#define LONG_ROW_BYTES 128  /* and from LONG_FROM_BYTES on: a line of the cache */
#define LONG_FROM_BYTES 1024

int64_t jg_type_bytes(jg_type type, int64_t elements)
{
    const unsigned bits = type_bits(type);
    int64_t bytes;
    if (bits == 0 || elements < 0) return 0;
    if (bits < 8) return type_row_bytes(type, elements);
    return __builtin_mul_overflow(elements, (int64_t)(bits / 8), &bytes) ? INT64_MAX : bytes;
}

int64_t jg_good_ld(jg_type type, int64_t length)
{
    const unsigned bits = type_bits(type);
    int64_t rounded;
    if (bits == 0 || length < 0) return 0;
    const int64_t bytes = jg_type_bytes(type, length) >= LONG_FROM_BYTES ? LONG_ROW_BYTES : ROW_BYTES;
    const int64_t unit = bytes * 8 / bits; /* elements */
    if (__builtin_add_overflow(length, unit - 1, &rounded)) return 0;
    return rounded - rounded % unit;
}

/* A matrix in one of the two forms, under the names of the call that has it. */
typedef struct side {
    const char *name, *ld_name;
    const void *data;
    int64_t ld;
    int is_packed;
} side;

static jg_status check_side(const char *call, const side *x, int64_t rows, int64_t cols)
{
    int64_t end;
    if (!x->data && rows > 0 && cols > 0) return status_set(JG_ERR_NULL, "%s: %s is null", call, x->name);
    if (x->ld < cols)
        return status_set(JG_ERR_LEADING_DIMENSION, "%s: %s = %lld is too small; a row has %lld elements; use %lld or more", call,
                          x->ld_name, (long long)x->ld, (long long)cols, (long long)(x->is_packed ? cols + cols % 2 : cols));
    if (x->is_packed && x->ld % 2 != 0)
        return status_set(JG_ERR_LEADING_DIMENSION, "%s: %s = %lld is odd, and two elements are in a byte; use %lld", call,
                          x->ld_name, (long long)x->ld, (long long)x->ld + (x->ld < INT64_MAX ? 1 : -1));
    if (rows > 0 && (__builtin_mul_overflow(rows - 1, x->ld, &end) || __builtin_add_overflow(end, cols, &end)))
        return status_set(JG_ERR_SIZE, "%s: %s ends beyond 2^63 - 1 elements: rows = %lld, %s = %lld; reduce them", call, x->name,
                          (long long)rows, x->ld_name, (long long)x->ld);
    return JG_OK;
}

static jg_status check_sides(const char *call, const side *from, const side *to, int64_t rows, int64_t cols)
{
    if (rows < 0 || cols < 0)
        return status_set(JG_ERR_SIZE, "%s: %s = %lld is negative", call, rows < 0 ? "rows" : "cols",
                          (long long)(rows < 0 ? rows : cols));
    RETURN_IF_ERROR(check_side(call, from, rows, cols));
    return check_side(call, to, rows, cols);
}

/* Nothing may be written if there is one, so all are looked at first. */
static jg_status check_range(const int8_t *source, int64_t ld, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            const int value = source[i * ld + j];
            if (value < -8 || value > 7)
                return status_set(JG_ERR_VALUE, "jg_pack_s4: source has %d in row %lld, column %lld, counted from 0; use -8 to 7",
                                  value, (long long)i, (long long)j);
        }
    return JG_OK;
}

jg_status jg_pack_s4(const int8_t *source, int64_t ld_source, int64_t rows, int64_t cols, void *destination, int64_t ld)
{
    const side from = {"source", "ld_source", source, ld_source, 0}, to = {"destination", "ld", destination, ld, 1};
    RETURN_IF_ERROR(check_sides("jg_pack_s4", &from, &to, rows, cols));
    if (cols == 0) return JG_OK;
    RETURN_IF_ERROR(check_range(source, ld_source, rows, cols));
    for (int64_t i = 0; i < rows; i++) {
        const int8_t *in = source + i * ld_source;
        uint8_t *out = (uint8_t *)destination + i * (ld / 2);
        for (int64_t j = 0; j + 1 < cols; j += 2) out[j / 2] = (uint8_t)((in[j] & 15) | (in[j + 1] & 15) << 4);
        if (cols % 2) out[cols / 2] = (uint8_t)(in[cols - 1] & 15);
    }
    return JG_OK;
}

/* The four low bits, as two's complement. */
static int8_t widened(unsigned bits)
{
    return (int8_t)((int)((bits & 15) ^ 8) - 8);
}

jg_status jg_unpack_s4(const void *source, int64_t ld, int64_t rows, int64_t cols, int8_t *destination, int64_t ld_destination)
{
    const side from = {"source", "ld", source, ld, 1}, to = {"destination", "ld_destination", destination, ld_destination, 0};
    RETURN_IF_ERROR(check_sides("jg_unpack_s4", &from, &to, rows, cols));
    if (cols == 0) return JG_OK;
    for (int64_t i = 0; i < rows; i++) {
        const uint8_t *in = (const uint8_t *)source + i * (ld / 2);
        int8_t *out = destination + i * ld_destination;
        for (int64_t j = 0; j < cols; j++) out[j] = widened((unsigned)in[j / 2] >> j % 2 * 4);
    }
    return JG_OK;
}
