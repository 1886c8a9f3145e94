/* What jitgemm is for, on real input: the 16 common square sizes and the matrix products of two networks.
 *
 * It compiles every kernel ahead of time, multiplies random matrices of every size, checks every element of
 * every result against a double-precision reference on the host, and prints one table. Without a GPU the
 * same kernels run on the software GPU (JITGEMM_SWGPU_DEVICE says which chip it plays; an AGX Orin by default), of
 * large products only some blocks; where that is missing too, the cpu device computes.
 * A second run compiles nothing: the kernels come from the cache file.
 *
 * In: the lists in tests/shapes (or $JG_SHAPES_DIR). Out: the table; exit status 1 if a product was wrong. */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jitgemm.h"
#include "tests/reference.h"
#include "tools/progress.h"
#include "tools/sizelist.h"

enum { EXIT_USAGE = 2 };
enum { SAMPLES = 5, LAUNCHES_PER_SAMPLE = 20 }; /* how a product is timed on a GPU */
enum { WORKERS_MAX = 16 };
#define SOFTWARE_BLOCKS "16" /* of a large product, on the software GPU */

/* One row of the table. */
typedef struct product {
    jg_problem problem;
    char text[256];             /* of the problem */
    char kernel[192];           /* what is compiled for it; "" if there is none */
    const char *hit;            /* where its kernel came from */
    double compile_ms;          /* whenever that was */
    jg_counters counters;       /* on the software GPU */
    double residual, time_us;   /* residual: worst |C - reference| / bound; right if at most 1 */
    char error[256];            /* "" if it was computed and is right */
    int done;
} product;

/* Everything the demo holds. `lock` guards next and the products' `done`; `device_lock` keeps the GPU to one
 * product at a time, so that the times mean something. */
typedef struct demo {
    jg_context *context;
    enum { ON_CPU, ON_SOFTWARE_GPU, ON_GPU } device;
    int quick, compile_failed;
    const char *cache_path;
    sizelist sizes;
    product *products;
    size_t count, next;
    jg_prewarm_result prewarmed;
    progress progress;
    pthread_mutex_t lock, device_lock;
    pthread_cond_t one_done;
} demo;

/* Ends the demo if a call that must work has failed. */
static void must(jg_status status, const char *what)
{
    if (status == JG_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, jg_status_name(status), jg_last_error());
    exit(EXIT_FAILURE);
}

/* ---- what to multiply ---- */

static void add_squares(demo *d, jg_type type)
{
    const jg_problem defaults = {.type_a = type};
    for (int size = 64; size <= 1024; size += 64) {
        char text[16];
        if (d->quick && (size & (size - 1)) != 0) continue; /* powers of two only */
        if (d->quick && size > 512) continue;
        snprintf(text, sizeof text, "%d", size);
        if (sizelist_add(&d->sizes, text, &defaults, 1) != 0) must(JG_ERR_PARSE, d->sizes.error);
    }
}

/* The layers of a network, in half precision. */
static void add_layers(demo *d, const char *file)
{
    const jg_problem defaults = {.type_a = JG_F16};
    const char *folder = getenv("JG_SHAPES_DIR");
    char path[1024];
    size_t first = d->sizes.count;
    snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "tests/shapes", file);
    if (sizelist_read(&d->sizes, path, &defaults, 1) != 0) {
        printf("SKIP layers: %s\n", d->sizes.error);
        d->sizes.count = first;
    }
    if (d->quick && d->sizes.count > first + 4) d->sizes.count = first + 4;
}

/* The kernel that the planner chooses: the first kernel name in its explanation. */
static void find_kernel(demo *d, product *p)
{
    static char text[16384];
    if (jg_plan_explain(d->context, &p->problem, text, sizeof text, NULL) != JG_OK) return;
    const char *name = strstr(text, "jg_sm");
    if (name) snprintf(p->kernel, sizeof p->kernel, "%.*s", (int)strcspn(name, " \t\n,:;"), name);
}

