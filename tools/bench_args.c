/* Reads the command line of jitgemm-bench: see bench_args.h. Which option there is, for which command, what it takes and where
 * it goes are rows of one table. */
#include "bench_args.h"

#include "bench_drift.h"
#include "bench_suites.h"
#include "bench_usage.h"
#include "text.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const command_names[BENCH_COMMANDS] = {
    [BENCH_FIRST_CALL] = "first-call", [BENCH_DISPATCH] = "dispatch", [BENCH_COLD_START] = "cold-start",
    [BENCH_PRODUCTS] = "products", [BENCH_PLANS] = "plans", [BENCH_COMPILE] = "compile",
    [BENCH_MEMORY] = "memory", [BENCH_PLANNER] = "planner"};

#define FOR_FIRST (1u << BENCH_FIRST_CALL)
#define FOR_DISPATCH (1u << BENCH_DISPATCH)
#define FOR_COLD (1u << BENCH_COLD_START)
#define FOR_PRODUCTS (1u << BENCH_PRODUCTS)
#define FOR_PLANS (1u << BENCH_PLANS)
#define FOR_COMPILE (1u << BENCH_COMPILE)
#define FOR_MEMORY (1u << BENCH_MEMORY)
#define FOR_PLANNER (1u << BENCH_PLANNER)
#define FOR_RESULTS (FOR_FIRST | FOR_DISPATCH | FOR_COLD | FOR_PRODUCTS | FOR_COMPILE) /* those with targets, pages, baselines */
#define FOR_ALL (FOR_RESULTS | FOR_PLANS)

typedef enum option_kind {
    NUMBER, FLAG, PATH,                            /* stored at `offset` as long, int, const char * */
    WORDS,                                         /* added to the bench_words at `offset` */
    PROBLEM, TYPES, DATA, PLANS, PROCESSORS, FORMAT_JSON, FORMAT_CSV, HELP, VERSION
} option_kind;

