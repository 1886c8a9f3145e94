/* The properties of jitgemmfilter: what they are called, what they may be, and their values as the application set them.
 *
 * A jgf_settings is plain data; whoever shares one between threads locks it. */
#ifndef JGF_SETTINGS_H
#define JGF_SETTINGS_H

#include <gst/gst.h>

#include "jitgemm.h"

typedef enum jgf_mode { JGF_MODE_COLOR, JGF_MODE_EMBED } jgf_mode;
typedef enum jgf_choice { JGF_DEVICE_AUTO, JGF_DEVICE_CUDA, JGF_DEVICE_CPU, JGF_DEVICE_SWGPU } jgf_choice;

typedef struct jgf_settings {
    jgf_mode mode;
    jg_type type;
    jgf_choice device;
    jg_compile compile;
    gboolean prewarm, post_messages;
    char *matrix, *weights, *tensor, *mean, *std, *cache, *factory; /* owned; null: the default */
} jgf_settings;

typedef enum jgf_property {
    JGF_PROPERTY_MODE = 1,
    JGF_PROPERTY_MATRIX,
    JGF_PROPERTY_WEIGHTS,
    JGF_PROPERTY_TENSOR,
    JGF_PROPERTY_TYPE,
    JGF_PROPERTY_MEAN,
    JGF_PROPERTY_STD,
    JGF_PROPERTY_DEVICE,
    JGF_PROPERTY_CACHE,
    JGF_PROPERTY_FACTORY,
    JGF_PROPERTY_COMPILE_POLICY,
    JGF_PROPERTY_PREWARM,
    JGF_PROPERTY_POST_MESSAGES,
    JGF_PROPERTY_STATS
} jgf_property;

/* Installs all of them, JGF_PROPERTY_STATS too, whose value is not here. */
void jgf_settings_install(GObjectClass *class);

void jgf_settings_init(jgf_settings *settings);
void jgf_settings_clear(jgf_settings *settings);
void jgf_settings_copy(jgf_settings *to, const jgf_settings *from);

/* FALSE for a property that is not among the settings. */
gboolean jgf_settings_set(jgf_settings *settings, guint property, const GValue *value);
gboolean jgf_settings_get(const jgf_settings *settings, guint property, GValue *value);

/* Exactly three numbers, separated by spaces or commas, whatever the locale. FALSE if the text is anything else. */
gboolean jgf_parse_triple(const char *text, double values[3]);

/* The options of jg_open that follow from the settings; pointers are the settings'. */
jg_options jgf_settings_options(const jgf_settings *settings);

#endif
