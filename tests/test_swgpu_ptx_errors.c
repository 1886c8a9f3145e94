/* src/swgpu/parse*.c and lexer.c: mistakes with their errors' texts, limits, and broken texts, which must fail and do
 * nothing else. */
#include "ptx_fixture.h"

/* ---- mistakes */

static void mistakes_with_their_whole_text(void **state)
{
    (void)state;
    bad(KERNEL("\t  add.foo.s32 %r1, %r2, %r3;"), PTX_UNSUPPORTED,
        "line 7, column 8: unknown modifier \".foo\" of add\n    add.foo.s32 %r1, %r2, %r3;\n        ^");
    bad(KERNEL("add.ftz.ftz.f32\t%f1, %f2, %f3;"), PTX_UNSUPPORTED,
        "line 7, column 9: modifier \".ftz\" of add repeats or contradicts an earlier one\n    add.ftz.ftz.f32 %f1, %f2, %f3;\n            ^");
    bad(KERNEL("add.ftz.s32 %r1, %r2, %r3;"), PTX_UNSUPPORTED,
        "line 7, column 1: add.ftz.s32: this combination is not supported\n    add.ftz.s32 %r1, %r2, %r3;\n    ^");
    bad(KERNEL("frob.s32 %r1;"), PTX_UNSUPPORTED, "line 7, column 1: opcode frob is not supported\n    frob.s32 %r1;\n    ^");
    bad(KERNEL("add.s32 %r1, %rd2, %r3;"), PTX_SYNTAX,
        "line 7, column 14: %rd2 has 64 bits where 32 are needed\n    add.s32 %r1, %rd2, %r3;\n                 ^");
    bad(KERNEL("add.s64 %rd1, %rd2, %r3;"), PTX_SYNTAX,
        "line 7, column 21: %r3 has 32 bits where 64 are needed\n    add.s64 %rd1, %rd2, %r3;\n                        ^");
    bad(KERNEL("add.s32 %r1, %p2, %r3;"), PTX_SYNTAX,
        "line 7, column 14: %p2 is a predicate where 32 bits are needed\n    add.s32 %r1, %p2, %r3;\n                 ^");
    bad(KERNEL("@%r1 ret;"), PTX_SYNTAX, "line 7, column 2: %r1 is no predicate\n    @%r1 ret;\n     ^");
    bad(KERNEL("add.f32 %f1, %f2, 1;"), PTX_SYNTAX,
        "line 7, column 19: an integer cannot stand for an operand of type .f32\n    add.f32 %f1, %f2, 1;\n                      ^");
    bad(KERNEL("bra nowhere;"), PTX_SYNTAX, "line 7, column 5: there is no label nowhere here\n    bra nowhere;\n        ^");
    bad(KERNEL("a: ret;\na: ret;"), PTX_SYNTAX, "line 8, column 1: a is declared twice\n    a: ret;\n    ^");
    bad(KERNEL("add.s32 %r1, %r2;"), PTX_SYNTAX,
        "line 7, column 17: add needs more operands\n    add.s32 %r1, %r2;\n                    ^");
    bad(KERNEL("ld.global.v4.f32 {%f1, %f2}, [%rd1];"), PTX_SYNTAX,
        "line 7, column 18: .v4 needs 4 operands in braces, not 2\n    ld.global.v4.f32 {%f1, %f2}, [%rd1];\n                     ^");
    bad(KERNEL("ret"), PTX_SYNTAX, "line 8, column 1: \";\" is needed here, not \"}\"\n    }\n    ^");
    bad(".target sm_80\n", PTX_SYNTAX, "line 1, column 2: .version is missing: it must come first\n    .target sm_80\n     ^");
    bad("", PTX_SYNTAX, "line 1, column 1: .version is missing: it must come first\n    \n    ^");
    bad(".version 8.0\n.global .b32 x;\n", PTX_SYNTAX,
        "line 2, column 2: .target is missing: it must come before this\n    .global .b32 x;\n     ^");
    bad(".version 9.1\n", PTX_VERSION,
        "line 1, column 10: PTX ISA 9.1 is not supported, only 6.0 to 9.0\n    .version 9.1\n             ^");
    bad(HEADER "/* \x01 \xff */ $", PTX_SYNTAX,
        "line 4, column 11: a directive is needed here, not \"$\"\n    /* ? ? */ $\n              ^");
}

