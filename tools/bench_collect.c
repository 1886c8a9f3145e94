/* Which products jitgemm-bench measures: see bench_products.h. */
#include "bench_products.h"

#include "bench_label.h"
#include "bench_suites.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SETS 4096u
#define SOFTWARE_FLOPS 6e8 /* the software GPU would compute more than this for minutes */

/* Of a list that was named twice, also as a part of its suite, each size is measured once: rows could not be told apart. */
static int is_known(const products *s, const char *suite, const char *list, const char *text)
{
    for (size_t i = s->count; i-- > 0;) {
        const bench_product *p = &s->list[i];
        if (strcmp(p->text, text) == 0 && strcmp(p->list, list) == 0 && strcmp(p->suite, suite) == 0) return 1;
    }
    return 0;
}

static int add_product(products *s, const char *suite, const char *list, const jg_problem *p, int rotated)
{
    bench_run *run = s->run;
    char text[JG_PROBLEM_TEXT_BYTES];
    bench_product product = {.problem = *p, .suite = suite, .list = list, .rotated = rotated};
    if (jg_problem_format(p, text, sizeof text, NULL) != JG_OK) return bench_fail_status(run, list);
    if (bench_layout_make(p, 0, 1, &product.layout) != JG_OK) return bench_fail_status(run, text);
    if (is_known(s, suite, list, text)) return BENCH_EXIT_DONE;
    if (run->gpu.software && bench_layout_flops(&product.layout) > (s->software_flops > 0 ? s->software_flops : SOFTWARE_FLOPS)) {
        s->left_out++;
        return BENCH_EXIT_DONE;
    }
    const size_t set = bench_layout_set_bytes(&product.layout);
    if (rotated) bench_layout_make(p, 2 * (size_t)run->gpu.l2_bytes + set, MOST_SETS, &product.layout);
    if (s->count == s->capacity) {
        const size_t capacity = 2 * s->capacity + 64;
        bench_product *grown = realloc(s->list, capacity * sizeof *grown);
        if (!grown) return bench_fail(run, "out of memory");
        s->list = grown;
        s->capacity = capacity;
    }
    product.text = strdup(text);
    if (!product.text) return bench_fail(run, "out of memory");
    s->list[s->count++] = product;
    return BENCH_EXIT_DONE;
}

/* Where sizes come from: one of these is set. */
typedef struct source {
    const bench_list *list;
    const char *file;
    const bench_words *single;
} source;

static int read_source(bench_run *run, const source *from, sizelist *sizes)
{
    const bench_args *args = &run->args;
    int read = 0;
    if (from->list) read = bench_list_problems(from->list, args->types, args->type_count, sizes);
    else if (from->file) read = sizelist_read(sizes, from->file, args->types, args->type_count);
    for (size_t i = 0; from->single && i < from->single->count && read == 0; i++)
        read = sizelist_add(sizes, from->single->words[i], args->types, args->type_count);
    if (read == 0) return BENCH_EXIT_DONE;
    bench_fail(run, "%s%s", from->single ? "--size: " : "", sizes->error);
    return BENCH_EXIT_USAGE;
}

/* Whether they are in one group of the table. */
static int same_type(const jg_problem *x, const jg_problem *y)
{
    char label_x[BENCH_LABEL_BYTES], label_y[BENCH_LABEL_BYTES];
    bench_label_make(x, label_x);
    bench_label_make(y, label_y);
    return strcmp(label_x, label_y) == 0;
}

int bench_products_same_group(const bench_product *x, const bench_product *y)
{
    return strcmp(x->suite, y->suite) == 0 && strcmp(x->list, y->list) == 0 && same_type(&x->problem, &y->problem);
}

/* Adds the sizes of one type and forgets them; the others keep their order. */
static int add_type(products *s, const source *from, const jg_problem *type, sizelist *sizes)
{
    const bench_data data = s->run->args.data;
    const int memory = from->list && from->list->memory;
    const int rotated = data == BENCH_DATA_ROTATED || (data == BENCH_DATA_BY_SUITE && memory);
    const char *slash = from->file ? strrchr(from->file, '/') : NULL, *name = slash ? slash + 1 : from->file;
    const char *suite = from->list ? from->list->suite : from->file ? "list" : "size";
    const char *list = from->list ? from->list->name : from->file ? name : "size";
    size_t left = 0;
    int status = BENCH_EXIT_DONE;
    for (size_t i = 0; i < sizes->count; i++) {
        if (!same_type(&sizes->items[i], type)) sizes->items[left++] = sizes->items[i];
        else if (status == BENCH_EXIT_DONE)
            status = add_product(s, suite, list, &sizes->items[i], rotated && !s->run->gpu.software);
    }
    sizes->count = left;
    return status;
}

/* Adds the sizes of a source, type by type, so that each type is one group of the table: those asked for, then those that lines
 * bring with them. */
static int add_source(products *s, const source *from)
{
    const bench_args *args = &s->run->args;
    sizelist sizes = {0};
    int status = read_source(s->run, from, &sizes);
    for (size_t t = 0; t < args->type_count && status == BENCH_EXIT_DONE; t++)
        status = add_type(s, from, &args->types[t], &sizes);
    while (sizes.count > 0 && status == BENCH_EXIT_DONE) {
        const jg_problem type = sizes.items[0];
        status = add_type(s, from, &type, &sizes);
    }
    sizelist_free(&sizes);
    return status;
}

/* A list that is a part of the program, by the first word that names it. */
static int is_first_word_for(const bench_list *list, const bench_words *words, size_t w)
{
    for (size_t i = 0; i < w; i++)
        if (bench_list_matches(list, words->words[i])) return 0;
    return bench_list_matches(list, words->words[w]);
}

int bench_products_check(bench_run *run)
{
    const bench_args *args = &run->args;
    int status = BENCH_EXIT_DONE;
    if (args->record && run->gpu.software)
        return bench_fail(run, "--record: the software GPU has no times, so there is no gain to record");
    for (size_t i = 0; i <= args->lists.count && status == BENCH_EXIT_DONE; i++) {
        sizelist sizes = {0};
        const char *file = i < args->lists.count ? args->lists.words[i] : NULL;
        if (!file || strcmp(file, "-") != 0) /* standard input can be read once only */
            status = read_source(run, &(source){.file = file, .single = file ? NULL : &args->single}, &sizes);
        sizelist_free(&sizes);
    }
    return status;
}

int bench_products_collect(products *s)
{
    const bench_args *args = &s->run->args;
    int status = BENCH_EXIT_DONE;
    for (size_t w = 0; w < args->suites.count && status == BENCH_EXIT_DONE; w++)
        for (size_t i = 0; bench_list_at(i) && status == BENCH_EXIT_DONE; i++)
            if (is_first_word_for(bench_list_at(i), &args->suites, w))
                status = add_source(s, &(source){.list = bench_list_at(i)});
    for (size_t i = 0; i < args->lists.count && status == BENCH_EXIT_DONE; i++)
        status = add_source(s, &(source){.file = args->lists.words[i]});
    if (status == BENCH_EXIT_DONE && args->single.count > 0) status = add_source(s, &(source){.single = &args->single});
    if (status == BENCH_EXIT_DONE && s->count == 0)
        status = bench_fail(s->run, s->left_out ? "every size is too large for the software GPU" : "there is no size to measure");
    return status;
}

void bench_products_forget(products *s)
{
    for (size_t i = 0; i < s->count; i++) free((char *)s->list[i].text);
    free(s->list);
    s->list = NULL;
    s->count = s->capacity = 0;
}
