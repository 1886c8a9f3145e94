/* One process of jitgemm-bench memory: see bench_memory_child.h. It does what a pipeline's process does that needs kernels, and
 * looks at its own memory in between; nothing that only serves the report is allocated before the last look. */
#include "bench_memory_child.h"

#include "bench_stats.h"
#include "jitgemm.h"
#include "options.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* KiB; below 0: unknown. peak: the most that was resident until then. */
typedef struct look {
    double pss, rss, peak;
} look;

typedef struct memory_run {
    const char *mode, *driver_path, *nvrtc_path, *helper_path; /* paths: null if not given */
    size_t compiles;
    double *ms;                                                /* of each compile, from call to return */
    look looks[MEMORY_MOMENTS];
    double helper_peak;
    char refused[1024];                                        /* why nothing was compiled in a helper */
} memory_run;

static const char *const moments[MEMORY_MOMENTS] = {
    [MEMORY_BEFORE] = "before jg_open", [MEMORY_OPEN] = "after jg_open", [MEMORY_FIRST] = "after the first compile",
    [MEMORY_ALL] = "after all compiles", [MEMORY_CLOSED] = "after jg_close"};

/* ---- what the system says ---- */

/* The value of a line such as "Pss:   123 kB" of a file of /proc; below 0 if there is none. */
static double read_kib(const char *path, const char *name)
{
    char line[256];
    double kib = -1;
    FILE *file = fopen(path, "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) != 0 || sscanf(line + strlen(name), ": %lf kB", &kib) != 1) kib = -1;
    if (file) fclose(file);
    return kib;
}

/* Kernels before 4.14 tell of the resident set only. */
static look look_now(void)
{
    return (look){.pss = read_kib("/proc/self/smaps_rollup", "Pss"), .rss = read_kib("/proc/self/status", "VmRSS"),
                  .peak = read_kib("/proc/self/status", "VmHWM")};
}

/* The largest of all processes that this one started and that have ended; 0: there were none. */
static double children_peak(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_CHILDREN, &usage) == 0 ? (double)usage.ru_maxrss : -1;
}

/* ---- steps ---- */

static int fail(const char *what)
{
    fprintf(stderr, "jitgemm-bench: %s: %s\n", what, jg_last_error());
    return 1;
}

/* That a helper cannot be used is a result. */
static int refuse(memory_run *r, jg_status status, const char *what)
{
    if (status != JG_ERR_HELPER) return fail(what);
    snprintf(r->refused, sizeof r->refused, "%s", jg_last_error());
    return 0;
}

/* A kernel of a size that no other compile of this run is of. */
static jg_status compile_one(jg_context *context, size_t index, double *ms)
{
    const int64_t size = 64 + 16 * (int64_t)index;
    const jg_problem problem = {.m = size, .n = size, .k = size, .type_a = JG_F16, .form = JG_FORM_SPECIALISED};
    const jg_prewarm_options how = {.jobs = 1};
    const int64_t before_ns = bench_now_ns();
    const jg_status status = jg_prewarm(context, &problem, 1, &how, NULL);
    *ms = (double)(bench_now_ns() - before_ns) * 1e-6;
    return status;
}

static jg_status compile_all(memory_run *r, jg_context *context)
{
    jg_status status = JG_OK;
    for (size_t i = 0; i < r->compiles && status == JG_OK; i++) {
        status = compile_one(context, i, &r->ms[i]);
        if (i == 0) r->looks[MEMORY_FIRST] = look_now();
    }
    r->looks[MEMORY_ALL] = look_now();
    return status;
}

static int measure(memory_run *r)
{
    const int is_cpu = strcmp(options_driver_path(r->driver_path), "cpu") == 0;
    const jg_options options = {.device = is_cpu ? JG_DEVICE_CPU : JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT,
                                .resident = JG_RESIDENT_NONE, .cache_path = "", .factory_path = "", .driver_path = r->driver_path,
                                .nvrtc_path = r->nvrtc_path, .helper_path = r->helper_path,
                                .helper = strcmp(r->mode, MEMORY_HELPER) == 0 ? JG_HELPER_PROCESS : JG_HELPER_THREAD};
    jg_context *context;
    r->looks[MEMORY_BEFORE] = look_now();
    jg_status status = jg_open(&options, &context);
    if (status != JG_OK) return refuse(r, status, "jg_open");
    r->looks[MEMORY_OPEN] = look_now();
    status = compile_all(r, context);
    const int result = status == JG_OK ? 0 : refuse(r, status, "compiling");
    if (jg_close(context) != JG_OK) return fail("jg_close");
    r->looks[MEMORY_CLOSED] = look_now();
    r->helper_peak = children_peak();
    if (options.helper == JG_HELPER_PROCESS && r->helper_peak == 0 && !r->refused[0])
        snprintf(r->refused, sizeof r->refused, "no helper process has ended");
    return result;
}

/* ---- the report ---- */

static int add_kib(cJSON *object, const char *name, double kib)
{
    return kib < 0 || cJSON_AddNumberToObject(object, name, kib);
}

static int add_looks(cJSON *object, const memory_run *r)
{
    cJSON *array = cJSON_AddArrayToObject(object, "moments");
    int ok = array != NULL;
    for (int i = 0; i < MEMORY_MOMENTS && ok; i++) {
        cJSON *item = cJSON_CreateObject();
        ok = item && cJSON_AddItemToArray(array, item) && cJSON_AddStringToObject(item, "when", moments[i]) &&
             add_kib(item, "pss_kib", r->looks[i].pss) && add_kib(item, "rss_kib", r->looks[i].rss) &&
             add_kib(item, "peak_kib", r->looks[i].peak);
    }
    return ok;
}

static int add_measured(cJSON *object, const memory_run *r)
{
    cJSON *ms = cJSON_CreateDoubleArray(r->ms, (int)r->compiles);
    return ms && cJSON_AddItemToObject(object, "compile_ms", ms) && add_looks(object, r) &&
           add_kib(object, "peak_kib", r->looks[MEMORY_CLOSED].peak) && add_kib(object, "helper_peak_kib", r->helper_peak);
}

static int print_report(const memory_run *r)
{
    cJSON *object = cJSON_CreateObject();
    const int ok = object && cJSON_AddStringToObject(object, "mode", r->mode) &&
                   (r->refused[0] ? cJSON_AddStringToObject(object, "refused", r->refused) != NULL : add_measured(object, r));
    char *text = ok ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!text) {
        fputs("jitgemm-bench: out of memory\n", stderr);
        return 1;
    }
    puts(text);
    cJSON_free(text);
    return fflush(stdout) == 0 ? 0 : 1;
}

static const char *path_of(const char *argument)
{
    return strcmp(argument, MEMORY_NONE) == 0 ? NULL : argument;
}

int memory_child_main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "jitgemm-bench: %s is started by memory only\n", MEMORY_COMMAND);
        return 2;
    }
    memory_run r = {.mode = argv[2], .driver_path = path_of(argv[3]), .nvrtc_path = path_of(argv[4]),
                    .helper_path = path_of(argv[5]), .compiles = strtoul(argv[6], NULL, 10)};
    r.ms = calloc(r.compiles + 1, sizeof *r.ms);
    if (!r.ms) return fail("out of memory");
    int status = measure(&r);
    if (status == 0) status = print_report(&r);
    free(r.ms);
    return status;
}
