/* Races in shared memory: every pair of accesses with every kind of order between, texts, and random programs against a
 * detector that keeps every access and a clock for each thread. */
#include "swgpu_fixture.h"

#include "../src/swgpu/shadow.h"

enum { WARPS = 4, SHARED = 256 };

static warp warps[WARPS];

/* A block of four warps, threads 128 x 1 x 1. The shadow of the block before it is used again, as in a launch. */
static void start(unsigned checks)
{
    shadow *before = fixture.block.shadow;
    fixture_reset();
    fixture.launch.checks = checks;
    fixture.launch.shared_bytes = SHARED;
    fixture.launch.threads[0] = fixture.launch.block_threads = WARPS * PTX_LANES;
    fixture.block.warps = warps;
    fixture.block.warp_count = WARPS;
    fixture.block.shadow = before ? before : shadow_create(SHARED);
    shadow_reset(fixture.block.shadow, SHARED);
    memset(warps, 0, sizeof warps);
    for (uint32_t n = 0; n < WARPS; n++) {
        warps[n].block = &fixture.block;
        warps[n].index = n;
        warps[n].live = FULL_MASK;
        warps[n].clock[n] = 1;
        warps[n].epoch = 1;
    }
    fixture.instruction.line = 120;
}

typedef enum what { READ = SHADOW_READ, WRITE = SHADOW_WRITE, ATOMIC = SHADOW_ATOMIC, ASYNC = SHADOW_ASYNC } what;

/* An access of one lane, offset bytes into shared memory. */
static int touch(uint32_t w, unsigned lane, what kind, uint32_t offset, uint32_t bytes)
{
    uint64_t address[PTX_LANES] = {0};
    address[lane] = SHARED_BASE + offset;
    return shadow_request(&warps[w], &fixture.instruction, 1u << lane, address, bytes, (shadow_kind)kind, 0);
}

static void meet(uint32_t mask)
{
    static const uint32_t nobody[PTX_LANES];
    shadow_barrier(&fixture.block, mask, nobody);
}

static void has(const char *word)
{
    if (!strstr(fixture.fault.text, word)) fail_msg("no \"%s\" in: %s", word, fixture.fault.text);
}

typedef enum order { NONE, WARP_SYNC, BARRIER, BARRIER_OF_OTHERS, ORDERS } order;

static void apply(order o)
{
    if (o == WARP_SYNC)
        for (int n = 0; n < 2; n++) shadow_warp_sync(&warps[n], FULL_MASK);
    if (o == BARRIER) meet(0xf);
    if (o == BARRIER_OF_OTHERS) meet(0xd); /* warp 0 is there, warp 1 is not */
}

static void every_pair(void **state)
{
    (void)state;
    static const struct { uint32_t warp; unsigned lane; } second[] = {{0, 5}, {0, 6}, {1, 5}};
    for (what a = READ; a <= ATOMIC; a++)
        for (what b = READ; b <= ATOMIC; b++)
            for (unsigned who = 0; who < 3; who++)
                for (order o = NONE; o < ORDERS; o++) {
                    start(CHECK_RACE);
                    assert_int_equal(touch(0, 5, a, 16, 4), 0);
                    apply(o);
                    const int conflict = !(a == READ && b == READ) && !(a == ATOMIC && b == ATOMIC);
                    const int ordered = who == 0 || o == BARRIER || (who == 1 && o != NONE);
                    assert_int_equal(touch(second[who].warp, second[who].lane, b, 16, 4), conflict && !ordered);
                    assert_int_equal(fixture.fault.kind, conflict && !ordered ? FAULT_RACE : FAULT_NONE);
                    /* Bytes beside it are nobody's business. */
                    start(CHECK_RACE);
                    touch(0, 5, a, 16, 1);
                    assert_int_equal(touch(second[who].warp, second[who].lane, b, 17, 1), 0);
                    assert_int_equal(touch(second[who].warp, second[who].lane, b, 18, 2), 0);
                    assert_int_equal(touch(second[who].warp, second[who].lane, b, 16, 4), conflict && who != 0);
                }
}

