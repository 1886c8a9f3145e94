/* jitgemm: matrix products whose CUDA kernels are generated at run time.
 *
 * This header is the manual. It has four tiers; read as far as you need.
 *   1. Simple    open a context, multiply, close.
 *   2. Plans     choose the kernel once, launch it many times, ask what was chosen.
 *   3. Prewarm   compile ahead of time, with progress; jg_poll and the worker; statistics.
 *   4. Inspect   read and maintain a cache file without any GPU or compiler.
 *
 * It is plain C (C99 and later), usable from C++, and needs no CUDA header.
 *
 * What is computed, for each of `batch` items:
 *
 *     C = alpha * op_a(A) * op_b(B) + beta * C
 *
 * op_a(A) is m x k, op_b(B) is k x n and C is m x n. By default products are accumulated in float32 (integers exactly, in
 * int32), in ascending k: one by one with IEEE fused multiply-adds for f32, and 16 at a time by the tensor cores,
 * in the hardware's own order and rounding, for 16-bit and 8-bit floats on sm_80 and up; see JG_MATH_DEFAULT and its
 * alternatives. alpha, beta and whatever else is fused into the product (JG_EPILOGUE_BIAS_N ...) are applied
 * in float32; the result is rounded once, to nearest even, to the type of C. BLAS rules hold: beta = 0 never reads C; alpha =
 * 0 or k = 0 never reads A or B; m, n or batch = 0 does nothing.
 *
 * Never wait. A size that was never met runs at once on a generic kernel that jg_open has loaded; a worker thread makes the
 * kernel for that size, and jg_poll, called where a wait does no harm, puts it in place. Both give the same bits. See
 * jg_compile and jg_poll.
 *
 * Conventions
 *   - Structs are plain; zero-initialise them (`= {0}`): every zero means "the default".
 *   - Sizes, leading dimensions and strides count elements; names ending in _bytes count bytes.
 *   - Every function that can fail returns a jg_status. On failure jg_last_error() gives a text that
 *     names what was wrong and what to do.
 *   - A context may be used from several threads at once unless a function says otherwise.
 *   - The library never prints, exits or aborts, and leaves the caller's current CUDA context,
 *     locale, signal mask and environment as it found them.
 */
#ifndef JITGEMM_H
#define JITGEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JG_VERSION_MAJOR 0
#define JG_VERSION_MINOR 1
#define JG_VERSION_PATCH 0
#define JG_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define JG_API __attribute__((visibility("default")))
#else
#define JG_API
#endif

/* ---------------------------------------------------------------------------------------------
 * Status codes. The numbers are part of the ABI and never change. 1 to 99 are recoverable: the
 * context stays usable, nothing was launched and nothing was lost. From 100 on the device context
 * is lost: close, and open again in a fresh CUDA context (see jg_status_is_fatal).
 * ------------------------------------------------------------------------------------------- */
typedef enum jg_status {
    JG_OK = 0,
    JG_ERR_NULL = 1,              /* a pointer that must not be null is null */
    JG_ERR_SIZE = 2,              /* m, n, k, batch or a stride is negative or too large */
    JG_ERR_OVERFLOW = 3,          /* an offset in bytes does not fit in 63 bits */
    JG_ERR_LEADING_DIMENSION = 4, /* lda, ldb or ldc is smaller than a row (column) of the matrix */
    JG_ERR_MISALIGNED = 5,        /* a pointer is not aligned to its element (or to its plan) */
    JG_ERR_TYPE = 6,              /* unknown type, or a combination the library has no kernel for */
    JG_ERR_VALUE = 7,             /* an enumeration, flag or option has an unknown value */
    JG_ERR_ARCH = 8,              /* the architecture is unknown to jitgemm or to this NVRTC */
    JG_ERR_PARSE = 9,             /* a problem text or a size list does not follow the grammar */
    JG_ERR_FILE = 10,             /* a file could not be opened, read or written */
    JG_ERR_NOT_FOUND = 11,        /* no such cache entry */
    JG_ERR_NOT_READY = 12,        /* no kernel is ready and compiling is not allowed */
    JG_ERR_UNSUPPORTED = 13,      /* no plan is legal on this device; the text gives the reasons */
    JG_ERR_NO_DRIVER = 14,        /* the CUDA driver library is missing or too old */
    JG_ERR_NO_DEVICE = 15,        /* there is a driver but no usable device */
    JG_ERR_NO_NVRTC = 16,         /* the NVRTC library (or its builtins) is missing or unusable */
    JG_ERR_COMPILE = 17,          /* NVRTC refused the source; the text holds its log */
    JG_ERR_LOAD = 18,             /* the driver refused the compiled kernel */
    JG_ERR_LAUNCH = 19,           /* the driver refused the launch, recoverably */
    JG_ERR_NO_MEMORY = 20,        /* host or device memory is exhausted */
    JG_ERR_CACHE = 21,            /* the cache file is unusable (only from the inspect tier) */
    JG_ERR_CANCELLED = 22,        /* a progress callback asked to stop */
    JG_ERR_BUSY = 23,             /* still in use: e.g. jg_close with plans alive */
    JG_ERR_DEVICE = 24,           /* another CUDA driver call failed, recoverably */
    JG_ERR_HELPER = 25,           /* the compile helper cannot be started, crashed, was killed or hung; the text says which */
    JG_ERR_DEVICE_LOST = 100,     /* a sticky CUDA error: illegal address, ECC, launch timeout ... */
    JG_ERR_INTERNAL = 101         /* a bug in jitgemm; please report the text */
} jg_status;

/* The name of a status, e.g. "JG_ERR_TYPE"; "JG_ERR_?" for a number that is none. Never null. */
JG_API const char *jg_status_name(jg_status status);

/* Nonzero if the device context is lost and the jg_context must be closed. */
JG_API int jg_status_is_fatal(jg_status status);

/* The text of the calling thread's last failed call; "" if none failed. Owned by the library and
 * valid until the same thread's next failing call. Never null. */
JG_API const char *jg_last_error(void);

/* The library's version, e.g. "0.1.0". */
JG_API const char *jg_version(void);

/* ---------------------------------------------------------------------------------------------
 * Tier 1: simple
 * ------------------------------------------------------------------------------------------- */

/* Element types.
 * S4: two in a byte, two's complement, -8 to 7; of a row (column) the element with the even index is in the low half.
 *     Leading dimensions and strides of such a matrix are even, so that rows begin at bytes; see jg_pack_s4.
 * E4M3: 8-bit float with 4 bits of exponent, no infinity, largest 448.   E5M2: with 5 and 2 bits, largest 57344.
 * JG_DEFAULT_TYPE: f32 for A, whatever B is; the type of A for B; for C s32 where A and B are integers, f32 for 8-bit floats,
 *     else the type of A, or of B where A is the weights. */
typedef enum jg_type {
    JG_DEFAULT_TYPE = 0,
    JG_F32 = 1,
    JG_F16 = 2,
    JG_BF16 = 3,
    JG_S8 = 4,
    JG_U8 = 5,
    JG_S4 = 6,
    JG_S32 = 7,
    JG_E4M3 = 8,
    JG_E5M2 = 9
} jg_type;

/* Supported combinations of A x B, in either order:
 *     f32 x f32    f16 x f16    bf16 x bf16
 *     s8 or u8 x s8 or u8    s4 x s4                  exact, in int32 (modulo 2^32: k up to 33,025 for u8 x u8 cannot overflow)
 *     f16 or bf16 x s8 or s4                          the integers are weights: see jg_problem.group_k
 *     e4m3 or e5m2 x e4m3 or e5m2
 * C is any type but s4; s32 only where A and B are integers. Any other combination is refused, and the text names the nearest one
 * that works. Tensor cores multiply f16, bf16 and 8-bit integers; 8-bit floats and weights are widened on their way to f16 or
 * bf16, s4 to s8, all exactly. sm_75 multiplies everything on the CUDA cores. */

