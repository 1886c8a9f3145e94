/* All candidates of one product as a row of the report "plans": see bench_race.h. */
#include "bench_race.h"

#include "status.h"

static int add_candidate(cJSON *array, const bench_runner *one)
{
    const jg_plan_details *d = &one->details;
    const struct { const char *name; double value; } numbers[] = {
        {"tile_m", d->tile_m}, {"tile_n", d->tile_n}, {"tile_k", d->tile_k}, {"warp_m", d->warp_m}, {"warp_n", d->warp_n},
        {"stages", d->stages}, {"slices", d->slices}, {"threads", d->threads}, {"grid_x", (double)d->grid_x},
        {"grid_y", (double)d->grid_y}, {"shared_bytes", d->shared_bytes}, {"registers", d->registers},
        {"blocks_per_sm", d->blocks_per_sm}, {"waves", d->waves}, {"estimate_clocks", d->estimate_clocks}};
    cJSON *object = cJSON_CreateObject();
    if (!object || !cJSON_AddItemToArray(array, object)) {
        cJSON_Delete(object);
        return 0;
    }
    int ok = cJSON_AddStringToObject(object, "kernel", d->kernel) && cJSON_AddStringToObject(object, "family", d->family) &&
             cJSON_AddBoolToObject(object, "of_class", one->of_class);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && one->plan; i++)
        ok = ok && cJSON_AddNumberToObject(object, numbers[i].name, numbers[i].value);
    if (one->refused[0]) return ok && cJSON_AddStringToObject(object, "refused", one->refused);
    const double instructions = (double)one->counters.instructions;
    if (one->us > 0)
        ok = ok && cJSON_AddNumberToObject(object, "us", one->us) && cJSON_AddNumberToObject(object, "samples", (double)one->samples);
    if (instructions > 0) ok = ok && cJSON_AddNumberToObject(object, "instructions", instructions);
    if (one->check >= 0) ok = ok && cJSON_AddNumberToObject(object, "check", one->check < 1e9 ? one->check : 1e9);
    if (one->is_wrong) ok = ok && cJSON_AddTrueToObject(object, "wrong");
    return ok;
}

static jg_status make_row(const bench_product *product, const bench_race_result *r, cJSON **row)
{
    const bench_runner *chosen = &r->all[r->planned];
    const size_t best = r->best;
    *row = cJSON_CreateObject();
    int ok = *row && bench_product_describe(*row, product, &chosen->details) &&
             cJSON_AddNumberToObject(*row, "chosen", (double)r->planned);
    if (ok && best < r->count) ok = cJSON_AddNumberToObject(*row, "best", (double)best) != NULL;
    if (ok && best < r->count && bench_runner_is_right(chosen) && chosen->us > 0)
        ok = cJSON_AddNumberToObject(*row, "gap", chosen->us / r->all[best].us) != NULL;
    cJSON *array = ok ? cJSON_AddArrayToObject(*row, "candidates") : NULL;
    for (size_t i = 0; i < r->count && array; i++)
        if (!add_candidate(array, &r->all[i])) array = NULL;
    if (array) return JG_OK;
    cJSON_Delete(*row);
    *row = NULL;
    return status_set(JG_ERR_NO_MEMORY, "out of memory for results");
}

jg_status bench_race(bench_arena *arena, const bench_product *product, int all_classes, cJSON **row, bench_race_faults *faults)
{
    const bench_race_options how = {.all_classes = all_classes};
    bench_race_result result;
    *row = NULL;
    RETURN_IF_ERROR(bench_race_run(arena, product, &how, &result));
    const jg_status status = make_row(product, &result, row);
    for (size_t i = 0; i < result.count; i++) {
        faults->wrong += result.all[i].is_wrong != 0;
        faults->refused += result.all[i].refused[0] != 0;
    }
    bench_race_free(&result);
    return status;
}
