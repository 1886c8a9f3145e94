/* See y4m.h. */
#include "y4m.h"

#include "source.h"

#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024
#define MAGIC "YUV4MPEG2"

/* Reads up to the end of the line, which is left out. Returns its length, -1 if there is none within LINE_BYTES. */
static int read_line(FILE *file, char *line)
{
    int length = 0;
    for (int c; length < LINE_BYTES && (c = getc(file)) != EOF; length++) {
        if (c == '\n') {
            line[length] = 0;
            return length;
        }
        line[length] = (char)c;
    }
    return -1;
}

/* A whole number from 1 to `most`; 0 if it is none. */
static int parse_number(const char *text, const char **end, long most)
{
    char *after;
    const long value = strtol(text, &after, 10);
    *end = after;
    return after != text && *text != '+' && *text != '-' && value >= 1 && value <= most ? (int)value : 0;
}

static int parse_size(const char *text)
{
    const char *end;
    const int value = parse_number(text, &end, SOURCE_SIZE_MAX);
    return *end ? 0 : value;
}

/* "30:1"; "0:0" is an unknown rate. */
static void parse_rate(const char *text, y4m_header *header)
{
    const char *end;
    const int n = parse_number(text, &end, 1000000);
    const int d = n && *end == ':' ? parse_number(end + 1, &end, 1000000) : 0;
    if (d) header->rate_n = n, header->rate_d = d;
}

static int is_known_colour(const char *colour)
{
    static const char *const known[] = {"420", "420jpeg", "420mpeg2", "420paldv"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(colour, known[i]) == 0) return 1;
    return 0;
}

int y4m_read_header(FILE *file, y4m_header *header, char *error, size_t error_bytes)
{
    char line[LINE_BYTES], magic[sizeof MAGIC] = "", *rest = NULL;
    const char *width = "", *height = "";
    *header = (y4m_header){0};
    if (fread(magic, 1, sizeof magic - 1, file) != sizeof magic - 1 || strcmp(magic, MAGIC) != 0 || read_line(file, line) < 0) {
        snprintf(error, error_bytes, "not a Y4M file: it does not begin with a line of " MAGIC "; for raw NV12 give --raw WxH");
        return 0;
    }
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (*word == 'W') width = word + 1;
        if (*word == 'H') height = word + 1;
        if (*word == 'F') parse_rate(word + 1, header);
        if (*word != 'C' || is_known_colour(word + 1)) continue;
        snprintf(error, error_bytes, "colour format C%.60s; only 4:2:0 with 8 bits can be read (C420, C420jpeg, C420mpeg2, C420paldv)",
                 word + 1);
        return 0;
    }
    header->width = parse_size(width);
    header->height = parse_size(height);
    if (header->width && header->height && header->width % 2 == 0 && header->height % 2 == 0) return 1;
    snprintf(error, error_bytes, "frames of \"%.20s\" x \"%.20s\" pixels; both must be even numbers from 2 to %d", width, height,
             SOURCE_SIZE_MAX);
    return 0;
}

int y4m_read_frame_line(FILE *file)
{
    char line[LINE_BYTES];
    const int c = getc(file);
    if (c == EOF) return 0;
    ungetc(c, file);
    if (read_line(file, line) < 0) return -1;
    return strcmp(line, "FRAME") == 0 || strncmp(line, "FRAME ", 6) == 0 ? 1 : -1;
}
