/* The device of a context: a CUDA context that we enter and leave, or none (the cpu device), and the limits that plans
 * are made for. */
#ifndef JG_DEVICE_H
#define JG_DEVICE_H

#include "arch.h"
#include "driver.h"

/* What the planner needs to know. */
typedef struct limits {
    const arch *arch;        /* table row; arch->number is what we compile for */
    int sm_count;
    int shared_per_sm, shared_per_block, shared_reserved;
    int registers_per_sm, threads_per_sm, blocks_per_sm;
} limits;

typedef struct device {
    driver *driver;          /* null: the cpu device */
    CUcontext context;
    CUdevice ordinal;
    int retained;            /* we hold a reference to the primary context */
    int number;              /* the chip's own, e.g. 121 where the table row is sm_120, or the options ask for an older one */
    int exact;               /* both are the same, so cubins run */
    char place[64];          /* what measurements on it are good for: see write_place in device.c; "" on the cpu device */
    limits limits;
} device;

/* Limits from the table alone; sm_count 0 takes the table's. Error: ARCH, naming the known ones. */
jg_status limits_of_arch(int number, int sm_count, limits *out);

/* Opens what the resolved options ask for. Errors: NO_DRIVER, NO_DEVICE, ARCH, VALUE, DEVICE. */
jg_status device_open(const jg_options *options, const char *driver_path, device *out);
void device_close(device *dev);

/* Makes the device's CUDA context current on this thread, if it is not, and back. Cheap when it already is. */
typedef struct device_scope {
    int pushed;
} device_scope;
jg_status device_enter(const device *dev, device_scope *scope);
void device_leave(const device *dev, const device_scope *scope);

#endif
