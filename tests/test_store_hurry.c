/* store_hurry: a program that is about to close its store is not held up by others that have the file, or by its own threads. */
#include "store_fixture.h"

#include "cache/store_sql.h"

#include <pthread.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Another connection that is in the middle of a change. */
static sqlite3 *begin_elsewhere(void)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

static void end_elsewhere(sqlite3 *db)
{
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The shortest of a few, since any one may be held up by the machine. */
static void a_writer_elsewhere_does_not_hold_up(void **state)
{
    (void)state;
    double shortest = 1e9;
    make_sound();
    for (int i = 0; i < 3; i++) {
        store *s = sample_open(file, 0, 0);
        sqlite3 *db = begin_elsewhere();
        const double start = now_ms();
        store_hurry(s);
        assert_int_equal(sample_put(s, 9, 3000, "the source text"), STORE_IO);
        store_close(s);
        const double took = now_ms() - start;
        if (took < shortest) shortest = took;
        end_elsewhere(db);
    }
    assert_true(shortest < STORE_BUSY_MS / 2);
}

static void *put_one(void *user)
{
    static store_status status;
    status = sample_put(user, 9, 3000, "the source text");
    return &status;
}

/* A call that is waiting already gives up as well. */
static void a_waiting_call_notices_the_hurry(void **state)
{
    (void)state;
    double shortest = 1e9;
    make_sound();
    for (int i = 0; i < 3; i++) {
        store *s = sample_open(file, 0, 0);
        sqlite3 *db = begin_elsewhere();
        pthread_t thread;
        void *status;
        const double start = now_ms();
        assert_int_equal(pthread_create(&thread, NULL, put_one, s), 0);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        store_hurry(s);
        pthread_join(thread, &status);
        const double took = now_ms() - start;
        if (took < shortest) shortest = took;
        assert_int_equal(*(store_status *)status, STORE_IO);
        end_elsewhere(db);
        store_close(s);
    }
    assert_true(shortest < STORE_BUSY_MS / 2);
}

/* A thread that has the store, and may be waiting for a processor. */
static void a_thread_that_has_it_does_not_hold_up(void **state)
{
    (void)state;
    make_sound();
    store *s = sample_open(file, 0, 0);
    pthread_mutex_lock(&s->mutex);
    store_hurry(s);
    assert_int_equal(sample_put(s, 9, 3000, "the source text"), STORE_IO);
    assert_non_null(strstr(store_error(s), "another thread"));
    pthread_mutex_unlock(&s->mutex);
    assert_int_equal(sample_put(s, 9, 3000, "the source text"), STORE_OK);
    store_close(s);
}

/* Where nobody else is, all is done as ever; a writer that is done soon is waited for. */
static void a_hurry_alone_fails_nothing(void **state)
{
    (void)state;
    make_sound();
    store_hurry(NULL);
    store *s = sample_open(file, 0, 0);
    sqlite3 *db = begin_elsewhere();
    store_hurry(s);
    end_elsewhere(db);
    assert_int_equal(sample_put(s, 9, 3000, "the source text"), STORE_OK);
    store_close(s);
    s = sample_open(file, STORE_READ_ONLY, 0);
    store_totals totals;
    assert_int_equal(store_get_totals(s, &totals), STORE_OK);
    assert_int_equal(totals.entries, RECORDS + 1);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_writer_elsewhere_does_not_hold_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_waiting_call_notices_the_hurry, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_thread_that_has_it_does_not_hold_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hurry_alone_fails_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
