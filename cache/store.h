/* Disk store: an LRU of records in one SQLite file, shared by any number of processes.
 *
 * In: records, each a key (bytes; the authority), texts and blobs. Out: the same records, verified:
 * a record whose checksum does not match is never handed out. It knows neither matrices nor CUDA.
 *
 * A fault costs time, never a call: every function returns a store_status; the caller goes on without.
 * A store is thread-safe (one internal mutex); each call may block for disk, and up to 2 s for another process's lock.
 * After fork() the child must open a store of its own: on one opened before, every call gives STORE_IO there, and
 * store_close does nothing. */
#ifndef JG_CACHE_STORE_H
#define JG_CACHE_STORE_H

#include <stddef.h>
#include <stdint.h>

typedef struct store store;

typedef enum store_status {
    STORE_OK = 0,
    STORE_ABSENT,   /* no such record */
    STORE_CORRUPT,  /* the record, or the file, is damaged */
    STORE_FOREIGN,  /* the file is not a store, or of another schema version; it is left as it is */
    STORE_UNSAFE,   /* the folder or file can be written by others, is a symbolic link, or is not ours */
    STORE_IO,       /* missing, unreadable, read-only, locked for too long, disk full ... */
    STORE_TOO_BIG,  /* one record is over the cap */
    STORE_NO_MEMORY
} store_status;

#define STORE_READ_ONLY 1u  /* never changes the file: no use stamps, no creation */
#define STORE_IMMUTABLE 2u  /* and nobody else writes it while it is open: no lock is taken and no side file made, so that it can
                             * lie in a read-only place. STORE_IO if a part of it lies beside it, in a -wal or -journal */

/* A file or folder that cannot be written is opened for reading even without the flag; store_put then gives STORE_IO. */

/* One record. Text members may be null when putting (stored as ""). */
typedef struct store_record {
    const void *key;
    size_t key_bytes;
    const char *name;        /* readable name */
    const char *target;      /* the machine the binary is for, e.g. "sm_87" */
    const char *label;       /* what asked for it */
    const char *provenance;  /* who built it, with which options */
    const void *binary;      /* runs on `target` only; may be empty */
    size_t binary_bytes;
    const void *portable;    /* a form that others can translate; may be empty */
    size_t portable_bytes;
    const char *defines;     /* what goes before the source to build this record */
    const char *source;      /* source text, stored once for all records that share it */
    double build_ms;
    /* Filled in by the store when getting: */
    uint64_t id;             /* XXH64 of the key */
    int64_t created, used;   /* Unix seconds */
    uint64_t uses;
    uint64_t record_bytes;   /* what it counts towards the cap: key, texts and blobs; a source counts once for all */
} store_record;

/* Opens (and, unless read-only, creates) a store. Missing parent folders are made with mode 0700, the file with 0600 whatever
 * the umask. Who may own the file and its folder: see store_path.h.
 * max_bytes: cap on the content (store_totals.bytes), enforced at each put; 0: none.
 * On failure *out is null and error (of error_size bytes) holds a text with the path and the reason. */
store_status store_open(const char *path, unsigned flags, uint64_t max_bytes, store **out, char *error, size_t error_size);

/* From now on no call waits for other processes or threads that have the store for longer than about 20 ms; it fails with STORE_IO
 * then. For a program that is about to close it. Null is allowed; any thread may call, also while others are waiting. */
void store_hurry(store *s);

/* Writes batched use stamps, in a hurry, and closes. Null is allowed. */
void store_close(store *s);

/* The file's absolute path, with symbolic links in its folder resolved. */
const char *store_path(const store *s);

/* The text of the calling thread's last failure on a store; valid until its next failure. */
const char *store_error(const store *s);

/* Reads the record of a key. On STORE_OK *out is filled in and owns its memory: give it back with store_record_free.
 * A corrupt record is removed (unless read-only) and reported as STORE_CORRUPT. Counts as a use; stamps are batched. */
store_status store_get(store *s, const void *key, size_t key_bytes, store_record *out);

/* Reads a record by id, e.g. from a listing; verifies it, changes nothing. */
store_status store_get_id(store *s, uint64_t id, store_record *out);

void store_record_free(store_record *record);

/* Writes a record, replacing one of the same key, then evicts least recently used records until the cap holds.
 * *evicted (may be null) is set to how many went. */
store_status store_put(store *s, const store_record *record, size_t *evicted);

/* Visits all records, most recently used first, without their blobs and source (those pointers are null, the sizes are
 * right), until visit returns nonzero; what comes after that costs nothing. Checksums cannot be verified without the blobs. A
 * record whose use stamp was lost, which store_verify tells of, is left out. visit must not use the store. */
store_status store_list(store *s, int (*visit)(void *user, const store_record *record), void *user);