/* What an error's text must contain. */
static void more_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        ptx_status status;
        const char *part;
    } table[] = {
        {"add %r1, %r2, %r3;", PTX_SYNTAX, "add needs 1 type, not 0"},
        {"add.s32.s32 %r1, %r2, %r3;", PTX_UNSUPPORTED, "type \".s32\" of add is one too many"},
        {"add.b32 %r1, %r2, %r3;", PTX_UNSUPPORTED, "unknown type \".b32\" of add"},
        {"ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;", PTX_UNSUPPORTED, "unknown modifier \".L2::cache_hint\" of ld"},
        {"add.rn.rz.f32 %f1, %f2, %f3;", PTX_UNSUPPORTED, "\".rz\" of add repeats or contradicts"},
        {"add.s32 %r1, %r2, %r3, %r4;", PTX_SYNTAX, "add takes fewer operands"},
        {"add.s32 1, %r2, %r3;", PTX_SYNTAX, "a register is needed here"},
        {"add.s32 %tid.x, %r2, %r3;", PTX_SYNTAX, "%tid cannot be written"},
        {"add.s32 %r1, _, %r3;", PTX_SYNTAX, "\"_\" cannot be read"},
        {"add.s32 %r1, !%r2, %r3;", PTX_SYNTAX, "\"!\" cannot stand here"},
        {"add.s32 %r1, {%r2, %r4}, %r3;", PTX_SYNTAX, "add takes no braces here"},
        {"add.s32 %r1|%p1, %r2, %r3;", PTX_SYNTAX, "add takes no pair here"},
        {"add.s32 %r1, [%rd2], %r3;", PTX_SYNTAX, "an address cannot stand here"},
        {"add.s32 %r1, %f2, %r3;", PTX_SYNTAX, "%f2 is of type .f32 where .s32 is needed"},
        {"add.s32 %r1, %r2, 1.5;", PTX_SYNTAX, "a floating-point number cannot stand for an operand of type .s32"},
        {"add.f16x2 %x1, %x2, 5;", PTX_SYNTAX, "a number cannot stand for an operand of type .f16x2"},
        {"mov.b32 %r1, 0d3FF0000000000000;", PTX_SYNTAX, "a floating-point number cannot stand"},
        {"ld.global.u32 %r1, %rd1;", PTX_SYNTAX, "an address in brackets is needed here"},
        {"ld.global.u32 %r1, [%r2];", PTX_SYNTAX, "%r2 has 32 bits where 64 are needed"},
        {"ld.global.u64 %r1, [%rd2];", PTX_SYNTAX, "%r1 has 32 bits where 64 are needed"},
        {"ld.global.f32 %d1, [%rd2];", PTX_SYNTAX, "%d1 has 64 bits where 32 are needed"},
        {"ld.global.u32 {%r1, %r2}, [%rd2];", PTX_SYNTAX, "braces need .v2, .v4 or .v8"},
        {"ld.global.v2.u32 %r1, [%rd2];", PTX_SYNTAX, ".v2 needs 2 operands in braces, not 1"},
        {"ld.global.u32 %r1, [a];", PTX_SYNTAX, "a is in param space, but ld takes a global address"},
        {"ld.global.u32 %r1, [nothing];", PTX_SYNTAX, "nothing is not declared"},
        {"ld.global.u32 %r1, [%rd1+%rd2];", PTX_SYNTAX, "an offset is needed here"},
        {"mov.b32 %r1, {%r2, %r3};", PTX_SYNTAX, "%r2 has 32 bits where 16 are needed"},
        {"mov.b32 %r1, {%h2, %h3, %h4};", PTX_SYNTAX, "mov.b32 cannot take these braces"},
        {"mov.u32 %r1, {%h2, %h3};", PTX_SYNTAX, "mov.u32 cannot take these braces"},
        {"mov.b32 {%h1, %h4}, {%h2, %h3};", PTX_SYNTAX, "mov.b32 cannot take these braces"},
        {"mov.u32 %r1, %tid.w;", PTX_UNSUPPORTED, "unknown register %tid.w"},
        {"mov.u32 %r1, %tid;", PTX_SYNTAX, "%tid is not declared"},
        {"mov.u32 %r1, k;", PTX_SYNTAX, "k cannot stand here"},
        {"add.u64 %rd1, %rd2, a;", PTX_SYNTAX, "only mov and cvta take the address of a"},
        {"mov.u16 %h1, a;", PTX_SYNTAX, "does not fit into 16 bits"},
        {"mov.u32 %r1, %r2+4;", PTX_SYNTAX, "an offset needs an address in brackets"},
        {"lop3.b32 %r1, %r2, %r3, %r4, %r5;", PTX_SYNTAX, "a number is needed here"},
        {"shl.b64 %rd1, %rd2, %rd3;", PTX_SYNTAX, "%rd3 has 64 bits where 32 are needed"},
        {"selp.b32 %r1, 1, 0, %r2;", PTX_SYNTAX, "%r2 is no predicate"},
        {"cp.async.ca.shared.global [%r1], [%r2], 4;", PTX_SYNTAX, "%r2 has 32 bits where 64 are needed"},
        {"shfl.sync.idx.b32 %r1, %r2|%p1, 3, 31, -1;", PTX_SYNTAX, "shfl takes no pair here"},
        {"setp.lt.s32 %p1|%r2, %r1, 5;", PTX_SYNTAX, "%r2 is no predicate"},
        {"bra 5;", PTX_SYNTAX, "a label is needed here"},
        {"bra %p1|%p2;", PTX_SYNTAX, "bra takes no pair here"},
        {"add.s32 %r1, %r2, -%r3;", PTX_SYNTAX, "a number is needed here, not \"%r3\""},
        {".reg .b128 q;", PTX_UNSUPPORTED, "registers of type .b128 are not supported"},
        {".reg .v2 .b32 q;", PTX_UNSUPPORTED, "registers of type .v2 are not supported"},
        {".reg .b32 %r<5>;", PTX_SYNTAX, "%r is declared twice"},
        {".reg .b32 %r5;", PTX_SYNTAX, "%r5 is declared twice"},
        {".shared .b32 x = 1;", PTX_SYNTAX, "only .global and .const variables"},
        {".shared .b32 x[];", PTX_SYNTAX, "an array without a size"},
        {".shared .align 3 .b32 x;", PTX_SYNTAX, "a power of two"},
        {"mov.u32 %r1, \x7f;", PTX_SYNTAX, "a character that PTX does not know"},
        {"/* no end", PTX_SYNTAX, "a comment that does not end"},
        {".pragma \"no end;", PTX_SYNTAX, "a string that does not end"},
        {"add. s32 %r1;", PTX_SYNTAX, "a word is missing after the dot"},
        {".local .b8 big[524289];", PTX_SYNTAX, "more than 524288 bytes of .local"},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        bad_with(kernel_text(table[t].body, "", ""), table[t].status, table[t].part);
    }
}

