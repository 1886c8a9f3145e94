/* The worker's hooks: bytes from the files or the compiler, the list of misses, and what is told of it. See bring.h. */
#include "bring.h"

#include "cache/record.h"
#include "misses.h"
#include "status.h"

#include <stdlib.h>

typedef struct bringer {
    images *images;
    int sm;
    atomic_int said_full;
} bringer;

/* Another process, or another context of this one, that is making the kernel just now will have stored it soon. */
static jg_status compile_claimed(images *i, const kernel_spec *spec, const char *label, image *out)
{
    kernel_key key;
    jg_source source;
    kernel_encode_key(spec, &key);
    const uint64_t id = record_id(key.bytes, sizeof key.bytes);
    if (i->claims && !claims_try(i->claims, id)) return images_get(i, spec, label, EFFORT_DISK, out, &source);
    jg_status status = images_get(i, spec, label, EFFORT_COMPILE_HERE, out, &source);
    if (i->claims) claims_release(i->claims, id);
    return status;
}

static jg_status bring(void *user, const kernel_spec *spec, const char *label, bring_how how, image *out)
{
    images *i = ((bringer *)user)->images;
    jg_source source;
    jg_status status = how == BRING_CACHED ? images_get(i, spec, label, EFFORT_DISK, out, &source) : compile_claimed(i, spec, label, out);
    if (status != JG_OK && status != JG_ERR_NOT_READY && status != JG_ERR_CANCELLED)
        journal_log(&i->journal, JG_LOG_WARNING, "%s: %s; generic kernels go on serving", label, jg_last_error());
    return status;
}

static double gain(void *user, const problem_key *key)
{
    const bringer *b = user;
    return misses_gain(b->images, b->sm, key);
}

static void record(void *user, met *const *mets, const uint64_t *counts, size_t count)
{
    const bringer *b = user;
    misses_add(b->images, b->sm, mets, counts, count);
}

static void trace(void *user, jg_event event, const met *m, const kernel_spec *spec)
{
    bringer *b = user;
    char label[JG_PROBLEM_TEXT_BYTES] = "", name[KERNEL_NAME_BYTES] = "";
    if (m) problem_key_format(&m->key, label, sizeof label);
    if (spec) kernel_format_name(spec, name);
    if (event == JG_EVENT_DROP && !atomic_exchange(&b->said_full, 1))
        journal_log(&b->images->journal, JG_LOG_WARNING, "options.worker.queue is full; %s and others go on with generic kernels "
                    "until they are met again (said once)", label);
    journal_trace(&b->images->journal, &(jg_trace){event, label, name, 0});
}

static void release(void *user)
{
    bringer *b = user;
    images_drop(b->images);
    free(b);
}

jg_status bring_hooks(images *i, int sm, worker_hooks *out)
{
    bringer *b = malloc(sizeof *b);
    if (!b) return status_set(JG_ERR_NO_MEMORY, "out of memory making a worker");
    *b = (bringer){.images = images_keep(i), .sm = sm};
    *out = (worker_hooks){.user = b, .bring = bring, .gain = gain, .record = record, .trace = trace, .release = release};
    return JG_OK;
}
