/* Reads weights for packing. Also defines the part of packed constants that convolutions,
 * transposed convolutions and fully connected layers have in common. */
#ifndef RFX_LAYERS_KERNELS_PACKING_H
#define RFX_LAYERS_KERNELS_PACKING_H

#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"

#define RFX_PACKING_AHEAD_ELEMS 4096 /* elements that a reader reads from a file in one call */

/* A reader of pieces of a weight. Small consecutive pieces are read from the file together, because
 * a system call for each (a depthwise filter of nine values, say) would cost more than the values.
 * Starts as {.weight = ..., .err = ...}. */
struct rfx_packing_reader {
    const struct rfx_weight *weight;
    struct rfx_error *err; /* may be NULL */
    int64_t next;          /* the element after the last one that was requested */
    int64_t lo, hi;        /* elements in `ahead` */
    float ahead[RFX_PACKING_AHEAD_ELEMS];
};

/* Reads elements [first, first + count) of the reader's weight into out. Statuses: as
 * rfx_weight_read. */
RFX_NODISCARD static inline enum rfx_status rfx_packing_read(struct rfx_packing_reader *reader,
                                                             int64_t first, int64_t count,
                                                             float *out) {
    const struct rfx_weight *weight = reader->weight;
    bool follows = first == reader->next && weight->source == RFX_WEIGHT_FILE;
    reader->next = first + count;
    while (count > 0) {
        if (first >= reader->lo && first < reader->hi) {
            int64_t n = rfx_min_i64(count, reader->hi - first);
            memcpy(out, reader->ahead + (first - reader->lo), (size_t)n * sizeof *out);
            first += n;
            out += n;
            count -= n;
            continue;
        }
        if (!follows || count >= RFX_PACKING_AHEAD_ELEMS)
            return rfx_weight_read(weight, first, count, out, reader->err);
        int64_t n = rfx_min_i64(RFX_PACKING_AHEAD_ELEMS, weight->elems - first);
        enum rfx_status status = rfx_weight_read(weight, first, n, reader->ahead, reader->err);
        if (status != RFX_OK) return status;
        reader->lo = first;
        reader->hi = first + n;
    }
    return RFX_OK;
}

/* Floats of a cache line; matrices are transposed in tiles of 16 x 16. */
#define RFX_PACKING_TILE 16

/* Vectors of four floats, for which every processor has registers; the second type may be
 * unaligned. */
typedef float rfx_packing_four __attribute__((vector_size(16)));
typedef float rfx_packing_any_four __attribute__((vector_size(16), aligned(4), may_alias));

/* Transposes 4 x 4 floats: to[e][j] = rows[j * step + e] for j, e < 4. Rows of `to` are to_step
 * floats apart. */
