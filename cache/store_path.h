/* The file system side of a store: is this a place where a cache file may safely be?
 *
 * In: a path from the user. Out: the absolute path of a file that is there, is ours and cannot be changed by others.
 * It never opens an existing file: closing a descriptor drops the POSIX locks that SQLite holds on it in this process. */
#ifndef JG_CACHE_STORE_PATH_H
#define JG_CACHE_STORE_PATH_H

#include "cache/store.h"

/* Resolves path into `resolved` (of PATH_MAX bytes): the folder's real path, and the file's own name, which may not be a
 * symbolic link. With `create`, makes missing folders (0700) and an empty file (0600) whatever the umask.
 *
 * Refused as STORE_UNSAFE: a folder that group or others can write, unless it is sticky as /tmp is; a folder, a file or a
 * side file (-wal, -shm, -journal) of another user; a file that others can write, or that is not a regular file.
 * What belongs to root is accepted, since root can do as it likes anyway (a factory file is root's). And root accepts what
 * belongs to anybody: in a container the mounted cache often belongs to a user of the host, and an operator must be able
 * to look into a user's cache. SQLite gives the side files that root makes to the owner of the file. */
store_status store_path_prepare(const char *path, int create, char *resolved, char *error, size_t error_size);

/* Whether a file at a resolved path is one that only we and root can change: STORE_OK, STORE_ABSENT, STORE_UNSAFE or STORE_IO. */
store_status store_path_check(const char *file);

/* Bytes of the file with this suffix ("", "-wal"); 0 if it is not there. */
uint64_t store_path_bytes(const char *file, const char *suffix);

/* Whether the file with this suffix is there. */
int store_path_exists(const char *file, const char *suffix);

#endif
