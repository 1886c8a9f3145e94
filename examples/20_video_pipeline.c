/* A video pipeline whole: frames of a camera (NV12), preprocessing and three layers on each, on two streams with CUDA graphs, while
 * the resolution changes every few seconds. No frame waits for a compiler.
 *
 * This file is the way of a frame, in order; pipeline/ has its parts: source.h (frames), gpu.h (streams, graphs), layers.h (the five
 * products), check.h (results against double precision), timing.h (percentiles), report.h (JSON, CSV, a plot), cublas.h (to compare with).
 *
 * Real-time manners: all memory, for the largest frame, is allocated before the first one; a frame allocates nothing and reads no
 * file, but for a clip larger than memory, of which a frame is read before it is due, as the camera's part. The frame is in
 * pinned memory when it is due. A size that was never seen runs at once on generic kernels; its own come with jg_poll, which is
 * called when the frame's result is there, so that at a camera's pace no frame waits for it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jitgemm.h"
#include "pipeline/args.h"
#include "pipeline/check.h"
#include "pipeline/common.h"
#include "pipeline/cublas.h"
#include "pipeline/gpu.h"
#include "pipeline/layers.h"
#include "pipeline/report.h"
#include "pipeline/setup.h"
#include "pipeline/source.h"
#include "pipeline/timing.h"

enum { SLOTS = 2, DEFAULT_SIZES = 21, DEFAULT_RATE = 30 };

/* Frames of a new size that run as plain calls, which is how jitgemm sees the size: a capture uses only what is loaded. The second
 * sighting makes the worker begin. */
enum { PLAIN_FRAMES = 2 };

/* What a frame needs while it is under way. Frames take the two in turns. */
typedef struct slot {
    CUstream stream;
    frame_buffers buffers;
    uint8_t *input;         /* pinned: the frame as it is uploaded */
    uint16_t *output;       /* pinned: its result */
    CUgraphExec graph;      /* upload, five products, download; null: none */
    int graph_own;          /* its products on own kernels */
    int graph_age;          /* pipeline.swaps at its capture */
    frame_record *record;   /* of the frame under way; null: none */
    int is_first;           /* since the size has changed */
    double arrival_ms;
} slot;

typedef struct pipeline {
    const arguments *args;
    gpu gpu;
    source source;
    run_record *run;
    jg_context *context;
    layers layers;
    cublas *peer;
    slot slots[SLOTS];
    int rate_n, rate_d;         /* frames a second */
    double period_ms, start_ms; /* frame n arrives at start + n * period */
    double began_ms;            /* start_ms before the clock stood still for the first time */
    int64_t total, per_size;    /* frames in all, and between changes of resolution */
    int most_cols, most_rows;
    int use_graphs, own_launches;
    double calls_us;            /* of the last five products on the host */
    int size, frames_of_size, seen[SIZES_MAX]; /* the current size: -1 before the first frame */
    int swaps;                  /* calls of jg_poll that brought better kernels */
    slot *last;                 /* the last frame that was done; null: none of this size */
    uint8_t *first_input;       /* the first frame of the size, and its result, with --check */
    uint16_t *first_output;
    int first_own;
    check_result checked;
} pipeline;

/* ---- the way of a frame ---- */

/* The camera's part, before the frame is due: copies a region in the middle of the clip's frame into the slot, packed. Returns 0
 * at the end of the clip. */
static int deliver(pipeline *p, slot *s, int64_t number)
{
    const grid *g = &p->run->sizes[p->size];
    const uint8_t *frame = source_frame(&p->source, number);
    if (!frame && p->source.error[0]) fail("%s", p->source.error);
    if (!frame) return 0;
    source_crop(&p->source, frame, g->width, g->height, PATCH * g->cols, PATCH * g->rows, s->input);
    return 1;
}

/* All that a frame asks of the GPU. */
static jg_status enqueue(pipeline *p, slot *s)
{
    const grid *g = &p->run->sizes[p->size];
    gpu_copy(&p->gpu, s->buffers.frame, s->input, g->frame_bytes, s->stream);
    const double called_ms = now_ms();
    const jg_status status = layers_run(&p->layers, &s->buffers, g, (int)(s - p->slots), s->stream);
    p->calls_us = (now_ms() - called_ms) * 1e3;
    if (status == JG_OK) gpu_copy(&p->gpu, s->output, s->buffers.result, g->result_bytes, s->stream);
    return status;
}

