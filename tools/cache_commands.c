/* Commands of jitgemm-cache: listing, one entry, sums, verifying, clearing. See cache_commands.h.
 *
 * Each has a form for people and a form for programs (--json); both say the same. */
#include "cache_commands.h"
#include "cache_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- ls --------------------------------------------------------------------------------------------------------- */

enum { SHORT_ID = 8, OTHER_COLUMNS = 59, NAME_MIN = 24 }; /* OTHER_COLUMNS: of a line without the kernel name */

/* A first pass finds the widest name, a second one prints. */
typedef struct table {
    int width, limit;
    uint64_t count, bytes;
} table;

static int measure(void *user, const jg_cache_entry *entry)
{
    table *t = user;
    int length = (int)strlen(entry->kernel);
    if (length > t->width) t->width = length;
    t->count++;
    t->bytes += entry->record_bytes;
    return 0;
}

/* Shortens a name in the middle: what differs between kernels is mostly at the end. */
static void put_name(const char *name, int width)
{
    char shown[256];
    int length = (int)strlen(name);
    if (length <= width || width + 1 > (int)sizeof shown) {
        cache_put_text(name);
    } else {
        int tail = (width - 3) / 2, head = width - 3 - tail;
        snprintf(shown, sizeof shown, "%.*s...%s", head, name, name + length - tail);
        cache_put_text(shown);
    }
    if (length < width) printf("%*s", width - length, "");
}

static int print_row(void *user, const jg_cache_entry *entry)
{
    const table *t = user;
    printf("%.*s  ", SHORT_ID, entry->id);
    put_name(entry->kernel, t->width);
    printf("  %10s  %9s  %6" PRIu64 "  %s\n", cache_format_bytes(entry->record_bytes).text,
           cache_format_ms(entry->compile_ms).text, entry->uses, cache_format_time(entry->used, 0).text);
    return 0;
}

static int list_as_table(jg_cache *cache)
{
    table t = {(int)strlen("KERNEL"), cache_terminal_columns(), 0, 0};
    if (jg_cache_list(cache, measure, &t) != JG_OK) return cache_fail("%s", jg_last_error());
    int room = t.limit - OTHER_COLUMNS < NAME_MIN ? NAME_MIN : t.limit - OTHER_COLUMNS;
    if (t.limit && t.width > room) t.width = room;
    if (t.count) {
        printf("%-*s  %-*s  %10s  %9s  %6s  %s\n", SHORT_ID, "ID", t.width, "KERNEL", "SIZE", "COMPILE", "USES",
               "LAST USED");
        if (jg_cache_list(cache, print_row, &t) != JG_OK) return cache_fail("%s", jg_last_error());
    }
    printf("%" PRIu64 " kernel%s, %s\n", t.count, t.count == 1 ? "" : "s", cache_format_bytes(t.bytes).text);
    return CACHE_EXIT_DONE;
}

/* A JSON array that callbacks fill. A null object, for want of memory, shows when its first member is added. */
typedef struct json_list {
    cJSON *array;
    int ok;
} json_list;

static int add_to_json(void *user, const jg_cache_entry *entry)
{
    json_list *list = user;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list->array, object);
    cache_json_entry(object, entry, &list->ok);
    return !list->ok;
}

int cache_list(const cache_args *args, jg_cache *cache)
{
    if (!args->json) return list_as_table(cache);
    cJSON *object = cJSON_CreateObject();
    json_list list = {NULL, 1};
    cache_json_text(object, "path", jg_cache_path(cache), &list.ok);
    list.array = cJSON_AddArrayToObject(object, "entries");
    if (list.array && jg_cache_list(cache, add_to_json, &list) != JG_OK) {
        cJSON_Delete(object);
        return cache_fail("%s", jg_last_error());
    }
    return cache_json_print(object, list.ok && list.array);
}

/* ---- show ------------------------------------------------------------------------------------------------------- */

static void put_line(const char *name, const char *text)
{
    printf("%-11s ", name);
    cache_put_text(text);
    putchar('\n');
}

