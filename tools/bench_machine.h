/* The machine that is measured on: what decides times beside the code, read from NVML (by dlopen), /proc and /sys. */
#ifndef JG_TOOLS_BENCH_MACHINE_H
#define JG_TOOLS_BENCH_MACHINE_H

#include <cjson/cJSON.h>

/* Treat as opaque; zero-initialise. */
typedef struct bench_machine {
    void *nvml;        /* nvmlDevice_t; null: no NVML, or not this GPU */
    void *library;
    char gpu_clock[256]; /* file with the GPU's clock in Hz where there is one (Jetson); "" if not */
} bench_machine;

/* What can change while it is measured; -1: unknown. */
typedef struct bench_conditions {
    double sm_mhz, memory_mhz, temperature_c, power_w;
} bench_conditions;

/* pci_bus_id: of the GPU, e.g. "0000:65:00.0"; null or "": without a GPU (the software GPU). Never fails: what is not there is unknown. */
void bench_machine_open(bench_machine *machine, const char *pci_bus_id);
void bench_machine_close(bench_machine *machine);

bench_conditions bench_machine_conditions(const bench_machine *machine);

/* Adds to an object what is known of: "driver_release" ("580.95.05"), "kernel" ("Linux 6.8.0-..."), "processor" (model name),
 * "governor" (of processor 0), "power_mode" (nvpmodel's name, on a Jetson), "power_limit_w", "clock_sm_max_mhz",
 * "clock_memory_max_mhz", "persistence", "ecc", "mig". Returns 0, or -1 if memory ran out. */
int bench_machine_describe(const bench_machine *machine, cJSON *object);

#endif
