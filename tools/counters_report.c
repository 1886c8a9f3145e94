/* Writes what the software GPU counted: see counters_report.h.
 *
 * Numbers are written as integers, all digits, in every format. Readers that keep JSON numbers as doubles still get them
 * exactly: 2^53 instructions would take the software GPU years. */
#include "counters_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNTERS(X)                                                                                                    \
    X(blocks) X(blocks_run) X(instructions) X(arithmetic) X(fma) X(special) X(logic) X(compare) X(move) X(convert) X(load) \
    X(store) X(atomic) X(copy) X(mma) X(warp) X(barrier) X(branch) X(other) X(global_load_requests)                    \
    X(global_load_sectors) X(global_store_requests) X(global_store_sectors) X(shared_load_requests)                    \
    X(shared_load_cycles) X(shared_load_conflicts) X(shared_store_requests) X(shared_store_cycles)                     \
    X(shared_store_conflicts) X(barriers) X(divergent_branches)

enum {
#define MEMBER(name) AT_##name,
    COUNTERS(MEMBER)
#undef MEMBER
    COUNT
};

static const char *const names[COUNT] = {
#define MEMBER(name) [AT_##name] = #name,
    COUNTERS(MEMBER)
#undef MEMBER
};

_Static_assert(sizeof(jg_counters) == COUNT * sizeof(uint64_t), "every counter has a name");

static void values_of(const jg_counters *c, uint64_t values[COUNT])
{
#define TAKE(name) values[AT_##name] = c->name;
    COUNTERS(TAKE)
#undef TAKE
}

/* ---- table ---- */

/* "1,234,567", for a printf that follows at once. */
typedef struct number {
    char text[32];
} number;

static number grouped(uint64_t value)
{
    char digits[24];
    number out;
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, value), at = 0;
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) out.text[at++] = ',';
        out.text[at++] = digits[i];
    }
    out.text[at] = 0;
    return out;
}

static double ratio(uint64_t value, uint64_t by)
{
    return by ? (double)value / (double)by : 0;
}

