/* Compile ahead of time from a program of your own, with a progress display and a way to stop.
 *
 * A pipeline does this while it starts, for the sizes it knows it will need: afterwards jg_gemm finds every
 * kernel loaded. A second run finds them all in the cache file. To do the same without writing a program,
 * use the tool jitgemm-prewarm. */
#include <stdio.h>
#include <stdlib.h>

#include "jitgemm.h"

#define CHECK(call)                                                                     \
    do {                                                                                \
        jg_status status = (call);                                                      \
        if (status != JG_OK) {                                                          \
            fprintf(stderr, "%s: %s\n", jg_status_name(status), jg_last_error());       \
            exit(EXIT_FAILURE);                                                         \
        }                                                                               \
    } while (0)

/* The sizes of a small network, as texts: the matrices of a vision transformer's layers in half precision. */
static const char *const sizes[] = {
    "197x2304x768:f16", "197x197x64x12:f16:nt", "197x64x197x12:f16", "197x768x768:f16", "197x3072x768:f16",
    "197x768x3072:f16",
};
enum { COUNT = sizeof sizes / sizeof *sizes };

/* Called once for each kernel, one call at a time, maybe on another thread. */
static int show(void *user, const jg_progress *progress)
{
    static const char *const outcomes[] = {"compiled", "cached", "failed"};
    int *failures = user;
    printf("%zu of %zu  %-8s %4.0f ms  %s\n", progress->done, progress->total, outcomes[progress->outcome],
           progress->ms, progress->problem);
    if (progress->outcome == JG_FAILED) {
        fprintf(stderr, "%s\n", progress->error);
        ++*failures;
    }
    return *failures > 3; /* nonzero stops: no use in going on when nothing compiles */
}

int main(void)
{
    jg_context *context;
    jg_problem problems[COUNT] = {0};
    CHECK(jg_open(NULL, &context));
    for (int i = 0; i < COUNT; i++) CHECK(jg_problem_parse(sizes[i], &problems[i]));

    /* One compile a processor; the generic kernels too, so that a size nobody thought of is served as well. */
    int failures = 0;
    jg_prewarm_options options = {.generic_set = 1, .progress = show, .user = &failures};
    jg_prewarm_result result;
    CHECK(jg_prewarm(context, problems, COUNT, &options, &result));
    printf("compiled %zu, cached %zu, failed %zu\n", result.compiled, result.cached, result.failed);

    /* What a pipeline wants to know before its first frame: nothing is left to compile. */
    jg_stats stats;
    CHECK(jg_cache_stats(context, &stats));
    printf("%llu kernels, %llu bytes in %s\n", (unsigned long long)stats.disk_entries,
           (unsigned long long)stats.disk_bytes, *stats.path ? stats.path : "memory only");
    CHECK(jg_close(context));
    return EXIT_SUCCESS;
}
