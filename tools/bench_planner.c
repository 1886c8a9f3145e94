/* jitgemm-bench planner: recorded plans of a cache file in, what the planner's model costs over them per suite out. Needs no GPU.
 *
 * The flow is: recorded plans -> problems of the suites -> for each place the two brought together, by the problems' canonical texts
 * -> sums -> table, CSV or JSON. */
#include "bench_planner.h"

#include "bench_suites.h"
#include "problem_key.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct planner {
    bench_run *run;
    products s;                  /* the problems asked for */
    char **texts;                /* canonical ones of these */
    planner_record *records;     /* by place */
    size_t count, capacity;
    planner_block *blocks;
    size_t block_count;
    int has_all;                 /* nothing was named: all suites, and what else is recorded */
    int out_of_memory;
    char path[PATH_MAX];
} planner;

/* ---- figures ---- */

double planner_loss(const planner_record *r)
{
    return r->us > 0 && r->planned_us > 0 ? r->planned_us / r->us : NAN;
}

int planner_is_right(const planner_record *r)
{
    return strcmp(r->kernel, r->planned) == 0 || planner_loss(r) <= 1;
}

double planner_mean(const planner_sum *sum)
{
    return sum->known ? exp(sum->logarithms / (double)sum->known) : NAN;
}

void planner_add(planner_sum *to, const planner_sum *what)
{
    to->problems += what->problems;
    to->recorded += what->recorded;
    to->known += what->known;
    to->right += what->right;
    to->logarithms += what->logarithms;
    if (what->slowest && (!to->slowest || planner_loss(what->slowest) > planner_loss(to->slowest))) to->slowest = what->slowest;
}

planner_sum planner_suite(const planner_block *b, size_t first, size_t *end)
{
    planner_sum sum = {0};
    for (*end = first; *end < b->count && strcmp(b->groups[*end].suite, b->groups[first].suite) == 0; ++*end)
        planner_add(&sum, &b->groups[*end].sum);
    return sum;
}

/* Puts a record where it belongs among the worst. */
static size_t insert(const planner_record *worst[PLANNER_WORST], size_t count, const planner_record *r)
{
    size_t at = count;
    for (size_t i = 0; i < count; i++)
        if (worst[i] == r) return count;
    while (at > 0 && planner_loss(worst[at - 1]) < planner_loss(r)) at--;
    if (at == PLANNER_WORST) return count;
    if (count < PLANNER_WORST) count++;
    memmove(&worst[at + 1], &worst[at], (count - 1 - at) * sizeof *worst);
    worst[at] = r;
    return count;
}

size_t planner_worst(const planner_block *b, size_t first, size_t end, const planner_record *worst[PLANNER_WORST])
{
    size_t count = 0;
    for (size_t g = first; g < end; g++)
        for (size_t i = 0; i < b->groups[g].sum.problems; i++) {
            const planner_record *r = b->groups[g].rows[i].record;
            if (r && planner_loss(r) > 1) count = insert(worst, count, r);
        }
    return count;
}

/* ---- recorded plans ---- */

static char *copy_text(planner *p, const char *text)
{
    char *copy = strdup(text ? text : "");
    if (!copy) p->out_of_memory = 1;
    return copy;
}

static int is_wanted(const planner *p, const char *place)
{
    const bench_words *words = &p->run->args.places;
    for (size_t i = 0; i < words->count; i++)
        if (strstr(place, words->words[i])) return 1;
    return words->count == 0;
}

static int take_record(void *user, const jg_cache_plan *from)
{
    planner *p = user;
    const jg_measured *m = &from->measured;
    if (p->count == p->capacity) {
        const size_t capacity = 2 * p->capacity + 256;
        planner_record *grown = realloc(p->records, capacity * sizeof *grown);
        if (!grown) return p->out_of_memory = 1;
        p->records = grown;
        p->capacity = capacity;
    }
    p->records[p->count++] = (planner_record){
        .problem = copy_text(p, from->problem), .place = copy_text(p, from->place), .kernel = copy_text(p, from->kernel),
        .planned = copy_text(p, m->planned), .runner_up = copy_text(p, m->runner_up), .reason = copy_text(p, m->reason),
        .device = copy_text(p, m->device), .us = m->us, .planned_us = m->planned_us, .runner_up_us = m->runner_up_us,
        .measured = m->measured, .all = m->all};
    return p->out_of_memory;
}

