/* Tables and wrapped sentences: never cut without a width, within it with one, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"
#include "tools/cli/command.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"

/* The program's, which is not linked. */
void rfx_cli_message(const char *format, ...) {
    (void)format;
}

int rfx_cli_fail(enum rfx_status status, const struct rfx_error *err) {
    (void)err;
    return (int)status;
}

static const struct rfx_table_column columns[] = {
    {"layer", RFX_TABLE_WORDS}, {"MACs", RFX_TABLE_NUMBER}, {"what it is", RFX_TABLE_WORDS}};
static char text[4096];

/* The table in `text`. */
static void print(const struct rfx_table *table, int width) {
    FILE *file = tmpfile();
    assert_non_null(file);
    rfx_table_print(table, file, width);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    (void)fclose(file);
}

static struct rfx_table *make(struct rfx_memory *mem) {
    struct rfx_table *table = rfx_table_create(mem, columns, 3);
    rfx_table_cell(table, "conv");
    rfx_table_cell(table, "%d", 7);
    rfx_table_cell(table, "a convolution of rather many words");
    rfx_table_cell(table, "\xc3\xa9\xc3\xa9"); /* two characters, four bytes */
    rfx_table_cell(table, "12345");
    rfx_table_cell(table, "x");
    return table;
}

static void columns_are_as_wide_as_needed(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_table *table = make(mem);
    print(table, 0);
    assert_string_equal(text,
                        "layer   MACs  what it is\n"
                        "conv       7  a convolution of rather many words\n"
                        "\xc3\xa9\xc3\xa9     12345  x\n");
    rfx_table_free(table);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void words_give_way_to_a_terminal(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_table *table = make(mem);
    print(table, 30);
    assert_string_equal(text,
                        "layer   MACs  what it is\n"
                        "conv       7  a convolution ..\n"
                        "\xc3\xa9\xc3\xa9     12345  x\n");
    print(table, 26); /* the least of words */
    assert_string_equal(text,
                        "layer   MACs  what it is\n"
                        "conv       7  a convolut..\n"
                        "\xc3\xa9\xc3\xa9     12345  x\n");
    print(table, 25); /* too long all the same */
    assert_string_equal(text,
                        "layer   MACs  what it is\n"
                        "conv       7  a convolution of rather many words\n"
                        "\xc3\xa9\xc3\xa9     12345  x\n");
    rfx_table_free(table);
    rfx_memory_free(mem);
}

static void names_keep_their_ends(void **state) {
    static const struct rfx_table_column names[] = {{"layer", RFX_TABLE_NAMES},
                                                    {"n", RFX_TABLE_NUMBER}};
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_table *table = rfx_table_create(mem, names, 2);
    rfx_table_cell(table, "features.\xc3\xa9.conv.0");
    rfx_table_cell(table, "1");
    print(table, 15);
    assert_string_equal(text,
                        "layer         n\n"
                        "..s.\xc3\xa9.conv.0  1\n");
    rfx_table_free(table);
    rfx_memory_free(mem);
}

/* A table that does not fit memory: nothing is printed. Last, as it stays noted. */
static void lack_of_memory_is_noted(void **state) {
    (void)state;
    assert_false(rfx_report_lacks_memory());
    struct rfx_memory *mem = rfx_memory_create(0);
    rfx_memory_fail_after(mem, 0);
    struct rfx_table *table = make(mem);
    assert_null(table);
    print(table, 0);
    assert_string_equal(text, "");
    rfx_table_free(table);
    assert_true(rfx_report_lacks_memory());
    rfx_memory_free(mem);
}

static void sentences_break_between_words(void **state) {
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    rfx_table_print_wrapped(file, "one two three four", 2, 9);
    rfx_table_print_wrapped(file, "one two three four", 2, 0);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    assert_string_equal(text, "one two\n  three\n  four\none two three four\n");
    (void)fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_needed),
        cmocka_unit_test(words_give_way_to_a_terminal),
        cmocka_unit_test(names_keep_their_ends),
        cmocka_unit_test(sentences_break_between_words),
        cmocka_unit_test(lack_of_memory_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
