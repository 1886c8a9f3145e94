/* A folder of its own for a test, and a few things that tests do with files in it.
 *
 * Nothing outside the folder is touched, and scratch_remove takes all of it away. */
#ifndef JG_TESTS_SCRATCH_H
#define JG_TESTS_SCRATCH_H

#include <stddef.h>

/* Makes a new folder, mode 0700, below $TMPDIR or /tmp; its resolved path is put into `folder` (4096 bytes).
 * Aborts on failure, as all of these do. */
void scratch_make(char *folder);

/* Removes the folder and everything in it, whatever the modes. */
void scratch_remove(const char *folder);

/* "folder/name" in one of a few static buffers; good for the next seven calls. */
const char *scratch_path(const char *folder, const char *name);

void scratch_write(const char *file, const void *data, size_t bytes);

/* A file's content, followed by a 0; the caller frees it. Null if it cannot be read. */
unsigned char *scratch_read(const char *file, size_t *bytes);

int scratch_exists(const char *file);

/* Permission bits; -1 if it is not there. */
int scratch_mode(const char *file);

/* Runs `body` in a child process, as another user if uid is not 0, and returns its exit status (128 + signal if killed). */
int scratch_child(int (*body)(void *user), void *user, unsigned uid);

#endif
