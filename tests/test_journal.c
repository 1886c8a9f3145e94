/* src/journal.c: which messages reach the host's hooks, one at a time, and none once it is closed, whichever thread is late. The
 * last test is the same of a whole context, whose worker outlives it. */
#include "background_fixture.h"

#include "journal.h"

#include <sched.h>
#include <unistd.h>

enum { THREADS = 4, MESSAGES = 300 };

/* What the hooks see. */
typedef struct listener {
    atomic_int logs, traces, inside, together, is_closed, late;
    jg_log_level level;
    char text[2048];
    jg_trace trace;
} listener;

static void hear_log(void *user, jg_log_level level, const char *text)
{
    listener *l = user;
    if (atomic_fetch_add(&l->inside, 1)) atomic_fetch_add(&l->together, 1);
    if (atomic_load(&l->is_closed)) atomic_fetch_add(&l->late, 1);
    atomic_fetch_add(&l->logs, 1);
    l->level = level; /* without a lock: the thread sanitizer would see two at a time */
    snprintf(l->text, sizeof l->text, "%s", text);
    sched_yield();
    atomic_fetch_sub(&l->inside, 1);
}

static void hear_trace(void *user, const jg_trace *trace)
{
    listener *l = user;
    if (atomic_load(&l->is_closed)) atomic_fetch_add(&l->late, 1);
    if (atomic_fetch_add(&l->traces, 1) == 0) l->trace = *trace;
}

static jg_options options_for(listener *l, jg_log_level level)
{
    memset(l, 0, sizeof *l);
    return (jg_options){.log = hear_log, .log_user = l, .log_level = level, .trace = hear_trace, .trace_user = l};
}

static void levels_are_kept_to(void **state)
{
    (void)state;
    listener l;
    journal j;
    for (int kept = JG_LOG_ERROR; kept <= JG_LOG_DEBUG; kept++) {
        const jg_options options = options_for(&l, (jg_log_level)kept);
        journal_open(&j, &options);
        for (int level = JG_LOG_ERROR; level <= JG_LOG_DEBUG; level++) {
            journal_log(&j, (jg_log_level)level, "level %d of %s", level, "four");
            if (level > kept) continue;
            char text[64];
            snprintf(text, sizeof text, "level %d of four", level);
            assert_string_equal(l.text, text);
            assert_int_equal(l.level, level);
        }
        assert_int_equal(atomic_load(&l.logs), kept);
        journal_close(&j);
        journal_destroy(&j);
    }
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    listener l;
    journal j;
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    const jg_options options = options_for(&l, JG_LOG_INFO);
    journal_open(&j, &options);
    journal_log(&j, JG_LOG_INFO, "%s", text);
    assert_int_equal(strlen(l.text), JOURNAL_TEXT_BYTES - 1);
    assert_string_equal(l.text + JOURNAL_TEXT_BYTES - 5, "x..."); /* that it goes on is said */
    journal_log(&j, JG_LOG_INFO, "%.*s", JOURNAL_TEXT_BYTES - 1, text);
    assert_string_equal(l.text + JOURNAL_TEXT_BYTES - 5, "xxxx");
    journal_close(&j);
    journal_destroy(&j);
}

static void without_hooks_nothing_happens(void **state)
{
    (void)state;
    journal j;
    const jg_options options = {.log_level = JG_LOG_DEBUG};
    const jg_trace trace = {JG_EVENT_READY, "p", "k", 0};
    journal_open(&j, &options);
    journal_log(&j, JG_LOG_ERROR, "nobody");
    journal_trace(&j, &trace);
    journal_close(&j);
    journal_close(&j); /* twice is fine */
    journal_log(&j, JG_LOG_ERROR, "nobody");
    journal_destroy(&j);
}

