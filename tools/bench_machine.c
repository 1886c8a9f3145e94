/* Reads what decides times beside the code: see bench_machine.h.
 *
 * Every source is optional. NVML's functions are looked up one by one where they are called, so an old library lacks a fact and
 * nothing else; files are read a bounded line at a time, and one that is no text, or no number where one belongs, is as good as
 * not there. No process is started and nothing needs root. */
#include "bench_machine.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define TEXT_MAX 256
#define LINES_MAX 20000 /* of a file; nvpmodel.conf has about a thousand */

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_TEMPERATURE_GPU = 0 };

/* ---- NVML ---- */

typedef int nvml_get(void *device, unsigned *value);
typedef int nvml_get_of(void *device, int which, unsigned *value);
typedef int nvml_get_mode(void *device, unsigned *current, unsigned *pending);

static void *nvml_symbol(const bench_machine *machine, const char *name)
{
    return machine->library ? dlsym(machine->library, name) : NULL;
}

/* The value; -1 if it is unknown. NVML marks what a chip does not have with an error or with all bits set. */
static double nvml_result(int result, unsigned value)
{
    return result == 0 && value != UINT_MAX ? (double)value : -1;
}

static double nvml_value(const bench_machine *machine, const char *name)
{
    unsigned value = 0;
    nvml_get *get = machine->nvml ? (nvml_get *)nvml_symbol(machine, name) : NULL;
    const int result = get ? get(machine->nvml, &value) : -1;
    return nvml_result(result, value);
}

static double nvml_value_of(const bench_machine *machine, const char *name, int which)
{
    unsigned value = 0;
    nvml_get_of *get = machine->nvml ? (nvml_get_of *)nvml_symbol(machine, name) : NULL;
    const int result = get ? get(machine->nvml, which, &value) : -1;
    return nvml_result(result, value);
}

static double nvml_mode(const bench_machine *machine, const char *name)
{
    unsigned current = 0, pending = 0;
    nvml_get_mode *get = machine->nvml ? (nvml_get_mode *)nvml_symbol(machine, name) : NULL;
    const int result = get ? get(machine->nvml, &current, &pending) : -1;
    return nvml_result(result, current);
}

static void nvml_close(bench_machine *machine)
{
    int (*shutdown)(void) = (int (*)(void))nvml_symbol(machine, "nvmlShutdown");
    if (shutdown) shutdown();
    if (machine->library) dlclose(machine->library);
    machine->library = machine->nvml = NULL;
}

static void nvml_open(bench_machine *machine, const char *pci_bus_id, const char *path)
{
    machine->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!machine->library) return;
    int (*init)(void) = (int (*)(void))nvml_symbol(machine, "nvmlInit_v2");
    int (*find)(const char *, void **) = (int (*)(const char *, void **))nvml_symbol(machine, "nvmlDeviceGetHandleByPciBusId_v2");
    if (!init || init() != 0) { /* nothing to shut down */
        dlclose(machine->library);
        machine->library = NULL;
        return;
    }
    /* Without the GPU it still knows the driver's release. */
    if (!find || find(pci_bus_id, &machine->nvml) != 0) machine->nvml = NULL;
}

/* ---- files ---- */

static FILE *open_file(const bench_machine *machine, const char *path)
{
    char whole[PATH_MAX];
    int length = snprintf(whole, sizeof whole, "%s%s", machine->root ? machine->root : "", path);
    return length > 0 && (size_t)length < sizeof whole ? fopen(whole, "re") : NULL;
}

/* Cuts the blanks at both ends and makes tabs spaces; "" if a byte is not printable ASCII: then it is not what it should be. */
static void clean(char *text)
{
    char *start = text + strspn(text, " \t\r\n");
    size_t length = strlen(start);
    while (length > 0 && strchr(" \t\r\n", start[length - 1])) length--;
    for (size_t i = 0; i < length; i++) {
        if (start[i] == '\t') start[i] = ' ';
        if (start[i] < ' ' || start[i] > '~') length = 0;
    }
    memmove(text, start, length);
    text[length] = 0;
}