/* How products are added up: jg_problem.math is one of these modes, or'ed with any of the two flags.
 * DEFAULT: float32 with fused multiply-adds; TF32 is never used. Integers are exact in every mode.
 * TF32: f32 only, sm_80 and up. Elements of A and B are rounded to 11 significant bits, to nearest, ties away from 0; within
 *     2^-12 of the largest float that is infinity.
 * F32_3XTF32: f32 only, sm_80 and up. float32 accuracy out of three tf32 products for each of f32, from the elements' split into
 *     a rounded part and the rest. Infinities in A or B may give NaN; denormal elements lose their last bits.
 * STRICT: each product is rounded to float32, then added to the sum, which begins at +0, in ascending k, and so are alpha and
 *     beta applied: the bits are those of the plain C loop built with -ffp-contract=off. Runs on the CUDA cores.
 * F16: f16 x f16 only, sm_80 and up. Sums are kept in f16: twice as fast on some chips, and infinite, or NaN, from 65520 on.
 * FLUSH: denormal elements of A, B, C and the residual are read as zero, denormal results are written as zero, each with its
 *     sign; denormal as its own type has it. On the CUDA cores float32 sums flush too. Scales, biases and weights with their scale stay.
 * SANITIZE: NaN and infinity in A, B, C and the residual are read as 0; results in f16 saturate at 65504. A NaN that comes about
 *     later, such as infinity - infinity of overflown sums, stays.
 * Every kernel is deterministic: the same problem on the same device gives the same bits, whatever the form of the kernel,
 * its tile, the stream or the load. */
#define JG_MATH_DEFAULT 0u
#define JG_MATH_TF32 1u
#define JG_MATH_F32_3XTF32 2u
#define JG_MATH_STRICT 3u
#define JG_MATH_F16 4u
#define JG_MATH_FLUSH 0x10u
#define JG_MATH_SANITIZE 0x20u

/* What is fused into the product: jg_problem.epilogue is made of these flags, and the data they name is in jg_operands.
 * An element of C comes about in this order, each step only if asked for and each in float32, rounded to nearest even:
 *     f = alpha * scale[0] * scale_m[i] * scale_n[j]         from left to right
 *     x = f * sum                                            or fma(f, sum, beta * C[i][j]) where beta is not 0
 *     x = x + bias_m[i]       x = x + bias_n[j]       x = x + residual[i][j]  (RESIDUAL)
 *     x = activation(x)
 *     x = x + residual[i][j]  (RESIDUAL_AFTER)
 *     x = x * out_scale + out_zero                           two roundings (REQUANTIZE)
 *     C[i][j] = x, rounded to nearest even. Integers saturate and NaN becomes 0; e4m3 and e5m2 saturate and keep NaN.
 * JG_MATH_STRICT multiplies and adds in two roundings where it says fma. Sums of integers are rounded to float32 first, but
 * for C of s32 with no flag, no activation, and alpha and beta each 0 or 1, where all is done in int32. */
#define JG_EPILOGUE_SCALE 1u           /* scale: one float */
#define JG_EPILOGUE_SCALE_M 2u         /* scale_m: m floats, one a row */
#define JG_EPILOGUE_SCALE_N 4u         /* scale_n: n floats, one a column */
#define JG_EPILOGUE_BIAS_M 8u          /* bias_m: m elements of type_bias, one a row */
#define JG_EPILOGUE_BIAS_N 16u         /* bias_n: n elements of type_bias, one a column */
#define JG_EPILOGUE_RESIDUAL 32u       /* residual: a matrix like C, added before the activation */
#define JG_EPILOGUE_RESIDUAL_AFTER 64u /* the same, added after it; not both */
#define JG_EPILOGUE_REQUANTIZE 128u    /* out_scale, out_zero */

/* relu: max(x, 0), relu6: min(max(x, 0), 6), clamp: min(max(x, clamp_low), clamp_high), each of NaN being NaN;
 * sigmoid: 1 / (1 + e^-x), silu: x * sigmoid(x), of -infinity -0 as gelu's, gelu_erf: x / 2 * (1 + erf(x / sqrt 2)),
 * gelu_tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))). */
typedef enum jg_activation {
    JG_ACTIVATION_NONE = 0,
    JG_ACTIVATION_RELU = 1,
    JG_ACTIVATION_RELU6 = 2,
    JG_ACTIVATION_CLAMP = 3,
    JG_ACTIVATION_GELU_TANH = 4,
    JG_ACTIVATION_GELU_ERF = 5,
    JG_ACTIVATION_SILU = 6,
    JG_ACTIVATION_SIGMOID = 7
} jg_activation;

/* How far C may be from R, what exact arithmetic gives; the tests hold every kernel to it. u = 2^-24 is half a unit in the last
 * place of float32, S = sum |a b|, f the product of alpha and the scales. float32 sums in any order lose at most (k - 1) u S by
 * rounding; rounding towards zero, as tensor cores do, twice that. f has up to three roundings, f * sum + beta * C two. Together:
 *     E = max(k, 8) 2^-23 (|f| S + |beta C|)
 *       + |f| S 2^-10                         TF32: two roundings to 11 bits, of 2^-11 each
 *       + |f| S 2^-20                         F32_3XTF32: 2^-22 each for the rest of a and of b, and for rest x rest, left out
 *       + |f| (max(k, 8) 2^-11 S + k 2^-25)   F16: units of 2^-10, one rounding a step of k at worst; S must stay below 65504
 * Sums of integers are exact: 8 takes the place of max(k, 8) and |sum| that of S, and E = 0 where all is done in int32. A weight
 * with its group's scale is rounded as documented before it is multiplied, which is no error. Then, step by step:
 *     x + y                  E + u (|x + y| + E)          bias, residual, out_zero
 *     relu, relu6, clamp     E at most
 *     sigmoid                E / 4 + 2^-21
 *     silu, gelu             L E + 2^-22 (|x| + 1), with their greatest slopes L = 1.1 and 1.13
 *     x * out_scale          |out_scale| E + u (|x * out_scale| + |out_scale| E)
 * At the end C's own rounding: half a unit in the last place of its type, 1/2 for integers. Underflow adds 2^-150 an operation
 * (FLUSH: 2^-126). */

/* N: the operand as stored. T: its transpose. */
typedef enum jg_op { JG_N = 0, JG_T = 1 } jg_op;

/* How all three matrices are stored. Row-major: element (i, j) of a stored matrix is at i * ld + j;
 * column-major: at i + j * ld. */
typedef enum jg_order { JG_ROW_MAJOR = 0, JG_COL_MAJOR = 1 } jg_order;

/* Which form of kernel to use. A generic kernel takes the sizes as launch parameters and serves
 * every size; a specialised one has them as compile-time constants. Both give the same bits. */
typedef enum jg_form { JG_FORM_AUTO = 0, JG_FORM_GENERIC = 1, JG_FORM_SPECIALISED = 2 } jg_form;

/* What a call may do when the kernel for its size is not loaded.
 * BACKGROUND (the default): launches a generic kernel at once and tells the worker, which makes the size's own kernel from
 *     the second sighting on; jg_poll puts it in place. The call neither compiles, loads nor reads a file. Only where no
 *     generic kernel is loaded that fits (no cache and no factory file had one, or the type is not in
 *     jg_options.resident) does the call make it and wait for that, which is counted (jg_stats.waits) and logged once;
 *     see jg_options.deadline_ms.
 * WAIT: compile or load the size's own kernel in the call, on a thread of the library's own; the call blocks for 60 to
 *     350 ms, and waits for queued GPU work.
 * NEVER: sealed, for devices that must not compile: NVRTC is never touched. A call launches the loaded kernel for the size,
 *     else a loaded generic kernel, else returns JG_ERR_NOT_READY; jg_prewarm and jg_poll load what the cache file has.
 *     jg_open fails with NOT_READY if the cache and factory files lack a generic kernel of jg_options.resident, e.g. since
 *     they were made by another version of the templates. In a sealed context jg_problem.compile is ignored.
 * While a call's stream is being captured into a CUDA graph, BACKGROUND and WAIT act as NEVER, and a failed call leaves
 * the capture valid. */
