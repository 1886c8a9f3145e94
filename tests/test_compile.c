/* Every template in every form for every architecture, compiled with the real NVRTC: it compiles, holds the kernel it
 * says, and stays within the resources that the planner counts on. */
#include "compile.h"
#include "arch.h"
#include "plan.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_KERNELS 2048
#define MAX_STACK_BYTES 256

typedef struct result {
    kernel_spec spec;
    jg_status status;
    size_t cubin_bytes;
    int registers, stack_bytes, ptx_names_kernel;
    char error[400];
} result;

static compiler *nvrtc_compiler;
static result *results;
static size_t count, next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int have_nvrtc(void)
{
    kernel_spec tiny = {.family = FAMILY_SIMT,
                        .arch = 80,
                        .form = JG_FORM_GENERIC,
                        .type_a = JG_F32,
                        .type_b = JG_F32,
                        .fusion = SPEC_FUSION_ARGUMENT,
                        .trans_a = SPEC_ARGUMENT,
                        .trans_b = SPEC_ARGUMENT,
                        .vec_a = SPEC_ARGUMENT,
                        .vec_b = SPEC_ARGUMENT,
                        .vec_c = SPEC_ARGUMENT,
                        .tile = {32, 32, 16, 4, 4, 2, 1}};
    image img;
    jg_status status = compile_on_thread(nvrtc_compiler, &tiny, &img);
    if (status == JG_ERR_NO_NVRTC) print_message("SKIP no NVRTC: %s\n", jg_last_error());
    else assert_int_equal(status, JG_OK);
    image_free(&img);
    return status == JG_OK;
}

static void add(void *user, const kernel_spec *spec)
{
    (void)user;
    assert_true(count < MAX_KERNELS);
    results[count++].spec = *spec;
}

/* The section of a cubin (an ELF file) with this name, or null. */
static const unsigned char *find_section(const unsigned char *cubin, size_t bytes, const char *wanted, size_t *size)
{
    const Elf64_Ehdr *header = (const void *)cubin;
    if (bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return NULL;
    if (header->e_shoff + (size_t)header->e_shnum * sizeof(Elf64_Shdr) > bytes) return NULL;
    const Elf64_Shdr *sections = (const void *)(cubin + header->e_shoff);
    const char *names = (const char *)cubin + sections[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++) {
        if (strcmp(names + sections[i].sh_name, wanted) != 0) continue;
        *size = sections[i].sh_size;
        return cubin + sections[i].sh_offset;
    }
    return NULL;
}

/* JG_TEST_ARCHS="87 90" keeps to those; used where the compiler is not what is tested. */
static int wants_arch(int number)
{
    const char *list = getenv("JG_TEST_ARCHS");
    char one[16];
    snprintf(one, sizeof one, "%d", number);
    return !list || !*list || strstr(list, one) != NULL;
}

/* What `cuobjdump -elf` prints as EIATTR_REGCOUNT and EIATTR_FRAME_SIZE. */
#define REGISTERS 0x2f
#define STACK_BYTES 0x11

/* An attribute of the one kernel in a cubin. They are a list of (format, attribute, 16-bit size or value); format 4 has that
 * many bytes behind it, here a symbol and the value. -1 if not found. */
static int cubin_attribute(const unsigned char *cubin, size_t bytes, unsigned attribute)
{
    enum { WITH_BYTES = 4 };
    size_t size = 0;
    const unsigned char *info = find_section(cubin, bytes, ".nv.info", &size);
    for (size_t at = 0; info && at + 4 <= size;) {
        const size_t length = info[at] == WITH_BYTES ? info[at + 2] | (size_t)info[at + 3] << 8 : 0;
        if (info[at + 1] == attribute && length >= 8) return info[at + 8] | info[at + 9] << 8;
        at += 4 + length;
    }
    return -1;
}

static void compile_one(result *r)
{
    char name[KERNEL_NAME_BYTES], entry[KERNEL_NAME_BYTES + 32];
    image img;
    kernel_format_name(&r->spec, name);
    snprintf(entry, sizeof entry, ".entry %s(", name);
    r->status = compile_here(nvrtc_compiler, &r->spec, &img);
    if (r->status != JG_OK) {
        snprintf(r->error, sizeof r->error, "%s", jg_last_error());
        return;
    }
    r->cubin_bytes = img.cubin_bytes;
    r->registers = cubin_attribute(img.cubin, img.cubin_bytes, REGISTERS);
    r->stack_bytes = cubin_attribute(img.cubin, img.cubin_bytes, STACK_BYTES);
    r->ptx_names_kernel = strstr(img.ptx, entry) != NULL;
    image_free(&img);
}

static void *worker(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        size_t i = next++;
        pthread_mutex_unlock(&lock);
        if (i >= count) return NULL;
        compile_one(&results[i]);
    }
}

