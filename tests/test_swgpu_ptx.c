/* src/swgpu/parse*.c and lexer.c: texts whose meaning is worked out by hand. What must fail is in test_swgpu_ptx_errors.c. */
#include "ptx_fixture.h"

/* ---- what a kernel looks like */

static void a_whole_kernel(void **state)
{
    (void)state;
    const ptx_kernel *k = sample("vector_add");
    assert_int_equal(module->version, 74);
    assert_int_equal(module->target, 80);
    assert_int_equal(module->target_suffix, 0);
    assert_int_equal(module->kernel_count, 1);
    assert_string_equal(k->name, "vector_add");
    assert_int_equal(k->count, 19);
    assert_int_equal(k->param_count, 3);
    assert_int_equal(k->param_bytes, 20);
    assert_int_equal(k->params[1].offset, 8);
    assert_int_equal(k->params[2].offset, 16);
    assert_int_equal(k->params[2].bytes, 4);
    assert_int_equal(k->max_threads, 256);
    assert_int_equal(k->min_blocks, 2);
    assert_int_equal(k->required[0], 0);
    assert_int_equal(k->uses_clock, 0);
    /* 1 predicate, 3 float and 5 integer registers, 7 of 64 bits; constants 0, 8, 16 and 4: those of param are wide. */
    assert_int_equal(k->slots, SPECIAL_COUNT + 1 + 3 + 5 + 14 + 3 * 2 + 1);
    assert_int_equal(k->constant_count, 4);

    const ptx_instruction *branch = find(k, "bra ");
    assert_int_equal(branch->opcode, OPCODE_bra);
    assert_int_equal(branch->guarded, 1);
    assert_int_equal(branch->guard_negate, 0);
    assert_int_equal(branch->target, 18);
    assert_int_equal(operand(branch, 0, 0)->kind, OPERAND_LABEL);
    assert_int_equal(operand(branch, 0, 0)->offset, 18);
    assert_int_equal(branch->column, 7);
    assert_int_equal(branch->guard_slot, operand(find(k, "setp"), 0, 0)->slot);
    assert_int_equal(k->instructions[18].opcode, OPCODE_ret);

    const ptx_instruction *mad = find(k, "mad.lo");
    assert_int_equal(mad->modifier[MOD_HALF], HALF_LO);
    assert_int_equal(mad->types, 1);
    assert_int_equal(mad->type[0], TYPE_S32);
    assert_int_equal(mad->groups, 4);
    assert_int_equal(mad->counter, COUNTER_ARITHMETIC);
    assert_int_equal(operand(find(k, "mov.u32 \t%r5"), 1, 0)->slot, SPECIAL_TID_X);
    is_constant(k, operand(find(k, "mul.wide"), 2, 0), 4, 32);
    assert_int_equal(operand(find(k, "mul.wide"), 0, 0)->bits, 64);
    const ptx_operand *param = operand(find(k, "param_2];"), 1, 0);
    assert_int_equal(param->kind, OPERAND_ADDRESS);
    is_constant(k, param, 16, 64);
}

static void lines_and_files(void **state)
{
    (void)state;
    static const uint32_t expected[][2] = {{1, 10}, {3, 20}, {1, 12}, {0, 0}, {0, 0}};
    const ptx_kernel *k = sample("lines");
    assert_int_equal(module->version, 85);
    assert_int_equal(module->target, 90);
    assert_int_equal(module->target_suffix, 'a');
    assert_int_equal(module->file_count, 4);
    assert_string_equal(module->files[0], "");
    assert_string_equal(module->files[1], "templates/a.cu");
    assert_string_equal(module->files[2], "");
    assert_string_equal(module->files[3], "templates/b.cuh");
    assert_int_equal(k->count, 5);
    for (uint32_t n = 0; n < 5; n++) {
        const ptx_location *l = &module->locations[k->instructions[n].location];
        assert_int_equal(l->file, expected[n][0]);
        assert_int_equal(l->line, expected[n][1]);
    }
    assert_int_equal(k->instructions[3].location, 0);
    k = good(HEADER "/* a\ncomment\n*/ // more\n.entry k { ret; }");
    assert_int_equal(k->instructions[0].line, 7);
    assert_int_equal(k->instructions[0].column, 12);
    /* A file that is never named. */
    k = good(KERNEL(".loc 7 5 1\nret;"));
    assert_int_equal(module->locations[k->instructions[0].location].file, 0);
    assert_int_equal(module->locations[k->instructions[0].location].line, 5);
}

/* ---- variables */

