/* The table of fake_cuda.h: the end of fake_cuda.c, whose state it reads and sets. */
#ifndef JG_TESTS_FAKE_CONTROLS_H
#define JG_TESTS_FAKE_CONTROLS_H

static int call_of(const char *symbol)
{
    for (int i = 0; i < CALLS; i++)
        if (strcmp(symbols[i], symbol) == 0) return i;
    fprintf(stderr, "the driver table has no %s\n", symbol);
    abort();
}

static void reset(void)
{
    pthread_mutex_lock(&lock);
    depth = 0;
    mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    while (fake.modules) free_module(&fake.modules);
    while (fake.blocks) {
        block *b = fake.blocks;
        fake.blocks = b->next;
        free(b->memory);
        free(b);
    }
    while (fake.contexts) {
        CUcontext context = fake.contexts;
        fake.contexts = context->next;
        free(context);
    }
    memset(&fake, 0, sizeof fake);
    fake.devices = 1;
    fake.version = 13000;
    for (int i = 0; i < CU_DEVICE_ATTRIBUTE_MAX; i++) fake.attributes[i] = -1;
    for (size_t i = 0; i < sizeof orin / sizeof orin[0]; i++) fake.attributes[orin[i].attribute] = orin[i].value;
    pthread_mutex_unlock(&lock);
}

/* Setters and getters of one member each. */
#define SETTER(name, type, member)       \
    static void name(type value)         \
    {                                    \
        pthread_mutex_lock(&lock);       \
        fake.member = value;             \
        pthread_mutex_unlock(&lock);     \
    }
SETTER(set_devices, int, devices)
SETTER(set_version, int, version)
SETTER(refuse_cubins, CUresult, refuse_cubins)
SETTER(refuse_ptx, CUresult, refuse_ptx)
SETTER(delay_loads, int, delay_ms)

static void set_attribute(CUdevice_attribute attribute, int value)
{
    pthread_mutex_lock(&lock);
    fake.attributes[attribute] = value;
    pthread_mutex_unlock(&lock);
}

static void set_capability(int number)
{
    set_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, number / 10);
    set_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, number % 10);
}

static void fail_call(const char *symbol, unsigned nth, CUresult result, fake_failure how)
{
    int call = call_of(symbol);
    pthread_mutex_lock(&lock);
    fake.failures[call] = (failure){fake.calls[call] + nth, result, how};
    pthread_mutex_unlock(&lock);
}

static void set_capturing(CUstream stream, CUstreamCaptureStatus status)
{
    pthread_mutex_lock(&lock);
    capture *c = find_capture(stream);
    if (!c) {
        if (fake.capture_count == MAX_CAPTURES) abort();
        c = &fake.captures[fake.capture_count++];
    }
    *c = (capture){stream, status};
    pthread_mutex_unlock(&lock);
}

static CUstreamCaptureMode get_mode(void)
{
    return mode;
}

static uint64_t calls(const char *symbol)
{
    int call = call_of(symbol);
    pthread_mutex_lock(&lock);
    uint64_t count = fake.calls[call];
    pthread_mutex_unlock(&lock);
    return count;
}

static uint64_t all_calls(void)
{
    uint64_t count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < CALLS; i++) count += fake.calls[i];
    pthread_mutex_unlock(&lock);
    return count;
}

static size_t modules(void)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (CUmodule m = fake.modules; m; m = m->next) count++;
    pthread_mutex_unlock(&lock);
    return count;
}

static int is_loaded(const char *kernel)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    for (CUmodule m = fake.modules; m; m = m->next)
        for (CUfunction f = m->functions; f; f = f->next) found |= strcmp(f->name, kernel) == 0;
    pthread_mutex_unlock(&lock);
    return found;
}

static fake_launch last_launch(void)
{
    pthread_mutex_lock(&lock);
    fake_launch last = fake.last;
    pthread_mutex_unlock(&lock);
    return last;
}

static size_t allocations(void)
{
    size_t count = 0;
    pthread_mutex_lock(&lock);
    for (block *b = fake.blocks; b; b = b->next) count++;
    pthread_mutex_unlock(&lock);
    return count;
}

static int primary_references(void)
{
    pthread_mutex_lock(&lock);
    int count = fake.primary_references;
    pthread_mutex_unlock(&lock);
    return count;
}

static CUcontext make_context(void)
{
    pthread_mutex_lock(&lock);
    CUcontext context = add_context(0);
    pthread_mutex_unlock(&lock);
    return context;
}

static void push(CUcontext context)
{
    if (depth == MAX_DEPTH) abort();
    stack[depth++] = context;
}

static CUcontext pop(void)
{
    return depth ? stack[--depth] : NULL;
}

static int get_depth(void)
{
    return depth;
}

static const char *misuse(void)
{
    return fake.misuse;
}

static const char *leaks(void)
{
    snprintf(fake.leaks, sizeof fake.leaks, "%zu modules, %zu allocations, %d references, a stack of %d", modules(), allocations(),
             primary_references(), depth);
    return strcmp(fake.leaks, "0 modules, 0 allocations, 0 references, a stack of 0") == 0 ? "" : fake.leaks;
}

extern const fake_controls fake_cuda_controls;
__attribute__((visibility("default"))) const fake_controls fake_cuda_controls = {
    .reset = reset, .set_capability = set_capability, .set_attribute = set_attribute, .set_devices = set_devices,
    .set_version = set_version, .refuse_cubins = refuse_cubins, .refuse_ptx = refuse_ptx, .delay_loads = delay_loads,
    .fail_call = fail_call, .calls = calls, .all_calls = all_calls, .modules = modules, .is_loaded = is_loaded,
    .last_launch = last_launch, .allocations = allocations, .primary_references = primary_references,
    .make_context = make_context, .push = push, .pop = pop, .current = current, .depth = get_depth,
    .set_capturing = set_capturing, .capture_mode = get_mode, .misuse = misuse, .leaks = leaks,
};

#endif
