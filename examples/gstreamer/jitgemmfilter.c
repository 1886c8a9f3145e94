/* jitgemmfilter: frames in, recoloured frames or frames with a tensor beside them out. Here is what is GStreamer's: states, caps, events,
 * queries, messages. What is multiplied is in color.c and embed.c, where the pixels and the device meet in device.c.
 *
 * A change of caps only makes buffers grow: the next frame's size is one that the library has maybe never seen, and runs at once on a
 * generic kernel. Nothing is compiled on the streaming thread but with compile-policy=wait, or where nothing was prewarmed. */
#include "jitgemmfilter.h"

#include <errno.h>
#include <pthread.h>

#include "color.h"
#include "counts.h"
#include "embed.h"
#include "messages.h"
#include "prewarm.h"
#include "settings.h"

#define FORMATS "{ RGB, BGR, RGBx, BGRx, RGBA, BGRA }"
#define ERROR_TEXT 1024 /* bytes */
#define STD_MIN 1e-4    /* of full scale, a 40th of a level */

GST_DEBUG_CATEGORY_STATIC(jgf_debug);
#define GST_CAT_DEFAULT jgf_debug

struct _GstJitgemmFilter {
    GstVideoFilter parent;

    /* Under the lock: any thread's. */
    pthread_mutex_t lock;
    jgf_settings settings;
    jgf_counts counts;
    gboolean is_changed; /* matrix, mean or std, since the streaming thread looked */

    /* Under stats_lock: the context as long as it may be asked, which may take time, and its last answer after that. */
    pthread_mutex_t stats_lock;
    jg_context *asked;
    jg_stats last_stats;

    /* From start to stop; the streaming thread's, which takes the lock before it looks at what start left. */
    jgf_settings active;
    jgf_device device;
    jgf_weights *weights; /* color: the matrix may come from it at any time; embed: until it is loaded */
    jgf_recolor recolor;
    jgf_embed embed;
    jgf_color color;      /* in use */
    double mean[3], std[3];
    jgf_pixel_format format; /* of the caps; pixel_bytes 0: none yet */
    gboolean is_first_of_size;
    guint64 caps_us; /* what set_info took, part of the first frame's time */
    jgf_prewarm prewarm;
};

G_DEFINE_TYPE(GstJitgemmFilter, gst_jitgemm_filter, GST_TYPE_VIDEO_FILTER)

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE(FORMATS)));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS(GST_VIDEO_CAPS_MAKE(FORMATS)));

static void log_line(void *user, jg_log_level level, const char *text)
{
    GstJitgemmFilter *self = user;
    if (level <= JG_LOG_ERROR) GST_ERROR_OBJECT(self, "%s", text);
    else if (level == JG_LOG_WARNING) GST_WARNING_OBJECT(self, "%s", text);
    else if (level == JG_LOG_INFO) GST_INFO_OBJECT(self, "%s", text);
    else GST_DEBUG_OBJECT(self, "%s", text);
}

static jg_log_level log_level(void)
{
    const GstDebugLevel threshold = gst_debug_category_get_threshold(jgf_debug);
    return threshold >= GST_LEVEL_DEBUG ? JG_LOG_DEBUG : threshold >= GST_LEVEL_INFO ? JG_LOG_INFO : JG_LOG_WARNING;
}

/* ------------------------------------------------------------------------------------------------------------ values of properties */

