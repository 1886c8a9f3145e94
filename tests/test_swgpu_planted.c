/* Proof that each check of the software GPU can fail: bugs planted in the real templates, each of which must be caught,
 * under the right name, at the right line of the template; and the same kernels unharmed, which must pass.
 *
 * A row gives a problem, what to replace in the template's text, and what is expected: the finding's kind and a part of
 * the template line it points at; or "wrong", where only the numbers are wrong and the oracle (reference.h) must notice. */
#include "compile.h"
#include "context.h"
#include "launch.h"
#include "nvrtc_api.h"
#include "reference.h"
#include "template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct planted {
    const char *name;
    const char *problem;                 /* jg_problem_parse */
    const char *find, *put;              /* null: an unharmed kernel */
    const char *kind, *line;             /* "" and null for an unharmed kernel */
    const char *text;                    /* more that the finding must say; may be null */
    const char *checks;                  /* JITGEMM_SWGPU_CHECKS; null: all */
    int family;
    int fresh_c;                         /* C is allocated and never written before */
    int free_a;                          /* A is freed before the launch */
    int one_block;                       /* does all items of the batch */
    int slices;                          /* of mma; 0: one */
} planted;

#define MMA FAMILY_MMA
#define SIMT FAMILY_SIMT
#define TF32 FAMILY_TF32
/* The compiler counts an asm statement to its last line. */
#define LDMATRIX "(r[0])"

