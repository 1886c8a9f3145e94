/* Error codes by number and by name. Codes that older headers lack are there all the same, by number: a fault on demand
 * may ask for them, and the library answers like a driver of CUDA 13 whatever it was built with. */
#include "errors.h"

#include <string.h>

static const struct {
    int code;
    const char *name, *text;
} rows[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "the driver is not initialised"},
    {4, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"},
    {5, "CUDA_ERROR_PROFILER_DISABLED", "the profiler is disabled"},
    {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "the profiler is not initialised"},
    {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "the profiler is already started"},
    {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "the profiler is already stopped"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the driver library is a stub"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "this call needs a newer driver"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the devices are busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "there is no CUDA device"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "the device has no licence"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "the kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "the context is already current"},
    {205, "CUDA_ERROR_MAP_FAILED", "mapping failed"},
    {206, "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", "the array is mapped"},
    {208, "CUDA_ERROR_ALREADY_MAPPED", "already mapped"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image runs on this device"},
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", "already acquired"},
    {211, "CUDA_ERROR_NOT_MAPPED", "not mapped"},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "not mapped as an array"},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "not mapped as a pointer"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "an uncorrectable memory error"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "this limit is not supported"},
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "another thread uses the context"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "no peer access between these devices"},
    {218, "CUDA_ERROR_INVALID_PTX", "the PTX could not be compiled"},
    {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "invalid graphics context"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "an uncorrectable NVLink error"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "there is no PTX compiler"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX version is newer than this driver"},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "compiling PTX is disabled"},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "this execution affinity is not supported"},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "synchronising on the device is not supported"},
    {226, "CUDA_ERROR_CONTAINED", "a contained hardware error"},
    {300, "CUDA_ERROR_INVALID_SOURCE", "invalid kernel source"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a shared object lacks a symbol"},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a shared object failed to initialise"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "an operating system call failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the resource is in a state that does not allow this"},
    {402, "CUDA_ERROR_LOSSY_QUERY", "the answer would lose information"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "not ready yet"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the launch needs too many resources"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch took too long"},
    {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "the launch uses an incompatible texturing mode"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is not enabled"},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context is already active"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is destroyed"},
    {710, "CUDA_ERROR_ASSERT", "an assertion on the device failed"},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", "too many peers"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is already registered"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "a stack error on the device"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "an address of the wrong space"},
    {718, "CUDA_ERROR_INVALID_PC", "an invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "the launch failed"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in a cooperative launch"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "a kernel kept tensor memory"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "the system is not ready"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "the kernel driver and the user driver do not match"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "this device does not support forward compatibility"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "no connection to the MPS server"},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", "a call to the MPS server failed"},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "the MPS server is not ready"},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the MPS server has no room for another client"},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "the MPS server has no room for another connection"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS server ended this client"},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "launches from the device are not supported"},
    {812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "two versions of launches from the device do not mix"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not allowed while a stream is captured"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error ended the capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would merge"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin in this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "the capture has work that was not joined"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a dependency would leave the capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "an implicit dependency on a capturing stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "the event belongs to a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "another thread began the capture"},
    {909, "CUDA_ERROR_TIMEOUT", "timed out"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph could not be updated"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "an error in a device outside CUDA"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster size"},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "the function is not loaded"},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "invalid resource type"},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "invalid resource configuration"},
    {916, "CUDA_ERROR_KEY_ROTATION", "a key rotation is under way"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

#define ROWS (sizeof rows / sizeof rows[0])

const char *errors_name(CUresult code)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].code == (int)code) return rows[i].name;
    return NULL;
}

const char *errors_text(CUresult code)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].code == (int)code) return rows[i].text;
    return NULL;
}

int errors_number(const char *name, size_t length)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0) return rows[i].code;
    return -1;
}
