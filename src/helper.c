/* The host's side of a compile in a helper process: start, greeting, request, reply, end. See helper.h. */
#include "helper.h"

#include "clock.h"
#include "helper_process.h"
#include "helper_wire.h"
#include "status.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How soon a compile that is to be given up is. */
#define STEP_MS 10.0

struct helper {
    char *path;
    char **environment;
    double timeout_ms;
};

static void free_texts(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++) free(texts[i]);
    free(texts);
}

/* The host may change its environment at any time, so helpers get what it was when the context was opened. */
static char **copy_texts(char *const *texts)
{
    size_t count = 0;
    while (texts && texts[count]) count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        if ((copy[i] = strdup(texts[i]))) continue;
        free_texts(copy);
        copy = NULL;
    }
    return copy;
}

/* The host may go to another folder. */
static char *make_absolute(const char *path)
{
    char *absolute = *path == '/' ? NULL : realpath(path, NULL);
    return absolute ? absolute : strdup(path);
}

helper *helper_create(const char *path, double timeout_ms)
{
    helper *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->timeout_ms = timeout_ms;
    h->path = make_absolute(path);
    h->environment = copy_texts(environ);
    if (h->path && h->environment) return h;
    helper_destroy(h);
    return NULL;
}

void helper_destroy(helper *h)
{
    if (!h) return;
    free_texts(h->environment);
    free(h->path);
    free(h);
}

const char *helper_path(const helper *h)
{
    return h->path;
}

/* --- the channel --- */

typedef enum channel_end { CHANNEL_OPEN, CHANNEL_CUT, CHANNEL_LATE, CHANNEL_CANCELLED } channel_end;

typedef struct channel {
    int socket;
    double end_ms;
    const atomic_int *cancelled;
} channel;

static channel_end wait_for(const channel *c, short events)
{
    struct pollfd one = {.fd = c->socket, .events = events};
    const double left = c->end_ms - clock_now_ms();
    if (atomic_load(c->cancelled)) return CHANNEL_CANCELLED;
    if (left <= 0) return CHANNEL_LATE;
    poll(&one, 1, (int)ceil(fmin(left, STEP_MS)));
    return CHANNEL_OPEN;
}

static channel_end receive(const channel *c, void *data, size_t bytes)
{
    for (char *at = data; bytes > 0;) {
        const ssize_t got = recv(c->socket, at, bytes, MSG_DONTWAIT);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) return CHANNEL_CUT;
        const channel_end end = wait_for(c, POLLIN);
        if (end != CHANNEL_OPEN) return end;
    }
    return CHANNEL_OPEN;
}

static channel_end transmit(const channel *c, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t put = send(c->socket, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put >= 0) {
            at += put;
            bytes -= (size_t)put;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) return CHANNEL_CUT;
        const channel_end end = wait_for(c, POLLOUT);
        if (end != CHANNEL_OPEN) return end;
    }
    return CHANNEL_OPEN;
}

/* --- the conversation --- */

#define RETURN_UNLESS_OPEN(expression)               \
    do {                                             \
        const channel_end end_ = (expression);       \
        if (end_ != CHANNEL_OPEN) return end_;       \
    } while (0)

typedef struct answer {
    wire_reply reply;
    char text[WIRE_MAX_TEXT_BYTES];
    image image;
    int is_nonsense, no_memory;
} answer;

static const char *nvrtc_path_of(const helper_job *job)
{
    return job->nvrtc_path ? job->nvrtc_path : "";
}

static wire_request describe(const helper_job *job)
{
    wire_request r = {.arch = job->arch, .line_info = job->line_info, .nvrtc_path_bytes = (uint32_t)strlen(nvrtc_path_of(job)) + 1,
                      .name_bytes = (uint32_t)strlen(job->name) + 1, .source_bytes = (uint32_t)strlen(job->source) + 1};
    memcpy(r.magic, WIRE_REQUEST_MAGIC, sizeof r.magic);
    return r;
}

static channel_end ask(const channel *c, const helper_job *job, const wire_request *request)
{
    RETURN_UNLESS_OPEN(transmit(c, request, sizeof *request));
    RETURN_UNLESS_OPEN(transmit(c, nvrtc_path_of(job), request->nvrtc_path_bytes));
    RETURN_UNLESS_OPEN(transmit(c, job->name, request->name_bytes));
    return transmit(c, job->source, request->source_bytes);
}

static int allocate(image *img, const wire_reply *r)
{
    img->cubin_bytes = (size_t)r->cubin_bytes;
    img->ptx_bytes = (size_t)r->ptx_bytes;
    img->cubin = malloc(img->cubin_bytes + 1);
    img->ptx = malloc(img->ptx_bytes + 1);
    if (!img->cubin || !img->ptx) return 0;
    img->ptx[img->ptx_bytes] = 0;
    memcpy(img->provenance, r->provenance, sizeof img->provenance);
    return 1;
}