static const struct option_row {
    const char *name;
    option_kind kind;
    unsigned commands;
    size_t offset;
    long min, max;             /* of a number */
    long otherwise, software;  /* what it is if not given, on a GPU and on the software GPU */
} rows[] = {
#define AT(member) offsetof(bench_args, member)
    {"sizes", NUMBER, FOR_FIRST, AT(sizes), 1, 1000000, 20000, 40},
    {"seed", NUMBER, FOR_FIRST, AT(seed), 0, LONG_MAX, 1, 1},
    {"busy", NUMBER, FOR_FIRST, AT(busy_ms), 0, 1000, 20, 0},
    {"poll", NUMBER, FOR_FIRST, AT(poll), 0, 1000000, 64, 8},
    {"compiling", FLAG, FOR_FIRST, AT(compiling), 0, 0, 0, 0},
    {"peer-sizes", NUMBER, FOR_FIRST, AT(peer_sizes), 1, 1000000, 300, 1},
    {"neighbour", FLAG, FOR_FIRST, AT(neighbour), 0, 0, 0, 0},
    {"launches", NUMBER, FOR_FIRST, AT(launches), 8, 10000000, 20000, 40},
    {"problem", PROBLEM, FOR_DISPATCH, 0, 0, 0, 0, 0},
    {"threads", NUMBER, FOR_DISPATCH, AT(threads), 1, 64, 1, 1},
    {"problems", NUMBER, FOR_DISPATCH, AT(problems), 0, 1000000, 0, 0},
    {"batches", NUMBER, FOR_DISPATCH, AT(batches), 1, 1000000, 400, 2},
    {"compiles", NUMBER, FOR_MEMORY, AT(compiles), 1, 1000, 8, 8},
    {"helper", PATH, FOR_MEMORY, AT(helper_path), 0, 0, 0, 0},
    {"runs", NUMBER, FOR_COLD, AT(runs), 1, 10000, 20, 2},
    {"list", WORDS, FOR_PRODUCTS | FOR_PLANS | FOR_PLANNER, AT(lists), 0, 0, 0, 0},
    {"size", WORDS, FOR_PRODUCTS | FOR_PLANS | FOR_PLANNER, AT(single), 0, 0, 0, 0},
    {"type", TYPES, FOR_PRODUCTS | FOR_PLANS | FOR_PLANNER | FOR_COMPILE, 0, 0, 0, 0, 0},
    {"data", DATA, FOR_PRODUCTS | FOR_PLANS, 0, 0, 0, 0, 0},
    {"plans", PLANS, FOR_PRODUCTS, 0, 0, 0, 0, 0},
    {"rounds", NUMBER, FOR_PRODUCTS | FOR_PLANS, AT(rounds), 3, 1000, 21, 1},
    {"sample", NUMBER, FOR_PRODUCTS | FOR_PLANS, AT(sample_us), 10, 1000000, 500, 10},
    {"generic", FLAG, FOR_PRODUCTS, AT(generic), 0, 0, 0, 0},
    {"record", FLAG, FOR_PRODUCTS, AT(record), 0, 0, 0, 0},
    {"sms", NUMBER, FOR_ALL & ~FOR_COLD, AT(sms), 1, 1024, 0, 0},
    {"as-arch", NUMBER, FOR_ALL & ~FOR_COLD, AT(as_arch), 0, 999, -1, -1},
    {"cublaslt", PATH, FOR_PRODUCTS, AT(cublaslt_path), 0, 0, 0, 0},
    {"all-classes", FLAG, FOR_PLANS, AT(all_classes), 0, 0, 0, 0},
    {"write-csv", PATH, FOR_PLANS, AT(csv_path), 0, 0, 0, 0},
    {"jobs", NUMBER, FOR_COMPILE | FOR_PLANS, AT(jobs), 1, 64, 0, 0},
    {"html", PATH, FOR_RESULTS, AT(html_path), 0, 0, 0, 0},
    {"save", PATH, FOR_RESULTS, AT(save_path), 0, 0, 0, 0},
    {"against", PATH, FOR_RESULTS, AT(against_path), 0, 0, 0, 0},
    {"processes", NUMBER, FOR_RESULTS, AT(processes), BENCH_DRIFT_LEAST_RUNS, 1000, BENCH_DRIFT_LEAST_RUNS,
     BENCH_DRIFT_LEAST_RUNS},
    {"percent", NUMBER, FOR_RESULTS, AT(percent), 0, 1000, 3, 3},
    {"place", WORDS, FOR_PLANNER, AT(places), 0, 0, 0, 0},
    {"cache", PATH, FOR_ALL | FOR_PLANNER, AT(cache_path), 0, 0, 0, 0},
    {"fill", FLAG, FOR_FIRST | FOR_DISPATCH | FOR_COLD, AT(fill), 0, 0, 0, 0},
    {"cpus", PROCESSORS, FOR_ALL | FOR_MEMORY, 0, 0, 0, 0, 0},
    {"no-peer", FLAG, FOR_FIRST | FOR_COLD | FOR_PRODUCTS, AT(no_peer), 0, 0, 0, 0},
    {"cublas", PATH, FOR_FIRST | FOR_COLD | FOR_PRODUCTS, AT(cublas_path), 0, 0, 0, 0},
    {"driver", PATH, FOR_ALL | FOR_MEMORY, AT(driver_path), 0, 0, 0, 0},
    {"nvrtc", PATH, FOR_ALL | FOR_MEMORY, AT(nvrtc_path), 0, 0, 0, 0},
    {"check", FLAG, FOR_RESULTS | FOR_MEMORY, AT(check), 0, 0, 0, 0},
    {"json", FORMAT_JSON, FOR_ALL | FOR_MEMORY | FOR_PLANNER, 0, 0, 0, 0, 0},
    {"csv", FORMAT_CSV, FOR_ALL | FOR_MEMORY | FOR_PLANNER, 0, 0, 0, 0, 0},
    {"help", HELP, FOR_ALL | FOR_MEMORY | FOR_PLANNER, 0, 0, 0, 0, 0},
    {"version", VERSION, FOR_ALL | FOR_MEMORY | FOR_PLANNER, 0, 0, 0, 0, 0},
#undef AT
};
enum { ROWS = sizeof rows / sizeof *rows, FIRST_CODE = 256 };

const char *bench_args_title(const bench_args *args, bench_command command)
{
    return command == BENCH_PRODUCTS || command == BENCH_PLANS || command == BENCH_PLANNER ? args->title : command_names[command];
}

