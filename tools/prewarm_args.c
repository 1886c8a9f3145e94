/* Reads the command line of jitgemm-prewarm: see prewarm_args.h.
 *
 * Options may stand before or after the sizes they apply to, so parsing has two steps: first all words are
 * collected, then the sizes are read with the types and ops that the options gave as defaults. */
#include "prewarm_args.h"

#include "bench_suites.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPES_MAX 16
#define OPS_MAX 4
#define JOBS_MAX 16 /* more gain nothing: the compiler's own locks */
#define BUDGET_MAX_MS (24 * 3600e3)

static const char usage[] =
    "usage: jitgemm-prewarm [OPTION]... [SIZE]...\n"
    "Compiles matrix-product kernels ahead of time into the jitgemm cache file.\n"
    "\n"
    "SIZE is N, MxNxK or MxNxKxBATCH, with words after colons, e.g. 1024, 196x768x768:f16,\n"
    "197x197x64x12:f16-f32:nt. Without any: the squares 64, 128 ... 1024 in f16 and f32.\n"
    "\n"
    "What to compile\n"
    "  --list FILE     read sizes from FILE, one a line; - is standard input; may be repeated\n"
    "  --suite NAME,...\n"
    "                  the sizes of a suite of jitgemm-bench: common16, poison, layers, skinny, resnet50 ...,\n"
    "                  in f16 and f32 unless --type says otherwise\n"
    "  --type T,...    types of sizes that name none: f32, f16, bf16, s8, s4, e4m3, f16-f32, u8.s8-s32,\n"
    "                  f16.s4-f16, tf32, 3xtf32 ..., each with words of a size behind it, e.g. f16:relu\n"
    "  --op OP,...     transposes of sizes that name none: nn, nt, tn, tt\n"
    "  --order ORDER   storage of sizes that name none: row or col\n"
    "  --generic[=T,...]\n"
    "                  also the generic kernels, which serve every size: of the types in use, and of T\n"
    "                  (f32, f16, bf16, s8, u8, s4, e4m3, tf32, 3xtf32; with grouped beside them, those for\n"
    "                  grouped calls too). --generic=T,... without any SIZE makes these alone\n"
    "  --from-misses   also what programs met and had no kernel for, see jitgemm-cache misses; without\n"
    "                  any SIZE these alone. Where there are none it says so\n"
    "  --arch SM,...   for these architectures, e.g. sm_87,sm_90, instead of this machine's GPU, all\n"
    "                  into one cache file\n"
    "  --sms N         with --arch: plan for N multiprocessors (Orin Nano 8, AGX Orin 16); with --tune:\n"
    "                  measure on N of this GPU's, for programs that have a green context of so many\n"
    "Tuning\n"
    "  --tune          measure the best plans of each size on this machine's GPU, and record the fastest one\n"
    "                  with a right result: it is used from then on wherever architecture, multiprocessors\n"
    "                  and kind of memory are the same. --from-misses: what programs met, most counted first\n"
    "  --budget TIME   stop after TIME, e.g. 30s, with everything so far kept: every size gets a few plans\n"
    "                  measured before any gets more; run again to go on\n"
    "  --candidates N  plans a size, the best by the planner's model; default 6\n"
    "  --exhaustive    every legal plan of each size\n"
    "  --allow-new-bits  also plans that sum in another order, and so change the last bits of results\n"
    "  --retune        also sizes that have been tuned\n"
    "How\n"
    "  --jobs N        compiles at once; default one a processor; at most 16\n"
    "  --budget TIME   begin no kernel later than TIME after the start, e.g. 20s, 500ms, 2min (20: seconds):\n"
    "                  generic kernels first, then sizes as listed, then misses, most counted first; what\n"
    "                  is left then is for the next run, and that is no failure\n"
    "  --cache FILE    cache file; default $JITGEMM_CACHE, else ~/.cache/jitgemm/kernels.db\n"
    "  --nvrtc FILE    NVRTC library; default $JITGEMM_NVRTC, else the usual places\n"
    "  --repair        make a cache file that is damaged as a whole, e.g. cut off, anew; else it is refused\n"
    "  --seal          at the end make the cache file fit to be shipped and read as a factory file\n"
    "  --dry-run       say what would be compiled and why; change nothing. The generic kernels of\n"
    "                  --generic are not listed: the library names them only as it makes them\n"
    "Output\n"
    "  --json          one JSON object on standard output; all else on standard error\n"
    "  --quiet         only errors and the last line\n"
    "  --verbose       also the library's messages\n"
    "  --help, --version\n"
    "\n"
    "The last line is \"compiled N, cached N, failed N\", or \"tuned N, kept N, failed N, left N\" (kept: the\n"
    "model's own choice is the fastest; left: neither budget nor you gave the time). Exit status: 0 done, 1 something failed,\n"
    "2 bad command line or list, 130 interrupted (what is done is kept; run again to go on).\n";

