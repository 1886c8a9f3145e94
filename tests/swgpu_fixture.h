/* One warp without a kernel: tests write an instruction as text, and it runs for the lanes of a mask.
 *
 *     fixture_reset();
 *     fixture_set32(50, lane, 7);
 *     fixture_run("add.sat.s32 r40, r50, #-3", FULL_MASK);
 *
 * This is not the parser: words become modifiers without checks beyond the opcode's row. Operands: rN a 32-bit register
 * in slot N, dN a 64-bit one in slots N and N + 1, hN 16 bits, bN 8 bits, pN a predicate, !pN; _ the sink; [dN+8]
 * an address; L a label; {r1, r2} a vector and r1|p2 a pair. #V is an immediate as wide as the first type (32 bits if
 * there is none), #nV one of 32 bits, #wV one of 64, #pV a predicate; V is a C number. */
#ifndef SWGPU_FIXTURE_H
#define SWGPU_FIXTURE_H

#include "../src/swgpu/exec.h"
#include "../src/swgpu/opcodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FIXTURE_SLOTS 256     /* immediates take slots from the end */
#define FIXTURE_FIRST_SLOT 40 /* free for tests: those before are special registers */
#define FIXTURE_OPERANDS 64

extern const ptx_opcode_row opcode_rows[];
extern const ptx_opcode_row opcode_rows_wide[] __attribute__((weak));

static struct fixture {
    _Alignas(64) uint32_t registers[FIXTURE_SLOTS * PTX_LANES];
    const ptx_opcode_row *rows; /* null: ptx_opcode_table() */
    ptx_module module;
    ptx_kernel kernel;
    launch launch;
    struct fault fault;
    block block;
    warp warp;
    counters counters;
    ptx_instruction instruction;
    ptx_operand operands[FIXTURE_OPERANDS];
    uint32_t operand_count, next_immediate;
} fixture;

/* All registers 0, no instruction; the table stays. */
static inline void fixture_reset(void)
{
    static char name[] = "fixture", no_file[] = "";
    static char *files[] = {no_file};
    static ptx_location unknown;
    const ptx_opcode_row *rows = fixture.rows;
    memset(&fixture, 0, sizeof fixture);
    fixture.rows = rows;
    fixture.module.kernels = &fixture.kernel;
    fixture.module.kernel_count = 1;
    fixture.module.files = files;
    fixture.module.file_count = 1;
    fixture.module.locations = &unknown;
    fixture.module.location_count = 1;
    fixture.kernel.name = name;
    fixture.kernel.slots = FIXTURE_SLOTS;
    fixture.launch.module = &fixture.module;
    fixture.launch.kernel = &fixture.kernel;
    fixture.launch.fault = &fixture.fault;
    fixture.launch.threads[0] = fixture.launch.block_threads = PTX_LANES;
    for (int k = 0; k < 3; k++) fixture.launch.grid[k] = 1;
    fixture.launch.threads[1] = fixture.launch.threads[2] = 1;
    fixture.block.launch = &fixture.launch;
    fixture.block.warps = &fixture.warp;
    fixture.block.warp_count = 1;
    fixture.warp.registers = fixture.registers;
    fixture.warp.block = &fixture.block;
    fixture.warp.counters = &fixture.counters;
    fixture.warp.live = FULL_MASK;
    fixture.next_immediate = FIXTURE_SLOTS;
}

/* Tables that this processor can run: 1 or 2. Programs run their tests once with each. */
static inline unsigned fixture_tables(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (opcode_rows_wide && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        return 2;
#endif
    return 1;
}

static inline void fixture_use_table(unsigned number)
{
    fixture.rows = number ? opcode_rows_wide : opcode_rows;
}

static inline void fixture_set32(uint32_t slot, unsigned lane, uint32_t value) { slot32(&fixture.warp, slot)[lane] = value; }
static inline void fixture_set64(uint32_t slot, unsigned lane, uint64_t value) { slot64(&fixture.warp, slot)[lane] = value; }
static inline uint32_t fixture_get32(uint32_t slot, unsigned lane) { return slot32(&fixture.warp, slot)[lane]; }
static inline uint64_t fixture_get64(uint32_t slot, unsigned lane) { return slot64(&fixture.warp, slot)[lane]; }
static inline void fixture_set_predicate(uint32_t slot, uint32_t lanes) { slot32(&fixture.warp, slot)[0] = lanes; }
static inline uint32_t fixture_get_predicate(uint32_t slot) { return slot32(&fixture.warp, slot)[0]; }

/* Types and modifiers of "sat.s32". Fails the test on a word that the opcode's row does not know. */
static inline void fixture_words_(char *words, const ptx_opcode_row *row)
{
    static const struct { const char *text; uint8_t category, value; } modifiers[] = {
#define MEMBER(category, value, text) {text, MOD_##category, value},
        PTX_MODIFIERS(MEMBER)
#undef MEMBER
    };
    static const char *const types[] = {
#define MEMBER(name, text, bits) text,
        PTX_TYPES(MEMBER)
#undef MEMBER
    };
    ptx_instruction *i = &fixture.instruction;
    char *rest;
    for (char *word = strtok_r(words, ".", &rest); word; word = strtok_r(NULL, ".", &rest)) {
        int known = 0;
        for (size_t m = 0; m < sizeof modifiers / sizeof *modifiers && !known; m++) {
            uint8_t category = modifiers[m].category;
            if (strcmp(word, modifiers[m].text) || !(row->modifiers >> category & 1) || i->modifier[category]) continue;
            i->modifier[category] = modifiers[m].value;
            known = 1;
        }
        for (unsigned t = TYPE_NONE + 1; t < TYPE_COUNT && !known; t++) {
            if (strcmp(word, types[t]) || i->types == row->type_count) continue;
            i->type[i->types++] = (uint8_t)t;
            known = 1;
        }
        if (!known) fail_msg("the row of %s has no .%s", row->name, word);
    }
}

static inline uint8_t fixture_type_bits_(void)
{
    static const uint8_t bits[] = {
#define MEMBER(name, text, width) width,
        PTX_TYPES(MEMBER)
#undef MEMBER
    };
    uint8_t width = bits[fixture.instruction.type[0]];
    return width ? width : 32;
}

/* "#-3": takes a slot or two from the end of the register file and fills it. */
static inline const char *fixture_immediate_(const char *at, ptx_operand *o)
{
    o->kind = OPERAND_IMMEDIATE;
    o->bits = *at == 'n' ? 32 : *at == 'w' ? 64 : *at == 'p' ? 1 : fixture_type_bits_();
    if (*at == 'n' || *at == 'w' || *at == 'p') at++;
    o->type = o->bits == 64 ? TYPE_B64 : o->bits == 16 ? TYPE_B16 : o->bits == 1 ? TYPE_PRED : TYPE_B32;
    char *end;
    uint64_t value = *at == '-' ? 0 - strtoull(at + 1, &end, 0) : strtoull(at, &end, 0);
    fixture.next_immediate -= 2;
    o->slot = fixture.next_immediate;
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        if (o->bits == 64) fixture_set64(o->slot, lane, value);
        else fixture_set32(o->slot, lane, o->bits == 16 ? (uint16_t)value : (uint32_t)value);
    }
    if (o->bits == 1) fixture_set_predicate(o->slot, value ? FULL_MASK : 0);
    return end;
}

