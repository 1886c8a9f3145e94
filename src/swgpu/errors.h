/* The driver's error codes: their names and what they mean in a few words. */
#ifndef SWGPU_ERRORS_H
#define SWGPU_ERRORS_H

#include <cuda.h>
#include <stddef.h>

/* "CUDA_ERROR_INVALID_VALUE" and "invalid argument"; null for a number that is no CUresult. */
const char *errors_name(CUresult code);
const char *errors_text(CUresult code);

/* The code of a name, or -1. */
int errors_number(const char *name, size_t length);

#endif
