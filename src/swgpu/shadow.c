/* Shadow of shared memory: finds races, reads of bytes never written, and cp.async data that is not waited for.
 *
 * A cell holds what is known of a 4-byte word, or of a byte once a word's bytes differ ("split"; a write of the whole
 * word joins them again), so that findings are exact to the byte. It keeps the last write, and of the reads since then
 * which warps did them and when. As long as those warps read at the same value of their own clocks, or each later reader
 * knew all earlier ones (whoever knows the later one knows them too), one number and a mask hold all of it. Otherwise,
 * and for atomics, a "history" has a clock for each warp. Between warps nothing is missed and nothing reported wrongly.
 *
 * Within a warp only the last reading warp's lanes are kept: another warp read in between, and a write that races with a
 * lost lane then races with that warp. What may be missed: bar.warp.sync of some lanes is taken to order all lanes. */
#include "shadow.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORD = 4 };
enum { WRITTEN = 1, PENDING = 2, SPLIT = 4, HISTORY = 8 };
enum { NO_WARP = 0xff };

typedef struct cell {
    uint32_t write_clock, write_epoch, write_line;
    uint16_t write_thread; /* warp * 32 + lane */
    uint8_t flags;
    uint8_t read_warp;     /* the last one that read since the write; NO_WARP: none did */
    uint32_t read_clock;   /* of each warp in read_warps; with HISTORY, the history's index */
    uint32_t read_warps, read_epoch, read_lanes;
} cell;

/* Since the last write; 0: never. */
typedef struct history {
    uint32_t read_clock[PTX_LANES], atomic_clock[PTX_LANES];
    uint32_t atomic_epoch, atomic_lanes, atomic_line; /* of the warp that did the last atomic */
    uint32_t atomic_warp;
    uint32_t next; /* of those not in use */
} history;

struct shadow {
    cell *words;
    cell *bytes; /* of split words; allocated with the first one */
    size_t word_count;
    history *histories; /* entry 0 is not used, so that 0 ends the list of free ones */
    uint32_t history_count, history_capacity, history_free;
    uint32_t known[PTX_LANES]; /* for each warp: the least of its clocks of other warps */
};

/* A request while it is checked. */
typedef struct context {
    warp *w;
    shadow *s;
    const ptx_instruction *i;
    const uint32_t *clock;
    uint32_t index, own, known, epoch;
    unsigned checks;
} context;

shadow *shadow_create(uint32_t shared_bytes)
{
    shadow *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->word_count = shared_bytes / WORD + 1;
    s->words = malloc(s->word_count * sizeof *s->words);
    if (!s->words) {
        free(s);
        return NULL;
    }
    shadow_reset(s, shared_bytes);
    return s;
}

void shadow_destroy(shadow *s)
{
    if (!s) return;
    free(s->words);
    free(s->bytes);
    free(s->histories);
    free(s);
}

void shadow_reset(shadow *s, uint32_t shared_bytes)
{
    static const cell fresh = {.read_warp = NO_WARP};
    size_t count = shared_bytes / WORD + 1;
    if (count > s->word_count) count = s->word_count;
    for (size_t n = 0; n < count; n++) s->words[n] = fresh;
    s->history_count = s->history_free = 0;
    memset(s->known, 0, sizeof s->known);
}

/* ---- messages ---- */

enum { FIRST_WROTE, FIRST_READ, FIRST_ATOMIC };

/* Formats "thread (x, y, z)" for a thread number, or "a thread of warp n" if the lane is not known. */
static const char *name_thread(const context *c, uint32_t warp_index, int lane, char text[64])
{
    uint32_t t[3];
    if (lane < 0) {
        snprintf(text, 64, "a thread of warp %u", warp_index);
        return text;
    }
    thread_of_lane(&c->w->block->warps[warp_index], (unsigned)lane, t);
    snprintf(text, 64, "thread (%u, %u, %u)", t[0], t[1], t[2]);
    return text;
}

