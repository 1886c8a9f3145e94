/* Prewarming at boot: the installed systemd unit and its examples in; what systemd-analyze says of them out, and what the unit's own
 * command makes of a list of misses in a small root folder that is read-only, with the cache on a data partition that is there,
 * full, read-only, missing, or holds half a file (boot_chroot.sh). The misses are those of a pipeline on the software GPU. */
#include "cli_tools_fixture.h"
#include "jitgemm.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

/* A sanitized program needs more than fits into a small root, and is not what is installed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define UNIT "root/usr/local/lib/systemd/system/jitgemm-prewarm.service"
#define SHARE "root/usr/local/share/jitgemm"

static char sources[PATH_MAX];
static char nvrtc_folder[PATH_MAX];
static char no_chroot[600]; /* why there is no root folder to run in; "" if there is */

static void skip_because(const char *reason)
{
    print_message("SKIP %s\n", reason);
    skip();
}

/* ---- the unit and its examples ---- */

static void need_systemd_analyze(void)
{
    if (run("systemd-analyze --version") != 0) skip_because("no systemd-analyze");
}

/* Verifies folder/units/NAME; whatever is wrong, warnings too, is written on standard error. */
static int verify(const char *name)
{
    return run("systemd-analyze verify --man=no units/%s", name);
}

/* The installed unit, with a program that is there; the pipeline's is one that always is. */
static void make_units(void)
{
    assert_run(0, "rm -rf units && mkdir -p units/pipeline.service.d units/jitgemm-prewarm.service.d && "
                  "sed \"s|/usr/local/bin/jitgemm-prewarm|$P|\" " UNIT " >units/jitgemm-prewarm.service && "
                  "printf '[Service]\\nExecStart=/bin/true\\n' >units/pipeline.service && "
                  "cp " SHARE "/jitgemm-pipeline.conf units/pipeline.service.d/");
}

static void systemd_finds_nothing_wrong(void **state)
{
    (void)state;
    need_systemd_analyze();
    make_units();
    static const char *const names[] = {"jitgemm-prewarm.service", "pipeline.service", "jitgemm-prewarm.service"};
    for (int i = 0; i < 3; i++) {
        if (i == 2) assert_run(0, "cp " SHARE "/jitgemm-var-cache.conf units/jitgemm-prewarm.service.d/");
        int status = verify(names[i]);
        if (status != 0 || *err) fail_msg("%s: status %d\n%s", names[i], status, err);
    }
    /* It would have told of a line that systemd does not know. */
    assert_run(0, "echo Unknown=1 >>units/jitgemm-prewarm.service.d/jitgemm-var-cache.conf");
    verify(names[0]);
    assert_has(err, "Unknown");
}

static void the_unit_may_do_little(void **state)
{
    (void)state;
    need_systemd_analyze();
    make_units();
    if (run("systemd-analyze security --offline=true --threshold=100 units/pipeline.service") != 0)
        skip_because("systemd-analyze is too old to judge a file");
    assert_run(0, "systemd-analyze security --offline=true --threshold=20 units/jitgemm-prewarm.service"); /* of 100 */
}

static double seconds_of(const char *name, const char *pattern)
{
    assert_run(0, "sed -n 's/^%s\\([0-9]*\\)s$/\\1/p' %s | tail -n 1", pattern, name);
    assert_true(atoi(out) > 0);
    return atoi(out);
}

/* systemd must not stop it in the middle of what the budget allows: 10 s are for the kernels at work when the time is over. */
static void the_time_limit_is_above_the_budget(void **state)
{
    (void)state;
    const double budget = seconds_of(UNIT, "Environment=JITGEMM_BOOT_BUDGET=");
    const double limit = seconds_of(UNIT, "TimeoutStartSec=");
    assert_true(limit >= budget + 10);
    /* The example says from which budget on the limit must be raised. */
    assert_run(0, "sed -n 's/.*Above \\([0-9]*\\)s, raise TimeoutStartSec.*/\\1/p' " SHARE "/jitgemm.default");
    assert_true(atoi(out) > 0 && atoi(out) + 10 <= limit);
}

/* A failure must not fail the boot, and so is no condition that silently keeps the unit from starting. */
static void the_unit_never_fails_a_boot(void **state)
{
    (void)state;
    assert_run(0, "grep -c '^ExecStart=' " UNIT);
    assert_string_equal(out, "1\n");
    assert_run(0, "grep -q '^ExecStart=-/usr/local/bin/jitgemm-prewarm ' " UNIT);
    assert_run(1, "grep -e '^Condition' -e '^Requires=' " UNIT " " SHARE "/jitgemm-pipeline.conf");
    assert_run(0, "make -s --no-print-directory -C '%s' BUILD=\"$B\" PREFIX=/usr DESTDIR=\"$PWD/usr\" install >/dev/null && "
                  "grep -q '^ExecStart=-/usr/bin/jitgemm-prewarm ' usr/usr/lib/systemd/system/jitgemm-prewarm.service && rm -r usr",
               sources);
}

