/* examples/gstreamer/weights.c: what is read out of whole files, and that no broken one does more than be refused with a text that
 * names it. Needs no GStreamer. */
#include "examples/gstreamer/weights.h"
#include "half.h"
#include "safetensors.h"
#include "scratch_fixture.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Three usable tensors, one that is not, one that is empty; names and order as no writer would choose them. */
static const char header[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"vit.embeddings.projection.bias\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[24,30]},"
    "\"vit.embeddings.projection.weight\":{\"dtype\":\"F32\",\"shape\":[1,2,3,1],\"data_offsets\":[0,24]},"
    "\"steps\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[34,42]},"
    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[34,34]},"
    "\"head.weight\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[30,34]}}      ";
static const float values[6] = {1.5f, -2, 0x1p-149f, 3.4e38f, -0.0f, 7};
static const uint16_t halves[3] = {0x3c00, 0xc000, 0x0001}, bfloats[2] = {0x3f80, 0xff80};

static void make_data(unsigned char data[42])
{
    memset(data, 0, 42);
    memcpy(data, values, 24);
    memcpy(data + 24, halves, 6);
    memcpy(data + 30, bfloats, 4);
}

static jgf_weights *open_whole(void)
{
    unsigned char data[42];
    char error[512] = "";
    make_data(data);
    safetensors_write(scratch_path(folder, "w"), header, data, sizeof data);
    jgf_weights *weights = jgf_weights_open(scratch_path(folder, "w"), error, sizeof error);
    if (!weights) fail_msg("%s", error);
    return weights;
}

static void test_reads_tensors(void **state)
{
    (void)state;
    jgf_weights *weights = open_whole();
    static const char *const names[] = {"vit.embeddings.projection.weight", "vit.embeddings.projection.bias", "head.weight", "none",
                                        "steps"};
    static const jg_type types[] = {JG_F32, JG_F16, JG_BF16, JG_DEFAULT_TYPE, JG_DEFAULT_TYPE};
    jgf_tensor tensor;
    assert_string_equal(jgf_weights_path(weights), scratch_path(folder, "w"));
    assert_int_equal(unlink(jgf_weights_path(weights)), 0); /* it was read whole */
    assert_int_equal(jgf_weights_count(weights), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(jgf_weights_at(weights, i, &tensor), 0);
        assert_string_equal(tensor.name, names[i]);
        assert_int_equal(tensor.type, types[i]);
        if (types[i]) continue;
        assert_null(tensor.data);
        assert_int_equal(tensor.dims, 0);
        assert_int_equal(jgf_tensor_elements(&tensor), 0);
    }
    assert_int_equal(jgf_weights_at(weights, 5, &tensor), -1);

    jgf_weights_at(weights, 0, &tensor);
    assert_int_equal(tensor.dims, 4);
    assert_int_equal(jgf_tensor_elements(&tensor), 6);
    assert_true(tensor.shape[0] == 1 && tensor.shape[1] == 2 && tensor.shape[2] == 3 && tensor.shape[3] == 1);
    for (int i = 0; i < 6; i++) {
        assert_true(jgf_tensor_value(&tensor, i) == (double)values[i]);
        assert_int_equal(signbit(jgf_tensor_value(&tensor, i)) != 0, signbit(values[i]) != 0);
    }
    jgf_weights_at(weights, 1, &tensor);
    assert_true(tensor.dims == 1 && tensor.shape[0] == 3 && tensor.shape[1] == 1);
    assert_true(jgf_tensor_value(&tensor, 0) == 1 && jgf_tensor_value(&tensor, 1) == -2 && jgf_tensor_value(&tensor, 2) == 0x1p-24);
    jgf_weights_at(weights, 2, &tensor);
    assert_true(jgf_tensor_value(&tensor, 0) == 1 && jgf_tensor_value(&tensor, 1) == -(double)INFINITY);
    jgf_weights_close(weights);
    jgf_weights_close(NULL);
}

static void assert_not_found(const jgf_weights *weights, const char *name, const char *why)
{
    jgf_tensor tensor = {.name = "untouched"};
    char error[512] = "";
    assert_int_equal(jgf_weights_find(weights, name, &tensor, error, sizeof error), -1);
    assert_string_equal(tensor.name, "untouched");
    if (!strstr(error, why) || strncmp(error, jgf_weights_path(weights), strlen(jgf_weights_path(weights))) != 0)
        fail_msg("\"%s\" does not say \"%s\" and where", error, why);
}

