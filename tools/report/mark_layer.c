/* Marks in a file of labels; see mark_layer.h. */
#include "tools/report/mark_layer.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "layers/core/checked.h"
#include "rfexec/output/output_spool.h"
#include "tools/report/outline_drawing.h"
#include "tools/report/overlay_drawing.h"

#define RING_RADIUS 4.5 /* from the middle of a point's pixel to the ring's corners */

struct rfx_mark_layer {
    struct rfx_memory *mem;
    struct rfx_box_canvas canvas;
    struct rfx_tensor labels;       /* of the file: 1 + the label of a pixel's mark, 0 for none */
    struct rfx_output_spool *spool; /* the file */
    uint16_t *row;                  /* [cols] */
};

static size_t row_bytes(int64_t cols) {
    return (size_t)cols * sizeof(uint16_t);
}

size_t rfx_mark_layer_bytes(int64_t cols) {
    return sizeof(struct rfx_mark_layer) + RFX_OUTPUT_SPOOL_BYTES + row_bytes(cols);
}

enum rfx_status rfx_mark_layer_open(struct rfx_memory *mem, const char *path,
                                    const struct rfx_box_canvas *canvas,
                                    struct rfx_mark_layer **out, struct rfx_error *err) {
    struct rfx_mark_layer *layer = rfx_memory_calloc(mem, 1, sizeof *layer);
    if (layer == NULL) return rfx_memory_fail(mem, "marks", sizeof *layer, err);
    layer->mem = mem;
    layer->canvas = *canvas;
    layer->labels = rfx_tensor_nhwc(1, canvas->rows, canvas->cols);
    layer->labels.type = RFX_TYPE_UINT16;
    layer->row = rfx_memory_alloc(mem, row_bytes(canvas->cols));
    enum rfx_status status =
        layer->row != NULL
            ? rfx_output_spool_open_sparse(mem, path, &layer->labels, &layer->spool, err)
            : rfx_memory_fail(mem, "marks", row_bytes(canvas->cols), err);
    if (status == RFX_OK)
        *out = layer;
    else
        rfx_mark_layer_free(layer);
    return status;
}

void rfx_mark_layer_free(struct rfx_mark_layer *layer) {
    if (layer == NULL) return;
    rfx_output_spool_free(layer->spool);
    rfx_memory_release(layer->mem, layer->row);
    rfx_memory_release(layer->mem, layer);
}

/* Sets the outline's rectangle: the drawn pixels between the edges of pixels that are nearest to
 * its corners, at least one by one. Returns false if there are none, or a corner is not finite. */
static bool enclose(const struct rfx_mark_layer *layer, struct rfx_outline *outline) {
    const double size[2] = {(double)layer->canvas.cols, (double)layer->canvas.rows};
    int64_t edge[2][2]; /* of x and y: the lower and the upper one */
    for (int axis = 0; axis < 2; ++axis) {
        double lo = outline->corner[0][axis], hi = lo;
        for (int k = 0; k < 4; ++k) {
            if (!isfinite(outline->corner[k][axis])) return false;
            lo = fmin(lo, outline->corner[k][axis]);
            hi = fmax(hi, outline->corner[k][axis]);
        }
        lo = floor(lo + 0.5);
        hi = fmax(floor(hi + 0.5), lo + 1.0);
        edge[axis][0] = (int64_t)fmin(fmax(lo, 0.0), size[axis]);
        edge[axis][1] = (int64_t)fmin(fmax(hi, 0.0), size[axis]);
    }
    outline->rect = rfx_rect_make(edge[1][0], edge[1][1], edge[0][0], edge[0][1]);
    return !rfx_rect_is_empty(outline->rect);
}

/* Returns 1 if the corners follow each other clockwise in the picture, else -1. */
static double turn_of(const struct rfx_outline *outline) {
    double area = 0.0;
    for (int k = 0; k < 4; ++k) {
        const double *p = outline->corner[k], *q = outline->corner[(k + 1) % 4];
        area += p[0] * q[1] - q[0] * p[1];
    }
    return area < 0.0 ? -1.0 : 1.0;
}

/* Sets the ring around the pixel of a point. */
static void set_ring(struct rfx_outline *outline, double x, double y) {
    static const double away[4][2] = {
        {0, -RING_RADIUS}, {RING_RADIUS, 0}, {0, RING_RADIUS}, {-RING_RADIUS, 0}};
    outline->line = 1;
    for (int k = 0; k < 4; ++k) {
        outline->corner[k][0] = floor(x) + 0.5 + away[k][0];
        outline->corner[k][1] = floor(y) + 0.5 + away[k][1];
    }
}

static enum rfx_status put_run(struct rfx_mark_layer *layer, int64_t row, const int64_t run[2],
                               struct rfx_error *err) {
    const struct rfx_rect rect = rfx_rect_make(row, row + 1, run[0], run[1]);
    const struct rfx_view view = rfx_view_of(&layer->labels, layer->row, rect);
    return run[0] < run[1] ? rfx_output_spool_write(layer->spool, rect, &view, err) : RFX_OK;
}

static enum rfx_status put(struct rfx_mark_layer *layer, const struct rfx_outline *outline,
                           int32_t label, struct rfx_error *err) {
    const struct rfx_rect *rect = &outline->rect;
    enum rfx_status status = RFX_OK;
    int64_t run[2][2];
    for (int64_t i = 0; i < rfx_rect_cols(*rect); ++i)
        layer->row[i] = (uint16_t)rfx_min_i64((int64_t)label + 1, UINT16_MAX);
    for (int64_t row = rect->y0; row < rect->y1 && status == RFX_OK; ++row) {
        rfx_outline_row(outline, row, run);
        status = put_run(layer, row, run[0], err);
        if (status == RFX_OK) status = put_run(layer, row, run[1], err);
    }
    return status;
}

enum rfx_status rfx_mark_layer_add(struct rfx_mark_layer *layer, const double *corners, int n,
                                   int32_t label, struct rfx_error *err) {
    const struct rfx_box_canvas *c = &layer->canvas;
    const double sx = (double)c->cols / (double)c->image_w,
                 sy = (double)c->rows / (double)c->image_h;
    struct rfx_outline outline = {.line = rfx_overlay_line(c->rows, c->cols)};
    assert(n == 1 || n == 4);
    if (n == 1) set_ring(&outline, corners[0] * sx, corners[1] * sy);
    for (int k = 0; k < n && n == 4; ++k) {
        outline.corner[k][0] = corners[2 * k] * sx;
        outline.corner[k][1] = corners[2 * k + 1] * sy;
    }
    outline.turn = turn_of(&outline);
    return enclose(layer, &outline) ? put(layer, &outline, label, err) : RFX_OK;
}

enum rfx_status rfx_mark_layer_row(struct rfx_mark_layer *layer, int64_t row, float *colours,
                                   struct rfx_error *err) {
    unsigned char rgb[3];
    enum rfx_status status = rfx_output_spool_read(layer->spool, row, layer->row, err);
    for (int64_t x = 0; x < layer->canvas.cols && status == RFX_OK; ++x) {
        if (layer->row[x] == 0) continue;
        rfx_label_colour(layer->row[x], rgb);
        for (int k = 0; k < 3; ++k) colours[3 * x + k] = (float)rgb[k];
    }
    return status;
}
