/* A kernel's description: everything that decides the meaning of its binary, and what follows from it
 * alone: its key, its name, its source. What the planner chooses is a kernel_spec; what the caches
 * keep is found by its key. */
#ifndef JG_KERNEL_H
#define JG_KERNEL_H

#include "problem.h"

/* Version of struct launch_args and of what a kernel expects of its launch. */
#define KERNEL_ABI 2
/* Version of the key's byte layout. */
#define KERNEL_KEY_FORMAT 3

#define KERNEL_KEY_BYTES 144
#define KERNEL_NAME_BYTES 192

/* Products that fit the parameters of a grouped kernel: 4 KiB on any driver. */
#define KERNEL_GROUP 60

enum { FAMILY_SIMT = 1, FAMILY_MMA = 2, FAMILY_TF32 = 3 };
#define LAST_FAMILY FAMILY_TF32

/* In a spec, what a generic kernel takes as a launch argument. */
#define SPEC_ARGUMENT 0xff
#define SPEC_FUSION_ARGUMENT 0xffffffffu

/* Of an mma kernel's vec_a and vec_b: the operand goes through registers, element by element or, where its rows allow it,
 * several at a time. Other widths are those of cp.async. */
#define SPEC_GATHER 2
#define SPEC_GATHER_WIDE 3 /* of a specialised kernel, where its rows do */
/* And that it goes through registers in words of 4 bytes, put together of what lies at any address. */
#define SPEC_REALIGN 1

/* What becomes of a sum, as one word: JG_EPILOGUE_ flags, then these. As in templates/common.cuh. */
enum {
    FUSION_ACTIVATION_SHIFT = 8, /* jg_activation */
    FUSION_TYPE_C_SHIFT = 12,    /* jg_type */
    FUSION_TYPE_BIAS_SHIFT = 16, /* jg_type */
    FUSION_GROUP_SHIFT = 20,     /* 1, 2, 3: weights in groups of 32, 64, 128 */
    FUSION_ZERO_POINTS = 1 << 22
};

typedef struct tile {
    uint16_t m, n, k;           /* block tile and k step */
    uint16_t warp_m, warp_n;    /* of a warp (mma) or of a thread (simt) */
    uint16_t stages;
    uint16_t slices;            /* groups of a block's threads that deal out the steps of k among them; 1: all do each */
} tile;

typedef struct kernel_spec {
    uint16_t family, arch;
    uint8_t form;               /* JG_FORM_GENERIC or JG_FORM_SPECIALISED */
    uint8_t type_a, type_b;     /* jg_type */
    uint8_t math;               /* a JG_MATH_ mode and flags */
    uint8_t trans_a, trans_b;   /* 0, 1 or SPEC_ARGUMENT */
    uint8_t vec_a, vec_b;       /* bytes of a load: 16, 8, 4, SPEC_REALIGN, SPEC_GATHER, SPEC_GATHER_WIDE, or SPEC_ARGUMENT */
    uint8_t vec_c;              /* 1 if four neighbours of C may be stored at once, 0, or SPEC_ARGUMENT */
    uint8_t single;             /* 1 if the batch is known to be one item */
    uint8_t grouped;            /* 1: a generic kernel that takes many products, KERNEL_GROUP of them (grouped.c) */
    tile tile;
    uint32_t fusion;            /* or SPEC_FUSION_ARGUMENT */
    /* 0: a launch argument, as all are in generic form. No constant is 0: an empty product has no kernel, a leading dimension
     * is 1 or more, and k = 0 is left to the launch. */
    int64_t m, n, k, lda, ldb, ldc;
} kernel_spec;

typedef struct kernel_key {
    uint8_t bytes[KERNEL_KEY_BYTES];
} kernel_key;

/* The canonical key: format, ABI, template digest and every member, each in a fixed-width little-endian field, so
 * different specs have different keys. */
void kernel_encode_key(const kernel_spec *spec, kernel_key *key);

/* A name that says what the kernel is; a valid C identifier, at most KERNEL_NAME_BYTES with the ending 0. */
void kernel_format_name(const kernel_spec *spec, char name[KERNEL_NAME_BYTES]);

/* A problem's fusion word. */
uint32_t kernel_fusion(const problem *p);

/* The #define lines that go before the template's text. Returns the length; the text is cut if it is not below size. */
size_t kernel_render_defines(const kernel_spec *spec, char *text, size_t size);

/* k of one step: what one instruction of the family multiplies, and slices are dealt. */
int kernel_step_k(const kernel_spec *spec);
int kernel_threads(const kernel_spec *spec);
int kernel_shared_bytes(const kernel_spec *spec);
/* Registers a thread needs, estimated from its tile. */
int kernel_registers(const kernel_spec *spec);
/* Blocks an SM must be able to hold; becomes the kernel's __launch_bounds__, so that the compiler keeps the registers to what the
 * planner counted on. Every architecture has 65,536 registers an SM. */
int kernel_min_blocks(const kernel_spec *spec);

const char *family_name(int family);
/* Writes what fixes the bits of a result: the arithmetic and the order of additions of a family's kernels for these types, this math
 * and so many slices. `integer`: A and B are. */
void family_numeric_class(int family, int integer, unsigned math, int slices, char *text, size_t size);
/* The type of A and B in registers and shared memory: f32, f16, bf16 or s8 (any integer). */
jg_type kernel_multiply_type(const kernel_spec *spec);

#endif