static void make_products(demo *d)
{
    add_squares(d, JG_F16);
    add_squares(d, JG_F32);
    add_layers(d, "resnet50.txt");
    add_layers(d, "vit_b16.txt");
    d->count = d->sizes.count;
    d->products = calloc(d->count, sizeof *d->products);
    if (!d->products) must(JG_ERR_NO_MEMORY, "demo");
    for (size_t i = 0; i < d->count; i++) {
        product *p = &d->products[i];
        p->problem = d->sizes.items[i];
        p->hit = "-";
        must(jg_problem_format(&p->problem, p->text, sizeof p->text, NULL), "demo");
        find_kernel(d, p);
    }
}

/* ---- compile ahead ---- */

/* Notes the outcome at every product that the kernel serves. */
static int on_prewarm(void *user, const jg_progress *step)
{
    demo *d = user;
    static const char *const hits[] = {[JG_COMPILED] = "compiled", [JG_CACHED] = "disk", [JG_FAILED] = "failed"};
    progress_step(&d->progress, step);
    for (size_t i = 0; i < d->count; i++) {
        product *p = &d->products[i];
        if (strcmp(p->kernel, step->kernel) != 0) continue;
        p->hit = hits[step->outcome];
        p->compile_ms = step->ms;
    }
    return 0;
}

/* The cache file remembers what compiling took, and with which compiler, for kernels of earlier runs too. */
static void read_cache_file(demo *d, const char *path)
{
    jg_cache *cache;
    jg_cache_entry entry;
    int told = 0;
    if (!*path || jg_cache_open(path, 0, &cache) != JG_OK) return;
    for (size_t i = 0; i < d->count; i++) {
        product *p = &d->products[i];
        if (!*p->kernel || jg_cache_find(cache, p->kernel, &entry) != JG_OK) continue;
        p->compile_ms = entry.compile_ms;
        if (!told++) printf("compiler   %s\n", entry.provenance);
    }
    jg_cache_close(cache);
}

/* Without a compiler the software GPU has nothing to run but what is cached: the cpu device computes instead. */
static void use_cpu(demo *d)
{
    const jg_options options = {.device = JG_DEVICE_CPU, .cache_path = d->cache_path};
    must(jg_close(d->context), "jg_close");
    must(jg_open(&options, &d->context), "jg_open");
    d->device = ON_CPU;
    printf("device     cpu, which needs no kernels\n");
}

/* A missing compiler is no failure of the products: they are computed with what is cached, or by the cpu. */
static void prewarm(demo *d, const char *cache_path)
{
    jg_prewarm_options options = {.progress = on_prewarm, .user = d};
    progress_begin(&d->progress, stdout, isatty(STDOUT_FILENO) ? PROGRESS_AUTO : PROGRESS_NONE, "compiling");
    jg_status status = jg_prewarm(d->context, d->sizes.items, d->sizes.count, &options, &d->prewarmed);
    double elapsed_ms = progress_end(&d->progress);
    d->compile_failed = status != JG_OK && status != JG_ERR_NO_NVRTC;
    if (d->compile_failed) printf("FAIL compile: %s: %s\n", jg_status_name(status), jg_last_error());
    if (status == JG_ERR_NO_NVRTC) {
        printf("SKIP compile: %s\n", jg_last_error());
        for (size_t i = 0; i < d->count; i++)
            if (strcmp(d->products[i].hit, "failed") == 0) d->products[i].hit = "-";
        if (d->device == ON_SOFTWARE_GPU) use_cpu(d);
    }
    read_cache_file(d, cache_path);
    printf("prewarm    %.1f s: compiled %zu, cached %zu, failed %zu\n\n", elapsed_ms / 1e3, d->prewarmed.compiled,
           d->prewarmed.cached, d->prewarmed.failed);
}

/* ---- multiply and check ---- */

