/* The command line of jitgemm-cache, from outside: arguments and cache files in; exit status and texts out.
 *
 * It runs the built tool (folder: $JG_TEST_BIN_DIR) on files that the store makes here, in a folder of its own. */
#include "cache/store.h"
#include "sample_records.h"
#include "scratch.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char tool[PATH_MAX];
static char folder[PATH_MAX];
static char file[PATH_MAX + 64];
static char *out, *err; /* what the last run wrote */

#define LONG_NAME "jg_sm87_mma_f16f16f16_nn_128x64x32_w64x32_s3_a16_with_many_more_words_m196n768k768"

static int set_up(void **state)
{
    (void)state;
    scratch_make(folder);
    snprintf(file, sizeof file, "%s/kernels.db", folder);
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 3; i++)
        sample_put(s, i, 2048, "the source\n");
    store_record record;
    sample_record(&record, 3, 0, NULL);
    record.name = LONG_NAME;
    record.label = "evil \033[2J label";
    store_put(s, &record, NULL);
    store_close(s);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(out);
    free(err);
    out = err = NULL;
    scratch_remove(folder);
    return 0;
}

/* ---- running the tool ------------------------------------------------------------------------------------------- */

static void set_environment(void)
{
    setenv("T", tool, 1);
    setenv("HOME", folder, 1);
    setenv("JITGEMM_CACHE", file, 1);
    setenv("JITGEMM_FACTORY", "", 1);
    setenv("TZ", "UTC", 1);
    unsetenv("XDG_CACHE_HOME");
    if (chdir(folder) != 0) _exit(126);
}

static int exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Runs a shell line in which $T is the tool, in the scratch folder, and returns its exit status. */
static int run(const char *line)
{
    int status;
    size_t bytes;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        set_environment();
        if (!freopen("out", "w", stdout) || !freopen("err", "w", stderr) || !freopen("/dev/null", "r", stdin)) _exit(126);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(out);
    free(err);
    out = (char *)scratch_read(scratch_path(folder, "out"), &bytes);
    err = (char *)scratch_read(scratch_path(folder, "err"), &bytes);
    return exit_code(status);
}

/* The same on a terminal of `columns` columns, where `input` is typed. Standard error goes there too. */
static int run_on_terminal(const char *line, const char *input, unsigned short columns)
{
    static char screen[65536];
    size_t used = 0;
    ssize_t got;
    int status, terminal = posix_openpt(O_RDWR | O_NOCTTY);
    struct winsize size = {.ws_row = 40, .ws_col = columns};
    if (terminal < 0) {
        print_message("SKIP no pseudo-terminal: %s\n", strerror(errno));
        skip();
    }
    assert_true(grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(other >= 0 && ioctl(other, TIOCSWINSZ, &size) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        set_environment();
        if (dup2(other, 0) < 0 || dup2(other, 1) < 0 || dup2(other, 2) < 0) _exit(126);
        close(other);
        close(terminal);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(other);
    assert_int_equal(write(terminal, input, strlen(input)), strlen(input));
    while (used < sizeof screen - 1 && (got = read(terminal, screen + used, sizeof screen - 1 - used)) > 0)
        used += (size_t)got;
    screen[used] = 0;
    close(terminal);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    free(out);
    out = strdup(screen);
    return exit_code(status);
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    while (*text) {
        size_t length = strcspn(text, "\r\n");
        if (length > longest) longest = length;
        text += length;
        text += strspn(text, "\r\n");
    }
    return longest;
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static const char *text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsString(item));
    return item->valuestring;
}

/* ---- command line ----------------------------------------------------------------------------------------------- */

static void helps(void **state)
{
    (void)state;
    static const char *const commands[] = {"ls", "show", "stats", "verify", "misses", "plans", "clear", "seal", "extract"};
    assert_int_equal(run("$T --help"), 0);
    assert_true(longest_line(out) <= 100);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char line[64], expected[64];
        assert_non_null(strstr(out, commands[i]));
        snprintf(line, sizeof line, "$T %s --help", commands[i]);
        snprintf(expected, sizeof expected, "usage: jitgemm-cache %s", commands[i]);
        assert_int_equal(run(line), 0);
        assert_memory_equal(out, expected, strlen(expected));
        assert_true(longest_line(out) <= 100);
        assert_string_equal(err, "");
        run("$T --help");
    }
    assert_int_equal(run("$T --version"), 0);
    assert_memory_equal(out, "jitgemm-cache 0.", 16);
}

