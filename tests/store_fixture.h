/* Common ground of the tests of the store: a scratch folder with a file in it, a sound file of four records, opening. */
#ifndef JG_TESTS_STORE_FIXTURE_H
#define JG_TESTS_STORE_FIXTURE_H

#include "sample_records.h"
#include "scratch.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { RECORDS = 4, NOBODY = 65534 };

static char folder[PATH_MAX];
static char file[PATH_MAX + 64];
static char error[512];

static inline int set_up(void **state)
{
    (void)state;
    scratch_make(folder);
    snprintf(file, sizeof file, "%s/kernels.db", folder);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

/* A sound file with records 0 to 3, closed. */
static inline void make_sound(void)
{
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(sample_put(s, i, 3000, "the source text"), STORE_OK);
    store_close(s);
}

/* What is closed is turned into what the library made before misses were kept: a file of version 1. */
static inline void make_first_version(void)
{
    sample_sql(file, "DROP TABLE choices; DROP TABLE misses; DROP INDEX usage_by_turn; PRAGMA user_version=1");
}

/* The same, before choices were kept: version 2. */
static inline void make_second_version(void)
{
    sample_sql(file, "DROP TABLE choices; PRAGMA user_version=2");
}

static inline void copy_file(const char *from, const char *to)
{
    size_t bytes;
    unsigned char *data = scratch_read(from, &bytes);
    scratch_write(to, data, bytes);
    chmod(to, 0600);
    free(data);
}

static inline store_status open_status(const char *path, unsigned flags)
{
    store *s = NULL;
    error[0] = 0;
    store_status status = store_open(path, flags, 0, &s, error, sizeof error);
    if (status == STORE_OK) store_close(s);
    else assert_null(s);
    assert_true(status == STORE_OK || strlen(error) > 10);
    return status;
}

#endif
