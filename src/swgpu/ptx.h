/* PTX in memory: what the parser makes of a module's text and the executor runs.
 *
 * Registers live in the register file of a warp, in slots of 128 bytes: one 32-bit word for each of the 32 lanes. A
 * 64-bit register takes two slots, seen as uint64_t[32]. 8- and 16-bit registers use a slot with the upper bits 0. A
 * predicate uses the first word of a slot: bit n is lane n. Immediates, addresses of symbols and special registers
 * (%tid.x ...) are slots too, filled before a block starts, so that an operand is always a slot. */
#ifndef SWGPU_PTX_H
#define SWGPU_PTX_H

#include <stddef.h>
#include <stdint.h>

#define PTX_LANES 32
#define PTX_NAME_BYTES 256

/* ---- types: enumerator, name in the text, bits of one value in a register */
#define PTX_TYPES(X)                                                                                                   \
    X(NONE, "", 0) X(PRED, "pred", 1) X(B1, "b1", 1) X(B8, "b8", 8) X(B16, "b16", 16) X(B32, "b32", 32)               \
    X(B64, "b64", 64) X(B128, "b128", 128) X(U4, "u4", 4) X(S4, "s4", 4) X(U8, "u8", 8) X(U16, "u16", 16)              \
    X(U32, "u32", 32) X(U64, "u64", 64) X(S8, "s8", 8) X(S16, "s16", 16) X(S32, "s32", 32) X(S64, "s64", 64)           \
    X(F16, "f16", 16) X(F16X2, "f16x2", 32) X(BF16, "bf16", 16) X(BF16X2, "bf16x2", 32) X(TF32, "tf32", 32)            \
    X(E4M3, "e4m3", 8) X(E5M2, "e5m2", 8) X(E4M3X2, "e4m3x2", 16) X(E5M2X2, "e5m2x2", 16) X(F32, "f32", 32)            \
    X(F64, "f64", 64) X(U16X2, "u16x2", 32) X(S16X2, "s16x2", 32)

typedef enum ptx_type {
#define MEMBER(name, text, bits) TYPE_##name,
    PTX_TYPES(MEMBER)
#undef MEMBER
    TYPE_COUNT
} ptx_type;

#define TYPE_BIT(name) (1ull << TYPE_##name)

/* ---- modifiers: an instruction keeps one value for each category; 0 is "not given". An opcode's row says which
 * categories it takes, so that "lo" is a comparison in setp and a half in mul. */
typedef enum ptx_category {
    MOD_ROUND, MOD_COMPARE, MOD_BOOL, MOD_SPACE, MOD_SPACE2, MOD_VECTOR, MOD_CACHE, MOD_HINT, MOD_ORDER, MOD_SCOPE, MOD_ATOM,
    MOD_HALF, MOD_SHUFFLE, MOD_VOTE, MOD_PERMUTE, MOD_FUNNEL, MOD_SHIFT, MOD_SHAPE, MOD_COUNT, MOD_LAYOUT, MOD_LAYOUT2, MOD_GROUP,
    MOD_TEST, MOD_FTZ, MOD_SAT, MOD_RELU, MOD_APPROX, MOD_SYNC, MOD_ALIGNED, MOD_TRANS, MOD_UNI, MOD_VOLATILE, MOD_TO, MOD_NAN,
    MOD_XORSIGN, MOD_NOFTZ, MOD_PROXY,
    MOD_CATEGORIES
} ptx_category;

#define CATEGORY(name) (1ull << MOD_##name)

