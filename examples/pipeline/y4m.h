/* The headers of Y4M (YUV4MPEG2) files: a line for the stream and one before each frame.
 * After the format's description in mjpegtools' yuv4mpeg(5). */
#ifndef PIPELINE_Y4M_H
#define PIPELINE_Y4M_H

#include <stddef.h>
#include <stdio.h>

typedef struct y4m_header {
    int width, height;
    int rate_n, rate_d; /* 0: unknown */
} y4m_header;

/* Reads the stream's header. Returns 1, or 0 with what is wrong, without the file's name. */
int y4m_read_header(FILE *file, y4m_header *header, char *error, size_t error_bytes);

/* Reads the line before a frame. Returns 1; 0 at the end of the file; -1 if it is another line, or cut off. */
int y4m_read_frame_line(FILE *file);

#endif
