/* Statistics: see counts.h. */
#include "counts.h"

void jgf_counts_reset(jgf_counts *counts)
{
    *counts = (jgf_counts){.latency_ms = 1};
}

gboolean jgf_counts_frame(jgf_counts *counts, guint64 us, gboolean is_first_of_size)
{
    const guint64 ms = (us + 999) / 1000;
    counts->frames++;
    counts->last_us = us;
    counts->total_us += us;
    counts->max_us = MAX(counts->max_us, us);
    if (is_first_of_size) counts->first_sight_max_us = MAX(counts->first_sight_max_us, us);
    if (ms <= counts->latency_ms) return FALSE;
    counts->latency_ms = ms;
    return TRUE;
}

GstStructure *jgf_counts_structure(const jgf_counts *counts, const jg_stats *stats)
{
    const guint64 mean = counts->frames ? counts->total_us / counts->frames : 0;
    return gst_structure_new("jitgemmfilter-stats",
        "frames", G_TYPE_UINT64, counts->frames, "dropped", G_TYPE_UINT64, counts->dropped,
        "renegotiations", G_TYPE_UINT64, counts->renegotiations,
        "launches-own", G_TYPE_UINT64, (guint64)stats->launches_own, "launches-generic", G_TYPE_UINT64, (guint64)stats->launches_generic,
        "waits", G_TYPE_UINT64, (guint64)stats->waits, "swaps", G_TYPE_UINT64, (guint64)stats->swaps,
        "compiles", G_TYPE_UINT64, (guint64)stats->compiles,
        "frame-time-last-us", G_TYPE_UINT64, counts->last_us, "frame-time-mean-us", G_TYPE_UINT64, mean,
        "frame-time-max-us", G_TYPE_UINT64, counts->max_us, "first-sight-max-us", G_TYPE_UINT64, counts->first_sight_max_us,
        "color-worst-error", G_TYPE_DOUBLE, counts->worst_error, "latency-us", G_TYPE_UINT64, counts->latency_ms * 1000,
        "device", G_TYPE_STRING, stats->place[0] ? stats->place : "cpu", NULL);
}
