/* The text form of a problem: jg_problem_parse and jg_problem_format. The grammar is in the public header; each rule
 * has a function here. Only ASCII digits and fixed words are read and written, so no locale matters.
 *
 * Strides need care: in a jg_problem, 0 shares one matrix between the items, while a text without strides means dense
 * items. So sharing is written out (sa=0), dense strides are not, and both read back as they were. */
#include "problem.h"
#include "status.h"
#include "text.h"

#include <string.h>

#define FORMAT_BYTES 256 /* the public header's promise; each part at its longest comes to 230 */
#define SHOWN_WORD 64    /* characters of a bad word that an error quotes */
#define SHOWN_TEXT 256   /* and of a bad text */

/* What a word says. A problem text says each thing once. */
enum {
    SAYS_TYPE,
    SAYS_OP,
    SAYS_ORDER,
    SAYS_FORM,
    SAYS_ALIGN,
    SAYS_DYNAMIC,
    SAYS_LD,                      /* three: of A, B and C */
    SAYS_STRIDE = SAYS_LD + 3,    /* three */
    SAYS_END = SAYS_STRIDE + 3
};

/* Words that stand for themselves. For an op, the value's bit 0 transposes A and bit 1 B. */
static const struct {
    const char *word;
    int says, value;
} fixed_words[] = {
    {"nn", SAYS_OP, 0},
    {"tn", SAYS_OP, 1},
    {"nt", SAYS_OP, 2},
    {"tt", SAYS_OP, 3},
    {"row", SAYS_ORDER, JG_ROW_MAJOR},
    {"col", SAYS_ORDER, JG_COL_MAJOR},
    {"generic", SAYS_FORM, JG_FORM_GENERIC},
    {"specialised", SAYS_FORM, JG_FORM_SPECIALISED},
};

/* Words with a value: a number, but for the dynamic dimensions. */
static const struct {
    const char *prefix;
    int says;
} valued_words[] = {
    {"lda=", SAYS_LD},         {"ldb=", SAYS_LD + 1},     {"ldc=", SAYS_LD + 2},   {"sa=", SAYS_STRIDE},
    {"sb=", SAYS_STRIDE + 1},  {"sc=", SAYS_STRIDE + 2},  {"align=", SAYS_ALIGN},
    {"dyn=", SAYS_DYNAMIC},
};

/* Letters of the dynamic dimensions: the i-th is for bit i of jg_problem.dynamic. */
static const char dynamic_letters[] = "mnkb";

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A piece of the text. */
typedef struct word {
    const char *start;
    size_t length;
} word;

/* What has been read so far. */
typedef struct reading {
    jg_problem p;
    int given[SAYS_END]; /* which things were said */
    int batch_given;
} reading;

static jg_status bad_word(word w, const char *why)
{
    int shown = w.length < SHOWN_WORD ? (int)w.length : SHOWN_WORD;
    return status_set(JG_ERR_PARSE, "\"%.*s\" %s", shown, w.start, why);
}

static int word_is(word w, const char *text)
{
    return strlen(text) == w.length && memcmp(w.start, text, w.length) == 0;
}

/* Cuts the part of *w before the first `separator` off and returns it; all of it if there is none. */
static word cut(word *w, char separator)
{
    const char *end = memchr(w->start, separator, w->length);
    word first = {w->start, end ? (size_t)(end - w->start) : w->length};
    size_t used = end ? first.length + 1 : first.length;
    w->start += used;
    w->length -= used;
    return first;
}

/* E: decimal digits that fit in 63 bits. Returns 0 if w is anything else. */
static int read_number(word w, int64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < w.length; i++) {
        if (w.start[i] < '0' || w.start[i] > '9') return 0;
        if (__builtin_mul_overflow(*value, 10, value)) return 0;
        if (__builtin_add_overflow(*value, w.start[i] - '0', value)) return 0;
    }
    return w.length > 0;
}

