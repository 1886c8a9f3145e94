/* Options and environment: one place that knows every variable and default. */
#include "options.h"

#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

jg_status options_cache_path(const char *given, char *path, size_t size, int *no_home)
{
    int length;
    *no_home = 0;
    /* An empty JITGEMM_CACHE asks for memory only, so it is not treated as unset. */
    if (!given) given = getenv("JITGEMM_CACHE");
    const char *xdg = environment("XDG_CACHE_HOME"), *home = environment("HOME");
    if (given) {
        length = snprintf(path, size, "%s", given);
    } else if (xdg && xdg[0] == '/') {
        length = snprintf(path, size, "%s/jitgemm/kernels.db", xdg);
    } else if (home) {
        length = snprintf(path, size, "%s/.cache/jitgemm/kernels.db", home);
    } else {
        length = snprintf(path, size, "%s", "");
        *no_home = 1;
    }
    if (length < 0 || (size_t)length >= size)
        return status_set(JG_ERR_FILE, "cache path is longer than %zu bytes", size - 1);
    return JG_OK;
}

jg_status options_resolve(const jg_options *in, jg_options *out)
{
    memset(out, 0, sizeof *out);
    if (in) *out = *in;
    if ((unsigned)out->device > JG_DEVICE_CPU)
        return status_set(JG_ERR_VALUE, "options.device is %d; it must be JG_DEVICE_AUTO, _CUDA or _CPU", (int)out->device);
    if ((unsigned)out->compile > JG_COMPILE_NEVER)
        return status_set(JG_ERR_VALUE, "options.compile is %d; it must be JG_COMPILE_DEFAULT, _WAIT or _NEVER", (int)out->compile);
    if ((unsigned)out->log_level > JG_LOG_DEBUG)
        return status_set(JG_ERR_VALUE, "options.log_level is %d; it must be JG_LOG_DEFAULT to JG_LOG_DEBUG", (int)out->log_level);
    if (out->arch < 0 || out->sm_count < 0)
        return status_set(JG_ERR_VALUE, "options.%s is negative", out->arch < 0 ? "arch" : "sm_count");
    if (out->reserved)
        return status_set(JG_ERR_VALUE, "options.reserved is not 0; zero-initialise jg_options");
    if (out->compile == JG_COMPILE_DEFAULT) out->compile = JG_COMPILE_WAIT;
    if (out->log_level == JG_LOG_DEFAULT) out->log_level = JG_LOG_WARNING;
    if (!out->cache_max_bytes) out->cache_max_bytes = OPTIONS_CACHE_MAX_BYTES;
    if (!out->memory_max_kernels) out->memory_max_kernels = OPTIONS_MEMORY_MAX_KERNELS;
    if (!out->memory_max_bytes) out->memory_max_bytes = OPTIONS_MEMORY_MAX_BYTES;
    return JG_OK;
}

const char *options_nvrtc_path(const char *given)
{
    return given && *given ? given : environment("JITGEMM_NVRTC");
}

int options_line_info(void)
{
    const char *value = environment("JITGEMM_LINE_INFO");
    return value && strcmp(value, "0") != 0;
}

const char *options_driver_path(const char *given)
{
    if (given && *given) return given;
    const char *value = environment("JITGEMM_DRIVER");
    return value ? value : "libcuda.so.1";
}