/* The first line of a file, cleaned; "" if there is none. */
static void read_word(const bench_machine *machine, const char *path, char text[TEXT_MAX])
{
    FILE *file = open_file(machine, path);
    text[0] = 0;
    if (!file) return;
    if (fgets(text, TEXT_MAX, file)) clean(text);
    else text[0] = 0;
    fclose(file);
}

/* The number that a file consists of; -1 if it is none, or negative. */
static double read_number(const bench_machine *machine, const char *path)
{
    char text[TEXT_MAX], *end;
    read_word(machine, path, text);
    double value = strtod(text, &end);
    return isdigit((unsigned char)text[0]) && *end == 0 && value < 1e15 ? value : -1;
}

/* Nonzero if the line is the one, with what is to be known of it in `text` (TEXT_MAX bytes). */
typedef int accept_line(const char *line, const void *user, char *text);

/* The text of the first line of a file that is accepted; "" if there is none. */
static void read_matching(const bench_machine *machine, const char *path, accept_line *accepts, const void *user,
                          char text[TEXT_MAX])
{
    char line[TEXT_MAX];
    FILE *file = open_file(machine, path);
    text[0] = 0;
    if (!file) return;
    for (int i = 0; i < LINES_MAX && fgets(line, sizeof line, file); i++) {
        clean(line);
        if (accepts(line, user, text)) break;
        text[0] = 0;
    }
    fclose(file);
}