int cache_show(const cache_args *args, jg_cache *cache)
{
    jg_cache_entry entry;
    if (jg_cache_find(cache, args->key, &entry) != JG_OK) return cache_fail("%s", jg_last_error());
    if (args->json) {
        int ok = 1;
        cJSON *object = cJSON_CreateObject();
        cache_json_entry(object, &entry, &ok);
        return cache_json_print(object, ok);
    }
    put_line("kernel", entry.kernel);
    put_line("id", entry.id);
    put_line("target", entry.target);
    put_line("problem", entry.problem);
    put_line("provenance", entry.provenance);
    put_line("size", cache_format_bytes(entry.record_bytes).text);
    put_line("cubin", cache_format_bytes(entry.cubin_bytes).text);
    put_line("ptx", cache_format_bytes(entry.ptx_bytes).text);
    put_line("compile", cache_format_ms(entry.compile_ms).text);
    put_line("created", cache_format_time(entry.created, 1).text);
    put_line("last used", cache_format_time(entry.used, 1).text);
    printf("%-11s %" PRIu64 "\n", "uses", entry.uses);
    return CACHE_EXIT_DONE;
}

/* ---- stats ------------------------------------------------------------------------------------------------------ */

typedef struct sums {
    char target[32];
    uint64_t kernels, record_bytes, cubin_bytes, ptx_bytes, uses;
    double compile_ms;
} sums;

/* By target; the first one is the sum of all. */
typedef struct sum_table {
    sums *rows;
    size_t count;
    int ok;
} sum_table;

static sums *row_of(sum_table *t, const char *target)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->rows[i].target, target) == 0) return &t->rows[i];
    sums *grown = realloc(t->rows, (t->count + 1) * sizeof *grown);
    if (!grown) return NULL;
    t->rows = grown;
    memset(&grown[t->count], 0, sizeof *grown);
    snprintf(grown[t->count].target, sizeof grown->target, "%s", target);
    return &grown[t->count++];
}

static void add_up(sums *row, const jg_cache_entry *entry)
{
    row->kernels++;
    row->record_bytes += entry->record_bytes;
    row->cubin_bytes += entry->cubin_bytes;
    row->ptx_bytes += entry->ptx_bytes;
    row->uses += entry->uses;
    row->compile_ms += entry->compile_ms;
}

static int sum_entry(void *user, const jg_cache_entry *entry)
{
    sum_table *t = user;
    char target[sizeof t->rows->target];
    snprintf(target, sizeof target, "%s", entry->target); /* compared as it is kept */
    sums *row = row_of(t, target);
    if (!row) {
        t->ok = 0;
        return 1;
    }
    add_up(row, entry);
    add_up(&t->rows[0], entry);
    return 0;
}

/* The file and what SQLite keeps beside it. */
static uint64_t file_bytes(const char *path)
{
    static const char *const suffixes[] = {"", "-wal"};
    uint64_t total = 0;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[4200];
        struct stat info;
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        if (stat(name, &info) == 0) total += (uint64_t)info.st_size;
    }
    return total;
}

static void add_sums(cJSON *object, const sums *row, int *ok)
{
    cache_json_number(object, "kernels", (double)row->kernels, ok);
    cache_json_number(object, "record_bytes", (double)row->record_bytes, ok);
    cache_json_number(object, "cubin_bytes", (double)row->cubin_bytes, ok);
    cache_json_number(object, "ptx_bytes", (double)row->ptx_bytes, ok);
    cache_json_number(object, "compile_ms", row->compile_ms, ok);
    cache_json_number(object, "uses", (double)row->uses, ok);
}

static int stats_as_json(const char *path, const sum_table *t, size_t plans)
{
    int ok = 1;
    cJSON *object = cJSON_CreateObject();
    cache_json_text(object, "path", path, &ok);
    cache_json_number(object, "file_bytes", (double)file_bytes(path), &ok);
    cache_json_number(object, "plans", (double)plans, &ok);
    add_sums(object, &t->rows[0], &ok);
    cJSON *targets = cJSON_AddObjectToObject(object, "targets");
    for (size_t i = 1; i < t->count; i++)
        add_sums(cJSON_AddObjectToObject(targets, t->rows[i].target), &t->rows[i], &ok);
    return cache_json_print(object, ok && targets);
}

