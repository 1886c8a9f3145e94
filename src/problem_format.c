/* Writing the text form of a problem: jg_problem_format. What the defaults say is left out; see problem_text.c for strides. */
#include "problem_text.h"
#include "status.h"
#include "text.h"

#include <string.h>

/* The text so far. */
typedef struct writing {
    char text[JG_PROBLEM_TEXT_BYTES]; /* the public header's promise; each part at its longest comes to less than 430 */
    size_t length;
} writing;

#define WRITE(w, ...) text_append((w)->text, sizeof (w)->text, &(w)->length, __VA_ARGS__)

static void write_size(writing *w, const jg_problem *p)
{
    const long long m = p->m, n = p->n, k = p->k;
    if (p->batch != 1)
        WRITE(w, "%lldx%lldx%lldx%lld", m, n, k, (long long)p->batch);
    else if (m == n && n == k)
        WRITE(w, "%lld", m);
    else
        WRITE(w, "%lldx%lldx%lld", m, n, k);
}

static void write_types(writing *w, const jg_problem *p)
{
    const int is_default_c = p->type_c == type_default_result(p->type_a, p->type_b);
    if (p->type_a == JG_F32 && p->type_b == JG_F32 && is_default_c) return;
    WRITE(w, ":%s", type_name(p->type_a));
    if (p->type_b != p->type_a) WRITE(w, ".%s", type_name(p->type_b));
    if (!is_default_c) WRITE(w, "-%s", type_name(p->type_c));
}

/* What the problem has of what a word can say. */
static uint32_t said(const jg_problem *p, const fixed_word *f)
{
    switch (f->says) {
    case SAYS_OP: return (p->op_a == JG_T ? 1 : 0) | (p->op_b == JG_T ? 2 : 0);
    case SAYS_ORDER: return p->order;
    case SAYS_FORM: return p->form;
    case SAYS_MATH: return p->math & MATH_MODE;
    case SAYS_FLUSH:
    case SAYS_SANITIZE: return p->math & f->value;
    case SAYS_ZEROS: return p->zero_points;
    case SAYS_ACTIVATION: return p->activation;
    default: return p->epilogue & f->value;
    }
}

/* The words that say something from `first` to `last`. */
static void write_fixed(writing *w, const jg_problem *p, int first, int last)
{
    for (const fixed_word *f = fixed_words; f->word; f++)
        if (f->says >= first && f->says <= last && f->value && said(p, f) == f->value) WRITE(w, ":%s", f->word);
}

static void write_packing(writing *w, const problem *c)
{
    packing x[MATRICES];
    const int count = problem_packings(c, x);
    for (int i = 0; i < count; i++)
        if (x[i].ld != x[i].dense_ld) WRITE(w, ":ld%c=%lld", matrix_letters[i], (long long)x[i].ld);
    for (int i = 0; i < count && c->batch > 1; i++)
        if (x[i].stride != x[i].dense_stride) WRITE(w, ":s%c=%lld", matrix_letters[i], (long long)x[i].stride);
    if (c->align_bytes != 16) WRITE(w, ":align=%d", c->align_bytes);
}

static void write_dynamic(writing *w, const jg_problem *p)
{
    if (p->dynamic == 0) return;
    WRITE(w, ":dyn=");
    for (int i = 0; dynamic_letters[i]; i++)
        if (p->dynamic >> i & 1) WRITE(w, "%c", dynamic_letters[i]);
}

static void write_problem(writing *w, const problem *c)
{
    const jg_problem p = problem_as_given(c);
    write_size(w, &p);
    write_types(w, &p);
    write_fixed(w, &p, SAYS_OP, SAYS_SANITIZE);
    if (p.group_k) WRITE(w, ":group=%u", (unsigned)p.group_k);
    write_fixed(w, &p, SAYS_ZEROS, SAYS_ACTIVATION);
    if (p.type_bias > JG_F32) WRITE(w, ":bias=%s", type_name(p.type_bias));
    write_packing(w, c);
    write_dynamic(w, &p);
}

jg_status jg_problem_format(const jg_problem *in, char *text, size_t size, size_t *length)
{
    writing w = {.length = 0};
    problem c;
    if (!in) return status_set(JG_ERR_NULL, "jg_problem_format: problem is null");
    if (!text && size > 0) return status_set(JG_ERR_NULL, "jg_problem_format: text is null, and size is not 0");
    RETURN_IF_ERROR(problem_canonicalise(in, &c));
    write_problem(&w, &c);
    if (length) *length = w.length;
    if (size > 0) {
        const size_t kept = w.length < size ? w.length : size - 1;
        memcpy(text, w.text, kept);
        text[kept] = 0;
    }
    return JG_OK;
}
