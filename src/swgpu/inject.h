/* Faults on demand: entry points that fail, or are slow, when a test wants them to.
 *
 *   JITGEMM_SWGPU_FAULT=ENTRY:WHEN:ERROR[,...]
 *       ENTRY  an entry point, with or without its version: cuMemAlloc or cuMemAlloc_v2
 *       WHEN   N: the N-th call, once. N+: that one and all later. N!: that one, which also faults the current context, so
 *              that every later call there that can report a fault fails too
 *       ERROR  a CUresult by name or number
 *   JITGEMM_SWGPU_SLOW=ENTRY:MILLISECONDS[,...]
 *       every call takes that much longer, and keeps all others waiting
 *
 * Calls are counted from the cuInit that read the settings, that call being cuInit's first, or from swgpuSetFaults. A
 * call that fails on demand does nothing else. Everything here happens under the state's lock. */
#ifndef SWGPU_INJECT_H
#define SWGPU_INJECT_H

#include "entries.h"

#include <stddef.h>

#define INJECT_MAX_RULES 32
#define INJECT_MAX_MILLISECONDS 600000

/* Reads both variables' values (null or empty: none) and counts anew. Returns 1, or 0 with an error that says what is
 * allowed; then nothing is injected. */
int inject_configure(const char *faults, const char *slow, char *error, size_t error_bytes);

/* Other faults in the place of those that are, and counts anew; what is slow stays. The text is as the variable's. Returns 1,
 * or 0 with an error, and then nothing has changed. */
int inject_replace_faults(const char *faults, char *error, size_t error_bytes);

const char *inject_symbol(entry_id entry); /* the exported name */

/* Counts a call. Returns what it is to fail with, or success; *sticky becomes 1 if the context is to fault. */
CUresult inject_call(entry_id entry, unsigned *milliseconds, int *sticky);

#endif
