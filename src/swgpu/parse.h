/* What the files of the PTX parser share: its state, names with their scopes, and the steps that call each other.
 *
 * Functions that return int return 0, or 1 after parse_fail: the first error counts and ends the parse. Whatever was
 * allocated hangs off the parser, so that ptx_parse frees it in one place. */
#ifndef SWGPU_PARSE_H
#define SWGPU_PARSE_H

#include "lexer.h"
#include "opcodes.h"
#include "ptx.h"

#include <locale.h>

#define PARSE_MAX_DEPTH 64         /* of nested blocks, with the module and the kernel */
#define PARSE_MAX_DIMENSIONS 8     /* of an array */
#define PARSE_MAX_FILE 4096u       /* the highest number of a .file */
#define PARSE_MAX_ELEMENTS 64      /* registers and immediates of one instruction */
#define PARSE_MAX_ALIGNMENT 32768u
#define PARSE_MAX_VARIABLE (1ull << 40)
#define PARSE_MAX_CONST_BYTES 65536u      /* a GPU's constant bank */
#define PARSE_MAX_INITIAL_BYTES (64u << 20) /* of all initialisers of a module */
#define PARSE_WORDS 384            /* at least opcodes + modifiers + types */
#define PARSE_BUCKETS 512

/* A token for "%.*s" in an error. */
#define SHOWN(t) ((t)->length < 80 ? (int)(t)->length : 80), (t)->text

/* ---- names: each text once, with what it stands for in the innermost scope */

typedef enum symbol_kind {
    SYMBOL_REGISTER, SYMBOL_RANGE, SYMBOL_VARIABLE, SYMBOL_PARAM, SYMBOL_LABEL, SYMBOL_FUNCTION, SYMBOL_KERNEL
} symbol_kind;

typedef struct symbol {
    struct symbol *outer;        /* what the name stood for before */
    struct symbol *next;         /* of the same scope */
    uint32_t name;               /* index into entries */
    uint8_t kind, type, depth;
    uint32_t value;              /* register: slot, 0 not yet used; variable: index; param: offset; label: instruction */
    uint32_t count, *slots;      /* range: slots of its registers, 0 not yet used */
} symbol;

typedef struct name_entry {
    const char *text;
    uint32_t length, hash;
    symbol *symbol;
    symbol *range; /* `name<count>` */
} name_entry;

typedef struct names {
    name_entry *entries;
    uint32_t count, capacity;
    uint32_t *table; /* index into entries + 1; 0: free */
    uint32_t table_size;
    uint32_t odd_ranges; /* ranges whose name ends in a digit, which need a longer search */
    symbol *scopes[PARSE_MAX_DEPTH];
    uint32_t depth;
} names;

/* ---- words after dots, and opcodes */

typedef struct word {
    const char *text;
    uint8_t category; /* WORD_OPCODE, WORD_TYPE or a ptx_category */
    uint8_t value;
    uint16_t next;    /* of the bucket; 0 ends it */
} word;

enum { WORD_OPCODE = MOD_CATEGORIES, WORD_TYPE };

/* ---- operands as written, before the pattern says what they must be */

enum { RAW_NAME, RAW_SPECIAL, RAW_INTEGER, RAW_FLOAT32, RAW_FLOAT64, RAW_SINK };
enum { SHAPE_PLAIN, SHAPE_VECTOR, SHAPE_PAIR, SHAPE_ADDRESS };

typedef struct raw_element {
    token at;
    uint8_t form, negate;
    uint64_t value; /* number, bits of a float, slot of a special register */
    int64_t offset; /* behind a name */
} raw_element;

typedef struct raw_group {
    token at;
    uint8_t shape, first, count;
} raw_group;

typedef struct raw_operands {
    raw_element elements[PARSE_MAX_ELEMENTS];
    raw_group groups[PTX_MAX_GROUPS];
    uint32_t element_count, group_count;
} raw_operands;

/* A branch whose label may come later. */
typedef struct fixup {
    token at;
    uint32_t name, instruction, operand;
} fixup;