static int has_command(const bench_args *args, bench_command command)
{
    for (size_t i = 0; i < args->command_count; i++)
        if (args->commands[i] == command) return 1;
    return 0;
}

static void make_title(bench_args *args)
{
    size_t length = 0;
    if (has_command(args, BENCH_PLANS)) text_append(args->title, sizeof args->title, &length, "plans");
    if (has_command(args, BENCH_PLANNER)) text_append(args->title, sizeof args->title, &length, "planner");
    for (size_t i = 0; i < args->suites.count; i++)
        text_append(args->title, sizeof args->title, &length, "%s%s", length ? " " : "", args->suites.words[i]);
    for (size_t i = 0; i < args->lists.count; i++)
        text_append(args->title, sizeof args->title, &length, "%s%s", length ? " " : "", args->lists.words[i]);
    if (args->single.count) text_append(args->title, sizeof args->title, &length, "%ssizes", length ? " " : "");
    length = 0;
    for (size_t i = 0; i < args->command_count; i++)
        text_append(args->titles, sizeof args->titles, &length, "%s%s", i ? ", " : "", bench_args_title(args, args->commands[i]));
}

__attribute__((format(printf, 1, 2)))
static int usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("jitgemm-bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    return BENCH_EXIT_USAGE;
}

static long *number_at(bench_args *args, const struct option_row *row)
{
    return (long *)((char *)args + row->offset);
}

static int parse_number(const struct option_row *row, const char *text, bench_args *args)
{
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != 0 || errno != 0 || number < row->min || number > row->max)
        return usage_error("--%s: \"%s\" is not a number from %ld to %ld", row->name, text, row->min, row->max);
    *number_at(args, row) = number;
    return -1;
}

/* "0,1" or "2-5" or both. */
static int parse_processors(const char *text, bench_args *args)
{
    const char *next = text;
    CPU_ZERO(&args->cpus);
    for (;; next++) {
        char *end;
        if (*next < '0' || *next > '9') break;
        const long first = strtol(next, &end, 10);
        long last = first;
        next = end;
        if (*next == '-') {
            if (next[1] < '0' || next[1] > '9') break;
            last = strtol(next + 1, &end, 10);
            next = end;
        }
        if (first > last || last >= CPU_SETSIZE) break;
        for (long i = first; i <= last; i++) CPU_SET((size_t)i, &args->cpus);
        if (*next == 0) {
            args->pinned = 1;
            return -1;
        }
        if (*next != ',') break;
    }
    return usage_error("--cpus: \"%s\" is no list of processors such as 0,1 or 2-5, each below %d", text, CPU_SETSIZE);
}

/* "f16,f16-f32,f32:tf32". */
static int parse_types(const char *text, bench_args *args)
{
    args->type_count = 0;
    for (const char *word = text;; word++) {
        const size_t length = strcspn(word, ",");
        if (args->type_count == BENCH_TYPES_MAX) return usage_error("--type: at most %d types", BENCH_TYPES_MAX);
        if (sizelist_type(word, length, &args->types[args->type_count++]) != 0)
            return usage_error("--type: \"%.*s\" is no type; use f32, f16, bf16, s8, s4, e4m3, A-C such as f16-f32, A.B-C such "
                               "as u8.s8-s32, a mode such as tf32, each with further words of a size, such as f16:nt",
                               (int)length, word);
        word += length;
        if (*word == 0) return -1;
    }
}

static int parse_data(const char *text, bench_args *args)
{
    if (strcmp(text, "resident") == 0) args->data = BENCH_DATA_RESIDENT;
    else if (strcmp(text, "rotated") == 0) args->data = BENCH_DATA_ROTATED;
    else return usage_error("--data: \"%s\" is neither resident nor rotated", text);
    return -1;
}

static int parse_plans(const char *text, bench_args *args)
{
    if (strcmp(text, "auto") == 0) args->plans = JG_PLANS_AUTO;
    else if (strcmp(text, "model") == 0) args->plans = JG_PLANS_MODEL;
    else return usage_error("--plans: \"%s\" is neither auto nor model", text);
    return -1;
}

