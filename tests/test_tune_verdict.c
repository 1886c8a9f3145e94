/* Which plan wins a race: made-up samples in, the verdict and its reason out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tools/tune_verdict.h"

enum { RUNNERS = 4, ROUNDS = 5 };

static bench_runner runners[RUNNERS];
static double samples[RUNNERS][ROUNDS];
static bench_race_result race;
static tune_found found;

/* Who takes part has a plan, which is never looked into. The model's choice is number 1. */
static int set_up(void **state)
{
    (void)state;
    memset(runners, 0, sizeof runners);
    memset(&found, 0, sizeof found);
    race = (bench_race_result){.all = runners, .count = RUNNERS, .planned = 1, .best = RUNNERS};
    for (int i = 0; i < RUNNERS; i++) {
        runners[i].plan = (jg_plan *)&runners[i];
        snprintf(runners[i].details.kernel, sizeof runners[i].details.kernel, "kernel %d", i);
        memcpy(runners[i].details.family, "mma", 4);
    }
    return 0;
}

/* Samples around a median; spread is how far the outer ones are from it, of 1. */
static void set_times(int i, double us, double spread)
{
    for (int r = 0; r < ROUNDS; r++) samples[i][r] = us * (1 + spread * (r - ROUNDS / 2) / (ROUNDS / 2));
    runners[i].us = us;
    runners[i].rounds = samples[i];
    runners[i].samples = ROUNDS;
}

static void assert_verdict(size_t winner, double us, double planned_us, double runner_up_us, const char *runner_up)
{
    char name[32];
    assert_int_equal(tune_judge(&race, 0, &found), winner);
    snprintf(name, sizeof name, "kernel %zu", winner);
    assert_string_equal(found.kernel, name);
    assert_string_equal(found.planned, "kernel 1");
    assert_string_equal(found.runner_up, runner_up);
    assert_true(found.us == us && found.planned_us == planned_us && found.runner_up_us == runner_up_us);
}

static void the_fastest_wins(void **state)
{
    (void)state;
    set_times(0, 12, 0.001);
    set_times(1, 11, 0.001);
    set_times(2, 10, 0.001);
    set_times(3, 10.5, 0.001);
    assert_verdict(2, 10, 11, 10.5, "kernel 3");
}

static void the_choice_wins_itself(void **state)
{
    (void)state;
    set_times(0, 12, 0.001);
    set_times(1, 10, 0.001);
    assert_verdict(1, 10, 10, 12, "kernel 0");
    assert_string_equal(found.reason, "");
}

/* Clearly faster, and by less than is worth a kernel. */
static void little_is_not_enough(void **state)
{
    (void)state;
    set_times(1, 10, 0.0001);
    set_times(2, 9.92, 0.0001);
    assert_verdict(1, 10, 10, 9.92, "kernel 2");
    set_times(2, 9.88, 0.0001);
    assert_verdict(2, 9.88, 10, 10, "kernel 1");
}

/* 10 % faster by the median, and it may be chance. */
static void chance_is_not_enough(void **state)
{
    (void)state;
    set_times(1, 10, 0.2);
    set_times(2, 9, 0.2);
    assert_verdict(1, 10, 10, 9, "kernel 2");
    set_times(1, 10, 0.01);
    set_times(2, 9, 0.01);
    assert_verdict(2, 9, 10, 10, "kernel 1");
}

/* A time of the short look alone, of one sample, proves nothing. */
static void a_short_look_is_not_enough(void **state)
{
    (void)state;
    set_times(1, 10, 0.01);
    runners[2].us = 5;
    runners[2].samples = 1;
    assert_verdict(1, 10, 10, 5, "kernel 2");
}

static void wrong_and_refused_ones_are_passed_over(void **state)
{
    (void)state;
    set_times(0, 9, 0.001);
    set_times(1, 10, 0.001);
    set_times(2, 5, 0.001);
    set_times(3, 6, 0.001);
    runners[2].is_wrong = 1;
    snprintf(runners[3].refused, sizeof runners[3].refused, "no");
    assert_verdict(0, 9, 10, 10, "kernel 1");
}

/* Then whoever is fastest takes its place, whatever the samples say. */
static void a_wrong_choice(void **state)
{
    (void)state;
    set_times(1, 5, 0.001);
    set_times(2, 10, 0.5);
    set_times(3, 10.01, 0.5);
    runners[1].is_wrong = 1;
    assert_verdict(2, 10, 0, 10.01, "kernel 3");
}

