/* src/helper_wire.c: every bound of a message, from both sides of it. */
#include "helper_wire.h"

#include "jitgemm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static wire_request good_request(void)
{
    return (wire_request){.magic = WIRE_REQUEST_MAGIC, .arch = 87, .nvrtc_path_bytes = 1, .name_bytes = 2, .source_bytes = 3};
}

static wire_reply good_reply(void)
{
    return (wire_reply){.magic = WIRE_REPLY_MAGIC, .text_bytes = 1, .cubin_bytes = 1};
}

static void requests_are_bounded(void **state)
{
    (void)state;
    wire_request r = good_request();
    assert_true(wire_is_request(&r));
    r.nvrtc_path_bytes = r.name_bytes = WIRE_MAX_TEXT_BYTES;
    r.source_bytes = WIRE_MAX_SOURCE_BYTES;
    assert_true(wire_is_request(&r));
    uint32_t *const lengths[] = {&r.nvrtc_path_bytes, &r.name_bytes, &r.source_bytes};
    for (int i = 0; i < 3; i++) {
        const uint32_t most = *lengths[i];
        *lengths[i] = most + 1;
        assert_false(wire_is_request(&r));
        *lengths[i] = 0;
        assert_false(wire_is_request(&r));
        *lengths[i] = most;
    }
    r.arch = 0;
    assert_false(wire_is_request(&r));
    r = good_request();
    r.magic[0]++;
    assert_false(wire_is_request(&r));
}

static void replies_are_bounded(void **state)
{
    (void)state;
    wire_reply r = good_reply();
    assert_true(wire_is_reply(&r));
    r.cubin_bytes = r.ptx_bytes = WIRE_MAX_IMAGE_BYTES;
    r.text_bytes = WIRE_MAX_TEXT_BYTES;
    assert_true(wire_is_reply(&r));
    r.text_bytes++;
    assert_false(wire_is_reply(&r));
    r.text_bytes = 0;
    assert_false(wire_is_reply(&r));
    r = good_reply();
    r.cubin_bytes = WIRE_MAX_IMAGE_BYTES + 1ull;
    assert_false(wire_is_reply(&r));
    r = good_reply();
    r.ptx_bytes = UINT64_MAX; /* together with the cubin's: 0 */
    assert_false(wire_is_reply(&r));
    r = good_reply();
    r.magic[6]++;
    assert_false(wire_is_reply(&r));
    r = good_reply();
    memset(r.provenance, 'x', sizeof r.provenance);
    assert_false(wire_is_reply(&r));
}

/* An image with success and only then; and no status that the host would not expect of a compile. */
static void a_reply_fits_its_status(void **state)
{
    (void)state;
    wire_reply r = good_reply();
    r.cubin_bytes = 0;
    assert_false(wire_is_reply(&r));
    r.ptx_bytes = 1;
    assert_true(wire_is_reply(&r));
    for (int status = -1; status < 130; status++) {
        const int is_answer = status == JG_ERR_NO_NVRTC || status == JG_ERR_COMPILE || status == JG_ERR_ARCH || status == JG_ERR_NO_MEMORY;
        r.status = status;
        r.ptx_bytes = 1;
        assert_int_equal(wire_is_reply(&r), status == JG_OK);
        r.ptx_bytes = 0;
        assert_int_equal(wire_is_reply(&r), is_answer);
    }
}

static void texts_end_where_they_say(void **state)
{
    (void)state;
    assert_true(wire_is_text("", 1));
    assert_true(wire_is_text("ab", 3));
    assert_false(wire_is_text("ab", 2));
    assert_false(wire_is_text("ab", 0));
    assert_false(wire_is_text("a\0b", 4));
}

static void greetings_of_others_are_told(void **state)
{
    (void)state;
    char why[200];
    wire_greeting g;
    wire_greet(&g);
    wire_judge_greeting(&g, why, sizeof why);
    assert_string_equal(why, "");
    assert_non_null(strstr(g.build, jg_version()));
    assert_null(strstr(g.build, "build 0")); /* the Makefile's digest is in it */
    strcpy(g.build, "9.9.9 build 1");
    wire_judge_greeting(&g, why, sizeof why);
    assert_non_null(strstr(why, "another version than the library (9.9.9 build 1, not 0"));
    memset(&g.build, 'x', sizeof g.build); /* without an end */
    wire_judge_greeting(&g, why, sizeof why);
    assert_non_null(strstr(why, "another version"));
    g.magic[0]++;
    wire_judge_greeting(&g, why, sizeof why);
    assert_string_equal(why, "is no jitgemm-compile");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_bounded),
        cmocka_unit_test(replies_are_bounded),
        cmocka_unit_test(a_reply_fits_its_status),
        cmocka_unit_test(texts_end_where_they_say),
        cmocka_unit_test(greetings_of_others_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
