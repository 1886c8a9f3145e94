/* A video pipeline in small: frames whose matrix sizes are known only when they arrive, and no frame may wait for a compiler.
 *
 * A size that was never seen runs at once on a generic kernel; a worker thread makes the size's own kernel meanwhile, and
 * jg_poll, called where the frame has been waited for anyway, puts it in place. The results have the same bits either way.
 * The number of detections changes with every frame: marked as dynamic, all of them share one kernel. */
#include <math.h>
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

enum { FRAMES = 60, WIDEST = 256 };

static double now_ms(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* What a camera might ask for: the region's width changes every 20 frames, the number of detections with every frame. */
static void problems_of_frame(int frame, jg_problem *region, jg_problem *detections)
{
    static const int widths[] = {96, 160, 112};
    const int width = widths[frame / 20 % 3];
    *region = (jg_problem){.m = width, .n = 64, .k = 48};
    *detections = (jg_problem){.m = 1 + frame * 7 % 40, .n = 64, .k = 64, .dynamic = JG_DYNAMIC_M};
}

int main(void)
{
    const size_t bytes = sizeof(float) * WIDEST * WIDEST;
    float *host = malloc(bytes);
    void *a, *b, *c;
    jg_context *context;
    jg_stats stats;
    double slowest = 0;

    /* Without a cache or factory file that has the generic kernels, the first call would have to wait for one to be compiled.
     * At boot `jitgemm-prewarm --generic` sees to that; here the program does it itself. */
    const jg_options options = {.resident = JG_RESIDENT_F32};
    const jg_prewarm_options generic = {.types = JG_RESIDENT_F32};
    jg_prewarm_result made;
    if (!host) return EXIT_FAILURE;
    CHECK(jg_open(&options, &context));
    if (jg_prewarm(context, NULL, 0, &generic, &made) == JG_OK)
        printf("generic kernels: %zu compiled, %zu were there\n", made.compiled, made.cached);
    else
        printf("SKIP compiling: %s\n", jg_last_error()); /* the cpu device computes all the same */

    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &a));
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &b));
    CHECK(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &c));
    for (size_t i = 0; i < bytes / sizeof(float); i++) host[i] = (float)(i % 7) - 3;
    CHECK(jg_copy(context, a, host, bytes));
    CHECK(jg_copy(context, b, host, bytes));

    for (int frame = 0; frame < FRAMES; frame++) {
        jg_problem problems[2];
        const jg_operands data = {.a = a, .b = b, .c = c};
        problems_of_frame(frame, &problems[0], &problems[1]);
        const double start = now_ms();
        for (int i = 0; i < 2; i++) CHECK(jg_gemm(context, &problems[i], &data));
        slowest = fmax(slowest, now_ms() - start);
        CHECK(jg_synchronize(context, NULL)); /* the frame is waited for ... */
        CHECK(jg_poll(context, NULL, NULL));  /* ... so that loading a kernel here makes nobody wait */
    }

    CHECK(jg_cache_stats(context, &stats));
    printf("%d frames: %llu products on generic kernels, %llu on their own; %llu went over; calls that waited: %llu\n", FRAMES,
           (unsigned long long)stats.launches_generic, (unsigned long long)stats.launches_own, (unsigned long long)stats.swaps,
           (unsigned long long)stats.waits);
    printf("slowest frame's calls: %.3f ms (on a device without a GPU that includes the products themselves)\n", slowest);
    CHECK(jg_free(context, JG_DEVICE_MEMORY, a));
    CHECK(jg_free(context, JG_DEVICE_MEMORY, b));
    CHECK(jg_free(context, JG_DEVICE_MEMORY, c));
    CHECK(jg_close(context));
    free(host);
    return EXIT_SUCCESS;
}
