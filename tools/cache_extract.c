/* jitgemm-cache extract: a part of a cache entry in, a file out.
 *
 * The file appears whole or not at all: the part goes to a new file beside it, to the disk, and only then gets its name.
 * An existing file is left as it is unless --force says otherwise. */
#include "cache_commands.h"
#include "cache_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const part_names[] = {"cubin", "ptx", "source"};

/* Whether FILE may be written. rename would replace even a device, so only a regular file may be in the way. */
static int check_target(const char *file, int force)
{
    struct stat info;
    if (stat(file, &info) != 0) return CACHE_EXIT_DONE;
    if (!S_ISREG(info.st_mode)) return cache_fail("%s is not a regular file; - means standard output", file);
    return force ? CACHE_EXIT_DONE : cache_fail("%s exists already; --force replaces it", file);
}

static int write_all(int descriptor, const unsigned char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(descriptor, data, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return 0;
        data += written;
        bytes -= (size_t)written;
    }
    return 1;
}

/* Fills the temporary file, with the mode that any new file would get. */
static int fill(int descriptor, const void *data, size_t bytes)
{
    mode_t mask = umask(0);
    umask(mask);
    int ok = write_all(descriptor, data, bytes) && fchmod(descriptor, 0666 & ~mask) == 0 && fsync(descriptor) == 0;
    int reason = errno;
    if (close(descriptor) != 0 && ok) return 0;
    errno = reason;
    return ok;
}

/* Gives the temporary file its name. Without force the kernel refuses to replace a file that has appeared meanwhile;
 * file systems that cannot do that have check_target's word alone. */
static int publish(const char *temporary, const char *file, int force)
{
    if (!force) {
        if (renameat2(AT_FDCWD, temporary, AT_FDCWD, file, RENAME_NOREPLACE) == 0) return 1;
        if (errno != EINVAL && errno != ENOSYS) return 0;
    }
    return rename(temporary, file) == 0;
}

static int write_file(const char *file, const void *data, size_t bytes, int force)
{
    if (check_target(file, force) != CACHE_EXIT_DONE) return CACHE_EXIT_FAILED;
    size_t size = strlen(file) + sizeof ".XXXXXX";
    char *temporary = malloc(size);
    if (!temporary) return cache_fail("out of memory");
    snprintf(temporary, size, "%s.XXXXXX", file);
    int descriptor = mkstemp(temporary);
    int status = CACHE_EXIT_DONE;
    if (descriptor < 0) {
        status = cache_fail("cannot create %s: %s", file, strerror(errno));
    } else if (!fill(descriptor, data, bytes) || !publish(temporary, file, force)) {
        status = cache_fail("cannot write %s: %s", file, strerror(errno));
        unlink(temporary);
    }
    free(temporary);
    return status;
}

int cache_extract(const cache_args *args, jg_cache *cache)
{
    const void *data;
    size_t bytes;
    if (jg_cache_extract(cache, args->key, args->part, &data, &bytes) != JG_OK) return cache_fail("%s", jg_last_error());
    if (strcmp(args->file, "-") == 0) {
        fwrite(data, 1, bytes, stdout); /* checked with all output, by cache_finish_output */
        return CACHE_EXIT_DONE;
    }
    int status = write_file(args->file, data, bytes, args->force);
    if (status != CACHE_EXIT_DONE) return status;
    if (args->json) {
        int ok = 1;
        cJSON *object = cJSON_CreateObject();
        cache_json_text(object, "part", part_names[args->part], &ok);
        cache_json_text(object, "file", args->file, &ok);
        cache_json_number(object, "bytes", (double)bytes, &ok);
        return cache_json_print(object, ok);
    }
    return CACHE_EXIT_DONE;
}