/* The matrix of the property, else that of the file, else the identity. Leaves *color alone if that is wrong. */
static gboolean read_color(GstJitgemmFilter *self, jgf_color *color, char *error)
{
    char why[ERROR_TEXT / 2];
    if (self->active.matrix && jgf_color_parse(self->active.matrix, color, why, sizeof why) != 0) {
        g_snprintf(error, ERROR_TEXT, "property matrix: %s", why);
        return FALSE;
    }
    if (self->active.matrix) return TRUE;
    if (self->weights) return jgf_color_read(self->weights, color, error, ERROR_TEXT) == 0;
    *color = (jgf_color){.matrix = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
    return TRUE;
}

static gboolean read_normalisation(GstJitgemmFilter *self, double mean[3], double std[3], char *error)
{
    for (int i = 0; i < 2; i++) {
        const char *set = i ? self->active.std : self->active.mean, *text = set ? set : "0.5 0.5 0.5";
        double *values = i ? std : mean;
        if (jgf_parse_triple(text, values) && (i == 0 || (values[0] >= STD_MIN && values[1] >= STD_MIN && values[2] >= STD_MIN))) continue;
        g_snprintf(error, ERROR_TEXT, "property %s is \"%s\"; it has to be three numbers%s, for red, green and blue", i ? "std" : "mean",
                   text, i ? " from 0.0001 on" : "");
        return FALSE;
    }
    return TRUE;
}

/* Reads what may change while playing, of the mode. Nothing is changed if a value is wrong; `error` then says which. */
static gboolean read_values(GstJitgemmFilter *self, char *error)
{
    double mean[3], std[3];
    if (self->active.mode == JGF_MODE_COLOR) return read_color(self, &self->color, error);
    if (!read_normalisation(self, mean, std, error)) return FALSE;
    memcpy(self->mean, mean, sizeof mean);
    memcpy(self->std, std, sizeof std);
    return TRUE;
}

/* Brings these values to the device, for the pixel format of the caps. */
static jg_status apply_values(GstJitgemmFilter *self)
{
    if (self->active.mode == JGF_MODE_EMBED) return jgf_embed_normalise(&self->embed, &self->device, self->mean, self->std);
    jgf_color_integers integers;
    jgf_color_quantise(&self->color, &integers);
    pthread_mutex_lock(&self->lock);
    self->counts.worst_error = MAX(integers.worst[0], MAX(integers.worst[1], integers.worst[2]));
    pthread_mutex_unlock(&self->lock);
    return jgf_recolor_set(&self->recolor, &self->device, &integers, &self->format);
}

/* Before a frame: takes over what the application changed. A wrong value is told of, and the old one stays. */
static jg_status take_changes(GstJitgemmFilter *self)
{
    char error[ERROR_TEXT];
    pthread_mutex_lock(&self->lock);
    const gboolean is_changed = self->is_changed;
    self->is_changed = FALSE;
    if (is_changed) {
        jgf_settings *to = &self->active;
        const jgf_settings *from = &self->settings;
        g_free(to->matrix), g_free(to->mean), g_free(to->std);
        to->matrix = g_strdup(from->matrix), to->mean = g_strdup(from->mean), to->std = g_strdup(from->std);
    }
    pthread_mutex_unlock(&self->lock);
    if (!is_changed) return JG_OK;
    if (read_values(self, error)) return apply_values(self);
    JGF_REPORT(self, WARNING, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS, error);
    return JG_OK;
}

/* ------------------------------------------------------------------------------------------------------------------- start and stop */

static gboolean open_weights(GstJitgemmFilter *self)
{
    char error[ERROR_TEXT];
    const gboolean is_embed = self->active.mode == JGF_MODE_EMBED;
    if (!self->active.weights || !self->active.weights[0]) {
        if (!is_embed) return TRUE;
        JGF_REPORT(self, ERROR, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS,
                   "mode=embed needs the property weights: the path of a safetensors file with a tensor [D, 3, P, P]");
        return FALSE;
    }
    self->weights = jgf_weights_open(self->active.weights, error, sizeof error);
    if (self->weights) return TRUE;
    const gint code = errno == ENOENT || errno == ENOTDIR ? GST_RESOURCE_ERROR_NOT_FOUND
                      : errno == EACCES || errno == EPERM ? GST_RESOURCE_ERROR_OPEN_READ : GST_RESOURCE_ERROR_READ;
    JGF_REPORT(self, ERROR, GST_RESOURCE_ERROR, code, error);
    return FALSE;
}

static guint32 kernel_types(const jgf_settings *settings)
{
    return JG_RESIDENT_U8 | (settings->mode == JGF_MODE_EMBED ? 1u << settings->type : 0);
}

static gboolean open_device(GstJitgemmFilter *self)
{
    jg_options options = jgf_settings_options(&self->active);
    options.resident = options.compile == JG_COMPILE_WAIT ? JG_RESIDENT_NONE : kernel_types(&self->active);
    options.log = log_line;
    options.log_user = self;
    options.log_level = log_level();
    const jg_status status = jgf_device_open(&self->device, &options);
    if (status != JG_OK) JGF_REPORT_STATUS(self, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_INIT, "jitgemm could not be started", status);
    return status == JG_OK;
}

static gboolean load_embedding(GstJitgemmFilter *self)
{
    char error[ERROR_TEXT];
    const jgf_settings *active = &self->active;
    if (active->mode != JGF_MODE_EMBED) return TRUE;
    if (jgf_embed_load(&self->embed, &self->device, self->weights, active->tensor, active->type, error, sizeof error) != 0) {
        JGF_REPORT(self, ERROR, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ, error);
        return FALSE;
    }
    g_clear_pointer(&self->weights, jgf_weights_close); /* a whole model's may be large */
    const jg_status status = apply_values(self);
    if (status != JG_OK) JGF_REPORT_STATUS(self, GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_INIT, "The device could not be prepared", status);
    return status == JG_OK;
}

static void close_all(GstJitgemmFilter *self)
{
    jgf_prewarm_stop(&self->prewarm);
    pthread_mutex_lock(&self->lock);
    self->format = (jgf_pixel_format){0};
    pthread_mutex_unlock(&self->lock);
    pthread_mutex_lock(&self->stats_lock);
    if (self->asked) jg_cache_stats(self->asked, &self->last_stats);
    self->asked = NULL;
    pthread_mutex_unlock(&self->stats_lock);
    jgf_recolor_free(&self->recolor, &self->device);
    jgf_embed_free(&self->embed, &self->device);
    jgf_device_close(&self->device);
    jgf_weights_close(self->weights);
    self->weights = NULL;
}

static gboolean start(GstBaseTransform *transform)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(transform);
    char error[ERROR_TEXT];
    pthread_mutex_lock(&self->lock);
    jgf_settings_copy(&self->active, &self->settings);
    self->is_changed = FALSE;
    pthread_mutex_unlock(&self->lock);

    if (!open_weights(self)) return FALSE;
    if (!read_values(self, error)) {
        const gboolean is_file = self->weights && !self->active.matrix && self->active.mode == JGF_MODE_COLOR;
        JGF_REPORT(self, ERROR, GST_RESOURCE_ERROR, is_file ? GST_RESOURCE_ERROR_READ : GST_RESOURCE_ERROR_SETTINGS, error);
        close_all(self);
        return FALSE;
    }
    if (!open_device(self) || !load_embedding(self)) {
        close_all(self);
        return FALSE;
    }
    pthread_mutex_lock(&self->stats_lock);
    self->asked = self->device.context;
    pthread_mutex_unlock(&self->stats_lock);
    pthread_mutex_lock(&self->lock);
    jgf_counts_reset(&self->counts);
    pthread_mutex_unlock(&self->lock);
    /* A frame with a tensor beside it goes through as it is. */
    gst_base_transform_set_passthrough(transform, self->active.mode == JGF_MODE_EMBED);
    if (self->active.prewarm && self->active.compile == JG_COMPILE_BACKGROUND && !self->device.is_host)
        jgf_prewarm_start(&self->prewarm, GST_ELEMENT(self), self->device.context, kernel_types(&self->active));
    return TRUE;
}

