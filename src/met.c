/* A met: a problem that ran on a generic kernel, counted and shared by its dispatch and the worker (worker.h).
 *
 * In: the problem's key and the kernel it wants. Out: a reference-counted record, so that either side may go first. */
#include "worker.h"

#include <stdlib.h>

met *met_create(const problem_key *key, const kernel_spec *spec, int pays)
{
    met *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->key = *key;
    m->spec = *spec;
    kernel_encode_key(spec, &m->kernel);
    m->pays = pays;
    atomic_init(&m->references, 1);
    return m;
}

met *met_keep(met *m)
{
    atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
    return m;
}

void met_drop(met *m)
{
    if (m && atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) == 1) free(m);
}