static void compile_all(void)
{
    pthread_t threads[16];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int jobs = cpus < 1 ? 1 : cpus > 16 ? 16 : (int)cpus;
    next = 0;
    for (int i = 0; i < jobs; i++) assert_int_equal(compile_spawn(&threads[i], worker, NULL), 0);
    for (int i = 0; i < jobs; i++) pthread_join(threads[i], NULL);
}

/* What is multiplied with what and how, beside f32 and f16 by default: each family, math mode and kind of conversion. */
static const plan_class kinds[] = {
    {JG_BF16, JG_BF16, 0, 0},
    {JG_F32, JG_F32, JG_MATH_TF32, 0},
    {JG_F32, JG_F32, JG_MATH_F32_3XTF32, 0},
    {JG_F32, JG_F32, JG_MATH_STRICT, 0},
    {JG_F32, JG_F32, JG_MATH_FLUSH, 0},
    {JG_F32, JG_F32, JG_MATH_TF32 | JG_MATH_FLUSH | JG_MATH_SANITIZE, 0},
    {JG_F16, JG_F16, JG_MATH_F16, 0},
    {JG_F16, JG_F16, JG_MATH_STRICT | JG_MATH_FLUSH, 0},
    {JG_BF16, JG_BF16, JG_MATH_FLUSH | JG_MATH_SANITIZE, 0},
    {JG_F16, JG_F16, JG_MATH_F16 | JG_MATH_SANITIZE, 0},
    {JG_S8, JG_S8, 0, 0},
    {JG_U8, JG_S8, 0, 0},
    {JG_S8, JG_U8, 0, 0},
    {JG_U8, JG_U8, 0, 0},
    {JG_S4, JG_S4, 0, 0},
    {JG_S8, JG_S8, JG_MATH_STRICT, 0},
    {JG_F16, JG_S8, 0, 0},
    {JG_S4, JG_F16, 0, 0},
    {JG_BF16, JG_S4, 0, 0},
    {JG_S8, JG_BF16, JG_MATH_FLUSH, 0},
    {JG_E4M3, JG_E4M3, 0, 0},
    {JG_E4M3, JG_E5M2, 0, 0},
    {JG_E5M2, JG_E4M3, JG_MATH_SANITIZE, 0},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* One of several candidates: the one whose turn it is. */
typedef struct taking {
    size_t turn, seen;
    kernel_spec spec;
} taking;

static void count_specs(void *user, const kernel_spec *spec)
{
    (void)spec;
    ++*(size_t *)user;
}

static void take_in_turn(void *user, const kernel_spec *spec)
{
    taking *t = user;
    if (t->seen++ == t->turn) t->spec = *spec;
}

/* One generic kernel of a kind, another one on the next architecture; none where the architecture cannot do it. */
static void add_generic(const limits *l, const plan_class *what, size_t turn)
{
    size_t all = 0;
    plan_generic_set(what, l, count_specs, &all);
    if (!all) return;
    taking t = {.turn = turn % all};
    plan_generic_set(what, l, take_in_turn, &t);
    add(NULL, &t.spec);
}

/* The specialised candidates of a problem: one in SPREAD of the tile rows, others on the next architecture: each has its
 * turn. */
#define SPREAD 8
static void add_legal_in_turn(void *user, const plan *candidate, const char *reason)
{
    unsigned *turn = user;
    if (!reason[0] && (*turn)++ % SPREAD == 0) add(NULL, &candidate->spec);
}

static void add_specialised(const limits *l, jg_problem in, unsigned turn)
{
    problem p;
    if (problem_canonicalise(&in, &p) != JG_OK) fail_msg("%s", jg_last_error());
    plan_each(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, l, add_legal_in_turn, &turn);
}

/* Ops, types and access widths turn from one tile and architecture to the next, so that all occur with few compiles. */
static void add_common(const limits *l, unsigned turn)
{
    static const jg_type types[][2] = {{JG_F16, JG_F16}, {JG_BF16, JG_BF16}, {JG_F16, JG_F32}, {JG_BF16, JG_F32}};
    const int odd = turn >> 2 & 1;
    jg_problem in = {.m = 256 + odd,
                     .n = 192 + 3 * odd,
                     .k = 160 + 5 * odd,
                     .type_a = types[turn & 3][0],
                     .type_c = types[turn & 3][1],
                     .op_a = (jg_op)(turn & 1),
                     .op_b = (jg_op)(turn >> 1 & 1)};
    add_specialised(l, in, turn);
    in.type_a = in.type_c = JG_F32;
    add_specialised(l, in, turn);
}

static void take_legal_in_turn(void *user, const plan *candidate, const char *reason)
{
    if (!reason[0]) take_in_turn(user, &candidate->spec);
}

/* A problem of a kind with as much fused in as can be: all flags, each activation and type of C in turn. */
static jg_problem long_epilogue(const plan_class *what, unsigned turn)
{
    static const jg_type outputs[] = {JG_F16, JG_S8, JG_F32, JG_E4M3, JG_BF16, JG_U8, JG_E5M2};
    static const jg_type biases[] = {JG_F32, JG_F16, JG_BF16};
    const int is_weights = type_is_integer((jg_type)what->type_a) != type_is_integer((jg_type)what->type_b);
    const int odd = turn >> 1 & 1;
    return (jg_problem){
        .m = 256 + odd, .n = 192 + 2 * odd, .k = 160 + 2 * odd, .type_a = (jg_type)what->type_a, .type_b = (jg_type)what->type_b,
        .type_c = outputs[turn % 7], .math = what->math, .op_a = (jg_op)(turn & 1), .op_b = (jg_op)(turn >> 1 & 1),
        .dynamic = turn % 3 ? 0 : JG_DYNAMIC_M | JG_DYNAMIC_K, .batch = 1 + turn % 2, .stride_c = 100000,
        .epilogue = JG_EPILOGUE_SCALE | JG_EPILOGUE_SCALE_M | JG_EPILOGUE_SCALE_N | JG_EPILOGUE_BIAS_M | JG_EPILOGUE_BIAS_N |
                    JG_EPILOGUE_REQUANTIZE | (turn & 1 ? JG_EPILOGUE_RESIDUAL : JG_EPILOGUE_RESIDUAL_AFTER),
        .activation = (jg_activation)(turn % 8), .type_bias = biases[turn % 3],
        .group_k = is_weights && turn % 4 ? 16u << turn % 4 : 0, .zero_points = is_weights && turn % 4 == 2};
}

/* One of a kind's tiles, another one on the next architecture. */
static void add_long(const limits *l, const plan_class *what, unsigned turn)
{
    problem p;
    const jg_problem in = long_epilogue(what, turn);
    if (problem_canonicalise(&in, &p) != JG_OK) fail_msg("%s", jg_last_error());
    taking t = {.turn = SIZE_MAX};
    plan_each(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, l, take_legal_in_turn, &t);
    if (!t.seen) return;
    t = (taking){.turn = turn % t.seen};
    plan_each(&p, plan_access(&p, 16, 16, 16), JG_FORM_SPECIALISED, l, take_legal_in_turn, &t);
    add(NULL, &t.spec);
}

/* As many blocks as the planner counted on, and no array in local memory (a few spilled registers are no array). */
static int resources_hold(const result *r)
{
    if (r->registers <= 0 || r->stack_bytes > MAX_STACK_BYTES) return 0;
    const int warp_registers = (r->registers * 32 + 255) / 256 * 256;
    return 65536 / (warp_registers * kernel_threads(&r->spec) / 32) >= kernel_min_blocks(&r->spec);
}

static void check_results(void)
{
    size_t failed = 0, unknown = 0;
    int last_unknown = 0, most_stack = 0;
    for (size_t i = 0; i < count; i++) {
        const result *r = &results[i];
        char name[KERNEL_NAME_BYTES];
        kernel_format_name(&r->spec, name);
        if (r->status == JG_ERR_ARCH) { /* an older NVRTC */
            if (r->spec.arch != last_unknown) print_message("SKIP sm_%d: %s\n", r->spec.arch, r->error);
            last_unknown = r->spec.arch;
            unknown++;
        } else if (r->status != JG_OK) {
            print_error("%s: %s %s\n", name, jg_status_name(r->status), r->error);
            failed++;
        } else if (!resources_hold(r) || !r->ptx_names_kernel) {
            print_error("%s: %d registers for %d blocks an SM, %d bytes of stack, in its PTX: %d\n", name, r->registers,
                        kernel_min_blocks(&r->spec), r->stack_bytes, r->ptx_names_kernel);
            failed++;
        }
        if (r->stack_bytes > most_stack) most_stack = r->stack_bytes;
    }
    printf("# %zu kernels compiled, %zu for architectures this NVRTC does not know; most stack %d bytes\n", count - unknown,
           unknown, most_stack);
    assert_int_equal(failed, 0);
    assert_true(unknown < count);
}

/* Calls add for each architecture that is wanted, with a number that is another one on each. */
static void on_each_arch(void (*add_all)(const limits *l, unsigned turn))
{
    for (unsigned a = 0; arch_at(a); a++) {
        limits l;
        if (!wants_arch(arch_at(a)->number)) continue;
        assert_int_equal(limits_of_arch(arch_at(a)->number, 0, &l), JG_OK);
        add_all(&l, a);
    }
}

static int is_common(const kernel_spec *s)
{
    return !s->math && (s->type_a == JG_F32 || s->type_a == JG_F16) && s->type_b == s->type_a;
}

/* Each kind is compiled for each architecture. The first without tensor cores and the first with them have both forms, of
 * the others each has one, sm_87 and sm_90 not the same. */
static int has_form(unsigned turn, size_t kind, jg_form form)
{
    return turn < 2 || ((turn >> 1) + kind) % 2 == (form == JG_FORM_GENERIC);
}

static int is_whole(unsigned turn)
{
    return turn < 2;
}

/* All of f32 and f16 for the first two architectures, without tensor cores and with them, and one of each for the others; one of
 * each other kind. */
static void add_generic_sets(const limits *l, unsigned turn)
{
    static const plan_class common[] = {{JG_F32, JG_F32, 0, 0}, {JG_F16, JG_F16, 0, 0}};
    for (size_t i = 0; i < 2; i++) {
        if (is_whole(turn)) plan_generic_set(&common[i], l, add, NULL);
        else add_generic(l, &common[i], turn + i);
    }
    for (size_t i = 0; i < KINDS; i++)
        if (has_form(turn, i, JG_FORM_GENERIC)) add_generic(l, &kinds[i], turn + i);
}

static void test_generic_sets(void **state)
{
    (void)state;
    if (!have_nvrtc()) skip();
    count = 0;
    on_each_arch(add_generic_sets);
    compile_all();
    check_results();
    for (unsigned a = 0; arch_at(a); a++) { /* the promise about f16 + f32 on one architecture */
        if (!wants_arch(arch_at(a)->number) || !is_whole(a)) continue;
        size_t kernels = 0, bytes = 0;
        for (size_t i = 0; i < count; i++) {
            if (results[i].spec.arch != arch_at(a)->number || !is_common(&results[i].spec)) continue;
            kernels++;
            bytes += results[i].cubin_bytes;
        }
        printf("# sm_%d: generic set of f16 + f32: %zu kernels, %zu KiB of cubins\n", arch_at(a)->number, kernels, bytes / 1024);
        assert_in_range(kernels, 1, 40);
        assert_in_range(bytes, 0, 8 << 20);
    }
}

static void test_specialised_kernels(void **state)
{
    (void)state;
    if (!have_nvrtc()) skip();
    count = 0;
    on_each_arch(add_common);
    compile_all();
    check_results();
}

/* Whether the architecture does it at all. */
static int exists(const limits *l, const plan_class *what)
{
    const unsigned mode = what->math & MATH_MODE;
    return l->arch->has_mma || mode == JG_MATH_DEFAULT || mode == JG_MATH_STRICT;
}

static void add_long_of_each_kind(const limits *l, unsigned turn)
{
    static const plan_class common[] = {{JG_F32, JG_F32, 0, 0}, {JG_F16, JG_F16, 0, 0}};
    for (unsigned i = 0; i < 2; i++) add_long(l, &common[i], turn + i);
    for (unsigned i = 0; i < KINDS; i++)
        if (has_form(turn, i, JG_FORM_SPECIALISED) && exists(l, &kinds[i])) add_long(l, &kinds[i], turn * 5 + i);
}

static void test_specialised_kernels_with_everything_fused_in(void **state)
{
    (void)state;
    if (!have_nvrtc()) skip();
    count = 0;
    on_each_arch(add_long_of_each_kind);
    compile_all();
    check_results();
}

static int setup(void **state)
{
    (void)state;
    results = calloc(MAX_KERNELS, sizeof *results);
    nvrtc_compiler = compiler_create(getenv("JITGEMM_NVRTC"), 0);
    return results && nvrtc_compiler ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    compiler_destroy(nvrtc_compiler);
    free(results);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generic_sets),
        cmocka_unit_test(test_specialised_kernels),
        cmocka_unit_test(test_specialised_kernels_with_everything_fused_in),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