static int report_race(const context *c, unsigned lane, uint32_t offset, shadow_kind kind, int first, uint32_t first_warp,
                       int first_lane, uint32_t line)
{
    static const char *const done[] = {[FIRST_WROTE] = "written", [FIRST_READ] = "read", [FIRST_ATOMIC] = "changed by an atomic"};
    static const char *const now[] = {[SHADOW_READ] = "read", [SHADOW_WRITE] = "written",
                                      [SHADOW_ATOMIC] = "changed by an atomic", [SHADOW_ASYNC] = "written by a cp.async"};
    char one[64], other[64], at[40] = "";
    if (line) snprintf(at, sizeof at, " at PTX line %u", line);
    return fault_raise(c->w, c->i, lane, FAULT_RACE, "shared byte 0x%x: %s by %s%s, %s by %s with no %s between",
                       offset + SHARED_BASE, done[first], name_thread(c, first_warp, first_lane, one), at, now[kind],
                       name_thread(c, c->index, (int)lane, other), first_warp == c->index ? "bar.warp.sync" : "barrier");
}

static int report_write(const context *c, const cell *x, unsigned lane, uint32_t offset, shadow_kind kind)
{
    return report_race(c, lane, offset, kind, FIRST_WROTE, x->write_thread / PTX_LANES, x->write_thread % PTX_LANES,
                       x->write_line);
}

static int report_pending(const context *c, const cell *x, unsigned lane, uint32_t offset, shadow_kind kind)
{
    static const char *const what[] = {[SHADOW_READ] = "read", [SHADOW_WRITE] = "write", [SHADOW_ATOMIC] = "atomic access",
                                       [SHADOW_ASYNC] = "another cp.async"};
    char text[64];
    return fault_raise(c->w, c->i, lane, kind == SHADOW_READ ? FAULT_ASYNC_NOT_WAITED : FAULT_RACE,
                       "%s of shared byte 0x%x while the cp.async of %s at PTX line %u is not waited for", what[kind],
                       offset + SHARED_BASE, name_thread(c, x->write_thread / PTX_LANES, x->write_thread % PTX_LANES, text),
                       x->write_line);
}

static int report_unwritten(const context *c, unsigned lane, uint32_t offset)
{
    return fault_raise(c->w, c->i, lane, FAULT_UNINITIALISED, "read of shared byte 0x%x, which nothing in the block has written",
                       offset + SHARED_BASE);
}

static int report_memory(const context *c, unsigned lane)
{
    return fault_raise(c->w, c->i, lane, FAULT_MEMORY, "no memory for the checks of shared memory");
}

/* ---- histories ---- */

static uint32_t history_take(shadow *s)
{
    uint32_t index = s->history_free;
    if (index) {
        s->history_free = s->histories[index].next;
    } else {
        if (s->history_count + 1 >= s->history_capacity) {
            const uint32_t capacity = s->history_capacity ? s->history_capacity * 2 : 64;
            history *grown = realloc(s->histories, capacity * sizeof *grown);
            if (!grown) return 0;
            s->histories = grown;
            s->history_capacity = capacity;
        }
        index = ++s->history_count;
    }
    memset(&s->histories[index], 0, sizeof s->histories[index]);
    s->histories[index].atomic_warp = NO_WARP;
    return index;
}

static void history_release(shadow *s, cell *x)
{
    s->histories[x->read_clock].next = s->history_free;
    s->history_free = x->read_clock;
    x->flags &= (uint8_t)~HISTORY;
}

/* The cell's history, made if it has none. Null without memory. */
static history *history_of(shadow *s, cell *x)
{
    if (!(x->flags & HISTORY)) {
        const uint32_t index = history_take(s);
        if (!index) return NULL;
        for (uint32_t rest = x->read_warps; rest; rest &= rest - 1)
            s->histories[index].read_clock[__builtin_ctz(rest)] = x->read_clock;
        x->read_clock = index;
        x->flags |= HISTORY;
    }
    return &s->histories[x->read_clock];
}

/* Gives each byte of a word a cell of its own. Returns 0 without memory. */
static int split_word(shadow *s, uint32_t word)
{
    cell *x = &s->words[word];
    if (x->flags & SPLIT) return 1;
    if (!s->bytes) s->bytes = malloc(s->word_count * WORD * sizeof *s->bytes);
    if (!s->bytes) return 0;
    cell *bytes = s->bytes + (size_t)word * WORD;
    for (unsigned n = 0; n < WORD; n++) {
        bytes[n] = *x;
        if (n == 0 || !(x->flags & HISTORY)) continue;
        const uint32_t index = history_take(s);
        if (!index) return 0;
        s->histories[index] = s->histories[x->read_clock];
        bytes[n].read_clock = index;
    }
    x->flags = SPLIT;
    return 1;
}

/* ---- order ---- */

