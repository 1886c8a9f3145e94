/* Golden counters: what the software GPU counts for a set of products must be what tests/golden/counters.txt says, so that a
 * change that adds memory sectors, bank conflicts or barriers shows at once, with both values.
 *
 * Memory traffic, stores' bank conflicts, barriers and mma come from the templates alone and are compared exactly. How many
 * other instructions there are, and loads from shared memory that may be hoisted or split, is the compiler's affair too, and
 * not even the same in each process: those may be off by 10 percent, and are compared only under the NVRTC that the file was
 * written with. Where the compiler splits a vector load its halves may conflict (once in several hundred compiles there were
 * 8,192 cycles of that in 262,144): conflicts of loads may be off by 5 percent of the cycles that loads take; a layout that
 * conflicts costs far more.
 * JG_GOLDEN_WRITE=1 writes the file anew. */
#include "jitgemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GOLDEN_FILE "tests/golden/counters.txt"

static const char *const products[] = {
    "128x128x128:f16:generic", "128x128x128:f16:specialised", "256x256x256:f16:specialised", "256x256x256:f16:nt:specialised",
    "256x256x256:f16:tn:specialised", "256x256x256:f16-f32:specialised", "127x193x63:f16:generic", "127x193x63:f16:specialised",
    "128x192x64:bf16:specialised", "256x256x256:generic", "256x256x256:specialised", "256x256x256:nt:specialised",
    "255x257x40:generic", "255x257x40:specialised", "64x64x64x5:f16:specialised", "1x512x512:generic",
    "128x128x128:s8:nt:specialised", "128x128x128:s8:specialised", "127x193x63:s8:nt:specialised", "128x128x128:f16.s4:specialised",
    "128x128x128:tf32:specialised", "128x128x128:3xtf32:generic",
};
#define PRODUCTS (sizeof products / sizeof products[0])
static const char *const devices[] = {"orin-agx", "h200"};

/* name, percent that it may be off because the compiler has a say in it, of which golden value */
#define COUNTERS(X) \
    X(blocks, 0, blocks) X(global_load_requests, 0, global_load_requests) \
    X(global_load_sectors, 0, global_load_sectors) X(global_store_requests, 0, global_store_requests) \
    X(global_store_sectors, 0, global_store_sectors) X(shared_load_requests, 10, shared_load_requests) \
    X(shared_load_cycles, 10, shared_load_cycles) X(shared_load_conflicts, 5, shared_load_cycles) \
    X(shared_store_requests, 0, shared_store_requests) X(shared_store_cycles, 0, shared_store_cycles) \
    X(shared_store_conflicts, 0, shared_store_conflicts) X(barriers, 0, barriers) X(mma, 0, mma) X(fma, 0, fma) \
    X(copy, 0, copy) X(instructions, 10, instructions) X(branch, 10, branch) \
    X(divergent_branches, 10, divergent_branches)

static char compiler[64]; /* "NVRTC 13.0" */

/* Fills c; 0 if there is no compiler. */
static int count(const char *device, const char *text, jg_counters *c)
{
    jg_context *context;
    jg_problem p = {0};
    jg_plan *plan;
    void *blocks[3];
    setenv("JITGEMM_SWGPU_DEVICE", device, 1);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .driver_path = "swgpu"};
    if (jg_open(&options, &context) != JG_OK || jg_problem_parse(text, &p) != JG_OK) fail_msg("%s: %s", text, jg_last_error());
    const jg_status status = jg_plan_create(context, &p, &plan);
    if (status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", jg_last_error());
        jg_close(context);
        return 0;
    }
    if (status != JG_OK) fail_msg("%s: %s", text, jg_last_error());
    const size_t bytes = (size_t)1 << 20;
    char *zeros = calloc(bytes, 1);
    assert_non_null(zeros);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jg_alloc(context, JG_DEVICE_MEMORY, bytes, &blocks[i]), JG_OK);
        assert_int_equal(jg_copy(context, blocks[i], zeros, bytes), JG_OK);
    }
    free(zeros);
    const jg_operands data = {.a = blocks[0], .b = blocks[1], .c = blocks[2]};
    if (jg_plan_run(plan, &data) != JG_OK || jg_synchronize(context, NULL) != JG_OK) fail_msg("%s: %s", text, jg_last_error());
    assert_int_equal(jg_launch_counters(context, c), JG_OK);
    if (!compiler[0]) {
        jg_plan_details details;
        jg_cache *cache;
        jg_cache_entry entry;
        jg_plan_info(plan, &details);
        if (jg_cache_open(getenv("JITGEMM_CACHE"), 0, &cache) == JG_OK) {
            if (jg_cache_find(cache, details.kernel, &entry) == JG_OK) snprintf(compiler, sizeof compiler, "%.10s", entry.provenance);
            jg_cache_close(cache);
        }
    }
    for (int i = 0; i < 3; i++) jg_free(context, JG_DEVICE_MEMORY, blocks[i]);
    jg_plan_destroy(plan);
    assert_int_equal(jg_close(context), JG_OK);
    return 1;
}

