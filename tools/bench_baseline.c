/* Collects, reads and writes what several processes measured: see bench_baseline.h. */
#include "bench_baseline.h"

#include "bench_json.h"
#include "bench_result.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_BYTES 512
#define FILE_BYTES ((size_t)256 << 20) /* no baseline is as large */

/* Puts a reason into `why`; returns -1. */
__attribute__((format(printf, 3, 4))) static int refuse(char *why, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, size, format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- documents ---- */

/* Null, with a reason, if it is not one JSON value. */
static cJSON *parse(const char *text, char *why, size_t size)
{
    static const char space[] = " \t\r\n";
    const char *end = text, *start = text + strspn(text, space);
    size_t length = strlen(text);
    cJSON *root = cJSON_ParseWithOpts(text, &end, 1);
    if (root) return root;
    while (length > 0 && strchr(space, text[length - 1])) length--;
    if (!*start) refuse(why, size, "is empty");
    else if (*start != '{') refuse(why, size, "is not JSON");
    else if (text[length - 1] != '}' || end >= text + length) refuse(why, size, "is not JSON, or is cut off");
    else refuse(why, size, "is not JSON: an error at byte %zu", (size_t)(end - text));
    return NULL;
}

/* Whether a document says that it is what is wanted, in a version that is understood. */
static int check_format(const cJSON *root, const char *format, const char *what, char *why, size_t size)
{
    const char *found = json_text(root, "format");
    const double version = json_number(root, "format_version");
    if (strcmp(found, format) != 0)
        return *found ? refuse(why, size, "is not a %s: its format is \"%.64s\"", what, found)
                      : refuse(why, size, "is JSON, but not a %s of jitgemm-bench", what);
    if (!(version >= 1)) return refuse(why, size, "has no format_version");
    if (version > BENCH_RESULT_FORMAT_VERSION)
        return refuse(why, size, "has format_version %.10g; this jitgemm-bench understands up to %d", version,
                      BENCH_RESULT_FORMAT_VERSION);
    if (!json_object(root, "environment")) return refuse(why, size, "does not say where it was measured (environment)");
    return 0;
}

/* ---- collecting ---- */

/* What one document is collected with. */
typedef struct collector {
    cJSON *measures;   /* the baseline's */
    cJSON *seen;       /* name: how many of this document had it */
    int out_of_memory;
} collector;

/* Names that repeat get a number, also where there is no value, so that another run numbers them alike. Returns 0 if there is
 * no memory. */
static int number_name(collector *c, char name[NAME_BYTES])
{
    cJSON *seen = cJSON_GetObjectItemCaseSensitive(c->seen, name);
    if (!seen) return cJSON_AddNumberToObject(c->seen, name, 1) != NULL;
    cJSON_SetNumberValue(seen, seen->valuedouble + 1);
    const size_t length = strlen(name);
    snprintf(name + length, NAME_BYTES - length, " #%d", (int)seen->valuedouble);
    return 1;
}

static cJSON *add_measure(cJSON *measures, const char *name, const char *unit)
{
    cJSON *measure = cJSON_CreateObject();
    if (measure && cJSON_AddStringToObject(measure, "name", name) && cJSON_AddStringToObject(measure, "unit", unit) &&
        cJSON_AddArrayToObject(measure, "values") && cJSON_AddItemToArray(measures, measure))
        return measure;
    cJSON_Delete(measure);
    return NULL;
}

/* value: not a number if there is none. */
static void collect(collector *c, char name[NAME_BYTES], const char *unit, double value)
{
    cJSON *measure = NULL, *each;
    if (!number_name(c, name)) c->out_of_memory = 1;
    if (!(value > 0 && isfinite(value)) || c->out_of_memory) return;
    cJSON_ArrayForEach(each, c->measures)
        if (strcmp(json_text(each, "name"), name) == 0 && strcmp(json_text(each, "unit"), unit) == 0) measure = each;
    if (!measure) measure = add_measure(c->measures, name, unit);
    cJSON *number = cJSON_CreateNumber(value);
    if (measure && number && cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(measure, "values"), number)) return;
    cJSON_Delete(number);
    c->out_of_memory = 1;
}

/* Our median for a row. */
static double row_time(const cJSON *row)
{
    const cJSON *contestant;
    cJSON_ArrayForEach(contestant, json_member(row, "contestants"))
        if (strcmp(json_text(contestant, "name"), "jitgemm") == 0)
            return json_number(json_member(contestant, "us"), "p50");
    return NAN;
}

