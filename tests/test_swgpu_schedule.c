/* The software GPU's scheduler: lanes of a warp that part and meet again or wait for each other, grids and blocks of any
 * shape over worker threads, what a block starts with, and how a launch ends that runs into a fault. */
#include "schedule_fixture.h"

#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* ---- lanes that part and meet ---- */

/* Lanes come to JOIN with a value in %r9. Stored: it, who is there at once, a vote that needs everybody, and who is
 * there after it. */
#define TAIL                                                                                                           \
    "JOIN:\n activemask.b32 %%r20;\n and.b32 %%r22, %%r9, 1; setp.ne.u32 %%p9, %%r22, 0;\n"                            \
    " vote.sync.ballot.b32 %%r21, %%p9, 0xffffffff;\n activemask.b32 %%r23;\n"                                         \
    " st.global.v4.u32 [%%d3], {%%r9, %%r20, %%r21, %%r23};\n ret;\n"
#define IF_ELSE                                                                                                        \
    " and.b32 %r10, %r1, 1; setp.eq.u32 %p1, %r10, 0;\n @%p1 bra EVEN;\n mad.lo.u32 %r9, %r1, 3, 1;\n bra JOIN;\n"     \
    "EVEN:\n xor.b32 %r9, %r1, 5;\n"

static uint32_t if_else(uint32_t t) { return t & 1 ? 3 * t + 1 : t ^ 5; }
static uint32_t if_only(uint32_t t) { return t % 32 < 7 ? 70 + t : 0; }
static uint32_t always_five(uint32_t t) { return (void)t, 5; }

/* The inner joins' lanes are part of the value; of a warp with fewer lanes, fewer come. */
static uint32_t lanes_of_warp; /* of the warp that is checked */

static uint32_t nested_if(uint32_t t)
{
    if (t & 1) return (100 + (t & 2 ? 8 : 4)) * 5 + (0xaaaaaaaau & lanes_of_warp);
    return (100 + (t & 2 ? 2 : 1)) * 3 + (0x55555555u & lanes_of_warp);
}

static uint32_t trip_counts(uint32_t t)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k <= t % 32; k++) sum += k;
    return sum;
}

static uint32_t break_continue(uint32_t t)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 20; k++) {
        if (k == t % 32) break;
        if (k & 1) continue;
        sum += k + 1;
    }
    return sum;
}

static uint32_t nested_loops(uint32_t t)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < t % 4; i++)
        for (uint32_t j = 0; j < t / 4 % 3 + i; j++) value = 3 * value + i + 1;
    return value;
}

static uint32_t switch_chain(uint32_t t)
{
    uint32_t value = 1;
    switch (t % 32 % 5) {
    case 0: value = 10; break;
    case 1: value += 7; /* fall through */
    case 2: value += 20; break;
    case 3: break;
    default: value = 1000 + t;
    }
    return value;
}

static uint32_t shared_code(uint32_t t)
{
    uint32_t value = 0, count = 0;
    while (count < (t & 3) || (t & 4 && count < 5)) value = 2 * value + 1, count++;
    return value;
}

static uint32_t cold_once(uint32_t t) { return (t & 3) == 2 ? 9 * t + 4 : 5; }
static uint32_t cold_nested(uint32_t t) { return t % 3 ? 6 : t % 2 ? 1 : t + 50; }
static uint32_t after_long_loop(uint32_t t) { return (t & 1 ? 3 * t + 1 : t ^ 5); }