/* SIZE: N | MxNxK | MxNxKxBATCH */
static jg_status read_size(word w, reading *r)
{
    int64_t sizes[4];
    int count = 0, last;
    word rest = w;
    do {
        word part = cut(&rest, 'x');
        last = part.start + part.length == w.start + w.length;
        if (count == 4 || !read_number(part, &sizes[count++]) || (last && count == 2))
            return bad_word(w, "is not a size; use N, MxNxK or MxNxKxBATCH, each a number below 2^63");
    } while (!last);
    r->p.m = sizes[0];
    r->p.n = sizes[count == 1 ? 0 : 1];
    r->p.k = sizes[count == 1 ? 0 : 2];
    r->batch_given = count == 4;
    if (r->batch_given) r->p.batch = sizes[3];
    return JG_OK;
}

/* One of the names f32, f16, bf16. */
static int read_type_name(word w, jg_type *type)
{
    for (int t = JG_F32; t <= JG_BF16; t++) {
        *type = (jg_type)t;
        if (word_is(w, type_name(*type))) return 1;
    }
    return 0;
}

/* TYPE: A | A-C | A.B-C. Returns 0 if w is none. */
static int read_type(word w, jg_problem *p)
{
    word of_c = w;
    word of_ab = cut(&of_c, '-');
    word of_b = of_ab;
    word of_a = cut(&of_b, '.');
    int dash = of_ab.length < w.length, dot = of_a.length < of_ab.length;
    jg_type a, b, c;
    if (dot && !dash) return 0;
    if (!read_type_name(of_a, &a)) return 0;
    if (!read_type_name(dot ? of_b : of_a, &b)) return 0;
    if (!read_type_name(dash ? of_c : of_a, &c)) return 0;
    p->type_a = a;
    p->type_b = b;
    p->type_c = c;
    return 1;
}

static void apply_fixed(jg_problem *p, int says, int value)
{
    if (says == SAYS_ORDER) p->order = (jg_order)value;
    if (says == SAYS_FORM) p->form = (jg_form)value;
    if (says == SAYS_OP) {
        p->op_a = value & 1 ? JG_T : JG_N;
        p->op_b = value & 2 ? JG_T : JG_N;
    }
}

/* The member that a word with a number sets, but for align_bytes, which is narrower. */
static int64_t *number_member(jg_problem *p, int says)
{
    int64_t *const members[] = {&p->lda, &p->ldb, &p->ldc, &p->stride_a, &p->stride_b, &p->stride_c};
    return members[says - SAYS_LD];
}

static jg_status apply_number(jg_problem *p, int says, word w, word digits)
{
    int64_t value;
    if (!read_number(digits, &value)) return bad_word(w, "needs a number below 2^63 after the =");
    if (says != SAYS_ALIGN) {
        *number_member(p, says) = value;
        return JG_OK;
    }
    if (value > UINT32_MAX) return bad_word(w, "is too large; use a power of two up to 4096");
    p->align_bytes = (uint32_t)value;
    return JG_OK;
}

/* D: a non-empty subset of mnkb. */
static jg_status apply_dynamic(jg_problem *p, word w, word letters)
{
    static const char needs[] = "needs one or more of the letters m, n, k and b after the =, each once";
    uint32_t dynamic = 0;
    if (letters.length == 0) return bad_word(w, needs);
    for (size_t i = 0; i < letters.length; i++) {
        const char *letter = memchr(dynamic_letters, letters.start[i], sizeof dynamic_letters - 1);
        const uint32_t bit = letter ? 1u << (letter - dynamic_letters) : 0;
        if (!bit || dynamic & bit) return bad_word(w, needs);
        dynamic |= bit;
    }
    p->dynamic = dynamic;
    return JG_OK;
}

