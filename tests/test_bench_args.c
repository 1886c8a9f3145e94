/* The command line of jitgemm-bench as settings, and the command line of the processes that --save and --against start. What the
 * program says to a bad one is tested in test_cli_bench.c; here it is that it is refused. */
#include "output_fixture.h"

#include "tools/bench_args.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- parsing ---- */

static bench_args args;
static char line[2048];     /* args points into it */

/* Splits at blanks, as a shell would without quotes; '' is an empty word. Returns the status; what was written is in `out`. */
static int parse(const char *text)
{
    static char program[] = "jitgemm-bench", empty[] = "";
    char *argv[512] = {program};
    int argc = 1;
    snprintf(line, sizeof line, "%s", text);
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < 511);
        argv[argc++] = strcmp(word, "''") ? word : empty;
    }
    optind = 0; /* getopt begins anew, as a process does */
    fflush(stderr);
    const int kept = dup(STDERR_FILENO);
    catch_output();
    dup2(STDOUT_FILENO, STDERR_FILENO);
    const int status = bench_args_parse(argc, argv, &args);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    take_output();
    return status;
}

static void parses(const char *text)
{
    if (parse(text) != -1) fail_msg("%s: %s", text, out);
    assert_string_equal(out, "");
}

static void refuses(const char *text, const char *message)
{
    if (parse(text) != BENCH_EXIT_USAGE) fail_msg("%s is taken", text);
    assert_has(message);
}

static void assert_commands(const bench_command *expected, size_t count)
{
    assert_int_equal(args.command_count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(args.commands[i], expected[i]);
}
#define COMMANDS(...) assert_commands((const bench_command[]){__VA_ARGS__}, COUNT(((const bench_command[]){__VA_ARGS__})))

/* Words with blanks between them. */
static void assert_words(const char *const *words, size_t count, const char *expected)
{
    char text[2048] = "";
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? " " : "", words[i]);
    assert_string_equal(text, expected);
}
#define WORDS(list, expected) assert_words((list).words, (list).count, expected)

/* ---- commands and suites ---- */

static void commands(void **state)
{
    (void)state;
    parses("first-call");
    COMMANDS(BENCH_FIRST_CALL);
    assert_string_equal(bench_args_title(&args, BENCH_FIRST_CALL), "first-call");
    parses("dispatch cold-start compile first-call");
    COMMANDS(BENCH_DISPATCH, BENCH_COLD_START, BENCH_COMPILE, BENCH_FIRST_CALL);
    parses("compile dispatch compile dispatch"); /* each once */
    COMMANDS(BENCH_COMPILE, BENCH_DISPATCH);
    assert_string_equal(bench_args_title(&args, BENCH_COMPILE), "compile");
    assert_string_equal(bench_args_title(&args, BENCH_COLD_START), "cold-start");
    refuses("", "what?");
    refuses("products", "\"products\" is no suite"); /* the name of the command behind all suites is none to be typed */
    refuses("common17", "use common16, poison, misalign, skinny, layers, large, tiny, compile");
    refuses("first-call ''", "\"\" is no suite");
}

/* Suites, lists of suites, and files are one command. */
static void suites(void **state)
{
    (void)state;
    parses("layers");
    COMMANDS(BENCH_PRODUCTS);
    WORDS(args.suites, "layers");
    assert_string_equal(bench_args_title(&args, BENCH_PRODUCTS), "layers");
    parses("common16 first-call resnet50 common16 skinny");
    COMMANDS(BENCH_PRODUCTS, BENCH_FIRST_CALL);
    WORDS(args.suites, "common16 resnet50 skinny");
    assert_string_equal(bench_args_title(&args, BENCH_PRODUCTS), "common16 resnet50 skinny");
    parses("--list a.txt --size 64:f16 --list=b.txt --size 65");
    COMMANDS(BENCH_PRODUCTS);
    WORDS(args.suites, "");
    WORDS(args.lists, "a.txt b.txt");
    WORDS(args.single, "64:f16 65");
    assert_string_equal(bench_args_title(&args, BENCH_PRODUCTS), "a.txt b.txt sizes");
    parses("compile poison --list -");
    COMMANDS(BENCH_COMPILE, BENCH_PRODUCTS);
    assert_string_equal(bench_args_title(&args, BENCH_PRODUCTS), "poison -");
    parses("compile --size 64"); /* a size makes a command of its own */
    COMMANDS(BENCH_COMPILE, BENCH_PRODUCTS);
    refuses("--list ''", "--list needs a value");
    refuses("common16 --size", "--size needs a value");
}