static channel_end listen_to(const channel *c, answer *a)
{
    RETURN_UNLESS_OPEN(receive(c, &a->reply, sizeof a->reply));
    a->is_nonsense = !wire_is_reply(&a->reply);
    if (a->is_nonsense) return CHANNEL_OPEN;
    RETURN_UNLESS_OPEN(receive(c, a->text, a->reply.text_bytes));
    a->is_nonsense = !wire_is_text(a->text, a->reply.text_bytes);
    if (a->is_nonsense || a->reply.status != JG_OK) return CHANNEL_OPEN;
    a->no_memory = !allocate(&a->image, &a->reply);
    if (a->no_memory) return CHANNEL_OPEN;
    RETURN_UNLESS_OPEN(receive(c, a->image.cubin, a->image.cubin_bytes));
    return receive(c, a->image.ptx, a->image.ptx_bytes);
}

/* --- what became of it --- */

static void tell_exit(const helper_exit *e, char *why, size_t size)
{
    if (!e->known) snprintf(why, size, "has ended in the middle, and the host process has taken its exit status");
    else if (e->signal == SIGKILL) snprintf(why, size, "was killed by signal 9 (by the system, if memory ran out)");
    else if (e->signal) snprintf(why, size, "was killed by signal %d", e->signal);
    else snprintf(why, size, "has ended in the middle with exit status %d", e->code);
}

/* Ends the process, and says why there is no answer. */
static helper_outcome lose(const helper *h, helper_process *p, channel_end end, char *why, size_t size)
{
    const helper_exit e = helper_process_end(p);
    if (end == CHANNEL_CANCELLED) return HELPER_CANCELLED;
    if (end == CHANNEL_LATE) snprintf(why, size, "has given no answer in %.3g s", h->timeout_ms * 1e-3);
    else tell_exit(&e, why, size);
    return HELPER_LOST;
}

static helper_outcome start(const helper *h, helper_process *p, char *why, size_t size)
{
    const int error = helper_process_start(h->path, h->environment, p);
    if (!error) return HELPER_ANSWERED;
    snprintf(why, size, "cannot be started: %s", strerror(error));
    const int passes = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOBUFS || error == ETXTBSY;
    return passes ? HELPER_NO_ROOM : HELPER_UNUSABLE;
}

/* A program that ends by itself before it has greeted is none of ours, or lacks a library; NVRTC has no part in that. */
static helper_outcome meet(const helper *h, helper_process *p, const channel *c, char *why, size_t size)
{
    wire_greeting greeting;
    const channel_end end = receive(c, &greeting, sizeof greeting);
    if (end == CHANNEL_OPEN) {
        wire_judge_greeting(&greeting, why, size);
        if (!*why) return HELPER_ANSWERED;
    } else if (end != CHANNEL_CUT) {
        return lose(h, p, end, why, size);
    }
    const helper_exit e = helper_process_end(p);
    if (end == CHANNEL_OPEN) return HELPER_UNUSABLE;
    if (e.known && !e.signal) {
        snprintf(why, size, "cannot be used: it ends at once, with exit status %d", e.code);
        return HELPER_UNUSABLE;
    }
    tell_exit(&e, why, size);
    return HELPER_LOST;
}

/* Sends the request and takes the answer. *a is to be freed if that was no success. */
static channel_end converse(const channel *c, const helper_job *job, const wire_request *request, answer *a)
{
    memset(&a->image, 0, sizeof a->image);
    a->is_nonsense = a->no_memory = 0;
    RETURN_UNLESS_OPEN(ask(c, job, request));
    return listen_to(c, a);
}

static jg_status take_answer(answer *a, const helper_job *job, image *out)
{
    if (a->no_memory) return status_set(JG_ERR_NO_MEMORY, "out of memory for the image of %s", job->name);
    if (a->reply.status != JG_OK) return status_set((jg_status)a->reply.status, "%s", a->text);
    *out = a->image;
    memset(&a->image, 0, sizeof a->image);
    return JG_OK;
}

/* Once the answer is there the process is not waited for but killed: NVRTC takes its time to leave. */
helper_outcome helper_compile(const helper *h, const helper_job *job, const atomic_int *cancelled, jg_status *status, image *out,
                              char *why, size_t why_bytes)
{
    const double begun = clock_now_ms();
    const wire_request request = describe(job);
    helper_process p;
    memset(out, 0, sizeof *out);
    if (atomic_load(cancelled)) return HELPER_CANCELLED;
    if (!wire_is_request(&request)) {
        snprintf(why, why_bytes, "cannot be asked for %s: the source, or the path of NVRTC, is too long", job->name);
        return HELPER_UNUSABLE;
    }
    helper_outcome outcome = start(h, &p, why, why_bytes);
    if (outcome != HELPER_ANSWERED) return outcome;
    const channel c = {p.channel, begun + h->timeout_ms, cancelled};
    outcome = meet(h, &p, &c, why, why_bytes);
    if (outcome != HELPER_ANSWERED) return outcome;
    answer a;
    const channel_end end = converse(&c, job, &request, &a);
    if (end != CHANNEL_OPEN) {
        outcome = lose(h, &p, end, why, why_bytes);
    } else {
        helper_process_end(&p);
        if (a.is_nonsense) {
            snprintf(why, why_bytes, "has answered nonsense");
            outcome = HELPER_LOST;
        } else {
            *status = take_answer(&a, job, out);
            out->compile_ms = clock_now_ms() - begun;
        }
    }
    image_free(&a.image);
    return outcome;
}
