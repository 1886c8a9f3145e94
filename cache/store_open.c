/* Opening, closing, sealing and recreating a store.
 *
 * In: a path. Out: a connection whose file is known to be ours, of this schema, and readable; or a status and a text.
 * Nothing is written, not even a lock taken, before the header has been seen: a foreign file stays as it is. */
#include "cache/store_path.h"
#include "cache/store_sql.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static store *allocate(const char *path, uint64_t max_bytes)
{
    store *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->path = strdup(path);
    if (!s->path || pthread_mutex_init(&s->mutex, NULL) != 0) {
        free(s->path);
        free(s);
        return NULL;
    }
    s->process = getpid();
    s->max_bytes = max_bytes;
    return s;
}

static void disconnect(store *s)
{
    store_sql_finalize(s);
    sqlite3_close(s->db);
    s->db = NULL;
}

static void destroy(store *s)
{
    disconnect(s);
    pthread_mutex_destroy(&s->mutex);
    free(s->stamps);
    free(s->path);
    free(s);
}

/* The host may have changed SQLite's defaults for shared caches; NOMUTEX since the store has its own mutex. */
static store_status connect_file(store *s, const char *name, int flags)
{
    flags |= SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(name, &s->db, flags, NULL) == SQLITE_OK) return STORE_OK;
    return s->db ? store_sql_fail(s, "open") : store_fail(s, STORE_NO_MEMORY, "open: out of memory");
}

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Reads the 100-byte header of SQLite's file format as it lies on disk: user_version at 60, application_id at 68. It goes
 * through SQLite's own descriptor, see store_path.h. The schema is made before the file turns to WAL, so that a sound
 * store always has both numbers there; but a change to a newer version may still lie in the -wal. */
static store_status check_header(store *s)
{
    unsigned char header[100];
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (!file || !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK)
        return store_fail(s, STORE_IO, "cannot be read");
    if (size == 0) return s->read_only ? store_fail(s, STORE_IO, "is empty") : STORE_OK;
    if (size < (sqlite3_int64)sizeof header) return store_fail(s, STORE_FOREIGN, "is not a jitgemm cache");
    if (file->pMethods->xRead(file, header, sizeof header, 0) != SQLITE_OK)
        return store_fail(s, STORE_IO, "cannot be read");
    if (memcmp(header, "SQLite format 3", 16) != 0 || big_endian(header + 68) != STORE_APPLICATION_ID)
        return store_fail(s, STORE_FOREIGN, "is not a jitgemm cache");
    return store_sql_check_version(s, big_endian(header + 60));
}

/* Connects and checks the header. The file is opened for writing even for a read-only store where that is allowed:
 * SQLite can then take away the -wal and -shm that reading makes, and query_only keeps the file as it is. */
static store_status open_checked(store *s, unsigned flags)
{
    store_status status = connect_file(s, s->path, SQLITE_OPEN_READWRITE);
    if (status != STORE_OK) return status;
    s->read_only = (flags & STORE_READ_ONLY) || sqlite3_db_readonly(s->db, "main") == 1;
    if ((status = check_header(s)) != STORE_OK) return status;
    if (s->read_only && store_path_exists(s->path, "-wal")) /* a crashed writer's: reading must not merge it */
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
    store_sql_configure(s);
    return STORE_OK;
}

/* Writes the URI that opens a file as immutable. SQLite takes its three special characters only when escaped. */
static int immutable_uri(const char *path, char *uri, size_t size)
{
    size_t used = (size_t)snprintf(uri, size, "file:");
    for (; *path && used + 4 < size; path++)
        used += (size_t)snprintf(uri + used, size - used, strchr("%?#", *path) ? "%%%02x" : "%c", *path);
    return !*path && (size_t)snprintf(uri + used, size - used, "?immutable=1") < size - used;
}

/* Opens a file as one that nobody writes. SQLite then neither locks it nor looks for what lies beside it, so that must be
 * nothing: without its -wal or its hot journal the file may be old, or torn in the middle of a change. */