static gboolean stop(GstBaseTransform *transform)
{
    close_all(GST_JITGEMM_FILTER(transform));
    return TRUE;
}

/* Before the pads are stopped, which waits for the frame that waits for kernels. */
static GstStateChangeReturn change_state(GstElement *element, GstStateChange transition)
{
    if (transition == GST_STATE_CHANGE_PAUSED_TO_READY) jgf_prewarm_cancel(&GST_JITGEMM_FILTER(element)->prewarm);
    return GST_ELEMENT_CLASS(gst_jitgemm_filter_parent_class)->change_state(element, transition);
}

/* ------------------------------------------------------------------------------------------------------------------------ new sizes */

static jgf_pixel_format pixel_format(const GstVideoInfo *info)
{
    return (jgf_pixel_format){.pixel_bytes = GST_VIDEO_INFO_COMP_PSTRIDE(info, 0),
                              .r = GST_VIDEO_INFO_COMP_POFFSET(info, GST_VIDEO_COMP_R),
                              .g = GST_VIDEO_INFO_COMP_POFFSET(info, GST_VIDEO_COMP_G),
                              .b = GST_VIDEO_INFO_COMP_POFFSET(info, GST_VIDEO_COMP_B)};
}

static jg_status prepare_color(GstJitgemmFilter *self, const GstVideoInfo *info, gboolean is_new_format)
{
    const jgf_plane plane = {.stride = GST_VIDEO_INFO_PLANE_STRIDE(info, 0), .lines = GST_VIDEO_INFO_HEIGHT(info),
                             .line_bytes = (gint64)GST_VIDEO_INFO_WIDTH(info) * self->format.pixel_bytes};
    const jg_status status = is_new_format ? apply_values(self) : JG_OK;
    return status == JG_OK ? jgf_recolor_reserve(&self->recolor, &self->device, &plane) : status;
}