static const planted bugs[] = {
    /* unharmed: the tile that the bugs below are planted in */
    {.name = "mma, unharmed", .problem = "150x136x200:f16", .kind = "", .family = MMA},
    {.name = "mma realigned, unharmed", .problem = "150x137x203:f16", .kind = "", .family = MMA},
    {.name = "s8 realigned and turned, unharmed", .problem = "150x137x203:s8-s32:lda=207", .kind = "", .family = MMA},
    {.name = "mma, batch, unharmed", .problem = "70x72x40x3:f16", .kind = "", .family = MMA},
    {.name = "mma, slices, unharmed", .problem = "70x72x1000:f16", .kind = "", .family = MMA, .slices = 4},
    {.name = "simt, unharmed", .problem = "150x137x203", .kind = "", .family = SIMT},
    {.name = "simt, batch, unharmed", .problem = "70x72x40x3", .kind = "", .family = SIMT},
    {.name = "simt, converted, unharmed", .problem = "150x137x203:flush", .kind = "", .family = SIMT},
    {.name = "simt, in slices, unharmed", .problem = "70x72x4000", .kind = "", .family = SIMT},

    {.name = "tf32, unharmed", .problem = "150x137x203:tf32", .kind = "", .family = TF32},
    {.name = "3xtf32, batch, unharmed", .problem = "70x72x40x3:3xtf32", .kind = "", .family = TF32},
    {.name = "s8, unharmed", .problem = "150x136x208:s8-s32:nt", .kind = "", .family = MMA},
    {.name = "s4 by elements, unharmed", .problem = "150x136x202:s4-s32", .kind = "", .family = MMA},
    {.name = "e4m3, unharmed", .problem = "150x136x203:e4m3-e4m3:nt", .kind = "", .family = MMA},

    /* synchronisation */
    {.name = "mma: barrier of the main loop removed", .problem = "150x136x200:f16", .family = MMA,
     .find = "            __syncthreads();\n        };", .put = "        };",
     .kind = "race", .line = LDMATRIX},
    {.name = "mma: barrier before the slabs removed", .problem = "150x136x300:f16", .family = MMA,
     .find = "q == half && (!STRAIGHT || more)", .put = "q == half && more", .kind = "race", .line = "st.shared"},
    {.name = "mma: warp barrier after the slab's stores removed", .problem = "150x136x200:f16", .family = MMA,
     .find = "    else __syncwarp();", .put = "", .kind = "race",
     .line = "ld.shared"},
    {.name = "mma: wait one group short", .problem = "150x136x200:f16", .family = MMA,
     .find = "cp_async_wait<STAGES - 2>();", .put = "cp_async_wait<STAGES - 1>();", .kind = "cp.async not waited for",
     .line = LDMATRIX},
    {.name = "mma: no wait at all", .problem = "150x136x200:f16", .family = MMA,
     .find = "cp_async_wait<STAGES - 2>();", .put = "", .kind = "cp.async not waited for", .line = LDMATRIX},
    {.name = "mma: commit forgotten", .problem = "150x136x200:f16", .family = MMA,
     .find = "            cp_async_commit();", .put = "            ;", .kind = "cp.async not waited for", .line = LDMATRIX},
    {.name = "mma: one stage too few in the ring", .problem = "150x136x400:f16", .family = MMA,
     .find = "filling = stage + STAGE_BYTES == shared + RING_BYTES", .put = "filling = stage + 2 * STAGE_BYTES == shared + RING_BYTES",
     .kind = "race", .line = "cp.async"},
    {.name = "mma: barrier under a condition on the thread", .problem = "150x136x200:f16", .family = MMA,
     .find = "            __syncthreads();\n        };", .put = "            if (threadIdx.x != 5) __syncthreads();\n        };", .kind = "divergent barrier", .line = "__syncthreads"},
    {.name = "mma: a warp leaves before the barrier", .problem = "150x136x200:f16", .family = MMA,
     .find = "if (!APART) __syncthreads();  // the slabs", .put = "if (threadIdx.x < 32) return; __syncthreads();  // the slabs",
     .kind = "divergent barrier", .line = "__syncthreads"},
    {.name = "mma, slices: barrier before the sums are added removed", .problem = "70x72x1500:f16", .family = MMA, .slices = 4,
     .find = "if (JG_SLICES > 1) __syncthreads();", .put = "if (JG_SLICES > 1) __syncwarp();", .kind = "race", .line = ""},
    {.name = "mma: barrier between batch items removed", .problem = "70x72x40x3:f16", .family = MMA,
     .find = "__syncthreads();  // the next item reuses the buffers", .put = "", .kind = "race", .line = "",
     .one_block = 1},
    {.name = "simt: barrier of the main loop removed", .problem = "150x137x203", .family = SIMT,
     .find = "wait_for_stage();\n                        __syncthreads();", .put = "wait_for_stage();\n", .kind = "race", .line = ""},
    {.name = "simt: the stage in use is overwritten", .problem = "150x137x403", .family = SIMT,
     .find = "slot == last_slot ? -last_slot : STAGE_ELEMENTS", .put = "0", .kind = "race", .line = ""},
    {.name = "simt: sums are put where copies arrive", .problem = "150x137x203", .family = SIMT,
     .find = "wait_for_all();  // sums", .put = "// sums", .kind = "race", .line = ""},
    {.name = "simt: first barrier removed", .problem = "150x137x203", .family = SIMT,
     .find = "wait_for_stage();\n        __syncthreads();", .put = "wait_for_stage();\n", .kind = "race", .line = ""},
    {.name = "simt: wait one group short", .problem = "150x137x203", .family = SIMT,
     .find = "\"n\"(JG_STAGES - 2)", .put = "\"n\"(JG_STAGES - 1)", .kind = "cp.async not waited for", .line = ""},
    {.name = "simt: sums are put where a stage is read", .problem = "150x137x203", .family = SIMT,
     .find = "__syncthreads();  // stages", .put = "// stages", .kind = "race", .line = ""},
    {.name = "simt: sums are read before they are all there", .problem = "150x137x203", .family = SIMT,
     .find = "sums[i][j];\n        __syncthreads();", .put = "sums[i][j];\n", .kind = "race", .line = ""},
    {.name = "simt, converted: barrier of the main loop removed", .problem = "150x137x203:flush", .family = SIMT,
     .find = "wait_for_stage();\n                        __syncthreads();", .put = "wait_for_stage();\n", .kind = "race", .line = ""},

    {.name = "tf32: barrier of the main loop removed", .problem = "150x137x203:tf32", .family = TF32,
     .find = "cp_async_wait<JG_STAGES - 2>();\n                    __syncthreads();", .put = "cp_async_wait<JG_STAGES - 2>();\n",
     .kind = "race", .line = ""},
    {.name = "tf32: wait one group short", .problem = "150x137x203:tf32", .family = TF32,
     .find = "cp_async_wait<JG_STAGES - 2>();", .put = "cp_async_wait<JG_STAGES - 1>();", .kind = "cp.async not waited for", .line = ""},
    {.name = "tf32: barrier before the slices are added removed", .problem = "40x40x500:tf32", .family = TF32,
     .find = "if (JG_SLICES > 1) __syncthreads();", .put = "if (JG_SLICES > 1) __syncwarp();", .kind = "race", .line = ""},
    {.name = "tf32: barrier between batch items removed", .problem = "70x72x40x3:tf32", .family = TF32, .one_block = 1,
     .find = "__syncthreads();  // the next item reuses the buffers", .put = "", .kind = "race", .line = ""},
    {.name = "s8: wait one group short", .problem = "150x136x208:s8-s32:nt", .family = MMA,
     .find = "cp_async_wait<STAGES - 2>();", .put = "cp_async_wait<STAGES - 1>();", .kind = "cp.async not waited for",
     .line = LDMATRIX},

    {.name = "mma realigned: barrier of the main loop removed", .problem = "150x137x203:f16", .family = MMA,
     .find = "            __syncthreads();\n        };", .put = "        };",
     .kind = "race", .line = ""},
    {.name = "mma realigned: rows are shifted before all lanes' words have come", .problem = "150x137x203:f16", .family = MMA,
     .find = "                __syncwarp();\n", .put = "", .kind = "race", .line = "// to shift"},
    {.name = "mma realigned: rows are shifted before their words have come", .problem = "150x137x203:f16", .family = MMA,
     .find = "cp_async_wait<STAGES - 2>();", .put = "", .kind = "cp.async not waited for", .line = "// to shift"},
    {.name = "s8 turned: barrier before the edges removed", .problem = "150x137x203:s8-s32", .family = MMA,
     .find = "__syncthreads();\n            words_a.put_edges", .put = "\n            words_a.put_edges", .kind = "race", .line = "st.shared"},

    /* bounds */
    {.name = "mma: row bound off by one", .problem = "150x136x200:f16", .family = MMA,
     .find = "row < (KMAJOR ? mn_left", .put = "row <= (KMAJOR ? mn_left", .kind = "outside the operands", .line = "cp.async",
     .text = "past the last row"},
    {.name = "mma realigned: k bound off by one", .problem = "150x137x203:f16:lda=207", .family = MMA,
     .find = "right + ahead, columns_left * BYTES);", .put = "right + ahead, columns_left * BYTES + 2);", .kind = "outside the operands",
     .line = "cp.async", .text = "of A"},
    {.name = "mma realigned: row bound off by one", .problem = "150x137x203:f16", .family = MMA,
     .find = "left_of(row_of(IN_ROW) + below, rows_left)", .put = "left_of(row_of(IN_ROW) + below, rows_left + 1)",
     .kind = "outside the operands", .line = "cp.async", .text = "past the last row"},
    {.name = "mma realigned: the head of a row past the last one", .problem = "150x137x203:f16", .family = MMA,
     .find = "? left_of(row, row_limit) : 0", .put = "? left_of(row, row_limit + 2) : 0", .kind = "outside the operands",
     .line = "(half)", .text = "past the last row"},
    {.name = "mma realigned: a word before its row", .problem = "150x137x203:f16:lda=207", .family = MMA,
     .find = "below * ld * BYTES + ahead))", .put = "below * ld * BYTES + ahead) - 4 * (ahead != 0))",
     .kind = "outside the operands", .line = "cp.async", .text = "past the end of row"},
    {.name = "s8 realigned: a word reaches past its row", .problem = "150x137x204:s8-s32:nt:lda=207", .family = MMA,
     .find = "have = left < PIECE ? left : PIECE;", .put = "have = left < 1 ? left : PIECE;",
     .kind = "outside the operands", .line = "cp.async", .text = "of A"},
    {.name = "s8 realigned: the head of a short row", .problem = "150x137x1:s8-s32:nt:lda=207", .family = MMA,
     .find = "j - shift < column_limit", .put = "j - shift <= column_limit", .kind = "outside the operands", .line = "heads[", .text = "of A"},
    {.name = "s8 turned: a word reaches past its row", .problem = "150x137x204:s8-s32:tt:lda=157", .family = MMA,
     .find = "left_of(column, column_limit) >= 8;", .put = "left_of(column, column_limit) >= 4;",
     .kind = "outside the operands", .line = "(word)", .text = "of A"},
    {.name = "s8 turned: a word reaches before its row", .problem = "150x137x203:s8-s32:tt:lda=157", .family = MMA,
     .find = "return column > 0 &&", .put = "return", .kind = "outside the operands", .line = "(word)", .text = "of A"},
    {.name = "s8 turned: a byte past its row", .problem = "150x137x203:s8-s32:tt:lda=157", .family = MMA,
     .find = "bytes[j] = j < left ? p[j] : 0;", .put = "bytes[j] = j <= left ? p[j] : 0;", .kind = "outside the operands",
     .line = "p[j]", .text = "of A"},
    {.name = "mma: the tail is copied whole", .problem = "150x136x203:f16:lda=208", .family = MMA,
     .find = "global + i, have, go);", .put = "global + i, VEC, go);", .kind = "outside the operands", .line = "cp.async", .text = "of A"},
    {.name = "mma: row bound off by one, operands not described", .problem = "150x136x200:f16", .family = MMA,
     .find = "row < (KMAJOR ? mn_left", .put = "row <= 30 + (KMAJOR ? mn_left", .kind = "out of bounds", .line = "cp.async",
     .checks = "race,uninitialised"},
    {.name = "mma: rows past C are stored", .problem = "150x136x200:f16", .family = MMA,
     .find = "if (EDGE_M && row0 + row >= DIM_M) return;", .put = "", .kind = "outside the operands", .line = "", .text = "of C"},
    {.name = "vector store without its bound", .problem = "150x140x200:f16:ldc=160", .family = MMA,
     .find = "*(uint2 *)p = make_uint2", .put = "*(uint2 *)(p + 4) = make_uint2", .kind = "outside the operands", .line = "uint2",
     .text = "padding"},
    {.name = "scalar store without its bound", .problem = "150x137x200:f16:ldc=160", .family = MMA,
     .find = "if (column + i < DIM_N) p[i] = (u16)bits[i];", .put = "p[i] = (u16)bits[i];", .kind = "outside the operands",
     .line = "p[i] = (u16)bits[i]",
     .text = "padding"},
    {.name = "simt: row bound off by one", .problem = "150x137x203", .family = SIMT,
     .find = "if (row >= DIM_M ||", .put = "if (row > DIM_M ||", .kind = "outside the operands", .line = "", .text = "of C"},
    {.name = "simt: the tail of a row is copied whole", .problem = "150x138x203:ldb=140", .family = SIMT,
     .find = "have < WIDTH ? have * 4 : WIDTH * 4", .put = "WIDTH * 4", .kind = "outside the operands", .line = "cp.async", .text = "of B"},
    {.name = "simt: k bound off by one", .problem = "150x137x203", .family = SIMT,
     .find = "s.k_left) <= 0", .put = "s.k_left) < 0", .kind = "outside the operands", .line = "cp.async"},
    {.name = "simt: bound of the tile off by one", .problem = "150x137x203", .family = SIMT,
     .find = "s.mn_left - mn : WIDTH", .put = "s.mn_left - mn + 1 : WIDTH", .kind = "outside the operands", .line = "cp.async"},
    {.name = "A is written", .problem = "150x137x203", .family = SIMT,
     .find = "store_plain(args, out, row, n0", .put = "store_plain(args, output{(void *)args.a, nullptr}, row, n0", .kind = "outside the operands", .line = "", .text = "of A"},
    {.name = "shared: stages not taken round", .problem = "150x136x400:f16", .family = MMA,
     .find = "filling = stage + STAGE_BYTES == shared + RING_BYTES ? shared :", .put = "filling =",
     .kind = "out of bounds", .line = "cp.async", .text = "shared"},

    {.name = "e4m3: k bound off by one", .problem = "150x136x203:e4m3-f32:nt", .family = MMA,
     .find = "limit - at < CHUNK ? limit - at : CHUNK", .put = "limit - at < CHUNK - 1 ? limit - at + 1 : CHUNK",
     .kind = "outside the operands", .line = "u8 *)p)[at]"},

    /* alignment */
    {.name = "mma: shared address off by two bytes", .problem = "150x136x200:f16", .family = MMA,
     .find = "return (row * CHUNKS + (chunk ^ turn_of<CHUNKS>(row))) * 16;", .put = "return (row * CHUNKS + (chunk ^ turn_of<CHUNKS>(row))) * 16 + 2;", .kind = "misaligned",
     .line = "cp.async"},
    {.name = "simt: 16-byte loads of unaligned rows", .problem = "150x137x203", .family = SIMT,
     .find = "else if (quads) cop", .put = "else if (true) cop", .kind = "misaligned", .line = "cp.async"},
    {.name = "simt, converted: 16-byte loads of unaligned rows", .problem = "150x137x203:flush", .family = SIMT,
     .find = "JG_TYPE_F32 && vector && valid == 4)", .put = "JG_TYPE_F32 && valid == 4)", .kind = "misaligned",
     .line = "const values_t *)"},

    /* memory that nobody wrote, or that is gone */
    {.name = "mma: a chunk of shared memory is never filled", .problem = "150x136x200:f16", .family = MMA,
     .find = "for (u32 i = 0; i < copies; i++)", .put = "for (u32 i = 1; i < copies; i++)", .kind = "uninitialised", .line = LDMATRIX,
     .text = "shared"},
    {.name = "C is read though beta is 0", .problem = "150x136x200:f16:relu", .family = MMA,
     .find = "if (args.beta == 0.0f) return", .put = "if (args.beta == 1e-38f) return", .kind = "uninitialised", .line = "p)[at]", .fresh_c = 1},
    {.name = "A was freed", .problem = "150x136x200:f16", .family = MMA, .find = "", .put = "", .kind = "use after free", .line = "cp.async",
     .free_a = 1},

    /* what only the numbers show */
    {.name = "mma: k tail dropped", .problem = "150x136x200:f16", .family = MMA,
     .find = "const u32 steps = (DIM_K + JG_BK - 1) / JG_BK;", .put = "const u32 steps = DIM_K / JG_BK;", .kind = "wrong"},
    {.name = "simt: k tail dropped", .problem = "150x137x203", .family = SIMT,
     .find = "for (u32 k = slice; k", .put = "for (u32 k = slice + JG_SLICES; k", .kind = "wrong"},
    {.name = "simt: a slice forgotten", .problem = "70x72x4000", .family = SIMT,
     .find = "for (u32 s = 1; s < JG_SLICES; s++)", .put = "for (u32 s = 2; s < JG_SLICES; s++)", .kind = "wrong"},
    {.name = "mma: a slice forgotten", .problem = "70x72x1000:f16", .family = MMA, .slices = 4,
     .find = "for (u32 slice = 1; slice < JG_SLICES; slice++)", .put = "for (u32 slice = 2; slice < JG_SLICES; slice++)", .kind = "wrong"},
    {.name = "mma: fragments swapped", .problem = "150x136x200:f16", .family = MMA,
     .find = "y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]", .put = "y[j / 2][j % 2 * 2 + 1], y[j / 2][j % 2 * 2]", .kind = "wrong"},
    {.name = "mma realigned: the wrong rows are shifted", .problem = "150x137x203:f16", .family = MMA,
     .find = "ODD ? (kind - begin)", .put = "ODD ? (kind + 1 - begin)", .kind = "misaligned", .line = "cp.async"},
    {.name = "mma realigned: what the last stage left is forgotten", .problem = "150x137x203:f16", .family = MMA,
     .find = "if (ALONG_K) carry[i] = last;", .put = "if (ALONG_K) carry[i] = 0;", .kind = "wrong"},
    {.name = "mma realigned: heads of the wrong stage", .problem = "150x137x203:f16", .family = MMA,
     .find = "if (!ALONG_K) heads += ROWS", .put = "if (!ALONG_K) heads += 0", .kind = "wrong"},
    {.name = "mma realigned: a chunk takes its own last word", .problem = "150x137x203:f16", .family = MMA,
     .find = "lane() + CHUNKS - 1, CHUNKS", .put = "lane() + CHUNKS, CHUNKS", .kind = "wrong"},
    {.name = "s8 realigned: shifted the wrong way", .problem = "150x137x203:s8-s32:nt", .family = MMA,
     .find = "__byte_perm(low, high, 0x3210u + 0x1111u * shift)", .put = "__byte_perm(low, high, 0x4321u - 0x1111u * shift % 4)", .kind = "wrong"},
    {.name = "s8 turned: columns out of order", .problem = "152x136x208:s8-s32", .family = MMA,
     .find = "(order + i) % 4", .put = "(order ^ i) % 4", .kind = "wrong"},
    {.name = "tf32: k tail dropped", .problem = "150x137x203:tf32", .family = TF32,
     .find = "const u32 stages = (DIM_K + JG_BK - 1) / JG_BK;", .put = "const u32 stages = DIM_K / JG_BK;", .kind = "wrong"},
    {.name = "tf32: a slice forgotten", .problem = "40x40x500:tf32", .family = TF32,
     .find = "for (u32 slice = 1; slice < JG_SLICES; slice++)", .put = "for (u32 slice = 2; slice < JG_SLICES; slice++)", .kind = "wrong"},
    {.name = "tf32: row bound off by one", .problem = "150x136x200:tf32", .family = TF32,
     .find = "row >= outer_left) have", .put = "row > outer_left) have", .kind = "outside the operands", .line = "cp.async"},
    {.name = "tf32: the tail is copied whole", .problem = "150x136x203:tf32:lda=208", .family = TF32,
     .find = "inner_left - column < UNIT ? (inner_left - column) * 4 : UNIT * 4", .put = "UNIT * 4", .kind = "outside the operands",
     .line = "cp.async", .text = "of A"},
    {.name = "3xtf32: a rest forgotten", .problem = "150x137x203:3xtf32", .family = TF32,
     .find = "mma(group[j], a.rest[g], b.part[g][j]);", .put = "", .kind = "wrong"},
    {.name = "s4: the halves of a byte swapped", .problem = "150x136x202:s4-s32", .family = MMA,
     .find = "((u32)at & 1) * 4", .put = "(((u32)at & 1) ^ 1) * 4", .kind = "wrong"},
};
#define BUGS (sizeof bugs / sizeof bugs[0])

