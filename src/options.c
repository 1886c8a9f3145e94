/* Options and environment: one place that knows every variable and default. */
#include "options.h"
#include "plan.h"

#include "status.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A file of the installation, beside the folder of `file`, as bin/ and lib/ lie beside share/ and libexec/. */
static int is_beside(const char *file, const char *wanted, char *path, size_t size)
{
    const char *slash = strrchr(file, '/');
    if (!slash) return 0;
    const int length = snprintf(path, size, "%.*s/../%s", (int)(slash - file), file, wanted);
    return (size_t)length < size && access(path, F_OK) == 0;
}

/* The library's folder, the program's, then the usual ones. path becomes "" if it is nowhere. */
static void find_installed(const char *wanted, char *path, size_t size)
{
    static const char *const prefixes[] = {"/usr/local", "/usr"};
    char program[4096];
    Dl_info library;
    if (dladdr(prefixes, &library) && library.dli_fname && is_beside(library.dli_fname, wanted, path, size)) return;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    if (is_beside(program, wanted, path, size)) return;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        snprintf(path, size, "%s/%s", prefixes[i], wanted);
        if (access(path, F_OK) == 0) return;
    }
    path[0] = 0;
}

static int named_or_installed(const char *named, const char *wanted, char *path, size_t size)
{
    if (!named) find_installed(wanted, path, size);
    else if ((size_t)snprintf(path, size, "%s", named) >= size) path[0] = 0;
    return named != NULL;
}

int options_factory_path(const char *given, char *path, size_t size)
{
    return named_or_installed(given ? given : getenv("JITGEMM_FACTORY"), "share/jitgemm/factory.db", path, size);
}

int options_helper_path(const char *given, char *path, size_t size)
{
    return named_or_installed(given ? given : getenv("JITGEMM_HELPER"), "libexec/jitgemm/jitgemm-compile", path, size);
}

/* What belongs to not waiting. */
static jg_status check_waiting(const jg_options *o)
{
    const uint32_t types = PLAN_RESIDENT_ALL;
    if (o->resident & ~(types | JG_RESIDENT_NONE) || (o->resident & JG_RESIDENT_NONE && o->resident & types))
        return status_set(JG_ERR_VALUE, "options.resident is 0x%x; it must be made of JG_RESIDENT_ flags, and _NONE stands alone", o->resident);
    if (o->prewarm & ~(JG_PREWARM_COMMON | JG_PREWARM_MISSES | JG_PREWARM_NO_MET))
        return status_set(JG_ERR_VALUE, "options.prewarm is 0x%x; it must be made of JG_PREWARM_ flags", o->prewarm);
    if (o->prewarm_count && !o->prewarm_problems)
        return status_set(JG_ERR_VALUE, "options.prewarm_count is %zu, but prewarm_problems is null", o->prewarm_count);
    if (!(o->deadline_ms >= 0)) return status_set(JG_ERR_VALUE, "options.deadline_ms is %g; it must be 0 or above", o->deadline_ms);
    if (o->worker.threads > OPTIONS_WORKER_MAX_THREADS)
        return status_set(JG_ERR_VALUE, "options.worker.threads is %u; at most %u", o->worker.threads, OPTIONS_WORKER_MAX_THREADS);
    if (o->worker.nice < JG_NICE_INHERIT || o->worker.nice > 19)
        return status_set(JG_ERR_VALUE, "options.worker.nice is %d; it must be JG_NICE_INHERIT or 0 to 19", o->worker.nice);
    return JG_OK;
}

static jg_status check_helper(const jg_options *o)
{
    if ((unsigned)o->helper > JG_HELPER_PROCESS)
        return status_set(JG_ERR_VALUE, "options.helper is %d; it must be JG_HELPER_AUTO, _THREAD or _PROCESS", (int)o->helper);
    if (!(o->helper_timeout_ms >= 0))
        return status_set(JG_ERR_VALUE, "options.helper_timeout_ms is %g; it must be 0 or above", o->helper_timeout_ms);
    return JG_OK;
}

jg_status options_resolve(const jg_options *in, jg_options *out)
{
    memset(out, 0, sizeof *out);
    if (in) *out = *in;
    if ((unsigned)out->device > JG_DEVICE_CPU)
        return status_set(JG_ERR_VALUE, "options.device is %d; it must be JG_DEVICE_AUTO, _CUDA or _CPU", (int)out->device);
    if ((unsigned)out->compile > JG_COMPILE_BACKGROUND)
        return status_set(JG_ERR_VALUE, "options.compile is %d; it must be JG_COMPILE_DEFAULT, _WAIT, _NEVER or _BACKGROUND", (int)out->compile);
    if ((unsigned)out->log_level > JG_LOG_DEBUG)
        return status_set(JG_ERR_VALUE, "options.log_level is %d; it must be JG_LOG_DEFAULT to JG_LOG_DEBUG", (int)out->log_level);
    if ((unsigned)out->plans > JG_PLANS_MODEL)
        return status_set(JG_ERR_VALUE, "options.plans is %d; it must be JG_PLANS_AUTO or _MODEL", (int)out->plans);
    if (out->arch < 0 || out->sm_count < 0)
        return status_set(JG_ERR_VALUE, "options.%s is negative", out->arch < 0 ? "arch" : "sm_count");
    if (out->reserved)
        return status_set(JG_ERR_VALUE, "options.reserved is not 0; zero-initialise jg_options");
    RETURN_IF_ERROR(check_waiting(out));
    RETURN_IF_ERROR(check_helper(out));
    if (out->compile == JG_COMPILE_DEFAULT) out->compile = JG_COMPILE_BACKGROUND;
    if (!out->resident) out->resident = out->compile == JG_COMPILE_WAIT ? JG_RESIDENT_NONE : JG_RESIDENT_F32 | JG_RESIDENT_F16;
    if (out->log_level == JG_LOG_DEFAULT) out->log_level = JG_LOG_WARNING;
    if (!out->cache_max_bytes) out->cache_max_bytes = OPTIONS_CACHE_MAX_BYTES;
    if (!out->memory_max_kernels) out->memory_max_kernels = OPTIONS_MEMORY_MAX_KERNELS;
    if (!out->memory_max_bytes) out->memory_max_bytes = OPTIONS_MEMORY_MAX_BYTES;
    if (!out->helper_timeout_ms) out->helper_timeout_ms = OPTIONS_HELPER_TIMEOUT_MS;
    if (!out->worker.threads) out->worker.threads = 1;
    if (!out->worker.queue) out->worker.queue = OPTIONS_WORKER_QUEUE;
    if (!out->worker.per_minute) out->worker.per_minute = OPTIONS_WORKER_PER_MINUTE;
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
