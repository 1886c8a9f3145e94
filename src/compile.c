/* From a kernel_spec to an image. NVRTC needs a big stack and must not see the host's signals or locale, so it only
 * ever runs on threads made here, or in a process of its own; a caller that waits is blocked in pthread_join. */
#include "compile.h"

#include "helper.h"
#include "nvrtc_api.h"
#include "status.h"
#include "template.h"

#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES ((size_t)8 << 20)

struct compiler {
    pthread_mutex_t lock; /* of those who open lib */
    _Atomic(nvrtc *) lib;
    atomic_int cancelled;
    char *path;
    int line_info;
    jg_helper mode;
    helper *helper;      /* null: compile on the calling thread; with PROCESS there is none to start */
    atomic_int gave_up;  /* AUTO: the helper turned out to be of no use */
    journal *log;
    atomic_int said_no_room;
    atomic_uint_fast64_t helpers_lost;
};

typedef struct start {
    void *(*body)(void *);
    void *argument;
} start;

compiler *compiler_create(const char *nvrtc_path, int line_info)
{
    compiler *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->line_info = line_info;
    c->mode = JG_HELPER_THREAD;
    if (nvrtc_path && !(c->path = strdup(nvrtc_path))) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void compiler_destroy(compiler *c)
{
    if (!c) return;
    nvrtc_close(atomic_load(&c->lib));
    helper_destroy(c->helper);
    pthread_mutex_destroy(&c->lock);
    free(c->path);
    free(c);
}

void compiler_cancel(compiler *c)
{
    atomic_store(&c->cancelled, 1); /* before the look: who opens it just now looks afterwards */
    nvrtc *lib = atomic_load(&c->lib);
    if (lib) nvrtc_cancel(lib);
}

/* A failure is not remembered: NVRTC may be installed while the process runs, and looking costs little. */
static jg_status open_once(compiler *c, nvrtc **lib)
{
    jg_status status = JG_OK;
    pthread_mutex_lock(&c->lock);
    *lib = atomic_load(&c->lib);
    if (!*lib && (status = nvrtc_open(c->path, lib)) == JG_OK) atomic_store(&c->lib, *lib);
    pthread_mutex_unlock(&c->lock);
    return status == JG_OK && atomic_load(&c->cancelled) ? status_set(JG_ERR_CANCELLED, "the context is being closed") : status;
}

/* --- on the calling thread --- */

/* What NVRTC gets. */
typedef struct rendering {
    char name[KERNEL_NAME_BYTES];
    char *source;
    int arch;
} rendering;

static jg_status render(const kernel_spec *spec, rendering *out)
{
    char defines[2048];
    kernel_format_name(spec, out->name);
    out->arch = spec->arch;
    size_t length = kernel_render_defines(spec, defines, sizeof defines);
    const char *text = template_source(spec->family);
    if (length >= sizeof defines) return status_set(JG_ERR_INTERNAL, "the macros of %s need %zu bytes", out->name, length);
    size_t size = length + strlen(text) + 1;
    out->source = malloc(size);
    if (!out->source) return status_set(JG_ERR_NO_MEMORY, "out of memory rendering %s", out->name);
    snprintf(out->source, size, "%s%s", defines, text);
    return JG_OK;
}

static jg_status compile_in_process(compiler *c, const rendering *r, image *out)
{
    nvrtc *lib;
    RETURN_IF_ERROR(open_once(c, &lib));
    return nvrtc_compile(lib, r->source, r->name, r->arch, c->line_info, out);
}

/* --- in a helper --- */

#define TRIES 2

int compiler_use_helper(compiler *c, jg_helper mode, const char *path, double timeout_ms, journal *log)
{
    c->log = log;
    c->mode = mode;
    if (mode == JG_HELPER_THREAD || !*path) return 1;
    c->helper = helper_create(path, timeout_ms);
    return c->helper != NULL;
}

uint64_t compiler_helpers_lost(const compiler *c)
{
    return atomic_load(&c->helpers_lost);
}

/* Says once that helpers are done with. */
static void give_up_helpers(compiler *c, const char *why)
{
    if (!atomic_exchange(&c->gave_up, 1))
        journal_log(c->log, JG_LOG_WARNING, "the compile helper %s %s; this process compiles on threads of its own from now on",
                    helper_path(c->helper), why);
}

/* A helper that cannot be had. Nothing was compiled in it, so AUTO may take the thread. */
static jg_status do_without(compiler *c, helper_outcome outcome, const rendering *r, const char *why, image *out)
{
    if (c->mode == JG_HELPER_AUTO) {
        if (outcome == HELPER_UNUSABLE) give_up_helpers(c, why);
        else if (!atomic_exchange(&c->said_no_room, 1))
            journal_log(c->log, JG_LOG_WARNING, "the compile helper %s; this process compiles on a thread of its own (said once)", why);
        return compile_in_process(c, r, out);
    }
    if (outcome == HELPER_NO_ROOM) return status_set(JG_ERR_NO_MEMORY, "compiling %s: the compile helper %s", r->name, why);
    return status_set(JG_ERR_HELPER, "compiling %s: the compile helper %s %s; see JITGEMM_HELPER, or allow threads (JG_HELPER_AUTO)",
                      r->name, c->helper ? helper_path(c->helper) : "libexec/jitgemm/jitgemm-compile", why);
}

/* An NVRTC that only this process can find, since its program names the folder or has it open already, makes AUTO take the thread. */
static jg_status compile_without_nvrtc(compiler *c, const rendering *r, image *out)
{
    nvrtc *lib;
    status_text failure;
    if (c->mode != JG_HELPER_AUTO) return JG_ERR_NO_NVRTC;
    status_save(&failure);
    if (open_once(c, &lib) == JG_OK) {
        give_up_helpers(c, "finds no NVRTC, but this process does");
        return compile_in_process(c, r, out);
    }
    status_restore(&failure);
    return JG_ERR_NO_NVRTC;
}

/* After a crash the same source is not given to an NVRTC in this process, whatever the mode. */
static jg_status compile_in_helper(compiler *c, const rendering *r, image *out)
{
    const helper_job job = {c->path, r->name, r->source, r->arch, c->line_info};
    char why[512];
    for (int tried = 1; tried <= TRIES; tried++) {
        jg_status status = JG_ERR_INTERNAL;
        const helper_outcome outcome = helper_compile(c->helper, &job, &c->cancelled, &status, out, why, sizeof why);
        if (outcome == HELPER_ANSWERED) return status == JG_ERR_NO_NVRTC ? compile_without_nvrtc(c, r, out) : status;
        if (outcome == HELPER_CANCELLED)
            return status_set(JG_ERR_CANCELLED, "compiling %s was cancelled: the context is being closed", r->name);
        if (outcome != HELPER_LOST) return do_without(c, outcome, r, why, out);
        atomic_fetch_add(&c->helpers_lost, 1);
        journal_log(c->log, JG_LOG_WARNING, "%s: the compile helper %s%s", r->name, why, tried < TRIES ? "; it is tried once more" : "");
    }
    return status_set(JG_ERR_HELPER, "compiling %s: the compile helper %s, at the second try too; this process does not try again",
                      r->name, why);
}

jg_status compile_here(compiler *c, const kernel_spec *spec, image *out)
{
    rendering r;
    memset(out, 0, sizeof *out);
    RETURN_IF_ERROR(render(spec, &r));
    jg_status status;
    if (c->mode == JG_HELPER_THREAD || atomic_load(&c->gave_up) || (c->mode == JG_HELPER_AUTO && !c->helper))
        status = compile_in_process(c, &r, out);
    else if (!c->helper)
        status = do_without(c, HELPER_UNUSABLE, &r, "is not installed", out);
    else
        status = compile_in_helper(c, &r, out);
    free(r.source);
    return status;
}

/* --- threads --- */

static void *run(void *argument)
{
    start s = *(start *)argument;
    free(argument);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    void *result = s.body(s.argument);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
    return result;
}

int compile_spawn(pthread_t *thread, void *(*body)(void *), void *argument)
{
    start *s = malloc(sizeof *s);
    pthread_attr_t attributes;
    if (!s || pthread_attr_init(&attributes) != 0) {
        free(s);
        return ENOMEM;
    }
    *s = (start){body, argument};
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    pthread_t id;
    int error = pthread_create(&id, &attributes, run, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error) free(s);
    else *thread = id;
    return error;
}

typedef struct task {
    compiler *c;
    const kernel_spec *spec;
    image *out;
    jg_status status;
    char text[4096];
} task;

static void *run_task(void *argument)
{
    task *t = argument;
    t->status = compile_here(t->c, t->spec, t->out);
    if (t->status != JG_OK) snprintf(t->text, sizeof t->text, "%s", jg_last_error());
    return NULL;
}

jg_status compile_on_thread(compiler *c, const kernel_spec *spec, image *out)
{
    task t = {.c = c, .spec = spec, .out = out};
    pthread_t thread;
    int error = compile_spawn(&thread, run_task, &t);
    if (error) return status_set(JG_ERR_NO_MEMORY, "cannot start a compile thread: %s", strerror(error));
    pthread_join(thread, NULL);
    return t.status == JG_OK ? JG_OK : status_set(t.status, "%s", t.text);
}
