/* The text form of placement problems: what is read, what is refused, what is written. */
#include "tools/study/placement_csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"

static struct rfx_place_table *parse(const char *text) {
    struct rfx_place_table *table = NULL;
    struct rfx_error err = {{0}};
    if (rfx_place_table_parse(placement_mem, text, strlen(text), &table, &err) != RFX_OK)
        fail_msg("%s\n%s", err.text, text);
    return table;
}

static void reads_and_writes(void **state) {
    (void)state;
    struct rfx_place_table *table =
        parse("# made by hand\r\nsize, id ,upper,lower\r\n\r\n 7 ,conv 1, 5,-2\r\n9,b,3,0");
    assert_int_equal(table->n, 2);
    assert_string_equal(table->ids[0], "conv 1");
    assert_int_equal(table->items[0].lo, -2);
    assert_int_equal(table->items[0].hi, 5);
    assert_int_equal(table->items[0].size, 7);
    assert_int_equal(table->items[0].alignment, 1);
    const size_t offsets[] = {9, 0};
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_true(rfx_place_table_write(table, offsets, stream));
    (void)fclose(stream);
    assert_string_equal(text, "id,lower,upper,size,offset\nconv 1,-2,5,7,9\nb,0,3,9,0\n");
    rfx_place_table_free(table);
    table = parse(text); /* an answer is a problem again */
    assert_int_equal(table->n, 2);
    free(text);
    rfx_place_table_free(table);
    table = parse("id,lower,upper,size,alignment\na,0,1,5,64\n");
    assert_int_equal(table->items[0].alignment, 64);
    stream = open_memstream(&text, &size);
    assert_true(rfx_place_table_write(table, &offsets[1], stream));
    (void)fclose(stream);
    assert_string_equal(text, "id,lower,upper,size,alignment,offset\na,0,1,5,64,0\n");
    free(text);
    rfx_place_table_free(table);
    table = parse("id,lower,upper,size\n");
    assert_int_equal(table->n, 0);
    rfx_place_table_free(table);
}

/* Lines that start with # are skipped; an id may all the same. */
static void ids_may_look_like_remarks(void **state) {
    (void)state;
    struct rfx_place_table *table = parse("lower,id,upper,size\n0,#1,2,5\n#,0,2,5\n");
    const size_t offset = 0;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_int_equal(table->n, 1);
    assert_true(rfx_place_table_write(table, &offset, stream));
    (void)fclose(stream);
    rfx_place_table_free(table);
    table = parse(text);
    assert_int_equal(table->n, 1);
    assert_string_equal(table->ids[0], "#1");
    rfx_place_table_free(table);
    free(text);
}

static void refuses(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "no header"},
        {"\n# nothing\n", "no header"},
        {"id,lower,upper\na,0,1\n", "no column 'size'"},
        {"id,lower,upper,size,colour\n", "'colour' is not known"},
        {"id,lower,upper,size,id\n", "'id' comes twice"},
        {"id,lower,upper,size\na,0,1\n", "line 2: fewer"},
        {"id,lower,upper,size\na,0,1,2,3\n", "line 2: more"},
        {"id,lower,upper,size\na,0,1,2\n\na,3,4,5\n", "id 'a' comes twice"},
        {"id,lower,upper,size\n,0,1,2\n", "'' is no id"},
        {"id,lower,upper,size\n\"a\",0,1,2\n", "is no id"},
        {"id,lower,upper,size\na,0,1,\n", "'' is no size"},
        {"id,lower,upper,size\na,0,1,-4\n", "'-4' is no size"},
        {"id,lower,upper,size\na,0,1,4.5\n", "'4.5' is no size"},
        {"id,lower,upper,size\na,0,1,0x10\n", "'0x10' is no size"},
        {"id,lower,upper,size\na,0,1,9223372036854775808\n", "is no size"},
        {"id,lower,upper,size\na,--1,1,1\n", "is no lower"},
        {"id,lower,upper,size\na,0,+1,1\n", "is no upper"},
        {"id,lower,upper,size\na,0,1,0\n", "the size is 0"},
        {"id,lower,upper,size\na,1,1,4\n", "[1, 1) is empty"},
        {"id,lower,upper,size\na,2,1,4\n", "[2, 1) is empty"},
        {"id,lower,upper,size,alignment\na,0,1,4,0\n", "alignment 0"},
        {"id,lower,upper,size,alignment\na,0,1,4,12\n", "alignment 12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_place_table *table = NULL;
        struct rfx_error err = {{0}};
        enum rfx_status status =
            rfx_place_table_parse(placement_mem, cases[i][0], strlen(cases[i][0]), &table, &err);
        if (status != RFX_STATUS_MALFORMED || strstr(err.text, cases[i][1]) == NULL)
            fail_msg("expected \"%s\", got %d \"%s\"", cases[i][1], status, err.text);
        assert_null(table);
        assert_int_equal(rfx_memory_current_bytes(placement_mem), 0);
    }
    struct rfx_place_table *table = NULL;
    assert_int_equal(rfx_place_table_parse(placement_mem, "id\0x", 4, &table, NULL),
                     RFX_STATUS_MALFORMED);
    assert_int_equal(rfx_place_table_read(placement_mem, "no/such/file.csv", &table, NULL),
                     RFX_STATUS_IO);
}

/* Any cut and any changed byte of a good text is parsed or refused, without leaks or overruns. */
static void survives_damage(void **state) {
    (void)state;
    static const char good[] = "id,lower,upper,size,alignment\na,0,3,10,4\nb,-1,2,7,1\n";
    size_t length = sizeof good - 1;
    int refused = 0;
    for (size_t at = 0; at < length; at++) {
        for (int c = 0; c < 130; c++) {
            char text[sizeof good];
            struct rfx_place_table *table = NULL;
            memcpy(text, good, sizeof good);
            text[at] = (char)c;
            size_t n = c == 129 ? at : length; /* 129: cut here */
            enum rfx_status status = rfx_place_table_parse(placement_mem, text, n, &table, NULL);
            assert_true(status == RFX_OK || status == RFX_STATUS_MALFORMED);
            refused += status != RFX_OK;
            rfx_place_table_free(table);
        }
    }
    assert_true(refused > 100);
    assert_int_equal(rfx_memory_current_bytes(placement_mem), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_writes),
        cmocka_unit_test(ids_may_look_like_remarks),
        cmocka_unit_test(refuses),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