/* category, value's enumerator, text */
#define PTX_MODIFIERS(X)                                                                                               \
    X(ROUND, ROUND_RN, "rn") X(ROUND, ROUND_RZ, "rz") X(ROUND, ROUND_RM, "rm") X(ROUND, ROUND_RP, "rp")                \
    X(ROUND, ROUND_RNA, "rna") X(ROUND, ROUND_RNI, "rni") X(ROUND, ROUND_RZI, "rzi") X(ROUND, ROUND_RMI, "rmi")        \
    X(ROUND, ROUND_RPI, "rpi")                                                                                         \
    X(COMPARE, COMPARE_EQ, "eq") X(COMPARE, COMPARE_NE, "ne") X(COMPARE, COMPARE_LT, "lt") X(COMPARE, COMPARE_LE, "le") \
    X(COMPARE, COMPARE_GT, "gt") X(COMPARE, COMPARE_GE, "ge") X(COMPARE, COMPARE_LO, "lo") X(COMPARE, COMPARE_LS, "ls") \
    X(COMPARE, COMPARE_HI, "hi") X(COMPARE, COMPARE_HS, "hs") X(COMPARE, COMPARE_EQU, "equ")                           \
    X(COMPARE, COMPARE_NEU, "neu") X(COMPARE, COMPARE_LTU, "ltu") X(COMPARE, COMPARE_LEU, "leu")                       \
    X(COMPARE, COMPARE_GTU, "gtu") X(COMPARE, COMPARE_GEU, "geu") X(COMPARE, COMPARE_NUM, "num")                       \
    X(COMPARE, COMPARE_NAN, "nan")                                                                                     \
    X(BOOL, BOOL_AND, "and") X(BOOL, BOOL_OR, "or") X(BOOL, BOOL_XOR, "xor")                                           \
    X(SPACE, SPACE_GLOBAL, "global") X(SPACE, SPACE_SHARED, "shared") X(SPACE, SPACE_SHARED, "shared::cta")            \
    X(SPACE, SPACE_LOCAL, "local") X(SPACE, SPACE_PARAM, "param") X(SPACE, SPACE_CONST, "const")                       \
    X(SPACE2, SPACE_GLOBAL, "global") X(SPACE2, SPACE_SHARED, "shared") X(SPACE2, SPACE_SHARED, "shared::cta")         \
    X(VECTOR, VECTOR_2, "v2") X(VECTOR, VECTOR_4, "v4") X(VECTOR, VECTOR_8, "v8")                                      \
    X(CACHE, CACHE_CA, "ca") X(CACHE, CACHE_CG, "cg") X(CACHE, CACHE_CS, "cs") X(CACHE, CACHE_LU, "lu")                \
    X(CACHE, CACHE_CV, "cv") X(CACHE, CACHE_WB, "wb") X(CACHE, CACHE_WT, "wt") X(CACHE, CACHE_NC, "nc")                \
    X(HINT, HINT_GIVEN, "L1::evict_normal") X(HINT, HINT_GIVEN, "L1::evict_unchanged") X(HINT, HINT_GIVEN, "L1::evict_first") \
    X(HINT, HINT_GIVEN, "L1::evict_last") X(HINT, HINT_GIVEN, "L1::no_allocate") X(HINT, HINT_GIVEN, "L2::64B")        \
    X(HINT, HINT_GIVEN, "L2::128B") X(HINT, HINT_GIVEN, "L2::256B") X(HINT, HINT_GIVEN, "L1") X(HINT, HINT_GIVEN, "L2") \
    X(ORDER, ORDER_WEAK, "weak") X(ORDER, ORDER_RELAXED, "relaxed") X(ORDER, ORDER_ACQUIRE, "acquire")                 \
    X(ORDER, ORDER_RELEASE, "release") X(ORDER, ORDER_ACQ_REL, "acq_rel") X(ORDER, ORDER_SC, "sc")                     \
    X(SCOPE, SCOPE_CTA, "cta") X(SCOPE, SCOPE_CLUSTER, "cluster") X(SCOPE, SCOPE_GPU, "gpu") X(SCOPE, SCOPE_SYS, "sys") \
    X(SCOPE, SCOPE_GPU, "gl")                                                                                          \
    X(ATOM, ATOM_AND, "and") X(ATOM, ATOM_OR, "or") X(ATOM, ATOM_XOR, "xor") X(ATOM, ATOM_ADD, "add")                  \
    X(ATOM, ATOM_MIN, "min") X(ATOM, ATOM_MAX, "max") X(ATOM, ATOM_INC, "inc") X(ATOM, ATOM_DEC, "dec")                \
    X(ATOM, ATOM_EXCH, "exch") X(ATOM, ATOM_CAS, "cas")                                                                \
    X(HALF, HALF_LO, "lo") X(HALF, HALF_HI, "hi") X(HALF, HALF_WIDE, "wide")                                           \
    X(SHUFFLE, SHUFFLE_UP, "up") X(SHUFFLE, SHUFFLE_DOWN, "down") X(SHUFFLE, SHUFFLE_BFLY, "bfly")                     \
    X(SHUFFLE, SHUFFLE_IDX, "idx")                                                                                     \
    X(VOTE, VOTE_ALL, "all") X(VOTE, VOTE_ANY, "any") X(VOTE, VOTE_UNI, "uni") X(VOTE, VOTE_BALLOT, "ballot")          \
    X(PERMUTE, PERMUTE_F4E, "f4e") X(PERMUTE, PERMUTE_B4E, "b4e") X(PERMUTE, PERMUTE_RC8, "rc8")                       \
    X(PERMUTE, PERMUTE_ECL, "ecl") X(PERMUTE, PERMUTE_ECR, "ecr") X(PERMUTE, PERMUTE_RC16, "rc16")                     \
    X(FUNNEL, FUNNEL_L, "l") X(FUNNEL, FUNNEL_R, "r") X(SHIFT, SHIFT_WRAP, "wrap") X(SHIFT, SHIFT_CLAMP, "clamp")      \
    X(SHIFT, SHIFT_AMOUNT, "shiftamt")                                                                                 \
    X(SHAPE, SHAPE_M8N8, "m8n8") X(SHAPE, SHAPE_M8N8K4, "m8n8k4") X(SHAPE, SHAPE_M8N8K16, "m8n8k16")                   \
    X(SHAPE, SHAPE_M8N8K32, "m8n8k32") X(SHAPE, SHAPE_M16N8K4, "m16n8k4") X(SHAPE, SHAPE_M16N8K8, "m16n8k8")           \
    X(SHAPE, SHAPE_M16N8K16, "m16n8k16") X(SHAPE, SHAPE_M16N8K32, "m16n8k32") X(SHAPE, SHAPE_M16N8K64, "m16n8k64")     \
    X(COUNT, COUNT_X1, "x1") X(COUNT, COUNT_X2, "x2") X(COUNT, COUNT_X4, "x4")                                         \
    X(LAYOUT, LAYOUT_ROW, "row") X(LAYOUT, LAYOUT_COL, "col") X(LAYOUT2, LAYOUT_ROW, "row") X(LAYOUT2, LAYOUT_COL, "col") \
    X(GROUP, GROUP_COMMIT, "commit_group") X(GROUP, GROUP_WAIT, "wait_group") X(GROUP, GROUP_WAIT_ALL, "wait_all")     \
    X(GROUP, GROUP_ARRIVE, "arrive") X(GROUP, GROUP_RED, "red") X(GROUP, GROUP_WARP, "warp")                           \
    X(TEST, TEST_FINITE, "finite") X(TEST, TEST_INFINITE, "infinite") X(TEST, TEST_NUMBER, "number")                   \
    X(TEST, TEST_NOTANUMBER, "notanumber") X(TEST, TEST_NORMAL, "normal") X(TEST, TEST_SUBNORMAL, "subnormal")         \
    X(FTZ, FTZ_GIVEN, "ftz") X(SAT, SAT_GIVEN, "sat") X(SAT, SAT_FINITE, "satfinite") X(RELU, RELU_GIVEN, "relu")      \
    X(APPROX, APPROX_GIVEN, "approx") X(APPROX, APPROX_FULL, "full") X(SYNC, SYNC_GIVEN, "sync")                       \
    X(ALIGNED, ALIGNED_GIVEN, "aligned") X(TRANS, TRANS_GIVEN, "trans") X(UNI, UNI_GIVEN, "uni")                       \
    X(VOLATILE, VOLATILE_GIVEN, "volatile") X(TO, TO_GIVEN, "to") X(NAN, NAN_GIVEN, "NaN")                             \
    X(XORSIGN, XORSIGN_GIVEN, "xorsign") X(NOFTZ, NOFTZ_GIVEN, "noftz") X(PROXY, PROXY_ASYNC, "async")

