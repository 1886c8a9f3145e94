/* Barriers of the software GPU, of blocks and of warps, and other instructions that lanes must execute together: who waits
 * for whom, what each may do meanwhile, and what is said of those that never meet. All checks are on, so that a barrier
 * that lets a warp through too early shows as a race. */
#include "schedule_fixture.h"

/* ---- barriers of a block ---- */

/* Thread t of n writes word t and reads word (t + 1 + round) % n, five times. */
static void all_threads_meet(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " mov.u32 %r10, 0; shl.b32 %r11, %r1, 2; add.u32 %r11, %r8, %r11;\n"
        "ROUND:\n mad.lo.u32 %r12, %r1, 7, %r10; st.shared.u32 [%r11], %r12;\n bar.sync 0;\n"
        " add.u32 %r13, %r1, %r10; add.u32 %r13, %r13, 1; rem.u32 %r13, %r13, %r4; shl.b32 %r13, %r13, 2;"
        " add.u32 %r13, %r8, %r13;\n"
        " ld.shared.u32 %r14, [%r13]; mad.lo.u32 %r9, %r9, 3, %r14;\n barrier.sync.aligned 0;\n add.u32 %r10, %r10, 1;\n"
        " setp.lt.u32 %p1, %r10, 5;\n @%p1 bra ROUND;\n");
    static const unsigned sizes[] = {1, 31, 32, 33, 40, 64, 65, 1024};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const uint32_t n = sizes[k];
        WORKS(run_k(NULL, text, 3, n));
        for (uint32_t t = 0; t < 3 * n; t++) {
            uint32_t value = 0;
            for (uint32_t round = 0; round < 5; round++) value = 3 * value + (t % n + round + 1) % n * 7 + round;
            assert_int_equal(OUT(t), value);
        }
        assert_int_equal(counts[COUNT_barriers], 3 * 10);
        assert_int_equal(counts[COUNT_barrier], 3 * 10 * ((n + 31) / 32));
    }
}

/* Warps 0 and 3 meet at barrier 1, warps 1 and 2 at barrier 15. The first pair goes round four times; the other waits for
 * it in between, which would never end if it had to be at a barrier too. */
static void pairs_of_warps(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " shr.u32 %r10, %r1, 5; setp.eq.u32 %p1, %r10, 1; setp.eq.or.u32 %p1, %r10, 2, %p1; shl.b32 %r11, %r1, 2;\n"
        " add.u32 %r11, %r8, %r11; st.shared.u32 [%r11], %r1; mov.u32 %r12, 0; mov.u32 %r20, 1;\n @%p1 bra OTHERS;\n"
        "ROUND:\n bar.sync %r20, 64;\n xor.b32 %r13, %r1, 96; shl.b32 %r13, %r13, 2; add.u32 %r13, %r8, %r13;\n"
        " ld.shared.u32 %r14, [%r13]; add.u32 %r9, %r9, %r14;\n bar.sync 1, 64;\n"
        " add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 4;\n"
        " @%p2 bra ROUND;\n red.global.add.u32 [%d1+65536], 1;\n bra END;\n"
        "OTHERS:\n atom.global.or.b32 %r15, [%d1+65536], 0;\n setp.ne.u32 %p3, %r15, 0x777777b7;\n @%p3 bra OTHERS;\n"
        " bar.sync 15, 64;\n"
        " xor.b32 %r13, %r1, 96; shl.b32 %r13, %r13, 2; add.u32 %r13, %r8, %r13; ld.shared.u32 %r9, [%r13];\nEND:\n");
    WORKS(run_k(NULL, text, 1, 128));
    for (uint32_t t = 0; t < 128; t++) assert_int_equal(OUT(t), (t ^ 96) * (t < 32 || t >= 96 ? 4 : 1));
    assert_int_equal(counts[COUNT_barriers], 9);
}

/* Four warps come to one barrier of two: any two go on. */
static void two_by_two(void **state)
{
    (void)state;
    WORKS(run_k(NULL, KERNEL(" bar.sync 3, 64;\n bar.sync 0;\n"), 1, 128));
    assert_int_equal(counts[COUNT_barriers], 3);
    /* a barrier of the whole block by its number of threads, and one of a single warp */
    WORKS(run_k(NULL, KERNEL(" bar.sync 0, 128;\n bar.sync 2, 32;\n bar.sync 0, 0;\n"), 1, 100));
    assert_int_equal(counts[COUNT_barriers], 1 + 4 + 1);
}