/* Whether the last write comes before what the lanes of this warp do now. */
static inline int write_known(const context *c, const cell *x, uint32_t lanes)
{
    const uint32_t writer = x->write_thread / PTX_LANES;
    if (writer == c->index) return x->write_epoch != c->epoch || !(lanes & ~(1u << x->write_thread % PTX_LANES));
    return c->clock[writer] >= x->write_clock;
}

/* A warp whose reads since the write this warp does not know, or NO_WARP. */
static inline uint32_t unknown_reader(const context *c, const cell *x)
{
    const int many = x->flags & HISTORY;
    if (!many && x->read_clock <= c->known) return NO_WARP;
    for (uint32_t rest = x->read_warps & ~(1u << c->index); rest; rest &= rest - 1) {
        const uint32_t reader = (uint32_t)__builtin_ctz(rest);
        if (c->clock[reader] < (many ? c->s->histories[x->read_clock].read_clock[reader] : x->read_clock)) return reader;
    }
    return NO_WARP;
}

/* The reads since the write must come before a write or an atomic of a lane. */
static inline int check_readers(const context *c, const cell *x, unsigned lane, uint32_t offset, shadow_kind kind)
{
    if (x->read_warp == NO_WARP) return 0;
    const int last_is_own = x->read_warp == c->index;
    if (last_is_own && x->read_epoch == c->epoch && x->read_lanes & ~(1u << lane))
        return report_race(c, lane, offset, kind, FIRST_READ, c->index, __builtin_ctz(x->read_lanes & ~(1u << lane)), 0);
    const uint32_t reader = unknown_reader(c, x);
    if (reader == NO_WARP) return 0;
    return report_race(c, lane, offset, kind, FIRST_READ, reader, x->read_warp == reader ? __builtin_ctz(x->read_lanes) : -1, 0);
}

/* Atomics since the write must come before a plain access of some lanes. */
static int check_atomics(const context *c, const cell *x, unsigned lane, uint32_t lanes, uint32_t offset, shadow_kind kind)
{
    if (!(x->flags & HISTORY)) return 0;
    const history *h = &c->s->histories[x->read_clock];
    const uint32_t others = h->atomic_lanes & ~((lanes & (lanes - 1)) ? 0 : lanes);
    if (h->atomic_warp == c->index && h->atomic_epoch == c->epoch && others)
        return report_race(c, lane, offset, kind, FIRST_ATOMIC, c->index, __builtin_ctz(others), h->atomic_line);
    for (uint32_t n = 0; n < c->w->block->warp_count; n++)
        if (c->clock[n] < h->atomic_clock[n])
            return report_race(c, lane, offset, kind, FIRST_ATOMIC, n, h->atomic_warp == n ? __builtin_ctz(h->atomic_lanes) : -1,
                               h->atomic_warp == n ? h->atomic_line : 0);
    return 0;
}

/* ---- one cell ---- */

/* This warp's first read in its epoch, or since another warp's. */
static int note_first_read(context *c, cell *x, unsigned lane, uint32_t lanes)
{
    if (x->flags & HISTORY) {
        c->s->histories[x->read_clock].read_clock[c->index] = c->own;
        x->read_warps |= 1u << c->index;
    } else if (x->read_warp == NO_WARP || (x->read_clock != c->own && unknown_reader(c, x) == NO_WARP)) {
        x->read_clock = c->own;
        x->read_warps = 1u << c->index;
    } else if (x->read_clock == c->own) {
        x->read_warps |= 1u << c->index;
    } else {
        history *h = history_of(c->s, x);
        if (!h) return report_memory(c, lane);
        h->read_clock[c->index] = c->own;
        x->read_warps |= 1u << c->index;
    }
    x->read_warp = (uint8_t)c->index;
    x->read_epoch = c->epoch;
    x->read_lanes = lanes;
    return 0;
}

static inline int note_read(context *c, cell *x, unsigned lane, uint32_t lanes)
{
    if (x->read_warp != c->index || x->read_epoch != c->epoch) return note_first_read(c, x, lane, lanes);
    x->read_lanes |= lanes;
    return 0;
}