static void plans_to_use(void **state)
{
    (void)state;
    parses("common16");
    assert_int_equal(args.plans, JG_PLANS_AUTO);
    parses("common16 --plans model");
    assert_int_equal(args.plans, JG_PLANS_MODEL);
    parses("common16 --plans model --plans auto");
    assert_int_equal(args.plans, JG_PLANS_AUTO);
    refuses("common16 --plans best", "--plans: \"best\" is neither auto nor model");
    refuses("plans common16 --plans model", "--plans is not for plans common16");
}

static void memory(void **state)
{
    (void)state;
    parses("memory");
    COMMANDS(BENCH_MEMORY);
    assert_string_equal(bench_args_title(&args, BENCH_MEMORY), "memory");
    assert_int_equal(args.compiles, -1);
    bench_args_resolve(&args, 0);
    assert_int_equal(args.compiles, 8);
    assert_null(args.helper_path);
    parses("memory compile --compiles 3 --helper h --jobs 2");
    COMMANDS(BENCH_MEMORY, BENCH_COMPILE);
    assert_int_equal(args.compiles, 3);
    assert_string_equal(args.helper_path, "h");
    refuses("memory --save a", "--save is not for memory");
    refuses("memory --helper ''", "--helper needs a file name");
}

/* What was recorded of the suites instead of the suites, and nothing else. */
static void planner(void **state)
{
    (void)state;
    parses("planner");
    COMMANDS(BENCH_PLANNER);
    WORDS(args.suites, "");
    assert_string_equal(bench_args_title(&args, BENCH_PLANNER), "planner");
    parses("layers planner --size 64 --list a.txt --place 16sm --place orin --cache c.db --json");
    COMMANDS(BENCH_PLANNER);
    WORDS(args.places, "16sm orin");
    WORDS(args.single, "64");
    assert_string_equal(bench_args_title(&args, BENCH_PLANNER), "planner layers a.txt sizes");
    refuses("planner compile", "planner measures nothing: run compile by itself");
    refuses("plans planner common16", "planner measures nothing: run plans by itself");
    refuses("all planner", "planner measures nothing: run first-call by itself");
    refuses("planner --rounds 5", "--rounds is not for planner");
    refuses("planner --save a", "--save is not for planner");
    refuses("common16 --place x", "--place is not for common16");
}

/* All plans of the suites instead of the suites, in the place of the word. */
static void plans(void **state)
{
    (void)state;
    parses("plans common16");
    COMMANDS(BENCH_PLANS);
    WORDS(args.suites, "common16");
    assert_string_equal(bench_args_title(&args, BENCH_PLANS), "plans common16");
    assert_int_equal(args.all_classes, 0);
    assert_null(args.csv_path);
    parses("layers compile plans --size 64 --all-classes --write-csv p.csv --jobs 3 --rounds 5");
    COMMANDS(BENCH_COMPILE, BENCH_PLANS);
    assert_string_equal(bench_args_title(&args, BENCH_PLANS), "plans layers sizes");
    assert_string_equal(args.titles, "compile, plans layers sizes");
    assert_int_equal(args.all_classes, 1);
    assert_string_equal(args.csv_path, "p.csv");
    assert_int_equal(args.jobs, 3);
    refuses("plans", "plans of what? A suite");
    refuses("plans dispatch", "plans of what? A suite");
    refuses("plans common16 --generic", "--generic is not for plans common16");
    refuses("common16 --all-classes", "--all-classes is not for common16");
    refuses("plans common16 --html a --write-csv a compile", "--html and --write-csv are the same file");
}

static void all(void **state)
{
    (void)state;
    static const char names[] = "common16 poison misalign skinny layers large tiny";
    parses("all");
    COMMANDS(BENCH_FIRST_CALL, BENCH_PRODUCTS, BENCH_COMPILE);
    WORDS(args.suites, names);
    assert_string_equal(bench_args_title(&args, BENCH_PRODUCTS), names);
    parses("large all dispatch");
    COMMANDS(BENCH_PRODUCTS, BENCH_FIRST_CALL, BENCH_COMPILE, BENCH_DISPATCH);
    WORDS(args.suites, "large common16 poison misalign skinny layers tiny");
}

/* As many words as there is room for, and a title of them that is cut off. */
static void many_words(void **state)
{
    (void)state;
    char text[2048] = "";
    size_t length = 0;
    for (int i = 0; i < BENCH_WORDS_MAX; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "--size %d ", i + 100);
    parses(text);
    assert_int_equal(args.single.count, BENCH_WORDS_MAX);
    assert_string_equal(args.single.words[BENCH_WORDS_MAX - 1], "163");
    snprintf(text + length, sizeof text - length, "--size 1");
    refuses(text, "--size: at most 64 times");
    length = 0;
    for (int i = 0; i < 20; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "--list a-long-name-of-a-file-%d ", i);
    parses(text);
    assert_int_equal(strlen(bench_args_title(&args, BENCH_PRODUCTS)), sizeof args.title - 1);
}