typedef struct parser {
    lexer lexer;
    token token; /* the current one */
    const char *text;
    size_t bytes;
    char *error;
    size_t error_bytes;
    ptx_status status;

    const ptx_opcode_row *rows;
    word words[PARSE_WORDS];
    uint16_t buckets[PARSE_BUCKETS];
    uint32_t word_count;
    names names;
    locale_t locale; /* "C", for decimal fractions; made when the first one comes */

    ptx_module *module;
    uint32_t kernel_capacity, variable_capacity, file_capacity, location_capacity;
    uint8_t *in_kernel; /* per variable of the module */
    uint32_t in_kernel_capacity;
    uint64_t module_shared, module_local, module_const, initial_bytes;

    ptx_kernel *kernel; /* the one being parsed, or null; not yet counted in the module */
    uint32_t instruction_capacity, operand_count, operand_capacity, constant_capacity, param_capacity;
    uint32_t register_count;
    uint32_t *constant_table, constant_table_size;
    uint64_t shared_end, local_end;
    uint32_t extern_alignment; /* of the .extern .shared variables used; 0: none */
    uint32_t last_label;       /* highest instruction that a label names */
    uint32_t location;
    fixup *fixups;
    uint32_t fixup_count, fixup_capacity;
    raw_operands raw;
} parser;

/* ---- parse.c */
int parse_fail(parser *p, ptx_status status, const token *at, const char *format, ...) __attribute__((format(printf, 4, 5)));
int parse_no_memory(parser *p);
int parse_unexpected(parser *p, const char *wanted); /* "a number is needed here, not ..." at the current token */
void parse_next(parser *p);
int parse_expect(parser *p, int kind, const char *wanted); /* and moves past it */
int parse_accept(parser *p, int kind);                     /* 1 and past it, if it is there */
int parse_word_is(const parser *p, const char *text);      /* the current token is .text */
int parse_text_is(const token *t, const char *text);
/* A whole number from least to most, past which it moves. */
int parse_count(parser *p, uint64_t least, uint64_t most, const char *wanted, uint64_t *out);
int parse_number(parser *p, raw_element *out); /* an integer or a float, with its sign: form and value */
int parse_skip_block(parser *p);               /* from { to past the } that ends it */
int parse_pragma(parser *p);
/* The array, with room for one more item behind `count`; null after parse_fail. */
void *parse_grow(parser *p, void *array, uint32_t *capacity, uint32_t count, size_t item);
char *parse_copy(parser *p, const token *t);

/* ---- parse_names.c */
int names_start(parser *p);
void names_free(parser *p);
uint32_t names_intern(parser *p, const token *t);  /* UINT32_MAX after parse_fail */
symbol *names_declare(parser *p, const token *t, symbol_kind kind, int range); /* null after parse_fail */
/* What a name stands for, or null. A member of a range: *member is its number. */
symbol *names_find(parser *p, const token *t, uint32_t *member);
int names_open(parser *p, const token *at);
void names_close(parser *p);
const word *words_find(const parser *p, const token *t, const word *after);

/* ---- parse_variables.c */
int parse_variable(parser *p, int is_extern);
ptx_type parse_type(parser *p); /* the type that the current word names, or TYPE_NONE; does not move */
int parse_alignment(parser *p, uint32_t *out);
int parse_dimensions(parser *p, uint64_t *sizes, uint32_t *count, int *open);

/* ---- parse_kernel.c */
int parse_entry(parser *p);
int parse_function(parser *p);
int parse_location(parser *p);

/* ---- parse_instruction.c, parse_operands.c, parse_types.c */
int parse_instruction(parser *p, const token *opcode, const token *guard, int guard_negate);
int parse_operands(parser *p); /* fills p->raw, up to the ; */
/* Matches p->raw with the opcode's pattern, checks and adds to the kernel's operands. */
int parse_match(parser *p, ptx_instruction *i);
int parse_emit(parser *p, ptx_instruction *i);
/* The slot of a register, given on its first use. */
uint32_t parse_register_slot(parser *p, symbol *s, uint32_t member);
const char *parse_special_name(const token *name, const token *part, uint32_t *slot, uint8_t *bits);
ptx_type parse_operand_type(const ptx_instruction *i, unsigned position);

/* ---- liveness.c */
void liveness_estimate(ptx_kernel *kernel);

#endif
