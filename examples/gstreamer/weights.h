/* Weights out of a safetensors file: a path in, named tensors of f32, f16 and bf16 out.
 *
 * The format (https://huggingface.co/docs/safetensors): 8 bytes, little-endian, with the length N of the header; N bytes of JSON,
 *     {"NAME": {"dtype": "F16", "shape": [768, 3, 16, 16], "data_offsets": [BEGIN, END]}, ..., "__metadata__": {...}};
 * then the data. Offsets count bytes from the end of the header, and tensors lie there one after the other, without gaps.
 *
 * No file, however broken, does more than be refused, with a text that names it and says what is wrong. It is read into memory, not
 * mapped: a mapped file that another process truncates would kill the host with SIGBUS. Nothing here prints. */
#ifndef JGF_WEIGHTS_H
#define JGF_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "jitgemm.h"

/* One tensor. Name and data belong to the weights and are valid until they are closed. */
typedef struct jgf_tensor {
    const char *name;
    jg_type type;          /* JG_F32, JG_F16 or JG_BF16; JG_DEFAULT_TYPE (0) for one that cannot be used, see jgf_weights_at */
    int dims;              /* 1 to 4 */
    int64_t shape[4];      /* at least 1 each; what is past `dims` is 1 */
    const void *data;      /* row-major, little-endian, maybe not aligned: read it with jgf_tensor_value or memcpy */
} jgf_tensor;

typedef struct jgf_weights jgf_weights;

/* Reads a file whole; it may be replaced or removed afterwards. Only regular files: a FIFO or device is refused without waiting for
 * it. Blocks for disk. Returns null on failure; then `error` (may be null with error_size 0; 512 bytes hold any text but that of a
 * long path) says why, beginning with the path, and errno is what open() or read() said (ENOENT, EACCES, EISDIR, EIO ...),
 * ENOMEM, or EBADMSG for content that is not as the format has it. The text holds path and names as they are, in whatever encoding,
 * and may be cut off: g_utf8_make_valid fits it for a message. Free with jgf_weights_close. */
jgf_weights *jgf_weights_open(const char *path, char *error, size_t error_size);

/* Null is allowed. */
void jgf_weights_close(jgf_weights *weights);

/* The path as it was given. */
const char *jgf_weights_path(const jgf_weights *weights);

/* The tensor of exactly this name, else the one whose name ends with a dot and it ("projection.weight" finds
 * "vit.embeddings.projection.weight"). Returns 0; or -1, with an error text, if there is none (the text names a few that there are),
 * if several end so, or if it cannot be used (see jgf_weights_at). Reading is thread-safe, here and below. */
int jgf_weights_find(const jgf_weights *weights, const char *name, jgf_tensor *tensor, char *error, size_t error_size);

/* How many tensors the file has, usable or not. */
size_t jgf_weights_count(const jgf_weights *weights);

/* Tensor `index`, in the order of their data. One of another type (F64, I64, F8_E4M3 ...), without elements, of no dimension or of more
 * than four has type 0, no dims and no data, but its name. Returns 0, or -1 past the last one. */
int jgf_weights_at(const jgf_weights *weights, size_t index, jgf_tensor *tensor);

/* How many elements a usable tensor has; 0 for one of type 0. */
int64_t jgf_tensor_elements(const jgf_tensor *tensor);

/* Element `index` (row-major, from 0 to elements - 1, which is not checked), widened exactly. */
double jgf_tensor_value(const jgf_tensor *tensor, int64_t index);

#endif
