/* Factory files from outside: kernels for several architectures, sealed, by the tools and by `make factory`; read by anybody
 * from a place that nobody can write. */
#include "cache/store.h"
#include "cli_tools_fixture.h"
#include "sample_records.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <sys/stat.h>

enum { NOBODY = 65534 };

static int make_rules_are_here(void)
{
    return access("Makefile", R_OK) == 0 && access("templates", R_OK) == 0;
}

static void make_samples(const char *name, int count)
{
    store *s = sample_open(scratch_path(folder, name), 0, 0);
    for (int i = 0; i < count; i++)
        sample_put(s, i, 1000, "the source\n");
    store_close(s);
}

/* Runs a line in the scratch folder as a user whom modes bind: oneself, or nobody in place of root. */
static int run_bound(const char *line)
{
    if (geteuid() != 0) return run("%s", line);
    return run("setpriv --reuid %d --regid %d --clear-groups sh -c '%s'", NOBODY, NOBODY, line);
}

static void need_setpriv(void)
{
    if (geteuid() != 0 || run("setpriv --version") == 0) return;
    print_message("SKIP root, and no setpriv to become another user\n");
    skip();
}

/* ---- jitgemm-cache seal ----------------------------------------------------------------------------------------- */

static void seals(void **state)
{
    (void)state;
    make_samples("f.db", 3);
    assert_run(0, "\"$C\" seal f.db");
    assert_begins(out, "sealed f.db: 3 kernels, ");
    assert_has(out, "\nonly its owner can read it; chmod 644 ");
    assert_string_equal(err, "");
    /* Complete in itself: what a copy of the one file holds. Bytes 18 and 19 of the header are 1 where there is no WAL. */
    assert_run(0, "test ! -e f.db-wal && test ! -e f.db-shm && test ! -e f.db-journal");
    assert_run(0, "mkdir image && cp f.db image && \"$C\" verify --cache image/f.db");
    assert_string_equal(out, "3 good, 0 bad\n");
    assert_run(0, "od -An -tx1 -j18 -N2 f.db");
    assert_string_equal(out, " 01 01\n");
    assert_run(0, "chmod 644 f.db; \"$C\" seal --cache f.db");
    assert_begins(out, "sealed f.db: 3 kernels, ");
    assert_has_not(out, "chmod");
    assert_int_equal(scratch_mode(scratch_path(folder, "f.db")), 0644);
    assert_run(0, "JITGEMM_CACHE=f.db \"$C\" --json seal");
    cJSON *root = cJSON_Parse(out);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(root, "path")), "f.db");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "kernels")) == 3);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(root, "file_bytes")) > 4096);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "others_read")));
    cJSON_Delete(root);
}

static void seals_only_what_it_can(void **state)
{
    (void)state;
    static const struct { const char *line; int status; const char *message; } rows[] = {
        {"\"$C\" seal one.db two.db", 2, "too many arguments for seal"},
        {"\"$C\" seal f.db --cache f.db", 2, "seal: --cache and FILE name two files"},
        {"\"$C\" seal f.db --yes", 2, "seal takes no --yes"},
        {"\"$C\" seal f.db --clear", 2, "seal takes no --clear"},
        {"\"$C\" seal none.db", 1, "there is no cache file none.db"},
        {"\"$C\" seal ''", 1, "no cache file"},
        {"echo hello >text; \"$C\" seal text", 1, "text: is not a jitgemm cache"},
        {"ln -s f.db link.db; \"$C\" seal link.db", 1, "is a symbolic link"},
        {"mkdir open; chmod 777 open; cp f.db open; \"$C\" seal open/f.db", 1, "can be written by other users"},
        {"\"$C\" seal f.db >/dev/full", 1, "No space left on device"},
    };
    make_samples("f.db", 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_run(rows[i].status, "%s", rows[i].line);
        assert_string_equal(out, "");
        assert_begins(err, "jitgemm-cache: ");
        assert_has(err, rows[i].message);
    }
    assert_run(0, "test \"$(cat text)\" = hello && test ! -e none.db");
    store *s = sample_open(scratch_path(folder, "f.db"), 0, 0); /* in use */
    assert_run(1, "\"$C\" seal f.db");
    assert_has(err, "somebody else has the file open");
    store_close(s);
    assert_run(0, "\"$C\" seal f.db");
}

