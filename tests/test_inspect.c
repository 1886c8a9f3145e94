/* The inspect tier of the public header, on cache files that the store makes here: finding, listing, extracting,
 * verifying, misses, sealing, clearing, and what each refuses. */
#include "cache/store.h"
#include "jitgemm.h"
#include "sample_records.h"
#include "scratch.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmocka.h>

static char folder[PATH_MAX];
static char file[PATH_MAX + 64];
static jg_cache *cache;

static int set_up(void **state)
{
    (void)state;
    scratch_make(folder);
    snprintf(file, sizeof file, "%s/kernels.db", folder);
    store *s = sample_open(file, 0, 0);
    for (int i = 0; i < 3; i++)
        sample_put(s, i, 1000, i == 2 ? NULL : "shared source\n");
    store_record record;
    sample_record(&record, 3, 0, NULL); /* a longer name that begins with another's, and no binary */
    record.name = "kernel_000001_wide";
    store_put(s, &record, NULL);
    sample_get(s, 1);
    store_close(s);
    assert_int_equal(jg_cache_open(file, 0, &cache), JG_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    jg_cache_close(cache);
    cache = NULL;
    scratch_remove(folder);
    return 0;
}

static void reopen_writable(void)
{
    jg_cache_close(cache);
    assert_int_equal(jg_cache_open(file, 1, &cache), JG_OK);
}

static void refuses_what_is_no_cache(void **state)
{
    (void)state;
    jg_cache *other = (jg_cache *)1;
    const char *missing = scratch_path(folder, "missing.db"), *text = scratch_path(folder, "text");
    assert_int_equal(jg_cache_open(file, 0, NULL), JG_ERR_NULL);
    assert_int_equal(jg_cache_open(missing, 1, &other), JG_ERR_FILE);
    assert_null(other);
    assert_non_null(strstr(jg_last_error(), missing));
    assert_non_null(strstr(jg_last_error(), "jitgemm-prewarm"));
    assert_false(scratch_exists(missing)); /* a look never makes a file */
    scratch_write(text, "hello", 5);
    chmod(text, 0600);
    assert_int_equal(jg_cache_open(text, 1, &other), JG_ERR_CACHE);
    assert_non_null(strstr(jg_last_error(), "not a jitgemm cache"));
    assert_int_equal(jg_cache_open("", 0, &other), JG_ERR_FILE);
    assert_int_equal(chmod(file, 0666), 0);
    assert_int_equal(jg_cache_open(file, 0, &other), JG_ERR_FILE);
    jg_cache_close(NULL);
}

static void takes_the_default_path(void **state)
{
    (void)state;
    jg_cache *other;
    assert_int_equal(setenv("JITGEMM_CACHE", file, 1), 0);
    assert_int_equal(jg_cache_open(NULL, 0, &other), JG_OK);
    assert_string_equal(jg_cache_path(other), file);
    jg_cache_close(other);
    assert_int_equal(setenv("JITGEMM_CACHE", "", 1), 0);
    assert_int_equal(jg_cache_open(NULL, 0, &other), JG_ERR_FILE);
    unsetenv("JITGEMM_CACHE");
}

typedef struct seen {
    int count, stop_after;
    char kernels[8][32], ids[8][17];
} seen;

static int look(void *user, const jg_cache_entry *entry)
{
    seen *all = user;
    snprintf(all->kernels[all->count], sizeof all->kernels[0], "%s", entry->kernel);
    snprintf(all->ids[all->count], sizeof all->ids[0], "%s", entry->id);
    return ++all->count == all->stop_after;
}

static void lists_entries(void **state)
{
    (void)state;
    seen all = {0}, two = {.stop_after = 2};
    assert_int_equal(jg_cache_list(cache, look, &all), JG_OK);
    assert_int_equal(all.count, 4);
    assert_string_equal(all.kernels[0], "kernel_000001"); /* used last */
    assert_string_equal(all.kernels[1], "kernel_000001_wide");
    assert_int_equal(strlen(all.ids[0]), 16);
    assert_int_equal(jg_cache_list(cache, look, &two), JG_OK);
    assert_int_equal(two.count, 2);
    assert_int_equal(jg_cache_list(cache, NULL, NULL), JG_ERR_NULL);
    assert_int_equal(jg_cache_list(NULL, look, &all), JG_ERR_NULL);
}

static void finds_by_name_id_and_prefix(void **state)
{
    (void)state;
    jg_cache_entry entry;
    seen all = {0};
    char prefix[11];
    jg_cache_list(cache, look, &all);
    assert_int_equal(jg_cache_find(cache, "kernel_000001", &entry), JG_OK); /* whole, though it begins another */
    assert_string_equal(entry.kernel, "kernel_000001");
    assert_string_equal(entry.target, "sm_81");
    assert_string_equal(entry.problem, "problem 000001");
    assert_string_equal(entry.provenance, "compiler 1.2 -O3");
    assert_string_equal(entry.id, all.ids[0]);
    assert_int_equal(entry.cubin_bytes, 1000);
    assert_int_equal(entry.ptx_bytes, 12);
    assert_int_equal(entry.uses, 1);
    assert_true(entry.compile_ms == 13.5);
    assert_true(entry.created > 0 && entry.used >= entry.created && entry.record_bytes > 1012);
    assert_int_equal(jg_cache_find(cache, "kernel_000001_w", &entry), JG_OK);
    assert_string_equal(entry.kernel, "kernel_000001_wide");
    assert_int_equal(jg_cache_find(cache, all.ids[2], &entry), JG_OK);
    assert_string_equal(entry.kernel, all.kernels[2]);
    snprintf(prefix, sizeof prefix, "%.10s", all.ids[3]);
    assert_int_equal(jg_cache_find(cache, prefix, &entry), JG_OK);
    assert_string_equal(entry.kernel, all.kernels[3]);
    assert_int_equal(jg_cache_find(cache, "kernel_", &entry), JG_ERR_VALUE);
    assert_non_null(strstr(jg_last_error(), "fits 4 entries"));
    assert_int_equal(jg_cache_find(cache, "nothing", &entry), JG_ERR_NOT_FOUND);
    assert_non_null(strstr(jg_last_error(), "nothing"));
    assert_int_equal(jg_cache_find(cache, NULL, &entry), JG_ERR_NULL);
    assert_int_equal(jg_cache_find(cache, "kernel_000001", NULL), JG_ERR_NULL);
}

static void extracts_parts(void **state)
{
    (void)state;
    const void *data;
    size_t bytes;
    store_record expected;
    sample_record(&expected, 1, 1000, NULL);
    assert_int_equal(jg_cache_extract(cache, "kernel_000001", JG_PART_CUBIN, &data, &bytes), JG_OK);
    assert_int_equal(bytes, 1000);
    assert_memory_equal(data, expected.binary, bytes);
    assert_int_equal(jg_cache_extract(cache, "kernel_000001", JG_PART_PTX, &data, &bytes), JG_OK);
    assert_string_equal(data, ".version 7.0");
    assert_int_equal(bytes, 12);
    assert_int_equal(jg_cache_extract(cache, "kernel_000001", JG_PART_SOURCE, &data, &bytes), JG_OK);
    assert_string_equal(data, "#define INDEX 000001\nshared source\n");
    assert_int_equal(bytes, strlen(data));
    assert_int_equal(jg_cache_extract(cache, "kernel_000002", JG_PART_SOURCE, &data, &bytes), JG_ERR_NOT_FOUND);
    assert_int_equal(jg_cache_extract(cache, "kernel_000001_w", JG_PART_CUBIN, &data, &bytes), JG_ERR_NOT_FOUND);
    assert_non_null(strstr(jg_last_error(), "has no cubin"));
    assert_null(data);
    assert_int_equal(jg_cache_extract(cache, "absent", JG_PART_CUBIN, &data, &bytes), JG_ERR_NOT_FOUND);
    assert_int_equal(jg_cache_extract(cache, "kernel_000001", (jg_part)9, &data, &bytes), JG_ERR_VALUE);
    assert_int_equal(jg_cache_extract(cache, "kernel_000001", JG_PART_PTX, NULL, &bytes), JG_ERR_NULL);
}

static void note(void *user, const char *id, const char *what)
{
    snprintf(user, 64, "%s: %s", id, what);
}

static void never_hands_out_a_damaged_entry(void **state)
{
    (void)state;
    const void *data;
    size_t bytes, good, bad;
    char fault[64] = "", id[17];
    jg_cache_entry entry;
    assert_int_equal(jg_cache_verify(cache, note, fault, &good, &bad), JG_OK);
    assert_int_equal(good, 4);
    assert_int_equal(bad, 0);
    assert_string_equal(fault, "");
    jg_cache_find(cache, "kernel_000002", &entry);
    snprintf(id, sizeof id, "%s", entry.id);
    sample_sql(file, "UPDATE records SET binary=x'00' WHERE name='kernel_000002'");
    assert_int_equal(jg_cache_find(cache, "kernel_000002", &entry), JG_ERR_CACHE);
    assert_int_equal(jg_cache_extract(cache, "kernel_000002", JG_PART_PTX, &data, &bytes), JG_ERR_CACHE);
    assert_null(data);
    assert_int_equal(jg_cache_verify(cache, note, fault, &good, &bad), JG_ERR_CACHE);
    assert_int_equal(good, 3);
    assert_int_equal(bad, 1);
    assert_memory_equal(fault, id, 16);
    assert_int_equal(jg_cache_verify(cache, NULL, NULL, NULL, NULL), JG_ERR_CACHE);
}

static void add_misses(void)
{
    size_t bytes;
    const void *key = sample_key(1, &bytes);
    const store_miss misses[] = {
        {.key = "a", .key_bytes = 1, .target = "sm_80", .label = "64:f16", .record = 5, .count = 2, .gain = 1.5},
        {.key = "b", .key_bytes = 1, .target = "sm_87", .label = "196x768x768:f16", .record = XXH64(key, bytes, 0), .count = 9},
    };
    store *s = sample_open(file, 0, 0);
    assert_int_equal(store_add_misses(s, misses, 2), STORE_OK);
    store_close(s);
}

static int write_miss(void *user, const jg_cache_miss *miss)
{
    char *text = user;
    size_t used = strlen(text);
    snprintf(text + used, 200 - used, "%s %s %d %g %d;", miss->problem, miss->target, (int)miss->count, miss->gain, miss->cached);
    assert_in_range(miss->used, time(NULL) - 60, time(NULL));
    return *text == 'x';
}

static void lists_misses(void **state)
{
    (void)state;
    char text[200] = "", stopped[200] = "x";
    assert_int_equal(jg_cache_misses(cache, write_miss, text), JG_OK);
    assert_string_equal(text, "");
    add_misses();
    assert_int_equal(jg_cache_misses(cache, write_miss, text), JG_OK);
    assert_string_equal(text, "196x768x768:f16 sm_87 9 0 1;64:f16 sm_80 2 1.5 0;");
    assert_int_equal(jg_cache_misses(cache, write_miss, stopped), JG_OK);
    assert_string_equal(stopped, "x196x768x768:f16 sm_87 9 0 1;");
    assert_int_equal(jg_cache_misses(cache, NULL, NULL), JG_ERR_NULL);
    assert_int_equal(jg_cache_misses(NULL, write_miss, text), JG_ERR_NULL);
}

static void clears_misses(void **state)
{
    (void)state;
    size_t removed = 7;
    char text[200] = "";
    seen all = {0};
    add_misses();
    assert_int_equal(jg_cache_clear_misses(cache, &removed), JG_ERR_FILE); /* opened for reading */
    assert_int_equal(removed, 0);
    assert_int_equal(jg_cache_clear_misses(NULL, &removed), JG_ERR_NULL);
    reopen_writable();
    assert_int_equal(jg_cache_clear_misses(cache, &removed), JG_OK);
    assert_int_equal(removed, 2);
    assert_int_equal(jg_cache_misses(cache, write_miss, text), JG_OK);
    assert_string_equal(text, "");
    assert_int_equal(jg_cache_list(cache, look, &all), JG_OK);
    assert_int_equal(all.count, 4); /* entries stay */
    assert_int_equal(jg_cache_clear_misses(cache, NULL), JG_OK);
}

static void seals(void **state)
{
    (void)state;
    jg_cache *other;
    assert_int_equal(jg_cache_seal(NULL), JG_ERR_NULL);
    assert_int_equal(jg_cache_seal(cache), JG_ERR_FILE); /* opened for reading */
    reopen_writable();
    assert_int_equal(jg_cache_open(file, 0, &other), JG_OK);
    assert_int_equal(jg_cache_seal(cache), JG_ERR_FILE);
    assert_non_null(strstr(jg_last_error(), "somebody else has the file open"));
    jg_cache_close(other);
    assert_int_equal(jg_cache_seal(cache), JG_OK);
    assert_false(scratch_exists(scratch_path(folder, "kernels.db-wal")));
    store *s = sample_open(file, STORE_READ_ONLY | STORE_IMMUTABLE, 0);
    assert_int_equal(sample_get(s, 1), STORE_OK);
    store_close(s);
}

static void clears(void **state)
{
    (void)state;
    size_t removed = 7;
    seen all = {0};
    assert_int_equal(jg_cache_clear(cache, &removed), JG_ERR_FILE); /* opened for reading */
    assert_int_equal(removed, 0);
    reopen_writable();
    assert_int_equal(jg_cache_clear(cache, &removed), JG_OK);
    assert_int_equal(removed, 4);
    assert_int_equal(jg_cache_list(cache, look, &all), JG_OK);
    assert_int_equal(all.count, 0);
    assert_int_equal(jg_cache_clear(NULL, &removed), JG_ERR_NULL);
}

static void clears_a_damaged_file(void **state)
{
    (void)state;
    char junk[5000];
    size_t removed, good, bad;
    seen all = {0};
    jg_cache *reader;
    jg_cache_close(cache);
    memset(junk, 0xa5, sizeof junk);
    int descriptor = open(file, O_WRONLY);
    assert_int_equal(pwrite(descriptor, junk, sizeof junk, 100), sizeof junk);
    close(descriptor);
    assert_int_equal(jg_cache_open(file, 0, &reader), JG_ERR_CACHE);
    assert_int_equal(jg_cache_open(file, 1, &cache), JG_OK);
    assert_int_equal(jg_cache_list(cache, look, &all), JG_ERR_CACHE);
    assert_non_null(strstr(jg_last_error(), "damaged"));
    assert_int_equal(jg_cache_misses(cache, write_miss, NULL), JG_ERR_CACHE);
    assert_int_equal(jg_cache_clear_misses(cache, NULL), JG_ERR_CACHE);
    assert_int_equal(jg_cache_seal(cache), JG_ERR_CACHE);
    assert_int_equal(jg_cache_verify(cache, NULL, NULL, &good, &bad), JG_ERR_CACHE);
    assert_int_equal(jg_cache_clear(cache, &removed), JG_OK);
    assert_int_equal(jg_cache_verify(cache, NULL, NULL, &good, &bad), JG_OK);
    assert_int_equal(jg_cache_list(cache, look, &all), JG_OK);
    assert_int_equal(all.count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(refuses_what_is_no_cache),
        TEST(takes_the_default_path),
        TEST(lists_entries),
        TEST(finds_by_name_id_and_prefix),
        TEST(extracts_parts),
        TEST(never_hands_out_a_damaged_entry),
        TEST(lists_misses),
        TEST(clears_misses),
        TEST(seals),
        TEST(clears),
        TEST(clears_a_damaged_file),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