/* ---- options ---- */

static void types(void **state)
{
    (void)state;
    parses("common16");
    assert_int_equal(args.type_count, 3);
    assert_true(args.types[0].type_a == JG_F32 && args.types[1].type_a == JG_F16 && args.types[2].type_a == JG_BF16);
    parses("common16 --type f16");
    assert_int_equal(args.type_count, 1);
    assert_int_equal(args.types[0].type_a, JG_F16);
    parses("compile --type=bf16,f16-f32,f32");
    assert_int_equal(args.type_count, 3);
    assert_true(args.types[0].type_a == JG_BF16 && args.types[1].type_a == JG_F16 && args.types[1].type_c == JG_F32);
    assert_int_equal(args.types[2].type_a, JG_F32);
    parses("common16 --type f16,f32 --type bf16"); /* the last one counts */
    assert_int_equal(args.type_count, 1);
    assert_int_equal(args.types[0].type_a, JG_BF16);
    refuses("common16 --type f17", "\"f17\" is no type");
    refuses("common16 --type f16,", "\"\" is no type");
    refuses("common16 --type ,f16", "\"\" is no type");
    refuses("common16 --type ''", "\"\" is no type");
    refuses("common16 --type nt", "\"nt\" is no type");
    refuses("common16 --type f16:", "\"f16:\" is no type");
    refuses("common16 --type 64:f16", "\"64:f16\" is no type");
    parses("common16 --type f16:nt,f16-f32:lda=2000"); /* any words of a size behind the type */
    assert_int_equal(args.type_count, 2);
    assert_true(args.types[0].type_a == JG_F16 && args.types[0].op_b == JG_T && args.types[0].m == 0);
    assert_int_equal(args.types[1].lda, 2000);
    parses("common16 --type s8,u8.s8-s32,f16.s4-f16:group=64:zeros,e4m3,tf32,f32:3xtf32,strict,f16:f16acc:relu");
    assert_int_equal(args.type_count, 8);
    assert_true(args.types[0].type_a == JG_S8 && args.types[1].type_b == JG_S8 && args.types[2].type_b == JG_S4);
    assert_true(args.types[2].group_k == 64 && args.types[2].zero_points == 1 && args.types[3].type_a == JG_E4M3);
    assert_true(args.types[4].type_a == JG_F32 && args.types[4].math == JG_MATH_TF32); /* a mode alone is f32's */
    assert_true(args.types[5].math == JG_MATH_F32_3XTF32 && args.types[6].math == JG_MATH_STRICT);
    assert_true(args.types[7].math == JG_MATH_F16 && args.types[7].activation == JG_ACTIVATION_RELU);
    refuses("common16 --type relu", "\"relu\" is no type");
    refuses("common16 --type f16acc", "\"f16acc\" is no type");
    refuses("common16 --type s8:tf32", "\"s8:tf32\" is no type");
    parses("common16 --type f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16");
    refuses("common16 --type f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16,f16", "at most 16 types");
    refuses("first-call --type f16", "--type is not for first-call");
}

static void other_options(void **state)
{
    (void)state;
    parses("common16");
    assert_int_equal(args.data, BENCH_DATA_BY_SUITE);
    assert_true(!args.generic && !args.record && !args.no_peer && !args.check && !args.fill && args.format == BENCH_TABLE);
    assert_true(!args.save_path && !args.against_path && !args.html_path && !args.cublaslt_path);
    parses("common16 --data rotated --generic --no-peer --check --html page.html --cublaslt lt.so --csv");
    assert_int_equal(args.data, BENCH_DATA_ROTATED);
    assert_true(args.generic && args.no_peer && args.check && args.format == BENCH_CSV);
    assert_string_equal(args.html_path, "page.html");
    assert_string_equal(args.cublaslt_path, "lt.so");
    parses("common16 --data resident");
    assert_int_equal(args.data, BENCH_DATA_RESIDENT);
    parses("common16 --record --cache k.db"); /* a gain is over the generic kernel */
    assert_true(args.record && args.generic);
    refuses("common16 --data both", "\"both\" is neither resident nor rotated");
    refuses("common16 --record", "--record needs --cache FILE");
    refuses("dispatch --rounds 5", "--rounds is not for dispatch");
    parses("dispatch common16 --rounds 5"); /* it is for one of them */
    refuses("common16 --jobs 5", "--jobs is not for common16");
    refuses("common16 --rounds 2", "not a number from 3 to 1000");
    refuses("common16 --sample 9", "not a number from 10 to 1000000");
    refuses("common16 --sms 0", "not a number from 1 to 1024");
    refuses("common16 --as-arch -1", "not a number from 0 to 999");
    refuses("compile --jobs 65", "not a number from 1 to 64");
    refuses("common16 --html ''", "--html needs a file name");
}

