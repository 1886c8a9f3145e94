/* Verifying a whole store: the database's own structure, every record's, miss's and choice's checksum, and what refers to what.
 *
 * In: an open store. Out: one report a fault, and counts; nothing is changed. Apart from store.c since it is the only
 * call that reads everything, and only people ask for it. */
#include "cache/store_sql.h"

#include <stdio.h>

typedef struct findings {
    void (*report)(void *user, uint64_t id, const char *what);
    void *user;
    size_t good, bad;
} findings;

static void found(findings *f, uint64_t id, const char *what)
{
    f->bad++;
    if (f->report) f->report(f->user, id, what);
}

/* Runs a query that gives one text a fault, in column 0; "ok" is none. */
static void check_query(store *s, const char *sql, findings *f)
{
    sqlite3_stmt *query = NULL;
    int code = sqlite3_prepare_v2(s->db, sql, -1, &query, NULL);
    if (code == SQLITE_OK) {
        while ((code = sqlite3_step(query)) == SQLITE_ROW) {
            const char *text = (const char *)sqlite3_column_text(query, 0);
            if (text && sqlite3_stricmp(text, "ok") != 0) found(f, 0, text);
        }
    }
    if (code != SQLITE_DONE) {
        store_sql_fail(s, "verify");
        found(f, 0, store_error(s));
    }
    sqlite3_finalize(query);
}

static void check_records(store *s, findings *f)
{
    int code;
    sqlite3_stmt *all = s->statements[SQL_READ_ALL];
    while ((code = sqlite3_step(all)) == SQLITE_ROW) {
        store_record record;
        int64_t entry;
        store_status status = store_read_row(s, all, &record, &entry);
        if (status == STORE_OK) f->good++;
        else found(f, record.id, status == STORE_CORRUPT ? "the checksum does not match" : store_error(s));
    }
    if (code != SQLITE_DONE) {
        store_sql_fail(s, "read the records");
        found(f, 0, store_error(s));
    }
    store_sql_reset(all);
}

static void check_misses(store *s, findings *f)
{
    int code;
    store_miss miss;
    sqlite3_stmt *all = s->statements[SQL_LIST_MISSES];
    if (!all) return; /* a file of the first version */
    while ((code = sqlite3_step(all)) == SQLITE_ROW)
        if (!store_read_miss(all, &miss)) found(f, 0, "a miss is damaged");
    if (code != SQLITE_DONE) {
        store_sql_fail(s, "read the misses");
        found(f, 0, store_error(s));
    }
    store_sql_reset(all);
}

static void check_choices(store *s, findings *f)
{
    int code;
    store_choice choice;
    sqlite3_stmt *all = s->statements[SQL_LIST_CHOICES];
    if (!all) return; /* a file of an older version */
    while ((code = sqlite3_step(all)) == SQLITE_ROW)
        if (!store_read_choice(all, &choice)) found(f, 0, "a choice is damaged");
    if (code != SQLITE_DONE) {
        store_sql_fail(s, "read the choices");
        found(f, 0, store_error(s));
    }
    store_sql_reset(all);
}

store_status store_verify(store *s, void (*report)(void *user, uint64_t id, const char *what), void *user,
                          size_t *good, size_t *bad)
{
    static const char *const queries[] = {
        "PRAGMA integrity_check(100)",
        "SELECT 'a use stamp belongs to no record' FROM usage WHERE entry NOT IN (SELECT entry FROM records)",
        ("SELECT 'a source text belongs to no record' FROM sources"
         " WHERE source NOT IN (SELECT source FROM records WHERE source IS NOT NULL)"),
        "SELECT 'two records have one key' FROM records GROUP BY id, key HAVING COUNT(*) > 1",
    };
    findings f = {report, user, 0, 0};
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        check_query(s, queries[i], &f);
    check_records(s, &f);
    check_misses(s, &f);
    check_choices(s, &f);
    if (good) *good = f.good;
    if (bad) *bad = f.bad;
    if (f.bad) status = store_fail(s, STORE_CORRUPT, "%zu faults found", f.bad);
    return store_leave(s, status);
}
