/* Output of jitgemm-cache. See cache_format.h. */
#include "cache_format.h"
#include "cache_args.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

cache_text cache_format_bytes(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    cache_text out;
    int unit = 0;
    double number = (double)bytes / 1024;
    if (bytes < 1024) {
        snprintf(out.text, sizeof out.text, "%u B", (unsigned)bytes);
        return out;
    }
    while (number >= 1023.95 && unit < 3) { /* what would be rounded to 1024.0 */
        number /= 1024;
        unit++;
    }
    snprintf(out.text, sizeof out.text, "%.1f %s", number, units[unit]);
    return out;
}

cache_text cache_format_ms(double ms)
{
    cache_text out = {"-"};
    if (ms > 0) snprintf(out.text, sizeof out.text, "%.1f ms", ms);
    return out;
}

cache_text cache_format_gain(double gain)
{
    cache_text out = {"-"};
    if (gain > 0) snprintf(out.text, sizeof out.text, "%.2fx", gain);
    return out;
}

cache_text cache_format_time(int64_t seconds, int exact)
{
    cache_text out = {"-"};
    time_t time = (time_t)seconds;
    struct tm local;
    if (localtime_r(&time, &local))
        strftime(out.text, sizeof out.text, exact ? "%Y-%m-%dT%H:%M:%S%z" : "%Y-%m-%d %H:%M", &local);
    return out;
}

int cache_terminal_columns(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO)) return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 100;
}

void cache_put_text(const char *text)
{
    for (; *text; text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

int cache_fail(const char *format, ...)
{
    va_list arguments;
    fflush(stdout); /* what went well comes first */
    va_start(arguments, format);
    fputs("jitgemm-cache: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return CACHE_EXIT_FAILED;
}

void cache_json_text(cJSON *object, const char *name, const char *text, int *ok)
{
    if (!cJSON_AddStringToObject(object, name, text)) *ok = 0;
}

void cache_json_number(cJSON *object, const char *name, double number, int *ok)
{
    if (!cJSON_AddNumberToObject(object, name, number)) *ok = 0;
}

void cache_json_entry(cJSON *object, const jg_cache_entry *entry, int *ok)
{
    cache_json_text(object, "id", entry->id, ok);
    cache_json_text(object, "kernel", entry->kernel, ok);
    cache_json_text(object, "target", entry->target, ok);
    cache_json_text(object, "problem", entry->problem, ok);
    cache_json_text(object, "provenance", entry->provenance, ok);
    cache_json_number(object, "record_bytes", (double)entry->record_bytes, ok);
    cache_json_number(object, "cubin_bytes", (double)entry->cubin_bytes, ok);
    cache_json_number(object, "ptx_bytes", (double)entry->ptx_bytes, ok);
    cache_json_number(object, "compile_ms", entry->compile_ms, ok);
    cache_json_number(object, "created", (double)entry->created, ok);
    cache_json_number(object, "used", (double)entry->used, ok);
    cache_json_number(object, "uses", (double)entry->uses, ok);
}

int cache_json_print(cJSON *object, int ok)
{
    char *text = ok ? cJSON_Print(object) : NULL;
    cJSON_Delete(object);
    if (!text) return cache_fail("out of memory");
    puts(text);
    cJSON_free(text);
    return CACHE_EXIT_DONE;
}

int cache_tell_removed(const jg_cache *cache, int as_json, size_t removed, const char *what)
{
    int ok = 1;
    if (!as_json) {
        printf("%zu %s\n", removed, what);
        return CACHE_EXIT_DONE;
    }
    cJSON *object = cJSON_CreateObject();
    cache_json_text(object, "path", jg_cache_path(cache), &ok);
    cache_json_number(object, "removed", (double)removed, &ok);
    return cache_json_print(object, ok);
}

int cache_finish_output(int status)
{
    errno = 0;
    int failed = ferror(stdout);
    failed |= fclose(stdout) != 0;
    if (!failed) return status;
    /* A reader that has seen enough, as head has, is no reason to complain. */
    if (errno != EPIPE) fprintf(stderr, "jitgemm-cache: standard output: %s\n", strerror(errno ? errno : EIO));
    return CACHE_EXIT_FAILED;
}
