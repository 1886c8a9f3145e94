/* The bytes of kernels: from the cache file, the factory file, or the compiler. See images.h. */
#include "images.h"

#include "cache/record.h"
#include "hash.h"
#include "options.h"
#include "status.h"
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a compile takes before any was seen, ms: the upper half of what NVRTC 13.0 needs for our templates. */
#define EXPECTED_MS 300.0

/* --- opening and closing --- */

/* A cache that cannot be used is said once and costs compiles, not the context. */
static void open_store(images *i, const jg_options *options)
{
    int no_home = 0;
    char error[1024] = "no HOME and no JITGEMM_CACHE";
    if (options_cache_path(options->cache_path, i->path, sizeof i->path, &no_home) != JG_OK) {
        snprintf(error, sizeof error, "%s", jg_last_error());
    } else if (!no_home) {
        if (!i->path[0]) return; /* asked for */
        if (store_open(i->path, 0, options->cache_max_bytes, &i->store, error, sizeof error) == STORE_OK) return;
    }
    journal_log(&i->journal, JG_LOG_WARNING, "%s; kernels are kept in memory only", error);
    i->path[0] = 0;
}

/* One that nobody asked for by name may be missing. */
static void open_factory(images *i, const jg_options *options)
{
    char error[1024];
    const int named = options_factory_path(options->factory_path, i->factory_path, sizeof i->factory_path);
    if (!i->factory_path[0]) return;
    if (store_open(i->factory_path, STORE_READ_ONLY | STORE_IMMUTABLE, 0, &i->factory, error, sizeof error) == STORE_OK) return;
    journal_log(&i->journal, named ? JG_LOG_WARNING : JG_LOG_INFO, "%s; going on without the factory file", error);
    i->factory_path[0] = 0;
}

/* Returns 0 if out of memory. */
static int open_compiler(images *i, const jg_options *options, int line_info)
{
    char helper[4096];
    i->compiler = compiler_create(options_nvrtc_path(options->nvrtc_path), line_info);
    if (!i->compiler || options->helper == JG_HELPER_THREAD) return i->compiler != NULL;
    options_helper_path(options->helper_path, helper, sizeof helper);
    return compiler_use_helper(i->compiler, options->helper, helper, options->helper_timeout_ms, &i->journal);
}

images *images_open(const jg_options *options, int line_info)
{
    images *i = calloc(1, sizeof *i);
    if (!i) return NULL;
    atomic_init(&i->references, 1);
    journal_open(&i->journal, options);
    pthread_mutex_init(&i->failed_lock, NULL);
    if (!open_compiler(i, options, line_info)) {
        images_drop(i);
        return NULL;
    }
    open_store(i, options);
    open_factory(i, options);
    if (i->store) i->claims = claims_open(store_path(i->store));
    return i;
}

images *images_keep(images *i)
{
    atomic_fetch_add(&i->references, 1);
    return i;
}

static void forget_failures(images *i);

void images_drop(images *i)
{
    if (!i || atomic_fetch_sub(&i->references, 1) > 1) return;
    claims_close(i->claims);
    store_close(i->store);
    store_close(i->factory);
    compiler_destroy(i->compiler);
    forget_failures(i);
    pthread_mutex_destroy(&i->failed_lock);
    journal_destroy(&i->journal);
    free(i);
}

void images_cancel(images *i)
{
    compiler_cancel(i->compiler);
    store_hurry(i->store);
}

/* --- the files --- */