static int add_word(const struct option_row *row, const char *word, bench_args *args)
{
    bench_words *words = (bench_words *)((char *)args + row->offset);
    if (*word == 0) return usage_error("--%s needs a value", row->name);
    if (words->count == BENCH_WORDS_MAX) return usage_error("--%s: at most %d times", row->name, BENCH_WORDS_MAX);
    words->words[words->count++] = word;
    return -1;
}

static int set_format(bench_args *args, bench_format format)
{
    if (args->format != BENCH_TABLE && args->format != format) return usage_error("--json and --csv exclude each other");
    args->format = format;
    return -1;
}

static int apply_option(const struct option_row *row, const char *value, bench_args *args)
{
    switch (row->kind) {
    case NUMBER: return parse_number(row, value, args);
    case FLAG: *(int *)((char *)args + row->offset) = 1; return -1;
    case PATH:
        *(const char **)((char *)args + row->offset) = value;
        return *value ? -1 : usage_error("--%s needs a file name", row->name);
    case WORDS: return add_word(row, value, args);
    case TYPES: return parse_types(value, args);
    case DATA: return parse_data(value, args);
    case PLANS: return parse_plans(value, args);
    case PROBLEM:
        args->problem = (jg_problem){0};
        return jg_problem_parse(value, &args->problem) == JG_OK ? -1 : usage_error("--%s: %s", row->name, jg_last_error());
    case PROCESSORS: return parse_processors(value, args);
    case FORMAT_JSON: return set_format(args, BENCH_JSON);
    case FORMAT_CSV: return set_format(args, BENCH_CSV);
    case HELP: bench_usage_print(); return BENCH_EXIT_DONE;
    case VERSION: printf("jitgemm-bench %s\n", jg_version()); return BENCH_EXIT_DONE;
    }
    return usage_error("option --%s has no kind", row->name); /* a hole in the table above */
}

static void add_command(bench_command command, bench_args *args)
{
    if (!has_command(args, command)) args->commands[args->command_count++] = command;
}

/* Of the suites all plans are measured instead, if that was said. Returns -1, or an error's status where there are none. */
static int put_plans_in_place(bench_args *args)
{
    size_t left = 0;
    if (!has_command(args, BENCH_PLANS)) return -1;
    if (!has_command(args, BENCH_PRODUCTS)) return usage_error("plans of what? A suite such as common16, --list or --size");
    for (size_t i = 0; i < args->command_count; i++)
        if (args->commands[i] != BENCH_PRODUCTS) args->commands[left++] = args->commands[i];
    args->command_count = left;
    return -1;
}

/* What was recorded of the suites, if that was said, instead of measuring them; it goes with nothing else. Returns as above. */
static int put_planner_in_place(bench_args *args)
{
    if (!has_command(args, BENCH_PLANNER)) return -1;
    for (size_t i = 0; i < args->command_count; i++)
        if (args->commands[i] != BENCH_PLANNER && args->commands[i] != BENCH_PRODUCTS)
            return usage_error("planner measures nothing: run %s by itself", command_names[args->commands[i]]);
    args->commands[0] = BENCH_PLANNER;
    args->command_count = 1;
    return -1;
}

static void add_suite(const char *word, bench_args *args)
{
    for (size_t i = 0; i < args->suites.count; i++)
        if (strcmp(args->suites.words[i], word) == 0) return;
    if (args->suites.count < BENCH_WORDS_MAX) args->suites.words[args->suites.count++] = word; /* there are fewer names */
    add_command(BENCH_PRODUCTS, args);
}

static int add_all(bench_args *args)
{
    add_command(BENCH_FIRST_CALL, args);
    for (size_t i = 0; bench_list_at(i); i++) add_suite(bench_list_at(i)->suite, args);
    add_command(BENCH_COMPILE, args);
    return -1;
}

static int unknown_word(const char *word)
{
    char names[512] = "";
    size_t length = 0;
    for (size_t i = 0; bench_list_at(i); i++)
        if (i == 0 || strcmp(bench_list_at(i)->suite, bench_list_at(i - 1)->suite) != 0)
            text_append(names, sizeof names, &length, "%s, ", bench_list_at(i)->suite);
    return usage_error("\"%s\" is no suite; use %scompile, memory, first-call, dispatch, cold-start, plans, planner or all, or "
                       "--list FILE", word, names);
}

