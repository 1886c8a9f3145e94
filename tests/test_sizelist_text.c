/* tools/sizelist.c: a list in memory is read as the same text in a file is, errors included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/scratch_fixture.h"
#include "tools/sizelist.h"

static const jg_problem defaults[2] = {{.type_a = JG_F32, .type_b = JG_F32, .type_c = JG_F32},
                                       {.type_a = JG_F16, .type_b = JG_F16, .type_c = JG_F16}};

static char long_line[SIZELIST_LINE_MAX + 8];

/* Each text, how many problems it gives, and what follows "NAME:" in the error; null if there is none. */
static const struct {
    const char *text;
    size_t count;
    const char *error;
} cases[] = {
    {"", 0, NULL},
    {"\n\n", 0, NULL},
    {"# nothing\n   # but comments", 0, NULL},
    {"64", 2, NULL},
    {"64\n", 2, NULL},
    {"  64 # a square\r\n1x2x3\t\r\n", 4, NULL},
    {"64:f16\n64:f32", 2, NULL},
    {"64\n\n65x\n66\n", 2, "3: "},
    {"64 65\n", 0, "1: \"64 65\": one size a line, without blanks inside"},
    {"64\n\xff\xfe\n", 2, "2: "},
    {long_line, 0, "1: the line is longer than 512 bytes"},
};

static void text_and_file_are_read_alike(void **state)
{
    (void)state;
    char expected[4300];
    memset(long_line, '6', sizeof long_line - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sizelist text = {0}, file = {0};
        const char *path = scratch_path(folder, "list.txt");
        scratch_write(path, cases[i].text, strlen(cases[i].text));
        const int result = sizelist_read_text(&text, path, cases[i].text, defaults, 2);
        assert_int_equal(result, cases[i].error ? -1 : 0);
        assert_int_equal(sizelist_read(&file, path, defaults, 2), result);
        assert_int_equal(text.count, cases[i].count);
        assert_int_equal(file.count, cases[i].count);
        for (size_t k = 0; k < text.count; k++) assert_memory_equal(&text.items[k], &file.items[k], sizeof *text.items);
        assert_string_equal(text.error, file.error);
        if (cases[i].error) {
            snprintf(expected, sizeof expected, "%s:%s", path, cases[i].error);
            assert_memory_equal(text.error, expected, strlen(expected));
        }
        sizelist_free(&text);
        sizelist_free(&file);
    }
}

static void texts_are_added_to_what_is_there(void **state)
{
    (void)state;
    sizelist list = {0};
    assert_int_equal(sizelist_read_text(&list, "first", "64\n", defaults, 1), 0);
    assert_int_equal(sizelist_read_text(&list, "second", "65\n66\n", defaults, 1), 0);
    assert_int_equal(sizelist_read_text(&list, "third", "67\nx\n", defaults, 1), -1);
    assert_int_equal(list.count, 4);
    assert_int_equal(list.items[2].m, 66);
    assert_memory_equal(list.error, "third:2: ", 9);
    sizelist_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_and_file_are_read_alike, make_folder, remove_folder),
        cmocka_unit_test(texts_are_added_to_what_is_there),
    };
    return cmocka_run_group_tests_name("sizelist_text", tests, NULL, NULL);
}
