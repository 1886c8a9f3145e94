/* What the element tells on the bus beside progress (prewarm.h): errors, warnings and tensors. */
#ifndef JGF_MESSAGES_H
#define JGF_MESSAGES_H

#include <gst/gst.h>

#include "jitgemm.h"
#include "tensor_meta.h"

/* Posts `text` as an ERROR or a WARNING, e.g. JGF_REPORT(self, ERROR, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, text). What of
 * it is not UTF-8, as a path may be, is replaced. */
#define JGF_REPORT(self, type, domain, code, text) \
    jgf_report(GST_ELEMENT(self), GST_MESSAGE_##type, domain, code, text, __FILE__, GST_FUNCTION, __LINE__)
void jgf_report(GstElement *element, GstMessageType type, GQuark domain, gint code, const char *text, const char *file,
                const char *function, gint line);

/* Posts an error about a failed call of the library: `what` happened, the status, and what the library says. */
#define JGF_REPORT_STATUS(self, domain, code, what, status) \
    jgf_report_status(GST_ELEMENT(self), domain, code, what, status, __FILE__, GST_FUNCTION, __LINE__)
void jgf_report_status(GstElement *element, GQuark domain, gint code, const char *what, jg_status status, const char *file,
                       const char *function, gint line);

/* Posts a buffer's tensor as an element message "jitgemm-tensor": rows, columns, channels, type, data (GBytes), and the buffer's
 * timestamp, stream-time, running-time and duration in ns, GST_CLOCK_TIME_NONE where unknown. */
void jgf_post_tensor(GstElement *element, const GstSegment *segment, GstBuffer *buffer, const JgTensorMeta *tensor);

#endif
