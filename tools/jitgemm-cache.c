/* jitgemm-cache: a cache file in; what is in it, whether it is sound, or a part of it out.
 *
 * It exists for the operator's questions, and works on a machine without a GPU, a driver or a compiler. The flow is:
 * command line (cache_args.c) -> open the cache -> one command (cache_commands.c, cache_misses.c, cache_plans.c,
 * cache_seal.c, cache_extract.c) -> check the output.
 * See jitgemm-cache.1 for how it behaves. */
#include "cache_args.h"
#include "cache_format.h"
#include "jitgemm.h"

#include <signal.h>

static int run(const cache_args *args)
{
    jg_cache *cache;
    if (jg_cache_open(args->cache_path, args->writable, &cache) != JG_OK) return cache_fail("%s", jg_last_error());
    int status = args->run(args, cache);
    jg_cache_close(cache);
    return status;
}

int main(int argc, char **argv)
{
    cache_args args;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is seen as a failed write, see cache_finish_output */
    int status = cache_args_parse(argc, argv, &args);
    if (status == -1) status = run(&args);
    return cache_finish_output(status);
}
