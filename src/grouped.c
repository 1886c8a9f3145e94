/* jg_gemm_grouped: many products of different sizes in one launch of a generic kernel, whose blocks look up which product is
 * theirs.
 *
 * In: what the products share, and the list of them. Out: a launch for every KERNEL_GROUP of them. The list travels in the
 * kernel's parameters, so that nothing has to be allocated, copied or kept, and a graph can capture it. All items are checked
 * before the first launch. */
#include "context.h"
#include "cpu.h"
#include "status.h"

#include <string.h>

/* As struct jg_group_entry and struct jg_group in templates/entry.cuh. */
typedef struct group_entry {
    const void *a, *b;
    void *c;
    const void *bias;
    uint32_t m, n, k;
    uint32_t first; /* its first block */
    uint32_t lda, ldb, ldc, reserved;
} group_entry;

typedef struct group_args {
    launch_args common;
    uint32_t count, reserved;
    group_entry entries[KERNEL_GROUP];
} group_args;

_Static_assert(sizeof(group_args) <= 4096, "a kernel's parameters are 4 KiB at most on older drivers");

#define EPILOGUE_GROUPED (JG_EPILOGUE_SCALE | JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N | JG_EPILOGUE_REQUANTIZE)
#define BIASES (JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N)
#define MAX_BLOCKS 2147483647
#define MAX_BATCH 65535 /* of the product that stands for all when a tile is chosen */

#define MAX_DESCRIBED 5  /* of one product: A, B, C, scale, bias */

/* The call: what was asked. */
typedef struct grouped {
    const jg_problem *common;
    const jg_operands *shared;
    const jg_group_item *items;
    size_t count;
} grouped;

/* What the items have in common, and what a tile is chosen by. */
typedef struct survey {
    problem largest;      /* of those that are not empty; m = 0 if all are */
    access_widths access; /* that all of them allow */
    double work, most;    /* multiply-adds: of all, of the largest */
} survey;

static jg_status check_common(const grouped *g)
{
    const jg_problem *p = g->common;
    const jg_operands *o = g->shared;
    const struct {
        const char *name;
        int64_t value;
    } zeros[] = {
        {"m", p->m},     {"n", p->n},     {"k", p->k},     {"batch", p->batch},           {"group_k", p->group_k},
        {"lda", p->lda}, {"ldb", p->ldb}, {"ldc", p->ldc}, {"ld_residual", p->ld_residual}, {"stride_a", p->stride_a},
        {"stride_b", p->stride_b},        {"stride_c", p->stride_c},                      {"stride_residual", p->stride_residual},
    };
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
        if (zeros[i].value)
            return status_set(JG_ERR_VALUE, "common.%s = %lld; in a grouped call it must be 0, each item has its own size", zeros[i].name,
                              (long long)zeros[i].value);
    if (p->form == JG_FORM_SPECIALISED)
        return status_set(JG_ERR_VALUE, "common.form = JG_FORM_SPECIALISED; a grouped call runs on generic kernels: use JG_FORM_AUTO");
    if (p->epilogue & ~EPILOGUE_GROUPED || (p->epilogue & BIASES) == BIASES)
        return status_set(JG_ERR_VALUE, "common.epilogue = 0x%x; a grouped call has JG_EPILOGUE_SCALE, one of _BIAS_M and _BIAS_N, and "
                          "_REQUANTIZE; nearest that works: 0x%x", (unsigned)p->epilogue,
                          (unsigned)(p->epilogue & EPILOGUE_GROUPED & ((p->epilogue & BIASES) == BIASES ? ~JG_EPILOGUE_BIAS_M : ~0u)));
    if (o->a || o->b || o->c) return status_set(JG_ERR_VALUE, "shared.%s is not null; each item has its own", o->a ? "a" : o->b ? "b" : "c");
    return JG_OK;
}

/* One item as a product of its own. */
static jg_status make_item(const grouped *g, size_t index, problem *p, jg_operands *data, operands *o)
{
    const jg_group_item *item = &g->items[index];
    jg_problem in = *g->common;
    in.m = item->m;
    in.n = item->n;
    in.k = item->k;
    in.lda = item->lda;
    in.ldb = item->ldb;
    in.ldc = item->ldc;
    RETURN_IF_ERROR(problem_canonicalise(&in, p));
    *data = *g->shared;
    data->a = item->a;
    data->b = item->b;
    data->c = item->c;
    data->bias_m = data->bias_n = item->bias;
    *o = operands_canonicalise(p, data);
    if (problem_is_empty(p)) return JG_OK;
    return operands_check(p, o, (unsigned)type_bytes((jg_type)p->type_a), (unsigned)type_bytes((jg_type)p->type_b),
                          (unsigned)type_bytes((jg_type)p->type_c));
}

