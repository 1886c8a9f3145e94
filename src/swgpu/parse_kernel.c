/* Kernels: header, declarations of registers, blocks, labels. Instructions are parse_instruction's. A kernel hangs off
 * the parser until it is whole; then its labels, constants and pointers are settled and it moves to the module. */
#include "parse.h"

#include "exec.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE_PARAMS_VERSION = 81, SMALL_PARAM_BYTES = 4352, MAX_BLOCK_THREADS = 1024 };

/* ---- calls, which are not supported, and functions, which may stand there unused */

/* Says whether some function of that name calls itself. Only for the text of an error: reads the module anew. */
static int calls_itself(const parser *p, const token *name)
{
    lexer l;
    token t;
    lexer_start(&l, p->text, p->bytes);
    for (lexer_next(&l, &t); t.kind != TOKEN_END; lexer_next(&l, &t)) {
        if (t.kind != TOKEN_WORD || !parse_text_is(&t, "func")) continue;
        int ours = 0, call = 0;
        uint32_t depth = 0, parentheses = 0;
        for (lexer_next(&l, &t); t.kind != TOKEN_END && (depth || t.kind != ';'); lexer_next(&l, &t)) {
            int same = t.kind == TOKEN_NAME && t.length == name->length && memcmp(t.text, name->text, t.length) == 0;
            parentheses += t.kind == '(';
            parentheses -= t.kind == ')' && parentheses;
            if (same && !depth && !parentheses) ours = 1;
            if (t.kind == TOKEN_NAME && parse_text_is(&t, "call")) call = 1;
            if (t.kind == ';') call = 0;
            if (same && ours && call) return 1;
            depth += t.kind == '{';
            if (t.kind == '}' && (!depth || --depth == 0)) break;
        }
    }
    return 0;
}

/* Behind `call`: finds the callee behind the modifiers and returned values, and says that calls do not work. */
static int call_error(parser *p, const token *at)
{
    while (p->token.kind == TOKEN_WORD) parse_next(p);
    if (p->token.kind == '(') {
        while (p->token.kind != ')' && p->token.kind != ';' && p->token.kind != TOKEN_END) parse_next(p);
        parse_next(p);
        parse_accept(p, ',');
    }
    const token *t = &p->token;
    if (t->kind != TOKEN_NAME) return parse_fail(p, PTX_UNSUPPORTED, at, "call is not supported");
    int length = t->length < 80 ? (int)t->length : 80;
    if (calls_itself(p, t))
        return parse_fail(p, PTX_UNSUPPORTED, at, "call is not supported: %.*s, which calls itself (recursion)", length, t->text);
    return parse_fail(p, PTX_UNSUPPORTED, at, "call is not supported: %.*s", length, t->text);
}

/* A .param in a body is there for a call: that is what to report. */
static int body_param_error(parser *p)
{
    const token param = p->token;
    while (p->token.kind != TOKEN_END && p->token.kind != '}') {
        const token at = p->token;
        parse_next(p);
        if (at.kind == TOKEN_NAME && parse_text_is(&at, "call")) return call_error(p, &at);
    }
    return parse_fail(p, PTX_UNSUPPORTED, &param, ".param in a body is not supported");
}

int parse_function(parser *p)
{
    parse_next(p);
    if (p->token.kind == '(') {
        while (p->token.kind != ')' && p->token.kind != TOKEN_END) parse_next(p);
        if (parse_expect(p, ')', "\")\"")) return 1;
    }
    const token name = p->token;
    uint32_t member;
    if (parse_expect(p, TOKEN_NAME, "a function's name")) return 1;
    symbol *known = names_find(p, &name, &member);
    if (!(known && known->kind == SYMBOL_FUNCTION) && !names_declare(p, &name, SYMBOL_FUNCTION, 0)) return 1;
    while (p->token.kind != '{' && p->token.kind != ';') {
        if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_BAD) return parse_unexpected(p, "a function's body");
        parse_next(p);
    }
    return p->token.kind == '{' ? parse_skip_block(p) : parse_expect(p, ';', "\";\"");
}

