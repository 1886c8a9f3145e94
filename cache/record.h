/* What a record is made of: its parts, its size, its identity and its checksum.
 *
 * In: a store_record whose pointers may be borrowed. Out: numbers over all of it, or a copy that owns its memory.
 * One table of parts serves all of them, so that a part added later cannot be forgotten by one. */
#ifndef JG_CACHE_RECORD_H
#define JG_CACHE_RECORD_H

#include "cache/store.h"

/* XXH64 of the key. Two keys may share one: whoever looks up by id must compare the key as well. */
uint64_t record_id(const void *key, size_t key_bytes);

/* What checksums are made of: XXH64 of a number in little-endian order, so that a file may move between machines, and of a
 * part with its length before it. */
uint64_t record_hash_number(uint64_t number, uint64_t seed);
uint64_t record_hash_part(const void *data, size_t bytes, uint64_t seed);

/* XXH64 over everything that never changes: every part with its length, id, creation time and build time. Use stamps are
 * left out, since they change without the record being rewritten. */
uint64_t record_checksum(const store_record *record);

/* Bytes of the record's own parts: all but the source, which records share. */
uint64_t record_own_bytes(const store_record *record);

uint64_t record_source_bytes(const store_record *record);

/* Replaces all pointers by copies in one block that starts at record->key; each part is followed by a 0 that its size
 * does not count. Returns 0 and leaves the record as it was if out of memory. */
int record_take_copy(store_record *record);

#endif
