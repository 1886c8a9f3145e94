/* One warp: lanes that run together, part at branches and meet again.
 *
 * Lanes at the same instruction form a fragment. The fragment with the lowest instruction runs first, so that those
 * behind catch up with those ahead and join them: with the code that compilers lay out, at the branch's end. An
 * instruction that needs lanes together (mma.sync, a barrier) makes its fragment wait for the others. A fragment that
 * keeps jumping back, as one that waits for another lane's store would, makes room for the others now and then. */
#include "async.h"
#include "exec.h"
#include "opcodes.h"
#include "shadow.h"

/* Instructions a warp may run before its block's others get a turn, and jumps back before another fragment does. */
#define SHARE 1000000u
#define PATIENCE 4096u

void warp_start(warp *w, unsigned threads)
{
    w->live = threads >= PTX_LANES ? FULL_MASK : (1u << threads) - 1;
    w->fragments[0] = (fragment){.mask = w->live, .pc = 0};
    w->fragment_count = 1;
    w->at_barrier = 0;
    w->executed = 0;
    memset(w->clock, 0, sizeof w->clock);
    w->clock[w->index] = 1;
    w->epoch = 1;
}

static void drop_fragment(warp *w, uint32_t n)
{
    w->fragments[n] = w->fragments[--w->fragment_count];
}

/* Joins fragments at the same instruction; one that waited tries again with the lanes it gained. */
static void join_fragments(warp *w)
{
    for (uint32_t a = 0; a < w->fragment_count; a++)
        for (uint32_t b = a + 1; b < w->fragment_count;) {
            if (w->fragments[a].pc != w->fragments[b].pc) {
                b++;
                continue;
            }
            w->fragments[a].mask |= w->fragments[b].mask;
            w->fragments[a].waiting = 0;
            drop_fragment(w, b);
        }
}

/* The fragment to run next: the one furthest behind, or, after `turn` impatient jumps, another. -1: all wait. */
static int choose_fragment(const warp *w, uint32_t turn)
{
    int best = -1;
    uint32_t runnable = 0;
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        const fragment *f = &w->fragments[n];
        if (f->waiting) continue;
        runnable++;
        if (best < 0 || f->pc < w->fragments[best].pc) best = (int)n;
    }
    if (!turn || runnable < 2) return best;
    uint32_t skip = turn % runnable;
    for (uint32_t n = 0; n < w->fragment_count; n++)
        if (!w->fragments[n].waiting && skip-- == 0) return (int)n;
    return best;
}

static uint32_t first_lane(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}

/* The lanes that must execute an instruction together. Lanes may name different sets: all of these must be there. */
static uint32_t needed_lanes(const warp *w, const ptx_instruction *i, uint32_t mask, ptx_sync sync)
{
    if (sync != SYNC_LANES_MASK) return w->live;
    const ptx_operand *o = operand_at(i, i->groups - 1u, 0);
    uint32_t named = 0;
    FOR_LANES(mask, lane, named |= (uint32_t)operand_get(w, o, lane));
    return named & w->live;
}

/* Lanes that execute an instruction without being in the set that they name. */
static uint32_t strangers(const warp *w, const ptx_instruction *i, uint32_t mask)
{
    const ptx_operand *o = operand_at(i, i->groups - 1u, 0);
    uint32_t found = 0;
    FOR_LANES(mask, lane, found |= (~(uint32_t)operand_get(w, o, lane) >> lane & 1) << lane);
    return found;
}

/* Whoever waits has not executed the instruction yet, so it does not count. */
static void wait_for_lanes(warp *w, fragment *f, const ptx_instruction *i)
{
    f->waiting = 1;
    w->counters->instructions[i->counter]--;
}

static int is_warp_barrier(const ptx_instruction *i)
{
    return (i->opcode == OPCODE_bar || i->opcode == OPCODE_barrier) && i->modifier[MOD_GROUP] == GROUP_WARP;
}

static int is_block_barrier(const ptx_instruction *i)
{
    return (i->opcode == OPCODE_bar || i->opcode == OPCODE_barrier) && i->modifier[MOD_GROUP] != GROUP_WARP;
}