static void seals_nothing_read_only(void **state)
{
    (void)state;
    need_setpriv();
    make_samples("f.db", 2);
    assert_run(0, "chmod 644 f.db; chmod 755 .; cp \"$C\" tool; mkdir -m 755 ro; mv f.db ro; chmod 444 ro/f.db; chmod 555 ro");
    assert_int_equal(run_bound("./tool seal ro/f.db"), 1);
    assert_begins(err, "jitgemm-cache: ");
    assert_has(err, "ro/f.db");
    assert_int_equal(run_bound("./tool clear --yes --cache ro/f.db"), 1);
    assert_int_equal(run_bound("./tool misses --clear --cache ro/f.db"), 1);
    assert_int_equal(run_bound("./tool verify --cache ro/f.db"), 0);
    assert_string_equal(out, "2 good, 0 bad\n");
}

/* Every command that looks, as another user than the file's owner, where nothing can be written. */
static void reads_from_a_read_only_place(void **state)
{
    (void)state;
    static const struct { const char *command, *output; } rows[] = {
        {"ls", "\n2 kernels, "},       {"verify", "2 good, 0 bad\n"},      {"stats", "\nall               2 "},
        {"show kernel_000001", "kernel      kernel_000001\n"},             {"misses", "    3  "},
        {"misses --json", "\"problem\":\t\"64:f16\""},                     {"extract kernel_000001 --ptx -", ".version 7.0"},
    };
    need_setpriv();
    make_samples("f.db", 2);
    store *s = sample_open(scratch_path(folder, "f.db"), 0, 0);
    const store_miss miss = {.key = "k", .key_bytes = 1, .target = "sm_87", .label = "64:f16", .count = 3};
    assert_int_equal(store_add_misses(s, &miss, 1), STORE_OK);
    store_close(s);
    assert_run(0, "\"$C\" seal f.db && chmod 755 . && cp \"$C\" tool && mkdir -m 755 ro && mv f.db ro && "
                  "chmod 444 ro/f.db && chmod 555 ro && cp ro/f.db before");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[256];
        snprintf(line, sizeof line, "./tool %s --cache ro/f.db", rows[i].command);
        int status = run_bound(line);
        if (status != 0) fail_msg("%s: status %d: %s", rows[i].command, status, err);
        assert_has(out, rows[i].output);
        assert_string_equal(err, "");
    }
    assert_run(0, "cmp before ro/f.db && test \"$(ls -A ro)\" = f.db");
}

/* ---- jitgemm-prewarm: generic kernels, several architectures, --seal -------------------------------------------- */

static void wrong_words(void **state)
{
    (void)state;
    static const struct { const char *arguments, *message; } rows[] = {
        {"--generic=", "--generic: \"\" is no type"},
        {"--generic=f17", "--generic: \"f17\" is no type"},
        {"--generic=f16,", "--generic: \"\" is no type"},
        {"--generic=f16:nt", "--generic: \"f16:nt\" is no type"},
        {"--generic=f16-f32", "--generic: \"f16-f32\": name the type of A and B alone"},
        {"--generic=u8.s8", "--generic: \"u8.s8\": name the type of A and B alone, such as u8"},
        {"--generic=s32", "--generic: \"s32\" is no type"},
        {"--generic=tf3", "--generic: \"tf3\" is no type"},
        {"--generic f16", "\"f16\" is not a size"},
        {"--generic=f16 --type f16", "--type, --op and --order say how to read sizes"},
        {"--seal=yes", "bad option --seal=yes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_run(2, "\"$P\" --arch 87 --cache new.db %s", rows[i].arguments);
        assert_begins(err, "jitgemm-prewarm: ");
        assert_has(err, rows[i].message);
        assert_string_equal(out, "");
    }
    assert_run(0, "test ! -e new.db");
}

static void dry_run_of_types_and_seal(void **state)
{
    (void)state;
    assert_run(0, "\"$P\" --arch 87 --cache new.db --generic=f16 --seal --dry-run; test ! -e new.db");
    assert_string_equal(out, "generic set: not listed by --dry-run\ncompiled 0, cached 0, failed 0\n");
    assert_run(0, "\"$P\" --arch 87 --cache new.db --generic=f32,f16,bf16,s8,u8,s4,e4m3,tf32,3xtf32 --dry-run");
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) found++;
    return found;
}

