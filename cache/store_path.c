/* Path checks of a store. See store_path.h. */
#include "cache/store_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

typedef struct report {
    char *text;
    size_t size;
} report;

static store_status refuse(report out, store_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static store_status refuse(report out, store_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out.text, out.size, format, args);
    va_end(args);
    return status;
}

static int is_ours(const struct stat *info)
{
    uid_t self = geteuid();
    return self == 0 || info->st_uid == self || info->st_uid == 0;
}

/* Makes each missing folder of `folder`. The mode is set again, since a umask may have taken our own bits. */
static store_status make_folders(const char *folder, report out)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", folder);
    for (char *end = part; end; ) {
        end = strchr(end + 1, '/');
        if (end) *end = 0;
        int failed = mkdir(part, 0700) != 0 ? errno : 0;
        if (!failed) {
            if (chmod(part, 0700) != 0)
                return refuse(out, STORE_IO, "cannot set the mode of folder %s: %s", part, strerror(errno));
        } else if (failed != EEXIST && access(part, F_OK) != 0) {
            return refuse(out, STORE_IO, "cannot make folder %s: %s", part, strerror(failed));
        }
        if (end) *end = '/';
    }
    return STORE_OK;
}

static store_status check_folder(const char *folder, report out)
{
    struct stat info;
    if (stat(folder, &info) != 0) return refuse(out, STORE_IO, "folder %s: %s", folder, strerror(errno));
    if (!is_ours(&info))
        return refuse(out, STORE_UNSAFE, "folder %s belongs to user %u, who could change the cache; choose another",
                      folder, (unsigned)info.st_uid);
    if ((info.st_mode & OTHERS_WRITE) && !(info.st_mode & S_ISVTX))
        return refuse(out, STORE_UNSAFE, "folder %s can be written by other users; chmod go-w it or choose another",
                      folder);
    return STORE_OK;
}

static store_status check_file(const char *file, report out)
{
    struct stat info;
    if (lstat(file, &info) != 0) {
        if (errno == ENOENT) return STORE_ABSENT;
        return refuse(out, STORE_IO, "%s: %s", file, strerror(errno));
    }
    if (S_ISLNK(info.st_mode))
        return refuse(out, STORE_UNSAFE, "%s is a symbolic link; name the file that it points to", file);
    if (!S_ISREG(info.st_mode)) return refuse(out, STORE_UNSAFE, "%s is not a regular file", file);
    if (!is_ours(&info))
        return refuse(out, STORE_UNSAFE, "%s belongs to user %u, who could change it", file, (unsigned)info.st_uid);
    if (info.st_mode & OTHERS_WRITE)
        return refuse(out, STORE_UNSAFE, "%s can be written by other users; chmod go-w it", file);
    return STORE_OK;
}

store_status store_path_check(const char *file)
{
    char ignored[8];
    return check_file(file, (report){ignored, sizeof ignored});
}

/* In a sticky folder somebody else could have laid a side file beside ours, which SQLite would take for its own. */
static store_status check_side_files(const char *file, report out)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    char side[PATH_MAX + 16];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(side, sizeof side, "%s%s", file, suffixes[i]);
        store_status status = check_file(side, out);
        if (status != STORE_OK && status != STORE_ABSENT) return status;
    }
    return STORE_OK;
}

static store_status create_file(const char *file, report out)
{
    int descriptor = open(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        /* If another process was faster, its file is as good; if that is gone again, the caller may retry. */
        if (errno == EEXIST && check_file(file, out) != STORE_ABSENT) return check_file(file, out);
        return refuse(out, STORE_IO, "cannot create %s: %s", file, strerror(errno));
    }
    int failed = fchmod(descriptor, 0600) != 0 ? errno : 0;
    close(descriptor);
    return failed ? refuse(out, STORE_IO, "cannot set the mode of %s: %s", file, strerror(failed)) : STORE_OK;
}

/* Splits a path into folder (of PATH_MAX bytes) and file name. */
static store_status split(const char *path, char *folder, const char **name, report out)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (strlen(path) >= PATH_MAX) return refuse(out, STORE_IO, "cache path is longer than %d bytes", PATH_MAX - 1);
    if (!**name || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0)
        return refuse(out, STORE_IO, "\"%s\" does not name a file", path);
    if (!slash) strcpy(folder, ".");
    else if (length == 0) strcpy(folder, "/");
    else snprintf(folder, PATH_MAX, "%.*s", (int)length, path);
    return STORE_OK;
}

store_status store_path_prepare(const char *path, int create, char *resolved, char *error, size_t error_size)
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *name;
    report out = {error, error_size};
    store_status status = split(path, folder, &name, out);
    if (status == STORE_OK && create) status = make_folders(folder, out);
    if (status != STORE_OK) return status;
    if (!realpath(folder, real)) return refuse(out, STORE_IO, "%s: folder %s: %s", path, folder, strerror(errno));
    if ((status = check_folder(real, out)) != STORE_OK) return status;
    int length = snprintf(resolved, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    /* SQLite must be able to append its longest suffix. */
    if (length < 0 || length + (int)sizeof "-journal" > PATH_MAX)
        return refuse(out, STORE_IO, "%s: the resolved path is too long", path);
    status = check_file(resolved, out);
    if (status == STORE_ABSENT && !create) return refuse(out, STORE_IO, "%s does not exist", resolved);
    if (status == STORE_ABSENT) status = create_file(resolved, out);
    return status == STORE_OK ? check_side_files(resolved, out) : status;
}

static int stat_side(const char *file, const char *suffix, struct stat *info)
{
    char side[PATH_MAX + 16];
    snprintf(side, sizeof side, "%s%s", file, suffix);
    return lstat(side, info) == 0;
}

uint64_t store_path_bytes(const char *file, const char *suffix)
{
    struct stat info;
    return stat_side(file, suffix, &info) ? (uint64_t)info.st_size : 0;
}

int store_path_exists(const char *file, const char *suffix)
{
    struct stat info;
    return stat_side(file, suffix, &info);
}