/* "key : value" of /proc/cpuinfo. */
static int accept_key(const char *line, const void *key, char *text)
{
    const size_t length = strlen(key);
    if (strncmp(line, key, length) != 0) return 0;
    line += length + strspn(line + length, " ");
    if (*line != ':') return 0;
    snprintf(text, TEXT_MAX, "%s", line + 1);
    clean(text);
    return text[0] != 0;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue ...": the first word of digits and dots. */
static int accept_release(const char *line, const void *user, char *text)
{
    static const char start[] = "NVRM version:";
    (void)user;
    if (strncmp(line, start, sizeof start - 1) != 0) return 0;
    for (line += sizeof start - 1; *line; line += strcspn(line, " ")) {
        line += strspn(line, " ");
        const size_t length = strcspn(line, " ");
        if (length == 0 || !isdigit((unsigned char)*line)) continue;
        if (strspn(line, "0123456789.") != length || !memchr(line, '.', length)) continue;
        snprintf(text, TEXT_MAX, "%.*s", (int)length, line);
        return 1;
    }
    return 0;
}

/* "# R35 (release), REVISION: 4.1, GCID: ..." of /etc/nv_tegra_release. */
static int accept_l4t(const char *line, const void *user, char *text)
{
    char release[4], revision[16];
    (void)user;
    if (sscanf(line, "# R%3[0-9] (release), REVISION: %15[0-9.]", release, revision) != 2) return 0;
    snprintf(text, TEXT_MAX, "L4T %s.%s", release, revision);
    return 1;
}

/* "pmode:0002 fmode:quiet" of nvpmodel's status. */
static int accept_mode(const char *line, const void *user, char *text)
{
    char mode[8];
    (void)user;
    const char *at = strstr(line, "pmode:");
    if (!at || sscanf(at, "pmode:%7[0-9]", mode) != 1) return 0;
    snprintf(text, TEXT_MAX, "%lu", strtoul(mode, NULL, 10));
    return 1;
}

/* "< POWER_MODEL ID=2 NAME=MODE_30W >" of nvpmodel.conf; comments hold a pattern of it. */
static int accept_mode_name(const char *line, const void *mode, char *text)
{
    char id[8], name[64];
    const char *at = line[0] == '#' ? NULL : strstr(line, "POWER_MODEL");
    if (!at || sscanf(at, "POWER_MODEL ID=%7[0-9] NAME=%63[^ >]", id, name) != 2) return 0;
    if (strtoul(id, NULL, 10) != strtoul(mode, NULL, 10)) return 0;
    snprintf(text, TEXT_MAX, "%s", name);
    return 1;
}

/* ---- the GPU's files on a Jetson ---- */

/* Calls `accepts` with each name in a folder, in order of the names, until it returns nonzero. */
static void visit(bench_machine *machine, const char *folder, int (*accepts)(bench_machine *machine, const char *name))
{
    char whole[PATH_MAX];
    struct dirent **entries = NULL;
    int length = snprintf(whole, sizeof whole, "%s%s", machine->root ? machine->root : "", folder);
    if (length < 0 || (size_t)length >= sizeof whole) return;
    const int count = scandir(whole, &entries, NULL, alphasort);
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (!found && entries[i]->d_name[0] != '.') found = accepts(machine, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

/* Each chip has its own name: "17000000.gpu", "57000000.gpu", "17000000.gp10b", ".gv11b", ".ga10b", "gpu-gpc-0". */
static int accept_clocks(bench_machine *machine, const char *name)
{
    static const char *const patterns[] = {"*gpu*", "*gm20b*", "*gp10b*", "*gv11b*", "*ga10b*"};
    char path[sizeof machine->gpu_clocks + 16];
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (fnmatch(patterns[i], name, 0) != 0) continue;
        snprintf(machine->gpu_clocks, sizeof machine->gpu_clocks, "/sys/class/devfreq/%s", name);
        snprintf(path, sizeof path, "%s/cur_freq", machine->gpu_clocks);
        if (read_number(machine, path) >= 0) return 1;
        machine->gpu_clocks[0] = 0;
    }
    return 0;
}

/* A zone may be there and give no value while the GPU sleeps, so only its type is asked. */
static int accept_zone(bench_machine *machine, const char *name)
{
    char path[NAME_MAX + 64], type[TEXT_MAX];
    if (strncmp(name, "thermal_zone", 12) != 0) return 0;
    snprintf(path, sizeof path, "/sys/class/thermal/%s/type", name);
    read_word(machine, path, type);
    if (!strcasestr(type, "gpu")) return 0;
    snprintf(machine->gpu_temperature, sizeof machine->gpu_temperature, "/sys/class/thermal/%s/temp", name);
    return 1;
}

/* A file in the folder of the GPU's clocks, in MHz; -1 if it is unknown. */
static double file_mhz(const bench_machine *machine, const char *name)
{
    char path[sizeof machine->gpu_clocks + 32];
    if (!machine->gpu_clocks[0]) return -1;
    snprintf(path, sizeof path, "%s/%s", machine->gpu_clocks, name);
    const double hertz = read_number(machine, path);
    return hertz >= 0 ? hertz / 1e6 : -1;
}

/* ---- what others call ---- */

void bench_machine_open_at(bench_machine *machine, const char *pci_bus_id, const char *nvml, const char *root)
{
    *machine = (bench_machine){.gpu = pci_bus_id && *pci_bus_id, .root = root};
    if (!machine->gpu) return;
    nvml_open(machine, pci_bus_id, nvml);
    visit(machine, "/sys/class/devfreq", accept_clocks);
    visit(machine, "/sys/class/thermal", accept_zone);
}

void bench_machine_open(bench_machine *machine, const char *pci_bus_id)
{
    bench_machine_open_at(machine, pci_bus_id, "libnvidia-ml.so.1", NULL);
}

void bench_machine_close(bench_machine *machine)
{
    nvml_close(machine);
    *machine = (bench_machine){0};
}

bench_conditions bench_machine_conditions(const bench_machine *machine)
{
    bench_conditions now = {
        .sm_mhz = nvml_value_of(machine, "nvmlDeviceGetClockInfo", NVML_CLOCK_SM),
        .memory_mhz = nvml_value_of(machine, "nvmlDeviceGetClockInfo", NVML_CLOCK_MEMORY),
        .temperature_c = nvml_value_of(machine, "nvmlDeviceGetTemperature", NVML_TEMPERATURE_GPU),
        .power_w = nvml_value(machine, "nvmlDeviceGetPowerUsage"),
    };
    if (now.power_w >= 0) now.power_w /= 1000;
    if (now.sm_mhz < 0) now.sm_mhz = file_mhz(machine, "cur_freq");
    if (now.temperature_c < 0 && machine->gpu_temperature[0]) {
        const double thousandths = read_number(machine, machine->gpu_temperature);
        now.temperature_c = thousandths >= 0 ? thousandths / 1000 : -1;
    }
    return now;
}

/* ---- the description ---- */

/* Each returns 0, or -1 if memory ran out; what is unknown is not added. */
static int add_text(cJSON *object, const char *name, const char *text)
{
    return !text[0] || cJSON_AddStringToObject(object, name, text) ? 0 : -1;
}

static int add_number(cJSON *object, const char *name, double value)
{
    return value < 0 || cJSON_AddNumberToObject(object, name, value) ? 0 : -1;
}

static int add_switch(cJSON *object, const char *name, double value)
{
    return (value != 0 && value != 1) || cJSON_AddBoolToObject(object, name, value == 1) ? 0 : -1;
}

static void find_release(const bench_machine *machine, char text[TEXT_MAX])
{
    int (*get)(char *, unsigned) = (int (*)(char *, unsigned))nvml_symbol(machine, "nvmlSystemGetDriverVersion");
    text[0] = 0;
    if (get && get(text, TEXT_MAX) == 0) {
        text[TEXT_MAX - 1] = 0;
        clean(text);
        if (text[0]) return;
    }
    read_matching(machine, "/proc/driver/nvidia/version", accept_release, NULL, text);
    if (!text[0]) read_matching(machine, "/etc/nv_tegra_release", accept_l4t, NULL, text);
}

/* On ARM the kernel gives no model name; a Jetson's board says more than the number of its cores' design. */
static void find_processor(const bench_machine *machine, char text[TEXT_MAX])
{
    char part[TEXT_MAX];
    read_matching(machine, "/proc/cpuinfo", accept_key, "model name", text);
    if (!text[0]) read_word(machine, "/proc/device-tree/model", text);
    if (text[0]) return;
    read_matching(machine, "/proc/cpuinfo", accept_key, "CPU part", part);
    if (part[0]) snprintf(text, TEXT_MAX, "CPU part %.32s", part);
}

/* The name; "mode 2" if only the number is known. */
static void find_power_mode(const bench_machine *machine, char text[TEXT_MAX])
{
    char mode[TEXT_MAX];
    text[0] = 0;
    read_matching(machine, "/var/lib/nvpmodel/status", accept_mode, NULL, mode);
    if (!mode[0]) return;
    read_matching(machine, "/etc/nvpmodel.conf", accept_mode_name, mode, text);
    if (!text[0]) snprintf(text, TEXT_MAX, "mode %.8s", mode);
}

static int describe_host(const bench_machine *machine, cJSON *object)
{
    char text[TEXT_MAX];
    struct utsname kernel;
    if (uname(&kernel) == 0) {
        snprintf(text, sizeof text, "%s %s", kernel.sysname, kernel.release);
        clean(text);
        if (add_text(object, "kernel", text) != 0) return -1;
    }
    find_processor(machine, text);
    if (add_text(object, "processor", text) != 0) return -1;
    read_word(machine, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text);
    if (add_text(object, "governor", text) != 0) return -1;
    find_power_mode(machine, text);
    return add_text(object, "power_mode", text);
}

int bench_machine_describe(const bench_machine *machine, cJSON *object)
{
    char text[TEXT_MAX];
    if (describe_host(machine, object) != 0) return -1;
    if (!machine->gpu) return 0;
    find_release(machine, text);
    const double limit = nvml_value(machine, "nvmlDeviceGetEnforcedPowerLimit");
    double sm = nvml_value_of(machine, "nvmlDeviceGetMaxClockInfo", NVML_CLOCK_SM);
    if (sm < 0) sm = file_mhz(machine, "max_freq");
    const double memory = nvml_value_of(machine, "nvmlDeviceGetMaxClockInfo", NVML_CLOCK_MEMORY);
    if (add_text(object, "driver_release", text) != 0) return -1;
    if (add_number(object, "power_limit_w", limit < 0 ? -1 : limit / 1000) != 0) return -1;
    if (add_number(object, "clock_sm_max_mhz", sm) != 0) return -1;
    if (add_number(object, "clock_memory_max_mhz", memory) != 0) return -1;
    if (add_switch(object, "persistence", nvml_value(machine, "nvmlDeviceGetPersistenceMode")) != 0) return -1;
    if (add_switch(object, "ecc", nvml_mode(machine, "nvmlDeviceGetEccMode")) != 0) return -1;
    return add_switch(object, "mig", nvml_mode(machine, "nvmlDeviceGetMigMode"));
}
