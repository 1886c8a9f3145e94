/* The tables of the page. See bench_tables.h. A column that no row has anything for is left out. */
#include "bench_tables.h"

#include "bench_group.h"
#include "bench_result.h"

#include <math.h>
#include <string.h>

#define COLUMNS_MOST 24 /* of peers or counters, which the document names; more would be no table */

#define OPEN_ROWS 40    /* if there are more in all, the tables are folded */

/* Names that rows have in common, in the order in which they appear. */
typedef struct names {
    const char *items[COLUMNS_MOST];
    size_t count;
} names;

static void add_name(names *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i], name) == 0) return;
    if (all->count < COLUMNS_MOST && *name) all->items[all->count++] = name;
}

static void text_cell(bench_page *page, const char *before, const char *text, const char *after)
{
    bench_page_markup(page, "%s", before);
    bench_page_text(page, text);
    bench_page_markup(page, "%s", after);
}

/* ---- rows ---- */

double bench_row_error(const cJSON *row)
{
    return json_number(json_object(row, "check"), "reference");
}

/* What the columns of a group's table are. */
typedef struct row_columns {
    names peers, counters;
    int times, spread, ratio, cost, roofline, check, kernel;
} row_columns;

static row_columns columns_of(const cJSON *first)
{
    row_columns c = {0};
    for (const cJSON *row = first; row; row = bench_group_row(row)) {
        for (const cJSON *who = json_first(row, "contestants"); who; who = who->next)
            if (strcmp(json_text(who, "name"), BENCH_OURS) != 0) add_name(&c.peers, json_text(who, "name"));
        const cJSON *counters = json_object(row, "counters");
        for (const cJSON *counter = counters ? counters->child : NULL; counter; counter = counter->next)
            if (isfinite(json_value(counter)) && counter->string) add_name(&c.counters, counter->string);
        c.times |= isfinite(bench_median(row, BENCH_OURS));
        c.spread |= isfinite(json_number(json_object(bench_contestant(row, BENCH_OURS), "us"), "p25"));
        c.kernel |= *json_text(row, "kernel") != 0;
        c.ratio |= isfinite(json_number(row, "ratio"));
        c.cost |= isfinite(json_number(row, "cost"));
        c.roofline |= isfinite(json_number(row, "roofline_percent"));
        c.check |= isfinite(bench_row_error(row));
    }
    return c;
}

static void put_row_heading(bench_page *page, const row_columns *c)
{
    bench_page_markup(page, "<thead><tr><th scope=\"col\">m \xC3\x97 n \xC3\x97 k</th>");
    if (c->times)
        bench_page_markup(page, "<th scope=\"col\" class=\"n\">ours, us</th>");
    if (c->spread) bench_page_markup(page, "<th scope=\"col\" class=\"n\">p25\xE2\x80\x93p75</th>");
    for (size_t i = 0; i < c->peers.count; i++) text_cell(page, "<th scope=\"col\" class=\"n\">", c->peers.items[i], ", us</th>");
    if (c->ratio) bench_page_markup(page, "<th scope=\"col\" class=\"n\">ratio</th><th scope=\"col\" class=\"n\">p</th>");
    if (c->cost) bench_page_markup(page, "<th scope=\"col\" class=\"n\">time / aligned</th>");
    if (c->roofline)
        bench_page_markup(page, "<th scope=\"col\" class=\"n\">%% of roofline</th><th scope=\"col\">bound by</th>");
    for (size_t i = 0; i < c->counters.count; i++) {
        bench_page_markup(page, "<th scope=\"col\" class=\"n\">");
        for (const char *word = c->counters.items[i]; *word;) {
            const size_t bytes = strcspn(word, "_");
            bench_page_text_part(page, word, bytes);
            word += bytes;
            if (*word) bench_page_markup(page, " ");
            word += *word == '_';
        }
        bench_page_markup(page, "</th>");
    }
    if (c->check) bench_page_markup(page, "<th scope=\"col\" class=\"n\">error</th>");
    if (c->kernel) bench_page_markup(page, "<th scope=\"col\">kernel</th>");
    bench_page_markup(page, "</tr></thead>\n<tbody>\n");
}

/* A contestant's median, or that it refused; the reason is in the cell for who points at it, and in full under the table. */
static void put_peer_cell(bench_page *page, const cJSON *row, const char *name)
{
    const cJSON *who = bench_contestant(row, name);
    const char *refused = json_text(who, "refused");
    if (!*refused) {
        bench_page_number_cell(page, bench_median(row, name), 2);
        return;
    }
    text_cell(page, "<td class=\"n\"><small title=\"", refused, "");
    bench_page_markup(page, "\">%s</small></td>", bench_is_no_peer(who) ? BENCH_NO_PEER : "refused");
}