typedef enum jg_compile {
    JG_COMPILE_DEFAULT = 0,
    JG_COMPILE_WAIT = 1,
    JG_COMPILE_NEVER = 2,
    JG_COMPILE_BACKGROUND = 3
} jg_compile;

/* For jg_problem.dynamic. In how many slices k is summed (jg_plan_details.slices), which fixes the last bits, is chosen for all sizes
 * between two powers of two: it may be another number than without these flags. Of the batch: one item and many share a kernel
 * (its number is a launch parameter anyway). */
#define JG_DYNAMIC_M 1u
#define JG_DYNAMIC_N 2u
#define JG_DYNAMIC_K 4u
#define JG_DYNAMIC_BATCH 8u

/* One product, without its data.
 *
 * batch: number of items. 0 with no stride set means 1 (not batched); 0 with a stride set means an
 *     empty batch, which does nothing.
 * lda, ldb, ldc: leading dimensions of the matrices as stored; 0 means densely packed.
 * stride_a, stride_b, stride_c: elements from one batch item to the next. 0 for A or B means that
 *     all items share one matrix. For batch > 1, C's items must not overlap:
 *     stride_c >= rows * ldc (columns * ldc if column-major).
 * align_bytes: for plans and prewarming, a promise that a, b and c are multiples of this power of
 *     two; 0 means 16. jg_gemm looks at the pointers instead and ignores it.
 * math, epilogue, activation: how sums are made and what is fused in; see there.
 * type_bias: of bias_m and bias_n: f32 (the default), f16 or bf16.
 * ld_residual, stride_residual: of the residual, which has C's type and order; 0: C's leading dimension, and for the stride one
 *     residual for all items. Ignored without a residual.
 * group_k: only where one operand is f16 or bf16 and the other, the weights, s8 or s4. 0: weights are the integers as they are.
 *     32, 64 or 128: so many neighbours along k share a scale, of the other operand's type, and if zero_points is 1 an int8
 *     zero point: a weight is (q - zero) * scale, rounded to the other operand's type. See jg_operands.group_scales.
 * dynamic: dimensions that change from call to call (a moving batch size as m): they stay launch parameters of the
 *     specialised kernel, as does a leading dimension that follows one of them, so that not every value makes a kernel. */
typedef struct jg_problem {
    int64_t m, n, k, batch;
    jg_type type_a, type_b, type_c;
    jg_op op_a, op_b;
    jg_order order;
    jg_form form;
    int64_t lda, ldb, ldc;
    int64_t stride_a, stride_b, stride_c;
    uint32_t align_bytes;
    uint32_t dynamic;   /* JG_DYNAMIC_ flags */
    jg_compile compile; /* what this call may do on a miss; JG_COMPILE_DEFAULT: as the context's options say */
    uint32_t math;      /* a JG_MATH_ mode and flags */
    uint32_t epilogue;  /* JG_EPILOGUE_ flags */
    jg_activation activation;
    jg_type type_bias;
    uint32_t group_k, zero_points;
    int64_t ld_residual, stride_residual;
    uint32_t reserved;  /* must be 0 */
} jg_problem;

/* The data of one product.
 *
 * a, b, c: device pointers (host pointers on the cpu device), aligned to their element type. Any
 *     alignment works; 16 bytes with leading dimensions that are multiples of 16 bytes is fastest.
 *     A null pointer is accepted where nothing is read or written. C may not overlap A, B or
 *     the residual (use beta = 1 for a sum in place).
 * alpha, beta: host pointers, read before the call returns; null means 1 and 0.
 * scale ... residual: device pointers as a, b, c, aligned to their elements; each is read only if the problem's epilogue has its
 *     flag, and then also if alpha is 0. All items of a batch share scales and biases.
 * group_scales, group_zeros: device pointers; read where group_k is set and A and B are. With g = ceil(k / group_k) and x = n
 *     where B is the weights, m where A is: g x x elements, row-major, that of weight (kk, j) or (i, kk) at [kk / group_k][j
 *     or i]. Items of a batch have theirs one after the other, unless the weights' stride is 0.
 * clamp_low, clamp_high, out_scale, out_zero: values, for JG_ACTIVATION_CLAMP and JG_EPILOGUE_REQUANTIZE.
 * stream: a CUstream (or cudaStream_t); null is the legacy default stream. Ignored on the cpu device. */
typedef struct jg_operands {
    const void *a, *b;
    void *c;
    const float *alpha, *beta;
    void *stream;
    const float *scale, *scale_m, *scale_n;
    const void *bias_m, *bias_n, *residual;
    const void *group_scales;
    const int8_t *group_zeros;
    float clamp_low, clamp_high, out_scale, out_zero;
} jg_operands;

/* Which device a context works on.
 * AUTO: the CUDA device if the driver has one, else the cpu.
 * CUDA: the CUDA device or an error.  CPU: plain C on the host, slow and always right. */
typedef enum jg_device { JG_DEVICE_AUTO = 0, JG_DEVICE_CUDA = 1, JG_DEVICE_CPU = 2 } jg_device;

/* Where kernels are compiled. A helper process (libexec/jitgemm/jitgemm-compile) keeps NVRTC's 75 to 110 MB, and its crashes, out
 * of this one; each compile has its own, which costs 20 ms and ends with it. One that crashes, is killed, or runs out of time is tried
 * again once; then its kernel counts as failed in this process (JG_ERR_HELPER): generic kernels go on serving. jg_prewarm tries again.
 * AUTO: in a helper where one is installed, can be started and finds NVRTC, else on a thread. What crashed a helper is never compiled here.
 * THREAD: never in a helper.  PROCESS: in a helper or not at all.
 * A helper has the environment of jg_open, no descriptor of the host's, and the thread's priority and processors; it goes first when
 * memory runs out, writes no core, and ends when the host does. It is a child: SIGCHLD comes when it ends, and is the only thing of it
 * that a host notices. Handlers and masks are not touched; a host may ignore SIGCHLD, or wait for all its children. */
typedef enum jg_helper { JG_HELPER_AUTO = 0, JG_HELPER_THREAD = 1, JG_HELPER_PROCESS = 2 } jg_helper;

/* For jg_options.plans. AUTO: recorded plans (jg_record_plan), else the planner's model. MODEL: the model alone. */
typedef enum jg_plans { JG_PLANS_AUTO = 0, JG_PLANS_MODEL = 1 } jg_plans;

typedef enum jg_log_level {
    JG_LOG_DEFAULT = 0, /* warnings and errors */
    JG_LOG_ERROR = 1,
    JG_LOG_WARNING = 2,
    JG_LOG_INFO = 3,
    JG_LOG_DEBUG = 4
} jg_log_level;

/* Receives messages, from any thread that is inside a call on the context and from the worker, never concurrently with
 * itself, never after jg_close. `text` has no trailing newline and is only valid during the call. Must not call the library. */
typedef void (*jg_log_fn)(void *user, jg_log_level level, const char *text);

