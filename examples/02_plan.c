/* A plan: choose the kernel once, run it many times, and ask what was chosen and why.
 *
 * jg_gemm looks a kernel up at each call; a plan holds on to it, so that a loop pays for nothing but the launch.
 * The problem is given as text, as the tools take it: `02_plan 196x768x768:f16`. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "jitgemm.h"

#define CHECK(call)                                                                     \
    do {                                                                                \
        jg_status status = (call);                                                      \
        if (status != JG_OK) {                                                          \
            fprintf(stderr, "%s: %s\n", jg_status_name(status), jg_last_error());       \
            exit(EXIT_FAILURE);                                                         \
        }                                                                               \
    } while (0)

enum { RUNS = 100, FLOAT_BYTES = 4 }; /* no element type is larger than a float */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void print_details(const jg_plan *plan)
{
    jg_plan_details d;
    CHECK(jg_plan_info(plan, &d));
    printf("kernel         %s\nnumeric class  %s\n", d.kernel, d.numeric_class);
    if (d.source == JG_SOURCE_CPU) return; /* the cpu device runs no kernel, so it has no tiles */
    printf("tile           %d x %d x %d, %d stages, %d threads\n", d.tile_m, d.tile_n, d.tile_k, d.stages, d.threads);
    printf("grid           %lld x %lld blocks, %.2f waves\n", (long long)d.grid_x, (long long)d.grid_y, d.waves);
    printf("compile time   %.0f ms\n", d.compile_ms);
}

/* Sized as snprintf: 8 KiB hold the whole text for any problem; a longer one would be cut, not refused. */
static void print_explanation(jg_context *context, const jg_problem *problem)
{
    static char text[8192];
    CHECK(jg_plan_explain(context, problem, text, sizeof text, NULL));
    printf("\nHow it was chosen:\n%s\n", text);
}

int main(int argc, char **argv)
{
    jg_context *context;
    jg_problem problem = {0};
    jg_plan *plan;
    /* A plan is to have the problem's own kernel at once, and may wait for it. */
    const jg_options options = {.compile = JG_COMPILE_WAIT};
    CHECK(jg_open(&options, &context));
    CHECK(jg_problem_parse(argc > 1 ? argv[1] : "128x128x128:f16", &problem));
    if (problem.batch > 1 || problem.lda || problem.ldb || problem.ldc) {
        fprintf(stderr, "this example allocates dense matrices, without batch\n");
        return EXIT_FAILURE;
    }

    void *a, *b, *c; /* what is in them does not matter here */
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, (size_t)(problem.m * problem.k) * FLOAT_BYTES, &a));
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, (size_t)(problem.k * problem.n) * FLOAT_BYTES, &b));
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, (size_t)(problem.m * problem.n) * FLOAT_BYTES, &c));
    jg_operands operands = {.a = a, .b = b, .c = c};

    /* The slow step: may compile. Everything after it is fast. */
    CHECK(jg_plan_create(context, &problem, &plan));

    CHECK(jg_plan_run(plan, &operands)); /* warm up */
    CHECK(jg_synchronize(context, NULL));
    double start_us = now_us();
    for (int i = 0; i < RUNS; i++) CHECK(jg_plan_run(plan, &operands));
    CHECK(jg_synchronize(context, NULL));
    printf("%d runs       %.2f us each\n", RUNS, (now_us() - start_us) / RUNS);

    print_details(plan);
    print_explanation(context, &problem);

    jg_plan_destroy(plan); /* before the context closes */
    CHECK(jg_free(context, JG_DEVICE_MEMORY, a));
    CHECK(jg_free(context, JG_DEVICE_MEMORY, b));
    CHECK(jg_free(context, JG_DEVICE_MEMORY, c));
    CHECK(jg_close(context));
    return EXIT_SUCCESS;
}
