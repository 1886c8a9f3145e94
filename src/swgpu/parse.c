/* The PTX parser's frame: errors with line and caret, small steps that the other files share, and the module level.
 * In: text. Out: a ptx_module that refers to nothing of the text, or one error. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 100u /* characters of a source line that an error shows */
#define WINDOW_BEFORE 60u
#define MAX_TEXT_BYTES (1u << 30)

enum { OLDEST_VERSION = 60, NEWEST_VERSION = 90, OLDEST_TARGET = 50, NEWEST_TARGET = 199 };

const char *ptx_type_name(ptx_type type)
{
    static const char *const table[] = {
#define MEMBER(name, text, bits) text,
        PTX_TYPES(MEMBER)
#undef MEMBER
    };
    return (unsigned)type < TYPE_COUNT ? table[type] : "?";
}

unsigned ptx_type_bits(ptx_type type)
{
    static const uint8_t table[] = {
#define MEMBER(name, text, bits) bits,
        PTX_TYPES(MEMBER)
#undef MEMBER
    };
    return (unsigned)type < TYPE_COUNT ? table[type] : 0;
}

/* The source line of a token and a caret under it: without its indentation, and only what is near if it is long. */
static void show_line(const parser *p, const token *at, char *out, size_t size)
{
    const char *end = p->text + p->bytes, *start = at->line_start;
    while (start < at->text && isspace((unsigned char)*start)) start++;
    if ((size_t)(at->text - start) > WINDOW - WINDOW_BEFORE / 2) start = at->text - WINDOW_BEFORE;
    char line[WINDOW + 1];
    size_t n = 0;
    for (; n < WINDOW && start + n < end && start[n] != '\n' && start[n] != 0; n++)
        line[n] = start[n] == '\t' || start[n] == '\r' ? ' ' : isprint((unsigned char)start[n]) ? start[n] : '?';
    while (n > 0 && line[n - 1] == ' ') n--;
    line[n] = 0;
    snprintf(out, size, "\n    %s\n    %*s^", line, (int)(at->text - start), "");
}

int parse_fail(parser *p, ptx_status status, const token *at, const char *format, ...)
{
    if (p->status != PTX_OK) return 1;
    p->status = status;
    char message[512], place[2 * WINDOW + 32];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    show_line(p, at, place, sizeof place);
    if (p->error_bytes)
        snprintf(p->error, p->error_bytes, "line %u, column %u: %s%s", at->line, (unsigned)(at->text - at->line_start) + 1,
                 message, place);
    return 1;
}

int parse_no_memory(parser *p)
{
    if (p->status != PTX_OK) return 1;
    p->status = PTX_MEMORY;
    if (p->error_bytes) snprintf(p->error, p->error_bytes, "out of memory");
    return 1;
}

int parse_unexpected(parser *p, const char *wanted)
{
    const token *t = &p->token;
    if (t->kind == TOKEN_BAD) return parse_fail(p, PTX_SYNTAX, t, "%s", t->problem);
    if (t->kind == TOKEN_END) return parse_fail(p, PTX_SYNTAX, t, "%s is needed here, but the text ends", wanted);
    return parse_fail(p, PTX_SYNTAX, t, "%s is needed here, not \"%s%.*s\"", wanted, t->kind == TOKEN_WORD ? "." : "",
                      SHOWN(t));
}

void parse_next(parser *p)
{
    lexer_next(&p->lexer, &p->token);
}

int parse_accept(parser *p, int kind)
{
    if (p->token.kind != kind) return 0;
    parse_next(p);
    return 1;
}

int parse_expect(parser *p, int kind, const char *wanted)
{
    return parse_accept(p, kind) ? 0 : parse_unexpected(p, wanted);
}

int parse_text_is(const token *t, const char *text)
{
    return strlen(text) == t->length && memcmp(text, t->text, t->length) == 0;
}

int parse_word_is(const parser *p, const char *text)
{
    return p->token.kind == TOKEN_WORD && parse_text_is(&p->token, text);
}

int parse_count(parser *p, uint64_t least, uint64_t most, const char *wanted, uint64_t *out)
{
    if (p->token.kind != TOKEN_INTEGER) return parse_unexpected(p, wanted);
    *out = p->token.value;
    if (*out < least || *out > most)
        return parse_fail(p, PTX_SYNTAX, &p->token, "%s from %llu to %llu is needed here, not %llu", wanted,
                          (unsigned long long)least, (unsigned long long)most, (unsigned long long)*out);
    parse_next(p);
    return 0;
}

