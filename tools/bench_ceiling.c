/* Measures ceilings with small kernels of its own: see bench_ceiling.h. They are PTX, so that they need no compiler but the
 * driver's and the instructions are those that are meant. */
#include "bench_ceiling.h"

#include "bench_stats.h"
#include "status.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 256, BLOCKS_PER_SM = 8, LOADS = 4, CHAINS = 16, MMA_CHAINS = 8, SAMPLES = 9, STEPS = 4000 };
enum { PTX_BYTES = 96 * 1024 };
#define MIB 1048576.0
#define WARM_UP_LIMIT_S 3.0
#define WARM_UP_SPREAD 0.01
#define NO_L2_BYTES (4 << 20)            /* taken where the driver does not say */

/* ---- PTX ---- */

typedef struct ptx {
    char text[PTX_BYTES];
    size_t length;
} ptx;

#define PUT(p, ...) text_append((p)->text, sizeof (p)->text, &(p)->length, __VA_ARGS__)

/* Each thread reads 16 bytes at a time, all threads together a stretch without gaps; the L1 cache is left out. What was read is
 * used, so that it is not optimised away, and never written. */
static void put_read(ptx *p)
{
    PUT(p, ".visible .entry read(.param .u64 data, .param .u32 steps, .param .u32 passes)\n{\n"
           "  .reg .pred %%p<3>;\n  .reg .b32 %%r<40>;\n  .reg .b64 %%d<8>;\n"
           "  ld.param.u64 %%d1, [data];\n  ld.param.u32 %%r1, [steps];\n  ld.param.u32 %%r2, [passes];\n"
           "  mov.u32 %%r3, %%tid.x;\n  mov.u32 %%r4, %%ctaid.x;\n  mov.u32 %%r5, %%ntid.x;\n  mov.u32 %%r6, %%nctaid.x;\n"
           "  mad.lo.u32 %%r7, %%r4, %%r5, %%r3;\n  mul.wide.u32 %%d2, %%r7, 16;\n  add.u64 %%d3, %%d1, %%d2;\n"
           "  mul.lo.u32 %%r8, %%r5, %%r6;\n  mul.wide.u32 %%d4, %%r8, 16;\n  mov.u32 %%r9, 0;\n"
           "PASS:\n  mov.u64 %%d5, %%d3;\n  mov.u32 %%r10, %%r1;\nSTEP:\n");
    for (int i = 0; i < LOADS; i++)
        PUT(p, "  ld.global.cg.v4.u32 {%%r%d, %%r%d, %%r%d, %%r%d}, [%%d5];\n  add.u64 %%d5, %%d5, %%d4;\n", 12 + 4 * i,
            13 + 4 * i, 14 + 4 * i, 15 + 4 * i);
    for (int i = 0; i < 4 * LOADS; i++) PUT(p, "  xor.b32 %%r9, %%r9, %%r%d;\n", 12 + i);
    PUT(p, "  sub.u32 %%r10, %%r10, 1;\n  setp.ne.u32 %%p1, %%r10, 0;\n  @%%p1 bra STEP;\n"
           "  sub.u32 %%r2, %%r2, 1;\n  setp.ne.u32 %%p1, %%r2, 0;\n  @%%p1 bra PASS;\n"
           "  setp.eq.u32 %%p2, %%r9, 305419896;\n  @%%p2 st.global.u32 [%%d3], %%r9;\n  ret;\n}\n");
}

/* The end of a kernel that computes: loop, then a store that never happens. %f1 to %fN hold the sums. */
static void put_end_of_compute(ptx *p, int sums)
{
    PUT(p, "  sub.u32 %%r1, %%r1, 1;\n  setp.ne.u32 %%p1, %%r1, 0;\n  @%%p1 bra STEP;\n");
    for (int i = 2; i <= sums; i++) PUT(p, "  add.rn.f32 %%f1, %%f1, %%f%d;\n", i);
    PUT(p, "  setp.eq.f32 %%p2, %%f1, 0f4B3C614E;\n  @%%p2 st.global.f32 [%%d1], %%f1;\n  ret;\n}\n");
}