/* What happened to a problem or kernel, for jg_options.trace. */
typedef enum jg_event {
    JG_EVENT_HIT = 0,      /* a call ran on the size's own kernel */
    JG_EVENT_GENERIC = 1,  /* a call ran on a generic kernel */
    JG_EVENT_WAIT = 2,     /* a call made or loaded its kernel itself, and waited ms for it */
    JG_EVENT_COMPILE = 3,  /* a kernel was compiled in ms */
    JG_EVENT_READY = 4,    /* the worker has the bytes of a kernel; the next jg_poll loads them */
    JG_EVENT_SWAP = 5,     /* a problem went over from a generic kernel to its own */
    JG_EVENT_EVICT = 6,    /* a kernel was unloaded */
    JG_EVENT_FAIL = 7,     /* a kernel could not be made; the generic one goes on serving */
    JG_EVENT_DROP = 8      /* the worker's queue was full; the problem is taken up at a later sighting */
} jg_event;

/* One event. Texts are valid during the call only. */
typedef struct jg_trace {
    jg_event event;
    const char *problem; /* text form; "" if the event is not about one problem */
    const char *kernel;  /* kernel name; "" if unknown */
    double ms;           /* what it took; 0 if nothing to say */
} jg_trace;

/* Receives events, from any thread that is inside a call on the context and from the worker, maybe concurrently with itself,
 * never after jg_close. Must not call the library. */
typedef void (*jg_trace_fn)(void *user, const jg_trace *trace);

/* For jg_options.resident: what the generic kernels that stay loaded are for. A set of them serves every size, layout, type
 * of C and epilogue; it has 7 kernels (f32), 12 (tf32), 8 (3xtf32), 20 (f16, bf16), 17 (s8), 34 (u8) or 2 (s4, e4m3), of 100
 * to 1500 KiB together. Of types and math without a flag, such as f16 x s4 (2 kernels) or JG_MATH_STRICT (1 or 2), jg_open loads those that
 * jg_options.prewarm_problems names; others are made, and waited for, when they are first met. */
#define JG_RESIDENT_F32 (1u << JG_F32)
#define JG_RESIDENT_F16 (1u << JG_F16)
#define JG_RESIDENT_BF16 (1u << JG_BF16)
#define JG_RESIDENT_S8 (1u << JG_S8)     /* s8 x s8 */
#define JG_RESIDENT_U8 (1u << JG_U8)     /* u8 x s8 and s8 x u8 */
#define JG_RESIDENT_S4 (1u << JG_S4)     /* s4 x s4 */
#define JG_RESIDENT_E4M3 (1u << JG_E4M3) /* e4m3 x e4m3 */
#define JG_RESIDENT_TF32 (1u << 16)      /* f32 with JG_MATH_TF32 */
#define JG_RESIDENT_3XTF32 (1u << 17)    /* f32 with JG_MATH_F32_3XTF32 */
#define JG_RESIDENT_GROUPED (1u << 18)   /* of all these also the kernels of jg_gemm_grouped */
#define JG_RESIDENT_NONE (1u << 31)

/* For jg_options.prewarm. */
#define JG_PREWARM_COMMON 1u  /* the 16 common sizes: the squares 64, 128 ... 1024, in each resident type */
#define JG_PREWARM_MISSES 2u  /* what the cache's list of misses has and no kernel yet, most used first */
#define JG_PREWARM_NO_MET 4u  /* do not load the kernels of sizes that earlier runs met */

/* For jg_worker_options.nice: the niceness of the thread that opens the context. */
#define JG_NICE_INHERIT (-1)

/* The worker of a context: zero for every default.
 *
 * threads: 0: one; at most 16.
 * nice: 0: scheduled only when nobody else wants the processor (SCHED_IDLE), or niceness 19 where that is not allowed;
 *     1 to 19: that niceness; JG_NICE_INHERIT.
 * cpus: processors it may run on, bit i for processor i; 0: those of the thread that opens the context.
 * queue: most kernels that wait to be made; 0: 256. More are dropped, and taken up when they are met again.
 * per_minute: most compiles begun in a minute; 0: 60. Prewarming at start and generic kernels do not count. */
typedef struct jg_worker_options {
    uint32_t threads;
    int nice;
    uint64_t cpus;
    uint32_t queue;
    uint32_t per_minute;
} jg_worker_options;

/* Options of jg_open; zero for every default. Strings are copied.
 *
 * arch: compute capability to plan and compile for, as a number (87 for sm_87). 0: the device's
 *     own; on the cpu device 87. A CUDA device also takes an older one: plans keep to the older chip's instructions and
 *     limits, and the driver compiles the kernels' PTX when they are loaded (about 50 ms each), to try on one chip how
 *     another one's kernels do.
 * sm_count: number of multiprocessors to plan for, e.g. those of a green context; 0: the device's; on the cpu device
 *     the arch table's. On a CUDA device at most its own.
 * cache_path: cache file; null: $JITGEMM_CACHE, else ${XDG_CACHE_HOME:-$HOME/.cache}/jitgemm/kernels.db;
 *     "" : memory only.
 * cache_max_bytes: cap of the cache file's content; 0: 256 MiB.
 * memory_max_kernels, memory_max_bytes: bounds of the kernels kept loaded; 0: 1024 and 256 MiB. The resident generic kernels
 *     (27 for f32 and f16) and captured ones count, and never go: bounds below leave no room for others.
 * factory_path: read-only cache file below it, e.g. of the device image; null: $JITGEMM_FACTORY, else
 *     share/jitgemm/factory.db beside the installed library or program; "": none. A missing one is no error.
 * resident: element types whose generic kernels jg_open loads, JG_RESIDENT_ flags. 0: f32 and f16, but none if compile is
 *     WAIT. What the files lack the worker makes first.
 * prewarm: JG_PREWARM_ flags; prewarm_problems, prewarm_count: problems, copied. Those whose kernels are in the files are
 *     loaded by jg_open, the others made by the worker at once, for jg_poll; so are generic kernels for types and math that no
 *     JG_RESIDENT_ flag stands for, unless compile is WAIT. Sizes that earlier runs met and that have a
 *     kernel are loaded without being asked for, most used first, at most 256.
 * deadline_ms: if not 0, a call in BACKGROUND mode that would have to wait for the compiler longer than this, by what
 *     compiles have taken so far (300 ms before the first), returns NOT_READY at once; the worker makes the kernel.
 * helper, helper_path: see jg_helper; the program: null: $JITGEMM_HELPER, else libexec/jitgemm/jitgemm-compile beside the installed
 *     library or program; "": none.
 * helper_timeout_ms: a helper that takes longer for a kernel counts as hung; 0: 60 s.
 * plans: see jg_plans.
 * nvrtc_path: NVRTC library; null: $JITGEMM_NVRTC, else the usual names and places.
 * driver_path: CUDA driver library; null: $JITGEMM_DRIVER, else libcuda.so.1. "cpu" selects the cpu device, "swgpu" the
 *     software GPU, which executes the kernels' PTX on the host and checks every access: for tests and for machines
 *     without a GPU. README.md lists its variables (JITGEMM_SWGPU_DEVICE ...). */
typedef struct jg_options {
    jg_device device;
    jg_compile compile;
    int arch;
    int sm_count;
    const char *cache_path;
    const char *factory_path;
    uint64_t cache_max_bytes;
    uint32_t memory_max_kernels;
    uint64_t memory_max_bytes;
    const char *nvrtc_path;
    const char *driver_path;
    uint32_t resident;
    uint32_t prewarm;
    const jg_problem *prewarm_problems;
    size_t prewarm_count;
    double deadline_ms;
    jg_worker_options worker;
    jg_log_fn log;
    void *log_user;
    jg_log_level log_level; /* messages above this level are dropped */
    jg_trace_fn trace;
    void *trace_user;
    jg_helper helper;
    jg_plans plans;
    const char *helper_path;
    double helper_timeout_ms;
    uint32_t reserved;      /* must be 0 */
} jg_options;

