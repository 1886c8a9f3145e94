/* See setup.h. */
#include "setup.h"

#include "common.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The types of this pipeline's products: u8 x s8 in preprocessing, f16 in the layers. */
#define RESIDENT (JG_RESIDENT_U8 | JG_RESIDENT_F16)

volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- the folder of --fresh ---- */

static char folder[3500]; /* "" if there is none */

static void remove_folder(void)
{
    char path[4096];
    DIR *listing = folder[0] ? opendir(folder) : NULL;
    for (const struct dirent *entry; listing && (entry = readdir(listing));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) unlink(path);
    }
    if (listing) closedir(listing);
    if (folder[0]) rmdir(folder);
    folder[0] = 0;
}

static void make_folder(const char *given)
{
    static int told;
    const char *temporary = getenv("TMPDIR");
    const char *parent = given ? given : temporary && *temporary ? temporary : "/tmp";
    if (!told) atexit(remove_folder);
    told = 1;
    snprintf(folder, sizeof folder, "%s/jitgemm-pipeline-XXXXXX", parent);
    if (mkdtemp(folder)) return;
    folder[0] = 0;
    fail("cannot make a folder in %s for the cache file; name another with --cache-dir", parent);
}

/* ---- jitgemm ---- */

static void on_log(void *user, jg_log_level level, const char *text)
{
    (void)user;
    fprintf(stderr, "jitgemm %s: %s\n", level == JG_LOG_ERROR ? "error" : "warning", text);
}

/* Hits are told of by the thread that calls jg_gemm, so the count needs no lock. */
static void on_trace(void *user, const jg_trace *trace)
{
    if (trace->event == JG_EVENT_HIT) ++*(int *)user;
}

static int on_progress(void *user, const jg_progress *step)
{
    const int is_terminal = isatty(STDERR_FILENO);
    if (!*(const int *)user && (is_terminal || step->done == step->total))
        fprintf(stderr, "%sgeneric kernels: %zu of %zu%s", is_terminal ? "\r" : "", step->done, step->total,
                step->done == step->total ? "\n" : "");
    return interrupted;
}

/* A context that loads nothing makes the generic kernels, so that the run's own finds all of them in the cache file. At boot
 * `jitgemm-prewarm --generic=u8,f16` does the same. */
static int prewarm(const jg_options *run, int is_quiet)
{
    jg_context *context;
    jg_options options = *run;
    const jg_prewarm_options all = {.types = RESIDENT, .progress = on_progress, .user = &is_quiet};
    options.resident = JG_RESIDENT_NONE;
    options.prewarm = JG_PREWARM_NO_MET;
    options.compile = JG_COMPILE_BACKGROUND;
    options.trace = NULL;
    CHECK(jg_open(&options, &context));
    const jg_status status = jg_prewarm(context, NULL, 0, &all, NULL);
    if (status != JG_ERR_CANCELLED) CHECK(status);
    CHECK(jg_close(context));
    return status == JG_OK;
}

/* Sizes change every few seconds here, and each brings up to five kernels, which is more than the worker's 60 a minute. */
enum { COMPILES_PER_MINUTE = 600 };

jg_context *setup_open(const arguments *a, const gpu *g, unsigned policy, int *own_launches)
{
    char cache[sizeof folder + 32];
    jg_context *context;
    jg_options options = {.device = g->is_cuda ? JG_DEVICE_CUDA : JG_DEVICE_CPU, .sm_count = g->green ? g->sms : 0,
                          .compile = policy == POLICY_WAIT ? JG_COMPILE_WAIT
                                     : policy == POLICY_NEVER ? JG_COMPILE_NEVER : JG_COMPILE_BACKGROUND,
                          .resident = policy == POLICY_WAIT ? JG_RESIDENT_NONE : RESIDENT,
                          .worker = {.per_minute = COMPILES_PER_MINUTE}, .log = on_log, .trace = on_trace,
                          .trace_user = own_launches};
    if (a->is_fresh) {
        make_folder(a->cache_dir);
        snprintf(cache, sizeof cache, "%s/kernels.db", folder);
        options.cache_path = cache;
        options.factory_path = "";
    }
    if (g->is_cuda && policy != POLICY_WAIT && !prewarm(&options, a->is_quiet)) {
        remove_folder();
        return NULL;
    }
    CHECK(jg_open(&options, &context));
    return context;
}

void setup_close(jg_context *context)
{
    CHECK(jg_close(context));
    remove_folder();
}
