/* In which order problems are measured: made-up ranks in; steps and compile jobs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "tools/tune_steps.h"

static tune_problem problems[4];
static size_t ranks[4][16];
static tune_list list;
static tune_steps steps;

/* Candidates of problem i are numbered backwards from 100 (i + 1). */
static void set_counts(const size_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t r = 0; r < counts[i]; r++) ranks[i][r] = 100 * (i + 1) - r;
        problems[i] = (tune_problem){.rank = {.indices = ranks[i], .count = counts[i], .all = 16}};
    }
    list = (tune_list){.problems = problems, .count = count};
}

static int clean_up(void **state)
{
    (void)state;
    tune_steps_free(&steps);
    return 0;
}

static void assert_step(size_t number, size_t which, size_t limit, size_t pass)
{
    assert_true(number < steps.count);
    assert_ptr_equal(steps.steps[number].problem, &problems[which]);
    assert_int_equal(steps.steps[number].limit, limit);
    assert_int_equal(steps.steps[number].pass, pass);
}

/* indices: ended by 0. */
static void assert_jobs(size_t step, const size_t *indices)
{
    size_t at = 0, count = 0;
    while (at < steps.job_count && steps.jobs[at].step != step) at++;
    for (; indices[count]; count++) {
        assert_true(at + count < steps.job_count && steps.jobs[at + count].step == step);
        assert_ptr_equal(steps.jobs[at + count].problem, &steps.steps[step].problem->product.problem);
        assert_int_equal(steps.jobs[at + count].index, indices[count]);
    }
    assert_true(at + count == steps.job_count || steps.jobs[at + count].step == step + 1);
}

static void all_at_once(void **state)
{
    (void)state;
    set_counts((size_t[]){2, 5}, 2);
    assert_int_equal(tune_steps_make(&list, 0, &steps), 0);
    assert_int_equal(steps.count, 2);
    assert_int_equal(steps.passes, 1);
    assert_int_equal(steps.job_count, 7);
    assert_step(0, 0, 2, 0);
    assert_step(1, 1, 5, 0);
    assert_jobs(0, (size_t[]){100, 99, 0});
    assert_jobs(1, (size_t[]){200, 199, 198, 197, 196, 0});
}

/* Every problem gets something before any gets more. */
static void passes_go_twice_as_far(void **state)
{
    (void)state;
    set_counts((size_t[]){3, 13, 1, 6}, 4);
    assert_int_equal(tune_steps_make(&list, 3, &steps), 0);
    assert_int_equal(steps.passes, 4);
    assert_int_equal(steps.count, 8);
    assert_step(0, 0, 3, 0);
    assert_step(1, 1, 3, 0);
    assert_step(2, 2, 1, 0);
    assert_step(3, 3, 3, 0);
    assert_step(4, 1, 6, 1);
    assert_step(5, 3, 6, 1);
    assert_step(6, 1, 12, 2);
    assert_step(7, 1, 13, 3);
    assert_jobs(4, (size_t[]){197, 196, 195, 0});
    assert_jobs(7, (size_t[]){188, 0});
    assert_int_equal(steps.job_count, 3 + 13 + 1 + 6);
}

/* What takes part again has to be made again: the model's choice, and the best so far. */
static void goes_on_where_it_left_off(void **state)
{
    (void)state;
    set_counts((size_t[]){6, 6, 6}, 3);
    problems[0].tried = 3;
    problems[0].best = 99;
    problems[1].tried = 4;
    problems[1].best = 200; /* the model's choice itself */
    assert_int_equal(tune_steps_make(&list, 3, &steps), 0);
    assert_int_equal(steps.count, 4);
    assert_step(0, 2, 3, 0);
    assert_step(1, 0, 6, 1);
    assert_step(2, 1, 6, 1);
    assert_step(3, 2, 6, 1);
    assert_jobs(1, (size_t[]){100, 99, 97, 96, 95, 0});
    assert_jobs(2, (size_t[]){200, 196, 195, 0});
    assert_jobs(3, (size_t[]){297, 296, 295, 0});
}

static void only_what_is_left(void **state)
{
    (void)state;
    set_counts((size_t[]){2, 2, 0}, 3);
    problems[0].outcome = TUNE_KNOWN;
    assert_int_equal(tune_steps_make(&list, 3, &steps), 0);
    assert_int_equal(steps.count, 1);
    assert_step(0, 1, 2, 0);
    tune_steps_free(&steps);
    problems[1].outcome = TUNE_FAILED;
    assert_int_equal(tune_steps_make(&list, 3, &steps), 0);
    assert_int_equal(steps.count, 0);
    assert_int_equal(steps.job_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_at_once, clean_up),
        cmocka_unit_test_teardown(passes_go_twice_as_far, clean_up),
        cmocka_unit_test_teardown(goes_on_where_it_left_off, clean_up),
        cmocka_unit_test_teardown(only_what_is_left, clean_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