/* Two a line, the most frequent first. */
static void print_classes(const uint64_t *values)
{
    int order[AT_other - AT_arithmetic + 1], count = 0;
    for (int i = AT_arithmetic; i <= AT_other; i++) {
        if (!values[i]) continue;
        int at = count++;
        for (; at > 0 && values[order[at - 1]] < values[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < count; i++)
        printf("%s%-12s%13s %5.1f %%%s", i % 2 ? "   " : "    ", names[order[i]], grouped(values[order[i]]).text,
               100 * ratio(values[order[i]], values[AT_instructions]), i % 2 || i + 1 == count ? "\n" : "");
}

static void print_global(const char *label, uint64_t requests, uint64_t sectors)
{
    printf("  %-14s%13s requests%14s sectors", label, grouped(requests).text, grouped(sectors).text);
    if (requests) printf("%9.2f a request", ratio(sectors, requests));
    putchar('\n');
}

static void print_shared(const char *label, uint64_t requests, uint64_t cycles, uint64_t conflicts)
{
    printf("  %-14s%13s requests%14s cycles %9s conflicts\n", label, grouped(requests).text, grouped(cycles).text,
           grouped(conflicts).text);
}

static void print_counters(const counters_row *row)
{
    const jg_counters *c = &row->counters;
    uint64_t values[COUNT];
    values_of(c, values);
    printf("  %-14s%13s of warps", "instructions", grouped(c->instructions).text);
    /* Blocks at the edges do less, so for a part of them it is an estimate. */
    double thousands = (double)row->multiply_adds * ratio(c->blocks_run, c->blocks) / 1000;
    if (thousands > 0)
        printf("%s%.*f for 1,000 multiply-adds", c->blocks_run < c->blocks ? ", about " : ", ",
               thousands < 1 ? 0 : 2, (double)c->instructions / thousands);
    putchar('\n');
    print_classes(values);
    print_global("global loads", c->global_load_requests, c->global_load_sectors);
    print_global("global stores", c->global_store_requests, c->global_store_sectors);
    print_shared("shared loads", c->shared_load_requests, c->shared_load_cycles, c->shared_load_conflicts);
    print_shared("shared stores", c->shared_store_requests, c->shared_store_cycles, c->shared_store_conflicts);
    printf("  %-14s%13s of blocks %13s divergent branches\n", "barriers", grouped(c->barriers).text,
           grouped(c->divergent_branches).text);
}

static void print_row(const counters_row *row)
{
    printf("\n%s\n", row->size);
    if (!*row->kernel) {
        puts("  nothing to compute");
        return;
    }
    const jg_counters *c = &row->counters;
    printf("  %s\n", row->kernel);
    printf("  %-14s%13s of %s%s\n", "blocks run", grouped(c->blocks_run).text, grouped(c->blocks).text,
           c->blocks_run < c->blocks ? "; all counts are those of the blocks that ran" : "");
    if (c->instructions) print_counters(row);
    else puts("  nothing was counted: JITGEMM_SWGPU_COUNTERS is 0");
    if (row->runs) printf("  %-14s%13.3f ms on this host, the median of %d runs\n", "simulation", row->ms, row->runs);
}

static void print_heading(int time)
{
    printf("software GPU: %s; checks: %s; blocks of large products: %s\n", counters_args_setting(COUNTERS_DEVICE),
           counters_args_setting(COUNTERS_CHECKS), counters_args_setting(COUNTERS_BLOCKS));
    puts("Below are counts of what the kernels did, not times: nothing ran on a GPU.");
    if (time)
        printf("Times are those of the simulation on this host, not a GPU's; worker threads: %s.\n",
               counters_args_setting(COUNTERS_THREADS));
}

/* ---- CSV and JSON ---- */

static void print_csv_heading(void)
{
    fputs("size,kernel,multiply_adds", stdout);
    for (int i = 0; i < COUNT; i++) printf(",%s", names[i]);
    puts(",ms");
}

/* Problem texts and kernel names hold no commas and no quotes. */
static void print_csv(const counters_row *row)
{
    uint64_t values[COUNT];
    values_of(&row->counters, values);
    printf("%s,%s,%" PRIu64, row->size, row->kernel, row->multiply_adds);
    for (int i = 0; i < COUNT; i++) printf(",%" PRIu64, values[i]);
    putchar(',');
    if (row->runs) printf("%.6f", row->ms);
    putchar('\n');
}

/* cJSON's own numbers are doubles and may come out with an exponent. */
static int add_integer(cJSON *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return cJSON_AddRawToObject(object, name, text) != NULL;
}

/* Adds an object to the array of products; null if memory ran out. */
static cJSON *add_json(counters_report *r, const char *size, const char *outcome)
{
    if (!r->rows) r->rows = cJSON_CreateArray();
    cJSON *object = cJSON_CreateObject();
    int ok = r->rows && object && (!size || cJSON_AddStringToObject(object, "size", size)) &&
             cJSON_AddStringToObject(object, "outcome", outcome);
    if (ok && cJSON_AddItemToArray(r->rows, object)) return object;
    cJSON_Delete(object);
    r->out_of_memory = 1;
    return NULL;
}

static void add_json_row(counters_report *r, const counters_row *row)
{
    uint64_t values[COUNT];
    values_of(&row->counters, values);
    cJSON *object = add_json(r, row->size, "counted");
    if (!object) return;
    int ok = cJSON_AddStringToObject(object, "kernel", row->kernel) && add_integer(object, "multiply_adds", row->multiply_adds);
    cJSON *counters = cJSON_AddObjectToObject(object, "counters");
    for (int i = 0; i < COUNT; i++) ok = ok && counters && add_integer(counters, names[i], values[i]);
    if (row->runs) ok = ok && cJSON_AddNumberToObject(object, "ms", row->ms);
    if (!ok) r->out_of_memory = 1;
}

static char *json_text(counters_report *r)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", jg_version());
    cJSON_AddStringToObject(root, "what", "counts of a software GPU; ms, if any, are of the simulation on this host");
    cJSON_AddStringToObject(root, "device", counters_args_setting(COUNTERS_DEVICE));
    cJSON_AddStringToObject(root, "checks", counters_args_setting(COUNTERS_CHECKS));
    if (!r->rows) r->rows = cJSON_CreateArray();
    int ok = root && r->rows && cJSON_AddItemToObject(root, "products", r->rows);
    if (ok) r->rows = NULL; /* now root's */
    ok = ok && add_integer(root, "counted", r->counted) && add_integer(root, "found", r->found) &&
         add_integer(root, "failed", r->failed) && cJSON_AddBoolToObject(root, "interrupted", r->interrupted);
    char *text = ok && !r->out_of_memory ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    cJSON_Delete(r->rows);
    r->rows = NULL;
    return text;
}

/* ---- the report ---- */

/* A reader may wait for each product. */
static void flush(counters_report *r)
{
    if (fflush(stdout) != 0 && !r->write_error) r->write_error = errno;
}

void counters_report_begin(counters_report *r)
{
    if (r->format == COUNTERS_TABLE) print_heading(r->time);
    if (r->format == COUNTERS_CSV) print_csv_heading();
    flush(r);
}

void counters_report_add(counters_report *r, const counters_row *row)
{
    r->counted++;
    if (r->format == COUNTERS_TABLE) print_row(row);
    if (r->format == COUNTERS_CSV) print_csv(row);
    if (r->format == COUNTERS_JSON) add_json_row(r, row);
    flush(r);
}

void counters_report_add_failure(counters_report *r, const char *size, int was_found, const char *text)
{
    *(was_found ? &r->found : &r->failed) += 1;
    if (r->format != COUNTERS_JSON) return;
    cJSON *object = add_json(r, size, was_found ? "found" : "failed");
    if (object && !cJSON_AddStringToObject(object, "text", text)) r->out_of_memory = 1;
}

int counters_report_end(counters_report *r)
{
    if (r->format == COUNTERS_TABLE)
        printf("\ncounted %zu, found %zu, failed %zu\n", r->counted, r->found, r->failed);
    if (r->format != COUNTERS_JSON) return 0;
    char *text = json_text(r);
    if (!text) return -1;
    puts(text);
    cJSON_free(text);
    return 0;
}