/* Warp 0 fills a buffer four times for warp 1, neither waiting longer than it must. */
static void producer_and_consumer(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " setp.ge.u32 %p1, %r1, 32; shl.b32 %r10, %r2, 2; add.u32 %r10, %r8, %r10; mov.u32 %r11, 0;\n @%p1 bra CONSUME;\n"
        "PRODUCE:\n setp.eq.u32 %p2, %r11, 0;\n @!%p2 bar.sync 2, 64;\n"
        " mad.lo.u32 %r12, %r11, 100, %r2; st.shared.u32 [%r10], %r12;\n"
        " bar.arrive 1, 64;\n add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, 4;\n @%p3 bra PRODUCE;\n bra END;\n"
        "CONSUME:\n bar.sync 1, 64;\n xor.b32 %r13, %r2, 9; shl.b32 %r13, %r13, 2; add.u32 %r13, %r8, %r13;"
        " ld.shared.u32 %r14, [%r13];\n"
        " mad.lo.u32 %r9, %r9, 3, %r14; add.u32 %r11, %r11, 1; setp.lt.u32 %p3, %r11, 4;\n @%p3 bar.arrive 2, 64;\n"
        " @%p3 bra CONSUME;\n"
        "END:\n");
    WORKS(run_k(NULL, text, 5, 64));
    for (uint32_t t = 0; t < 320; t++) {
        uint32_t value = 0;
        for (uint32_t round = 0; round < 4; round++) value = 3 * value + 100 * round + (t % 32 ^ 9);
        assert_int_equal(OUT(t), t % 64 < 32 ? 0 : value);
    }
    assert_int_equal(counts[COUNT_barriers], 5 * 7);
    assert_int_equal(counts[COUNT_barrier], 5 * 16); /* two of them with a guard that is false */
}

/* What a warp does after it arrived is not ordered by that barrier, and it learns nothing from those who wait there. */
static void arrivals_order_what_came_before(void **state)
{
    (void)state;
#define PAIR(produce, consume)                                                                                         \
    KERNEL(" setp.ge.u32 %p1, %r1, 32; shl.b32 %r10, %r2, 2; add.u32 %r10, %r8, %r10;\n @%p1 bra CONSUME;\n" produce    \
           " bra END;\nCONSUME:\n" consume "END:\n")
    static const struct {
        const char *text;
        CUresult result;
    } rows[] = {
        {PAIR(" st.shared.u32 [%r10], %r1;\n bar.arrive 1, 64;\n", " bar.sync 1, 64;\n ld.shared.u32 %r9, [%r10];\n"),
         CUDA_SUCCESS},
        {PAIR(" bar.arrive 1, 64;\n st.shared.u32 [%r10], %r1;\n", " bar.sync 1, 64;\n ld.shared.u32 %r9, [%r10];\n"),
         CUDA_ERROR_LAUNCH_FAILED}, /* filled too late */
        {PAIR(" bar.arrive 1, 64;\n bar.sync 2, 64;\n ld.shared.u32 %r9, [%r10];\n",
              " st.shared.u32 [%r10], %r1;\n bar.sync 1, 64;\n bar.arrive 2, 64;\n"),
         CUDA_SUCCESS},
        {PAIR(" bar.arrive 1, 64;\n ld.shared.u32 %r9, [%r10];\n", " st.shared.u32 [%r10], %r1;\n bar.sync 1, 64;\n"),
         CUDA_ERROR_LAUNCH_FAILED}, /* who only arrives knows nothing of who waits */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (run_k("race", rows[i].text, 1, 64) != rows[i].result) fail_msg("row %zu", i);
}

/* What bar.arrive left behind in one block is gone in the next: each has an odd warp at barrier 1. */
static void arrivals_end_with_the_block(void **state)
{
    (void)state;
    static const unsigned grid[3] = {4, 1, 1}, size[3] = {96, 1, 1};
    WORKS(run_shape(NULL, "1", KERNEL(" bar.arrive 1, 64;\n"), grid, size));
    assert_int_equal(counts[COUNT_barriers], 4);
}

/* A guard that is the same in a whole warp, but not in the block. */
static void guarded_barriers(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " setp.lt.u32 %p1, %r1, 64; setp.eq.u32 %p2, %r1, 5; mov.u32 %r10, 77;\n @%p2 st.shared.u32 [%r8], %r10;\n"
        " @%p1 bar.sync 1, 64;\n"
        " @%p1 ld.shared.u32 %r9, [%r8];\n @!%p1 mov.u32 %r9, 3;\n");
    WORKS(run_k(NULL, text, 2, 150));
    for (unsigned t = 0; t < 300; t++) assert_int_equal(OUT(t), t % 150 < 64 ? 77 : 3);
    assert_int_equal(counts[COUNT_barriers], 2);
    assert_int_equal(counts[COUNT_barrier], 10);
}