static jg_status prepare_embedding(GstJitgemmFilter *self, const GstVideoInfo *info, jgf_grid grid, gboolean is_new_format)
{
    const jg_status status = is_new_format ? jgf_embed_format(&self->embed, &self->device, &self->format) : JG_OK;
    return status == JG_OK ? jgf_embed_reserve(&self->embed, &self->device, grid, GST_VIDEO_INFO_PLANE_STRIDE(info, 0)) : status;
}

static gboolean set_info(GstVideoFilter *filter, GstCaps *in_caps, GstVideoInfo *in, GstCaps *out_caps, GstVideoInfo *out)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(filter);
    const gint64 begin = g_get_monotonic_time();
    const jgf_pixel_format format = pixel_format(in);
    jg_status status;
    (void)in_caps, (void)out_caps, (void)out;
    pthread_mutex_lock(&self->lock);
    const gboolean is_embed = self->active.mode == JGF_MODE_EMBED, is_first = self->format.pixel_bytes == 0;
    const gboolean is_new_format = memcmp(&format, &self->format, sizeof format) != 0;
    self->format = format;
    pthread_mutex_unlock(&self->lock);
    if (is_embed) {
        const jgf_grid grid = jgf_embed_grid(&self->embed, GST_VIDEO_INFO_WIDTH(in), GST_VIDEO_INFO_HEIGHT(in));
        if (grid.rows < 1 || grid.columns < 1) {
            GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("A frame of %dx%d pixels is smaller than a patch of %dx%d",
                GST_VIDEO_INFO_WIDTH(in), GST_VIDEO_INFO_HEIGHT(in), self->embed.patch, self->embed.patch),
                ("weights: %s", self->active.weights));
            self->format = (jgf_pixel_format){0};
            return FALSE;
        }
        status = prepare_embedding(self, in, grid, is_new_format);
    } else {
        status = prepare_color(self, in, is_new_format);
    }
    if (status != JG_OK) {
        JGF_REPORT_STATUS(self, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED, "No room on the device for frames of this size", status);
        self->format = (jgf_pixel_format){0};
        return FALSE;
    }
    pthread_mutex_lock(&self->lock);
    if (!is_first) self->counts.renegotiations++;
    self->is_first_of_size = TRUE;
    self->caps_us = (guint64)(g_get_monotonic_time() - begin);
    pthread_mutex_unlock(&self->lock);
    return TRUE;
}

/* --------------------------------------------------------------------------------------------------------------------------- frames */

/* FALSE, with an error posted, for lines that run backwards or overlap, which no element in use makes. */
static gboolean plane_of(GstJitgemmFilter *self, const GstVideoFrame *frame, jgf_plane *plane)
{
    *plane = (jgf_plane){.data = GST_VIDEO_FRAME_PLANE_DATA(frame, 0), .stride = GST_VIDEO_FRAME_PLANE_STRIDE(frame, 0),
                         .lines = GST_VIDEO_FRAME_HEIGHT(frame),
                         .line_bytes = (gint64)GST_VIDEO_FRAME_WIDTH(frame) * GST_VIDEO_FRAME_COMP_PSTRIDE(frame, 0)};
    if (plane->stride >= plane->line_bytes) return TRUE;
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("A frame's lines of %d bytes are only %d bytes apart", (int)plane->line_bytes,
                      (int)plane->stride), (NULL));
    return FALSE;
}

/* After a frame's products: waits, lets new kernels in, and counts. */
static GstFlowReturn finish_frame(GstJitgemmFilter *self, jg_status status, gint64 begin)
{
    jg_status poll;
    if (status == JG_OK) status = jgf_device_finish(&self->device, &poll);
    if (status != JG_OK) {
        JGF_REPORT_STATUS(self, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED, "A frame could not be computed", status);
        return GST_FLOW_ERROR;
    }
    if (poll != JG_OK) GST_WARNING_OBJECT(self, "a kernel could not be put in place: %s", jg_last_error());
    const guint64 us = (guint64)(g_get_monotonic_time() - begin) + self->caps_us;
    pthread_mutex_lock(&self->lock);
    const gboolean is_slower = jgf_counts_frame(&self->counts, us, self->is_first_of_size);
    self->is_first_of_size = FALSE;
    self->caps_us = 0;
    pthread_mutex_unlock(&self->lock);
    if (is_slower) gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
    return GST_FLOW_OK;
}

