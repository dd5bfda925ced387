/* Masks and the rectangles that are computed for them; see mask.h. */
#include "rfexec/shards/mask.h"

#include <string.h>
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

/* Sets the bits of all mask pixels that are not 0 and not NaN. row: buffer for [w] values. */
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

/* Allocates the bits, within the limit, and reads the image into them. */
static enum rfx_status read_image(struct rfx_mask *mask, struct rfx_image *image, const char *path,
                                  size_t most_bytes, struct rfx_error *err) {
    const struct rfx_source_traits t = rfx_image_traits(image);
    size_t row_bytes = (size_t)t.w * sizeof(float);
    if (t.c != 1)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "'%.200s' has %lld channels: a mask has one, or the three of a colour "
                        "picture file",
                        path, (long long)t.c);
    mask->h = t.h;
    mask->w = t.w;
    mask->row_bytes = (size_t)rfx_ceil_div(t.w, 8);
    size_t bytes = rfx_mask_bytes(mask) + row_bytes + t.fixed_bytes + t.window_row_bytes;
    if (most_bytes != 0 && bytes > most_bytes)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "'%.200s': reading its %lld x %lld pixels takes %zu bytes, the "
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
    /* an image that cannot be opened counts as a refused input, whatever the system's reason */
    if (status == RFX_STATUS_IO && access(path, R_OK) != 0) status = RFX_STATUS_MALFORMED;
    if (status != RFX_OK) return status;
    status = read_image(&mask, image, path, most_bytes, err);
    rfx_image_free(image);
    if (status == RFX_OK)
        *out = mask;
    else
        rfx_mask_release(&mask);
    return status;
}

/* Returns the range of the n rows (or columns) of the mask that lie over rows [lo, hi) of an output
 * of `of` rows. */
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

/* Rectangles are found in two steps. First, each run of selected cells in a row is extended
 * downwards to a rectangle. Then rectangles are merged if the rectangle around them costs less. */

enum { MOST_CELLS = 64 };

/* A map of h x w, divided into rows x cols cells. A cell is wanted if the mask selects any of its
 * pixels. */
struct cells {
    int64_t h, w, rows, cols;
    bool wanted[MOST_CELLS][MOST_CELLS];
};

static struct rfx_rect cell_rect(const struct cells *c, int64_t y0, int64_t y1, int64_t x0,
                                 int64_t x1) {
    return rfx_rect_make(y0 * c->h / c->rows, y1 * c->h / c->rows, x0 * c->w / c->cols,
                         x1 * c->w / c->cols);
}

static void fill_cells(const struct rfx_mask *mask, int64_t h, int64_t w, int64_t most,
                       struct cells *c) {
    c->h = h;
    c->w = w;
    c->rows = rfx_min_i64(most, h);
    c->cols = rfx_min_i64(most, w);
    for (int64_t y = 0; y < c->rows; y++)
        for (int64_t x = 0; x < c->cols; x++)
            c->wanted[y][x] = rfx_mask_any(mask, h, w, cell_rect(c, y, y + 1, x, x + 1));
}

static bool all_wanted(const struct cells *c, int64_t y, int64_t x0, int64_t x1) {
    for (int64_t x = x0; x < x1; x++)
        if (!c->wanted[y][x]) return false;
    return true;
}

/* Covers the wanted cells with rectangles, and clears these cells. Returns false when more than
 * RFX_MASK_MOST_RECTS rectangles are needed. */
static bool take_cells(struct cells *c, struct rfx_mask_rects *out) {
    out->n = 0;
    for (int64_t y = 0; y < c->rows; y++)
        for (int64_t x = 0; x < c->cols; x++) {
            if (!c->wanted[y][x]) continue;
            int64_t x1 = x + 1, y1 = y + 1;
            while (x1 < c->cols && c->wanted[y][x1]) x1++;
            while (y1 < c->rows && all_wanted(c, y1, x, x1)) y1++;
            if (out->n == RFX_MASK_MOST_RECTS) return false;
            out->rects[out->n++] = cell_rect(c, y, y1, x, x1);
            for (int64_t k = y; k < y1; k++)
                memset(&c->wanted[k][x], 0, (size_t)(x1 - x) * sizeof c->wanted[k][x]);
        }
    return true;
}

/* Returns the cost of a rectangle in pixels. Half of the halo is counted: the first layers compute
 * the whole halo, the last layers nothing of it. */
static double rect_cost(struct rfx_rect r, double halo_rows, double halo_cols) {
    return ((double)rfx_rect_rows(r) + halo_rows / 2.0) *
           ((double)rfx_rect_cols(r) + halo_cols / 2.0);
}

/* Returns the smallest rectangle that contains rectangles i and j, and every rectangle that it
 * overlaps. Sets *apart to the sum of the costs of all contained rectangles. */
static struct rfx_rect closed_hull(const struct rfx_mask_rects *s, int i, int j, double halo_rows,
                                   double halo_cols, double *apart) {
    struct rfx_rect all = rfx_rect_union(s->rects[i], s->rects[j]);
    for (bool grown = true; grown;) {
        grown = false;
        *apart = 0.0;
        for (int k = 0; k < s->n; k++) {
            if (rfx_rect_is_empty(rfx_rect_intersect(all, s->rects[k]))) continue;
            struct rfx_rect more = rfx_rect_union(all, s->rects[k]);
            grown |= !rfx_rect_equal(more, all);
            all = more;
            *apart += rect_cost(s->rects[k], halo_rows, halo_cols);
        }
    }
    return all;
}

/* Replaces the first pair of rectangles, and what lies between them, by one rectangle that costs
 * not more. Returns false when there is no such pair. */
static bool merge_one(struct rfx_mask_rects *s, double halo_rows, double halo_cols) {
    for (int i = 0; i < s->n; i++)
        for (int j = i + 1; j < s->n; j++) {
            double apart;
            struct rfx_rect all = closed_hull(s, i, j, halo_rows, halo_cols, &apart);
            if (rect_cost(all, halo_rows, halo_cols) > apart) continue;
            int n = 0;
            for (int k = 0; k < s->n; k++)
                if (rfx_rect_is_empty(rfx_rect_intersect(all, s->rects[k])))
                    s->rects[n++] = s->rects[k];
            s->rects[n++] = all;
            s->n = n;
            return true;
        }
    return false;
}

static void sort_rects(struct rfx_mask_rects *s) {
    for (int i = 1; i < s->n; i++)
        for (int k = i; k > 0; k--) {
            struct rfx_rect *a = &s->rects[k - 1], *b = &s->rects[k], held = *a;
            if (a->y0 < b->y0 || (a->y0 == b->y0 && a->x0 < b->x0)) break;
            *a = *b;
            *b = held;
        }
}

void rfx_mask_find_rects(const struct rfx_mask *mask, int64_t h, int64_t w, double halo_rows,
                         double halo_cols, struct rfx_mask_rects *out) {
    struct cells cells;
    int64_t most = MOST_CELLS;
    do {
        fill_cells(mask, h, w, most, &cells);
        most /= 2;
    } while (!take_cells(&cells, out));
    while (merge_one(out, halo_rows, halo_cols)) continue;
    double sum = 0.0;
    struct rfx_rect whole = rfx_rect_full(h, w);
    for (int i = 0; i < out->n; i++) sum += rect_cost(out->rects[i], halo_rows, halo_cols);
    if (sum >= rect_cost(whole, 0.0, 0.0)) { /* the whole map has no halo */
        out->rects[0] = whole;
        out->n = 1;
    }
    sort_rects(out);
}
