/* The device of the element: see device.h. */
#include "device.h"

#include <string.h>

jg_status jgf_device_open(jgf_device *device, const jg_options *options)
{
    jg_stats stats;
    *device = (jgf_device){.lines.memory = JG_HOST_MEMORY};
    jg_status status = jg_open(options, &device->context);
    if (status != JG_OK) return status;
    status = jg_cache_stats(device->context, &stats);
    if (status != JG_OK) {
        jg_close(device->context);
        device->context = NULL;
        return status;
    }
    device->is_host = !stats.place[0];
    return JG_OK;
}

void jgf_device_close(jgf_device *device)
{
    if (!device->context) return;
    jgf_buffer_free(device, &device->lines);
    jg_close(device->context);
    device->context = NULL;
}

jg_status jgf_buffer_grow(jgf_device *device, jgf_buffer *buffer, size_t bytes)
{
    if (bytes <= buffer->bytes) return JG_OK;
    jg_status status = jg_free(device->context, buffer->memory, buffer->data);
    buffer->data = NULL;
    buffer->bytes = 0;
    if (status == JG_OK) status = jg_alloc(device->context, buffer->memory, bytes, &buffer->data);
    if (status == JG_OK) buffer->bytes = bytes;
    return status;
}

jg_status jgf_buffer_fill(jgf_device *device, jgf_buffer *buffer, const void *data, size_t bytes)
{
    const jg_status status = jgf_buffer_grow(device, buffer, bytes);
    return status == JG_OK ? jg_copy(device->context, buffer->data, data, bytes) : status;
}

void jgf_buffer_free(jgf_device *device, jgf_buffer *buffer)
{
    if (buffer->data) jg_free(device->context, buffer->memory, buffer->data);
    buffer->data = NULL;
    buffer->bytes = 0;
}

/* The last line has no padding: there may be no memory behind it. */
size_t jgf_plane_bytes(const jgf_plane *plane)
{
    return plane->lines ? (size_t)((plane->lines - 1) * plane->stride + plane->line_bytes) : 0;
}

static int has_padding(const jgf_plane *plane)
{
    return plane->stride != plane->line_bytes && plane->lines > 1;
}

jg_status jgf_plane_reserve(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane)
{
    if (device->is_host) return JG_OK;
    const jg_status status = has_padding(plane) ? jgf_buffer_grow(device, &device->lines, jgf_plane_bytes(plane)) : JG_OK;
    return status == JG_OK ? jgf_buffer_grow(device, buffer, jgf_plane_bytes(plane)) : status;
}

jg_status jgf_plane_in(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane, const void **data)
{
    if (device->is_host) {
        *data = plane->data;
        return JG_OK;
    }
    const jg_status status = jgf_buffer_fill(device, buffer, plane->data, jgf_plane_bytes(plane));
    *data = buffer->data;
    return status;
}

jg_status jgf_plane_out(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane, void **data)
{
    if (device->is_host) {
        *data = plane->data;
        return JG_OK;
    }
    const jg_status status = jgf_buffer_grow(device, buffer, jgf_plane_bytes(plane));
    *data = buffer->data;
    return status;
}

jg_status jgf_plane_done(jgf_device *device, jgf_buffer *buffer, const jgf_plane *plane)
{
    const size_t bytes = jgf_plane_bytes(plane);
    if (device->is_host) return jg_synchronize(device->context, NULL);
    if (!has_padding(plane)) return jg_copy(device->context, plane->data, buffer->data, bytes);

    jg_status status = jgf_buffer_grow(device, &device->lines, bytes);
    if (status == JG_OK) status = jg_copy(device->context, device->lines.data, buffer->data, bytes);
    if (status != JG_OK) return status;
    for (int64_t line = 0; line < plane->lines; line++)
        memcpy(plane->data + line * plane->stride, (uint8_t *)device->lines.data + line * plane->stride, (size_t)plane->line_bytes);
    return JG_OK;
}

jg_status jgf_device_finish(jgf_device *device, jg_status *poll)
{
    const jg_status status = jg_synchronize(device->context, NULL);
    *poll = status == JG_OK ? jg_poll(device->context, NULL, NULL) : JG_OK;
    return status;
}