static void put_fma(ptx *p)
{
    PUT(p, ".visible .entry fma32(.param .u64 data, .param .u32 steps)\n{\n"
           "  .reg .pred %%p<3>;\n  .reg .b32 %%r<4>;\n  .reg .b64 %%d<2>;\n  .reg .f32 %%f<%d>;\n"
           "  ld.param.u64 %%d1, [data];\n  ld.param.u32 %%r1, [steps];\n  mov.u32 %%r2, %%tid.x;\n"
           "  cvt.rn.f32.u32 %%f%d, %%r2;\n  mov.f32 %%f%d, 0f3F7FF000;\n", CHAINS + 3, CHAINS + 1, CHAINS + 2);
    for (int i = 1; i <= CHAINS; i++) PUT(p, "  mov.f32 %%f%d, 0f3F%02X0000;\n", i, i);
    PUT(p, "STEP:\n");
    for (int u = 0; u < 8; u++)
        for (int i = 1; i <= CHAINS; i++) PUT(p, "  fma.rn.f32 %%f%d, %%f%d, %%f%d, %%f%d;\n", i, i, CHAINS + 2, CHAINS + 1);
    put_end_of_compute(p, CHAINS);
}

/* A tensor-core product: its name here, the instruction's shape and types, what its sums are kept in ("f32", "b32": two f16 in
 * one register, "s32"), and bits that make numbers of A and B fractions or small integers of many values and both signs. */
typedef struct mma {
    const char *name, *instruction, *sums;
    int registers;          /* of sums */
    int k;                  /* of m16n8k_ */
    unsigned keep, set;
    int arch;               /* from this one on */
} mma;

static const mma mmas[] = {
    {"f16", "m16n8k16.row.col.f32.f16.f16.f32", "f32", 4, 16, 0x83FF83FF, 0x38003800, 80},
    {"bf16", "m16n8k16.row.col.f32.bf16.bf16.f32", "f32", 4, 16, 0x83FF83FF, 0x38003800, 80},
    {"tf32", "m16n8k8.row.col.f32.tf32.tf32.f32", "f32", 4, 8, 0x83FFE000, 0x38000000, 80},
    {"f16acc", "m16n8k16.row.col.f16.f16.f16.f16", "b32", 2, 16, 0x83FF83FF, 0x38003800, 80},
    {"s8", "m16n8k32.row.col.s32.s8.s8.s32", "s32", 4, 32, 0xFFFFFFFF, 0, 80},
    {"e4m3", "m16n8k32.row.col.f32.e4m3.e4m3.f32", "f32", 4, 32, 0x83838383, 0x30303030, 89},
};
enum { MMAS = sizeof mmas / sizeof *mmas };

static double mma_flops(const mma *m)
{
    return 2.0 * 16 * 8 * m->k;
}

/* "{%f1, %f2}": so many registers from one on. */
static void put_registers(ptx *p, const char *kind, int first, int count)
{
    for (int i = 0; i < count; i++) PUT(p, "%s%%%s%d", i ? ", " : "{", kind, first + i);
    PUT(p, "}");
}

