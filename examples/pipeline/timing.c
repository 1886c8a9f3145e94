/* See timing.h. */
#include "timing.h"

#include "common.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double percentile(double *values, int64_t count, double percent)
{
    if (count == 0) return NAN;
    qsort(values, (size_t)count, sizeof *values, compare);
    const int64_t rank = (int64_t)ceil(percent / 100 * (double)count);
    return values[rank < 1 ? 0 : rank - 1];
}

/* Counts one frame that was run. */
static void add(run_summary *s, const run_record *r, const frame_record *f, double *first_wall_ms)
{
    if (s->frames++ == 0) {
        s->first_ms = f->time_ms;
        s->first_calls_us = f->calls_us;
        *first_wall_ms = f->wall_ms;
    }
    if (f->own != s->own) {
        s->own_after_ms = f->wall_ms - *first_wall_ms;
        s->generic = s->frames - 1;
    }
    s->own = f->own;
    s->over_budget += r->budget_ms > 0 && f->time_ms > r->budget_ms;
    s->max_ms = fmax(s->max_ms, f->time_ms);
    s->poll_max_ms = fmax(s->poll_max_ms, f->poll_ms);
}

/* Of a size. */
static int64_t count_generic(const run_record *r, int size)
{
    const run_summary s = run_summarise(r, size);
    return s.generic;
}

run_summary run_summarise(const run_record *r, int size)
{
    run_summary s = {.first_ms = NAN, .first_calls_us = NAN, .max_ms = NAN, .poll_max_ms = NAN};
    double *times = allocate((size_t)r->count, sizeof *times), first_wall_ms = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const frame_record *f = &r->frames[i];
        if (size >= 0 && f->size != size) continue;
        s.dropped += f->is_dropped;
        if (f->is_dropped) continue;
        times[s.frames] = f->time_ms;
        add(&s, r, f, &first_wall_ms);
    }
    s.p50_ms = percentile(times, s.frames, 50);
    s.p99_ms = percentile(times, s.frames, 99);
    free(times);
    if (!s.own) s.generic = s.frames;
    if (size >= 0) return s;
    s.generic = 0;
    for (int i = 0; i < r->size_count; i++) s.generic += count_generic(r, i);
    return s;
}

static void print_size(FILE *out, const run_record *r, int size)
{
    char name[32], after[32] = "-";
    const grid *g = &r->sizes[size];
    const run_summary s = run_summarise(r, size);
    if (s.frames + s.dropped == 0) return;
    snprintf(name, sizeof name, "%dx%d", g->width, g->height);
    if (s.own) snprintf(after, sizeof after, "%.0f", s.own_after_ms);
    fprintf(out, "%-10s %6d %6lld %9.3f %8.0f %8.3f %8.3f %8.3f %8lld %6lld %5d %9s\n", name, g->tokens, (long long)s.frames,
            s.first_ms, s.first_calls_us, s.p50_ms, s.p99_ms, s.max_ms, (long long)s.generic, (long long)(s.frames - s.generic),
            s.own, after);
}

void run_print(FILE *out, const run_record *r)
{
    const run_summary s = run_summarise(r, -1);
    fprintf(out, "policy %s\n", r->policy);
    if (r->note[0]) fprintf(out, "%s\n", r->note);
    fprintf(out, "%-10s %6s %6s %9s %8s %8s %8s %8s %8s %6s  of %d %9s\n", "size", "tokens", "frames", "first ms", "calls us", "p50",
            "p99", "max", "generic", "own", r->products, "after ms");
    for (int i = 0; i < r->size_count; i++) print_size(out, r, i);
    fprintf(out, "%lld frames: p50 %.3f, p99 %.3f, max %.3f ms; ", (long long)s.frames, s.p50_ms, s.p99_ms, s.max_ms);
    if (r->budget_ms > 0)
        fprintf(out, "%lld over their budget of %.1f ms, %lld dropped\n", (long long)s.over_budget, r->budget_ms,
                (long long)s.dropped);
    else fprintf(out, "not paced\n");
    fprintf(out, "calls that waited %llu, compiled %llu, swaps %llu, jg_poll at most %.3f ms, graphs captured %d\n",
            (unsigned long long)r->waits, (unsigned long long)r->compiles, (unsigned long long)r->swaps, s.poll_max_ms, r->graphs);
    if (r->checked)
        fprintf(out, "checked %d elements: worst error %.3f of what is allowed; %d frames run again on their own kernels, %d with "
                     "other bits\n", r->checked, r->worst, r->compared, r->differing);
    putc('\n', out);
}
