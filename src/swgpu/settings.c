/* Reads the environment into settings. One function a variable, so that each says what it allows. */
#include "settings.h"

#include "exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_MEMORY (1ull << 50)

typedef struct answer {
    char *error;
    size_t bytes;
} answer;

int settings_number(const char *text, size_t length, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return 0;
        value = value * 10 + (uint64_t)(text[i] - '0');
        if (value > most) return 0;
    }
    if (!length || !value) return 0;
    *out = value;
    return 1;
}

static int read_device(settings *s, const char *value, const answer *a)
{
    s->model = models_find(value);
    if (s->model) return 1;
    int length = snprintf(a->error, a->bytes, "JITGEMM_SWGPU_DEVICE is \"%s\"; known devices are", value);
    for (size_t i = 0; models_at(i) && length >= 0 && (size_t)length < a->bytes; i++)
        length += snprintf(a->error + length, a->bytes - (size_t)length, "%s %s", i ? "," : "", models_at(i)->name);
    return 0;
}

static int read_memory(settings *s, const char *value, const answer *a)
{
    static const char units[] = "KMG";
    size_t length = strlen(value);
    const char *unit = length ? strchr(units, value[length - 1]) : NULL;
    const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (settings_number(value, length - (unit != NULL), MOST_MEMORY >> shift, &s->memory_bytes)) {
        s->memory_bytes <<= shift;
        return 1;
    }
    snprintf(a->error, a->bytes, "JITGEMM_SWGPU_MEMORY is \"%s\"; it must be a number of bytes, 1 or more, such as 4096, 64K, "
             "512M or 8G", value);
    return 0;
}

static int read_threads(settings *s, const char *value, const answer *a)
{
    uint64_t number;
    if (settings_number(value, strlen(value), SETTINGS_MAX_THREADS, &number)) return s->threads = (unsigned)number, 1;
    snprintf(a->error, a->bytes, "JITGEMM_SWGPU_THREADS is \"%s\"; it must be 1 to %d", value, SETTINGS_MAX_THREADS);
    return 0;
}

static int read_blocks(settings *s, const char *value, const answer *a)
{
    s->blocks = 0;
    if (strcmp(value, "all") == 0) return 1;
    if (settings_number(value, strlen(value), SETTINGS_MAX_BLOCKS, &s->blocks)) return 1;
    snprintf(a->error, a->bytes, "JITGEMM_SWGPU_BLOCKS is \"%s\"; it must be \"all\" or 1 to %u", value, SETTINGS_MAX_BLOCKS);
    return 0;
}

static const struct {
    const char *name;
    unsigned check;
} checks[] = {
    {"uninitialised", CHECK_UNINITIALISED}, {"race", CHECK_RACE}, {"operands", CHECK_OPERANDS}, {"leak", CHECK_LEAK},
};

static unsigned find_check(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (strlen(checks[i].name) == length && memcmp(checks[i].name, name, length) == 0) return checks[i].check;
    return 0;
}

static int read_checks(settings *s, const char *value, const answer *a)
{
    s->checks = strcmp(value, "all") == 0 ? CHECK_ALL : 0;
    if (s->checks || strcmp(value, "none") == 0) return 1;
    for (const char *at = value;; at++) {
        const size_t length = strcspn(at, ",");
        const unsigned check = find_check(at, length);
        if (!check) break;
        s->checks |= check;
        at += length;
        if (!*at) return 1;
    }
    snprintf(a->error, a->bytes, "JITGEMM_SWGPU_CHECKS is \"%s\"; it must be \"all\", \"none\", or a list, with commas, of "
             "uninitialised, race, operands and leak", value);
    return 0;
}

static int read_counters(settings *s, const char *value, const answer *a)
{
    s->counters = strcmp(value, "1") == 0;
    if (s->counters || strcmp(value, "0") == 0) return 1;
    snprintf(a->error, a->bytes, "JITGEMM_SWGPU_COUNTERS is \"%s\"; it must be 0 or 1", value);
    return 0;
}

static int read_report(settings *s, const char *value, const answer *a)
{
    if ((size_t)snprintf(s->report, sizeof s->report, "%s", value) >= sizeof s->report) {
        snprintf(a->error, a->bytes, "JITGEMM_SWGPU_REPORT is longer than %zu bytes; it must be a file, or - for stderr",
                 sizeof s->report - 1);
        return 0;
    }
    if (strcmp(value, "-") == 0) return 1;
    FILE *file = fopen(value, "a");
    if (file) return fclose(file), 1;
    snprintf(a->error, a->bytes, "JITGEMM_SWGPU_REPORT is \"%.200s\", which cannot be written: %s; it must be a file, or - for "
             "stderr", value, strerror(errno));
    return 0;
}

static const struct {
    const char *variable;
    int (*read)(settings *s, const char *value, const answer *a);
} variables[] = {
    {"JITGEMM_SWGPU_DEVICE", read_device},
    {"JITGEMM_SWGPU_MEMORY", read_memory},
    {"JITGEMM_SWGPU_THREADS", read_threads},
    {"JITGEMM_SWGPU_BLOCKS", read_blocks},
    {"JITGEMM_SWGPU_CHECKS", read_checks},
    {"JITGEMM_SWGPU_COUNTERS", read_counters},
    {"JITGEMM_SWGPU_REPORT", read_report},
};

#define PREFIX "JITGEMM_SWGPU_"

/* A mistyped name would otherwise be a setting without effect. FAULT and SLOW are read in inject.c. */
static int knows_all(char *const *environment, const answer *a)
{
    for (; environment && *environment; environment++) {
        const size_t length = strcspn(*environment, "=");
        if (strncmp(*environment, PREFIX, strlen(PREFIX)) != 0) continue;
        const char *name = *environment + strlen(PREFIX);
        int known = strncmp(name, "FAULT=", 6) == 0 || strncmp(name, "SLOW=", 5) == 0;
        for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
            known |= strlen(variables[i].variable) == length && memcmp(variables[i].variable, *environment, length) == 0;
        if (known) continue;
        size_t used = (size_t)snprintf(a->error, a->bytes, "%.*s is no setting; these are: " PREFIX "FAULT, " PREFIX "SLOW",
                                       (int)(length < 100 ? length : 100), *environment);
        for (size_t i = 0; used < a->bytes && i < sizeof variables / sizeof variables[0]; i++)
            used += (size_t)snprintf(a->error + used, a->bytes - used, ", %s", variables[i].variable);
        return 0;
    }
    return 1;
}

int settings_read(settings *out, char *error, size_t error_bytes)
{
    const answer a = {error, error_bytes};
    if (!knows_all(environ, &a)) return 0;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    *out = (settings){
        .model = models_find("orin-agx"),
        .threads = online < 1 ? 1 : online > SETTINGS_MAX_THREADS ? SETTINGS_MAX_THREADS : (unsigned)online,
        .checks = CHECK_ALL,
        .counters = 1,
    };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].variable);
        if (value && *value && !variables[i].read(out, value, &a)) return 0;
    }
    if (!out->memory_bytes) out->memory_bytes = out->model->memory_bytes;
    return 1;
}
