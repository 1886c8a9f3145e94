/* The parts of a record: identity, checksum, size, copy. See record.h. */
#include "cache/record.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

typedef struct part {
    const void *data;
    size_t bytes;
} part;

enum { OWN_PARTS = 8, PARTS = 9 }; /* the source comes last, so that the own parts are the first ones */

static part text_part(const char *text)
{
    return (part){text ? text : "", text ? strlen(text) : 0};
}

static part blob_part(const void *data, size_t bytes)
{
    return (part){bytes ? data : "", bytes};
}

/* Lists the parts in their fixed order, which the checksum and the copy depend on. */
static void list_parts(const store_record *record, part parts[PARTS])
{
    parts[0] = blob_part(record->key, record->key_bytes);
    parts[1] = text_part(record->name);
    parts[2] = text_part(record->target);
    parts[3] = text_part(record->label);
    parts[4] = text_part(record->provenance);
    parts[5] = text_part(record->defines);
    parts[6] = blob_part(record->binary, record->binary_bytes);
    parts[7] = blob_part(record->portable, record->portable_bytes);
    parts[8] = text_part(record->source);
}

uint64_t record_id(const void *key, size_t key_bytes)
{
    return XXH64(key_bytes ? key : "", key_bytes, 0);
}

uint64_t record_hash_number(uint64_t number, uint64_t seed)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(number >> (8 * i));
    return XXH64(bytes, sizeof bytes, seed);
}

uint64_t record_hash_part(const void *data, size_t bytes, uint64_t seed)
{
    return XXH64(bytes ? data : "", bytes, record_hash_number(bytes, seed));
}

uint64_t record_checksum(const store_record *record)
{
    part parts[PARTS];
    uint64_t build_bits, hash = 0;
    list_parts(record, parts);
    for (int i = 0; i < PARTS; i++)
        hash = record_hash_part(parts[i].data, parts[i].bytes, hash);
    memcpy(&build_bits, &record->build_ms, sizeof build_bits);
    hash = record_hash_number(record->id, hash);
    hash = record_hash_number((uint64_t)record->created, hash);
    return record_hash_number(build_bits, hash);
}

uint64_t record_own_bytes(const store_record *record)
{
    part parts[PARTS];
    uint64_t total = 0;
    list_parts(record, parts);
    for (int i = 0; i < OWN_PARTS; i++)
        total += parts[i].bytes;
    return total;
}

uint64_t record_source_bytes(const store_record *record)
{
    return text_part(record->source).bytes;
}

int record_take_copy(store_record *record)
{
    part parts[PARTS];
    char *copies[PARTS];
    size_t total = 0;
    list_parts(record, parts);
    for (int i = 0; i < PARTS; i++)
        total += parts[i].bytes + 1;
    char *block = malloc(total);
    if (!block) return 0;
    for (int i = 0; i < PARTS; i++) {
        copies[i] = block;
        memcpy(block, parts[i].data, parts[i].bytes);
        block[parts[i].bytes] = 0;
        block += parts[i].bytes + 1;
    }
    record->key = copies[0];
    record->name = copies[1];
    record->target = copies[2];
    record->label = copies[3];
    record->provenance = copies[4];
    record->defines = copies[5];
    record->binary = copies[6];
    record->portable = copies[7];
    record->source = copies[8];
    return 1;
}