void images_fault(images *i, const store *s, const char *what)
{
    atomic_fetch_add(&i->disk_faults, 1);
    if (!atomic_exchange(&i->store_warned, 1))
        journal_log(&i->journal, JG_LOG_WARNING, "cache %s: %s: %s; going on without (said once)", store_path(s), what, store_error(s));
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

/* 1 if the store has it. */
static int read_one(images *i, store *s, const kernel_key *key, image *out)
{
    store_record record;
    if (!s) return 0;
    store_status status = store_get(s, key->bytes, sizeof key->bytes, &record);
    if (status == STORE_OK) {
        int taken = image_from_record(&record, out);
        store_record_free(&record);
        return taken;
    }
    if (status != STORE_ABSENT) images_fault(i, s, status == STORE_CORRUPT ? "a damaged kernel was dropped" : "cannot read");
    return 0;
}

static int read_from_files(images *i, const kernel_key *key, image *out)
{
    if (!i->store && !i->factory) return 0;
    const int found = read_one(i, i->store, key, out) || read_one(i, i->factory, key, out);
    atomic_fetch_add(found ? &i->disk_hits : &i->disk_misses, 1);
    return found;
}

int images_have(images *i, const kernel_key *key)
{
    const uint64_t id = record_id(key->bytes, sizeof key->bytes);
    int has = 0;
    if (i->store && store_has(i->store, id, &has) == STORE_OK && has) return 1;
    return i->factory && store_has(i->factory, id, &has) == STORE_OK && has;
}

jg_status images_copy(images *to, images *from, const kernel_key *key)
{
    if (images_have(to, key)) return JG_OK;
    store *const sources[] = {from->store, from->factory};
    for (int i = 0; i < 2; i++) {
        store_record record;
        if (!sources[i] || store_get(sources[i], key->bytes, sizeof key->bytes, &record) != STORE_OK) continue;
        const store_status status = store_put(to->store, &record, NULL);
        store_record_free(&record);
        return status == STORE_OK ? JG_OK : status_set(JG_ERR_FILE, "%s", store_error(to->store));
    }
    return status_set(JG_ERR_NOT_READY, "the kernel is in no file");
}

static void write_to_store(images *i, const kernel_spec *spec, const kernel_key *key, const char *label, const image *img)
{
    if (!i->store) return;
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
    if (store_put(i->store, &record, NULL) != STORE_OK) images_fault(i, i->store, "cannot write");
}

/* --- kernels that do not compile --- */

/* A compile that NVRTC refuses would be refused again, and what crashes a helper twice may do so again: what was said is kept, so
 * that a pipeline that asks on every frame does not start a compiler on every frame. jg_prewarm tries again. */
struct failed {
    kernel_key key;
    jg_status status;
    char text[1024];
    UT_hash_handle hh;
};
#define MAX_FAILED 1024

static int is_lasting(jg_status status)
{
    return status == JG_ERR_COMPILE || status == JG_ERR_ARCH || status == JG_ERR_HELPER;
}

/* The status of an earlier failure of this kernel, with its text set; JG_OK if there was none. */
static jg_status recall_failure(images *i, const kernel_key *key)
{
    struct failed *f;
    jg_status status = JG_OK;
    pthread_mutex_lock(&i->failed_lock);
    HASH_FIND(hh, i->failed, key->bytes, sizeof key->bytes, f);
    if (f) status = status_set(f->status, "%s", f->text);
    pthread_mutex_unlock(&i->failed_lock);
    return status;
}

/* Without memory for it the failure is forgotten, which only costs another try. */
static void remember_failure(images *i, const kernel_key *key, jg_status status)
{
    struct failed *f;
    pthread_mutex_lock(&i->failed_lock);
    HASH_FIND(hh, i->failed, key->bytes, sizeof key->bytes, f);
    if (!f && HASH_COUNT(i->failed) < MAX_FAILED && (f = calloc(1, sizeof *f))) {
        f->key = *key;
        f->status = status;
        snprintf(f->text, sizeof f->text, "%s", jg_last_error());
        HASH_ADD(hh, i->failed, key.bytes, sizeof f->key.bytes, f);
        if (!f->hh.tbl) free(f);
    }
    pthread_mutex_unlock(&i->failed_lock);
}

static void forget_failure(images *i, const kernel_key *key)
{
    struct failed *f;
    pthread_mutex_lock(&i->failed_lock);
    HASH_FIND(hh, i->failed, key->bytes, sizeof key->bytes, f);
    if (f) HASH_DEL(i->failed, f);
    pthread_mutex_unlock(&i->failed_lock);
    free(f);
}

static void forget_failures(images *i)
{
    struct failed *f, *next;
    HASH_ITER(hh, i->failed, f, next) {
        HASH_DEL(i->failed, f);
        free(f);
    }
}

/* --- compiling --- */

double images_expected_ms(images *i)
{
    const uint64_t compiles = atomic_load(&i->compiles);
    return compiles ? (double)atomic_load(&i->compile_us) * 1e-3 / (double)compiles : EXPECTED_MS;
}

jg_status images_compile(images *i, const kernel_spec *spec, const char *label, effort how, image *out)
{
    kernel_key key;
    kernel_encode_key(spec, &key);
    jg_status status = how == EFFORT_COMPILE_HERE ? compile_here(i->compiler, spec, out) : compile_on_thread(i->compiler, spec, out);
    if (status != JG_OK) {
        if (status != JG_ERR_CANCELLED) atomic_fetch_add(&i->compile_failures, 1);
        if (is_lasting(status)) remember_failure(i, &key, status);
        return status;
    }
    if (how == EFFORT_COMPILE_HERE) forget_failure(i, &key);
    atomic_fetch_add(&i->compile_us, (uint64_t)(out->compile_ms * 1e3));
    atomic_fetch_add(&i->compiles, 1);
    char name[KERNEL_NAME_BYTES];
    kernel_format_name(spec, name);
    journal_log(&i->journal, JG_LOG_INFO, "%s: compiled in %.0f ms for %s", name, out->compile_ms, label);
    journal_trace(&i->journal, &(jg_trace){JG_EVENT_COMPILE, label, name, out->compile_ms});
    write_to_store(i, spec, &key, label, out);
    return JG_OK;
}

jg_status images_get(images *i, const kernel_spec *spec, const char *label, effort how, image *out, jg_source *source)
{
    kernel_key key;
    char name[KERNEL_NAME_BYTES];
    kernel_encode_key(spec, &key);
    kernel_format_name(spec, name);
    if (how == EFFORT_COMPILE) RETURN_IF_ERROR(recall_failure(i, &key));
    if (read_from_files(i, &key, out)) {
        *source = JG_SOURCE_DISK;
        journal_log(&i->journal, JG_LOG_DEBUG, "%s: from the cache file", name);
        return JG_OK;
    }
    if (how < EFFORT_COMPILE)
        return status_set(JG_ERR_NOT_READY, "%s is not cached and compiling is off; prewarm it, or allow JG_COMPILE_WAIT", name);
    *source = JG_SOURCE_COMPILED;
    return images_compile(i, spec, label, how, out);
}