static store_status open_immutable(store *s)
{
    char uri[3 * PATH_MAX + 32];
    disconnect(s);
    if (store_path_bytes(s->path, "-wal") || store_path_bytes(s->path, "-journal"))
        return store_fail(s, STORE_IO, "is not complete: a part of it lies beside it in its -wal or -journal; "
                          "seal the file (jg_cache_seal) before it is shipped");
    if (!immutable_uri(s->path, uri, sizeof uri)) return store_fail(s, STORE_IO, "path too long");
    store_status status = connect_file(s, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    s->read_only = 1;
    if (status == STORE_OK) status = check_header(s);
    if (status != STORE_OK) return status;
    store_sql_configure(s);
    return store_sql_prepare(s);
}

/* Whether opening failed for want of the side files that WAL needs, in which case the file can still be read as it is: without a
 * -wal, or with an empty one, nobody is using it for writing, and all of its content is in it. So it is where the folder is
 * read-only, and where the disk is full: then there is no room for a -shm, which anybody who uses the file would have made. */
static int lacks_side_files(store *s)
{
    const int code = sqlite3_errcode(s->db) & 0xff, system_code = sqlite3_system_errno(s->db);
    s->disk_full = code == SQLITE_FULL || (code == SQLITE_IOERR && (system_code == ENOSPC || system_code == EDQUOT));
    if (s->disk_full) return store_path_bytes(s->path, "") > 0;
    return (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) && !store_path_exists(s->path, "-wal");
}

static store_status open_connection(store *s, unsigned flags)
{
    if (flags & STORE_IMMUTABLE) return open_immutable(s);
    store_status status = open_checked(s, flags);
    if (status != STORE_OK) return status;
    if (!s->read_only) status = store_sql_create(s);
    if (status == STORE_OK) status = store_sql_prepare(s);
    return status == STORE_IO && lacks_side_files(s) ? open_immutable(s) : status;
}

store_status store_open(const char *path, unsigned flags, uint64_t max_bytes, store **out, char *error, size_t error_size)
{
    char resolved[PATH_MAX];
    *out = NULL;
    if (flags & STORE_IMMUTABLE) flags |= STORE_READ_ONLY;
    store_status status = store_path_prepare(path, !(flags & STORE_READ_ONLY), resolved, error, error_size);
    if (status != STORE_OK) return status;
    store *s = allocate(resolved, max_bytes);
    if (!s) {
        snprintf(error, error_size, "%s: out of memory", resolved);
        return STORE_NO_MEMORY;
    }
    status = open_connection(s, flags);
    if (status == STORE_OK) {
        *out = s;
        return STORE_OK;
    }
    snprintf(error, error_size, "%s", store_error(s));
    destroy(s);
    return status;
}

store_status store_recreate(const char *path, char *error, size_t error_size)
{
    char resolved[PATH_MAX];
    store_status status = store_path_prepare(path, 0, resolved, error, error_size);
    if (status != STORE_OK) return status;
    store *s = allocate(resolved, 0);
    if (!s) {
        snprintf(error, error_size, "%s: out of memory", resolved);
        return STORE_NO_MEMORY;
    }
    status = open_checked(s, 0);
    if (status == STORE_OK && s->read_only) status = store_fail(s, STORE_IO, "the file is read-only");
    if (status == STORE_OK) status = store_sql_recreate(s);
    if (status != STORE_OK) snprintf(error, error_size, "%s", store_error(s));
    destroy(s);
    return status;
}

static int keep_mode(void *user, int columns, char **values, char **names)
{
    (void)names;
    if (columns > 0 && values[0]) snprintf(user, 16, "%s", values[0]);
    return 0;
}

/* Leaves WAL, which is possible only for the one connection that has the file open. */
static store_status leave_wal(store *s)
{
    char mode[16] = "";
    int code = sqlite3_exec(s->db, "PRAGMA journal_mode=DELETE", keep_mode, mode, NULL) & 0xff;
    if (code == SQLITE_OK && strcmp(mode, "delete") == 0) return STORE_OK;
    if (code == SQLITE_OK || code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return store_fail(s, STORE_IO, "seal: somebody else has the file open; close it there first");
    return store_sql_fail(s, "seal");
}

store_status store_seal(store *s)
{
    store_status status = store_enter(s);
    if (status != STORE_OK) return status;
    status = store_check_writable(s);
    if (status == STORE_OK) status = store_write_stamps(s);
    if (status == STORE_OK) status = leave_wal(s);
    if (status == STORE_OK) status = store_sql_run(s, "VACUUM", "give the space back");
    return store_leave(s, status);
}

void store_close(store *s)
{
    /* In a child of fork() even closing would touch the parent's locks and files: the memory is left to the exit. */
    if (!s || s->process != getpid()) return;
    store_hurry(s);
    store_write_stamps(s);
    destroy(s);
}

const char *store_path(const store *s)
{
    return s->path;
}