static const struct path {
    const char *name, *body, *after; /* after: code behind the end */
    uint32_t (*expected)(uint32_t t);
    uint32_t reach; /* lanes that come to JOIN */
    int meet_later; /* not at JOIN, only at the vote */
    uint32_t divergent;
} paths[] = {
    {"if else", IF_ELSE, "", if_else, FULL_MASK, 0, 1},
    {"if", " setp.lt.u32 %p1, %r2, 7;\n @!%p1 bra JOIN;\n add.u32 %r9, %r1, 70;\n", "", if_only, FULL_MASK, 0, 1},
    {"uniform", " setp.lt.u32 %p1, %r2, 32;\n @!%p1 bra JOIN;\n mov.u32 %r9, 5;\n @%p1 bra JOIN;\n mov.u32 %r9, 6;\n", "", always_five,
     FULL_MASK, 0, 0},
    {"guards", " setp.lt.u32 %p1, %r2, 7;\n @%p1 add.u32 %r9, %r1, 70;\n", "", if_only, FULL_MASK, 0, 0},
    {"nested if",
     " and.b32 %r10, %r1, 1; setp.ne.u32 %p1, %r10, 0; and.b32 %r11, %r1, 2; setp.ne.u32 %p2, %r11, 0; mov.u32 %r9, 100;\n"
     " @%p1 bra ODD;\n @%p2 bra EVEN2;\n add.u32 %r9, %r9, 1;\n bra EVENS;\nEVEN2:\n add.u32 %r9, %r9, 2;\n"
     "EVENS:\n activemask.b32 %r30;\n mad.lo.u32 %r9, %r9, 3, %r30;\n bra JOIN;\n"
     "ODD:\n @%p2 bra ODD2;\n add.u32 %r9, %r9, 4;\n bra ODDS;\nODD2:\n add.u32 %r9, %r9, 8;\n"
     "ODDS:\n activemask.b32 %r30;\n mad.lo.u32 %r9, %r9, 5, %r30;\n", "", nested_if, FULL_MASK, 0, 3},
    {"trip counts", " mov.u32 %r10, 0;\nLOOP:\n setp.gt.u32 %p1, %r10, %r2;\n @%p1 bra JOIN;\n add.u32 %r9, %r9, %r10;\n"
     " add.u32 %r10, %r10, 1;\n bra LOOP;\n", "", trip_counts, FULL_MASK, 0, 31},
    {"break and continue",
     " mov.u32 %r10, 0;\nLOOP:\n setp.eq.u32 %p1, %r10, %r2;\n @%p1 bra JOIN;\n and.b32 %r11, %r10, 1;\n"
     " setp.ne.u32 %p2, %r11, 0;\n @%p2 bra NEXT;\n add.u32 %r9, %r9, %r10; add.u32 %r9, %r9, 1;\nNEXT:\n"
     " add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 20;\n @%p3 bra LOOP;\n", "", break_continue, FULL_MASK, 0, 20},
    {"nested loops",
     " and.b32 %r10, %r1, 3; shr.u32 %r11, %r1, 2; rem.u32 %r11, %r11, 3; mov.u32 %r12, 0;\n"
     "OUTER:\n setp.ge.u32 %p1, %r12, %r10;\n @%p1 bra JOIN;\n mov.u32 %r13, 0; add.u32 %r14, %r11, %r12; add.u32 %r15, %r12, 1;\n"
     "INNER:\n setp.ge.u32 %p2, %r13, %r14;\n @%p2 bra DONE;\n mad.lo.u32 %r9, %r9, 3, %r15;\n add.u32 %r13, %r13, 1;\n bra INNER;\n"
     "DONE:\n mov.u32 %r12, %r15;\n bra OUTER;\n", "", nested_loops, FULL_MASK, 0, 0},
    {"switch",
     " rem.u32 %r10, %r2, 5; mov.u32 %r9, 1;\n setp.eq.u32 %p1, %r10, 0;\n @%p1 bra ZERO;\n setp.eq.u32 %p1, %r10, 1;\n"
     " @%p1 bra ONE;\n setp.eq.u32 %p1, %r10, 2;\n @%p1 bra TWO;\n setp.eq.u32 %p1, %r10, 3;\n @%p1 bra JOIN;\n"
     " add.u32 %r9, %r1, 1000;\n bra JOIN;\nZERO:\n mov.u32 %r9, 10;\n bra JOIN;\nONE:\n add.u32 %r9, %r9, 7;\n"
     "TWO:\n add.u32 %r9, %r9, 20;\n", "", switch_chain, FULL_MASK, 0, 4},
    {"shared code",
     " mov.u32 %r10, 0; and.b32 %r11, %r1, 3; and.b32 %r12, %r1, 4; setp.ne.u32 %p3, %r12, 0;\n bra TEST;\n"
     "BODY:\n mad.lo.u32 %r9, %r9, 2, 1; add.u32 %r10, %r10, 1;\nTEST:\n setp.lt.u32 %p1, %r10, %r11;\n @%p1 bra BODY;\n"
     " setp.lt.and.u32 %p2, %r10, 5, %p3;\n @%p2 bra BODY;\n", "", shared_code, FULL_MASK, 0, 0},
    {"cold", " and.b32 %r10, %r1, 3; setp.eq.u32 %p1, %r10, 2;\n @%p1 bra COLD;\n mov.u32 %r9, 5;\n",
     "COLD:\n mad.lo.u32 %r9, %r1, 9, 4;\n bra JOIN;\n", cold_once, FULL_MASK, 1, 1},
    {"cold in cold",
     " rem.u32 %r10, %r1, 3; setp.eq.u32 %p1, %r10, 0; and.b32 %r11, %r1, 1; setp.eq.u32 %p2, %r11, 0;\n @%p1 bra COLD;\n"
     " mov.u32 %r9, 6;\n", "COLD:\n @%p2 bra COLDER;\n mov.u32 %r9, 1;\n bra JOIN;\nCOLDER:\n add.u32 %r9, %r1, 50;\n bra JOIN;\n",
     cold_nested, FULL_MASK, 1, 2},
    {"after 10000 rounds together",
     " mov.u32 %r10, 0;\nLOOP:\n add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 10000;\n @%p1 bra LOOP;\n" IF_ELSE, "",
     after_long_loop, FULL_MASK, 0, 1},
    {"after 10000 rounds apart",
     " mov.u32 %r10, 0; and.b32 %r11, %r2, 4; setp.ne.u32 %p2, %r11, 0;\n @%p2 bra MEET;\n"
     "LOOP:\n add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 10000;\n @%p1 bra LOOP;\n"
     "MEET:\n bar.warp.sync 0xffffffff;\n" IF_ELSE, "", after_long_loop, FULL_MASK, 0, 2},
    {"early return", " setp.ge.u32 %p1, %r2, 20;\n @%p1 ret;\n" IF_ELSE, "", if_else, 0xfffff, 0, 1},
    {"all but one exit", " setp.ne.u32 %p1, %r2, 3;\n @%p1 exit;\n" IF_ELSE, "", if_else, 8, 0, 0},
    {"exits in a loop",
     " mov.u32 %r10, 0;\nLOOP:\n setp.eq.u32 %p1, %r10, %r2; and.b32 %r11, %r2, 1;\n setp.ne.and.u32 %p2, %r11, 0, %p1;\n @%p2 exit;\n"
     " add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 40;\n @%p3 bra LOOP;\n" IF_ELSE, "", if_else, 0x55555555, 0, 0},
    {"exit of who is ahead", " setp.lt.u32 %p1, %r2, 9;\n @%p1 bra COLD;\n", "COLD:\n exit;\n", if_only, 0xfffffe00, 0, 1},
};

static const char *path_text(const struct path *p)
{
    static char text[8192], tail[1024];
    snprintf(tail, sizeof tail, TAIL);
    snprintf(text, sizeof text, "%s%s%s%s}\n", K_BEGIN, p->body, tail, p->after);
    return text;
}

static void check_path(const struct path *p, unsigned threads, unsigned index)
{
    const unsigned first = 32 * index, live = threads - first >= 32 ? FULL_MASK : (1u << (threads - first)) - 1;
    const uint32_t there = p->reach & live;
    uint32_t ballot = 0;
    lanes_of_warp = live;
    for (unsigned lane = 0; lane < 32; lane++)
        if (there >> lane & 1) ballot |= (p->expected(first + lane) & 1) << lane;
    for (unsigned lane = 0; lane < 32; lane++) {
        const uint32_t *got = &OUT(first + lane);
        if (!(there >> lane & 1)) {
            assert_int_equal(got[0], UNTOUCHED);
            continue;
        }
        if (got[0] != p->expected(first + lane)) fail_msg("%s: lane %u of %u threads has %u", p->name, lane, threads, got[0]);
        if (!p->meet_later && got[1] != there) fail_msg("%s: 0x%x at the join instead of 0x%x", p->name, got[1], there);
        if (got[2] != ballot) fail_msg("%s: ballot 0x%x instead of 0x%x", p->name, got[2], ballot);
        if (got[3] != there) fail_msg("%s: 0x%x after the vote instead of 0x%x", p->name, got[3], there);
    }
}

