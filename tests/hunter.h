/* A thread that kills this process' children of one name, at moments drawn from a seed, and watches whether children that have
 * ended are taken away. Needs /proc. */
#ifndef JG_TESTS_HUNTER_H
#define JG_TESTS_HUNTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { HUNTER_CHILDREN = 64 };

/* One child that was seen. Times in ns. */
typedef struct hunted {
    pid_t pid;                  /* 0: unused */
    unsigned long long started; /* as the system counts: another process of this number has another */
    enum { HUNTER_UNDECIDED, HUNTER_AIMED_AT, HUNTER_LEFT_ALONE } fate;
    int is_early;               /* one of the first three */
    int64_t not_before;         /* the last look at which it was not there */
    int64_t kill_at;            /* of one aimed at */
    int64_t dead_since;         /* seen as a zombie first; 0: not yet */
    int seen;                   /* in this look */
} hunted;

typedef struct hunter {
    const char *name;           /* as in /proc/PID/stat: at most 15 characters */
    size_t wanted;
    uint64_t random;
    hunted children[HUNTER_CHILDREN];
    pthread_t thread;
    atomic_int stop;
    atomic_size_t killed;
    /* To be read after hunter_stop. */
    size_t met;                 /* children of this name, until enough were killed */
    size_t surely;              /* of those killed, how many were younger than HUNTER_YOUNG_MS: they had come to nothing yet */
    size_t early;               /* how many of these were of the first three */
    int64_t longest_zombie_ns;
    const char *trouble;        /* null: none */
} hunter;

/* In less, no compile with its start and the loading of NVRTC is done anywhere. */
#define HUNTER_YOUNG_MS 15

/* Kills the first three of them at once and spares the fourth: if there is one at a time, a second attempt and no more for each
 * piece of work, then the first piece is given up and the second is done in the end. From there on it kills every second one (by
 * chance), at once or up to 150 ms later, until `wanted` are killed. Returns 0, or -1 if there can be no thread. */
int hunter_start(hunter *h, const char *name, size_t wanted, uint64_t seed);

/* Stops, after a last look. */
void hunter_stop(hunter *h);

/* This process' children, zombies among them. */
size_t hunter_count_children(void);

#endif
