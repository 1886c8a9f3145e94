/* Reads the command line of jitgemm-cache: see cache_args.h.
 *
 * Options may stand before or after the command. One table says what each command takes, so that an option which a command
 * would ignore is refused instead. */
#include "cache_args.h"
#include "cache_commands.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: jitgemm-cache [--cache FILE] [--json] COMMAND [ARGUMENT]...\n"
    "Looks into a jitgemm cache file and maintains it. Needs neither a GPU nor a compiler.\n"
    "\n"
    "Commands\n"
    "  ls              list the kernels, most recently used first\n"
    "  show KEY        everything about one kernel\n"
    "  stats           sums over the file\n"
    "  verify          check every record; exit status 1 if any is damaged\n"
    "  misses [--sizes | --clear]\n"
    "                  list the problems that ran on a generic kernel, most counted first: as a table,\n"
    "                  or as a list of sizes for jitgemm-prewarm --list; or forget them\n"
    "  plans [--clear] list the plans that were measured to be the fastest; or forget them\n"
    "  clear [--yes]   remove everything, the misses and plans too, and give the space back\n"
    "  seal [FILE]     make the file fit to be a factory file, read from a read-only place\n"
    "  extract KEY --cubin|--ptx|--source FILE\n"
    "                  write a part of a kernel to FILE; - is standard output\n"
    "KEY is a kernel name, an id, or a beginning of either that fits only one.\n"
    "\n"
    "Options\n"
    "  --cache FILE    cache file; default $JITGEMM_CACHE, else ~/.cache/jitgemm/kernels.db\n"
    "  --json          one JSON object on standard output\n"
    "  --help          this text; after a command, that command's\n"
    "  --version\n"
    "\n"
    "Exit status: 0 done, 1 the command failed, 2 bad command line.\n";

enum { OPTION_CACHE = 256, OPTION_JSON, OPTION_YES, OPTION_FORCE, OPTION_CLEAR, OPTION_SIZES, OPTION_CUBIN, OPTION_PTX,
       OPTION_SOURCE, OPTION_HELP, OPTION_VERSION };

enum { TAKES_KEY = 1, WRITES = 2, TAKES_YES = 4, TAKES_PART = 8, TAKES_FILE = 16, TAKES_CLEAR = 32, TAKES_SIZES = 64 };

static const struct command {
    const char *name;
    int takes;
    cache_command_fn run;
    const char *help;
} commands[] = {
    {"ls", 0, cache_list,
     "usage: jitgemm-cache ls [--cache FILE] [--json]\n"
     "Lists the kernels, most recently used first: beginning of the id, kernel, size in the file,\n"
     "compile time, how often it was read from the file, and when last. On a terminal long names are\n"
     "shortened in the middle to fit its width.\n"},
    {"show", TAKES_KEY, cache_show,
     "usage: jitgemm-cache show KEY [--cache FILE] [--json]\n"
     "Shows everything about one kernel. Its checksum is verified first.\n"
     "KEY is a kernel name, an id, or a beginning of either that fits only one.\n"},
    {"stats", 0, cache_stats,
     "usage: jitgemm-cache stats [--cache FILE] [--json]\n"
     "Shows sums over the file: recorded plans, and kernels, bytes, compile time and uses, in all and for\n"
     "each target.\n"},
    {"verify", 0, cache_verify,
     "usage: jitgemm-cache verify [--cache FILE] [--json]\n"
     "Checks the structure of the file and the checksum of every record, and changes nothing.\n"
     "Exit status 1 if anything is damaged. A damaged record is never used; it is removed and made\n"
     "again by the next program that wants it.\n"},
    {"misses", TAKES_CLEAR | TAKES_SIZES, cache_misses,
     "usage: jitgemm-cache misses [--sizes | --clear] [--cache FILE] [--json]\n"
     "Lists the problems that ran on a generic kernel because their own was not loaded, most counted\n"
     "first: launches, when last, target, whether their own kernel is in the file by now, how many times\n"
     "as fast it was measured to be, and the problem as jitgemm-prewarm takes it.\n"
     "jitgemm-prewarm --from-misses makes the kernels of all of them.\n"
     "--sizes lists the problems alone, one a line, for jitgemm-prewarm --list on another machine.\n"
     "--clear forgets the misses, and the measurements with them, and keeps every kernel.\n"},
    {"plans", TAKES_CLEAR, cache_plans,
     "usage: jitgemm-cache plans [--clear] [--cache FILE] [--json]\n"
     "Lists the plans that jitgemm-prewarm --tune measured to be the fastest, by place and problem: time\n"
     "of one product, how many times as fast that is as what the planner's model chooses, and as the\n"
     "second best, how many candidates were measured, whether the kernel is in the file, clock, power\n"
     "mode, when, the kernel's tile, and the problem as jitgemm-prewarm takes it. Programs use a plan\n"
     "wherever architecture, multiprocessors and memory are those of its place.\n"
     "--clear forgets the plans and keeps every kernel.\n"},
    {"clear", WRITES | TAKES_YES, cache_clear,
     "usage: jitgemm-cache clear [--yes] [--cache FILE] [--json]\n"
     "Removes everything, the list of misses and the recorded plans too, and gives the space back, also\n"
     "from a damaged cache file. Asks first on a terminal; elsewhere it needs --yes. Programs that are\n"
     "using the file may go on.\n"},
    {"seal", WRITES | TAKES_FILE, cache_seal,
     "usage: jitgemm-cache seal [FILE] [--json]\n"
     "Makes a cache file complete in itself, so that programs can read it from a read-only place as\n"
     "their factory file ($JITGEMM_FACTORY). FILE is as for --cache. Nobody else may use it meanwhile.\n"
     "A program that fills it again as its cache file breaks the seal.\n"},
    {"extract", TAKES_KEY | TAKES_PART, cache_extract,
     "usage: jitgemm-cache extract KEY --cubin|--ptx|--source FILE [--force] [--cache FILE] [--json]\n"
     "Writes a part of a kernel to FILE, whole or not at all; - is standard output. An existing file\n"
     "is only replaced with --force. --source gives the source with its macros, as it was compiled.\n"
     "KEY is a kernel name, an id, or a beginning of either that fits only one.\n"},
};