static void lanes_part_and_meet(void **state)
{
    (void)state;
    static const unsigned threads[] = {32, 64, 44};
    for (size_t n = 0; n < sizeof paths / sizeof paths[0]; n++)
        for (size_t k = 0; k < 3; k++) {
            const struct path *p = &paths[n];
            WORKS(run_k(NULL, path_text(p), 1, threads[k]));
            for (unsigned w = 0; 32 * w < threads[k]; w++) check_path(p, threads[k], w);
            if (k == 0 && p->divergent) assert_int_equal(counts[COUNT_divergent_branches], p->divergent);
        }
    WORKS(run_k(NULL, path_text(&paths[2]), 1, 64));
    assert_int_equal(counts[COUNT_divergent_branches], 0);
}

/* An instruction is counted once for all who run it together, however late some of them come. */
static void instructions_are_counted_once(void **state)
{
    (void)state;
    WORKS(run_k(NULL, path_text(&paths[0]), 1, 32));
    assert_int_equal(counts[COUNT_instructions], 10 + 3 + 2 + 1 + 7); /* both ways */
    assert_int_equal(counts[COUNT_branch], 3);
    WORKS(run_k(NULL, path_text(&paths[10]), 1, 32));
    assert_int_equal(counts[COUNT_warp], 2 + 1 + 1); /* activemask for each part, vote, activemask */
    assert_int_equal(counts[COUNT_store], 1);
    static const char barrier[] = KERNEL(" setp.lt.u32 %p1, %r2, 5;\n @%p1 bra COLD;\nBACK:\n bar.sync 0;\n bra END;\n"
                                         "COLD:\n mov.u32 %r9, 1;\n bra BACK;\nEND:\n");
    WORKS(run_k(NULL, barrier, 1, 96));
    assert_int_equal(counts[COUNT_barrier], 3);
    assert_int_equal(counts[COUNT_barriers], 1);
}

/* ldmatrix needs the whole warp; lane n gives the address of row n, 16 bytes of shared memory. */
static void a_matrix_after_a_join(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " shl.b32 %r10, %r2, 4; add.u32 %r10, %r8, %r10; mul.lo.u32 %r11, %r2, 0x00020002;\n"
        " st.shared.v4.u32 [%r10], {%r11, %r11, %r11, %r11};\n bar.warp.sync 0xffffffff;\n"
        " and.b32 %r12, %r2, 3; setp.eq.u32 %p1, %r12, 1;\n @%p1 bra COLD;\n add.u32 %r13, %r10, 0;\n"
        "JOIN:\n ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r13];\n"
        " st.global.v4.u32 [%d3], {%r20, %r21, %r22, %r23};\n ret;\nCOLD:\n mov.u32 %r13, %r10;\n bra JOIN;\n");
    WORKS(run_k(NULL, text, 1, 32));
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t n = 0; n < 4; n++) assert_int_equal((&OUT(lane))[n], (8 * n + lane / 4) * 0x00020002u);
}

/* ---- lanes and warps that wait for each other ---- */

/* A lane that comes first waits for one that comes later in the code; three in a row, each for the next. */
static void lanes_wait_for_lanes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        KERNEL(" setp.ne.u32 %p1, %r2, 4;\n @%p1 bra LATER;\nSPIN:\n ld.volatile.shared.u32 %r9, [%r8];\n"
               " setp.ne.u32 %p2, %r9, 42;\n @%p2 bra SPIN;\n bra END;\n"
               "LATER:\n setp.eq.u32 %p3, %r2, 9; mov.u32 %r10, 42;\n @%p3 st.volatile.shared.u32 [%r8], %r10;\n mov.u32 %r9, 42;\nEND:\n"),
        KERNEL(" mov.u64 %d4, %d1; add.u64 %d4, %d4, 65536; setp.ne.u32 %p1, %r2, 4;\n @%p1 bra LATER;\nSPIN:\n"
               " ld.relaxed.gpu.global.u32 %r9, [%d4];\n setp.ne.u32 %p2, %r9, 42;\n @%p2 bra SPIN;\n bra END;\n"
               "LATER:\n setp.eq.u32 %p3, %r2, 9; mov.u32 %r10, 42;\n @%p3 st.relaxed.gpu.global.u32 [%d4], %r10;\n"
               " mov.u32 %r9, 42;\nEND:\n"),
        /* the lanes' loops lie in the wrong order */
        KERNEL(" mov.u32 %r11, 42; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1; setp.eq.u32 %p3, %r2, 2;\n"
               " @%p1 bra FIRST;\n @%p2 bra SECOND;\n @%p3 bra THIRD;\n bra LAST;\n"
               "FIRST:\n ld.volatile.shared.u32 %r9, [%r8];\n setp.ne.u32 %p4, %r9, 42;\n @%p4 bra FIRST;\n bra END;\n"
               "SECOND:\n ld.volatile.shared.u32 %r9, [%r8+4];\n setp.ne.u32 %p4, %r9, 42;\n @%p4 bra SECOND;\n"
               " st.volatile.shared.u32 [%r8], %r9;\n bra END;\n"
               "THIRD:\n ld.volatile.shared.u32 %r9, [%r8+8];\n setp.ne.u32 %p4, %r9, 42;\n @%p4 bra THIRD;\n"
               " st.volatile.shared.u32 [%r8+4], %r9;\n bra END;\n"
               "LAST:\n setp.eq.u32 %p5, %r2, 31;\n @%p5 st.volatile.shared.u32 [%r8+8], %r11;\n mov.u32 %r9, 42;\nEND:\n"),
    };
    for (size_t n = 0; n < sizeof texts / sizeof texts[0]; n++) {
        WORKS(run_k("none", texts[n], 1, 32));
        for (unsigned lane = 0; lane < 32; lane++) assert_int_equal(OUT(lane), 42);
    }
}

