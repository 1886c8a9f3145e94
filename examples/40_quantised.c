/* Quantised products, each checked against a plain loop.
 *
 * 1. A batch of u8 images times s8 weights: once as the exact s32 sums, and once all the way to the next layer's u8, with a scale
 *    and a bias for each output, relu, and the next layer's scale and zero point in the same kernel.
 * 2. f16 activations times 4-bit weights of which 64 neighbours share a scale and a zero point, as language models have them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jitgemm.h"

#define CHECK(call)                                                                     \
    do {                                                                                \
        jg_status status = (call);                                                      \
        if (status != JG_OK) {                                                          \
            fprintf(stderr, "%s: %s\n", jg_status_name(status), jg_last_error());       \
            exit(EXIT_FAILURE);                                                         \
        }                                                                               \
    } while (0)

enum { IMAGES = 32, PIXELS = 28 * 28, OUTPUTS = 64 };  /* part 1 */
enum { TOKENS = 8, INPUTS = 320, CHANNELS = 48, GROUP = 64, GROUPS = (INPUTS + GROUP - 1) / GROUP }; /* part 2 */

/* Whole numbers from low to high, the same in every run. */
static int draw(int low, int high)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return low + (int)((state >> 8) % (unsigned)(high - low + 1));
}

static void *to_device(jg_context *context, const void *data, size_t bytes)
{
    void *copy;
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &copy));
    CHECK(jg_copy(context, copy, data, bytes));
    return copy;
}

/* Multiplies into a result of `bytes`, which it brings back to the host. */
static void multiply(jg_context *context, const jg_problem *problem, jg_operands operands, void *result, size_t bytes)
{
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &operands.c));
    CHECK(jg_gemm(context, problem, &operands));
    CHECK(jg_synchronize(context, NULL));
    CHECK(jg_copy(context, result, operands.c, bytes));
    CHECK(jg_free(context, JG_DEVICE_MEMORY, operands.c));
}

static int report(const char *what, int wrong, int count)
{
    printf("%-44s %d of %d elements are wrong\n", what, wrong, count);
    return wrong;
}

/* ---- 1. images ---- */

static uint8_t images[IMAGES * PIXELS];
static int8_t weights[PIXELS * OUTPUTS];
static float scale[OUTPUTS], bias[OUTPUTS];
static const float next_scale = 24, next_zero = 8; /* of the u8 that the next layer takes */

static void draw_layer(void)
{
    for (int i = 0; i < IMAGES * PIXELS; i++) images[i] = (uint8_t)draw(0, 255);
    for (int i = 0; i < PIXELS * OUTPUTS; i++) weights[i] = (int8_t)draw(-127, 127);
    for (int j = 0; j < OUTPUTS; j++) {
        scale[j] = (float)draw(50, 150) * 1e-7f; /* that of the images times that of the weights of this output */
        bias[j] = (float)draw(-100, 100) * 0.01f;
    }
}

static int32_t sum_of(int i, int j)
{
    int32_t sum = 0;
    for (int k = 0; k < PIXELS; k++) sum += images[i * PIXELS + k] * weights[k * OUTPUTS + j];
    return sum;
}

/* In the header's own order (JG_EPILOGUE_...): each line is one rounding to float32. */
static uint8_t next_input(int32_t sum, int j)
{
    float x = scale[j] * (float)sum;
    x = x + bias[j];
    x = x > 0 ? x : 0;
    x = x * next_scale;
    x = x + next_zero;
    return (uint8_t)(x > 255 ? 255 : rintf(x));
}

static int run_images(jg_context *context)
{
    static int32_t sums[IMAGES * OUTPUTS];
    static uint8_t next[IMAGES * OUTPUTS];
    /* The type of C is s32 by default, as both operands are integers. */
    const jg_problem exact = {.m = IMAGES, .n = OUTPUTS, .k = PIXELS, .type_a = JG_U8, .type_b = JG_S8};
    jg_problem layer = exact;
    layer.type_c = JG_U8;
    layer.epilogue = JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_REQUANTIZE;
    layer.activation = JG_ACTIVATION_RELU;
    draw_layer();
    void *const memory[] = {to_device(context, images, sizeof images), to_device(context, weights, sizeof weights),
                            to_device(context, scale, sizeof scale), to_device(context, bias, sizeof bias)};
    const jg_operands operands = {.a = memory[0], .b = memory[1], .scale_n = memory[2], .bias_n = memory[3],
                                  .out_scale = next_scale, .out_zero = next_zero};
    multiply(context, &exact, operands, sums, sizeof sums);
    multiply(context, &layer, operands, next, sizeof next);
    int wrong_sums = 0, wrong_next = 0;
    for (int i = 0; i < IMAGES; i++)
        for (int j = 0; j < OUTPUTS; j++) {
            const int32_t sum = sum_of(i, j);
            wrong_sums += sums[i * OUTPUTS + j] != sum;
            wrong_next += next[i * OUTPUTS + j] != next_input(sum, j);
        }
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) CHECK(jg_free(context, JG_DEVICE_MEMORY, memory[i]));
    return report("u8 x s8 -> s32", wrong_sums, IMAGES * OUTPUTS) +
           report("u8 x s8 -> u8, scaled, biased, relu", wrong_next, IMAGES * OUTPUTS);
}

