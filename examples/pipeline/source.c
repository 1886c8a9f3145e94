/* See source.h. */
#include "source.h"

#include "y4m.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_FRAMES = 16, PATTERN_RATE = 60 };

__attribute__((format(printf, 2, 3))) static int refuse(source *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->error, sizeof s->error, format, arguments);
    va_end(arguments);
    return 0;
}

/* ---- one frame of a file ---- */

/* I420 has a plane of U and one of V where NV12 has both in one, in turns. */
static void interleave(const source *s, uint8_t *frame)
{
    const size_t luma = (size_t)s->width * (size_t)s->height, chroma = luma / 4;
    memcpy(frame, s->planes, luma);
    for (size_t i = 0; i < chroma; i++) {
        frame[luma + 2 * i] = s->planes[luma + i];
        frame[luma + 2 * i + 1] = s->planes[luma + chroma + i];
    }
}

/* Reads the next frame. Returns 1; 0 at the end, also of a last frame that is cut off, which is warned of; -1 with an error. */
static int read_frame(source *s, uint8_t *frame)
{
    const int line = s->is_y4m ? y4m_read_frame_line(s->file) : 1;
    if (line < 0) {
        refuse(s, "%s: frame %lld: no line FRAME where it has to begin; the file is damaged", s->name, (long long)s->next);
        return -1;
    }
    const size_t got = line ? fread(s->is_y4m ? s->planes : frame, 1, s->frame_bytes, s->file) : 0;
    if (ferror(s->file)) {
        refuse(s, "%s: frame %lld: it cannot be read", s->name, (long long)s->next);
        return -1;
    }
    if (got < s->frame_bytes) {
        if (got || (line && s->is_y4m))
            snprintf(s->warning, sizeof s->warning, "%s: frame %lld is cut off (%zu of %zu bytes) and left out", s->name,
                     (long long)s->next, got, s->frame_bytes);
        return 0;
    }
    if (s->is_y4m) interleave(s, frame);
    s->next++;
    return 1;
}

static int seek_start(source *s)
{
    s->next = 0;
    return fseek(s->file, s->start, SEEK_SET) == 0 || refuse(s, "%s: cannot go back to its first frame", s->name);
}

/* ---- the whole clip ---- */

/* Reads frames until the end or the bound. Returns how many; -1 with an error. */
static int64_t read_clip(source *s, int64_t memory_bytes)
{
    int64_t count = 0, room = 0;
    for (;;) {
        if (count == room) {
            room = room ? room * 2 : 16;
            if (room > memory_bytes / (int64_t)s->frame_bytes) room = memory_bytes / (int64_t)s->frame_bytes;
            if (room <= count) return count;
            uint8_t *frames = realloc(s->frames, (size_t)room * s->frame_bytes);
            if (!frames) return refuse(s, "%s: out of memory for %lld frames", s->name, (long long)room) - 1;
            s->frames = frames;
        }
        const int read = read_frame(s, s->frames + (size_t)count * s->frame_bytes);
        if (read <= 0) return read < 0 ? -1 : count;
        count++;
    }
}

/* Whether a byte is left. */
static int has_more(FILE *file)
{
    const int c = getc(file);
    if (c != EOF) ungetc(c, file);
    return c != EOF;
}

static int load(source *s, int64_t memory_bytes)
{
    const int64_t count = read_clip(s, memory_bytes);
    if (count < 0) return 0;
    if (count == 0 && !has_more(s->file))
        return refuse(s, "%s: not one whole frame of %dx%d (%zu bytes)", s->name, s->width, s->height, s->frame_bytes);
    if (!has_more(s->file)) {
        s->count = count;
        return 1;
    }
    free(s->frames);
    s->frames = malloc(s->frame_bytes);
    if (!s->frames) return refuse(s, "out of memory for a frame of %zu bytes", s->frame_bytes);
    if (s->start < 0 || !seek_start(s))
        return refuse(s, "%s: more than %lld MiB, which cannot be read twice; give a file", s->name, (long long)(memory_bytes >> 20));
    return 1;
}

static int set_size(source *s, int width, int height)
{
    s->width = width;
    s->height = height;
    s->frame_bytes = (size_t)width * (size_t)height / 2 * 3;
    s->planes = malloc(s->frame_bytes);
    return s->planes || refuse(s, "out of memory for a frame of %dx%d", width, height);
}