/* Every lane takes the same lock in turn, in two warps of each of two blocks. */
static void a_lock(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " add.u64 %d4, %d1, 65536;\nTRY:\n atom.global.cas.b32 %r10, [%d4+4], 0x77777777, 1;\n setp.ne.u32 %p1, %r10, 0x77777777;\n"
        " @%p1 bra TRY;\n ld.volatile.global.u32 %r11, [%d4];\n add.u32 %r9, %r11, 1;\n st.volatile.global.u32 [%d4], %r9;\n"
        " membar.gl;\n atom.global.exch.b32 %r10, [%d4+4], 0x77777777;\n");
    uint32_t seen[96] = {0};
    WORKS(run_k(NULL, text, 2, 48));
    assert_int_equal(out[16384], UNTOUCHED + 96);
    for (unsigned t = 0; t < 96; t++) {
        const uint32_t place = OUT(t) - UNTOUCHED;
        assert_in_range(place, 1, 96);
        assert_int_equal(seen[place - 1]++, 0);
    }
}

/* Warp 0 waits for warp 1; whole, or one lane of it while the others are at a barrier or have exited. */
static void warps_wait_for_warps(void **state)
{
    (void)state;
    static const char *const waits[] = {"", " setp.ne.u32 %p3, %r2, 7;\n @%p3 bra END;\n",
                                        " setp.ne.u32 %p3, %r2, 7;\n @%p3 ret;\n"};
    char text[4096];
    for (size_t n = 0; n < 3; n++) {
        snprintf(text, sizeof text, "%s%s%s%s", K_BEGIN " setp.ge.u32 %p1, %r1, 32; mov.u32 %r9, 5;\n @%p1 bra SET;\n", waits[n],
                 "SPIN:\n ld.volatile.shared.u32 %r9, [%r8];\n setp.ne.u32 %p2, %r9, 42;\n @%p2 bra SPIN;\n bra END;\n"
                 "SET:\n mov.u32 %r10, 42;\n st.volatile.shared.u32 [%r8], %r10;\nEND:\n bar.sync 0;\n", K_STORE K_END);
        WORKS(run_k("none", text, 1, 64));
        for (unsigned t = 0; t < 64; t++)
            assert_int_equal(OUT(t), t >= 32 ? 5 : n == 0 || t == 7 ? 42 : n == 1 ? 5 : UNTOUCHED);
    }
    /* Three rounds each way. */
    static const char rounds[] = KERNEL(
        " mov.u32 %r10, 0; st.volatile.shared.u32 [%r8], %r10;\n bar.sync 0;\n shr.u32 %r11, %r1, 5;\n"
        "ROUND:\n mad.lo.u32 %r12, %r10, 2, %r11;\nSPIN:\n ld.volatile.shared.u32 %r13, [%r8];\n setp.ne.u32 %p1, %r13, %r12;\n"
        " @%p1 bra SPIN;\n add.u32 %r9, %r13, 1;\n st.volatile.shared.u32 [%r8], %r9;\n add.u32 %r10, %r10, 1;\n"
        " setp.lt.u32 %p2, %r10, 3;\n @%p2 bra ROUND;\n");
    WORKS(run_k("none", rounds, 1, 64));
    for (unsigned t = 0; t < 64; t++) assert_int_equal(OUT(t), t < 32 ? 5 : 6);
}

/* ---- endless loops ---- */

#define FOREVER "LOOP:\n add.u32 %r9, %r9, 1;\n bra LOOP;\n"

static void endless_loops_end(void **state)
{
    (void)state;
    static const char *const texts[] = {
        KERNEL(FOREVER),
        KERNEL(" setp.ne.u32 %p1, %r2, 3;\n @%p1 bra END;\n" FOREVER "END:\n"),
        KERNEL(" setp.ne.u32 %p1, %r2, 3;\n @%p1 bra END;\n" FOREVER "END:\n bar.sync 0;\n"),
        KERNEL(" setp.ne.u32 %p1, %r2, 3;\n @%p1 bra END;\n" FOREVER "END:\n bar.warp.sync 0xffffffff;\n"),
        KERNEL("LOOP:\n bar.sync 0;\n bra LOOP;\n"),
        KERNEL("LOOP:\n bra LOOP;\n"),
    };
    for (size_t n = 0; n < sizeof texts / sizeof texts[0]; n++)
        for (uint32_t blocks = 1; blocks <= 3; blocks += 2) {
            direct d;
            direct_open(&d, texts[n], blocks, 64, 50000);
            launch_run(&d.launch, NULL, blocks, 2);
            assert_int_equal(d.fault.kind, FAULT_TIMEOUT);
            assert_int_equal(d.fault.code, CUDA_ERROR_LAUNCH_TIMEOUT);
            assert_memory_equal(d.fault.text, "timeout: a warp ran more than 50000 instructions; kernel k, block (", 67);
            char line[32];
            snprintf(line, sizeof line, "PTX line %d", line_of(texts[n], "bra LOOP"));
            assert_string_equal(strstr(d.fault.text, "PTX line"), line);
            if (n >= 1 && n <= 3) assert_non_null(strstr(d.fault.text, "thread (3, 0, 0)"));
            direct_close(&d);
        }
}

/* 10 + 1 + 4 * 1000 instructions before the last jump falls through. */
static void the_limit_of_instructions(void **state)
{
    (void)state;
    static const char text[] = KERNEL(" mov.u32 %r10, 0;\nLOOP:\n add.u32 %r9, %r9, 1; add.u32 %r10, %r10, 1;\n"
                                      " setp.lt.u32 %p1, %r10, 1000;\n @%p1 bra LOOP;\n");
    static const struct {
        uint64_t limit;
        int timeout;
    } rows[] = {{0, 0}, {5000, 0}, {4007, 0}, {4006, 1}, {1000, 1}, {1, 1}};
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
        direct d;
        direct_open(&d, text, 2, 64, rows[n].limit);
        launch_run(&d.launch, NULL, 2, 1);
        assert_int_equal(d.fault.kind, rows[n].timeout ? FAULT_TIMEOUT : FAULT_NONE);
        assert_int_equal(d.data[4 * 127], rows[n].timeout ? 0 : 1000); /* each warp of each block has a limit of its own */
        direct_close(&d);
    }
}