/* What the example has commented out is what the unit and the tool take, and the values are the unit's own. */
static void the_example_of_settings_is_right(void **state)
{
    (void)state;
    assert_run(0, "grep -c '^[^#]' " SHARE "/jitgemm.default || true");
    assert_string_equal(out, "0\n");
    assert_run(0, "grep '^#JITGEMM_' " SHARE "/jitgemm.default | tr -d '#' >set; wc -l <set");
    assert_int_equal(atoi(out), 5);
    assert_run(0, "grep -e CACHE= -e TYPES= -e BUDGET= set | while read -r line; do "
                  "grep -qx \"Environment=$line\" " UNIT " || exit 1; done");
    assert_run(0, "sed -n '/^ExecStart=-/,/[^\\\\]$/p' " UNIT " | tr -d '\\\\\n' | sed 's/^[^ ]* //'");
    char arguments[512];
    snprintf(arguments, sizeof arguments, "%.511s", out);
    assert_run(0, "echo 64 >sizes; while IFS= read -r line; do export \"$line\"; done <set; "
                  "JITGEMM_BOOT_OPTIONS=$(echo \"$JITGEMM_BOOT_OPTIONS\" | sed 's|/etc/jitgemm/sizes.txt|sizes|'); "
                  "export JITGEMM_DRIVER=cpu JITGEMM_CACHE=$PWD/none.db; \"$P\" --dry-run %s", arguments);
    assert_has(out, "failed 0\n");
    assert_run(0, "rm -f sizes set");
}

/* ---- the run at boot ---- */

/* The generic kernels of s4, as a boot has made them. */
static int make_generic_kernels(const jg_options *options)
{
    jg_context *c;
    const int made = jg_open(options, &c) == JG_OK && jg_wait_idle(c, 60e3) == JG_OK;
    return jg_close(c) == JG_OK && made;
}

/* The pipeline of earlier boots: it may not compile, and runs three sizes on generic kernels, the last one most. */
static int pipeline(void *user)
{
    (void)user;
    setenv("JITGEMM_SWGPU_DEVICE", "orin-agx", 1);
    unsetenv("JITGEMM_LINE_INFO");
    jg_options options = {.device = JG_DEVICE_CUDA, .driver_path = "swgpu", .factory_path = "", .resident = JG_RESIDENT_S4,
                          .cache_path = scratch_path(folder, "data/jitgemm/kernels.db")};
    jg_context *c;
    void *memory;
    if (!make_generic_kernels(&options)) return 1;
    options.compile = JG_COMPILE_NEVER;
    if (jg_open(&options, &c) != JG_OK || jg_alloc(c, JG_DEVICE_MEMORY, 1 << 16, &memory) != JG_OK) return 2;
    char *bytes = memory;
    const char zeros[8192] = {0};
    if (jg_copy(c, bytes, zeros, sizeof zeros) != JG_OK) return 3;
    for (int size = 1; size <= 3; size++) {
        const jg_problem p = {.m = 16 * size, .n = 64, .k = 64, .type_a = JG_S4};
        const jg_operands data = {.a = bytes, .b = bytes + 4096, .c = bytes + 8192};
        for (int times = 0; times < size; times++)
            if (jg_gemm(c, &p, &data) != JG_OK) return fprintf(stderr, "%s\n", jg_last_error()), 4;
    }
    if (jg_synchronize(c, NULL) != JG_OK || jg_free(c, JG_DEVICE_MEMORY, memory) != JG_OK) return 5;
    return jg_close(c) == JG_OK ? 0 : 6;
}

static int find_nvrtc(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so"};
    const char *given = getenv("JITGEMM_NVRTC");
    void *handle = given && *given ? dlopen(given, RTLD_LAZY | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !handle && i < sizeof names / sizeof *names; i++) handle = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
    int found = handle && dlinfo(handle, RTLD_DI_ORIGIN, nvrtc_folder) == 0;
    if (handle) dlclose(handle);
    return found;
}

/* Libraries of all that runs in the root: what the loader finds for them here. */
static int copy_libraries(void)
{
    return run("set -e; mkdir -p root/proc root/dev root/data root/etc/default root/tmp root/usr/bin root/usr/local/cuda/lib64; "
               "touch root/dev/null root/dev/urandom; cp -L \"$(command -v setpriv)\" root/usr/bin/setpriv; "
               "for program in root/usr/bin/setpriv root/usr/local/bin/jitgemm-prewarm root/usr/local/lib/libjitgemm-swgpu.so "
               "$(find root/usr/local/libexec -type f 2>/dev/null) '%s/libnvrtc'*.so; do ldd \"$program\"; done | "
               "sed -n 's/^[^/]*\\(\\/[^ ]*\\) (0x.*/\\1/p' | sort -u | while read -r library; do cp -L --parents \"$library\" root; done",
               nvrtc_folder);
}

