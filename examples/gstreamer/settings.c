/* Properties: see settings.h. Two tables, one of those with numbers for values and one of texts, so that each is named once. */
#include "settings.h"

#include <math.h>

static const GEnumValue modes[] = {
    {JGF_MODE_COLOR, "Colour matrix on every pixel", "color"},
    {JGF_MODE_EMBED, "Patch embedding, as a tensor beside the frame", "embed"},
    {0, NULL, NULL}};
static const GEnumValue types[] = {
    {JG_F16, "IEEE half precision", "f16"}, {JG_BF16, "bfloat16", "bf16"}, {JG_F32, "IEEE single precision", "f32"}, {0, NULL, NULL}};
static const GEnumValue devices[] = {
    {JGF_DEVICE_AUTO, "The CUDA device if there is one, else the cpu", "auto"},
    {JGF_DEVICE_CUDA, "The CUDA device", "cuda"},
    {JGF_DEVICE_CPU, "Plain C on the host: slow, needs nothing", "cpu"},
    {JGF_DEVICE_SWGPU, "The software GPU: runs the kernels' PTX on the host and checks it, for tests", "swgpu"},
    {0, NULL, NULL}};
static const GEnumValue policies[] = {
    {JG_COMPILE_BACKGROUND, "Generic kernels serve a new size, its own is made meanwhile", "background"},
    {JG_COMPILE_WAIT, "The first frame of a size waits for its kernel", "wait"},
    {JG_COMPILE_NEVER, "Sealed: only what the cache and factory files have", "never"},
    {0, NULL, NULL}};

/* Values with few choices. `offset`: of an int-sized member of jgf_settings. values null: a boolean. */
typedef struct choice_property {
    jgf_property id;
    const char *name, *nick, *blurb, *type_name;
    const GEnumValue *values;
    int fallback;
    size_t offset;
} choice_property;

typedef struct text_property {
    jgf_property id;
    const char *name, *nick, *blurb;
    GParamFlags mutability;
    size_t offset;
} text_property;

static const choice_property choices[] = {
    {JGF_PROPERTY_MODE, "mode", "Mode", "What is done with each frame", "GstJitgemmMode", modes, JGF_MODE_COLOR,
     G_STRUCT_OFFSET(jgf_settings, mode)},
    {JGF_PROPERTY_TYPE, "type", "Type", "embed: type of the arithmetic's operands and of the tensor; sums are in float32",
     "GstJitgemmType", types, JG_F16, G_STRUCT_OFFSET(jgf_settings, type)},
    {JGF_PROPERTY_DEVICE, "device", "Device", "Where products are computed", "GstJitgemmDevice", devices, JGF_DEVICE_AUTO,
     G_STRUCT_OFFSET(jgf_settings, device)},
    {JGF_PROPERTY_COMPILE_POLICY, "compile-policy", "Compile policy", "What a frame of a size without a kernel of its own may do",
     "GstJitgemmCompilePolicy", policies, JG_COMPILE_BACKGROUND, G_STRUCT_OFFSET(jgf_settings, compile)},
    {JGF_PROPERTY_PREWARM, "prewarm", "Prewarm",
     "compile-policy=background: make what is missing of the kernels that serve every size before the first frame; "
     "progress messages named \"prewarm\" tell of it", NULL, NULL, TRUE, G_STRUCT_OFFSET(jgf_settings, prewarm)},
    {JGF_PROPERTY_POST_MESSAGES, "post-messages", "Post messages",
     "embed: also post each tensor as an element message \"jitgemm-tensor\"", NULL, NULL, FALSE,
     G_STRUCT_OFFSET(jgf_settings, post_messages)},
};

static const text_property texts[] = {
    {JGF_PROPERTY_MATRIX, "matrix", "Matrix",
     "color: 9 or 12 numbers, rows first (red, green, blue), with spaces or commas between them: 3 coefficients, and maybe an offset in "
     "levels of 0 to 255, for each output. null: that of the weights, else the identity. While playing it changes with the next frame",
     GST_PARAM_MUTABLE_PLAYING, G_STRUCT_OFFSET(jgf_settings, matrix)},
    {JGF_PROPERTY_WEIGHTS, "weights", "Weights",
     "Path of a safetensors file. embed: needed, with a weight [D, 3, P, P]; color: may give the matrix, [3, 3] or [3, 4]",
     GST_PARAM_MUTABLE_READY, G_STRUCT_OFFSET(jgf_settings, weights)},
    {JGF_PROPERTY_TENSOR, "tensor", "Tensor",
     "embed: name of the weight in the file, or its end after a dot. null: the only one of 4 dimensions", GST_PARAM_MUTABLE_READY,
     G_STRUCT_OFFSET(jgf_settings, tensor)},
    {JGF_PROPERTY_MEAN, "mean", "Mean",
     "embed: mean of red, green and blue, 3 numbers, in parts of full scale (0 to 1); pixels become (x / 255 - mean) / std. null: 0.5 each."
     " While playing it changes with the next frame",
     GST_PARAM_MUTABLE_PLAYING, G_STRUCT_OFFSET(jgf_settings, mean)},
    {JGF_PROPERTY_STD, "std", "Standard deviation",
     "embed: standard deviation of red, green and blue, 3 numbers, 0.0001 or more. null: 0.5 each. "
     "While playing it changes with the next frame",
     GST_PARAM_MUTABLE_PLAYING, G_STRUCT_OFFSET(jgf_settings, std)},
    {JGF_PROPERTY_CACHE, "cache", "Cache",
     "Path of the kernel cache file. null: $JITGEMM_CACHE, else ~/.cache/jitgemm/kernels.db; empty: keep kernels in memory only",
     GST_PARAM_MUTABLE_READY, G_STRUCT_OFFSET(jgf_settings, cache)},
    {JGF_PROPERTY_FACTORY, "factory", "Factory",
     "Path of a read-only cache file below it. null: $JITGEMM_FACTORY, else that of the installed library; empty: none",
     GST_PARAM_MUTABLE_READY, G_STRUCT_OFFSET(jgf_settings, factory)},
};

