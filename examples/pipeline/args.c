/* See args.h. */
#include "args.h"

#include "source.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, GO_ON = -1 };

static const char usage[] =
    "Usage: 20_video_pipeline [OPTION]... [CLIP]\n"
    "Runs preprocessing and three layers on every frame of a video whose resolution changes every few seconds, and prints how long\n"
    "each frame took. CLIP is a Y4M file (4:2:0), or raw NV12 with --raw; - reads standard input; without one a pattern is drawn.\n"
    "\n"
    "  --raw WxH          CLIP is raw NV12 of this size\n"
    "  --pattern WxH      the size of the pattern (1920x1080)\n"
    "  --sizes WxH,...    resolutions, one after the other, each a region in the middle of the clip's frame (21 of them)\n"
    "  --every T          seconds between changes, or frames: 30f (2)\n"
    "  --frames N         stop after N frames (when each size was there once)\n"
    "  --fps F | N:D      frames a second (the clip's own, else 30; the pattern's 60)\n"
    "  --no-pace          as fast as possible, not as a camera delivers\n"
    "  --no-loop          stop at the end of the clip\n"
    "  --policy P         background, wait, never, or all: background, wait and, where found, cublas (background)\n"
    "  --peer cublas      also with cuBLAS in layers 1 to 3\n"
    "  --cublas FILE      the cuBLAS library\n"
    "  --fresh            begin with a new cache that has the generic kernels alone, so that each size is unseen\n"
    "  --cache-dir DIR    where the folders of --fresh are made ($TMPDIR, else /tmp)\n"
    "  --sms N            on so many multiprocessors, in a green context\n"
    "  --check            compare results with double precision on the host, while the clock stands still\n"
    "  --json[=FILE]      write a JSON document, to standard output instead of the table if there is no FILE\n"
    "  --csv FILE         write a line for each frame\n"
    "  --plot FILE.svg    draw the frame times\n"
    "  --quiet            no progress on standard error\n"
    "  --help             this text\n"
    "\n"
    "Exit status: 0; 1 if something failed, or a check did; 2 for a wrong command line. Ctrl-C ends a run with its table so far.\n";

static int refuse(const char *option, const char *value, const char *wanted)
{
    fprintf(stderr, "20_video_pipeline: %s \"%s\": %s\n", option, value, wanted);
    return EXIT_USAGE;
}

/* ---- values ---- */

/* A number from `low` to `high`, up to `end`; -1 if it is none. */
static int64_t parse_integer(const char *text, int64_t low, int64_t high, const char **end)
{
    char *after;
    if (*text < '0' || *text > '9') return -1;
    const long long value = strtoll(text, &after, 10);
    *end = after;
    return value >= low && value <= high ? value : -1;
}

/* "WxH", both even and at least a patch. */
static int parse_size(const char *text, int *width, int *height, const char **end)
{
    const int64_t w = parse_integer(text, PATCH, SOURCE_SIZE_MAX, end);
    if (w < 0 || **end != 'x') return 0;
    const int64_t h = parse_integer(*end + 1, PATCH, SOURCE_SIZE_MAX, end);
    *width = (int)w;
    *height = (int)h;
    return h > 0 && w % 2 == 0 && h % 2 == 0;
}

static int read_size(const char *option, const char *text, int *width, int *height)
{
    const char *end;
    if (parse_size(text, width, height, &end) && !*end) return GO_ON;
    return refuse(option, text, "a size is WxH, both even numbers from 16 to 16384");
}

static int read_sizes(arguments *a, const char *text)
{
    const char *end = text - 1;
    a->size_count = 0;
    do {
        if (a->size_count == SIZES_MAX) return refuse("--sizes", text, "there may be 64 at most");
        if (!parse_size(end + 1, &a->sizes[a->size_count].width, &a->sizes[a->size_count].height, &end) || (*end && *end != ','))
            return refuse("--sizes", text, "a list of WxH with commas between, both even numbers from 16 to 16384");
        a->size_count++;
    } while (*end);
    return GO_ON;
}

static int read_every(arguments *a, const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    const int is_frames = *end == 'f';
    if (end == text || end[is_frames] || !(value > 0 && value <= 1e6) || (is_frames && value != floor(value)))
        return refuse("--every", text, "seconds, or a number of frames as in 30f");
    a->every_seconds = value;
    a->every_frames = is_frames ? (int64_t)value : 0;
    return GO_ON;
}

/* "60", "59.94" or "60000:1001". */
static int read_rate(arguments *a, const char *text)
{
    char *end;
    const double n = strtod(text, &end);
    const double d = *end == ':' ? strtod(end + 1, &end) : 1;
    if (end == text || *end || !(n > 0 && n <= 1e6 && d >= 1 && d <= 1e6))
        return refuse("--fps", text, "frames a second, as 60, 59.94 or 60000:1001");
    a->rate_n = (int)lround(d == 1 ? n * 1000 : n);
    a->rate_d = (int)lround(d == 1 ? 1000 : d);
    return a->rate_n > 0 ? GO_ON : refuse("--fps", text, "at least 0.001 frames a second");
}

