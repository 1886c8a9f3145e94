/* See report.h. Numbers are written with a point whatever the locale, since the program sets none. */
#include "report.h"

#include "common.h"
#include "plot.h"

#include <math.h>
#include <string.h>

void runs_write_csv(FILE *out, const run_record *runs, int count)
{
    fputs("policy,frame,width,height,tokens,arrival_ms,time_ms,dropped,over_budget,first,graph,own,calls_us,poll_ms,swapped\n", out);
    for (int i = 0; i < count; i++)
        for (int64_t j = 0; j < runs[i].count; j++) {
            const frame_record *f = &runs[i].frames[j];
            const grid *g = &runs[i].sizes[f->size];
            const int is_over = runs[i].budget_ms > 0 && f->time_ms > runs[i].budget_ms;
            fprintf(out, "%s,%lld,%d,%d,%d,%.3f,%.4f,%d,%d,%d,%d,%d,%.1f,%.4f,%d\n", runs[i].policy, (long long)f->number, g->width,
                    g->height, g->tokens, f->arrival_ms, f->time_ms, f->is_dropped, is_over, f->is_first, f->is_graph, f->own,
                    f->calls_us, f->poll_ms, f->swapped);
        }
}

static void put_text(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\": \"", name);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(out, "\\%c", c);
        else if (c < 0x20) fprintf(out, "\\u%04x", c);
        else putc(c, out);
    }
    fputs("\", ", out);
}

/* NaN is no JSON. */
static void put_number(FILE *out, const char *name, double value)
{
    if (isfinite(value)) fprintf(out, "\"%s\": %.6g, ", name, value);
    else fprintf(out, "\"%s\": null, ", name);
}

static void put_summary(FILE *out, const run_summary *s)
{
    put_number(out, "frames", (double)s->frames);
    put_number(out, "dropped", (double)s->dropped);
    put_number(out, "over_budget", (double)s->over_budget);
    put_number(out, "frames_on_generic", (double)s->generic);
    put_number(out, "first_ms", s->first_ms);
    put_number(out, "first_calls_us", s->first_calls_us);
    put_number(out, "p50_ms", s->p50_ms);
    put_number(out, "p99_ms", s->p99_ms);
    put_number(out, "max_ms", s->max_ms);
    put_number(out, "poll_max_ms", s->poll_max_ms);
}

static void put_size(FILE *out, const run_record *r, int size)
{
    const run_summary s = run_summarise(r, size);
    fprintf(out, "%s\n      {\"width\": %d, \"height\": %d, \"tokens\": %d, ", size ? "," : "", r->sizes[size].width,
            r->sizes[size].height, r->sizes[size].tokens);
    put_summary(out, &s);
    put_number(out, "own_after_ms", s.own ? s.own_after_ms : NAN);
    fprintf(out, "\"own\": %d}", s.own);
}

static void put_run(FILE *out, const run_record *r)
{
    const run_summary s = run_summarise(r, -1);
    fputs("\n    {", out);
    put_text(out, "policy", r->policy);
    if (r->skip[0]) {
        put_text(out, "skip", r->skip);
        fputs("\"sizes\": []}", out);
        return;
    }
    put_summary(out, &s);
    if (r->note[0]) put_text(out, "note", r->note);
    put_number(out, "budget_ms", r->budget_ms > 0 ? r->budget_ms : NAN);
    put_number(out, "waits", (double)r->waits);
    put_number(out, "compiles", (double)r->compiles);
    put_number(out, "swaps", (double)r->swaps);
    put_number(out, "graphs", r->graphs);
    put_number(out, "checked", r->checked);
    put_number(out, "worst", r->worst);
    put_number(out, "compared", r->compared);
    put_number(out, "differing", r->differing);
    fputs("\"sizes\": [", out);
    for (int i = 0; i < r->size_count; i++) put_size(out, r, i);
    fputs("]}", out);
}

void runs_write_json(FILE *out, const run_setting *setting, const run_record *runs, int count)
{
    fputs("{", out);
    put_text(out, "program", "20_video_pipeline");
    put_text(out, "input", setting->input);
    put_text(out, "device", setting->device);
    put_number(out, "width", setting->width);
    put_number(out, "height", setting->height);
    put_number(out, "fps", setting->fps);
    fprintf(out, "\"paced\": %s, \"runs\": [", setting->is_paced ? "true" : "false");
    for (int i = 0; i < count; i++) {
        if (i) putc(',', out);
        put_run(out, &runs[i]);
    }
    fputs("\n]}\n", out);
}

/* ---- files ---- */

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, mode);
    if (!file) fail("%s: cannot be written", path);
    return file;
}

static void close_file(FILE *file, const char *path)
{
    const int is_lost = ferror(file);
    if ((file == stdout ? fflush(file) : fclose(file)) != 0 || is_lost) fail("%s: it was not written whole", path);
}

void runs_try_files(const arguments *args)
{
    const char *const paths[] = {args->csv, args->json, args->plot};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        FILE *file = paths[i] ? open_file(paths[i], "a") : NULL; /* what it holds stays until the new is there */
        if (file && file != stdout) fclose(file);
    }
}

void runs_write_files(const arguments *args, const run_setting *setting, const run_record *runs, int count)
{
    if (args->csv) {
        FILE *file = open_file(args->csv, "w");
        runs_write_csv(file, runs, count);
        close_file(file, args->csv);
    }
    if (args->json) {
        FILE *file = open_file(args->json, "w");
        runs_write_json(file, setting, runs, count);
        close_file(file, args->json);
    }
    if (args->plot) {
        FILE *file = open_file(args->plot, "w");
        plot_write(file, setting, runs, count);
        close_file(file, args->plot);
    }
}
