/* What a compile helper (tools/jitgemm-compile.c) and its host (helper.c) say to each other, over a pair of connected sockets.
 *
 * Both are of one build on one machine, so structs go as they lie in memory. The helper greets first; a host that finds another build's
 * greeting, or none, sends nothing. Then one request and one reply, each with its texts and bytes behind it, in the order of
 * their lengths. Lengths are checked on both sides. */
#ifndef JG_HELPER_WIRE_H
#define JG_HELPER_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* This layout alone stays as it is from version to version. Texts are padded with zeros. */
typedef struct wire_greeting {
    char magic[8];
    char build[56];         /* version and digest of what both ends must have in common */
} wire_greeting;

/* Lengths of texts count their final 0; each is at least 1. */
typedef struct wire_request {
    char magic[8];
    int32_t arch, line_info;
    uint32_t nvrtc_path_bytes; /* of "" for the usual names */
    uint32_t name_bytes, source_bytes;
} wire_request;

typedef struct wire_reply {
    char magic[8];
    int32_t status;         /* jg_status: OK, or one that nvrtc_open and nvrtc_compile return */
    uint32_t text_bytes;    /* of the error text, its final 0 counted */
    uint64_t cubin_bytes, ptx_bytes; /* 0 unless OK; without a 0 at the end */
    char provenance[256];
} wire_reply;

#define WIRE_REQUEST_MAGIC "jgmake\n"
#define WIRE_REPLY_MAGIC "jgmade\n"

#define WIRE_MAX_TEXT_BYTES 4096u
#define WIRE_MAX_SOURCE_BYTES (4u << 20)
#define WIRE_MAX_IMAGE_BYTES (64u << 20) /* of cubin and of PTX each */

/* The greeting of this build. */
void wire_greet(wire_greeting *out);

/* What is wrong with a greeting, as the end of a sentence that begins with the helper's path; "" if it is this build's. */
void wire_judge_greeting(const wire_greeting *greeting, char *why, size_t size);

/* Nonzero if magic, lengths and numbers are possible. */
int wire_is_request(const wire_request *request);
int wire_is_reply(const wire_reply *reply);

/* Nonzero if a text that was received ends where it should. */
int wire_is_text(const char *text, size_t bytes);

#endif