/* ---- shapes ---- */

#define SPECIAL(name) " mov.u32 %r10, %" name "; st.global.u32 [%d3], %r10; add.u64 %d3, %d3, 4;\n"
#define SPECIALS                                                                                                       \
    HEADER ".visible .entry k(.param .u64 out) {\n .reg .b32 %r<50>; .reg .b64 %d<10>; .shared .align 4 .b8 s[24];\n"  \
    " ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"                       \
    " mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;\n"                                             \
    " mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1;\n"                                                 \
    " mov.u32 %r11, %ctaid.x; mov.u32 %r12, %ctaid.y; mov.u32 %r13, %ctaid.z; mov.u32 %r14, %nctaid.x; mov.u32 %r15, %nctaid.y;\n" \
    " mad.lo.u32 %r16, %r13, %r15, %r12; mad.lo.u32 %r16, %r16, %r14, %r11;\n"                                         \
    " mul.lo.u32 %r17, %r4, %r5; mul.lo.u32 %r17, %r17, %r6; mad.lo.u32 %r18, %r16, %r17, %r7;\n"                      \
    " mul.wide.u32 %d2, %r18, 128; add.u64 %d3, %d1, %d2;\n"                                                           \
    SPECIAL("tid.x") SPECIAL("tid.y") SPECIAL("tid.z") SPECIAL("ntid.x") SPECIAL("ntid.y") SPECIAL("ntid.z") \
    SPECIAL("ctaid.x") SPECIAL("ctaid.y") SPECIAL("ctaid.z") SPECIAL("nctaid.x") SPECIAL("nctaid.y")   \
    SPECIAL("nctaid.z") SPECIAL("laneid") SPECIAL("warpid") SPECIAL("nwarpid") SPECIAL("lanemask_eq") \
    SPECIAL("lanemask_lt") SPECIAL("lanemask_le") SPECIAL("lanemask_ge") SPECIAL("lanemask_gt")        \
    SPECIAL("nsmid") SPECIAL("smid") SPECIAL("dynamic_smem_size") SPECIAL("total_smem_size")           \
    " mov.u32 %r10, 1; atom.global.add.u32 %r19, [%d3], %r10;\n st.global.u32 [%d3+4], %r18; ret; }\n"

static void check_specials(const uint32_t *w, const unsigned grid[3], const unsigned size[3], uint32_t linear, uint32_t t)
{
    const uint32_t lane = t % 32, threads = size[0] * size[1] * size[2];
    uint32_t below = 0;
    for (uint32_t n = 0; n < lane; n++) below |= 1u << n;
    const uint32_t expected[] = {
        t % size[0], t / size[0] % size[1], t / size[0] / size[1], size[0], size[1], size[2],
        linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1], grid[0], grid[1], grid[2],
        lane, t / 32, (threads + 31) / 32, 1u << lane, below, below | 1u << lane, ~below, ~(below | 1u << lane),
        8, linear % 8, 0, 24, UNTOUCHED + 1, linear * threads + t,
    };
    for (size_t n = 0; n < sizeof expected / sizeof expected[0]; n++)
        if (w[n] != expected[n]) fail_msg("block %u, thread %u: value %zu is %u, not %u", linear, t, n, w[n], expected[n]);
}

static void grids_and_blocks_in_three_dimensions(void **state)
{
    (void)state;
    static const char *const workers[] = {"1", "2", "8"};
    static const unsigned shapes[][2][3] = {{{3, 2, 4}, {5, 3, 3}}, {{1, 7, 1}, {1, 1, 33}}, {{2, 1, 5}, {64, 1, 1}},
                                            {{1, 1, 1}, {32, 32, 1}}, {{1, 1, 9}, {1, 1, 1}}};
    for (size_t n = 0; n < sizeof shapes / sizeof shapes[0]; n++)
        for (size_t k = 0; k < 3; k++) {
            const unsigned *g = shapes[n][0], *b = shapes[n][1];
            const uint32_t threads = b[0] * b[1] * b[2], blocks = g[0] * g[1] * g[2];
            assert_true(threads * blocks * 32 <= K_WORDS);
            WORKS(run_shape(NULL, workers[k], SPECIALS, g, b));
            for (uint32_t linear = 0; linear < blocks; linear++)
                for (uint32_t t = 0; t < threads; t++) check_specials(out + 32 * (linear * threads + t), g, b, linear, t);
            assert_int_equal(out[32 * threads * blocks], UNTOUCHED);
            assert_int_equal(counts[COUNT_blocks_run], blocks);
        }
}

/* 10000 blocks of 33 threads; sums of their numbers, and how often each ran. */
static void many_small_blocks(void **state)
{
    (void)state;
    static const char text[] = K_BEGIN
        " mul.wide.u32 %d4, %r3, 4; add.u64 %d4, %d1, %d4; red.global.add.u32 [%d4], %r1;\n"
        " setp.lt.u32 %p1, %r1, 32; and.b32 %r10, %r3, 1; setp.eq.and.u32 %p1, %r10, 0, %p1;\n @%p1 bra END;\n"
        " atom.global.add.u32 %r11, [%d1+80000], %r3; red.global.add.u32 [%d1+80004], 1;\nEND:\n bar.sync 0;\n" K_END;
    static const unsigned grid[3] = {10000, 1, 1}, size[3] = {33, 1, 1};
    uint64_t first[COUNTS];
    uint32_t sum = UNTOUCHED, number = UNTOUCHED;
    for (uint32_t n = 0; n < 10000; n++) sum += n % 2 ? 33 * n : n, number += n % 2 ? 33 : 1;
    for (int round = 0; round < 2; round++) {
        WORKS(run_shape(NULL, round ? "8" : "1", text, grid, size));
        for (uint32_t n = 0; n < 10000; n++) assert_int_equal(out[n], UNTOUCHED + 528);
        assert_int_equal(out[20000], sum);
        assert_int_equal(out[20001], number);
        if (round) assert_memory_equal(counts, first, sizeof first);
        memcpy(first, counts, sizeof first);
    }
    assert_int_equal(first[COUNT_blocks], 10000);
    assert_int_equal(first[COUNT_barriers], 10000);
    assert_int_equal(first[COUNT_barrier], 20000);
    assert_int_equal(first[COUNT_divergent_branches], 0);
    assert_int_equal(first[COUNT_atomic], 2 * 10000 + 5000 * (4 + 2));
}

