/* How a worker ends: with idle threads, with threads that are busy or preempted, and in a forked child. */
#include "worker_fixture.h"

#include <sys/wait.h>

static void await_release(scene *s)
{
    while (!atomic_load(&s->released))
        nap(0.2);
}

static void a_thread_in_bring_is_abandoned(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    worker_stop_ms = 20;
    s.kernels[1].blocks = 1;
    met *m = met_of(1, 1), *waiting = met_of(2, 1);
    sight(&s, m, 2);
    sem_wait(&s.entered); /* looks for it */
    sight(&s, waiting, 3);
    sight(&s, m, 5);
    worker_stop(s.w);
    assert_int_equal(s.released, 0);
    assert_int_equal(s.recorded, 10); /* what was in the mailbox as well */
    assert_int_equal(m->references, 1);
    assert_int_equal(waiting->references, 1);
    met_drop(m);
    met_drop(waiting);
    s.kernels[1].cached = JG_OK; /* its image goes with it */
    sem_post(&s.go);
    await_release(&s);
    nap(1);
    assert_int_equal(s.released, 1);
    assert_brought(&s, "f1");
    assert_traced(&s, "");
    assert_int_equal(s.recorded, 10);
}

static void several_abandoned_threads_release_once(void **state)
{
    (void)state;
    scene s;
    const jg_worker_options options = options_with(3, 8, 60);
    scene_init(&s);
    scene_start(&s, &options, 1, 1);
    for (int i = 1; i <= 3; i++) {
        s.kernels[i].blocks = 1;
        demand_number(&s, i);
    }
    for (int i = 1; i <= 3; i++)
        sem_wait(&s.entered);
    worker_stop_ms = 20;
    worker_stop(s.w);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(s.released, 0);
        nap(5);
        assert_int_equal(s.released, 0);
        sem_post(&s.go);
    }
    await_release(&s);
    nap(1);
    assert_int_equal(s.released, 1);
}

typedef struct late {
    scene *s;
    atomic_int let_go;
} late;

static void *let_go_late(void *argument)
{
    late *l = argument;
    nap(100);
    atomic_store(&l->let_go, 1);
    sem_post(&l->s->go);
    return NULL;
}

/* The other hooks use what jg_close takes away. */
static void a_thread_in_another_hook_is_waited_for(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    worker_stop_ms = 1;
    s.gain_blocks = 1;
    met *m = met_of(1, 1);
    late l = {&s, 0};
    pthread_t helper;
    sight(&s, m, 2);
    sem_wait(&s.entered);
    assert_int_equal(pthread_create(&helper, NULL, let_go_late, &l), 0);
    worker_stop(s.w);
    assert_int_equal(l.let_go, 1);
    await_release(&s);
    assert_int_equal(s.recorded, 2);
    assert_brought(&s, ""); /* no other hook was begun */
    pthread_join(helper, NULL);
    met_drop(m);
    scene_end(&s);
}

/* As is one that somebody preempted under the lock: it would be waited for otherwise for as long as that lasts. */
static void a_thread_without_the_processor_is_abandoned(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    sight(&s, m, 2);
    settle(&s);
    worker *w = s.w;
    worker_stop_ms = 20;
    pthread_mutex_lock(&w->lock);
    worker_stop(w);
    assert_int_equal(s.released, 0);
    pthread_mutex_unlock(&w->lock); /* the thread's reference keeps it */
    await_release(&s);
    met_drop(m);
}

static void stopping_writes_counts_and_frees_what_is_ready(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    met *m = met_of(1, 1);
    sight(&s, m, 2);
    settle(&s);
    assert_int_equal(s.recorded, 2);
    sight(&s, m, 5); /* the last three are not told */
    rest(&s);
    assert_int_equal(s.recorded, 2);
    scene_stop(&s);
    assert_int_equal(s.recorded, 7);
    assert_int_equal(m->references, 1);
    met_drop(m);
    scene_end(&s);
}

static void a_forked_child_is_not_harmed(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    s.kernels[1].blocks = 1;
    met *m = met_of(1, 1);
    sight(&s, m, 2);
    sem_wait(&s.entered);
    pthread_mutex_lock(&s.w->lock); /* so may a thread have it at the fork */
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        const int waited = worker_wait_idle(s.w, 0), told = worker_sight(s.w, m), taken = worker_take(s.w) != NULL;
        worker_stop(s.w);
        _exit(waited && !told && !taken ? 0 : 1);
    }
    pthread_mutex_unlock(&s.w->lock);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    sem_post(&s.go);
    sem_post(&s.go);
    settle(&s);
    assert_taken(&s, "1");
    met_drop(m);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_in_bring_is_abandoned),
        cmocka_unit_test(several_abandoned_threads_release_once),
        cmocka_unit_test(a_thread_in_another_hook_is_waited_for),
        cmocka_unit_test(a_thread_without_the_processor_is_abandoned),
        cmocka_unit_test(stopping_writes_counts_and_frees_what_is_ready),
        cmocka_unit_test(a_forked_child_is_not_harmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
