/* Images and loaded kernels of a context: memory, then disk, then the compiler.
 *
 * The two steps are kept apart: kernels_image deals in bytes and never touches the device; kernels_obtain loads them.
 * A fault of the disk cache costs a compile and one warning, never a call. */
#include "context.h"
#include "hash.h"
#include "status.h"
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void store_fault(jg_context *c, const char *what)
{
    atomic_fetch_add(&c->disk_faults, 1);
    if (!atomic_exchange(&c->store_warned, 1))
        context_log(c, JG_LOG_WARNING, "cache %s: %s: %s; going on without (said once)", c->cache_path, what, store_error(c->store));
}

/* Copies the blobs of a record. Returns 0 if out of memory. */
static int image_from_record(const store_record *record, image *out)
{
    memset(out, 0, sizeof *out);
    out->cubin = malloc(record->binary_bytes + 1);
    out->ptx = malloc(record->portable_bytes + 1);
    if (!out->cubin || !out->ptx) {
        image_free(out);
        return 0;
    }
    memcpy(out->cubin, record->binary, record->binary_bytes);
    memcpy(out->ptx, record->portable, record->portable_bytes);
    out->ptx[record->portable_bytes] = 0;
    out->cubin_bytes = record->binary_bytes;
    out->ptx_bytes = record->portable_bytes;
    out->compile_ms = record->build_ms;
    return 1;
}

static int read_from_store(jg_context *c, const kernel_key *key, image *out)
{
    if (!c->store) return 0;
    store_record record;
    store_status status = store_get(c->store, key->bytes, sizeof key->bytes, &record);
    if (status == STORE_OK) {
        int taken = image_from_record(&record, out);
        store_record_free(&record);
        if (taken) atomic_fetch_add(&c->disk_hits, 1);
        return taken;
    }
    atomic_fetch_add(&c->disk_misses, 1);
    if (status != STORE_ABSENT) store_fault(c, status == STORE_CORRUPT ? "a damaged kernel was dropped" : "cannot read");
    return 0;
}

static void write_to_store(jg_context *c, const kernel_spec *spec, const kernel_key *key, const char *label, const image *img)
{
    if (!c->store) return;
    char name[KERNEL_NAME_BYTES], defines[2048], target[16];
    kernel_format_name(spec, name);
    kernel_render_defines(spec, defines, sizeof defines);
    snprintf(target, sizeof target, "sm_%d", spec->arch);
    const store_record record = {
        .key = key->bytes,
        .key_bytes = sizeof key->bytes,
        .name = name,
        .target = target,
        .label = label,
        .provenance = img->provenance,
        .binary = img->cubin,
        .binary_bytes = img->cubin_bytes,
        .portable = img->ptx,
        .portable_bytes = img->ptx_bytes,
        .defines = defines,
        .source = template_source(spec->family),
        .build_ms = img->compile_ms,
    };
    if (store_put(c->store, &record, NULL) != STORE_OK) store_fault(c, "cannot write");
}

static jg_status compile_and_store(jg_context *c, const kernel_spec *spec, const kernel_key *key, const char *label, effort how,
                                   image *out)
{
    jg_status status = how == EFFORT_COMPILE_HERE ? compile_here(c->compiler, spec, out) : compile_on_thread(c->compiler, spec, out);
    if (status != JG_OK) {
        atomic_fetch_add(&c->compile_failures, 1);
        return status;
    }
    atomic_fetch_add(&c->compiles, 1);
    atomic_fetch_add(&c->compile_us, (uint64_t)(out->compile_ms * 1e3));
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(spec, name);
    context_log(c, JG_LOG_INFO, "%s: compiled in %.0f ms for %s", name, out->compile_ms, label);
    write_to_store(c, spec, key, label, out);
    return JG_OK;
}

jg_status kernels_image(jg_context *c, const kernel_spec *spec, const char *label, effort how, image *out, jg_source *source)
{
    kernel_key key;
    char name[KERNEL_NAME_BYTES];
    kernel_encode_key(spec, &key);
    kernel_format_name(spec, name);
    if (read_from_store(c, &key, out)) {
        *source = JG_SOURCE_DISK;
        context_log(c, JG_LOG_DEBUG, "%s: from the cache file", name);
        return JG_OK;
    }
    if (how < EFFORT_COMPILE)
        return status_set(JG_ERR_NOT_READY, "%s is not cached and compiling is off; prewarm it, or allow JG_COMPILE_WAIT", name);
    *source = JG_SOURCE_COMPILED;
    return compile_and_store(c, spec, &key, label, how, out);
}

/* --- kernels that do not compile --- */

/* A compile that NVRTC refuses would be refused again: what it said is kept, so that a pipeline that asks on every frame
 * does not start a compiler on every frame. jg_prewarm tries again. */
