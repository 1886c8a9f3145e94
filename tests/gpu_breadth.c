/* Every type, layout, epilogue, mode and shape beside every other: the rows of breadth.h on a GPU, on the software GPU
 * (JITGEMM_DRIVER=swgpu) or on the cpu device, judged by the double-precision oracle (reference.h).
 *
 * Every row runs in generic and in specialised form; both must stay within the bound, leave everything outside C alone, and agree
 * bit for bit. In strict mode the bits must be those of the plain loop. A refusal is a failure, but for the modes that sm_75 has
 * no instructions for, which are counted. Without a device every test is skipped, with the reason.
 *
 *   JG_TEST_CPU=1          the cpu device
 *   JG_TEST_STRIDE=N       the first of N parts of the rows, which has the most pairs; every N-th combination of types
 *   JG_TEST_TYPES=LIST     only these pairs, e.g. f32.f32,f16.s8; the rows then cover all that is left
 *   JG_TEST_TYPES_C=LIST   only these types of C, e.g. default,f16
 *   JG_TEST_PLAIN=1        only rows with nothing fused in and the default math
 *   JG_TEST_FILTER=PATTERN only these tests
 *   JG_TEST_TWIN=1         run each row on the software GPU too, as the same chip, and compare the bits (twin.h) */
#include "breadth.h"
#include "context.h"
#include "jitgemm.h"
#include "on_device.h"
#include "twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ARENA_BYTES ((size_t)64 << 20)
#define MAX_FAILURES_SHOWN 20

static jg_context *tested;
static char why_not[512];
static void *arena;
static size_t stride = 1;
static long rows_run, products, unsupported, failures;
static uint64_t compiled, from_file;
static double worst[BREADTH_PAIRS], lost[BREADTH_PAIRS];

static void print_log(void *user, jg_log_level level, const char *text)
{
    (void)user;
    if (level <= JG_LOG_WARNING) printf("# %s\n", text);
}

static int give_up(void)
{
    snprintf(why_not, sizeof why_not, "%s", jg_last_error());
    if (tested) jg_close(tested);
    tested = NULL;
    return 0;
}

static int is_cpu(void)
{
    return getenv("JG_TEST_CPU") != NULL;
}

static jg_status open_tested(void)
{
    const jg_options options = {.device = is_cpu() ? JG_DEVICE_CPU : JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .log = print_log,
                                .log_level = JG_LOG_WARNING, .memory_max_kernels = 100000};
    const jg_status status = jg_open(&options, &tested);
    return status == JG_OK ? jg_alloc(tested, JG_DEVICE_MEMORY, ARENA_BYTES, &arena) : status;
}

static int open_device(void **state)
{
    (void)state;
    if (getenv("JG_TEST_STRIDE")) stride = strtoul(getenv("JG_TEST_STRIDE"), NULL, 10);
    if (stride == 0) return -1;
    if (open_tested() != JG_OK) return give_up();
    const jg_problem tiny = {.m = 1, .n = 1, .k = 1};
    if (!is_cpu() && jg_prewarm(tested, &tiny, 1, NULL, NULL) == JG_ERR_NO_NVRTC) return give_up();
    const int number = tested->device.limits.arch->number;
    printf("# %s, sm_%d\n", is_cpu() ? "cpu device" : context_is_software(tested) ? "software GPU" : "GPU", number);
    reference_threads((int)sysconf(_SC_NPROCESSORS_ONLN));
    if (getenv("JG_TEST_TWIN") && !is_cpu() && !context_is_software(tested) && twin_open(number) != 0) {
        printf("FAIL twin: %s\n", jg_last_error());
        return -1;
    }
    return 0;
}

static void take_counts(void)
{
    jg_stats stats;
    jg_cache_stats(tested, &stats);
    compiled += stats.compiles;
    from_file += stats.disk_hits;
}

/* After an error that costs the device's context, in a fresh one, so that one bad kernel does not hide all others. */
static void open_again(void)
{
    take_counts();
    jg_close(tested);
    tested = NULL;
    if (open_tested() != JG_OK) fail_msg("cannot open the device again: %s", jg_last_error());
}