static void events_are_passed_on_until_it_is_closed(void **state)
{
    (void)state;
    listener l;
    journal j;
    const jg_options options = options_for(&l, JG_LOG_DEBUG);
    const jg_trace trace = {JG_EVENT_READY, "problem", "kernel", 2.5};
    journal_open(&j, &options);
    journal_trace(&j, &trace);
    assert_int_equal(l.trace.event, JG_EVENT_READY);
    assert_string_equal(l.trace.problem, "problem");
    assert_string_equal(l.trace.kernel, "kernel");
    assert_true(l.trace.ms == 2.5);
    journal_close(&j);
    journal_trace(&j, &trace);
    journal_log(&j, JG_LOG_ERROR, "late");
    assert_int_equal(atomic_load(&l.traces), 1);
    assert_int_equal(atomic_load(&l.logs), 0);
    journal_destroy(&j);
}

/* --- threads --- */

typedef struct speaker {
    journal *journal;
    atomic_int *said;
} speaker;

static void *speak(void *argument)
{
    speaker *s = argument;
    const jg_trace trace = {JG_EVENT_READY, "p", "k", 0};
    for (int i = 0; i < MESSAGES; i++) {
        journal_log(s->journal, JG_LOG_INFO, "message %d", i);
        journal_trace(s->journal, &trace);
        atomic_fetch_add(s->said, 1);
    }
    return NULL;
}

/* Closed in the middle of it: close waits for the hook that is running, and is the end. */
static void messages_come_one_at_a_time_and_none_is_late(void **state)
{
    (void)state;
    for (int closes = 0; closes < 2; closes++) {
        listener l;
        journal j;
        pthread_t threads[THREADS];
        atomic_int said = 0;
        speaker s = {&j, &said};
        const jg_options options = options_for(&l, JG_LOG_INFO);
        journal_open(&j, &options);
        for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, speak, &s), 0);
        if (closes) {
            while (atomic_load(&said) < THREADS * MESSAGES / 4) sched_yield();
            journal_close(&j);
            atomic_store(&l.is_closed, 1);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&l.together), 0);
        assert_int_equal(atomic_load(&l.late), 0);
        if (!closes) assert_int_equal(atomic_load(&l.logs), THREADS * MESSAGES);
        if (!closes) assert_int_equal(atomic_load(&l.traces), THREADS * MESSAGES);
        journal_close(&j);
        journal_destroy(&j);
    }
}

/* --- a context that is gone --- */

/* A compile that jg_close has abandoned ends later, well or badly: it tells nobody, and what it holds is given back. */
static void an_abandoned_compile_tells_nothing(void **state)
{
    (void)state;
    for (int accepts = 0; accepts < 2; accepts++) {
        listener l;
        jg_options options = background_options();
        const jg_options hooks = options_for(&l, JG_LOG_DEBUG);
        options.log = hooks.log;
        options.trace = hooks.trace;
        options.log_user = options.trace_user = &l;
        options.log_level = JG_LOG_DEBUG;
        options.cache_path = "";
        atomic_store(&nvrtc_double->compiles, 0);
        atomic_store(&nvrtc_double->accepts, accepts);
        atomic_store(&nvrtc_double->holds, 1);
        atomic_store(&nvrtc_double->is_deaf, 1);
        jg_context *c = fixture_open_with(options); /* demands the generic set */
        while (!atomic_load(&nvrtc_double->running)) sched_yield();
        images *i = images_keep(c->images);
        assert_status(jg_close(c), JG_OK);
        atomic_store(&l.is_closed, 1);
        assert_int_equal(atomic_load(&nvrtc_double->running), 1); /* nobody waited for it */
        assert_true(atomic_load(&l.logs) > 0);
        const int traces = atomic_load(&l.traces);
        atomic_store(&nvrtc_double->holds, 0);
        while (atomic_load(&i->references) > 1) usleep(1000); /* the worker's goes with its last thread */
        assert_int_equal(atomic_load(&l.late), 0);
        assert_int_equal(atomic_load(&l.traces), traces);
        assert_int_equal(atomic_load(&i->compiles), accepts);
        assert_int_equal(atomic_load(&nvrtc_double->compiles), 1); /* and it has begun no other */
        images_drop(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_kept_to),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(without_hooks_nothing_happens),
        cmocka_unit_test(events_are_passed_on_until_it_is_closed),
        cmocka_unit_test(messages_come_one_at_a_time_and_none_is_late),
        BACKGROUND_TEST(an_abandoned_compile_tells_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
