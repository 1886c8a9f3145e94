/* The software GPU's scheduler: lanes of a warp that part and meet again, lanes and warps that wait for each other, and
 * loops that never end. */
#include "schedule_fixture.h"

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

static const struct path {
    const char *name, *body, *after; /* after: code behind the end */
    uint32_t (*expected)(uint32_t t);
    uint32_t reach; /* lanes that come to JOIN */
    int meet_later; /* not at JOIN, only at the vote */
    uint32_t divergent;
} paths[] = {
    {"if else", IF_ELSE, "", if_else, FULL_MASK, 0, 1},
    {"if", " setp.lt.u32 %p1, %r2, 7;\n @!%p1 bra JOIN;\n add.u32 %r9, %r1, 70;\n", "", if_only, FULL_MASK, 0, 1},
    {"uniform", " setp.lt.u32 %p1, %r2, 32;\n @!%p1 bra JOIN;\n mov.u32 %r9, 5;\n @%p1 bra JOIN;\n"
     " mov.u32 %r9, 6;\n", "", always_five, FULL_MASK, 0, 0},
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
     "OUTER:\n setp.ge.u32 %p1, %r12, %r10;\n @%p1 bra JOIN;\n mov.u32 %r13, 0; add.u32 %r14, %r11, %r12;"
     " add.u32 %r15, %r12, 1;\n"
     "INNER:\n setp.ge.u32 %p2, %r13, %r14;\n @%p2 bra DONE;\n mad.lo.u32 %r9, %r9, 3, %r15;\n add.u32 %r13, %r13, 1;\n"
     " bra INNER;\n"
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
     " mov.u32 %r9, 6;\n", "COLD:\n @%p2 bra COLDER;\n mov.u32 %r9, 1;\n bra JOIN;\nCOLDER:\n add.u32 %r9, %r1, 50;\n"
     " bra JOIN;\n", cold_nested, FULL_MASK, 1, 2},
    {"after 10000 rounds together",
     " mov.u32 %r10, 0;\nLOOP:\n add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 10000;\n @%p1 bra LOOP;\n" IF_ELSE, "",
     if_else, FULL_MASK, 0, 1},
    {"after 5000 rounds apart",
     " mov.u32 %r10, 0; and.b32 %r11, %r2, 4; setp.ne.u32 %p2, %r11, 0;\n @%p2 bra MEET;\n"
     "LOOP:\n add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 5000;\n @%p1 bra LOOP;\n"
     "MEET:\n bar.warp.sync 0xffffffff;\n" IF_ELSE, "", if_else, FULL_MASK, 0, 2},
    {"early return", " setp.ge.u32 %p1, %r2, 20;\n @%p1 ret;\n" IF_ELSE, "", if_else, 0xfffff, 0, 1},
    {"all but one exit", " setp.ne.u32 %p1, %r2, 3;\n @%p1 exit;\n" IF_ELSE, "", if_else, 8, 0, 0},
    {"exits in a loop",
     " mov.u32 %r10, 0;\nLOOP:\n setp.eq.u32 %p1, %r10, %r2; and.b32 %r11, %r2, 1;\n setp.ne.and.u32 %p2, %r11, 0, %p1;\n"
     " @%p2 exit;\n add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 40;\n @%p3 bra LOOP;\n" IF_ELSE, "", if_else, 0x55555555, 0, 0},
    {"guarded vote", " setp.lt.u32 %p1, %r2, 16;\n @%p1 vote.sync.ballot.b32 %r12, %p1, 0xffff;\n mov.u32 %r9, 5;\n", "",
     always_five, FULL_MASK, 0, 0},
    {"guarded vote before the join", " mov.u32 %r9, 5; setp.lt.u32 %p1, %r2, 16;\n"
     " @%p1 vote.sync.ballot.b32 %r12, %p1, 0xffff;\n", "",
     always_five, FULL_MASK, 0, 0},
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
    static const char leaves[] = KERNEL(" setp.ge.u32 %p1, %r2, 20;\n @%p1 ret;\n");
    WORKS(run_k(NULL, leaves, 1, 32));
    assert_int_equal(counts[COUNT_branch], 2);
    static const char barrier[] = KERNEL(" setp.lt.u32 %p1, %r2, 5;\n @%p1 bra COLD;\nBACK:\n bar.sync 0;\n bra END;\n"
                                         "COLD:\n mov.u32 %r9, 1;\n bra BACK;\nEND:\n");
    WORKS(run_k(NULL, barrier, 1, 96));
    assert_int_equal(counts[COUNT_barrier], 3);
    assert_int_equal(counts[COUNT_barriers], 1);
}

/* Clocks count the warp's instructions. */
static void clocks(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " mov.u32 %r10, %clock; add.u32 %r9, %r9, 1; add.u32 %r9, %r9, 1; mov.u32 %r11, %clock; sub.u32 %r11, %r11, %r10;\n"
        " mov.u64 %d4, %clock64; add.u32 %r9, %r9, 1; mov.u64 %d5, %clock64; sub.u64 %d5, %d5, %d4; cvt.u32.u64 %r12, %d5;\n"
        " mov.u64 %d4, %globaltimer; mov.u64 %d5, %globaltimer; sub.u64 %d5, %d5, %d4; cvt.u32.u64 %r13, %d5;\n"
        " st.global.v4.u32 [%d3], {%r9, %r11, %r12, %r13};\n");
    static const uint32_t expected[4] = {3, 3, 2, 1};
    WORKS(run_k(NULL, text, 2, 48));
    for (unsigned t = 0; t < 96; t++) assert_memory_equal(&OUT(t), expected, sizeof expected);
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
               "LATER:\n setp.eq.u32 %p3, %r2, 9; mov.u32 %r10, 42;\n @%p3 st.volatile.shared.u32 [%r8], %r10;\n"
               " mov.u32 %r9, 42;\nEND:\n"),
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
        " add.u64 %d4, %d1, 65536;\nTRY:\n atom.global.cas.b32 %r10, [%d4+4], 0x77777777, 1;\n"
        " setp.ne.u32 %p1, %r10, 0x77777777;\n"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lanes_part_and_meet, close_all),
        cmocka_unit_test_teardown(instructions_are_counted_once, close_all),
        cmocka_unit_test_teardown(clocks, close_all),
        cmocka_unit_test_teardown(a_matrix_after_a_join, close_all),
        cmocka_unit_test_teardown(lanes_wait_for_lanes, close_all),
        cmocka_unit_test_teardown(a_lock, close_all),
        cmocka_unit_test_teardown(warps_wait_for_warps, close_all),
        cmocka_unit_test(endless_loops_end),
        cmocka_unit_test(the_limit_of_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
