/* Variables of PTX: what they are, where they lie in their space, and the bytes that they start with.
 *
 * Shared and local variables are laid out in the order of their declarations, each at its alignment: those of the module
 * first, then, for each kernel anew, its own. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of an initialiser while it is read. */
typedef struct initial {
    uint8_t *bytes;
    uint64_t size, most; /* allocated, and what there may be */
    uint64_t used;
    uint64_t sizes[PARSE_MAX_DIMENSIONS + 1]; /* bytes of the whole and of the parts at each depth of braces */
    uint32_t dimensions;
    ptx_type type;
} initial;

ptx_type parse_type(parser *p)
{
    if (p->token.kind != TOKEN_WORD) return TYPE_NONE;
    for (const word *w = words_find(p, &p->token, NULL); w; w = words_find(p, &p->token, w))
        if (w->category == WORD_TYPE) return (ptx_type)w->value;
    return TYPE_NONE;
}

int parse_alignment(parser *p, uint32_t *out)
{
    const token at = p->token;
    uint64_t value;
    parse_next(p);
    if (parse_count(p, 1, PARSE_MAX_ALIGNMENT, "an alignment", &value)) return 1;
    if (value & (value - 1)) return parse_fail(p, PTX_SYNTAX, &at, "an alignment must be a power of two");
    *out = (uint32_t)value;
    return 0;
}

int parse_dimensions(parser *p, uint64_t *sizes, uint32_t *count, int *open)
{
    for (*count = 0, *open = 0; p->token.kind == '['; ++*count) {
        if (*count == PARSE_MAX_DIMENSIONS)
            return parse_fail(p, PTX_SYNTAX, &p->token, "an array of more than %d dimensions", PARSE_MAX_DIMENSIONS);
        parse_next(p);
        if (p->token.kind == ']' && *count == 0) {
            *open = 1;
            sizes[0] = 0;
        } else if (parse_count(p, 1, PARSE_MAX_VARIABLE, "an array's size", &sizes[*count])) {
            return 1;
        }
        if (parse_expect(p, ']', "\"]\"")) return 1;
    }
    return 0;
}

/* Makes room for the bytes up to `size`; they are 0. */
static int initial_reserve(parser *p, initial *in, uint64_t size)
{
    if (size <= in->size) return 0;
    if (size > in->most) return parse_fail(p, PTX_SYNTAX, &p->token, "more values than the variable has");
    uint64_t capacity = in->size * 2 > size ? in->size * 2 : size;
    if (capacity > in->most) capacity = in->most;
    if (p->initial_bytes + capacity > PARSE_MAX_INITIAL_BYTES)
        return parse_fail(p, PTX_SYNTAX, &p->token, "initial values of more than %u bytes", PARSE_MAX_INITIAL_BYTES);
    uint8_t *bytes = realloc(in->bytes, capacity);
    if (!bytes) return parse_no_memory(p);
    memset(bytes + in->size, 0, capacity - in->size);
    in->bytes = bytes;
    in->size = capacity;
    return 0;
}

static int initial_value(parser *p, initial *in, uint64_t offset)
{
    raw_element number;
    if (p->token.kind == TOKEN_NAME)
        return parse_fail(p, PTX_UNSUPPORTED, &p->token, "an initial value that is an address is not supported");
    const token at = p->token;
    if (parse_number(p, &number)) return 1;
    int is_float = in->type == TYPE_F32 || in->type == TYPE_F64;
    if (is_float != (number.form != RAW_INTEGER))
        return parse_fail(p, PTX_SYNTAX, &at, is_float ? "a floating-point number is needed here" : "an integer is needed here");
    if (number.form == RAW_FLOAT64 && in->type == TYPE_F32) {
        double wide;
        memcpy(&wide, &number.value, sizeof wide);
        float narrow = (float)wide;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        number.value = bits;
    } else if (number.form == RAW_FLOAT32 && in->type == TYPE_F64) {
        uint32_t bits = (uint32_t)number.value;
        float narrow;
        memcpy(&narrow, &bits, sizeof narrow);
        double wide = narrow;
        memcpy(&number.value, &wide, sizeof wide);
    }
    uint32_t size = ptx_type_bits(in->type) / 8;
    if (initial_reserve(p, in, offset + size)) return 1;
    for (uint32_t b = 0; b < size; b++) in->bytes[offset + b] = (uint8_t)(number.value >> 8 * b);
    return 0;
}

