/* Where pixels and device memory meet: the one place of the element that knows how a frame gets to the device and back.
 *
 * A plane goes in by jgf_plane_in, which gives the address for the product to read, and out by jgf_plane_out, which gives the address
 * to write, and jgf_plane_done after the launches. On a device of its own memory these copy; on the cpu device, whose memory is the
 * host's, they give the plane itself. An NVMM path (README.md) would give the mapped surface here, and change nothing elsewhere.
 *
 * Functions return the library's status, with the text in jg_last_error(). They block for copies. One thread at a time uses a device. */
#ifndef JGF_DEVICE_H
#define JGF_DEVICE_H

#include <stdint.h>

#include "jitgemm.h"

/* Packed pixels in host memory. stride: bytes from a line to the next, at least line_bytes. What lies between lines, and behind the
 * last one, may belong to somebody else: it is neither written nor, behind the last one, read. */
typedef struct jgf_plane {
    uint8_t *data;
    int64_t stride, line_bytes, lines;
} jgf_plane;

/* Memory that only grows, so that a frame of a size that fits allocates nothing. Zero-initialise it, with `memory` as wanted. */
typedef struct jgf_buffer {
    void *data;
    size_t bytes;
    jg_memory memory;
} jgf_buffer;

typedef struct jgf_device {
    jg_context *context;
    jgf_buffer lines; /* host: a plane whose lines have to be copied one by one */
    int is_host;      /* the cpu device: its memory is the host's */
} jgf_device;

/* Opens the context. On failure nothing needs to be closed. Errors: those of jg_open. */
jg_status jgf_device_open(jgf_device *device, const jg_options *options);

/* Closes it; buffers must have been freed. A device that is zero is allowed. */
void jgf_device_close(jgf_device *device);

/* Makes a buffer at least so large; what it held may be lost. Errors: those of jg_alloc and jg_free. */
jg_status jgf_buffer_grow(jgf_device *device, jgf_buffer *buffer, size_t bytes);

/* Puts `bytes` bytes into a buffer, which grows. Errors: those of jg_alloc, jg_free and jg_copy. */
jg_status jgf_buffer_fill(jgf_device *device, jgf_buffer *buffer, const void *data, size_t bytes);

void jgf_buffer_free(jgf_device *device, jgf_buffer *buffer);

/* How many bytes a plane takes on the device. */
size_t jgf_plane_bytes(const jgf_plane *plane);

/* Makes room for planes of this size (`data` does not matter), so that the first one need not. Errors: those of jg_alloc and jg_free. */
jg_status jgf_plane_reserve(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane);

/* Brings a plane to the device, with its stride; *data is where it is, until the next call with this buffer. */
jg_status jgf_plane_in(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane, const void **data);

/* Says where on the device a plane, of the same stride, is to be written. */
jg_status jgf_plane_out(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane, void **data);

/* Waits until it is written, and brings it back. */
jg_status jgf_plane_done(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane);

/* Ends a frame: waits for the device, then puts the kernels that the worker has made in place, where that makes nobody wait. A kernel
 * that cannot be loaded is no error: *poll (not null) then has jg_poll's status, and the generic one goes on serving. */
jg_status jgf_device_finish(jgf_device *device, jg_status *poll);

#endif