static void test_finds_by_name_and_by_its_end(void **state)
{
    (void)state;
    jgf_weights *weights = open_whole();
    jgf_tensor tensor;
    char error[512];
    static const struct { const char *asked, *found; } names[] = {
        {"vit.embeddings.projection.weight", "vit.embeddings.projection.weight"},
        {"projection.weight", "vit.embeddings.projection.weight"},
        {"bias", "vit.embeddings.projection.bias"},
        {"head.weight", "head.weight"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(jgf_weights_find(weights, names[i].asked, &tensor, error, sizeof error), 0);
        assert_string_equal(tensor.name, names[i].found);
    }
    assert_not_found(weights, "weight", "\"weight\" fits two tensors: \"vit.embeddings.projection.weight\" and \"head.weight\"");
    assert_not_found(weights, "ection.weight", "has no tensor \"ection.weight\"; it has \"vit.embeddings.projection.weight\", ");
    assert_not_found(weights, "", "has no tensor");
    assert_not_found(weights, "steps", "tensor \"steps\" (I64) cannot be used");
    assert_not_found(weights, "none", "tensor \"none\" (F32) cannot be used");
    jgf_weights_close(weights);

    /* An exact name comes before the end of another one. */
    safetensors_write(scratch_path(folder, "two"), "{\"a.b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "\0\0\0\0\0\0\0\0", 8);
    weights = jgf_weights_open(scratch_path(folder, "two"), error, sizeof error);
    assert_non_null(weights);
    assert_int_equal(jgf_weights_find(weights, "b", &tensor, NULL, 0), 0);
    assert_string_equal(tensor.name, "b");
    assert_int_equal(jgf_weights_find(weights, "c", &tensor, NULL, 0), -1); /* no text is no fault */
    jgf_weights_close(weights);
}

static void assert_refused(const char *path, int code, const char *why)
{
    char error[PATH_MAX + 512] = "";
    errno = 0;
    jgf_weights *weights = jgf_weights_open(path, error, sizeof error);
    const int found = errno;
    if (weights) fail_msg("%s was taken, not refused: %s", path, why);
    if (strncmp(error, path, strlen(path)) != 0 || !strstr(error, why))
        fail_msg("\"%s\" does not begin with the path and say \"%s\"", error, why);
    if (code != found) fail_msg("errno %d, not %d: %s", found, code, error);
}

#define TENSOR(name, dtype, shape, offsets) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* Headers, each followed by 8 bytes of data. */
static const struct {
    const char *header, *why;
} broken[] = {
    {"", "header is empty"},
    {"[1]", "not JSON (no {"},
    {"\x80\x02}q\x01", "not JSON (no {"},
    {"{", "not JSON: an error at byte"},
    {"{\"a\":}", "not JSON: an error at byte"},
    {"{} {}", "not JSON: an error at byte"},
    {"{\"a\":1" "}", "\"a\" is no tensor"},
    {"{\"a\":[1]}", "\"a\" is no tensor"},
    {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", "\"a\" has no dtype"},
    {"{\"a\":{\"dtype\":16,\"shape\":[2],\"data_offsets\":[0,8]}}", "\"a\" has no dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "\"a\" has no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", "\"a\" has no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[0]") "}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[0,8,8]") "}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[-8,0]") "}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[0,\"8\"]") "}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[0.5,8]") "}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[0,1e300]") "}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[0,9007199254740992]") "}", "data_offsets are not two whole numbers"},
    {"{" TENSOR("a", "F32", "[2]", "[8,0]") "}", "data ends at 0, before it begins at 8"},
    {"{" TENSOR("a", "F32", "[3]", "[0,12]") "}", "data ends at byte 12, and the file has 8 bytes of data"},
    {"{" TENSOR("a", "F32", "[2]", "[4096,4104]") "}", "data ends at byte 4104"},
    {"{" TENSOR("a", "F32", "[3]", "[0,8]") "}", "shape of F32 needs 12 bytes, its data_offsets give 8"},
    {"{" TENSOR("a", "F16", "[2]", "[0,8]") "}", "shape of F16 needs 4 bytes, its data_offsets give 8"},
    {"{" TENSOR("a", "F64", "[2]", "[0,8]") "}", "shape of F64 needs 16 bytes"},
    {"{" TENSOR("a", "F32", "[-2]", "[0,8]") "}", "length 1 of its shape is no whole number"},
    {"{" TENSOR("a", "F32", "[2,1.5]", "[0,8]") "}", "length 2 of its shape is no whole number"},
    {"{" TENSOR("a", "F32", "[2,null]", "[0,8]") "}", "length 2 of its shape is no whole number"},
    {"{" TENSOR("a", "F32", "[4294967296,4294967296]", "[0,8]") "}", "shape is too large"},
    {"{" TENSOR("a", "F32", "[2147483648,2147483648,1]", "[0,0]") "}", "shape is too large"}, /* 2^64 bytes */
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("a", "F32", "[1]", "[4,8]") "}", "two tensors \"a\""},
    {"{" TENSOR("a", "F32", "[2]", "[0,8]") "," TENSOR("b", "F32", "[1]", "[4,8]") "}", "\"a\" and \"b\" overlap"},
    {"{" TENSOR("a", "F32", "[1]", "[4,8]") "}", "4 bytes before tensor \"a\" belong to none"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "}", "4 bytes at its end belong to no tensor"},
    {"{\"__metadata__\":{}}", "8 bytes at its end belong to no tensor"},
    {"{" TENSOR("a\\u0000b", "F32", "[2]", "[0,8]") "}", "header has a character 0"},
    {"{" TENSOR("a\\\\\\u0000b", "F32", "[2]", "[0,8]") "}", "header has a character 0"},
};

