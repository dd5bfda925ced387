/* npy headers: texts as numpy writes them, other spellings, and everything that is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/image/decode/npy_format.h"

/* Builds a header of the version around `text`; returns its length. */
static size_t build(unsigned char *out, int major, const char *text) {
    size_t length = strlen(text), start = major == 1 ? 10 : 12;
    memcpy(out, RFX_NPY_MAGIC, 6);
    out[6] = (unsigned char)major;
    out[7] = 0;
    out[8] = (unsigned char)(length & 255);
    out[9] = (unsigned char)(length >> 8);
    if (major != 1) out[10] = out[11] = 0;
    memcpy(out + start, text, length);
    return start + length;
}

static void reads_good_headers(void **state) {
    (void)state;
    static const struct {
        const char *text, *descr;
        bool fortran;
        int rank;
        int64_t dims[4];
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 4, 5), }        \n",
         "<f4",
         false,
         4,
         {1, 3, 4, 5}},
        {"{'descr': '>f8', 'fortran_order': True, 'shape': (7,), }\n", ">f8", true, 1, {7}},
        {"{\"shape\":(2L,3L),\"descr\":\"|u1\",\"fortran_order\":False}", "|u1", false, 2, {2, 3}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", "<f4", false, 0, {0}},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 0), }",
         "<f4",
         false,
         2,
         {INT64_MAX, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int major = 1; major <= 3; major++) {
            unsigned char bytes[256];
            size_t count = build(bytes, major, cases[i].text);
            struct rfx_npy_header h;
            struct rfx_error err = {""};
            if (rfx_npy_parse(bytes, count, &h, &err) != RFX_OK) fail_msg("%s", err.text);
            assert_string_equal(h.descr, cases[i].descr);
            assert_int_equal(h.fortran_order, cases[i].fortran);
            assert_int_equal(h.shape.rank, cases[i].rank);
            for (int k = 0; k < h.shape.rank; k++)
                assert_int_equal(h.shape.dims[k], cases[i].dims[k]);
            assert_int_equal(h.data_offset, count);
        }
}

static void refuses_bad_headers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum rfx_status status;
    } cases[] = {
        {"", RFX_STATUS_MALFORMED},
        {"{", RFX_STATUS_MALFORMED},
        {"{}", RFX_STATUS_MALFORMED},
        {"[1, 2]", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False}", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
         RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
         RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} more", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", RFX_STATUS_MALFORMED},
        {"{'descr': '<f4 and a very long name', 'fortran_order': False, 'shape': (1,)}",
         RFX_STATUS_MALFORMED},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", RFX_STATUS_MALFORMED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
         RFX_STATUS_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         RFX_STATUS_UNSUPPORTED},
    };
    unsigned char bytes[256];
    struct rfx_npy_header h;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count = build(bytes, 1, cases[i].text);
        struct rfx_error err = {""};
        enum rfx_status status = rfx_npy_parse(bytes, count, &h, &err);
        if (status != cases[i].status) fail_msg("%s: status %d", cases[i].text, status);
        assert_true(err.text[0] != '\0');
    }
    size_t count = build(bytes, 4, "{}");
    assert_int_equal(rfx_npy_parse(bytes, count, &h, NULL), RFX_STATUS_UNSUPPORTED);
    count = build(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}");
    for (size_t cut = 0; cut < count; cut++)
        assert_int_equal(rfx_npy_parse(bytes, cut, &h, NULL), RFX_STATUS_MALFORMED);
    bytes[9] = 0xff; /* a header of 65,000 bytes */
    assert_int_equal(rfx_npy_parse(bytes, count, &h, NULL), RFX_STATUS_UNSUPPORTED);
    bytes[0] = 0;
    assert_int_equal(rfx_npy_parse(bytes, count, &h, NULL), RFX_STATUS_MALFORMED);
}

static void writes_what_numpy_writes(void **state) {
    (void)state;
    static const struct {
        struct rfx_shape shape;
        const char *text;
    } cases[] = {
        {{4, {1, 1000, 7, 7}},
         "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1000, 7, 7), }"},
        {{1, {5}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }"},
        {{0, {0}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"},
        {{8,
          {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}},
         "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char bytes[512];
        size_t count = 0;
        assert_int_equal(
            rfx_npy_format(&cases[i].shape, RFX_TYPE_FLOAT32, bytes, sizeof bytes, &count, NULL),
            RFX_OK);
        assert_int_equal(count % 64, 0);
        assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
        assert_int_equal(bytes[8] + 256 * bytes[9], count - 10);
        size_t length = strlen(cases[i].text);
        assert_memory_equal(bytes + 10, cases[i].text, length);
        assert_int_equal(bytes[count - 1], '\n');
        if (i < 3)
            for (size_t k = 10 + length; k < count - 1; k++) assert_int_equal(bytes[k], ' ');
        assert_int_equal(rfx_npy_format(&cases[i].shape, RFX_TYPE_FLOAT32, bytes, 63, &count, NULL),
                         RFX_STATUS_INVALID_ARGUMENT);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_good_headers),
        cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(writes_what_numpy_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