/* ---- places in the source */

/* .loc file line column [, function_name ..., inlined_at ...]: what comes after the first place is where it was inlined. */
int parse_location(parser *p)
{
    uint64_t file, line, column;
    parse_next(p);
    if (parse_count(p, 0, PARSE_MAX_FILE, "a file number", &file) || parse_count(p, 0, UINT32_MAX, "a line", &line) ||
        parse_count(p, 0, UINT32_MAX, "a column", &column))
        return 1;
    while (parse_accept(p, ',')) {
        const token what = p->token;
        if (parse_expect(p, TOKEN_NAME, "function_name or inlined_at")) return 1;
        if (parse_text_is(&what, "function_name")) {
            if (parse_expect(p, TOKEN_NAME, "a label")) return 1;
            if (parse_accept(p, '+') && parse_count(p, 0, UINT32_MAX, "a number", &column)) return 1;
        } else {
            for (int n = 0; n < 3; n++)
                if (parse_count(p, 0, UINT32_MAX, "a number", &column)) return 1;
        }
    }
    ptx_module *m = p->module;
    ptx_location *last = &m->locations[m->location_count - 1];
    p->location = 0;
    if (line == 0) return 0; /* code that belongs to no line */
    if (m->location_count == 1 || last->file != file || last->line != line) {
        ptx_location *locations = parse_grow(p, m->locations, &p->location_capacity, m->location_count, sizeof *locations);
        if (!locations) return 1;
        m->locations = locations;
        locations[m->location_count++] = (ptx_location){(uint32_t)file, (uint32_t)line};
    }
    p->location = m->location_count - 1;
    return 0;
}

/* ---- the header */

static int parse_param(parser *p)
{
    ptx_kernel *k = p->kernel;
    uint32_t alignment = 0, ignored, dimensions;
    uint64_t sizes[PARSE_MAX_DIMENSIONS], bytes;
    int pointer = 0, open;
    if (!parse_word_is(p, "param")) return parse_unexpected(p, "a .param");
    parse_next(p);
    ptx_type type = TYPE_NONE;
    for (; p->token.kind == TOKEN_WORD;) {
        if (parse_word_is(p, "align")) {
            if (parse_alignment(p, pointer ? &ignored : &alignment)) return 1;
            continue;
        }
        ptx_type named = parse_type(p);
        int space = parse_word_is(p, "global") || parse_word_is(p, "shared") || parse_word_is(p, "const") ||
                    parse_word_is(p, "local");
        if (parse_word_is(p, "ptr"))
            pointer = 1;
        else if (named != TYPE_NONE && type == TYPE_NONE && ptx_type_bits(named) >= 8 && ptx_type_bits(named) <= 64)
            type = named;
        else if (!(pointer && space))
            return parse_unexpected(p, "a parameter's type");
        parse_next(p);
    }
    const token name = p->token;
    if (type == TYPE_NONE) return parse_unexpected(p, "a parameter's type");
    if (parse_expect(p, TOKEN_NAME, "a parameter's name") || parse_dimensions(p, sizes, &dimensions, &open)) return 1;
    if (open || dimensions > 1) return parse_fail(p, PTX_SYNTAX, &name, "a parameter needs a size of one dimension");
    bytes = ptx_type_bits(type) / 8;
    if (!alignment) alignment = (uint32_t)bytes;
    if (dimensions) bytes *= sizes[0]; /* at most 8 * PARSE_MAX_VARIABLE */
    uint64_t offset = ((uint64_t)k->param_bytes + alignment - 1) / alignment * alignment;
    uint32_t most = p->module->version >= LARGE_PARAMS_VERSION ? PTX_MAX_PARAM_BYTES : SMALL_PARAM_BYTES;
    if (offset + bytes > most) return parse_fail(p, PTX_SYNTAX, &name, "more than %u bytes of parameters", most);
    ptx_param *params = parse_grow(p, k->params, &p->param_capacity, k->param_count, sizeof *params);
    if (!params) return 1;
    k->params = params;
    params[k->param_count++] = (ptx_param){(uint32_t)offset, (uint32_t)bytes};
    k->param_bytes = (uint32_t)(offset + bytes);
    symbol *s = names_declare(p, &name, SYMBOL_PARAM, 0);
    if (!s) return 1;
    s->value = (uint32_t)offset;
    return 0;
}

