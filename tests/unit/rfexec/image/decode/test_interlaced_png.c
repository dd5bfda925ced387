/* Rows put together of seven passes: every size around a multiple of eight, rows asked for in any
 * order, folders and disks that are not there. What a PNG's passes hold is in test_image_png. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "rfexec/image/decode/interlaced_png.h"

/* The pass of a pixel, by the 8 x 8 figure of the PNG specification. */
static const char figure[8][9] = {"16462646", "77777777", "56565656", "77777777",
                                  "36463646", "77777777", "56565656", "77777777"};

/* Puts pixel (y, x), whose bytes are y, x and their sum, where the figure says. */
static enum rfx_status put_all(struct rfx_passes *p, struct rfx_error *err) {
    for (int pass = 0; pass < RFX_PASSES; pass++) {
        int64_t row = 0;
        for (int y = 0; y < (int)p->h; y++) {
            unsigned char *to = rfx_passes_room(p);
            int64_t columns = 0;
            for (int x = 0; x < (int)p->w; x++) {
                if (figure[y % 8][x % 8] != '1' + pass) continue;
                to[3 * columns] = (unsigned char)y;
                to[3 * columns + 1] = (unsigned char)x;
                to[3 * columns++ + 2] = (unsigned char)(x + y);
            }
            if (columns == 0) continue;
            assert_int_equal(columns, rfx_passes_columns(p, pass));
            assert_int_equal(y, rfx_passes_row_of(pass, row));
            enum rfx_status status = rfx_passes_put(p, pass, row++, "name", err);
            if (status != RFX_OK) return status;
        }
        if (rfx_passes_columns(p, pass) > 0) assert_int_equal(row, rfx_passes_rows(p, pass));
    }
    return RFX_OK;
}

static void check_row(struct rfx_passes *p, int64_t y) {
    const unsigned char *row = NULL;
    assert_int_equal(rfx_passes_row(p, y, &row, "name", NULL), RFX_OK);
    for (int64_t x = 0; x < p->w; x++)
        if (row[3 * x] != y || row[3 * x + 1] != x || row[3 * x + 2] != x + y)
            fail_msg("%d x %d, (%d, %d): %d %d %d", (int)p->h, (int)p->w, (int)y, (int)x,
                     row[3 * x], row[3 * x + 1], row[3 * x + 2]);
}

static void every_size(void **state) {
    (void)state;
    for (int64_t h = 1; h <= 18; h++)
        for (int64_t w = 1; w <= 18; w++) {
            struct rfx_memory *mem = rfx_memory_create(0);
            struct rfx_passes p;
            rfx_passes_init(&p, h, w, 3, NULL);
            assert_int_equal(rfx_passes_open(mem, &p, "name", NULL), RFX_OK);
            assert_int_equal(rfx_memory_high_water_bytes(mem), rfx_passes_bytes(&p));
            assert_int_equal(put_all(&p, NULL), RFX_OK);
            for (int64_t y = 0; y < h; y++) check_row(&p, y);
            for (int64_t y = h; y-- > 0;) check_row(&p, y * 7 % h);
            rfx_passes_close(mem, &p);
            rfx_memory_free(mem);
        }
}

static void says_what_the_file_lacks(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    struct rfx_passes p;
    rfx_passes_init(&p, 20, 20, 3, "nowhere");
    assert_int_equal(rfx_passes_open(mem, &p, "name", &err), RFX_STATUS_IO);
    assert_string_equal(err.text,
                        "name: is interlaced, and its passes are put together in a file "
                        "of 0.0 MiB: cannot make it in 'nowhere': No such file or "
                        "directory (--spill or TMPDIR is another folder)");
    rfx_passes_close(mem, &p);
    rfx_passes_init(&p, 20, 20, 3, NULL);
    assert_int_equal(rfx_passes_open(mem, &p, "name", &err), RFX_OK);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 700;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum rfx_status status = put_all(&p, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "cannot write in '"));
    const unsigned char *row = NULL; /* the file is short */
    assert_int_equal(rfx_passes_row(&p, 19, &row, "name", &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "cannot read in '"));
    rfx_passes_close(mem, &p);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(says_what_the_file_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