typedef struct store_totals {
    uint64_t entries;
    uint64_t bytes;      /* content: the sum of record_bytes and of the distinct sources */
    uint64_t file_bytes; /* on disk, with what SQLite keeps beside the file */
    uint64_t max_bytes;  /* the cap on bytes; 0: none */
} store_totals;
store_status store_get_totals(store *s, store_totals *totals);

/* Verifies the database structure and every record's checksum; report (may be null) is called for each fault, with id 0 if
 * it is not one record's, and must not use the store. STORE_CORRUPT if there is any. */
store_status store_verify(store *s, void (*report)(void *user, uint64_t id, const char *what), void *user,
                          size_t *good, size_t *bad);

/* Whether there is a record with this id; damaged ones count. Reads an index only. */
store_status store_has(store *s, uint64_t id, int *has);

/* --- misses: what was asked for and not there, with counts ----------------------------------------------------------- */

#define STORE_MAX_MISSES 4096 /* kept; the rarest go first, of equal ones the least recently used. Outside the cap on bytes */

typedef struct store_miss {
    const void *key;         /* what was asked for, for the caller to understand */
    size_t key_bytes;
    const char *target;      /* as of a record */
    const char *label;       /* readable */
    uint64_t record;         /* id of the record that would have served */
    uint64_t count;          /* to add; when listing: the sum, which is 0 where only a gain was recorded */
    double gain;             /* what having the record is worth, as measured; 0: not known (when adding: leave as it is) */
    /* Filled in by the store when listing: */
    int64_t used;            /* last, Unix seconds */
    int cached;              /* there is a record with that id */
} store_miss;

/* Adds counts, in one transaction; makes rows that are not there. (key, target) identify a row. A gain can be set with count 0.
 * STORE_IO also where a file of the first format could not be brought to the present one when it was opened; there is nothing
 * to list in it then. A damaged row is passed over by the other calls, and made good by adding to it. */
store_status store_add_misses(store *s, const store_miss *misses, size_t count);

/* Gives a miss that is there another label and record, and counts nothing; one that is not there stays away. */
store_status store_renew_miss(store *s, const store_miss *miss);

/* Visits the misses, most counted first, those of one target or of all (null), until visit returns nonzero. visit must not use
 * the store. */
store_status store_list_misses(store *s, const char *target, int (*visit)(void *user, const store_miss *miss), void *user);

/* The gain recorded for a miss; 0 if there is none. */
store_status store_get_gain(store *s, const void *key, size_t key_bytes, const char *target, double *gain);

/* *removed may be null. */
store_status store_clear_misses(store *s, size_t *removed);

/* --- choices: what was decided for a key at a place, and on what grounds ----------------------------------------------- */

#define STORE_MAX_CHOICES 4096 /* kept, of all places together; the oldest go first. Outside the cap on bytes */

typedef struct store_choice {
    const void *key;         /* what it was decided for, for the caller to understand */
    size_t key_bytes;
    const char *place;       /* where it holds */
    const char *label;       /* readable */
    const void *value;       /* what was decided */
    size_t value_bytes;
    const void *details;     /* and why */
    size_t details_bytes;
    uint64_t record;         /* id of the record that goes with it */
    /* Filled in by the store when listing: */
    int64_t created;         /* Unix seconds */
    int cached;              /* there is a record with that id */
} store_choice;

/* Writes a choice, in the place of one with the same key and place. STORE_IO also where a file of an older format could not be
 * brought to the present one when it was opened; there is nothing to list in it then. Damaged rows are passed over by the other
 * calls, and made good by writing them anew. */
store_status store_put_choice(store *s, const store_choice *choice);

/* Visits the choices, until visit returns nonzero: those of one place from the oldest to the latest, or all (null) by place and then
 * by label. visit must not use the store. */
store_status store_list_choices(store *s, const char *place, int (*visit)(void *user, const store_choice *choice), void *user);

/* *removed may be null. */
store_status store_clear_choices(store *s, size_t *removed);

/* Makes the file complete in itself: no -wal, no journal mode that needs side files, no free pages. For a file that is to be
 * read from a read-only place (STORE_IMMUTABLE). STORE_IO if another connection has it open. The next store_open for writing
 * undoes the journal mode, which does no harm once that is closed. */
store_status store_seal(store *s);

/* Removes all records, misses and choices and gives the space back to the file system; where other processes are reading, when the last of
 * them closes. A store found damaged is made anew in place. *removed (may be null): how many records, as far as known. */
store_status store_clear(store *s, size_t *removed);

/* Empties a file that store_open refuses as STORE_CORRUPT and makes it a sound store, in place and under SQLite's locks.
 * A foreign file is left as it is. Errors and `error` as for store_open. */
store_status store_recreate(const char *path, char *error, size_t error_size);

#endif