/* ---- from a row to a kernel ---- */

/* Replaces one occurrence, which must be the only one. Both texts have the same number of lines, so that lines stay theirs. */
static char *edit(const char *source, const char *find, const char *put)
{
    const char *at = strstr(source, find);
    if (!at) fail_msg("the template holds no \"%s\"", find);
    char *out = malloc(strlen(source) + strlen(put) + 1);
    assert_non_null(out);
    sprintf(out, "%.*s%s%s", (int)(at - source), source, put, at + strlen(find));
    return out;
}

typedef struct compile_job {
    const char *source, *name;
    int arch;
    jg_status status;
    char error[2048];
    image out;
} compile_job;

static void *compile(void *user)
{
    compile_job *job = user;
    nvrtc *lib;
    job->status = nvrtc_open(getenv("JITGEMM_NVRTC"), &lib);
    if (job->status == JG_OK) {
        job->status = nvrtc_compile(lib, job->source, job->name, job->arch, 1, &job->out);
        nvrtc_close(lib);
    }
    if (job->status != JG_OK) snprintf(job->error, sizeof job->error, "%s", jg_last_error());
    return NULL;
}

typedef struct wanted_family {
    int family;
    plan plan;
    double cost;
    int slices;                          /* 0: any */
} wanted_family;

/* The cheapest plan of a family with tiles small enough for the problem to have several blocks. */
static void take_family(void *user, const plan *candidate, const char *reason)
{
    wanted_family *w = user;
    if (reason[0] || candidate->spec.family != w->family || candidate->spec.tile.m > 64 || candidate->threads < 64) return;
    if (w->slices && candidate->spec.tile.slices != w->slices) return;
    if (w->cost == 0 || candidate->cost < w->cost) w->plan = *candidate, w->cost = candidate->cost;
}

