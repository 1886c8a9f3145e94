/* From a kernel_spec to an image. NVRTC needs a big stack and must not see the host's signals or locale, so it only
 * ever runs on threads made here; a caller that waits is blocked in pthread_join. */
#include "compile.h"

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

jg_status compile_here(compiler *c, const kernel_spec *spec, image *out)
{
    memset(out, 0, sizeof *out);
    nvrtc *lib;
    RETURN_IF_ERROR(open_once(c, &lib));
    char name[KERNEL_NAME_BYTES], defines[2048];
    kernel_format_name(spec, name);
    size_t length = kernel_render_defines(spec, defines, sizeof defines);
    const char *text = template_source(spec->family);
    if (length >= sizeof defines) return status_set(JG_ERR_INTERNAL, "the macros of %s need %zu bytes", name, length);
    size_t size = length + strlen(text) + 1;
    char *source = malloc(size);
    if (!source) return status_set(JG_ERR_NO_MEMORY, "out of memory rendering %s", name);
    snprintf(source, size, "%s%s", defines, text);
    jg_status status = nvrtc_compile(lib, source, name, spec->arch, c->line_info, out);
    free(source);
    return status;
}

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
