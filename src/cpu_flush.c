/* The activations in float32 arithmetic that flushes denormals. */
#define CPU_NUMBERS_FLUSH
#include "cpu_numbers.h"

float cpu_activate_flushed(u32 kind, float x, float low, float high)
{
    return jg_activate(kind, x, low, high);
}
