/* src/recent.c by itself: what is the same call again and what is not, and who holds what is remembered. test_recent_calls.c has
 * it under jg_gemm. */
#include "recent_fixture.h"

/* The list of members leaves out nothing but the holes behind form, zero_points and reserved, so that no new member is missed. */
static void all_members_are_listed(void **state)
{
    (void)state;
    size_t bytes = 0;
    for (int i = 0; i < MEMBERS; i++) bytes += members[i].bytes;
    assert_int_equal(bytes, sizeof(jg_problem) - 3 * sizeof(uint32_t));
}

static lru_entry *insert(lru *map, int key)
{
    int existed;
    lru_entry *entry = lru_insert(map, &key, sizeof key, &existed, 1, &existed);
    assert_non_null(entry);
    return entry;
}

static void every_member_counts_and_no_padding(void **state)
{
    (void)state;
    lru *map = lru_create(0, 0, 1);
    recent *all = recent_create();
    lru_entry *entry = insert(map, 1);
    const jg_problem given = {.m = 3, .n = 4, .k = 5, .type_a = JG_F16, .lda = 9, .align_bytes = 4, .compile = JG_COMPILE_WAIT};
    jg_problem first, again;
    copy_members(&first, &given, 0xff);
    copy_members(&again, &given, 0x11);
    recent_call *call = &all->calls[0];
    assert_false(recent_is(call, &first));
    recent_keep(call, &first, &(problem){.m = 3}, 7, entry);
    assert_true(recent_is(call, &first));
    assert_true(recent_is(call, &again));
    assert_ptr_equal(recent_place(all, &first), recent_place(all, &again));
    assert_int_equal(call->alignment, 7);
    assert_int_equal(call->problem.m, 3);
    for (int i = 0; i < MEMBERS; i++) {
        unsigned char *byte = (unsigned char *)&again + members[i].at;
        for (size_t j = 0; j < members[i].bytes; j++) {
            byte[j] ^= 1;
            assert_false(recent_is(call, &again));
            byte[j] ^= 1;
        }
    }
    assert_true(recent_is(call, &again));
    lru_release(entry);
    recent_destroy(all);
    lru_destroy(map, NULL, NULL);
}

static void what_is_remembered_is_pinned(void **state)
{
    (void)state;
    lru *map = lru_create(0, 0, 1);
    recent *all = recent_create();
    lru_entry *one = insert(map, 1), *two = insert(map, 2);
    const jg_problem p = square(8, JG_F32);
    recent *mine = recent_enter(all);
    assert_non_null(mine);
    recent_call *call = recent_place(mine, &p);
    recent_keep(call, &p, &(problem){0}, 0, one);
    lru_release(one);
    assert_true(lru_is_pinned(one));
    recent_forget(all); /* the slot is in use: passed over */
    assert_true(recent_is(call, &p) && lru_is_pinned(one));
    recent_keep(call, &p, &(problem){0}, 0, two);
    assert_false(lru_is_pinned(one));
    recent_keep(call, &p, &(problem){0}, 0, two); /* itself */
    lru_release(two);
    assert_true(lru_is_pinned(two));
    recent_leave(mine);
    recent_forget(all);
    assert_false(lru_is_pinned(two) || recent_is(call, &p));

    assert_ptr_equal(recent_enter(all), mine);
    recent_keep(call, &p, &(problem){0}, 0, one);
    recent_leave(mine);
    recent_destroy(all);
    assert_false(lru_is_pinned(one));
    recent_destroy(NULL);
    lru_destroy(map, NULL, NULL);
}

/* --- threads that hold slots --- */

static struct {
    recent *all;
    pthread_barrier_t held, done;
    atomic_int got;
} slots;

static void *hold(void *unused)
{
    (void)unused;
    recent *mine = recent_enter(slots.all);
    if (mine) {
        atomic_fetch_add(&slots.got, 1);
        recent_count(mine, 1);
        recent_count(mine, 0);
        recent_count(mine, 0);
    }
    pthread_barrier_wait(&slots.held);
    pthread_barrier_wait(&slots.done);
    if (mine) recent_leave(mine);
    return NULL;
}

static void as_many_as_there_are_slots_have_one(void **state)
{
    (void)state;
    enum { EXTRA = 3 };
    pthread_t threads[RECENT_SLOTS + EXTRA];
    uint64_t own, generic;
    slots.all = recent_create();
    atomic_store(&slots.got, 0);
    pthread_barrier_init(&slots.held, NULL, RECENT_SLOTS + EXTRA + 1);
    pthread_barrier_init(&slots.done, NULL, RECENT_SLOTS + EXTRA + 1);
    for (int i = 0; i < RECENT_SLOTS + EXTRA; i++) assert_int_equal(pthread_create(&threads[i], NULL, hold, NULL), 0);
    pthread_barrier_wait(&slots.held);
    assert_int_equal(atomic_load(&slots.got), RECENT_SLOTS);
    assert_null(recent_enter(slots.all));
    recent_forget(slots.all); /* waits for nobody */
    pthread_barrier_wait(&slots.done);
    for (int i = 0; i < RECENT_SLOTS + EXTRA; i++) pthread_join(threads[i], NULL);
    recent_sum(slots.all, &own, &generic);
    assert_int_equal(own, 2 * RECENT_SLOTS);
    assert_int_equal(generic, RECENT_SLOTS);
    recent *mine = recent_enter(slots.all);
    assert_non_null(mine);
    assert_null(recent_enter(slots.all)); /* it is taken, though by ourselves */
    recent_leave(mine);
    recent_destroy(slots.all);
    recent_sum(NULL, &own, &generic);
    assert_int_equal(own + generic, 0);
    pthread_barrier_destroy(&slots.held);
    pthread_barrier_destroy(&slots.done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_members_are_listed),
        cmocka_unit_test(every_member_counts_and_no_padding),
        cmocka_unit_test(what_is_remembered_is_pinned),
        cmocka_unit_test(as_many_as_there_are_slots_have_one),
    };
    return cmocka_run_group_tests_name("recent", tests, NULL, NULL);
}
