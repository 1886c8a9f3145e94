/* Names of the PTX parser: one hash table of all texts, each with a stack of what it stands for in the open scopes; and
 * the table of opcodes, modifiers and types. Nothing is ever removed from the first: closing a scope pops the stacks. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RANGE_DIGITS 5 /* PTX_MAX_REGISTERS has five */

static void add_word(parser *p, const char *text, unsigned category, unsigned value)
{
    uint32_t bucket = lexer_hash(text, strlen(text)) % PARSE_BUCKETS;
    uint32_t n = ++p->word_count;
    p->words[n] = (word){.text = text, .category = (uint8_t)category, .value = (uint8_t)value};
    /* At the end of the bucket, so that a word's categories come in the table's order. */
    uint16_t *link = &p->buckets[bucket];
    while (*link) link = &p->words[*link].next;
    *link = (uint16_t)n;
}

static void add_words(parser *p)
{
    static const struct {
        const char *text;
        uint8_t category, value;
    } modifiers[] = {
#define MEMBER(category, value, text) {text, MOD_##category, value},
        PTX_MODIFIERS(MEMBER)
#undef MEMBER
    };
    _Static_assert(sizeof modifiers / sizeof *modifiers + OPCODE_COUNT + TYPE_COUNT < PARSE_WORDS, "words need more room");
    for (size_t m = 0; m < sizeof modifiers / sizeof *modifiers; m++)
        add_word(p, modifiers[m].text, modifiers[m].category, modifiers[m].value);
    for (unsigned op = 0; op < OPCODE_COUNT; op++) add_word(p, p->rows[op].name, WORD_OPCODE, op);
    for (unsigned type = TYPE_NONE + 1; type < TYPE_COUNT; type++) add_word(p, ptx_type_name((ptx_type)type), WORD_TYPE, type);
}

const word *words_find(const parser *p, const token *t, const word *after)
{
    uint32_t n = after ? after->next : p->buckets[t->hash % PARSE_BUCKETS];
    while (n && !parse_text_is(t, p->words[n].text)) n = p->words[n].next;
    return n ? &p->words[n] : NULL;
}

int names_start(parser *p)
{
    names *n = &p->names;
    n->table_size = 1024;
    n->table = calloc(n->table_size, sizeof *n->table);
    if (!n->table) return parse_no_memory(p);
    add_words(p);
    return 0;
}

void names_free(parser *p)
{
    names *n = &p->names;
    while (n->depth > 0) names_close(p);
    names_close(p);
    free(n->entries);
    free(n->table);
}

/* Where a text is, or where it would go. */
static uint32_t table_place(const names *n, const char *text, uint32_t length, uint32_t hash)
{
    uint32_t mask = n->table_size - 1, place = hash & mask;
    for (; n->table[place]; place = (place + 1) & mask) {
        const name_entry *e = &n->entries[n->table[place] - 1];
        if (e->hash == hash && e->length == length && memcmp(e->text, text, length) == 0) break;
    }
    return place;
}

static name_entry *find_entry(const names *n, const char *text, uint32_t length, uint32_t hash)
{
    uint32_t found = n->table[table_place(n, text, length, hash)];
    return found ? &n->entries[found - 1] : NULL;
}

static int grow_table(parser *p)
{
    names *n = &p->names;
    uint32_t size = n->table_size * 2, *bigger = calloc(size, sizeof *bigger);
    if (!bigger) return parse_no_memory(p);
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t place = n->entries[i].hash & (size - 1);
        while (bigger[place]) place = (place + 1) & (size - 1);
        bigger[place] = i + 1;
    }
    free(n->table);
    n->table = bigger;
    n->table_size = size;
    return 0;
}