/* WORD: TYPE | OP | row | col | generic | specialised | lda=E | ... | align=BYTES | dyn=D. *says tells what it was about. */
static jg_status read_word(word w, jg_problem *p, int *says)
{
    *says = SAYS_TYPE;
    if (read_type(w, p)) return JG_OK;
    for (size_t i = 0; i < COUNT(fixed_words); i++) {
        *says = fixed_words[i].says;
        if (word_is(w, fixed_words[i].word)) {
            apply_fixed(p, *says, fixed_words[i].value);
            return JG_OK;
        }
    }
    for (size_t i = 0; i < COUNT(valued_words); i++) {
        size_t prefix = strlen(valued_words[i].prefix);
        if (w.length < prefix || memcmp(w.start, valued_words[i].prefix, prefix) != 0) continue;
        const word value = {w.start + prefix, w.length - prefix};
        *says = valued_words[i].says;
        return *says == SAYS_DYNAMIC ? apply_dynamic(p, w, value) : apply_number(p, *says, w, value);
    }
    return bad_word(w, "is not known; use types like f16, bf16-f32 or f16.f16-f32, nn nt tn tt, row, col, generic, "
                       "specialised, lda= ldb= ldc= sa= sb= sc= align= or dyn=");
}

/* Leading dimension and stride of one matrix, as they are and as they would be if densely packed. */
typedef struct packing {
    int64_t ld, dense_ld, stride, dense_stride;
} packing;

/* rows * ld fits: the problem has been checked, so (rows - 1) * ld elements of 2 bytes or more do, and twice that is no
 * less than rows * ld, but for a single row, where ld itself fits. */
static packing pack(int64_t rows, int64_t cols, int64_t ld, int64_t stride)
{
    return (packing){ld, cols > 0 ? cols : 1, stride, rows * ld};
}

/* The three matrices in the order of the caller's A, B, C. */
static void pack_all(const problem *c, packing out[3])
{
    int ta = c->op_a == JG_T, tb = c->op_b == JG_T;
    out[c->swapped ? 1 : 0] = pack(ta ? c->k : c->m, ta ? c->m : c->k, c->lda, c->stride_a);
    out[c->swapped ? 0 : 1] = pack(tb ? c->n : c->k, tb ? c->k : c->n, c->ldb, c->stride_b);
    out[2] = pack(c->m, c->n, c->ldc, c->stride_c);
}

/* Gives the matrices of a batch the strides that neither the text nor the caller's defaults give. */
static jg_status fill_strides(reading *r)
{
    jg_problem *p = &r->p;
    packing dense[3];
    problem single;
    /* Any stride tells an empty batch from none. */
    if (r->batch_given && p->batch == 0 && !p->stride_a && !p->stride_b && !p->stride_c) p->stride_c = 1;
    if (p->batch <= 1) return JG_OK;
    jg_problem one = *p;
    one.batch = 1;
    RETURN_IF_ERROR(problem_canonicalise(&one, &single));
    pack_all(&single, dense);
    for (int x = 0; x < 3; x++) {
        int64_t *stride = number_member(p, SAYS_STRIDE + x);
        if (!r->given[SAYS_STRIDE + x] && *stride == 0) *stride = dense[x].dense_stride;
    }
    return JG_OK;
}

/* SIZE[:WORD]... */
static jg_status read_problem(const char *text, reading *r)
{
    word rest = {text, strlen(text)};
    word w = cut(&rest, ':');
    const char *end = rest.start + rest.length;
    RETURN_IF_ERROR(read_size(w, r));
    while (w.start + w.length < end) {
        int says;
        w = cut(&rest, ':');
        RETURN_IF_ERROR(read_word(w, &r->p, &says));
        if (r->given[says]++) return bad_word(w, "says again what an earlier word said; leave one of them out");
    }
    RETURN_IF_ERROR(fill_strides(r));
    problem checked;
    return problem_canonicalise(&r->p, &checked);
}

jg_status jg_problem_parse(const char *text, jg_problem *in_out)
{
    if (!text) return status_set(JG_ERR_NULL, "jg_problem_parse: text is null");
    if (!in_out) return status_set(JG_ERR_NULL, "jg_problem_parse: problem is null");
    reading r = {.p = *in_out};
    jg_status status = read_problem(text, &r);
    if (status) return status_prefix(status, "problem text \"%.*s\": ", SHOWN_TEXT, text);
    *in_out = r.p;
    return JG_OK;
}

