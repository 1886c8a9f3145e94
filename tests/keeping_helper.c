/* A compile helper for the tests that keeps what the real one answers: most of the time of the tests is NVRTC's, and many of them,
 * and each again under the sanitizers, ask for the same kernels.
 *
 * An answer is kept for exactly one request, which lies in front of it in its file: the source, the architecture, the options. That
 * only successes are kept, and that the folder is one NVRTC's own, is all there is to know besides.
 *
 *   JG_TEST_KEPT=FOLDER   where; without it nothing is kept
 *
 * The real one is libexec/jitgemm/jitgemm-compile beside this program's folder. Exit status: 3 nonsense was asked, 4 the host is gone,
 * 5 no memory, 6 the real one failed; the reason is on standard error, which the library leads to /dev/null. */
#include "helper.h"
#include "helper_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define TIMEOUT_MS 300e3

enum { EXIT_NONSENSE = 3, EXIT_ALONE = 4, EXIT_NO_ROOM = 5, EXIT_REAL_ONE = 6 };

/* Bytes in one piece, as they go over the channel or lie in a file. */
typedef struct bytes {
    char *data;
    size_t count;
} bytes;

static char *append(bytes *b, size_t count)
{
    char *bigger = realloc(b->data, b->count + count + 1);
    if (!bigger) _exit(EXIT_NO_ROOM);
    b->data = bigger;
    b->count += count;
    return bigger + b->count - count;
}

static void append_copy(bytes *b, const void *data, size_t count)
{
    if (count) memcpy(append(b, count), data, count);
}

/* Returns 0 at the end of the file or on an error. */
static int read_all(int fd, void *data, size_t count)
{
    for (char *at = data; count > 0;) {
        const ssize_t got = read(fd, at, count);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        at += got;
        count -= (size_t)got;
    }
    return 1;
}

static int write_all(int fd, const void *data, size_t count)
{
    for (const char *at = data; count > 0;) {
        const ssize_t put = write(fd, at, count);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return 0;
        at += put;
        count -= (size_t)put;
    }
    return 1;
}

/* --- the channel --- */

static void receive(bytes *b, size_t count)
{
    if (!read_all(STDIN_FILENO, append(b, count), count)) _exit(EXIT_ALONE);
}

/* The header of a request and the texts behind it. */
static helper_job receive_job(bytes *request)
{
    wire_request head;
    receive(request, sizeof head);
    memcpy(&head, request->data, sizeof head);
    if (!wire_is_request(&head)) _exit(EXIT_NONSENSE);
    receive(request, (size_t)head.nvrtc_path_bytes + head.name_bytes + head.source_bytes);
    const char *path = request->data + sizeof head, *name = path + head.nvrtc_path_bytes, *source = name + head.name_bytes;
    if (!wire_is_text(path, head.nvrtc_path_bytes) || !wire_is_text(name, head.name_bytes) || !wire_is_text(source, head.source_bytes))
        _exit(EXIT_NONSENSE);
    return (helper_job){.nvrtc_path = *path ? path : NULL, .name = name, .source = source, .arch = head.arch, .line_info = head.line_info};
}

/* --- the folder --- */

static int path_of(const bytes *request, char *path, size_t size)
{
    const char *folder = getenv("JG_TEST_KEPT");
    if (!folder || !*folder) return 0;
    mkdir(folder, 0777);
    return (size_t)snprintf(path, size, "%s/%016llx", folder, (unsigned long long)XXH64(request->data, request->count, 0)) < size;
}

/* Puts into *reply what is kept for a request. Returns 0 if that is nothing. */
static int find(const char *path, const bytes *request, bytes *reply)
{
    struct stat info;
    bytes file = {NULL, 0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const int is_read = fstat(fd, &info) == 0 && (size_t)info.st_size > request->count &&
                        read_all(fd, append(&file, (size_t)info.st_size), (size_t)info.st_size) &&
                        memcmp(file.data, request->data, request->count) == 0;
    close(fd);
    if (is_read) append_copy(reply, file.data + request->count, file.count - request->count);
    free(file.data);
    return is_read;
}

/* Two may do this at once: each file is whole before it has its name. */
static void keep(const char *path, const bytes *request, const bytes *reply)
{
    char draft[PATH_MAX];
    if ((size_t)snprintf(draft, sizeof draft, "%s.%ld", path, (long)getpid()) >= sizeof draft) return;
    const int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return;
    const int is_whole = write_all(fd, request->data, request->count) && write_all(fd, reply->data, reply->count);
    if (close(fd) != 0 || !is_whole || rename(draft, path) != 0) unlink(draft);
}

/* --- the real one --- */

static void find_real_one(char *path, size_t size)
{
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    char *slash = strrchr(program, '/');
    if (slash) *slash = 0;
    if ((size_t)snprintf(path, size, "%s/../libexec/jitgemm/jitgemm-compile", program) >= size) _exit(EXIT_REAL_ONE);
}

/* Asks it. Returns its status. */
static jg_status compile(const helper_job *job, bytes *reply)
{
    char real_one[PATH_MAX + 64], why[512] = "";
    const atomic_int cancelled = 0;
    jg_status status = JG_OK;
    image img;
    find_real_one(real_one, sizeof real_one);
    helper *h = helper_create(real_one, TIMEOUT_MS);
    if (!h) _exit(EXIT_NO_ROOM);
    if (helper_compile(h, job, &cancelled, &status, &img, why, sizeof why) != HELPER_ANSWERED) {
        fprintf(stderr, "keeping_helper: %s %s\n", real_one, why);
        _exit(EXIT_REAL_ONE);
    }
    const char *text = status == JG_OK ? "" : jg_last_error();
    wire_reply head = {.status = status, .text_bytes = (uint32_t)strlen(text) + 1, .cubin_bytes = img.cubin_bytes,
                       .ptx_bytes = img.ptx_bytes};
    memcpy(head.magic, WIRE_REPLY_MAGIC, sizeof head.magic);
    memcpy(head.provenance, img.provenance, sizeof head.provenance);
    append_copy(reply, &head, sizeof head);
    append_copy(reply, text, head.text_bytes);
    append_copy(reply, img.cubin, img.cubin_bytes);
    append_copy(reply, img.ptx, img.ptx_bytes);
    return status;
}

int main(void)
{
    bytes request = {NULL, 0}, reply = {NULL, 0};
    char path[PATH_MAX];
    wire_greeting greeting;
    wire_greet(&greeting);
    if (!write_all(STDIN_FILENO, &greeting, sizeof greeting)) return EXIT_ALONE;
    const helper_job job = receive_job(&request);
    const int keeps = path_of(&request, path, sizeof path);
    if (!keeps || !find(path, &request, &reply))
        if (compile(&job, &reply) == JG_OK && keeps) keep(path, &request, &reply);
    if (!write_all(STDIN_FILENO, reply.data, reply.count)) return EXIT_ALONE;
    free(request.data);
    free(reply.data);
    return 0;
}
