/* Where frames come from: a Y4M file, a raw file of NV12 frames, or a pattern of its own. Frames go out as NV12: `height` lines
 * of luma, then `height / 2` lines of interleaved chroma, each `width` bytes and without gaps, as a camera of a Jetson has them.
 *
 * No codec is decoded. Of Y4M 4:2:0 with 8 bits is read (C420, C420jpeg, C420mpeg2, C420paldv, or no C at all). Sizes are even.
 * A clip that is no larger than `memory_bytes` is read when it is opened; of a larger one a frame is read when it is asked for.
 * Used by one thread at a time. */
#ifndef PIPELINE_SOURCE_H
#define PIPELINE_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SOURCE_SIZE_MAX 16384              /* pixels, of either side */
#define SOURCE_MEMORY ((int64_t)1 << 30)   /* bytes: 5 s of 1080p at 60 frames a second */

typedef struct source {
    int width, height;
    int rate_n, rate_d;     /* frames a second, as a fraction; 0: the file does not say */
    size_t frame_bytes;
    int64_t count;          /* frames, where all are in memory; else -1 */
    char warning[512];      /* about what was left out; "" if nothing was */
    char error[512];        /* what was wrong, naming file and frame */

    /* its own */
    const char *name;       /* of the file */
    FILE *file;
    int is_y4m, loops;
    long start;             /* of the first frame in the file, bytes */
    int64_t next;           /* the frame that is read next; of the file's own number, from 0 */
    int64_t delivered;      /* frames of this run that were asked for, or passed over */
    uint8_t *frames, *planes;
} source;

/* Opens a file; "-": standard input, which has to fit in memory. raw_width, raw_height: of raw NV12, 0 for Y4M. loops: frames
 * go on with the first after the last. Returns 1, or 0 with an error. What was opened has to be closed. */
int source_open(source *s, const char *name, int raw_width, int raw_height, int loops, int64_t memory_bytes);

/* A test pattern that moves, 60 frames a second, endless. Returns 1, or 0 with an error. */
int source_open_pattern(source *s, int width, int height);

/* Frame `number` of this run; numbers must not get smaller, and may leave some out. Valid until the next call. Null at the end
 * of a clip that does not loop, and then error is "", or where the file cannot be read. */
const uint8_t *source_frame(source *s, int64_t number);

/* Copies a region of width x height pixels in the middle of a frame, of which only the first `cols` columns and `lines` lines are
 * used: `lines` lines of luma, then half as many of chroma, `cols` bytes each and without gaps. All are even, and fit. */
void source_crop(const source *s, const uint8_t *frame, int width, int height, int cols, int lines, uint8_t *packed);

/* Begins a new run at the first frame. */
void source_rewind(source *s);

void source_close(source *s);

#endif
