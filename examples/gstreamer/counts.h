/* What the element counts, and what its property `stats` says. */
#ifndef JGF_COUNTS_H
#define JGF_COUNTS_H

#include <gst/gst.h>

#include "jitgemm.h"

/* Times in µs, since the element's start. Whoever shares one between threads locks it. */
typedef struct jgf_counts {
    guint64 frames, dropped, renegotiations;
    guint64 last_us, total_us, max_us;
    guint64 first_sight_max_us;
    guint64 latency_ms;  /* told in latency queries: the longest frame time so far, rounded up, at least 1 */
    double worst_error;  /* of the colour matrix, levels */
} jgf_counts;

void jgf_counts_reset(jgf_counts *counts);

/* Adds a frame. Returns TRUE if the latency grew by it. */
gboolean jgf_counts_frame(jgf_counts *counts, guint64 us, gboolean is_first_of_size);

/* The structure "jitgemmfilter-stats", the caller's. `stats`: the library's; before it has any, zero but for place, "none". */
GstStructure *jgf_counts_structure(const jgf_counts *counts, const jg_stats *stats);

#endif