static void refuses_a_bad_command_line(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "$T", "$T frobnicate", "$T ls more", "$T show", "$T show a b", "$T ls --yes", "$T ls --bogus", "$T --cache",
        "$T extract kernel_000001", "$T extract --cubin x", "$T extract kernel_000001 --cubin a --ptx b",
        "$T show kernel_000001 --force", "$T extract kernel_000001 --ptx - --json", "$T clear"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(run(lines[i]), 2);
        assert_string_equal(out, "");
        assert_memory_equal(err, "jitgemm-cache: ", 15);
        assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1); /* one line */
    }
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 4); /* clear without --yes above */
    static const struct { const char *line, *message; } words[] = {
        {"$T -xy ls", "unknown option -x;"},     {"$T ls -x", "unknown option -x;"},
        {"$T -\xc3\xa9 ls", "unknown option -?;"}, {"$T ls --bogus", "bad option --bogus;"},
        {"$T --json=1 ls", "bad option --json=1;"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_int_equal(run(words[i].line), 2);
        assert_non_null(strstr(err, words[i].message));
        assert_null(strstr(err, tool));
    }
}

static void explains_a_missing_file(void **state)
{
    (void)state;
    assert_int_equal(run("$T --cache none/kernels.db ls"), 1);
    assert_non_null(strstr(err, "none/kernels.db"));
    assert_non_null(strstr(err, "jitgemm-prewarm"));
    assert_int_equal(run("$T --cache none/kernels.db clear --yes"), 1);
    assert_false(scratch_exists(scratch_path(folder, "none")));
    assert_int_equal(run("echo hello >text; $T --cache text ls"), 1);
    assert_non_null(strstr(err, "not a jitgemm cache"));
    assert_int_equal(run("unset JITGEMM_CACHE HOME; $T ls"), 1);
    assert_non_null(strstr(err, "HOME"));
}

/* ---- ls, show, stats -------------------------------------------------------------------------------------------- */

static void lists(void **state)
{
    (void)state;
    assert_int_equal(run("$T ls"), 0);
    assert_memory_equal(out, "ID  ", 4);
    assert_non_null(strstr(out, LONG_NAME)); /* not on a terminal: whole */
    assert_non_null(strstr(out, "  2.1 KiB "));
    assert_non_null(strstr(out, "  13.5 ms "));
    assert_non_null(strstr(out, "\n4 kernels, 6.4 KiB\n"));
    assert_int_equal(run("$T ls --json"), 0);
    cJSON *object = cJSON_Parse(out);
    const cJSON *entries = cJSON_GetObjectItem(object, "entries");
    assert_string_equal(text(object, "path"), file);
    assert_int_equal(cJSON_GetArraySize(entries), 4);
    assert_string_equal(text(cJSON_GetArrayItem(entries, 0), "kernel"), LONG_NAME);
    assert_string_equal(text(cJSON_GetArrayItem(entries, 0), "problem"), "evil \033[2J label");
    assert_true(number(cJSON_GetArrayItem(entries, 1), "cubin_bytes") == 2048);
    cJSON_Delete(object);
    assert_int_equal(run("$T clear --yes && $T ls"), 0);
    assert_string_equal(out, "4 removed\n0 kernels, 0 B\n");
}

static void fits_a_terminal(void **state)
{
    (void)state;
    static const unsigned short widths[] = {0, 100, 90}; /* 0: unknown, taken as 100 */
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(run_on_terminal("$T ls", "", widths[i]), 0);
        assert_int_equal(longest_line(out), widths[i] ? widths[i] : 100);
        assert_non_null(strstr(out, "..."));
        assert_non_null(strstr(out, "m196n768k768 ")); /* the telling end of the name */
        assert_null(strchr(out, '\033'));
    }
    assert_int_equal(run_on_terminal("$T ls", "", 200), 0);
    assert_non_null(strstr(out, LONG_NAME));
}