typedef struct jg_context jg_context;

/* Opens a context. On a CUDA device it binds the calling thread's current CUcontext; if there is
 * none it retains device 0's primary context (and releases it in jg_close). `options` may be null.
 * A cache that cannot be used is reported once through the log hook and is no error: the context
 * then works from memory alone.
 * Blocks: about 10 ms, 0.1 ms for each kernel it loads, and 4 µs for each recorded plan that it reads; for the first primary
 * context in a process, as long as CUDA needs besides. Loads the resident generic kernels and what prewarming asks for, as far as
 * the cache and factory files have them; compiles nothing: what they lack the worker makes.
 * Errors: NULL, VALUE, ARCH, NOT_READY (compile = NEVER and a generic kernel is missing), NO_DRIVER and NO_DEVICE (device =
 * CUDA; NO_DRIVER also for "swgpu"), DEVICE (a driver or device that is there but fails, also with device = AUTO), NO_MEMORY. */
JG_API jg_status jg_open(const jg_options *options, jg_context **context);

/* Closes a context: stops its worker, unloads its kernels and closes its cache. A compile under way is abandoned: it ends by
 * itself, later, and touches nothing of the context; a compile helper is killed. A kernel that a captured graph still uses is gone
 * then. Null is allowed. All plans must be destroyed before (else BUSY, and nothing happens) and no other thread may be in a call on it.
 * Waits for queued GPU work, as cuModuleUnload does; else it takes at most 100 ms. */
JG_API jg_status jg_close(jg_context *context);

/* Computes one product: enqueues it on operands->stream, or does it at once on the cpu device.
 * The first call for a problem chooses a kernel (see jg_compile); later calls look it up and launch it, without locks that
 * a compile or load could hold. A kernel whose launch a CUDA graph recorded stays loaded until jg_close. Thread-safe. Errors:
 * NULL, SIZE, OVERFLOW, LEADING_DIMENSION, MISALIGNED, TYPE, VALUE, NOT_READY,
 * UNSUPPORTED, NO_NVRTC, COMPILE, HELPER, ARCH, LOAD, LAUNCH, NO_MEMORY, DEVICE, DEVICE_LOST. */
JG_API jg_status jg_gemm(jg_context *context, const jg_problem *problem, const jg_operands *operands);

/* One product of a grouped call. bias: bias_m or bias_n, if the epilogue has one of them. Leading dimensions of 0: densely
 * packed. */
typedef struct jg_group_item {
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    const void *a, *b;
    void *c;
    const void *bias;
} jg_group_item;

/* Computes many products of different sizes in one launch (one for every 60 of them). `common` gives what they share: types, ops,
 * order, math, epilogue (scale, one bias, REQUANTIZE), activation; its sizes, leading dimensions, strides and group_k must be 0.
 * `shared` gives alpha, beta, scale, clamps, requantising and the stream; its matrices must be null. Each product is
 * what jg_gemm makes of it, but that the number of slices in which k is summed (jg_plan_details.slices) is chosen for the whole list:
 * last bits may differ. Products are computed in no particular order; they may share A, B and biases, but no C may
 * overlap another's operands. Runs on generic kernels of its own (JG_RESIDENT_GROUPED), which serve all sizes: a call waits
 * only where these have to be made, as jg_compile says. Can be captured into a graph. Thread-safe. Errors: as jg_gemm; a text
 * about one item names it. On error no product has been enqueued, but where the launch of a later part fails: then the parts
 * before it have. */
JG_API jg_status jg_gemm_grouped(jg_context *context, const jg_problem *common, const jg_operands *shared,
                                 const jg_group_item *items, size_t count);

/* Where jg_alloc takes memory from. Host memory is pageable. On the cpu device both are host memory. */
typedef enum jg_memory { JG_DEVICE_MEMORY = 0, JG_HOST_MEMORY = 1 } jg_memory;

/* Allocates `bytes` bytes, aligned to 256. bytes = 0 gives a null pointer and JG_OK. The caller
 * owns it and gives it back with jg_free of the same context and memory. Errors: NULL, VALUE, NO_MEMORY, DEVICE, DEVICE_LOST. */
JG_API jg_status jg_alloc(jg_context *context, jg_memory memory, size_t bytes, void **pointer);

/* Frees what jg_alloc gave. Null is allowed. For device memory it waits until the device is idle.
 * Errors: NULL (context), VALUE, DEVICE, DEVICE_LOST. */
JG_API jg_status jg_free(jg_context *context, jg_memory memory, void *pointer);

/* Copies `bytes` bytes between host and device memory in any direction; blocks until done, in order
 * with the default stream. Errors: NULL, DEVICE, NO_MEMORY, DEVICE_LOST. */
JG_API jg_status jg_copy(jg_context *context, void *destination, const void *source, size_t bytes);

/* Blocks until all work queued on `stream` is done. Reports errors of earlier launches.
 * Errors: NULL, DEVICE, NO_MEMORY, DEVICE_LOST. */
JG_API jg_status jg_synchronize(jg_context *context, void *stream);

/* Bytes of `elements` neighbours of a type; 0 for an unknown type or if negative, INT64_MAX where they do not fit. */
JG_API int64_t jg_type_bytes(jg_type type, int64_t elements);

/* The leading dimension that is good for rows (columns) of `length` elements: the least that is no less and makes each begin
 * at a multiple of 16 bytes, and of 128 bytes from 1024 bytes on. `jitgemm-bench misalign` shows what it is worth. 0 for an
 * unknown type, if negative, or where it does not fit. */
JG_API int64_t jg_good_ld(jg_type type, int64_t length);

/* Packs rows x cols values of -8 to 7, row-major, row i at source + i * ld_source, as s4: row i at byte i * ld / 2 of
 * destination. ld must be even and no less than cols; with odd cols the last byte's upper half is 0. Bytes between rows are
 * not written. The two must not overlap. For a column-major matrix, rows and columns change places. Host memory; no context
 * is needed; thread-safe. Errors: NULL (unless there is nothing to do), SIZE (negative, or past 2^63 elements),
 * LEADING_DIMENSION, VALUE (naming the element out of range; nothing is written). */
JG_API jg_status jg_pack_s4(const int8_t *source, int64_t ld_source, int64_t rows, int64_t cols, void *destination, int64_t ld);

/* The reverse. Errors: NULL, SIZE, LEADING_DIMENSION, as above. */
JG_API jg_status jg_unpack_s4(const void *source, int64_t ld, int64_t rows, int64_t cols, int8_t *destination,
                              int64_t ld_destination);

/* ---------------------------------------------------------------------------------------------
 * Tier 2: plans
 * ------------------------------------------------------------------------------------------- */

typedef struct jg_plan jg_plan;

/* Where the kernel of a plan came from when the plan was made. */
typedef enum jg_source {
    JG_SOURCE_CPU = 0,      /* the cpu device: no kernel */
    JG_SOURCE_MEMORY = 1,   /* was already loaded */
    JG_SOURCE_DISK = 2,     /* loaded from the cache file */
    JG_SOURCE_COMPILED = 3  /* compiled now */
} jg_source;