/* bar.warp.sync may be written at several places for the lanes of one mask: if all of them wait, they have met. */
static void release_warp_barrier(warp *w)
{
    const ptx_instruction *code = w->block->launch->kernel->instructions;
    for (uint32_t n = 0; n < w->fragment_count; n++) {
        const ptx_instruction *i = &code[w->fragments[n].pc];
        if (!w->fragments[n].waiting || !is_warp_barrier(i)) continue;
        const uint32_t needed = needed_lanes(w, i, w->fragments[n].mask, SYNC_LANES_MASK);
        uint32_t have = 0;
        for (uint32_t m = 0; m < w->fragment_count; m++) {
            const ptx_instruction *other = &code[w->fragments[m].pc];
            if (w->fragments[m].waiting && is_warp_barrier(other) &&
                needed_lanes(w, other, w->fragments[m].mask, SYNC_LANES_MASK) == needed)
                have |= w->fragments[m].mask;
        }
        if (needed & ~have) continue;
        for (uint32_t m = 0; m < w->fragment_count; m++) {
            if (!(w->fragments[m].mask & needed)) continue;
            w->fragments[m].pc++;
            w->fragments[m].waiting = 0;
            w->counters->instructions[i->counter]++;
        }
        shadow_warp_sync(w, needed);
        return;
    }
}

/* Every fragment waits for lanes that will not come. */
static int report_stuck(warp *w)
{
    const ptx_instruction *code = w->block->launch->kernel->instructions;
    const fragment *f = &w->fragments[0], *other = &w->fragments[w->fragment_count - 1];
    for (uint32_t n = 0; n < w->fragment_count; n++)
        if (is_block_barrier(&code[w->fragments[n].pc])) {
            f = &w->fragments[n];
            other = &w->fragments[n ? 0 : w->fragment_count - 1];
        }
    const ptx_instruction *i = &code[f->pc];
    const int barrier = is_block_barrier(i);
    const uint32_t others = w->live & ~f->mask, elsewhere = code[other->pc].line;
    return fault_raise(w, i, first_lane(f->mask), barrier ? FAULT_BARRIER : FAULT_LANES,
                       "%s is reached by lanes 0x%08x of warp %u, while lanes 0x%08x wait at PTX line %u",
                       ptx_opcode_name(i->opcode), f->mask, w->index, others, elsewhere);
}

/* Keeps `mask` of a fragment at its instruction and sends the others to the next. */
static void part(warp *w, fragment *f, uint32_t mask)
{
    if (f->mask == mask) return;
    w->fragments[w->fragment_count++] = (fragment){.mask = f->mask & ~mask, .pc = f->pc + 1};
    f->mask = mask;
}

/* One step of a control instruction. Returns a warp_state to leave with, or -1 to go on. */
static int control(warp *w, fragment *f, const ptx_instruction *i, uint32_t mask)
{
    const uint32_t lane = first_lane(mask);
    uint32_t rest;
    switch (i->opcode) {
    case OPCODE_bra:
        rest = f->mask & ~mask;
        if (rest) {
            w->counters->divergent_branches++;
            w->fragments[w->fragment_count++] = (fragment){.mask = rest, .pc = f->pc + 1};
            f->mask = mask;
        }
        f->pc = i->target;
        return -1;
    case OPCODE_ret:
    case OPCODE_exit:
        async_finish(w, mask);
        w->live &= ~mask;
        f->mask &= ~mask;
        f->pc++;
        for (uint32_t n = 0; n < w->fragment_count; n++) w->fragments[n].waiting = 0; /* fewer lanes to wait for */
        if (!f->mask) drop_fragment(w, (uint32_t)(f - w->fragments));
        return w->live ? -1 : WARP_DONE;
    case OPCODE_trap:
        fault_raise(w, i, lane, FAULT_TRAP, "the kernel executed trap");
        return WARP_FAULT;
    default: break;
    }
    part(w, f, mask);
    if (is_warp_barrier(i)) {
        rest = strangers(w, i, mask);
        if (rest) {
            fault_raise(w, i, first_lane(rest), FAULT_LANES, "bar.warp.sync by a lane that is not in its mask 0x%08x",
                        (uint32_t)operand_get(w, operand_at(i, 0, 0), first_lane(rest)));
            return WARP_FAULT;
        }
        if (needed_lanes(w, i, mask, SYNC_LANES_MASK) & ~mask) {
            wait_for_lanes(w, f, i);
            release_warp_barrier(w);
            return -1;
        }
        shadow_warp_sync(w, mask);
        f->pc++;
        return -1;
    }
    if (mask != w->live) {
        wait_for_lanes(w, f, i);
        return -1;
    }
    const uint32_t id = i->groups > 0 ? (uint32_t)operand_get(w, operand_at(i, 0, 0), lane) : 0;
    const uint32_t threads = i->groups > 1 ? (uint32_t)operand_get(w, operand_at(i, 1, 0), lane) : 0;
    if (id > 15 || threads % PTX_LANES || threads > w->block->warp_count * PTX_LANES) {
        fault_raise(w, i, lane, FAULT_BARRIER, "barrier %u of %u threads: ids go to 15, threads are a multiple of 32 of the block's",
                    id, threads);
        return WARP_FAULT;
    }
    f->pc++;
    if (i->modifier[MOD_GROUP] == GROUP_ARRIVE) return block_arrive(w, i, lane, id, threads) ? WARP_FAULT : -1;
    w->at_barrier = 1;
    w->barrier_id = id;
    w->barrier_threads = threads;
    return WARP_AT_BARRIER;
}

