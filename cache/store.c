/* The calls of a store: get, list, put, clear. See store.h for what they promise and store_sql.h for the tables.
 *
 * Every call locks the store, works in at most one transaction, and leaves no statement open. */
#include "cache/record.h"
#include "cache/store_path.h"
#include "cache/store_sql.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* ---- reading ---------------------------------------------------------------------------------------------------- */

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

static void bind_key(sqlite3_stmt *statement, const void *key, size_t key_bytes)
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

/* ---- sums and use stamps ---------------------------------------------------------------------------------------- */

typedef struct sums {
    uint64_t entries, bytes; /* bytes include the sources */
    int64_t turn;            /* of the latest use */
} sums;

static store_status read_sums(store *s, sums *out)
{
    store_status status = STORE_OK;
    sqlite3_stmt *query = s->statements[SQL_TOTALS];
    memset(out, 0, sizeof *out);
    if (sqlite3_step(query) == SQLITE_ROW) {
        out->entries = (uint64_t)sqlite3_column_int64(query, 0);
        out->bytes = (uint64_t)sqlite3_column_int64(query, 1) + (uint64_t)sqlite3_column_int64(query, 2);
        out->turn = sqlite3_column_int64(query, 3);
    } else {
        status = store_sql_fail(s, "add up the records");
    }
    store_sql_reset(query);
    return status;
}

store_status store_get_totals(store *s, store_totals *totals)
{
    sums now;
    memset(totals, 0, sizeof *totals);
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = read_sums(s, &now);
    totals->entries = now.entries;
    totals->bytes = now.bytes;
    totals->file_bytes = store_path_bytes(s->path, "") + store_path_bytes(s->path, "-wal");
    totals->max_bytes = s->max_bytes;
    return store_leave(s, status);
}

/* Remembers a use, last in order. Without memory for it the use is forgotten: it is only a hint for eviction. */
static void remember_use(store *s, int64_t entry)
{
    stamp use = {entry, (int64_t)time(NULL), 1};
    for (size_t i = 0; i < s->stamp_count; i++) {
        if (s->stamps[i].entry != entry) continue;
        use.uses += s->stamps[i].uses;
        memmove(&s->stamps[i], &s->stamps[i + 1], (--s->stamp_count - i) * sizeof *s->stamps);
        break;
    }
    if (s->stamp_count == s->stamp_room) {
        size_t room = s->stamp_room ? 2 * s->stamp_room : 64;
        stamp *grown = realloc(s->stamps, room * sizeof *grown);
        if (!grown) return;
        s->stamps = grown;
        s->stamp_room = room;
    }
    s->stamps[s->stamp_count++] = use;
}

/* Writes the remembered uses inside the current transaction. A record that is gone meanwhile is no error. */
static store_status apply_stamps(store *s, int64_t *turn)
{
    store_status status = STORE_OK;
    sqlite3_stmt *update = s->statements[SQL_STAMP];
    for (size_t i = 0; i < s->stamp_count && status == STORE_OK; i++) {
        sqlite3_bind_int64(update, 1, s->stamps[i].entry);
        sqlite3_bind_int64(update, 2, ++*turn);
        sqlite3_bind_int64(update, 3, s->stamps[i].used);
        sqlite3_bind_int64(update, 4, (sqlite3_int64)s->stamps[i].uses);
        status = store_sql_finish(s, update, "write use stamps");
    }
    return status;
}

/* A file that was deleted or replaced under us takes no more writes: nobody would ever read them. */
store_status store_check_writable(store *s)
{
    int moved = 0;
    if (s->read_only) return store_fail(s, STORE_IO, "is open for reading only");
    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return store_fail(s, STORE_IO, "was deleted or replaced while open; open it again");
    return STORE_OK;
}

