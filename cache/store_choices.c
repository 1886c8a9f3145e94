/* The choices of a store: what was decided for a key at a place. See store.h.
 *
 * In: rows, by (key, place). Out: the same, the oldest first or by name. A damaged row is passed over and made good when it is
 * written anew, and a file of an older version, which has none, reads as empty. */
#include "cache/record.h"
#include "cache/store_sql.h"

#include <string.h>
#include <time.h>

static uint64_t checksum_of(const store_choice *choice)
{
    uint64_t hash = record_hash_part(choice->key, choice->key_bytes, 0);
    hash = record_hash_part(choice->place, strlen(choice->place), hash);
    hash = record_hash_part(choice->label, strlen(choice->label), hash);
    hash = record_hash_part(choice->value, choice->value_bytes, hash);
    hash = record_hash_part(choice->details, choice->details_bytes, hash);
    return record_hash_number((uint64_t)choice->created, record_hash_number(choice->record, hash));
}

static const char *text_at(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

/* Empty blobs are null pointers to SQLite. */
static const void *blob_at(sqlite3_stmt *row, int column, size_t *bytes)
{
    const void *blob = sqlite3_column_blob(row, column);
    *bytes = (size_t)sqlite3_column_bytes(row, column);
    return blob ? blob : "";
}

int store_read_choice(sqlite3_stmt *row, store_choice *choice)
{
    *choice = (store_choice){.place = text_at(row, 0), .label = text_at(row, 2), .record = (uint64_t)sqlite3_column_int64(row, 3),
                             .created = sqlite3_column_int64(row, 4), .cached = sqlite3_column_int(row, 9)};
    choice->key = blob_at(row, 1, &choice->key_bytes);
    choice->value = blob_at(row, 7, &choice->value_bytes);
    choice->details = blob_at(row, 8, &choice->details_bytes);
    return (uint64_t)sqlite3_column_int64(row, 6) == checksum_of(choice);
}

static void bind_bytes(sqlite3_stmt *statement, int parameter, const void *data, size_t bytes)
{
    sqlite3_bind_blob64(statement, parameter, bytes ? data : "", bytes, SQLITE_STATIC);
}

static store_status put_one(store *s, const store_choice *choice, int64_t turn)
{
    sqlite3_stmt *put = s->statements[SQL_PUT_CHOICE];
    sqlite3_bind_text(put, 1, choice->place, -1, SQLITE_STATIC);
    bind_bytes(put, 2, choice->key, choice->key_bytes);
    sqlite3_bind_text(put, 3, choice->label, -1, SQLITE_STATIC);
    sqlite3_bind_int64(put, 4, (sqlite3_int64)choice->record);
    sqlite3_bind_int64(put, 5, choice->created);
    sqlite3_bind_int64(put, 6, turn);
    sqlite3_bind_int64(put, 7, (sqlite3_int64)checksum_of(choice));
    bind_bytes(put, 8, choice->value, choice->value_bytes);
    bind_bytes(put, 9, choice->details, choice->details_bytes);
    return store_sql_finish(s, put, "write a choice");
}

static store_status sum_up(store *s, int64_t *rows, int64_t *turn)
{
    store_status status = STORE_OK;
    sqlite3_stmt *query = s->statements[SQL_SUM_CHOICES];
    if (sqlite3_step(query) == SQLITE_ROW) {
        *rows = sqlite3_column_int64(query, 0);
        *turn = sqlite3_column_int64(query, 1);
    } else {
        status = store_sql_fail(s, "add up the choices");
    }
    store_sql_reset(query);
    return status;
}

/* The transaction of a put. */
static store_status replace(store *s, const store_choice *choice)
{
    int64_t rows, turn;
    store_status status = sum_up(s, &rows, &turn);
    if (status == STORE_OK) status = put_one(s, choice, (int64_t)((uint64_t)turn + 1));
    if (status == STORE_OK) status = sum_up(s, &rows, &turn);
    if (status != STORE_OK || rows <= STORE_MAX_CHOICES) return status;
    sqlite3_bind_int64(s->statements[SQL_TRIM_CHOICES], 1, rows - STORE_MAX_CHOICES);
    return store_sql_finish(s, s->statements[SQL_TRIM_CHOICES], "remove the oldest choices");
}

/* Begins a change of the table. */
static store_status begin_change(store *s)
{
    store_status status = store_check_writable(s);
    if (status == STORE_OK && s->version < STORE_CHOICES_VERSION)
        status = store_fail(s, STORE_IO, "has no table of choices: it is of an older format and could not be changed");
    return status == STORE_OK ? store_sql_begin(s) : status;
}

store_status store_put_choice(store *s, const store_choice *choice)
{
    store_choice fresh = *choice;
    if (!fresh.place) fresh.place = "";
    if (!fresh.label) fresh.label = "";
    fresh.created = (int64_t)time(NULL);
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = begin_change(s);
    if (status == STORE_OK) status = store_sql_end(s, replace(s, &fresh));
    return store_leave(s, status);
}

store_status store_clear_choices(store *s, size_t *removed)
{
    if (removed) *removed = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = begin_change(s);
    if (status == STORE_OK) {
        status = store_sql_run(s, "DELETE FROM choices", "remove all choices");
        int gone = sqlite3_changes(s->db);
        status = store_sql_end(s, status);
        if (status == STORE_OK && removed) *removed = (size_t)gone;
    }
    return store_leave(s, status);
}

store_status store_list_choices(store *s, const char *place, int (*visit)(void *user, const store_choice *choice), void *user)
{
    int code = SQLITE_DONE, stop = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    sqlite3_stmt *list = s->statements[place ? SQL_LIST_PLACE : SQL_LIST_CHOICES];
    if (!list) return store_leave(s, STORE_OK);
    if (place) sqlite3_bind_text(list, 1, place, -1, SQLITE_STATIC);
    while (!stop && (code = sqlite3_step(list)) == SQLITE_ROW) {
        store_choice choice;
        if (store_read_choice(list, &choice)) stop = visit(user, &choice);
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) status = store_sql_fail(s, "list the choices");
    store_sql_reset(list);
    return store_leave(s, status);
}