static void one_file_for_several_architectures(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$P\" --arch 87 --arch sm_90 --cache f.db --generic=f32 --seal --json");
    cJSON *root = cJSON_Parse(out);
    const int kernels = cJSON_GetArraySize(cJSON_GetObjectItem(root, "kernels"));
    assert_true(kernels >= 4);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(root, "sealed")));
    assert_null(cJSON_GetObjectItem(root, "misses"));
    cJSON_Delete(root);
    assert_int_equal(count(out, "\"problem\":\t\"generic\""), kernels); /* no common sizes */
    assert_int_equal(count(out, "\"target\":\t\"sm_87\""), count(out, "\"target\":\t\"sm_90\""));
    assert_int_equal(count(out, "_simt_f32f32x_"), kernels);
    assert_has(err, "sealed f.db\n");
    assert_run(0, "test ! -e f.db-wal && od -An -tx1 -j18 -N2 f.db");
    assert_string_equal(out, " 01 01\n");
    assert_run(0, "\"$C\" verify --cache f.db && \"$C\" stats --cache f.db");
    assert_has(out, "\nsm_87 ");
    assert_has(out, "\nsm_90 ");
    /* Again: everything is there, and the file is sealed as it was. */
    assert_run(0, "\"$P\" --arch 87,90 --cache f.db --generic=f32 --seal --nvrtc no-such-library.so");
    assert_has(out, "\nsealed f.db\ncompiled 0, cached ");
    assert_run(0, "test ! -e f.db-wal && od -An -tx1 -j18 -N2 f.db");
    assert_string_equal(out, " 01 01\n");
    assert_run(0, "\"$P\" --arch 87,90 --cache f.db --generic=f32 --seal --quiet");
    assert_has_not(out, "sealed");
}

static void types_come_on_top_of_sizes(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$P\" --arch 87 --cache f.db --generic=f32 64:bf16");
    assert_has(out, "  64:bf16  jg_sm87_mma_bf16");
    assert_has(out, "  generic  jg_sm87_simt_f32f32x_xx");
    assert_has(out, "  generic  jg_sm87_mma_bf16bf16x_"); /* of the types in use, too */
    assert_has_not(out, "  generic  jg_sm87_mma_f16");
}

/* On a device: what its factory file has is not made again. A file for others leans on no factory file. */
static void kernels_of_a_factory_file_are_there_already(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "\"$P\" --arch 87 --cache f.db --generic=f32 --seal --quiet");
    assert_run(0, "JITGEMM_DRIVER=cpu JITGEMM_FACTORY=f.db \"$P\" --cache own.db --generic=f32 64 --json");
    assert_has(out, "\"compiled\":\t1,\n\t\"cached\":\t7,");
    assert_has(out, "\"factory\":\t\"");
    assert_run(0, "\"$C\" stats --cache own.db");
    assert_has(out, "\nall               1 ");
    assert_run(0, "JITGEMM_DRIVER=cpu JITGEMM_FACTORY=f.db \"$P\" --cache own.db --dry-run 64 64:generic 96");
    assert_has(out, "cached   64  ");
    assert_has(out, "cached   64:generic  ");
    assert_has(out, "planned  96  ");
    static const char *const options[] = {"--arch 87", "--seal"};
    for (size_t i = 0; i < 2; i++) {
        assert_run(0, "JITGEMM_DRIVER=cpu JITGEMM_FACTORY=f.db \"$P\" --cache for-others.db --dry-run --arch 87 64:generic");
        assert_has(out, "planned  64:generic  ");
        assert_run(0, "JITGEMM_DRIVER=cpu JITGEMM_FACTORY=f.db \"$P\" --cache for-others-%zu.db --generic=f32 %s", i, options[i]);
        assert_has(out, "\ncompiled 7, cached 0, failed 0\n");
    }
    /* One that cannot be read costs kernels, and is no failure. */
    assert_run(0, "echo hello >text; JITGEMM_DRIVER=cpu JITGEMM_FACTORY=text \"$P\" --cache own.db --generic=f32 64");
    assert_has(out, "\ncompiled 7, cached 1, failed 0\n");
    assert_has(err, "text: is not a jitgemm cache");
}