static const ptx_variable *variable(const char *name)
{
    for (uint32_t v = 0; v < module->variable_count; v++)
        if (strcmp(module->variables[v].name, name) == 0) return &module->variables[v];
    fail_msg("no variable %s", name);
    return NULL;
}

static void initial_is(const char *name, const void *bytes, size_t count)
{
    assert_int_equal(variable(name)->bytes, count);
    assert_non_null(variable(name)->initial);
    assert_memory_equal(variable(name)->initial, bytes, count);
}

static void variables_and_initial_values(void **state)
{
    (void)state;
    const uint32_t unroll = 8;
    const uint8_t bytes[] = {1, 2, 3, 4, 255};
    const float floats[] = {1, 1.5f, 2, -20};
    const uint16_t open[] = {1, 2, 3};
    const int64_t negative = -1;
    sample("variables");
    initial_is("UNROLL", &unroll, 4);
    initial_is("bytes", bytes, 5);
    initial_is("floats", floats, 16);
    initial_is("open", open, 6);
    initial_is("negative", &negative, 8);
    assert_null(variable("quad")->initial);
    assert_int_equal(variable("quad")->bytes, 16);
    assert_int_equal(variable("quad")->alignment, 16);
    assert_int_equal(variable("bytes")->space, SPACE_GLOBAL);
    assert_int_equal(variable("bytes")->alignment, 16);
    assert_int_equal(variable("floats")->space, SPACE_CONST);
    good(HEADER ".global .b16 g[2][3] = {{1}, {2, 3}};\n.global .b8 o[][2] = {{1}, {2, 3}, {4}};\n.global .f64 d = 0f3FC00000;\n"
                ".global .v2 .b32 v[2] = {{1, 2}, {3, 4}}; .global .b32 two, lists[2] = {7}; .global .b8 flat[][2] = {5, 6, 7};");
    const uint16_t grid[] = {1, 0, 0, 2, 3, 0};
    const uint8_t rows[] = {1, 0, 2, 3, 4, 0}, flat[] = {5, 6, 7, 0};
    const double half = 1.5;
    const uint32_t vectors[] = {1, 2, 3, 4}, list[] = {7, 0};
    initial_is("g", grid, 12);
    initial_is("o", rows, 6);
    initial_is("d", &half, 8);
    initial_is("v", vectors, 16);
    initial_is("lists", list, 8);
    initial_is("flat", flat, 4);
    assert_null(variable("two")->initial);
}

static void places_of_variables(void **state)
{
    (void)state;
    const ptx_kernel *k = sample("variables");
    /* Shared: first 0..9, second 12..15, own 16..23, the inner own 24, then the dynamic part at 128. */
    assert_int_equal(variable("first")->offset, 0);
    assert_int_equal(variable("second")->offset, 12);
    assert_int_equal(variable("own")->offset, 16);
    assert_int_equal(variable("dynamic")->offset, 128);
    assert_int_equal(variable("dynamic")->is_extern, 1);
    assert_int_equal(k->shared_bytes, 128);
    assert_int_equal(k->local_bytes, 16 + 24);
    assert_int_equal(variable("stack")->offset, 16);
    is_constant(k, operand(find(k, "%rd1, dynamic"), 1, 0), SHARED_BASE + 128, 64);
    is_constant(k, operand(find(k, "%r1, first"), 1, 0), SHARED_BASE, 32);
    is_constant(k, operand(find(k, "%rd2, own"), 1, 0), SHARED_BASE + 16, 64);
    is_constant(k, operand(find(k, "%r5, own"), 1, 0), SHARED_BASE + 24, 32);
    is_constant(k, operand(find(k, "cvta.shared"), 1, 0), SHARED_BASE + 16, 64);
    is_constant(k, operand(find(k, "[second]"), 1, 0), SHARED_BASE + 12, 32);
    is_constant(k, operand(find(k, "[dynamic+16]"), 1, 0), SHARED_BASE + 128, 32);
    assert_int_equal(operand(find(k, "[dynamic+16]"), 1, 0)->offset, 16);
    is_constant(k, operand(find(k, "[2048]"), 1, 0), 2048, 32);
    is_constant(k, operand(find(k, "[stack+4]"), 0, 0), 16, 64);
    assert_int_equal(operand(find(k, "[stack+4]"), 0, 0)->offset, 4);
    /* Parameters: 104 bytes, then a pointer; its own .align is what it points to. */
    assert_int_equal(k->params[1].offset, 104);
    is_constant(k, operand(find(k, "%rd5, pointer"), 1, 0), 104, 64);
    assert_int_equal(operand(find(k, "[args+8]"), 1, 0)->offset, 8);
    /* Addresses known at load. */
    const ptx_constant *c = constant(k, operand(find(k, "bytes+4"), 1, 0)->slot);
    assert_string_equal(module->variables[c->symbol].name, "bytes");
    assert_int_equal(c->value, 4);
    assert_int_equal(c->wide, 1);
    c = constant(k, operand(find(k, "[floats+12]"), 1, 0)->slot);
    assert_string_equal(module->variables[c->symbol].name, "floats");
    assert_int_equal(c->value, 0);
    assert_int_equal(k->required[0] * k->required[1] * k->required[2], 32);
    assert_int_equal(k->max_threads, 32);
    assert_int_equal(k->max_registers, 64);
    k = good(HEADER ".entry k .reqntid 8, 2, 2 .maxntid 64 .maxnctapersm 3 .noreturn { ret; }");
    assert_int_equal(k->max_threads, 32);
    assert_int_equal(k->required[0], 8);
    assert_int_equal(k->required[2], 2);
    assert_int_equal(k->min_blocks, 3);
}