/* A decimal fraction, whatever decimal point the program's locale has. */
static int read_decimal(parser *p, uint64_t *bits)
{
    if (!p->locale) {
        p->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (!p->locale) return parse_no_memory(p);
    }
    char text[LEXER_MAX_NUMBER + 1];
    memcpy(text, p->token.text, p->token.length);
    text[p->token.length] = 0;
    int saved = errno;
    double value = strtod_l(text, NULL, p->locale);
    errno = saved;
    memcpy(bits, &value, sizeof value);
    return 0;
}

int parse_number(parser *p, raw_element *out)
{
    out->at = p->token;
    int negative = parse_accept(p, '-');
    const token *t = &p->token;
    out->value = t->value;
    if (t->kind == TOKEN_INTEGER) {
        out->form = RAW_INTEGER;
        if (negative) out->value = 0 - out->value;
    } else if (t->kind == TOKEN_FLOAT32) {
        out->form = RAW_FLOAT32;
        if (negative) out->value ^= 0x80000000u;
    } else if (t->kind == TOKEN_FLOAT64 || t->kind == TOKEN_DECIMAL) {
        out->form = RAW_FLOAT64;
        if (t->kind == TOKEN_DECIMAL && read_decimal(p, &out->value)) return 1;
        if (negative) out->value ^= 1ull << 63;
    } else {
        return parse_unexpected(p, "a number");
    }
    parse_next(p);
    return 0;
}

int parse_skip_block(parser *p)
{
    uint32_t depth = 0;
    const token start = p->token;
    if (p->token.kind != '{') return parse_unexpected(p, "\"{\"");
    do {
        if (p->token.kind == TOKEN_END) return parse_fail(p, PTX_SYNTAX, &start, "this \"{\" has no \"}\"");
        depth += p->token.kind == '{';
        depth -= p->token.kind == '}';
        parse_next(p);
    } while (depth);
    return 0;
}

int parse_pragma(parser *p)
{
    do {
        parse_next(p);
        if (parse_expect(p, TOKEN_STRING, "a string")) return 1;
    } while (p->token.kind == ',');
    return parse_expect(p, ';', "\";\"");
}

void *parse_grow(parser *p, void *array, uint32_t *capacity, uint32_t count, size_t item)
{
    if (count < *capacity) return array;
    uint32_t bigger = *capacity ? *capacity * 2 : 16;
    void *moved = bigger > *capacity ? realloc(array, bigger * item) : NULL;
    if (!moved) {
        parse_no_memory(p);
        return NULL;
    }
    *capacity = bigger;
    return moved;
}

char *parse_copy(parser *p, const token *t)
{
    char *copy = malloc((size_t)t->length + 1);
    if (!copy) {
        parse_no_memory(p);
        return NULL;
    }
    memcpy(copy, t->text, t->length);
    copy[t->length] = 0;
    return copy;
}

/* ---- the module's directives */

static int parse_version(parser *p)
{
    parse_next(p);
    const token *t = &p->token;
    int form = t->kind == TOKEN_DECIMAL && t->length >= 3 && t->length <= 5 && t->text[t->length - 2] == '.';
    int version = 0;
    for (uint32_t c = 0; form && c < t->length; c++) {
        if (c == t->length - 2) continue;
        if (!isdigit((unsigned char)t->text[c])) form = 0;
        version = version * 10 + (t->text[c] - '0');
    }
    if (!form) return parse_fail(p, PTX_SYNTAX, t, "a version such as 7.8 is needed here");
    if (p->module->version) return parse_fail(p, PTX_SYNTAX, t, ".version is given twice");
    if (version < OLDEST_VERSION || version > NEWEST_VERSION)
        return parse_fail(p, PTX_VERSION, t, "PTX ISA %d.%d is not supported, only 6.0 to 9.0", version / 10, version % 10);
    p->module->version = version;
    parse_next(p);
    return 0;
}

