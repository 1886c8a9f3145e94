/* How many registers a compiler for the real GPU would use for a kernel, roughly: the most 32-bit words that are live at
 * once, from a backward dataflow over the basic blocks, rounded and capped as the hardware and the kernel's header ask.
 *
 * The cost is bounded: a kernel that would take too long or too much memory gets what its registers add up to. */
#include "opcodes.h"
#include "parse.h"

#include <stdlib.h>
#include <string.h>

#define OVERHEAD 6u                   /* words that are never free: stack pointer, addresses of constants ... */
#define MOST_WORDS (1u << 20)         /* of one set of bits for each block */
#define MOST_WORK (1u << 25)          /* words of bit sets touched */
#define GRANULARITY 8u                /* registers are given out in steps of so many a thread */
#define REGISTER_FILE 65536u          /* of an SM */

enum { LEAST_REGISTERS = 16, MOST_REGISTERS = 255 };

typedef struct basic_block {
    uint32_t first, end;     /* instructions */
    uint32_t successors[2];  /* blocks; UINT32_MAX: none */
} basic_block;

typedef struct liveness {
    const ptx_kernel *kernel;
    uint8_t *weight;         /* of each slot: 32-bit words of the register that begins there; 0: none, or a predicate */
    uint8_t *is_register;
    uint32_t *block_of;      /* instruction */
    basic_block *blocks;
    uint32_t block_count, words;
    uint64_t *live_in, *used, *defined, *now; /* words for each block; now: for one */
    uint32_t *stack;
    uint8_t *waiting;        /* is on the stack */
    uint32_t *predecessors, *first_predecessor;
} liveness;

static int set_bit(uint64_t *bits, uint32_t n)
{
    uint64_t mask = 1ull << n % 64;
    int was = (bits[n / 64] & mask) != 0;
    bits[n / 64] |= mask;
    return !was;
}

static int clear_bit(uint64_t *bits, uint32_t n)
{
    uint64_t mask = 1ull << n % 64;
    int was = (bits[n / 64] & mask) != 0;
    bits[n / 64] &= ~mask;
    return was;
}

static unsigned operand_total(const ptx_instruction *i)
{
    return i->groups ? i->first[i->groups - 1] + i->count[i->groups - 1] : 0;
}

/* Operands before this one are written, the others read. */
static unsigned definitions(const ptx_instruction *i)
{
    return i->groups && ptx_opcode_table()[i->opcode].pattern[0] == 'd' ? i->count[0] : 0;
}

static int leaves(const ptx_instruction *i)
{
    return i->opcode == OPCODE_exit || i->opcode == OPCODE_ret || i->opcode == OPCODE_trap;
}

/* The slots that are registers, and the words of them all. */
static uint64_t weigh(liveness *l)
{
    const ptx_kernel *k = l->kernel;
    uint64_t total = 0;
    memset(l->weight, 0xff, k->slots);
    for (uint32_t c = 0; c < k->constant_count; c++) l->weight[k->constants[c].slot] = 0;
    for (uint32_t n = 0; n < k->count; n++) {
        const ptx_instruction *i = &k->instructions[n];
        for (unsigned o = 0; o < operand_total(i); o++) {
            const ptx_operand *x = &i->operands[o];
            int named = x->kind == OPERAND_REGISTER || x->kind == OPERAND_ADDRESS;
            if (!named || x->slot < SPECIAL_COUNT || l->weight[x->slot] != 0xff) continue;
            l->weight[x->slot] = x->bits == 64 ? 2 : x->bits == 1 ? 0 : 1;
            l->is_register[x->slot] = l->weight[x->slot] != 0;
            total += l->weight[x->slot];
        }
    }
    return total;
}

static int is_tracked(const liveness *l, const ptx_operand *o)
{
    return (o->kind == OPERAND_REGISTER || o->kind == OPERAND_ADDRESS) && l->is_register[o->slot];
}

static void find_blocks(liveness *l)
{
    const ptx_kernel *k = l->kernel;
    /* block_of first marks the instructions that begin a block. */
    l->block_of[0] = 1;
    for (uint32_t n = 0; n < k->count; n++) {
        const ptx_instruction *i = &k->instructions[n];
        if (i->opcode == OPCODE_bra) l->block_of[i->target] = 1;
        if ((i->opcode == OPCODE_bra || leaves(i)) && n + 1 < k->count) l->block_of[n + 1] = 1;
    }
    for (uint32_t n = 0; n < k->count; n++) {
        l->block_count += l->block_of[n];
        l->block_of[n] = l->block_count - 1;
    }
}

