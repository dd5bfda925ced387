/* Masks as bits. */
#include "tools/masks/mask.h"

#include <unistd.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_source.h"

void rfx_mask_release(struct rfx_mask *mask) {
    if (mask->mem != NULL) rfx_memory_release(mask->mem, mask->bits);
    mask->bits = NULL;
}

size_t rfx_mask_bytes(const struct rfx_mask *mask) {
    return (size_t)mask->h * mask->row_bytes;
}

static enum rfx_status read_rows(struct rfx_mask *mask, struct rfx_image *image, float *row,
                                 struct rfx_error *err) {
    enum rfx_status status = rfx_image_set_window(image, 1, err);
    for (int64_t y = 0; y < mask->h && status == RFX_OK; y++) {
        struct rfx_rect rect = rfx_rect_make(y, y + 1, 0, mask->w);
        struct rfx_view view = rfx_view_dense(row, rect, 1);
        unsigned char *bits = mask->bits + (size_t)y * mask->row_bytes;
        status = rfx_image_read(image, rect, &view, err);
        for (int64_t x = 0; x < mask->w && status == RFX_OK; x++)
            if (row[x] != 0.0f && row[x] == row[x])
                bits[x / 8] = (unsigned char)(bits[x / 8] | 1u << x % 8);
        if (status == RFX_OK) status = rfx_memory_check_stop(mask->mem, err);
    }
    return status;
}

static enum rfx_status read_image(struct rfx_mask *mask, struct rfx_image *image, const char *path,
                                  size_t most_bytes, struct rfx_error *err) {
    const struct rfx_source_traits t = rfx_image_traits(image);
    size_t row_bytes = (size_t)t.w * sizeof(float);
    mask->h = t.h;
    mask->w = t.w;
    mask->row_bytes = (size_t)rfx_ceil_div(t.w, 8);
    size_t bytes = rfx_mask_bytes(mask) + row_bytes + t.fixed_bytes + t.window_row_bytes;
    if (most_bytes != 0 && bytes > most_bytes)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "--mask '%.200s': reading its %lld x %lld pixels takes %zu bytes, the "
                        "budget is %zu",
                        path, (long long)t.h, (long long)t.w, bytes, most_bytes);
    float *row = rfx_memory_alloc(mask->mem, row_bytes);
    mask->bits = rfx_memory_calloc(mask->mem, (size_t)mask->h, mask->row_bytes);
    enum rfx_status status = row != NULL && mask->bits != NULL
                                 ? read_rows(mask, image, row, err)
                                 : rfx_memory_fail(mask->mem, path, bytes, err);
    rfx_memory_release(mask->mem, row);
    return status;
}

enum rfx_status rfx_mask_open(struct rfx_memory *mem, const char *path, size_t most_bytes,
                              struct rfx_mask *out, struct rfx_error *err) {
    struct rfx_image_options options = {.scale = 1.0f, .raw = true, .channels = 1, .max_pixels = 0};
    struct rfx_mask mask = {.mem = mem};
    struct rfx_image *image;
    if (most_bytes == 0) options.max_pixels = RFX_IMAGE_WHOLE_PIXELS;
    enum rfx_status status = rfx_image_open(mem, path, &options, &image, err);
    /* As an input that cannot be opened: refused, whatever the system's reason. */
    if (status == RFX_STATUS_IO && access(path, R_OK) != 0) status = RFX_STATUS_MALFORMED;
    if (status != RFX_OK) return rfx_fail_within(err, status, "--mask");
    status = read_image(&mask, image, path, most_bytes, err);
    rfx_image_free(image);
    if (status == RFX_OK)
        *out = mask;
    else
        rfx_mask_release(&mask);
    return status;
}

/* Positions of n mask pixels that lie over positions [lo, hi) of `of`. */
static struct rfx_range over(int64_t n, int64_t of, int64_t lo, int64_t hi) {
    return (struct rfx_range){lo * n / of, rfx_ceil_div(hi * n, of)}; /* below 2^31 * 2^20 */
}

bool rfx_mask_any(const struct rfx_mask *mask, int64_t h, int64_t w, struct rfx_rect rect) {
    struct rfx_range rows = over(mask->h, h, rect.y0, rect.y1);
    struct rfx_range cols = over(mask->w, w, rect.x0, rect.x1);
    for (int64_t y = rows.lo; y < rows.hi; y++) {
        const unsigned char *bits = mask->bits + (size_t)y * mask->row_bytes;
        for (int64_t x = cols.lo; x < cols.hi; x++) {
            if (x % 8 == 0 && bits[x / 8] == 0)
                x += 7;
            else if ((bits[x / 8] >> x % 8 & 1) != 0)
                return true;
        }
    }
    return false;
}