static int read_records(planner *p)
{
    jg_cache *cache;
    if (jg_cache_open(p->run->args.cache_path, 0, &cache) != JG_OK) return bench_fail(p->run, "%s", jg_last_error());
    snprintf(p->path, sizeof p->path, "%s", jg_cache_path(cache));
    const jg_status status = jg_cache_plans(cache, take_record, p);
    jg_cache_close(cache);
    if (status != JG_OK) return bench_fail(p->run, "%s", jg_last_error());
    if (p->out_of_memory) return bench_fail(p->run, "out of memory");
    if (p->count) return BENCH_EXIT_DONE;
    return bench_fail(p->run, "no recorded plans in %s; jitgemm-prewarm --tune --suite common16 makes some, on the device", p->path);
}

/* ---- problems ---- */

static void name_all_suites(bench_words *suites)
{
    for (size_t i = 0; bench_list_at(i) && suites->count < BENCH_WORDS_MAX; i++)
        if (i == 0 || strcmp(bench_list_at(i)->suite, bench_list_at(i - 1)->suite) != 0)
            suites->words[suites->count++] = bench_list_at(i)->suite;
}

/* The text under which the library records a problem: equal for all ways to say the same. */
static char *canonical_text(planner *p, const bench_product *product)
{
    char text[JG_PROBLEM_TEXT_BYTES];
    problem canonical;
    if (problem_canonicalise(&product->problem, &canonical) != JG_OK) return copy_text(p, product->text);
    const problem_key key = problem_key_of(&canonical, problem_promised_access(&canonical));
    problem_key_format(&key, text, sizeof text);
    return copy_text(p, text);
}

static int collect_problems(planner *p)
{
    bench_args *args = &p->run->args;
    p->has_all = args->suites.count + args->lists.count + args->single.count == 0;
    if (p->has_all) name_all_suites(&args->suites);
    int status = bench_products_check(p->run);
    if (status == BENCH_EXIT_DONE) status = bench_products_collect(&p->s);
    if (status != BENCH_EXIT_DONE) return status;
    p->texts = calloc(p->s.count, sizeof *p->texts);
    if (!p->texts) return bench_fail(p->run, "out of memory");
    for (size_t i = 0; i < p->s.count; i++) p->texts[i] = canonical_text(p, &p->s.list[i]);
    return p->out_of_memory ? bench_fail(p->run, "out of memory") : BENCH_EXIT_DONE;
}

/* ---- both together ---- */

static planner_record *find_record(planner_record *records, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(records[i].problem, text) == 0) return &records[i];
    return NULL;
}

/* Adds a group of so many rows. Null if memory ran out. */
static planner_group *add_group(planner *p, planner_block *b, const char *suite, const char *list, size_t rows)
{
    planner_group *grown = realloc(b->groups, (b->count + 1) * sizeof *grown);
    if (grown) b->groups = grown;
    planner_row *own = grown ? calloc(rows, sizeof *own) : NULL;
    if (!own) {
        p->out_of_memory = 1;
        return NULL;
    }
    b->groups[b->count] = (planner_group){.suite = suite, .list = list, .rows = own};
    return &b->groups[b->count++];
}

static void add_row(planner_group *g, const char *text, planner_record *r)
{
    g->rows[g->sum.problems] = (planner_row){text, r};
    planner_sum one = {.problems = 1};
    if (r) {
        r->is_listed = 1;
        one.recorded = 1;
        one.known = !isnan(planner_loss(r));
        one.right = one.known && planner_is_right(r);
        one.logarithms = one.known ? log(planner_loss(r)) : 0;
        one.slowest = one.known ? r : NULL;
    }
    planner_add(&g->sum, &one);
}

static void add_listed(planner *p, planner_block *b, planner_record *records)
{
    const products *s = &p->s;
    for (size_t first = 0, end; first < s->count; first = end) {
        const bench_product *product = &s->list[first];
        for (end = first + 1; end < s->count && bench_products_same_group(product, &s->list[end]);) end++;
        planner_group *g = add_group(p, b, product->suite, product->list, end - first);
        if (!g) return;
        bench_label_make(&product->problem, g->type);
        for (size_t i = first; i < end; i++) add_row(g, s->list[i].text, find_record(records, b->records, p->texts[i]));
    }
}

