/* The SQL of a store and the struct around its connection; only for the store_*.c files.
 *
 * In: a connection. Out: prepared statements by name, one mapping from SQLite's codes to ours, transactions.
 *
 * The schema, and why it is so:
 *   sources  each distinct source text once; a row goes when no record refers to it
 *   records  everything that never changes once written, under one checksum; blobs last, so that a listing skips them
 *   usage    the small part that changes at every use, apart from the blobs so that a use rewrites few pages; its `turn`
 *            is a counter, not a time: the order of use must survive a board that boots in 1970
 *   misses   since version 2: what was asked for in vain, with counts; of a bounded number.
 *            The checksum is over what does not change as counts do: key, target, label and record
 *   choices  since version 3: what was decided for a key at a place, and on what grounds; of a bounded number. Its `turn` is a
 *            counter as that of usage
 * Version 2 also has indexes of usage by turn and of misses by count: what goes first, or is listed first, is found at once.
 * A file of an older version is read as it is, and brought to version 3 when it is opened for writing.
 * An id is not unique; (id, key) is, because every writer looks before it inserts, in one transaction. */
#ifndef JG_CACHE_STORE_SQL_H
#define JG_CACHE_STORE_SQL_H

#include "cache/store.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

#define STORE_APPLICATION_ID 0x4a47454d /* "JGEM" */
#define STORE_SCHEMA_VERSION 3
#define STORE_FIRST_VERSION 1   /* the oldest that is read; it has no misses */
#define STORE_MISSES_VERSION 2  /* the first with misses */
#define STORE_CHOICES_VERSION 3 /* the first with choices */
#define STORE_BUSY_MS 2000
#define STORE_HURRY_BUSY_MS 20 /* what is left to write is not worth a long wait at exit */

enum {
    SQL_FIND = 0,
    SQL_READ_KEY,
    SQL_READ_ID,
    SQL_READ_ALL,
    SQL_LIST,
    SQL_DATA_VERSION,
    SQL_TOTALS,
    SQL_TURN,
    SQL_OLDEST,
    SQL_STAMP,
    SQL_FIND_SOURCE,
    SQL_ADD_SOURCE,
    SQL_DROP_SOURCE,
    SQL_ADD_RECORD,
    SQL_ADD_USAGE,
    SQL_DROP_RECORD,
    SQL_DROP_USAGE,
    SQL_HAS,
    SQL_OF_MISSES, /* from here on what a file of version 1 cannot do */
    SQL_ADD_MISS = SQL_OF_MISSES,
    SQL_RENEW_MISS,
    SQL_LIST_MISSES,
    SQL_GAIN,
    SQL_SUM_MISSES,
    SQL_TRIM_MISSES,
    SQL_OF_CHOICES, /* and from here on what one of version 2 cannot do */
    SQL_PUT_CHOICE = SQL_OF_CHOICES,
    SQL_LIST_CHOICES,
    SQL_LIST_PLACE,
    SQL_SUM_CHOICES,
    SQL_TRIM_CHOICES,
    SQL_STATEMENTS
};

/* Uses of one record that are not written yet. */
typedef struct stamp {
    int64_t entry;
    int64_t used;
    uint64_t uses;
} stamp;

/* What a put must know of the whole file. Every change that this connection makes is entered, and SQLite's data version tells of
 * the changes of others; so a count of everything is needed only after those. */
typedef struct sums {
    int known;
    int64_t data_version;
    uint64_t entries, bytes; /* bytes include the sources */
} sums;

struct store {
    pthread_mutex_t mutex;
    pid_t process; /* that opened it: a connection must not cross a fork */
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_STATEMENTS];
    int ready;     /* all of them are prepared, but for those that this version of the schema cannot have */
    int version;   /* of the file's schema */
    int read_only;
    int disk_full;  /* which is why it is */
    atomic_int hurried;
    double busy_since; /* ms; since when the call under way has been waiting for another process */
    uint64_t max_bytes;
    char *path;
    sums sums;
    stamp *stamps; /* in order of last use */
    size_t stamp_count, stamp_room;
};

/* Keeps a printf-style text for store_error, with the path in front, and returns status. The text is the calling
 * thread's own, so that threads sharing a store do not overwrite each other's. */
store_status store_fail(const store *s, store_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Turns the connection's last error into a status and a text that begins with what was being done. */
store_status store_sql_fail(const store *s, const char *doing);

/* Whether this library can read a file of that version; STORE_FOREIGN with a text if not. */
store_status store_sql_check_version(const store *s, int64_t version);

/* Creates the schema if the file is still empty, or brings it to this version, in one transaction (a race with another
 * process is fine), and turns to WAL, which lets others read while one writes. A file of an older version that cannot be
 * changed just now, e.g. since the disk is full, stays as it is: it serves without what it lacks. */
store_status store_sql_create(store *s);

/* Reads the version and prepares every statement, which also proves that the tables are there. */
store_status store_sql_prepare(store *s);
void store_sql_finalize(store *s);

/* Runs SQL without results. */
store_status store_sql_run(store *s, const char *sql, const char *doing);

/* Runs a statement, whose parameters are bound, to its end and resets it. */
store_status store_sql_finish(store *s, sqlite3_stmt *statement, const char *doing);

/* Resets a statement and forgets its parameters, which may point to memory of the caller. */
void store_sql_reset(sqlite3_stmt *statement);

store_status store_sql_begin(store *s);

/* Ends a transaction: commits if status is STORE_OK, else rolls back. Returns status, or why the commit failed. */
store_status store_sql_end(store *s, store_status status);

/* Empties a database however damaged, by SQLite's own locking reset, and makes the schema anew. */
store_status store_sql_recreate(store *s);

/* Sets what is kept per connection; see the table in store_sql.c. */
void store_sql_configure(store *s);

/* Locks the store. Fails in a child of the process that opened it, and after a recreation that failed. */
store_status store_enter(store *s);
store_status store_leave(store *s, store_status status);

/* STORE_OK if the file may be written: it is open for that, and still the one at its path. */
store_status store_check_writable(store *s);

/* Brings s->sums up to date. Its cost grows with the file only where another connection has written since. */
store_status store_add_up(store *s);

/* Remembers a use, to be written with the next put or at the end. */
void store_remember_use(store *s, int64_t entry);

/* Takes a damaged record out, so that the next put makes it good. */
store_status store_discard(store *s, const void *key, size_t key_bytes);

/* Binds id and key as parameters 1 and 2. */
void store_bind_key(sqlite3_stmt *statement, const void *key, size_t key_bytes);

/* Writes the batched use stamps in a transaction of their own, if there are any. */
store_status store_write_stamps(store *s);

/* Fills *record with pointers into the current row of a query of full records, valid until it is stepped or reset, and
 * verifies all of it. *entry is set in any case. */
store_status store_read_row(store *s, sqlite3_stmt *row, store_record *record, int64_t *entry);

/* The same for a row of SQL_LIST_MISSES. Returns 0 if it is damaged. */
int store_read_miss(sqlite3_stmt *row, store_miss *miss);

/* The same for a row of SQL_LIST_CHOICES or SQL_LIST_PLACE. */
int store_read_choice(sqlite3_stmt *row, store_choice *choice);

#endif