static jg_status check_item(const grouped *g, size_t index, problem *p, operands *o)
{
    jg_operands data;
    jg_status status = make_item(g, index, p, &data, o);
    o->given = NULL; /* it was data */
    if (status == JG_OK && (p->lda > UINT32_MAX || p->ldb > UINT32_MAX || p->ldc > UINT32_MAX))
        status = status_set(JG_ERR_LEADING_DIMENSION, "a leading dimension is above 2^32 - 1, the most in a grouped call; use jg_gemm");
    return status == JG_OK ? JG_OK : status_prefix(status, "items[%zu]: ", index);
}

static uint8_t lesser(uint8_t x, uint8_t y)
{
    return x < y ? x : y;
}

static jg_status survey_items(const grouped *g, survey *s)
{
    *s = (survey){.access = {16, 16, 1}};
    for (size_t i = 0; i < g->count; i++) {
        problem p;
        operands o;
        RETURN_IF_ERROR(check_item(g, i, &p, &o));
        if (problem_is_empty(&p)) continue;
        const int reads = operands_read_ab(&o);
        const access_widths w = plan_access(&p, reads ? operands_alignment(o.a) : 16, reads ? operands_alignment(o.b) : 16, operands_alignment(o.c));
        s->access = (access_widths){lesser(s->access.a, w.a), lesser(s->access.b, w.b), lesser(s->access.c, w.c)};
        const double work = (double)p.m * (double)p.n * (double)(p.k ? p.k : 1);
        s->work += work;
        if (work <= s->most) continue;
        s->most = work;
        s->largest = p;
    }
    return JG_OK;
}

/* Chooses the kernel as for a batch of the largest product that is as much work as all of them. */
static jg_status choose(const jg_context *c, const survey *s, plan *chosen)
{
    problem p = s->largest;
    const double items = s->work / s->most;
    p.batch = items < MAX_BATCH ? (int64_t)(items + 0.5) : MAX_BATCH;
    RETURN_IF_ERROR(plan_choose(&p, s->access, JG_FORM_GENERIC, &c->device.limits, chosen));
    chosen->spec.grouped = 1;
    return JG_OK;
}

static jg_status obtain(jg_context *c, const grouped *g, const kernel_spec *spec, lru_entry **kernel)
{
    char name[KERNEL_NAME_BYTES];
    jg_source source;
    if ((*kernel = kernels_find(c, spec))) return JG_OK;
    kernel_format_name(spec, name);
    if (gemm_policy(c, g->common, g->shared->stream) == JG_COMPILE_NEVER)
        return status_set(JG_ERR_NOT_READY, "%s is not loaded, and this call may neither compile nor load (JG_COMPILE_NEVER, or its stream "
                          "is being captured); name JG_RESIDENT_GROUPED in options.resident", name);
    RETURN_IF_ERROR(gemm_obtain_generic(c, NULL, spec, "grouped", kernel, &source));
    if (source != JG_SOURCE_MEMORY) atomic_fetch_add(&c->waits, 1);
    return JG_OK;
}

/* A launch that is being put together. */
typedef struct part {
    group_args args;
    uint64_t blocks, multiply_adds;
    swgpu_operand described[MAX_DESCRIBED * KERNEL_GROUP];
    unsigned described_count;
} part;

static jg_status launch_part(jg_context *c, const loaded_kernel *kernel, const plan *chosen, part *x, CUstream stream)
{
    void *parameters[] = {&x->args};
    if (c->device.driver->describe) c->device.driver->describe(x->described, x->described_count, x->multiply_adds);
    CUresult result = c->device.driver->launch(kernel->function, (unsigned)x->blocks, 1, 1, (unsigned)chosen->threads, 1, 1,
                                               (unsigned)chosen->shared_bytes, stream, parameters, NULL);
    x->args.count = 0;
    x->blocks = x->multiply_adds = 0;
    x->described_count = 0;
    if (result == CUDA_SUCCESS) {
        gemm_count_generic(c);
        return JG_OK;
    }
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(&chosen->spec, name);
    return driver_error(c->device.driver, result, JG_ERR_LAUNCH, name);
}

