/* The GStreamer element jitgemmfilter: README.md. */
#ifndef JGF_JITGEMMFILTER_H
#define JGF_JITGEMMFILTER_H

#include <gst/video/gstvideofilter.h>

G_BEGIN_DECLS
#define GST_TYPE_JITGEMM_FILTER (gst_jitgemm_filter_get_type())
G_DECLARE_FINAL_TYPE(GstJitgemmFilter, gst_jitgemm_filter, GST, JITGEMM_FILTER, GstVideoFilter)
G_END_DECLS

#endif
