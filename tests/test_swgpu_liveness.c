/* src/swgpu/liveness.c: the estimate of a kernel's registers, for kernels small enough to count by hand: the most live
 * words + 6, in steps of 8, from 16 to 255. */
#include "ptx_fixture.h"

/* `count` loads from [%rd1], then what stands between, then as many stores. */
static const ptx_kernel *load_all_store_all(const char *header, const char *type, const char *name, int count,
    const char *between)
{
    static char text[20000];
    size_t n = (size_t)sprintf(text, "%s.entry k %s {\n%s", HEADER, header, REGISTERS);
    n += (size_t)sprintf(text + n, "mov.u64 %%rd1, 0;\n");
    for (int i = 0; i < count; i++) n += (size_t)sprintf(text + n, "ld.global.%s %%%s%d, [%%rd1];\n", type, name, i + 2);
    n += (size_t)sprintf(text + n, "%s\n", between);
    for (int i = 0; i < count; i++) n += (size_t)sprintf(text + n, "st.global.%s [%%rd1], %%%s%d;\n", type, name, i + 2);
    sprintf(text + n, "ret; }");
    return good(text);
}

static uint32_t estimate(const char *header, const char *type, const char *name, int count, const char *between)
{
    return load_all_store_all(header, type, name, count, between)->registers;
}

static void registers_are_estimated(void **state)
{
    (void)state;
    /* The address takes 2. */
    assert_int_equal(estimate("", "f32", "f", 0, ""), 16);
    assert_int_equal(estimate("", "f32", "f", 8, ""), 16);
    assert_int_equal(estimate("", "f32", "f", 9, ""), 24);
    assert_int_equal(estimate("", "u32", "r", 16, ""), 24);
    assert_int_equal(estimate("", "u32", "r", 17, ""), 32);
    assert_int_equal(estimate("", "u64", "rd", 4, ""), 16);
    assert_int_equal(estimate("", "u64", "rd", 5, ""), 24);
    assert_int_equal(estimate("", "u16", "h", 6,
        "mov.u32 %r1, 1; mov.u32 %r2, 1; st.global.u32 [%rd1], %r1; st.global.u32 [%rd1], %r2;"), 16);
    assert_int_equal(estimate("", "u16", "h", 7,
        "mov.u32 %r1, 1; mov.u32 %r2, 1; st.global.u32 [%rd1], %r1; st.global.u32 [%rd1], %r2;"), 24);
    /* Predicates, constants and special registers are free. */
    assert_int_equal(estimate("", "f32", "f", 8,
        "setp.eq.f32 %p1, %f2, 0f00000000; setp.eq.f32 %p2, %f3, 0f40000000; st.global.u32 [%rd1], %tid.x; @%p1 st.global.u32 [%rd1], 5; @%p2 bra x; x:"), 16);
    assert_int_equal(estimate("", "f32", "f", 8, ".shared .b32 s, t; st.shared.u32 [s], 1; st.shared.u32 [t], 2;"), 16);
    /* What is written and never read still needs its place, and what is dead does not. */
    assert_int_equal(estimate("", "f32", "f", 4, "ld.global.v4.f32 {%f20, %f21, %f22, %f23}, [%rd1];"), 16);
    assert_int_equal(estimate("", "f32", "f", 5, "ld.global.v4.f32 {%f20, %f21, %f22, %f23}, [%rd1];"), 24);
    assert_int_equal(estimate("", "f32", "f", 7,
        "mov.f32 %f20, %f2; mov.f32 %f21, %f20; mov.f32 %f22, %f21; st.global.f32 [%rd1], %f22;"), 16);
    assert_int_equal(estimate("", "f32", "f", 7,
        "mov.f32 %f20, %f2; mov.f32 %f21, %f20; st.global.f32 [%rd1], %f20; st.global.f32 [%rd1], %f21;"), 24);
}