/* sm_NN, sm_NNa, sm_NNf; words such as texmode_independent may follow. */
static int parse_target(parser *p)
{
    parse_next(p);
    const token *t = &p->token;
    int target = 0;
    uint32_t c = 3;
    if (t->kind != TOKEN_NAME) return parse_unexpected(p, "a target such as sm_80");
    if (p->module->target) return parse_fail(p, PTX_SYNTAX, t, ".target is given twice");
    for (; c < t->length && c < 6 && isdigit((unsigned char)t->text[c]); c++) target = target * 10 + (t->text[c] - '0');
    char suffix = c + 1 == t->length ? t->text[c] : 0;
    if (t->length < 3 || memcmp(t->text, "sm_", 3) != 0 || target < OLDEST_TARGET || target > NEWEST_TARGET ||
        (c != t->length && suffix != 'a' && suffix != 'f'))
        return parse_fail(p, PTX_TARGET, t, "%.*s is no target that is supported", SHOWN(t));
    p->module->target = target;
    p->module->target_suffix = suffix;
    parse_next(p);
    while (parse_accept(p, ','))
        if (parse_expect(p, TOKEN_NAME, "a word")) return 1;
    return 0;
}

static int parse_address_size(parser *p)
{
    parse_next(p);
    if (p->token.kind == TOKEN_INTEGER && p->token.value == 32)
        return parse_fail(p, PTX_UNSUPPORTED, &p->token, "32-bit addresses are not supported");
    uint64_t size;
    return parse_count(p, 64, 64, "an address size", &size);
}

/* .file N "name" [, timestamp, size] */
static int parse_file(parser *p)
{
    ptx_module *m = p->module;
    uint64_t number = 0, ignored;
    parse_next(p);
    if (parse_count(p, 1, PARSE_MAX_FILE, "a file number", &number)) return 1;
    if (p->token.kind != TOKEN_STRING) return parse_unexpected(p, "a file's name");
    while (m->file_count <= number) {
        char **files = parse_grow(p, m->files, &p->file_capacity, m->file_count, sizeof *files);
        if (!files) return 1;
        m->files = files;
        files[m->file_count] = calloc(1, 1);
        if (!files[m->file_count]) return parse_no_memory(p);
        m->file_count++;
    }
    char *name = parse_copy(p, &p->token);
    if (!name) return 1;
    free(m->files[number]);
    m->files[number] = name;
    parse_next(p);
    while (parse_accept(p, ','))
        if (parse_count(p, 0, UINT64_MAX, "a number", &ignored)) return 1;
    return 0;
}

static int parse_section(parser *p)
{
    parse_next(p);
    if (p->token.kind != TOKEN_WORD && p->token.kind != TOKEN_NAME) return parse_unexpected(p, "a section's name");
    parse_next(p);
    return parse_skip_block(p);
}

static int parse_module_variable(parser *p)
{
    return parse_variable(p, 0);
}

typedef struct directive {
    const char *word;
    int (*parse)(parser *p);
    int header; /* may come before .version and .target */
} directive;

static const directive directives[] = {
    {"version", parse_version, 1}, {"target", parse_target, 1}, {"address_size", parse_address_size, 1}, {"file", parse_file, 1},
    {"loc", parse_location, 1}, {"section", parse_section, 1}, {"pragma", parse_pragma, 1}, {"entry", parse_entry, 0},
    {"func", parse_function, 0}, {"global", parse_module_variable, 0}, {"const", parse_module_variable, 0},
    {"shared", parse_module_variable, 0}, {"local", parse_module_variable, 0},
};

static int parse_statement(parser *p)
{
    static const char *const linking[] = {"visible", "extern", "weak", "common"};
    int is_extern = 0, prefixed = 0;
    for (size_t w = 0; w < sizeof linking / sizeof *linking; w++) {
        if (!parse_word_is(p, linking[w])) continue;
        prefixed = 1;
        is_extern |= w == 1;
        parse_next(p);
        w = (size_t)-1;
    }
    if (p->token.kind != TOKEN_WORD) return parse_unexpected(p, "a directive");
    for (size_t d = 0; d < sizeof directives / sizeof *directives; d++) {
        if (!parse_word_is(p, directives[d].word)) continue;
        if (prefixed && directives[d].header) return parse_unexpected(p, "a variable or function");
        if (d > 0 && !p->module->version) return parse_fail(p, PTX_SYNTAX, &p->token, ".version is missing: it must come first");
        if (!directives[d].header && !p->module->target)
            return parse_fail(p, PTX_SYNTAX, &p->token, ".target is missing: it must come before this");
        return directives[d].parse == parse_module_variable ? parse_variable(p, is_extern) : directives[d].parse(p);
    }
    return parse_fail(p, PTX_UNSUPPORTED, &p->token, "\".%.*s\" is not supported", SHOWN(&p->token));
}