/* A list says which blocks run. */
static void a_list_of_blocks(void **state)
{
    (void)state;
    static const uint64_t list[] = {1, 5, 6, 19};
    for (unsigned workers = 1; workers <= 100; workers += 33) {
        direct d;
        direct_open(&d, KERNEL(" atom.global.add.u32 %r10, [%d3+4], 1;\n mov.u32 %r9, %ctaid.y;\n"), 4, 1, 0);
        d.launch.grid[1] = 5;
        launch_run(&d.launch, list, 4, workers);
        assert_int_equal(d.fault.kind, FAULT_NONE);
        assert_true(d.launch.blocks_run == 4);
        for (uint32_t n = 0; n < 4; n++) assert_int_equal(d.data[4 * n + 1], (n == 1 || n == 2 || n == 3) + (n == 1));
        launch_run(&d.launch, list, 0, workers);
        assert_true(d.launch.blocks_run == 4);
        direct_close(&d);
    }
}

/* ---- what a block starts with ---- */

static void a_block_starts_afresh(void **state)
{
    (void)state;
    static const char text[] =
        HEADER ".visible .entry k(.param .u64 out) {\n .reg .b32 %r<50>; .reg .b64 %d<10>; .reg .pred %p<4>;\n"
        " .shared .align 16 .b8 s[4096]; .local .align 8 .b8 l[40];\n"
        " ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r5, %r3, 50, %r1;\n"
        " mul.wide.u32 %d2, %r5, 16; add.u64 %d3, %d1, %d2;\n"
        " mul.lo.u32 %r6, %r1, 8; mov.u32 %r7, s; add.u32 %r6, %r6, %r7; ld.shared.u32 %r8, [%r6];\n"
        " mov.u64 %d4, l; ld.local.u32 %r10, [%d4+36]; cvt.u32.u64 %r11, %d5; selp.u32 %r12, 1, 0, %p1;\n"
        " or.b32 %r13, %r40, %r11; or.b32 %r13, %r13, %r12; shr.u64 %d6, %d5, 32; cvt.u32.u64 %r11, %d6; or.b32 %r13, %r13, %r11;\n"
        " st.global.v4.u32 [%d3], {%r8, %r10, %r13, %r5};\n"
        " st.shared.u32 [%r6], %r1; st.local.u32 [%d4+36], %r1; mov.u32 %r40, 7; mov.u64 %d5, 0x900000009; setp.eq.u32 %p1, %r1, %r1;\n"
        " ret; }\n";
    static const unsigned grid[3] = {20, 1, 1}, size[3] = {50, 1, 1};
    WORKS(run_shape("none", "1", text, grid, size));
    for (unsigned t = 0; t < 1000; t++) {
        const uint32_t *w = &OUT(t);
        assert_int_equal(w[0], 0xffffffff);
        assert_int_equal(w[1], 0xffffffff);
        assert_int_equal(w[2], 0);
        assert_int_equal(w[3], t);
    }
}

/* Each thread fills its own array, at indices that depend on it, and finds that and nothing else there. */
static void local_arrays_are_private(void **state)
{
    (void)state;
    static const char text[] = HEADER
        ".visible .entry k(.param .u64 out) {\n .reg .b32 %r<50>; .reg .b64 %d<10>; .reg .pred %p<4>; .local .align 4 .b8 l[64];\n"
        " ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r5, %r3, 70, %r1;\n"
        " mul.wide.u32 %d2, %r5, 16; add.u64 %d3, %d1, %d2; mov.u64 %d4, l; mov.u32 %r10, 0;\n"
        "FILL:\n add.u32 %r11, %r10, %r1; and.b32 %r11, %r11, 15; mul.wide.u32 %d5, %r11, 4; add.u64 %d5, %d4, %d5;\n"
        " mad.lo.u32 %r12, %r5, 100, %r10; st.local.u32 [%d5], %r12; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 16;\n @%p1 bra FILL;\n"
        " bar.sync 0;\n mov.u32 %r10, 0; mov.u32 %r9, 0;\n"
        "SUM:\n mul.wide.u32 %d5, %r10, 4; add.u64 %d5, %d4, %d5; ld.local.u32 %r12, [%d5]; mad.lo.u32 %r9, %r9, 3, %r12;\n"
        " add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 16;\n @%p1 bra SUM;\n st.global.u32 [%d3], %r9;\n ret; }\n";
    WORKS(run_k(NULL, text, 3, 70));
    for (uint32_t t = 0; t < 210; t++) {
        uint32_t l[16], sum = 0;
        for (uint32_t k = 0; k < 16; k++) l[(k + t % 70) % 16] = 100 * t + k;
        for (uint32_t k = 0; k < 16; k++) sum = 3 * sum + l[k];
        assert_int_equal(OUT(t), sum);
    }
}

/* ---- the host's state ---- */