int source_open(source *s, const char *name, int raw_width, int raw_height, int loops, int64_t memory_bytes)
{
    char what[256];
    y4m_header header = {.width = raw_width, .height = raw_height};
    const int is_input = strcmp(name, "-") == 0;
    *s = (source){.name = is_input ? "standard input" : name, .is_y4m = !raw_width, .loops = loops, .count = -1};
    s->file = is_input ? stdin : fopen(name, "rb");
    if (!s->file) return refuse(s, "%s: no such file, or it cannot be read", name);
    if (s->is_y4m && !y4m_read_header(s->file, &header, what, sizeof what)) return refuse(s, "%s: %s", s->name, what);
    s->rate_n = header.rate_n;
    s->rate_d = header.rate_d;
    s->start = ftell(s->file); /* -1 of a pipe */
    return set_size(s, header.width, header.height) && load(s, memory_bytes);
}

/* ---- the pattern ---- */

/* Slopes that move, with a bar of noise, so that no two patches are alike. */
static void draw(const source *s, uint8_t *frame, int number)
{
    uint32_t random = 1 + (uint32_t)number;
    const int step = s->width / PATTERN_FRAMES + 1;
    for (int y = 0; y < s->height; y++)
        for (int x = 0; x < s->width; x++) {
            random = random * 1664525u + 1013904223u;
            const int is_noise = (x + number * step) % s->width < s->width / 8;
            *frame++ = (uint8_t)(16 + (is_noise ? random >> 24 : (unsigned)(x + 2 * y + number * step) & 0xff) * 219 / 255);
        }
    for (int y = 0; y < s->height / 2; y++)
        for (int x = 0; x < s->width; x++)
            *frame++ = (uint8_t)(16 + ((unsigned)((x & 1 ? 3 * y : x) + number * step) & 0xff) * 224 / 255);
}

int source_open_pattern(source *s, int width, int height)
{
    *s = (source){.name = "pattern", .loops = 1, .count = PATTERN_FRAMES, .rate_n = PATTERN_RATE, .rate_d = 1};
    if (!set_size(s, width, height)) return 0;
    s->frames = malloc(PATTERN_FRAMES * s->frame_bytes);
    if (!s->frames) return refuse(s, "out of memory for %d frames of %dx%d", PATTERN_FRAMES, width, height);
    for (int i = 0; i < PATTERN_FRAMES; i++) draw(s, s->frames + (size_t)i * s->frame_bytes, i);
    return 1;
}

/* ---- use ---- */

static const uint8_t *stream_frame(source *s, int64_t number)
{
    for (; s->delivered <= number; s->delivered++) {
        int read = read_frame(s, s->frames);
        if (read == 0 && s->loops && s->next > 0 && seek_start(s)) read = read_frame(s, s->frames);
        if (read <= 0) return NULL;
    }
    return s->frames;
}

const uint8_t *source_frame(source *s, int64_t number)
{
    if (s->count < 0) return stream_frame(s, number);
    if (number >= s->count && !s->loops) return NULL;
    return s->frames + (size_t)(number % s->count) * s->frame_bytes;
}

/* The region begins at an even place, since a sample of chroma is for two pixels either way. */
void source_crop(const source *s, const uint8_t *frame, int width, int height, int cols, int lines, uint8_t *packed)
{
    const size_t pitch = (size_t)s->width, bytes = (size_t)cols;
    const size_t left = (size_t)(s->width - width) / 4 * 2, top = (size_t)(s->height - height) / 4 * 2;
    const uint8_t *luma = frame + top * pitch + left, *chroma = frame + ((size_t)s->height + top / 2) * pitch + left;
    for (int y = 0; y < lines; y++, packed += bytes) memcpy(packed, luma + (size_t)y * pitch, bytes);
    for (int y = 0; y < lines / 2; y++, packed += bytes) memcpy(packed, chroma + (size_t)y * pitch, bytes);
}

void source_rewind(source *s)
{
    s->delivered = 0;
    if (s->count < 0) seek_start(s);
}

void source_close(source *s)
{
    if (s->file && s->file != stdin) fclose(s->file);
    free(s->frames);
    free(s->planes);
    s->frames = s->planes = NULL;
    s->file = NULL;
}
