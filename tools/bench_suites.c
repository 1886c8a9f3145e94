/* The lists of tests/shapes, embedded in jitgemm-bench by the assembler: it can be run where the source is not, and a suite is
 * that of this version. See bench_suites.h. */
#include "bench_suites.h"

#include "bench_misalign.h"

#include <stdio.h>
#include <string.h>

#define EMBED(symbol, file)                                                                                                  \
    __asm__(".pushsection .rodata\n"                                                                                         \
            ".global bench_shapes_" #symbol "\n.hidden bench_shapes_" #symbol "\nbench_shapes_" #symbol ":\n"                \
            ".incbin \"" JG_SHAPES_SOURCE "/" file "\"\n"                                                                    \
            ".byte 0\n"                                                                                                      \
            ".popsection\n");                                                                                                \
    extern const char bench_shapes_##symbol[] __attribute__((visibility("hidden")))

/* name (that of the file and of the list), suite, memory, what */
#define LISTS(X)                                                                                                             \
    X(common16, "common16", 0, "squares from 64 to 1024 in steps of 64")                                                     \
    X(poison, "poison", 0, "primes, one off a power of two, odd leading dimensions")                                         \
    X(misalign, "misalign", 0, "what odd leading dimensions and addresses cost, beside aligned ones")                       \
    X(skinny, "skinny", 1, "1 to 32 rows or columns times a large matrix")                                                   \
    X(resnet50, "layers", 0, "ResNet-50, one image")                                                                         \
    X(mobilenet_v2, "layers", 0, "MobileNetV2 without its depthwise convolutions, one image")                                \
    X(vit_b16, "layers", 0, "ViT-B/16, one image")                                                                           \
    X(yolo_v8n, "layers", 0, "YOLOv8n, one image of 640 x 640")                                                              \
    X(whisper_base, "layers", 0, "Whisper base, 30 s of sound: encoder, prompt of 4 tokens, a step of 1")                    \
    X(large, "large", 0, "squares from 2048 to 8192")                                                                        \
    X(tiny, "tiny", 0, "batches of 64 or 256 squares from 32 to 128")

#define EMBED_LIST(name, suite, memory, what) EMBED(name, #name ".txt");
LISTS(EMBED_LIST)

#define ROW(name, suite, memory, what) {#name, suite, what, memory, bench_shapes_##name},
static const bench_list lists[] = {LISTS(ROW)};

const bench_list *bench_list_at(size_t index)
{
    return index < sizeof lists / sizeof *lists ? &lists[index] : NULL;
}

int bench_list_matches(const bench_list *list, const char *word)
{
    return strcmp(list->name, word) == 0 || strcmp(list->suite, word) == 0;
}

int bench_list_problems(const bench_list *list, const jg_problem *defaults, size_t count, sizelist *out)
{
    sizelist sizes = {0};
    if (strcmp(list->name, BENCH_MISALIGN) != 0) return sizelist_read_text(out, list->name, list->text, defaults, count);
    const int read = sizelist_read_text(&sizes, list->name, list->text, defaults, count);
    const int expanded = read == 0 ? bench_misalign_expand(&sizes, out) : -1;
    if (expanded != 0) snprintf(out->error, sizeof out->error, "%s", read == 0 ? "out of memory" : sizes.error);
    sizelist_free(&sizes);
    return expanded;
}
