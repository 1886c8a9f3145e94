/* Made-up results for the tests of what draws them. See bench_document.h. */
#include "bench_document.h"

#include "tools/bench_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long long state;

/* Uniform in [0, 1). */
static double any(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(state >> 40) / (double)(1 << 24);
}

/* Around 0, mostly within 2. */
static double spread(void)
{
    return (any() + any() + any() + any() - 2) * 1.7;
}

static cJSON *add_object(cJSON *array)
{
    cJSON *object = cJSON_CreateObject();
    if (!object || !cJSON_AddItemToArray(array, object)) abort();
    return object;
}

static void add_text(cJSON *object, const char *name, const char *text)
{
    if (!cJSON_AddStringToObject(object, name, text)) abort();
}

static void add_number(cJSON *object, const char *name, double value)
{
    if (!cJSON_AddNumberToObject(object, name, value)) abort();
}

/* As bench_report does with 64 bits. */
static void add_integer(cJSON *object, const char *name, unsigned long long value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", value);
    if (!cJSON_AddRawToObject(object, name, text)) abort();
}

/* ---- rows ---- */

static const struct suite {
    const char *suite, *list, *type, *data;
    double peak;    /* TFLOP/s */
    double extreme; /* a ratio that one size has, and another one its inverse */
    int from, step; /* of sizes */
} suites[] = {
    {"common16", "common16", "f16", "resident", 780, 9.2, 64, 64}, {"common16", "common16", "f32", "resident", 52, 9.2, 64, 64},
    {"layers", "resnet50", "f16", "resident", 780, 9.2, 49, 147},  {"layers", "resnet50", "f32", "resident", 52, 9.2, 49, 147},
    {"layers", "vit_b16", "f16", "resident", 780, 9.2, 197, 197},  {"layers", "vit_b16", "bf16", "resident", 770, 9.2, 197, 197},
    {"decode", "decode", "f16", "rotated", 780, 9.2, 1, 1},        {"decode", "decode", "bf16", "rotated", 770, 9.2, 1, 1},
    {"odd", "odd", "f16", "resident", 780, 150, 31, 97},
};
enum { SUITES = sizeof suites / sizeof *suites };

static void add_contestant(cJSON *row, const char *name, double us, const char *refused)
{
    static const struct { const char *name; double factor; } figures[] = {
        {"min", 0.97}, {"p25", 0.985}, {"p50", 1}, {"p75", 1.02}, {"max", 1.2}};
    cJSON *contestant = add_object(cJSON_GetObjectItem(row, "contestants"));
    add_text(contestant, "name", name);
    if (refused) {
        add_text(contestant, "refused", refused);
        return;
    }
    cJSON *times = cJSON_AddObjectToObject(contestant, "us");
    add_integer(times, "n", 21);
    for (int i = 0; i < 5; i++) add_number(times, figures[i].name, us * figures[i].factor);
}

static void add_times(cJSON *row, const struct suite *s, int i, double flops, double bytes)
{
    const double least = fmax(flops / s->peak / 1e6, bytes / 4200 / 1e3), us = 2.1 + least * (1.25 + 0.3 * any());
    const double ratio = i == 2 ? s->extreme : i == 1 ? 1 / s->extreme : exp2(0.15 + 0.7 * spread());
    const double p = fabs(log2(ratio)) < 0.12 ? 0.02 + any() / 2 : 0.00004;
    cJSON_AddArrayToObject(row, "contestants");
    add_contestant(row, "jitgemm", us, NULL);
    if (i == 3) {
        add_contestant(row, "cublas", 0, "CUBLAS_STATUS_NOT_SUPPORTED: lda is no multiple of 8");
        add_contestant(row, "lt best", 0, "no algorithm was offered");
    } else {
        add_contestant(row, "cublas", us * ratio * 1.08, NULL);
        add_contestant(row, "lt first", us * ratio * 1.04, NULL);
        if (i == 7) add_contestant(row, "lt best", 0, "no algorithm was offered");
        else add_contestant(row, "lt best", us * ratio, NULL);
        add_text(row, "peer", i == 7 ? "lt first" : "lt best");
        add_number(row, "ratio", ratio);
        add_number(row, "ratio_p", p);
    }
    add_number(row, "roofline_percent", 100 * least / us);
    add_text(row, "bound", flops / s->peak / 1e6 > bytes / 4200 / 1e3 ? "compute" : "memory");
}

