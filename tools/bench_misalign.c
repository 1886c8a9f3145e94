/* Sizes in four layouts each: see bench_misalign.h. */
#include "bench_misalign.h"

#include "bench_label.h"
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[BENCH_MISALIGNS] = {
    [BENCH_ALIGNED] = "aligned", [BENCH_ODD_LD] = "odd ld", [BENCH_OFFSET] = "offset", [BENCH_PADDED] = "padded"};

const char *bench_misalign_name(bench_misalign layout)
{
    return names[layout];
}

bench_misalign bench_misalign_of(const jg_problem *p)
{
    problem c;
    if (p->align_bytes && p->align_bytes < 16) return BENCH_OFFSET;
    if (p->lda == 0 || problem_canonicalise(p, &c) != JG_OK) return BENCH_ALIGNED;
    const jg_type type = (jg_type)(c.swapped ? c.type_b : c.type_a); /* of the caller's A */
    return p->lda == jg_good_ld(type, p->lda) ? BENCH_PADDED : BENCH_ODD_LD;
}

static int64_t longer(bench_misalign layout, jg_type type, int64_t ld)
{
    return layout == BENCH_PADDED ? jg_good_ld(type, ld + 1) : ld + (type == JG_S4 ? 2 : 1);
}

/* The problem in a layout. One that the library does not take stays as it is, for the library to refuse. */
static jg_problem laid_out(const jg_problem *p, bench_misalign layout)
{
    problem c;
    jg_problem out = *p;
    if (layout == BENCH_ALIGNED || problem_canonicalise(p, &c) != JG_OK) return out;
    const jg_type a = (jg_type)c.type_a, b = (jg_type)c.type_b;
    if (layout == BENCH_OFFSET) {
        const size_t least = type_bytes(a) < type_bytes(b) ? type_bytes(a) : type_bytes(b), of_c = type_bytes((jg_type)c.type_c);
        out.align_bytes = (uint32_t)(of_c < least ? of_c : least);
        return out;
    }
    const int64_t lda = longer(layout, a, c.lda), ldb = longer(layout, b, c.ldb);
    out.lda = c.swapped ? ldb : lda;
    out.ldb = c.swapped ? lda : ldb;
    out.ldc = longer(layout, (jg_type)c.type_c, c.ldc);
    return out;
}

static int same_size(const jg_problem *x, const jg_problem *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->batch == y->batch;
}

int bench_misalign_expand(const sizelist *sizes, sizelist *out)
{
    const size_t count = sizes->count * BENCH_MISALIGNS;
    jg_problem *grown = realloc(out->items, (out->count + count) * sizeof *grown);
    if (!grown) return -1;
    out->items = grown;
    out->capacity = out->count + count;
    for (size_t first = 0, end; first < sizes->count; first = end) {
        for (end = first + 1; end < sizes->count && same_size(&sizes->items[end], &sizes->items[first]);) end++;
        for (int layout = 0; layout < BENCH_MISALIGNS; layout++)
            for (size_t i = first; i < end; i++)
                out->items[out->count++] = laid_out(&sizes->items[i], (bench_misalign)layout);
    }
    return 0;
}

static int same_kind(const jg_problem *x, const jg_problem *y)
{
    char label_x[BENCH_LABEL_BYTES], label_y[BENCH_LABEL_BYTES];
    bench_label_make(x, label_x);
    bench_label_make(y, label_y);
    return strcmp(label_x, label_y) == 0;
}

double bench_misalign_cost(bench_misalign_base *base, const jg_problem *p, double us)
{
    if (bench_misalign_of(p) == BENCH_ALIGNED) *base = (bench_misalign_base){*p, us};
    const int is_known = us > 0 && base->us > 0 && same_size(p, &base->problem) && same_kind(p, &base->problem);
    return is_known ? us / base->us : NAN;
}
