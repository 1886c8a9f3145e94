/* What a user gets: the header in C99 and C++, `make install` into a prefix, pkg-config, and libraries that show only the
 * public names and need neither the CUDA driver nor NVRTC to start. Runs commands, so it works on the build folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char prefix[] = "/tmp/jitgemm-install-XXXXXX";
static const char *build;

/* Sanitizers need their runtime linked first; a plain program cannot use such a library. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *format, ...)
{
    char command[2048];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    assert_in_range(n, 1, (int)sizeof command - 1);
    int status = system(command);
    if (status != 0) print_error("failed (%d): %s\n", status, command);
    return status;
}

static void test_header_alone(void **state)
{
    (void)state;
    assert_int_equal(run("${CC:-cc} -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c include/jitgemm.h"), 0);
    if (system("command -v c++ >/dev/null 2>&1") != 0) {
        print_message("SKIP no C++ compiler\n");
        skip();
    }
    assert_int_equal(run("c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ include/jitgemm.h"), 0);
}

static void test_install_and_pkg_config(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("SKIP a sanitized library is not what is installed\n");
        skip();
    }
    assert_int_equal(run("make -s --no-print-directory BUILD=%s PREFIX=%s install >/dev/null", build, prefix), 0);
    static const char *const links[] = {"$(pkg-config --libs jitgemm)", /* as the README says */
                                        "$(pkg-config --variable=libdir jitgemm)/libjitgemm.a -lsqlite3 -lxxhash -ldl -lm -pthread"};
    for (int is_static = 0; is_static < 2; is_static++) {
        assert_int_equal(run("export PKG_CONFIG_PATH=%s/lib/pkgconfig; ${CC:-cc} $(pkg-config --cflags jitgemm) -o %s/first "
                             "examples/01_first_product.c %s", prefix, prefix, links[is_static]), 0);
        assert_int_equal(run("LD_LIBRARY_PATH=%s/lib JITGEMM_CACHE= %s/first | grep -q '139 *154'", prefix, prefix), 0);
        assert_int_equal(run("%s readelf -d %s/first | grep -q 'NEEDED.*libjitgemm'", is_static ? "!" : "", prefix), 0);
    }
    /* The README's first program is a program. */
    assert_int_equal(run("sed -n '/^```c$/,/^```$/p' README.md | grep -v '^```' >%s/first.c && ${CC:-cc} -Wall -Werror -I%s/include -o %s/first "
                         "%s/first.c -L%s/lib -ljitgemm && LD_LIBRARY_PATH=%s/lib JITGEMM_CACHE= %s/first | grep -q '139 154' && rm %s/first.c",
                         prefix, prefix, prefix, prefix, prefix, prefix, prefix, prefix), 0);
    assert_int_equal(run("%s/bin/jitgemm-prewarm --version >/dev/null && %s/bin/jitgemm-cache --version >/dev/null", prefix, prefix), 0);
    /* The tools find the compile helper that was installed with them, and say it if it is of no use. */
    assert_int_equal(run("JITGEMM_HELPER= %s/libexec/jitgemm/jitgemm-compile --version >/dev/null", prefix), 0);
    assert_int_equal(run("cp /bin/false %s/libexec/jitgemm/jitgemm-compile; unset JITGEMM_HELPER; %s/bin/jitgemm-prewarm --arch 87 --cache %s/c.db 16 "
                         "2>&1 | grep -q 'compile helper %s/.*libexec/jitgemm/jitgemm-compile .*exit status 1' && rm %s/c.db*",
                         prefix, prefix, prefix, prefix, prefix), 0);
    assert_int_equal(run("make -s --no-print-directory BUILD=%s PREFIX=%s uninstall >/dev/null", build, prefix), 0);
    assert_int_equal(run("rm %s/first && test -z \"$(find %s -type f -o -type l)\"", prefix, prefix), 0);
}

#define MAKE "make -s --no-print-directory BUILD=%s PREFIX=/p DESTDIR=%s/image "
#define SHARE "%s/image/p/share/jitgemm"

static void assert_mode(const char *name, const char *mode)
{
    assert_int_equal(run("test \"$(stat -c %%a " SHARE "/%s)\" = %s", prefix, name, mode), 0);
}

/* A factory file is installed where there is one, for everybody to read; its folder is for the owner alone to write. */
static void test_install_of_a_factory_file(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("SKIP a sanitized library is not what is installed\n");
        skip();
    }
    assert_int_equal(run("umask 077; echo factory >%s/made.db", prefix), 0);
    static const char *const files[] = {"made.db", "none.db"};
    for (int there = 1; there >= 0; there--) {
        const char *file = files[!there];
        assert_int_equal(run("umask 002; " MAKE "FACTORY=%s/%s install >%s/said 2>&1", build, prefix, prefix, file, prefix), 0);
        assert_int_equal(run("%s grep -q -e factory -e '%s' %s/said", there ? "" : "!", file, prefix), 0);
        assert_int_equal(run("%s test -e " SHARE "/factory.db", there ? "" : "!", prefix), 0);
        assert_int_equal(run("! grep -q older %s/said", prefix), 0);
        assert_mode("", "755");
        if (there) assert_mode("factory.db", "644");
        assert_int_equal(run(MAKE "uninstall >/dev/null", build, prefix), 0);
        assert_int_equal(run("test -z \"$(find %s/image -type f -o -type l)\"", prefix), 0);
    }
    assert_int_equal(run("touch -d 2001-01-01 %s/made.db; " MAKE "FACTORY=%s/made.db install >%s/said", prefix, build, prefix, prefix, prefix), 0);
    assert_int_equal(run("grep -q 'made.db is older than the templates' %s/said", prefix), 0);
    assert_int_equal(run("rm -r %s/image %s/made.db %s/said", prefix, prefix, prefix), 0);
}

