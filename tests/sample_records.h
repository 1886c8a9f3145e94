/* Sample records for the tests of the store: record `index` is always the same, and of an exact size. */
#ifndef JG_TESTS_SAMPLE_RECORDS_H
#define JG_TESTS_SAMPLE_RECORDS_H

#include "cache/store.h"

/* Fills *record with record `index`; what it points to stays until the next call. binary_bytes is its binary's size;
 * source may be null. */
void sample_record(store_record *record, int index, size_t binary_bytes, const char *source);

/* The key of record `index`; *bytes is set to its size. Good for the next seven calls. */
const void *sample_key(int index, size_t *bytes);

/* 1 if all that a caller puts is equal in both. */
int sample_equal(const store_record *a, const store_record *b);

/* Opens or fails the test, with the store's own text. */
store *sample_open(const char *path, unsigned flags, uint64_t max_bytes);

/* Puts record `index` and returns the status. */
store_status sample_put(store *s, int index, size_t binary_bytes, const char *source);

/* Gets record `index`, frees it, and returns the status. */
store_status sample_get(store *s, int index);

/* Runs SQL on a file behind the store's back; returns the first column of the last row, or -1. */
long long sample_sql(const char *path, const char *sql);

#endif
