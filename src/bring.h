/* What a worker asks of the library, done on a context's images: see worker_hooks. */
#ifndef JG_BRING_H
#define JG_BRING_H

#include "images.h"
#include "worker.h"

/* Fills in the hooks; they keep a reference to the images until release. Error: NO_MEMORY. */
jg_status bring_hooks(images *i, int sm, worker_hooks *out);

#endif