static void put_mma(ptx *p, const mma *m)
{
    const int sums = m->registers * MMA_CHAINS;
    PUT(p, ".visible .entry mma_%s(.param .u64 data, .param .u32 steps)\n{\n"
           "  .reg .pred %%p<3>;\n  .reg .b32 %%r<16>;\n  .reg .b64 %%d<2>;\n  .reg .%s %%s<%d>;\n  .reg .f32 %%f<%d>;\n"
           "  ld.param.u64 %%d1, [data];\n  ld.param.u32 %%r1, [steps];\n  mov.u32 %%r2, %%tid.x;\n", m->name, m->sums,
        sums + 1, sums + 1);
    for (unsigned i = 4; i < 10; i++) {
        PUT(p, "  mad.lo.u32 %%r%u, %%r2, %u, %u;\n", i, 2654435761u + 2 * i, 40503u * i);
        PUT(p, "  and.b32 %%r%u, %%r%u, 0x%08X;\n  or.b32 %%r%u, %%r%u, 0x%08X;\n", i, i, m->keep, i, i, m->set);
    }
    for (int i = 1; i <= sums; i++) PUT(p, "  mov.%s %%s%d, %s;\n", m->sums, i, strcmp(m->sums, "f32") == 0 ? "0f00000000" : "0");
    PUT(p, "STEP:\n");
    for (int u = 0; u < 4; u++)
        for (int c = 0; c < MMA_CHAINS; c++) {
            PUT(p, "  mma.sync.aligned.%s ", m->instruction);
            put_registers(p, "s", m->registers * c + 1, m->registers);
            PUT(p, ", {%%r4, %%r5, %%r6, %%r7}, {%%r8, %%r9}, ");
            put_registers(p, "s", m->registers * c + 1, m->registers);
            PUT(p, ";\n");
        }
    for (int i = 1; i <= sums; i++) PUT(p, "  mov.b32 %%f%d, %%s%d;\n", i, i); /* the bits are used, and mean nothing */
    put_end_of_compute(p, sums);
}

static void put_module(ptx *p, int has_mma)
{
    p->length = 0;
    PUT(p, ".version 7.0\n.target sm_%d\n.address_size 64\n", has_mma ? 80 : 70);
    put_read(p);
    put_fma(p);
    for (int i = 0; i < MMAS && has_mma; i++)
        if (mmas[i].arch == 80) put_mma(p, &mmas[i]);
}

/* What a driver must be younger for is a module of its own, so that an older one takes the rest. */
static void put_late_module(ptx *p)
{
    p->length = 0;
    PUT(p, ".version 8.4\n.target sm_89\n.address_size 64\n");
    for (int i = 0; i < MMAS; i++)
        if (mmas[i].arch == 89) put_mma(p, &mmas[i]);
}

/* ---- timing ---- */

typedef struct meter {
    const bench_gpu *gpu;
    const bench_effort *effort;
    CUstream stream;
    CUevent begin, end;
    CUmodule module, late; /* late: null where there is none */
    CUdeviceptr data;
    size_t bytes;
} meter;

/* One launch, in us. `passes` is only for the kernel that reads. */
static jg_status time_launch(const meter *m, CUfunction function, uint32_t steps, uint32_t passes, double *us)
{
    const bench_gpu *g = m->gpu;
    CUdeviceptr data = m->data;
    void *parameters[] = {&data, &steps, &passes};
    float ms = 0;
    CUresult result = g->event_record(m->begin, m->stream);
    if (result == CUDA_SUCCESS)
        result = g->driver->launch(function, m->effort->blocks, 1, 1, THREADS, 1, 1, 0, m->stream, parameters, NULL);
    if (result == CUDA_SUCCESS) result = g->event_record(m->end, m->stream);
    if (result == CUDA_SUCCESS) result = g->event_synchronize(m->end);
    if (result == CUDA_SUCCESS) result = g->event_elapsed(&ms, m->begin, m->end);
    *us = (double)ms * 1e3;
    return bench_gpu_failed(g, result, "measuring a ceiling");
}

static jg_status find(const meter *m, const char *name, CUfunction *function)
{
    const driver *d = m->gpu->driver;
    CUresult result = d->module_function(function, m->module, name);
    if (result != CUDA_SUCCESS && m->late) result = d->module_function(function, m->late, name);
    return bench_gpu_failed(m->gpu, result, "cuModuleGetFunction");
}

/* The fastest of several: a ceiling is what can be reached. */
static jg_status best_time(const meter *m, const char *name, uint32_t steps, uint32_t passes, double *us)
{
    CUfunction function;
    double sample;
    RETURN_IF_ERROR(find(m, name, &function));
    RETURN_IF_ERROR(time_launch(m, function, steps, passes, &sample)); /* the first one warms caches */
    *us = 0;
    for (int i = 0; i < m->effort->samples; i++) {
        RETURN_IF_ERROR(time_launch(m, function, steps, passes, &sample));
        if (i == 0 || sample < *us) *us = sample;
    }
    return JG_OK;
}