static void drop_graph(pipeline *p, slot *s)
{
    gpu_destroy_graph(&p->gpu, s->graph);
    s->graph = NULL;
}

/* Captures the slot's graph from the third frame of a size on, and anew when better kernels have come. Kernels in a graph stay
 * loaded until jg_close. Also before the frame is due. A capture that fails is no failure of the frame: plain calls go on. */
static void capture(pipeline *p, slot *s)
{
    if (!p->use_graphs || p->frames_of_size < PLAIN_FRAMES || (s->graph && s->graph_age == p->swaps)) return;
    drop_graph(p, s);
    p->own_launches = 0;
    gpu_begin_capture(&p->gpu, s->stream);
    const jg_status status = enqueue(p, s);
    s->graph = gpu_end_capture(&p->gpu, s->stream);
    s->graph_own = p->own_launches;
    s->graph_age = p->swaps;
    p->run->graphs += s->graph != NULL;
    if (s->graph && status == JG_OK) return;
    fprintf(stderr, "no graphs: %s; plain calls go on\n", status == JG_OK ? "the capture failed" : jg_last_error());
    drop_graph(p, s);
    p->use_graphs = 0;
}

/* Returns at the frame's arrival, which without pace is now. */
static double wait_for_arrival(const pipeline *p, int64_t number)
{
    if (!p->args->is_paced) return now_ms();
    const double arrival_ms = p->start_ms + (double)number * p->period_ms;
    struct timespec until = {.tv_sec = (time_t)(arrival_ms / 1e3)};
    until.tv_nsec = (long)((arrival_ms - (double)until.tv_sec * 1e3) * 1e6);
    while (!interrupted && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
    return arrival_ms;
}

static frame_record *add_record(pipeline *p, int64_t number, int size)
{
    frame_record *record = &p->run->frames[p->run->count++];
    *record = (frame_record){.number = number, .size = size};
    return record;
}

static void submit(pipeline *p, slot *s, int64_t number, double arrival_ms)
{
    frame_record *record = add_record(p, number, p->size);
    record->is_first = !p->seen[p->size];
    record->is_graph = s->graph != NULL;
    record->arrival_ms = arrival_ms - p->start_ms;
    record->wall_ms = arrival_ms - p->began_ms;
    s->arrival_ms = arrival_ms;
    s->record = record;
    s->is_first = p->frames_of_size == 0;
    p->seen[p->size] = 1;
    p->frames_of_size++;
    if (s->graph) {
        gpu_launch(&p->gpu, s->graph, s->stream);
        record->own = s->graph_own;
        return;
    }
    p->own_launches = 0;
    CHECK(enqueue(p, s));
    record->calls_us = p->calls_us;
    record->own = p->own_launches;
}

/* With --check: checks the first frame of a size and keeps it, to be run again on the size's own kernels. The clock stands still
 * meanwhile. */
static void keep_first(pipeline *p, const slot *s)
{
    const double paused_ms = now_ms();
    const grid *g = &p->run->sizes[p->size];
    check_frame(&p->checked, &p->layers, &s->buffers, g, s->input, s->output);
    memcpy(p->first_input, s->input, g->frame_bytes);
    memcpy(p->first_output, s->output, g->result_bytes);
    p->first_own = s->record->own;
    p->start_ms += now_ms() - paused_ms;
}

/* Waits for the slot's frame, if there is one, then lets jitgemm load what its worker has made, which waits for all that is queued. */
static void finish(pipeline *p, slot *s)
{
    jg_poll_result polled;
    if (!s->record) return;
    gpu_synchronize(&p->gpu, s->stream);
    const double done_ms = now_ms();
    CHECK(jg_poll(p->context, NULL, &polled));
    s->record->time_ms = done_ms - s->arrival_ms;
    s->record->poll_ms = now_ms() - done_ms;
    s->record->swapped = (int)polled.swapped;
    p->swaps += polled.swapped > 0;
    if (p->args->checks && s->is_first) keep_first(p, s);
    s->record = NULL;
    p->last = s;
}

/* ---- sizes ---- */

/* Runs the kept frame once more where better kernels have come since: its result must have the same bits. */
static void repeat_first(pipeline *p)
{
    slot *s = &p->slots[0];
    const grid *g = &p->run->sizes[p->size];
    memcpy(s->input, p->first_input, g->frame_bytes);
    p->own_launches = 0;
    CHECK(enqueue(p, s));
    gpu_synchronize(&p->gpu, s->stream);
    if (p->own_launches <= p->first_own) return;
    p->run->compared++;
    p->run->differing += memcmp(s->output, p->first_output, g->result_bytes) != 0;
}

/* Waits for the frames under way, the older one first. */
static void drain(pipeline *p)
{
    slot *a = &p->slots[0], *b = &p->slots[1];
    const int is_b_older = a->record && b->record && b->record->number < a->record->number;
    finish(p, is_b_older ? b : a);
    finish(p, is_b_older ? a : b);
}

static void end_size(pipeline *p)
{
    drain(p);
    const double paused_ms = now_ms();
    if (p->args->checks && p->last) {
        check_frame(&p->checked, &p->layers, &p->last->buffers, &p->run->sizes[p->size], p->last->input, p->last->output);
        repeat_first(p);
    }
    for (int i = 0; i < SLOTS; i++) drop_graph(p, &p->slots[i]);
    p->last = NULL;
    p->start_ms += p->args->checks ? now_ms() - paused_ms : 0;
}

static void begin_size(pipeline *p, int size)
{
    p->size = size;
    p->frames_of_size = 0;
    if (!p->args->is_quiet)
        fprintf(stderr, "%s: %dx%d\n", p->run->policy, p->run->sizes[size].width, p->run->sizes[size].height);
}

static int size_of(const pipeline *p, int64_t number)
{
    return (int)(number / p->per_size % p->run->size_count);
}

/* ---- a run ---- */

/* A camera overwrites what nobody took: with two slots, one of them in use, only the newest frame waits. Records those that came
 * before it and returns the next frame to be run. */
static int64_t drop_late(pipeline *p, int64_t number)
{
    if (!p->args->is_paced) return number;
    const int64_t newest = (int64_t)floor((now_ms() - p->start_ms) / p->period_ms);
    for (; number < newest && number < p->total; number++) {
        frame_record *record = add_record(p, number, size_of(p, number));
        record->is_dropped = 1;
        record->arrival_ms = (double)number * p->period_ms;
    }
    return number;
}

/* At a camera's pace a frame is waited for before the next one is submitted: latency is what counts, and the streams only take turns.
 * Without pace both are kept full: a frame is waited for when the next one is under way. */
static void run_frames(pipeline *p)
{
    p->size = -1;
    p->start_ms = p->began_ms = now_ms() + p->period_ms;
    for (int64_t number = 0; !interrupted; number++) {
        number = drop_late(p, number);
        if (number >= p->total) break;
        slot *s = &p->slots[number % SLOTS];
        if (size_of(p, number) != p->size) {
            if (p->size >= 0) end_size(p);
            begin_size(p, size_of(p, number));
        }
        if (!deliver(p, s, number)) break;
        capture(p, s);
        const double arrival_ms = wait_for_arrival(p, number);
        if (interrupted) break;
        submit(p, s, number, arrival_ms);
        finish(p, p->args->is_paced ? s : &p->slots[(number + 1) % SLOTS]);
    }
    if (p->size >= 0) end_size(p);
}

static void open_slots(pipeline *p)
{
    const size_t tokens = (size_t)p->most_cols * (size_t)p->most_rows;
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &p->slots[i];
        *s = (slot){.stream = gpu_make_stream(&p->gpu)};
        frame_buffers_open(&s->buffers, p->context, p->most_cols, p->most_rows);
        s->input = gpu_allocate_pinned(&p->gpu, tokens * (LUMA + CHROMA));
        s->output = gpu_allocate_pinned(&p->gpu, tokens * OUTPUTS * sizeof *s->output);
    }
}