static void compile_planted(const planted *row, const plan *chosen, image *out)
{
    char name[KERNEL_NAME_BYTES], defines[2048];
    kernel_format_name(&chosen->spec, name);
    kernel_render_defines(&chosen->spec, defines, sizeof defines);
    char *body = row->find && *row->find ? edit(template_source(chosen->spec.family), row->find, row->put)
                                         : strdup(template_source(chosen->spec.family));
    char *source = malloc(strlen(defines) + strlen(body) + 1);
    assert_non_null(source);
    sprintf(source, "%s%s", defines, body);
    compile_job job = {.source = source, .name = name, .arch = chosen->spec.arch};
    pthread_t thread;
    assert_int_equal(compile_spawn(&thread, compile, &job), 0);
    pthread_join(thread, NULL);
    free(source);
    free(body);
    if (job.status == JG_ERR_NO_NVRTC) {
        print_message("SKIP no NVRTC: %s\n", job.error);
        skip();
    }
    if (job.status != JG_OK) fail_msg("%s: %s", row->name, job.error);
    *out = job.out;
}

/* ---- running it ---- */

/* Runs the row's kernel; found becomes the finding, "" if there was none. Returns how many elements are wrong. */
static long run_planted(const planted *row, char *found, size_t size)
{
    jg_context *c;
    jg_problem in = {0};
    problem p;
    reference ref;
    setenv("JITGEMM_SWGPU_CHECKS", row->checks ? row->checks : "all", 1);
    const jg_options options = {.device = JG_DEVICE_CUDA, .compile = JG_COMPILE_WAIT, .driver_path = "swgpu", .cache_path = ""};
    if (jg_open(&options, &c) != JG_OK) fail_msg("%s", jg_last_error());
    if (jg_problem_parse(row->problem, &in) != JG_OK || problem_canonicalise(&in, &p) != JG_OK) fail_msg("%s", jg_last_error());
    wanted_family wanted = {.family = row->family, .slices = row->slices ? row->slices : row->family == MMA};
    plan_each(&p, problem_promised_access(&p), JG_FORM_SPECIALISED, &c->device.limits, take_family, &wanted);
    assert_true(wanted.cost > 0);

    image img;
    loaded_kernel kernel;
    launch_args args;
    device_scope scope;
    void *blocks[3];
    compile_planted(row, &wanted.plan, &img);
    assert_int_equal(device_enter(&c->device, &scope), JG_OK);
    if (load_kernel(&c->device, &wanted.plan.spec, &img, &kernel) != JG_OK) fail_msg("%s: %s", row->name, jg_last_error());
    reference_make(&ref, &in, REFERENCE_UNIFORM, 0, 1);
    const reference_matrix *x[3] = {&ref.a, &ref.b, &ref.c};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(jg_alloc(c, JG_DEVICE_MEMORY, x[i]->block_bytes, &blocks[i]), JG_OK);
        if (i < 2 || !row->fresh_c) assert_int_equal(jg_copy(c, blocks[i], x[i]->block, x[i]->block_bytes), JG_OK);
    }
    launch_prepare(&p, &wanted.plan, &args);
    args.a = (char *)blocks[0] + ref.a.offset_bytes;
    args.b = (char *)blocks[1] + ref.b.offset_bytes;
    args.c = (char *)blocks[2] + ref.c.offset_bytes;
    args.alpha = 1;
    if (row->one_block) wanted.plan.grid_y = 1;
    if (row->free_a) assert_int_equal(jg_free(c, JG_DEVICE_MEMORY, blocks[0]), JG_OK);

    long wrong = 0;
    found[0] = 0;
    assert_int_equal(launch_kernel(&c->device, &kernel, &p, &wanted.plan, &args, NULL), JG_OK);
    if (jg_synchronize(c, NULL) != JG_OK) {
        snprintf(found, size, "%s", jg_last_error());
    } else {
        assert_int_equal(jg_copy(c, ref.c.block, blocks[2], ref.c.block_bytes), JG_OK);
        const reference_result r = reference_check(&ref, 1, 0);
        wrong = (long)(r.failures + r.stray);
        unload_kernel(&c->device, &kernel);
        for (int i = 0; i < 3; i++) jg_free(c, JG_DEVICE_MEMORY, blocks[i]);
    }
    device_leave(&c->device, &scope);
    image_free(&img);
    reference_free(&ref);
    assert_int_equal(jg_close(c), JG_OK);
    return wrong;
}