static void test_refuses_broken_headers(void **state)
{
    (void)state;
    const char *path = scratch_path(folder, "broken");
    char kept[PATH_MAX];
    snprintf(kept, sizeof kept, "%s", path);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        safetensors_write(kept, broken[i].header, "12345678", 8);
        assert_refused(kept, EBADMSG, broken[i].why);
    }
    static const char nul[] = "{\"a\0b\":1}";
    safetensors_write_as(kept, sizeof nul - 1, nul, sizeof nul - 1, NULL, 0);
    assert_refused(kept, EBADMSG, "header has a character 0");

    /* What looks alike and is right. */
    static const char *const right[] = {
        "{" TENSOR("a", "F32", "[2]", "[0,8]") "}",
        "{" TENSOR("a\\\\u0000b", "F32", "[2]", "[0,8]") "}  \n",
        "{" TENSOR("a", "F32", "[]", "[0,4]") "," TENSOR("b", "F32", "[1,1,1,1,1]", "[4,8]") "}",
        "{" TENSOR("a", "F4", "[16]", "[0,8]") "}",
        "{" TENSOR("a", "F32", "[2.0]", "[0,8e0]") "}",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        char error[512] = "";
        safetensors_write(kept, right[i], "12345678", 8);
        jgf_weights *weights = jgf_weights_open(kept, error, sizeof error);
        if (!weights) fail_msg("%s", error);
        jgf_weights_close(weights);
    }
}

static void test_refuses_wrong_lengths_of_the_header(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", scratch_path(folder, "length"));
    static const struct { uint64_t announced; const char *why; } lengths[] = {
        {3, "goes past the end of the file (10 bytes)"},
        {100000000, "goes past the end"},
        {100000001, "would have 100000001 bytes, and 100 MB are the most"},
        {UINT64_MAX, "would have 18446744073709551615 bytes"},
        {UINT64_MAX - 7, "would have 18446744073709551608 bytes"}, /* + 8 is 0 */
        {1, "not JSON: an error"},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        safetensors_write_as(path, lengths[i].announced, "{}", 2, NULL, 0);
        assert_refused(path, EBADMSG, lengths[i].why);
    }
    scratch_write(path, "", 0);
    assert_refused(path, EBADMSG, "has 0 bytes");
    scratch_write(path, "\2\0\0\0\0\0\0", 7);
    assert_refused(path, EBADMSG, "has 7 bytes");
    scratch_write(path, "\0\0\0\0\0\0\0\0", 8);
    assert_refused(path, EBADMSG, "header is empty");
}

/* 64 GiB of nothing behind a header: it is refused by that, without reading on. */
static void test_reads_no_more_than_it_needs(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", scratch_path(folder, "sparse"));
    safetensors_write(path, "{}", NULL, 0);
    if (truncate(path, (off_t)64 << 30) != 0) {
        print_message("SKIP no large files can be made here\n");
        skip();
    }
    assert_refused(path, EBADMSG, "68719476726 bytes at its end belong to no tensor");
}

static int open_unreadable(void *user)
{
    char error[PATH_MAX + 512] = "";
    if (jgf_weights_open(user, error, sizeof error)) return 1;
    return errno != EACCES ? 2 : !strstr(error, "cannot be opened: Permission denied") ? 3 : 0;
}