static void add_row(cJSON *rows, const struct suite *s, int i, int software)
{
    char problem[96], kernel[128];
    cJSON *row = add_object(rows);
    const int square = s->suite[0] == 'c', m = square ? s->from + i * s->step : s->from + i % 4 * s->step;
    const int n = square ? m : 256 * (1 + i * 7 % 12), k = square ? m : 64 * (1 + i * 5 % 24),
              batch = s->list[0] == 'v' && i % 3 == 2 ? 12 : 1;
    const double flops = 2.0 * m * n * k * batch,
                 bytes = (s->type[1] == '3' ? 4.0 : 2.0) * batch * ((double)m * k + (double)k * n + (double)m * n);
    int length = square ? snprintf(problem, sizeof problem, "%d", m) : snprintf(problem, sizeof problem, "%dx%dx%d", m, n, k);
    if (batch > 1) length += snprintf(problem + length, sizeof problem - (size_t)length, "x%d", batch);
    snprintf(problem + length, sizeof problem - (size_t)length, "%s:%s", batch > 1 ? ":nt" : "", s->type);
    snprintf(kernel, sizeof kernel, "jg_sm90_mma_%s%sf32_nn_128x64x32_w64x32_s3_a16_m%dn%dk%d", s->type, s->type, m, n, k);
    add_text(row, "suite", s->suite);
    add_text(row, "list", s->list);
    add_text(row, "problem", problem);
    add_number(row, "m", m);
    add_number(row, "n", n);
    add_number(row, "k", k);
    add_number(row, "batch", batch);
    add_text(row, "type", s->type);
    add_text(row, "data", s->data);
    add_text(row, "kernel", kernel);
    add_integer(row, "flops", (unsigned long long)flops);
    add_integer(row, "bytes", (unsigned long long)bytes);
    cJSON *check = cJSON_AddObjectToObject(row, "check");
    add_number(check, "reference", 0.1 + 0.4 * any());
    add_number(check, "peer", 0.1 + 0.5 * any());
    if (!software) {
        add_times(row, s, i, flops, bytes);
        return;
    }
    cJSON *counters = cJSON_AddObjectToObject(row, "counters");
    add_integer(counters, "instructions", (unsigned long long)(flops / 37));
    add_integer(counters, "global_loads", (unsigned long long)(bytes / 16));
    add_integer(counters, "bank_conflicts", 0);
}

static void add_rows(cJSON *root, int count, int software)
{
    cJSON *rows = cJSON_AddArrayToObject(root, "rows"), *summaries = cJSON_AddArrayToObject(root, "summaries");
    for (int s = 0; s < SUITES; s++) {
        double sum = 0, worst = INFINITY, best = 0;
        int n = 0;
        for (int i = 0; i < (count - s + SUITES - 1) / SUITES; i++) {
            add_row(rows, &suites[s], i, software);
            const cJSON *ratio = cJSON_GetObjectItem(cJSON_GetArrayItem(rows, cJSON_GetArraySize(rows) - 1), "ratio");
            if (!ratio) continue;
            sum += log(ratio->valuedouble);
            worst = fmin(worst, ratio->valuedouble);
            best = fmax(best, ratio->valuedouble);
            n++;
        }
        if (!n) continue;
        cJSON *summary = add_object(summaries);
        add_text(summary, "suite", suites[s].suite);
        add_text(summary, "list", suites[s].list);
        add_text(summary, "type", suites[s].type);
        add_integer(summary, "rows", (unsigned long long)n);
        add_number(summary, "geomean", exp(sum / n));
        add_number(summary, "worst", worst);
        add_number(summary, "best", best);
    }
}

/* ---- the rest ---- */