static int stats_as_table(const char *path, const sum_table *t, size_t plans)
{
    put_line("file", path);
    put_line("file size", cache_format_bytes(file_bytes(path)).text);
    printf("%-11s %zu recorded\n", "plans", plans);
    printf("\n%-10s  %7s  %10s  %10s  %10s  %12s  %8s\n", "TARGET", "KERNELS", "SIZE", "CUBIN", "PTX", "COMPILE", "USES");
    for (size_t i = 1; i <= t->count; i++) {
        const sums *row = &t->rows[i % t->count]; /* the sum of all comes last */
        cache_put_text(row->target);
        printf("%*s  %7" PRIu64 "  %10s  %10s  %10s  %12s  %8" PRIu64 "\n", 10 - (int)strlen(row->target), "",
               row->kernels, cache_format_bytes(row->record_bytes).text, cache_format_bytes(row->cubin_bytes).text,
               cache_format_bytes(row->ptx_bytes).text, cache_format_ms(row->compile_ms).text, row->uses);
    }
    return CACHE_EXIT_DONE;
}

int cache_stats(const cache_args *args, jg_cache *cache)
{
    sum_table t = {NULL, 0, 1};
    int status;
    if (!row_of(&t, "all")) return cache_fail("out of memory");
    if (jg_cache_list(cache, sum_entry, &t) != JG_OK) status = cache_fail("%s", jg_last_error());
    else if (!t.ok) status = cache_fail("out of memory");
    else if (args->json) status = stats_as_json(jg_cache_path(cache), &t, cache_count_plans(cache));
    else status = stats_as_table(jg_cache_path(cache), &t, cache_count_plans(cache));
    free(t.rows);
    return status;
}

/* ---- verify ----------------------------------------------------------------------------------------------------- */

static void print_fault(void *user, const char *id, const char *what)
{
    (void)user;
    printf("%s: ", *id ? id : "file");
    cache_put_text(what);
    putchar('\n');
}

static void add_fault(void *user, const char *id, const char *what)
{
    json_list *list = user;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(list->array, object);
    cache_json_text(object, "id", id, &list->ok);
    cache_json_text(object, "what", what, &list->ok);
}

int cache_verify(const cache_args *args, jg_cache *cache)
{
    json_list list = {NULL, 1};
    size_t good, bad;
    cJSON *object = args->json ? cJSON_CreateObject() : NULL;
    if (args->json) {
        cache_json_text(object, "path", jg_cache_path(cache), &list.ok);
        list.array = cJSON_AddArrayToObject(object, "faults");
    }
    jg_status status = jg_cache_verify(cache, args->json ? add_fault : print_fault, &list, &good, &bad);
    if (args->json) {
        cache_json_number(object, "good", (double)good, &list.ok);
        cache_json_number(object, "bad", (double)bad, &list.ok);
        if (cache_json_print(object, list.ok && list.array) != CACHE_EXIT_DONE) return CACHE_EXIT_FAILED;
    } else {
        printf("%zu good, %zu bad\n", good, bad);
    }
    return status == JG_OK ? CACHE_EXIT_DONE : cache_fail("%s", jg_last_error());
}

/* ---- clear ------------------------------------------------------------------------------------------------------ */

/* Asks on a terminal; plans that took minutes to measure are worth a word. Returns -1 to go on, else the exit status. */
static int confirm(const char *path, size_t plans)
{
    char also[64] = "";
    if (plans) snprintf(also, sizeof also, ", %zu recorded plan%s too", plans, plans == 1 ? "" : "s");
    if (!isatty(STDIN_FILENO)) {
        cache_fail("clear needs --yes where it cannot ask");
        return CACHE_EXIT_USAGE;
    }
    fprintf(stderr, "Remove everything in %s%s? [y/N] ", path, also);
    int answer = getchar();
    for (int c = answer; c != '\n' && c != EOF;)
        c = getchar();
    if (answer == 'y' || answer == 'Y') return -1;
    return cache_fail("nothing was removed");
}

int cache_clear(const cache_args *args, jg_cache *cache)
{
    size_t removed;
    int status = args->yes ? -1 : confirm(jg_cache_path(cache), cache_count_plans(cache));
    if (status != -1) return status;
    if (jg_cache_clear(cache, &removed) != JG_OK) return cache_fail("%s", jg_last_error());
    return cache_tell_removed(cache, args->json, removed, "removed");
}
