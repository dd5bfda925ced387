/* Masks, the rectangles that are computed for them, and outputs with fill values; see mask.h. */
#include "rfexec/shards/mask.h"

#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/output_sink.h"

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

/* Pixels are copied into a block of at least one row, because the values in the caller's view must
 * not change. */

#define BLOCK_BYTES ((size_t)1 << 20)

size_t rfx_masked_output_bytes(const struct rfx_tensor *map) {
    size_t row = rfx_tensor_pixel_bytes(map, map->w);
    return row > BLOCK_BYTES ? row : BLOCK_BYTES;
}

enum rfx_status rfx_masked_output_open(struct rfx_masked_output *output, struct rfx_error *err) {
    size_t bytes = rfx_masked_output_bytes(&output->map);
    output->block = rfx_memory_alloc(output->mem, bytes);
    return output->block != NULL ? RFX_OK : rfx_memory_fail(output->mem, "mask", bytes, err);
}

void rfx_masked_output_release(struct rfx_masked_output *output) {
    if (output->mem != NULL) rfx_memory_release(output->mem, output->block);
    output->block = NULL;
}

/* Adds the block, which holds `rect`, to the fingerprint, and writes it to the stream. */
static enum rfx_status put_block(struct rfx_masked_output *o, struct rfx_rect rect,
                                 struct rfx_error *err) {
    struct rfx_view view = rfx_view_dense(o->block, rect, o->map.c);
    rfx_fingerprint_add_end(&o->fingerprint, &o->end, rect, &view);
    return o->stream == NULL ? RFX_OK : rfx_output_stream_write(o->stream, rect, &view, err);
}

/* Returns how many rows of `rect` the block holds, at least 1. */
static int64_t block_rows(const struct rfx_masked_output *o, struct rfx_rect rect) {
    size_t row = rfx_tensor_pixel_bytes(&o->map, rfx_rect_cols(rect));
    return rfx_max_i64(1, (int64_t)(rfx_masked_output_bytes(&o->map) / row));
}

/* Copies columns [x0, x1) of row y from the view to `to`. Pixels that the mask does not select get
 * the fill value. */
static void copy_row(const struct rfx_masked_output *o, const struct rfx_view *view, int64_t y,
                     int64_t x0, int64_t x1, float *to) {
    for (int64_t x = x0; x < x1; x++, to += o->map.c) {
        bool wanted = rfx_mask_any(o->mask, o->map.h, o->map.w, rfx_rect_make(y, y + 1, x, x + 1));
        const float *from = rfx_view_f32_at(view, y, x);
        for (int64_t c = 0; c < o->map.c; c++) to[c] = wanted ? from[c] : o->fill;
    }
}

enum rfx_status rfx_masked_output_take(struct rfx_masked_output *output, struct rfx_rect rect,
                                       const struct rfx_view *view, struct rfx_error *err) {
    int64_t rows = block_rows(output, rect);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += rows) {
        struct rfx_rect block = rfx_rect_make(y, rfx_min_i64(y + rows, rect.y1), rect.x0, rect.x1);
        for (int64_t k = block.y0; k < block.y1; k++)
            copy_row(output, view, k, rect.x0, rect.x1,
                     output->block + (k - block.y0) * rfx_rect_cols(rect) * output->map.c);
        status = put_block(output, block, err);
    }
    return status;
}

static enum rfx_status fill_rect(struct rfx_masked_output *o, struct rfx_rect rect,
                                 struct rfx_error *err) {
    int64_t rows = rfx_min_i64(block_rows(o, rect), rfx_rect_rows(rect));
    int64_t elems = rows * rfx_rect_cols(rect) * o->map.c;
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < elems; i++) o->block[i] = o->fill;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += rows) {
        status = rfx_memory_check_stop(o->mem, err);
        struct rfx_rect block = rfx_rect_make(y, rfx_min_i64(y + rows, rect.y1), rect.x0, rect.x1);
        if (status == RFX_OK) status = put_block(o, block, err);
    }
    return status;
}

/* Returns the first row after y at which a rectangle begins or ends; h when there is none. */
static int64_t next_change(const struct rfx_mask_rects *rects, int64_t y, int64_t h) {
    int64_t next = h;
    for (int i = 0; i < rects->n; i++) {
        if (rects->rects[i].y0 > y) next = rfx_min_i64(next, rects->rects[i].y0);
        if (rects->rects[i].y1 > y) next = rfx_min_i64(next, rects->rects[i].y1);
    }
    return next;
}

/* Returns the first column from x on at which a rectangle begins in row y, and sets *end to the end
 * of that rectangle. Returns w and sets *end to w when there is none. */
static int64_t next_rect(const struct rfx_mask_rects *rects, int64_t y, int64_t x, int64_t w,
                         int64_t *end) {
    int64_t next = w;
    *end = w;
    for (int i = 0; i < rects->n; i++) {
        const struct rfx_rect *r = &rects->rects[i];
        if (y < r->y0 || y >= r->y1 || r->x0 < x || r->x0 >= next) continue;
        next = r->x0;
        *end = r->x1;
    }
    return next;
}

enum rfx_status rfx_masked_output_fill(struct rfx_masked_output *output,
                                       const struct rfx_mask_rects *rects, struct rfx_error *err) {
    int64_t h = output->map.h, w = output->map.w;
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0, next; y < h && status == RFX_OK; y = next) {
        next = next_change(rects, y, h);
        for (int64_t x = 0, end; x < w && status == RFX_OK; x = end) {
            int64_t to = next_rect(rects, y, x, w, &end);
            if (to > x) status = fill_rect(output, rfx_rect_make(y, next, x, to), err);
        }
    }
    return status;
}