/* What was chosen. All texts are inside the struct. */
typedef struct jg_plan_details {
    char kernel[192];        /* e.g. "jg_sm87_mma_f16f16f16_nn_128x64x32_w64x32_s3_a16_m196n768k768" */
    char family[16];         /* "simt", "mma" or "cpu" */
    char numeric_class[64];  /* what fixes the bits, e.g. "mma.m16n8k16.f32 ascending-k split1" */
    jg_form form;
    jg_source source;
    int arch;                        /* 87 for sm_87 */
    int tile_m, tile_n, tile_k;      /* elements of C a block computes; k step */
    int warp_m, warp_n;              /* of a warp (mma) or of a thread (simt) */
    int stages;
    int slices;                      /* groups of the block's threads among which the steps of k are dealt out */
    int threads;                     /* per block */
    int64_t grid_x, grid_y;          /* blocks: tiles, batch items */
    int shared_bytes;                /* per block */
    int registers;                   /* per thread: the estimate, or the driver's figure once loaded */
    int blocks_per_sm;               /* occupancy */
    double waves;                    /* blocks / (blocks_per_sm * SMs) */
    double compile_ms;               /* what compiling took, whenever that was; 0 if unknown */
    double estimate_clocks;          /* of the GPU, by the planner's model; only to compare plans of one problem; 0: no kernel */
    int is_planned;                  /* the planner's model chooses it, among those of its form */
    int is_tuned;                    /* it is recorded as the fastest measured: see jg_record_plan */
} jg_plan_details;

/* Chooses the kernel of a problem, as jg_gemm's first call does, and pins it: it is not evicted while the plan lives. A plan
 * that got a generic kernel goes over to the size's own when jg_poll puts that in place. The plan is the caller's until
 * jg_plan_destroy. Blocks, and fails, as jg_gemm's first call does. */
JG_API jg_status jg_plan_create(jg_context *context, const jg_problem *problem, jg_plan **plan);

/* How many kernels the planner chooses among for a problem: the legal candidates of the form that jg_plan_create plans first.
 * *count: those of the problem's numeric class (jg_plan_details), of which one is chosen; they give the same bits. *all (may be
 * null): also those of other classes, which sum in another order. 1 on the cpu device, and where there is nothing to compute. For
 * one problem, device and version of the library they are always the same. Does not block. Thread-safe. Errors: NULL, UNSUPPORTED,
 * those of a bad problem. */
JG_API jg_status jg_plan_count_candidates(jg_context *context, const jg_problem *problem, size_t *count, size_t *all);

/* A plan of candidate `index` instead of the chosen one, to measure what others would have done: from 0 in the planner's order,
 * those of the problem's class first. Changes nothing for jg_gemm and other plans of the problem, and jg_poll nothing for it.
 * Its kernel is pinned while the plan lives, which is the caller's until jg_plan_destroy. Whatever jg_problem.compile says, it
 * waits: compiles, or loads, if need be (60 to 350 ms), and waits for queued GPU work then; in a sealed context (JG_COMPILE_NEVER)
 * it only loads. Thread-safe: several threads compile at once. Errors: NULL, VALUE (past the last one; the text says how many there
 * are), NOT_READY (sealed, and in no file), UNSUPPORTED, NO_NVRTC, COMPILE, HELPER, ARCH, LOAD, NO_MEMORY, DEVICE, DEVICE_LOST, and those
 * of a bad problem. */
JG_API jg_status jg_plan_create_candidate(jg_context *context, const jg_problem *problem, size_t index, jg_plan **plan);

/* Describes candidate `index`, numbered as above, from the plan alone: `registers` is the estimate, and what only a compiled kernel
 * tells is 0. Compiles and loads nothing, and does not block. Thread-safe. Errors: NULL, VALUE (past the last one), UNSUPPORTED,
 * those of a bad problem. */
JG_API jg_status jg_plan_describe_candidate(jg_context *context, const jg_problem *problem, size_t index, jg_plan_details *details);

/* Makes the kernel of candidate `index`, numbered as above, and puts it into the cache file, unless a file has it: for several
 * threads to compile ahead of one that measures. Touches no device, and waits for none; blocks for the compile and disk. Without a
 * cache file there is nowhere to put it, and nothing is done. Thread-safe. Errors: NULL, VALUE (past the last one), NOT_READY
 * (sealed), UNSUPPORTED, NO_NVRTC, COMPILE, HELPER, ARCH, NO_MEMORY, CANCELLED and those of a bad problem. */
JG_API jg_status jg_plan_compile_candidate(jg_context *context, const jg_problem *problem, size_t index);

/* What measuring the candidates of a problem has come to, for jg_record_plan. Null texts and zeros: unknown. Times are of one
 * call, in µs; on the software GPU, which has none, counted instructions take their place. */
typedef struct jg_measured {
    double us;                   /* of the plan itself; must be above 0 */
    double planned_us;           /* of what the planner's model would choose */
    double runner_up_us;         /* of the second best */
    const char *planned;         /* kernel names of these two */
    const char *runner_up;
    const char *reason;          /* how the two differ, in a few words: why the model was wrong */
    uint32_t measured, all;      /* how many candidates were measured, of how many */
    const char *device;          /* e.g. "NVIDIA H200" */
    double sm_mhz;               /* the clock that it was measured at */
    const char *power_mode;      /* e.g. "MAXN" (nvpmodel), or the power limit */
    uint32_t allow_new_bits;     /* nonzero: a plan of another numeric class may be recorded too */
    uint32_t reserved;           /* must be 0 */
} jg_measured;

/* Makes a plan that jg_plan_create_candidate gave the one that its problem gets from now on: in this context, where the problem was
 * not met yet, and in every context opened later with this cache file, or with one that it is the factory file of, on a device of
 * the same place (jg_stats.place: architecture, multiprocessors and kind of memory). Elsewhere, and where the library no longer
 * has such a candidate, the planner's model decides. A problem with dynamic dimensions is recorded for all sizes between the same
 * powers of two. Alignments and forms are recorded apart; but a plan of another numeric class changes that of all of them, so that
 * the problem goes on giving the same bits whatever the alignment and the form. The plan may be of another context on the same
 * place: its kernel is copied into this one's cache file from that one's, or made. A later record takes an earlier one's place; at
 * most 4096 are kept, the oldest go first. Blocks for disk. Thread-safe. Errors: NULL, VALUE (not a candidate's plan, of another place, us not above 0, or of another numeric class without
 * allow_new_bits, or of one that has no generic kernels), FILE (no cache file, or it cannot be written), and those of
 * jg_plan_compile_candidate. */
JG_API jg_status jg_record_plan(jg_context *context, const jg_plan *plan, const jg_measured *measured);

/* Launches a plan on data: a few µs, no lookup. MISALIGNED if a pointer is less aligned than the
 * kernel needs, which is never more than the problem's align_bytes. Thread-safe. Errors: NULL, MISALIGNED, LAUNCH, DEVICE,
 * NO_MEMORY, DEVICE_LOST. */
JG_API jg_status jg_plan_run(const jg_plan *plan, const jg_operands *operands);

/* Describes a plan. Does not block. Errors: NULL. */
JG_API jg_status jg_plan_info(const jg_plan *plan, jg_plan_details *details);

/* What a launch did, as the software GPU counts it (driver_path = "swgpu"). Instructions are those of warps, by class.
 * A request is one warp instruction to that memory; a sector is 32 aligned bytes of global memory; a conflict is a cycle
 * that shared memory needs beyond one for each part of a request, because lanes meet in one of its 32 banks. */
typedef struct jg_counters {
    uint64_t blocks, blocks_run; /* of the grid; fewer run than there are if JITGEMM_SWGPU_BLOCKS says so */
    uint64_t instructions;       /* all classes together */
    uint64_t arithmetic, fma, special, logic, compare, move, convert, load, store, atomic, copy, mma, warp, barrier, branch;
    uint64_t other;
    uint64_t global_load_requests, global_load_sectors, global_store_requests, global_store_sectors;
    uint64_t shared_load_requests, shared_load_cycles, shared_load_conflicts;
    uint64_t shared_store_requests, shared_store_cycles, shared_store_conflicts;
    uint64_t barriers; /* of blocks, each counted once */
    uint64_t divergent_branches;
} jg_counters;

