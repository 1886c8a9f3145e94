/* Reads the command line of jitgemm-swgpu: see counters_args.h.
 *
 * Options may stand before or after the sizes they apply to, so all words are collected first, and the sizes are read
 * then with the types that the options gave. */
#include "counters_args.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPES_MAX 16

static const char usage[] =
    "usage: jitgemm-swgpu [OPTION]... [SIZE]...\n"
    "Runs matrix products on the software GPU, shows what its checks found and what it counted.\n"
    "\n"
    "SIZE is N, MxNxK or MxNxKxBATCH, with words after colons, e.g. 64, 1021x1023x77,\n"
    "196x768x768:f16:nt, 100:generic.\n"
    "\n"
    "What to run\n"
    "  --list FILE     read sizes from FILE, one a line; - is standard input; may be repeated\n"
    "  --type T,...    types of sizes that name none: f32, f16, bf16, s8, s4, e4m3, f16-f32, u8.s8-s32,\n"
    "                  f16.s4-f16, tf32, 3xtf32 ..., each with words of a size behind it, e.g. f16:relu\n"
    "  --device NAME   orin-nano, orin-nx, orin-agx (default), t4, a100, rtx3090, l4, rtx4090,\n"
    "                  h100, h200, b200, thor, rtx5090\n"
    "  --blocks N      run only N blocks of products above 2^26 multiply-adds; default all\n"
    "How\n"
    "  --checks LIST   all (default), none, or some of uninitialised,race,operands,leak;\n"
    "                  bounds and alignment are always checked\n"
    "  --threads N     worker threads, 1 to 64; default one a processor\n"
    "  --cache FILE    kernels' cache; default $JITGEMM_CACHE, else ~/.cache/jitgemm/kernels.db\n"
    "  --time          also time the simulation: the median of 5 runs, and of more while 1 s lasts\n"
    "Output\n"
    "  --json          one JSON object instead of the table\n"
    "  --csv           a header line, and a line a product\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 done, 1 something was found or failed, 2 bad command line or list,\n"
    "130 interrupted.\n";

/* option, variable; what it is if neither is there */
static const struct {
    const char *option, *variable, *otherwise;
} settings[COUNTERS_SETTINGS] = {
    [COUNTERS_DEVICE] = {"--device", "JITGEMM_SWGPU_DEVICE", "orin-agx"},
    [COUNTERS_CHECKS] = {"--checks", "JITGEMM_SWGPU_CHECKS", "all"},
    [COUNTERS_BLOCKS] = {"--blocks", "JITGEMM_SWGPU_BLOCKS", "all"},
    [COUNTERS_THREADS] = {"--threads", "JITGEMM_SWGPU_THREADS", "one a processor"},
};

/* The first ones are the settings, by their number. */
enum {
    OPTION_SETTING = 256, OPTION_LIST = OPTION_SETTING + COUNTERS_SETTINGS, OPTION_TYPE, OPTION_CACHE, OPTION_JSON, OPTION_CSV,
    OPTION_HELP, OPTION_VERSION
};

/* One place where sizes come from, in the order given. */
typedef struct source {
    const char *text; /* a problem text, or a file name */
    int is_list;
} source;

/* The words of the command line before they are combined. */
typedef struct words {
    jg_problem types[TYPES_MAX]; /* and what may be said behind them */
    size_t type_count;
    source *sources;
    size_t source_count;
} words;

__attribute__((format(printf, 1, 2)))
static int usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("jitgemm-swgpu: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    return COUNTERS_EXIT_USAGE;
}

static int add_type(words *w, const char *word, size_t length)
{
    jg_problem problem;
    if (sizelist_type(word, length, &problem) != 0)
        return usage_error("--type: \"%.*s\" is no type; use f32, f16, bf16, s8, s4, e4m3, f16-f32, u8.s8-s32, f16.s4-f16, "
                           "tf32 ..., each with further words of a size, such as f16:relu", (int)length, word);
    if (w->type_count == TYPES_MAX) return usage_error("--type: more than %d types", TYPES_MAX);
    w->types[w->type_count++] = problem;
    return -1;
}

static int add_types(words *w, const char *list)
{
    for (;; list++) {
        size_t length = strcspn(list, ",");
        int status = add_type(w, list, length);
        if (status >= 0) return status;
        list += length;
        if (*list == 0) return -1;
    }
}

static void add_source(words *w, const char *text, int is_list)
{
    w->sources[w->source_count++] = (source){text, is_list};
}

static int set_format(counters_args *args, counters_format format)
{
    if (args->format != COUNTERS_TABLE && args->format != format) return usage_error("--json and --csv exclude each other");
    args->format = format;
    return -1;
}

