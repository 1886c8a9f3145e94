/* What earlier runs have tuned: a cache file and a place in, recorded plans out. */
#ifndef JG_TOOLS_TUNE_KNOWN_H
#define JG_TOOLS_TUNE_KNOWN_H

#include "tune_list.h"

/* Marks as KNOWN, with what is recorded, problems that have a plan for `place` in the cache file `path` (null: the default one) and
 * whose record is of as many candidates as would be measured now (rank.count, of no fewer than rank.all). *total: recorded plans for
 * the place. Returns null, or why the file cannot be read, valid until the library's next failing call. */
const char *tune_known_read(tune_list *list, const char *path, const char *place, size_t *total);

#endif
