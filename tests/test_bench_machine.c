/* tools/bench_machine.c on trees of files as a server and as Jetsons have them, with an NVML that is a stand-in, and where
 * everything is missing or makes no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tests/fake_nvml.h"
#include "tests/scratch.h"
#include "tools/bench_machine.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char root[4096];
static char nvml[4096], old_nvml[4096];
static const char no_nvml[] = "/nowhere/libnvidia-ml.so.1";
static void *library;
static fake_nvml *controls;

/* ---- trees ---- */

/* The file below the root; its folders are made. */
static const char *place(const char *name)
{
    const char *file = scratch_path(root, name);
    char folder[8192];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%s/%.*s", root, (int)(slash - name), name);
        mkdir(folder, 0755);
    }
    return file;
}

static void put(const char *name, const char *text)
{
    scratch_write(place(name), text, strlen(text));
}

#define CPUINFO "proc/cpuinfo"
#define GOVERNOR "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
#define RELEASE "proc/driver/nvidia/version"
#define MODE "var/lib/nvpmodel/status"
#define MODES "etc/nvpmodel.conf"
#define BOARD "proc/device-tree/model"
#define DEVFREQ "sys/class/devfreq/"
#define THERMAL "sys/class/thermal/"

static void make_server(void)
{
    put(CPUINFO, "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
                 "model name\t: Intel(R) Xeon(R) Platinum 8480+\nflags\t\t: fpu vme\n\n"
                 "processor\t: 1\nmodel name\t: another\n");
    put(GOVERNOR, "performance\n");
    put(RELEASE, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U22)\n"
                 "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n");
}

static void make_jetson(void)
{
    put(CPUINFO, "processor\t: 0\nBogoMIPS\t: 62.50\nCPU implementer\t: 0x41\nCPU part\t: 0xd42\n");
    scratch_write(place(BOARD), "NVIDIA Jetson AGX Orin Developer Kit", sizeof "NVIDIA Jetson AGX Orin Developer Kit");
    put(GOVERNOR, "schedutil\n");
    put("etc/nv_tegra_release", "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64, DATE: Tue\n");
    put(MODE, "pmode:0002 fmode:quiet\n");
    put(MODES, "# < POWER_MODEL ID=2 NAME=a_pattern >\n< PARAM TYPE=FILE NAME=CPU_ONLINE >\nCORE_0 /sys/x\n"
               "< POWER_MODEL ID=0 NAME=MAXN >\nCPU_ONLINE CORE_0 1\n< POWER_MODEL ID=20 NAME=MODE_50W >\n"
               "< POWER_MODEL ID=2 NAME=MODE_30W >\n< PM_CONFIG DEFAULT=2 >\n");
    put(DEVFREQ "15340000.vic/cur_freq", "115200000\n");
    put(DEVFREQ "17000000.ga10b/cur_freq", "612000000\n");
    put(DEVFREQ "17000000.ga10b/max_freq", "1300500000\n");
    put(THERMAL "cooling_device0/type", "gpu-throttle\n");
    put(THERMAL "thermal_zone0/type", "CPU-therm\n");
    put(THERMAL "thermal_zone0/temp", "48000\n");
    put(THERMAL "thermal_zone1/type", "GPU-therm\n");
    put(THERMAL "thermal_zone1/temp", "44250\n");
}

/* ---- what is expected ---- */

/* The description of a machine; the caller deletes it. */
static cJSON *describe(const bench_machine *machine)
{
    cJSON *object = cJSON_CreateObject();
    assert_non_null(object);
    assert_int_equal(bench_machine_describe(machine, object), 0);
    return object;
}

/* One object as text, without the kernel, which no tree changes. */
static void check_description(const bench_machine *machine, const char *expected)
{
    struct utsname kernel;
    char name[sizeof kernel.sysname + sizeof kernel.release + 2];
    cJSON *object = describe(machine);
    assert_int_equal(uname(&kernel), 0);
    snprintf(name, sizeof name, "%s %s", kernel.sysname, kernel.release);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(object, "kernel")), name);
    cJSON_DeleteItemFromObject(object, "kernel");
    char *text = cJSON_PrintUnformatted(object);
    assert_string_equal(text, expected);
    cJSON_free(text);
    cJSON_Delete(object);
}

static void check_conditions(const bench_machine *machine, double sm, double memory, double temperature, double power)
{
    const bench_conditions now = bench_machine_conditions(machine);
    assert_true(now.sm_mhz == sm);
    assert_true(now.memory_mhz == memory);
    assert_true(now.temperature_c == temperature);
    assert_true(now.power_w == power);
}