/* One level of braces, or a value. depth is bounded by the number of dimensions. Braces may be left out inside. */
static int initial_list(parser *p, initial *in, uint32_t depth, uint64_t offset)
{
    uint64_t element = ptx_type_bits(in->type) / 8, at = offset;
    if (p->token.kind != '{') return initial_value(p, in, offset);
    if (depth >= in->dimensions) return parse_fail(p, PTX_SYNTAX, &p->token, "more braces than the array has dimensions");
    parse_next(p);
    while (p->token.kind != '}') {
        int nested = p->token.kind == '{';
        uint64_t step = nested ? in->sizes[depth + 1] : element;
        /* The outermost of an open array has no end but `most`. */
        if (in->sizes[depth] && at + step > offset + in->sizes[depth])
            return parse_fail(p, PTX_SYNTAX, &p->token, "more values than the variable has");
        if (initial_list(p, in, depth + 1, at)) return 1;
        at += step;
        if (at > in->used) in->used = at;
        if (!parse_accept(p, ',')) break;
    }
    return parse_expect(p, '}', "\",\" or \"}\"");
}

/* What follows '='. Gives v its bytes, and their number if the first dimension was left open. */
static int parse_initial(parser *p, ptx_variable *v, initial *in, int open)
{
    parse_next(p);
    in->most = open ? PARSE_MAX_INITIAL_BYTES : v->bytes;
    if (v->space == SPACE_SHARED || v->space == SPACE_LOCAL)
        return parse_fail(p, PTX_SYNTAX, &p->token, "only .global and .const variables can have initial values");
    if (in->dimensions && p->token.kind != '{') return parse_unexpected(p, "\"{\"");
    int failed = initial_list(p, in, 0, 0);
    if (!failed && open) {
        /* Rounded up to whole elements of the first dimension. */
        uint64_t step = in->sizes[1];
        in->most = v->bytes = (in->used + step - 1) / step * step;
    }
    if (!failed) failed = initial_reserve(p, in, v->bytes);
    v->initial = in->bytes;
    p->initial_bytes += in->size;
    return failed;
}

static int place(parser *p, const token *at, ptx_variable *v)
{
    uint64_t *end = v->space == SPACE_SHARED ? (p->kernel ? &p->shared_end : &p->module_shared)
                    : v->space == SPACE_LOCAL ? (p->kernel ? &p->local_end : &p->module_local) : NULL;
    if (v->space == SPACE_CONST) {
        p->module_const += v->bytes;
        if (p->module_const > PARSE_MAX_CONST_BYTES)
            return parse_fail(p, PTX_SYNTAX, at, "more than %u bytes of .const variables", PARSE_MAX_CONST_BYTES);
    }
    if (!end || v->is_extern) return 0;
    v->offset = (*end + v->alignment - 1) / v->alignment * v->alignment;
    *end = v->offset + v->bytes;
    if (v->space == SPACE_LOCAL && *end > PTX_MAX_LOCAL_BYTES)
        return parse_fail(p, PTX_SYNTAX, at, "more than %u bytes of .local variables", PTX_MAX_LOCAL_BYTES);
    if (*end > UINT32_MAX / 2) return parse_fail(p, PTX_SYNTAX, at, "more than %u bytes of .shared variables", UINT32_MAX / 2);
    return 0;
}