static int close_device(void **state)
{
    (void)state;
    if (!tested) return 0;
    take_counts();
    printf("# worst |C-R| / bound, and the most used of what is allowed before C's rounding:");
    for (int i = 0; i < BREADTH_PAIRS; i++)
        if (worst[i] > 0) printf(" %s %.3f %.3f", breadth_pair_names[i], worst[i], lost[i]);
    printf("\n# %ld rows, %ld products, %ld rows unsupported; %llu kernels compiled, %llu from the cache file; %ld failures\n",
           rows_run,
           products, unsupported, (unsigned long long)compiled, (unsigned long long)from_file, failures);
    if (twin_is_open()) twin_report();
    twin_close();
    jg_free(tested, JG_DEVICE_MEMORY, arena);
    return jg_close(tested) == JG_OK ? 0 : -1;
}

static void need_device(void)
{
    if (tested) return;
    print_message("SKIP no GPU or no compiler: %s\n", why_not);
    skip();
}

static void complain(const breadth_row *row, jg_form form, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void complain(const breadth_row *row, jg_form form, const char *format, ...)
{
    char text[JG_PROBLEM_TEXT_BYTES] = "?", reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    jg_problem p = row->problem;
    p.form = form;
    jg_problem_format(&p, text, sizeof text, NULL);
    if (failures++ < MAX_FAILURES_SHOWN)
        printf("FAIL row %llu %s (alpha %g beta %g%s, misaligned by %zu): %s\n", (unsigned long long)row->seed, text,
               (double)row->alpha,
               (double)row->beta, row->fill == REFERENCE_UNIFORM ? "" : ", small integers", row->misalign, reason);
}

/* No tensor cores for it, and no other way. */
static int may_be_unsupported(const jg_problem *p)
{
    const uint32_t mode = p->math & 15;
    return tested->device.limits.arch->number == 75 &&
        (mode == JG_MATH_TF32 || mode == JG_MATH_F32_3XTF32 || mode == JG_MATH_F16);
}

static void judge(const reference *ref, const breadth_row *row, jg_form form)
{
    const reference_result r = reference_check(ref, row->alpha, row->beta);
    if (r.worst > worst[row->pair]) worst[row->pair] = r.worst;
    if (r.lost > lost[row->pair]) lost[row->pair] = r.lost;
    if (r.failures || r.stray || (row->exact && r.inexact))
        complain(row, form,
                 "%lld of %lld over the bound (worst %.3g x), %lld inexact, %lld stray bytes; at item %lld (%lld, %lld): got "
                 "%.9g, expected %.9g", (long long)r.failures, (long long)r.checked, r.worst, (long long)r.inexact,
                     (long long)r.stray,
                 (long long)r.item, (long long)r.i, (long long)r.j, r.got, r.expected);
    else if (row->strict && reference_strict_differences(ref, row->alpha, row->beta))
        complain(row, form, "%lld elements have other bits than the plain loop",
                 (long long)reference_strict_differences(ref, row->alpha, row->beta));
}

static void compare_with_twin(const reference *ref, const breadth_row *row, jg_form form)
{
    char text[512];
    if (!twin_is_open()) return;
    const int exact = row->exact || row->strict;
    if (twin_compare(ref, row->alpha, row->beta, exact, text, sizeof text)) complain(row, form, "%s", text);
}

/* Runs one form. Returns whether C is in ref. */
static int run_form(reference *ref, const breadth_row *row, jg_form form)
{
    jg_operands data;
    ref->problem.form = form;
    jg_status status = on_device_upload(tested, arena, ARENA_BYTES, ref, &row->alpha, &row->beta, &data);
    if (status == JG_OK) status = jg_gemm(tested, &ref->problem, &data);
    if (status == JG_ERR_UNSUPPORTED && may_be_unsupported(&ref->problem)) {
        unsupported += form == JG_FORM_GENERIC;
        return 0;
    }
    if (status == JG_OK) status = jg_synchronize(tested, NULL);
    if (status == JG_OK) status = on_device_download(tested, &data, ref, ref->c.block);
    products += status == JG_OK;
    if (status != JG_OK) complain(row, form, "%s: %s", jg_status_name(status), jg_last_error());
    if (jg_status_is_fatal(status)) open_again();
    return status == JG_OK;
}

static void run_row(const breadth_row *row)
{
    reference ref;
    reference_make(&ref, &row->problem, row->fill, row->misalign, row->seed);
    unsigned char *const generic = malloc(ref.c.block_bytes);
    assert_non_null(generic);
    rows_run++;
    const int has_generic = run_form(&ref, row, JG_FORM_GENERIC);
    if (has_generic) {
        judge(&ref, row, JG_FORM_GENERIC);
        compare_with_twin(&ref, row, JG_FORM_GENERIC);
        memcpy(generic, ref.c.block, ref.c.block_bytes);
    }
    if (run_form(&ref, row, JG_FORM_SPECIALISED) && !(has_generic && memcmp(generic, ref.c.block, ref.c.block_bytes) == 0)) {
        if (has_generic) complain(row, JG_FORM_SPECIALISED, "specialised and generic differ in bits");
        judge(&ref, row, JG_FORM_SPECIALISED);
    }
    free(generic);
    reference_free(&ref);
}

/* The kernels of all rows, so that the compiles run side by side. What fails here fails again, with its row, when it runs. */
static void prewarm(const breadth_row *rows, size_t count)
{
    if (context_is_cpu(tested)) return;
    jg_problem *problems = calloc(count * 2 + 1, sizeof *problems);
    assert_non_null(problems);
    for (size_t i = 0; i < 2 * count; i++) {
        const size_t misalign = rows[i / 2].misalign;
        problems[i] = rows[i / 2].problem;
        problems[i].form = i % 2 ? JG_FORM_SPECIALISED : JG_FORM_GENERIC;
        problems[i].align_bytes = misalign ? (uint32_t)(misalign & -misalign) : 16;
    }
    (void)jg_prewarm(tested, problems, 2 * count, NULL, NULL);
    free(problems);
}

static void run_rows(const breadth_row *rows, size_t count)
{
    const long before = failures;
    prewarm(rows, count);
    for (size_t i = 0; i < count; i++) run_row(&rows[i]);
    assert_int_equal(failures - before, 0);
}

static breadth_limits limits_of_environment(void)
{
    return (breadth_limits){.types = getenv("JG_TEST_TYPES"), .types_c = getenv("JG_TEST_TYPES_C"), .plain =
                            getenv("JG_TEST_PLAIN") != NULL};
}

static void test_pairs_of_everything(void **state)
{
    (void)state;
    need_device();
    const breadth_limits wanted = limits_of_environment();
    pairwise made = breadth_make(&wanted);
    const size_t count = (made.count + stride - 1) / stride;
    breadth_row *rows = calloc(count + 1, sizeof *rows);
    assert_non_null(rows);
    for (size_t i = 0; i < count; i++) rows[i] = breadth_get(&made, i);
    const size_t covered = pairwise_covered(&made, count);
    printf("# %zu of %zu rows, with %zu of %zu pairs of levels\n", count, made.count, covered, made.pairs);
    pairwise_free(&made);
    run_rows(rows, count);
    free(rows);
}

/* So many ones as k, for every combination of types. */
static void test_ones_of_every_type(void **state)
{
    (void)state;
    need_device();
    breadth_row rows[BREADTH_PAIRS * 9];
    const breadth_limits wanted = limits_of_environment();
    size_t count = 0, turn = 0;
    for (int pair = 0; pair < BREADTH_PAIRS; pair++)
        for (jg_type type_c = JG_F32; type_c <= JG_E5M2; type_c++) {
            if (!breadth_has_c(pair, type_c) || !breadth_is_wanted(&wanted, pair, type_c) || turn++ % stride) continue;
            breadth_row row = breadth_ones(pair, type_c);
            if (wanted.plain) row.problem.group_k = row.problem.zero_points = 0;
            rows[count++] = row;
        }
    run_rows(rows, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ones_of_every_type),
        cmocka_unit_test(test_pairs_of_everything),
    };
    setvbuf(stdout, NULL, _IOLBF, 0); /* a long run shows where it is */
    const char *filter = getenv("JG_TEST_FILTER");
    if (filter) cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, open_device, close_device);
}
