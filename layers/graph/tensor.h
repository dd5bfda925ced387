/* Shapes of tensors and views of the parts of them that are in memory.
 *
 * Two layouts. NHWC: a feature map, rank 4 with n = 1, dims kept in ONNX order (1, c, h, w) but
 * stored rows x columns x channels, channels innermost. PLAIN: any rank, row-major as in ONNX. */
#ifndef RFX_LAYERS_GRAPH_TENSOR_H
#define RFX_LAYERS_GRAPH_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "layers/core/rect.h"

#define RFX_MAX_RANK 8

enum rfx_layout { RFX_LAYOUT_NHWC, RFX_LAYOUT_PLAIN };

/* What an element of a tensor in memory is. Every kernel today computes float32. */
enum rfx_elem { RFX_ELEM_FLOAT32, RFX_ELEM_COUNT };

static inline size_t rfx_elem_bytes(enum rfx_elem elem) {
    static const size_t bytes[] = {[RFX_ELEM_FLOAT32] = 4};
    _Static_assert(sizeof bytes / sizeof bytes[0] == RFX_ELEM_COUNT, "a size per element type");
    return bytes[elem];
}

/* "float32", or "an unknown type". */
static inline const char *rfx_elem_name(enum rfx_elem elem) {
    return elem == RFX_ELEM_FLOAT32 ? "float32" : "an unknown type";
}

struct rfx_shape {
    int rank;
    int64_t dims[RFX_MAX_RANK]; /* ONNX order */
};

struct rfx_tensor {
    enum rfx_layout layout;
    struct rfx_shape shape;
    int64_t c, h, w; /* of an NHWC tensor; a PLAIN one has c = elems, h = w = 1 */
    int64_t elems;   /* product of dims, overflow-checked; their bytes fit size_t */
    enum rfx_elem elem;
};

/* Bytes of a tensor in memory, and of `pixels` of its pixels. */
static inline size_t rfx_tensor_bytes(const struct rfx_tensor *t) {
    return (size_t)t->elems * rfx_elem_bytes(t->elem);
}
static inline size_t rfx_tensor_pixel_bytes(const struct rfx_tensor *t, int64_t pixels) {
    return (size_t)(pixels * t->c) * rfx_elem_bytes(t->elem);
}

/* A feature map of c channels, h rows, w columns. */
static inline struct rfx_tensor rfx_tensor_nhwc(int64_t c, int64_t h, int64_t w) {
    struct rfx_tensor t = {RFX_LAYOUT_NHWC, {4, {1, c, h, w}}, c, h, w,
                           c * h * w,       RFX_ELEM_FLOAT32};
    return t;
}

/* The part `rect` of an NHWC tensor that is in memory (a PLAIN tensor: rect is 0,1,0,1).
 * Rows are contiguous: pixel (y, x) has its c floats at rfx_view_at(view, y, x). When ring_rows
 * is not 0, row y lives in slot y mod ring_rows. When fresh is not NULL, the rows from fresh_y0 on
 * lie one after the other from there instead. */
struct rfx_view {
    float *data;
    struct rfx_rect rect; /* full-map coordinates */
    int64_t c;            /* floats from one pixel to the next */
    int64_t row_stride;   /* floats from one row to the next */
    int64_t ring_rows;    /* 0: linear */
    float *fresh;         /* NULL: none */
    int64_t fresh_y0;
    enum rfx_elem elem; /* "floats" above are elements of this type; data points to the first */
};

/* Bytes of one row of the view. */
static inline size_t rfx_view_row_bytes(const struct rfx_view *v) {
    return (size_t)(rfx_rect_cols(v->rect) * v->c) * rfx_elem_bytes(v->elem);
}

static inline float *rfx_view_at(const struct rfx_view *v, int64_t y, int64_t x) {
    int64_t row = v->ring_rows != 0 ? y % v->ring_rows : y - v->rect.y0;
    if (v->fresh != NULL && y >= v->fresh_y0)
        return v->fresh + (y - v->fresh_y0) * v->row_stride + (x - v->rect.x0) * v->c;
    return v->data + row * v->row_stride + (x - v->rect.x0) * v->c;
}

/* A densely packed view of `rect` of floats. */
static inline struct rfx_view rfx_view_dense(float *data, struct rfx_rect rect, int64_t c) {
    struct rfx_view v = {data, rect, c, rfx_rect_cols(rect) * c, 0, NULL, 0, RFX_ELEM_FLOAT32};
    return v;
}

/* A densely packed view of `rect` of a tensor, whose elements it has. */
static inline struct rfx_view rfx_view_of(const struct rfx_tensor *t, void *data,
                                          struct rfx_rect rect) {
    struct rfx_view v = rfx_view_dense(data, rect, t->c);
    v.elem = t->elem;
    return v;
}
#endif
