/* utlist as the library uses it: without its assertions, since nothing here may end the process. */
#ifndef JG_LIST_H
#define JG_LIST_H

#ifndef NDEBUG
#define NDEBUG
#endif
#include <utlist.h>

#endif