static void shows(void **state)
{
    (void)state;
    assert_int_equal(run("$T show kernel_000001"), 0);
    assert_non_null(strstr(out, "kernel      kernel_000001\n"));
    assert_non_null(strstr(out, "target      sm_81\n"));
    assert_non_null(strstr(out, "problem     problem 000001\n"));
    assert_non_null(strstr(out, "cubin       2.0 KiB\n"));
    assert_non_null(strstr(out, "+0000\n"));
    assert_int_equal(run("$T show jg_"), 0);
    assert_non_null(strstr(out, "evil ?[2J label")); /* a file must not command a terminal */
    assert_int_equal(run("$T --json show kernel_000002"), 0);
    cJSON *object = cJSON_Parse(out);
    assert_true(number(object, "compile_ms") == 14.5);
    char line[64];
    snprintf(line, sizeof line, "$T show %s", text(object, "id"));
    cJSON_Delete(object);
    assert_int_equal(run(line), 0);
    assert_non_null(strstr(out, "kernel_000002"));
    assert_int_equal(run("$T show kernel_"), 1);
    assert_non_null(strstr(err, "fits 3 entries"));
    assert_int_equal(run("$T show nothing"), 1);
    assert_string_equal(out, "");
}

static void adds_up(void **state)
{
    (void)state;
    assert_int_equal(run("$T stats"), 0);
    assert_non_null(strstr(out, file));
    assert_non_null(strstr(out, "\nsm_81 "));
    assert_non_null(strstr(out, "\nall               4     6.4 KiB     6.0 KiB        48 B       56.0 ms         0\n"));
    assert_int_equal(run("$T stats --json"), 0);
    cJSON *object = cJSON_Parse(out);
    assert_true(number(object, "kernels") == 4);
    assert_true(number(object, "cubin_bytes") == 3 * 2048);
    assert_true(number(object, "compile_ms") == 12.5 + 13.5 + 14.5 + 15.5);
    assert_true(number(object, "file_bytes") > 4096);
    assert_true(number(cJSON_GetObjectItem(cJSON_GetObjectItem(object, "targets"), "sm_82"), "kernels") == 1);
    cJSON_Delete(object);
}

/* ---- verify, clear ---------------------------------------------------------------------------------------------- */

static void verifies(void **state)
{
    (void)state;
    assert_int_equal(run("$T verify"), 0);
    assert_string_equal(out, "4 good, 0 bad\n");
    sample_sql(file, "UPDATE records SET binary=x'00' WHERE name='kernel_000001'");
    assert_int_equal(run("$T verify"), 1);
    assert_non_null(strstr(out, ": the checksum does not match\n3 good, 1 bad\n"));
    assert_memory_equal(err, "jitgemm-cache: ", 15);
    assert_int_equal(run("$T verify --json"), 1);
    cJSON *object = cJSON_Parse(out);
    assert_true(number(object, "good") == 3 && number(object, "bad") == 1);
    assert_int_equal(strlen(text(cJSON_GetArrayItem(cJSON_GetObjectItem(object, "faults"), 0), "id")), 16);
    cJSON_Delete(object);
    assert_int_equal(run("$T show kernel_000001"), 1);
    assert_int_equal(run("$T extract kernel_000001 --ptx x.ptx"), 1);
    assert_false(scratch_exists(scratch_path(folder, "x.ptx")));
}

static void clears(void **state)
{
    (void)state;
    assert_int_equal(run_on_terminal("$T clear", "n\n", 80), 1);
    assert_non_null(strstr(out, "[y/N]"));
    assert_int_equal(run_on_terminal("$T clear", "\n", 80), 1);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 4);
    assert_int_equal(run_on_terminal("$T clear", "y\n", 80), 0);
    assert_int_equal(sample_sql(file, "SELECT COUNT(*) FROM records"), 0);
    assert_int_equal(run("$T clear --yes --json"), 0);
    cJSON *object = cJSON_Parse(out);
    assert_true(number(object, "removed") == 0);
    cJSON_Delete(object);
}

static void clears_a_damaged_file(void **state)
{
    (void)state;
    char junk[6000];
    memset(junk, 0xa5, sizeof junk);
    int descriptor = open(file, O_WRONLY);
    assert_int_equal(pwrite(descriptor, junk, sizeof junk, 100), sizeof junk);
    close(descriptor);
    assert_int_equal(run("$T verify"), 1);
    assert_non_null(strstr(err, "jitgemm-cache clear"));
    assert_int_equal(run("$T clear --yes"), 0);
    assert_int_equal(run("$T verify"), 0);
    assert_string_equal(out, "0 good, 0 bad\n");
}