/* Variables of the module first, as ptx_module says; a kernel's may have come between. */
static int order_variables(parser *p)
{
    ptx_module *m = p->module;
    if (!m->variable_count) return 0;
    ptx_variable *ordered = malloc(m->variable_count * sizeof *ordered);
    int32_t *places = malloc(m->variable_count * sizeof *places);
    int failed = !ordered || !places;
    uint32_t n = 0;
    for (uint8_t kernels = 0; kernels < 2 && !failed; kernels++) {
        for (uint32_t v = 0; v < m->variable_count; v++) {
            if (p->in_kernel[v] != kernels) continue;
            ordered[n] = m->variables[v];
            places[v] = (int32_t)n++;
        }
    }
    for (uint32_t k = 0; k < m->kernel_count && !failed; k++) {
        ptx_kernel *kernel = &m->kernels[k];
        for (uint32_t c = 0; c < kernel->constant_count; c++)
            if (kernel->constants[c].symbol >= 0) kernel->constants[c].symbol = places[kernel->constants[c].symbol];
    }
    free(places);
    if (failed) {
        free(ordered);
        return parse_no_memory(p);
    }
    free(m->variables);
    m->variables = ordered;
    return 0;
}

static int parse_module(parser *p)
{
    ptx_module *m = p->module;
    parse_next(p);
    m->files = parse_grow(p, NULL, &p->file_capacity, 0, sizeof *m->files);
    m->locations = parse_grow(p, NULL, &p->location_capacity, 0, sizeof *m->locations);
    if (!m->files || !m->locations) return 1;
    m->locations[m->location_count++] = (ptx_location){0, 0};
    m->files[0] = calloc(1, 1);
    if (!m->files[0]) return parse_no_memory(p);
    m->file_count = 1;
    while (p->token.kind != TOKEN_END)
        if (parse_statement(p)) return 1;
    if (!m->version) return parse_fail(p, PTX_SYNTAX, &p->token, ".version is missing: it must come first");
    if (!m->target) return parse_fail(p, PTX_SYNTAX, &p->token, ".target is missing");
    for (uint32_t l = 0; l < m->location_count; l++)
        if (m->locations[l].file >= m->file_count) m->locations[l].file = 0;
    return order_variables(p);
}

static void free_kernel(ptx_kernel *kernel)
{
    free(kernel->name);
    free(kernel->instructions);
    free(kernel->operands);
    free(kernel->constants);
    free(kernel->params);
}

void ptx_free(ptx_module *module)
{
    if (!module) return;
    for (uint32_t k = 0; k < module->kernel_count; k++) free_kernel(&module->kernels[k]);
    for (uint32_t v = 0; v < module->variable_count; v++) {
        free(module->variables[v].name);
        free(module->variables[v].initial);
    }
    for (uint32_t f = 0; f < module->file_count; f++) free(module->files[f]);
    free(module->kernels);
    free(module->variables);
    free(module->files);
    free(module->locations);
    free(module);
}

ptx_status ptx_parse(const char *text, size_t bytes, ptx_module **out, char *error, size_t error_bytes)
{
    *out = NULL;
    if (error_bytes) error[0] = 0;
    parser *p = calloc(1, sizeof *p);
    ptx_module *module = calloc(1, sizeof *module);
    ptx_status status = PTX_MEMORY;
    if (p && module) {
        p->text = text;
        p->bytes = bytes;
        p->error = error;
        p->error_bytes = error_bytes;
        p->module = module;
        p->rows = ptx_opcode_table();
        lexer_start(&p->lexer, text, bytes < MAX_TEXT_BYTES ? bytes : 0);
        if (bytes >= MAX_TEXT_BYTES) {
            p->token = (token){.text = text, .line_start = text, .line = 1};
            p->bytes = 0;
            parse_fail(p, PTX_SYNTAX, &p->token, "a text of more than %u bytes", MAX_TEXT_BYTES);
        } else if (!names_start(p)) {
            parse_module(p);
        }
        names_free(p);
        if (p->kernel) free_kernel(p->kernel);
        free(p->kernel);
        free(p->constant_table);
        free(p->fixups);
        free(p->in_kernel);
        if (p->locale) freelocale(p->locale);
        status = p->status;
    } else if (error_bytes) {
        snprintf(error, error_bytes, "out of memory");
    }
    free(p);
    if (status == PTX_OK)
        *out = module;
    else
        ptx_free(module);
    return status;
}
