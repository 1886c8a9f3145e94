/* The calls of a store that write: put, clear, use stamps. See store.h for what they promise and store_sql.h for the tables.
 *
 * Every call works in at most one transaction. What a put has to know of the whole file it keeps in mind (store_add_up), so
 * that it costs the same whether there are ten records or a hundred thousand. */
#include "cache/record.h"
#include "cache/store_sql.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

/* ---- sums and use stamps ---------------------------------------------------------------------------------------- */

store_status store_add_up(store *s)
{
    int64_t version = -1;
    store_status status = STORE_OK;
    sqlite3_stmt *query = s->statements[SQL_DATA_VERSION];
    if (sqlite3_step(query) == SQLITE_ROW) version = sqlite3_column_int64(query, 0);
    store_sql_reset(query);
    if (s->sums.known && s->sums.data_version == version) return STORE_OK;
    query = s->statements[SQL_TOTALS];
    if (sqlite3_step(query) == SQLITE_ROW) {
        s->sums = (sums){.known = version >= 0, .data_version = version, .entries = (uint64_t)sqlite3_column_int64(query, 0),
                         .bytes = (uint64_t)sqlite3_column_int64(query, 1) + (uint64_t)sqlite3_column_int64(query, 2)};
    } else {
        status = store_sql_fail(s, "add up the records");
    }
    store_sql_reset(query);
    return status;
}

/* The turn of the latest use. */
static store_status read_turn(store *s, uint64_t *turn)
{
    store_status status = STORE_OK;
    sqlite3_stmt *query = s->statements[SQL_TURN];
    if (sqlite3_step(query) == SQLITE_ROW) *turn = (uint64_t)sqlite3_column_int64(query, 0);
    else status = store_sql_fail(s, "find the latest use");
    store_sql_reset(query);
    return status;
}