/* What is recorded and in no suite: sizes of a user's own, and misses. */
static void add_others(planner *p, planner_block *b, planner_record *records)
{
    size_t others = 0;
    for (size_t i = 0; i < b->records; i++) others += !records[i].is_listed;
    planner_group *g = others ? add_group(p, b, "others", "others", others) : NULL;
    if (!g) return;
    snprintf(g->type, sizeof g->type, "any");
    for (size_t i = 0; i < b->records; i++)
        if (!records[i].is_listed) add_row(g, records[i].problem, &records[i]);
}

static int ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static int add_block(planner *p, size_t first, size_t end)
{
    planner_record *records = &p->records[first];
    planner_block *grown = realloc(p->blocks, (p->block_count + 1) * sizeof *grown);
    if (!grown) return bench_fail(p->run, "out of memory");
    p->blocks = grown;
    planner_block *b = &p->blocks[p->block_count++];
    *b = (planner_block){.place = records->place, .device = records->device, .records = end - first,
                         .software = ends_with(records->place, "software")};
    add_listed(p, b, records);
    if (p->has_all) add_others(p, b, records);
    for (size_t i = 0; i < b->count; i++) planner_add(&b->sum, &b->groups[i].sum);
    return p->out_of_memory ? bench_fail(p->run, "out of memory") : BENCH_EXIT_DONE;
}

/* A block for each place that is wanted. */
static int bring_together(planner *p)
{
    char places[512] = "";
    size_t used = 0, recorded = 0;
    int status = BENCH_EXIT_DONE;
    for (size_t first = 0, end; first < p->count && status == BENCH_EXIT_DONE; first = end) {
        const char *place = p->records[first].place;
        for (end = first + 1; end < p->count && strcmp(p->records[end].place, place) == 0;) end++;
        if (used < sizeof places) used += (size_t)snprintf(places + used, sizeof places - used, "%s\"%s\"", used ? ", " : "", place);
        if (is_wanted(p, place)) status = add_block(p, first, end);
    }
    if (status != BENCH_EXIT_DONE) return status;
    if (!p->block_count) return bench_fail(p->run, "--place: nothing is recorded for such a place; there are %s", places);
    for (size_t i = 0; i < p->block_count; i++) recorded += p->blocks[i].sum.recorded;
    if (recorded) return BENCH_EXIT_DONE;
    const bench_words *suites = &p->run->args.suites;
    return bench_fail(p->run, "none of these %zu sizes has a recorded plan in %s, which has %zu of others; jitgemm-prewarm --tune%s%s "
                      "records them, on the device", p->s.count, p->path, p->count, suites->count ? " --suite " : "",
                      suites->count ? suites->words[0] : "");
}

static int print(planner *p)
{
    const bench_format format = p->run->report.format;
    for (size_t i = 0; i < p->block_count; i++) {
        if (format == BENCH_TABLE) planner_print_table(&p->blocks[i], p->path, i == 0);
        if (format == BENCH_CSV) planner_print_csv(&p->blocks[i], i == 0);
    }
    if (format == BENCH_JSON && planner_print_json(p->blocks, p->block_count, p->path) != 0) return bench_fail(p->run, "out of memory");
    return BENCH_EXIT_DONE;
}

static void forget(planner *p)
{
    for (size_t i = 0; i < p->block_count; i++) {
        for (size_t g = 0; g < p->blocks[i].count; g++) free(p->blocks[i].groups[g].rows);
        free(p->blocks[i].groups);
    }
    free(p->blocks);
    for (size_t i = 0; i < p->count; i++) {
        planner_record *r = &p->records[i];
        free(r->problem), free(r->place), free(r->kernel), free(r->planned), free(r->runner_up), free(r->reason), free(r->device);
    }
    free(p->records);
    for (size_t i = 0; p->texts && i < p->s.count; i++) free(p->texts[i]);
    free(p->texts);
    bench_products_forget(&p->s);
}

int bench_planner(bench_run *run)
{
    planner p = {.run = run, .s = {.run = run}};
    int status = collect_problems(&p);
    if (status == BENCH_EXIT_DONE) status = read_records(&p);
    if (status == BENCH_EXIT_DONE) status = bring_together(&p);
    if (status == BENCH_EXIT_DONE) status = print(&p);
    forget(&p);
    return status;
}