static int parse_params(parser *p)
{
    if (!parse_accept(p, '(')) return 0;
    if (parse_accept(p, ')')) return 0;
    do {
        if (parse_param(p)) return 1;
    } while (parse_accept(p, ','));
    return parse_expect(p, ')', "\",\" or \")\"");
}

/* One to three numbers, at least 1; what is not given is 1. */
static int parse_threads(parser *p, uint32_t sizes[3])
{
    const token at = p->token;
    uint64_t product = 1;
    parse_next(p);
    for (int d = 0; d < 3; d++) sizes[d] = 1;
    for (int d = 0; d < 3; d++) {
        uint64_t size;
        if (parse_count(p, 1, MAX_BLOCK_THREADS, "a number of threads", &size)) return 1;
        sizes[d] = (uint32_t)size;
        product *= size;
        if (!parse_accept(p, ',')) break;
        if (d == 2) return parse_unexpected(p, "no fourth number");
    }
    if (product > MAX_BLOCK_THREADS) return parse_fail(p, PTX_SYNTAX, &at, "more than %d threads in a block", MAX_BLOCK_THREADS);
    return 0;
}

static int parse_tuning(parser *p)
{
    ptx_kernel *k = p->kernel;
    uint32_t sizes[3];
    uint64_t number;
    if (parse_word_is(p, "maxntid") || parse_word_is(p, "reqntid")) {
        int required = parse_word_is(p, "reqntid");
        if (parse_threads(p, sizes)) return 1;
        if (required) memcpy(k->required, sizes, sizeof sizes);
        uint32_t product = sizes[0] * sizes[1] * sizes[2];
        if (!k->max_threads || product < k->max_threads) k->max_threads = product;
    } else if (parse_word_is(p, "minnctapersm") || parse_word_is(p, "maxnctapersm")) {
        parse_next(p);
        if (parse_count(p, 1, 1024, "a number of blocks", &number)) return 1;
        k->min_blocks = (uint32_t)number;
    } else if (parse_word_is(p, "maxnreg")) {
        parse_next(p);
        if (parse_count(p, 1, 1024, "a number of registers", &number)) return 1;
        k->max_registers = (uint32_t)number;
    } else if (parse_word_is(p, "noreturn")) {
        parse_next(p);
    } else if (parse_word_is(p, "pragma")) {
        return parse_pragma(p);
    } else {
        int length = p->token.length < 40 ? (int)p->token.length : 40;
        return parse_fail(p, PTX_UNSUPPORTED, &p->token, "\".%.*s\" of a kernel is not supported", length, p->token.text);
    }
    return 0;
}

/* ---- the body */

/* .reg .b32 %r<10>, a, b; */
static int parse_registers(parser *p)
{
    parse_next(p);
    ptx_type type = parse_type(p);
    unsigned bits = ptx_type_bits(type);
    if (p->token.kind != TOKEN_WORD) return parse_unexpected(p, "a type");
    if (type == TYPE_NONE || type == TYPE_B1 || (bits != 1 && bits < 8) || bits > 64) {
        int length = p->token.length < 40 ? (int)p->token.length : 40;
        return parse_fail(p, PTX_UNSUPPORTED, &p->token, "registers of type .%.*s are not supported", length, p->token.text);
    }
    do {
        parse_next(p);
        const token name = p->token;
        uint64_t count = 1;
        if (parse_expect(p, TOKEN_NAME, "a register's name")) return 1;
        int range = parse_accept(p, '<');
        if (range && (parse_count(p, 0, PTX_MAX_REGISTERS, "a number of registers", &count) || parse_expect(p, '>', "\">\"")))
            return 1;
        p->register_count += (uint32_t)count;
        if (p->register_count > PTX_MAX_REGISTERS)
            return parse_fail(p, PTX_SYNTAX, &name, "more than %u registers", PTX_MAX_REGISTERS);
        symbol *s = names_declare(p, &name, range ? SYMBOL_RANGE : SYMBOL_REGISTER, range);
        if (!s) return 1;
        s->type = (uint8_t)type;
        s->count = (uint32_t)count;
    } while (p->token.kind == ',');
    return parse_expect(p, ';', "\";\"");
}