/* The same work again and again until five times in a row take the same time. */
static jg_status settle_clocks(const meter *m, bench_ceilings *out)
{
    CUfunction function;
    double us, low = 0, high = 0;
    int equal = 0;
    const int64_t start_ns = bench_now_ns();
    RETURN_IF_ERROR(find(m, "fma32", &function));
    do {
        double total = 0;
        for (int i = 0; i < 20; i++) {
            RETURN_IF_ERROR(time_launch(m, function, (m->effort->steps + 1) / 2, 0, &us));
            total += us;
        }
        if (equal == 0 || total < low) low = total;
        if (equal == 0 || total > high) high = total;
        equal = high - low <= WARM_UP_SPREAD * low ? equal + 1 : 0;
        out->warm_up_s = (double)(bench_now_ns() - start_ns) * 1e-9;
    } while (equal < 5 && out->warm_up_s < m->effort->warm_up_limit_s);
    out->settled = equal == 5;
    return JG_OK;
}

static jg_status measure_reading(const meter *m, bench_ceilings *out)
{
    const double per_step = (double)m->effort->blocks * THREADS * 16 * LOADS;
    uint32_t steps = (uint32_t)(m->effort->l2_bytes / 4 / per_step);
    if (steps == 0) steps = 1;
    const double small = per_step * steps;
    double us;
    char how[64];
    RETURN_IF_ERROR(best_time(m, "read", steps, 32, &us));
    snprintf(how, sizeof how, "reading %.0f MiB 32 times", small / MIB);
    bench_ceilings_add(out, "l2", "GB/s", small * 32 / us * 1e-3, how);
    steps = (uint32_t)((double)m->bytes / per_step);
    RETURN_IF_ERROR(best_time(m, "read", steps, 1, &us));
    snprintf(how, sizeof how, "reading %.0f MiB", per_step * steps / MIB);
    bench_ceilings_add(out, "memory", "GB/s", per_step * steps / us * 1e-3, how);
    return JG_OK;
}

static jg_status measure_computing(const meter *m, int has_mma, bench_ceilings *out)
{
    const double threads = (double)m->effort->blocks * THREADS;
    const uint32_t steps = m->effort->steps;
    double us;
    RETURN_IF_ERROR(best_time(m, "fma32", steps, 0, &us));
    const double fma = 2.0 * CHAINS * 8 * steps * threads / us * 1e-6;
    bench_ceilings_add(out, "f32", "TFLOP/s", fma, "fused multiply-adds in registers");
    if (!has_mma) {
        bench_ceilings_add(out, "f16", "TFLOP/s", fma, "f32 fused multiply-adds in registers");
        bench_ceilings_add(out, "bf16", "TFLOP/s", fma, "f32 fused multiply-adds in registers");
        return JG_OK;
    }
    for (int i = 0; i < MMAS; i++) {
        char kernel[16];
        snprintf(kernel, sizeof kernel, "mma_%s", mmas[i].name);
        if (mmas[i].arch > 80 && !m->late) continue;
        RETURN_IF_ERROR(best_time(m, kernel, steps, 0, &us));
        const double flops = mma_flops(&mmas[i]) * MMA_CHAINS * 4 * steps * (threads / 32);
        bench_ceilings_add(out, mmas[i].name, "TFLOP/s", flops / us * 1e-6, "mma.sync in registers");
    }
    return JG_OK;
}

/* A driver that does not know its instructions has no such ceilings. */
static jg_status load_late(meter *m, ptx *module)
{
    if (m->gpu->arch < 89) return JG_OK;
    put_late_module(module);
    if (module->length >= sizeof module->text) return status_set(JG_ERR_INTERNAL, "the kernels' text is cut off");
    if (m->gpu->driver->module_load(&m->late, module->text, 0, NULL, NULL) != CUDA_SUCCESS) m->late = NULL;
    return JG_OK;
}

