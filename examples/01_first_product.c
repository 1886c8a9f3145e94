/* The smallest complete program: one product of two float matrices.
 *
 *         | 1 2 3 |       |  7  8 |               |  58  64 |
 *     A = | 4 5 6 |   B = |  9 10 |   C = A * B = | 139 154 |
 *                         | 11 12 |
 *
 * It runs on the GPU if there is one and on the cpu if there is none; nothing below asks which. */
#include <stdio.h>
#include <stdlib.h>

#include "jitgemm.h"

/* Every jitgemm call returns a status; jg_last_error() says in words what was wrong and what to do. */
#define CHECK(call)                                                                     \
    do {                                                                                \
        jg_status status = (call);                                                      \
        if (status != JG_OK) {                                                          \
            fprintf(stderr, "%s: %s\n", jg_status_name(status), jg_last_error());       \
            exit(EXIT_FAILURE);                                                         \
        }                                                                               \
    } while (0)

enum { M = 2, N = 2, K = 3 };

int main(void)
{
    const float a[M * K] = {1, 2, 3, 4, 5, 6};
    const float b[K * N] = {7, 8, 9, 10, 11, 12};
    float c[M * N];

    /* No options: the GPU or else the cpu, and the user's cache of compiled kernels. */
    jg_context *context;
    CHECK(jg_open(NULL, &context));

    /* Matrices must lie in the device's memory. */
    void *device_a, *device_b, *device_c;
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, sizeof a, &device_a));
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, sizeof b, &device_b));
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, sizeof c, &device_c));
    CHECK(jg_copy(context, device_a, a, sizeof a));
    CHECK(jg_copy(context, device_b, b, sizeof b));

    /* The problem says what to compute, the operands on which data. Zero means the default everywhere:
     * float, row-major, densely packed, not transposed, alpha = 1, beta = 0. */
    jg_problem problem = {.m = M, .n = N, .k = K};
    jg_operands operands = {.a = device_a, .b = device_b, .c = device_c};
    CHECK(jg_gemm(context, &problem, &operands));

    /* The product is only queued when jg_gemm returns; jg_copy waits for it. */
    CHECK(jg_copy(context, c, device_c, sizeof c));
    for (int i = 0; i < M; i++) printf("%g %g\n", c[i * N], c[i * N + 1]);

    CHECK(jg_free(context, JG_DEVICE_MEMORY, device_a));
    CHECK(jg_free(context, JG_DEVICE_MEMORY, device_b));
    CHECK(jg_free(context, JG_DEVICE_MEMORY, device_c));
    CHECK(jg_close(context));
    return EXIT_SUCCESS;
}
