/* Loaded kernels of a context: from images, which others bring, to entries of the kernel map. See context.h. */
#include "context.h"
#include "hash.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

jg_status kernels_load(jg_context *c, const kernel_spec *spec, const image *img, lru_entry **entry)
{
    kernel_key key;
    kernel_encode_key(spec, &key);
    *entry = lru_acquire(c->kernels, key.bytes, sizeof key.bytes);
    if (*entry) return JG_OK;
    loaded_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return status_set(JG_ERR_NO_MEMORY, "out of memory loading a kernel");
    device_scope scope;
    jg_status status = device_enter(&c->device, &scope);
    if (status == JG_OK) {
        status = load_kernel(&c->device, spec, img, kernel);
        int existed = 0;
        if (status == JG_OK) {
            *entry = lru_insert(c->kernels, key.bytes, sizeof key.bytes, kernel, kernel->code_bytes, &existed);
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
static jg_status replace_refused(jg_context *c, const kernel_spec *spec, const char *label, effort how, lru_entry **entry)
{
    image img;
    status_text refusal;
    status_save(&refusal);
    atomic_fetch_add(&c->images->disk_faults, 1);
    context_log(c, JG_LOG_WARNING, "%s; compiling it again", refusal.text);
    if (images_compile(c->images, spec, label, how, &img) != JG_OK) {
        status_restore(&refusal);
        return JG_ERR_LOAD;
    }
    jg_status status = kernels_load(c, spec, &img, entry);
    image_free(&img);
    return status;
}

/* Brings the image and loads it. */
static jg_status make_kernel(jg_context *c, const kernel_spec *spec, const char *label, effort how, lru_entry **entry,
                             jg_source *source)
{
    image img;
    RETURN_IF_ERROR(images_get(c->images, spec, label, how, &img, source));
    jg_status status = kernels_load(c, spec, &img, entry);
    image_free(&img);
    if (status != JG_ERR_LOAD || *source != JG_SOURCE_DISK || how < EFFORT_COMPILE) return status;
    *source = JG_SOURCE_COMPILED;
    return replace_refused(c, spec, label, how, entry);
}

lru_entry *kernels_find(jg_context *c, const kernel_spec *spec)
{
    kernel_key key;
    kernel_encode_key(spec, &key);
    return lru_acquire(c->kernels, key.bytes, sizeof key.bytes);
}

jg_status kernels_obtain(jg_context *c, const kernel_spec *spec, const char *label, effort how, lru_entry **entry, jg_source *source)
{
    kernel_key key;
    struct making *mine;
    kernel_encode_key(spec, &key);
    *source = JG_SOURCE_MEMORY;
    *entry = find_or_claim(c, &key, &mine);
    if (*entry) return JG_OK;
    if (!mine) return status_set(JG_ERR_NO_MEMORY, "out of memory making a kernel");
    status_text before;
    status_save(&before);
    jg_status status = make_kernel(c, spec, label, how, entry, source);
    if (status == JG_OK) status_restore(&before); /* something on the way may have failed and been made good */
    give_up_claim(c, mine);
    return status;
}

/* --- kernels that stay --- */

jg_status kernels_keep(jg_context *c, lru_entry *entry, atomic_uint_fast64_t *why)
{
    loaded_kernel *kernel = lru_value(entry);
    jg_status status = JG_OK;
    if (atomic_load(&kernel->kept)) return JG_OK;
    pthread_mutex_lock(&c->keep_lock);
    if (!atomic_load(&kernel->kept) && c->resident_count == c->resident_room) {
        const size_t room = c->resident_room ? 2 * c->resident_room : 64;
        lru_entry **bigger = realloc(c->resident, room * sizeof *bigger);
        if (bigger) {
            c->resident = bigger;
            c->resident_room = room;
        } else {
            status = status_set(JG_ERR_NO_MEMORY, "out of memory keeping a kernel loaded");
        }
    }
    if (status == JG_OK && !atomic_exchange(&kernel->kept, 1)) {
        lru_pin(entry);
        c->resident[c->resident_count++] = entry;
        atomic_fetch_add(why, 1);
    }
    pthread_mutex_unlock(&c->keep_lock);
    return status;
}
