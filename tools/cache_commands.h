/* The commands of jitgemm-cache: an open cache in, text or JSON on standard output out. See cache_args.h for their type. */
#ifndef JG_TOOLS_CACHE_COMMANDS_H
#define JG_TOOLS_CACHE_COMMANDS_H

#include "cache_args.h"

int cache_list(const cache_args *args, jg_cache *cache);
int cache_show(const cache_args *args, jg_cache *cache);
int cache_stats(const cache_args *args, jg_cache *cache);
int cache_verify(const cache_args *args, jg_cache *cache);
int cache_clear(const cache_args *args, jg_cache *cache);
int cache_misses(const cache_args *args, jg_cache *cache);
int cache_plans(const cache_args *args, jg_cache *cache);
int cache_seal(const cache_args *args, jg_cache *cache);
int cache_extract(const cache_args *args, jg_cache *cache);

/* How many recorded plans there are; 0 where that cannot be read. */
size_t cache_count_plans(jg_cache *cache);

#endif
