#include "hunter.h"

#include "reference.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000
#define LONGEST_WAIT_MS 150

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- /proc ---- */

typedef struct process {
    pid_t pid, parent;
    char name[32], state;
    unsigned long long started;
} process;

/* Returns 0, or -1 if there is no such process (any more). */
static int look_at(pid_t pid, process *p)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    const size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = 0;
    const char *open = strchr(line, '('), *close = strrchr(line, ')'); /* a name may have any of them in it */
    int parent;
    if (!open || !close || sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                                  &p->state, &parent, &p->started) != 3)
        return -1;
    p->pid = pid;
    p->parent = parent;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(close - open - 1), open + 1);
    return 0;
}

static void each_child(void (*visit)(void *user, const process *child), void *user)
{
    process p;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && look_at(pid, &p) == 0 && p.parent == getpid()) visit(user, &p);
    }
    if (all) closedir(all);
}

static void count_one(void *user, const process *child)
{
    (void)child;
    ++*(size_t *)user;
}

size_t hunter_count_children(void)
{
    size_t count = 0;
    each_child(count_one, &count);
    return count;
}

/* ---- the hunt ---- */

typedef struct round {
    hunter *h;
    int64_t before, now; /* the look before, this one */
} round;

static uint64_t below(hunter *h, uint64_t bound)
{
    return (reference_random(&h->random) >> 33) % bound;
}

static void decide(hunter *h, hunted *c, int64_t now)
{
    const size_t turn = h->met++;
    const int spare = (int)below(h, 2), at_once = (int)below(h, 2);
    const int64_t later = (int64_t)below(h, (uint64_t)LONGEST_WAIT_MS * MS);
    c->is_early = turn < 3;
    c->fate = turn == 3 || (spare && !c->is_early) ? HUNTER_LEFT_ALONE : HUNTER_AIMED_AT;
    c->kill_at = c->is_early || at_once ? now : now + later;
}

static hunted *find(round *r, const process *child)
{
    hunted *unused = NULL;
    for (int i = 0; i < HUNTER_CHILDREN; i++) {
        hunted *c = &r->h->children[i];
        if (c->pid == child->pid && c->started == child->started) return c;
        if (!c->pid) unused = c;
    }
    if (!unused) {
        r->h->trouble = "too many children";
        return NULL;
    }
    *unused = (hunted){.pid = child->pid, .started = child->started, .not_before = r->before};
    return unused;
}

/* By a descriptor, where there are such, so that nobody else can be met who has got the number meanwhile. */
static int kill_child(const hunted *c)
{
    process p;
#ifdef SYS_pidfd_open
    const int fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (fd >= 0) {
        const int is_it = look_at(c->pid, &p) == 0 && p.started == c->started && p.state != 'Z';
        const long sent = is_it ? syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) : -1;
        close(fd);
        return sent == 0;
    }
#endif
    return look_at(c->pid, &p) == 0 && p.started == c->started && p.state != 'Z' && kill(c->pid, SIGKILL) == 0;
}

static void visit(void *user, const process *child)
{
    round *r = user;
    hunter *h = r->h;
    hunted *c = find(r, child);
    if (!c) return;
    c->seen = 1;
    if (child->state == 'Z') {
        if (!c->dead_since) c->dead_since = r->now;
        if (r->now - c->dead_since > h->longest_zombie_ns) h->longest_zombie_ns = r->now - c->dead_since;
        return;
    }
    /* It has our own name until it has become another program. */
    if (strcmp(child->name, h->name) != 0 || atomic_load(&h->killed) == h->wanted) return;
    if (c->fate == HUNTER_UNDECIDED) decide(h, c, r->now);
    if (c->fate == HUNTER_LEFT_ALONE || c->kill_at > r->now) return;
    c->fate = HUNTER_LEFT_ALONE;
    if (!kill_child(c)) return;
    const int is_young = now_ns() - c->not_before < (int64_t)HUNTER_YOUNG_MS * MS;
    h->surely += is_young;
    h->early += is_young && c->is_early;
    atomic_fetch_add(&h->killed, 1);
}

static void *hunt(void *user)
{
    hunter *h = user;
    round r = {.h = h, .before = now_ns()};
    for (int last = 0; !last;) {
        last = atomic_load(&h->stop);
        r.now = now_ns();
        for (int i = 0; i < HUNTER_CHILDREN; i++) h->children[i].seen = 0;
        each_child(visit, &r);
        for (int i = 0; i < HUNTER_CHILDREN; i++)
            if (!h->children[i].seen) h->children[i] = (hunted){0};
        r.before = r.now;
        if (!last) nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    }
    return NULL;
}

int hunter_start(hunter *h, const char *name, size_t wanted, uint64_t seed)
{
    *h = (hunter){.name = name, .wanted = wanted, .random = seed};
    return pthread_create(&h->thread, NULL, hunt, h) == 0 ? 0 : -1;
}

void hunter_stop(hunter *h)
{
    atomic_store(&h->stop, 1);
    pthread_join(h->thread, NULL);
}