/* Each kernel has the module's variables and its own; a variable that comes late still goes before the kernels'. */
static void kernels_have_their_own_variables(void **state)
{
    (void)state;
    good(HEADER ".extern .shared .b8 x[];\n.shared .b8 m[4];\n"
                ".entry one { .reg .b32 %r<3>; .reg .b64 %rd<2>; .shared .b8 s[100]; .global .b32 inner; mov.u32 %r1, x; mov.u64 %rd1, inner; ret; }\n"
                ".entry two { .reg .b32 %r<3>; .shared .b8 s[8]; mov.u32 %r1, x; mov.u32 %r2, s; ret; }\n"
                ".entry three { ret; }\n.global .b32 late;\n.entry four { .reg .b64 %rd<2>; mov.u64 %rd1, late; ret; }");
    assert_int_equal(module->kernel_count, 4);
    is_constant(&module->kernels[0], operand(&module->kernels[0].instructions[0], 1, 0), SHARED_BASE + 104, 32);
    is_constant(&module->kernels[1], operand(&module->kernels[1].instructions[0], 1, 0), SHARED_BASE + 12, 32);
    is_constant(&module->kernels[1], operand(&module->kernels[1].instructions[1], 1, 0), SHARED_BASE + 4, 32);
    assert_int_equal(module->kernels[0].shared_bytes, 104);
    assert_int_equal(module->kernels[1].shared_bytes, 12);
    assert_int_equal(module->kernels[2].shared_bytes, 4);
    assert_string_equal(module->variables[2].name, "late");
    assert_int_equal(module->variable_count, 6);
    const ptx_constant *c = constant(&module->kernels[3], operand(&module->kernels[3].instructions[0], 1, 0)->slot);
    assert_int_equal(c->symbol, 2);
    c = constant(&module->kernels[0], operand(&module->kernels[0].instructions[1], 1, 0)->slot);
    assert_string_equal(module->variables[c->symbol].name, "inner");
}

/* ---- operands */