static void collect_rows(collector *c, const cJSON *rows, int software)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, rows)
    {
        char name[NAME_BYTES];
        const char *suite = json_text(row, "suite"), *list = json_text(row, "list");
        const int apart = *list && strcmp(list, suite) != 0;
        snprintf(name, sizeof name - 16, "%s%s%s %s %s", suite, apart ? "/" : "", apart ? list : "", json_text(row, "problem"),
                 json_text(row, "data"));
        if (software) collect(c, name, "instructions", json_number(json_member(row, "counters"), "instructions"));
        else collect(c, name, "us", row_time(row));
    }
}

/* The array's objects as measures: `label` before the member `of`, and the member `value`. */
static void collect_array(collector *c, const cJSON *array, const char *label, const char *of, const char *value,
                          const char *unit)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, array)
    {
        char name[NAME_BYTES];
        const char *command = json_text(each, "command");
        if (label) snprintf(name, sizeof name - 16, "%s %s", label, json_text(each, of));
        else snprintf(name, sizeof name - 16, "%s%s%s", command, *command ? ": " : "", json_text(each, of));
        collect(c, name, unit ? unit : json_text(each, "unit"), json_number(each, value));
    }
}

/* What the baseline takes from its first run. */
static int copy_heading(cJSON *baseline, const cJSON *result)
{
    static const char *const members[] = {"version", "commands", "started", "environment"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const cJSON *member = json_member(result, members[i]);
        if (!member) continue;
        cJSON *copy = cJSON_Duplicate(member, 1);
        if (!copy || !cJSON_AddItemToObject(baseline, members[i], copy)) {
            cJSON_Delete(copy);
            return -1;
        }
    }
    return 0;
}

cJSON *bench_baseline_create(void)
{
    cJSON *root = cJSON_CreateObject();
    if (root && cJSON_AddStringToObject(root, "format", BENCH_BASELINE_FORMAT) &&
        cJSON_AddNumberToObject(root, "format_version", BENCH_RESULT_FORMAT_VERSION) &&
        cJSON_AddNumberToObject(root, "runs", 0) && cJSON_AddArrayToObject(root, "measures"))
        return root;
    cJSON_Delete(root);
    return NULL;
}

size_t bench_baseline_runs(const cJSON *baseline)
{
    const double runs = json_number(baseline, "runs");
    return runs >= 1 && runs < 1e9 ? (size_t)runs : 0;
}

int bench_baseline_add(cJSON *baseline, const char *text, char *why, size_t size)
{
    collector c = {.measures = cJSON_GetObjectItemCaseSensitive(baseline, "measures"), .seen = cJSON_CreateObject()};
    cJSON *runs = cJSON_GetObjectItemCaseSensitive(baseline, "runs");
    cJSON *result = parse(text, why, size);
    int status = result ? check_format(result, BENCH_RESULT_FORMAT, "result", why, size) : -1;
    if (status == 0) {
        const int software = cJSON_IsTrue(json_member(json_member(result, "environment"), "software"));
        c.out_of_memory = !c.seen || (bench_baseline_runs(baseline) == 0 && copy_heading(baseline, result) != 0);
        if (!c.out_of_memory) collect_rows(&c, json_member(result, "rows"), software);
        if (!c.out_of_memory && !software) {
            collect_array(&c, json_member(result, "series"), NULL, "name", "p50", NULL);
            collect_array(&c, json_member(result, "compiles"), "compile", "kernel", "ms", "ms");
        }
        cJSON_SetNumberValue(runs, runs->valuedouble + 1);
        if (c.out_of_memory) status = refuse(why, size, "needs more memory than there is");
    }
    cJSON_Delete(result);
    cJSON_Delete(c.seen);
    return status;
}

/* ---- reading ---- */

/* All of a file, ended by 0; the caller's. */
static char *read_file(const char *path, char *why, size_t size)
{
    struct stat info;
    FILE *stream = fopen(path, "rb");
    if (!stream || fstat(fileno(stream), &info) != 0) {
        refuse(why, size, "cannot be read: %s", strerror(errno));
        if (stream) fclose(stream);
        return NULL;
    }
    char *text = NULL;
    if (!S_ISREG(info.st_mode)) refuse(why, size, "is not a regular file");
    else if ((size_t)info.st_size > FILE_BYTES) refuse(why, size, "is too large for a baseline");
    else if (!(text = malloc((size_t)info.st_size + 1))) refuse(why, size, "needs more memory than there is");
    if (text) {
        const size_t got = fread(text, 1, (size_t)info.st_size, stream);
        text[got] = 0;
        if (ferror(stream)) {
            refuse(why, size, "cannot be read: %s", strerror(errno));
            free(text);
            text = NULL;
        }
    }
    fclose(stream);
    return text;
}

