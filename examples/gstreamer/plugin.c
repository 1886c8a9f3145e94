/* The plugin that GStreamer loads: one element. */
#include "jitgemm.h"
#include "jitgemmfilter.h"

#define PACKAGE "jitgemm"

static gboolean plugin_init(GstPlugin *plugin)
{
    return gst_element_register(plugin, "jitgemmfilter", GST_RANK_NONE, GST_TYPE_JITGEMM_FILTER);
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, jitgemm, "Matrix products on video frames, by kernels generated at run time",
                  plugin_init, JG_VERSION_STRING, "MIT/X11", "jitgemm", "Unknown package origin")
