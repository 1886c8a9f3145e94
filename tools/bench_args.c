/* Reads the command line of jitgemm-bench: see bench_args.h. Which option there is, for which command, what it takes and where
 * it goes are rows of one table. */
#include "bench_args.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: jitgemm-bench COMMAND [OPTION]...\n"
    "Measures what jitgemm promises, and shows it beside its targets and beside cuBLAS.\n"
    "\n"
    "first-call: host time from call to return, for sizes never seen before, on a GPU that is never idle\n"
    "  --sizes N       how many; default 20000\n"
    "  --seed N        of the list of sizes; default 1\n"
    "  --busy MS       length of the kernels on another stream; 0: none; default 20\n"
    "  --poll N        calls from one jg_poll to the next; 0: never; default 64\n"
    "  --compiling     keep the worker compiling meanwhile\n"
    "  --peer-sizes N  how many of the sizes cuBLAS gets; default 300\n"
    "  --neighbour     instead: another thread's launches, the worker idle and compiling in turn\n"
    "  --launches N    with --neighbour: launches in each of the two; default 20000\n"
    "dispatch: what a call for a known size adds to cuLaunchKernel\n"
    "  --problem SIZE  default 1x1x1, e.g. 16:f16\n"
    "  --threads N     that launch at once, each on its own stream, 1 to 64; default 1\n"
    "  --problems N    then again with N other problems remembered; default 0: not\n"
    "  --batches N     rounds of one batch of each kind; default 400\n"
    "cold-start: from process start to the first result, with a warm cache file\n"
    "  --runs N        processes started of each kind; default 20\n"
    "All\n"
    "  --cache FILE    kernels' cache; default: a temporary one, filled first\n"
    "  --fill          first make sure that the generic kernels are in FILE\n"
    "  --cpus LIST     run on these processors only, all threads, e.g. 0,1 or 2-5\n"
    "  --no-peer       leave cuBLAS out\n"
    "  --cublas FILE   cuBLAS library; default libcublas.so.13, .12 or .11\n"
    "  --driver FILE   CUDA driver library; swgpu: the software GPU, for counts without times\n"
    "  --nvrtc FILE    NVRTC library; default $JITGEMM_NVRTC, else the usual places\n"
    "  --check         exit with 3 if a target is missed\n"
    "  --json, --csv   instead of the table\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 bad command line, 3 target missed, 130 interrupted.\n";

static const char *const command_names[BENCH_COMMANDS] = {
    [BENCH_FIRST_CALL] = "first-call", [BENCH_DISPATCH] = "dispatch", [BENCH_COLD_START] = "cold-start"};

#define FOR_FIRST (1u << BENCH_FIRST_CALL)
#define FOR_DISPATCH (1u << BENCH_DISPATCH)
#define FOR_COLD (1u << BENCH_COLD_START)
#define FOR_ALL (FOR_FIRST | FOR_DISPATCH | FOR_COLD)

typedef enum option_kind {
    NUMBER, FLAG, PATH,                            /* stored at `offset` as long, int, const char * */
    PROBLEM, PROCESSORS, FORMAT_JSON, FORMAT_CSV, HELP, VERSION
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
    {"runs", NUMBER, FOR_COLD, AT(runs), 1, 10000, 20, 2},
    {"cache", PATH, FOR_ALL, AT(cache_path), 0, 0, 0, 0},
    {"fill", FLAG, FOR_ALL, AT(fill), 0, 0, 0, 0},
    {"cpus", PROCESSORS, FOR_ALL, 0, 0, 0, 0, 0},
    {"no-peer", FLAG, FOR_FIRST | FOR_COLD, AT(no_peer), 0, 0, 0, 0},
    {"cublas", PATH, FOR_FIRST | FOR_COLD, AT(cublas_path), 0, 0, 0, 0},
    {"driver", PATH, FOR_ALL, AT(driver_path), 0, 0, 0, 0},
    {"nvrtc", PATH, FOR_ALL, AT(nvrtc_path), 0, 0, 0, 0},
    {"check", FLAG, FOR_ALL, AT(check), 0, 0, 0, 0},
    {"json", FORMAT_JSON, FOR_ALL, 0, 0, 0, 0, 0},
    {"csv", FORMAT_CSV, FOR_ALL, 0, 0, 0, 0, 0},
    {"help", HELP, FOR_ALL, 0, 0, 0, 0, 0},
    {"version", VERSION, FOR_ALL, 0, 0, 0, 0, 0},
#undef AT
};
enum { ROWS = sizeof rows / sizeof *rows, FIRST_CODE = 256 };

