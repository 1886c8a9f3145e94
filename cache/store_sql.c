/* SQL texts, statements, transactions and error mapping of a store. See store_sql.h. */
#include "cache/store_sql.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEXT_OF(number) #number
#define STRING_OF(macro) TEXT_OF(macro)

/* What version 2 added to version 1. */
#define SECOND_VERSION                                                                                              \
    "CREATE TABLE misses(miss INTEGER PRIMARY KEY, key BLOB NOT NULL, target TEXT NOT NULL, label TEXT NOT NULL,"     \
    " record INTEGER NOT NULL, count INTEGER NOT NULL, gain REAL NOT NULL, used INTEGER NOT NULL,"                    \
    " turn INTEGER NOT NULL, checksum INTEGER NOT NULL, UNIQUE(key, target));"                                        \
    "CREATE INDEX misses_by_count ON misses(count, turn);"                                                            \
    "CREATE INDEX usage_by_turn ON usage(turn);"

/* What version 3 added to version 2. */
#define THIRD_VERSION                                                                                               \
    "CREATE TABLE choices(choice INTEGER PRIMARY KEY, place TEXT NOT NULL, key BLOB NOT NULL, label TEXT NOT NULL,"   \
    " record INTEGER NOT NULL, created INTEGER NOT NULL, turn INTEGER NOT NULL, checksum INTEGER NOT NULL,"           \
    " value BLOB NOT NULL, details BLOB NOT NULL, UNIQUE(place, key));"                                               \
    "CREATE INDEX choices_by_turn ON choices(turn);"                                                                  \
    "PRAGMA user_version=" STRING_OF(STORE_SCHEMA_VERSION) ";"

static const char schema[] =
    "CREATE TABLE sources(source INTEGER PRIMARY KEY, hash INTEGER NOT NULL, text BLOB NOT NULL);"
    "CREATE INDEX sources_by_hash ON sources(hash);"
    "CREATE TABLE records(entry INTEGER PRIMARY KEY, id INTEGER NOT NULL, source INTEGER,"
    " created INTEGER NOT NULL, build_ms REAL NOT NULL, checksum INTEGER NOT NULL, key BLOB NOT NULL,"
    " name TEXT NOT NULL, target TEXT NOT NULL, label TEXT NOT NULL, provenance TEXT NOT NULL,"
    " defines TEXT NOT NULL, binary BLOB NOT NULL, portable BLOB NOT NULL);"
    "CREATE INDEX records_by_id ON records(id);"
    "CREATE INDEX records_by_source ON records(source);"
    "CREATE TABLE usage(entry INTEGER PRIMARY KEY, turn INTEGER NOT NULL, used INTEGER NOT NULL,"
    " uses INTEGER NOT NULL, bytes INTEGER NOT NULL);"
    "PRAGMA application_id=" STRING_OF(STORE_APPLICATION_ID) ";"
    SECOND_VERSION THIRD_VERSION;

/* Columns 0 to 13 of every record row; the last three are 14 source, 15 binary, 16 portable (or their lengths). */
#define HEAD_COLUMNS                                                                                  \
    "SELECT r.entry, r.id, r.created, u.used, u.uses, u.bytes, r.build_ms, r.checksum, r.key, r.name," \
    " r.target, r.label, r.provenance, r.defines, "
#define ROWS " FROM records r LEFT JOIN usage u ON u.entry=r.entry LEFT JOIN sources s ON s.source=r.source "
#define FULL_ROWS HEAD_COLUMNS "s.text, r.binary, r.portable" ROWS
#define CHOICES                                                                  \
    "SELECT place, key, label, record, created, turn, checksum, value, details," \
    " EXISTS(SELECT 1 FROM records WHERE id=record) FROM choices "