uint32_t names_intern(parser *p, const token *t)
{
    names *n = &p->names;
    uint32_t place = table_place(n, t->text, t->length, t->hash);
    if (n->table[place]) return n->table[place] - 1;
    if (t->length >= PTX_NAME_BYTES) {
        parse_fail(p, PTX_SYNTAX, t, "a name of more than %d characters", PTX_NAME_BYTES - 1);
        return UINT32_MAX;
    }
    name_entry *entries = parse_grow(p, n->entries, &n->capacity, n->count, sizeof *entries);
    if (!entries) return UINT32_MAX;
    n->entries = entries;
    entries[n->count] = (name_entry){.text = t->text, .length = t->length, .hash = t->hash};
    n->table[place] = ++n->count;
    if (n->count > n->table_size / 2 && grow_table(p)) return UINT32_MAX;
    return n->count - 1;
}

static int ends_in_digit(const name_entry *e)
{
    char last = e->text[e->length - 1];
    return last >= '0' && last <= '9';
}

/* The range that a name is in, innermost first: %r12 is in %r<20> and in %r1<3>. */
static symbol *find_range(const names *n, const token *t, uint32_t *member)
{
    symbol *best = NULL;
    uint32_t number = 0, scale = 1;
    for (uint32_t digits = 1; digits <= MAX_RANGE_DIGITS && digits < t->length; digits++, scale *= 10) {
        const char *start = t->text + t->length - digits;
        if (*start < '0' || *start > '9') break;
        number += (uint32_t)(*start - '0') * scale;
        int last = start[-1] < '0' || start[-1] > '9';
        if ((!last && !n->odd_ranges) || (*start == '0' && digits > 1)) continue;
        uint32_t length = t->length - digits;
        const name_entry *e = find_entry(n, t->text, length, lexer_hash(t->text, length));
        symbol *s = e ? e->range : NULL;
        while (s && number >= s->count) s = s->outer;
        if (!s || (best && best->depth >= s->depth)) continue;
        best = s;
        *member = number;
    }
    return best;
}

symbol *names_declare(parser *p, const token *t, symbol_kind kind, int range)
{
    names *n = &p->names;
    uint32_t name = names_intern(p, t);
    if (name == UINT32_MAX) return NULL;
    name_entry *e = &n->entries[name];
    symbol **top = range ? &e->range : &e->symbol;
    uint32_t member;
    const symbol *other = kind == SYMBOL_REGISTER ? find_range(n, t, &member) : NULL;
    if ((*top && (*top)->depth == n->depth) || (other && other->depth == n->depth)) {
        parse_fail(p, PTX_SYNTAX, t, "%.*s is declared twice", (int)t->length, t->text);
        return NULL;
    }
    symbol *s = calloc(1, sizeof *s);
    if (!s) {
        parse_no_memory(p);
        return NULL;
    }
    *s = (symbol){.outer = *top, .next = n->scopes[n->depth], .name = name, .kind = (uint8_t)kind, .depth = (uint8_t)n->depth};
    *top = s;
    n->scopes[n->depth] = s;
    if (range) n->odd_ranges += (uint32_t)ends_in_digit(e);
    return s;
}

symbol *names_find(parser *p, const token *t, uint32_t *member)
{
    const name_entry *e = find_entry(&p->names, t->text, t->length, t->hash);
    symbol *s = e ? e->symbol : NULL, *range = find_range(&p->names, t, member);
    return range && (!s || range->depth > s->depth) ? range : s;
}

int names_open(parser *p, const token *at)
{
    if (p->names.depth + 1 >= PARSE_MAX_DEPTH)
        return parse_fail(p, PTX_SYNTAX, at, "blocks are nested more than %d deep", PARSE_MAX_DEPTH - 3);
    p->names.depth++;
    return 0;
}

void names_close(parser *p)
{
    names *n = &p->names;
    for (symbol *s = n->scopes[n->depth], *next; s; s = next) {
        name_entry *e = &n->entries[s->name];
        next = s->next;
        if (s->kind == SYMBOL_RANGE) {
            e->range = s->outer;
            n->odd_ranges -= (uint32_t)ends_in_digit(e);
        } else {
            e->symbol = s->outer;
        }
        free(s->slots);
        free(s);
    }
    n->scopes[n->depth] = NULL;
    if (n->depth) n->depth--;
}