static void add_environment(cJSON *root, int software)
{
    static const struct { const char *name, *text; double number; } members[] = {
        {"sm_count", NULL, 132}, {"driver", NULL, 13010}, {"driver_release", "580.95.05", 0}, {"compiler", "NVRTC 12.9", 0},
        {"cublas", "13.1.0", 0}, {"kernel", "Linux 6.8.0-31-generic", 0}, {"processor", "Intel(R) Xeon(R) Platinum 8480C", 0},
        {"processors", NULL, 16}, {"allowed", NULL, 16}, {"governor", "performance", 0}, {"power_limit_w", NULL, 700},
        {"clock_sm_max_mhz", NULL, 1980}, {"clock_sm_mhz", NULL, 1965}, {"temperature_c", NULL, 46}};
    cJSON *e = cJSON_AddObjectToObject(root, "environment");
    add_text(e, "device", software ? "Orin AGX (software GPU)" : "NVIDIA H200");
    add_number(e, "arch", software ? 87 : 90);
    cJSON_AddBoolToObject(e, "software", software);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].text) add_text(e, members[i].name, members[i].text);
        else add_number(e, members[i].name, members[i].number);
    cJSON_AddBoolToObject(e, "persistence", 1);
}

static void add_ceilings(cJSON *root)
{
    static const struct { const char *name, *unit; double value; } all[] = {{"memory", "GB/s", 4011}, {"memory", "GB/s", 4200.5},
        {"l2", "GB/s", 9900}, {"f16", "TFLOP/s", 801}, {"bf16", "TFLOP/s", 790}, {"f32", "TFLOP/s", 52.4}};
    cJSON *ceilings = cJSON_AddArrayToObject(root, "ceilings");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cJSON *ceiling = add_object(ceilings);
        add_text(ceiling, "name", all[i].name);
        add_text(ceiling, "unit", all[i].unit);
        add_number(ceiling, "value", all[i].value);
    }
}

/* Times around `middle`, and a tail of one in two hundred up to `most`. */
static void add_series(cJSON *series, const char *command, const char *name, double middle, double most)
{
    static const struct { const char *name; double part; } parts[] = {
        {"p25", 0.25}, {"p50", 0.5}, {"p75", 0.75}, {"p99", 0.99}, {"p99.9", 0.999}};
    enum { BINS = 80, CALLS = 20000 };
    int bins[BINS] = {0}, seen = 0;
    for (int i = 0; i < CALLS; i++) {
        const double us = i == 0          ? most
                          : any() < 0.005 ? middle * exp2(any() * log2(most / middle))
                                          : middle * exp2(0.18 * spread());
        const int bin = (int)floor(4 * log2(us)) + 16;
        bins[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    }
    cJSON *s = add_object(series);
    add_text(s, "command", command);
    add_text(s, "name", name);
    add_text(s, "unit", "us");
    add_integer(s, "n", CALLS);
    add_number(s, "min", middle * 0.7);
    cJSON *histogram = cJSON_AddArrayToObject(s, "histogram");
    for (int i = 0, part = 0; i < BINS; i++) {
        if (!bins[i]) continue;
        const double edges[] = {pow(BENCH_HISTOGRAM_STEP, i - 16), bins[i]};
        cJSON_AddItemToArray(histogram, cJSON_CreateDoubleArray(edges, 2));
        seen += bins[i];
        for (; part < 5 && seen >= parts[part].part * CALLS; part++) add_number(s, parts[part].name, edges[0] * 1.08);
    }
    add_number(s, "max", most);
}

static void add_compiles(cJSON *root)
{
    cJSON *compiles = cJSON_AddArrayToObject(root, "compiles");
    for (int i = 0; i < 34; i++) {
        char problem[32], kernel[96];
        cJSON *compile = add_object(compiles);
        snprintf(problem, sizeof problem, "%d:%s", 64 * (i / 2 + 1), i % 2 ? "f32" : "f16");
        snprintf(kernel, sizeof kernel, "jg_sm90_mma_f16f16f32_nn_128x64x32_w64x32_s3_a16_m%d", 64 * (i / 2 + 1));
        add_text(compile, "problem", problem);
        add_text(compile, "kernel", kernel);
        add_number(compile, "ms", 90 + 120 * any());
    }
}

static void add_targets(cJSON *root)
{
    static const struct { const char *name; double value, limit;
    } targets[] = {{"first call of a size: p99.9", 29.4, 50},
                   {"first call of a size: longest", 612, 500},
                   {"jg_poll with nothing to do: p99", 0.31, 1}};
    cJSON *all = cJSON_AddArrayToObject(root, "targets");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        cJSON *target = add_object(all);
        add_text(target, "command", "first-call");
        add_text(target, "name", targets[i].name);
        add_text(target, "unit", "us");
        add_number(target, "value", targets[i].value);
        add_number(target, "limit", targets[i].limit);
        cJSON_AddBoolToObject(target, "met", targets[i].value <= targets[i].limit);
    }
    add_integer(root, "missed", 1);
}

