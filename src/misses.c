/* The list of misses: from mets and problems to rows of the store and back. See misses.h. */
#include "misses.h"

#include "cache/record.h"
#include "context.h"
#include "status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a problem is kept: a format number, then the bytes of its key. Another format is another row, and never misread. */
#define FORMAT "jgmiss02"
#define BLOB_BYTES (sizeof FORMAT - 1 + sizeof(problem_key))

typedef struct row {
    unsigned char blob[BLOB_BYTES];
    char label[JG_PROBLEM_TEXT_BYTES], target[16];
} row;

static void fill_row(row *r, store_miss *out, int sm, const problem_key *key, uint64_t record, uint64_t count, double gain)
{
    memcpy(r->blob, FORMAT, sizeof FORMAT - 1);
    memcpy(r->blob + sizeof FORMAT - 1, key, sizeof *key);
    problem_key_format(key, r->label, sizeof r->label);
    snprintf(r->target, sizeof r->target, "sm_%d", sm);
    *out = (store_miss){.key = r->blob, .key_bytes = BLOB_BYTES, .target = r->target, .label = r->label, .record = record,
                        .count = count, .gain = gain};
}

void misses_add(images *i, int sm, met *const *mets, const uint64_t *counts, size_t count)
{
    if (!i->store || !count) return;
    row *rows = malloc(count * sizeof *rows);
    store_miss *misses = malloc(count * sizeof *misses);
    if (rows && misses) {
        for (size_t k = 0; k < count; k++)
            fill_row(&rows[k], &misses[k], sm, &mets[k]->key, record_id(mets[k]->kernel.bytes, sizeof mets[k]->kernel.bytes),
                     counts[k], 0);
        if (store_add_misses(i->store, misses, count) != STORE_OK) images_fault(i, i->store, "cannot write the list of misses");
    }
    free(rows);
    free(misses);
}

void misses_follow(images *i, int sm, const problem_key *key, uint64_t record)
{
    row r;
    store_miss m;
    if (!i->store) return;
    fill_row(&r, &m, sm, key, record, 0, 0);
    if (store_renew_miss(i->store, &m) != STORE_OK) images_fault(i, i->store, "cannot write the list of misses");
}

double misses_gain(images *i, int sm, const problem_key *key)
{
    row r;
    store_miss wanted;
    double gain = 0;
    if (!i->store) return 0;
    fill_row(&r, &wanted, sm, key, 0, 0, 0);
    return store_get_gain(i->store, wanted.key, wanted.key_bytes, wanted.target, &gain) == STORE_OK ? gain : 0;
}

typedef struct reading {
    miss_list *list;
    int out_of_memory;
} reading;

static int take_row(void *user, const store_miss *in)
{
    reading *r = user;
    miss_list *list = r->list;
    if (!in->count || in->key_bytes != BLOB_BYTES || memcmp(in->key, FORMAT, sizeof FORMAT - 1) != 0) return 0;
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        miss *bigger = realloc(list->misses, room * sizeof *bigger);
        if (!bigger) return r->out_of_memory = 1;
        list->misses = bigger;
        list->room = room;
    }
    miss *m = &list->misses[list->count];
    memcpy(&m->key, (const unsigned char *)in->key + sizeof FORMAT - 1, sizeof m->key);
    m->count = in->count;
    m->gain = in->gain;
    m->record = in->record;
    m->cached = in->cached;
    list->count++;
    return 0;
}

/* The store knows only of its own records. */
static void look_into_factory(store *factory, miss_list *list)
{
    for (size_t k = 0; k < list->count; k++) {
        miss *m = &list->misses[k];
        if (!m->cached && store_has(factory, m->record, &m->cached) != STORE_OK) return;
    }
}

jg_status misses_read(images *i, int sm, miss_list *out)
{
    char target[16];
    reading r = {out, 0};
    memset(out, 0, sizeof *out);
    if (!i->store) return JG_OK;
    snprintf(target, sizeof target, "sm_%d", sm);
    if (store_list_misses(i->store, target, take_row, &r) != STORE_OK)
        images_fault(i, i->store, "cannot read the list of misses");
    if (!r.out_of_memory && i->factory) look_into_factory(i->factory, out);
    if (!r.out_of_memory) return JG_OK;
    misses_free(out);
    return status_set(JG_ERR_NO_MEMORY, "out of memory reading the list of misses");
}

void misses_free(miss_list *list)
{
    free(list->misses);
    memset(list, 0, sizeof *list);
}

jg_status jg_record_gain(jg_context *c, const jg_problem *in, double gain)
{
    if (!c || !in) return status_set(JG_ERR_NULL, "jg_record_gain: %s is null", !c ? "context" : "problem");
    if (!(gain > 0) || isinf(gain)) return status_set(JG_ERR_VALUE, "jg_record_gain: gain is %g; it must be above 0", gain);
    problem p;
    plan own;
    row r;
    store_miss m;
    kernel_key kernel;
    RETURN_IF_ERROR(problem_canonicalise(in, &p));
    if (problem_is_empty(&p)) return JG_OK;
    const problem_key key = problem_key_of(&p, problem_promised_access(&p));
    RETURN_IF_ERROR(tuned_choose(c->tuned, &key, gemm_planned_form(&p), &c->device.limits, &own));
    if (!c->images->store) return status_set(JG_ERR_FILE, "jg_record_gain: the context has no cache file");
    kernel_encode_key(&own.spec, &kernel);
    fill_row(&r, &m, c->device.limits.arch->number, &key, record_id(kernel.bytes, sizeof kernel.bytes), 0, gain);
    if (store_add_misses(c->images->store, &m, 1) != STORE_OK)
        return status_set(JG_ERR_FILE, "%s", store_error(c->images->store));
    return JG_OK;
}