static GstFlowReturn transform_frame(GstVideoFilter *filter, GstVideoFrame *in, GstVideoFrame *out)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(filter);
    jgf_plane from, to;
    if (!plane_of(self, in, &from) || !plane_of(self, out, &to)) return GST_FLOW_ERROR;
    if (!jgf_prewarm_wait(&self->prewarm)) return GST_FLOW_FLUSHING;
    const gint64 begin = g_get_monotonic_time();
    jg_status status = take_changes(self);
    if (status == JG_OK) status = jgf_recolor_run(&self->recolor, &self->device, &from, &to);
    return finish_frame(self, status, begin);
}

static const char *type_name(jg_type type)
{
    return type == JG_F16 ? "f16" : type == JG_BF16 ? "bf16" : "f32";
}

static void attach_tensor(GstJitgemmFilter *self, GstBuffer *buffer, jgf_grid grid, GBytes *data)
{
    const JgTensorMeta *tensor = gst_buffer_add_jg_tensor_meta(buffer, (gint)grid.rows, (gint)grid.columns, (gint)self->embed.channels,
                                                               type_name(self->embed.type), data, self->counts.frames);
    if (self->active.post_messages) jgf_post_tensor(GST_ELEMENT(self), &GST_BASE_TRANSFORM(self)->segment, buffer, tensor);
}

static GstFlowReturn transform_frame_ip(GstVideoFilter *filter, GstVideoFrame *frame)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(filter);
    const jgf_grid grid = jgf_embed_grid(&self->embed, GST_VIDEO_FRAME_WIDTH(frame), GST_VIDEO_FRAME_HEIGHT(frame));
    const size_t bytes = jgf_embed_bytes(&self->embed, grid);
    jgf_plane plane;
    if (!plane_of(self, frame, &plane)) return GST_FLOW_ERROR;
    if (!jgf_prewarm_wait(&self->prewarm)) return GST_FLOW_FLUSHING;
    const gint64 begin = g_get_monotonic_time();
    GBytes *data = g_bytes_new_take(g_malloc(bytes), bytes);
    jg_status status = take_changes(self);
    if (status == JG_OK)
        status = jgf_embed_run(&self->embed, &self->device, plane.data, plane.stride, grid, (void *)g_bytes_get_data(data, NULL));
    if (status == JG_OK) attach_tensor(self, frame->buffer, grid, data);
    g_bytes_unref(data);
    return finish_frame(self, status, begin);
}

/* For a tensor beside it a buffer has to be writable, not its pixels, which are shared. */
static GstFlowReturn prepare_output_buffer(GstBaseTransform *transform, GstBuffer *in, GstBuffer **out)
{
    if (GST_JITGEMM_FILTER(transform)->active.mode != JGF_MODE_EMBED)
        return GST_BASE_TRANSFORM_CLASS(gst_jitgemm_filter_parent_class)->prepare_output_buffer(transform, in, out);
    *out = gst_buffer_is_writable(in) ? in : gst_buffer_copy(in);
    return *out ? GST_FLOW_OK : GST_FLOW_ERROR;
}

/* The base class drops frames that are late already, and tells of it in a QoS message. */
static GstFlowReturn submit_input_buffer(GstBaseTransform *transform, gboolean is_discont, GstBuffer *buffer)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(transform);
    GstBaseTransformClass *parent = GST_BASE_TRANSFORM_CLASS(gst_jitgemm_filter_parent_class);
    const GstFlowReturn flow = parent->submit_input_buffer(transform, is_discont, buffer);
    if (flow != GST_BASE_TRANSFORM_FLOW_DROPPED) return flow;
    pthread_mutex_lock(&self->lock);
    self->counts.dropped++;
    pthread_mutex_unlock(&self->lock);
    return flow;
}

/* ---------------------------------------------------------------------------------------------------------------- events and queries */

static gboolean sink_event(GstBaseTransform *transform, GstEvent *event)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(transform);
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_START) jgf_prewarm_set_flushing(&self->prewarm, TRUE);
    if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) jgf_prewarm_set_flushing(&self->prewarm, FALSE);
    return GST_BASE_TRANSFORM_CLASS(gst_jitgemm_filter_parent_class)->sink_event(transform, event);
}