/* Lanes that have exited are not waited for; lanes that come on another way, and late, are. */
static void parts_of_a_warp(void **state)
{
    (void)state;
    static const char text[] = KERNEL(
        " setp.eq.u32 %p1, %r2, 8;\n @%p1 exit;\n shl.b32 %r10, %r1, 2; add.u32 %r10, %r8, %r10; setp.lt.u32 %p2, %r2, 5;\n"
        " @%p2 bra COLD;\n"
        " st.shared.u32 [%r10], %r1;\nMEET:\n bar.sync 0;\n sub.u32 %r11, %r4, %r1; sub.u32 %r11, %r11, 1;"
        " shl.b32 %r11, %r11, 2;\n"
        " add.u32 %r11, %r8, %r11; and.b32 %r12, %r1, 31; setp.ne.u32 %p3, %r12, 23;\n @%p3 ld.shared.u32 %r9, [%r11];\n"
        " bra END;\n"
        "COLD:\n add.u32 %r12, %r1, 1000; st.shared.u32 [%r10], %r12;\n bra MEET;\nEND:\n");
    WORKS(run_k(NULL, text, 1, 64));
    for (unsigned t = 0; t < 64; t++) {
        const unsigned other = 63 - t;
        assert_int_equal(OUT(t), t % 32 == 8 ? UNTOUCHED : t % 32 == 23 ? 0 : other % 32 < 5 ? other + 1000 : other);
    }
}

/* ---- what is said of barriers that not all reach ---- */

