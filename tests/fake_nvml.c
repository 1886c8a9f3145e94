/* The NVML of the tests: one GPU, whose figures are all different. Built a second time without the newer functions
 * (FAKE_NVML_OLD). */
#include "fake_nvml.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };

extern fake_nvml fake_nvml_controls;
EXPORT fake_nvml fake_nvml_controls;

static int gpu;

/* Prototypes as the library has them: the tests have no nvml.h. */
EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device);
EXPORT int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
EXPORT int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *mhz);
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees);
EXPORT int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetPersistenceMode(void *device, unsigned *mode);
EXPORT int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending);
EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);

static int refuses(const char *function)
{
    const char *refused = fake_nvml_controls.refused;
    return refused && (strcmp(refused, function) == 0 || strcmp(refused, "all") == 0);
}

static int answer(const char *function, const void *device, unsigned *out, unsigned value)
{
    if (refuses(function)) return NOT_SUPPORTED;
    if (device != &gpu) return INVALID_ARGUMENT;
    *out = fake_nvml_controls.value ? fake_nvml_controls.value : value;
    return SUCCESS;
}

int nvmlInit_v2(void)
{
    if (fake_nvml_controls.refused && strcmp(fake_nvml_controls.refused, __func__) == 0) return NOT_SUPPORTED;
    fake_nvml_controls.opened++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    fake_nvml_controls.closed++;
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    if (refuses(__func__)) return NOT_SUPPORTED;
    snprintf(version, size, "%s", fake_nvml_controls.release ? fake_nvml_controls.release : "580.95.05");
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
    if (strcmp(id, FAKE_NVML_BUS_ID) != 0) return NOT_FOUND;
    *device = &gpu;
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    return answer(__func__, device, mhz, type == 1 ? 1755 : type == 2 ? 2619 : 1);
}

int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *mhz)
{
    return answer(__func__, device, mhz, type == 1 ? 1980 : type == 2 ? 3201 : 1);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees)
{
    return answer(__func__, device, degrees, sensor == 0 ? 41 : 1);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    return answer(__func__, device, milliwatts, 118250);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    return answer(__func__, device, milliwatts, 700000);
}

int nvmlDeviceGetPersistenceMode(void *device, unsigned *mode)
{
    return answer(__func__, device, mode, 1);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending)
{
    *pending = 0;
    return answer(__func__, device, current, 1);
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    *pending = 1;
    return answer(__func__, device, current, 0);
}
#endif