static const char *const texts[SQL_STATEMENTS] = {
    [SQL_FIND] = "SELECT r.entry, r.source, u.bytes, LENGTH(s.text)" ROWS "WHERE r.id=?1 AND r.key=?2",
    [SQL_READ_KEY] = FULL_ROWS "WHERE r.id=?1 AND r.key=?2",
    [SQL_READ_ID] = FULL_ROWS "WHERE r.id=?1 ORDER BY u.turn DESC LIMIT 1",
    [SQL_READ_ALL] = FULL_ROWS "ORDER BY r.entry",
    /* CROSS: by usage_by_turn, so that the first rows cost nothing for the others. */
    [SQL_LIST] = HEAD_COLUMNS "NULL, LENGTH(r.binary), LENGTH(r.portable) FROM usage u CROSS JOIN records r"
                              " ON r.entry=u.entry ORDER BY u.turn DESC, u.entry DESC",
    [SQL_DATA_VERSION] = "PRAGMA data_version",
    [SQL_TOTALS] = "SELECT (SELECT COUNT(*) FROM records), (SELECT IFNULL(SUM(bytes),0) FROM usage),"
                   " (SELECT IFNULL(SUM(LENGTH(text)),0) FROM sources)",
    [SQL_TURN] = "SELECT IFNULL(MAX(turn),0) FROM usage",
    [SQL_OLDEST] = "SELECT u.entry, r.source, u.bytes, LENGTH(s.text) FROM usage u"
                   " LEFT JOIN records r ON r.entry=u.entry LEFT JOIN sources s ON s.source=r.source"
                   " ORDER BY u.turn, u.entry LIMIT 1",
    [SQL_STAMP] = "UPDATE usage SET turn=?2, used=?3, uses=uses+?4 WHERE entry=?1",
    [SQL_FIND_SOURCE] = "SELECT source FROM sources WHERE hash=?1 AND text=?2",
    [SQL_ADD_SOURCE] = "INSERT INTO sources(hash, text) VALUES(?1, ?2)",
    [SQL_DROP_SOURCE] = "DELETE FROM sources WHERE source=?1 AND NOT EXISTS(SELECT 1 FROM records WHERE source=?1)",
    [SQL_ADD_RECORD] = "INSERT INTO records(id, source, created, build_ms, checksum, key, name, target, label,"
                       " provenance, defines, binary, portable) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
    [SQL_ADD_USAGE] = "INSERT OR REPLACE INTO usage(entry, turn, used, uses, bytes) VALUES(?1, ?2, ?3, 0, ?4)",
    [SQL_DROP_RECORD] = "DELETE FROM records WHERE entry=?1",
    [SQL_DROP_USAGE] = "DELETE FROM usage WHERE entry=?1",
    [SQL_HAS] = "SELECT EXISTS(SELECT 1 FROM records WHERE id=?1)",
    [SQL_ADD_MISS] = "INSERT INTO misses(key, target, label, record, count, gain, used, turn, checksum)"
                     " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9) ON CONFLICT(key, target) DO UPDATE SET label=excluded.label,"
                     " record=excluded.record, checksum=excluded.checksum,"
                     " count=MIN(count+excluded.count, 4611686018427387904),"
                     " gain=CASE WHEN excluded.gain>0 THEN excluded.gain ELSE gain END,"
                     " used=CASE WHEN excluded.count>0 THEN excluded.used ELSE used END, turn=excluded.turn",
    [SQL_RENEW_MISS] = "UPDATE misses SET label=?3, record=?4, checksum=?5 WHERE key=?1 AND target=?2",
    [SQL_LIST_MISSES] = "SELECT key, target, label, record, count, gain, used, checksum,"
                        " EXISTS(SELECT 1 FROM records WHERE id=record) FROM misses"
                        " WHERE ?1 IS NULL OR target=?1 ORDER BY count DESC, turn DESC",
    [SQL_GAIN] = "SELECT gain FROM misses WHERE key=?1 AND target=?2",
    [SQL_SUM_MISSES] = "SELECT COUNT(*), IFNULL(MAX(turn),0) FROM misses",
    [SQL_TRIM_MISSES] = "DELETE FROM misses WHERE miss IN (SELECT miss FROM misses ORDER BY count, turn LIMIT ?1)",
    [SQL_PUT_CHOICE] = "INSERT OR REPLACE INTO choices(place, key, label, record, created, turn, checksum, value, details)"
                       " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SQL_LIST_CHOICES] = CHOICES "ORDER BY place, label, turn",
    [SQL_LIST_PLACE] = CHOICES "WHERE place=?1 ORDER BY turn",
    [SQL_SUM_CHOICES] = "SELECT COUNT(*), IFNULL(MAX(turn),0) FROM choices",
    [SQL_TRIM_CHOICES] = "DELETE FROM choices WHERE choice IN (SELECT choice FROM choices ORDER BY turn, choice LIMIT ?1)",
};

static _Thread_local char error_text[1024];

const char *store_error(const store *s)
{
    (void)s; /* the text belongs to the thread, see store_fail */
    return error_text;
}

