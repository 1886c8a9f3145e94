/* The planner: from a problem and a device's limits to a kernel and its launch shape.
 *
 * Candidates are the tiles of the architecture's table, for each family that computes the types. Each must pass the
 * legality rules (plan_rules.c); the cheapest by a simple cost model wins. Problem and device alone decide, so the
 * same call gives the same plan on a build host and on the device. A dynamic dimension is priced as the next power of two, so
 * that one kernel serves all of its values between two powers; what is legal and the grid are of the value itself. */
#ifndef JG_PLAN_H
#define JG_PLAN_H

#include "device.h"
#include "kernel.h"
#include "problem.h"

/* How wide the operands may be accessed: bytes of a load of A and B (16, 8, 4 or 2), and whether four neighbours of C
 * may be stored at once. */
typedef struct access_widths {
    uint8_t a, b, c;
} access_widths;

typedef struct plan {
    int64_t grid_x, grid_y;
    int threads, shared_bytes, registers, blocks_per_sm;
    access_widths access;
    kernel_spec spec;
    double waves;
    int64_t steps;           /* of k, for each block */
    double cost;             /* model clocks, with dynamic dimensions as they are priced; only to compare */
    double clocks;           /* the same for the sizes themselves */
} plan;

/* Widths from the operands' alignments in bytes (powers of two), leading dimensions and strides. */
access_widths plan_access(const problem *p, unsigned align_a, unsigned align_b, unsigned align_c);

/* Chooses the plan for a non-empty problem. form: GENERIC or SPECIALISED. Error: UNSUPPORTED, with each candidate's reason. */
jg_status plan_choose(const problem *p, access_widths access, jg_form form, const limits *limits, plan *out);

/* The same for both forms at once, of one numeric class. Returns the status of the specialised one; *has_generic: whether there is
 * a generic one. */
jg_status plan_choose_both(const problem *p, access_widths access, const limits *limits, plan *own, plan *generic, int *has_generic);

/* Among how many slices of a block a problem's k is dealt out, which fixes the order in which it is summed: a matter of the problem
 * and the device alone, not of access or form. A dynamic dimension keeps it between two powers of two. 0: any, as sums of
 * integers are exact. */
int plan_slices(const problem *p, const limits *limits);

/* The same two of so many slices (0: any) instead of plan_slices': whoever keeps them for all forms and accesses of a problem keeps
 * its class. */
jg_status plan_choose_sliced(const problem *p, access_widths access, jg_form form, const limits *limits, int slices, plan *out);
jg_status plan_choose_both_sliced(const problem *p, access_widths access, const limits *limits, int slices, plan *own, plan *generic,
                                  int *has_generic);

/* The candidate with this tile. Returns 0 if there is none, or it is not legal. */
int plan_with_tile(const problem *p, access_widths access, jg_form form, const limits *limits, const tile *wanted, plan *out);

/* The plan of a kernel that was chosen for this problem before. */
void plan_of_spec(const problem *p, access_widths access, const limits *limits, const kernel_spec *spec, plan *out);

/* Whether a problem can be summed in so many slices with whatever access, by generic kernels too. */
int plan_has_class(const problem *p, const limits *limits, int slices);

/* A size, or what stands for all sizes of a dynamic dimension between two powers of two. */
int64_t plan_class_size(int64_t size, int is_dynamic);

/* How many times as fast as the generic kernel the problem's own is estimated to be, from their plans; 1 if `own` is generic
 * itself or k is 0. At least 0.9. */
double plan_gain(const plan *generic, const plan *own);

/* The gain from which on an own kernel is made in the background. */
#define PLAN_GAIN_WORTHWHILE 1.02

/* One candidate, as plan_each shows it. reason is "" if legal. */
typedef void (*plan_visit)(void *user, const plan *candidate, const char *reason);
void plan_each(const problem *p, access_widths access, jg_form form, const limits *limits, plan_visit visit, void *user);
/* The same in a few µs: the reason is "?" if it is not legal. */
void plan_each_quickly(const problem *p, access_widths access, jg_form form, const limits *limits, plan_visit visit, void *user);

/* Fills in what follows from candidate->spec and the problem: grid, resources, occupancy, cost. */
void plan_complete(const problem *p, const limits *limits, plan *candidate);

/* Checks the legality rules one by one; on failure writes the first broken one's reason, if size is not 0, and returns 0. */
int plan_is_legal(const problem *p, const limits *limits, const plan *candidate, char *reason, size_t size);

/* Blocks of this shape that fit an SM at once; *by_shared: the same if only shared memory counted. */
int plan_occupancy(const limits *limits, int threads, int registers, int shared_bytes, int *by_shared);

/* What one generic set serves: products of these types with this math, whatever their sizes, layouts and epilogues. */
typedef struct plan_class {
    uint8_t type_a, type_b; /* jg_type, in canonical order */
    uint8_t math;           /* a JG_MATH_ mode and flags */
    uint8_t grouped;        /* the kernels of grouped calls */
} plan_class;

plan_class plan_class_of(const problem *p);

/* Whether a JG_RESIDENT_ flag stands for a class. */
int plan_class_has_flag(const plan_class *what);

#define PLAN_RESIDENT_ALL                                                                                                  \
    (JG_RESIDENT_F32 | JG_RESIDENT_F16 | JG_RESIDENT_BF16 | JG_RESIDENT_S8 | JG_RESIDENT_U8 | JG_RESIDENT_S4 | JG_RESIDENT_E4M3 | \
     JG_RESIDENT_TF32 | JG_RESIDENT_3XTF32 | JG_RESIDENT_GROUPED)

/* The classes that JG_RESIDENT_ flags stand for: with JG_RESIDENT_GROUPED each type's kernels of grouped calls too. */
void plan_each_resident(uint32_t flags, void (*visit)(void *user, const plan_class *what), void *user);

/* The generic set of a class: calls visit for each kernel; for none where the architecture cannot do it. */
void plan_generic_set(const plan_class *what, const limits *limits, void (*visit)(void *user, const kernel_spec *spec), void *user);

#endif