static inline const char *fixture_operand_(const char *at)
{
    ptx_operand *o = &fixture.operands[fixture.operand_count++];
    assert_true(fixture.operand_count <= FIXTURE_OPERANDS);
    memset(o, 0, sizeof *o);
    int address = *at == '[';
    at += address;
    if (*at == '!') o->negate = 1, at++;
    char letter = *at++;
    if (letter == '#') return fixture_immediate_(at, o);
    if (letter == '_' || letter == 'L') {
        o->kind = letter == '_' ? OPERAND_SINK : OPERAND_LABEL;
        return at;
    }
    o->kind = address ? OPERAND_ADDRESS : OPERAND_REGISTER;
    static const struct { char letter; uint8_t bits, type; } letters[] = {
        {'p', 1, TYPE_PRED}, {'b', 8, TYPE_B8}, {'h', 16, TYPE_B16}, {'r', 32, TYPE_B32}, {'d', 64, TYPE_B64}};
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++)
        if (letters[k].letter == letter) o->bits = letters[k].bits, o->type = letters[k].type;
    assert_true(o->bits);
    char *end;
    o->slot = (uint32_t)strtoul(at, &end, 10);
    assert_true(o->slot + 1 < FIXTURE_SLOTS);
    if (address) {
        if (*end != ']') o->offset = strtoll(end, &end, 0);
        assert_true(*end == ']');
        end++;
    }
    return end;
}

static inline void fixture_operands_(const char *at)
{
    ptx_instruction *i = &fixture.instruction;
    int inside = 0, new_group = 1;
    for (; *at;) {
        if (*at == ' ') {
            at++;
        } else if (*at == '{' || *at == '}') {
            inside = *at++ == '{';
            if (inside) new_group = 1;
        } else if (*at == ',' || *at == '|') {
            new_group = *at++ == ',' && !inside;
        } else {
            if (new_group) {
                assert_true(i->groups < PTX_MAX_GROUPS);
                i->first[i->groups++] = (uint8_t)fixture.operand_count;
            }
            new_group = 0;
            at = fixture_operand_(at);
            i->count[i->groups - 1]++;
        }
    }
}

/* Makes fixture.instruction from text and binds it. Null if the bind function refuses it. */
static inline ptx_run *fixture_bind(const char *text)
{
    char copy[256];
    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    char *operands = copy + strcspn(copy, " ");
    if (*operands) *operands++ = 0;
    char *words = copy + strcspn(copy, ".");
    if (*words) *words++ = 0;

    const ptx_opcode_row *rows = fixture.rows ? fixture.rows : ptx_opcode_table();
    unsigned opcode = 0;
    while (opcode < OPCODE_COUNT && strcmp(rows[opcode].name, copy) != 0) opcode++;
    if (opcode == OPCODE_COUNT) fail_msg("no opcode %s", copy);
    if (!rows[opcode].bind) fail_msg("%s has no bind function", copy);

    memset(&fixture.instruction, 0, sizeof fixture.instruction);
    fixture.instruction.opcode = (uint16_t)opcode;
    fixture.instruction.operands = fixture.operands;
    fixture.instruction.counter = rows[opcode].counter;
    fixture.instruction.line = 1;
    fixture.operand_count = 0;
    fixture.next_immediate = FIXTURE_SLOTS;
    fixture_words_(words, &rows[opcode]);
    fixture_operands_(operands);
    fixture.instruction.run = rows[opcode].bind(&fixture.instruction);
    return fixture.instruction.run;
}

/* Runs what fixture_bind made last, again. */
static inline int fixture_again(uint32_t mask) { return fixture.instruction.run(&fixture.warp, &fixture.instruction, mask); }

/* Binds and runs; fails the test if the instruction is refused. Returns what it returned. */
static inline int fixture_run(const char *text, uint32_t mask)
{
    if (!fixture_bind(text)) fail_msg("refused: %s", text);
    return fixture_again(mask);
}

#endif
