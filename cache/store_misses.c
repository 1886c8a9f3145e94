/* The misses of a store: what was asked for and not there. See store.h.
 *
 * In: counts and measured gains, by (key, target). Out: the same, most counted first. They are hints: a damaged row is passed
 * over and made good when it is next added to, and a file of the first version, which has none, reads as empty. */
#include "cache/record.h"
#include "cache/store_sql.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define MOST_COUNTS ((uint64_t)1 << 62) /* room for the sum of two in SQL's signed 64 bits; the same number is in SQL_ADD_MISS */

static uint64_t checksum_of(const store_miss *miss)
{
    uint64_t hash = record_hash_part(miss->key, miss->key_bytes, 0);
    hash = record_hash_part(miss->target, strlen(miss->target), hash);
    hash = record_hash_part(miss->label, strlen(miss->label), hash);
    return record_hash_number(miss->record, hash);
}

/* NaN, infinity and what is not above 0 mean "not known". */
static double sound_gain(double gain)
{
    return isfinite(gain) && gain > 0 ? gain : 0;
}

int store_read_miss(sqlite3_stmt *row, store_miss *miss)
{
    const char *target = (const char *)sqlite3_column_text(row, 1), *label = (const char *)sqlite3_column_text(row, 2);
    int64_t count = sqlite3_column_int64(row, 4);
    double gain = sqlite3_column_double(row, 5);
    *miss = (store_miss){
        .key = sqlite3_column_blob(row, 0), .key_bytes = (size_t)sqlite3_column_bytes(row, 0),
        .target = target ? target : "", .label = label ? label : "",
        .record = (uint64_t)sqlite3_column_int64(row, 3), .count = count > 0 ? (uint64_t)count : 0, .gain = sound_gain(gain),
        .used = sqlite3_column_int64(row, 6), .cached = sqlite3_column_int(row, 8)};
    if (!miss->key) miss->key = "";
    return (uint64_t)sqlite3_column_int64(row, 7) == checksum_of(miss) && count >= 0 && miss->gain == gain;
}

static void bind_who(sqlite3_stmt *statement, const void *key, size_t key_bytes, const char *target)
{
    sqlite3_bind_blob64(statement, 1, key_bytes ? key : "", key_bytes, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, target ? target : "", -1, SQLITE_STATIC);
}

static store_status add_one(store *s, const store_miss *given, int64_t now, int64_t turn)
{
    sqlite3_stmt *add = s->statements[SQL_ADD_MISS];
    store_miss miss = *given;
    if (!miss.target) miss.target = "";
    if (!miss.label) miss.label = "";
    if (miss.count > MOST_COUNTS) miss.count = MOST_COUNTS;
    bind_who(add, miss.key, miss.key_bytes, miss.target);
    sqlite3_bind_text(add, 3, miss.label, -1, SQLITE_STATIC);
    sqlite3_bind_int64(add, 4, (sqlite3_int64)miss.record);
    sqlite3_bind_int64(add, 5, (sqlite3_int64)miss.count);
    sqlite3_bind_double(add, 6, sound_gain(miss.gain));
    sqlite3_bind_int64(add, 7, now);
    sqlite3_bind_int64(add, 8, turn);
    sqlite3_bind_int64(add, 9, (sqlite3_int64)checksum_of(&miss));
    return store_sql_finish(s, add, "write a miss");
}

static store_status sum_up(store *s, int64_t *rows, int64_t *turn)
{
    store_status status = STORE_OK;
    sqlite3_stmt *query = s->statements[SQL_SUM_MISSES];
    if (sqlite3_step(query) == SQLITE_ROW) {
        *rows = sqlite3_column_int64(query, 0);
        *turn = sqlite3_column_int64(query, 1);
    } else {
        status = store_sql_fail(s, "add up the misses");
    }
    store_sql_reset(query);
    return status;
}

static store_status add_all(store *s, const store_miss *misses, size_t count)
{
    int64_t rows, turn, now = (int64_t)time(NULL);
    store_status status = sum_up(s, &rows, &turn);
    for (size_t i = 0; i < count && status == STORE_OK; i++)
        status = add_one(s, &misses[i], now, (int64_t)((uint64_t)turn + 1 + i));
    if (status == STORE_OK) status = sum_up(s, &rows, &turn);
    if (status != STORE_OK || rows <= STORE_MAX_MISSES) return status;
    sqlite3_bind_int64(s->statements[SQL_TRIM_MISSES], 1, rows - STORE_MAX_MISSES);
    return store_sql_finish(s, s->statements[SQL_TRIM_MISSES], "remove the rarest misses");
}

/* Begins a change of the list. */
static store_status begin_change(store *s)
{
    store_status status = store_check_writable(s);
    if (status == STORE_OK && s->version < STORE_MISSES_VERSION)
        status = store_fail(s, STORE_IO, "has no list of misses: it is of an older format and could not be changed");
    return status == STORE_OK ? store_sql_begin(s) : status;
}

store_status store_add_misses(store *s, const store_miss *misses, size_t count)
{
    if (!count) return STORE_OK;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = begin_change(s);
    if (status == STORE_OK) status = store_sql_end(s, add_all(s, misses, count));
    return store_leave(s, status);
}

store_status store_renew_miss(store *s, const store_miss *miss)
{
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = begin_change(s);
    if (status == STORE_OK) {
        sqlite3_stmt *renew = s->statements[SQL_RENEW_MISS];
        bind_who(renew, miss->key, miss->key_bytes, miss->target);
        sqlite3_bind_text(renew, 3, miss->label, -1, SQLITE_STATIC);
        sqlite3_bind_int64(renew, 4, (sqlite3_int64)miss->record);
        sqlite3_bind_int64(renew, 5, (sqlite3_int64)checksum_of(miss));
        status = store_sql_end(s, store_sql_finish(s, renew, "write a miss"));
    }
    return store_leave(s, status);
}

store_status store_clear_misses(store *s, size_t *removed)
{
    if (removed) *removed = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = begin_change(s);
    if (status == STORE_OK) {
        status = store_sql_run(s, "DELETE FROM misses", "remove all misses");
        int gone = sqlite3_changes(s->db);
        status = store_sql_end(s, status);
        if (status == STORE_OK && removed) *removed = (size_t)gone;
    }
    return store_leave(s, status);
}

store_status store_list_misses(store *s, const char *target, int (*visit)(void *user, const store_miss *miss), void *user)
{
    int code = SQLITE_DONE, stop = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    sqlite3_stmt *list = s->statements[SQL_LIST_MISSES];
    if (!list) return store_leave(s, STORE_OK);
    if (target) sqlite3_bind_text(list, 1, target, -1, SQLITE_STATIC);
    while (!stop && (code = sqlite3_step(list)) == SQLITE_ROW) {
        store_miss miss;
        if (store_read_miss(list, &miss)) stop = visit(user, &miss);
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) status = store_sql_fail(s, "list the misses");
    store_sql_reset(list);
    return store_leave(s, status);
}

store_status store_get_gain(store *s, const void *key, size_t key_bytes, const char *target, double *gain)
{
    *gain = 0;
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    sqlite3_stmt *query = s->statements[SQL_GAIN];
    if (!query) return store_leave(s, STORE_OK);
    bind_who(query, key, key_bytes, target);
    int code = sqlite3_step(query);
    if (code == SQLITE_ROW) *gain = sound_gain(sqlite3_column_double(query, 0));
    else if (code != SQLITE_DONE) status = store_sql_fail(s, "look up a gain");
    store_sql_reset(query);
    return store_leave(s, status);
}