static int apply_option(int option, const char *value, words *w, counters_args *args)
{
    switch (option) {
    case OPTION_LIST: add_source(w, value, 1); return -1;
    case OPTION_TYPE: return add_types(w, value);
    case OPTION_CACHE:
        args->cache_path = value;
        return *value ? -1 : usage_error("--cache needs a file name");
    case OPTION_JSON: return set_format(args, COUNTERS_JSON);
    case OPTION_CSV: return set_format(args, COUNTERS_CSV);
    case OPTION_HELP: fputs(usage, stdout); return COUNTERS_EXIT_DONE;
    case OPTION_VERSION: printf("jitgemm-swgpu %s\n", jg_version()); return COUNTERS_EXIT_DONE;
    }
    args->settings[option - OPTION_SETTING] = value;
    if (*value) return -1; /* empty would count as not given */
    return usage_error("%s needs a value; see --help", settings[option - OPTION_SETTING].option);
}

/* Takes argv apart. Words that are no options are sizes; a bare - is a list on standard input. */
static int collect(int argc, char **argv, words *w, counters_args *args)
{
    const struct option options[] = {
        {"device", required_argument, NULL, OPTION_SETTING + COUNTERS_DEVICE},
        {"checks", required_argument, NULL, OPTION_SETTING + COUNTERS_CHECKS},
        {"blocks", required_argument, NULL, OPTION_SETTING + COUNTERS_BLOCKS},
        {"threads", required_argument, NULL, OPTION_SETTING + COUNTERS_THREADS},
        {"list", required_argument, NULL, OPTION_LIST},   {"type", required_argument, NULL, OPTION_TYPE},
        {"cache", required_argument, NULL, OPTION_CACHE}, {"time", no_argument, &args->time, 1},
        {"json", no_argument, NULL, OPTION_JSON},         {"csv", no_argument, NULL, OPTION_CSV},
        {"help", no_argument, NULL, OPTION_HELP},         {"version", no_argument, NULL, OPTION_VERSION},
        {0}};
    int option, status = -1;
    opterr = 0;
    while (status < 0 && (option = getopt_long(argc, argv, "-:", options, NULL)) != -1) {
        if (option == 0) continue; /* a flag, already set */
        if (option == 1) add_source(w, optarg, strcmp(optarg, "-") == 0);
        else if (option == ':') status = usage_error("%s needs a value; see --help", argv[optind - 1]);
        else if (option == '?' && (optopt < 0 || (optopt > ' ' && optopt < 256))) /* a short one; there are none */
            status = usage_error("unknown option -%c; see --help", optopt > ' ' && optopt < 127 ? optopt : '?');
        else if (option == '?') status = usage_error("bad option %s; see --help", argv[optind - 1]);
        else status = apply_option(option, optarg, w, args);
    }
    for (; status < 0 && optind < argc; optind++) add_source(w, argv[optind], 0); /* after -- */
    return status;
}

static int read_sources(words *w, sizelist *sizes)
{
    if (w->type_count == 0) w->types[w->type_count++] = (jg_problem){0};
    for (size_t i = 0; i < w->source_count; i++) {
        const source *s = &w->sources[i];
        int failed = s->is_list ? sizelist_read(sizes, s->text, w->types, w->type_count)
                                : sizelist_add(sizes, s->text, w->types, w->type_count);
        if (failed) return -1;
    }
    return 0;
}

int counters_args_parse(int argc, char **argv, counters_args *args)
{
    words w = {0};
    *args = (counters_args){0};
    w.sources = calloc((size_t)argc + 1, sizeof *w.sources);
    if (!w.sources) return usage_error("out of memory");
    int status = collect(argc, argv, &w, args);
    if (status < 0 && w.source_count == 0) status = usage_error("which sizes? Give some, or --list FILE; see --help");
    if (status < 0 && read_sources(&w, &args->sizes) != 0) status = usage_error("%s", args->sizes.error);
    if (status < 0 && args->sizes.count == 0) status = usage_error("the lists hold no size");
    free(w.sources);
    if (status >= 0) counters_args_free(args);
    return status;
}

void counters_args_export(const counters_args *args)
{
    for (int i = 0; i < COUNTERS_SETTINGS; i++)
        if (args->settings[i]) setenv(settings[i].variable, args->settings[i], 1);
}

const char *counters_args_setting(counters_setting setting)
{
    const char *value = getenv(settings[setting].variable);
    return value && *value ? value : settings[setting].otherwise;
}

int counters_args_blame(const counters_args *args, const char *error)
{
    const char *at = strstr(error, "JITGEMM_SWGPU_");
    if (!at) return 0;
    const char *option = NULL;
    for (int i = 0; i < COUNTERS_SETTINGS; i++)
        if (args->settings[i] && strncmp(at, settings[i].variable, strlen(settings[i].variable)) == 0)
            option = settings[i].option;
    size_t length = strlen(at);
    if (length && at[length - 1] == ')' && at != error && at[-1] == '(') length--; /* the library quotes the driver */
    usage_error("%s%s%.*s", option ? option : "", option ? ": " : "", (int)length, at);
    return 1;
}

void counters_args_free(counters_args *args)
{
    sizelist_free(&args->sizes);
}
