/* The tensor that jitgemmfilter in mode=embed puts beside a frame, as a GstMeta. This header is for applications too, and needs nothing
 * of jitgemm to be linked: gst_buffer_get_jg_tensor_meta finds the meta by its name.
 *
 * It goes along when a whole buffer is copied, and, as it has no tags, through elements that change the picture (videoconvert,
 * videoscale): it is of the frame as it was in jitgemmfilter. */
#ifndef JGF_TENSOR_META_H
#define JGF_TENSOR_META_H

#include <gst/gst.h>

#define JG_TENSOR_META_API_NAME "JgTensorMetaAPI"
#define JG_TENSOR_META_NAME "JgTensorMeta"

/* rows, columns: patches down and across the frame; channels: values of each, D.
 * type: "f16", "bf16" or "f32". data: rows x columns x channels values in the machine's byte order, without gaps; the value of
 * patch (row, column) and channel c is at (row * columns + column) * channels + c. Owned by the meta: take a reference to keep it.
 * frame: frames since the element's start, from 0. */
typedef struct _JgTensorMeta {
    GstMeta meta;
    gint rows, columns, channels;
    const gchar *type;
    GBytes *data;
    guint64 frame;
} JgTensorMeta;

/* The tensor of a buffer, or null. Valid as long as the buffer. */
static inline JgTensorMeta *gst_buffer_get_jg_tensor_meta(GstBuffer *buffer)
{
    const GType api = g_type_from_name(JG_TENSOR_META_API_NAME);
    return api ? (JgTensorMeta *)gst_buffer_get_meta(buffer, api) : NULL;
}

/* Adds one to a writable buffer; takes a reference to data, and a copy of type that stays. For the element, and for tests. */
JgTensorMeta *gst_buffer_add_jg_tensor_meta(GstBuffer *buffer, gint rows, gint columns, gint channels, const gchar *type, GBytes *data,
                                            guint64 frame);

#endif