enum { ROUND_NONE, ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA, ROUND_RNI, ROUND_RZI, ROUND_RMI, ROUND_RPI };
enum { COMPARE_NONE, COMPARE_EQ, COMPARE_NE, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE, COMPARE_LO, COMPARE_LS, COMPARE_HI,
       COMPARE_HS, COMPARE_EQU, COMPARE_NEU, COMPARE_LTU, COMPARE_LEU, COMPARE_GTU, COMPARE_GEU, COMPARE_NUM, COMPARE_NAN };
enum { BOOL_NONE, BOOL_AND, BOOL_OR, BOOL_XOR };
enum { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_CONST, SPACE_REG };
enum { VECTOR_NONE, VECTOR_2, VECTOR_4, VECTOR_8 };
enum { CACHE_NONE, CACHE_CA, CACHE_CG, CACHE_CS, CACHE_LU, CACHE_CV, CACHE_WB, CACHE_WT, CACHE_NC };
enum { HINT_NONE, HINT_GIVEN };
enum { ORDER_NONE, ORDER_WEAK, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL, ORDER_SC };
enum { SCOPE_NONE, SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };
enum { ATOM_NONE, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_ADD, ATOM_MIN, ATOM_MAX, ATOM_INC, ATOM_DEC, ATOM_EXCH, ATOM_CAS };
enum { HALF_NONE, HALF_LO, HALF_HI, HALF_WIDE };
enum { SHUFFLE_NONE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX };
enum { VOTE_NONE, VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum { PERMUTE_NONE, PERMUTE_F4E, PERMUTE_B4E, PERMUTE_RC8, PERMUTE_ECL, PERMUTE_ECR, PERMUTE_RC16 };
enum { FUNNEL_NONE, FUNNEL_L, FUNNEL_R };
enum { SHIFT_NONE, SHIFT_WRAP, SHIFT_CLAMP, SHIFT_AMOUNT };
enum { SHAPE_NONE, SHAPE_M8N8, SHAPE_M8N8K4, SHAPE_M8N8K16, SHAPE_M8N8K32, SHAPE_M16N8K4, SHAPE_M16N8K8, SHAPE_M16N8K16,
       SHAPE_M16N8K32, SHAPE_M16N8K64 };
enum { COUNT_NONE, COUNT_X1, COUNT_X2, COUNT_X4 };
enum { LAYOUT_NONE, LAYOUT_ROW, LAYOUT_COL };
enum { GROUP_NONE, GROUP_COMMIT, GROUP_WAIT, GROUP_WAIT_ALL, GROUP_ARRIVE, GROUP_RED, GROUP_WARP };
enum { TEST_NONE, TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NOTANUMBER, TEST_NORMAL, TEST_SUBNORMAL };
enum { FTZ_NONE, FTZ_GIVEN };
enum { SAT_NONE, SAT_GIVEN, SAT_FINITE };
enum { RELU_NONE, RELU_GIVEN };
enum { APPROX_NONE, APPROX_GIVEN, APPROX_FULL };
enum { SYNC_NONE, SYNC_GIVEN };
enum { ALIGNED_NONE, ALIGNED_GIVEN };
enum { TRANS_NONE, TRANS_GIVEN };
enum { UNI_NONE, UNI_GIVEN };
enum { VOLATILE_NONE, VOLATILE_GIVEN };
enum { TO_NONE, TO_GIVEN };
enum { NAN_NONE, NAN_GIVEN };
enum { XORSIGN_NONE, XORSIGN_GIVEN };
enum { NOFTZ_NONE, NOFTZ_GIVEN };
enum { PROXY_NONE, PROXY_ASYNC };

/* ---- operands */
typedef enum ptx_operand_kind {
    OPERAND_REGISTER,  /* also a special register: then read-only */
    OPERAND_IMMEDIATE, /* its value fills the slot (or two, if the instruction's type has 64 bits); a number is in `offset` too */
    OPERAND_ADDRESS,   /* [slot + offset]; a symbol or a number alone is an immediate slot, with bits 64 (32 in shared space) */
    OPERAND_LABEL,     /* an instruction's index in `offset` */
    OPERAND_SINK       /* "_": a slot that nobody reads */
} ptx_operand_kind;

typedef struct ptx_operand {
    uint8_t kind;
    uint8_t type;   /* ptx_type as the register was declared; of an immediate, the type that it was read as */
    uint8_t bits;   /* 1 for a predicate, 8, 16, 32 or 64: how its slot is laid out; of an address, the base register's */
    uint8_t negate; /* "!p" */
    uint32_t slot;
    int64_t offset;
} ptx_operand;

/* Operands come in groups: as written between commas. A plain operand is a group of one, {a, b, c, d} one of four, and
 * the pair d|p one of two. */
#define PTX_MAX_GROUPS 8

typedef struct ptx_instruction ptx_instruction;
struct warp;

/* Runs an instruction for the lanes in mask (never 0). Returns 0, or 1 after fault_raise. */
typedef int ptx_run(struct warp *w, const ptx_instruction *i, uint32_t mask);

struct ptx_instruction {
    ptx_run *run;
    const ptx_operand *operands; /* all groups, one after another: operands[first[g] + element] */
    uint16_t opcode;             /* ptx_opcode */
    uint8_t groups;
    uint8_t first[PTX_MAX_GROUPS], count[PTX_MAX_GROUPS];
    uint8_t types;
    uint8_t type[4];                /* ptx_type: the type modifiers in the order written */
    uint8_t modifier[MOD_CATEGORIES];
    uint8_t counter;                /* counter_class, from the opcode's row */
    uint8_t guarded, guard_negate;  /* @p or @!p */
    uint32_t guard_slot;
    uint32_t target;                /* of a branch: index of an instruction */
    uint32_t line, column;          /* in the PTX text, from 1 */
    uint32_t location;              /* index into the module's locations; 0: unknown */
};

/* What .loc and .file say: the innermost place, which inlining put at that instruction. */
typedef struct ptx_location {
    uint32_t file; /* index into the module's files */
    uint32_t line;
} ptx_location;

/* A slot with the same value in every lane, known when the module is parsed. */
typedef struct ptx_constant {
    uint32_t slot;
    uint8_t wide; /* 64 bits: two slots */
    uint64_t value;
    int32_t symbol; /* >= 0: the address of this variable of the module is to be added */
} ptx_constant;

/* A variable of the module or of a kernel: .shared, .global, .const, .local. */
typedef struct ptx_variable {
    char *name;
    uint8_t space, is_extern; /* SPACE_*; `.extern .shared x[]` is the dynamic shared memory */
    uint32_t alignment;
    uint64_t bytes;
    uint64_t offset;      /* in its space. Shared: from the start of static shared memory; extern: filled in as the end of it */
    uint8_t *initial;     /* bytes long; null: zeros */
} ptx_variable;

/* Special registers: each has a slot of the same number, which the executor fills. */
typedef enum ptx_special {
    SPECIAL_SINK, /* slots 0 and 1 take what is written to "_" */
    SPECIAL_SINK_HIGH,
    SPECIAL_TID_X, SPECIAL_TID_Y, SPECIAL_TID_Z,
    SPECIAL_NTID_X, SPECIAL_NTID_Y, SPECIAL_NTID_Z,
    SPECIAL_CTAID_X, SPECIAL_CTAID_Y, SPECIAL_CTAID_Z,
    SPECIAL_NCTAID_X, SPECIAL_NCTAID_Y, SPECIAL_NCTAID_Z,
    SPECIAL_LANEID, SPECIAL_WARPID, SPECIAL_NWARPID, SPECIAL_SMID, SPECIAL_NSMID,
    SPECIAL_LANEMASK_EQ, SPECIAL_LANEMASK_LE, SPECIAL_LANEMASK_LT, SPECIAL_LANEMASK_GE, SPECIAL_LANEMASK_GT,
    SPECIAL_DYNAMIC_SMEM_SIZE, SPECIAL_TOTAL_SMEM_SIZE,
    SPECIAL_CLOCK, SPECIAL_CLOCK64, SPECIAL_CLOCK64_HIGH, SPECIAL_GLOBALTIMER, SPECIAL_GLOBALTIMER_HIGH,
    SPECIAL_COUNT /* the first slot of the kernel's own registers */
} ptx_special;

/* A kernel's parameter: its place in param space. */
typedef struct ptx_param {
    uint32_t offset, bytes;
} ptx_param;

typedef struct ptx_kernel {
    char *name;
    ptx_instruction *instructions; /* the last one is always `exit` or `ret`, added if the text has none */
    uint32_t count;
    ptx_operand *operands;
    uint32_t slots;                /* of a warp's register file */
    ptx_constant *constants;
    uint32_t constant_count;
    ptx_param *params;             /* the parser fills these */
    uint32_t param_count;
    uint32_t param_bytes;          /* of all of them, with the padding between */
    uint64_t shared_bytes;         /* static */
    uint64_t local_bytes;          /* a thread's .local variables; offsets start at 0 */
    uint32_t max_threads;          /* .maxntid / .reqntid, product; 0: not given */
    uint32_t required[3];          /* .reqntid; 0: not given */
    uint32_t min_blocks;           /* .minnctapersm */
    uint32_t max_registers;        /* .maxnreg */
    uint32_t registers;            /* an estimate of what ptxas would use: see ptx_liveness.c */
    uint8_t uses_clock;            /* reads %clock or %globaltimer */
} ptx_kernel;

typedef struct ptx_module {
    int version;   /* 90 for ".version 9.0" */
    int target;    /* 87 for ".target sm_87"; target_suffix is 'a', 'f' or 0 */
    char target_suffix;
    ptx_kernel *kernels;
    uint32_t kernel_count;
    ptx_variable *variables; /* module scope and, after them, those declared in kernels */
    uint32_t variable_count;
    char **files; /* as .file names them; index 0 is "" */
    uint32_t file_count;
    ptx_location *locations; /* index 0 is "unknown" */
    uint32_t location_count;
} ptx_module;

typedef enum ptx_status { PTX_OK, PTX_SYNTAX, PTX_VERSION, PTX_TARGET, PTX_UNSUPPORTED, PTX_MEMORY } ptx_status;

/* Limits that keep a hostile text from taking the machine down; each is an error with its number. */
#define PTX_MAX_REGISTERS 65536u
#define PTX_MAX_INSTRUCTIONS 1000000u
#define PTX_MAX_PARAM_BYTES 32764u /* CUDA 12.1 and newer; 4352 before */
#define PTX_MAX_LOCAL_BYTES (512u * 1024)

/* Parses a module. text need not end in 0. On an error *out is null and error holds a text of the form
 *     line 12, column 9: unknown modifier ".foo" of add
 *         add.foo.s32 %r1, %r2, %r3;
 *             ^
 * Never crashes on any input. PTX_VERSION: newer than 9.0 or older than 6.0; PTX_UNSUPPORTED: an opcode, modifier or a
 * combination of them that this software GPU does not execute. */
ptx_status ptx_parse(const char *text, size_t bytes, ptx_module **out, char *error, size_t error_bytes);
void ptx_free(ptx_module *module);

const char *ptx_type_name(ptx_type type);
unsigned ptx_type_bits(ptx_type type);
const char *ptx_opcode_name(unsigned opcode);

#endif