static void add_counts(cJSON *root)
{
    cJSON *counts = cJSON_AddArrayToObject(root, "counts");
    cJSON *count = add_object(counts);
    add_text(count, "command", "first-call");
    add_text(count, "name", "calls that waited");
    add_integer(count, "value", 0);
    count = add_object(counts);
    add_text(count, "command", "first-call");
    add_text(count, "name", "launches on generic kernels");
    add_integer(count, "value", 1234567);
}

static void add_drift(cJSON *root)
{
    static const struct { const char *name, *verdict; double base, now; } rows[] = {
        {"common16 64:f16 resident", "slower", 2.1, 2.4}, {"common16 128:f16 resident", "same", 2.6, 2.62},
        {"resnet50 49x2048x512:f16 resident", "faster", 11.9, 10.2}, {"first-call jitgemm p99", "same", 3.1, 3.05}};
    cJSON *drift = cJSON_AddObjectToObject(root, "drift"), *all = cJSON_AddArrayToObject(drift, "rows");
    add_text(drift, "base", "h200-2026-01.json");
    add_text(drift, "base_started", "2026-01-02T08:30:00Z");
    add_number(drift, "base_runs", 10);
    add_number(drift, "runs", 12);
    add_number(drift, "percent", 3);
    add_number(drift, "p", 0.01);
    add_number(drift, "slower", 1);
    add_number(drift, "faster", 1);
    cJSON *change = add_object(cJSON_AddArrayToObject(drift, "changed"));
    add_text(change, "what", "driver");
    add_number(change, "base", 13000);
    add_number(change, "now", 13010);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cJSON *row = add_object(all);
        add_text(row, "name", rows[i].name);
        add_text(row, "unit", "us");
        add_number(row, "base", rows[i].base);
        add_number(row, "now", rows[i].now);
        add_number(row, "change_percent", 100 * (rows[i].now / rows[i].base - 1));
        add_number(row, "p_adjusted", rows[i].verdict[1] == 'a' && rows[i].verdict[0] == 's' ? 0.62 : 0.0011);
        add_text(row, "verdict", rows[i].verdict);
    }
    cJSON_AddItemToArray(cJSON_AddArrayToObject(drift, "missing"), cJSON_CreateString("odd 31:f16 resident"));
}

cJSON *bench_document(int rows, int software)
{
    static const char *const commands[] = {"first-call", "common16", "layers", "decode"};
    cJSON *root = cJSON_CreateObject();
    state = 42;
    add_text(root, "format", BENCH_RESULT_FORMAT);
    add_number(root, "format_version", BENCH_RESULT_FORMAT_VERSION);
    add_text(root, "version", "0.1.0");
    cJSON_AddItemToObject(root, "commands", cJSON_CreateStringArray(commands, 4));
    add_text(root, "started", "2026-01-31T12:00:00Z");
    add_environment(root, software);
    add_rows(root, rows, software);
    add_counts(root);
    cJSON *notes = cJSON_AddArrayToObject(root, "notes");
    cJSON_AddItemToArray(notes, cJSON_CreateString("Each time is the median of 21 samples, taken in turns with the peers'."));
    cJSON_AddBoolToObject(root, "interrupted", 0);
    if (software) return root;
    add_ceilings(root);
    cJSON *series = cJSON_AddArrayToObject(root, "series");
    add_series(series, "first-call", "jitgemm, first call of a size", 2.3, 190);
    add_series(series, "first-call", "cuBLAS, first call of a size", 4.4, 61000);
    add_compiles(root);
    add_targets(root);
    add_drift(root);
    return root;
}