static void find_what_is_missing(void)
{
    const char *reason = "";
    if (SANITIZED) reason = "a sanitized program is not what is installed";
    else if (geteuid() != 0) reason = "only root can make mounts and change the root folder";
    else if (!find_nvrtc()) reason = "no NVRTC";
    else if (run("setpriv --version && command -v chroot") != 0) reason = "no setpriv or chroot";
    else if (run("mkdir -p a b && unshare -m sh -c 'mount --bind a b && mount -o remount,bind,ro b && mount -t tmpfs tmpfs a'") != 0)
        reason = "mounts are not allowed here";
    snprintf(no_chroot, sizeof no_chroot, "%s", reason);
    if (!*reason && copy_libraries() != 0) snprintf(no_chroot, sizeof no_chroot, "no small root folder can be made: %.500s", err);
    if (!*no_chroot && run("chroot root /usr/bin/setpriv --version") != 0)
        snprintf(no_chroot, sizeof no_chroot, "a small root folder does not work: %.500s", err);
}

/* One installation for all tests. */
static int install(void **state)
{
    if (!getcwd(sources, sizeof sources)) return -1;
    make_folder(state);
    if (run("make -s --no-print-directory -C '%s' BUILD=\"$B\" DESTDIR=\"$PWD/root\" install >/dev/null", sources) != 0) {
        print_error("make install failed\n%s", err);
        return -1;
    }
    find_what_is_missing();
    return 0;
}

static void assert_sound(const char *data)
{
    assert_run(0, "\"$C\" verify --cache %s/jitgemm/kernels.db", data);
    assert_run(0, "cd %s && find . -type f | sort", data); /* nothing else lies beside it */
    assert_string_equal(out, "./jitgemm/kernels.db\n./jitgemm/kernels.db-claims\n");
}

static void need_chroot(void)
{
    if (*no_chroot) skip_because(no_chroot);
    if (scratch_exists(scratch_path(folder, "data"))) return;
    int status = scratch_child(pipeline, NULL, 0);
    if (status != 0) fail_msg("the pipeline failed at %d", status);
    assert_sound("data");
}

/* Settings of the image, which the unit reads. */
static void set(const char *options, const char *budget)
{
    char text[512];
    int length = snprintf(text, sizeof text, "# of this image\nJITGEMM_DRIVER=swgpu\nJITGEMM_SWGPU_DEVICE=orin-agx\nJITGEMM_BOOT_TYPES=s4\n"
                                             "JITGEMM_BOOT_OPTIONS=%s\nJITGEMM_BOOT_BUDGET=%s\n", options, budget);
    scratch_write(scratch_path(folder, "root/etc/default/jitgemm"), text, (size_t)length);
}

static int boot(const char *data, const char *how)
{
    return run("unshare -m sh '%s/tests/boot_chroot.sh' \"$PWD/root\" '%s' \"$PWD/%s\" %s", sources, nvrtc_folder, data, how);
}

/* How many misses have their kernel by now. */
static int misses_cached(const char *data)
{
    assert_run(0, "\"$C\" misses --cache %s/jitgemm/kernels.db | grep -c ' yes ' || true", data);
    return atoi(out);
}

/* What lies in the root folder, with times and checksums, but for what holds the mounts. */
static void list_root(const char *name)
{
    assert_run(0, "find root -path root/data -prune -o -printf '%%p %%y %%m %%s %%T@ %%l\n' | sort >%s; "
                  "find root -path root/data -prune -o -type f -exec cksum {} + | sort >>%s", name, name);
}

static void assert_boots(int expected, const char *data, const char *how)
{
    int status = boot(data, how);
    if (status != expected) fail_msg("%s: status %d, not %d\n%s%s", how, status, expected, out, err);
}

static void misses_are_made_at_the_next_boot(void **state)
{
    (void)state;
    need_chroot();
    assert_run(0, "rm -rf d && cp -a data d");
    assert_int_equal(misses_cached("d"), 0);
    set("--jobs 1", "50s");
    assert_boots(0, "d", "writable");
    assert_string_equal(err, "");
    const char *first = strstr(out, "[3/5] compiled"), *second = strstr(out, "[4/5] compiled"), *third = strstr(out, "[5/5] compiled");
    assert_true(first && second && third);
    assert_has(first, "  48x64x64:s4");
    assert_true(strstr(first, "  48x64x64:s4") < second && strstr(second, "  32x64x64:s4") < third);
    assert_has(third, "  16x64x64:s4");
    assert_has(out, "\ncompiled 3, cached 2, failed 0\n");
    assert_int_equal(misses_cached("d"), 3);
    assert_sound("d");
    assert_int_equal(scratch_mode(scratch_path(folder, "d/jitgemm/kernels.db")), 0600);

    assert_boots(0, "d", "writable");
    assert_has(out, "\ncompiled 0, cached 5, failed 0\n");
}

