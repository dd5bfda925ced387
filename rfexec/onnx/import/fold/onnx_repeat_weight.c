/* Constants whose elements repeat, as weights whose elements are found when they are read
 * (RFX_WEIGHT_REPEATED): a box for each part that has no parts. */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"

#define MOST_BOXES 64

/* The boxes of a constant, in the making. */
struct boxes {
    struct rfx_onnx_import *ctx;
    int rank, count;
    int64_t stored;
    struct rfx_onnx_const *parts[MOST_BOXES]; /* without parts */
    int64_t lo[MOST_BOXES][RFX_MAX_RANK];
};

static bool add_part(struct boxes *b, struct rfx_onnx_const *c, int64_t *lo);

/* Parts side by side from `lo` on. As deep as parts are. */
static bool add_parts(struct boxes *b, const struct rfx_onnx_repeat *r, int64_t *lo) {
    int64_t start = lo[r->axis];
    bool fits = true;
    for (int i = 0; i < r->n_parts && fits; i++) {
        fits = add_part(b, r->parts[i], lo);
        lo[r->axis] += r->parts[i]->shape.dims[r->axis];
    }
    lo[r->axis] = start;
    return fits;
}

/* Whether a constant, which lies at `lo`, comes to boxes, all added. */
static bool add_part(struct boxes *b, struct rfx_onnx_const *c, int64_t *lo) {
    struct rfx_onnx_pattern p;
    if (!rfx_onnx_pattern_of(c, &p)) return c->repeat != NULL && add_parts(b, c->repeat, lo);
    if (b->count == MOST_BOXES) return false;
    b->parts[b->count] = c;
    memcpy(b->lo[b->count++], lo, (size_t)b->rank * sizeof *lo);
    return rfx_checked_add_i64(b->stored, rfx_onnx_const_stored(p.stored), &b->stored);
}

/* A box's places, and its stored values from `first` on. */
static enum rfx_status give_places(const struct boxes *b, int i, int64_t first,
                                   struct rfx_weight_places *places, float *values,
                                   int64_t *stored) {
    struct rfx_onnx_pattern p;
    const double *reals;
    bool good = rfx_onnx_pattern_of(b->parts[i], &p);
    enum rfx_status status =
        good ? rfx_onnx_const_check_exact(b->ctx, p.stored) : RFX_STATUS_INTERNAL;
    if (status == RFX_OK) status = rfx_onnx_const_stored_reals(b->ctx, p.stored, &reals);
    if (status != RFX_OK) return status;
    *stored = rfx_onnx_const_stored(p.stored);
    *places = (struct rfx_weight_places){.first = first + p.first, .n = p.count};
    memcpy(places->lo, b->lo[i], sizeof places->lo);
    memcpy(places->dims, b->parts[i]->shape.dims, sizeof places->dims);
    memcpy(places->digits, p.factors, sizeof places->digits);
    for (int64_t k = 0; k < *stored; k++) values[first + k] = (float)reals[k];
    return RFX_OK;
}

static enum rfx_status add_weight(const struct boxes *b, const struct rfx_onnx_const *c,
                                  int *weight) {
    struct rfx_onnx_import *ctx = b->ctx;
    size_t bytes = (size_t)b->count * sizeof(struct rfx_weight_places);
    struct rfx_weight_places *places = rfx_memory_alloc(ctx->mem, bytes);
    float *values = rfx_memory_alloc(ctx->mem, (size_t)b->stored * sizeof *values);
    enum rfx_status status =
        places == NULL || values == NULL
            ? rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant")
            : RFX_OK;
    int64_t first = 0, stored = 0;
    for (int i = 0; status == RFX_OK && i < b->count; i++, first += stored)
        status = give_places(b, i, first, &places[i], values, &stored);
    struct rfx_weight w = {.source = RFX_WEIGHT_REPEATED,
                           .data = values,
                           .places = places,
                           .n_places = b->count,
                           .stored = b->stored,
                           .shape = c->shape,
                           .elems = c->elems};
    if (status == RFX_OK) status = rfx_graph_add_weight(ctx->graph, &w, weight, ctx->err);
    rfx_memory_release(ctx->mem, places);
    rfx_memory_release(ctx->mem, values);
    return status;
}

static bool find_boxes(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, struct boxes *b) {
    int64_t lo[RFX_MAX_RANK] = {0};
    *b = (struct boxes){.ctx = ctx, .rank = c->shape.rank};
    return c->repeat != NULL && c->elems > RFX_ONNX_STORED_UP_TO && add_part(b, c, lo) &&
           b->stored <= c->elems / 4;
}

bool rfx_onnx_repeat_has_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    struct boxes b;
    return find_boxes(ctx, c, &b);
}

enum rfx_status rfx_onnx_repeat_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                       int *weight) {
    struct boxes b;
    return find_boxes(ctx, c, &b) ? add_weight(&b, c, weight) : RFX_OK;
}
