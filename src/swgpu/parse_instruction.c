/* Instructions: modifiers by the opcode's row, operands by its pattern, and the function that runs it by its bind. */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FULL_NAME 200 /* of an opcode with its modifiers, for errors */

/* Adds a finished instruction to the kernel. */
int parse_emit(parser *p, ptx_instruction *i)
{
    ptx_kernel *k = p->kernel;
    ptx_instruction *instructions = parse_grow(p, k->instructions, &p->instruction_capacity, k->count, sizeof *instructions);
    if (!instructions) return 1;
    k->instructions = instructions;
    if (k->count == PTX_MAX_INSTRUCTIONS) {
        const token at = p->token;
        return parse_fail(p, PTX_SYNTAX, &at, "more than %u instructions", PTX_MAX_INSTRUCTIONS);
    }
    instructions[k->count++] = *i;
    return 0;
}

static int word_error(parser *p, const ptx_opcode_row *row, const char *before, const char *after)
{
    const token *t = &p->token;
    return parse_fail(p, PTX_UNSUPPORTED, t, "%s\".%.*s\" of %s%s", before, SHOWN(t), row->name, after);
}

/* One word after the opcode: a modifier of a category that the row permits, else a type. */
static int parse_modifier(parser *p, const ptx_opcode_row *row, ptx_instruction *i)
{
    int is_type = 0, is_taken = 0;
    for (const word *w = words_find(p, &p->token, NULL); w; w = words_find(p, &p->token, w)) {
        if (w->category < MOD_CATEGORIES && (row->modifiers >> w->category & 1)) {
            is_taken = i->modifier[w->category] != 0 && w->category != MOD_HINT;
            if (is_taken) continue;
            i->modifier[w->category] = w->value;
            return 0;
        }
        if (w->category != WORD_TYPE) continue;
        is_type = 1;
        if (!(row->types >> w->value & 1)) continue;
        if (i->types == row->type_count) return word_error(p, row, "type ", " is one too many");
        i->type[i->types++] = w->value;
        return 0;
    }
    if (is_taken) return word_error(p, row, "modifier ", " repeats or contradicts an earlier one");
    return word_error(p, row, is_type ? "unknown type " : "unknown modifier ", "");
}

static int parse_modifiers(parser *p, const ptx_opcode_row *row, ptx_instruction *i, const token *opcode, char *full)
{
    size_t length = (size_t)snprintf(full, MAX_FULL_NAME, "%s", row->name);
    for (; p->token.kind == TOKEN_WORD; parse_next(p)) {
        if (parse_modifier(p, row, i)) return 1;
        if (length + p->token.length + 2 > MAX_FULL_NAME) return parse_fail(p, PTX_SYNTAX, &p->token, "too many modifiers");
        length += (size_t)snprintf(full + length, MAX_FULL_NAME - length, ".%.*s", (int)p->token.length, p->token.text);
    }
    if (p->token.kind == TOKEN_BAD || (!*row->pattern && p->token.kind != ';')) return parse_unexpected(p, "\";\"");
    if (i->types != row->type_count)
        return parse_fail(p, PTX_SYNTAX, opcode, "%s needs %u type%s, not %u", row->name, row->type_count,
                          row->type_count == 1 ? "" : "s", i->types);
    return 0;
}

static int parse_guard(parser *p, const token *guard, int negate, ptx_instruction *i)
{
    uint32_t member;
    symbol *s = names_find(p, guard, &member);
    if (!s || s->kind > SYMBOL_RANGE || s->type != TYPE_PRED)
        return parse_fail(p, PTX_SYNTAX, guard, "%.*s is no predicate", SHOWN(guard));
    i->guarded = 1;
    i->guard_negate = (uint8_t)negate;
    i->guard_slot = parse_register_slot(p, s, member);
    return i->guard_slot == 0;
}

int parse_instruction(parser *p, const token *opcode, const token *guard, int guard_negate)
{
    char full[MAX_FULL_NAME];
    const word *w = words_find(p, opcode, NULL);
    while (w && w->category != WORD_OPCODE) w = words_find(p, opcode, w);
    if (!w) return parse_fail(p, PTX_UNSUPPORTED, opcode, "opcode %.*s is not supported", SHOWN(opcode));
    const ptx_opcode_row *row = &p->rows[w->value];
    ptx_instruction i = {.opcode = w->value, .counter = row->counter, .line = opcode->line, .location = p->location,
                         .column = (uint32_t)(opcode->text - opcode->line_start) + 1};
    if (parse_modifiers(p, row, &i, opcode, full) || (guard && parse_guard(p, guard, guard_negate, &i))) return 1;
    uint32_t first = p->operand_count;
    if (parse_operands(p) || parse_match(p, &i)) return 1;
    i.operands = p->kernel->operands ? p->kernel->operands + first : NULL;
    i.run = row->bind ? row->bind(&i) : NULL;
    if (!i.run) return parse_fail(p, PTX_UNSUPPORTED, opcode, "%s: this combination is not supported", full);
    return parse_emit(p, &i) || parse_expect(p, ';', "\";\"");
}