static void put_check_cell(bench_page *page, const cJSON *row)
{
    const double error = bench_row_error(row), peer = json_number(json_object(row, "check"), "peer");
    if (!(error > 1) && !(peer > 1)) {
        bench_page_number_cell(page, error, 2);
        return;
    }
    bench_page_markup(page, error > 1 ? "<td class=\"n wrong\">wrong, " : "<td class=\"n\">");
    bench_page_number(page, error, 2);
    if (peer > 1 && !(error > 1)) {
        bench_page_markup(page, " <small title=\"largest difference to a peer's result / what is allowed\">peer off ");
        bench_page_number(page, peer, 0);
        bench_page_markup(page, "\xC3\x97</small>");
    }
    bench_page_markup(page, "</td>");
}

static void put_time_cells(bench_page *page, const cJSON *row, int spread)
{
    const cJSON *us = json_object(bench_contestant(row, BENCH_OURS), "us");
    const double p25 = json_number(us, "p25"), p75 = json_number(us, "p75");
    bench_page_number_cell(page, json_number(us, "p50"), 2);
    if (!spread) return;
    bench_page_markup(page, "<td class=\"n\"><small>");
    if (isfinite(p25) && isfinite(p75)) {
        bench_page_number(page, p25, 2);
        bench_page_markup(page, "\xE2\x80\x93");
        bench_page_number(page, p75, 2);
    }
    bench_page_markup(page, "</small></td>");
}

static void put_row(bench_page *page, const cJSON *row, const row_columns *c)
{
    const double ratio = json_number(row, "ratio"), p = json_number(row, "ratio_p");
    const cJSON *counters = json_object(row, "counters");
    bench_page_markup(page, "<tr><th scope=\"row\">");
    bench_size_text(page, row);
    bench_page_markup(page, "</th>");
    if (c->times) put_time_cells(page, row, c->spread);
    for (size_t i = 0; i < c->peers.count; i++) put_peer_cell(page, row, c->peers.items[i]);
    if (c->ratio) {
        bench_page_number_cell(page, ratio, 2);
        bench_page_markup(page, "<td class=\"n\">");
        if (isfinite(p)) bench_page_markup(page, p < 0.0001 ? "&lt; 0.0001" : "%.4f", p);
        bench_page_markup(page, "</td>");
    }
    if (c->cost) bench_page_number_cell(page, json_number(row, "cost"), 2);
    if (c->roofline) {
        bench_page_number_cell(page, json_number(row, "roofline_percent"), 1);
        text_cell(page, "<td>", json_text(row, "bound"), "</td>");
    }
    for (size_t i = 0; i < c->counters.count; i++)
        bench_page_number_cell(page, json_number(counters, c->counters.items[i]), 0);
    if (c->check) put_check_cell(page, row);
    if (c->kernel) text_cell(page, "<td class=\"kernel\"><code>", json_text(row, "kernel"), "</code></td>");
    bench_page_markup(page, "</tr>\n");
}

/* The reasons in full: a pointer is not had on paper or on a phone. */
static void put_reasons(bench_page *page, const cJSON *first)
{
    names reasons = {.count = 0};
    for (const cJSON *row = first; row; row = bench_group_row(row))
        for (const cJSON *who = json_first(row, "contestants"); who; who = who->next)
            add_name(&reasons, json_text(who, "refused"));
    for (size_t i = 0; i < reasons.count; i++) {
        const int is_none = strncmp(reasons.items[i], BENCH_NO_PEER, strlen(BENCH_NO_PEER)) == 0;
        text_cell(page, is_none ? "<p class=\"refused\">" : "<p class=\"refused\">Refused: ", reasons.items[i], "</p>\n");
    }
}

void bench_write_rows(bench_page *page, const cJSON *result)
{
    const int simulated = json_true(json_object(result, "environment"), "software");
    const int open = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(result, "rows")) <= OPEN_ROWS;
    bench_page_markup(page,
                      "<p class=\"muted\">%s Error: the largest one found / what is allowed; above 1 a result is wrong.</p>\n",
                      simulated ? "Counters of one product."
                                : "Times are medians of one product in microseconds, with the quartiles "
                                  "of ours beside.");
    for (const cJSON *first = bench_group_next(result, NULL); first; first = bench_group_next(result, first)) {
        const row_columns c = columns_of(first);
        size_t rows = 0;
        for (const cJSON *row = first; row; row = bench_group_row(row)) rows++;
        bench_page_markup(page, "<details class=\"card fold\"%s><summary><h3>", open ? " open=\"open\"" : "");
        bench_group_title(page, first);
        bench_page_markup(page, "</h3> <span class=\"muted\">%zu row%s</span></summary>\n", rows, rows == 1 ? "" : "s");
        bench_page_table(page, "rows", NULL);
        put_row_heading(page, &c);
        for (const cJSON *row = first; row; row = bench_group_row(row)) put_row(page, row, &c);
        bench_page_table_end(page);
        put_reasons(page, first);
        bench_page_markup(page, "</details>\n");
    }
}