enum {
    OPTION_LIST = 256, OPTION_TYPE, OPTION_OP, OPTION_ORDER, OPTION_ARCH, OPTION_SMS, OPTION_JOBS, OPTION_BUDGET,
    OPTION_GENERIC, OPTION_CACHE, OPTION_NVRTC, OPTION_SUITE, OPTION_CANDIDATES, OPTION_HELP, OPTION_VERSION
};

/* One place where sizes come from, in the order given. */
typedef struct source {
    const char *text; /* a problem text, a file name, or names of suites */
    enum { FROM_WORD, FROM_FILE, FROM_SUITES } kind;
} source;

/* The words of the command line before they are combined. */
typedef struct words {
    jg_problem types[TYPES_MAX]; /* and what may be said behind them */
    jg_problem ops[OPS_MAX];     /* only the ops are set */
    size_t type_count, op_count;
    jg_order order;
    int order_given, op_given;
    source *sources;
    size_t source_count;
} words;

__attribute__((format(printf, 1, 2)))
static int usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("jitgemm-prewarm: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    return EXIT_USAGE;
}

static int parse_number(const char *option, const char *text, long max, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    if (end == text || *end != 0 || errno != 0 || *number < 1 || *number > max)
        return usage_error("%s: \"%s\" is not a number from 1 to %ld", option, text, max);
    return -1;
}

/* A time such as 20s, 500ms, 2min, 1.5s; a plain number is of seconds. */
static int parse_time(const char *option, const char *text, double *ms)
{
    static const struct { const char *name; double ms; } units[] = {{"", 1e3}, {"s", 1e3}, {"ms", 1}, {"min", 60e3}};
    char *unit;
    const double number = strtod(text, &unit);
    const char *digits = text + strspn(text, "0123456789."); /* strtod takes 0x10, 1e3 and nan too */
    *ms = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units && unit == digits && unit != text; i++)
        if (strcmp(unit, units[i].name) == 0) *ms = number * units[i].ms;
    if (*ms > 0 && *ms <= BUDGET_MAX_MS) return -1;
    return usage_error("%s: \"%s\" is no time above 0 and up to a day; write it as 20s, 500ms or 2min", option, text);
}

static int add_type(words *w, prewarm_args *args, const char *word)
{
    (void)args;
    jg_problem problem;
    if (sizelist_type(word, strlen(word), &problem) != 0)
        return usage_error("--type: \"%s\" is no type; use f32, f16, bf16, s8, s4, e4m3, f16-f32, u8.s8-s32, f16.s4-f16, "
                           "tf32 ..., each with further words of a size, such as f16:relu", word);
    if (w->type_count == TYPES_MAX) return usage_error("--type: more than %d types", TYPES_MAX);
    w->types[w->type_count++] = problem;
    return -1;
}

