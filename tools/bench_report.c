/* Writes what was measured: see bench_report.h. The table and CSV are written line by line as results come; JSON at the end. */
#include "bench_report.h"

#include "bench_result.h"
#include "jitgemm.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_WIDTH 44

/* What the line before was, so that a heading stands where the kind changes. */
enum { SHOWN_NOTHING, SHOWN_PART, SHOWN_SERIES, SHOWN_COUNT, SHOWN_TARGET, SHOWN_NOTE };

static const char software_note[] =
    "The software GPU runs each kernel inside its launch, so times would mean nothing: counts only.";

/* A figure of a summary. */
static const struct figure {
    const char *name;
    size_t offset;
} figures[] = {
    {"min", offsetof(bench_summary, min)}, {"p25", offsetof(bench_summary, p25)},     {"p50", offsetof(bench_summary, p50)},
    {"p75", offsetof(bench_summary, p75)}, {"p99", offsetof(bench_summary, p99)},     {"p99.9", offsetof(bench_summary, p999)},
    {"max", offsetof(bench_summary, max)}};
enum { MIN, P25, P50, P75, P99, P999, MAX, FIGURES };

/* The figures of each bench_columns, ended by FIGURES. */
static const int shown_figures[][FIGURES] = {
    [BENCH_TAIL] = {P50, P99, P999, MAX, FIGURES},
    [BENCH_SPREAD] = {P25, P50, P75, FIGURES},
    [BENCH_STEPS] = {P50, MAX, FIGURES},
};

static double figure_of(const bench_summary *s, int which)
{
    return *(const double *)((const char *)s + figures[which].offset);
}

/* As many as a clock of nanoseconds supports, and no more than a reader wants. */
static int decimals(const char *unit)
{
    return strcmp(unit, "ns") == 0 ? 1 : strcmp(unit, "us") == 0 ? 2 : 3;
}

/* A reader may wait for each line. */
static void flush(bench_report *r)
{
    if (fflush(stdout) != 0 && !r->write_error) r->write_error = errno;
}

/* ---- CSV ---- */

