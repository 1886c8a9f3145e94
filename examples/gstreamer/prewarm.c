/* Prewarming on a thread: see prewarm.h. */
#include "prewarm.h"

#define CODE "prewarm"

static void post(jgf_prewarm *p, GstProgressType type, const char *text)
{
    gst_element_post_message(p->element, gst_message_new_progress(GST_OBJECT(p->element), type, CODE, text));
}

/* Nonzero to stop. */
static int tell(void *user, const jg_progress *progress)
{
    jgf_prewarm *p = user;
    pthread_mutex_lock(&p->lock);
    const gboolean is_cancelled = p->cancelled;
    pthread_mutex_unlock(&p->lock);
    if (is_cancelled) return 1;
    char *text = g_strdup_printf("%zu of %zu", progress->done, progress->total);
    post(p, GST_PROGRESS_TYPE_CONTINUE, text);
    g_free(text);
    return 0;
}

static gpointer run(gpointer user)
{
    jgf_prewarm *p = user;
    const jg_prewarm_options options = {.types = p->types, .progress = tell, .user = p};
    jg_prewarm_result result = {0};
    post(p, GST_PROGRESS_TYPE_START, "making the kernels that serve every size");
    const jg_status status = jg_prewarm(p->context, NULL, 0, &options, &result);
    if (status == JG_OK) {
        char *text = g_strdup_printf("%zu made, %zu were there", result.compiled, result.cached);
        post(p, GST_PROGRESS_TYPE_COMPLETE, text);
        g_free(text);
    } else if (status == JG_ERR_CANCELLED) {
        post(p, GST_PROGRESS_TYPE_CANCELED, "stopped");
    } else {
        char *text = g_strdup(jg_last_error());
        post(p, GST_PROGRESS_TYPE_ERROR, text);
        GST_ELEMENT_WARNING(p->element, LIBRARY, FAILED, ("Kernels could not be made before the first frame: %s", text),
                            ("%s; frames go on with what there is, and may have to wait", jg_status_name(status)));
        g_free(text);
    }
    pthread_mutex_lock(&p->lock);
    p->running = FALSE;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void jgf_prewarm_init(jgf_prewarm *p)
{
    *p = (jgf_prewarm){0};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
}

void jgf_prewarm_clear(jgf_prewarm *p)
{
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

void jgf_prewarm_start(jgf_prewarm *p, GstElement *element, jg_context *context, guint32 types)
{
    p->element = element;
    p->context = context;
    p->types = types;
    pthread_mutex_lock(&p->lock);
    p->running = TRUE;
    p->cancelled = p->flushing = FALSE;
    pthread_mutex_unlock(&p->lock);
    p->thread = g_thread_new("jitgemm-prewarm", run, p);
}

gboolean jgf_prewarm_wait(jgf_prewarm *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->running && !p->cancelled && !p->flushing) pthread_cond_wait(&p->changed, &p->lock);
    const gboolean is_done = !p->running && !p->cancelled;
    pthread_mutex_unlock(&p->lock);
    return is_done;
}

void jgf_prewarm_set_flushing(jgf_prewarm *p, gboolean flushing)
{
    pthread_mutex_lock(&p->lock);
    p->flushing = flushing;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void jgf_prewarm_cancel(jgf_prewarm *p)
{
    pthread_mutex_lock(&p->lock);
    p->cancelled = TRUE;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void jgf_prewarm_stop(jgf_prewarm *p)
{
    jgf_prewarm_cancel(p);
    if (p->thread) g_thread_join(p->thread);
    p->thread = NULL;
    pthread_mutex_lock(&p->lock);
    p->cancelled = p->flushing = FALSE;
    pthread_mutex_unlock(&p->lock);
}