static int add_variable(parser *p, const token *name, const ptx_variable *v)
{
    ptx_module *m = p->module;
    ptx_variable *variables = parse_grow(p, m->variables, &p->variable_capacity, m->variable_count, sizeof *variables);
    if (!variables) return 1;
    m->variables = variables;
    uint8_t *in_kernel = parse_grow(p, p->in_kernel, &p->in_kernel_capacity, m->variable_count, 1);
    if (!in_kernel) return 1;
    p->in_kernel = in_kernel;
    in_kernel[m->variable_count] = p->kernel != NULL;
    symbol *s = names_declare(p, name, SYMBOL_VARIABLE, 0);
    char *copy = s ? parse_copy(p, name) : NULL;
    if (!copy) return 1;
    s->value = m->variable_count;
    variables[m->variable_count] = *v;
    variables[m->variable_count++].name = copy;
    return 0;
}

/* name[4][8] = {...}: one of a declaration's variables, whose properties but for the size are in v. */
static int parse_declarator(parser *p, const ptx_variable *common, ptx_type type, uint32_t elements)
{
    ptx_variable v = *common;
    initial in = {.type = type};
    int open;
    const token name = p->token;
    if (parse_expect(p, TOKEN_NAME, "a variable's name") || parse_dimensions(p, in.sizes, &in.dimensions, &open)) return 1;
    /* From sizes in elements to sizes in bytes of what lies inside each pair of braces. */
    v.bytes = ptx_type_bits(type) / 8 * elements;
    uint64_t counts[PARSE_MAX_DIMENSIONS];
    memcpy(counts, in.sizes, sizeof counts);
    in.sizes[in.dimensions] = v.bytes;
    for (uint32_t d = in.dimensions; d-- > 0;) {
        if (counts[d] && v.bytes > PARSE_MAX_VARIABLE / counts[d])
            return parse_fail(p, PTX_SYNTAX, &name, "%.*s is larger than %llu bytes", SHOWN(&name),
                              (unsigned long long)PARSE_MAX_VARIABLE);
        v.bytes *= counts[d];
        in.sizes[d] = v.bytes;
    }
    if (elements > 1 && in.dimensions < PARSE_MAX_DIMENSIONS) in.dimensions++; /* a vector's values may have braces */
    if (v.is_extern && v.space != SPACE_SHARED)
        return parse_fail(p, PTX_UNSUPPORTED, &name, "an .extern variable other than .shared is not supported");
    if (open && p->token.kind != '=' && !v.is_extern)
        return parse_fail(p, PTX_SYNTAX, &name, "an array without a size must be .extern or have initial values");
    if (p->token.kind == '=' && parse_initial(p, &v, &in, open)) {
        free(v.initial);
        return 1;
    }
    if (place(p, &name, &v) || add_variable(p, &name, &v)) {
        free(v.initial);
        return 1;
    }
    return 0;
}

int parse_variable(parser *p, int is_extern)
{
    static const char *const spaces[] = {[SPACE_GLOBAL] = "global", [SPACE_SHARED] = "shared", [SPACE_LOCAL] = "local",
                                         [SPACE_CONST] = "const"};
    ptx_variable v = {.is_extern = (uint8_t)is_extern};
    uint32_t elements = 1, alignment = 0;
    for (uint8_t s = SPACE_GLOBAL; s <= SPACE_CONST; s++)
        if (spaces[s] && parse_word_is(p, spaces[s])) v.space = s;
    parse_next(p);
    for (;;) {
        if (parse_word_is(p, "align")) {
            if (parse_alignment(p, &alignment)) return 1;
        } else if (parse_word_is(p, "v2") || parse_word_is(p, "v4")) {
            elements = parse_word_is(p, "v2") ? 2 : 4;
            parse_next(p);
        } else {
            break;
        }
    }
    ptx_type type = parse_type(p);
    if (type == TYPE_NONE) return parse_unexpected(p, "a type");
    uint32_t size = ptx_type_bits(type) / 8;
    if (size == 0 || type == TYPE_PRED || size > 8)
        return parse_fail(p, PTX_UNSUPPORTED, &p->token, "a variable of type .%s is not supported", ptx_type_name(type));
    v.alignment = alignment ? alignment : size * elements;
    do {
        parse_next(p);
        if (parse_declarator(p, &v, type, elements)) return 1;
    } while (p->token.kind == ',');
    return parse_expect(p, ';', "\";\"");
}