static void drift_options(void **state)
{
    (void)state;
    parses("common16 --save base.json --processes 12");
    assert_string_equal(args.save_path, "base.json");
    assert_int_equal(args.processes, 12);
    parses("common16 --against base.json --percent 5 --list sizes.txt");
    assert_string_equal(args.against_path, "base.json");
    refuses("common16 --save b --processes 9", "not a number from 10 to 1000");
    refuses("common16 --processes 10", "--processes is only for --save and --against");
    refuses("common16 --percent 3", "--percent is only for --save and --against");
    refuses("common16 --save b --list -", "standard input can be read once only");
    refuses("common16 --against b --list -", "standard input can be read once only");
    refuses("common16 --save b --record --cache k.db", "--record: only for a run without --save and --against");
}

static void help(void **state)
{
    (void)state;
    assert_int_equal(parse("--help"), BENCH_EXIT_DONE);
    static const char *const words[] = {"\n  common16 ", "\n  poison ", "\n  misalign ", "\n  skinny ", "\n  layers: ", "\n    resnet50 ",
                                        "\n    mobilenet_v2 ", "\n    vit_b16 ", "\n    yolo_v8n ", "\n    whisper_base ",
                                        "\n  large ", "\ncompile: ", "\nall: ", "\nfirst-call: ", "\ndispatch: ",
                                        "\ncold-start: "};
    for (size_t i = 0; i < COUNT(words); i++) assert_has(words[i]);
    assert_int_equal(count_of("layers: all of\n"), 1);
    assert_int_equal(parse("common16 --version"), BENCH_EXIT_DONE);
    assert_string_equal(out, "jitgemm-bench " JG_VERSION_STRING "\n");
}

/* ---- what was not given ---- */

static void resolved(void **state)
{
    (void)state;
    parses("all --rounds 7");
    assert_int_equal(args.sample_us, -1);
    bench_args_resolve(&args, 0);
    assert_true(args.rounds == 7 && args.sample_us == 500 && args.sms == 0 && args.as_arch == -1 && args.jobs == 0);
    assert_true(args.sizes == 20000 && args.peer_sizes == 300 && args.seed == 1 && args.busy_ms == 20 && args.poll == 64);
    assert_true(args.processes == 10 && args.percent == 3 && args.batches == 400 && args.runs == 20);
    parses("all --sizes 100 --as-arch 0 --sms 8");
    bench_args_resolve(&args, 1);
    assert_true(args.sizes == 100 && args.as_arch == 0 && args.sms == 8); /* what was given stays */
    assert_true(args.rounds == 1 && args.sample_us == 10 && args.jobs == 0 && args.busy_ms == 0 && args.poll == 8);
    assert_true(args.processes == 10 && args.percent == 3);
}

/* ---- a process' command line ---- */

static void assert_process(const char *text, const char *expected)
{
    size_t count = 0;
    parses(text);
    const char **argv = bench_args_for_process(&args, "PROGRAM", "CACHE");
    assert_non_null(argv);
    while (argv[count]) count++;
    assert_words(argv, count, expected);
    free(argv);
}
#define START "PROGRAM --json --cache CACHE "
#define FILL "PROGRAM --json --cache CACHE --fill " /* where the generic kernels are needed */

/* All that decides what is measured; not what is of the processes together, nor what the parent sets itself. */
static void processes(void **state)
{
    (void)state;
    assert_process("common16 layers --save b.json", START "--no-peer common16 layers");
    assert_process("dispatch --against b.json --threads 4", FILL "dispatch --threads 4");
    assert_process("all --save b", FILL "--no-peer all");
    assert_process("compile --against b --jobs 4 --type f16", START "compile --jobs 4 --type f16");
    /* dropped, with their values */
    assert_process("common16 dispatch --save b --against c --processes 12 --percent 5 --html p.html --cache k.db --csv --fill "
                   "--no-peer", FILL "--no-peer common16 dispatch");
    assert_process("--json common16 --save b", START "--no-peer common16");
    /* passed on, in order */
    assert_process("--rounds 5 common16 --save b --data rotated --generic --sms 8 --as-arch 87 --size 64 --size 65 --list f.txt "
                   "--sample 100 --driver d.so --nvrtc n.so --cpus 0,1",
                   START "--no-peer --rounds 5 common16 --data rotated --generic --sms 8 --as-arch 87 --size 64 --size 65 "
                   "--list f.txt --sample 100 --driver d.so --nvrtc n.so --cpus 0,1");
}

