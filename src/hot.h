/* What a launch of a known size runs through lies together in the program: between two calls the driver has used up the processor's
 * instruction cache, and each line of it that has to come back costs as much as a dozen instructions. */
#ifndef JG_HOT_H
#define JG_HOT_H

#define HOT __attribute__((hot))

#endif
