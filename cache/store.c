/* The calls of a store that read: get, list, has, totals. See store.h for what they promise and store_sql.h for the tables.
 *
 * Every call locks the store and leaves no statement open. */
#include "cache/record.h"
#include "cache/store_path.h"
#include "cache/store_sql.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Fills in what all record queries have in common, columns 0 to 13. */
static void read_head(sqlite3_stmt *row, store_record *record)
{
    static const size_t texts[] = {offsetof(store_record, name), offsetof(store_record, target),
                                   offsetof(store_record, label), offsetof(store_record, provenance),
                                   offsetof(store_record, defines)};
    memset(record, 0, sizeof *record);
    record->id = (uint64_t)sqlite3_column_int64(row, 1);
    record->created = sqlite3_column_int64(row, 2);
    record->used = sqlite3_column_int64(row, 3);
    record->uses = (uint64_t)sqlite3_column_int64(row, 4);
    record->record_bytes = (uint64_t)sqlite3_column_int64(row, 5);
    record->build_ms = sqlite3_column_double(row, 6);
    record->key = sqlite3_column_blob(row, 8);
    record->key_bytes = (size_t)sqlite3_column_bytes(row, 8);
    for (int i = 0; i < 5; i++) {
        const char *text = (const char *)sqlite3_column_text(row, 9 + i);
        *(const char **)((char *)record + texts[i]) = text ? text : "";
    }
}

store_status store_read_row(store *s, sqlite3_stmt *row, store_record *record, int64_t *entry)
{
    *entry = sqlite3_column_int64(row, 0);
    read_head(row, record);
    record->source = (const char *)sqlite3_column_text(row, 14);
    record->binary = sqlite3_column_blob(row, 15);
    record->binary_bytes = (size_t)sqlite3_column_bytes(row, 15);
    record->portable = sqlite3_column_blob(row, 16);
    record->portable_bytes = (size_t)sqlite3_column_bytes(row, 16);
    if (sqlite3_errcode(s->db) == SQLITE_NOMEM) return store_fail(s, STORE_NO_MEMORY, "read a record: out of memory");
    if ((uint64_t)sqlite3_column_int64(row, 7) != record_checksum(record) ||
        record->record_bytes != record_own_bytes(record))
        return store_fail(s, STORE_CORRUPT, "record %016" PRIx64 " is damaged", record->id);
    return STORE_OK;
}

void store_bind_key(sqlite3_stmt *statement, const void *key, size_t key_bytes)
{
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)record_id(key, key_bytes));
    sqlite3_bind_blob64(statement, 2, key_bytes ? key : "", key_bytes, SQLITE_STATIC);
}

/* Steps a query of one record, whose parameters are bound, and resets it; *out owns its memory on STORE_OK. */
static store_status read_one(store *s, sqlite3_stmt *query, store_record *out, int64_t *entry)
{
    store_status status;
    int code = sqlite3_step(query);
    if (code == SQLITE_ROW) {
        status = store_read_row(s, query, out, entry);
        if (status == STORE_OK && !record_take_copy(out)) status = store_fail(s, STORE_NO_MEMORY, "out of memory");
    } else {
        *entry = 0;
        status = code == SQLITE_DONE ? STORE_ABSENT : store_sql_fail(s, "read a record");
        if (status == STORE_ABSENT) store_fail(s, status, "no such record");
    }
    store_sql_reset(query);
    if (status != STORE_OK) memset(out, 0, sizeof *out);
    return status;
}

store_status store_get(store *s, const void *key, size_t key_bytes, store_record *out)
{
    int64_t entry;
    memset(out, 0, sizeof *out);
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    store_bind_key(s->statements[SQL_READ_KEY], key, key_bytes);
    status = read_one(s, s->statements[SQL_READ_KEY], out, &entry);
    if (status == STORE_OK && !s->read_only) store_remember_use(s, entry);
    if (status == STORE_CORRUPT && entry) {
        int removed = store_discard(s, key, key_bytes) == STORE_OK;
        store_fail(s, STORE_CORRUPT, "record %016" PRIx64 " is damaged%s", record_id(key, key_bytes),
                   removed ? " and was removed" : "");
    }
    return store_leave(s, status);
}

store_status store_get_id(store *s, uint64_t id, store_record *out)
{
    int64_t entry;
    memset(out, 0, sizeof *out);
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    sqlite3_bind_int64(s->statements[SQL_READ_ID], 1, (sqlite3_int64)id);
    return store_leave(s, read_one(s, s->statements[SQL_READ_ID], out, &entry));
}

store_status store_has(store *s, uint64_t id, int *has)
{
    *has = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    sqlite3_stmt *query = s->statements[SQL_HAS];
    sqlite3_bind_int64(query, 1, (sqlite3_int64)id);
    if (sqlite3_step(query) == SQLITE_ROW) *has = sqlite3_column_int(query, 0);
    else status = store_sql_fail(s, "look up a record");
    store_sql_reset(query);
    return store_leave(s, status);
}

void store_record_free(store_record *record)
{
    if (!record) return;
    free((void *)record->key); /* the block that holds every part, see record_take_copy */
    memset(record, 0, sizeof *record);
}

store_status store_list(store *s, int (*visit)(void *user, const store_record *record), void *user)
{
    int code, stop = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    sqlite3_stmt *list = s->statements[SQL_LIST];
    while ((code = sqlite3_step(list)) == SQLITE_ROW && !stop) {
        store_record record;
        read_head(list, &record);
        record.binary_bytes = (size_t)sqlite3_column_int64(list, 15);
        record.portable_bytes = (size_t)sqlite3_column_int64(list, 16);
        stop = visit(user, &record);
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) status = store_sql_fail(s, "list the records");
    store_sql_reset(list);
    return store_leave(s, status);
}

store_status store_get_totals(store *s, store_totals *totals)
{
    memset(totals, 0, sizeof *totals);
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = store_add_up(s);
    if (status == STORE_OK) {
        totals->entries = s->sums.entries;
        totals->bytes = s->sums.bytes;
    }
    totals->file_bytes = store_path_bytes(s->path, "") + store_path_bytes(s->path, "-wal");
    totals->max_bytes = s->max_bytes;
    return store_leave(s, status);
}