static jg_status open_meter(const bench_gpu *gpu, CUstream stream, const bench_effort *effort, int has_mma, meter *m)
{
    static ptx module; /* large for a stack; measured by one thread */
    *m = (meter){.gpu = gpu, .stream = stream, .effort = effort};
    const size_t step = (size_t)effort->blocks * THREADS * 16 * LOADS;
    m->bytes = ((size_t)(8 * effort->l2_bytes) / step + 1) * step;
    put_module(&module, has_mma);
    if (module.length >= sizeof module.text) return status_set(JG_ERR_INTERNAL, "the kernels' text is cut off");
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->driver->module_load(&m->module, module.text, 0, NULL, NULL),
                                     "loading the kernels that measure ceilings"));
    RETURN_IF_ERROR(load_late(m, &module));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->driver->memory_allocate(&m->data, m->bytes), "cuMemAlloc"));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->memory_set(m->data, 1, m->bytes), "cuMemsetD8"));
    RETURN_IF_ERROR(bench_gpu_failed(gpu, gpu->event_create(&m->begin, CU_EVENT_DEFAULT), "cuEventCreate"));
    return bench_gpu_failed(gpu, gpu->event_create(&m->end, CU_EVENT_DEFAULT), "cuEventCreate");
}

static void close_meter(meter *m)
{
    if (m->begin) m->gpu->event_destroy(m->begin);
    if (m->end) m->gpu->event_destroy(m->end);
    if (m->data) m->gpu->driver->memory_free(m->data);
    if (m->module) m->gpu->driver->module_unload(m->module);
    if (m->late) m->gpu->driver->module_unload(m->late);
}

jg_status bench_ceilings_measure_with(const bench_gpu *gpu, CUstream stream, const bench_effort *effort, bench_ceilings *out)
{
    meter m;
    const int has_mma = gpu->arch >= 80;
    jg_status status = open_meter(gpu, stream, effort, has_mma, &m);
    if (status == JG_OK) status = settle_clocks(&m, out);
    if (status == JG_OK) status = measure_reading(&m, out);
    if (status == JG_OK) status = measure_computing(&m, has_mma, out);
    close_meter(&m);
    return status;
}

jg_status bench_ceilings_measure(const bench_gpu *gpu, CUstream stream, bench_ceilings *out)
{
    const int sms = gpu->narrow_sms ? gpu->narrow_sms : gpu->sm_count;
    const bench_effort effort = {.blocks = (unsigned)(sms * BLOCKS_PER_SM), .steps = STEPS, .samples = SAMPLES,
                                 .l2_bytes = gpu->l2_bytes > 0 ? gpu->l2_bytes : NO_L2_BYTES, .warm_up_limit_s = WARM_UP_LIMIT_S};
    return bench_ceilings_measure_with(gpu, stream, &effort, out);
}

/* ---- the ceilings ---- */

void bench_ceilings_add(bench_ceilings *c, const char *name, const char *unit, double value, const char *how)
{
    if (c->count == BENCH_CEILINGS_MAX) return;
    bench_ceiling *one = &c->list[c->count++];
    *one = (bench_ceiling){.unit = unit, .value = value};
    snprintf(one->name, sizeof one->name, "%s", name);
    snprintf(one->how, sizeof one->how, "%s", how);
}

double bench_ceilings_find(const bench_ceilings *c, const char *name)
{
    double most = 0;
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->list[i].name, name) == 0 && c->list[i].value > most) most = c->list[i].value;
    return most;
}

double bench_ceilings_floor_us(const bench_ceilings *c, const char *type, double flops, double bytes, int in_l2,
                               const char **bound)
{
    const double compute = bench_ceilings_find(c, type), memory = bench_ceilings_find(c, in_l2 ? "l2" : "memory");
    *bound = "";
    if (compute <= 0 || memory <= 0) return 0;
    const double compute_us = flops / compute * 1e-6, memory_us = bytes / memory * 1e-3;
    *bound = compute_us >= memory_us ? "compute" : in_l2 ? "l2" : "memory";
    return compute_us >= memory_us ? compute_us : memory_us;
}