static void texts(void **state)
{
    (void)state;
    start(CHECK_RACE);
    touch(0, 5, WRITE, 16, 4);
    fixture.instruction.line = 130;
    assert_int_equal(touch(1, 7, READ, 16, 4), 1);
    has("race: shared byte 0x410: written by thread (5, 0, 0) at PTX line 120, read by thread (39, 0, 0) with no barrier");
    has("PTX line 130");
    start(CHECK_RACE);
    touch(0, 5, READ, 16, 4);
    assert_int_equal(touch(0, 6, WRITE, 16, 4), 1);
    has("read by thread (5, 0, 0), written by thread (6, 0, 0) with no bar.warp.sync between");
    start(CHECK_RACE);
    touch(0, 5, ATOMIC, 16, 4);
    assert_int_equal(touch(2, 0, WRITE, 16, 4), 1);
    has("changed by an atomic by thread (5, 0, 0) at PTX line 120, written by thread (64, 0, 0)");
    start(CHECK_RACE);
    touch(0, 5, READ, 16, 4);
    touch(1, 5, READ, 16, 4);
    touch(0, 5, READ, 16, 4);
    assert_int_equal(touch(0, 5, WRITE, 16, 4), 1);
    has("read by a thread of warp 1, written by thread (5, 0, 0) with no barrier between");
    /* Which byte, in a word that is partly somebody's. */
    start(CHECK_RACE);
    touch(0, 5, WRITE, 19, 1);
    assert_int_equal(touch(1, 7, READ, 16, 4), 1);
    has("shared byte 0x413:");
}

static void unwritten(void **state)
{
    (void)state;
    for (unsigned checks = CHECK_UNINITIALISED; checks <= (CHECK_UNINITIALISED | CHECK_RACE); checks += CHECK_RACE) {
        start(checks);
        assert_int_equal(touch(0, 0, WRITE, 4, 1), 0);
        assert_int_equal(touch(0, 0, WRITE, 5, 1), 0);
        assert_int_equal(touch(0, 0, WRITE, 8, 4), 0);
        assert_int_equal(touch(0, 0, READ, 4, 2), 0);
        assert_int_equal(touch(0, 0, READ, 8, 4), 0);
        assert_int_equal(touch(0, 0, READ, 10, 1), 0);
        assert_int_equal(touch(0, 0, READ, 4, 4), 1);
        assert_int_equal(fixture.fault.kind, FAULT_UNINITIALISED);
        has("read of shared byte 0x406, which nothing in the block has written");
        assert_int_equal(touch(0, 0, READ, 12, 1), 1);
        assert_int_equal(touch(0, 0, READ, 3, 1), 1);
        assert_int_equal(touch(0, 0, ATOMIC, 12, 4), 1);
        assert_int_equal(touch(0, 0, WRITE, 4, 8), 0);
        assert_int_equal(touch(0, 0, READ, 4, 8), 0);
        assert_int_equal(touch(0, 0, ATOMIC, 8, 4), 0);
        /* The next block knows nothing of it. */
        shadow_reset(fixture.block.shadow, SHARED);
        assert_int_equal(touch(0, 0, READ, 8, 4), 1);
        assert_int_equal(touch(0, 0, READ, 5, 1), 1);
        assert_int_equal(touch(0, 0, WRITE, SHARED - 1, 1), 0);
        assert_int_equal(touch(0, 0, READ, SHARED - 1, 1), 0);
        assert_int_equal(touch(0, 0, READ, SHARED - 2, 1), 1);
    }
    start(CHECK_RACE);
    assert_int_equal(touch(0, 0, READ, 0, 16), 0);
    start(CHECK_UNINITIALISED);
    assert_int_equal(touch(0, 0, WRITE, 0, 4), 0);
    assert_int_equal(touch(1, 0, WRITE, 0, 4), 0);
    assert_int_equal(touch(2, 0, READ, 0, 4), 0);
}

/* Producers and consumers that share numbered barriers two by two, as in a ring. */
static void barriers_of_some_warps(void **state)
{
    (void)state;
    start(CHECK_RACE);
    for (int round = 0; round < 50; round++)
        for (uint32_t n = 0; n < WARPS; n++) {
            assert_int_equal(touch(n, 3, WRITE, 64, 4), 0);
            assert_int_equal(touch(n, 4, READ, 128, 4), 0);
            shadow_warp_sync(&warps[n], FULL_MASK);
            assert_int_equal(touch(n, 4, READ, 64, 4), 0);
            meet(1u << n | 1u << (n + 1) % WARPS);
        }
    assert_int_equal(touch(0, 3, WRITE, 64, 4), 0);
    /* 3 and 0 met last; 1 met 0 long ago, and read the other word a round ago. */
    assert_int_equal(touch(1, 3, READ, 64, 4), 1);
    start(CHECK_RACE);
    touch(0, 0, WRITE, 0, 4);
    meet(3);
    meet(6); /* what 1 knows, 2 learns */
    assert_int_equal(touch(2, 0, READ, 0, 4), 0);
    assert_int_equal(touch(3, 0, READ, 0, 4), 1);
}