static void close_slots(pipeline *p)
{
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &p->slots[i];
        drop_graph(p, s);
        frame_buffers_close(&s->buffers, p->context);
        gpu_free_pinned(&p->gpu, s->input);
        gpu_free_pinned(&p->gpu, s->output);
        gpu_destroy_stream(&p->gpu, s->stream);
    }
}

static void read_stats(pipeline *p)
{
    jg_stats stats;
    CHECK(jg_cache_stats(p->context, &stats));
    p->run->waits = stats.waits;
    p->run->swaps = stats.swaps;
    p->run->compiles = stats.compiles;
    p->run->checked = p->checked.elements;
    p->run->worst = p->checked.worst;
}

/* Returns 0 where there is none. */
static int open_peer(pipeline *p)
{
    const CUstream streams[SLOTS] = {p->slots[0].stream, p->slots[1].stream};
    p->peer = cublas_open(p->args->cublas, &p->gpu, p->context, streams, p->run->skip, sizeof p->run->skip);
    if (!p->peer) return 0;
    p->run->products = 1;
    snprintf(p->run->note, sizeof p->run->note, "cuBLAS %d in layers 1 to 3, without bias and activation, which it has not; "
             "preprocessing by jitgemm", cublas_version(p->peer));
    return 1;
}

/* A library loads itself with its first products: before the clock starts, a frame of one patch on each stream. jitgemm has loaded
 * its generic kernels in jg_open. */