/* The generic kernels of an input type serve every type of C, so a type of C is a misunderstanding. */
static int add_generic_type(words *w, prewarm_args *args, const char *word)
{
    (void)w;
    static const struct { const char *name; uint32_t flag; } sets[] = {
        {"f32", JG_RESIDENT_F32}, {"f16", JG_RESIDENT_F16}, {"bf16", JG_RESIDENT_BF16}, {"s8", JG_RESIDENT_S8},
        {"u8", JG_RESIDENT_U8}, {"s4", JG_RESIDENT_S4}, {"e4m3", JG_RESIDENT_E4M3}, {"tf32", JG_RESIDENT_TF32},
        {"3xtf32", JG_RESIDENT_3XTF32}, {"grouped", JG_RESIDENT_GROUPED}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const size_t length = strlen(sets[i].name);
        if (strncmp(word, sets[i].name, length) != 0 || (word[length] != 0 && !strchr("-.", word[length]))) continue;
        if (word[length]) return usage_error("--generic: \"%s\": name the type of A and B alone, such as %s", word, sets[i].name);
        args->generic_types |= sets[i].flag;
        return -1;
    }
    return usage_error("--generic: \"%s\" is no type; use f32, f16, bf16, s8, u8 (u8 x s8), s4, e4m3, tf32, 3xtf32, or "
                       "grouped (the others' for grouped calls)", word);
}

static int add_op(words *w, prewarm_args *args, const char *word)
{
    (void)args;
    static const struct { const char *name; jg_op a, b; } ops[] = {
        {"nn", JG_N, JG_N}, {"nt", JG_N, JG_T}, {"tn", JG_T, JG_N}, {"tt", JG_T, JG_T}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(word, ops[i].name) != 0) continue;
        if (w->op_count == OPS_MAX) return usage_error("--op: more than %d ops", OPS_MAX);
        w->ops[w->op_count++] = (jg_problem){.op_a = ops[i].a, .op_b = ops[i].b};
        w->op_given = 1;
        return -1;
    }
    return usage_error("--op: \"%s\" is none of nn, nt, tn, tt", word);
}

static int add_arch(words *w, prewarm_args *args, const char *word)
{
    (void)w;
    const char *digits = strncmp(word, "sm_", 3) == 0 ? word + 3 : word;
    size_t length = strspn(digits, "0123456789");
    if (length < 2 || length > 3 || digits[length] != 0 || digits[0] == '0') /* 0 would mean this machine's GPU */
        return usage_error("--arch: \"%s\" is no architecture; write it as sm_87 or 87", word);
    if (args->arch_count == PREWARM_ARCHS_MAX) return usage_error("--arch: more than %d", PREWARM_ARCHS_MAX);
    args->archs[args->arch_count++] = atoi(digits);
    return -1;
}

/* Gives each word of a comma list to `add`. */
static int each_word(const char *list, words *w, prewarm_args *args, int (*add)(words *, prewarm_args *, const char *))
{
    char word[JG_PROBLEM_TEXT_BYTES];
    for (const char *next = list;; next++) {
        size_t length = strcspn(next, ",");
        if (length >= sizeof word) return usage_error("\"%s\" is too long", list);
        memcpy(word, next, length);
        word[length] = 0;
        int status = add(w, args, word);
        if (status >= 0) return status;
        next += length;
        if (*next == 0) return -1;
    }
}

static int parse_generic(words *w, prewarm_args *args, const char *types)
{
    args->generic = 1;
    return types ? each_word(types, w, args, add_generic_type) : -1;
}

static int parse_order(words *w, const char *text)
{
    w->order_given = 1;
    w->order = strcmp(text, "col") == 0 ? JG_COL_MAJOR : JG_ROW_MAJOR;
    return w->order == JG_COL_MAJOR || strcmp(text, "row") == 0
               ? -1 : usage_error("--order: \"%s\" is neither row nor col", text);
}