struct failed {
    kernel_key key;
    jg_status status;
    char text[1024];
    UT_hash_handle hh;
};
#define MAX_FAILED 1024

static int is_lasting(jg_status status)
{
    return status == JG_ERR_COMPILE || status == JG_ERR_ARCH;
}

/* The status of an earlier failure of this kernel, with its text set; JG_OK if there was none. */
static jg_status recall_failure(jg_context *c, const kernel_key *key)
{
    struct failed *f;
    jg_status status = JG_OK;
    pthread_mutex_lock(&c->making_lock);
    HASH_FIND(hh, c->failed, key->bytes, sizeof key->bytes, f);
    if (f) status = status_set(f->status, "%s", f->text);
    pthread_mutex_unlock(&c->making_lock);
    return status;
}

/* Without memory for it the failure is forgotten, which only costs another try. */
static void remember_failure(jg_context *c, const kernel_key *key, jg_status status)
{
    struct failed *f;
    pthread_mutex_lock(&c->making_lock);
    HASH_FIND(hh, c->failed, key->bytes, sizeof key->bytes, f);
    if (!f && HASH_COUNT(c->failed) < MAX_FAILED && (f = calloc(1, sizeof *f))) {
        f->key = *key;
        f->status = status;
        snprintf(f->text, sizeof f->text, "%s", jg_last_error());
        HASH_ADD(hh, c->failed, key.bytes, sizeof f->key.bytes, f);
        if (!f->hh.tbl) free(f);
    }
    pthread_mutex_unlock(&c->making_lock);
}

static void forget_failure(jg_context *c, const kernel_key *key)
{
    struct failed *f;
    pthread_mutex_lock(&c->making_lock);
    HASH_FIND(hh, c->failed, key->bytes, sizeof key->bytes, f);
    if (f) HASH_DEL(c->failed, f);
    pthread_mutex_unlock(&c->making_lock);
    free(f);
}

static void forget_failures(jg_context *c)
{
    struct failed *f, *next;
    HASH_ITER(hh, c->failed, f, next) {
        HASH_DEL(c->failed, f);
        free(f);
    }
}

/* --- kernels under way --- */

/* A set of keys, so that two threads that miss on one kernel make it once. */
struct making {
    kernel_key key;
    UT_hash_handle hh;
};

/* Either finds the kernel loaded, or makes the caller the one who makes it (*mine non-null). */
static lru_entry *find_or_claim(jg_context *c, const kernel_key *key, struct making **mine)
{
    lru_entry *entry;
    struct making *other;
    *mine = NULL;
    pthread_mutex_lock(&c->making_lock);
    while (!(entry = lru_acquire(c->kernels, key->bytes, sizeof key->bytes))) {
        HASH_FIND(hh, c->making, key->bytes, sizeof key->bytes, other);
        if (!other) break;
        pthread_cond_wait(&c->made, &c->making_lock);
    }
    if (!entry && (*mine = malloc(sizeof **mine))) {
        memset(*mine, 0, sizeof **mine);
        (*mine)->key = *key;
        struct making *added = *mine;
        HASH_ADD(hh, c->making, key.bytes, sizeof key->bytes, added);
        if (!added->hh.tbl) {
            free(added);
            *mine = NULL;
        }
    }
    pthread_mutex_unlock(&c->making_lock);
    return entry;
}

static void give_up_claim(jg_context *c, struct making *mine)
{
    pthread_mutex_lock(&c->making_lock);
    HASH_DEL(c->making, mine);
    pthread_cond_broadcast(&c->made);
    pthread_mutex_unlock(&c->making_lock);
    free(mine);
}

/* Loads an image and puts it in the map. */
static jg_status load_and_insert(jg_context *c, const kernel_spec *spec, const kernel_key *key, const image *img, lru_entry **entry)
{
    loaded_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return status_set(JG_ERR_NO_MEMORY, "out of memory loading a kernel");
    device_scope scope;
    jg_status status = device_enter(&c->device, &scope);
    if (status == JG_OK) {
        status = load_kernel(&c->device, spec, img, kernel);
        int existed = 0;
        if (status == JG_OK) {
            *entry = lru_insert(c->kernels, key->bytes, sizeof key->bytes, kernel, kernel->code_bytes, &existed);
            if (!*entry) status = status_set(JG_ERR_NO_MEMORY, "out of memory remembering a kernel");
            if (!*entry || existed) unload_kernel(&c->device, kernel);
        }
        if (status != JG_OK || existed) free(kernel);
        device_leave(&c->device, &scope);
    } else {
        free(kernel);
    }
    return status;
}

/* A cached image that the driver refuses, whatever the reason, costs a compile, not the call. If that fails too, the
 * refusal is what the caller is told. */