/* A baseline may have been edited by hand, or by a program with other ideas of it. */
static int check_measures(const cJSON *root, char *why, size_t size)
{
    const cJSON *measures = json_member(root, "measures"), *measure, *value;
    if (!cJSON_IsArray(measures) || cJSON_GetArraySize(measures) == 0) return refuse(why, size, "holds no measures");
    if (bench_baseline_runs(root) == 0) return refuse(why, size, "does not say how many runs it holds");
    cJSON_ArrayForEach(measure, measures)
    {
        const char *name = json_text(measure, "name");
        if (!*name || !cJSON_IsString(json_member(measure, "unit")))
            return refuse(why, size, "holds a measure without name or unit");
        if (!json_first(measure, "values")) return refuse(why, size, "holds no values of \"%.200s\"", name);
        cJSON_ArrayForEach(value, json_member(measure, "values"))
            if (!cJSON_IsNumber(value) || !isfinite(value->valuedouble) || value->valuedouble <= 0)
                return refuse(why, size, "holds a value of \"%.200s\" that is not a number above 0", name);
    }
    return 0;
}

cJSON *bench_baseline_read(const char *path, char *why, size_t size)
{
    char reason[512] = "";
    char *text = read_file(path, reason, sizeof reason);
    cJSON *root = text ? parse(text, reason, sizeof reason) : NULL;
    free(text);
    if (root && check_format(root, BENCH_BASELINE_FORMAT, "baseline", reason, sizeof reason) == 0 &&
        check_measures(root, reason, sizeof reason) == 0)
        return root;
    if (root && strcmp(json_text(root, "format"), BENCH_RESULT_FORMAT) == 0)
        refuse(why, size, "%s is the result of one run, not a baseline; --save makes one", path);
    else
        refuse(why, size, "%s %s", path, reason);
    cJSON_Delete(root);
    return NULL;
}

/* ---- writing ---- */

/* The file that is written, and the one that then gets its name. */
typedef struct new_file {
    int descriptor;
    char target[PATH_MAX], temporary[PATH_MAX + 8];
} new_file;

/* Makes a file beside what `path` names. rename would replace even a device or a symbolic link. */
static int make_temporary(const char *path, new_file *f, char *why, size_t size)
{
    struct stat info;
    if (!realpath(path, f->target)) snprintf(f->target, sizeof f->target, "%s", path);
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return refuse(why, size, "%s is not a regular file", path);
    snprintf(f->temporary, sizeof f->temporary, "%s.XXXXXX", f->target);
    f->descriptor = mkostemp(f->temporary, O_CLOEXEC);
    return f->descriptor >= 0 ? 0 : refuse(why, size, "%s cannot be written: %s", path, strerror(errno));
}

int bench_baseline_check_path(const char *path, char *why, size_t size)
{
    new_file f;
    if (make_temporary(path, &f, why, size) != 0) return -1;
    close(f.descriptor);
    unlink(f.temporary);
    return 0;
}

/* Writes, with the mode that any new file would get, and closes. Returns 0 with errno set if that fails. */
static int fill(int file, const char *text)
{
    const mode_t mask = umask(0);
    umask(mask);
    size_t left = strlen(text);
    int ok = fchmod(file, 0666 & ~mask) == 0;
    while (ok && left > 0) {
        const ssize_t written = write(file, text, left);
        if (written < 0 && errno == EINTR) continue;
        if (!(ok = written >= 0)) break;
        text += written;
        left -= (size_t)written;
    }
    ok = ok && fsync(file) == 0;
    const int reason = errno;
    if (close(file) != 0 && ok) return 0;
    errno = reason;
    return ok;
}

int bench_baseline_write(const char *path, const cJSON *baseline, char *why, size_t size)
{
    new_file f;
    char *text = cJSON_Print(baseline);
    if (!text) return refuse(why, size, "%s: out of memory", path);
    int status = make_temporary(path, &f, why, size);
    if (status == 0 && (!fill(f.descriptor, text) || rename(f.temporary, f.target) != 0)) {
        status = refuse(why, size, "%s cannot be written: %s", path, strerror(errno));
        unlink(f.temporary);
    }
    cJSON_free(text);
    return status;
}
