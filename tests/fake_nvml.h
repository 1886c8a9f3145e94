/* What the tests set in their NVML (fake_nvml.c), by the name fake_nvml_controls. */
#ifndef JG_TESTS_FAKE_NVML_H
#define JG_TESTS_FAKE_NVML_H

#define FAKE_NVML_BUS_ID "0000:65:00.0"

typedef struct fake_nvml {
    const char *refused;        /* a function that fails; "all": every one but nvmlInit_v2 and the search for the GPU */
    const char *release;        /* the driver's; null: "580.95.05" */
    unsigned value;             /* of everything, unless it is 0 */
    int opened, closed;         /* calls of nvmlInit_v2 and nvmlShutdown */
} fake_nvml;

#endif
