/* The lexer of PTX: comments and blanks are dropped, numbers are read, names are hashed on the way. */
#include "lexer.h"

#include <string.h>

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_letter(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static int is_name(char c)
{
    return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

uint32_t lexer_hash(const char *text, size_t length)
{
    uint32_t hash = LEXER_HASH_START;
    for (size_t i = 0; i < length; i++) hash = lexer_hash_step(hash, text[i]);
    return hash;
}

void lexer_start(lexer *l, const char *text, size_t bytes)
{
    *l = (lexer){.at = text, .end = text + (bytes ? strnlen(text, bytes) : 0), .line_start = text, .line = 1};
}

/* The character n places on, or 0 past the end. */
static char peek(const lexer *l, size_t n)
{
    return (size_t)(l->end - l->at) > n ? l->at[n] : 0;
}

static void new_line(lexer *l)
{
    l->line++;
    l->line_start = l->at;
}

/* Moves past blanks and comments. Returns 1 if a comment does not end; then at stays on its start. */
static int skip_blanks(lexer *l)
{
    while (l->at < l->end) {
        char c = *l->at;
        if (c == '\n') {
            l->at++;
            new_line(l);
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            l->at++;
        } else if (c == '/' && peek(l, 1) == '/') {
            const char *stop = memchr(l->at, '\n', (size_t)(l->end - l->at));
            l->at = stop ? stop : l->end;
        } else if (c == '/' && peek(l, 1) == '*') {
            const lexer start = *l;
            l->at += 2;
            while (l->at < l->end && !(*l->at == '*' && peek(l, 1) == '/'))
                if (*l->at++ == '\n') new_line(l);
            if (l->at >= l->end) {
                *l = start;
                return 1;
            }
            l->at += 2;
        } else {
            break;
        }
    }
    return 0;
}

static void bad(token *t, const char *problem)
{
    t->kind = TOKEN_BAD;
    t->problem = problem;
}

/* Digits of a base up to what is none. Returns their number; problems go to the token. */
static uint32_t read_digits(lexer *l, token *t, uint32_t base)
{
    uint32_t count = 0;
    for (int digit; l->at < l->end && (digit = hex_digit(*l->at)) < (int)base; l->at++, count++) {
        if (t->value > (UINT64_MAX - (uint32_t)digit) / base) bad(t, "a number of more than 64 bits");
        t->value = t->value * base + (uint32_t)digit;
    }
    return count;
}

/* 0f and 0d: just so many hexadecimal digits. */
static void read_float_bits(lexer *l, token *t, int kind, uint32_t digits)
{
    l->at += 2;
    t->kind = kind;
    if (read_digits(l, t, 16) != digits || is_name(peek(l, 0)))
        bad(t, digits == 8 ? "0f needs 8 hexadecimal digits" : "0d needs 16 hexadecimal digits");
}

/* What may follow the digits of a decimal number: a fraction, an exponent. Returns 1 if there was any. */
static int read_fraction(lexer *l)
{
    const char *start = l->at;
    if (peek(l, 0) == '.' && !is_letter(peek(l, 1)) && peek(l, 1) != '_') {
        l->at++;
        while (is_digit(peek(l, 0))) l->at++;
    }
    if ((peek(l, 0) | 32) == 'e') {
        size_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
        if (is_digit(peek(l, 1 + sign))) {
            l->at += 1 + sign;
            while (is_digit(peek(l, 0))) l->at++;
        }
    }
    return l->at != start;
}

static void read_number(lexer *l, token *t)
{
    char mark = *l->at == '0' ? (char)(peek(l, 1) | 32) : 0;
    t->kind = TOKEN_INTEGER;
    if (mark == 'f') {
        read_float_bits(l, t, TOKEN_FLOAT32, 8);
    } else if (mark == 'd') {
        read_float_bits(l, t, TOKEN_FLOAT64, 16);
    } else if (mark == 'x' || mark == 'b') {
        l->at += 2;
        if (!read_digits(l, t, mark == 'x' ? 16 : 2)) bad(t, "a malformed number");
    } else {
        const lexer start = *l;
        read_digits(l, t, 10);
        if (read_fraction(l)) {
            t->kind = TOKEN_DECIMAL;
        } else if (*start.at == '0') {
            *l = start;
            t->value = 0;
            t->kind = TOKEN_INTEGER;
            read_digits(l, t, 8);
        }
    }
    if (t->kind == TOKEN_INTEGER && peek(l, 0) == 'U') l->at++;
    if (is_name(peek(l, 0)) && t->kind != TOKEN_BAD) bad(t, "a malformed number");
    while (is_name(peek(l, 0))) l->at++;
    t->length = (uint32_t)(l->at - t->text);
    if (t->kind == TOKEN_DECIMAL && t->length > LEXER_MAX_NUMBER) bad(t, "a number too long");
}

static void read_name(lexer *l, token *t)
{
    uint32_t hash = lexer_hash_step(LEXER_HASH_START, *l->at++);
    while (l->at < l->end && is_name(*l->at)) hash = lexer_hash_step(hash, *l->at++);
    t->kind = TOKEN_NAME;
    t->hash = hash;
    t->length = (uint32_t)(l->at - t->text);
    if (*t->text == '%' && t->length == 1) bad(t, "a name is missing after %");
}

/* A word after a dot; "::" may join its parts. */
static void read_word(lexer *l, token *t)
{
    uint32_t hash = LEXER_HASH_START;
    l->at++;
    t->text = l->at;
    t->kind = TOKEN_WORD;
    for (;;) {
        if (is_name(peek(l, 0))) {
            hash = lexer_hash_step(hash, *l->at++);
        } else if (l->at != t->text && peek(l, 0) == ':' && peek(l, 1) == ':' && is_name(peek(l, 2))) {
            hash = lexer_hash_step(lexer_hash_step(hash, ':'), ':');
            l->at += 2;
        } else {
            break;
        }
    }
    t->hash = hash;
    t->length = (uint32_t)(l->at - t->text);
    if (!t->length) bad(t, "a word is missing after the dot");
}

static void read_string(lexer *l, token *t)
{
    l->at++;
    t->text = l->at;
    while (l->at < l->end && *l->at != '"' && *l->at != '\n') l->at++;
    t->kind = TOKEN_STRING;
    t->length = (uint32_t)(l->at - t->text);
    if (peek(l, 0) == '"')
        l->at++;
    else
        bad(t, "a string that does not end");
}

void lexer_next(lexer *l, token *out)
{
    int open_comment = skip_blanks(l);
    token *t = out;
    *t = (token){.text = l->at, .line_start = l->line_start, .line = l->line, .kind = TOKEN_END};
    if (l->at >= l->end) return;
    char c = *l->at;
    if (open_comment) {
        bad(t, "a comment that does not end");
        l->at = l->end;
    } else if (is_letter(c) || c == '%' || c == '_' || c == '$') {
        read_name(l, t);
    } else if (c == '.') {
        read_word(l, t);
    } else if (is_digit(c)) {
        read_number(l, t);
    } else if (c == '"') {
        read_string(l, t);
    } else if (strchr(",;:(){}[]<>|@!+-=*/~&^?", c)) {
        t->kind = c;
        t->length = 1;
        l->at++;
    } else {
        bad(t, "a character that PTX does not know");
        t->length = 1;
        l->at++;
    }
}