static void mistakes_outside_kernels(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ptx_status status;
        const char *part;
    } table[] = {
        {".version 5.9\n", PTX_VERSION, "PTX ISA 5.9 is not supported"}, {".version 90\n", PTX_SYNTAX, "a version such as 7.8"},
        {".version 10.0\n", PTX_VERSION, "PTX ISA 10.0"}, {".version 8.0 .version 8.0", PTX_SYNTAX, ".version is given twice"},
        {".version 8.0\n", PTX_SYNTAX, ".target is missing"}, {".version 8.0 .target sm_8", PTX_TARGET, "sm_8 is no target"},
        {".version 8.0 .target sm_90x", PTX_TARGET, "sm_90x is no target"},
        {".version 8.0 .target compute_80", PTX_TARGET, "compute_80"},
        {".version 8.0 .target sm_80 .target sm_80", PTX_SYNTAX, ".target is given twice"},
        {".version 8.0 .target sm_80 .address_size 32", PTX_UNSUPPORTED, "32-bit addresses"},
        {HEADER ".global .b32 x; .global .b32 x;", PTX_SYNTAX, "x is declared twice"},
        {HEADER ".global .b32 x; .global .u64 p = x;", PTX_UNSUPPORTED, "an initial value that is an address"},
        {HEADER ".global .b32 x = 1.5;", PTX_SYNTAX, "an integer is needed here"},
        {HEADER ".global .f32 x = 1;", PTX_SYNTAX, "a floating-point number is needed here"},
        {HEADER ".global .b32 x[2] = {1, 2, 3};", PTX_SYNTAX, "more values than the variable has"},
        {HEADER ".global .b32 x[2][2] = {{1, 2, 3}};", PTX_SYNTAX, "more values than the variable has"},
        {HEADER ".global .b32 x[2] = {{1}, 2};", PTX_SYNTAX, "more braces than the array has dimensions"},
        {HEADER ".global .b32 x = {1};", PTX_SYNTAX, "more braces than the array has dimensions"},
        {HEADER ".global .b32 x[2] = 1;", PTX_SYNTAX, "\"{\" is needed here"},
        {HEADER ".global .b8 x[100000000] = {1};", PTX_SYNTAX, "initial values of more than"},
        {HEADER ".global .b64 x[1048576][1048576];", PTX_SYNTAX, "x is larger than"},
        {HEADER ".global .b64 x[0];", PTX_SYNTAX, "an array's size from 1"},
        {HEADER ".global .pred x;", PTX_UNSUPPORTED, "a variable of type .pred"},
        {HEADER ".extern .global .b32 x;", PTX_UNSUPPORTED, "an .extern variable other than .shared"},
        {HEADER ".const .b8 x[65537];", PTX_SYNTAX, "more than 65536 bytes of .const"},
        {HEADER ".tex .u32 t;", PTX_UNSUPPORTED, "\".tex\" is not supported"},
        {HEADER ".visible .file 1 \"x\"", PTX_SYNTAX, "a variable or function"},
        {HEADER ".file 5000 \"x\"", PTX_SYNTAX, "a file number from 1 to 4096"},
        {HEADER ".section .x { { }", PTX_SYNTAX, "has no \"}\""},
        {HEADER ".entry k { ret; } .entry k { ret; }", PTX_SYNTAX, "k is declared twice"},
        {HEADER ".entry k;", PTX_SYNTAX, "a kernel's body"},
        {HEADER ".entry k(.param .pred x) {}", PTX_SYNTAX, "a parameter's type"},
        {HEADER ".entry k(.reg .b32 x) {}", PTX_SYNTAX, "a .param is needed"},
        {HEADER ".entry k(.param .b8 x[]) {}", PTX_SYNTAX, "a size of one dimension"},
        {HEADER ".entry k(.param .b32 x, .param .b32 x) {}", PTX_SYNTAX, "x is declared twice"},
        {HEADER ".entry k .maxntid 1025 {}", PTX_SYNTAX, "from 1 to 1024"},
        {HEADER ".entry k .maxntid 64, 32 {}", PTX_SYNTAX, "more than 1024 threads"},
        {HEADER ".entry k .maxntid 1,1,1,1 {}", PTX_SYNTAX, "no fourth number"},
        {HEADER ".entry k .explicitcluster {}", PTX_UNSUPPORTED, "\".explicitcluster\" of a kernel"},
        {HEADER ".entry k { .loc 1 2 }", PTX_SYNTAX, "a column is needed here"},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) bad_with(table[t].text, table[t].status, table[t].part);
}

