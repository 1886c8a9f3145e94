/* Sample records for the tests of the store. See sample_records.h. */
#include "sample_records.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const void *sample_key(int index, size_t *bytes)
{
    static char keys[8][32];
    static unsigned next;
    char *key = keys[next++ % 8];
    *bytes = (size_t)snprintf(key, sizeof keys[0], "key%c%06d", 0, index); /* keys are bytes: a 0 inside is fine */
    return key;
}

void sample_record(store_record *record, int index, size_t binary_bytes, const char *source)
{
    static char texts[4][64];
    static unsigned char *binary;
    memset(record, 0, sizeof *record);
    record->key = sample_key(index, &record->key_bytes);
    snprintf(texts[0], sizeof texts[0], "kernel_%06d", index);
    snprintf(texts[1], sizeof texts[1], "sm_%d", 80 + index % 10);
    snprintf(texts[2], sizeof texts[2], "problem %06d", index);
    snprintf(texts[3], sizeof texts[3], "#define INDEX %06d\n", index);
    record->name = texts[0];
    record->target = texts[1];
    record->label = texts[2];
    record->provenance = "compiler 1.2 -O3";
    record->defines = texts[3];
    free(binary);
    binary = malloc(binary_bytes + 1);
    if (!binary) abort();
    for (size_t i = 0; i < binary_bytes; i++)
        binary[i] = (unsigned char)(i * 31 + (size_t)index);
    record->binary = binary;
    record->binary_bytes = binary_bytes;
    record->portable = ".version 7.0";
    record->portable_bytes = 12;
    record->source = source;
    record->build_ms = 12.5 + index;
}

static int same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static int same_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return a_bytes == b_bytes && (!a_bytes || memcmp(a, b, a_bytes) == 0);
}

int sample_equal(const store_record *a, const store_record *b)
{
    return same_bytes(a->key, a->key_bytes, b->key, b->key_bytes) && same_text(a->name, b->name) &&
           same_text(a->target, b->target) && same_text(a->label, b->label) &&
           same_text(a->provenance, b->provenance) && same_text(a->defines, b->defines) &&
           same_text(a->source, b->source) && same_bytes(a->binary, a->binary_bytes, b->binary, b->binary_bytes) &&
           same_bytes(a->portable, a->portable_bytes, b->portable, b->portable_bytes) && a->build_ms == b->build_ms;
}

store *sample_open(const char *path, unsigned flags, uint64_t max_bytes)
{
    char error[512] = "";
    store *s = NULL;
    if (store_open(path, flags, max_bytes, &s, error, sizeof error) != STORE_OK) {
        fprintf(stderr, "store_open: %s\n", error);
        abort();
    }
    return s;
}

store_status sample_put(store *s, int index, size_t binary_bytes, const char *source)
{
    store_record record;
    sample_record(&record, index, binary_bytes, source);
    return store_put(s, &record, NULL);
}

store_status sample_get(store *s, int index)
{
    store_record record;
    size_t bytes;
    const void *key = sample_key(index, &bytes);
    store_status status = store_get(s, key, bytes, &record);
    store_record_free(&record);
    return status;
}

long long sample_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    long long result = -1;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) abort();
    sqlite3_busy_timeout(db, 2000);
    while (*sql) {
        sqlite3_stmt *statement = NULL;
        if (sqlite3_prepare_v2(db, sql, -1, &statement, &sql) != SQLITE_OK) {
            fprintf(stderr, "%s\n", sqlite3_errmsg(db));
            abort();
        }
        while (sqlite3_step(statement) == SQLITE_ROW)
            result = sqlite3_column_int64(statement, 0);
        if (sqlite3_finalize(statement) != SQLITE_OK) fprintf(stderr, "%s\n", sqlite3_errmsg(db));
    }
    sqlite3_close(db);
    return result;
}
