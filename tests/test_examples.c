/* The examples that check their own results, as a reader would run them: without a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Runs one on a device, without a cache file, and returns what it printed. */
static const char *run(const char *example, const char *driver, int *status)
{
    static char out[16384];
    char command[1024];
    const char *build = getenv("JG_TEST_BUILD_DIR");
    snprintf(command, sizeof command, "JITGEMM_CACHE=/dev/null/kernels.db JITGEMM_DRIVER=%s %s/examples/%s 2>&1", driver,
             build && *build ? build : "build", example);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    out[fread(out, 1, sizeof out - 1, pipe)] = 0;
    const int ended = pclose(pipe);
    *status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    return out;
}

static void first_product(void **state)
{
    (void)state;
    int status;
    const char *out = run("01_first_product", "cpu", &status);
    if (status != 0 || !strstr(out, "58") || !strstr(out, "154")) fail_msg("status %d:\n%s", status, out);
}

static void quantised(void **state)
{
    (void)state;
    int status;
    const char *out = run("40_quantised", "cpu", &status);
    if (status != 0 || !strstr(out, "u8 x s8 -> s32") || !strstr(out, "f16 x s4")) fail_msg("status %d:\n%s", status, out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_product),
        cmocka_unit_test(quantised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