store_status store_fail(const store *s, store_status status, const char *format, ...)
{
    va_list args;
    int used = snprintf(error_text, sizeof error_text, "%s: ", s->path);
    if (used < 0 || (size_t)used >= sizeof error_text) return status;
    va_start(args, format);
    vsnprintf(error_text + used, sizeof error_text - (size_t)used, format, args);
    va_end(args);
    return status;
}

/* What SQLite's primary result codes mean here; all others are STORE_IO with SQLite's own words. */
static const struct {
    int code;
    store_status status;
    const char *text;
} meanings[] = {
    {SQLITE_CORRUPT, STORE_CORRUPT, "the file is damaged; `jitgemm-cache clear` makes it anew"},
    {SQLITE_NOTADB, STORE_CORRUPT, "the file is damaged; `jitgemm-cache clear` makes it anew"},
    {SQLITE_ERROR, STORE_CORRUPT, "the file's structure is damaged; `jitgemm-cache clear` makes it anew"},
    {SQLITE_CONSTRAINT, STORE_CORRUPT, "the file's structure is damaged; `jitgemm-cache clear` makes it anew"},
    {SQLITE_MISMATCH, STORE_CORRUPT, "the file's structure is damaged; `jitgemm-cache clear` makes it anew"},
    {SQLITE_TOOBIG, STORE_TOO_BIG, "the record is larger than SQLite allows"},
    {SQLITE_NOMEM, STORE_NO_MEMORY, "out of memory"},
    {SQLITE_FULL, STORE_IO, "the disk is full"},
    {SQLITE_BUSY, STORE_IO, "another process keeps the file locked"},
    {SQLITE_LOCKED, STORE_IO, "another process keeps the file locked"},
    {SQLITE_READONLY, STORE_IO, "the file, its folder or its file system is read-only"},
    {SQLITE_CANTOPEN, STORE_IO, "the file, or its -wal or -shm beside it, cannot be opened"},
};

store_status store_sql_fail(const store *s, const char *doing)
{
    int code = sqlite3_extended_errcode(s->db);
    if (code == SQLITE_IOERR_NOMEM) return store_fail(s, STORE_NO_MEMORY, "%s: out of memory", doing);
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].code == (code & 0xff))
            return store_fail(s, meanings[i].status, "%s: %s (%s)", doing, meanings[i].text, sqlite3_errmsg(s->db));
    int system_code = sqlite3_system_errno(s->db);
    return store_fail(s, STORE_IO, "%s: %s (%s)", doing, sqlite3_errmsg(s->db),
                      system_code ? strerror(system_code) : "no system error");
}

store_status store_sql_run(store *s, const char *sql, const char *doing)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? STORE_OK : store_sql_fail(s, doing);
}