static int set_command(const char *word, bench_args *args)
{
    if (strcmp(word, "all") == 0) return add_all(args);
    for (int i = 0; i < BENCH_COMMANDS; i++)
        if (i != BENCH_PRODUCTS && strcmp(word, command_names[i]) == 0) {
            add_command((bench_command)i, args);
            return -1;
        }
    for (size_t i = 0; bench_list_at(i); i++)
        if (bench_list_matches(bench_list_at(i), word)) {
            add_suite(word, args);
            return -1;
        }
    return unknown_word(word);
}

/* Options that concern the processes together, or that bench_args_for_process sets itself. */
static int is_for_the_whole(const struct option_row *row)
{
    static const char *const names[] = {"save", "against", "processes", "percent", "html", "cache",
                                        "json", "csv", "fill", "check", "no-peer"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(row->name, names[i]) == 0) return 1;
    return 0;
}

static int pass_on(bench_args *args, const char *word)
{
    if (args->passed.count == BENCH_PASSED_MAX) return usage_error("the command line is too long");
    args->passed.words[args->passed.count++] = word;
    return -1;
}

static int pass_option(bench_args *args, int row, const char *value)
{
    static char names[ROWS][32];
    if (is_for_the_whole(&rows[row])) return -1;
    snprintf(names[row], sizeof names[row], "--%s", rows[row].name);
    const int status = pass_on(args, names[row]);
    return status < 0 && value ? pass_on(args, value) : status;
}

static int take_word(const char *word, bench_args *args)
{
    const int status = set_command(word, args);
    return status < 0 ? pass_on(args, word) : status;
}

/* Takes argv apart. given[i]: row i was. */
static int collect(int argc, char **argv, bench_args *args, char given[ROWS])
{
    struct option options[ROWS + 1] = {0};
    for (int i = 0; i < ROWS; i++) {
        const int bare = rows[i].kind == FLAG || rows[i].kind >= FORMAT_JSON;
        options[i] = (struct option){rows[i].name, bare ? no_argument : required_argument, NULL, FIRST_CODE + i};
    }
    int option, status = -1;
    opterr = 0;
    while (status < 0 && (option = getopt_long(argc, argv, "-:", options, NULL)) != -1) {
        if (option == 1) status = take_word(optarg, args);
        else if (option == ':') status = usage_error("%s needs a value; see --help", argv[optind - 1]);
        else if (option == '?' && (optopt < 0 || (optopt > ' ' && optopt < 256))) /* a short one; there are none */
            status = usage_error("unknown option -%c; see --help", optopt > ' ' && optopt < 127 ? optopt : '?');
        else if (option == '?') status = usage_error("bad option %s; see --help", argv[optind - 1]);
        else {
            given[option - FIRST_CODE] = 1;
            status = apply_option(&rows[option - FIRST_CODE], optarg, args);
            if (status < 0) status = pass_option(args, option - FIRST_CODE, optarg);
        }
    }
    for (; status < 0 && optind < argc; optind++) status = take_word(argv[optind], args); /* after -- */
    return status;
}

static int is_for_a_command(const struct option_row *row, const bench_args *args)
{
    for (size_t i = 0; i < args->command_count; i++)
        if (row->commands & 1u << args->commands[i]) return 1;
    return 0;
}

/* Options that would be ignored are mistakes. */
static int check_first_call(const bench_args *args, const struct option_row *row)
{
    const long *number = row->kind == NUMBER ? (const long *)((const char *)args + row->offset) : NULL;
    const int for_neighbour = number == &args->launches,
              for_sizes = number == &args->sizes || number == &args->peer_sizes || number == &args->poll;
    if (args->neighbour && for_sizes) return usage_error("--neighbour and --%s exclude each other", row->name);
    if (!args->neighbour && for_neighbour) return usage_error("--%s is only for --neighbour", row->name);
    return -1;
}