/* ---- extract ---------------------------------------------------------------------------------------------------- */

static void extracts(void **state)
{
    (void)state;
    size_t bytes;
    store_record expected;
    assert_int_equal(run("umask 027; $T extract kernel_000001 --cubin k.cubin"), 0);
    assert_string_equal(out, "");
    unsigned char *cubin = scratch_read(scratch_path(folder, "k.cubin"), &bytes);
    sample_record(&expected, 1, 2048, NULL);
    assert_int_equal(bytes, 2048);
    assert_memory_equal(cubin, expected.binary, bytes);
    free(cubin);
    assert_int_equal(scratch_mode(scratch_path(folder, "k.cubin")), 0640);
    assert_int_equal(run("$T extract kernel_000001 --ptx -"), 0);
    assert_string_equal(out, ".version 7.0");
    assert_int_equal(run("$T extract kernel_000001 --source -"), 0);
    assert_string_equal(out, "#define INDEX 000001\nthe source\n");
    assert_int_equal(run("$T extract kernel_000002 --source s.cu --json"), 0);
    cJSON *object = cJSON_Parse(out);
    assert_string_equal(text(object, "file"), "s.cu");
    assert_true(number(object, "bytes") == 32);
    cJSON_Delete(object);
    assert_int_equal(run("$T extract jg_ --cubin none"), 1);
    assert_non_null(strstr(err, "has no cubin"));
}

static void never_overwrites_unasked(void **state)
{
    (void)state;
    size_t bytes;
    assert_int_equal(run("echo mine >k.ptx; $T extract kernel_000001 --ptx k.ptx"), 1);
    assert_non_null(strstr(err, "--force"));
    assert_int_equal(run("cat k.ptx"), 0);
    assert_string_equal(out, "mine\n");
    assert_int_equal(run("$T extract kernel_000001 --ptx k.ptx --force"), 0);
    free(scratch_read(scratch_path(folder, "k.ptx"), &bytes));
    assert_int_equal(bytes, 12);
    assert_int_equal(run("mkfifo pipe; $T extract kernel_000001 --ptx pipe --force"), 1); /* no place for a file */
    assert_int_equal(run("test -p pipe"), 0);
    assert_int_equal(run("$T extract kernel_000001 --ptx no/such/folder/k"), 1);
}

static void leaves_nothing_half_written(void **state)
{
    (void)state;
    store *s = sample_open(file, 0, 0);
    sample_put(s, 7, 500000, NULL);
    store_close(s);
    assert_int_equal(run("(trap '' XFSZ; ulimit -f 128; $T extract kernel_000007 --cubin big)"), 1);
    assert_non_null(strstr(err, "cannot write big"));
    assert_int_equal(run("ls -A | grep big"), 1);
}

/* ---- output that cannot be written ------------------------------------------------------------------------------ */

static void notices_lost_output(void **state)
{
    (void)state;
    static const char *const lines[] = {"$T ls >/dev/full", "$T --help >/dev/full", "$T stats --json >/dev/full",
                                        "$T extract kernel_000001 --cubin - >/dev/full"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(run(lines[i]), 1);
        assert_non_null(strstr(err, "No space left"));
    }
    assert_int_equal(run("{ $T ls; echo $? >status; } | true; cat status"), 0);
    assert_true(strcmp(out, "1\n") == 0 || strcmp(out, "0\n") == 0); /* as the race goes; never killed, never noisy */
    assert_string_equal(err, "");
}

int main(void)
{
    const char *bin = getenv("JG_TEST_BIN_DIR");
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/jitgemm-cache", bin && *bin ? bin : "build/bin");
    if (!realpath(name, tool)) {
        printf("SKIP %s is not built\n", name);
        return 0;
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(helps),
        TEST(refuses_a_bad_command_line),
        TEST(explains_a_missing_file),
        TEST(lists),
        TEST(fits_a_terminal),
        TEST(shows),
        TEST(adds_up),
        TEST(verifies),
        TEST(clears),
        TEST(clears_a_damaged_file),
        TEST(extracts),
        TEST(never_overwrites_unasked),
        TEST(leaves_nothing_half_written),
        TEST(notices_lost_output),
    };
    return cmocka_run_group_tests_name("jitgemm-cache", tests, NULL, NULL);
}
