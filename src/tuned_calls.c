/* jg_record_plan: from a measured plan to a row in the cache file, its kernel beside it, and an entry in memory. */
#include "context.h"
#include "misses.h"
#include "status.h"

#include "cache/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static jg_status check_measured(const jg_measured *m)
{
    if (!(m->us > 0) || isinf(m->us)) return status_set(JG_ERR_VALUE, "jg_record_plan: us is %g; it must be above 0", m->us);
    if (m->reserved) return status_set(JG_ERR_VALUE, "jg_record_plan: measured.reserved is not 0; zero-initialise jg_measured");
    return JG_OK;
}

/* Whether the plan is one for this context, too. */
static jg_status check_place(const jg_context *c, const jg_context *from, const binding *b)
{
    if (!b) return status_set(JG_ERR_VALUE, "jg_record_plan: not a plan that jg_plan_create_candidate gave, or one that launches nothing");
    if (strcmp(c->device.place, from->device.place) != 0)
        return status_set(JG_ERR_VALUE, "jg_record_plan: the plan is for %s, and this context for %s", from->device.place,
                          c->device.place[0] ? c->device.place : "the cpu device");
    return JG_OK;
}

/* Whether its bits are those of the problem's class; if not, whether they may be others. */
static jg_status check_class(const jg_context *c, const problem *p, const plan *chosen, const jg_measured *m, uint32_t *has_new_bits)
{
    const int slices = plan_slices(p, &c->device.limits), own = chosen->spec.tile.slices;
    *has_new_bits = slices && own != slices;
    if (!*has_new_bits) return JG_OK;
    if (!m->allow_new_bits)
        return status_set(JG_ERR_VALUE, "jg_record_plan: the plan sums k in %d slice%s and the problem's class in %d, so its last bits are "
                          "others; set allow_new_bits", own, own == 1 ? "" : "s", slices);
    if (plan_has_class(p, &c->device.limits, own)) return JG_OK;
    return status_set(JG_ERR_VALUE, "jg_record_plan: no generic kernels sum k in %d slices, so other forms of the problem could not give "
                      "the same bits", own);
}

/* The kernel goes with it, so that whoever reads the row finds it. */
static jg_status bring_kernel(jg_context *c, jg_context *from, const kernel_spec *spec, const kernel_key *kernel, const problem_key *key)
{
    char label[JG_PROBLEM_TEXT_BYTES];
    image img;
    jg_source source;
    status_text before;
    status_save(&before);
    const jg_status status = images_copy(c->images, from->images, kernel);
    if (status != JG_ERR_NOT_READY) return status;
    status_restore(&before);
    problem_key_format(key, label, sizeof label);
    const effort how = c->options.compile == JG_COMPILE_NEVER ? EFFORT_DISK : EFFORT_COMPILE;
    RETURN_IF_ERROR(images_get(c->images, spec, label, how, &img, &source));
    image_free(&img);
    return JG_OK;
}

static jg_status write_row(jg_context *c, const problem_key *general, const problem_key *key, const tuned_value *value,
                           const kernel_spec *spec, const kernel_key *kernel, const jg_measured *m)
{
    char name[KERNEL_NAME_BYTES];
    tuned_row *row = malloc(sizeof *row);
    if (!row) return status_set(JG_ERR_NO_MEMORY, "out of memory recording a plan");
    kernel_format_name(spec, name);
    tuned_row_fill(row, c->device.place, general, key, value, name, record_id(kernel->bytes, sizeof kernel->bytes), m);
    const store_status status = store_put_choice(c->images->store, &row->choice);
    free(row);
    return status == STORE_OK ? JG_OK : status_set(JG_ERR_FILE, "jg_record_plan: %s", store_error(c->images->store));
}

jg_status jg_record_plan(jg_context *c, const jg_plan *measured_plan, const jg_measured *m)
{
    if (!c || !measured_plan || !m)
        return status_set(JG_ERR_NULL, "jg_record_plan: %s is null", !c ? "context" : !measured_plan ? "plan" : "measured");
    jg_context *from;
    problem p;
    kernel_key kernel;
    tuned_plan made = {.us = m->us, .planned_us = m->planned_us, .created = (int64_t)time(NULL)};
    const binding *b = plan_candidate(measured_plan, &from, &p);
    RETURN_IF_ERROR(check_measured(m));
    RETURN_IF_ERROR(check_place(c, from, b));
    const kernel_spec *spec = &b->plan.spec;
    RETURN_IF_ERROR(check_class(c, &p, &b->plan, m, &made.value.has_new_bits));
    if (!c->images->store) return status_set(JG_ERR_FILE, "jg_record_plan: the context has no cache file");
    const problem_key key = problem_key_of(&p, b->plan.access), general = tuned_key_of(&key, (jg_form)spec->form);
    made.value.tile = spec->tile;
    made.value.family = spec->family;
    kernel_encode_key(spec, &kernel);
    RETURN_IF_ERROR(bring_kernel(c, from, spec, &kernel, &key));
    RETURN_IF_ERROR(write_row(c, &general, &key, &made.value, spec, &kernel, m));
    misses_follow(c->images, c->device.limits.arch->number, &key, record_id(kernel.bytes, sizeof kernel.bytes));
    if (c->options.plans != JG_PLANS_MODEL) tuned_put(c->tuned, &general, &made);
    return JG_OK;
}
