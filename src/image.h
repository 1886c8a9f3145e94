/* An image: the compiled code of one kernel, as bytes. Made by compile.c, kept by the disk store, loaded by load.c. */
#ifndef JG_IMAGE_H
#define JG_IMAGE_H

#include <stddef.h>

/* Owns its memory (malloc). cubin may be empty (then PTX is what there is), and the other way round. */
typedef struct image {
    void *cubin;
    size_t cubin_bytes;
    char *ptx;              /* followed by a 0 that ptx_bytes does not count */
    size_t ptx_bytes;
    double compile_ms;
    char provenance[256];   /* compiler version and options */
} image;

/* Frees the members and zeroes them. */
void image_free(image *img);

#endif
