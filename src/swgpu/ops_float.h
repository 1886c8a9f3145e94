/* The floating-point halves of opcodes that exist for integers too: bind_add and the like hand an instruction here when
 * its type is a floating one. Same contract as a bind function of opcodes.h; in ops_float.c. */
#ifndef SWGPU_OPS_FLOAT_H
#define SWGPU_OPS_FLOAT_H

#include "opcodes.h"
#include "variant.h"

extern ptx_bind VARIANT(bind_float_add);
extern ptx_bind VARIANT(bind_float_sub);
extern ptx_bind VARIANT(bind_float_mul);
extern ptx_bind VARIANT(bind_float_mad);
extern ptx_bind VARIANT(bind_float_div);
extern ptx_bind VARIANT(bind_float_min);
extern ptx_bind VARIANT(bind_float_max);
extern ptx_bind VARIANT(bind_float_abs);
extern ptx_bind VARIANT(bind_float_neg);

#endif
