/* Opens the device: binds the caller's current CUDA context, else device 0's primary context, else stays on the cpu. */
#include "device.h"
#include "hot.h"

#include "options.h"
#include "status.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

jg_status limits_of_arch(int number, int sm_count, limits *out)
{
    const arch *row = arch_find(number);
    if (!row) {
        char known[256] = "";
        size_t length = 0;
        for (size_t i = 0; arch_at(i); i++) text_append(known, sizeof known, &length, " sm_%d", arch_at(i)->number);
        return status_set(JG_ERR_ARCH, "sm_%d is not a known architecture; known are%s", number, known);
    }
    *out = (limits){
        .arch = row,
        .sm_count = sm_count ? sm_count : row->sm_count,
        .shared_per_sm = row->shared_per_sm,
        .shared_per_block = row->shared_per_block,
        .shared_reserved = row->shared_reserved,
        .registers_per_sm = row->registers_per_sm,
        .threads_per_sm = row->threads_per_sm,
        .blocks_per_sm = row->blocks_per_sm,
    };
    return JG_OK;
}

/* The device's own word counts for more than the table. */
static jg_status read_limits(device *dev)
{
    int major = 0, minor = 0;
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } identity[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}};
    for (size_t i = 0; i < sizeof identity / sizeof identity[0]; i++) {
        CUresult result = dev->driver->device_attribute(identity[i].value, identity[i].attribute, dev->ordinal);
        if (result != CUDA_SUCCESS) return driver_error(dev->driver, result, JG_ERR_DEVICE, "cuDeviceGetAttribute");
    }
    RETURN_IF_ERROR(limits_of_arch(major * 10 + minor, 0, &dev->limits));
    dev->number = major * 10 + minor;
    limits *l = &dev->limits;
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } rows[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &l->sm_count},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &l->shared_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &l->shared_per_block},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &l->shared_reserved},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &l->registers_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &l->threads_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &l->blocks_per_sm},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int value = 0;
        if (dev->driver->device_attribute(&value, rows[i].attribute, dev->ordinal) == CUDA_SUCCESS && value > 0)
            *rows[i].value = value;
    }
    return JG_OK;
}

static void lower(int *value, int bound)
{
    if (*value > bound) *value = bound;
}

/* Plans for an older chip: its instructions and its limits, where those are the tighter ones. */
static jg_status plan_as_elder(device *dev, int number)
{
    const arch *row = arch_find(number);
    limits *l = &dev->limits;
    if (number > dev->number || (row && row->number != number))
        return status_set(JG_ERR_ARCH, "options.arch is %d but the device is sm_%d, which runs code of its own and of older "
                          "architectures only; set device = JG_DEVICE_CPU to compile for another one", number, dev->number);
    limits elder;
    RETURN_IF_ERROR(limits_of_arch(number, 0, &elder));
    l->arch = row;
    lower(&l->shared_per_sm, elder.shared_per_sm);
    lower(&l->shared_per_block, elder.shared_per_block);
    lower(&l->registers_per_sm, elder.registers_per_sm);
    lower(&l->threads_per_sm, elder.threads_per_sm);
    lower(&l->blocks_per_sm, elder.blocks_per_sm);
    return JG_OK;
}

/* What the options narrow down. */
static jg_status narrow_limits(device *dev, const jg_options *options)
{
    if (options->arch && options->arch != dev->number) RETURN_IF_ERROR(plan_as_elder(dev, options->arch));
    if (options->sm_count > dev->limits.sm_count)
        return status_set(JG_ERR_VALUE, "options.sm_count is %d but the device has %d multiprocessors", options->sm_count,
                          dev->limits.sm_count);
    if (options->sm_count) dev->limits.sm_count = options->sm_count;
    dev->exact = dev->limits.arch->number == dev->number;
    return JG_OK;
}

/* The kind of memory; "unknown" where the driver does not tell. */
static void describe_memory(const driver *d, CUdevice ordinal, char *text, size_t size)
{
    int bits = 0, is_shared = 0;
    const char *kind = "unknown";
    if (d->device_attribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, ordinal) != CUDA_SUCCESS) bits = 0;
    if (d->device_attribute(&is_shared, CU_DEVICE_ATTRIBUTE_INTEGRATED, ordinal) == CUDA_SUCCESS) kind = is_shared ? "shared" : "dedicated";
    if (d->describe) kind = "software";
    if (bits > 0) snprintf(text, size, "%dbit %s", bits, kind);
    else snprintf(text, size, "%s", kind);
}

