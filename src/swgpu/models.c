/* Device models. Where the numbers come from:
 *   limits        CUDA C++ Programming Guide, "Compute Capabilities"; the same as the library's own src/arch_sm*.c
 *   SMs, memory   NVIDIA's data sheets: Jetson Orin and Thor series, T4, A100 40 GB SXM, L4, H100 SXM, H200 SXM, B200,
 *                 GeForce RTX 3090, 4090 and 5090. GeForce and Jetson count in GiB; H200 and B200 in 10^9 bytes
 *   clocks        the highest GPU clock of the same sheets; memory clock and bus width give their bandwidth at two
 *                 transfers a clock (GDDR6X and GDDR7: as drivers report it). MHz
 *   L2            the architectures' white papers; of the 8-SM Orins half of the AGX Orin's. KiB
 * Clocks, bus and L2 are only reported: nothing here runs faster or slower for them. */
#include "models.h"

#include <limits.h>
#include <string.h>

#define KIB 1024
#define GIB (1ull << 30)
#define GB 1000000000ull

enum { LIMITS_75, LIMITS_80, LIMITS_86, LIMITS_87, LIMITS_89, LIMITS_90, LIMITS_100, LIMITS_110, LIMITS_120 };

/* number, shared memory: per SM, per block, reserved, unit; threads and blocks per SM; registers */
static const model_limits limits[] = {
    [LIMITS_75] = {75, 64 * KIB, 64 * KIB, 0, 256, 1024, 16, 65536},
    [LIMITS_80] = {80, 164 * KIB, 163 * KIB, 1024, 128, 2048, 32, 65536},
    [LIMITS_86] = {86, 100 * KIB, 99 * KIB, 1024, 128, 1536, 16, 65536},
    [LIMITS_87] = {87, 164 * KIB, 163 * KIB, 1024, 128, 1536, 16, 65536},
    [LIMITS_89] = {89, 100 * KIB, 99 * KIB, 1024, 128, 1536, 24, 65536},
    [LIMITS_90] = {90, 228 * KIB, 227 * KIB, 1024, 128, 2048, 32, 65536},
    [LIMITS_100] = {100, 228 * KIB, 227 * KIB, 1024, 128, 2048, 32, 65536},
    [LIMITS_110] = {110, 228 * KIB, 227 * KIB, 1024, 128, 1536, 24, 65536},
    [LIMITS_120] = {120, 100 * KIB, 99 * KIB, 1024, 128, 1536, 24, 65536},
};

/* name, text; capability, SMs; clock, memory clock, bus, L2; integrated; memory; limits */
static const model rows[] = {
    {"orin-nano", "Orin Nano (software GPU)", 87, 8, 625, 2133, 128, 2048, 1, 8 * GIB, &limits[LIMITS_87]},
    {"orin-nx", "Orin NX (software GPU)", 87, 8, 918, 3200, 128, 2048, 1, 16 * GIB, &limits[LIMITS_87]},
    {"orin-agx", "AGX Orin (software GPU)", 87, 16, 1300, 3200, 256, 4096, 1, 64 * GIB, &limits[LIMITS_87]},
    {"t4", "T4 (software GPU)", 75, 40, 1590, 5001, 256, 4096, 0, 16 * GIB, &limits[LIMITS_75]},
    {"a100", "A100 (software GPU)", 80, 108, 1410, 1215, 5120, 40 * KIB, 0, 40 * GIB, &limits[LIMITS_80]},
    {"rtx3090", "RTX 3090 (software GPU)", 86, 82, 1695, 9751, 384, 6 * KIB, 0, 24 * GIB, &limits[LIMITS_86]},
    {"l4", "L4 (software GPU)", 89, 58, 2040, 6251, 192, 48 * KIB, 0, 24 * GIB, &limits[LIMITS_89]},
    {"rtx4090", "RTX 4090 (software GPU)", 89, 128, 2520, 10501, 384, 72 * KIB, 0, 24 * GIB, &limits[LIMITS_89]},
    {"h100", "H100 (software GPU)", 90, 132, 1980, 2619, 5120, 50 * KIB, 0, 80 * GIB, &limits[LIMITS_90]},
    {"h200", "H200 (software GPU)", 90, 132, 1980, 3201, 6144, 50 * KIB, 0, 141 * GB, &limits[LIMITS_90]},
    {"b200", "B200 (software GPU)", 100, 148, 1965, 3996, 8192, 126 * KIB, 0, 180 * GB, &limits[LIMITS_100]},
    {"thor", "Thor (software GPU)", 110, 20, 1575, 4266, 256, 32 * KIB, 1, 128 * GIB, &limits[LIMITS_110]},
    {"rtx5090", "RTX 5090 (software GPU)", 120, 170, 2407, 14001, 512, 96 * KIB, 0, 32 * GIB, &limits[LIMITS_120]},
};

#define ROWS (sizeof rows / sizeof rows[0])

const model *models_find(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

const model *models_at(size_t index)
{
    return index < ROWS ? &rows[index] : NULL;
}

/* The same for every model. */
static const struct {
    int attribute, value;
} fixed[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, MODELS_MAX_THREADS},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, MODELS_SHARED_WITHOUT_ASKING},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT_MAX},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 0},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0},
};

int models_attribute(const model *m, int attribute, int *value)
{
    const model_limits *l = m->limits;
    const struct {
        int attribute, value;
    } own[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, m->number / 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, m->number % 10},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, m->sm_count},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, l->shared_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, l->shared_per_block},
        {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, l->shared_reserved},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, l->registers},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, l->registers},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, l->threads_per_sm},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, l->blocks_per_sm},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, m->clock_mhz * 1000},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, m->memory_mhz * 1000},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, m->bus_bits},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, m->l2_kib * KIB},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, m->integrated},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i].attribute == attribute) return *value = own[i].value, 1;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (fixed[i].attribute == attribute) return *value = fixed[i].value, 1;
    return 0;
}

int models_warp_registers(int registers)
{
    return (registers * 32 + 255) / 256 * 256;
}

int models_blocks_per_sm(const model *m, int threads, int registers, uint64_t shared)
{
    const model_limits *l = m->limits;
    const int warps = (threads + 31) / 32;
    const uint64_t unit = (uint64_t)l->shared_unit;
    const uint64_t block_shared = (shared + (uint64_t)l->shared_reserved + unit - 1) / unit * unit;
    uint64_t blocks = (uint64_t)l->blocks_per_sm;
    const uint64_t by[] = {
        (uint64_t)(l->registers / (models_warp_registers(registers ? registers : 1) * warps)),
        (uint64_t)(l->threads_per_sm / (warps * 32)),
        block_shared ? (uint64_t)l->shared_per_sm / block_shared : blocks,
    };
    for (size_t i = 0; i < sizeof by / sizeof by[0]; i++)
        if (by[i] < blocks) blocks = by[i];
    return (int)blocks;
}
