/* The kernel templates, embedded in the library by the assembler: nothing is read from disk at run time, and the
 * text a kernel was made from is always that of this library. */
#include "template.h"

#include "kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Each family's text is the shared parts and its own in one string, each with its name for the compiler's messages.
 * The name is absolute because NVRTC puts the working directory before any other, and an image must not depend on that. */
#define PART(file)                                                       \
    ".ascii \"#line 1 \\\"/jitgemm/templates/" file "\\\"\\n\"\n"         \
    ".incbin \"" JG_TEMPLATE_DIR "/" file "\"\n"
#define SHARED PART("common.cuh") PART("numbers.cuh") PART("elements.cuh") PART("epilogue.cuh")
#define EMBED(symbol, parts)                                             \
    __asm__(".pushsection .rodata\n"                                     \
            ".global " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"   \
            SHARED parts                                                 \
            ".byte 0\n"                                                  \
            ".popsection\n");                                            \
    extern const char symbol[] __attribute__((visibility("hidden")))

EMBED(jg_template_simt, PART("quads.cuh") PART("simt.cu") PART("entry.cuh"));
EMBED(jg_template_mma, PART("fragments.cuh") PART("realign.cuh") PART("mma.cu") PART("entry.cuh"));
EMBED(jg_template_tf32, PART("fragments.cuh") PART("tf32.cu") PART("entry.cuh"));

static pthread_once_t digest_once = PTHREAD_ONCE_INIT;
static uint64_t digests[LAST_FAMILY + 1];

const char *template_source(int family)
{
    return family == FAMILY_MMA ? jg_template_mma : family == FAMILY_TF32 ? jg_template_tf32 : jg_template_simt;
}

/* Copies the text without // and block comments, line ends doubled or spaces at line ends. The templates hold no
 * string with a comment mark in it. Returns the length. */
static size_t strip(const char *text, char *out)
{
    size_t n = 0;
    while (*text) {
        if (text[0] == '/' && text[1] == '/') {
            text += strcspn(text, "\n");
        } else if (text[0] == '/' && text[1] == '*') {
            const char *end = strstr(text + 2, "*/");
            text = end ? end + 2 : text + strlen(text);
        } else if (*text == '\n') {
            while (n && (out[n - 1] == ' ' || out[n - 1] == '\t')) n--;
            if (n && out[n - 1] != '\n') out[n++] = '\n';
            text++;
        } else {
            out[n++] = *text++;
        }
    }
    return n;
}

uint64_t template_digest_text(const char *text)
{
    char *stripped = malloc(strlen(text) + 1);
    /* Out of memory: hash the text as it is. That is another key, hence a miss, never a wrong kernel. */
    if (!stripped) return XXH64(text, strlen(text), 1);
    uint64_t digest = XXH64(stripped, strip(text, stripped), 0);
    free(stripped);
    return digest;
}

static void compute_digests(void)
{
    for (int family = FAMILY_SIMT; family <= LAST_FAMILY; family++)
        digests[family] = template_digest_text(template_source(family));
}

uint64_t template_digest(int family)
{
    pthread_once(&digest_once, compute_digests);
    return digests[family];
}