static void link_blocks(liveness *l)
{
    const ptx_kernel *k = l->kernel;
    for (uint32_t n = 0; n < k->count; n++) {
        basic_block *b = &l->blocks[l->block_of[n]];
        if (n == 0 || l->block_of[n - 1] != l->block_of[n]) b->first = n;
        b->end = n + 1;
    }
    for (uint32_t b = 0; b < l->block_count; b++) {
        const ptx_instruction *last = &k->instructions[l->blocks[b].end - 1];
        int goes_on = last->guarded || (last->opcode != OPCODE_bra && !leaves(last));
        l->blocks[b].successors[0] = goes_on && b + 1 < l->block_count ? b + 1 : UINT32_MAX;
        l->blocks[b].successors[1] = last->opcode == OPCODE_bra ? l->block_of[last->target] : UINT32_MAX;
    }
    for (uint32_t b = 0; b < l->block_count; b++)
        for (int s = 0; s < 2; s++)
            if (l->blocks[b].successors[s] != UINT32_MAX) l->first_predecessor[l->blocks[b].successors[s] + 1]++;
    for (uint32_t b = 0; b < l->block_count; b++) l->first_predecessor[b + 1] += l->first_predecessor[b];
    for (uint32_t b = 0; b < l->block_count; b++)
        for (int s = 0; s < 2; s++)
            if (l->blocks[b].successors[s] != UINT32_MAX) l->predecessors[l->first_predecessor[l->blocks[b].successors[s]]++] = b;
    for (uint32_t b = l->block_count; b > 0; b--) l->first_predecessor[b] = l->first_predecessor[b - 1];
    l->first_predecessor[0] = 0;
}

/* What each block reads before it writes it, and what it surely writes. */
static void summarise(liveness *l)
{
    for (uint32_t b = 0; b < l->block_count; b++) {
        uint64_t *used = l->used + (size_t)b * l->words, *defined = l->defined + (size_t)b * l->words;
        for (uint32_t n = l->blocks[b].end; n-- > l->blocks[b].first;) {
            const ptx_instruction *i = &l->kernel->instructions[n];
            unsigned written = definitions(i);
            for (unsigned o = 0; o < written && !i->guarded; o++) {
                if (!is_tracked(l, &i->operands[o])) continue;
                set_bit(defined, i->operands[o].slot);
                clear_bit(used, i->operands[o].slot);
            }
            for (unsigned o = written; o < operand_total(i); o++)
                if (is_tracked(l, &i->operands[o])) set_bit(used, i->operands[o].slot);
        }
    }
}

/* What is live behind a block, into now. */
static void live_out(liveness *l, uint32_t b)
{
    memset(l->now, 0, l->words * sizeof *l->now);
    for (int s = 0; s < 2; s++) {
        if (l->blocks[b].successors[s] == UINT32_MAX) continue;
        const uint64_t *in = l->live_in + (size_t)l->blocks[b].successors[s] * l->words;
        for (uint32_t w = 0; w < l->words; w++) l->now[w] |= in[w];
    }
}

/* Spreads liveness backward until nothing changes. Returns 0 if that would take too long. */
static int spread(liveness *l)
{
    uint32_t height = 0;
    uint64_t work = 0;
    for (uint32_t b = 0; b < l->block_count; b++) {
        l->stack[height++] = b; /* the last block first */
        l->waiting[b] = 1;
    }
    while (height) {
        uint32_t b = l->stack[--height];
        size_t base = (size_t)b * l->words;
        l->waiting[b] = 0;
        work += l->words;
        if (work > MOST_WORK) return 0;
        live_out(l, b);
        int changed = 0;
        for (uint32_t w = 0; w < l->words; w++) {
            uint64_t in = l->used[base + w] | (l->now[w] & ~l->defined[base + w]);
            changed |= in != l->live_in[base + w];
            l->live_in[base + w] = in;
        }
        for (uint32_t n = l->first_predecessor[b]; changed && n < l->first_predecessor[b + 1]; n++) {
            uint32_t before = l->predecessors[n];
            if (l->waiting[before]) continue;
            l->waiting[before] = 1;
            l->stack[height++] = before;
        }
    }
    return 1;
}