/* A body starts at PTX line 10; `at` is what stands where the fault was found. */
static const struct {
    const char *body;
    unsigned threads;
    const char *what, *thread, *at;
} refused[] = {
    {" setp.lt.u32 %p1, %r2, 16;\n @%p1 bra A;\n bar.sync 0;\n bra END;\nA:\n bar.sync 1;\nEND:\n", 64,
     "divergent barrier: bar is reached by lanes 0xffff0000 of warp 0,"
     " while lanes 0x0000ffff wait at PTX line 15", "16", "bar.sync 0"},
    {" setp.lt.u32 %p1, %r1, 40;\n @%p1 bra A;\n bar.sync 0;\n bra END;\nA:\n bar.sync 0;\nEND:\n", 64,
     "divergent barrier: bar is reached by lanes 0xffffff00 of warp 1,"
     " while lanes 0x000000ff wait at PTX line 15", "40", "bar.sync 0;\n bra"},
    {" setp.lt.u32 %p1, %r2, 4;\n @%p1 bra A;\n bar.sync 0;\n bra END;\nA:\n bar.sync 1;\nEND:\n", 8,
     "divergent barrier: bar is reached by lanes 0x000000f0 of warp 0,"
     " while lanes 0x0000000f wait at PTX line 15", "4", "bar.sync 0"},
    {" setp.eq.u32 %p1, %r2, 3;\n @%p1 bar.sync 0;\n vote.sync.ballot.b32 %r9, %p1, 0xffffffff;\n", 32,
     "divergent barrier: bar is reached by lanes 0x00000008 of warp 0,"
     " while lanes 0xfffffff7 wait at PTX line 12", "3", "bar.sync"},
    {" setp.lt.u32 %p1, %r1, 32;\n @%p1 ret;\n bar.sync 0;\n", 64,
     "divergent barrier: warps 0x2 wait at barrier 0, which warps 0x1 never reach: they have exited", "32", "bar.sync"},
    {" setp.ge.u32 %p1, %r1, 64;\n @%p1 ret;\n bar.sync 7;\n", 65,
     "divergent barrier: warps 0x3 wait at barrier 7, which warps 0x4 never reach: they have exited", "0", "bar.sync"},
    {" setp.lt.u32 %p1, %r1, 32;\n @%p1 bra A;\n bar.sync 2;\n bra END;\nA:\n bar.sync 1;\nEND:\n", 64,
     "divergent barrier: warps 0x1 wait at barrier 1, which warps 0x2 never reach:"
     " they have exited or wait elsewhere", "0", "bar.sync 1"},
    {" setp.lt.u32 %p1, %r1, 32;\n @%p1 bra A;\n setp.lt.u32 %p1, %r1, 64;\n @%p1 ret;\n bar.sync 2;\n bra END;\nA:\n"
     " bar.sync 1;\nEND:\n", 1024,
     "divergent barrier: warps 0x1 wait at barrier 1, which warps 0xfffffffe never reach:"
     " they have exited or wait elsewhere", "0", "bar.sync 1"},
    {" bar.sync 1, 64;\n", 96,
     "divergent barrier: warps 0x4 wait at barrier 1, which warps 0x3 never reach: they have exited", "64", "bar.sync"},
    {" bar.sync 1, 33;\n", 64,
     "divergent barrier: barrier 1 of 33 threads: ids go to 15, threads are a multiple of 32 of the block's", "0", "bar.sync"},
    {" bar.sync 1, 96;\n", 64,
     "divergent barrier: barrier 1 of 96 threads: ids go to 15, threads are a multiple of 32 of the block's", "0", "bar.sync"},
    {" bar.sync 1, 48;\n", 64,
     "divergent barrier: barrier 1 of 48 threads: ids go to 15, threads are a multiple of 32 of the block's", "0", "bar.sync"},
    {" mov.u32 %r10, 16;\n bar.sync %r10;\n", 64,
     "divergent barrier: barrier 16 of 0 threads: ids go to 15, threads are a multiple of 32 of the block's", "0", "bar.sync"},
    {" bar.arrive 16, 64;\n", 64,
     "divergent barrier: barrier 16 of 64 threads: ids go to 15, threads are a multiple of 32 of the block's", "0", "bar.arrive"},
    {" setp.lt.u32 %p1, %r1, 32;\n @%p1 ret;\n bar.arrive 4, 64;\n bar.arrive 4, 64;\n", 64,
     "divergent barrier: warp 1 arrives twice at barrier 4", "32", "bar.arrive 4, 64;\n st"},
    {" bar.warp.sync 0x0000ffff;\n", 32,
     "divergent lanes: bar.warp.sync by a lane that is not in its mask 0x0000ffff", "16", "bar.warp"},
    {" setp.eq.u32 %p1, %r2, 2;\n @%p1 bar.warp.sync 0x00000008;\n", 32,
     "divergent lanes: bar.warp.sync by a lane that is not in its mask 0x00000008", "2", "bar.warp"},
    {" setp.eq.u32 %p1, %r2, 2;\n @%p1 bar.warp.sync 0x0000000c;\n bar.warp.sync 0xffffffff;\n", 32,
     "divergent lanes: bar is reached by lanes 0x00000004 of warp 0,"
     " while lanes 0xfffffffb wait at PTX line 12", "2", "bar.warp"},
    {" setp.lt.u32 %p1, %r2, 4;\n @%p1 shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0x1f;\n bar.warp.sync 0xffffffff;\n", 32,
     "divergent lanes: shfl is reached by lanes 0x0000000f of warp 0, while lanes 0xfffffff0 wait at PTX line 12", "0", "shfl"},
    {" setp.lt.u32 %p1, %r2, 4; setp.eq.u32 %p2, %r2, 9;\n @!%p1 bra END;\n vote.sync.any.pred %p3, %p1, 0x8000000f;\nEND:\n"
     " vote.sync.any.pred %p3, %p1, 0xffffffff;\n", 64,
     "divergent lanes: vote is reached by lanes 0xfffffff0 of warp 0,"
     " while lanes 0x0000000f wait at PTX line 12", "4", "vote.sync.any.pred %p3, %p1, 0xffffffff"},
};

