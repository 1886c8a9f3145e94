/* What the environment says about the software GPU. An empty variable counts as unset.
 *
 *   JITGEMM_SWGPU_DEVICE    a model's name (models.c); orin-agx
 *   JITGEMM_SWGPU_MEMORY    bytes that can be allocated, with K, M or G; what the model has
 *   JITGEMM_SWGPU_THREADS   threads that run blocks, 1 to 64; the online processors
 *   JITGEMM_SWGPU_BLOCKS    of a launch described with more than SETTINGS_SMALL_LAUNCH multiply-adds: how many blocks run; all
 *   JITGEMM_SWGPU_CHECKS    all, none, or a list of uninitialised, race, operands, leak; all
 *   JITGEMM_SWGPU_COUNTERS  0 or 1; 1
 *   JITGEMM_SWGPU_REPORT    a file that each finding is appended to, - for stderr; none
 *   JITGEMM_SWGPU_FAULT, JITGEMM_SWGPU_SLOW   see inject.h */
#ifndef SWGPU_SETTINGS_H
#define SWGPU_SETTINGS_H

#include "models.h"

#define SETTINGS_SMALL_LAUNCH (1ull << 26)
#define SETTINGS_MAX_THREADS 64
#define SETTINGS_MAX_BLOCKS (1u << 20)

typedef struct settings {
    const model *model;
    uint64_t memory_bytes;
    unsigned threads;
    uint64_t blocks; /* 0: all */
    unsigned checks; /* CHECK_* */
    int counters;
    char report[1024]; /* "": none */
} settings;

/* Returns 1, or 0 with an error that names the variable and what is allowed. */
int settings_read(settings *out, char *error, size_t error_bytes);

/* Decimal digits and nothing else, from 1 to most (at most 2^60). Returns 1, or 0. */
int settings_number(const char *text, size_t length, uint64_t most, uint64_t *out);

#endif
