/* Claims: which process is making which record just now.
 *
 * A claim is a lock on one byte of a file beside the store's ("kernels.db-claims"), which the kernel of the operating system
 * takes away when the process ends, however it ends; so nothing is ever left behind but an empty file. Open-file-description
 * locks: two contexts of one process exclude each other too. Where the file cannot be made, every claim is granted: work
 * may then be done twice, and no more than that. Thread-safe.
 *
 * A child of fork() has none of its parent's claims and keeps none of them alive; the objects that it inherits grant it
 * everything, and to close them there does no harm. */
#ifndef JG_CACHE_CLAIMS_H
#define JG_CACHE_CLAIMS_H

#include <stdint.h>

typedef struct claims claims;

/* Opens the file beside a store's (its store_path), with the same mode and owner. Null if out of memory. */
claims *claims_open(const char *store_path);

/* 1: the claim is ours until claims_release or claims_close; 0: somebody else has it. Does not block. What this object has
 * already is granted again, and one release ends it: threads that share an object keep out of each other's way themselves. */
int claims_try(claims *c, uint64_t id);
void claims_release(claims *c, uint64_t id);

/* Null is allowed. */
void claims_close(claims *c);

#endif