static int64_t tiles(const problem *p, const plan *chosen)
{
    const tile *t = &chosen->spec.tile;
    return ((p->m + t->m - 1) / t->m) * ((p->n + t->n - 1) / t->n);
}

static void add_entry(jg_context *c, part *x, const problem *p, const operands *o, const plan *chosen, int64_t blocks)
{
    launch_args own;
    launch_prepare(p, chosen, &own);
    launch_fill(p, o, &own);
    if (x->args.count == 0) x->args.common = own;
    x->args.entries[x->args.count++] = (group_entry){
        .a = o->a, .b = o->b, .c = o->c, .bias = own.bias_m ? own.bias_m : own.bias_n,
        .m = (uint32_t)p->m, .n = (uint32_t)p->n, .k = (uint32_t)p->k, .first = (uint32_t)x->blocks,
        .lda = (uint32_t)p->lda, .ldb = (uint32_t)p->ldb, .ldc = (uint32_t)p->ldc,
    };
    /* An item with k = 0 has an alpha of 0; the kernel does that by itself. */
    if (p->k) x->args.common.alpha = o->alpha;
    x->blocks += (uint64_t)blocks;
    x->multiply_adds += (uint64_t)p->m * (uint64_t)p->n * (uint64_t)p->k;
    if (c->device.driver->describe) x->described_count += launch_describe(p, &own, &x->described[x->described_count]);
}

static jg_status launch_all(jg_context *c, const grouped *g, const loaded_kernel *kernel, const plan *chosen)
{
    part x;
    x.args.count = x.args.reserved = 0;
    x.blocks = x.multiply_adds = 0;
    x.described_count = 0;
    for (size_t i = 0; i < g->count; i++) {
        problem p;
        jg_operands data;
        operands o;
        RETURN_IF_ERROR(make_item(g, i, &p, &data, &o));
        if (problem_is_empty(&p)) continue;
        const int64_t blocks = tiles(&p, chosen);
        if (x.args.count == KERNEL_GROUP || (x.args.count && x.blocks + (uint64_t)blocks > MAX_BLOCKS))
            RETURN_IF_ERROR(launch_part(c, kernel, chosen, &x, g->shared->stream));
        add_entry(c, &x, &p, &o, chosen, blocks);
    }
    return launch_part(c, kernel, chosen, &x, g->shared->stream);
}

static jg_status run_on_device(jg_context *c, const grouped *g)
{
    survey s;
    plan chosen;
    lru_entry *kernel;
    device_scope scope;
    RETURN_IF_ERROR(survey_items(g, &s));
    if (s.most == 0) return JG_OK;
    RETURN_IF_ERROR(choose(c, &s, &chosen));
    RETURN_IF_ERROR(obtain(c, g, &chosen.spec, &kernel));
    jg_status status = device_enter(&c->device, &scope);
    if (status == JG_OK) {
        loaded_kernel *loaded = lru_value(kernel);
        /* A graph needs its kernels for as long as it lives, which nobody tells us. */
        if (!atomic_load_explicit(&loaded->kept, memory_order_relaxed) && gemm_is_captured(c, g->shared->stream))
            status = kernels_keep(c, kernel, &c->captured);
        if (status == JG_OK) status = launch_all(c, g, loaded, &chosen);
        device_leave(&c->device, &scope);
    }
    lru_release(kernel);
    return status;
}

static jg_status run_on_cpu(const grouped *g)
{
    for (size_t i = 0; i < g->count; i++) {
        problem p;
        operands o;
        RETURN_IF_ERROR(check_item(g, i, &p, &o));
    }
    for (size_t i = 0; i < g->count; i++) {
        problem p;
        jg_operands data;
        operands o;
        RETURN_IF_ERROR(make_item(g, i, &p, &data, &o));
        if (!problem_is_empty(&p)) RETURN_IF_ERROR(cpu_gemm(&p, &o));
    }
    return JG_OK;
}

jg_status jg_gemm_grouped(jg_context *c, const jg_problem *common, const jg_operands *shared, const jg_group_item *items, size_t count)
{
    if (!c || !common || !shared || (!items && count))
        return status_set(JG_ERR_NULL, "jg_gemm_grouped: %s is null", !c ? "context" : !common ? "common" : !shared ? "shared" : "items");
    const grouped g = {common, shared, items, count};
    RETURN_IF_ERROR(check_common(&g));
    return context_is_cpu(c) ? run_on_cpu(&g) : run_on_device(c, &g);
}