static jg_status replace_refused(jg_context *c, const kernel_spec *spec, const kernel_key *key, const char *label, effort how,
                                 lru_entry **entry)
{
    image img;
    status_text refusal;
    status_save(&refusal);
    atomic_fetch_add(&c->disk_faults, 1);
    context_log(c, JG_LOG_WARNING, "%s; compiling it again", refusal.text);
    if (compile_and_store(c, spec, key, label, how, &img) != JG_OK) {
        status_restore(&refusal);
        return JG_ERR_LOAD;
    }
    jg_status status = load_and_insert(c, spec, key, &img, entry);
    image_free(&img);
    return status;
}

/* Brings the image and loads it. */
static jg_status make_kernel(jg_context *c, const kernel_spec *spec, const kernel_key *key, const char *label, effort how,
                             lru_entry **entry, jg_source *source)
{
    image img;
    jg_status status = how == EFFORT_COMPILE ? recall_failure(c, key) : JG_OK;
    if (status != JG_OK) return status;
    status = kernels_image(c, spec, label, how, &img, source);
    if (is_lasting(status)) remember_failure(c, key, status);
    if (status != JG_OK) return status;
    if (how == EFFORT_COMPILE_HERE) forget_failure(c, key);
    status = load_and_insert(c, spec, key, &img, entry);
    image_free(&img);
    if (status != JG_ERR_LOAD || *source != JG_SOURCE_DISK || how < EFFORT_COMPILE) return status;
    *source = JG_SOURCE_COMPILED;
    return replace_refused(c, spec, key, label, how, entry);
}

static jg_status obtain_loaded(jg_context *c, const kernel_spec *spec, const kernel_key *key, lru_entry **entry)
{
    *entry = lru_acquire(c->kernels, key->bytes, sizeof key->bytes);
    if (*entry) return JG_OK;
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(spec, name);
    return status_set(JG_ERR_NOT_READY, "%s is not loaded, and JG_COMPILE_NEVER lets a call neither compile nor load; prewarm it", name);
}

jg_status kernels_obtain(jg_context *c, const kernel_spec *spec, const char *label, effort how, lru_entry **entry, jg_source *source)
{
    kernel_key key;
    struct making *mine;
    kernel_encode_key(spec, &key);
    *source = JG_SOURCE_MEMORY;
    if (how == EFFORT_MEMORY) return obtain_loaded(c, spec, &key, entry);
    *entry = find_or_claim(c, &key, &mine);
    if (*entry) return JG_OK;
    if (!mine) return status_set(JG_ERR_NO_MEMORY, "out of memory making a kernel");
    status_text before;
    status_save(&before);
    jg_status status = make_kernel(c, spec, &key, label, how, entry, source);
    if (status == JG_OK) status_restore(&before); /* something on the way may have failed and been made good */
    give_up_claim(c, mine);
    return status;
}

/* --- eviction --- */

void kernels_drop_dispatch(void *user, void *value)
{
    (void)user;
    dispatch *d = value;
    lru_release(d->kernel_entry);
    free(d);
}

/* What a trim has done so far. */
typedef struct trimming {
    const device *device;
    size_t unloaded;
    jg_status status; /* the first failure */
} trimming;

static void drop_kernel(void *user, void *value)
{
    trimming *t = user;
    jg_status status = unload_kernel(t->device, value);
    if (t->status == JG_OK) t->status = status;
    t->unloaded++;
    free(value);
}

void kernels_trim_problems(jg_context *c)
{
    if (lru_over(c->problems)) lru_trim(c->problems, kernels_drop_dispatch, c);
}

/* A kernel is pinned by every problem that uses it. Evicting problems in order of use frees the kernels in the order
 * of their own last use. Ever more problems at a time, since one kernel can serve most of them. */
jg_status kernels_trim(jg_context *c, size_t *unloaded)
{
    *unloaded = 0;
    kernels_trim_problems(c);
    if (!lru_over(c->kernels)) return JG_OK;
    device_scope scope;
    RETURN_IF_ERROR(device_enter(&c->device, &scope));
    trimming t = {&c->device, 0, JG_OK};
    lru_trim(c->kernels, drop_kernel, &t);
    for (size_t count = 1; lru_over(c->kernels) && lru_evict_oldest(c->problems, count, kernels_drop_dispatch, c); count *= 2)
        lru_trim(c->kernels, drop_kernel, &t);
    device_leave(&c->device, &scope);
    *unloaded = t.unloaded;
    return t.status;
}

void kernels_destroy(jg_context *c)
{
    device_scope scope = {0};
    int entered = !context_is_cpu(c) && device_enter(&c->device, &scope) == JG_OK;
    if (c->problems) lru_destroy(c->problems, kernels_drop_dispatch, c);
    trimming t = {&c->device, 0, JG_OK};
    if (c->kernels) lru_destroy(c->kernels, drop_kernel, &t);
    if (entered) device_leave(&c->device, &scope);
    forget_failures(c);
}
