/* The kernel templates, embedded in the library. */
#ifndef JG_TEMPLATE_H
#define JG_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

/* The text to compile for a family, without the #define lines: the shared part followed by the family's own. Static. */
const char *template_source(int family);

/* XXH64 of that text without comments and spare white space, so that rewording a comment keeps caches valid. */
uint64_t template_digest(int family);

/* The hash behind template_digest, for any text. */
uint64_t template_digest_text(const char *text);

#endif