static int declare_label(parser *p, const token *name)
{
    symbol *s = names_declare(p, name, SYMBOL_LABEL, 0);
    if (!s) return 1;
    s->value = p->kernel->count;
    p->last_label = p->kernel->count;
    return 0;
}

/* A block ends: branches to its own labels are settled, the others wait for the blocks around it. */
static void settle_labels(parser *p, uint32_t first)
{
    uint32_t kept = first;
    for (uint32_t f = first; f < p->fixup_count; f++) {
        const fixup *x = &p->fixups[f];
        const symbol *s = p->names.entries[x->name].symbol;
        if (s && s->kind == SYMBOL_LABEL && s->depth == p->names.depth) {
            p->kernel->instructions[x->instruction].target = s->value;
            p->kernel->operands[x->operand].offset = s->value;
        } else {
            p->fixups[kept++] = *x;
        }
    }
    p->fixup_count = kept;
}

static int parse_guarded(parser *p)
{
    parse_next(p);
    int negate = parse_accept(p, '!');
    const token guard = p->token;
    if (parse_expect(p, TOKEN_NAME, "a predicate")) return 1;
    const token opcode = p->token;
    if (parse_expect(p, TOKEN_NAME, "an opcode")) return 1;
    return parse_text_is(&opcode, "call") ? call_error(p, &opcode) : parse_instruction(p, &opcode, &guard, negate);
}

static int parse_body_directive(parser *p)
{
    static const char *const spaces[] = {"shared", "local", "global", "const"};
    if (parse_word_is(p, "loc")) return parse_location(p);
    if (parse_word_is(p, "reg")) return parse_registers(p);
    if (parse_word_is(p, "pragma")) return parse_pragma(p);
    if (parse_word_is(p, "param")) return body_param_error(p);
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++)
        if (parse_word_is(p, spaces[s])) return parse_variable(p, 0);
    if (parse_word_is(p, "extern")) {
        parse_next(p);
        return parse_word_is(p, "shared") ? parse_variable(p, 1) : parse_unexpected(p, "\".shared\"");
    }
    int length = p->token.length < 40 ? (int)p->token.length : 40;
    return parse_fail(p, PTX_UNSUPPORTED, &p->token, "\".%.*s\" is not supported", length, p->token.text);
}

static int parse_named(parser *p)
{
    const token name = p->token;
    parse_next(p);
    if (parse_accept(p, ':')) return declare_label(p, &name);
    return parse_text_is(&name, "call") ? call_error(p, &name) : parse_instruction(p, &name, NULL, 0);
}

/* From the body's { to its }, which stays the current token. */
static int parse_body(parser *p)
{
    uint32_t first_fixup[PARSE_MAX_DEPTH];
    const uint32_t outside = p->names.depth;
    do {
        int failed = 0;
        switch (p->token.kind) {
        case '{':
            failed = names_open(p, &p->token);
            first_fixup[p->names.depth] = p->fixup_count;
            parse_next(p);
            break;
        case '}':
            settle_labels(p, first_fixup[p->names.depth]);
            names_close(p);
            if (p->names.depth > outside) parse_next(p);
            break;
        case ';': parse_next(p); break;
        case '@': failed = parse_guarded(p); break;
        case TOKEN_NAME: failed = parse_named(p); break;
        case TOKEN_WORD: failed = parse_body_directive(p); break;
        default: failed = parse_unexpected(p, "an instruction or \"}\"");
        }
        if (failed) return 1;
    } while (p->names.depth > outside);
    if (p->fixup_count) {
        const token *at = &p->fixups[0].at;
        return parse_fail(p, PTX_SYNTAX, at, "there is no label %.*s here", SHOWN(at));
    }
    return 0;
}