static int *choice_at(const jgf_settings *settings, size_t offset)
{
    return (int *)G_STRUCT_MEMBER_P(settings, offset);
}

static char **text_at(const jgf_settings *settings, size_t offset)
{
    return (char **)G_STRUCT_MEMBER_P(settings, offset);
}

static GType enum_type(const choice_property *p)
{
    const GType type = g_enum_register_static(p->type_name, p->values);
#if GST_CHECK_VERSION(1, 18, 0)
    gst_type_mark_as_plugin_api(type, (GstPluginAPIFlags)0);
#endif
    return type;
}

/* Called once, by the class's initialisation. */
void jgf_settings_install(GObjectClass *class)
{
    const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
    for (size_t i = 0; i < G_N_ELEMENTS(choices); i++) {
        const choice_property *p = &choices[i];
        g_object_class_install_property(class, p->id,
            p->values ? g_param_spec_enum(p->name, p->nick, p->blurb, enum_type(p), p->fallback, flags | GST_PARAM_MUTABLE_READY)
                      : g_param_spec_boolean(p->name, p->nick, p->blurb, p->fallback, flags | GST_PARAM_MUTABLE_READY));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        const text_property *p = &texts[i];
        g_object_class_install_property(class, p->id, g_param_spec_string(p->name, p->nick, p->blurb, NULL, flags | p->mutability));
    }
    g_object_class_install_property(class, JGF_PROPERTY_STATS,
        g_param_spec_boxed("stats", "Statistics",
            "A structure \"jitgemmfilter-stats\" with counts since the start: frames, dropped, renegotiations, launches-own, "
            "launches-generic, waits, swaps, compiles, frame-time-last-us, frame-time-mean-us, frame-time-max-us, first-sight-max-us "
            "(of the frame that followed a change of size), color-worst-error (levels), latency-us, "
            "device (\"none\" before the first start)",
            GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

void jgf_settings_init(jgf_settings *settings)
{
    *settings = (jgf_settings){0};
    for (size_t i = 0; i < G_N_ELEMENTS(choices); i++) *choice_at(settings, choices[i].offset) = choices[i].fallback;
}

void jgf_settings_clear(jgf_settings *settings)
{
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) g_clear_pointer(text_at(settings, texts[i].offset), g_free);
}

void jgf_settings_copy(jgf_settings *to, const jgf_settings *from)
{
    jgf_settings_clear(to);
    *to = *from;
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        *text_at(to, texts[i].offset) = g_strdup(*text_at(from, texts[i].offset));
}

gboolean jgf_settings_set(jgf_settings *settings, guint property, const GValue *value)
{
    for (size_t i = 0; i < G_N_ELEMENTS(choices); i++) {
        if (choices[i].id != property) continue;
        *choice_at(settings, choices[i].offset) = choices[i].values ? g_value_get_enum(value) : g_value_get_boolean(value);
        return TRUE;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (texts[i].id != property) continue;
        char **text = text_at(settings, texts[i].offset);
        g_free(*text);
        *text = g_value_dup_string(value);
        return TRUE;
    }
    return FALSE;
}

gboolean jgf_settings_get(const jgf_settings *settings, guint property, GValue *value)
{
    for (size_t i = 0; i < G_N_ELEMENTS(choices); i++) {
        if (choices[i].id != property) continue;
        if (choices[i].values) g_value_set_enum(value, *choice_at(settings, choices[i].offset));
        else g_value_set_boolean(value, *choice_at(settings, choices[i].offset));
        return TRUE;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (texts[i].id != property) continue;
        g_value_set_string(value, *text_at(settings, texts[i].offset));
        return TRUE;
    }
    return FALSE;
}

gboolean jgf_parse_triple(const char *text, double values[3])
{
    for (int i = 0; i < 3; i++) {
        char *end;
        text += strspn(text, i ? " \t\n," : " \t\n");
        values[i] = g_ascii_strtod(text, &end);
        if (end == text || !isfinite(values[i]) || (*end && !strchr(" \t\n,", *end))) return FALSE;
        text = end;
    }
    return text[strspn(text, " \t\n")] == 0;
}

jg_options jgf_settings_options(const jgf_settings *settings)
{
    static const jg_device contexts[] = {[JGF_DEVICE_AUTO] = JG_DEVICE_AUTO, [JGF_DEVICE_CUDA] = JG_DEVICE_CUDA,
                                         [JGF_DEVICE_CPU] = JG_DEVICE_CPU, [JGF_DEVICE_SWGPU] = JG_DEVICE_CUDA};
    return (jg_options){.device = contexts[settings->device], .compile = settings->compile, .cache_path = settings->cache,
                        .factory_path = settings->factory, .driver_path = settings->device == JGF_DEVICE_SWGPU ? "swgpu" : NULL};
}
