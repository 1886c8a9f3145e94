/* Launches of the software GPU: grids and blocks of any shape over worker threads, what a block starts with, the host's own
 * state, and how a launch ends that runs into a fault. */
#include "schedule_fixture.h"

#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#define FOREVER "LOOP:\n add.u32 %r9, %r9, 1;\n bra LOOP;\n"

/* ---- shapes ---- */

#define SPECIAL(name) " mov.u32 %r10, %" name "; st.global.u32 [%d3], %r10; add.u64 %d3, %d3, 4;\n"
#define SPECIALS                                                                                                       \
    HEADER ".visible .entry k(.param .u64 out) {\n .reg .b32 %r<50>; .reg .b64 %d<10>; .shared .align 4 .b8 s[24];\n"  \
    " ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"                       \
    " mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;\n"                                             \
    " mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1;\n"                                                 \
    " mov.u32 %r11, %ctaid.x; mov.u32 %r12, %ctaid.y; mov.u32 %r13, %ctaid.z;\n"                           \
    " mov.u32 %r14, %nctaid.x; mov.u32 %r15, %nctaid.y;\n"                                                             \
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
        16, linear % 16, 0, 24, /* an orin-agx has 16 multiprocessors */
        UNTOUCHED + 1, linear * threads + t,
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
        direct_open(&d, K_BEGIN " atom.global.add.u32 %r10, [%d3+4], 1;\n" K_END, 4, 1, 0);
        d.launch.grid[1] = 5;
        launch_run(&d.launch, list, 4, workers);
        assert_int_equal(d.fault.kind, FAULT_NONE);
        assert_true(d.launch.blocks_run == 4);
        for (uint32_t n = 0; n < 4; n++) assert_int_equal(d.data[4 * n + 1], (n == 1 || n == 2 || n == 3) + (n == 1));
        launch_run(&d.launch, list, 0, workers);
        assert_true(d.launch.blocks_run == 4);
        d.launch.grid[1] = 25; /* more blocks than there can be workers */
        launch_run(&d.launch, NULL, 100, workers);
        assert_true(d.launch.blocks_run == 104);
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
        " or.b32 %r13, %r40, %r11; or.b32 %r13, %r13, %r12; shr.u64 %d6, %d5, 32; cvt.u32.u64 %r11, %d6;"
        " or.b32 %r13, %r13, %r11;\n"
        " st.global.v4.u32 [%d3], {%r8, %r10, %r13, %r5};\n"
        " st.shared.u32 [%r6], %r1; st.local.u32 [%d4+36], %r1; mov.u32 %r40, 7; mov.u64 %d5, 0x900000009;"
        " setp.eq.u32 %p1, %r1, %r1;\n"
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
        ".visible .entry k(.param .u64 out) {\n .reg .b32 %r<50>; .reg .b64 %d<10>; .reg .pred %p<4>;"
        " .local .align 4 .b8 l[64];\n"
        " ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r5, %r3, 70, %r1;\n"
        " mul.wide.u32 %d2, %r5, 16; add.u64 %d3, %d1, %d2; mov.u64 %d4, l; mov.u32 %r10, 0;\n"
        "FILL:\n add.u32 %r11, %r10, %r1; and.b32 %r11, %r11, 15; mul.wide.u32 %d5, %r11, 4; add.u64 %d5, %d4, %d5;\n"
        " mad.lo.u32 %r12, %r5, 100, %r10; st.local.u32 [%d5], %r12; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 16;\n"
        " @%p1 bra FILL;\n"
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
        assert_int_equal(sscanf(last_finding(), "trap: the kernel executed trap; "
                                                "kernel k, block (%u, 0, 0), %n", &number, &end), 1);
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
        " atom.global.add.u32 %r10, [%d1+65532], 1;\n mov.u64 %d3, %d1; setp.eq.u32 %p1, %r3, 5; setp.eq.u32 %p2, %r1, 33;\n"
        " @!%p1 bra END;\n @%p2 trap;\nEND:\n");
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
        KERNEL(" setp.eq.u32 %p1, %r3, 1;\n @%p1 trap;\n setp.lt.u32 %p2, %r2, 4;\n @%p2 bra END;\n" FOREVER "END:\n"
               " bar.sync 0;\n"),
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
        ".file 1 \"templates/one.cu\"\n.file 2 \"two.cuh\"\n.visible .entry k(.param .u64 out) {\n"
        " .reg .b32 %r<9>; .reg .pred %p<9>;\n"
        " .loc 1 11 5\n mov.u32 %r1, %ctaid.z; mov.u32 %r2, %tid.z; mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.x;\n"
        " setp.eq.u32 %p1, %r1, 2; setp.eq.and.u32 %p1, %r2, 1, %p1; setp.eq.and.u32 %p1, %r3, 2, %p1;"
        " setp.eq.and.u32 %p1, %r4, 1, %p1;\n"
        " .loc 2 77 1\n @%p1 trap;\n ret; }\n";
    static const unsigned grid[3] = {3, 1, 4}, size[3] = {7, 3, 2};
    const unsigned before = finding_count();
    char expected[256];
    assert_int_equal(run_shape(NULL, "1", text, grid, size), CUDA_ERROR_ILLEGAL_INSTRUCTION);
    assert_int_equal(finding_count(), before + 1);
    /* The threads that trap are 35 to 41 of the block: the first lane of warp 1 is meant. */
    snprintf(expected, sizeof expected,
             "trap: the kernel executed trap; kernel k, block (1, 0, 2), thread (0, 2, 1), PTX line %d, "
             "two.cuh:77", line_of(text, "trap"));
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
        {FAULT_UNLOADED, "use after unload", CUDA_ERROR_ILLEGAL_ADDRESS},
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