/* The most words live at once: before each instruction, and after it with all that it writes. */
static uint64_t most_live(liveness *l)
{
    uint64_t most = 0;
    for (uint32_t b = 0; b < l->block_count; b++) {
        live_out(l, b);
        uint64_t live = 0;
        for (uint32_t w = 0; w < l->words; w++)
            for (uint64_t rest = l->now[w]; rest; rest &= rest - 1) live += l->weight[w * 64 + (uint32_t)__builtin_ctzll(rest)];
        for (uint32_t n = l->blocks[b].end; n-- > l->blocks[b].first;) {
            const ptx_instruction *i = &l->kernel->instructions[n];
            unsigned written = definitions(i);
            uint64_t after = live;
            for (unsigned o = 0; o < written; o++) {
                const ptx_operand *x = &i->operands[o];
                if (!is_tracked(l, x)) continue;
                int was_live = clear_bit(l->now, x->slot);
                after += was_live ? 0 : l->weight[x->slot];
                if (!was_live) continue;
                if (i->guarded)
                    set_bit(l->now, x->slot);
                else
                    live -= l->weight[x->slot];
            }
            for (unsigned o = written; o < operand_total(i); o++) {
                const ptx_operand *x = &i->operands[o];
                if (is_tracked(l, x) && set_bit(l->now, x->slot)) live += l->weight[x->slot];
            }
            if (after > most) most = after;
            if (live > most) most = live;
        }
    }
    return most;
}

/* The whole analysis; `otherwise` if there is no memory or no time for it. */
static uint64_t analyse(liveness *l, uint64_t otherwise)
{
    const ptx_kernel *k = l->kernel;
    l->words = (k->slots + 63) / 64;
    l->block_of = calloc(k->count, sizeof *l->block_of);
    if (!l->block_of) return otherwise;
    find_blocks(l);
    size_t blocks = l->block_count, words = blocks * l->words;
    if (words > MOST_WORDS) return otherwise;
    l->blocks = calloc(blocks, sizeof *l->blocks);
    l->live_in = calloc(3 * words + l->words, sizeof *l->live_in);
    l->stack = malloc(blocks * sizeof *l->stack);
    l->waiting = malloc(blocks);
    l->predecessors = malloc(2 * blocks * sizeof *l->predecessors);
    l->first_predecessor = calloc(blocks + 1, sizeof *l->first_predecessor);
    if (!l->blocks || !l->live_in || !l->stack || !l->waiting || !l->predecessors || !l->first_predecessor) return otherwise;
    l->used = l->live_in + words;
    l->defined = l->used + words;
    l->now = l->defined + words;
    link_blocks(l);
    summarise(l);
    return spread(l) ? most_live(l) : otherwise;
}

static uint32_t capped(const ptx_kernel *k, uint64_t registers)
{
    registers = (registers + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    if (k->max_threads) {
        uint64_t threads = (k->max_threads + PTX_LANES - 1) / PTX_LANES * PTX_LANES;
        if (k->min_blocks) threads *= k->min_blocks;
        uint64_t most = REGISTER_FILE / threads / GRANULARITY * GRANULARITY;
        if (registers > most) registers = most;
    }
    if (k->max_registers && registers > k->max_registers) registers = k->max_registers;
    if (registers < LEAST_REGISTERS) registers = LEAST_REGISTERS;
    return registers > MOST_REGISTERS ? MOST_REGISTERS : (uint32_t)registers;
}

void liveness_estimate(ptx_kernel *kernel)
{
    liveness l = {.kernel = kernel, .weight = malloc(kernel->slots), .is_register = calloc(kernel->slots, 1)};
    uint64_t words = 0;
    if (l.weight && l.is_register) words = analyse(&l, weigh(&l));
    kernel->registers = capped(kernel, words + OVERHEAD);
    free(l.weight);
    free(l.is_register);
    free(l.block_of);
    free(l.blocks);
    free(l.live_in);
    free(l.stack);
    free(l.waiting);
    free(l.predecessors);
    free(l.first_predecessor);
}