/* Where it could write, it does not: no home folder, no temporary files, nothing of a helper's. */
static void nothing_else_is_written(void **state)
{
    (void)state;
    need_chroot();
    assert_run(0, "rm -rf d && cp -a data d");
    set("--jobs 1", "1ms");
    list_root("before");
    assert_boots(0, "d", "open");
    list_root("after");
    assert_run(0, "diff before after");
    assert_sound("d");
    assert_run(0, "rm before after");
}

/* The first kernel that it looks at takes the time. It is there already, so nothing is made, and that is no failure. */
static void time_that_is_over_is_no_failure(void **state)
{
    (void)state;
    need_chroot();
    assert_run(0, "rm -rf d && cp -a data d");
    set("--jobs 1", "1ms");
    assert_boots(0, "d", "writable");
    assert_string_equal(err, "jitgemm-prewarm: time is over; 4 kernels are left for the next run\n");
    assert_has(out, "\ncompiled 0, cached 1, failed 0\n");
    assert_int_equal(misses_cached("d"), 0);
    assert_sound("d");
}

/* What cannot be kept is told, and why. The unit ignores the status. */
static void what_cannot_be_kept_is_told(void **state)
{
    (void)state;
    need_chroot();
    static const struct { const char *how, *why, *end; } rows[] = {
        {"full", "kernels.db: is open for reading only, as the disk is full; ", "kernels missing from the file: "},
        {"read-only", "kernels.db: is open for reading only; ", "kernels missing from the file: "},
        {"missing", "cannot make folder /data/jitgemm: Read-only file system; ", "there is no cache file to fill"}};
    assert_run(0, "rm -rf d && cp -a data d && \"$C\" clear --yes --cache d/jitgemm/kernels.db");
    set("--jobs 1", "1ms"); /* one kernel is enough */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_boots(1, "d", rows[i].how);
        assert_has(err, rows[i].why);
        assert_has(err, rows[i].end);
    }
    assert_run(0, "\"$C\" verify --cache d.full/jitgemm/kernels.db && rm -r d.full");
}

/* What is kept already can be read from a partition without room, and from one that cannot be written. */
static void kept_kernels_are_read_from_a_full_partition(void **state)
{
    (void)state;
    need_chroot();
    static const char *const how[] = {"full", "read-only"};
    assert_run(0, "rm -rf d && cp -a data d && \"$C\" misses --clear --cache d/jitgemm/kernels.db");
    set("--jobs 1", "50s");
    for (int i = 0; i < 2; i++) {
        assert_boots(0, "d", how[i]);
        assert_has(out, "\ncompiled 0, cached 2, failed 0\n");
    }
    assert_run(0, "\"$C\" verify --cache d.full/jitgemm/kernels.db && rm -r d.full");
}

/* A file that lost its end is made anew; its misses are lost, and will be met again. Nobody is there to clear it by hand. */
static void a_file_cut_off_is_made_anew(void **state)
{
    (void)state;
    need_chroot();
    assert_run(0, "rm -rf d && cp -a data d && cd d/jitgemm && truncate -s $(($(stat -c %%s kernels.db) / 2)) kernels.db");
    set("--jobs 1", "1ms");
    assert_boots(0, "d", "writable");
    assert_has(out, "\ncompiled 1, cached 0, failed 0\n");
    assert_has(err, "the cache file was damaged and is made anew; what it held, misses too, is lost\n");
    assert_has(err, "no misses for sm_87 in /data/jitgemm/kernels.db");
    assert_sound("d");
}

int main(void)
{
    if (find_tools() != 0) return 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systemd_finds_nothing_wrong),
        cmocka_unit_test(the_unit_may_do_little),
        cmocka_unit_test(the_time_limit_is_above_the_budget),
        cmocka_unit_test(the_unit_never_fails_a_boot),
        cmocka_unit_test(the_example_of_settings_is_right),
        cmocka_unit_test(misses_are_made_at_the_next_boot),
        cmocka_unit_test(nothing_else_is_written),
        cmocka_unit_test(time_that_is_over_is_no_failure),
        cmocka_unit_test(what_cannot_be_kept_is_told),
        cmocka_unit_test(kept_kernels_are_read_from_a_full_partition),
        cmocka_unit_test(a_file_cut_off_is_made_anew),
    };
    return cmocka_run_group_tests_name("boot", tests, install, remove_folder);
}
