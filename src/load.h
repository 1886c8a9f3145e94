/* From an image to a kernel on the device, and back. Loading and unloading wait for all queued GPU work and block
 * other threads' launches meanwhile, so only jg_prewarm, jg_poll, jg_close and calls that may compile come here. */
#ifndef JG_LOAD_H
#define JG_LOAD_H

#include "device.h"
#include "image.h"

#include <stdatomic.h>

typedef struct loaded_kernel {
    CUfunction function;
    atomic_int kept;     /* stays loaded until jg_close */
    int registers;
    CUmodule module;
    size_t code_bytes;   /* of the image, counted against the memory bound */
    double compile_ms;   /* of its image */
    kernel_spec spec;
} loaded_kernel;

/* Loads the cubin where the chip is exactly the image's architecture, else (or if the driver refuses it) the PTX.
 * The device must be entered. Errors: LOAD, NO_MEMORY, DEVICE_LOST. */
jg_status load_kernel(const device *dev, const kernel_spec *spec, const image *img, loaded_kernel *out);
/* Errors: DEVICE, DEVICE_LOST; the kernel is gone all the same. */
jg_status unload_kernel(const device *dev, loaded_kernel *kernel);

#endif