/* Remembers a use, last in order. Without memory for it the use is forgotten: it is only a hint for eviction. */
void store_remember_use(store *s, int64_t entry)
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
static store_status apply_stamps(store *s, uint64_t *turn)
{
    store_status status = STORE_OK;
    sqlite3_stmt *update = s->statements[SQL_STAMP];
    for (size_t i = 0; i < s->stamp_count && status == STORE_OK; i++) {
        sqlite3_bind_int64(update, 1, s->stamps[i].entry);
        sqlite3_bind_int64(update, 2, (sqlite3_int64)++*turn);
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
    if (s->read_only) return store_fail(s, STORE_IO, "is open for reading only%s", s->disk_full ? ", as the disk is full" : "");
    if (sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return store_fail(s, STORE_IO, "was deleted or replaced while open; open it again");
    return STORE_OK;
}

store_status store_write_stamps(store *s)
{
    uint64_t turn;
    if (!s->stamp_count) return STORE_OK;
    store_status status = store_check_writable(s);
    if (status == STORE_OK) status = store_sql_begin(s);
    if (status != STORE_OK) return status;
    status = read_turn(s, &turn);
    if (status == STORE_OK) status = apply_stamps(s, &turn);
    status = store_sql_end(s, status);
    if (status == STORE_OK) s->stamp_count = 0;
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* A record to be removed, and what that takes away. */
typedef struct found {
    int64_t entry;         /* 0: there is none */
    int64_t source;
    uint64_t bytes, source_bytes;
} found;

/* Steps a query whose columns are those of `found`, and resets it. */
static store_status find(store *s, sqlite3_stmt *query, found *out)
{
    store_status status = STORE_OK;
    *out = (found){0};
    int code = sqlite3_step(query);
    if (code == SQLITE_ROW) {
        out->entry = sqlite3_column_int64(query, 0);
        out->source = sqlite3_column_int64(query, 1);
        out->bytes = (uint64_t)sqlite3_column_int64(query, 2);
        out->source_bytes = (uint64_t)sqlite3_column_int64(query, 3);
    } else if (code != SQLITE_DONE) {
        status = store_sql_fail(s, "look up a record");
    }
    store_sql_reset(query);
    return status;
}

static store_status find_record(store *s, const void *key, size_t key_bytes, found *out)
{
    store_bind_key(s->statements[SQL_FIND], key, key_bytes);
    return find(s, s->statements[SQL_FIND], out);
}

/* Runs a statement whose one parameter is `number` and adds how many rows it removed to *gone. */
static store_status drop(store *s, int statement, int64_t number, uint64_t *gone)
{
    sqlite3_bind_int64(s->statements[statement], 1, number);
    store_status status = store_sql_finish(s, s->statements[statement], "remove a record");
    if (status == STORE_OK) *gone = (uint64_t)sqlite3_changes(s->db);
    return status;
}

/* Removes a record and, if it was the last to use it, its source. */
static store_status remove_record(store *s, const found *record)
{
    uint64_t records = 0, usages = 0, sources = 0;
    store_status status = drop(s, SQL_DROP_RECORD, record->entry, &records);
    if (status == STORE_OK) status = drop(s, SQL_DROP_USAGE, record->entry, &usages);
    if (status == STORE_OK) status = drop(s, SQL_DROP_SOURCE, record->source, &sources);
    s->sums.entries -= records;
    s->sums.bytes -= usages * record->bytes + sources * record->source_bytes;
    return status;
}

store_status store_discard(store *s, const void *key, size_t key_bytes)
{
    found record;
    store_status status = store_check_writable(s);
    if (status == STORE_OK) status = store_sql_begin(s);
    if (status != STORE_OK) return status;
    status = find_record(s, key, key_bytes, &record);
    if (status == STORE_OK && record.entry) status = remove_record(s, &record);
    return store_sql_end(s, status);
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
    s->sums.bytes += bytes;
    *source = sqlite3_last_insert_rowid(s->db);
    return status;
}

static store_status add_record(store *s, const store_record *record, int64_t source, uint64_t turn)
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
    sqlite3_bind_int64(usage, 2, (sqlite3_int64)turn);
    sqlite3_bind_int64(usage, 3, record->created);
    sqlite3_bind_int64(usage, 4, (sqlite3_int64)record->record_bytes);
    s->sums.entries++;
    s->sums.bytes += record->record_bytes;
    return store_sql_finish(s, usage, "write a record");
}

/* Removes records, least recently used first, until the cap holds. */
static store_status evict(store *s, size_t *evicted)
{
    found oldest;
    store_status status = STORE_OK;
    while (status == STORE_OK && s->max_bytes && s->sums.bytes > s->max_bytes) {
        status = find(s, s->statements[SQL_OLDEST], &oldest);
        if (status != STORE_OK || !oldest.entry) break;
        status = remove_record(s, &oldest);
        ++*evicted;
    }
    return status;
}

/* The transaction of a put. The old record goes only after the new one is in, so that a source they share stays. */
static store_status replace(store *s, const store_record *record, size_t *evicted)
{
    uint64_t turn;
    found old = {0};
    int64_t source = 0;
    store_status status = store_add_up(s);
    if (status == STORE_OK) status = read_turn(s, &turn);
    if (status == STORE_OK) status = apply_stamps(s, &turn);
    if (status == STORE_OK) status = find_record(s, record->key, record->key_bytes, &old);
    if (status == STORE_OK) status = keep_source(s, record->source, &source);
    if (status == STORE_OK) status = add_record(s, record, source, turn + 1);
    if (status == STORE_OK && old.entry) status = remove_record(s, &old);
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
    store_status status = store_sql_begin(s);
    if (status != STORE_OK) return status;
    status = store_add_up(s);
    size_t entries = (size_t)s->sums.entries;
    s->sums.known = 0;
    if (status == STORE_OK)
        status = store_sql_run(s, "DELETE FROM records; DELETE FROM usage; DELETE FROM sources", "remove all records");
    if (status == STORE_OK && s->version >= STORE_MISSES_VERSION)
        status = store_sql_run(s, "DELETE FROM misses", "remove all misses");
    if (status == STORE_OK && s->version >= STORE_CHOICES_VERSION)
        status = store_sql_run(s, "DELETE FROM choices", "remove all choices");
    status = store_sql_end(s, status);
    if (status == STORE_OK) *removed = entries;
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