/* However an option is written: shortened, with its value behind =, or after words; and words that are behind --. */
static void spellings(void **state)
{
    (void)state;
    assert_process("common16 --sav b --proc=11 --perc=4", START "--no-peer common16");
    assert_process("common16 --agai=b --round=5 --gen --samp 100", START "--no-peer common16 --rounds 5 --generic --sample 100");
    assert_process("--save=b --rounds=5 -- common16 dispatch", FILL "--no-peer --rounds 5 common16 dispatch");
    assert_process("common16 --save b --no-pee --ca k.db --htm=p", START "--no-peer common16");
    /* values that look like options, or like what is dropped */
    assert_process("--list --save --save --save", START "--no-peer --list --save");
    assert_process("common16 --save b --list=--json", START "--no-peer common16 --list --json");
}

/* It is taken by the same parser, and says the same. */
static void a_process_reads_it(void **state)
{
    (void)state;
    static const char *const lines[] = {"common16 layers --save b --rounds=5 --type f16,f32 --sms 8 --size 64 -- poison",
                                        "dispatch cold-start --against b --threads 4 --ru 30", "all --save b --seed 7",
                                        "--save b --list --json"};
    for (size_t i = 0; i < COUNT(lines); i++) {
        char text[2048] = "";
        size_t length = 0;
        parses(lines[i]);
        const bench_args parent = args;
        char title[sizeof parent.title], parent_lists[256];
        const char **argv = bench_args_for_process(&parent, "PROGRAM", "CACHE");
        assert_non_null(argv);
        snprintf(title, sizeof title, "%s", parent.title);
        snprintf(parent_lists, sizeof parent_lists, "%s", parent.lists.count ? parent.lists.words[0] : "");
        for (size_t w = 1; argv[w]; w++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s ", argv[w]);
        free(argv);
        parses(text);
        assert_string_equal(args.title, title);
        assert_memory_equal(args.commands, parent.commands, sizeof args.commands);
        assert_int_equal(args.command_count, parent.command_count);
        assert_true(args.rounds == parent.rounds && args.sms == parent.sms && args.threads == parent.threads);
        assert_true(args.runs == parent.runs && args.seed == parent.seed && args.type_count == parent.type_count);
        assert_memory_equal(args.types, parent.types, sizeof args.types);
        assert_string_equal(args.lists.count ? args.lists.words[0] : "", parent_lists);
        assert_true(args.format == BENCH_JSON && !args.save_path && !args.against_path);
        assert_int_equal(args.fill, args.commands[0] != BENCH_PRODUCTS);
        assert_string_equal(args.cache_path, "CACHE");
    }
}

/* As long as can be passed on, and no longer. */
static void too_long(void **state)
{
    (void)state;
    char *argv[600];
    static char program[] = "jitgemm-bench", word[] = "dispatch", option[] = "--threads", value[] = "4";
    for (int words = 256; words <= 257; words++) {
        argv[0] = program;
        for (int i = 1; i <= words; i++) argv[i] = i == words - 1 ? option : i == words ? value : word;
        argv[words + 1] = NULL;
        optind = 0;
        catch_output();
        const int kept = dup(STDERR_FILENO);
        dup2(STDOUT_FILENO, STDERR_FILENO);
        const int status = bench_args_parse(words + 1, argv, &args);
        dup2(kept, STDERR_FILENO);
        close(kept);
        take_output();
        assert_int_equal(status, words == 256 ? -1 : BENCH_EXIT_USAGE);
        if (words == 257) assert_has("too long");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands),      cmocka_unit_test(suites), cmocka_unit_test(plans),
        cmocka_unit_test(planner),       cmocka_unit_test(memory), cmocka_unit_test(plans_to_use), cmocka_unit_test(all),
        cmocka_unit_test(many_words),    cmocka_unit_test(types),     cmocka_unit_test(other_options),
        cmocka_unit_test(drift_options), cmocka_unit_test(help),      cmocka_unit_test(resolved),
        cmocka_unit_test(processes),     cmocka_unit_test(spellings), cmocka_unit_test(a_process_reads_it),
        cmocka_unit_test(too_long),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