/* A long line is cut to what lies around the column; a small buffer is filled and ended. */
static void long_lines_and_small_buffers(void **state)
{
    (void)state;
    char text[3000], error[600];
    size_t n = (size_t)sprintf(text, "%s.entry k {\n    ", HEADER);
    for (int s = 0; s < 200; s++) n += (size_t)sprintf(text + n, "ret; ");
    sprintf(text + n, "frob; %0900d", 0);
    assert_int_equal(parse(text, strlen(text), error, sizeof error), PTX_UNSUPPORTED);
    const char *line = strchr(error, '\n') + 1, *caret = strchr(line, '\n') + 1;
    assert_true(strncmp(error, "line 5, column 1005: opcode frob", 32) == 0);
    assert_true(caret - line == 4 + 100 + 1);
    assert_true(strncmp(line + (strchr(caret, '^') - caret), "frob", 4) == 0);
    char small[20];
    memset(small, 'x', sizeof small);
    assert_int_equal(parse(text, strlen(text), small, 10), PTX_UNSUPPORTED);
    assert_string_equal(small, "line 5, c");
    assert_int_equal(small[10], 'x');
    assert_int_equal(parse(text, strlen(text), NULL, 0), PTX_UNSUPPORTED);
}

/* ---- limits */

static void limits(void **state)
{
    (void)state;
    good(HEADER ".entry k { .reg .b32 %r<65535>; .reg .b32 x; ret; }");
    bad_with(HEADER ".entry k { .reg .b32 %r<65536>; .reg .b32 x; ret; }", PTX_SYNTAX, "more than 65536 registers");
    bad_with(HEADER ".entry k { .reg .b32 %r<65537>; }", PTX_SYNTAX, "from 0 to 65536");
    /* Each kernel has its own. */
    good(HEADER ".entry k { .reg .b32 %r<65536>; ret; } .entry l { .reg .b32 %r<65536>; ret; }");
    good(".version 8.1 .target sm_80 .entry k(.param .b8 x[32764]) { ret; }");
    bad_with(".version 8.1 .target sm_80 .entry k(.param .b8 x[32764], .param .b8 y) { ret; }", PTX_SYNTAX,
        "more than 32764 bytes");
    good(".version 8.0 .target sm_80 .entry k(.param .b8 x[4352]) { ret; }");
    bad_with(".version 8.0 .target sm_80 .entry k(.param .b8 x[4353]) { ret; }", PTX_SYNTAX, "more than 4352 bytes");
    good(KERNEL(".local .b8 big[524288];"));
    bad_with(KERNEL(".local .b8 big[524288]; .local .b8 more;"), PTX_SYNTAX, "more than 524288 bytes");
    char *text = malloc(5000100);
    size_t n = (size_t)sprintf(text, "%s.entry k {\n", HEADER);
    for (int depth = 0; depth < 100000; depth++) text[n++] = '{';
    text[n] = 0;
    bad_with(text, PTX_SYNTAX, "blocks are nested more than 61 deep");
    n = (size_t)sprintf(text, "%s.entry k {\n", HEADER);
    for (int depth = 0; depth < 60; depth++) text[n++] = '{';
    for (int depth = 0; depth < 61; depth++) text[n++] = '}';
    text[n] = 0;
    good(text);
    char name[PTX_NAME_BYTES + 1];
    memset(name, 'n', sizeof name);
    name[PTX_NAME_BYTES] = 0;
    sprintf(text, "%s.entry %s { ret; }", HEADER, name);
    bad_with(text, PTX_SYNTAX, "a name of more than 255 characters");
    sprintf(text, "%s.entry %s { ret; }", HEADER, name + 1);
    good(text);
    n = (size_t)sprintf(text, "%s.entry k {.reg .b32 r;\n", HEADER);
    for (uint32_t i = 0; i < PTX_MAX_REGISTERS; i++) n += (size_t)sprintf(text + n, "mov.b32 r,%u;", i);
    sprintf(text + n, "}");
    good(text);
    sprintf(text + n, "mov.b32 r,%u;}", PTX_MAX_REGISTERS);
    bad_with(text, PTX_SYNTAX, "more than 65536 different constants");
    /* The instruction after the last that may be. */
    n = (size_t)sprintf(text, "%s.entry k {\n", HEADER);
    for (uint32_t i = 0; i < PTX_MAX_INSTRUCTIONS; i++) n += (size_t)sprintf(text + n, "ret;");
    sprintf(text + n, "}");
    assert_int_equal(good(text)->count, PTX_MAX_INSTRUCTIONS);
    sprintf(text + n, "ret;}");
    bad_with(text, PTX_SYNTAX, "more than 1000000 instructions");
    free(text);
}

