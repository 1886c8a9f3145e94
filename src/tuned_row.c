/* Recorded plans as rows of the store. See tuned_row.h. */
#include "tuned_row.h"

#include <stdio.h>
#include <string.h>

/* A format number, then the bytes of the key. Another format is another row, and never misread. */
#define FORMAT "jgplan01"
#define FORMAT_BYTES (sizeof FORMAT - 1)

typedef struct numbers {
    double us, planned_us, runner_up_us, sm_mhz;
    uint32_t measured, all;
} numbers;

_Static_assert(sizeof(tuned_value) == 24 && sizeof(numbers) == 40, "padding in a row would not be read back alike");

static void add_text(tuned_row *row, const char *text)
{
    char *to = (char *)row->details + row->choice.details_bytes;
    const int length = snprintf(to, TUNED_TEXT_BYTES, "%s", text ? text : "");
    row->choice.details_bytes += 1 + (size_t)(length < TUNED_TEXT_BYTES ? length : TUNED_TEXT_BYTES - 1);
}

void tuned_row_fill(tuned_row *row, const char *place, const problem_key *key, const problem_key *label, const tuned_value *value,
                    const char *kernel, uint64_t record, const jg_measured *m)
{
    const numbers n = {m->us, m->planned_us, m->runner_up_us, m->sm_mhz, m->measured, m->all};
    const char *const texts[] = {kernel, m->planned, m->runner_up, m->reason, m->device, m->power_mode};
    memcpy(row->key, FORMAT, FORMAT_BYTES);
    memcpy(row->key + FORMAT_BYTES, key, sizeof *key);
    row->value = *value;
    problem_key_format(label, row->label, sizeof row->label);
    row->choice = (store_choice){.key = row->key, .key_bytes = sizeof row->key, .place = place, .label = row->label, .value = &row->value,
                                 .value_bytes = sizeof row->value, .details = row->details, .details_bytes = sizeof n, .record = record};
    memcpy(row->details, &n, sizeof n);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) add_text(row, texts[i]);
}

int tuned_row_read(const store_choice *row, problem_key *key, tuned_value *value, const char **kernel, jg_measured *m)
{
    numbers n;
    const char *at = (const char *)row->details, *end = at + row->details_bytes;
    const char **const texts[] = {kernel, &m->planned, &m->runner_up, &m->reason, &m->device, &m->power_mode};
    if (row->key_bytes != FORMAT_BYTES + sizeof *key || memcmp(row->key, FORMAT, FORMAT_BYTES) != 0) return 0;
    if (row->value_bytes != sizeof *value || row->details_bytes < sizeof n || (row->details_bytes > sizeof n && end[-1])) return 0;
    memcpy(&n, at, sizeof n);
    *m = (jg_measured){.us = n.us, .planned_us = n.planned_us, .runner_up_us = n.runner_up_us, .measured = n.measured, .all = n.all,
                       .sm_mhz = n.sm_mhz};
    at += sizeof n;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = at < end ? at : "";
        if (at < end) at += strlen(at) + 1;
    }
    if (key) memcpy(key, (const unsigned char *)row->key + FORMAT_BYTES, sizeof *key);
    if (value) memcpy(value, row->value, sizeof *value);
    return 1;
}