/* ---- series, counts, targets ---- */

const cJSON *bench_series_next(const cJSON *series)
{
    const cJSON *next = series->next;
    while (next && !(cJSON_IsObject(next) &&
                     strcmp(json_text(next, "command"), json_text(series, "command")) == 0 &&
                     strcmp(json_text(next, "unit"), json_text(series, "unit")) == 0))
        next = next->next;
    return next;
}

void bench_write_series(bench_page *page, const cJSON *first)
{
    static const char *const figures[] = {"min", "p25", "p50", "p75", "p99", "p99.9", "max"};
    enum { MIN, P25, P50, P75, P99, P999, MAX, FIGURES };
    const char *unit = json_text(first, "unit");
    int have[FIGURES] = {0};
    for (const cJSON *s = first; s; s = bench_series_next(s))
        for (int i = 0; i < FIGURES; i++) have[i] |= isfinite(json_number(s, figures[i]));
    /* Where the tail is what counts, the quartiles would only push it out of a narrow page. */
    if (have[P999]) have[P25] = have[P75] = 0;
    bench_page_table(page, "series", NULL);
    text_cell(page, "<thead><tr><th scope=\"col\">", *unit ? unit : "series", "</th><th scope=\"col\" class=\"n\">n</th>");
    for (int i = 0; i < FIGURES; i++)
        if (have[i]) bench_page_markup(page, "<th scope=\"col\" class=\"n\">%s</th>", figures[i]);
    bench_page_markup(page, "</tr></thead>\n<tbody>\n");
    for (const cJSON *s = first; s; s = bench_series_next(s)) {
        text_cell(page, "<tr><th scope=\"row\" class=\"wrap\">", json_text(s, "name"), "</th>");
        bench_page_number_cell(page, json_number(s, "n"), 0);
        for (int i = 0; i < FIGURES; i++)
            if (have[i]) bench_page_number_cell(page, json_number(s, figures[i]), bench_page_decimals(unit));
        bench_page_markup(page, "</tr>\n");
    }
    bench_page_table_end(page);
}

void bench_write_counts(bench_page *page, const cJSON *result)
{
    bench_page_markup(page, "<div class=\"card narrow\">\n");
    bench_page_table(page, "counts", "command|count|#value");
    for (const cJSON *count = json_first(result, "counts"); count; count = count->next) {
        text_cell(page, "<tr><td>", json_text(count, "command"), "</td>");
        text_cell(page, "<th scope=\"row\" class=\"wrap\">", json_text(count, "name"), "</th>");
        bench_page_number_cell(page, json_number(count, "value"), 0);
        bench_page_markup(page, "</tr>\n");
    }
    bench_page_table_end(page);
    bench_page_markup(page, "</div>\n");
}

void bench_write_targets(bench_page *page, const cJSON *result)
{
    bench_page_markup(page, "<div class=\"card\">\n");
    bench_page_table(page, "targets", "verdict|target|#value|#at most|unit|command");
    for (const cJSON *target = json_first(result, "targets"); target; target = target->next) {
        const char *unit = json_text(target, "unit");
        const int met = json_true(target, "met");
        bench_page_markup(page, "<tr><td class=\"%s\">%s</td>", met ? "met" : "missed",
                          met ? "\xE2\x9C\x93 met" : "\xE2\x9C\x97 missed");
        text_cell(page, "<th scope=\"row\" class=\"wrap\">", json_text(target, "name"), "</th>");
        bench_page_number_cell(page, json_number(target, "value"), bench_page_decimals(unit));
        const double limit = json_number(target, "limit");
        bench_page_number_cell(page, limit, limit == floor(limit) ? 0 : 2);
        text_cell(page, "<td>", unit, "</td>");
        text_cell(page, "<td>", json_text(target, "command"), "</td></tr>\n");
    }
    bench_page_table_end(page);
    bench_page_markup(page, "</div>\n");
}

/* ---- drift ---- */

/* A value of an environment: text, a number, or a truth. */
static void put_value(bench_page *page, const cJSON *object, const char *name)
{
    const double number = json_number(object, name);
    const cJSON *value = cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, name) : NULL;
    if (isfinite(number)) bench_page_markup(page, "%.10g", number);
    else if (cJSON_IsBool(value)) bench_page_markup(page, cJSON_IsTrue(value) ? "yes" : "no");
    else bench_page_text(page, json_text(object, name));
}

