/* Operands as they are written: {a, b}, d|p, [r + 4], -1, !p, _. What they must be is decided later, by parse_match. */
#include "parse.h"

#include <string.h>

#define WARP_SIZE_NAME "WARP_SZ"

static int add_element(parser *p, raw_element **out)
{
    raw_operands *r = &p->raw;
    if (r->element_count == PARSE_MAX_ELEMENTS)
        return parse_fail(p, PTX_SYNTAX, &p->token, "more than %d operands", PARSE_MAX_ELEMENTS);
    *out = &r->elements[r->element_count++];
    **out = (raw_element){.at = p->token};
    return 0;
}

/* + 4, - 4, + -4 behind a name. */
static int parse_offset(parser *p, int64_t *offset)
{
    while (p->token.kind == '+' || p->token.kind == '-') {
        int negative = p->token.kind == '-';
        parse_next(p);
        if (parse_accept(p, '-')) negative = !negative;
        if (p->token.kind != TOKEN_INTEGER) return parse_unexpected(p, "an offset");
        uint64_t value = negative ? 0 - p->token.value : p->token.value;
        *offset = (int64_t)((uint64_t)*offset + value);
        parse_next(p);
    }
    return 0;
}

static int parse_name(parser *p, raw_element *e)
{
    const token name = p->token;
    parse_next(p);
    if (parse_text_is(&name, "_")) {
        e->form = RAW_SINK;
    } else if (parse_text_is(&name, WARP_SIZE_NAME)) {
        e->form = RAW_INTEGER;
        e->value = PTX_LANES;
    } else if (p->token.kind == TOKEN_WORD) {
        uint32_t slot;
        uint8_t bits;
        if (!parse_special_name(&name, &p->token, &slot, &bits))
            return parse_fail(p, PTX_UNSUPPORTED, &name, "unknown register %.*s.%.*s", SHOWN(&name),
                              SHOWN(&p->token));
        e->form = RAW_SPECIAL;
        e->value = slot;
        parse_next(p);
    } else {
        e->form = RAW_NAME;
        return parse_offset(p, &e->offset);
    }
    return 0;
}

static int parse_element(parser *p)
{
    raw_element *e = NULL;
    if (add_element(p, &e)) return 1;
    if (parse_accept(p, '!')) {
        e->negate = 1;
        if (p->token.kind != TOKEN_NAME) return parse_unexpected(p, "a predicate");
        e->at = p->token;
    }
    if (p->token.kind == TOKEN_NAME) return parse_name(p, e);
    if (p->token.kind == '-' || (p->token.kind >= TOKEN_INTEGER && p->token.kind <= TOKEN_DECIMAL)) return parse_number(p, e);
    return parse_unexpected(p, "an operand");
}

static int parse_group(parser *p)
{
    raw_operands *r = &p->raw;
    raw_group *g = &r->groups[r->group_count++];
    *g = (raw_group){.at = p->token, .first = (uint8_t)r->element_count};
    if (parse_accept(p, '[')) {
        g->shape = SHAPE_ADDRESS;
        if (parse_element(p)) return 1;
        if (parse_expect(p, ']', "\"]\"")) return 1;
    } else if (parse_accept(p, '{')) {
        g->shape = SHAPE_VECTOR;
        do {
            if (parse_element(p)) return 1;
        } while (parse_accept(p, ','));
        if (parse_expect(p, '}', "\",\" or \"}\"")) return 1;
    } else {
        if (parse_element(p)) return 1;
        if (parse_accept(p, '|')) {
            g->shape = SHAPE_PAIR;
            if (parse_element(p)) return 1;
        }
    }
    g->count = (uint8_t)(r->element_count - g->first);
    return 0;
}

int parse_operands(parser *p)
{
    p->raw.element_count = p->raw.group_count = 0;
    if (p->token.kind == ';') return 0;
    do {
        if (p->raw.group_count == PTX_MAX_GROUPS)
            return parse_fail(p, PTX_SYNTAX, &p->token, "more than %d operands", PTX_MAX_GROUPS);
        if (parse_group(p)) return 1;
    } while (parse_accept(p, ','));
    return p->token.kind == ';' ? 0 : parse_unexpected(p, "\",\" or \";\"");
}
