/* Kernels made before the first frame, on a thread of their own, so that a change of state does not block for seconds.
 *
 * Progress goes to the bus as GST_MESSAGE_PROGRESS with the code "prewarm": START, CONTINUE with "12 of 34", and COMPLETE, CANCELED or
 * ERROR, which a warning follows. An application that waits for it before it plays (gst-launch-1.0 does) has no frame that waits.
 *
 * Locks of the element are pthread's: GLib's are made of system calls that the thread sanitizer does not know. */
#ifndef JGF_PREWARM_H
#define JGF_PREWARM_H

#include <gst/gst.h>
#include <pthread.h>

#include "jitgemm.h"

typedef struct jgf_prewarm {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GThread *thread;
    gboolean running, cancelled, flushing; /* under the lock */
    GstElement *element;
    jg_context *context;
    guint32 types;
} jgf_prewarm;

void jgf_prewarm_init(jgf_prewarm *prewarm);
void jgf_prewarm_clear(jgf_prewarm *prewarm);

/* Starts making the generic kernels of `types` (JG_RESIDENT_ flags). Context and element must stay until jgf_prewarm_stop. */
void jgf_prewarm_start(jgf_prewarm *prewarm, GstElement *element, jg_context *context, guint32 types);

/* Blocks until it is done, well or not: TRUE; or until it is cancelled or flushed: FALSE. For the streaming thread. */
gboolean jgf_prewarm_wait(jgf_prewarm *prewarm);

/* While flushing jgf_prewarm_wait returns at once. From any thread. */
void jgf_prewarm_set_flushing(jgf_prewarm *prewarm, gboolean flushing);

/* Asks it to end; kernels that are under way are finished. Does not block. From any thread. */
void jgf_prewarm_cancel(jgf_prewarm *prewarm);

/* Cancels, and waits for the end: for the kernels under way, some 0.3 s each. */
void jgf_prewarm_stop(jgf_prewarm *prewarm);

#endif
