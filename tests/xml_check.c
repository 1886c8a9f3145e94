/* A small checker of well-formed XML. See xml_check.h. */
#include "xml_check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 64
#define ATTRIBUTES 32

typedef struct name {
    const char *at;
    size_t bytes;
} name;

static char message[256];

static const char *wrong(const char *what, const char *at)
{
    snprintf(message, sizeof message, "%s: %.80s", what, at);
    return message;
}

static int same(name a, name b)
{
    return a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0;
}

static name take_name(const char **at)
{
    const name n = {*at, strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:_.")};
    *at += n.bytes;
    return n;
}

/* An entity at an &, which is passed. */
static int take_entity(const char **at)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(*at, known[i], strlen(known[i])) == 0) {
            *at += strlen(known[i]);
            return 1;
        }
    const size_t digits = (*at)[1] == '#' ? strspn(*at + 2, "0123456789") : 0;
    if (digits == 0 || (*at)[2 + digits] != ';') return 0;
    *at += digits + 3;
    return 1;
}

/* Text up to one of `ends`, which is not passed. */
static const char *take_text(const char **at, const char *ends)
{
    while (**at && !strchr(ends, **at)) {
        if (**at == '<') return wrong("a bare <", *at);
        if ((unsigned char)**at < ' ' && !isspace((unsigned char)**at)) return wrong("a control character", *at);
        if (**at != '&') ++*at;
        else if (!take_entity(at)) return wrong("a bare &", *at);
    }
    return NULL;
}

/* Attributes up to > or />. */
static const char *take_attributes(const char **at)
{
    name seen[ATTRIBUTES];
    for (size_t count = 0;; count++) {
        const size_t blanks = strspn(*at, " \n\t");
        *at += blanks;
        if (**at == '>' || **at == '/') return NULL;
        if (blanks == 0 || count == ATTRIBUTES) return wrong("no blank before an attribute, or too many", *at);
        seen[count] = take_name(at);
        if (seen[count].bytes == 0 || strncmp(*at, "=\"", 2) != 0) return wrong("no attribute with a value in quotes", *at);
        for (size_t i = 0; i < count; i++)
            if (same(seen[i], seen[count])) return wrong("an attribute twice", seen[count].at);
        *at += 2;
        const char *bad = take_text(at, "\"");
        if (bad) return bad;
        if (**at != '"') return wrong("an open attribute", *at);
        ++*at;
    }
}

const char *xml_check(const char *text)
{
    name open[DEPTH];
    size_t depth = 0;
    const char *at = text, *bad;
    if (strncmp(at, "<!DOCTYPE html>\n", 16) == 0) at += 16;
    do {
        if (*at != '<') return wrong("no element", at);
        at++;
        if (*at == '/') {
            at++;
            const name closed = take_name(&at);
            if (depth == 0 || !same(open[depth - 1], closed) || *at != '>') return wrong("closes what is not open", closed.at);
            depth--;
        } else {
            if (depth == DEPTH) return wrong("too deep", at);
            open[depth] = take_name(&at);
            if (open[depth].bytes == 0) return wrong("no name", at);
            bad = take_attributes(&at);
            if (bad) return bad;
            depth++;
            if (*at == '/') {
                at++;
                depth--;
            }
            if (*at != '>') return wrong("an open tag", at);
        }
        at++;
        if (depth == 0) break;
        bad = take_text(&at, "<");
        if (bad) return bad;
    } while (*at);
    if (depth > 0) return wrong("not closed", open[depth - 1].at);
    at += strspn(at, " \n");
    return *at ? wrong("after the end", at) : NULL;
}
