/* uthash as the library uses it: out of memory is a failed addition (hh.tbl stays null), not the end of the process. */
#ifndef JG_HASH_H
#define JG_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