static void put_changed(bench_page *page, const cJSON *drift)
{
    const cJSON *change = json_first(drift, "changed");
    if (!change) return;
    bench_page_markup(page, "<div class=\"card\"><h3>Changed in the environment</h3>\n");
    bench_page_table(page, "changed environment", "what|base|now");
    for (; change; change = change->next) {
        text_cell(page, "<tr><th scope=\"row\">", json_text(change, "what"), "</th><td>");
        put_value(page, change, "base");
        bench_page_markup(page, "</td><td>");
        put_value(page, change, "now");
        bench_page_markup(page, "</td></tr>\n");
    }
    bench_page_table_end(page);
    bench_page_markup(page, "</div>\n");
}

static void put_drift_row(bench_page *page, const cJSON *row)
{
    const char *verdict = json_text(row, "verdict"), *unit = json_text(row, "unit");
    const int slower = strcmp(verdict, "slower") == 0, faster = strcmp(verdict, "faster") == 0;
    const double change = json_number(row, "change_percent"), p = json_number(row, "p_adjusted");
    bench_page_markup(page, "<tr><td class=\"%s\">%s", slower ? "missed" : faster ? "met" : "muted",
                      slower ? "\xE2\x96\xBC " : faster ? "\xE2\x96\xB2 " : "");
    text_cell(page, "", verdict, "</td>");
    text_cell(page, "<th scope=\"row\" class=\"wrap\">", json_text(row, "name"), "</th>");
    bench_page_number_cell(page, json_number(row, "base"), bench_page_decimals(unit));
    bench_page_number_cell(page, json_number(row, "now"), bench_page_decimals(unit));
    text_cell(page, "<td>", unit, "</td><td class=\"n\">");
    if (isfinite(change)) {
        if (change > 0) bench_page_markup(page, "+");
        bench_page_number(page, change, 1);
        bench_page_markup(page, "%%");
    }
    bench_page_markup(page, "</td>");
    bench_page_number_cell(page, p, 4);
    bench_page_markup(page, "</tr>\n");
}

/* The rows of one kind: those that changed, or the others. */
static size_t put_drift_rows(bench_page *page, const cJSON *drift, int changed, int write)
{
    size_t count = 0;
    for (const cJSON *row = json_first(drift, "rows"); row; row = row->next) {
        const char *verdict = json_text(row, "verdict");
        const int is_change = strcmp(verdict, "slower") == 0 || strcmp(verdict, "faster") == 0;
        if (!cJSON_IsObject(row) || is_change != changed) continue;
        if (write) put_drift_row(page, row);
        count++;
    }
    return count;
}

static void put_drift_table(bench_page *page, const cJSON *drift, int changed)
{
    bench_page_table(page, changed ? "changes" : "no change", "verdict|measure|#base|#now|unit|#change|#p, adjusted");
    put_drift_rows(page, drift, changed, 1);
    bench_page_table_end(page);
}

static void put_name_list(bench_page *page, const cJSON *drift, const char *member, const char *heading)
{
    const cJSON *name = json_first(drift, member);
    if (!name) return;
    bench_page_markup(page, "<p class=\"refused\">%s: ", heading);
    for (; name; name = name->next) {
        bench_page_text(page, cJSON_GetStringValue(name));
        if (name->next) bench_page_markup(page, "; ");
    }
    bench_page_markup(page, "</p>\n");
}

void bench_write_drift(bench_page *page, const cJSON *drift)
{
    const size_t changes = put_drift_rows(page, drift, 1, 0), same = put_drift_rows(page, drift, 0, 0);
    const char *base = json_text(drift, "base");
    text_cell(page, "<p class=\"muted\">Compared with ", *base ? base : "a baseline", "");
    if (*json_text(drift, "base_started")) bench_page_markup(page, " of ");
    bench_page_date(page, json_text(drift, "base_started"));
    bench_page_markup(page, ": ");
    bench_page_number(page, json_number(drift, "base_runs"), 0);
    bench_page_markup(page, " processes then, ");
    bench_page_number(page, json_number(drift, "runs"), 0);
    bench_page_markup(page, " now. A change counts from ");
    bench_page_number(page, json_number(drift, "percent"), 1);
    bench_page_markup(page, "%% on, if chance makes it less often than ");
    bench_page_number(page, json_number(drift, "p"), 3);
    bench_page_markup(page, ".</p>\n");
    put_changed(page, drift);
    bench_page_markup(page, "<div class=\"card\">\n");
    if (changes) put_drift_table(page, drift, 1);
    else bench_page_markup(page, "<p>Nothing became slower or faster.</p>\n");
    if (same) {
        bench_page_markup(page, "<details><summary class=\"muted\">%zu without a change</summary>\n", same);
        put_drift_table(page, drift, 0);
        bench_page_markup(page, "</details>\n");
    }
    put_name_list(page, drift, "missing", "Only in the baseline");
    put_name_list(page, drift, "new", "Not in the baseline");
    bench_page_markup(page, "</div>\n");
}
