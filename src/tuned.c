/* Recorded plans in memory. See tuned.h.
 *
 * One map holds two kinds of entries. One of a problem, with its form and access, says which candidate it is. One of a problem's
 * class, without form, access and leading dimensions, says in how many slices it is summed where that is not what the planner says:
 * all forms and accesses of the problem keep to it, so that they give the same bits. The last record of a problem decides. */
#include "tuned.h"

#include "hash.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

/* What both files can have; of more, which only recording for long can make, the first ones go. */
#define MAX_PLANS (2 * STORE_MAX_CHOICES)

typedef struct entry {
    problem_key key;
    tuned_plan plan;
    UT_hash_handle hh;
} entry;

struct tuned {
    pthread_mutex_t lock;      /* guards the maps; held for moments */
    entry *plans, *classes;
    atomic_size_t plan_count, class_count; /* so that empty maps cost nothing */
};

tuned *tuned_create(void)
{
    tuned *t = calloc(1, sizeof *t);
    if (t) pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void remove_one(entry **map, entry *e, atomic_size_t *count)
{
    HASH_DEL(*map, e);
    free(e);
    atomic_fetch_sub(count, 1);
}

void tuned_destroy(tuned *t)
{
    if (!t) return;
    while (t->plans) remove_one(&t->plans, t->plans, &t->plan_count);
    while (t->classes) remove_one(&t->classes, t->classes, &t->class_count);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

size_t tuned_count(const tuned *t)
{
    return atomic_load(&t->plan_count);
}

/* --- keys --- */

/* Leaves out of a key what a specialised kernel leaves to the launch, as plan.c does. */
static void generalise(problem *p)
{
    const int m = p->dynamic & JG_DYNAMIC_M, n = p->dynamic & JG_DYNAMIC_N, k = p->dynamic & JG_DYNAMIC_K;
    p->m = plan_class_size(p->m, m);
    p->n = plan_class_size(p->n, n);
    p->k = plan_class_size(p->k, k);
    p->batch = plan_class_size(p->batch, p->dynamic & JG_DYNAMIC_BATCH);
    if (p->op_a == JG_T ? m : k) p->lda = 0;
    if (p->op_b == JG_T ? k : n) p->ldb = 0;
    if (n) p->ldc = p->ld_residual = 0;
    /* Whether items share a matrix stays. */
    if (m || k) p->stride_a = p->stride_a != 0;
    if (k || n) p->stride_b = p->stride_b != 0;
    if (m || n) p->stride_c = p->stride_c != 0, p->stride_residual = p->stride_residual != 0;
}

problem_key tuned_key_of(const problem_key *key, jg_form form)
{
    problem_key general = *key;
    if (general.problem.dynamic) generalise(&general.problem);
    general.problem.form = (uint8_t)form;
    return general;
}

/* A dynamic batch has one class, as plan_slices has it. */
static problem_key class_key_of(const problem_key *key)
{
    problem_key class = tuned_key_of(key, JG_FORM_AUTO);
    problem *p = &class.problem;
    if (p->dynamic & JG_DYNAMIC_BATCH) p->batch = 1;
    p->lda = p->ldb = p->ldc = p->ld_residual = 0;
    p->stride_a = p->stride_b = p->stride_c = p->stride_residual = 0;
    memset(&class.access, 0, sizeof class.access);
    return class;
}

/* --- taking in --- */

/* In the place of an entry of the same key, which becomes the last one. Lock held. */
static void put(entry **map, const problem_key *key, const tuned_plan *what, atomic_size_t *count)
{
    entry *e;
    HASH_FIND(hh, *map, key, sizeof *key, e);
    if (e) remove_one(map, e, count);
    else if (atomic_load(count) >= MAX_PLANS) remove_one(map, *map, count);
    if (!(e = calloc(1, sizeof *e))) return;
    e->key = *key;
    e->plan = *what;
    HASH_ADD(hh, *map, key, sizeof e->key, e);
    if (e->hh.tbl) atomic_fetch_add(count, 1);
    else free(e);
}

void tuned_put(tuned *t, const problem_key *key, const tuned_plan *what)
{
    const problem_key class = class_key_of(key);
    entry *e = NULL;
    pthread_mutex_lock(&t->lock);
    put(&t->plans, key, what, &t->plan_count);
    HASH_FIND(hh, t->classes, &class, sizeof class, e);
    if (what->value.has_new_bits) put(&t->classes, &class, what, &t->class_count);
    else if (e) remove_one(&t->classes, e, &t->class_count);
    pthread_mutex_unlock(&t->lock);
}

static int take_row(void *user, const store_choice *row)
{
    problem_key key;
    tuned_plan what;
    jg_measured m;
    const char *kernel;
    if (!tuned_row_read(row, &key, &what.value, &kernel, &m)) return 0;
    what.us = m.us;
    what.planned_us = m.planned_us;
    what.created = row->created;
    tuned_put(user, &key, &what);
    return 0;
}

void tuned_read(tuned *t, images *files, const char *place)
{
    store *const stores[] = {files->factory, files->store};
    for (int i = 0; i < 2; i++)
        if (stores[i] && store_list_choices(stores[i], place, take_row, t) != STORE_OK)
            images_fault(files, stores[i], "cannot read recorded plans");
}

/* --- choosing --- */

static int find(tuned *t, entry *const *map, const problem_key *key, tuned_plan *out)
{
    entry *e;
    pthread_mutex_lock(&t->lock);
    HASH_FIND(hh, *map, key, sizeof *key, e);
    if (e) *out = e->plan;
    pthread_mutex_unlock(&t->lock);
    return e != NULL;
}

int tuned_find(tuned *t, const problem_key *key, jg_form form, tuned_plan *out)
{
    if (!atomic_load_explicit(&t->plan_count, memory_order_relaxed)) return 0;
    const problem_key general = tuned_key_of(key, form);
    return find(t, &t->plans, &general, out);
}

static int is_same(const tuned_value *value, const kernel_spec *spec)
{
    return value->family == spec->family && memcmp(&value->tile, &spec->tile, sizeof spec->tile) == 0;
}

int tuned_is(tuned *t, const problem_key *key, const kernel_spec *spec)
{
    tuned_plan found;
    return tuned_find(t, key, (jg_form)spec->form, &found) && is_same(&found.value, spec);
}

int tuned_slices(tuned *t, const problem_key *key, const limits *l)
{
    tuned_plan found;
    if (atomic_load_explicit(&t->class_count, memory_order_relaxed)) {
        const problem_key class = class_key_of(key);
        const int known = find(t, &t->classes, &class, &found), slices = known ? found.value.tile.slices : 0;
        if (known && plan_has_class(&key->problem, l, slices)) return slices;
    }
    return plan_slices(&key->problem, l);
}

/* Puts the recorded plan into *out if there is one that is legal and sums in so many slices. */
static int choose_recorded(tuned *t, const problem_key *key, jg_form form, const limits *l, int slices, plan *out)
{
    tuned_plan found;
    plan recorded;
    if (!tuned_find(t, key, form, &found) || (slices && found.value.tile.slices != slices)) return 0;
    if (!plan_with_tile(&key->problem, key->access, form, l, &found.value.tile, &recorded)) return 0;
    if (!is_same(&found.value, &recorded.spec)) return 0;
    *out = recorded;
    return 1;
}

jg_status tuned_choose(tuned *t, const problem_key *key, jg_form form, const limits *l, plan *out)
{
    if (!tuned_count(t)) return plan_choose(&key->problem, key->access, form, l, out);
    const int slices = tuned_slices(t, key, l);
    if (choose_recorded(t, key, form, l, slices, out)) return JG_OK;
    return plan_choose_sliced(&key->problem, key->access, form, l, slices, out);
}

jg_status tuned_choose_both(tuned *t, const problem_key *key, const limits *l, plan *own, plan *generic, int *has_generic)
{
    if (!tuned_count(t)) return plan_choose_both(&key->problem, key->access, l, own, generic, has_generic);
    const int slices = tuned_slices(t, key, l);
    RETURN_IF_ERROR(plan_choose_both_sliced(&key->problem, key->access, l, slices, own, generic, has_generic));
    choose_recorded(t, key, JG_FORM_SPECIALISED, l, slices, own);
    return JG_OK;
}