static int parse_path(const char *option, const char *text, const char **path)
{
    *path = text;
    return *text ? -1 : usage_error("%s needs a file name", option);
}

static void add_source(words *w, const char *text, int kind)
{
    w->sources[w->source_count++] = (source){text, kind};
}

static int apply_option(int option, char *value, words *w, prewarm_args *args)
{
    long number;
    int status;
    switch (option) {
    case OPTION_LIST: add_source(w, value, FROM_FILE); return -1;
    case OPTION_SUITE: add_source(w, value, FROM_SUITES); return -1;
    case OPTION_TYPE: return each_word(value, w, args, add_type);
    case OPTION_OP: return each_word(value, w, args, add_op);
    case OPTION_ARCH: return each_word(value, w, args, add_arch);
    case OPTION_GENERIC: return parse_generic(w, args, value);
    case OPTION_ORDER: return parse_order(w, value);
    case OPTION_CACHE: return parse_path("--cache", value, &args->cache_path);
    case OPTION_NVRTC: return parse_path("--nvrtc", value, &args->nvrtc_path);
    case OPTION_BUDGET: return parse_time("--budget", value, &args->budget_ms);
    case OPTION_CANDIDATES:
        status = parse_number("--candidates", value, 1000, &number);
        args->candidates = (size_t)number;
        return status;
    case OPTION_SMS:
        status = parse_number("--sms", value, 1024, &number);
        args->sm_count = (int)number;
        return status;
    case OPTION_JOBS:
        status = parse_number("--jobs", value, 1024, &number);
        args->jobs = number < JOBS_MAX ? (uint32_t)number : JOBS_MAX;
        return status;
    case OPTION_HELP: fputs(usage, stdout); return 0;
    case OPTION_VERSION: printf("jitgemm-prewarm %s\n", jg_version()); return 0;
    }
    return usage_error("option %d has no code", option); /* a hole in the table above */
}

/* Takes argv apart. Words that are no options are sizes; a bare - is a list on standard input. */
static int collect(int argc, char **argv, words *w, prewarm_args *args)
{
    const struct option options[] = {
        {"list", required_argument, NULL, OPTION_LIST},   {"type", required_argument, NULL, OPTION_TYPE},
        {"op", required_argument, NULL, OPTION_OP},       {"order", required_argument, NULL, OPTION_ORDER},
        {"arch", required_argument, NULL, OPTION_ARCH},   {"sms", required_argument, NULL, OPTION_SMS},
        {"jobs", required_argument, NULL, OPTION_JOBS},   {"cache", required_argument, NULL, OPTION_CACHE},
        {"nvrtc", required_argument, NULL, OPTION_NVRTC}, {"generic", optional_argument, NULL, OPTION_GENERIC},
        {"json", no_argument, &args->json, 1},            {"dry-run", no_argument, &args->dry_run, 1},
        {"quiet", no_argument, &args->quiet, 1},          {"verbose", no_argument, &args->verbose, 1},
        {"budget", required_argument, NULL, OPTION_BUDGET}, {"suite", required_argument, NULL, OPTION_SUITE},
        {"candidates", required_argument, NULL, OPTION_CANDIDATES}, {"repair", no_argument, &args->repair, 1},
        {"tune", no_argument, &args->tune, 1},            {"exhaustive", no_argument, &args->exhaustive, 1},
        {"allow-new-bits", no_argument, &args->allow_new_bits, 1}, {"retune", no_argument, &args->retune, 1},
        {"seal", no_argument, &args->seal, 1},            {"from-misses", no_argument, &args->from_misses, 1},
        {"help", no_argument, NULL, OPTION_HELP},         {"version", no_argument, NULL, OPTION_VERSION},
        {0}};
    int option, status = -1;
    opterr = 0;
    while (status < 0 && (option = getopt_long(argc, argv, "-:", options, NULL)) != -1) {
        if (option == 0) continue; /* a flag, already set */
        if (option == 1) add_source(w, optarg, strcmp(optarg, "-") == 0 ? FROM_FILE : FROM_WORD);
        else if (option == ':') status = usage_error("%s needs a value; see --help", argv[optind - 1]);
        else if (option == '?' && (optopt < 0 || (optopt > ' ' && optopt < 256))) /* a short one; there are none */
            status = usage_error("unknown option -%c; see --help", optopt > ' ' && optopt < 127 ? optopt : '?');
        else if (option == '?') status = usage_error("bad option %s; see --help", argv[optind - 1]);
        else status = apply_option(option, optarg, w, args);
    }
    for (; status < 0 && optind < argc; optind++) add_source(w, argv[optind], FROM_WORD); /* after -- */
    return status;
}