/* Opens, checks all that is known, closes. */
static void check(const char *bus_id, const char *path, const char *description, bench_conditions now)
{
    bench_machine machine = {0};
    bench_machine_open_at(&machine, bus_id, path, root);
    check_description(&machine, description);
    check_conditions(&machine, now.sm_mhz, now.memory_mhz, now.temperature_c, now.power_w);
    bench_machine_close(&machine);
    check_conditions(&machine, -1, -1, -1, -1);
}

static const bench_conditions unknown = {-1, -1, -1, -1}, of_nvml = {1755, 2619, 41, 118.25};

#define SERVER "\"processor\":\"Intel(R) Xeon(R) Platinum 8480+\",\"governor\":\"performance\""
#define JETSON "\"processor\":\"NVIDIA Jetson AGX Orin Developer Kit\",\"governor\":\"schedutil\",\"power_mode\":\"MODE_30W\""
#define CLOCKS "\"power_limit_w\":700,\"clock_sm_max_mhz\":1980,\"clock_memory_max_mhz\":3201"

/* ---- a server ---- */

static void a_server(void **state)
{
    (void)state;
    make_server();
    check(FAKE_NVML_BUS_ID, nvml,
          "{" SERVER ",\"driver_release\":\"580.95.05\"," CLOCKS ",\"persistence\":true,\"ecc\":true,\"mig\":false}", of_nvml);
    assert_int_equal(controls->opened, 1);
    assert_int_equal(controls->closed, 1);
}