static void barriers_that_fail(void **state)
{
    (void)state;
    static const unsigned grid[3] = {1, 2, 1};
    for (size_t n = 0; n < sizeof refused / sizeof refused[0]; n++) {
        char text[4096], expected[512];
        const unsigned size[3] = {refused[n].threads, 1, 1}, before = finding_count();
        snprintf(text, sizeof text, "%s%s%s", K_BEGIN, refused[n].body, K_STORE K_END);
        assert_int_equal(run_shape(NULL, "1", text, grid, size), CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(finding_count(), before + 1);
        snprintf(expected, sizeof expected, "%s; kernel k, block (0, 0, 0), thread (%s, 0, 0), PTX line %d", refused[n].what,
                 refused[n].thread, line_of(text, refused[n].at));
        assert_string_equal(last_finding(), expected);
    }
}

/* ---- lanes that execute something together ---- */

/* Values go from lane to lane through shared memory: without order between the lanes, that is a race. */
static void warp_barriers(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t step, barriers; /* lane n gets the value of lane n ^ step; how many barriers count as executed */
    } rows[] = {
        {" bar.warp.sync 0xffffffff;\n", 31, 1},
        {" bar.warp.sync -1;\n", 1, 1},
        /* the lanes' own half, from a register */
        {" and.b32 %r12, %r2, 16; mov.u32 %r13, 0xffff; shl.b32 %r13, %r13, %r12;\n bar.warp.sync %r13;\n", 15, 1},
        /* halves that have parted, each with its mask */
        {" setp.lt.u32 %p1, %r2, 16;\n @%p1 bra LOW;\n bar.warp.sync 0xffff0000;\n bra MEET;\nLOW:\n"
         " bar.warp.sync 0x0000ffff;\nMEET:\n", 3, 2},
        /* one barrier written at two places, and at three */
        {" setp.lt.u32 %p1, %r2, 16;\n @%p1 bra LOW;\n bar.warp.sync 0xffffffff;\n bra MEET;\nLOW:\n"
         " bar.warp.sync 0xffffffff;\nMEET:\n", 31, 2},
        {" setp.lt.u32 %p1, %r2, 8; setp.lt.u32 %p2, %r2, 9;\n @%p1 bra LOW;\n @%p2 bra NINTH;\n bar.warp.sync 0xffffffff;\n"
         " bra MEET;\n"
         "NINTH:\n bar.warp.sync 0xffffffff;\n bra MEET;\nLOW:\n bar.warp.sync 0xffffffff;\nMEET:\n", 31, 3},
        /* a third of the lanes meets at two places while the others wait in a loop for what it does next */
        {" setp.lt.u32 %p1, %r2, 8; setp.lt.u32 %p2, %r2, 4;\n @%p1 bra EIGHT;\nSPIN:\n"
         " atom.global.or.b32 %r14, [%d1+65536], 0;\n"
         " setp.ne.u32 %p3, %r14, 0x7777777f;\n @%p3 bra SPIN;\n bra MEET;\nEIGHT:\n @%p2 bra FOUR;\n bar.warp.sync 0xff;\n"
         " bra ADD;\n"
         "FOUR:\n bar.warp.sync 0xff;\nADD:\n red.global.add.u32 [%d1+65536], 1;\nMEET:\n bar.warp.sync 0xffffffff;\n", 7, 3},
        /* the others are elsewhere, where what they do next matters */
        {" mov.u32 %r14, 64; setp.lt.u32 %p1, %r2, 8; setp.lt.u32 %p2, %r2, 4;\n @!%p1 bra FAR;\n @%p2 bra FOUR;\n"
         " bar.warp.sync 0xff;\n bra MEET;\nFOUR:\n bar.warp.sync 0xff;\n bra MEET;\n"
         "FAR:\n mov.u32 %r14, 0;\n add.u32 %r8, %r8, %r14;\nMEET:\n bar.warp.sync 0xffffffff;\n", 7, 3},
        /* the upper half stands at a barrier that its guard skips: that is no meeting; then each adds 1 to a sum that
         * the lower half must find complete, or its addresses are wrong */
        {" setp.lt.u32 %p1, %r2, 16; setp.eq.u32 %p2, %r2, 99;\n @!%p1 bra HIGH;\n bar.warp.sync 0xffffffff;\n"
         " atom.global.or.b32 %r14, [%d1+65536], 0;\n sub.u32 %r14, %r14, 0x77777787; add.u32 %r8, %r8, %r14;\n bra MEET;\n"
         "HIGH:\n @%p2 bar.warp.sync 0xffffffff;\n red.global.add.u32 [%d1+65536], 1;\n bar.warp.sync 0xffffffff;\n"
         "MEET:\n", 31, 3},
    };
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
        char text[4096];
        snprintf(text, sizeof text,
                 "%s mul.lo.u32 %%r10, %%r1, 4; add.u32 %%r10, %%r8, %%r10; add.u32 %%r11, %%r1, 500;"
                 " st.shared.u32 [%%r10], %%r11;\n"
                 "%s xor.b32 %%r10, %%r1, %u; shl.b32 %%r10, %%r10, 2; add.u32 %%r10, %%r8, %%r10;"
                 " ld.shared.u32 %%r9, [%%r10];\n%s%s",
                 K_BEGIN, rows[n].body, rows[n].step, K_STORE, K_END);
        if (run_k(NULL, text, 1, 32) != CUDA_SUCCESS) fail_msg("%zu: %s", n, last_finding());
        for (uint32_t lane = 0; lane < 32; lane++) assert_int_equal(OUT(lane), (lane ^ rows[n].step) + 500);
        assert_int_equal(counts[COUNT_barrier], rows[n].barriers);
    }
}