/* Every given type with every given op. Returns how many defaults that makes. */
static size_t combine_defaults(words *w, jg_problem defaults[TYPES_MAX * OPS_MAX])
{
    size_t count = 0;
    if (w->type_count == 0) w->types[w->type_count++] = (jg_problem){0};
    if (w->op_count == 0) w->ops[w->op_count++] = (jg_problem){0};
    for (size_t t = 0; t < w->type_count; t++)
        for (size_t o = 0; o < w->op_count; o++) {
            jg_problem *p = &defaults[count++];
            *p = w->types[t];
            if (w->op_given) p->op_a = w->ops[o].op_a;
            if (w->op_given) p->op_b = w->ops[o].op_b;
            if (w->order_given) p->order = w->order;
        }
    return count;
}

/* For sizes that are a part of the program: f16 and f32, unless options gave types. */
static size_t combine_own_defaults(const words *w, jg_problem defaults[TYPES_MAX * OPS_MAX])
{
    words own = *w;
    if (own.type_count == 0) {
        own.types[own.type_count++] = (jg_problem){.type_a = JG_F16, .type_b = JG_F16, .type_c = JG_F16};
        own.types[own.type_count++] = (jg_problem){.type_a = JG_F32, .type_b = JG_F32, .type_c = JG_F32};
    }
    return combine_defaults(&own, defaults);
}

/* Ends a group: the sizes since the last one are of `name`. Returns 0, or -1 if memory ran out. */
static int end_group(prewarm_args *args, const char *name, int memory)
{
    prewarm_group *last = args->group_count ? &args->groups[args->group_count - 1] : NULL;
    if ((last ? last->end : 0) == args->sizes.count) return 0;
    if (last && strcmp(last->name, name) == 0) {
        last->end = args->sizes.count;
        return 0;
    }
    prewarm_group *grown = realloc(args->groups, (args->group_count + 1) * sizeof *grown);
    if (!grown) return -1;
    args->groups = grown;
    args->groups[args->group_count++] = (prewarm_group){name, memory, args->sizes.count};
    return 0;
}

/* The 16 common squares. */
static int add_common_sizes(const words *w, sizelist *sizes)
{
    jg_problem defaults[TYPES_MAX * OPS_MAX];
    const size_t count = combine_own_defaults(w, defaults);
    for (int size = 64; size <= 1024; size += 64) {
        char text[16];
        snprintf(text, sizeof text, "%d", size);
        if (sizelist_add(sizes, text, defaults, count) != 0) return -1;
    }
    return 0;
}

/* The lists that a word names. */
static int add_suite(words *w, prewarm_args *args, const char *word)
{
    jg_problem defaults[TYPES_MAX * OPS_MAX];
    const size_t count = combine_own_defaults(w, defaults);
    const bench_list *list;
    int found = 0;
    for (size_t i = 0; (list = bench_list_at(i)); i++) {
        if (!bench_list_matches(list, word)) continue;
        found = 1;
        if (bench_list_problems(list, defaults, count, &args->sizes) != 0) return usage_error("%s", args->sizes.error);
        if (end_group(args, list->name, list->memory) != 0) return usage_error("out of memory");
    }
    return found ? -1 : usage_error("--suite: \"%s\" is none; jitgemm-bench --help lists them", word);
}