/* E.g. "sm_90 132sm 6144bit dedicated": what plans are made for, and the kind of memory by the width of its bus and whether it is the
 * host's. Devices that agree in these are of one chip, or so alike that the same plans are fastest: an Orin Nano (8 SMs, 128 bits) and
 * an AGX Orin (16, 256) do not agree. The size of L2 follows from the rest. Nothing that a power mode sets is in it, unless one turns
 * multiprocessors off: other plans are fastest then. */
static void write_place(device *dev)
{
    char memory[32];
    describe_memory(dev->driver, dev->ordinal, memory, sizeof memory);
    snprintf(dev->place, sizeof dev->place, "sm_%d %dsm %s", dev->limits.arch->number, dev->limits.sm_count, memory);
}

static jg_status bind_context(device *dev)
{
    driver *d = dev->driver;
    CUresult result = d->context_current(&dev->context);
    if (result == CUDA_SUCCESS && dev->context) {
        result = d->context_device(&dev->ordinal);
        return result == CUDA_SUCCESS ? JG_OK : driver_error(d, result, JG_ERR_DEVICE, "cuCtxGetDevice");
    }
    int count = 0;
    result = d->device_count(&count);
    if (result != CUDA_SUCCESS) return driver_error(d, result, JG_ERR_DEVICE, "cuDeviceGetCount");
    if (count == 0) return status_set(JG_ERR_NO_DEVICE, "the CUDA driver found no device");
    result = d->device_get(&dev->ordinal, 0);
    if (result != CUDA_SUCCESS) return driver_error(d, result, JG_ERR_DEVICE, "cuDeviceGet");
    result = d->primary_retain(&dev->context, dev->ordinal);
    if (result != CUDA_SUCCESS) return driver_error(d, result, JG_ERR_DEVICE, "cuDevicePrimaryCtxRetain");
    dev->retained = 1;
    return JG_OK;
}

static jg_status open_cuda(const jg_options *options, const char *driver_path, device *dev)
{
    RETURN_IF_ERROR(driver_open(driver_path, &dev->driver));
    jg_status status = bind_context(dev);
    if (status == JG_OK) status = read_limits(dev);
    if (status == JG_OK) status = narrow_limits(dev, options);
    if (status == JG_OK) write_place(dev);
    else device_close(dev);
    return status;
}

jg_status device_open(const jg_options *options, const char *driver_path, device *out)
{
    memset(out, 0, sizeof *out);
    int wants_cpu = options->device == JG_DEVICE_CPU || (options->device == JG_DEVICE_AUTO && strcmp(driver_path, "cpu") == 0);
    if (!wants_cpu) {
        status_text before;
        status_save(&before);
        jg_status status = open_cuda(options, driver_path, out);
        /* AUTO falls back only where there is no GPU to use; a GPU that fails is an error, not a slow pipeline. Whoever asks for
         * the software GPU by name wants its checks, so that to go on without them would hide that nothing was checked. */
        int absent = status == JG_ERR_NO_DEVICE || (status == JG_ERR_NO_DRIVER && strcmp(driver_path, DRIVER_SWGPU) != 0);
        if (options->device == JG_DEVICE_CUDA || !absent) return status;
        status_restore(&before);
    }
    memset(out, 0, sizeof *out);
    return limits_of_arch(options->arch ? options->arch : OPTIONS_CPU_ARCH, options->sm_count, &out->limits);
}

void device_close(device *dev)
{
    if (dev->retained) dev->driver->primary_release(dev->ordinal);
    driver_close(dev->driver);
    memset(dev, 0, sizeof *dev);
}

HOT jg_status device_enter(const device *dev, device_scope *scope)
{
    scope->pushed = 0;
    CUcontext current = NULL;
    CUresult result = dev->driver->context_current(&current);
    if (result == CUDA_SUCCESS && current == dev->context) return JG_OK;
    result = dev->driver->context_push(dev->context);
    if (result != CUDA_SUCCESS) return driver_error(dev->driver, result, JG_ERR_DEVICE, "cuCtxPushCurrent");
    scope->pushed = 1;
    return JG_OK;
}

HOT void device_leave(const device *dev, const device_scope *scope)
{
    CUcontext popped;
    if (scope->pushed) dev->driver->context_pop(&popped);
}