/* The counters of the calling thread's last launch, in whichever context. All are 0 if it launched nothing; all but the
 * blocks if JITGEMM_SWGPU_COUNTERS is 0. Does not block. Errors: NULL; UNSUPPORTED on any other device than the software GPU. */
JG_API jg_status jg_launch_counters(const jg_context *context, jg_counters *counters);

/* Releases a plan. Null is allowed. Launches already made go on. */
JG_API void jg_plan_destroy(jg_plan *plan);

/* Writes how the choice for a problem was made: one line a candidate, the chosen one first, each
 * rejected one with its reason; last, what the problem's own kernel is estimated to gain over the generic one. Loads and
 * compiles nothing. As snprintf, writes at most `size` bytes with the ending 0 and sets *length (if not null) to what the
 * whole text needs without it. Errors: NULL, UNSUPPORTED, and those of a bad problem. */
JG_API jg_status jg_plan_explain(jg_context *context, const jg_problem *problem, char *text, size_t size, size_t *length);

/* Reads a problem text:
 *     SIZE[:WORD]...
 *     SIZE   N | MxNxK | MxNxKxBATCH            N means NxNxN
 *     WORD   TYPE | OP | row | col | generic | specialised | MATH | FUSED
 *            | lda=E | ldb=E | ldc=E | ldr=E | sa=E | sb=E | sc=E | sr=E | align=BYTES | dyn=D | group=G | zeros
 *     TYPE   A | A-C | A.B | A.B-C    with f32, f16, bf16, s8, u8, s4, s32, e4m3, e5m2;    OP   nn | nt | tn | tt
 *     MATH   tf32 | 3xtf32 | strict | f16acc, and by themselves flush, sanitize
 *     FUSED  scale | scale_m | scale_n | bias_m | bias_n | residual | residual_after | requantize | bias=TYPE
 *            | relu | relu6 | clamp | gelu_tanh | gelu_erf | silu | sigmoid
 *     G      32 | 64 | 128
 *     D      some of the letters m, n, k, b, each once: the dynamic dimensions (b: the batch), for JG_DYNAMIC_ flags
 * e.g. "1024", "196x768x768:f16", "17x768x768:f16:dyn=m", "197x197x64x12:f16-f32:nt:sa=64:lda=768". Words not given keep
 * what *problem holds on entry, so it gives the defaults; without a type of C that is the default of A and B. Where batch > 1 and
 * no stride is given, items are densely packed, the residual's too (sr=0: one for all items); ldr is ldc by default. On error
 * *problem is unchanged and the text names the offending word. Errors: NULL, PARSE, and those of a bad problem. */
JG_API jg_status jg_problem_parse(const char *text, jg_problem *problem);

#define JG_PROBLEM_TEXT_BYTES 512

/* Writes the text form of a problem, which parses back to an equal problem; defaults are left out.
 * As snprintf for `size` and `length`. JG_PROBLEM_TEXT_BYTES are always enough. Errors: NULL, TYPE, VALUE ... as jg_gemm. */
JG_API jg_status jg_problem_format(const jg_problem *problem, char *text, size_t size, size_t *length);

/* ---------------------------------------------------------------------------------------------
 * Tier 3: prewarm, housekeeping, statistics
 * ------------------------------------------------------------------------------------------- */

typedef enum jg_outcome { JG_COMPILED = 0, JG_CACHED = 1, JG_FAILED = 2 } jg_outcome;

/* One step of a prewarm, told to the progress callback. Texts are valid during the call only. */
typedef struct jg_progress {
    size_t done, total;     /* kernels finished, this one included; kernels in all */
    const char *problem;    /* text form, or "generic" for a kernel of the generic set */
    const char *kernel;     /* kernel name; "" if no plan was legal */
    jg_outcome outcome;
    double ms;              /* compile time of this kernel; 0 if cached */
    const char *error;      /* "" unless FAILED */
} jg_progress;

/* Called once a kernel, never concurrently with itself, maybe on another thread of the library's.
 * Return nonzero to stop: what is finished is kept and jg_prewarm returns JG_ERR_CANCELLED. Kernels that were under way then
 * are finished and still told of. */
typedef int (*jg_progress_fn)(void *user, const jg_progress *progress);

/* jobs: compiles at once; 0: one per online processor, at most 16. Each in a helper process takes some 50 MB of its own.
 * generic_set: nonzero also makes the generic kernels of the types that the problems use (with JG_RESIDENT_GROUPED in types, the
 *     grouped ones too), and of types (JG_RESIDENT_ flags).
 * from_misses: nonzero also takes the problems of the cache file's list of misses that are for this device's architecture,
 *     with the alignments that they were met with; count = 0 then means these alone. */
typedef struct jg_prewarm_options {
    uint32_t jobs;
    uint32_t generic_set;
    uint32_t types;
    uint32_t from_misses;
    jg_progress_fn progress;
    void *user;
} jg_prewarm_options;

typedef struct jg_prewarm_result {
    size_t compiled, cached, failed;
} jg_prewarm_result;

/* Makes sure that the kernels of the problems are in the cache file, and, on a CUDA device, loaded.
 * With count = 0, and neither from_misses nor types set, it takes the 16 common sizes: the squares 64, 128 ... 1024, in f16
 * and in f32. On the cpu device it compiles for options.arch, so a build host without a GPU can fill a cache.
 * Equal kernels are made once: generic ones first, since they serve every size, then those of the problems as they are listed, then
 * those of misses, most counted first; so a callback that stops has the most of the time given. `options` and `result` may be null.
 * Blocks until done.
 * A kernel that fails does not stop the others; the call then returns the first failure's status.
 * Errors: NULL, CANCELLED, NO_NVRTC, COMPILE, HELPER, ARCH, ... */
JG_API jg_status jg_prewarm(jg_context *context, const jg_problem *problems, size_t count,
                            const jg_prewarm_options *options, jg_prewarm_result *result);

/* Bounds of one jg_poll: zero for the defaults. No further kernel is begun once one is reached; a kernel takes about 0.1 ms.
 * max_kernels: loaded and unloaded together; 0: 8.   max_ms: 0: 1 ms. */
typedef struct jg_poll_limits {
    uint32_t max_kernels;
    double max_ms;
} jg_poll_limits;

typedef struct jg_poll_result {
    size_t loaded;    /* kernels */
    size_t swapped;   /* problems that went over to their own kernel */
    size_t unloaded;  /* kernels */
    size_t left;      /* kernels ready and not loaded yet, as the bounds were reached */
} jg_poll_result;

/* Puts what the worker has ready in place, and unloads what was evicted. Loading and unloading wait for all queued GPU work
 * and block other threads' launches meanwhile, so call it where a wait does no harm: after a frame's own synchronise. Kernels
 * that a plan, a call under way or a captured graph uses are not unloaded. Under 1 µs when there is nothing to do. It need
 * not be called at all: the next jg_open loads the kernels of the sizes that this run met. `limits` and `result` may be null.
 * Thread-safe. Errors: NULL, VALUE (a negative bound), LOAD, DEVICE, NO_MEMORY, DEVICE_LOST; the rest is done all the same, and a
 * kernel that cannot be loaded leaves its generic one serving. */
JG_API jg_status jg_poll(jg_context *context, const jg_poll_limits *limits, jg_poll_result *result);

/* Blocks until the worker has nothing left to do, or for timeout_ms (0: without limit): for tests and tools. What it made
 * then waits for jg_poll. Kernels that have to wait for their turn by jg_worker_options.per_minute are waited for too.
 * Errors: NULL, VALUE (negative timeout), NOT_READY (time ran out). */
JG_API jg_status jg_wait_idle(jg_context *context, double timeout_ms);

