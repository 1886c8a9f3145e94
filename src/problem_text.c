/* Reading the text form of a problem: jg_problem_parse. The grammar is in the public header; each rule has a function here. Only
 * ASCII digits and fixed words are read and written (problem_format.c), so no locale matters.
 *
 * Strides need care: in a jg_problem, 0 shares one matrix between the items, while a text without strides means dense
 * items. So sharing is written out (sa=0), dense strides are not, and both read back as they were. */
#include "problem_text.h"
#include "status.h"

#include <string.h>

#define SHOWN_WORD 64                    /* characters of a bad word that an error quotes */
#define SHOWN_TEXT JG_PROBLEM_TEXT_BYTES /* and of a bad text */

const fixed_word fixed_words[] = {
    {"nn", SAYS_OP, 0},
    {"tn", SAYS_OP, 1},
    {"nt", SAYS_OP, 2},
    {"tt", SAYS_OP, 3},
    {"row", SAYS_ORDER, JG_ROW_MAJOR},
    {"col", SAYS_ORDER, JG_COL_MAJOR},
    {"generic", SAYS_FORM, JG_FORM_GENERIC},
    {"specialised", SAYS_FORM, JG_FORM_SPECIALISED},
    {"tf32", SAYS_MATH, JG_MATH_TF32},
    {"3xtf32", SAYS_MATH, JG_MATH_F32_3XTF32},
    {"strict", SAYS_MATH, JG_MATH_STRICT},
    {"f16acc", SAYS_MATH, JG_MATH_F16},
    {"flush", SAYS_FLUSH, JG_MATH_FLUSH},
    {"sanitize", SAYS_SANITIZE, JG_MATH_SANITIZE},
    {"zeros", SAYS_ZEROS, 1},
    {"scale", SAYS_SCALE, JG_EPILOGUE_SCALE},
    {"scale_m", SAYS_SCALE_M, JG_EPILOGUE_SCALE_M},
    {"scale_n", SAYS_SCALE_N, JG_EPILOGUE_SCALE_N},
    {"bias_m", SAYS_BIAS_M, JG_EPILOGUE_BIAS_M},
    {"bias_n", SAYS_BIAS_N, JG_EPILOGUE_BIAS_N},
    {"residual", SAYS_RESIDUAL, JG_EPILOGUE_RESIDUAL},
    {"residual_after", SAYS_RESIDUAL, JG_EPILOGUE_RESIDUAL_AFTER},
    {"requantize", SAYS_REQUANTIZE, JG_EPILOGUE_REQUANTIZE},
    {"relu", SAYS_ACTIVATION, JG_ACTIVATION_RELU},
    {"relu6", SAYS_ACTIVATION, JG_ACTIVATION_RELU6},
    {"clamp", SAYS_ACTIVATION, JG_ACTIVATION_CLAMP},
    {"gelu_tanh", SAYS_ACTIVATION, JG_ACTIVATION_GELU_TANH},
    {"gelu_erf", SAYS_ACTIVATION, JG_ACTIVATION_GELU_ERF},
    {"silu", SAYS_ACTIVATION, JG_ACTIVATION_SILU},
    {"sigmoid", SAYS_ACTIVATION, JG_ACTIVATION_SIGMOID},
    {NULL, 0, 0},
};

/* Words with a value. */
static const struct {
    const char *prefix;
    int says;
} valued_words[] = {
    {"lda=", SAYS_LD + MATRIX_A},
    {"ldb=", SAYS_LD + MATRIX_B},
    {"ldc=", SAYS_LD + MATRIX_C},
    {"ldr=", SAYS_LD + MATRIX_RESIDUAL},
    {"sa=", SAYS_STRIDE + MATRIX_A},
    {"sb=", SAYS_STRIDE + MATRIX_B},
    {"sc=", SAYS_STRIDE + MATRIX_C},
    {"sr=", SAYS_STRIDE + MATRIX_RESIDUAL},
    {"align=", SAYS_ALIGN},
    {"dyn=", SAYS_DYNAMIC},
    {"group=", SAYS_GROUP},
    {"bias=", SAYS_BIAS_TYPE},
};

const char dynamic_letters[] = "mnkb";
const char matrix_letters[] = "abcr";

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

/* A name of a type, up to the last in the enumeration that is meant. */
static int read_type_name(word w, jg_type last, jg_type *type)
{
    for (int t = JG_F32; t <= (int)last; t++) {
        *type = (jg_type)t;
        if (word_is(w, type_name(*type))) return 1;
    }
    return 0;
}

/* TYPE: A | A-C | A.B | A.B-C. Returns 0 if w is none. */
static int read_type(word w, jg_problem *p)
{
    word of_c = w;
    word of_ab = cut(&of_c, '-');
    word of_b = of_ab;
    word of_a = cut(&of_b, '.');
    const int has_c = of_ab.length < w.length, has_b = of_a.length < of_ab.length;
    jg_type a, b, c;
    if (!read_type_name(of_a, LAST_TYPE, &a)) return 0;
    if (!read_type_name(has_b ? of_b : of_a, LAST_TYPE, &b)) return 0;
    c = type_default_result(a, b);
    if (has_c && !read_type_name(of_c, LAST_TYPE, &c)) return 0;
    p->type_a = a;
    p->type_b = b;
    p->type_c = c;
    return 1;
}