static int read_rare(context *c, cell *x, unsigned lane, uint32_t lanes, uint32_t offset)
{
    if (x->flags & PENDING) return report_pending(c, x, lane, offset, SHADOW_READ);
    if (!(x->flags & WRITTEN) && c->checks & CHECK_UNINITIALISED) return report_unwritten(c, lane, offset);
    if (!(c->checks & CHECK_RACE)) return 0;
    if (x->flags & WRITTEN && !write_known(c, x, lanes)) return report_write(c, x, lane, offset, SHADOW_READ);
    if (check_atomics(c, x, lane, lanes, offset, SHADOW_READ)) return 1;
    return note_read(c, x, lane, lanes);
}

static inline int cell_read(context *c, cell *x, unsigned lane, uint32_t lanes, uint32_t offset)
{
    if (x->flags != WRITTEN || !(c->checks & CHECK_RACE)) return read_rare(c, x, lane, lanes, offset);
    if (!write_known(c, x, lanes)) return report_write(c, x, lane, offset, SHADOW_READ);
    return note_read(c, x, lane, lanes);
}

static inline void set_writer(const context *c, cell *x, unsigned lane, uint8_t flags)
{
    x->write_clock = c->own;
    x->write_epoch = c->epoch;
    x->write_thread = (uint16_t)(c->index * PTX_LANES + lane);
    x->flags = flags;
    x->read_warp = NO_WARP;
    x->read_warps = 0;
}

/* A write, or the beginning of a cp.async. */
static inline int cell_write(context *c, cell *x, unsigned lane, uint32_t offset, shadow_kind kind)
{
    if (c->checks & CHECK_RACE) {
        if (x->flags & PENDING) return report_pending(c, x, lane, offset, kind);
        if (x->flags & WRITTEN && !write_known(c, x, 1u << lane)) return report_write(c, x, lane, offset, kind);
        if (check_readers(c, x, lane, offset, kind) || check_atomics(c, x, lane, 1u << lane, offset, kind)) return 1;
        if (x->flags & HISTORY) history_release(c->s, x);
    } else if (kind == SHADOW_ASYNC) {
        return 0;
    }
    set_writer(c, x, lane, kind == SHADOW_ASYNC ? PENDING : WRITTEN);
    x->write_line = c->i ? c->i->line : 0;
    return 0;
}

static int cell_atomic(context *c, cell *x, unsigned lane, uint32_t offset)
{
    if (x->flags & PENDING) return report_pending(c, x, lane, offset, SHADOW_ATOMIC);
    if (!(x->flags & WRITTEN) && c->checks & CHECK_UNINITIALISED) return report_unwritten(c, lane, offset);
    if (!(c->checks & CHECK_RACE)) return 0;
    if (x->flags & WRITTEN && !write_known(c, x, 1u << lane)) return report_write(c, x, lane, offset, SHADOW_ATOMIC);
    if (check_readers(c, x, lane, offset, SHADOW_ATOMIC)) return 1;
    history *h = history_of(c->s, x);
    if (!h) return report_memory(c, lane);
    const int same = h->atomic_warp == c->index && h->atomic_epoch == c->epoch;
    h->atomic_clock[c->index] = c->own;
    h->atomic_lanes = (same ? h->atomic_lanes : 0) | 1u << lane;
    h->atomic_warp = c->index;
    h->atomic_epoch = c->epoch;
    h->atomic_line = c->i ? c->i->line : 0;
    return 0;
}

/* ---- accesses ---- */

static inline int touch_cell(context *c, cell *x, shadow_kind kind, unsigned lane, uint32_t lanes, uint32_t offset)
{
    switch (kind) {
    case SHADOW_READ: return cell_read(c, x, lane, lanes, offset);
    case SHADOW_ATOMIC: return cell_atomic(c, x, lane, offset);
    default: return cell_write(c, x, lane, offset, kind);
    }
}

/* Some bytes of one word, or all of a split one. */
static int touch_bytes(context *c, shadow_kind kind, unsigned lane, uint32_t lanes, uint32_t offset, uint32_t bytes)
{
    const uint32_t word = offset / WORD;
    if (!split_word(c->s, word)) return report_memory(c, lane);
    for (uint32_t n = offset; n < offset + bytes; n++)
        if (touch_cell(c, &c->s->bytes[n], kind, lane, lanes, n)) return 1;
    /* A whole write leaves four cells that say the same. */
    const int writes = kind == SHADOW_WRITE || (kind == SHADOW_ASYNC && c->checks & CHECK_RACE);
    if (bytes == WORD && writes) c->s->words[word] = c->s->bytes[offset];
    return 0;
}