/* The GStreamer element is installed where it was made, finds the installed library by itself, and goes with the rest. */
static void test_install_of_the_element(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("SKIP a sanitized library is not what is installed\n");
        skip();
    }
    if (run("test -f %s/gst/libgstjitgemm.so && command -v gst-inspect-1.0 >/dev/null", build) != 0) {
        print_message("SKIP no GStreamer 1.x\n");
        skip();
    }
    static const char *const folders[] = {"/p/lib/gstreamer-1.0", "/elsewhere"};
    for (int other = 0; other < 2; other++) {
        assert_int_equal(run(MAKE "%s%s install >/dev/null", build, prefix, other ? "GST_PLUGIN_DIR=" : "", other ? folders[1] : ""), 0);
        assert_int_equal(run("test -x %s/image%s/libgstjitgemm.so", prefix, folders[other]), 0);
        /* Anywhere else the linker has to be told of the library. */
        assert_int_equal(run("LD_LIBRARY_PATH=%s%s GST_PLUGIN_PATH=%s/image%s GST_REGISTRY=%s/registry gst-inspect-1.0 jitgemmfilter | "
                             "grep -q MIT/X11 && rm %s/registry", other ? prefix : "", other ? "/image/p/lib" : "", prefix, folders[other],
                             prefix, prefix), 0);
        assert_int_equal(run(MAKE "%s%s uninstall >/dev/null", build, prefix, other ? "GST_PLUGIN_DIR=" : "", other ? folders[1] : ""), 0);
        assert_int_equal(run("test -z \"$(find %s/image -type f -o -type l)\"", prefix), 0);
    }
    assert_int_equal(run("rm -r %s/image", prefix), 0);
}

static void test_only_public_names(void **state)
{
    (void)state;
    assert_int_equal(run("! nm -D --defined-only %s/lib/libjitgemm.so | grep -v ' jg_[a-z0-9_]*$' | grep -v -e __asan -e __odr -e __tsan", build), 0);
    assert_int_equal(run("! nm -g --defined-only %s/lib/libjitgemm.a | grep ' [A-Z] ' | grep -v -e ' jg_[a-z0-9_]*$' -e __odr -e __asan", build), 0);
    /* Every function of the header is there. */
    assert_int_equal(run("for f in $(sed -n 's/^JG_API .*[ *]\\(jg_[a-z_]*\\)(.*/\\1/p' include/jitgemm.h); do "
                         "nm -D --defined-only %s/lib/libjitgemm.so | grep -q \" $f$\" || { echo missing $f; exit 1; }; done", build), 0);
}

/* The library never prints, exits or aborts: it does not even import what would. */
static void test_imports_nothing_that_ends_or_prints(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("SKIP a sanitizer imports its own\n");
        skip();
    }
    assert_int_equal(run("nm -D --undefined-only %s/lib/libjitgemm.so | grep -q -w dlopen", build), 0); /* there is something to look at */
    assert_int_equal(run("! nm -D --undefined-only %s/lib/libjitgemm.so | sed 's/@.*//' | "
                         "grep -w -e exit -e _exit -e abort -e printf -e puts -e putchar -e perror -e stdout -e stderr -e __assert_fail -e setenv "
                         "-e setlocale -e signal -e sigaction", build), 0);
}

static void test_links_no_cuda(void **state)
{
    (void)state;
    assert_int_equal(run("! readelf -d %s/lib/libjitgemm.so | grep NEEDED | grep -i -e cuda -e nvrtc", build), 0);
    assert_int_equal(run("readelf -d %s/lib/libjitgemm.so | grep -q 'SONAME.*libjitgemm.so.0'", build), 0);
    assert_int_equal(run("readelf -d %s/lib/libjitgemm.so | grep -q NODELETE", build), 0);
}

/* It is started for each kernel, so it is small: neither SQLite nor the library. */
static void test_the_helper_needs_little(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("SKIP a sanitizer brings libraries of its own\n");
        skip();
    }
    assert_int_equal(run("test -x %s/libexec/jitgemm/jitgemm-compile", build), 0);
    assert_int_equal(run("! readelf -d %s/libexec/jitgemm/jitgemm-compile | grep NEEDED | grep -v -e 'libc\\.' -e 'libdl\\.' -e 'libpthread\\.' -e ld-linux", build), 0);
}

static int setup(void **state)
{
    (void)state;
    build = getenv("JG_TEST_BUILD_DIR");
    if (!build) build = "build";
    return mkdtemp(prefix) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return run("rm -rf %s", prefix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_alone),
        cmocka_unit_test(test_only_public_names),
        cmocka_unit_test(test_links_no_cuda),
        cmocka_unit_test(test_imports_nothing_that_ends_or_prints),
        cmocka_unit_test(test_the_helper_needs_little),
        cmocka_unit_test(test_install_and_pkg_config),
        cmocka_unit_test(test_install_of_a_factory_file),
        cmocka_unit_test(test_install_of_the_element),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