static void apply_fixed(jg_problem *p, int says, uint32_t value)
{
    switch (says) {
    case SAYS_OP:
        p->op_a = value & 1 ? JG_T : JG_N;
        p->op_b = value & 2 ? JG_T : JG_N;
        break;
    case SAYS_ORDER: p->order = (jg_order)value; break;
    case SAYS_FORM: p->form = (jg_form)value; break;
    case SAYS_MATH: p->math = (p->math & ~MATH_MODE) | value; break;
    case SAYS_FLUSH:
    case SAYS_SANITIZE: p->math |= value; break;
    case SAYS_ZEROS: p->zero_points = value; break;
    case SAYS_ACTIVATION: p->activation = (jg_activation)value; break;
    case SAYS_RESIDUAL: p->epilogue &= ~(uint32_t)(JG_EPILOGUE_RESIDUAL | JG_EPILOGUE_RESIDUAL_AFTER); /* fall through */
    default: p->epilogue |= value; break;
    }
}

/* The member that a word with a number sets, but for those that are narrower. */
static int64_t *number_member(jg_problem *p, int says)
{
    int64_t *const members[] = {&p->lda,      &p->ldb,      &p->ldc,      &p->ld_residual,
                                &p->stride_a, &p->stride_b, &p->stride_c, &p->stride_residual};
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

/* G: 32 | 64 | 128 */
static jg_status apply_group(jg_problem *p, word w, word digits)
{
    int64_t value;
    if (!read_number(digits, &value) || (value != 32 && value != 64 && value != 128))
        return bad_word(w, "needs 32, 64 or 128 after the =");
    p->group_k = (uint32_t)value;
    return JG_OK;
}

static jg_status apply_bias_type(jg_problem *p, word w, word name)
{
    jg_type type;
    if (!read_type_name(name, JG_BF16, &type)) return bad_word(w, "needs f32, f16 or bf16 after the =");
    p->type_bias = type;
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

static jg_status apply_valued(jg_problem *p, int says, word w, word value)
{
    switch (says) {
    case SAYS_DYNAMIC: return apply_dynamic(p, w, value);
    case SAYS_GROUP: return apply_group(p, w, value);
    case SAYS_BIAS_TYPE: return apply_bias_type(p, w, value);
    default: return apply_number(p, says, w, value);
    }
}

/* WORD: TYPE, a word that stands for itself, or one with a value. *says tells what it was about. */
static jg_status read_word(word w, jg_problem *p, int *says)
{
    *says = SAYS_TYPE;
    if (read_type(w, p)) return JG_OK;
    for (const fixed_word *f = fixed_words; f->word; f++) {
        if (!word_is(w, f->word)) continue;
        *says = f->says;
        apply_fixed(p, f->says, f->value);
        return JG_OK;
    }
    for (size_t i = 0; i < COUNT(valued_words); i++) {
        const size_t prefix = strlen(valued_words[i].prefix);
        if (w.length < prefix || memcmp(w.start, valued_words[i].prefix, prefix) != 0) continue;
        *says = valued_words[i].says;
        return apply_valued(p, *says, w, (word){w.start + prefix, w.length - prefix});
    }
    return bad_word(w, "is not known; use types like f16, s8, bf16-f32 or f16.s4, nn nt tn tt, row, col, generic, specialised, "
                       "tf32 3xtf32 strict f16acc flush sanitize, scale scale_m scale_n bias_m bias_n residual residual_after "
                       "requantize bias=, relu relu6 clamp gelu_tanh gelu_erf silu sigmoid, group= zeros, "
                       "lda= ldb= ldc= ldr= sa= sb= sc= sr= align= or dyn=");
}

/* The largest even number, for s4. */
#define TOO_FAR (INT64_MAX - 1)

/* Where rows * ld overflows, only a single item fits: with TOO_FAR for its stride, any second one is refused. */
static packing pack(jg_type type, int64_t rows, int64_t cols, int64_t ld, int64_t stride)
{
    packing x = {.ld = ld, .dense_ld = cols > 0 ? cols : 1, .stride = stride};
    if (type == JG_S4) x.dense_ld += x.dense_ld % 2;
    if (__builtin_mul_overflow(rows, ld, &x.dense_stride)) x.dense_stride = TOO_FAR;
    return x;
}

int problem_packings(const problem *p, packing out[MATRICES])
{
    const int ta = p->op_a == JG_T, tb = p->op_b == JG_T;
    const jg_type a = (jg_type)p->type_a, b = (jg_type)p->type_b, c = (jg_type)p->type_c;
    out[p->swapped ? MATRIX_B : MATRIX_A] = pack(a, ta ? p->k : p->m, ta ? p->m : p->k, p->lda, p->stride_a);
    out[p->swapped ? MATRIX_A : MATRIX_B] = pack(b, tb ? p->n : p->k, tb ? p->k : p->n, p->ldb, p->stride_b);
    out[MATRIX_C] = pack(c, p->m, p->n, p->ldc, p->stride_c);
    if (!problem_has_residual(p)) return MATRIX_RESIDUAL;
    out[MATRIX_RESIDUAL] = pack(c, p->m, p->n, p->ld_residual, p->stride_residual);
    out[MATRIX_RESIDUAL].dense_ld = p->ldc; /* what it is by default */
    return MATRICES;
}

/* Gives the matrices of a batch the strides that neither the text nor the caller's defaults give. */
static jg_status fill_strides(reading *r)
{
    jg_problem *p = &r->p;
    packing dense[MATRICES];
    problem single;
    /* Any stride tells an empty batch from none. */
    if (r->batch_given && p->batch == 0 && !p->stride_a && !p->stride_b && !p->stride_c) p->stride_c = 1;
    if (p->batch <= 1) return JG_OK;
    jg_problem one = *p;
    one.batch = 1;
    RETURN_IF_ERROR(problem_canonicalise(&one, &single));
    const int count = problem_packings(&single, dense);
    for (int x = 0; x < count; x++) {
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