/* A live source's frames arrive downstream as much later as the longest frame took. What is not live waits for nobody. */
static gboolean answer_query(GstBaseTransform *transform, GstPadDirection direction, GstQuery *query)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(transform);
    gboolean is_live;
    GstClockTime least, most;
    const gboolean is_answered = GST_BASE_TRANSFORM_CLASS(gst_jitgemm_filter_parent_class)->query(transform, direction, query);
    if (!is_answered || direction != GST_PAD_SRC || GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return is_answered;
    gst_query_parse_latency(query, &is_live, &least, &most);
    if (!is_live) return TRUE;
    pthread_mutex_lock(&self->lock);
    const GstClockTime own = self->counts.latency_ms * GST_MSECOND;
    pthread_mutex_unlock(&self->lock);
    gst_query_set_latency(query, TRUE, least + own, GST_CLOCK_TIME_IS_VALID(most) ? most + own : most);
    return TRUE;
}

/* ----------------------------------------------------------------------------------------------------------------------- the object */

static void set_property(GObject *object, guint property, const GValue *value, GParamSpec *spec)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(object);
    pthread_mutex_lock(&self->lock);
    const gboolean is_known = jgf_settings_set(&self->settings, property, value);
    self->is_changed |= property == JGF_PROPERTY_MATRIX || property == JGF_PROPERTY_MEAN || property == JGF_PROPERTY_STD;
    pthread_mutex_unlock(&self->lock);
    if (!is_known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
}

static void get_property(GObject *object, guint property, GValue *value, GParamSpec *spec)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(object);
    if (property == JGF_PROPERTY_STATS) {
        jg_stats stats;
        pthread_mutex_lock(&self->stats_lock);
        if (!self->asked || jg_cache_stats(self->asked, &stats) != JG_OK) stats = self->last_stats;
        pthread_mutex_unlock(&self->stats_lock);
        pthread_mutex_lock(&self->lock);
        g_value_take_boxed(value, jgf_counts_structure(&self->counts, &stats));
        pthread_mutex_unlock(&self->lock);
        return;
    }
    pthread_mutex_lock(&self->lock);
    const gboolean is_known = jgf_settings_get(&self->settings, property, value);
    pthread_mutex_unlock(&self->lock);
    if (!is_known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, spec);
}

static void finalize(GObject *object)
{
    GstJitgemmFilter *self = GST_JITGEMM_FILTER(object);
    jgf_prewarm_clear(&self->prewarm);
    jgf_settings_clear(&self->settings);
    jgf_settings_clear(&self->active);
    pthread_mutex_destroy(&self->lock);
    pthread_mutex_destroy(&self->stats_lock);
    G_OBJECT_CLASS(gst_jitgemm_filter_parent_class)->finalize(object);
}

static void gst_jitgemm_filter_init(GstJitgemmFilter *self)
{
    jgf_settings_init(&self->settings);
    jgf_settings_init(&self->active);
    jgf_counts_reset(&self->counts);
    jgf_prewarm_init(&self->prewarm);
    pthread_mutex_init(&self->lock, NULL);
    pthread_mutex_init(&self->stats_lock, NULL);
    g_strlcpy(self->last_stats.place, "none", sizeof self->last_stats.place);
}

static void gst_jitgemm_filter_class_init(GstJitgemmFilterClass *class)
{
    GObjectClass *object = G_OBJECT_CLASS(class);
    GstElementClass *element = GST_ELEMENT_CLASS(class);
    GstBaseTransformClass *transform = GST_BASE_TRANSFORM_CLASS(class);
    GstVideoFilterClass *filter = GST_VIDEO_FILTER_CLASS(class);
    GST_DEBUG_CATEGORY_INIT(jgf_debug, "jitgemmfilter", 0, "matrix products on video frames");

    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    jgf_settings_install(object);
    gst_element_class_set_static_metadata(element, "jitgemm video filter", "Filter/Effect/Video",
        "Colour matrix on every pixel, or the patch embedding of each frame: matrix products by kernels that are generated at run time",
        "The jitgemm authors");
    gst_element_class_add_static_pad_template(element, &sink_template);
    gst_element_class_add_static_pad_template(element, &src_template);
    element->change_state = change_state;

    transform->start = start;
    transform->stop = stop;
    transform->sink_event = sink_event;
    transform->query = answer_query;
    transform->submit_input_buffer = submit_input_buffer;
    transform->prepare_output_buffer = prepare_output_buffer;
    transform->transform_ip_on_passthrough = TRUE;
    filter->set_info = set_info;
    filter->transform_frame = transform_frame;
    filter->transform_frame_ip = transform_frame_ip;
}