static void what_failed_is_not_sealed(void **state)
{
    (void)state;
    assert_run(1, "\"$P\" --arch 87 --cache f.db --generic=f32 --seal --nvrtc no-such-library.so --json");
    assert_has(err, " f.db is not sealed, for not everything is in it\n");
    assert_has(out, "\"sealed\":\tfalse");
    /* A wrong one among several: the others are made, and the file is no factory file. */
    need_nvrtc();
    assert_run(1, "\"$P\" --arch 12,87 --cache g.db --generic=f32 --seal");
    assert_has(out, "jg_sm87_simt_f32");
    assert_has(err, " g.db is not sealed, for not everything is in it\n");
    assert_run(1, "\"$P\" --arch 12 --cache h.db --generic=f32 --seal"); /* nothing to seal at all */
    assert_has_not(err, "sealed");
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    need_nvrtc();
    assert_run(0, "mkdir -m 700 small");
    int status = run("unshare -m sh -c 'mount -t tmpfs -o size=160k,mode=700 none small || exit 77; "
                     "\"$P\" --arch 87,90 --cache small/f.db --generic=f32 --seal'"); /* the mount goes with the shell */
    if (status == 77 || strstr(err, "unshare")) {
        print_message("SKIP cannot mount a small file system: %s\n", err);
        skip();
    }
    assert_int_equal(status, 1);
    assert_has(err, "kernels missing from the file");
    assert_has(err, "is not sealed");
    assert_has_not(out, "sealed");
}

static void a_read_only_target_is_told(void **state)
{
    (void)state;
    need_nvrtc();
    need_setpriv();
    assert_run(0, "\"$P\" --arch 87 --cache f.db --generic=f32 --seal --quiet && chmod 755 . && cp \"$P\" tool && "
                  "mkdir -m 755 ro && mv f.db ro && chmod 444 ro/f.db && chmod 555 ro");
    /* Full already: nothing has to be written. */
    assert_int_equal(run_bound("./tool --arch 87 --cache ro/f.db --generic=f32 --nvrtc no-such-library.so"), 0);
    assert_has(out, "compiled 0, cached 7, failed 0\n");
    assert_int_equal(run_bound("./tool --arch 87 --cache ro/f.db --generic=f32 --seal"), 1);
    assert_has(err, "ro/f.db");
    assert_int_equal(run_bound("./tool --arch 87 --cache ro/f.db 64"), 1);
    assert_has(err, "kernels missing from the file: 1");
    assert_run(0, "test \"$(ls -A ro)\" = f.db");
}

/* Waits until a run has written something that holds `part`, then interrupts it. */
static int interrupt_at(pid_t pid, const char *part)
{
    for (int i = 0; i < 3000; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        read_text("out", out);
        if (strstr(out, part)) {
            kill(pid, SIGINT);
            return finish(pid);
        }
    }
    kill(pid, SIGKILL);
    finish(pid);
    fail_msg("\"%s\" did not come within 15 s:\n%s%s", part, out, err);
    return -1;
}

static void interrupt_between_architectures(void **state)
{
    (void)state;
    need_nvrtc();
    pid_t pid = start("exec \"$P\" --arch 87,90,86 --jobs 1 --cache f.db --generic=f16 --seal");
    assert_int_equal(interrupt_at(pid, "compiled"), 130);
    assert_has(err, " kernels are left; run again to go on\n");
    assert_has(err, "jitgemm-prewarm: interrupted: architectures not begun: 2; run again to go on\n");
    assert_has(err, "is not sealed");
    assert_has_not(out, "sm90");
    assert_run(0, "\"$P\" --arch 87 --cache f.db --generic=f16 --seal");
    assert_has(out, "] cached "); /* what the interrupted run made is there */
    assert_has(out, "\nsealed f.db\n");
    pid = start("exec \"$P\" --arch 87,90 --jobs 1 --cache f.db --generic=f16");
    assert_int_equal(interrupt_at(pid, "sm90"), 130);
    assert_has_not(err, "architectures not begun");
    assert_has_not(err, "sealed");
}

/* ---- make factory ----------------------------------------------------------------------------------------------- */

static char source[PATH_MAX];

/* A line with `make` in the source tree; its FACTORY is in the scratch folder. */
#define MAKE "make -s --no-print-directory -C \"$SOURCE\" BUILD=\"$B\" FACTORY=\"$PWD/f/factory.db\" "

static void need_make(void)
{
    need_nvrtc();
    if (*source && run("make --version") == 0) return;
    print_message("SKIP no make, or not the source tree\n");
    skip();
}