static inline void rfx_packing_square(const float *rows, int64_t step, float *to, int64_t to_step) {
    rfx_packing_four a = *(const rfx_packing_any_four *)(const void *)rows;
    rfx_packing_four b = *(const rfx_packing_any_four *)(const void *)(rows + step);
    rfx_packing_four c = *(const rfx_packing_any_four *)(const void *)(rows + 2 * step);
    rfx_packing_four d = *(const rfx_packing_any_four *)(const void *)(rows + 3 * step);
    rfx_packing_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    rfx_packing_four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    rfx_packing_four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    rfx_packing_four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    rfx_packing_any_four *at = (rfx_packing_any_four *)(void *)to;
    to_step /= 4;
    at[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    at[to_step] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    at[2 * to_step] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    at[3 * to_step] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* Transposes `n` rows of `count` elements: tile[e][j] = rows[j * step + e]. n and count are at most
 * RFX_PACKING_TILE. The rest of the tile is not changed. */
static inline void rfx_packing_tile(const float *rows, int64_t step, int64_t n, int64_t count,
                                    float tile[RFX_PACKING_TILE][RFX_PACKING_TILE]) {
    if (n == RFX_PACKING_TILE && count == RFX_PACKING_TILE) {
        for (int j = 0; j < RFX_PACKING_TILE; j += 4)
            for (int e = 0; e < RFX_PACKING_TILE; e += 4)
                rfx_packing_square(rows + j * step + e, step, &tile[e][j], RFX_PACKING_TILE);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t e = 0; e < count; e++) tile[e][j] = rows[j * step + e];
}

/* Returns the elements of a shard's temporary buffer that hold weights; the second half may hold
 * scales. */
static inline int64_t rfx_packing_half(const struct rfx_pack_part *part) {
    return part->temp_elems / 2 / RFX_PACKING_TILE * RFX_PACKING_TILE;
}

/* Reads the `c` per-channel scales of weight number `scale` and sets *out to them; *out is NULL if
 * scale < 0. The scales go into the second half of part->temp if they fit. Otherwise they go into a
 * new block: *own receives it, and the caller releases it. */
static inline enum rfx_status rfx_packing_scale(const struct rfx_graph *graph, int scale, int64_t c,
                                                const struct rfx_pack_part *part, float **own,
                                                const float **out, struct rfx_error *err) {
    *own = NULL;
    *out = NULL;
    if (scale < 0) return RFX_OK;
    float *values = part->temp + rfx_packing_half(part);
    if (c > rfx_packing_half(part)) {
        size_t bytes = rfx_floats_bytes(c);
        values = *own = rfx_memory_alloc(graph->mem, bytes);
        if (values == NULL) return rfx_memory_fail(graph->mem, "packing scales", bytes, err);
    }
    enum rfx_status status = rfx_weight_read(&graph->weights[scale], 0, c, values, err);
    if (status == RFX_OK) {
        *out = values;
    } else {
        rfx_memory_release(graph->mem, *own);
        *own = NULL;
    }
    return status;
}

/* Layout of packed constants: bias[c], slopes[c] of PRELU, then the weights; each part is aligned.
 */
struct rfx_packed_parts {
    size_t slope_bytes_at, weights_bytes_at;
};

static inline struct rfx_packed_parts rfx_packing_parts(const struct rfx_act *act, int64_t c) {
    struct rfx_packed_parts parts;
    parts.slope_bytes_at = rfx_align_up(rfx_floats_bytes(c));
    parts.weights_bytes_at = parts.slope_bytes_at + rfx_align_up(rfx_act_packed_bytes(act, c));
    return parts;
}

static inline const float *rfx_packed_slope(const struct rfx_act *act, int64_t c,
                                            const void *packed) {
    if (act->kind != RFX_ACT_PRELU) return NULL;
    return (const float *)((const char *)packed + rfx_packing_parts(act, c).slope_bytes_at);
}

static inline const float *rfx_packed_weights(const struct rfx_act *act, int64_t c,
                                              const void *packed) {
    return (const float *)((const char *)packed + rfx_packing_parts(act, c).weights_bytes_at);
}

/* Begins packing a shard: sets *weights to the destination of the weights. Shard 0 also writes the
 * bias (zeros if there is none) and the slopes. */
RFX_NODISCARD static inline enum rfx_status rfx_packing_begin(
    const struct rfx_graph *graph, const struct rfx_act *act, int64_t c, int bias, void *packed,
    const struct rfx_pack_part *part, float **weights, struct rfx_error *err) {
    struct rfx_packed_parts parts = rfx_packing_parts(act, c);
    float *values = packed;
    enum rfx_status status = RFX_OK;
    *weights = (float *)(void *)((char *)packed + parts.weights_bytes_at);
    if (part->index > 0) return RFX_OK;
    if (bias < 0) {
        for (int64_t i = 0; i < c; i++) values[i] = 0.0f;
    } else {
        status = rfx_weight_read(&graph->weights[bias], 0, c, values, err);
    }
    if (status != RFX_OK) return status;
    return rfx_act_pack(graph, act, c, (float *)(void *)((char *)packed + parts.slope_bytes_at),
                        err);
}

/* Reads a weight of c elements, or of one that is repeated, into out[c]. Fills out with `absent` if
 * there is no weight. */
RFX_NODISCARD static inline enum rfx_status rfx_packing_channels(const struct rfx_graph *graph,
                                                                 int weight, float absent,
                                                                 int64_t c, float *out,
                                                                 struct rfx_error *err) {
    int64_t n = weight < 0 ? 1 : graph->weights[weight].elems;
    enum rfx_status status = RFX_OK;
    if (weight < 0)
        out[0] = absent;
    else
        status = rfx_weight_read(&graph->weights[weight], 0, n, out, err);
    for (int64_t i = n; status == RFX_OK && i < c; i++) out[i] = out[0];
    return status;
}

/* Packed constants of ops that end in act(x * scale[c] + shift[c]), c elements each: shift in the
 * place of the bias, slopes, scale in the place of the weights. They are packed as one shard.
 * Without a weight (-1), scale is 1 and shift is 0. */
static inline size_t rfx_packing_scale_shift_bytes(const struct rfx_act *act, int64_t c) {
    return rfx_packing_parts(act, c).weights_bytes_at + rfx_align_up(rfx_floats_bytes(c));
}

RFX_NODISCARD static inline enum rfx_status rfx_packing_scale_shift(
    const struct rfx_graph *graph, const struct rfx_node *node, int scale, int shift, void *packed,
    const struct rfx_pack_part *part, struct rfx_error *err) {
    if (part->index > 0) return RFX_OK;
    int64_t c = node->out.c;
    float *scales;
    enum rfx_status status =
        rfx_packing_begin(graph, &node->act, c, -1, packed, part, &scales, err);
    if (status == RFX_OK) status = rfx_packing_channels(graph, shift, 0.0f, c, packed, err);
    if (status == RFX_OK) status = rfx_packing_channels(graph, scale, 1.0f, c, scales, err);
    return status;
}
#endif
