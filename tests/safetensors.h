/* Writes the weight files of tests: a JSON header and data in, a safetensors file out (examples/gstreamer/weights.h). */
#ifndef JG_TESTS_SAFETENSORS_H
#define JG_TESTS_SAFETENSORS_H

#include "scratch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* `announced` is what the file says of its header's length. */
static inline void safetensors_write_as(const char *path, uint64_t announced, const void *header, size_t header_bytes, const void *data,
                                        size_t data_bytes)
{
    unsigned char *file = malloc(8 + header_bytes + data_bytes);
    if (!file) abort();
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(announced >> 8 * i);
    memcpy(file + 8, header, header_bytes);
    if (data_bytes) memcpy(file + 8 + header_bytes, data, data_bytes);
    scratch_write(path, file, 8 + header_bytes + data_bytes);
    free(file);
}

static inline void safetensors_write(const char *path, const char *header, const void *data, size_t data_bytes)
{
    safetensors_write_as(path, strlen(header), header, strlen(header), data, data_bytes);
}

#endif
