/* Printable forms, against a table made by hand from the Unicode standard's definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/core/printable.h"
#include "layers/core/status.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"features.0/Conv_1:0 \\ ~", "features.0/Conv_1:0 \\ ~"},
    {"a\tb\nc\rd", "a\\x09b\\x0ac\\x0dd"},
    {"\033[2J\177", "\\x1b[2J\\x7f"},
    {"\xc3\xa9 \xe5\x8d\xb7 \xf0\x9f\x98\x80", "\xc3\xa9 \xe5\x8d\xb7 \xf0\x9f\x98\x80"},
    {"\xc2\x9b", "\\xc2\\x9b"},                                     /* CSI as one character */
    {"\xc2\xa0", "\xc2\xa0"},                                       /* the first above C1 */
    {"\xe2\x80\xae\xe2\x80\xa8", "\\xe2\\x80\\xae\\xe2\\x80\\xa8"}, /* turned text, a line end */
    {"\xef\xbb\xbf", "\\xef\\xbb\\xbf"},                            /* a byte order mark */
    {"\xff\x80", "\\xff\\x80"},
    {"\xc0\xaf\xe0\x80\xaf", "\\xc0\\xaf\\xe0\\x80\\xaf"}, /* overlong slashes */
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},                   /* a surrogate */
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},          /* beyond the last code */
    {"\xf4\x8f\xbf\xbd", "\xf4\x8f\xbf\xbd"},
    {"\xe5\x8d", "\\xe5\\x8d"}, /* cut off */
    {"\xe5\x8dz", "\\xe5\\x8dz"},
};
enum { CASES = sizeof cases / sizeof *cases };

static void shows_what_it_should(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int i = 0; i < CASES; i++) {
        char shown[64], again[64];
        rfx_printable(cases[i].text, shown, sizeof shown);
        assert_string_equal(shown, cases[i].shown);
        assert_int_equal(rfx_is_printable(cases[i].text), strcmp(cases[i].text, shown) == 0);
        assert_true(rfx_is_printable(shown));
        rfx_printable(shown, again, sizeof again);
        assert_string_equal(again, shown);
        char *copy = rfx_printable_copy(mem, cases[i].text);
        assert_string_equal(copy, cases[i].shown);
        rfx_memory_release(mem, copy);
    }
    rfx_memory_fail_after(mem, 0);
    assert_null(rfx_printable_copy(mem, "a"));
    assert_null(rfx_printable_copy(mem, "\n"));
    rfx_memory_free(mem);
}

/* Any size: whole characters and escapes, and the end. */
static void cuts_between_characters(void **state) {
    (void)state;
    static const char text[] = "a\xc3\xa9\n\xe5\x8d\xb7";
    static const char *const cut[] = {"", "", "a", "a", "a\xc3\xa9", "a\xc3\xa9"};
    for (size_t size = 1; size < sizeof cut / sizeof *cut; size++) {
        char shown[16];
        memset(shown, 'x', sizeof shown);
        rfx_printable(text, shown, size);
        assert_string_equal(shown, cut[size]);
        assert_int_equal(shown[size], 'x');
    }
}

static void counts_bytes_of_characters(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int bytes;
    } counts[] = {{"a", 1},
                  {"\x7f", 1},
                  {"\xc2\x80", 2},
                  {"\xdf\xbfz", 2},
                  {"\xe0\xa0\x80", 3},
                  {"\xed\x9f\xbf", 3},
                  {"\xf4\x8f\xbf\xbf", 4},
                  {"\x80", 0},
                  {"\xc1\xbf", 0},
                  {"\xe0\x9f\xbf", 0},
                  {"\xed\xa0\x80", 0},
                  {"\xf4\x90\x80\x80", 0},
                  {"\xf5\x80\x80\x80", 0},
                  {"\xe5\x8d", 0}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        assert_int_equal(rfx_utf8_bytes(counts[i].text), counts[i].bytes);
}

static void trims_what_was_cut(void **state) {
    (void)state;
    static const char *const texts[][2] = {{"", ""},
                                           {"a", "a"},
                                           {"a\xe5", "a"},
                                           {"a\xe5\x8d", "a"},
                                           {"\xe5", ""},
                                           {"a\xe5\x8d\xb7", "a\xe5\x8d\xb7"},
                                           {"\xc3\xa9", "\xc3\xa9"},
                                           {"\xf0\x9f\x98", ""}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[8];
        memcpy(text, texts[i][0], strlen(texts[i][0]) + 1);
        rfx_trim_cut_character(text);
        assert_string_equal(text, texts[i][1]);
    }
}

static void error_texts_are_printable(void **state) {
    (void)state;
    struct rfx_error err;
    char name[400];
    (void)rfx_fail(&err, RFX_STATUS_MALFORMED, "node '%s'", "\033[2J\n");
    assert_string_equal(err.text, "node '\\x1b[2J\\x0a'");
    (void)rfx_fail_within(&err, RFX_STATUS_MALFORMED, "%s", "\a");
    assert_string_equal(err.text, "\\x07: node '\\x1b[2J\\x0a'");
    for (size_t i = 0; i + 3 < sizeof name; i += 3) memcpy(name + i, "\xe5\x8d\xb7", 4);
    for (int n = 0; n < 3; n++) {
        (void)rfx_fail(&err, RFX_STATUS_MALFORMED, "%.*s%s%s", n, "abc", name, name);
        assert_true(rfx_is_printable(err.text));
        assert_null(strchr(err.text, '\\'));
        assert_true(strlen(err.text) > sizeof err.text - 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_what_it_should),       cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(counts_bytes_of_characters), cmocka_unit_test(trims_what_was_cut),
        cmocka_unit_test(error_texts_are_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