static void operands_of_each_form(void **state)
{
    (void)state;
    const ptx_kernel *k = sample("operands");
    assert_int_equal(k->uses_clock, 1);
    assert_int_equal(operand(find(k, "%clock64"), 1, 0)->slot, SPECIAL_CLOCK64);
    assert_int_equal(operand(find(k, "%clock64"), 1, 0)->bits, 64);
    is_constant(k, operand(find(k, "WARP_SZ"), 1, 0), 32, 32);
    is_constant(k, operand(find(k, "%f1, 0f3F"), 1, 0), 0x3f800000, 32);
    is_constant(k, operand(find(k, "%f2, 0d3F"), 1, 0), 0x3fc00000, 32);
    is_constant(k, operand(find(k, "%f3, -1.5"), 1, 0), 0xbfc00000, 32);
    is_constant(k, operand(find(k, "%d1, 0f3F"), 1, 0), 0x3ff8000000000000, 64);
    is_constant(k, operand(find(k, "mov.pred"), 1, 0), 0xffffffff, 1);
    const ptx_instruction *i = find(k, "{%h1, %h2}");
    assert_int_equal(i->count[1], 2);
    assert_int_equal(operand(i, 1, 1)->bits, 16);
    i = find(k, "{%r6, _}");
    assert_int_equal(operand(i, 0, 1)->kind, OPERAND_SINK);
    assert_int_equal(operand(i, 0, 1)->slot, SPECIAL_SINK);
    assert_int_equal(i->first[1], 2);
    i = find(k, "setp.lt");
    assert_int_equal(i->groups, 4);
    assert_int_equal(i->count[0], 2);
    assert_int_equal(i->modifier[MOD_COMPARE], COMPARE_LT);
    assert_int_equal(i->modifier[MOD_BOOL], BOOL_AND);
    is_constant(k, operand(i, 2, 0), 0xfffffffb, 32);
    assert_int_equal(operand(i, 3, 0)->negate, 1);
    assert_int_equal(operand(i, 3, 0)->bits, 1);
    assert_int_equal(find(k, "@!flag")->guard_negate, 1);
    is_constant(k, operand(find(k, "@!flag"), 2, 0), 0xffffffff, 32);
    i = find(k, "mul.wide.u16");
    is_constant(k, operand(i, 2, 0), 0xfffe, 16);
    assert_int_equal(operand(i, 0, 0)->bits, 32);
    assert_int_equal(operand(find(k, "mad.wide"), 3, 0)->bits, 64);
    is_constant(k, operand(find(k, "shl.b64"), 2, 0), 3, 32);
    i = find(k, "ld.global.v4");
    assert_int_equal(i->modifier[MOD_VECTOR], VECTOR_4);
    assert_int_equal(i->count[0], 4);
    assert_int_equal(operand(i, 1, 0)->offset, -16);
    assert_int_equal(operand(find(k, "%rd1-4"), 1, 0)->offset, -4);
    assert_int_equal(operand(find(k, "ld.global.u8"), 0, 0)->bits, 32);
    i = find(k, "st.global.v2");
    assert_int_equal(operand(i, 0, 0)->offset, 8);
    is_constant(k, operand(i, 1, 1), 7, 32);
    is_constant(k, operand(find(k, "cvt.u64.u32"), 1, 0), 7, 32);
    is_constant(k, operand(find(k, "lop3"), 4, 0), 0x80, 32);
    assert_int_equal(operand(find(k, "lop3"), 4, 0)->offset, 0x80);
    i = find(k, "shfl");
    assert_int_equal(operand(i, 0, 1)->bits, 1);
    is_constant(k, operand(i, 4, 0), 0xffffffff, 32);
    is_constant(k, operand(find(k, "selp.f32"), 1, 0), 0x3f800000, 32);
    assert_int_equal(find(k, "bar.sync")->groups, 1);
    /* No `ret` at the end: an exit is added. */
    assert_int_equal(k->instructions[k->count - 1].opcode, OPCODE_exit);
    assert_int_equal(k->instructions[k->count - 1].line, line_of(loaded, "\n}\n") + 1);
}

static void integers_in_each_base(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } table[] = {{"0", 0}, {"0U", 0}, {"7", 7}, {"10U", 10}, {"017", 15}, {"0x1F", 31}, {"0X1fU", 31}, {"0b101", 5}, {"0B11U", 3},
                 {"-1", UINT64_MAX}, {"18446744073709551615", UINT64_MAX}, {"0xFFFFFFFFFFFFFFFF", UINT64_MAX},
                 {"- 2", UINT64_MAX - 1},
                 {"01777777777777777777777", UINT64_MAX}};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        char body[200];
        snprintf(body, sizeof body, "mov.u64 %%rd1, %s; mov.u32 %%r1, %s; mov.u16 %%h1, %s;", table[t].text, table[t].text,
            table[t].text);
        const ptx_kernel *k = good(kernel_text(body, "", ""));
        is_constant(k, operand(&k->instructions[0], 1, 0), table[t].value, 64);
        is_constant(k, operand(&k->instructions[1], 1, 0), (uint32_t)table[t].value, 32);
        is_constant(k, operand(&k->instructions[2], 1, 0), (uint16_t)table[t].value, 16);
    }
    static const struct {
        const char *text, *error;
    } malformed[] = {{"08", "a malformed number"}, {"0x", "a malformed number"}, {"0b2", "a malformed number"},
    {"1a", "a malformed number"},
                     {"12UU", "a malformed number"}, {"1.5.5", "\",\" or \";\" is needed here, not \".5\""},
                     {"0f3F80000", "0f needs 8 hexadecimal digits"}, {"0f3F8000000", "0f needs 8 hexadecimal digits"},
                     {"0f3F800000g", "0f needs 8 hexadecimal digits"}, {"0d00", "0d needs 16 hexadecimal digits"},
                     {"18446744073709551616", "a number of more than 64 bits"},
                     {"0x10000000000000000", "a number of more than 64 bits"},
                     {"1.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
                         "a number too long"}};
    for (size_t t = 0; t < sizeof malformed / sizeof *malformed; t++)
        bad_with(kernel_text("mov.b64 %rd1, ", malformed[t].text, ";"), PTX_SYNTAX, malformed[t].error);
}