static inline int touch(context *c, shadow_kind kind, unsigned lane, uint32_t lanes, uint32_t offset, uint32_t bytes)
{
    const uint32_t end = offset + bytes;
    while (offset < end) {
        const uint32_t rest = WORD - offset % WORD, n = rest < end - offset ? rest : end - offset;
        cell *x = &c->s->words[offset / WORD];
        const int found = n == WORD && !(x->flags & SPLIT) ? touch_cell(c, x, kind, lane, lanes, offset)
                                                           : touch_bytes(c, kind, lane, lanes, offset, n);
        if (found) return 1;
        offset += n;
    }
    return 0;
}

static context begin(warp *w, const ptx_instruction *i)
{
    shadow *s = w->block->shadow;
    return (context){.w = w, .s = s, .i = i, .clock = w->clock, .index = w->index, .own = w->clock[w->index],
                     .known = s->known[w->index], .epoch = w->epoch, .checks = w->block->launch->checks};
}

/* Lanes that read the same address are looked at once if they are neighbours, as in a broadcast. */
static int read_lanes(context *c, uint32_t mask, const uint64_t *address, uint32_t bytes)
{
    while (mask) {
        const unsigned lane = (unsigned)__builtin_ctz(mask);
        uint32_t lanes = 0;
        do {
            lanes |= mask & -mask;
            mask &= mask - 1;
        } while (mask && address[__builtin_ctz(mask)] == address[lane]);
        if (touch(c, SHADOW_READ, lane, lanes, (uint32_t)address[lane] - SHARED_BASE, bytes)) return 1;
    }
    return 0;
}

int shadow_request(warp *w, const ptx_instruction *i, uint32_t mask, const uint64_t *address, uint32_t bytes, shadow_kind kind,
                   uint32_t together)
{
    context c = begin(w, i);
    if (kind == SHADOW_READ && !together) return read_lanes(&c, mask, address, bytes);
    for (; mask; mask &= mask - 1) {
        const unsigned lane = (unsigned)__builtin_ctz(mask);
        if (touch(&c, kind, lane, together ? together : 1u << lane, (uint32_t)address[lane] - SHARED_BASE, bytes)) return 1;
    }
    return 0;
}

/* The line stays that of the cp.async. */
void shadow_async_end(warp *w, unsigned lane, uint32_t offset, uint32_t bytes)
{
    context c = begin(w, NULL);
    const uint32_t end = offset + bytes;
    for (uint32_t n = offset; n < end; n++) {
        cell *x = &c.s->words[n / WORD];
        if (n % WORD == 0 && end - n >= WORD && !(c.checks & CHECK_RACE && x->flags & SPLIT)) {
            set_writer(&c, x, lane, WRITTEN);
            n += WORD - 1;
        } else if (split_word(c.s, n / WORD)) {
            set_writer(&c, &c.s->bytes[n], lane, WRITTEN);
        }
    }
}

/* ---- order between warps and lanes ---- */

void shadow_arrive(warp *w, uint32_t arrived[PTX_LANES])
{
    for (unsigned n = 0; n < PTX_LANES; n++) arrived[n] = w->clock[n] > arrived[n] ? w->clock[n] : arrived[n];
    w->clock[w->index]++;
    w->epoch++;
}

void shadow_barrier(block *b, uint32_t warps, const uint32_t arrived[PTX_LANES])
{
    uint32_t most[PTX_LANES];
    memcpy(most, arrived, sizeof most);
    for (uint32_t rest = warps; rest; rest &= rest - 1) {
        const uint32_t *clock = b->warps[__builtin_ctz(rest)].clock;
        for (unsigned n = 0; n < PTX_LANES; n++) most[n] = clock[n] > most[n] ? clock[n] : most[n];
    }
    uint32_t least = UINT32_MAX, second = UINT32_MAX, which = 0;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        if (most[n] < least) second = least, least = most[n], which = n;
        else if (most[n] < second) second = most[n];
    }
    for (uint32_t rest = warps; rest; rest &= rest - 1) {
        const uint32_t index = (uint32_t)__builtin_ctz(rest);
        warp *w = &b->warps[index];
        memcpy(w->clock, most, sizeof most);
        w->clock[index]++;
        w->epoch++;
        if (b->shadow) b->shadow->known[index] = index == which ? second : least;
    }
}

void shadow_warp_sync(warp *w, uint32_t lanes)
{
    (void)lanes;
    w->epoch++;
}
