/* Size lists: problem texts in, jg_problem structs out.
 *
 * A list is a text file with one problem a line, as jg_problem_parse reads it. `#` starts a comment; blank
 * lines, blanks around a problem and CRLF line ends are ignored. Tools and the demo share this reader, so
 * that one file can feed all of them. */
#ifndef JG_TOOLS_SIZELIST_H
#define JG_TOOLS_SIZELIST_H

#include <stddef.h>

#include "jitgemm.h"

#define SIZELIST_LINE_MAX 512 /* bytes in a line, without its end; far more than any problem needs */

/* Zero-initialise; free with sizelist_free. `error` says why the last failing call failed. */
typedef struct sizelist {
    jg_problem *items;
    size_t count, capacity;
    char error[SIZELIST_LINE_MAX + 1024];
} sizelist;

/* Adds one problem text. Each of `defaults` gives the words that the text leaves out, and the text is added
 * once for each; variants that come out equal (because the text has all the words) are added once.
 * Returns 0, or -1 with list->error set and the list as it was. */
int sizelist_add(sizelist *list, const char *text, const jg_problem *defaults, size_t default_count);

/* Adds all problems of a file; "-" is standard input. Returns 0, or -1 with list->error = "FILE:LINE: reason"
 * (without LINE where the file as a whole cannot be read); the problems of earlier lines stay in the list. */
int sizelist_read(sizelist *list, const char *path, const jg_problem *defaults, size_t default_count);

/* The same for a list that is in memory, ended by 0; errors begin with `name` instead of the file's. */
int sizelist_read_text(sizelist *list, const char *name, const char *text, const jg_problem *defaults, size_t default_count);

/* Reads what sizes that say nothing of it are of: a type such as "f16" or "f16-f32", a mode of math, which is f32's then, such as
 * "tf32", and any further words of a problem text behind colons, such as "f16:nt" or "u8.s8:relu". What is not said is 0 in
 * *problem. Returns 0, or -1 if it is no such thing. The library's own grammar is the judge, so that new words need no change
 * here. */
int sizelist_type(const char *word, size_t length, jg_problem *problem);

/* Frees what the list holds and makes it empty. */
void sizelist_free(sizelist *list);

#endif
