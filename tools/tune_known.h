/* What earlier runs have tuned: a cache file and a place in, recorded plans out. */
#ifndef JG_TOOLS_TUNE_KNOWN_H
#define JG_TOOLS_TUNE_KNOWN_H

#include "tune_list.h"

/* Takes what the cache file `path` (null: the default one) has recorded for the list's problems and `place`. A problem whose record is
 * of as many candidates as would be measured now (rank.count, of no fewer than rank.all) becomes KNOWN. One that was measured in part,
 * since a budget ended, stays LEFT, and goes on from there if the planner names the same candidates. context: of the same place.
 * *total: recorded plans for the place. Returns null, or why the file cannot be read, valid until the library's next failing call. */
const char *tune_known_read(tune_list *list, jg_context *context, const char *path, const char *place, size_t *total);

#endif
