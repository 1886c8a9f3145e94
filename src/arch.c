/* Finds architecture tables by compute capability. */
#include "arch.h"

#include <stddef.h>

static const arch *const rows[] = {
    &arch_sm75, &arch_sm80, &arch_sm86, &arch_sm87, &arch_sm89, &arch_sm90, &arch_sm100, &arch_sm110, &arch_sm120,
};

const arch *arch_at(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? rows[index] : NULL;
}

const arch *arch_find(int number)
{
    const arch *found = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i]->number / 10 == number / 10 && rows[i]->number <= number) found = rows[i];
    return found;
}
