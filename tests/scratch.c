/* Scratch folders and files of tests. See scratch.h. */
#include "scratch.h"

#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void scratch_make(char *folder)
{
    char name[PATH_MAX];
    const char *base = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/jitgemm-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(name) || !realpath(name, folder)) {
        perror(name);
        abort();
    }
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *position)
{
    (void)info;
    (void)position;
    return kind == FTW_DP || kind == FTW_DNR ? rmdir(path) : unlink(path);
}

static int open_folder(const char *path, const struct stat *info, int kind, struct FTW *position)
{
    (void)info;
    (void)position;
    if (kind == FTW_D || kind == FTW_DNR) chmod(path, 0700);
    return 0;
}

void scratch_remove(const char *folder)
{
    nftw(folder, open_folder, 16, FTW_PHYS);
    nftw(folder, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

const char *scratch_path(const char *folder, const char *name)
{
    static char paths[8][PATH_MAX + 64];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

void scratch_write(const char *file, const void *data, size_t bytes)
{
    FILE *stream = fopen(file, "wb");
    if (!stream || fwrite(data, 1, bytes, stream) != bytes || fclose(stream) != 0) {
        perror(file);
        abort();
    }
}

unsigned char *scratch_read(const char *file, size_t *bytes)
{
    struct stat info;
    FILE *stream = fopen(file, "rb");
    if (!stream) return NULL;
    unsigned char *data = fstat(fileno(stream), &info) == 0 ? malloc((size_t)info.st_size + 1) : NULL;
    *bytes = data ? fread(data, 1, (size_t)info.st_size, stream) : 0;
    if (data) data[*bytes] = 0;
    fclose(stream);
    return data;
}

int scratch_exists(const char *file)
{
    return access(file, F_OK) == 0;
}

int scratch_mode(const char *file)
{
    struct stat info;
    return lstat(file, &info) == 0 ? (int)(info.st_mode & 07777) : -1;
}

int scratch_child(int (*body)(void *user), void *user, unsigned uid)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) {
        if (uid && (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0)) _exit(120);
        _exit(body(user));
    }
    if (waitpid(child, &status, 0) != child) abort();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