static int compare_doubles(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* On a GPU the median of several batches of launches, after a warm-up; on the host one run. */
static jg_status run_timed(demo *d, const jg_plan *plan, const jg_operands *operands, double *time_us)
{
    const int timed = d->device == ON_GPU;
    int samples = timed ? SAMPLES : 1, launches = timed ? LAUNCHES_PER_SAMPLE : 1;
    double times_us[SAMPLES];
    jg_status status = timed ? jg_plan_run(plan, operands) : JG_OK;
    if (status == JG_OK) status = jg_synchronize(d->context, NULL);
    for (int sample = 0; sample < samples && status == JG_OK; sample++) {
        double start_ms = progress_now_ms();
        for (int i = 0; i < launches && status == JG_OK; i++) status = jg_plan_run(plan, operands);
        if (status == JG_OK) status = jg_synchronize(d->context, NULL);
        times_us[sample] = (progress_now_ms() - start_ms) * 1e3 / launches;
    }
    if (status != JG_OK) return status;
    qsort(times_us, (size_t)samples, sizeof *times_us, compare_doubles);
    *time_us = times_us[samples / 2];
    return JG_OK;
}

/* Device copies of the three matrices' blocks: A, B, C. */
static jg_status run_on_blocks(demo *d, reference *ref, void *const blocks[3], product *p)
{
    const reference_matrix *matrices[] = {&ref->a, &ref->b, &ref->c};
    jg_plan *plan;
    for (int i = 0; i < 3; i++) {
        jg_status status = jg_copy(d->context, blocks[i], matrices[i]->block, matrices[i]->block_bytes);
        if (status != JG_OK) return status;
    }
    jg_status status = jg_plan_create(d->context, &p->problem, &plan);
    if (status != JG_OK) return status;
    jg_operands operands = {.a = (char *)blocks[0] + ref->a.offset_bytes, .b = (char *)blocks[1] + ref->b.offset_bytes,
                            .c = (char *)blocks[2] + ref->c.offset_bytes};
    status = run_timed(d, plan, &operands, &p->time_us);
    if (d->device == ON_SOFTWARE_GPU && status == JG_OK) status = jg_launch_counters(d->context, &p->counters);
    jg_plan_destroy(plan);
    if (status != JG_OK) return status;
    return jg_copy(d->context, ref->c.block, blocks[2], ref->c.block_bytes);
}

static jg_status run_on_device(demo *d, reference *ref, product *p)
{
    const size_t bytes[] = {ref->a.block_bytes, ref->b.block_bytes, ref->c.block_bytes};
    void *blocks[3] = {0};
    jg_status status = JG_OK;
    if (d->device == ON_GPU) pthread_mutex_lock(&d->device_lock);
    for (int i = 0; i < 3 && status == JG_OK; i++)
        status = jg_alloc(d->context, JG_DEVICE_MEMORY, bytes[i], &blocks[i]);
    if (status == JG_OK) status = run_on_blocks(d, ref, blocks, p);
    for (int i = 0; i < 3; i++) {
        jg_status freed = jg_free(d->context, JG_DEVICE_MEMORY, blocks[i]);
        if (status == JG_OK) status = freed;
    }
    if (d->device == ON_GPU) pthread_mutex_unlock(&d->device_lock);
    return status;
}

/* Multiplies random matrices and judges the result. The same size gets the same data in every run. */
static void check_product(demo *d, product *p, uint64_t seed)
{
    reference ref;
    reference_make(&ref, &p->problem, REFERENCE_UNIFORM, 0, seed);
    if (d->device == ON_SOFTWARE_GPU) reference_sample(&ref);
    jg_status status = run_on_device(d, &ref, p);
    if (status != JG_OK) {
        snprintf(p->error, sizeof p->error, "%s: %s", jg_status_name(status), jg_last_error());
    } else {
        reference_result result = reference_check(&ref, 1, 0);
        const int64_t elements = p->problem.m * p->problem.n * (p->problem.batch > 1 ? p->problem.batch : 1);
        p->residual = result.worst;
        if (result.checked == 0 || (p->counters.blocks_run == p->counters.blocks && result.checked < elements))
            snprintf(p->error, sizeof p->error, "only %lld of %lld elements were computed", (long long)result.checked, (long long)elements);
        if (result.stray) snprintf(p->error, sizeof p->error, "%lld bytes outside C changed", (long long)result.stray);
        if (result.failures)
            snprintf(p->error, sizeof p->error, "%lld elements wrong, first (%lld, %lld) of item %lld: %g, not %g",
                     (long long)result.failures, (long long)result.i, (long long)result.j, (long long)result.item,
                     result.got, result.expected);
    }
    reference_free(&ref);
}

/* Takes the next product until there is none. The checking on the host takes most of the time, so the
 * processors share the products out. */
static void *work(void *user)
{
    demo *d = user;
    for (;;) {
        pthread_mutex_lock(&d->lock);
        size_t mine = d->next < d->count ? d->next++ : d->count;
        pthread_mutex_unlock(&d->lock);
        if (mine == d->count) return NULL;
        check_product(d, &d->products[mine], mine + 1);
        pthread_mutex_lock(&d->lock);
        d->products[mine].done = 1;
        pthread_cond_signal(&d->one_done);
        pthread_mutex_unlock(&d->lock);
    }
}

/* ---- the table ---- */

static void print_heading(void)
{
    printf("%-16s %-8s %-27s %10s  %-8s  %8s %9s\n", "size", "type", "plan", "compile ms", "cache", "residual",
           "time us");
}

/* "mma 64x64x32 specialised" from "jg_sm87_mma_f16f16f16_nn_64x64x32_..._m128n128k128...". */
static void short_plan(const char *kernel, char *text, size_t size)
{
    char family[16], tile[32];
    if (sscanf(kernel, "jg_sm%*d_%15[^_]_%*[^_]_%*[^_]_%31[^_]", family, tile) != 2)
        snprintf(text, size, "-");
    else
        snprintf(text, size, "%s %s %s", family, tile, strstr(strstr(kernel, tile), "_m") ? "specialised" : "generic");
}

static void print_product(const product *p)
{
    char plan[64], residual[16] = "-", sampled[64] = "";
    int size_length = (int)strcspn(p->text, ":");
    const char *words = p->text[size_length] ? p->text + size_length + 1 : "f32"; /* the default is left out */
    short_plan(p->kernel, plan, sizeof plan);
    if (p->time_us > 0) snprintf(residual, sizeof residual, "%.4f", p->residual);
    if (p->counters.blocks_run < p->counters.blocks)
        snprintf(sampled, sizeof sampled, "  %llu of %llu blocks", (unsigned long long)p->counters.blocks_run,
                 (unsigned long long)p->counters.blocks);
    printf("%-16.*s %-8s %-27s %10.1f  %-8s  %8s %9.1f%s%s%s\n", size_length, p->text, words, plan, p->compile_ms, p->hit,
           residual, p->time_us, sampled, *p->error ? "  FAIL " : "", p->error);
    fflush(stdout);
}

/* Prints the rows in order, each as soon as it and those before it are done. Returns how many failed. */
static size_t print_products(demo *d)
{
    size_t failed = 0;
    for (size_t i = 0; i < d->count; i++) {
        pthread_mutex_lock(&d->lock);
        while (!d->products[i].done) pthread_cond_wait(&d->one_done, &d->lock);
        pthread_mutex_unlock(&d->lock);
        print_product(&d->products[i]);
        failed += *d->products[i].error != 0;
    }
    return failed;
}

static size_t check_all(demo *d)
{
    pthread_t threads[WORKERS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int workers = processors < 1 ? 1 : processors > WORKERS_MAX ? WORKERS_MAX : (int)processors;
    int started = 0;
    while (started < workers && pthread_create(&threads[started], NULL, work, d) == 0) started++;
    if (started == 0) work(d);
    print_heading();
    size_t failed = print_products(d);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return failed;
}

/* ---- the demo ---- */

static const char usage[] =
    "usage: 10_demo [--quick] [--cache FILE]\n"
    "Compiles, multiplies and checks the common sizes and the layers of ResNet-50 and ViT-B/16.\n"
    "  --quick        a few of each only\n"
    "  --cache FILE   cache file; default $JITGEMM_CACHE, else ~/.cache/jitgemm/kernels.db\n"
    "The layers are read from tests/shapes, or from the folder that $JG_SHAPES_DIR names.\n";

static void parse_arguments(demo *d, int argc, char **argv)
{
    const struct option options[] = {{"quick", no_argument, NULL, 'q'}, {"cache", required_argument, NULL, 'c'},
                                     {"help", no_argument, NULL, 'h'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'q') d->quick = 1;
        else if (option == 'c') d->cache_path = optarg;
        else if (option == 'h') fputs(usage, stdout), exit(EXIT_SUCCESS);
        else exit(EXIT_USAGE);
    }
    if (optind < argc) {
        fprintf(stderr, "10_demo: \"%s\": it takes no sizes; see --help\n", argv[optind]);
        exit(EXIT_USAGE);
    }
}

/* The GPU, else the software GPU, else the cpu; says why when it falls back. */
static void open_device(demo *d)
{
    jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .cache_path = d->cache_path};
    setenv("JITGEMM_SWGPU_BLOCKS", SOFTWARE_BLOCKS, 0); /* no thread runs yet */
    const char *driver = getenv("JITGEMM_DRIVER");
    const int cpu = driver && strcmp(driver, "cpu") == 0;
    jg_status status = cpu ? JG_ERR_NO_DRIVER : jg_open(&options, &d->context);
    if (!cpu && (status == JG_ERR_NO_DRIVER || status == JG_ERR_NO_DEVICE)) {
        printf("no GPU     %s\n", jg_last_error());
        options.driver_path = "swgpu";
        status = jg_open(&options, &d->context);
    }
    if (status == JG_ERR_NO_DRIVER || status == JG_ERR_NO_DEVICE) {
        if (!cpu) printf("           %s\n", jg_last_error());
        options.device = JG_DEVICE_CPU;
        status = jg_open(&options, &d->context);
    } else if (status == JG_OK) {
        jg_counters counters;
        d->device = jg_launch_counters(d->context, &counters) == JG_OK ? ON_SOFTWARE_GPU : ON_GPU;
    }
    must(status, "jg_open");
}

static void print_header(const demo *d, const char *cache_path)
{
    int arch = 0;
    for (size_t i = 0; i < d->count && arch == 0; i++) sscanf(d->products[i].kernel, "jg_sm%d_", &arch);
    printf("jitgemm    %s\n", jg_version());
    static const char *const names[] = {[ON_CPU] = "cpu", [ON_SOFTWARE_GPU] = "software GPU (times are those of the simulation)", [ON_GPU] = "CUDA"};
    printf("device     %s; kernels are for sm_%d\n", names[d->device], arch);
    if (d->device == ON_SOFTWARE_GPU)
        printf("blocks     of products above 2^26 multiply-adds %s (JITGEMM_SWGPU_BLOCKS); only their elements are checked\n",
               getenv("JITGEMM_SWGPU_BLOCKS"));
    printf("cache      %s\n", *cache_path ? cache_path : "memory only");
}

int main(int argc, char **argv)
{
    static demo d = {.lock = PTHREAD_MUTEX_INITIALIZER, .device_lock = PTHREAD_MUTEX_INITIALIZER,
                     .one_done = PTHREAD_COND_INITIALIZER};
    jg_stats stats;
    parse_arguments(&d, argc, argv);
    open_device(&d);
    must(jg_cache_stats(d.context, &stats), "jg_cache_stats");
    make_products(&d);
    print_header(&d, stats.path);
    prewarm(&d, stats.path);

    size_t failed = check_all(&d);
    printf("\n%zu products checked, %zu failed; compiled %zu, cached %zu\n", d.count, failed, d.prewarmed.compiled,
           d.prewarmed.cached);
    must(jg_close(d.context), "jg_close");
    free(d.products);
    sizelist_free(&d.sizes);
    return failed || d.compile_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