static void nobody_is_right(void **state)
{
    (void)state;
    set_times(1, 5, 0.001);
    runners[1].is_wrong = 1;
    runners[2].plan = NULL;
    assert_int_equal(tune_judge(&race, 0, &found), RUNNERS);
    assert_true(found.us == 0);
}

static void instructions(void **state)
{
    (void)state;
    runners[1].counters.instructions = 1000;
    runners[2].counters.instructions = 995;
    assert_int_equal(tune_judge(&race, 1, &found), 1);
    runners[3].counters.instructions = 800;
    assert_int_equal(tune_judge(&race, 1, &found), 3);
    assert_true(found.us == 800 && found.planned_us == 1000 && found.runner_up_us == 995);
}

/* ---- reasons ---- */

static void reasons_name_what_differs(void **state)
{
    (void)state;
    char text[256];
    const jg_plan_details planned = {.family = "mma", .tile_m = 128, .tile_n = 64, .tile_k = 32, .warp_m = 64, .warp_n = 32, .stages = 3,
                                     .slices = 1, .blocks_per_sm = 1, .waves = 0.97, .estimate_clocks = 1000};
    jg_plan_details winner = planned;
    tune_explain(&planned, &winner, text, sizeof text);
    assert_string_equal(text, "the model took it for 1.00x slower");
    winner.tile_m = 64;
    winner.slices = 2;
    winner.waves = 1.94;
    winner.estimate_clocks = 1080;
    tune_explain(&planned, &winner, text, sizeof text);
    assert_string_equal(text, "tile 64x64 (was 128x64), 2 slices (was 1), 1.94 waves (was 0.97); the model took it for 1.08x slower");
    winner = planned;
    winner.tile_k = 64;
    winner.warp_n = 64;
    winner.stages = 1;
    winner.blocks_per_sm = 2;
    winner.estimate_clocks = 500;
    tune_explain(&planned, &winner, text, sizeof text);
    assert_string_equal(text, "k step 64 (was 32), warp 64x64 (was 64x32), 1 stage (was 3), 2 blocks an SM (was 1); "
                              "the model took it for 2.00x faster");
    memcpy(winner.family, "simt", 5);
    winner.estimate_clocks = 0;
    tune_explain(&planned, &winner, text, sizeof text);
    assert_string_equal(text, "simt (was mma), k step 64 (was 32), thread 64x64 (was 64x32), 1 stage (was 3), 2 blocks an SM (was 1)");
}

/* Whatever the room, it is kept, and the text ends. */
static void reasons_are_cut(void **state)
{
    (void)state;
    char text[256], whole[256];
    const jg_plan_details planned = {.tile_m = 128, .tile_n = 64, .stages = 3, .estimate_clocks = 1000};
    const jg_plan_details winner = {.tile_m = 64, .tile_n = 64, .stages = 4, .estimate_clocks = 1080};
    tune_explain(&planned, &winner, whole, sizeof whole);
    for (size_t size = 1; size < strlen(whole); size++) {
        memset(text, 'x', sizeof text);
        tune_explain(&planned, &winner, text, size);
        assert_int_equal(text[size], 'x');
        assert_int_equal(strncmp(text, whole, strlen(text)), 0);
    }
}

static void a_winner_has_its_reason(void **state)
{
    (void)state;
    set_times(1, 10, 0.001);
    set_times(2, 9, 0.001);
    runners[2].details.stages = 4;
    assert_int_equal(tune_judge(&race, 0, &found), 2);
    assert_string_equal(found.reason, "4 stages (was 0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_fastest_wins, set_up),
        cmocka_unit_test_setup(the_choice_wins_itself, set_up),
        cmocka_unit_test_setup(little_is_not_enough, set_up),
        cmocka_unit_test_setup(chance_is_not_enough, set_up),
        cmocka_unit_test_setup(a_short_look_is_not_enough, set_up),
        cmocka_unit_test_setup(wrong_and_refused_ones_are_passed_over, set_up),
        cmocka_unit_test_setup(a_wrong_choice, set_up),
        cmocka_unit_test_setup(nobody_is_right, set_up),
        cmocka_unit_test_setup(instructions, set_up),
        cmocka_unit_test(reasons_name_what_differs),
        cmocka_unit_test(reasons_are_cut),
        cmocka_unit_test_setup(a_winner_has_its_reason, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
