/* What the tests of the PTX parser share: texts that must parse, texts that must not, and the samples in tests/ptx/. */
#ifndef PTX_FIXTURE_H
#define PTX_FIXTURE_H

#include "../src/swgpu/exec.h"
#include "../src/swgpu/opcodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"
#define REGISTERS                                                                                                      \
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<99>;"                                          \
    ".reg .f32 %f<99>; .reg .f64 %d<9>; .reg .f16x2 %x<9>;\n"
#define KERNEL(body) HEADER ".entry k(.param .u64 a, .param .b8 s[12])\n{\n" REGISTERS body "\n}\n"

static ptx_module *module; /* of the last text that parsed */
static char *loaded;       /* the last sample's text */

/* The text of a kernel whose body comes from pieces. */
static inline const char *kernel_text(const char *first, const char *second, const char *third)
{
    static char text[4000];
    snprintf(text, sizeof text, "%s.entry k(.param .u64 a, .param .b8 s[12])\n{\n%s%s%s%s\n}\n", HEADER, REGISTERS, first, second,
        third);
    return text;
}

static inline int teardown(void **state)
{
    (void)state;
    ptx_free(module);
    module = NULL;
    free(loaded);
    loaded = NULL;
    return 0;
}

/* Parses a copy of just the text's bytes, so that reading behind it would show. */
static inline ptx_status parse(const char *text, size_t bytes, char *error, size_t error_bytes)
{
    char *copy = malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    ptx_free(module);
    module = NULL;
    ptx_status status = ptx_parse(copy, bytes, &module, error, error_bytes);
    free(copy);
    assert_int_equal(status == PTX_OK, module != NULL);
    return status;
}

static inline const ptx_kernel *good(const char *text)
{
    char error[1024];
    if (parse(text, strlen(text), error, sizeof error) != PTX_OK) fail_msg("%s", error);
    return module->kernel_count ? &module->kernels[0] : NULL;
}

static inline void bad(const char *text, ptx_status status, const char *expected)
{
    char error[1024];
    assert_int_equal(parse(text, strlen(text), error, sizeof error), status);
    assert_string_equal(error, expected);
}

/* Only a part of the error's text. */
static inline void bad_with(const char *text, ptx_status status, const char *part)
{
    char error[1024];
    assert_int_equal(parse(text, strlen(text), error, sizeof error), status);
    if (!strstr(error, part)) fail_msg("\"%s\" is not in: %s", part, error);
}

static inline const ptx_kernel *sample(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "tests/ptx/%s.ptx", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    free(loaded);
    loaded = calloc(1, 65536);
    assert_non_null(loaded);
    assert_true(fread(loaded, 1, 65535, f) > 0);
    fclose(f);
    return good(loaded);
}

static inline const ptx_instruction *at_line(const ptx_kernel *k, uint32_t line)
{
    for (uint32_t n = 0; n < k->count; n++)
        if (k->instructions[n].line == line) return &k->instructions[n];
    fail_msg("no instruction in line %u", line);
    return NULL;
}

/* The line on which a text first stands, from 1. */
static inline uint32_t line_of(const char *text, const char *part)
{
    const char *found = strstr(text, part);
    uint32_t line = 1;
    assert_non_null(found);
    for (const char *c = text; c < found; c++) line += *c == '\n';
    return line;
}

static inline const ptx_instruction *find(const ptx_kernel *k, const char *part)
{
    return at_line(k, line_of(loaded, part));
}

static inline const ptx_constant *constant(const ptx_kernel *k, uint32_t slot)
{
    for (uint32_t c = 0; c < k->constant_count; c++)
        if (k->constants[c].slot == slot) return &k->constants[c];
    fail_msg("slot %u is no constant", slot);
    return NULL;
}

/* An operand whose slot is a constant with that value and width. */
static inline void is_constant(const ptx_kernel *k, const ptx_operand *o, uint64_t value, unsigned bits)
{
    const ptx_constant *c = constant(k, o->slot);
    assert_int_equal(c->symbol, -1);
    assert_true(c->value == value);
    assert_int_equal(o->bits, bits);
    assert_int_equal(c->wide, bits == 64);
}

static inline const ptx_operand *operand(const ptx_instruction *i, unsigned group, unsigned element)
{
    assert_true(group < i->groups && element < i->count[group]);
    return operand_at(i, group, element);
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

#endif
