/* The watched file-system calls: each passes its arguments on, or is refused. See guard.h. */
#pragma GCC visibility push(default) /* other libraries must find what is here */
#include "guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static _Thread_local int inside;
static atomic_int refused, sealed;
static atomic_long passed;
static _Atomic(const char *) first_refused;

void guard_enter(void)
{
    inside++;
}

void guard_leave(void)
{
    inside--;
}

void guard_seal(int on)
{
    atomic_store(&sealed, on);
}

int guard_refused(const char **first)
{
    if (first) *first = atomic_load(&first_refused);
    return atomic_load(&refused);
}

long guard_passed(void)
{
    return atomic_load(&passed);
}

int guard_refuses(const char *name, int is_nvrtc)
{
    const char *none = NULL;
    if (!inside && !(is_nvrtc && atomic_load(&sealed))) {
        atomic_fetch_add(&passed, 1);
        return 0;
    }
    atomic_compare_exchange_strong(&first_refused, &none, name);
    atomic_fetch_add(&refused, 1);
    errno = EIO;
    return 1;
}

/* result, name, parameters, arguments, what a refused call returns */
#define WATCHED(X)                                                                                                  \
    X(ssize_t, read, (int f, void *b, size_t n), (f, b, n), -1)                                                     \
    X(ssize_t, pread, (int f, void *b, size_t n, off_t o), (f, b, n, o), -1)                                        \
    X(ssize_t, pread64, (int f, void *b, size_t n, off64_t o), (f, b, n, o), -1)                                    \
    X(ssize_t, pwrite, (int f, const void *b, size_t n, off_t o), (f, b, n, o), -1)                                 \
    X(ssize_t, pwrite64, (int f, const void *b, size_t n, off64_t o), (f, b, n, o), -1)                             \
    X(int, fsync, (int f), (f), -1)                                                                                 \
    X(int, fdatasync, (int f), (f), -1)                                                                             \
    X(int, ftruncate, (int f, off_t n), (f, n), -1)                                                                 \
    X(int, ftruncate64, (int f, off64_t n), (f, n), -1)                                                             \
    X(int, stat, (const char *p, struct stat *s), (p, s), -1)                                                       \
    X(int, stat64, (const char *p, struct stat64 *s), (p, s), -1)                                                   \
    X(int, lstat, (const char *p, struct stat *s), (p, s), -1)                                                      \
    X(int, fstat, (int f, struct stat *s), (f, s), -1)                                                              \
    X(int, fstat64, (int f, struct stat64 *s), (f, s), -1)                                                          \
    X(int, access, (const char *p, int m), (p, m), -1)                                                              \
    X(int, unlink, (const char *p), (p), -1)                                                                        \
    X(int, mkdir, (const char *p, mode_t m), (p, m), -1)                                                            \
    X(ssize_t, readlink, (const char *p, char *b, size_t n), (p, b, n), -1)                                         \
    X(FILE *, fopen, (const char *p, const char *m), (p, m), NULL)                                                  \
    X(FILE *, fopen64, (const char *p, const char *m), (p, m), NULL)                                                \
    X(void *, dlopen, (const char *p, int m), (p, m), NULL)

#define DEFINE(result, name, parameters, arguments, failure)                 \
    result name parameters                                                   \
    {                                                                        \
        static _Atomic(void *) real;                                         \
        if (guard_refuses(#name, 0)) return failure;                         \
        if (!atomic_load(&real)) atomic_store(&real, dlsym(RTLD_NEXT, #name)); \
        return ((result(*) parameters)atomic_load(&real))arguments;          \
    }
WATCHED(DEFINE)
#undef DEFINE

/* These take a mode only if they create. */
#define DEFINE_OPEN(name)                                                                   \
    int name(const char *path, int flags, ...)                                              \
    {                                                                                       \
        va_list rest;                                                                       \
        va_start(rest, flags);                                                              \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0;  \
        va_end(rest);                                                                       \
        if (guard_refuses(#name, 0)) return -1;                                             \
        int (*real)(const char *, int, ...);                                                \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                          \
        return real(path, flags, mode);                                                     \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

int fcntl64(int file, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (guard_refuses("fcntl64", 0)) return -1;
    int (*real)(int, int, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "fcntl64");
    return real(file, command, argument);
}