store_status store_write_stamps(store *s)
{
    sums now;
    if (!s->stamp_count) return STORE_OK;
    store_status status = store_check_writable(s);
    if (status == STORE_OK) status = store_sql_begin(s);
    if (status != STORE_OK) return status;
    status = read_sums(s, &now);
    if (status == STORE_OK) status = apply_stamps(s, &now.turn);
    status = store_sql_end(s, status);
    if (status == STORE_OK) s->stamp_count = 0;
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Removes a record and, if it was the last to use it, its source. *source_gone may be null. */
static store_status remove_record(store *s, int64_t entry, int64_t source, int *source_gone)
{
    sqlite3_bind_int64(s->statements[SQL_DROP_RECORD], 1, entry);
    store_status status = store_sql_finish(s, s->statements[SQL_DROP_RECORD], "remove a record");
    if (status != STORE_OK) return status;
    sqlite3_bind_int64(s->statements[SQL_DROP_USAGE], 1, entry);
    status = store_sql_finish(s, s->statements[SQL_DROP_USAGE], "remove a record");
    if (status != STORE_OK) return status;
    sqlite3_bind_int64(s->statements[SQL_DROP_SOURCE], 1, source);
    status = store_sql_finish(s, s->statements[SQL_DROP_SOURCE], "remove a source");
    if (source_gone) *source_gone = sqlite3_changes(s->db) > 0;
    return status;
}

/* Finds the record of a key; *entry = 0 if there is none. */
static store_status find_record(store *s, const void *key, size_t key_bytes, int64_t *entry, int64_t *source)
{
    store_status status = STORE_OK;
    sqlite3_stmt *find = s->statements[SQL_FIND];
    *entry = *source = 0;
    bind_key(find, key, key_bytes);
    int code = sqlite3_step(find);
    if (code == SQLITE_ROW) {
        *entry = sqlite3_column_int64(find, 0);
        *source = sqlite3_column_int64(find, 1);
    } else if (code != SQLITE_DONE) {
        status = store_sql_fail(s, "look up a record");
    }
    store_sql_reset(find);
    return status;
}

/* Takes a damaged record out, so that the next put makes it good. */
static store_status discard(store *s, const void *key, size_t key_bytes)
{
    int64_t entry, source;
    store_status status = store_check_writable(s);
    if (status == STORE_OK) status = store_sql_begin(s);
    if (status != STORE_OK) return status;
    status = find_record(s, key, key_bytes, &entry, &source);
    if (status == STORE_OK && entry) status = remove_record(s, entry, source, NULL);
    return store_sql_end(s, status);
}

store_status store_get(store *s, const void *key, size_t key_bytes, store_record *out)
{
    int64_t entry;
    memset(out, 0, sizeof *out);
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    bind_key(s->statements[SQL_READ_KEY], key, key_bytes);
    status = read_one(s, s->statements[SQL_READ_KEY], out, &entry);
    if (status == STORE_OK && !s->read_only) remember_use(s, entry);
    if (status == STORE_CORRUPT && entry) {
        int removed = discard(s, key, key_bytes) == STORE_OK;
        store_fail(s, STORE_CORRUPT, "record %016" PRIx64 " is damaged%s", record_id(key, key_bytes),
                   removed ? " and was removed" : "");
    }
    return store_leave(s, status);
}

/* Finds or adds a source text; *source = 0 for an empty one. */
static store_status keep_source(store *s, const char *text, int64_t *source)
{
    size_t bytes = text ? strlen(text) : 0;
    *source = 0;
    if (!bytes) return STORE_OK;
    store_status status = STORE_OK;
    uint64_t hash = XXH64(text, bytes, 0);
    sqlite3_stmt *find = s->statements[SQL_FIND_SOURCE], *add = s->statements[SQL_ADD_SOURCE];
    sqlite3_bind_int64(find, 1, (sqlite3_int64)hash);
    sqlite3_bind_blob64(find, 2, text, bytes, SQLITE_STATIC);
    int code = sqlite3_step(find);
    if (code == SQLITE_ROW) *source = sqlite3_column_int64(find, 0);
    else if (code != SQLITE_DONE) status = store_sql_fail(s, "look up a source");
    store_sql_reset(find);
    if (status != STORE_OK || *source) return status;
    sqlite3_bind_int64(add, 1, (sqlite3_int64)hash);
    sqlite3_bind_blob64(add, 2, text, bytes, SQLITE_STATIC);
    status = store_sql_finish(s, add, "write a source");
    *source = sqlite3_last_insert_rowid(s->db);
    return status;
}

static store_status add_record(store *s, const store_record *record, int64_t source, int64_t turn)
{
    sqlite3_stmt *add = s->statements[SQL_ADD_RECORD], *usage = s->statements[SQL_ADD_USAGE];
    const char *texts[] = {record->name, record->target, record->label, record->provenance, record->defines};
    sqlite3_bind_int64(add, 1, (sqlite3_int64)record->id);
    if (source) sqlite3_bind_int64(add, 2, source);
    sqlite3_bind_int64(add, 3, record->created);
    sqlite3_bind_double(add, 4, record->build_ms);
    sqlite3_bind_int64(add, 5, (sqlite3_int64)record_checksum(record));
    sqlite3_bind_blob64(add, 6, record->key_bytes ? record->key : "", record->key_bytes, SQLITE_STATIC);
    for (int i = 0; i < 5; i++)
        sqlite3_bind_text(add, 7 + i, texts[i] ? texts[i] : "", -1, SQLITE_STATIC);
    sqlite3_bind_blob64(add, 12, record->binary_bytes ? record->binary : "", record->binary_bytes, SQLITE_STATIC);
    sqlite3_bind_blob64(add, 13, record->portable_bytes ? record->portable : "", record->portable_bytes, SQLITE_STATIC);
    store_status status = store_sql_finish(s, add, "write a record");
    if (status != STORE_OK) return status;
    sqlite3_bind_int64(usage, 1, sqlite3_last_insert_rowid(s->db));
    sqlite3_bind_int64(usage, 2, turn);
    sqlite3_bind_int64(usage, 3, record->created);
    sqlite3_bind_int64(usage, 4, (sqlite3_int64)record->record_bytes);
    return store_sql_finish(s, usage, "write a record");
}

/* Removes records, least recently used first, until the cap holds. The query sorts, so that its rows are all read before
 * the first is removed. */
static store_status evict(store *s, size_t *evicted)
{
    sums now;
    int code = SQLITE_ROW;
    store_status status = read_sums(s, &now);
    sqlite3_stmt *oldest = s->statements[SQL_OLDEST];
    while (status == STORE_OK && s->max_bytes && now.bytes > s->max_bytes) {
        int source_gone = 0;
        if ((code = sqlite3_step(oldest)) != SQLITE_ROW) break;
        status = remove_record(s, sqlite3_column_int64(oldest, 0), sqlite3_column_int64(oldest, 2), &source_gone);
        now.bytes -= (uint64_t)sqlite3_column_int64(oldest, 1);
        if (source_gone) now.bytes -= (uint64_t)sqlite3_column_int64(oldest, 3);
        ++*evicted;
    }
    if (status == STORE_OK && code != SQLITE_ROW && code != SQLITE_DONE) status = store_sql_fail(s, "evict records");
    store_sql_reset(oldest);
    return status;
}

/* The transaction of a put. The old record goes only after the new one is in, so that a source they share stays. */
static store_status replace(store *s, const store_record *record, size_t *evicted)
{
    sums now;
    int64_t old_entry = 0, old_source = 0, source = 0;
    store_status status = read_sums(s, &now);
    if (status == STORE_OK) status = apply_stamps(s, &now.turn);
    if (status == STORE_OK) status = find_record(s, record->key, record->key_bytes, &old_entry, &old_source);
    if (status == STORE_OK) status = keep_source(s, record->source, &source);
    if (status == STORE_OK) status = add_record(s, record, source, now.turn + 1);
    if (status == STORE_OK && old_entry) status = remove_record(s, old_entry, old_source, NULL);
    if (status == STORE_OK) status = evict(s, evicted);
    return status;
}

store_status store_put(store *s, const store_record *record, size_t *evicted)
{
    size_t count = 0;
    store_record fresh = *record;
    if (evicted) *evicted = 0;
    fresh.id = record_id(record->key, record->key_bytes);
    fresh.created = (int64_t)time(NULL);
    fresh.build_ms = isfinite(record->build_ms) && record->build_ms > 0 ? record->build_ms : 0; /* SQL loses -0 */
    fresh.record_bytes = record_own_bytes(record);

    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    uint64_t needed = fresh.record_bytes + record_source_bytes(record);
    if (s->max_bytes && needed > s->max_bytes)
        return store_leave(s, store_fail(s, STORE_TOO_BIG, "a record of %" PRIu64 " bytes is over the cap of %" PRIu64,
                                         needed, s->max_bytes));
    status = store_check_writable(s);
    if (status == STORE_OK) status = store_sql_begin(s);
    if (status != STORE_OK) return store_leave(s, status);
    status = store_sql_end(s, replace(s, &fresh, &count));
    if (status == STORE_OK) s->stamp_count = 0;
    if (status == STORE_OK && evicted) *evicted = count;
    return store_leave(s, status);
}

static store_status remove_all(store *s, size_t *removed)
{
    sums now;
    store_status status = store_sql_begin(s);
    if (status != STORE_OK) return status;
    status = read_sums(s, &now);
    if (status == STORE_OK)
        status = store_sql_run(s, "DELETE FROM records; DELETE FROM usage; DELETE FROM sources", "remove all records");
    if (status == STORE_OK && s->version >= STORE_SCHEMA_VERSION)
        status = store_sql_run(s, "DELETE FROM misses", "remove all misses");
    status = store_sql_end(s, status);
    if (status == STORE_OK) *removed = (size_t)now.entries;
    return status == STORE_OK ? store_sql_run(s, "VACUUM", "give the space back") : status;
}

store_status store_clear(store *s, size_t *removed)
{
    size_t count = 0;
    if (removed) *removed = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = store_check_writable(s);
    if (status == STORE_OK) status = remove_all(s, &count);
    if (status == STORE_CORRUPT) status = store_sql_recreate(s);
    if (status == STORE_OK) {
        s->stamp_count = 0;
        /* Where others are reading, the file shrinks only when the last of them closes. */
        sqlite3_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    }
    if (removed) *removed = count;
    return store_leave(s, status);
}
