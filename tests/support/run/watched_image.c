/* A source that reads from an array and keeps the rectangle around all reads; see watched_image.h.
 */
#include "tests/support/run/watched_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int read_watched(void *user, const struct rfx_area *part, float *values) {
    struct watched_image *image = user;
    int64_t row_hi = part->row + part->rows, column_hi = part->column + part->columns;
    if (part->row < image->row_lo) image->row_lo = part->row;
    if (row_hi > image->row_hi) image->row_hi = row_hi;
    if (part->column < image->column_lo) image->column_lo = part->column;
    if (column_hi > image->column_hi) image->column_hi = column_hi;
    for (int64_t y = 0; y < part->rows; y++)
        for (int64_t x = 0; x < part->columns; x++)
            for (int64_t c = 0; c < part->channels; c++)
                values[y * part->row_step + x * part->column_step + c * part->channel_step] =
                    image->values[(c * image->h + part->row + y) * image->w + part->column + x];
    return 0;
}

struct watched_image watched_image_of(const float *values, int64_t h, int64_t w) {
    return (struct watched_image){.values = values, .h = h, .w = w, .row_lo = h, .column_lo = w};
}

struct rfx_source watched_image_source(struct watched_image *image) {
    return (struct rfx_source){
        .size = sizeof(struct rfx_source), .read = read_watched, .user = image};
}

void watched_image_check(const struct watched_image *image, const struct rfx_area *needed) {
    assert_int_equal(needed->channels, 3);
    if (needed->rows == 0) {
        assert_int_equal(image->row_hi, 0);
        return;
    }
    assert_int_equal(image->row_lo, needed->row);
    assert_int_equal(image->row_hi, needed->row + needed->rows);
    assert_int_equal(image->column_lo, needed->column);
    assert_int_equal(image->column_hi, needed->column + needed->columns);
}