/* The widths of all operands, from each instruction whose operands are not all of its first type. */
static void how_wide_each_operand_is(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bits;
    } table[] = {
        {"add.s32 %r1, %r2, 3;", "32 32 32 "}, {"add.s64 %rd1, %rd2, 3;", "64 64 64 "},
        {"mul.lo.s64 %rd1, %rd2, 3;", "64 64 64 "},
        {"mul.wide.s32 %rd1, %r1, 3;", "64 32 32 "}, {"mul.wide.u16 %r1, %h1, 3;", "32 16 16 "},
        {"mad.wide.u32 %rd1, %r1, 3, 4;", "64 32 32 64 "},
        {"mad.wide.s16 %r1, %h1, 3, 4;", "32 16 16 32 "}, {"mad.lo.s32 %r1, %r1, 3, 4;", "32 32 32 32 "},
        {"dp4a.s32.u32 %r1, %r2, %r3, 4;", "32 32 32 32 "},
        {"testp.finite.f64 %p1, %d1;", "1 64 "}, {"shl.b64 %rd1, %rd2, 3;", "64 64 32 "}, {"shr.u64 %rd1, %rd2, 3;", "64 64 32 "},
        {"shr.s16 %h1, %h2, 3;", "16 16 32 "}, {"shf.l.wrap.b32 %r1, %r2, %r3, 3;", "32 32 32 32 "},
        {"bfe.u64 %rd1, %rd2, 3, 4;", "64 64 32 32 "},
        {"bfi.b64 %rd1, %rd2, %rd3, 3, 4;", "64 64 64 32 32 "}, {"bfind.u64 %r1, %rd2;", "32 64 "},
        {"popc.b64 %r1, %rd2;", "32 64 "},
        {"clz.b64 %r1, %rd2;", "32 64 "}, {"brev.b64 %rd1, %rd2;", "64 64 "}, {"setp.lt.s64 %p1, %rd2, 3;", "1 64 64 "},
        {"setp.lt.and.s64 %p1|%p2, %rd2, 3, %p3;", "1 1 64 64 1 "}, {"set.lt.u32.f64 %r1, %d1, 0d0000000000000000;", "32 64 64 "},
        {"selp.b64 %rd1, 3, %rd2, %p1;", "64 64 64 1 "}, {"slct.b64.s32 %rd1, %rd2, 3, %r1;", "64 64 64 32 "},
        {"cvt.u64.u32 %rd1, %r2;", "64 32 "},
        {"cvt.u32.u64 %r1, 3;", "32 64 "}, {"cvt.u16.u32 %h1, 70000;", "16 32 "}, {"isspacep.shared %p1, %rd1;", "1 64 "},
        {"st.global.u16 [%rd1], 70000;", "64 16 "}, {"atom.global.add.u64 %rd1, [%rd2], 3;", "64 64 64 "},
        {"atom.shared.cas.b32 %r1, [%r2], 3, 4;", "32 32 32 32 "}, {"red.global.add.u32 [%rd2], 3;", "64 32 "},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];", "32 32 "},
        {"movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;", "32 32 "},
        {"shfl.sync.idx.b32 %r1|%p1, %r2, 3, 31, -1;", "32 1 32 32 32 32 "}, {"vote.sync.any.pred %p1, !%p2, -1;", "1 1 32 "},
        {"vote.sync.ballot.b32 %r1, 1, -1;", "32 1 32 "}, {"match.any.sync.b64 %r1, %rd2, -1;", "32 64 32 "},
        {"redux.sync.add.s32 %r1, %r2, -1;", "32 32 32 "},
        {"activemask.b32 %r1;", "32 "}, {"bar.sync 1, 64;", "32 32 "}, {"nanosleep.u32 5;", "32 "},
        {"and.pred %p1, %p2, 1;", "1 1 1 "},
        {"mov.b64 {%h1, %h2, %h3, _}, %rd1;", "16 16 16 16 64 "}, {"mov.b64 %rd1, {%r1, 3};", "64 32 32 "},
        {"ld.local.u32 %r1, [%r2];", "32 32 "},
        {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d3}, {%d4}, {%d5, %d6};", "64 64 64 64 64 64 "},
        {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
         "32 32 32 32 32 32 32 32 32 32 32 32 32 32 "},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        const ptx_instruction *i = &good(kernel_text(table[t].text, "", ""))->instructions[0];
        char bits[200] = "";
        for (unsigned g = 0; g < i->groups; g++)
            for (unsigned e = 0; e < i->count[g]; e++) sprintf(bits + strlen(bits), "%u ", operand(i, g, e)->bits);
        if (strcmp(bits, table[t].bits)) fail_msg("%s: %s, not %s", table[t].text, bits, table[t].bits);
    }
}