/* ---- 2. weights of 4 bits ---- */

/* f16 by its bits; enough for numbers of ordinary size. */
static uint16_t to_f16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) < 113u << 23) return 0; /* below the smallest normal one */
    const uint32_t rounded = (bits & 0x7fffffff) - (112u << 23) + 0xfff + (bits >> 13 & 1); /* to nearest even */
    return (uint16_t)(bits >> 31 << 15 | rounded >> 13);
}

static float from_f16(uint16_t half)
{
    const uint32_t magnitude = half & 0x7fffu, bits = (uint32_t)half >> 15 << 31 | ((magnitude << 13) + (112u << 23));
    float value;
    memcpy(&value, &bits, sizeof value);
    return magnitude ? value : 0;
}

static uint16_t activations[TOKENS * INPUTS];
static int8_t codes[CHANNELS * INPUTS];            /* a row has the weights of one channel */
static uint16_t group_scales[GROUPS * CHANNELS];
static int8_t group_zeros[GROUPS * CHANNELS];

static void draw_weights(void)
{
    for (int i = 0; i < TOKENS * INPUTS; i++) activations[i] = to_f16((float)draw(-256, 256) / 256);
    for (int i = 0; i < CHANNELS * INPUTS; i++) codes[i] = (int8_t)draw(-8, 7);
    for (int i = 0; i < GROUPS * CHANNELS; i++) {
        group_scales[i] = to_f16((float)draw(100, 200) * 1e-3f);
        group_zeros[i] = (int8_t)draw(-2, 2);
    }
}

/* A weight as the product sees it: in f16. */
static float weight(int k, int j)
{
    const int group = k / GROUP * CHANNELS + j;
    return from_f16(to_f16((float)(codes[j * INPUTS + k] - group_zeros[group]) * from_f16(group_scales[group])));
}

/* Half the distance of two numbers in f16, and what float32 sums may lose in any order. */
static int is_right(int i, int j, float got)
{
    double sum = 0, absolute = 0;
    for (int k = 0; k < INPUTS; k++) {
        const double product = (double)from_f16(activations[i * INPUTS + k]) * (double)weight(k, j);
        sum += product;
        absolute += fabs(product);
    }
    return fabs((double)got - sum) <= fabs(sum) * 0x1p-11 + absolute * INPUTS * 0x1p-23 + 0x1p-14;
}

static int run_weights(jg_context *context)
{
    static uint8_t packed[CHANNELS * INPUTS / 2];
    static uint16_t result[TOKENS * CHANNELS];
    const jg_problem problem = {.m = TOKENS, .n = CHANNELS, .k = INPUTS, .type_a = JG_F16, .type_b = JG_S4, .op_b = JG_T,
                                .group_k = GROUP, .zero_points = 1};
    draw_weights();
    /* Once, when a model is loaded: two to a byte. */
    CHECK(jg_pack_s4(codes, INPUTS, CHANNELS, INPUTS, packed, INPUTS));
    void *const memory[] = {to_device(context, activations, sizeof activations), to_device(context, packed, sizeof packed),
                            to_device(context, group_scales, sizeof group_scales),
                            to_device(context, group_zeros, sizeof group_zeros)};
    const jg_operands operands = {.a = memory[0], .b = memory[1], .group_scales = memory[2], .group_zeros = memory[3]};
    multiply(context, &problem, operands, result, sizeof result);
    int wrong = 0;
    for (int i = 0; i < TOKENS; i++)
        for (int j = 0; j < CHANNELS; j++) wrong += !is_right(i, j, from_f16(result[i * CHANNELS + j]));
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) CHECK(jg_free(context, JG_DEVICE_MEMORY, memory[i]));
    return report("f16 x s4 in groups of 64 -> f16", wrong, TOKENS * CHANNELS);
}

int main(void)
{
    jg_context *context;
    /* A program with time to spare at its start may wait for kernels. One without names the types in options.resident, and has
     * their generic kernels in its cache file: jitgemm-prewarm --generic=u8,f16. */
    const jg_options options = {.compile = JG_COMPILE_WAIT};
    CHECK(jg_open(&options, &context));
    const int wrong = run_images(context) + run_weights(context);
    CHECK(jg_close(context));
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