static void test_refuses_what_is_no_readable_file(void **state)
{
    (void)state;
    char path[PATH_MAX];
    assert_refused(scratch_path(folder, "missing"), ENOENT, "cannot be opened: No such file");
    assert_refused("", ENOENT, "cannot be opened");
    assert_refused(folder, EISDIR, "is a folder");
    assert_refused("/dev/zero", EBADMSG, "is no regular file");
    snprintf(path, sizeof path, "%s", scratch_path(folder, "fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20); /* a FIFO would be waited for for ever */
    assert_refused(path, EBADMSG, "is no regular file");
    alarm(0);
    char error[512] = "";
    assert_null(jgf_weights_open(NULL, error, sizeof error));
    assert_non_null(strstr(error, "cannot be opened"));
    assert_null(jgf_weights_open(path, NULL, 0));

    jgf_weights *weights = open_whole();
    jgf_weights_close(weights);
    snprintf(path, sizeof path, "%s", scratch_path(folder, "w"));
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(scratch_child(open_unreadable, path, geteuid() == 0 ? 65534 : 0), 0);
}

/* Texts that do not fit are cut, not written past the end. */
static void test_texts_keep_to_their_space(void **state)
{
    (void)state;
    char error[64];
    for (size_t size = 0; size <= 40; size++) {
        memset(error, '#', sizeof error);
        assert_null(jgf_weights_open(scratch_path(folder, "missing"), error, size));
        for (size_t i = size; i < sizeof error; i++) assert_int_equal(error[i], '#');
        if (size) assert_int_equal(strnlen(error, size), size - 1);
    }
}

/* Cut off at each byte: always refused. With any byte changed: refused or read, and then all values can be looked at. */
static void test_survives_damage(void **state)
{
    (void)state;
    char path[PATH_MAX], error[PATH_MAX + 512];
    size_t bytes, taken = 0;
    uint32_t random = 1;
    jgf_weights_close(open_whole());
    unsigned char *file = scratch_read(scratch_path(folder, "w"), &bytes);
    assert_non_null(file);
    snprintf(path, sizeof path, "%s", scratch_path(folder, "damaged"));
    for (size_t length = 0; length < bytes; length++) {
        scratch_write(path, file, length);
        assert_null(jgf_weights_open(path, error, sizeof error));
        assert_int_equal(errno, EBADMSG);
    }
    for (int i = 0; i < 3000; i++) {
        random = random * 1664525 + 1013904223;
        unsigned char *changed = &file[(random >> 8) % bytes];
        const unsigned char before = *changed;
        *changed = i % 3 ? (unsigned char)"0129-e{}[],\":\\\"\0"[(random >> 4) % 16] : (unsigned char)(random >> 24);
        scratch_write(path, file, bytes);
        jgf_weights *weights = jgf_weights_open(path, error, sizeof error);
        *changed = before;
        if (!weights) continue;
        taken++;
        jgf_tensor tensor;
        for (size_t t = 0; jgf_weights_at(weights, t, &tensor) == 0; t++)
            for (int64_t e = 0; e < jgf_tensor_elements(&tensor); e++) (void)jgf_tensor_value(&tensor, e);
        jgf_weights_close(weights);
    }
    free(file);
    assert_in_range(taken, 300, 2500); /* names and values can change, the rest cannot */
}

/* ---- numbers ---- */

static void test_16_bit_floats(void **state)
{
    (void)state;
    static const struct { jg_type type; float (*known)(uint16_t); } kinds[] = {{JG_F16, half_f16_to_f32}, {JG_BF16, half_bf16_to_f32}};
    for (uint32_t bits = 0; bits < 0x20000; bits++) {
        const uint16_t half = (uint16_t)bits;
        const int kind = bits >> 16 != 0;
        const jgf_tensor tensor = {.type = kinds[kind].type, .dims = 1, .shape = {1}, .data = &half};
        const double value = jgf_tensor_value(&tensor, 0), known = (double)kinds[kind].known(half);
        assert_true(isnan(known) ? isnan(value) : value == known && !signbit(value) == !signbit(known));
    }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_reads_tensors),
        IN_FOLDER(test_finds_by_name_and_by_its_end),
        IN_FOLDER(test_refuses_broken_headers),
        IN_FOLDER(test_refuses_wrong_lengths_of_the_header),
        IN_FOLDER(test_reads_no_more_than_it_needs),
        IN_FOLDER(test_refuses_what_is_no_readable_file),
        IN_FOLDER(test_texts_keep_to_their_space),
        IN_FOLDER(test_survives_damage),
        cmocka_unit_test(test_16_bit_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