static void special_registers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t slot;
        unsigned bits, clock;
    } table[] = {
        {"%tid.x", SPECIAL_TID_X, 32, 0}, {"%tid.y", SPECIAL_TID_Y, 32, 0}, {"%tid.z", SPECIAL_TID_Z, 32, 0},
        {"%ntid.x", SPECIAL_NTID_X, 32, 0},
        {"%ntid.y", SPECIAL_NTID_Y, 32, 0}, {"%ntid.z", SPECIAL_NTID_Z, 32, 0}, {"%ctaid.x", SPECIAL_CTAID_X, 32, 0},
        {"%ctaid.y", SPECIAL_CTAID_Y, 32, 0}, {"%ctaid.z", SPECIAL_CTAID_Z, 32, 0}, {"%nctaid.x", SPECIAL_NCTAID_X, 32, 0},
        {"%nctaid.y", SPECIAL_NCTAID_Y, 32, 0}, {"%nctaid.z", SPECIAL_NCTAID_Z, 32, 0}, {"%laneid", SPECIAL_LANEID, 32, 0},
        {"%warpid", SPECIAL_WARPID, 32, 0}, {"%nwarpid", SPECIAL_NWARPID, 32, 0}, {"%smid", SPECIAL_SMID, 32, 0},
        {"%nsmid", SPECIAL_NSMID, 32, 0},
        {"%lanemask_eq", SPECIAL_LANEMASK_EQ, 32, 0}, {"%lanemask_le", SPECIAL_LANEMASK_LE, 32, 0},
        {"%lanemask_lt", SPECIAL_LANEMASK_LT, 32, 0},
        {"%lanemask_ge", SPECIAL_LANEMASK_GE, 32, 0}, {"%lanemask_gt", SPECIAL_LANEMASK_GT, 32, 0},
        {"%dynamic_smem_size", SPECIAL_DYNAMIC_SMEM_SIZE, 32, 0}, {"%total_smem_size", SPECIAL_TOTAL_SMEM_SIZE, 32, 0},
        {"%clock", SPECIAL_CLOCK, 32, 1}, {"%clock64", SPECIAL_CLOCK64, 64, 1}, {"%globaltimer", SPECIAL_GLOBALTIMER, 64, 1},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        const ptx_kernel *k = good(kernel_text(table[t].bits == 64 ? "mov.u64 %rd1, " : "mov.u32 %r1, ", table[t].name, ";"));
        assert_int_equal(operand(&k->instructions[0], 1, 0)->slot, table[t].slot);
        assert_int_equal(operand(&k->instructions[0], 1, 0)->bits, table[t].bits);
        assert_int_equal(k->uses_clock, table[t].clock);
    }
}

/* The same value takes one slot, another width another. */
static void constants_are_shared(void **state)
{
    (void)state;
    const ptx_kernel *k = good(KERNEL("mov.u32 %r1, 5; mov.u16 %h1, 5; add.s32 %r2, %r1, 5; mov.u64 %rd1, 5; mov.u64 %rd2, 5; mov.u32 %r3, 6;"));
    assert_int_equal(k->constant_count, 3);
    assert_int_equal(operand(&k->instructions[0], 1, 0)->slot, operand(&k->instructions[1], 1, 0)->slot);
    assert_int_equal(operand(&k->instructions[0], 1, 0)->slot, operand(&k->instructions[2], 2, 0)->slot);
    assert_int_equal(operand(&k->instructions[3], 1, 0)->slot, operand(&k->instructions[4], 1, 0)->slot);
    assert_int_not_equal(operand(&k->instructions[3], 1, 0)->slot, operand(&k->instructions[0], 1, 0)->slot);
    /* Many: the table grows, and each finds its own again. */
    char *text = malloc(400000);
    size_t n = (size_t)sprintf(text, "%s.entry k {\n.reg .b32 r;\n", HEADER);
    for (int round = 0; round < 2; round++)
        for (int v = 0; v < 3000; v++) n += (size_t)sprintf(text + n, "mov.u32 r, %d;\n", v * 1024);
    strcpy(text + n, "}");
    k = good(text);
    free(text);
    assert_int_equal(k->constant_count, 3000);
    for (uint32_t v = 0; v < 3000; v++) {
        is_constant(k, operand(&k->instructions[v], 1, 0), v * 1024, 32);
        assert_int_equal(operand(&k->instructions[v], 1, 0)->slot, operand(&k->instructions[v + 3000], 1, 0)->slot);
    }
}

