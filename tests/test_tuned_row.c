/* The parts of recorded plans: rows that cannot be used and are passed over, and the map in memory. */
#include "tuned_fixture.h"

#include "tuned.h"

#include <unistd.h>

static int count_one(void *user, const jg_cache_plan *row)
{
    (void)row;
    ++*(int *)user;
    return 0;
}

/* How many rows jg_cache_plans lists. */
static int listed(void)
{
    int count = 0;
    jg_cache *cache;
    assert_status(jg_cache_open(fx.cache, 0, &cache), JG_OK);
    assert_status(jg_cache_plans(cache, count_one, &count), JG_OK);
    jg_cache_close(cache);
    return count;
}

/* --- rows --- */

typedef struct other_tile {
    plan planned, other;
    int has_other;
} other_tile;

static void note_other(void *user, const plan *candidate, const char *reason)
{
    other_tile *o = user;
    const tile *planned = &o->planned.spec.tile, *t = &candidate->spec.tile;
    if (reason[0] || o->has_other || t->slices != planned->slices || memcmp(planned, t, sizeof *t) == 0) return;
    o->other = *candidate;
    o->has_other = 1;
}

/* A candidate of the problem's class that the model does not choose. */
static kernel_spec other_spec(const problem *of)
{
    limits l;
    other_tile o = {.has_other = 0};
    assert_status(limits_of_arch(87, 16, &l), JG_OK);
    assert_status(plan_choose(of, problem_promised_access(of), JG_FORM_SPECIALISED, &l, &o.planned), JG_OK);
    plan_each(of, problem_promised_access(of), JG_FORM_SPECIALISED, &l, note_other, &o);
    assert_true(o.has_other);
    return o.other.spec;
}

/* Writes a row as this library would, but for what `spoil` does to it. */
static void write_row(const jg_problem *in, void (*spoil)(tuned_row *row))
{
    problem p;
    char text[512];
    static tuned_row row;
    store *s;
    assert_status(problem_canonicalise(in, &p), JG_OK);
    const kernel_spec spec = other_spec(&p);
    const problem_key key = problem_key_of(&p, problem_promised_access(&p)), general = tuned_key_of(&key, (jg_form)spec.form);
    const tuned_value value = {.tile = spec.tile, .family = spec.family};
    tuned_row_fill(&row, TUNED_PLACE, &general, &key, &value, "kernel", 7, &(jg_measured){.us = 10});
    if (spoil) spoil(&row);
    assert_int_equal(store_open(fx.cache, 0, 0, &s, text, sizeof text), STORE_OK);
    assert_int_equal(store_put_choice(s, &row.choice), STORE_OK);
    store_close(s);
}

static void another_format(tuned_row *row)
{
    row->key[7]++;
}

static void short_key(tuned_row *row)
{
    row->choice.key_bytes--;
}

static void long_value(tuned_row *row)
{
    row->choice.value_bytes--;
}

static void short_details(tuned_row *row)
{
    row->choice.details_bytes = 39;
}

static void open_end(tuned_row *row)
{
    row->details[row->choice.details_bytes - 1] = 'x';
}

static void no_such_tile(tuned_row *row)
{
    row->value.tile.m++;
}

static void another_family(tuned_row *row)
{
    row->value.family = FAMILY_SIMT;
}

static void no_such_class(tuned_row *row)
{
    row->value.tile.slices = 3;
    row->value.has_new_bits = 1;
}

static void rows_that_cannot_be_used(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(tuned_row *row);
        int is_read, is_used;
    } rows[] = {{NULL, 1, 1},          {another_format, 0, 0}, {short_key, 0, 0},      {long_value, 0, 0},   {short_details, 0, 0},
                {open_end, 0, 0},      {no_such_tile, 1, 0},   {another_family, 1, 0}, {no_such_class, 1, 0}};
    const jg_problem p = square(24, JG_F16);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unlink(fx.cache);
        write_row(&p, rows[i].spoil);
        jg_context *c = tuned_open();
        assert_int_equal(fixture_stats(c).tuned, rows[i].is_read);
        const jg_plan_details d = tuned_chosen(c, &p);
        assert_int_equal(d.is_tuned, rows[i].is_used);
        assert_int_equal(d.is_planned, !rows[i].is_used);
        assert_status(fixture_gemm(c, &p, 1, 0), JG_OK);
        assert_status(jg_close(c), JG_OK);
        assert_int_equal(listed(), rows[i].is_read);
    }
}

/* --- the map --- */

static problem_key numbered(int64_t number)
{
    problem_key key;
    memset(&key, 0, sizeof key);
    key.problem = (problem){.m = number, .n = 8, .k = 8, .batch = 1, .type_a = JG_F32, .type_b = JG_F32, .type_c = JG_F32,
                            .form = JG_FORM_SPECIALISED};
    return key;
}

/* Of more than both files can have the first ones go, those put again last. */
static void the_map_is_bounded(void **state)
{
    (void)state;
    enum { MOST = 2 * STORE_MAX_CHOICES, MORE = 3 };
    tuned *t = tuned_create();
    tuned_plan found = {.us = 1};
    for (int64_t i = 0; i < MOST; i++) {
        const problem_key key = numbered(i);
        found.us = (double)i + 1;
        tuned_put(t, &key, &found);
    }
    const problem_key first = numbered(0), second = numbered(1), last = numbered(MOST + MORE - 1);
    tuned_put(t, &first, &found);
    assert_int_equal(tuned_count(t), MOST);
    for (int64_t i = MOST; i < MOST + MORE; i++) {
        const problem_key key = numbered(i);
        tuned_put(t, &key, &found);
    }
    assert_int_equal(tuned_count(t), MOST);
    assert_true(tuned_find(t, &first, JG_FORM_SPECIALISED, &found) && found.us == MOST);
    assert_false(tuned_find(t, &second, JG_FORM_SPECIALISED, &found));
    assert_true(tuned_find(t, &last, JG_FORM_SPECIALISED, &found));
    assert_false(tuned_find(t, &last, JG_FORM_GENERIC, &found));
    tuned_destroy(t);
    tuned_destroy(NULL);
}

enum { THREADS = 4, ROUNDS = 300 };

/* Writers and readers at once: each finds nothing, or something whole. */
static void *put_and_find(void *user)
{
    tuned *t = user;
    limits l;
    void *bad = NULL;
    limits_of_arch(87, 16, &l);
    for (int i = 0; i < ROUNDS; i++) {
        const problem_key key = numbered(8 + i % 8);
        tuned_plan made = {.us = 8 + i % 8, .value = {.has_new_bits = i % 3 == 0, .tile = {.slices = 1}}}, found;
        plan chosen;
        tuned_put(t, &key, &made);
        if (!tuned_find(t, &key, JG_FORM_SPECIALISED, &found) || found.us != made.us) bad = t;
        if (i % 16 == 0 && tuned_choose(t, &key, JG_FORM_SPECIALISED, &l, &chosen) != JG_OK) bad = t;
    }
    return bad;
}

static void threads_share_the_map(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    tuned *t = tuned_create();
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, put_and_find, t), 0);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    assert_int_equal(tuned_count(t), 8);
    tuned_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BACKGROUND_TEST(rows_that_cannot_be_used), BACKGROUND_TEST(the_map_is_bounded), BACKGROUND_TEST(threads_share_the_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