void bench_report_csv_text(const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

/* The columns that every row begins with. */
static void print_csv_start(const char *kind, const char *name, const char *unit)
{
    printf("%s,", kind);
    bench_report_csv_text(name);
    printf(",%s,", unit);
}

/* A row without n and figures; limit and met may be "". */
static void print_csv_value(const char *kind, const char *name, const char *unit, const char *value, const char *limit,
                            const char *met)
{
    print_csv_start(kind, name, unit);
    for (int i = 0; i < FIGURES + 1; i++) putchar(',');
    bench_report_csv_text(value);
    printf(",%s,%s\n", limit, met);
}

static void print_csv_columns(void)
{
    fputs("kind,name,unit,n", stdout);
    for (int i = 0; i < FIGURES; i++) printf(",%s", figures[i].name);
    fputs(",value,limit,met\n", stdout);
}

/* Whether this line is one of CSV. Behind rows of products, which have columns of their own, the columns are said again. */
static int begins_csv_line(bench_report *r)
{
    if (r->format != BENCH_CSV) return 0;
    if (r->has_rows_above) {
        putchar('\n');
        print_csv_columns();
    }
    r->has_rows_above = 0;
    return 1;
}

static void print_csv_heading(const bench_report *r)
{
    const bench_environment *e = &r->environment;
    char number[32];
    print_csv_columns();
    print_csv_value("environment", "command", "", r->command, "", "");
    print_csv_value("environment", "device", "", e->device, "", "");
    const struct { const char *name; int value; } numbers[] = {{"arch", e->arch}, {"driver", e->driver_version},
        {"processors", e->processors}, {"allowed", e->allowed}, {"software", e->software}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(number, sizeof number, "%d", numbers[i].value);
        print_csv_value("environment", numbers[i].name, "", number, "", "");
    }
    print_csv_value("environment", "compiler", "", e->compiler, "", "");
}

static void print_csv_series(const char *name, const char *unit, const bench_summary *s)
{
    print_csv_start("series", name, unit);
    printf("%zu", s->n);
    for (int i = 0; i < FIGURES; i++) printf(",%.*f", decimals(unit) + 1, figure_of(s, i));
    fputs(",,,\n", stdout);
}

/* ---- table ---- */

static void print_heading(const bench_environment *e, const char *command)
{
    printf("jitgemm %s, %s\n%s, sm_%d, ", jg_version(), command, e->device, e->arch);
    if (e->driver_version) printf("driver for CUDA %d.%d, ", e->driver_version / 1000, e->driver_version % 1000 / 10);
    printf("%s%s%sprocessors: %d", *e->compiler ? "kernels by " : "", e->compiler, *e->compiler ? ", " : "", e->processors);
    if (e->allowed != e->processors) printf(" (%d allowed)", e->allowed);
    putchar('\n');
    if (e->software) printf("%s\n", software_note);
}

static int hides_times(const bench_report *r)
{
    return r->environment.software && !r->host_times;
}

/* Puts a heading above the first line of a kind. */
static void show(bench_report *r, int kind, const char *heading)
{
    if (r->shown != kind && heading) printf("\n%s\n", heading);
    r->shown = kind;
}

static void print_series(bench_report *r, const char *name, const bench_summary *s)
{
    const int *which = shown_figures[r->columns];
    printf("  %-*s%9zu", NAME_WIDTH, name, s->n);
    for (; *which != FIGURES; which++) printf("%12.*f", decimals(r->unit), figure_of(s, *which));
    putchar('\n');
    r->shown = SHOWN_SERIES;
}

void bench_report_part(bench_report *r, const char *title, const char *unit, bench_columns columns)
{
    r->unit = unit;
    r->columns = columns;
    if (r->format != BENCH_TABLE || hides_times(r)) return;
    printf("\n%-*s%9s", NAME_WIDTH + 2, title, "n");
    for (const int *which = shown_figures[columns]; *which != FIGURES; which++) printf("%9s %s", figures[*which].name, unit);
    putchar('\n');
    r->shown = SHOWN_PART;
}

/* ---- JSON ---- */

void bench_report_add(bench_report *r, cJSON **array, cJSON *object)
{
    if (!*array) *array = cJSON_CreateArray();
    if (object && *array && cJSON_AddItemToArray(*array, object)) return;
    cJSON_Delete(object);
    r->out_of_memory = 1;
}

/* Adds an object to one of the arrays; null if memory ran out. */
static cJSON *add_json(bench_report *r, cJSON **array, const char *name)
{
    cJSON *object = cJSON_CreateObject();
    const int ok = object && cJSON_AddStringToObject(object, "command", r->command) &&
                   cJSON_AddStringToObject(object, "name", name);
    if (!ok) {
        cJSON_Delete(object);
        object = NULL;
    }
    bench_report_add(r, array, object);
    return object && !r->out_of_memory ? object : NULL;
}

/* cJSON's own numbers are doubles, which are written with 15 digits where that is exact: a larger one would come out rounded or
 * with an exponent. Text is only for those, since who reads the document in memory looks for numbers. */
static int add_integer(cJSON *object, const char *name, uint64_t value)
{
    char text[24];
    if (value < UINT64_C(1000000000000000)) return cJSON_AddNumberToObject(object, name, (double)value) != NULL;
    snprintf(text, sizeof text, "%" PRIu64, value);
    return cJSON_AddRawToObject(object, name, text) != NULL;
}

/* Sorted samples as pairs of a bin's lower edge and how many are in it. Not for what is 0 or negative. */
static int add_histogram(cJSON *object, const double *sorted, size_t n)
{
    cJSON *pairs = n >= 100 && sorted[0] > 0 ? cJSON_AddArrayToObject(object, "histogram") : NULL;
    for (size_t i = 0; pairs && i < n;) {
        const double bin = floor(log(sorted[i]) / log(BENCH_HISTOGRAM_STEP) + 1e-9);
        const double low = pow(BENCH_HISTOGRAM_STEP, bin), high = low * BENCH_HISTOGRAM_STEP;
        size_t end = i + 1;
        while (end < n && sorted[end] < high) end++;
        const double pair[] = {low, (double)(end - i)};
        cJSON *item = cJSON_CreateDoubleArray(pair, 2);
        if (!item || !cJSON_AddItemToArray(pairs, item)) return 0;
        i = end;
    }
    return 1;
}

static void add_json_series(bench_report *r, const char *name, const bench_summary *s, const double *sorted)
{
    cJSON *object = add_json(r, &r->series, name);
    int ok = object && cJSON_AddStringToObject(object, "unit", r->unit) && add_integer(object, "n", s->n);
    for (int i = 0; i < FIGURES; i++) ok = ok && cJSON_AddNumberToObject(object, figures[i].name, figure_of(s, i));
    if (!ok || !add_histogram(object, sorted, s->n)) r->out_of_memory = 1;
}

static cJSON *environment_facts(const bench_environment *e)
{
    cJSON *object = cJSON_CreateObject();
    const int ok = object && cJSON_AddStringToObject(object, "device", e->device) &&
                   cJSON_AddNumberToObject(object, "arch", e->arch) &&
                   cJSON_AddNumberToObject(object, "driver", e->driver_version) &&
                   cJSON_AddStringToObject(object, "compiler", e->compiler) &&
                   cJSON_AddNumberToObject(object, "processors", e->processors) &&
                   cJSON_AddNumberToObject(object, "allowed", e->allowed) &&
                   cJSON_AddBoolToObject(object, "software", e->software);
    if (ok) return object;
    cJSON_Delete(object);
    return NULL;
}

/* Gives an array, or an empty one, to the root. */
static int move_array(cJSON *root, const char *name, cJSON **array)
{
    if (!*array) *array = cJSON_CreateArray();
    const int ok = *array && cJSON_AddItemToObject(root, name, *array);
    if (ok) *array = NULL; /* now root's */
    return ok;
}

cJSON *bench_report_take(bench_report *r)
{
    cJSON *root = r->began ? cJSON_CreateObject() : NULL;
    const struct { const char *name; cJSON **array; } arrays[] = {
        {"commands", &r->commands}, {"environment", &r->facts}, {"ceilings", &r->ceilings}, {"rows", &r->rows},
        {"summaries", &r->summaries}, {"plans", &r->plans}, {"gaps", &r->gaps}, {"compiles", &r->compiles},
        {"memory", &r->memory},
        {"series", &r->series}, {"counts", &r->counts},
        {"targets", &r->targets}, {"notes", &r->notes}};
    int ok = root && !r->out_of_memory && cJSON_AddStringToObject(root, "format", BENCH_RESULT_FORMAT) &&
             cJSON_AddNumberToObject(root, "format_version", BENCH_RESULT_FORMAT_VERSION) &&
             cJSON_AddStringToObject(root, "version", jg_version()) && cJSON_AddStringToObject(root, "started", r->started);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        ok = ok && move_array(root, arrays[i].name, arrays[i].array);
        cJSON_Delete(*arrays[i].array);
        *arrays[i].array = NULL;
    }
    ok = ok && add_integer(root, "missed", r->missed) && cJSON_AddBoolToObject(root, "interrupted", r->interrupted);
    if (ok) return root;
    cJSON_Delete(root);
    return NULL;
}