static void optional_operands(void **state)
{
    (void)state;
    const ptx_kernel *k = sample("tensor");
    const ptx_instruction *i = find(k, "cp.async.cg");
    assert_int_equal(i->groups, 3);
    assert_int_equal(i->modifier[MOD_SPACE], SPACE_SHARED);
    assert_int_equal(i->modifier[MOD_SPACE2], SPACE_GLOBAL);
    assert_int_equal(operand(i, 0, 0)->bits, 32);
    assert_int_equal(operand(i, 1, 0)->bits, 64);
    is_constant(k, operand(i, 2, 0), 16, 32);
    assert_int_equal(find(k, "cp.async.ca")->groups, 4);
    assert_int_equal(find(k, "cp.async.ca")->modifier[MOD_HINT], HINT_GIVEN);
    assert_int_equal(find(k, "commit_group")->groups, 0);
    i = find(k, "wait_group");
    assert_int_equal(i->groups, 1);
    is_constant(k, operand(i, 0, 0), 0, 32);
    i = find(k, "mma.sync");
    assert_int_equal(i->groups, 4);
    assert_int_equal(i->first[3], 10);
    assert_int_equal(i->modifier[MOD_LAYOUT], LAYOUT_ROW);
    assert_int_equal(i->modifier[MOD_LAYOUT2], LAYOUT_COL);
    const uint8_t types[] = {TYPE_F32, TYPE_F16, TYPE_F16, TYPE_F32};
    assert_memory_equal(i->type, types, 4);
    k = good(KERNEL("ld.global.L1::no_allocate.L2::128B.u32 %r1, [%rd1];\ncvt.rn.f16x2.f32 %r1, %f1, %f2;\nsetp.ne.s32 %p1, %r1, 0;"));
    assert_int_equal(k->instructions[1].groups, 3);
    assert_int_equal(k->instructions[2].groups, 3);
}

static void scopes_of_names_and_labels(void **state)
{
    (void)state;
    const ptx_kernel *k = sample("scopes");
    /* 0 mov x; 1 mov x'; 2 mov %r1'; 3 bra again; 4 bra out; 5 bra again'; 6 mov %r3; 7 mov %r1; 8 exit */
    assert_int_equal(k->count, 9);
    assert_int_equal(operand(&k->instructions[0], 0, 0)->bits, 32);
    assert_int_equal(operand(&k->instructions[1], 0, 0)->bits, 64);
    assert_int_not_equal(operand(&k->instructions[2], 0, 0)->slot, operand(&k->instructions[7], 0, 0)->slot);
    assert_int_equal(k->instructions[3].target, 0);
    assert_int_equal(k->instructions[4].target, 8);
    assert_int_equal(k->instructions[5].target, 6);
    assert_int_equal(k->instructions[8].opcode, OPCODE_exit);
    /* A range's members, where one range's name ends in a digit. */
    k = good(HEADER ".entry k { .reg .b32 %r<20>; .reg .b64 %r1<3>; mov.u32 %r7, 0; mov.u32 %r13, 0; ret; }");
    assert_int_equal(operand(&k->instructions[0], 0, 0)->bits, 32);
    assert_int_equal(k->slots, SPECIAL_COUNT + 2 + 1);
    k = good(HEADER ".entry k { .reg .b32 %r<2>; { .reg .b64 %r1<3>; mov.u64 %r12, 0; mov.u32 %r1, 0; } ret; }");
    assert_int_equal(operand(&k->instructions[0], 0, 0)->bits, 64);
    assert_int_equal(operand(&k->instructions[1], 0, 0)->bits, 32);
    k = good(HEADER ".entry k { .reg .b64 %r1<3>; { .reg .b32 %r<20>; mov.u32 %r12, 0; } { .reg .b64 %r<20>; .reg .b32 x; mov.u32 x, 0; } ret; }");
    assert_int_equal(operand(&k->instructions[0], 0, 0)->bits, 32);
    k = good(HEADER ".entry k { .reg .b32 %r<20>; { .reg .b64 %r1<3>; mov.u64 %r12, 0; } { .reg .b64 %r2; mov.u64 %r2, 0; } mov.u32 %r2, 0; ret; }");
    assert_int_equal(k->count, 4);
    /* The nearest label of that name, though one farther out comes first in the text. */
    k = good(KERNEL("l: mov.u32 %r1, 0; { { bra l; } mov.u32 %r2, 0; l: mov.u32 %r3, 0; }"));
    assert_int_equal(k->instructions[1].target, 3);
    bad_with(KERNEL("mov.u32 %r99, 0;"), PTX_SYNTAX, "%r99 is not declared");
    bad_with(KERNEL("mov.u32 %r01, 0;"), PTX_SYNTAX, "%r01 is not declared");
    bad_with(KERNEL("{ .reg .b32 t; mov.u32 t, 0; } mov.u32 t, 1;"), PTX_SYNTAX, "t is not declared");
    bad_with(KERNEL("bra in; { in: mov.u32 %r1, 0; }"), PTX_SYNTAX, "there is no label in here");
    /* A label of another kernel is none. */
    bad_with(HEADER ".entry a { x: ret; } .entry b { bra x; }", PTX_SYNTAX, "there is no label x here");
    /* A label behind the last instruction. */
    k = good(KERNEL("@%p1 bra out; ret; out:"));
    assert_int_equal(k->count, 3);
    assert_int_equal(k->instructions[0].target, 2);
    k = good(KERNEL("@%p1 ret;"));
    assert_int_equal(k->count, 2);
}

