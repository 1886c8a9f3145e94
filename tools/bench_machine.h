/* The machine that is measured on: what decides times beside the code, read from NVML (by dlopen), /proc and /sys. */
#ifndef JG_TOOLS_BENCH_MACHINE_H
#define JG_TOOLS_BENCH_MACHINE_H

#include <cjson/cJSON.h>

/* Treat as opaque; zero-initialise. */
typedef struct bench_machine {
    void *library, *nvml;      /* NVML and its nvmlDevice_t; null: no NVML, or it does not know this GPU */
    int gpu;                   /* there is one */
    const char *root;          /* before every path; null: none */
    char gpu_clocks[512];      /* folder with the GPU's clocks in Hz where there is one (Jetson); "" if not */
    char gpu_temperature[512]; /* file with its temperature in thousandths of a degree; "" if there is none */
} bench_machine;

/* What can change while it is measured; -1: unknown. */
typedef struct bench_conditions {
    double sm_mhz, memory_mhz, temperature_c, power_w;
} bench_conditions;

/* pci_bus_id: of the GPU, e.g. "0000:65:00.0"; null or "": without a GPU (the software GPU), whose driver, clocks and so on are
 * then unknown. Never fails, never prints: what is not there, or makes no sense, is unknown. */
void bench_machine_open(bench_machine *machine, const char *pci_bus_id);

/* The same with another NVML and with files below another folder than /, which must stay valid; for the tests. */
void bench_machine_open_at(bench_machine *machine, const char *pci_bus_id, const char *nvml, const char *root);

void bench_machine_close(bench_machine *machine); /* what was never opened is allowed, and twice */

/* NVML first; on a Jetson, where it knows little or is not there, the files of the kernel. Some microseconds to milliseconds:
 * not for within what is timed. */
bench_conditions bench_machine_conditions(const bench_machine *machine);

/* Adds to an object what is known of: "driver_release" ("580.95.05", or "L4T 35.4.1" of an older Jetson), "kernel"
 * ("Linux 6.8.0-..."), "processor" (model name; the board on a Jetson), "governor" (of processor 0), "power_mode" (nvpmodel's
 * name, on a Jetson), "power_limit_w", "clock_sm_max_mhz", "clock_memory_max_mhz" (numbers), "persistence", "ecc" and "mig"
 * (booleans). Texts are printable ASCII. Returns 0, or -1 if memory ran out. */
int bench_machine_describe(const bench_machine *machine, cJSON *object);

#endif