/* Sums that round, and a product of denormals' size; all differ if the host's rounding or flushing gets through. */
static void the_hosts_floating_point(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f33000000; cvt.rn.f32.u32 %f3, %r9; add.rn.f32 %f1, %f1, %f3;\n"
        " add.rn.f32 %f4, %f1, %f2; mov.f32 %f5, 0f00800000; mov.f32 %f6, 0f3F000000; mul.rn.f32 %f7, %f5, %f6;\n"
        " sub.rn.f32 %f8, %f3, %f1; sub.rn.f32 %f8, %f8, %f2; mov.b32 %r10, %f4; mov.b32 %r11, %f7; mov.b32 %r12, %f8;\n"
        " st.global.v4.u32 [%d3], {%r9, %r10, %r11, %r12};\n");
    static const uint32_t expected[4] = {0, 0x3f800000, 0x00400000, 0xbf800000};
    static const char *const workers[] = {"1", "8"};
    for (int round = 0; round < 4; round++) {
        const unsigned grid[3] = {40, 1, 1}, size[3] = {32, 1, 1};
        fenv_t before;
        fegetenv(&before);
        if (round >= 2) {
            fesetround(round == 2 ? FE_UPWARD : FE_DOWNWARD);
#ifdef __SSE__
            _mm_setcsr(_mm_getcsr() | 0x8040); /* results and operands are flushed */
#endif
        }
#ifdef __SSE__
        const unsigned control = _mm_getcsr() & ~0x3fu;
#endif
        const int rounding = fegetround();
        const CUresult result = run_shape(NULL, workers[round % 2], text, grid, size);
        const int rounding_after = fegetround();
#ifdef __SSE__
        const unsigned control_after = _mm_getcsr() & ~0x3fu;
#endif
        fesetenv(&before);
        WORKS(result);
        assert_int_equal(rounding_after, rounding);
#ifdef __SSE__
        assert_int_equal(control_after, control);
#endif
        for (unsigned t = 0; t < 1280; t++) assert_memory_equal(&OUT(t), expected, sizeof expected);
    }
}

static unsigned threads_that_block_all(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        char path[512], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
        for (unsigned long long mask; f && fgets(line, sizeof line, f);)
            if (sscanf(line, "SigBlk: %llx", &mask) == 1) count += mask >> (SIGUSR1 - 1) & 1 && mask >> (SIGTERM - 1) & 1;
        if (f) fclose(f);
    }
    if (tasks) closedir(tasks);
    return count;
}

/* Looks while two blocks run, one on this thread and one on a worker, and lets them end. */
static void *look_at_the_threads(void *user)
{
    uint32_t *data = user;
    while (__atomic_load_n(data, __ATOMIC_SEQ_CST) != 2) {}
    const uintptr_t count = threads_that_block_all();
    __atomic_store_n(data + 1, 1, __ATOMIC_SEQ_CST);
    return (void *)count;
}

static void the_hosts_signals(void **state)
{
    (void)state;
    static const char text[] = KERNEL(" atom.global.add.u32 %r10, [%d1], 1;\nSPIN:\n atom.global.or.b32 %r10, [%d1+4], 0;\n"
                                      " setp.eq.u32 %p1, %r10, 0;\n @%p1 bra SPIN;\n add.u64 %d3, %d3, 64;\n");
    const unsigned before_it = threads_that_block_all();
    sigset_t mine, before, after;
    pthread_t looker;
    void *count = NULL;
    direct d;
    direct_open(&d, text, 2, 1, 1ull << 40);
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR2);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &mine, &before), 0);
    assert_int_equal(pthread_create(&looker, NULL, look_at_the_threads, d.data), 0);
    launch_run(&d.launch, NULL, 2, 2);
    assert_int_equal(pthread_join(looker, &count), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, &after), 0);
    for (int n = 1; n < 32; n++) assert_int_equal(sigismember(&after, n), n == SIGUSR2 ? 1 : sigismember(&before, n));
    assert_int_equal(d.fault.kind, FAULT_NONE);
    assert_int_equal((uintptr_t)count, before_it + 1);
    direct_close(&d);
}

/* ---- faults ---- */

/* Every block faults, on 8 threads at once: one of them is told of, whole. */
static void one_fault_is_kept(void **state)
{
    (void)state;
    static const char text[] = KERNEL(" setp.eq.u32 %p1, %r1, 37;\n @%p1 trap;\n");
    static const unsigned grid[3] = {64, 1, 1}, size[3] = {64, 1, 1};
    for (int round = 0; round < 10; round++) {
        const unsigned before = finding_count();
        unsigned number;
        int end = 0;
        char expected[64];
        assert_int_equal(run_shape(NULL, "8", text, grid, size), CUDA_ERROR_ILLEGAL_INSTRUCTION);
        assert_int_equal(finding_count(), before + 1);
        snprintf(expected, sizeof expected, "thread (37, 0, 0), PTX line %d", line_of(text, "trap"));
        assert_int_equal(sscanf(last_finding(), "trap: the kernel executed trap; kernel k, block (%u, 0, 0), %n", &number, &end), 1);
        assert_in_range(number, 0, 63);
        assert_string_equal(last_finding() + end, expected);
        assert_true(counts[COUNT_blocks_run] >= 1 && counts[COUNT_blocks_run] <= 64);
    }
}

/* In order on one thread, no block runs after the one that faults; its other warps do not go on either. */
static void a_fault_stops_what_follows(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " atom.global.add.u32 %r10, [%d1+65532], 1;\n mov.u64 %d3, %d1; setp.eq.u32 %p1, %r3, 5; setp.eq.u32 %p2, %r1, 33;\n @!%p1 bra END;\n @%p2 trap;\nEND:\n");
    direct d;
    direct_open(&d, text, 100, 96, 0);
    launch_run(&d.launch, NULL, 100, 1);
    assert_int_equal(d.fault.kind, FAULT_TRAP);
    assert_int_equal(atomic_load(&d.launch.stop), 1);
    assert_int_equal(d.data[16383], 5 * 96 + 64);
    assert_true(d.launch.blocks_run == 6);
    direct_close(&d);
}

/* A block that would run for long stops when another faults. */
static void a_fault_stops_who_runs(void **state)
{
    (void)state;
    static const char *const texts[] = {
        KERNEL(" setp.eq.u32 %p1, %r3, 1;\n @%p1 trap;\n" FOREVER),
        KERNEL(" setp.eq.u32 %p1, %r3, 1;\n @%p1 trap;\n setp.lt.u32 %p2, %r2, 4;\n @%p2 bra END;\n" FOREVER "END:\n bar.sync 0;\n"),
    };
    const uint64_t limit = 1ull << 29;
    for (size_t n = 0; n < 2; n++) {
        direct d;
        direct_open(&d, texts[n], 2, 32, limit);
        launch_run(&d.launch, NULL, 2, 2);
        assert_int_equal(d.fault.kind, FAULT_TRAP);
        assert_non_null(strstr(d.fault.text, "block (1, 0, 0)"));
        assert_true(d.launch.total.instructions[COUNTER_BRANCH] < limit / 4);
        direct_close(&d);
    }
}