/* ---- broken texts */

static const char *const samples[] = {"vector_add", "lines", "variables", "operands", "scopes", "calls", "tensor"};

static void cut_at_every_byte(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++) {
        sample(samples[s]);
        const char *entry = strstr(loaded, ".entry"), *last = strrchr(loaded, '}');
        size_t bytes = strlen(loaded);
        for (size_t cut = 0; cut < bytes; cut++) {
            char error[600] = "";
            ptx_status status = parse(loaded, cut, error, sizeof error);
            /* Between the header's end and the kernel a text is whole too. */
            if (loaded + cut > entry && loaded + cut <= last && s != 1) assert_int_not_equal(status, PTX_OK);
            if (status != PTX_OK) assert_true(strncmp(error, "line ", 5) == 0 && strstr(error, "^"));
        }
    }
}

static void random_damage(void **state)
{
    (void)state;
    uint32_t random = 12345;
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++) {
        sample(samples[s]);
        size_t bytes = strlen(loaded), whole = 0;
        char *copy = malloc(bytes);
        for (int round = 0; round < 1500; round++) {
            memcpy(copy, loaded, bytes);
            for (int hit = 0; hit < 1 + round % 4; hit++) {
                random = random * 1664525u + 1013904223u;
                size_t to = (random >> 8) % bytes;
                random = random * 1664525u + 1013904223u;
                copy[to] = random >> 31 ? loaded[(random >> 8) % bytes] : (char)(random >> 16);
            }
            char error[600] = "";
            ptx_status status = parse(copy, bytes, error, sizeof error);
            whole += status == PTX_OK;
            assert_int_equal(status != PTX_OK, error[0] != 0);
        }
        free(copy);
        assert_true(whole < 1500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(mistakes_with_their_whole_text), T(more_mistakes), T(mistakes_outside_kernels), T(long_lines_and_small_buffers),
        T(limits),
        T(cut_at_every_byte), T(random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
