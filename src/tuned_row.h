/* A recorded plan as a row of the store's choices: what is known of it, and the bytes that say so. Knows no device. */
#ifndef JG_TUNED_ROW_H
#define JG_TUNED_ROW_H

#include "cache/store.h"
#include "problem_key.h"

/* Which of the candidates it is. */
typedef struct tuned_value {
    tile tile;
    uint16_t family;
    uint32_t has_new_bits;  /* not of the numeric class that the planner chose */
    uint32_t zero;
} tuned_value;

/* Of a text in a row, with the ending 0; longer ones are cut. */
#define TUNED_TEXT_BYTES 256

/* A row to be written; `choice` points into it. */
typedef struct tuned_row {
    store_choice choice;
    unsigned char key[8 + sizeof(problem_key)];
    tuned_value value;
    unsigned char details[40 + 6 * TUNED_TEXT_BYTES];
    char label[JG_PROBLEM_TEXT_BYTES];
} tuned_row;

/* key: as tuned_key_of gives it. label: of the problem itself. kernel: name; record: id in the store. measured's flags are not kept. */
void tuned_row_fill(tuned_row *row, const char *place, const problem_key *key, const problem_key *label, const tuned_value *value,
                    const char *kernel, uint64_t record, const jg_measured *measured);

/* Reads a row. Texts point into it; unknown ones are "". key and value may be null. Returns 0 for a row of another version. */
int tuned_row_read(const store_choice *row, problem_key *key, tuned_value *value, const char **kernel, jg_measured *measured);

#endif