static void set_clocks(warp *w)
{
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        slot32(w, SPECIAL_CLOCK)[lane] = (uint32_t)w->executed;
        slot64(w, SPECIAL_CLOCK64)[lane] = w->executed;
        slot64(w, SPECIAL_GLOBALTIMER)[lane] = w->executed;
    }
}

/* Runs one fragment for as long as it is alone or furthest behind, until the warp has executed `share` instructions.
 * jumps: those back while there are other fragments. Returns a warp_state, or -1 to choose again. */
static int run_fragment(warp *w, fragment *f, uint64_t share, uint32_t *jumps)
{
    const launch *l = w->block->launch;
    const ptx_instruction *code = l->kernel->instructions;
    const ptx_opcode_row *rows = ptx_opcode_table();
    const uint64_t limit = l->instruction_limit ? l->instruction_limit : INSTRUCTION_LIMIT;
    const int timed = l->kernel->uses_clock;
    const int alone = w->fragment_count == 1;
    do {
        const ptx_instruction *i = &code[f->pc];
        uint32_t mask = f->mask;
        if (i->guarded) {
            const uint32_t predicate = slot32(w, i->guard_slot)[0];
            mask &= i->guard_negate ? ~predicate : predicate;
        }
        w->executed++;
        w->counters->instructions[i->counter]++;
        if (!mask) {
            f->pc++;
            continue;
        }
        if (timed) set_clocks(w);
        const ptx_sync sync = rows[i->opcode].sync;
        if (sync == SYNC_LANES_CONTROL) {
            const uint32_t from = f->pc;
            const int state = control(w, f, i, mask);
            if (state >= 0) return state;
            if (i->opcode == OPCODE_bra && f->pc <= from) {
                *jumps += !alone;
                if (atomic_load_explicit(&l->stop, memory_order_relaxed)) return WARP_FAULT;
                if (w->executed > limit) {
                    fault_raise(w, i, first_lane(mask), FAULT_TIMEOUT, "a warp ran more than %llu instructions",
                                (unsigned long long)limit);
                    return WARP_FAULT;
                }
                if (w->executed > share) return WARP_YIELDED;
            }
            if (w->fragment_count != 1 || f->waiting) return -1;
            continue;
        }
        if (sync != SYNC_LANES_NONE) {
            part(w, f, mask);
            if (needed_lanes(w, i, mask, sync) & ~mask) {
                wait_for_lanes(w, f, i);
                return -1;
            }
        }
        if (i->run(w, i, mask)) return WARP_FAULT;
        f->pc++;
    } while (alone && w->fragment_count == 1);
    return -1;
}

warp_state warp_run(warp *w)
{
    const uint64_t share = w->executed + SHARE;
    uint32_t jumps = 0;
    for (;;) {
        uint32_t turn = 0;
        if (w->fragment_count > 1) join_fragments(w);
        if (w->fragment_count == 1) jumps = 0;
        if (jumps >= PATIENCE) turn = jumps++ / PATIENCE;
        if (turn > w->fragment_count) turn = jumps = 0; /* each had its turn */
        const int chosen = choose_fragment(w, turn);
        if (chosen < 0) {
            report_stuck(w);
            return WARP_FAULT;
        }
        const int state = run_fragment(w, &w->fragments[chosen], share, &jumps);
        if (state >= 0) return (warp_state)state;
    }
}
