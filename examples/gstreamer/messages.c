/* Messages: see messages.h. */
#include "messages.h"

void jgf_report(GstElement *element, GstMessageType type, GQuark domain, gint code, const char *text, const char *file,
                const char *function, gint line)
{
    gst_element_message_full(element, type, domain, code, g_utf8_make_valid(text, -1), NULL, file, function, line);
}

void jgf_report_status(GstElement *element, GQuark domain, gint code, const char *what, jg_status status, const char *file,
                       const char *function, gint line)
{
    char *text = g_strdup_printf("%s: %s, %s", what, jg_status_name(status), jg_last_error());
    jgf_report(element, GST_MESSAGE_ERROR, domain, code, text, file, function, line);
    g_free(text);
}

void jgf_post_tensor(GstElement *element, const GstSegment *segment, GstBuffer *buffer, const JgTensorMeta *tensor)
{
    const gboolean is_time = segment->format == GST_FORMAT_TIME;
    const guint64 pts = GST_BUFFER_PTS(buffer);
    const guint64 stream_time = is_time ? gst_segment_to_stream_time(segment, GST_FORMAT_TIME, pts) : GST_CLOCK_TIME_NONE;
    const guint64 running_time = is_time ? gst_segment_to_running_time(segment, GST_FORMAT_TIME, pts) : GST_CLOCK_TIME_NONE;
    GstStructure *content = gst_structure_new("jitgemm-tensor",
        "rows", G_TYPE_INT, tensor->rows, "columns", G_TYPE_INT, tensor->columns, "channels", G_TYPE_INT, tensor->channels,
        "type", G_TYPE_STRING, tensor->type, "timestamp", G_TYPE_UINT64, pts, "stream-time", G_TYPE_UINT64, stream_time,
        "running-time", G_TYPE_UINT64, running_time, "duration", G_TYPE_UINT64, GST_BUFFER_DURATION(buffer),
        "data", G_TYPE_BYTES, tensor->data, NULL);
    gst_element_post_message(element, gst_message_new_element(GST_OBJECT(element), content));
}