/* Where it was: block and thread in three dimensions, and the source line if the PTX tells. */
static void faults_say_where(void **state)
{
    (void)state;
    static const char text[] = HEADER
        ".file 1 \"templates/one.cu\"\n.file 2 \"two.cuh\"\n.visible .entry k(.param .u64 out) {\n .reg .b32 %r<9>; .reg .pred %p<9>;\n"
        " .loc 1 11 5\n mov.u32 %r1, %ctaid.z; mov.u32 %r2, %tid.z; mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.x;\n"
        " setp.eq.u32 %p1, %r1, 2; setp.eq.and.u32 %p1, %r2, 1, %p1; setp.eq.and.u32 %p1, %r3, 2, %p1; setp.eq.and.u32 %p1, %r4, 1, %p1;\n"
        " .loc 2 77 1\n @%p1 trap;\n ret; }\n";
    static const unsigned grid[3] = {3, 1, 4}, size[3] = {7, 3, 2};
    const unsigned before = finding_count();
    char expected[256];
    assert_int_equal(run_shape(NULL, "1", text, grid, size), CUDA_ERROR_ILLEGAL_INSTRUCTION);
    assert_int_equal(finding_count(), before + 1);
    /* The threads that trap are 35 to 41 of the block: the first lane of warp 1 is meant. */
    snprintf(expected, sizeof expected,
             "trap: the kernel executed trap; kernel k, block (1, 0, 2), thread (0, 2, 1), PTX line %d, two.cuh:77", line_of(text, "trap"));
    assert_string_equal(last_finding(), expected);
}

static void kinds_of_faults(void **state)
{
    (void)state;
    static const struct {
        fault_kind kind;
        const char *name;
        CUresult code;
    } rows[] = {
        {FAULT_NONE, "none", CUDA_SUCCESS},
        {FAULT_OUT_OF_BOUNDS, "out of bounds", CUDA_ERROR_ILLEGAL_ADDRESS},
        {FAULT_USE_AFTER_FREE, "use after free", CUDA_ERROR_ILLEGAL_ADDRESS},
        {FAULT_MISALIGNED, "misaligned", CUDA_ERROR_MISALIGNED_ADDRESS},
        {FAULT_UNINITIALISED, "uninitialised", CUDA_ERROR_LAUNCH_FAILED},
        {FAULT_RACE, "race", CUDA_ERROR_LAUNCH_FAILED},
        {FAULT_ASYNC_NOT_WAITED, "cp.async not waited for", CUDA_ERROR_LAUNCH_FAILED},
        {FAULT_OUTSIDE_OPERAND, "outside the operands", CUDA_ERROR_LAUNCH_FAILED},
        {FAULT_BARRIER, "divergent barrier", CUDA_ERROR_LAUNCH_FAILED},
        {FAULT_LANES, "divergent lanes", CUDA_ERROR_LAUNCH_FAILED},
        {FAULT_TRAP, "trap", CUDA_ERROR_ILLEGAL_INSTRUCTION},
        {FAULT_TIMEOUT, "timeout", CUDA_ERROR_LAUNCH_TIMEOUT},
        {FAULT_MEMORY, "out of host memory", CUDA_ERROR_OUT_OF_MEMORY},
        {FAULT_LEAK, "leak", CUDA_SUCCESS},
    };
    assert_int_equal(sizeof rows / sizeof rows[0], FAULT_KINDS);
    for (size_t n = 0; n < FAULT_KINDS; n++) {
        assert_string_equal(fault_kind_name(rows[n].kind), rows[n].name);
        assert_int_equal(fault_code(rows[n].kind), rows[n].code);
    }
    assert_string_equal(fault_kind_name(FAULT_KINDS), "unknown");
    assert_int_equal(fault_code(FAULT_KINDS), CUDA_ERROR_UNKNOWN);
    fault f = {.kind = FAULT_NONE};
    launch l = {.fault = &f};
    fault_set(&l, FAULT_MEMORY, "no memory for %d", 7);
    fault_set(&l, FAULT_TRAP, "something else");
    assert_string_equal(f.text, "out of host memory: no memory for 7");
    assert_int_equal(f.kind, FAULT_MEMORY);
    assert_int_equal(f.code, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(atomic_load(&l.stop), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lanes_part_and_meet, close_all),
        cmocka_unit_test_teardown(instructions_are_counted_once, close_all),
        cmocka_unit_test_teardown(a_matrix_after_a_join, close_all),
        cmocka_unit_test_teardown(lanes_wait_for_lanes, close_all),
        cmocka_unit_test_teardown(a_lock, close_all),
        cmocka_unit_test_teardown(warps_wait_for_warps, close_all),
        cmocka_unit_test(endless_loops_end),
        cmocka_unit_test(the_limit_of_instructions),
        cmocka_unit_test_teardown(grids_and_blocks_in_three_dimensions, close_all),
        cmocka_unit_test_teardown(many_small_blocks, close_all),
        cmocka_unit_test(a_list_of_blocks),
        cmocka_unit_test_teardown(a_block_starts_afresh, close_all),
        cmocka_unit_test_teardown(local_arrays_are_private, close_all),
        cmocka_unit_test_teardown(the_hosts_floating_point, close_all),
        cmocka_unit_test(the_hosts_signals),
        cmocka_unit_test_teardown(one_fault_is_kept, close_all),
        cmocka_unit_test(a_fault_stops_what_follows),
        cmocka_unit_test(a_fault_stops_who_runs),
        cmocka_unit_test_teardown(faults_say_where, close_all),
        cmocka_unit_test(kinds_of_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
