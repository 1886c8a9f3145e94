/* Files that run instructions (ops_*.c and optable.c) are built twice on x86-64: as they are, and with -DSWGPU_WIDE and
 * wider instructions. VARIANT(name) keeps the two apart; every function with external linkage there needs it, bind
 * functions through BIND. */
#ifndef SWGPU_VARIANT_H
#define SWGPU_VARIANT_H

#ifdef SWGPU_WIDE
#define VARIANT(name) name##_wide
#else
#define VARIANT(name) name
#endif
#define BIND(name) VARIANT(bind_##name)

#endif