/* Whether the template line that a finding names holds a text. The finding ends in ", /jitgemm/templates/FILE:LINE...". */
static int names_line(const planted *row, const char *found, const char *text)
{
    const char *at = strstr(found, ", /jitgemm/templates/");
    char file[64];
    unsigned line = 0;
    if (!at || sscanf(at, ", /jitgemm/templates/%63[^:]:%u", file, &line) != 2 || line == 0) return 0;
    char mark[128];
    snprintf(mark, sizeof mark, "#line 1 \"/jitgemm/templates/%s\"\n", file);
    char *source = row->find && *row->find ? edit(template_source(row->family), row->find, row->put) : strdup(template_source(row->family));
    const char *start = strstr(source, mark);
    start = start ? start + strlen(mark) : NULL;
    while (start && --line) start = strchr(start, '\n'), start = start ? start + 1 : NULL;
    const char *hit = start ? strstr(start, text) : NULL;
    const int ok = hit && hit < start + strcspn(start, "\n") + 1;
    free(source);
    return ok;
}

/* Prints a table of what was caught; every row must come out as it says. */
static void every_planted_bug_is_caught(void **state)
{
    (void)state;
    int missed = 0;
    for (size_t i = 0; i < BUGS; i++) {
        const planted *row = &bugs[i];
        char found[1400], kind[64] = "";
        const long wrong = run_planted(row, found, sizeof found);
        const char *paren = strchr(found, '(');
        if (paren) snprintf(kind, sizeof kind, "%.*s", (int)strcspn(paren + 1, ":"), paren + 1);
        else if (wrong) snprintf(kind, sizeof kind, "wrong");
        int ok = strcmp(kind, row->kind) == 0;
        if (ok && paren) ok = names_line(row, found, row->line) && (!row->text || strstr(found, row->text));
        const char *where = strstr(found, "templates/");
        printf("# %-55s %-24s %.*s\n", row->name, kind[0] ? kind : "-", where ? (int)strcspn(where, " )") : 0, where ? where : "");
        if (!ok) {
            printf("FAIL %s: expected \"%s\" at a line with \"%s\"%s%s, got: %s (%ld elements wrong)\n", row->name, row->kind,
                   row->line ? row->line : "", row->text ? " and " : "", row->text ? row->text : "", found[0] ? found : "nothing", wrong);
            missed++;
        }
    }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_planted_bug_is_caught)};
    setenv("JITGEMM_SWGPU_DEVICE", "orin-agx", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
