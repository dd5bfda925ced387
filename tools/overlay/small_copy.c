/* See small_copy.h. */
#include "tools/overlay/small_copy.h"

#include "layers/core/checked.h"
#include "rfexec/output/samples.h"

/* Sides in the picture's proportions. */
static struct rfx_small_copy shape_of(int64_t h, int64_t w) {
    int64_t longer = rfx_max_i64(h, w), side = rfx_min_i64(longer, RFX_SMALL_COPY_SIDE);
    return (struct rfx_small_copy){.h = h,
                                   .w = w,
                                   .rows = rfx_max_i64(1, h * side / longer),
                                   .cols = rfx_max_i64(1, w * side / longer)};
}

static size_t bytes_of(const struct rfx_small_copy *copy) {
    return (size_t)(3 * copy->rows * copy->cols);
}

size_t rfx_small_copy_bytes(int64_t h, int64_t w) {
    struct rfx_small_copy shape = shape_of(h, w);
    return bytes_of(&shape);
}

enum rfx_status rfx_small_copy_create(struct rfx_memory *mem, int64_t h, int64_t w,
                                      struct rfx_small_copy *copy, struct rfx_error *err) {
    struct rfx_small_copy made = shape_of(h, w);
    made.mem = mem;
    made.rgb = rfx_memory_calloc(mem, bytes_of(&made), 1);
    if (made.rgb == NULL) return rfx_memory_fail(mem, "small overlay", bytes_of(&made), err);
    *copy = made;
    return RFX_OK;
}

void rfx_small_copy_free(struct rfx_small_copy *copy) {
    if (copy->mem != NULL) rfx_memory_release(copy->mem, copy->rgb);
    *copy = (struct rfx_small_copy){0};
}

/* The first row of the copy that is row y of the picture or one below it. */
static int64_t row_of(const struct rfx_small_copy *copy, int64_t y) {
    return rfx_ceil_div(y * copy->rows, copy->h);
}

bool rfx_small_copy_wants(const struct rfx_small_copy *copy, int64_t y) {
    if (copy->mem == NULL) return false;
    int64_t row = row_of(copy, y);
    return row < copy->rows && row * copy->h / copy->rows == y;
}

void rfx_small_copy_take(struct rfx_small_copy *copy, int64_t y, const float *colours) {
    if (!rfx_small_copy_wants(copy, y)) return;
    unsigned char *to = copy->rgb + 3 * row_of(copy, y) * copy->cols;
    const struct rfx_value_range all = {0.0, 255.0};
    for (int64_t x = 0; x < copy->cols; ++x)
        rfx_samples_of(RFX_TYPE_FLOAT32, colours + 3 * (x * copy->w / copy->cols), 3, all, 8,
                       to + 3 * x);
}