/* Values used at the top of a loop stay live to its end; without the way back they do not. */
static void loops_and_guards_keep_values(void **state)
{
    (void)state;
    static const char body[] = "mov.u64 %%rd1, 0; mov.u32 %%r2, 0; mov.u32 %%r3, 0; mov.u32 %%r4, 0; mov.u32 %%r5, 0; mov.u32 %%r6, 0;\n"
                               "top: st.global.v4.u32 [%%rd1], {%%r2, %%r3, %%r4, %%r5}; st.global.u32 [%%rd1], %%r6;\n"
                               "ld.global.v4.u32 {%%r12, %%r13, %%r14, %%r15}, [%%rd1];\n"
                               "st.global.v4.u32 [%%rd1], {%%r12, %%r13, %%r14, %%r15};\n"
                               "@%%p1 bra %s; next: ret;";
    char text[2000], filled[1500];
    /* 5 + 2 + 6 before; 5 + 2 + 4 + 6 with the way back. */
    snprintf(filled, sizeof filled, body, "next");
    snprintf(text, sizeof text, "%s.entry k {\n%s%s}", HEADER, REGISTERS, filled);
    assert_int_equal(good(text)->registers, 16);
    snprintf(filled, sizeof filled, body, "top");
    snprintf(text, sizeof text, "%s.entry k {\n%s%s}", HEADER, REGISTERS, filled);
    assert_int_equal(good(text)->registers, 24);
    /* A guarded write leaves the old value where the guard is false: %r50 and %r51 are live from the start, beside 8 + 2. */
    static const char plain[] = "mov.u32 %r50, 1; mov.u32 %r51, 2; st.global.u32 [%rd1], %r50; st.global.u32 [%rd1], %r51;";
    static const char guarded[] = "@%p1 mov.u32 %r50, 1; @%p1 mov.u32 %r51, 2; st.global.u32 [%rd1], %r50; st.global.u32 [%rd1], %r51;";
    static const char loads[] = "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; ld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd1];";
    static const char stores[] = "st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4}; st.global.v4.f32 [%rd1], {%f5, %f6, %f7, %f8};";
    snprintf(text, sizeof text, "%s%s", loads, stores);
    assert_int_equal(good(kernel_text(text, plain, ""))->registers, 16);
    assert_int_equal(good(kernel_text(text, guarded, ""))->registers, 24);
    /* The same in a block of its own. */
    snprintf(text, sizeof text, "%s%s bra next; next:", loads, stores);
    assert_int_equal(good(kernel_text(text, plain, ""))->registers, 16);
    assert_int_equal(good(kernel_text(text, guarded, ""))->registers, 24);
    /* 5 values go round through three blocks; the middle one needs 4 words more, and the address takes 2. */
    static const char start[] = "mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u32 %r6, 0;\n"
                                "top: st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5}; st.global.u32 [%rd1], %r6; @%p1 bra middle;\n";
    static const char middle[] = "middle: ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd1]; st.global.v4.u32 [%rd1], {%r12, %r13, %r14, %r15};\n"
                                 "@%p2 bra end;\n";
    assert_int_equal(good(kernel_text(start, middle, "end: @%p3 bra top; ret;"))->registers, 24);
    assert_int_equal(good(kernel_text(start, middle, "end: @%p3 bra middle; ret;"))->registers, 16);
}

static void estimates_are_capped(void **state)
{
    (void)state;
    /* 80 values, 88 with the rest. */
    assert_int_equal(estimate("", "f32", "f", 80, ""), 88);
    assert_int_equal(estimate(".maxntid 256", "f32", "f", 80, ""), 88);
    assert_int_equal(estimate(".maxntid 256 .minnctapersm 3", "f32", "f", 80, ""), 80); /* 85.3 */
    assert_int_equal(estimate(".maxntid 16, 8 .minnctapersm 8", "f32", "f", 80, ""), 64);
    assert_int_equal(estimate(".maxntid 33 .minnctapersm 16", "f32", "f", 80, ""), 64);
    assert_int_equal(estimate(".reqntid 1024", "f32", "f", 80, ""), 64);
    assert_int_equal(estimate(".maxntid 1024 .minnctapersm 32", "f32", "f", 80, ""), 16);
    assert_int_equal(estimate(".maxnreg 40", "f32", "f", 80, ""), 40);
    assert_int_equal(estimate(".minnctapersm 8", "f32", "f", 80, ""), 88);
    char *text = malloc(100000);
    size_t n = (size_t)sprintf(text, "%s.entry k { .reg .b64 %%rd; .reg .b32 %%r<400>; mov.u64 %%rd, 0;", HEADER);
    for (int i = 0; i < 400; i++) n += (size_t)sprintf(text + n, "mov.u32 %%r%d, 0;", i);
    for (int i = 0; i < 400; i++) n += (size_t)sprintf(text + n, "st.global.u32 [%%rd], %%r%d;", i);
    sprintf(text + n, "}");
    assert_int_equal(good(text)->registers, 255);
    /* Too many blocks and registers to look at: what the registers add up to. Here only two are live at once. */
    n = (size_t)sprintf(text, "%s.entry k { .reg .b32 %%r<3000>; .reg .pred p;", HEADER);
    for (int i = 0; i < 2500; i++) n += (size_t)sprintf(text + n, "mov.u32 %%r%d,0;l%d:@p bra l%d;", i, i, i);
    sprintf(text + n, "}");
    assert_int_equal(good(text)->registers, 16);
    free(text);
    text = malloc(1000000);
    n = (size_t)sprintf(text, "%s.entry k { .reg .b32 %%r<30000>; .reg .pred p;", HEADER);
    for (int i = 0; i < 12000; i++) n += (size_t)sprintf(text + n, "mov.u32 %%r%d,0;l%d:@p bra l%d;", i, i, i);
    sprintf(text + n, "}");
    assert_int_equal(good(text)->registers, 255);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(registers_are_estimated), T(loops_and_guards_keep_values), T(estimates_are_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