static void warm_peer(pipeline *p)
{
    const grid one = grid_of(PATCH, PATCH);
    for (int i = 0; i < SLOTS; i++) {
        const slot *s = &p->slots[i];
        gpu_copy(&p->gpu, s->buffers.frame, s->input, one.frame_bytes, s->stream);
        CHECK(layers_run(&p->layers, &s->buffers, &one, i, s->stream));
        gpu_synchronize(&p->gpu, s->stream);
    }
}

/* In a context that is open, with slots. Returns 0 where there is no cuBLAS to run. */
static int run_in_context(pipeline *p, unsigned policy)
{
    p->peer = NULL;
    if (policy == POLICY_CUBLAS && !open_peer(p)) return 0;
    layers_open(&p->layers, p->context, p->peer, p->most_rows);
    if (p->peer) warm_peer(p);
    p->use_graphs = p->gpu.is_cuda;
    p->swaps = 0;
    p->last = NULL;
    p->checked = (check_result){0};
    memset(p->seen, 0, sizeof p->seen);
    source_rewind(&p->source);
    run_frames(p);
    read_stats(p);
    layers_close(&p->layers);
    cublas_close(p->peer);
    return 1;
}

static void run_policy(pipeline *p, unsigned policy)
{
    p->context = setup_open(p->args, &p->gpu, policy, &p->own_launches);
    if (!p->context) return;
    open_slots(p);
    if (!run_in_context(p, policy)) fprintf(stderr, "SKIP cublas: %s\n", p->run->skip);
    close_slots(p);
    setup_close(p->context);
}

/* ---- the program ---- */

/* Every size a bit smaller than the one before, down to three quarters, and none with as many patches as another. */
static void list_sizes(const arguments *a, const source *s, run_record *run)
{
    const int count = a->size_count ? a->size_count : DEFAULT_SIZES;
    for (int i = 0; i < count; i++) {
        const int width = a->size_count ? a->sizes[i].width : s->width * (80 - i) / 80 & ~1;
        const int height = a->size_count ? a->sizes[i].height : s->height * (80 - i) / 80 & ~1;
        const grid g = grid_of(width, height), *before = run->size_count ? &run->sizes[run->size_count - 1] : NULL;
        if (width > s->width || height > s->height)
            fail("--sizes: %dx%d is larger than the clip's %dx%d", width, height, s->width, s->height);
        const int is_same = before && before->cols == g.cols && before->rows == g.rows;
        if (g.tokens && (a->size_count || !is_same)) run->sizes[run->size_count++] = g;
    }
    if (!run->size_count) fail("%s: %dx%d is smaller than a patch of %dx%d", s->name, s->width, s->height, PATCH, PATCH);
}