/* ---- the report ---- */

void bench_report_command(bench_report *r, const char *name)
{
    cJSON *item = cJSON_CreateString(name);
    r->command = name;
    bench_report_add(r, &r->commands, item);
    if (!r->began) return;
    r->shown = SHOWN_NOTHING;
    if (r->format == BENCH_TABLE) printf("\n==== %s\n", name);
    if (begins_csv_line(r)) print_csv_value("environment", "command", "", name, "", "");
}

void bench_report_begin(bench_report *r, const bench_environment *environment)
{
    if (r->began) return;
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(r->started, sizeof r->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    r->environment = *environment;
    r->facts = environment_facts(environment);
    if (!r->facts) r->out_of_memory = 1;
    r->began = 1;
    if (r->format == BENCH_TABLE) print_heading(environment, r->command);
    if (r->format == BENCH_CSV) print_csv_heading(r);
    if (r->format == BENCH_JSON && environment->software) bench_report_note(r, software_note);
    flush(r);
}

void bench_report_fact(bench_report *r, const char *name, const char *text)
{
    cJSON_DeleteItemFromObject(r->facts, name);
    if (!r->facts || !cJSON_AddStringToObject(r->facts, name, text)) r->out_of_memory = 1;
    if (begins_csv_line(r)) print_csv_value("environment", name, "", text, "", "");
}

void bench_report_fact_number(bench_report *r, const char *name, double value)
{
    char text[32];
    cJSON_DeleteItemFromObject(r->facts, name);
    if (!r->facts || !cJSON_AddNumberToObject(r->facts, name, value)) r->out_of_memory = 1;
    snprintf(text, sizeof text, "%g", value);
    if (begins_csv_line(r)) print_csv_value("environment", name, "", text, "", "");
}

void bench_report_fact_flag(bench_report *r, const char *name, int value)
{
    cJSON_DeleteItemFromObject(r->facts, name);
    if (!r->facts || !cJSON_AddBoolToObject(r->facts, name, value)) r->out_of_memory = 1;
    if (begins_csv_line(r)) print_csv_value("environment", name, "", value ? "1" : "0", "", "");
}

void bench_report_break(bench_report *r)
{
    r->shown = SHOWN_NOTHING;
    flush(r);
}

bench_summary bench_report_series(bench_report *r, const char *name, double *samples, size_t n)
{
    const bench_summary s = bench_summarise(samples, n);
    if (n == 0) return s;
    if (hides_times(r)) {
        char count[160];
        snprintf(count, sizeof count, "%s: samples", name);
        bench_report_count(r, count, n);
        return s;
    }
    if (r->format == BENCH_TABLE) print_series(r, name, &s);
    if (begins_csv_line(r)) print_csv_series(name, r->unit, &s);
    add_json_series(r, name, &s, samples);
    flush(r);
    return s;
}

void bench_report_count(bench_report *r, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    if (r->format == BENCH_TABLE) {
        show(r, SHOWN_COUNT, "counts");
        printf("  %-*s%9s\n", NAME_WIDTH, name, text);
    }
    if (begins_csv_line(r)) print_csv_value("count", name, "", text, "", "");
    cJSON *object = add_json(r, &r->counts, name);
    if (object && !add_integer(object, "value", value)) r->out_of_memory = 1;
    flush(r);
}

void bench_report_target(bench_report *r, const char *name, double value, const char *unit, double limit)
{
    if (hides_times(r)) return;
    const int met = value <= limit;
    const char *word = met ? "met" : "missed";
    r->missed += !met;
    char number[32], bound[32];
    snprintf(number, sizeof number, "%.*f", decimals(unit), value);
    snprintf(bound, sizeof bound, "%g", limit);
    if (r->format == BENCH_TABLE) {
        show(r, SHOWN_TARGET, "targets");
        printf("  %-*s%9s %-2s  at most %s %s: %s\n", NAME_WIDTH, name, number, unit, bound, unit, word);
    }
    if (begins_csv_line(r)) print_csv_value("target", name, unit, number, bound, word);
    cJSON *object = add_json(r, &r->targets, name);
    if (object && !(cJSON_AddStringToObject(object, "unit", unit) && cJSON_AddNumberToObject(object, "value", value) &&
                    cJSON_AddNumberToObject(object, "limit", limit) && cJSON_AddBoolToObject(object, "met", met)))
        r->out_of_memory = 1;
    flush(r);
}

void bench_report_note(bench_report *r, const char *text)
{
    if (r->format == BENCH_TABLE) {
        if (r->shown != SHOWN_NOTE) putchar('\n');
        r->shown = SHOWN_NOTE;
        printf("%s\n", text);
    }
    if (begins_csv_line(r)) print_csv_value("note", "", "", text, "", "");
    bench_report_add(r, &r->notes, cJSON_CreateString(text));
    flush(r);
}

int bench_report_print(bench_report *r, const cJSON *document)
{
    if (r->format != BENCH_JSON) return 0;
    char *text = cJSON_Print(document);
    if (!text) return -1;
    puts(text);
    cJSON_free(text);
    return 0;
}