/* Dynamic shared memory begins where the static part ends: known only now. */
static void settle_shared(parser *p)
{
    ptx_kernel *k = p->kernel;
    uint64_t base = p->shared_end;
    if (p->extern_alignment) base = (base + p->extern_alignment - 1) / p->extern_alignment * p->extern_alignment;
    for (uint32_t c = 0; c < k->constant_count; c++) {
        ptx_constant *x = &k->constants[c];
        ptx_variable *v = x->symbol >= 0 ? &p->module->variables[x->symbol] : NULL;
        if (!v || v->space != SPACE_SHARED) continue;
        v->offset = base;
        x->value = SHARED_BASE + base + x->value;
        if (!x->wide) x->value = (uint32_t)x->value;
        x->symbol = -1;
    }
    k->shared_bytes = base;
    k->local_bytes = p->local_end;
}

static int finish_kernel(parser *p)
{
    ptx_kernel *k = p->kernel;
    const ptx_instruction *last = k->count ? &k->instructions[k->count - 1] : NULL;
    int ends = last && !last->guarded && (last->opcode == OPCODE_exit || last->opcode == OPCODE_ret);
    if (!ends || p->last_label == k->count) {
        ptx_instruction leave = {.opcode = OPCODE_exit, .counter = p->rows[OPCODE_exit].counter, .line = p->token.line,
                                 .column = (uint32_t)(p->token.text - p->token.line_start) + 1};
        leave.run = p->rows[OPCODE_exit].bind ? p->rows[OPCODE_exit].bind(&leave) : NULL;
        if (!leave.run) return parse_fail(p, PTX_UNSUPPORTED, &p->token, "exit: this combination is not supported");
        if (parse_emit(p, &leave)) return 1;
    }
    settle_shared(p);
    /* The arrays stay where they are from now on. */
    size_t first = 0;
    for (uint32_t n = 0; n < k->count; n++) {
        ptx_instruction *i = &k->instructions[n];
        i->operands = k->operands ? k->operands + first : NULL;
        for (unsigned g = 0; g < i->groups; g++) first += i->count[g];
    }
    liveness_estimate(k);
    ptx_module *m = p->module;
    ptx_kernel *kernels = parse_grow(p, m->kernels, &p->kernel_capacity, m->kernel_count, sizeof *kernels);
    if (!kernels) return 1;
    m->kernels = kernels;
    kernels[m->kernel_count++] = *k;
    free(k);
    p->kernel = NULL;
    parse_next(p);
    return 0;
}

static int start_kernel(parser *p, const token *name)
{
    if (!names_declare(p, name, SYMBOL_KERNEL, 0)) return 1;
    p->kernel = calloc(1, sizeof *p->kernel);
    if (!p->kernel) return parse_no_memory(p);
    p->kernel->slots = SPECIAL_COUNT;
    p->instruction_capacity = p->operand_count = p->operand_capacity = p->constant_capacity = p->param_capacity = 0;
    p->register_count = p->fixup_count = p->location = p->extern_alignment = 0;
    p->last_label = UINT32_MAX;
    free(p->constant_table);
    p->constant_table = NULL;
    p->constant_table_size = 0;
    p->shared_end = p->module_shared;
    p->local_end = p->module_local;
    p->kernel->name = parse_copy(p, name);
    return p->kernel->name == NULL;
}

int parse_entry(parser *p)
{
    parse_next(p);
    const token name = p->token;
    if (parse_expect(p, TOKEN_NAME, "a kernel's name") || start_kernel(p, &name) || names_open(p, &name) ||
        parse_params(p))
        return 1;
    while (p->token.kind == TOKEN_WORD)
        if (parse_tuning(p)) return 1;
    if (p->token.kind != '{') return parse_unexpected(p, "a kernel's body");
    if (parse_body(p)) return 1;
    names_close(p);
    return finish_kernel(p);
}