/* Without the barrier the same is a race, so the test before has meaning. */
static void no_warp_barrier(void **state)
{
    (void)state;
    static const char text[] = KERNEL(" shl.b32 %r10, %r1, 2; add.u32 %r10, %r8, %r10; st.shared.u32 [%r10], %r1;\n"
                                      " xor.b32 %r10, %r1, 1; shl.b32 %r10, %r10, 2; add.u32 %r10, %r8, %r10;"
                                      " ld.shared.u32 %r9, [%r10];\n");
    assert_int_equal(run_k(NULL, text, 1, 32), CUDA_ERROR_LAUNCH_FAILED);
    assert_memory_equal(last_finding(), "race: ", 6);
}

/* What the warps of one block knew of each other is forgotten in the next. */
static void races_of_a_later_block(void **state)
{
    (void)state;
    static const char text[] = KERNEL(" setp.eq.u32 %p1, %r3, 1; setp.eq.u32 %p2, %r1, 40; setp.eq.u32 %p3, %r1, 3;\n"
                                      " @%p1 bra RACE;\n"
                                      " bar.sync 0;\n bar.sync 0;\n bar.sync 0;\n bra END;\n"
                                      "RACE:\n @%p2 st.shared.u32 [%r8], %r1;\n @%p3 st.shared.u32 [%r8], %r1;\nEND:\n");
    static const unsigned grid[3] = {2, 1, 1}, size[3] = {64, 1, 1};
    assert_int_equal(run_shape(NULL, "1", text, grid, size), CUDA_ERROR_LAUNCH_FAILED);
    assert_memory_equal(last_finding(), "race: ", 6);
    assert_contains(last_finding(), "block (1, 0, 0), thread (40, 0, 0)");
}

/* Lanes that exit leave their copies behind, complete. */
static void copies_of_lanes_that_exit(void **state)
{
    (void)state;
    static char text[] = KERNEL(" setp.lt.u32 %p1, %r2, 16; shl.b32 %r10, %r2, 2; add.u32 %r10, %r8, %r10;"
                                " xor.b32 %r11, %r10, 64;\n"
                                " @!%p1 cp.async.ca.shared.global [%r10], [%d1+65536], 4;\n @!%p1 exit;\n"
                                " ld.shared.u32 %r9, [%r11];\n");
    memcpy(strstr(text, "sm_75"), "sm_80", 5);
    WORKS(run_k("none", text, 1, 32));
    for (unsigned lane = 0; lane < 32; lane++) assert_int_equal(OUT(lane), UNTOUCHED); /* copied, or never stored to */
}

static uint32_t odd_pairs(uint32_t lane) { return lane & 1 ? (lane ^ 2) + 32 : 5; }
static uint32_t both_halves(uint32_t lane) { return (lane ^ 1) + (lane & 16 ? 100 : 200); }
static uint32_t ballots(uint32_t lane) { return lane < 10 ? 0x155 : lane < 16 ? 0x5400 : 0x55550000; }
static uint32_t without_exited(uint32_t lane) { return lane < 12 ? 0xfff : UNTOUCHED; }
static uint32_t pairs_of_halves(uint32_t lane) { return (lane & 16) + 15 - (lane & 15); }

