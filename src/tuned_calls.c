/* Recorded plans and compiling ahead: the public calls. */
#include "context.h"
#include "status.h"

jg_status jg_plan_describe_candidate(jg_context *c, const jg_problem *in, size_t index, jg_plan_details *details)
{
    (void)c, (void)in, (void)index, (void)details;
    return status_set(JG_ERR_UNSUPPORTED, "jg_plan_describe_candidate");
}

jg_status jg_plan_compile_candidate(jg_context *c, const jg_problem *in, size_t index)
{
    (void)c, (void)in, (void)index;
    return status_set(JG_ERR_UNSUPPORTED, "jg_plan_compile_candidate");
}

jg_status jg_record_plan(jg_context *c, const jg_plan *plan, const jg_measured *measured)
{
    (void)c, (void)plan, (void)measured;
    return status_set(JG_ERR_UNSUPPORTED, "jg_record_plan");
}

jg_status jg_cache_plans(jg_cache *cache, int (*visit)(void *user, const jg_cache_plan *plan), void *user)
{
    (void)cache, (void)visit, (void)user;
    return status_set(JG_ERR_UNSUPPORTED, "jg_cache_plans");
}

jg_status jg_cache_clear_plans(jg_cache *cache, size_t *removed)
{
    (void)cache, (void)removed;
    return status_set(JG_ERR_UNSUPPORTED, "jg_cache_clear_plans");
}
