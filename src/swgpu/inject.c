/* Rules for calls that fail or are slow, from text to a table that each call looks at. */
#include "inject.h"

#include "errors.h"
#include "settings.h"

#include <stdio.h>
#include <string.h>

#define MAX_CALLS 1000000000u
#define MAX_CODE 9999u

typedef enum when { ONCE, FROM, STICKY } when;

typedef struct rule {
    entry_id entry;
    uint64_t call; /* from 1 */
    when when;
    CUresult result;
} rule;

typedef struct injections {
    rule rules[INJECT_MAX_RULES];
    unsigned rule_count;
    uint64_t calls[ENTRY_COUNT];
    unsigned slow[ENTRY_COUNT]; /* milliseconds */
} injections;

static injections inject;

static const char *const symbols[ENTRY_COUNT] = {
#define MEMBER(symbol, needs) #symbol,
    SWGPU_ENTRIES(MEMBER)
#undef MEMBER
};

const char *inject_symbol(entry_id entry)
{
    return symbols[entry];
}

/* A piece of a variable's value. */
typedef struct piece {
    const char *text;
    size_t length;
} piece;

/* Takes what lies before the next `end` off the front. */
static piece take(piece *from, char end)
{
    const char *found = memchr(from->text, end, from->length);
    piece front = {from->text, found ? (size_t)(found - from->text) : from->length};
    const size_t taken = front.length + (found != NULL);
    from->text += taken;
    from->length -= taken;
    return front;
}

/* The length of a symbol without "_v2". */
static size_t base_length(const char *symbol)
{
    const size_t length = strlen(symbol);
    return length > 3 && symbol[length - 3] == '_' && symbol[length - 2] == 'v' ? length - 3 : length;
}

static int find_entry(piece name, entry_id *out)
{
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        const size_t whole = strlen(symbols[i]);
        if (name.length != whole && name.length != base_length(symbols[i])) continue;
        if (memcmp(symbols[i], name.text, name.length) != 0) continue;
        *out = (entry_id)i;
        return 1;
    }
    return 0;
}

static int find_error(piece text, CUresult *out)
{
    uint64_t number;
    if (settings_number(text.text, text.length, MAX_CODE, &number)) return *out = (CUresult)number, 1;
    const int named = errors_number(text.text, text.length);
    *out = (CUresult)named;
    return named > 0;
}

static int find_when(piece text, rule *out)
{
    const char last = text.length ? text.text[text.length - 1] : 0;
    out->when = last == '+' ? FROM : last == '!' ? STICKY : ONCE;
    return settings_number(text.text, text.length - (out->when != ONCE), MAX_CALLS, &out->call);
}

/* What is wrong with one rule, or null. */
static const char *read_fault(piece text)
{
    if (inject.rule_count == INJECT_MAX_RULES) return "there are more than 32 faults";
    rule *r = &inject.rules[inject.rule_count];
    const piece entry = take(&text, ':'), call = take(&text, ':');
    if (!find_entry(entry, &r->entry)) return "the entry point is not known";
    if (!find_when(call, r)) return "the call is no number from 1 on, with + or ! after it or nothing";
    if (!find_error(text, &r->result)) return "the error is not known";
    inject.rule_count++;
    return NULL;
}

static const char *read_slow(piece text)
{
    entry_id entry;
    uint64_t milliseconds;
    if (!find_entry(take(&text, ':'), &entry)) return "the entry point is not known";
    if (!settings_number(text.text, text.length, INJECT_MAX_MILLISECONDS, &milliseconds))
        return "the time is not from 1 to 600000 milliseconds";
    inject.slow[entry] = (unsigned)milliseconds;
    return NULL;
}

static int read_list(const char *variable, const char *value, const char *(*read)(piece), const char *form, char *error,
                     size_t bytes)
{
    if (!value || !*value) return 1;
    piece rest = {value, strlen(value)};
    for (;;) {
        const piece one = take(&rest, ',');
        const char *wrong = read(one);
        if (wrong) {
            snprintf(error, bytes, "%s has \"%.*s\": %s; it must be %s", variable, (int)(one.length < 200 ? one.length : 200),
                     one.text, wrong, form);
            return 0;
        }
        if (one.text[one.length] != ',') return 1;
    }
}

static int read_faults(const char *source, const char *faults, char *error, size_t bytes)
{
    return read_list(source, faults, read_fault,
                     "ENTRY:WHEN:ERROR, such as cuMemAlloc:3:CUDA_ERROR_OUT_OF_MEMORY, where WHEN is N, N+ or N!, with commas "
                     "between",
                     error, bytes);
}

int inject_configure(const char *faults, const char *slow, char *error, size_t error_bytes)
{
    memset(&inject, 0, sizeof inject);
    if (read_faults("JITGEMM_SWGPU_FAULT", faults, error, error_bytes) &&
        read_list("JITGEMM_SWGPU_SLOW", slow, read_slow, "ENTRY:MILLISECONDS, such as cuModuleLoadDataEx:50, with commas between",
                  error, error_bytes))
        return 1;
    memset(&inject, 0, sizeof inject);
    return 0;
}

int inject_replace_faults(const char *faults, char *error, size_t error_bytes)
{
    const injections before = inject;
    memset(inject.calls, 0, sizeof inject.calls);
    inject.rule_count = 0;
    if (read_faults("swgpuSetFaults", faults, error, error_bytes)) return 1;
    inject = before;
    return 0;
}

CUresult inject_call(entry_id entry, unsigned *milliseconds, int *sticky)
{
    const uint64_t number = ++inject.calls[entry];
    *milliseconds = inject.slow[entry];
    *sticky = 0;
    for (unsigned i = 0; i < inject.rule_count; i++) {
        const rule *r = &inject.rules[i];
        if (r->entry != entry || !(r->when == FROM ? number >= r->call : number == r->call)) continue;
        *sticky = r->when == STICKY;
        return r->result;
    }
    return CUDA_SUCCESS;
}