static int check_drift(const bench_args *args, const char given[ROWS])
{
    for (int i = 0; i < ROWS; i++) {
        const long *number = rows[i].kind == NUMBER ? (const long *)((const char *)args + rows[i].offset) : NULL;
        if (given[i] && !args->save_path && !args->against_path && (number == &args->processes || number == &args->percent))
            return usage_error("--%s is only for --save and --against", rows[i].name);
    }
    for (size_t i = 0, inputs = 0; i < args->lists.count; i++) {
        inputs += strcmp(args->lists.words[i], "-") == 0;
        if (inputs == 0 || (inputs == 1 && !args->save_path && !args->against_path)) continue;
        return usage_error("--list -: standard input can be read once only%s",
                           inputs == 1 ? ", not in each process; use a file" : "");
    }
    if ((args->save_path || args->against_path) && (args->record || args->check))
        return usage_error("--%s: only for a run without --save and --against", args->record ? "record" : "check");
    return -1;
}

/* One file would replace the other. A baseline may replace what it was compared with. */
static int check_paths(const bench_args *args)
{
    const struct { const char *option, *path; } files[] = {{"html", args->html_path}, {"save", args->save_path},
                                                           {"cache", args->cache_path}, {"against", args->against_path},
                                                           {"write-csv", args->csv_path}};
    enum { FILES = sizeof files / sizeof *files };
    for (int i = 0; i < FILES; i++)
        for (int j = i + 1; j < FILES; j++)
            if (!(i == 1 && j == 3) && files[i].path && files[j].path && strcmp(files[i].path, files[j].path) == 0)
                return usage_error("--%s and --%s are the same file", files[i].option, files[j].option);
    return -1;
}

static int check_combination(const bench_args *args, const char given[ROWS])
{
    if (args->command_count == 0)
        return usage_error("what? A suite such as common16, or first-call, dispatch, cold-start, compile, memory, planner or all; see "
                           "--help");
    for (int i = 0; i < ROWS; i++) {
        if (!given[i]) continue;
        if (!is_for_a_command(&rows[i], args))
            return usage_error("--%s is not for %s; see --help", rows[i].name, args->titles);
        const int status = check_first_call(args, &rows[i]);
        if (status >= 0) return status;
    }
    if (args->neighbour && args->compiling) return usage_error("--neighbour compiles in turn by itself; leave --compiling out");
    if (args->problem.m == 0 || args->problem.n == 0) return usage_error("--problem: there is nothing to compute");
    if (args->record && !args->cache_path) return usage_error("--record needs --cache FILE, where it is kept");
    const int status = check_paths(args);
    return status < 0 ? check_drift(args, given) : status;
}

int bench_args_parse(int argc, char **argv, bench_args *args)
{
    char given[ROWS] = {0};
    *args = (bench_args){.problem = {.m = 1, .n = 1, .k = 1, .type_a = JG_F32},
                         .types = {{.type_a = JG_F32}, {.type_a = JG_F16}, {.type_a = JG_BF16}}, .type_count = 3};
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == NUMBER) *number_at(args, &rows[i]) = -1;
    int status = collect(argc, argv, args, given);
    if (args->lists.count + args->single.count > 0) add_command(BENCH_PRODUCTS, args);
    if (status < 0) status = put_planner_in_place(args);
    if (status < 0) status = put_plans_in_place(args);
    if (args->record) args->generic = 1;
    make_title(args);
    return status >= 0 ? status : check_combination(args, given);
}

void bench_args_resolve(bench_args *args, int software)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == NUMBER && *number_at(args, &rows[i]) < 0)
            *number_at(args, &rows[i]) = software ? rows[i].software : rows[i].otherwise;
}

const char **bench_args_for_process(const bench_args *args, const char *program, const char *cache)
{
    const char **out = calloc(args->passed.count + 8, sizeof *out);
    size_t n = 0;
    if (!out) return NULL;
    const char *const first[] = {program, "--json", "--cache", cache};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) out[n++] = first[i];
    for (int r = 0; r < ROWS; r++) {
        if (!is_for_a_command(&rows[r], args)) continue;
        if (strcmp(rows[r].name, "no-peer") == 0) out[n++] = "--no-peer";
        if (strcmp(rows[r].name, "fill") == 0) out[n++] = "--fill";
    }
    for (size_t i = 0; i < args->passed.count; i++) out[n++] = args->passed.words[i];
    return out;
}