static size_t format(char *line, size_t size, const char *device, const char *text, const jg_counters *c)
{
    int n = snprintf(line, size, "%s %s", device, text);
#define PUT(name, percent, whole) n += snprintf(line + n, size - (size_t)n, " " #name "=%llu", (unsigned long long)c->name);
    COUNTERS(PUT)
#undef PUT
    return (size_t)n;
}

/* The value of a name in a golden line, or -1. */
static long long golden_value(const char *line, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %s=", name);
    const char *at = strstr(line, word);
    return at ? atoll(at + strlen(word)) : -1;
}

static int is_off(long long value, long long golden, int percent, long long whole)
{
    const long long difference = value > golden ? value - golden : golden - value;
    return golden < 0 || whole < 0 || difference * 100 > whole * percent;
}

static int compare(const char *golden, const char *device, const char *text, const jg_counters *c, int same_compiler)
{
    int different = 0;
#define CHECK(name, percent, whole)                                                                                    \
    if ((!percent || same_compiler) &&                                                                                 \
        is_off((long long)c->name, golden_value(golden, #name), percent, golden_value(golden, #whole))) {              \
        printf("FAIL %s %s: %s is %llu, was %lld\n", device, text, #name, (unsigned long long)c->name, golden_value(golden, #name)); \
        different++;                                                                                                   \
    }
    COUNTERS(CHECK)
#undef CHECK
    return different;
}

static void write_golden(void)
{
    char line[2048];
    jg_counters c;
    FILE *file = fopen(GOLDEN_FILE, "w");
    assert_non_null(file);
    for (size_t d = 0; d < 2; d++)
        for (size_t i = 0; i < PRODUCTS; i++) {
            if (!count(devices[d], products[i], &c)) fail_msg("no compiler");
            if (d == 0 && i == 0) fprintf(file, "# %s\n", compiler);
            format(line, sizeof line, devices[d], products[i], &c);
            fprintf(file, "%s\n", line);
        }
    assert_int_equal(fclose(file), 0);
}

static void counters_are_as_recorded(void **state)
{
    (void)state;
    char line[2048], key[256], written_with[64] = "";
    jg_counters c;
    size_t found = 0, different = 0;
    if (getenv("JG_GOLDEN_WRITE")) write_golden();
    FILE *file = fopen(GOLDEN_FILE, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#') {
            snprintf(written_with, sizeof written_with, "%.60s", line + 2);
            continue;
        }
        for (size_t d = 0; d < 2; d++)
            for (size_t i = 0; i < PRODUCTS; i++) {
                snprintf(key, sizeof key, "%s %s ", devices[d], products[i]);
                if (strncmp(line, key, strlen(key)) != 0) continue;
                if (!count(devices[d], products[i], &c)) skip();
                found++;
                different += (size_t)compare(line, devices[d], products[i], &c, strcmp(compiler, written_with) == 0);
            }
    }
    fclose(file);
    if (strcmp(compiler, written_with) != 0) printf("SKIP instruction counts: recorded with %s, this is %s\n", written_with, compiler);
    assert_int_equal(found, 2 * PRODUCTS);
    assert_int_equal(different, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counters_are_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