/* Records in the cache file how many times as fast as the generic kernel a problem's own was measured to be (jitgemm-bench
 * does). From 1.02 on BACKGROUND mode makes it, below it does not; without a record the planner's estimate decides the same.
 * Blocks for disk. Errors: NULL, VALUE (not above 0), FILE (no cache file, or it cannot be written), those of a bad problem. */
JG_API jg_status jg_record_gain(jg_context *context, const jg_problem *problem, double gain);

typedef struct jg_stats {
    uint64_t problems;          /* problems remembered in memory */
    uint64_t kernels;           /* kernels loaded */
    uint64_t kernel_bytes;      /* their code, bytes */
    uint64_t memory_hits, memory_misses; /* jg_gemm and jg_plan_create by problem */
    uint64_t evictions;         /* kernels evicted from memory */
    uint64_t disk_hits, disk_misses;     /* by kernel */
    uint64_t disk_entries, disk_bytes;   /* content of the cache file now */
    uint64_t disk_faults;       /* corrupt records, failed reads and writes */
    uint64_t compiles, compile_failures;
    double compile_ms;          /* total */
    uint64_t launches_own, launches_generic; /* on the size's own kernel, on a generic one */
    uint64_t waits;             /* calls that made or loaded their kernel themselves */
    uint64_t swaps;             /* problems that went over from a generic kernel to their own */
    uint64_t captured;          /* kernels that stay loaded since a graph has them */
    uint64_t queued;            /* kernels that the worker has to make */
    uint64_t ready;             /* kernels that wait for jg_poll */
    uint64_t dropped;           /* requests that found the worker's queue full, or no worker */
    uint64_t resident;          /* generic kernels that stay loaded */
    uint64_t tuned;             /* recorded plans for this place that were read, or recorded since (jg_record_plan) */
    uint64_t helpers_lost;      /* compile helpers that crashed, were killed, or ran out of time */
    char place[64];             /* what recorded plans are valid for, e.g. "sm_90 132sm 6144bit dedicated": architecture, multiprocessors,
                                 * the memory's bus, and whose it is (or "software"), "unknown"; "" on the cpu device */
    char path[512];             /* of the cache file; "" if memory only */
    char factory[512];          /* of the factory file; "" if none */
} jg_stats;

/* Fills in the counters since jg_open. Reads the cache file's totals, so it may block for disk; if that fails they are 0.
 * Errors: NULL. */
JG_API jg_status jg_cache_stats(jg_context *context, jg_stats *stats);

/* ---------------------------------------------------------------------------------------------
 * Tier 4: inspect a cache file. Needs neither driver nor NVRTC. A jg_cache is used by one thread
 * at a time; several may be open on one file, also while pipelines use it.
 * ------------------------------------------------------------------------------------------- */

typedef struct jg_cache jg_cache;

/* One kernel in a cache file. Pointers are owned by the cache handle and valid until the next call on it. */
typedef struct jg_cache_entry {
    const char *id;           /* 16 hex digits: XXH64 of the key */
    const char *kernel;       /* kernel name */
    const char *target;       /* e.g. "sm_87" */
    const char *problem;      /* text of the problem that first asked for it */
    const char *provenance;   /* compiler version and options */
    uint64_t cubin_bytes, ptx_bytes, record_bytes;
    double compile_ms;
    int64_t created, used;    /* seconds since 1970, UTC */
    uint64_t uses;            /* times it was read from the file */
} jg_cache_entry;

typedef enum jg_part { JG_PART_CUBIN = 0, JG_PART_PTX = 1, JG_PART_SOURCE = 2 } jg_part;

/* Opens a cache file; path null: the default path (see jg_options). writable = 0 never changes the
 * file. Errors: NULL, FILE (text has the path and why), CACHE (not a jitgemm cache, or of another
 * version), NO_MEMORY. */
JG_API jg_status jg_cache_open(const char *path, int writable, jg_cache **cache);
JG_API void jg_cache_close(jg_cache *cache);

/* The path in use. */
JG_API const char *jg_cache_path(const jg_cache *cache);

/* Calls visit for each entry, most recently used first, until it returns nonzero. visit must not use `cache`.
 * Errors: NULL, FILE, CACHE. */
JG_API jg_status jg_cache_list(jg_cache *cache, int (*visit)(void *user, const jg_cache_entry *entry), void *user);

/* Finds one entry by kernel name, id, or a prefix of either that fits only one. Errors: NOT_FOUND, VALUE (fits several),
 * CACHE. */
JG_API jg_status jg_cache_find(jg_cache *cache, const char *key, jg_cache_entry *entry);

/* Gives a part of an entry's content, valid until the next call on the cache; a text part is followed by a 0 that *bytes
 * does not count. Its checksum is verified first. Errors: NULL, VALUE, NOT_FOUND (also for a part not kept),
 * CACHE (corrupt), FILE. */
JG_API jg_status jg_cache_extract(jg_cache *cache, const char *key, jg_part part, const void **data, size_t *bytes);

/* Verifies every record's checksum and the database's own structure. Calls report (may be null) for each bad one.
 * Removes nothing. Errors: CACHE if anything is bad. */
JG_API jg_status jg_cache_verify(jg_cache *cache, void (*report)(void *user, const char *id, const char *what),
                                 void *user, size_t *good, size_t *bad);

/* A problem that ran on a generic kernel because its own was not loaded, as the cache file remembers it. */
typedef struct jg_cache_miss {
    const char *problem;      /* text form */
    const char *target;       /* e.g. "sm_87" */
    uint64_t count;           /* launches on a generic kernel */
    int64_t used;             /* last, seconds since 1970, UTC */
    double gain;              /* recorded by jg_record_gain; 0: none */
    int cached;               /* nonzero if its own kernel is in the file by now */
} jg_cache_miss;

/* Calls visit for each remembered miss, most counted first, until it returns nonzero. visit must not use `cache`.
 * Errors: NULL, FILE, CACHE. */
JG_API jg_status jg_cache_misses(jg_cache *cache, int (*visit)(void *user, const jg_cache_miss *miss), void *user);

/* Forgets all misses. *removed may be null. Errors: NULL, FILE, CACHE. */
JG_API jg_status jg_cache_clear_misses(jg_cache *cache, size_t *removed);

/* A plan that was measured to be the fastest of its problem's candidates (jg_record_plan). */
typedef struct jg_cache_plan {
    const char *problem;      /* text form */
    const char *place;        /* where it is valid: see jg_stats.place */
    const char *kernel;       /* kernel name */
    jg_measured measured;     /* as recorded; its texts are "" where unknown */
    int64_t created;          /* seconds since 1970, UTC */
    int cached;               /* nonzero if its kernel is in the file */
} jg_cache_plan;

/* Calls visit for each recorded plan, by place and then by problem, until it returns nonzero. visit must not use `cache`.
 * Errors: NULL, FILE, CACHE. */
JG_API jg_status jg_cache_plans(jg_cache *cache, int (*visit)(void *user, const jg_cache_plan *plan), void *user);

/* Forgets all recorded plans; their kernels stay. *removed may be null. Errors: NULL, FILE, CACHE. */
JG_API jg_status jg_cache_clear_plans(jg_cache *cache, size_t *removed);

/* Makes the file fit to be a factory file (jg_options.factory_path): complete in itself, so that it can be read from a
 * read-only place. To be called before it is shipped, while nobody else uses it. Errors: NULL, FILE, CACHE. */
JG_API jg_status jg_cache_seal(jg_cache *cache);

/* Removes all entries, misses and recorded plans and gives the space back. *removed may be null. Errors: NULL, FILE, CACHE. */
JG_API jg_status jg_cache_clear(jg_cache *cache, size_t *removed);

#ifdef __cplusplus
}
#endif
#endif /* JITGEMM_H */
