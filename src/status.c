/* Status names and the thread-local text of the last error. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Long enough for the beginning of a compile log; longer texts are cut. */
#define ERROR_TEXT_BYTES sizeof(((status_text *)0)->text)

static _Thread_local char error_text[ERROR_TEXT_BYTES];

static const struct {
    jg_status status;
    const char *name;
} names[] = {
    {JG_OK, "JG_OK"},
    {JG_ERR_NULL, "JG_ERR_NULL"},
    {JG_ERR_SIZE, "JG_ERR_SIZE"},
    {JG_ERR_OVERFLOW, "JG_ERR_OVERFLOW"},
    {JG_ERR_LEADING_DIMENSION, "JG_ERR_LEADING_DIMENSION"},
    {JG_ERR_MISALIGNED, "JG_ERR_MISALIGNED"},
    {JG_ERR_TYPE, "JG_ERR_TYPE"},
    {JG_ERR_VALUE, "JG_ERR_VALUE"},
    {JG_ERR_ARCH, "JG_ERR_ARCH"},
    {JG_ERR_PARSE, "JG_ERR_PARSE"},
    {JG_ERR_FILE, "JG_ERR_FILE"},
    {JG_ERR_NOT_FOUND, "JG_ERR_NOT_FOUND"},
    {JG_ERR_NOT_READY, "JG_ERR_NOT_READY"},
    {JG_ERR_UNSUPPORTED, "JG_ERR_UNSUPPORTED"},
    {JG_ERR_NO_DRIVER, "JG_ERR_NO_DRIVER"},
    {JG_ERR_NO_DEVICE, "JG_ERR_NO_DEVICE"},
    {JG_ERR_NO_NVRTC, "JG_ERR_NO_NVRTC"},
    {JG_ERR_COMPILE, "JG_ERR_COMPILE"},
    {JG_ERR_LOAD, "JG_ERR_LOAD"},
    {JG_ERR_LAUNCH, "JG_ERR_LAUNCH"},
    {JG_ERR_NO_MEMORY, "JG_ERR_NO_MEMORY"},
    {JG_ERR_CACHE, "JG_ERR_CACHE"},
    {JG_ERR_CANCELLED, "JG_ERR_CANCELLED"},
    {JG_ERR_BUSY, "JG_ERR_BUSY"},
    {JG_ERR_DEVICE, "JG_ERR_DEVICE"},
    {JG_ERR_HELPER, "JG_ERR_HELPER"},
    {JG_ERR_DEVICE_LOST, "JG_ERR_DEVICE_LOST"},
    {JG_ERR_INTERNAL, "JG_ERR_INTERNAL"},
};

const char *jg_status_name(jg_status status)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].status == status) return names[i].name;
    return "JG_ERR_?";
}

int jg_status_is_fatal(jg_status status)
{
    return (int)status >= 100;
}

const char *jg_last_error(void)
{
    return error_text;
}

const char *jg_version(void)
{
    return JG_VERSION_STRING;
}

jg_status status_set(jg_status status, const char *format, ...)
{
    /* The arguments may point into error_text itself. */
    char text[ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(error_text, text, sizeof text);
    return status;
}

void status_save(status_text *saved)
{
    memcpy(saved->text, error_text, sizeof saved->text);
}

void status_restore(const status_text *saved)
{
    memcpy(error_text, saved->text, sizeof saved->text);
}

jg_status status_prefix(jg_status status, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, "%s", error_text);
    memcpy(error_text, text, sizeof text);
    return status;
}