static void lanes_of_one_request(void **state)
{
    (void)state;
    uint64_t address[PTX_LANES];
    for (unsigned lane = 0; lane < PTX_LANES; lane++) address[lane] = SHARED_BASE + lane / 4 * 4;
    start(CHECK_RACE);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, FULL_MASK, address, 4, SHADOW_READ, 0), 0);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, 0x11111111, address, 4, SHADOW_WRITE, 0), 1);
    has("read by thread (1, 0, 0), written by thread (0, 0, 0)");
    /* Each writes what it alone read. */
    start(CHECK_RACE);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, 0x11111111, address, 4, SHADOW_READ, 0), 0);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, 0x11111111, address, 4, SHADOW_WRITE, 0), 0);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, 0x11111111, address, 4, SHADOW_READ, 0), 0);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, 0x11111111, address, 4, SHADOW_READ, FULL_MASK), 1);
    has("written by thread (0, 0, 0)");
    start(CHECK_RACE);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, FULL_MASK, address, 4, SHADOW_ATOMIC, 0), 0);
    start(CHECK_RACE);
    assert_int_equal(shadow_request(&warps[0], &fixture.instruction, FULL_MASK, address, 4, SHADOW_WRITE, 0), 1);
    has("written by thread (0, 0, 0) at PTX line 120, written by thread (1, 0, 0)");
}

static void copies_under_way(void **state)
{
    (void)state;
    static const struct { what kind; fault_kind fault; const char *text; } later[] = {
        {READ, FAULT_ASYNC_NOT_WAITED,
         "read of shared byte 0x420 while the cp.async of thread (5, 0, 0) at PTX line 120 is not waited for"},
        {WRITE, FAULT_RACE, "write of shared byte 0x420 while the cp.async of thread (5, 0, 0)"},
        {ATOMIC, FAULT_RACE, "atomic access of shared byte 0x420 while"},
        {ASYNC, FAULT_RACE, "another cp.async of shared byte 0x420 while"}};
    for (unsigned n = 0; n < sizeof later / sizeof *later; n++)
        for (uint32_t w = 0; w < 2; w++) {
            start(CHECK_ALL);
            assert_int_equal(touch(0, 5, ASYNC, 32, 16), 0);
            meet(0xf); /* orders nothing */
            assert_int_equal(touch(w, 5, later[n].kind, 16, 16), later[n].kind == READ || later[n].kind == ATOMIC);
            fixture.launch.stop = 0;
            assert_int_equal(touch(w, 5, later[n].kind, 32, 4), 1);
            assert_int_equal(fixture.fault.kind, later[n].fault);
            has(later[n].text);
        }
    /* It counts as a write when it is issued, and as another at its wait. */
    start(CHECK_RACE);
    touch(1, 0, READ, 32, 4);
    assert_int_equal(touch(0, 5, ASYNC, 32, 16), 1);
    has("read by thread (32, 0, 0), written by a cp.async by thread (5, 0, 0) with no barrier between");
    start(CHECK_RACE);
    touch(1, 0, WRITE, 44, 1);
    assert_int_equal(touch(0, 5, ASYNC, 32, 16), 1);
    for (int synced = 0; synced < 2; synced++) {
        start(CHECK_ALL);
        touch(0, 5, ASYNC, 32, 16);
        meet(0xf);
        shadow_async_end(&warps[0], 5, 32, 16);
        assert_int_equal(touch(0, 5, READ, 32, 16), 0);
        if (synced) meet(0xf);
        assert_int_equal(touch(1, 5, READ, 36, 4), !synced);
        start(CHECK_ALL);
        touch(0, 5, ASYNC, 32, 4);
        shadow_async_end(&warps[0], 5, 32, 4);
        if (synced) shadow_warp_sync(&warps[0], FULL_MASK);
        assert_int_equal(touch(0, 6, READ, 32, 4), !synced);
    }
    /* Without the check of races a copy only makes its bytes written. */
    start(CHECK_UNINITIALISED);
    assert_int_equal(touch(0, 5, ASYNC, 32, 16), 0);
    assert_int_equal(touch(1, 5, WRITE, 33, 1), 0);
    shadow_async_end(&warps[0], 5, 32, 16);
    assert_int_equal(touch(1, 5, READ, 32, 16), 0);
    assert_int_equal(touch(1, 5, READ, 48, 1), 1);
}