static int read_policy(arguments *a, const char *text)
{
    static const struct { const char *name; unsigned bits; } rows[] = {
        {"background", POLICY_BACKGROUND}, {"wait", POLICY_WAIT}, {"never", POLICY_NEVER},
        {"all", POLICY_BACKGROUND | POLICY_WAIT | POLICY_CUBLAS}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(text, rows[i].name) == 0) {
            a->policies = (a->policies & POLICY_CUBLAS) | rows[i].bits;
            return GO_ON;
        }
    return refuse("--policy", text, "background, wait, never or all");
}

static int read_count(const char *option, const char *text, int64_t high, int64_t *value)
{
    const char *end = "";
    *value = parse_integer(text, 1, high, &end);
    return *value > 0 && !*end ? GO_ON : refuse(option, text, "a whole number above 0");
}

/* ---- options ---- */

enum { RAW = 256, PATTERN, SIZES, EVERY, FRAMES, FPS, NO_PACE, NO_LOOP, POLICY, PEER, CUBLAS, FRESH, CACHE_DIR, SMS, CHECK_RESULTS, JSON,
       CSV, PLOT, QUIET, HELP };

static const struct option options[] = {
    {"raw", required_argument, NULL, RAW}, {"pattern", required_argument, NULL, PATTERN}, {"sizes", required_argument, NULL, SIZES},
    {"every", required_argument, NULL, EVERY}, {"frames", required_argument, NULL, FRAMES}, {"fps", required_argument, NULL, FPS},
    {"no-pace", no_argument, NULL, NO_PACE}, {"no-loop", no_argument, NULL, NO_LOOP}, {"policy", required_argument, NULL, POLICY},
    {"peer", required_argument, NULL, PEER}, {"cublas", required_argument, NULL, CUBLAS}, {"fresh", no_argument, NULL, FRESH},
    {"cache-dir", required_argument, NULL, CACHE_DIR}, {"sms", required_argument, NULL, SMS},
    {"check", no_argument, NULL, CHECK_RESULTS}, {"json", optional_argument, NULL, JSON}, {"csv", required_argument, NULL, CSV},
    {"plot", required_argument, NULL, PLOT}, {"quiet", no_argument, NULL, QUIET}, {"help", no_argument, NULL, HELP}, {0}};

static int read_sms(arguments *a, const char *text)
{
    int64_t value;
    const int status = read_count("--sms", text, 4096, &value);
    a->sms = (int)value;
    return status;
}

static int read_option(arguments *a, int option, const char *value)
{
    switch (option) {
    case RAW: return read_size("--raw", value, &a->raw_width, &a->raw_height);
    case PATTERN: return read_size("--pattern", value, &a->pattern_width, &a->pattern_height);
    case SIZES: return read_sizes(a, value);
    case EVERY: return read_every(a, value);
    case FRAMES: return read_count("--frames", value, (int64_t)1 << 32, &a->frames);
    case FPS: return read_rate(a, value);
    case NO_PACE: a->is_paced = 0; return GO_ON;
    case NO_LOOP: a->loops = 0; return GO_ON;
    case POLICY: return read_policy(a, value);
    case PEER:
        a->policies |= POLICY_CUBLAS;
        return strcmp(value, "cublas") == 0 ? GO_ON : refuse("--peer", value, "cublas is the only one");
    case CUBLAS: a->cublas = value; return GO_ON;
    case FRESH: a->is_fresh = 1; return GO_ON;
    case CACHE_DIR: a->cache_dir = value; return GO_ON;
    case SMS: return read_sms(a, value);
    case CHECK_RESULTS: a->checks = 1; return GO_ON;
    case JSON: a->json = value ? value : "-"; return GO_ON;
    case CSV: a->csv = value; return GO_ON;
    case PLOT: a->plot = value; return GO_ON;
    case QUIET: a->is_quiet = 1; return GO_ON;
    case HELP: fputs(usage, stdout); return EXIT_SUCCESS;
    default: fputs("Try 20_video_pipeline --help.\n", stderr); return EXIT_USAGE;
    }
}

static int check_together(const arguments *a)
{
    if (a->raw_width && !a->input) return refuse("--raw", "", "needs a CLIP");
    if (a->pattern_width && a->input) return refuse("--pattern", a->input, "either a pattern or a CLIP");
    if (a->cache_dir && !a->is_fresh) return refuse("--cache-dir", a->cache_dir, "goes with --fresh; else $JITGEMM_CACHE says where");
    return GO_ON;
}

int arguments_read(arguments *a, int argc, char **argv)
{
    *a = (arguments){.every_seconds = 2, .is_paced = 1, .loops = 1};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        const int status = read_option(a, option, optarg);
        if (status != GO_ON) return status;
    }
    if (argc - optind > 1) return refuse("CLIP", argv[optind + 1], "one clip at a time");
    if (optind < argc) a->input = argv[optind];
    const int status = check_together(a);
    if (!(a->policies & ~(unsigned)POLICY_CUBLAS)) a->policies |= POLICY_BACKGROUND;
    if (!a->input && !a->pattern_width) a->pattern_width = 1920, a->pattern_height = 1080;
    return status;
}