static void make_factory(void **state)
{
    (void)state;
    need_make();
    /* What a run that was killed left behind is no obstacle, and not a part of what is made. */
    assert_run(0, "mkdir -m 755 f; \"$P\" --arch 87 --cache f/factory.db.new --quiet 64; : >f/factory.db.new-wal; "
                  ": >f/factory.db");
    assert_run(0, "umask 002; " MAKE "factory ARCHS=' 87  90' FACTORY_TYPES=f32");
    assert_has(out, "\nsm_87             7 ");
    assert_has(out, "\nsm_90             7 ");
    assert_int_equal(scratch_mode(scratch_path(folder, "f/factory.db")), 0644);
    assert_run(0, "test \"$(ls -A f)\" = factory.db && od -An -tx1 -j18 -N2 f/factory.db");
    assert_string_equal(out, " 01 01\n");
    assert_run(0, "printf '64\\n# one\\n64:nt\\n' >one; echo 96 >two; "
                  MAKE "factory FACTORY_TYPES=f32 FACTORY_LIST=\"$PWD/one $PWD/two\" FACTORY_SMS='8 16'");
    assert_has(out, "  96  jg_sm87_simt_f32");
    assert_has_not(out, "sm_90"); /* made anew, not added to */
    assert_run(0, "\"$C\" ls --cache f/factory.db");
    assert_has(out, "_m64n64k64_");
    assert_has(out, "_m96n96k96_");
}

/* A folder that others can write would make the file one that nobody trusts. */
static void make_factory_makes_a_safe_folder(void **state)
{
    (void)state;
    need_make();
    assert_run(0, "umask 002; " MAKE "factory FACTORY_TYPES=f32");
    assert_int_equal(scratch_mode(scratch_path(folder, "f")), 0755);
    assert_int_equal(scratch_mode(scratch_path(folder, "f/factory.db")), 0644);
}

static void make_factory_fails_as_a_whole(void **state)
{
    (void)state;
    need_make();
    assert_run(0, "mkdir -m 755 f; echo old >f/factory.db");
    static const char *const arguments[] = {"ARCHS=12", "ARCHS=", "ARCHS='87 sm_x'", "ARCHS=87,12", "FACTORY_TYPES=f17",
                                            "FACTORY_LIST=/no/such/list", "FACTORY_SMS=none"};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        assert_run(2, MAKE "factory %s %s", strncmp(arguments[i], "FACTORY_TYPES", 13) ? "FACTORY_TYPES=f32" : "", arguments[i]);
        assert_has(err, "jitgemm-prewarm: ");
        assert_run(0, "test \"$(ls -A f)\" = factory.db && test \"$(cat f/factory.db)\" = old");
    }
    assert_run(2, "JITGEMM_NVRTC=no-such-library.so " MAKE "factory FACTORY_TYPES=f32");
    assert_run(0, "test \"$(ls -A f)\" = factory.db && test \"$(cat f/factory.db)\" = old");
}

/* Ctrl-C goes to the whole group that has the terminal, so the group is what is interrupted here. */
static void make_factory_interrupted(void **state)
{
    (void)state;
    need_make();
    assert_run(0, "mkdir -m 755 f; echo old >f/factory.db");
    pid_t pid = start("exec setsid " MAKE "factory ARCHS='87 90'");
    for (int i = 0; i < 3000 && !strstr(out, "compiled"); i++) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        read_text("out", out);
    }
    assert_has(out, "compiled");
    assert_int_equal(kill(-pid, SIGINT), 0);
    assert_true(finish(pid) != 0);
    /* make itself ends at once; the tool finishes the kernel at work, and then the shell cleans up. */
    for (int i = 0; i < 3000 && run("test \"$(ls -A f)\" = factory.db") != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    assert_run(0, "ls -A f && cat f/factory.db");
    assert_string_equal(out, "factory.db\nold\n");
    assert_run(0, MAKE "factory FACTORY_TYPES=f32");
    assert_run(0, "\"$C\" verify --cache f/factory.db");
}

int main(void)
{
    if (make_rules_are_here() && !realpath(".", source)) *source = 0;
    setenv("SOURCE", source, 1);
    if (find_tools() != 0) return 0;
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(seals),
        TEST(seals_only_what_it_can),
        TEST(seals_nothing_read_only),
        TEST(reads_from_a_read_only_place),
        TEST(wrong_words),
        TEST(dry_run_of_types_and_seal),
        TEST(one_file_for_several_architectures),
        TEST(types_come_on_top_of_sizes),
        TEST(kernels_of_a_factory_file_are_there_already),
        TEST(what_failed_is_not_sealed),
        TEST(a_full_disk_is_told),
        TEST(a_read_only_target_is_told),
        TEST(interrupt_between_architectures),
        TEST(make_factory),
        TEST(make_factory_makes_a_safe_folder),
        TEST(make_factory_fails_as_a_whole),
        TEST(make_factory_interrupted),
    };
    return cmocka_run_group_tests_name("factory files", tests, NULL, NULL);
}
