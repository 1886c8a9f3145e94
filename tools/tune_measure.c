/* Races and records: see tune_measure.h. */
#include "tune_measure.h"

#include "status.h"
#include "tune_verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a race: at most so many samples a plan, of so long. Where the differences are clear it ends after the first few. */
enum { ROUNDS = 25 };
#define SAMPLE_US 200.0

/* ---- opening ---- */

static void find_power_mode(tune_measure *m)
{
    cJSON *facts = cJSON_CreateObject();
    if (facts && bench_machine_describe(&m->machine, facts) == 0) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(facts, "power_mode"));
        const cJSON *limit = cJSON_GetObjectItem(facts, "power_limit_w");
        if (name) snprintf(m->power_mode, sizeof m->power_mode, "%s", name);
        else if (cJSON_IsNumber(limit)) snprintf(m->power_mode, sizeof m->power_mode, "%.0f W", limit->valuedouble);
    }
    cJSON_Delete(facts);
}

jg_status tune_measure_open(tune_measure *m, const tune_list *list, const char **largest)
{
    size_t in = 0, out = 0, extra = 0, most = 0;
    const char *text = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const bench_layout *l = &list->problems[i].product.layout;
        const size_t needs[] = {bench_layout_in_bytes(l), bench_layout_out_bytes(l), bench_layout_extra_bytes(l)};
        if (list->problems[i].outcome != TUNE_LEFT) continue;
        if (!text || needs[0] + needs[1] + needs[2] > most) text = list->problems[i].product.text;
        if (needs[0] + needs[1] + needs[2] > most) most = needs[0] + needs[1] + needs[2];
        if (needs[0] > in) in = needs[0];
        if (needs[1] > out) out = needs[1];
        if (needs[2] > extra) extra = needs[2];
    }
    if (largest) *largest = NULL;
    m->arena.gpu = &m->gpu;
    m->arena.rounds = ROUNDS;
    m->arena.sample_us = SAMPLE_US;
    bench_machine_open(&m->machine, m->gpu.pci_bus_id);
    find_power_mode(m);
    RETURN_IF_ERROR(bench_clock_open(&m->gpu, &m->arena.clock));
    if (largest) *largest = text;
    return bench_pool_open(&m->gpu, in, out, extra, &m->arena.pool);
}

void tune_measure_close(tune_measure *m)
{
    bench_pool_close(&m->arena.pool);
    bench_clock_close(&m->arena.clock);
    bench_machine_close(&m->machine);
}

/* ---- one problem ---- */

static int is_final(jg_status status)
{
    return status == JG_ERR_NO_MEMORY || status == JG_ERR_NO_NVRTC || jg_status_is_fatal(status);
}

/* Who takes part. Returns how many. */
static size_t line_up(const tune_problem *p, size_t limit, size_t *indices)
{
    size_t count = 0;
    indices[count++] = p->rank.indices[0];
    if (p->tried > 0 && p->best != p->rank.indices[0]) indices[count++] = p->best;
    for (size_t i = p->tried > 0 ? p->tried : 1; i < limit; i++) indices[count++] = p->rank.indices[i];
    return count;
}

/* Tells of plans with wrong results, and of those that could not be made or launched. */
static void tell_faults(const bench_race_result *race, tune_problem *p)
{
    for (size_t i = 0; i < race->count; i++) {
        const bench_runner *one = &race->all[i];
        if (one->refused[0] && !p->is_wrong) snprintf(p->error, sizeof p->error, "a plan was refused: %s", one->refused);
        if (!one->is_wrong) continue;
        p->is_wrong = 1;
        snprintf(p->error, sizeof p->error, "%s gives wrong results", one->details.kernel);
    }
}

static jg_status record(const tune_measure *m, const jg_plan *winner, const tune_found *f)
{
    const jg_measured measured = {
        .us = f->us, .planned_us = f->planned_us, .runner_up_us = f->runner_up_us, .planned = f->planned,
        .runner_up = f->runner_up, .reason = f->reason, .measured = (uint32_t)f->measured, .all = (uint32_t)f->all,
        .device = m->gpu.name, .sm_mhz = m->sm_mhz, .power_mode = m->power_mode,
        .allow_new_bits = (uint32_t)m->allow_new_bits};
    return jg_record_plan(m->kept, winner, &measured);
}

static jg_status fail(tune_problem *p, jg_status status)
{
    if (is_final(status)) return status;
    if (p->tried == 0) p->outcome = TUNE_FAILED;
    snprintf(p->error, sizeof p->error, "%s", jg_last_error());
    return JG_OK;
}

static jg_status settle(tune_measure *m, tune_problem *p, size_t limit, const bench_race_result *race)
{
    tune_found found = p->found;
    const bench_conditions now = bench_machine_conditions(&m->machine);
    m->sm_mhz = now.sm_mhz > 0 ? now.sm_mhz : 0;
    tell_faults(race, p);
    const size_t winner = tune_judge(race, m->gpu.software, &found);
    if (winner == race->count) {
        p->outcome = TUNE_FAILED;
        if (!p->error[0]) snprintf(p->error, sizeof p->error, "no plan could be measured");
        return JG_OK;
    }
    found.measured = limit;
    found.all = p->rank.all;
    const jg_status status = record(m, race->all[winner].plan, &found);
    if (status != JG_OK) return fail(p, status);
    p->found = found;
    p->tried = limit;
    p->best = race->all[winner].index;
    p->outcome = winner == race->planned ? TUNE_KEPT : TUNE_TUNED;
    return JG_OK;
}

jg_status tune_measure_problem(tune_measure *m, tune_problem *p, size_t limit)
{
    size_t *indices = malloc((p->rank.count + 1) * sizeof *indices);
    if (!indices) return status_set(JG_ERR_NO_MEMORY, "out of memory for candidates");
    const bench_race_options how = {.indices = indices, .count = line_up(p, limit, indices), .ends_early = 1};
    bench_race_result race;
    jg_status status = bench_race_run(&m->arena, &p->product, &how, &race);
    free(indices);
    if (status != JG_OK) return fail(p, status);
    status = settle(m, p, limit, &race);
    bench_race_free(&race);
    return status;
}