/* ---- random programs ---- */

enum { THREADS = WARPS * 2, BYTES = 16, EVENTS = 100, PAST = EVENTS * 8 };

typedef struct past_access {
    int thread, byte;
    what kind;
    uint32_t time; /* of its thread */
} past_access;

static uint32_t known[THREADS][THREADS]; /* what each thread knows of the others' times */
static past_access past[PAST];
static int past_count;

/* Everything that the threads of a mask know, all of them know; then each one's time goes on. */
static void join_threads(uint32_t mask)
{
    for (int t = 0; t < THREADS; t++) {
        uint32_t most = 0;
        for (int k = 0; k < THREADS; k++)
            if (mask >> k & 1 && known[k][t] > most) most = known[k][t];
        for (int k = 0; k < THREADS; k++)
            if (mask >> k & 1) known[k][t] = most;
    }
    for (int k = 0; k < THREADS; k++)
        if (mask >> k & 1) known[k][k]++;
}

/* Whether an access races with an earlier one. */
static int races(int thread, what kind, int first, int bytes)
{
    for (int n = 0; n < past_count; n++) {
        const past_access *p = &past[n];
        if (p->byte < first || p->byte >= first + bytes || p->thread == thread) continue;
        if (p->kind == kind && kind != WRITE) continue;
        if (known[thread][p->thread] < p->time) return 1;
    }
    return 0;
}

/* One step of a random program; 1 at a race. */
static int random_event(int often_ordered)
{
    const int choice = rand() % (often_ordered ? 6 : 12);
    if (choice == 0) {
        const uint32_t mask = rand() % 3 ? 0xf : (uint32_t)rand() % 15 + 1;
        uint32_t threads = 0;
        for (int n = 0; n < WARPS; n++)
            if (mask >> n & 1) threads |= 3u << (2 * n);
        meet(mask);
        join_threads(threads);
        return 0;
    }
    if (choice == 1) {
        const int w = rand() % WARPS;
        shadow_warp_sync(&warps[w], FULL_MASK);
        join_threads(3u << (2 * w));
        return 0;
    }
    const int thread = rand() % THREADS, bytes = 1 << (rand() % 4), first = rand() % (BYTES / bytes) * bytes;
    static const what kinds[] = {READ, READ, READ, READ, WRITE, WRITE, ATOMIC, ATOMIC};
    const what kind = kinds[(size_t)rand() % (sizeof kinds / sizeof *kinds)];
    const int expected = races(thread, kind, first, bytes);
    if (expected && rand() % 16) return 0; /* mostly not done, so that programs live long */
    for (int b = first; b < first + bytes; b++) past[past_count++] = (past_access){thread, b, kind, known[thread][thread]};
    assert_int_equal(touch((uint32_t)thread / 2, (unsigned)thread % 2 * 9, kind, (uint32_t)first, (uint32_t)bytes), expected);
    return expected;
}

static void random_programs(void **state)
{
    (void)state;
    srand(3);
    int found = 0, clean = 0;
    for (int program = 0; program < 10000; program++) {
        start(CHECK_RACE);
        past_count = 0;
        memset(known, 0, sizeof known);
        for (int t = 0; t < THREADS; t++) known[t][t] = 1;
        int n = 0;
        while (n < EVENTS && !random_event(program % 2)) n++;
        if (n < EVENTS) found++;
        else clean++;
    }
    assert_true(found > 1000 && clean > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair),           cmocka_unit_test(texts),
        cmocka_unit_test(unwritten),            cmocka_unit_test(barriers_of_some_warps),
        cmocka_unit_test(lanes_of_one_request), cmocka_unit_test(copies_under_way),
        cmocka_unit_test(random_programs),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shadow_destroy(fixture.block.shadow);
    return failed;
}
