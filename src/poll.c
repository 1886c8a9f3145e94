/* jg_poll: the one place between jg_open and jg_close where kernels come and go by themselves. */
#include "clock.h"
#include "context.h"
#include "status.h"

#include <math.h>
#include <time.h>

#define DEFAULT_MAX_KERNELS 8u
#define DEFAULT_MAX_MS 1.0

/* Puts a loaded kernel in the place of the fallbacks of the problems that want it. Takes the pin over. */
static jg_status adopt(jg_context *c, const ready_kernel *r, lru_entry *kernel, jg_poll_result *result)
{
    jg_status status = JG_OK;
    if (r->generic_set) status = kernels_keep(c, kernel, &c->generic_resident);
    for (size_t i = 0; i < r->met_count && status == JG_OK; i++) {
        const problem_key *key = &r->mets[i]->key;
        plan own; /* as it was when the kernel was asked for: another may have been recorded meanwhile */
        int swapped;
        plan_of_spec(&key->problem, key->access, &c->device.limits, &r->spec, &own);
        lru_pin(kernel);
        lru_entry *entry = dispatch_put(c, key, &own, kernel, NULL, &swapped);
        if (!entry) status = status_set(JG_ERR_NO_MEMORY, "out of memory remembering a problem");
        else lru_release(entry);
        result->swapped += (size_t)swapped;
    }
    lru_release(kernel);
    return status;
}

/* Loads one ready kernel, unless it is loaded by now. A refusal leaves the generic kernel serving. */
static jg_status take_in(jg_context *c, const ready_kernel *r, jg_poll_result *result)
{
    lru_entry *kernel = kernels_find(c, &r->spec);
    if (!kernel) {
        jg_status status = kernels_load(c, &r->spec, &r->img, &kernel);
        if (status != JG_OK) {
            context_trace(c, JG_EVENT_FAIL, r->met_count ? &r->mets[0]->key : NULL, &r->spec, 0);
            return status;
        }
        result->loaded++;
    }
    return adopt(c, r, kernel, result);
}

/* What went wrong first, with its text: the rest is done all the same. */
typedef struct first_failure {
    jg_status status;
    status_text text;
} first_failure;

static void note(first_failure *first, jg_status status)
{
    if (status == JG_OK || first->status != JG_OK) return;
    first->status = status;
    status_save(&first->text);
}

/* Unloads up to `most` kernels, one at a time, since each takes its time; the first whatever the time if `must`. */
static void trim(jg_context *c, size_t most, double end, int must, size_t *unloaded, first_failure *first)
{
    size_t one = 1;
    while (one && *unloaded < most && ((must && !*unloaded) || clock_now_ms() < end)) {
        note(first, dispatch_trim_kernels(c, 1, &one));
        *unloaded += one;
    }
}

jg_status jg_poll(jg_context *c, const jg_poll_limits *bounds, jg_poll_result *result)
{
    jg_poll_result ignored;
    if (!result) result = &ignored;
    *result = (jg_poll_result){0};
    if (!c) return status_set(JG_ERR_NULL, "jg_poll: context is null");
    if (bounds && !(bounds->max_ms >= 0)) return status_set(JG_ERR_VALUE, "jg_poll: max_ms is %g; it must be 0 or above", bounds->max_ms);
    if (context_is_cpu(c)) return JG_OK;
    ready_kernel *list = worker_take(c->worker);
    if (!list && !lru_over(c->kernels)) return JG_OK;

    const size_t most = bounds && bounds->max_kernels ? bounds->max_kernels : DEFAULT_MAX_KERNELS;
    const double end = clock_now_ms() + (bounds && bounds->max_ms > 0 ? bounds->max_ms : DEFAULT_MAX_MS);
    first_failure first;
    first.status = JG_OK;
    size_t taken = 0;
    while (list && taken < most && (!taken || clock_now_ms() < end)) {
        ready_kernel *next = list->next;
        note(&first, take_in(c, list, result));
        ready_free(list);
        list = next;
        taken++;
    }
    for (const ready_kernel *r = list; r; r = r->next) result->left++;
    if (list) worker_give(c->worker, list);
    trim(c, most - taken, end, !taken, &result->unloaded, &first);
    if (first.status != JG_OK) status_restore(&first.text);
    return first.status;
}

jg_status jg_wait_idle(jg_context *c, double timeout_ms)
{
    if (!c) return status_set(JG_ERR_NULL, "jg_wait_idle: context is null");
    if (!(timeout_ms >= 0)) return status_set(JG_ERR_VALUE, "jg_wait_idle: timeout_ms is %g; it must be 0 or above", timeout_ms);
    if (context_is_cpu(c) || worker_wait_idle(c->worker, timeout_ms)) return JG_OK;
    return status_set(JG_ERR_NOT_READY, "jg_wait_idle: the worker still has work after %g ms", timeout_ms);
}
