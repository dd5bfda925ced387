/* Cells to rectangles: runs of wanted cells first, as far down as they go, then those together that
 * cost less so. */
#include "tools/masks/mask_rects.h"

#include <string.h>

#include "layers/core/checked.h"

enum { MOST_CELLS = 64 };

/* Cells of a map of h x w, `rows` x `cols` of them. */
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

/* Takes the cells into rectangles; false: they are too many. */
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

/* Layers deep down need all of the halo, the last ones nothing of it: half on the average. */
static double cost(struct rfx_rect r, double halo_rows, double halo_cols) {
    return ((double)rfx_rect_rows(r) + halo_rows / 2.0) *
           ((double)rfx_rect_cols(r) + halo_cols / 2.0);
}

static struct rfx_rect hull(struct rfx_rect a, struct rfx_rect b) {
    return rfx_rect_make(rfx_min_i64(a.y0, b.y0), rfx_max_i64(a.y1, b.y1), rfx_min_i64(a.x0, b.x0),
                         rfx_max_i64(a.x1, b.x1));
}

/* The hull of rectangles i and j and of all that it meets; *apart: what they cost by themselves. */
static struct rfx_rect closed_hull(const struct rfx_mask_rects *s, int i, int j, double halo_rows,
                                   double halo_cols, double *apart) {
    struct rfx_rect all = hull(s->rects[i], s->rects[j]);
    for (bool grown = true; grown;) {
        grown = false;
        *apart = 0.0;
        for (int k = 0; k < s->n; k++) {
            if (rfx_rect_is_empty(rfx_rect_intersect(all, s->rects[k]))) continue;
            struct rfx_rect more = hull(all, s->rects[k]);
            grown |= !rfx_rect_equal(more, all);
            all = more;
            *apart += cost(s->rects[k], halo_rows, halo_cols);
        }
    }
    return all;
}

/* Puts rectangles together that cost less so; false: there are none. */
static bool merge_one(struct rfx_mask_rects *s, double halo_rows, double halo_cols) {
    for (int i = 0; i < s->n; i++)
        for (int j = i + 1; j < s->n; j++) {
            double apart;
            struct rfx_rect all = closed_hull(s, i, j, halo_rows, halo_cols, &apart);
            if (cost(all, halo_rows, halo_cols) > apart) continue;
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

static void sort(struct rfx_mask_rects *s) {
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
    for (int i = 0; i < out->n; i++) sum += cost(out->rects[i], halo_rows, halo_cols);
    if (sum >= cost(whole, 0.0, 0.0)) { /* which has no halo */
        out->rects[0] = whole;
        out->n = 1;
    }
    sort(out);
}