static void open_source(pipeline *p)
{
    const arguments *a = p->args;
    source *s = &p->source;
    const int is_open = a->input ? source_open(s, a->input, a->raw_width, a->raw_height, a->loops, SOURCE_MEMORY)
                                 : source_open_pattern(s, a->pattern_width, a->pattern_height);
    if (!is_open) fail("%s", s->error);
    if (s->warning[0]) fprintf(stderr, "%s\n", s->warning);
    p->rate_n = a->rate_n ? a->rate_n : s->rate_n ? s->rate_n : DEFAULT_RATE;
    p->rate_d = a->rate_n ? a->rate_d : s->rate_n ? s->rate_d : 1;
}

/* The sizes, the pace, and room for the records of all frames. */
static void prepare(pipeline *p, run_record *run, const char *policy)
{
    const arguments *a = p->args;
    *run = (run_record){.policy = policy, .products = PRODUCTS};
    list_sizes(a, &p->source, run);
    p->run = run;
    p->period_ms = 1e3 * p->rate_d / p->rate_n;
    p->per_size = a->every_frames ? a->every_frames : (int64_t)fmax(1, round(a->every_seconds * 1e3 / p->period_ms));
    p->total = a->frames ? a->frames : p->per_size * run->size_count;
    p->most_cols = p->most_rows = 0;
    for (int i = 0; i < run->size_count; i++) {
        if (run->sizes[i].cols > p->most_cols) p->most_cols = run->sizes[i].cols;
        if (run->sizes[i].rows > p->most_rows) p->most_rows = run->sizes[i].rows;
    }
    run->budget_ms = a->is_paced ? p->period_ms : 0;
    run->room = p->total;
    run->frames = allocate((size_t)run->room, sizeof *run->frames);
    memset(run->frames, 0, (size_t)run->room * sizeof *run->frames); /* no page of it is touched for the first time in a frame */
}

/* Everything of one policy, from a fresh context to its table. Returns whether what was checked is right. */
static int run_and_print(pipeline *p, run_record *run, unsigned policy, const char *name, int prints)
{
    prepare(p, run, name);
    if (p->args->checks && !p->first_input) {
        const grid most = grid_of(PATCH * p->most_cols, PATCH * p->most_rows);
        p->first_input = allocate(most.frame_bytes, 1);
        p->first_output = allocate(most.result_bytes, 1);
    }
    run_policy(p, policy);
    if (prints && run->count) run_print(stdout, run);
    return run->worst <= 1 && run->differing == 0;
}

static void print_heading(const pipeline *p)
{
    const source *s = &p->source;
    printf("%s, %s %dx%d, %.4g frames a second\n\n", p->gpu.name, s->name, s->width, s->height, (double)p->rate_n / p->rate_d);
}

int main(int argc, char **argv)
{
    static const struct { unsigned policy; const char *name; } order[] = {
        {POLICY_BACKGROUND, "background"}, {POLICY_NEVER, "never"}, {POLICY_WAIT, "wait"}, {POLICY_CUBLAS, "cublas"}};
    static run_record runs[4];
    static pipeline p;
    arguments args;
    int count = 0, is_wrong = 0;
    const int status = arguments_read(&args, argc, argv);
    if (status >= 0) return status;
    const int prints = !args.json || strcmp(args.json, "-") != 0;
    catch_signals();
    runs_try_files(&args);
    p.args = &args;
    open_source(&p);
    gpu_open(&p.gpu, args.sms);
    if (prints) print_heading(&p);
    for (size_t i = 0; i < sizeof order / sizeof *order && !interrupted; i++) {
        if (!(args.policies & order[i].policy)) continue;
        is_wrong |= !run_and_print(&p, &runs[count], order[i].policy, order[i].name, prints);
        count++;
    }
    const run_setting setting = {.input = p.source.name, .device = p.gpu.name, .fps = (double)p.rate_n / p.rate_d,
                                 .is_paced = args.is_paced, .width = p.source.width, .height = p.source.height};
    runs_write_files(&args, &setting, runs, count);
    if (is_wrong) fputs("20_video_pipeline: results are wrong; see above\n", stderr);
    for (int i = 0; i < count; i++) free(runs[i].frames);
    free(p.first_input);
    free(p.first_output);
    source_close(&p.source);
    gpu_close(&p.gpu);
    return is_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