static void calls_are_errors_but_functions_are_not(void **state)
{
    (void)state;
    sample("calls");
    bad(KERNEL("call.uni f, (%r1);"), PTX_UNSUPPORTED,
        "line 7, column 1: call is not supported: f\n    call.uni f, (%r1);\n    ^");
    bad_with(KERNEL("@%p1 call (%r1), f, (%r2);"), PTX_UNSUPPORTED, "call is not supported: f");
    bad_with(KERNEL("{ .param .b32 x; st.param.b32 [x], %r1; call f, (x); }"), PTX_UNSUPPORTED, "call is not supported: f");
    bad_with(KERNEL(".param .b32 x;"), PTX_UNSUPPORTED, ".param in a body");
    bad_with(HEADER ".func f; .func g; .entry k { call f; }\n.func g { call f; }\n.func f { { call g; } }", PTX_UNSUPPORTED,
             "call is not supported: f\n");
    bad_with(HEADER ".func f; .entry k { call f; }\n.func (.reg .b32 %r) f (.reg .b32 %s) { { call (%r), f, (%s); } }",
        PTX_UNSUPPORTED,
             "call is not supported: f, which calls itself (recursion)");
    bad_with(HEADER ".func f; .entry k { call f; }\n.func f { call g; mov.u64 %rd1, f; }", PTX_UNSUPPORTED,
        "call is not supported: f\n");
    bad_with(HEADER ".func f {", PTX_SYNTAX, "this \"{\" has no \"}\"");
    bad_with(HEADER ".func f", PTX_SYNTAX, "a function's body is needed here, but the text ends");
    bad_with(KERNEL("brx.idx %r1, t;"), PTX_UNSUPPORTED, "brx is not supported");
    bad_with(KERNEL("t: .branchtargets a, b;"), PTX_UNSUPPORTED, "\".branchtargets\" is not supported");
}

static void a_zero_byte_ends_the_text(void **state)
{
    (void)state;
    char error[300];
    static const char text[] = HEADER ".entry k { ret; }\0 garbage $$";
    assert_int_equal(parse(text, sizeof text, error, sizeof error), PTX_OK);
    assert_int_equal(module->kernel_count, 1);
}

static void names_of_types(void **state)
{
    (void)state;
    assert_string_equal(ptx_type_name(TYPE_PRED), "pred");
    assert_string_equal(ptx_type_name(TYPE_BF16X2), "bf16x2");
    assert_string_equal(ptx_type_name(TYPE_COUNT), "?");
    assert_int_equal(ptx_type_bits(TYPE_PRED), 1);
    assert_int_equal(ptx_type_bits(TYPE_F64), 64);
    assert_int_equal(ptx_type_bits(TYPE_E5M2X2), 16);
    assert_int_equal(ptx_type_bits(TYPE_COUNT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_whole_kernel), T(lines_and_files), T(variables_and_initial_values), T(places_of_variables),
        T(kernels_have_their_own_variables),
        T(operands_of_each_form), T(integers_in_each_base), T(how_wide_each_operand_is), T(special_registers),
        T(constants_are_shared), T(optional_operands), T(scopes_of_names_and_labels),
        T(calls_are_errors_but_functions_are_not), T(a_zero_byte_ends_the_text), T(names_of_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