/* shfl and vote by some of the lanes. */
static void lanes_exchange_in_a_branch(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t (*expected)(uint32_t lane);
        uint32_t instructions; /* of the class warp */
    } rows[] = {
        {" and.b32 %r10, %r2, 1; setp.ne.u32 %p1, %r10, 0; add.u32 %r11, %r2, 32; mov.u32 %r9, 5;\n @!%p1 bra END;\n"
         " shfl.sync.bfly.b32 %r9, %r11, 2, 31, 0xaaaaaaaa;\nEND:\n", odd_pairs, 1},
        {" and.b32 %r10, %r2, 1; setp.ne.u32 %p1, %r10, 0; add.u32 %r11, %r2, 32; mov.u32 %r9, 5;\n"
         " @%p1 shfl.sync.bfly.b32 %r9, %r11, 2, 31, 0xaaaaaaaa;\n", odd_pairs, 1},
        {" setp.lt.u32 %p1, %r2, 16; mov.u32 %r12, 100;\n @%p1 bra LOW;\n shfl.sync.bfly.b32 %r9, %r2, 1, 31, 0xffff0000;\n"
         " bra MEET;\n"
         "LOW:\n shfl.sync.bfly.b32 %r9, %r2, 1, 31, 0xffff;\n mov.u32 %r12, 200;\nMEET:\n"
         " add.u32 %r9, %r9, %r12;\n", both_halves, 2},
        /* one instruction, three sets; the second and third come in two parts that mix them */
        {" setp.lt.u32 %p1, %r2, 10; setp.lt.u32 %p2, %r2, 16; selp.b32 %r10, 0xfc00, 0xffff0000, %p2;"
         " selp.b32 %r10, 0x3ff, %r10, %p1;\n"
         " and.b32 %r11, %r2, 1; setp.eq.u32 %p3, %r11, 0; setp.gt.u32 %p4, %r2, 12;\n @%p4 bra COLD;\n"
         "MEET:\n vote.sync.ballot.b32 %r9, %p3, %r10;\n bra END;\nCOLD:\n mov.u32 %r12, 0;\n bra MEET;\nEND:\n", ballots, 2},
        {" setp.lt.u32 %p1, %r2, 12;\n @!%p1 bra LATER;\n vote.sync.ballot.b32 %r9, %p1, 0xffffffff;\n bra END;\nLATER:\n"
         " exit;\nEND:\n",
         without_exited, 1},
        {" and.b32 %r10, %r2, 16; mov.u32 %r11, 0xffff; shl.b32 %r11, %r11, %r10; setp.gt.u32 %p4, %r2, 24;\n @%p4 bra COLD;\n"
         "MEET:\n shfl.sync.bfly.b32 %r9, %r2, 15, 31, %r11;\n bra END;\nCOLD:\n mov.u32 %r12, 0;\n bra MEET;\n"
         "END:\n", pairs_of_halves, 1},
    };
    for (size_t n = 0; n < sizeof rows / sizeof rows[0]; n++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s%s", K_BEGIN, rows[n].body, K_STORE K_END);
        if (run_k(NULL, text, 1, 32) != CUDA_SUCCESS) fail_msg("%zu: %s", n, last_finding());
        for (uint32_t lane = 0; lane < 32; lane++)
            if (OUT(lane) != rows[n].expected(lane)) fail_msg("%zu: lane %u has 0x%x, not"
                " 0x%x", n, lane, OUT(lane), rows[n].expected(lane));
        if (n != 3) assert_int_equal(counts[COUNT_warp], rows[n].instructions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_threads_meet, close_all),
        cmocka_unit_test_teardown(pairs_of_warps, close_all),
        cmocka_unit_test_teardown(two_by_two, close_all),
        cmocka_unit_test_teardown(producer_and_consumer, close_all),
        cmocka_unit_test_teardown(arrivals_order_what_came_before, close_all),
        cmocka_unit_test_teardown(arrivals_end_with_the_block, close_all),
        cmocka_unit_test_teardown(guarded_barriers, close_all),
        cmocka_unit_test_teardown(parts_of_a_warp, close_all),
        cmocka_unit_test_teardown(barriers_that_fail, close_all),
        cmocka_unit_test_teardown(warp_barriers, close_all),
        cmocka_unit_test_teardown(no_warp_barrier, close_all),
        cmocka_unit_test_teardown(races_of_a_later_block, close_all),
        cmocka_unit_test_teardown(copies_of_lanes_that_exit, close_all),
        cmocka_unit_test_teardown(lanes_exchange_in_a_branch, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