/* The text so far. */
typedef struct writing {
    char text[FORMAT_BYTES];
    size_t length;
} writing;

static void write_size(writing *w, const problem *c)
{
    long long m = c->swapped ? c->n : c->m, n = c->swapped ? c->m : c->n, k = c->k;
    if (c->batch != 1)
        text_append(w->text, sizeof w->text, &w->length, "%lldx%lldx%lldx%lld", m, n, k, (long long)c->batch);
    else if (m == n && n == k)
        text_append(w->text, sizeof w->text, &w->length, "%lld", m);
    else
        text_append(w->text, sizeof w->text, &w->length, "%lldx%lldx%lld", m, n, k);
}

/* The words that are not the default. A and B have one type in every supported combination. */
static void write_words(writing *w, const problem *c)
{
    jg_type ab = (jg_type)c->type_a, type_c = (jg_type)c->type_c;
    uint8_t op_a = c->swapped ? c->op_b : c->op_a, op_b = c->swapped ? c->op_a : c->op_b;
    if (ab != type_c)
        text_append(w->text, sizeof w->text, &w->length, ":%s-%s", type_name(ab), type_name(type_c));
    else if (ab != JG_F32)
        text_append(w->text, sizeof w->text, &w->length, ":%s", type_name(ab));
    if (op_a != JG_N || op_b != JG_N) text_append(w->text, sizeof w->text, &w->length, ":%c%c", op_a == JG_T ? 't' : 'n', op_b == JG_T ? 't' : 'n');
    if (c->swapped) text_append(w->text, sizeof w->text, &w->length, ":col");
    if (c->form != JG_FORM_AUTO) text_append(w->text, sizeof w->text, &w->length, c->form == JG_FORM_GENERIC ? ":generic" : ":specialised");
}

static void write_packing(writing *w, const problem *c)
{
    packing x[3];
    pack_all(c, x);
    for (int i = 0; i < 3; i++)
        if (x[i].ld != x[i].dense_ld) text_append(w->text, sizeof w->text, &w->length, ":ld%c=%lld", 'a' + i, (long long)x[i].ld);
    for (int i = 0; i < 3 && c->batch > 1; i++)
        if (x[i].stride != x[i].dense_stride) text_append(w->text, sizeof w->text, &w->length, ":s%c=%lld", 'a' + i, (long long)x[i].stride);
    if (c->align_bytes != 16) text_append(w->text, sizeof w->text, &w->length, ":align=%d", c->align_bytes);
}

/* By the caller's own names of the dimensions. */
static void write_dynamic(writing *w, const problem *c)
{
    const unsigned dynamic = c->swapped ? problem_transposed_dynamic(c->dynamic) : c->dynamic;
    if (dynamic == 0) return;
    text_append(w->text, sizeof w->text, &w->length, ":dyn=");
    for (int i = 0; dynamic_letters[i]; i++)
        if (dynamic >> i & 1) text_append(w->text, sizeof w->text, &w->length, "%c", dynamic_letters[i]);
}

jg_status jg_problem_format(const jg_problem *in, char *text, size_t size, size_t *length)
{
    writing w = {.length = 0};
    problem c;
    if (!in) return status_set(JG_ERR_NULL, "jg_problem_format: problem is null");
    if (!text && size > 0) return status_set(JG_ERR_NULL, "jg_problem_format: text is null, and size is not 0");
    RETURN_IF_ERROR(problem_canonicalise(in, &c));
    write_size(&w, &c);
    write_words(&w, &c);
    write_packing(&w, &c);
    write_dynamic(&w, &c);
    if (length) *length = w.length;
    if (size > 0) {
        size_t kept = w.length < size ? w.length : size - 1;
        memcpy(text, w.text, kept);
        text[kept] = 0;
    }
    return JG_OK;
}