static int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("jitgemm-cache: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("; see jitgemm-cache --help\n", stderr);
    va_end(arguments);
    return CACHE_EXIT_USAGE;
}

/* What the options said, before the command is known. */
typedef struct given {
    int help, cache, parts;
} given;

static void take_part(cache_args *args, given *seen, jg_part part)
{
    args->part = part;
    args->file = optarg;
    seen->parts++;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, cache_args *args, given *seen)
{
    static const struct option options[] = {
        {"cache", required_argument, NULL, OPTION_CACHE}, {"json", no_argument, NULL, OPTION_JSON},
        {"yes", no_argument, NULL, OPTION_YES},           {"force", no_argument, NULL, OPTION_FORCE},
        {"clear", no_argument, NULL, OPTION_CLEAR},       {"cubin", required_argument, NULL, OPTION_CUBIN},
        {"sizes", no_argument, NULL, OPTION_SIZES},
        {"ptx", required_argument, NULL, OPTION_PTX},     {"source", required_argument, NULL, OPTION_SOURCE},
        {"help", no_argument, NULL, OPTION_HELP},         {"version", no_argument, NULL, OPTION_VERSION},
        {NULL, 0, NULL, 0}};
    int option, letter;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case OPTION_CACHE: args->cache_path = optarg, seen->cache = 1; break;
        case OPTION_JSON: args->json = 1; break;
        case OPTION_YES: args->yes = 1; break;
        case OPTION_FORCE: args->force = 1; break;
        case OPTION_CLEAR: args->clear = 1; break;
        case OPTION_SIZES: args->sizes = 1; break;
        case OPTION_CUBIN: take_part(args, seen, JG_PART_CUBIN); break;
        case OPTION_PTX: take_part(args, seen, JG_PART_PTX); break;
        case OPTION_SOURCE: take_part(args, seen, JG_PART_SOURCE); break;
        case OPTION_HELP: seen->help = 1; break;
        case OPTION_VERSION: printf("jitgemm-cache %s\n", jg_version()); return CACHE_EXIT_DONE;
        case ':': return fail("%s needs a value", argv[optind - 1]);
        default:
            if (optopt == 0 || optopt >= 256) return fail("bad option %s", argv[optind - 1]);
            letter = optopt > ' ' && optopt < 127 ? optopt : '?';
            return fail("unknown option -%c", letter); /* a short one; there are none */
        }
    }
    return -1;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

/* Whether command, words and options fit together. */
static int check(const struct command *command, const cache_args *args, const given *seen, int words)
{
    int takes = command->takes;
    if ((takes & TAKES_KEY) && !args->key) return fail("%s needs a KEY", command->name);
    if (words > 1 + !!(takes & (TAKES_KEY | TAKES_FILE))) return fail("too many arguments for %s", command->name);
    if (args->yes && !(takes & TAKES_YES)) return fail("%s takes no --yes", command->name);
    if (args->clear && !(takes & TAKES_CLEAR)) return fail("%s takes no --clear", command->name);
    if (args->sizes && !(takes & TAKES_SIZES)) return fail("%s takes no --sizes", command->name);
    if (args->sizes && (args->clear || args->json)) return fail("--sizes goes with neither --clear nor --json");
    if (seen->cache && (takes & TAKES_FILE) && words > 1) return fail("%s: --cache and FILE name two files", command->name);
    if ((args->force || seen->parts) && !(takes & TAKES_PART))
        return fail("%s takes no --cubin, --ptx, --source or --force", command->name);
    if ((takes & TAKES_PART) && seen->parts != 1)
        return fail("%s needs one of --cubin, --ptx and --source, with a FILE", command->name);
    if ((takes & TAKES_PART) && args->json && strcmp(args->file, "-") == 0)
        return fail("--json and the part itself cannot both go to standard output");
    return -1;
}

int cache_args_parse(int argc, char **argv, cache_args *args)
{
    given seen = {0, 0, 0};
    memset(args, 0, sizeof *args);
    opterr = 0; /* messages are ours */
    int status = read_options(argc, argv, args, &seen);
    if (status != -1) return status;
    int words = argc - optind;
    const struct command *command = words > 0 ? find_command(argv[optind]) : NULL;
    if (words > 0 && !command) return fail("unknown command \"%s\"", argv[optind]);
    if (seen.help) {
        fputs(command ? command->help : usage, stdout);
        return CACHE_EXIT_DONE;
    }
    if (!command) return fail("no command given");
    if ((command->takes & TAKES_KEY) && words > 1) args->key = argv[optind + 1];
    status = check(command, args, &seen, words);
    if ((command->takes & TAKES_FILE) && words > 1) args->cache_path = argv[optind + 1];
    args->run = command->run;
    args->writable = (command->takes & WRITES) || args->clear;
    return status;
}
