/* The meta of a tensor: see tensor_meta.h. */
#include "tensor_meta.h"

static gboolean init(GstMeta *meta, gpointer parameters, GstBuffer *buffer)
{
    JgTensorMeta *tensor = (JgTensorMeta *)meta;
    (void)parameters, (void)buffer;
    tensor->rows = tensor->columns = tensor->channels = 0;
    tensor->type = "";
    tensor->data = NULL;
    tensor->frame = 0;
    return TRUE;
}

static void clear(GstMeta *meta, GstBuffer *buffer)
{
    JgTensorMeta *tensor = (JgTensorMeta *)meta;
    (void)buffer;
    g_clear_pointer(&tensor->data, g_bytes_unref);
}

/* What is copied from the whole has the same tensor, a part has not. */
static gboolean transform(GstBuffer *to, GstMeta *meta, GstBuffer *from, GQuark type, gpointer data)
{
    const JgTensorMeta *tensor = (const JgTensorMeta *)meta;
    (void)from;
    if (!GST_META_TRANSFORM_IS_COPY(type) || ((const GstMetaTransformCopy *)data)->region) return FALSE;
    return gst_buffer_add_jg_tensor_meta(to, tensor->rows, tensor->columns, tensor->channels, tensor->type, tensor->data,
                                         tensor->frame) != NULL;
}

/* Another copy of this file in the process, as an application's, may have been there before. */
static gpointer register_meta(gpointer unused)
{
    static const gchar *tags[] = {NULL};
    const GstMetaInfo *info = gst_meta_get_info(JG_TENSOR_META_NAME);
    GType api = g_type_from_name(JG_TENSOR_META_API_NAME);
    (void)unused;
    if (info) return (gpointer)info;
    if (!api) api = gst_meta_api_type_register(JG_TENSOR_META_API_NAME, tags);
    return (gpointer)gst_meta_register(api, JG_TENSOR_META_NAME, sizeof(JgTensorMeta), init, clear, transform);
}

JgTensorMeta *gst_buffer_add_jg_tensor_meta(GstBuffer *buffer, gint rows, gint columns, gint channels, const gchar *type, GBytes *data,
                                            guint64 frame)
{
    static GOnce once = G_ONCE_INIT;
    const GstMetaInfo *info = g_once(&once, register_meta, NULL);
    JgTensorMeta *tensor = info ? (JgTensorMeta *)gst_buffer_add_meta(buffer, info, NULL) : NULL;
    if (!tensor) return NULL;
    tensor->rows = rows;
    tensor->columns = columns;
    tensor->channels = channels;
    tensor->type = g_intern_string(type);
    tensor->data = g_bytes_ref(data);
    tensor->frame = frame;
    return tensor;
}
