/* Collects problems, each once: see tune_list.h. */
#include "tune_list.h"

#include "bench_label.h"
#include "problem_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SETS 4096u /* of operands that are used in turns */

const char *tune_outcome_name(tune_outcome outcome)
{
    static const char *const names[] = {[TUNE_LEFT] = "left", [TUNE_TUNED] = "tuned", [TUNE_KEPT] = "kept", [TUNE_KNOWN] = "known",
                                        [TUNE_FAILED] = "failed", [TUNE_EMPTY] = "empty", [TUNE_TOO_LARGE] = "too large"};
    return names[outcome];
}

double tune_gain(const tune_found *found)
{
    return found->us > 0 && found->planned_us > 0 ? found->planned_us / found->us : 0;
}

int tune_is_recorded(const tune_problem *p)
{
    const int left = p->outcome == TUNE_LEFT && p->created > 0;
    return left || p->outcome == TUNE_TUNED || p->outcome == TUNE_KEPT || p->outcome == TUNE_KNOWN;
}

static int no_memory(tune_list *list)
{
    snprintf(list->error, sizeof list->error, "out of memory");
    return -1;
}

void tune_key_format(const jg_problem *in, char *text, size_t size)
{
    problem canonical;
    *text = 0;
    if (problem_canonicalise(in, &canonical) != JG_OK) return;
    const problem_key key = problem_key_of(&canonical, problem_promised_access(&canonical));
    problem_key_format(&key, text, size);
}

/* The number of a problem; the number of all if it is new. */
static size_t find_problem(const tune_list *list, const char *text, const char *key)
{
    size_t i = 0;
    while (i < list->count && strcmp(list->problems[i].product.text, text) != 0 && (!*key || strcmp(list->problems[i].key, key) != 0))
        i++;
    return i;
}

/* What cannot be laid out in memory has failed before it is measured. rotated_bytes: as bench_layout_make has it. */
static void lay_out(tune_problem *p, size_t rotated_bytes)
{
    problem canonical;
    bench_layout *l = &p->product.layout;
    const jg_problem *in = &p->product.problem;
    jg_status status = problem_canonicalise(in, &canonical);
    if (status == JG_OK && problem_is_empty(&canonical)) {
        p->outcome = TUNE_EMPTY;
        return;
    }
    if (status == JG_OK) status = bench_layout_make(in, 0, 1, l);
    if (status == JG_OK && rotated_bytes) status = bench_layout_make(in, rotated_bytes + bench_layout_set_bytes(l), MOST_SETS, l);
    if (status == JG_OK) return;
    p->outcome = TUNE_FAILED;
    snprintf(p->error, sizeof p->error, "%s", jg_last_error());
}

static int add_problem(tune_list *list, const char *group, const jg_problem *in, const char *text, const char *key,
                       size_t rotated_bytes)
{
    if (list->count == list->capacity) {
        const size_t capacity = 2 * list->capacity + 64;
        tune_problem *grown = realloc(list->problems, capacity * sizeof *grown);
        if (!grown) return no_memory(list);
        list->problems = grown;
        list->capacity = capacity;
    }
    tune_problem *p = &list->problems[list->count];
    memset(p, 0, sizeof *p);
    p->product = (bench_product){.problem = *in, .suite = group, .list = group, .rotated = rotated_bytes > 0};
    lay_out(p, rotated_bytes);
    p->product.text = strdup(text);
    p->key = strdup(key);
    list->count++;
    if (!p->product.text || !p->key) return no_memory(list);
    return 0;
}

/* Adds a row for a problem, and the problem if it is new. */
static int add_row(tune_list *list, const char *group, const jg_problem *in, size_t rotated_bytes)
{
    char text[JG_PROBLEM_TEXT_BYTES], key[JG_PROBLEM_TEXT_BYTES];
    if (jg_problem_format(in, text, sizeof text, NULL) != JG_OK) {
        snprintf(list->error, sizeof list->error, "%s", jg_last_error());
        return -1;
    }
    tune_key_format(in, key, sizeof key);
    const size_t number = find_problem(list, text, key);
    if (number == list->count && add_problem(list, group, in, text, key, rotated_bytes) != 0) return -1;
    size_t *grown = realloc(list->rows, (list->row_count + 1) * sizeof *grown);
    if (!grown) return no_memory(list);
    list->rows = grown;
    list->rows[list->row_count++] = number;
    return 0;
}

static int end_group(tune_list *list, const char *name)
{
    prewarm_group *grown = realloc(list->groups, (list->group_count + 1) * sizeof *grown);
    if (!grown) return no_memory(list);
    list->groups = grown;
    list->groups[list->group_count++] = (prewarm_group){.name = name, .end = list->row_count};
    return 0;
}

/* Type by type, since the operands' numbers have to be made anew where it changes. is_taken: a 0 for each of the items. */
static int add_group(tune_list *list, const char *name, const jg_problem *items, size_t count, size_t rotated_bytes, char *is_taken)
{
    char type[BENCH_LABEL_BYTES], other[BENCH_LABEL_BYTES];
    for (size_t first = 0; first < count; first++) {
        if (is_taken[first]) continue;
        bench_label_make(&items[first], type);
        for (size_t i = first; i < count; i++) {
            bench_label_make(&items[i], other);
            if (is_taken[i] || strcmp(type, other) != 0) continue;
            is_taken[i] = 1;
            if (add_row(list, name, &items[i], rotated_bytes) != 0) return -1;
        }
    }
    return end_group(list, name);
}

int tune_list_add_sizes(tune_list *list, const prewarm_args *args, int l2_bytes)
{
    size_t begin = 0;
    int result = 0;
    char *is_taken = calloc(args->sizes.count + 1, 1);
    if (!is_taken) return no_memory(list);
    for (size_t g = 0; g < args->group_count && result == 0; begin = args->groups[g++].end) {
        const prewarm_group *group = &args->groups[g];
        const size_t rotated_bytes = group->memory && l2_bytes > 0 ? 2 * (size_t)l2_bytes : 0;
        result = add_group(list, group->name, &args->sizes.items[begin], group->end - begin, rotated_bytes, is_taken + begin);
    }
    free(is_taken);
    return result;
}

int tune_list_add_texts(tune_list *list, const char *group, char *const *texts, size_t count, size_t *passed)
{
    *passed = 0;
    for (size_t i = 0; i < count; i++) {
        jg_problem parsed = {0};
        if (jg_problem_parse(texts[i], &parsed) != JG_OK) (*passed)++;
        else if (add_row(list, group, &parsed, 0) != 0) return -1;
    }
    return count > *passed ? end_group(list, group) : 0;
}

void tune_list_free(tune_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free((char *)list->problems[i].product.text);
        free(list->problems[i].key);
        tune_rank_free(&list->problems[i].rank);
    }
    free(list->problems);
    free(list->rows);
    free(list->groups);
    *list = (tune_list){0};
}