void store_sql_reset(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

store_status store_sql_finish(store *s, sqlite3_stmt *statement, const char *doing)
{
    int code;
    do {
        code = sqlite3_step(statement);
    } while (code == SQLITE_ROW);
    store_status status = code == SQLITE_DONE ? STORE_OK : store_sql_fail(s, doing);
    store_sql_reset(statement);
    return status;
}

store_status store_sql_begin(store *s)
{
    return store_sql_run(s, "BEGIN IMMEDIATE", "begin to write");
}

store_status store_sql_end(store *s, store_status status)
{
    if (status == STORE_OK) status = store_sql_run(s, "COMMIT", "write");
    /* A full disk rolls back by itself, and so may other faults. */
    if (status != STORE_OK) s->sums.known = 0;
    if (status != STORE_OK && !sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* Reads one number; -1 if that fails. */
static int64_t read_number(store *s, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t number = -1;
    if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static int is_new(store *s)
{
    return read_number(s, "SELECT COUNT(*) FROM sqlite_master") == 0;
}

static int is_older(store *s)
{
    int64_t version = read_number(s, "PRAGMA user_version");
    return version >= STORE_FIRST_VERSION && version < STORE_SCHEMA_VERSION;
}

static store_status add_newer_tables(store *s)
{
    const int is_first = read_number(s, "PRAGMA user_version") < STORE_MISSES_VERSION;
    return store_sql_run(s, is_first ? SECOND_VERSION THIRD_VERSION : THIRD_VERSION, "add the newer tables");
}

store_status store_sql_check_version(const store *s, int64_t version)
{
    if (version >= STORE_FIRST_VERSION && version <= STORE_SCHEMA_VERSION) return STORE_OK;
    return store_fail(s, STORE_FOREIGN, "is a jitgemm cache of format %lld, and this library needs %d; "
                      "delete it or choose another path", (long long)version, STORE_SCHEMA_VERSION);
}

store_status store_sql_create(store *s)
{
    store_status status = STORE_OK;
    if (is_new(s) || is_older(s)) {
        status = store_sql_begin(s);
        /* Another process may have done it between the two looks. */
        if (status == STORE_OK && is_new(s)) status = store_sql_run(s, schema, "create the tables");
        else if (status == STORE_OK && is_older(s)) status = add_newer_tables(s);
        status = store_sql_end(s, status);
        if (status == STORE_IO && is_older(s)) status = STORE_OK;
    }
    /* Only now: the header must be in the file itself, not in a -wal beside it, see check_header. Where the file system
     * cannot do WAL, or another process is just using the file, the store works on without. */
    if (status == STORE_OK) sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
    return status;
}

store_status store_sql_prepare(store *s)
{
    int64_t version = read_number(s, "PRAGMA user_version");
    if (version < 0) return store_sql_fail(s, "read the tables");
    store_status status = store_sql_check_version(s, version);
    if (status != STORE_OK) return status;
    s->version = (int)version;
    int count = s->version < STORE_MISSES_VERSION ? SQL_OF_MISSES : s->version < STORE_CHOICES_VERSION ? SQL_OF_CHOICES : SQL_STATEMENTS;
    for (int i = 0; i < count; i++)
        if (sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i], NULL) != SQLITE_OK)
            return store_sql_fail(s, "read the tables");
    s->ready = 1;
    return STORE_OK;
}

void store_sql_finalize(store *s)
{
    s->ready = 0;
    s->sums.known = 0;
    for (int i = 0; i < SQL_STATEMENTS; i++) {
        sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
}

/* --- waiting for others --- */

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void store_hurry(store *s)
{
    if (s) atomic_store(&s->hurried, 1);
}

/* SQLite's busy handler: 0 gives up. Unlike its own it notices that the store is in a hurry by now. */
static int wait_for_process(void *user, int count)
{
    store *s = user;
    if (!count) s->busy_since = now_ms();
    if (now_ms() - s->busy_since >= (atomic_load(&s->hurried) ? STORE_HURRY_BUSY_MS : STORE_BUSY_MS)) return 0;
    nap();
    return 1;
}

/* Another thread that has the store may be one that hardly gets a processor. */
static int lock_in_a_hurry(store *s)
{
    const double end = now_ms() + STORE_HURRY_BUSY_MS;
    while (pthread_mutex_trylock(&s->mutex) != 0) {
        if (now_ms() >= end) return 0;
        nap();
    }
    return 1;
}

/* A damaged file must not be able to do anything but be read wrongly, and nothing is written outside its folder.
 * No result is checked: each setting makes a store faster or safer, and none is needed for it to work. */
void store_sql_configure(store *s)
{
    static const struct {
        int option, value;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
        {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_ENABLE_FKEY, 0},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        sqlite3_db_config(s->db, settings[i].option, settings[i].value, (int *)NULL);
    sqlite3_busy_handler(s->db, wait_for_process, s);
    sqlite3_exec(s->db, "PRAGMA cell_size_check=1; PRAGMA temp_store=MEMORY; PRAGMA synchronous=NORMAL", NULL, NULL,
                 NULL);
    if (s->read_only) sqlite3_exec(s->db, "PRAGMA query_only=1", NULL, NULL, NULL);
}

store_status store_sql_recreate(store *s)
{
    store_sql_finalize(s);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_RESET_DATABASE, 1, (int *)NULL);
    store_status status = store_sql_run(s, "VACUUM", "empty the damaged file");
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_RESET_DATABASE, 0, (int *)NULL);
    sqlite3_exec(s->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL); /* see store_sql_create */
    if (status == STORE_OK) status = store_sql_create(s);
    return status == STORE_OK ? store_sql_prepare(s) : status;
}

store_status store_enter(store *s)
{
    if (s->process != getpid())
        return store_fail(s, STORE_IO, "opened before fork(); the child process must open it itself");
    if (!atomic_load(&s->hurried)) pthread_mutex_lock(&s->mutex);
    else if (!lock_in_a_hurry(s)) return store_fail(s, STORE_IO, "another thread has it, and it is about to be closed");
    if (s->ready) return STORE_OK;
    return store_leave(s, store_fail(s, STORE_CORRUPT, "could not be made anew; open it again"));
}

store_status store_leave(store *s, store_status status)
{
    pthread_mutex_unlock(&s->mutex);
    return status;
}
