/* From PTX text to tokens, one at a time. The text need not end in 0; a byte 0 ends it. Nothing is allocated: a token
 * points into the text. What is no token comes out as TOKEN_BAD with the reason, so that skipped sections may hold it. */
#ifndef SWGPU_LEXER_H
#define SWGPU_LEXER_H

#include <stddef.h>
#include <stdint.h>

/* Punctuation has its character as kind; these lie above. */
enum {
    TOKEN_END = 256,
    TOKEN_BAD,     /* problem says why */
    TOKEN_NAME,    /* add, %r1, $L__BB0_2, _ */
    TOKEN_WORD,    /* .reg, .v2, .shared::cta: text begins after the dot */
    TOKEN_INTEGER, /* value */
    TOKEN_FLOAT32, /* 0f3F800000: value holds the bits */
    TOKEN_FLOAT64, /* 0d...: value holds the bits */
    TOKEN_DECIMAL, /* 1.5, 2e10: at most LEXER_MAX_NUMBER characters, not converted */
    TOKEN_STRING   /* text is what stands between the quotes */
};

#define LEXER_MAX_NUMBER 80u
#define LEXER_HASH_START 2166136261u

typedef struct token {
    const char *text;
    const char *line_start; /* the column is text - line_start + 1 */
    const char *problem;
    uint64_t value;
    int kind;
    uint32_t length;
    uint32_t hash; /* lexer_hash of a name or word */
    uint32_t line; /* from 1 */
} token;

typedef struct lexer {
    const char *at, *end, *line_start;
    uint32_t line;
} lexer;

void lexer_start(lexer *l, const char *text, size_t bytes);

/* After TOKEN_END comes TOKEN_END for ever. */
void lexer_next(lexer *l, token *out);

static inline uint32_t lexer_hash_step(uint32_t hash, char c)
{
    return (hash ^ (uint8_t)c) * 16777619u;
}

uint32_t lexer_hash(const char *text, size_t length);

#endif
