/* Shapes of tensors, and views of the parts of tensors that are in memory.
 *
 * There are two layouts. NHWC: a feature map of rank 4 with n = 1; its dims are in ONNX order (1,
 * c, h, w), but it is stored as rows x columns x channels, channels innermost. PLAIN: any rank,
 * row-major as in ONNX. */
#ifndef RFX_LAYERS_GRAPH_TENSOR_H
#define RFX_LAYERS_GRAPH_TENSOR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/rect.h"
#include "layers/core/type.h"

#define RFX_MAX_RANK 8

enum rfx_layout { RFX_LAYOUT_NHWC, RFX_LAYOUT_PLAIN };

struct rfx_shape {
    int rank;
    int64_t dims[RFX_MAX_RANK]; /* ONNX order */
};

bool rfx_shape_equal(const struct rfx_shape *a, const struct rfx_shape *b);

#define RFX_SHAPE_TEXT 192 /* characters of RFX_MAX_RANK dims and what is between them, and a 0 */

/* Writes a shape to `text`, such as "1x84x126" with "x" between its dims, and returns `text`. */
const char *rfx_shape_text(const struct rfx_shape *shape, const char *between,
                           char text[RFX_SHAPE_TEXT]);

/* The real numbers that a tensor's integers stand for: (q - zero_points[i]) * scales[i]. i is the
 * element's index along `axis` of the shape (ONNX order), or 0 if count is 1. ONNX QuantizeLinear,
 * opset 13: activations have one scale per tensor, weights one per output channel.
 *
 * No importer and no operator sets it: operators on bytes have scales and zero points in their
 * attributes, as ONNX has them. */
struct rfx_quant {
    int64_t count; /* 1, or the extent of the axis */
    int axis;
    const float *scales; /* positive */
    const int32_t *zero_points;
};

struct rfx_tensor {
    enum rfx_layout layout;
    enum rfx_type type; /* of an element in memory */
    struct rfx_shape shape;
    int64_t c, h, w; /* for an NHWC tensor; a PLAIN tensor has c = elems, h = w = 1 */
    int64_t elems;   /* product of dims, overflow-checked; the tensor's bytes fit size_t */
    /* NULL: elements are the numbers themselves; so far it is NULL in every model. Otherwise owned
     * by the code that made the tensor's node, and valid as long as the graph. rfx_graph_add copies
     * the pointer to outputs of ops that keep their input's type, and CONVERT refuses such a
     * tensor. */
    const struct rfx_quant *quant;
};

/* Return the bytes of a tensor in memory, and of `pixels` pixels of it. */
static inline size_t rfx_tensor_bytes(const struct rfx_tensor *t) {
    return (size_t)t->elems * rfx_type_bytes(t->type);
}
static inline size_t rfx_tensor_pixel_bytes(const struct rfx_tensor *t, int64_t pixels) {
    return (size_t)(pixels * t->c) * rfx_type_bytes(t->type);
}

/* Returns a feature map of float32: c channels, h rows, w columns. */
static inline struct rfx_tensor rfx_tensor_nhwc(int64_t c, int64_t h, int64_t w) {
    struct rfx_tensor t = {.layout = RFX_LAYOUT_NHWC,
                           .shape = {4, {1, c, h, w}},
                           .c = c,
                           .h = h,
                           .w = w,
                           .elems = c * h * w};
    return t;
}

/* Returns a PLAIN tensor of float32; `elems` is the product of the shape's dims. */
static inline struct rfx_tensor rfx_tensor_plain(const struct rfx_shape *shape, int64_t elems) {
    struct rfx_tensor t = {
        .layout = RFX_LAYOUT_PLAIN, .shape = *shape, .c = elems, .h = 1, .w = 1, .elems = elems};
    return t;
}

/* A view of the part `rect` of an NHWC tensor that is in memory (for a PLAIN tensor, rect is
 * 0,1,0,1). The c elements of a pixel are contiguous: those of pixel (y, x) begin at
 * rfx_view_at(view, y, x). If ring_rows is not 0, row y is in slot y mod ring_rows of a ring
 * buffer. If `staging` is not NULL, rows from staging_y0 on are staging rows: they are stored one
 * after the other from `staging` on instead. A view does not express constness: code that only
 * reads must not write through it. */
struct rfx_view {
    void *data;           /* the first element of the first row */
    struct rfx_rect rect; /* full-map coordinates */
    int64_t c;            /* elements from one pixel to the next */
    int64_t row_stride;   /* elements from one row to the next */
    int64_t ring_rows;    /* 0: linear */
    void *staging;        /* NULL: none */
    int64_t staging_y0;
    enum rfx_type type; /* of the elements */
};

/* Returns the bytes of one row of the view. */
static inline size_t rfx_view_row_bytes(const struct rfx_view *v) {
    return (size_t)(rfx_rect_cols(v->rect) * v->c) * rfx_type_bytes(v->type);
}

/* Returns the address of pixel (y, x) of a view with elements of `bytes` bytes. */
static inline void *rfx_view_pixel(const struct rfx_view *v, int64_t y, int64_t x, size_t bytes) {
    bool staged = v->staging != NULL && y >= v->staging_y0;
    unsigned char *base = (unsigned char *)(staged ? v->staging : v->data);
    int64_t row = y - v->rect.y0;
    if (staged)
        row = y - v->staging_y0;
    else if (v->ring_rows != 0)
        row = y % v->ring_rows;
    return base + (row * v->row_stride + (x - v->rect.x0) * v->c) * (int64_t)bytes;
}

/* Returns the address of pixel (y, x) of a view of any type, for code that only moves bytes. */
static inline void *rfx_view_at(const struct rfx_view *v, int64_t y, int64_t x) {
    return rfx_view_pixel(v, y, x, rfx_type_bytes(v->type));
}

/* Return the address of the first element, or of pixel (y, x), of a view of FLOAT32 (asserted). For
 * code that computes float32. */
static inline float *rfx_view_f32(const struct rfx_view *v) {
    assert(v->type == RFX_TYPE_FLOAT32);
    return (float *)v->data;
}
static inline float *rfx_view_f32_at(const struct rfx_view *v, int64_t y, int64_t x) {
    assert(v->type == RFX_TYPE_FLOAT32);
    return (float *)rfx_view_pixel(v, y, x, sizeof(float));
}

/* Returns a densely packed view of `rect` of a tensor, with the tensor's element type. */
static inline struct rfx_view rfx_view_of(const struct rfx_tensor *t, void *data,
                                          struct rfx_rect rect) {
    struct rfx_view v = {.data = data,
                         .rect = rect,
                         .c = t->c,
                         .row_stride = rfx_rect_cols(rect) * t->c,
                         .type = t->type};
    return v;
}

/* Returns a densely packed view of `rect` with c float32 per pixel. */
static inline struct rfx_view rfx_view_dense(float *data, struct rfx_rect rect, int64_t c) {
    struct rfx_view v = {.data = data, .rect = rect, .c = c, .row_stride = rfx_rect_cols(rect) * c};
    return v;
}
#endif