const char *bench_command_name(bench_command command)
{
    return command_names[command];
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
    case PROBLEM:
        args->problem = (jg_problem){0};
        return jg_problem_parse(value, &args->problem) == JG_OK ? -1 : usage_error("--%s: %s", row->name, jg_last_error());
    case PROCESSORS: return parse_processors(value, args);
    case FORMAT_JSON: return set_format(args, BENCH_JSON);
    case FORMAT_CSV: return set_format(args, BENCH_CSV);
    case HELP: fputs(usage, stdout); return BENCH_EXIT_DONE;
    case VERSION: printf("jitgemm-bench %s\n", jg_version()); return BENCH_EXIT_DONE;
    }
    return usage_error("option --%s has no kind", row->name); /* a hole in the table above */
}

static int set_command(const char *word, bench_args *args)
{
    if (args->command != BENCH_COMMANDS) return usage_error("\"%s\" is one word too many; see --help", word);
    for (int i = 0; i < BENCH_COMMANDS; i++)
        if (strcmp(word, command_names[i]) == 0) args->command = (bench_command)i;
    if (args->command != BENCH_COMMANDS) return -1;
    return usage_error("\"%s\" is no command; use first-call, dispatch or cold-start", word);
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
        if (option == 1) status = set_command(optarg, args);
        else if (option == ':') status = usage_error("%s needs a value; see --help", argv[optind - 1]);
        else if (option == '?' && (optopt < 0 || (optopt > ' ' && optopt < 256))) /* a short one; there are none */
            status = usage_error("unknown option -%c; see --help", optopt > ' ' && optopt < 127 ? optopt : '?');
        else if (option == '?') status = usage_error("bad option %s; see --help", argv[optind - 1]);
        else {
            given[option - FIRST_CODE] = 1;
            status = apply_option(&rows[option - FIRST_CODE], optarg, args);
        }
    }
    for (; status < 0 && optind < argc; optind++) status = set_command(argv[optind], args); /* after -- */
    return status;
}

/* Options that would be ignored are mistakes. */
static int check_combination(const bench_args *args, const char given[ROWS])
{
    if (args->command == BENCH_COMMANDS) return usage_error("which command? first-call, dispatch or cold-start; see --help");
    for (int i = 0; i < ROWS; i++) {
        if (!given[i]) continue;
        if (!(rows[i].commands & 1u << args->command))
            return usage_error("--%s is not for %s; see --help", rows[i].name, command_names[args->command]);
        const long *number = rows[i].kind == NUMBER ? (const long *)((const char *)args + rows[i].offset) : NULL;
        const int for_neighbour = number == &args->launches, for_sizes = number == &args->sizes || number == &args->peer_sizes ||
                                                                         number == &args->poll;
        if (args->neighbour && for_sizes) return usage_error("--neighbour and --%s exclude each other", rows[i].name);
        if (!args->neighbour && for_neighbour) return usage_error("--%s is only for --neighbour", rows[i].name);
    }
    if (args->neighbour && args->compiling) return usage_error("--neighbour compiles in turn by itself; leave --compiling out");
    if (args->problem.m == 0 || args->problem.n == 0) return usage_error("--problem: there is nothing to compute");
    return -1;
}

int bench_args_parse(int argc, char **argv, bench_args *args)
{
    char given[ROWS] = {0};
    *args = (bench_args){.command = BENCH_COMMANDS, .problem = {.m = 1, .n = 1, .k = 1, .type_a = JG_F32}};
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == NUMBER) *number_at(args, &rows[i]) = -1;
    const int status = collect(argc, argv, args, given);
    return status >= 0 ? status : check_combination(args, given);
}

void bench_args_resolve(bench_args *args, int software)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].kind == NUMBER && *number_at(args, &rows[i]) < 0)
            *number_at(args, &rows[i]) = software ? rows[i].software : rows[i].otherwise;
}
