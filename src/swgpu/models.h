/* The devices that the software GPU can pose as. */
#ifndef SWGPU_MODELS_H
#define SWGPU_MODELS_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#define MODELS_SHARED_WITHOUT_ASKING (48 * 1024) /* bytes a block may use before its kernel asks for more */
#define MODELS_MAX_THREADS 1024                  /* of a block */

/* What a compute capability fixes. */
typedef struct model_limits {
    int number; /* 87 for compute capability 8.7 */
    int shared_per_sm, shared_per_block, shared_reserved; /* bytes; per block: with asking; reserved: the system's, a block */
    int shared_unit;                                      /* bytes; a block's shared memory is rounded up to it */
    int threads_per_sm, blocks_per_sm;
    int registers; /* of an SM and of a block */
} model_limits;

typedef struct model {
    const char *name; /* as in JITGEMM_SWGPU_DEVICE */
    const char *text; /* cuDeviceGetName */
    int number, sm_count;
    int clock_mhz, memory_mhz, bus_bits, l2_kib;
    int integrated;        /* shares the host's memory */
    uint64_t memory_bytes;
    const model_limits *limits;
} model;

/* The model of a name, or null; row by row, null after the last. Both are good for the life of the process. */
const model *models_find(const char *name);
const model *models_at(size_t index);

/* An attribute as cuDeviceGetAttribute answers it. Returns 0 for one that is not known. */
int models_attribute(const model *m, int attribute, int *value);

/* How many blocks of a kernel an SM holds at once. shared: static and dynamic together. */
int models_blocks_per_sm(const model *m, int threads, int registers, uint64_t shared);

/* Registers that a warp takes: they are given out in units of 256. */
int models_warp_registers(int registers);

#endif
