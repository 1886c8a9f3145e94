/* Messages between a compile helper and its host: what both ends check. See helper_wire.h. */
#include "helper_wire.h"

#include "jitgemm.h"

#include <stdio.h>
#include <string.h>

/* Of the sources that both ends must have in common, by the Makefile: a helper of another build would pass other options to NVRTC. */
#ifndef JG_HELPER_DIGEST
#define JG_HELPER_DIGEST "0"
#endif

#define GREETING_MAGIC "jghelp\n"

void wire_greet(wire_greeting *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->magic, GREETING_MAGIC, sizeof out->magic);
    snprintf(out->build, sizeof out->build, "%s", JG_VERSION_STRING " build " JG_HELPER_DIGEST);
}

void wire_judge_greeting(const wire_greeting *greeting, char *why, size_t size)
{
    wire_greeting own;
    wire_greet(&own);
    if (memcmp(greeting->magic, own.magic, sizeof own.magic) != 0)
        snprintf(why, size, "is no jitgemm-compile");
    else if (memcmp(greeting->build, own.build, sizeof own.build) != 0)
        snprintf(why, size, "is of another version than the library (%.*s, not %s)", (int)strnlen(greeting->build, sizeof greeting->build),
                 greeting->build, own.build);
    else
        snprintf(why, size, "%s", "");
}

static int is_within(uint64_t bytes, uint64_t least, uint64_t most)
{
    return bytes >= least && bytes <= most;
}

int wire_is_request(const wire_request *r)
{
    return memcmp(r->magic, WIRE_REQUEST_MAGIC, sizeof r->magic) == 0 && r->arch > 0 &&
           is_within(r->nvrtc_path_bytes, 1, WIRE_MAX_TEXT_BYTES) && is_within(r->name_bytes, 1, WIRE_MAX_TEXT_BYTES) &&
           is_within(r->source_bytes, 1, WIRE_MAX_SOURCE_BYTES);
}

/* The other statuses are not for a helper to give: a host would do the wrong thing about them. */
static int is_answer(int32_t status)
{
    return status == JG_OK || status == JG_ERR_NO_NVRTC || status == JG_ERR_COMPILE || status == JG_ERR_ARCH || status == JG_ERR_NO_MEMORY;
}

int wire_is_reply(const wire_reply *r)
{
    const int has_image = r->cubin_bytes + r->ptx_bytes > 0;
    return memcmp(r->magic, WIRE_REPLY_MAGIC, sizeof r->magic) == 0 && is_answer(r->status) && has_image == (r->status == JG_OK) &&
           is_within(r->text_bytes, 1, WIRE_MAX_TEXT_BYTES) && is_within(r->cubin_bytes, 0, WIRE_MAX_IMAGE_BYTES) &&
           is_within(r->ptx_bytes, 0, WIRE_MAX_IMAGE_BYTES) && memchr(r->provenance, 0, sizeof r->provenance);
}

int wire_is_text(const char *text, size_t bytes)
{
    return bytes > 0 && strnlen(text, bytes) == bytes - 1;
}