/* Whether there is something to make without any size. */
static int has_other_work(const prewarm_args *args)
{
    return args->from_misses || args->generic_types;
}

/* Sizes of one source. Returns as prewarm_args_parse. */
static int read_source(words *w, prewarm_args *args, const source *from, const jg_problem *defaults, size_t count)
{
    const char *slash = strrchr(from->text, '/'), *name = "sizes";
    int failed = 0;
    if (from->kind == FROM_SUITES) return each_word(from->text, w, args, add_suite);
    if (from->kind == FROM_FILE) {
        name = slash ? slash + 1 : from->text;
        failed = sizelist_read(&args->sizes, from->text, defaults, count);
    } else failed = sizelist_add(&args->sizes, from->text, defaults, count);
    if (failed) return usage_error("%s", args->sizes.error);
    return end_group(args, name, 0) == 0 ? -1 : usage_error("out of memory");
}

static int read_sources(words *w, prewarm_args *args)
{
    jg_problem defaults[TYPES_MAX * OPS_MAX];
    int status = -1;
    if (w->source_count == 0) {
        if (has_other_work(args)) return -1;
        if (add_common_sizes(w, &args->sizes) != 0) return usage_error("%s", args->sizes.error);
        return end_group(args, "common16", 0) == 0 ? -1 : usage_error("out of memory");
    }
    words given = *w; /* suites have defaults of their own */
    const size_t count = combine_defaults(&given, defaults);
    for (size_t i = 0; i < w->source_count && status < 0; i++) status = read_source(w, args, &w->sources[i], defaults, count);
    return status;
}

/* What goes with --tune, and what does not. */
static int check_tuning(const prewarm_args *args)
{
    const struct { int given; const char *name; } rows[] = {{args->candidates != 0, "--candidates"},
        {args->exhaustive, "--exhaustive"}, {args->allow_new_bits, "--allow-new-bits"}, {args->retune, "--retune"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !args->tune; i++)
        if (rows[i].given) return usage_error("%s says how to tune, and needs --tune", rows[i].name);
    if (!args->tune) return -1;
    if (args->arch_count)
        return usage_error("--tune measures on this machine's GPU, so it cannot tune for another one: leave out --arch, "
                           "or run it on that machine");
    if (args->generic) return usage_error("--tune leaves the generic kernels as they are: make them with --generic in a run of its own");
    if (args->seal) return usage_error("--tune does not seal: run jitgemm-cache seal when the file is complete");
    if (args->exhaustive && args->candidates) return usage_error("--exhaustive measures all candidates: leave out --candidates");
    return -1;
}

int prewarm_args_parse(int argc, char **argv, prewarm_args *args)
{
    words w = {0};
    *args = (prewarm_args){0};
    w.sources = calloc((size_t)argc + 1, sizeof *w.sources);
    if (!w.sources) return usage_error("out of memory");
    int status = collect(argc, argv, &w, args);
    if (status < 0) status = check_tuning(args);
    if (status < 0 && args->sm_count && !args->arch_count && !args->tune)
        status = usage_error("--sms needs --arch, or --tune: a GPU's own count is known");
    if (status < 0 && has_other_work(args) && w.source_count == 0 && (w.type_count || w.op_count || w.order_given))
        status = usage_error("--type, --op and --order say how to read sizes, and there is none");
    if (status < 0) status = read_sources(&w, args);
    if (status < 0 && args->sizes.count == 0 && !has_other_work(args)) status = usage_error("the lists hold no size");
    free(w.sources);
    if (status >= 0) prewarm_args_free(args);
    return status;
}

void prewarm_args_free(prewarm_args *args)
{
    sizelist_free(&args->sizes);
    free(args->groups);
    args->groups = NULL;
    args->group_count = 0;
}