/* The driver is not asked, and nothing of a GPU is told that does not compute. */
static void no_gpu(void **state)
{
    (void)state;
    make_jetson();
    put(RELEASE, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\n");
    check(NULL, nvml, "{" JETSON "}", unknown);
    check("", nvml, "{" JETSON "}", unknown);
    assert_int_equal(controls->opened, 0);
}

static void the_kernel_module_tells_the_release_too(void **state)
{
    (void)state;
    make_server();
    check(FAKE_NVML_BUS_ID, no_nvml, "{" SERVER ",\"driver_release\":\"570.86.15\"}", unknown);
    put(RELEASE, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\n");
    check(FAKE_NVML_BUS_ID, no_nvml, "{" SERVER ",\"driver_release\":\"470.256.02\"}", unknown);
    controls->refused = "nvmlSystemGetDriverVersion";
    check("0000:17:00.0", nvml, "{" SERVER ",\"driver_release\":\"470.256.02\"}", unknown);
}

/* The GPU is not known, the driver is. */
static void another_gpu(void **state)
{
    (void)state;
    make_server();
    check("0000:17:00.0", nvml, "{" SERVER ",\"driver_release\":\"580.95.05\"}", unknown);
    assert_int_equal(controls->closed, 1);
}

static void nvml_without_some_functions(void **state)
{
    (void)state;
    make_server();
    check(FAKE_NVML_BUS_ID, old_nvml, "{" SERVER ",\"driver_release\":\"580.95.05\"," CLOCKS ",\"persistence\":true}", of_nvml);
}

/* Any library without its functions. */
static void nvml_without_any_function(void **state)
{
    (void)state;
    make_server();
    check(FAKE_NVML_BUS_ID, "libm.so.6", "{" SERVER ",\"driver_release\":\"570.86.15\"}", unknown);
}

static void nvml_that_refuses(void **state)
{
    (void)state;
    static const struct {
        const char *function, *missing;
    } cases[] = {{"nvmlDeviceGetEnforcedPowerLimit", "power_limit_w"}, {"nvmlDeviceGetMaxClockInfo", "clock_sm_max_mhz"},
                 {"nvmlDeviceGetPersistenceMode", "persistence"},      {"nvmlDeviceGetEccMode", "ecc"},
                 {"nvmlDeviceGetMigMode", "mig"}};
    make_server();
    for (size_t i = 0; i < COUNT(cases); i++) {
        bench_machine machine = {0};
        controls->refused = cases[i].function;
        bench_machine_open_at(&machine, FAKE_NVML_BUS_ID, nvml, root);
        cJSON *object = describe(&machine);
        for (size_t k = 0; k < COUNT(cases); k++)
            assert_int_equal(cJSON_HasObjectItem(object, cases[k].missing), k != i);
        cJSON_Delete(object);
        bench_machine_close(&machine);
    }
    controls->refused = "nvmlDeviceGetClockInfo";
    bench_machine machine = {0};
    bench_machine_open_at(&machine, FAKE_NVML_BUS_ID, nvml, root);
    check_conditions(&machine, -1, -1, 41, 118.25);
    controls->refused = "nvmlDeviceGetPowerUsage";
    check_conditions(&machine, 1755, 2619, 41, -1);
    controls->refused = "nvmlDeviceGetTemperature";
    check_conditions(&machine, 1755, 2619, -1, 118.25);
    bench_machine_close(&machine);
    controls->refused = "all";
    check(FAKE_NVML_BUS_ID, nvml, "{" SERVER ",\"driver_release\":\"570.86.15\"}", unknown);
    /* what did not open is not shut down */
    controls->refused = "nvmlInit_v2";
    controls->closed = 0;
    check(FAKE_NVML_BUS_ID, nvml, "{" SERVER ",\"driver_release\":\"570.86.15\"}", unknown);
    assert_int_equal(controls->closed, 0);
}

/* All bits set is how NVML says "not available"; a mode is off or on; a release is printable. */
static void nvml_with_values_that_make_no_sense(void **state)
{
    (void)state;
    make_server();
    controls->value = 0xffffffff;
    controls->release = "\xff\x01garbage";
    check(FAKE_NVML_BUS_ID, nvml, "{" SERVER ",\"driver_release\":\"570.86.15\"}", unknown);
    controls->value = 7000;
    controls->release = "";
    check(FAKE_NVML_BUS_ID, nvml,
          "{" SERVER ",\"driver_release\":\"570.86.15\",\"power_limit_w\":7,\"clock_sm_max_mhz\":7000,"
          "\"clock_memory_max_mhz\":7000}",
          (bench_conditions){7000, 7000, 7000, 7});
}

/* ---- a Jetson ---- */

static void a_jetson(void **state)
{
    (void)state;
    make_jetson();
    check("0000:00:00.0", no_nvml, "{" JETSON ",\"driver_release\":\"L4T 35.4.1\",\"clock_sm_max_mhz\":1300.5}",
          (bench_conditions){612, -1, 44.25, -1});
}

/* JetPack 6 has an NVML, which does not know the GPU's clock, and a driver with a release. */
static void a_newer_jetson(void **state)
{
    (void)state;
    make_jetson();
    put(RELEASE, "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.3.0  Release Build  (buildbrain@mobile-u64)\n");
    controls->refused = "nvmlDeviceGetClockInfo";
    check(FAKE_NVML_BUS_ID, old_nvml, "{" JETSON ",\"driver_release\":\"580.95.05\"," CLOCKS ",\"persistence\":true}", of_nvml);
    check("0000:00:00.0", nvml, "{" JETSON ",\"driver_release\":\"580.95.05\",\"clock_sm_max_mhz\":1300.5}",
          (bench_conditions){612, -1, 44.25, -1});
    check(FAKE_NVML_BUS_ID, no_nvml, "{" JETSON ",\"driver_release\":\"540.3.0\",\"clock_sm_max_mhz\":1300.5}",
          (bench_conditions){612, -1, 44.25, -1});
}

static void names_of_the_gpus_clock(void **state)
{
    (void)state;
    static const char *const names[] = {"57000000.gpu", "17000000.gp10b", "17000000.gv11b", "17000000.ga10b", "17000000.gpu",
                                        "gpu-gpc-0"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[128];
        bench_machine machine = {0};
        scratch_remove(root);
        mkdir(root, 0700);
        snprintf(name, sizeof name, DEVFREQ "%s/cur_freq", names[i]);
        put(name, "918000000");
        put(DEVFREQ "gpu-nvd-0/cur_freq", "1\n"); /* of the video decoder, on a Thor: later in order */
        put(DEVFREQ "15480000.nvdec/cur_freq", "2\n");
        bench_machine_open_at(&machine, "0000:00:00.0", no_nvml, root);
        check_conditions(&machine, 918, -1, -1, -1);
        bench_machine_close(&machine);
    }
}

static void power_modes(void **state)
{
    (void)state;
    static const struct {
        const char *status, *modes, *expected;
    } cases[] = {{"pmode:0000", "< POWER_MODEL ID=0 NAME=MAXN >", "{\"power_mode\":\"MAXN\"}"},
                 {"fmode:cool pmode:0012\n", "<POWER_MODEL ID=12 NAME=MODE_15W>\n", "{\"power_mode\":\"MODE_15W\"}"},
                 {"pmode:0003\n", "< POWER_MODEL ID=0 NAME=MAXN >", "{\"power_mode\":\"mode 3\"}"},
                 {"pmode:0003\n", "", "{\"power_mode\":\"mode 3\"}"},
                 {"pmode:\n", "< POWER_MODEL ID=0 NAME=MAXN >", "{}"},
                 {"pmode:-1\n", "< POWER_MODEL ID=0 NAME=MAXN >", "{}"},
                 {"pmode:1\n", "< POWER_MODEL ID=1 NAME= >\n< POWER_MODEL ID= NAME=x >\nPOWER_MODEL\n",
                  "{\"power_mode\":\"mode 1\"}"},
                 {"", "< POWER_MODEL ID=0 NAME=MAXN >", "{}"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        put(MODE, cases[i].status);
        put(MODES, cases[i].modes);
        check(NULL, no_nvml, cases[i].expected, unknown);
    }
}

/* On ARM without a board's name. */
static void processors(void **state)
{
    (void)state;
    put(CPUINFO, "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
    check(NULL, no_nvml, "{\"processor\":\"CPU part 0xd4f\"}", unknown);
    put(CPUINFO, "model name\t:\nmodel name : second\n");
    check(NULL, no_nvml, "{\"processor\":\"second\"}", unknown);
    put(CPUINFO, "model names: one\nCPU part is none\n");
    check(NULL, no_nvml, "{}", unknown);
}

/* ---- nothing, and nonsense ---- */

static void nothing_at_all(void **state)
{
    (void)state;
    check(FAKE_NVML_BUS_ID, no_nvml, "{}", unknown);
    check(NULL, no_nvml, "{}", unknown);
    scratch_remove(root);
    check(FAKE_NVML_BUS_ID, no_nvml, "{}", unknown);
}

/* Files as they should not be. */
static void files_that_make_no_sense(void **state)
{
    (void)state;
    static const char *const files[] = {CPUINFO, GOVERNOR, RELEASE, MODE, MODES, BOARD, "etc/nv_tegra_release",
                                        DEVFREQ "17000000.gpu/cur_freq", DEVFREQ "17000000.gpu/max_freq",
                                        THERMAL "thermal_zone0/type", THERMAL "thermal_zone1/temp"};
    static char bytes[100000];
    static const char *const numbers[] = {"", "-1", "nan", "inf", "1e999", "12x", " ", "\xff", "0x", "99999999999999999999"};
    for (int kind = 0; kind < 5; kind++) {
        uint32_t random = 1;
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 1664525 + 1013904223;
            const char of_kind[] = {(char)(random >> 24), 0, '\n', '\x80', (char)(random >> 27)};
            bytes[i] = of_kind[kind];
        }
        for (size_t i = 0; i < COUNT(files); i++) scratch_write(place(files[i]), bytes, sizeof bytes);
        put(THERMAL "thermal_zone1/type", "gpu\n");
        check(FAKE_NVML_BUS_ID, no_nvml, "{}", unknown);
    }
    for (size_t k = 0; k < COUNT(numbers); k++) {
        put(DEVFREQ "17000000.gpu/cur_freq", "5000000"); /* or the folder is not taken */
        put(DEVFREQ "17000000.gpu/max_freq", numbers[k]);
        put(THERMAL "thermal_zone1/temp", numbers[k]);
        check(FAKE_NVML_BUS_ID, no_nvml, "{}", (bench_conditions){5, -1, -1, -1});
    }
}

static void folders_in_place_of_files(void **state)
{
    (void)state;
    static const char *const files[] = {CPUINFO "/x", GOVERNOR "/x", RELEASE "/x", MODE "/x", MODES "/x", BOARD "/x",
                                        DEVFREQ "1.gpu/cur_freq/x", THERMAL "thermal_zone0/type/x"};
    for (size_t i = 0; i < COUNT(files); i++) put(files[i], "x");
    check(FAKE_NVML_BUS_ID, no_nvml, "{}", unknown);
    scratch_remove(root);
    mkdir(root, 0700);
    put("sys/class/devfreq", "x");
    put("sys/class/thermal", "x");
    check(FAKE_NVML_BUS_ID, no_nvml, "{}", unknown);
}

/* A name as long as a name can be still fits; a root that is too long has no files. */
static void long_names(void **state)
{
    (void)state;
    char name[256], path[512], far[5000];
    bench_machine machine = {0};
    memset(name, 'a', sizeof name - 1);
    memcpy(name, "gpu", 3);
    name[sizeof name - 1] = 0;
    snprintf(path, sizeof path, DEVFREQ "%s/cur_freq", name);
    put(path, "7000000\n");
    memcpy(name, "thermal_zone", 12);
    snprintf(path, sizeof path, THERMAL "%s/type", name);
    put(path, "gpu\n");
    snprintf(path, sizeof path, THERMAL "%s/temp", name);
    put(path, "8000\n");
    check(FAKE_NVML_BUS_ID, no_nvml, "{}", (bench_conditions){7, -1, 8, -1});
    memset(far, '/', sizeof far - 1);
    far[sizeof far - 1] = 0;
    bench_machine_open_at(&machine, FAKE_NVML_BUS_ID, no_nvml, far);
    check_description(&machine, "{}");
    bench_machine_close(&machine);
}

/* ---- this machine, and memory ---- */

/* Whatever it is: nothing fails, and nothing is printed. */
static void this_machine_in_silence(void **state)
{
    (void)state;
    const char *file = place("printed");
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO), fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bench_machine machine = {0}, none = {0};
    struct stat info;
    fflush(NULL);
    assert_true(fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    bench_machine_open(&machine, "0000:65:00.0");
    const bench_conditions now = bench_machine_conditions(&machine);
    cJSON *object = describe(&machine);
    bench_machine_close(&machine);
    bench_machine_close(&machine);
    bench_machine_close(&none);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    assert_int_equal(fstat(fd, &info), 0);
    close(fd);
    close(out);
    close(err);
    assert_int_equal(info.st_size, 0);
    assert_true(now.sm_mhz >= -1 && now.memory_mhz >= -1 && now.temperature_c >= -1 && now.power_w >= -1);
    assert_true(cJSON_HasObjectItem(object, "kernel"));
    cJSON_Delete(object);
}

static int allocations_left;

static void *allocate(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void memory_runs_out(void **state)
{
    (void)state;
    bench_machine machine = {0};
    int failures = 0;
    make_jetson();
    bench_machine_open_at(&machine, FAKE_NVML_BUS_ID, nvml, root);
    cJSON_InitHooks(&(cJSON_Hooks){allocate, free});
    for (int allowed = 0;; allowed++) {
        allocations_left = 1;
        cJSON *object = cJSON_CreateObject();
        allocations_left = allowed;
        const int result = bench_machine_describe(&machine, object);
        cJSON_Delete(object);
        if (result == 0) break;
        failures++;
    }
    cJSON_InitHooks(NULL);
    bench_machine_close(&machine);
    /* 11 facts: each has an item and a name, and 5 are texts */
    assert_int_equal(failures, 11 * 2 + 5);
}

/* ---- the frame ---- */

static int before(void **state)
{
    (void)state;
    scratch_make(root);
    *controls = (fake_nvml){0};
    return 0;
}

static int after(void **state)
{
    (void)state;
    scratch_remove(root);
    return 0;
}

/* The stand-in stays loaded, so that what a test sets lasts; so does the older one, whose controls stay as they are. */
static int load(void **state)
{
    (void)state;
    const char *build = getenv("JG_TEST_BUILD_DIR");
    snprintf(nvml, sizeof nvml, "%s/tests/libfake_nvml.so", build ? build : "build");
    snprintf(old_nvml, sizeof old_nvml, "%s/tests/libfake_nvml_old.so", build ? build : "build");
    library = dlopen(nvml, RTLD_NOW | RTLD_LOCAL);
    if (!library) print_error("%s\n", dlerror());
    controls = library ? dlsym(library, "fake_nvml_controls") : NULL;
    return controls ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    return dlclose(library);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, before, after)
    const struct CMUnitTest tests[] = {
        TEST(a_server),
        TEST(no_gpu),
        TEST(the_kernel_module_tells_the_release_too),
        TEST(another_gpu),
        TEST(nvml_without_some_functions),
        TEST(nvml_without_any_function),
        TEST(nvml_that_refuses),
        TEST(nvml_with_values_that_make_no_sense),
        TEST(a_jetson),
        TEST(a_newer_jetson),
        TEST(names_of_the_gpus_clock),
        TEST(power_modes),
        TEST(processors),
        TEST(nothing_at_all),
        TEST(files_that_make_no_sense),
        TEST(folders_in_place_of_files),
        TEST(long_names),
        TEST(this_machine_in_silence),
        TEST(memory_runs_out),
    };
    return cmocka_run_group_tests_name("bench_machine", tests, load, unload);
}
