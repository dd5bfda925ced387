/* Reading weights for packing: the mapped pages already read are dropped on the way, so that a
 * model file never sits in memory beside its packed copy. Also the part of packed constants that
 * convolutions, transposed convolutions and fully connected layers share. */
#ifndef RFX_LAYERS_PACKING_H
#define RFX_LAYERS_PACKING_H

#include "layers/checked.h"
#include "layers/floats.h"
#include "layers/graph.h"
#include "layers/kernels.h"

#define RFX_PACKING_CHUNK_ELEMS 262144 /* RFX_PACK_TEMP_BYTES in floats */

#define RFX_PACKING_DROP_ELEMS                                           \
    65536 /* the most elements of which mapped pages are kept: the arena \
             may be full beside them when weights are loaded by stage */

/* Reads pieces of a weight and gives mapped pages back as soon as a piece does not follow the one
 * before: the kernel maps more around a page than was asked for. */
struct rfx_packing_reader {
    const struct rfx_weight *weight;
    int64_t lo, hi; /* elements read since pages were given back */
};

static inline void rfx_packing_read(struct rfx_packing_reader *reader, int64_t first, int64_t count,
                                    float *out) {
    while (count > 0) {
        int64_t n = rfx_min_i64(count, RFX_PACKING_DROP_ELEMS);
        bool follows = first == reader->hi && reader->hi - reader->lo < RFX_PACKING_DROP_ELEMS;
        if (!follows) {
            rfx_weight_drop_range(reader->weight, reader->lo, reader->hi);
            reader->lo = first;
        }
        rfx_weight_read(reader->weight, first, n, out);
        first += n;
        out += n;
        count -= n;
        reader->hi = first;
    }
}

/* The scales of `c` output channels of a weight, or NULL where there is none (scale < 0). They lie
 * behind the first half of temp when they fit, else in a block of their own, which *own receives.
 */
static inline enum rfx_status rfx_packing_scale(const struct rfx_graph *graph, int scale, int64_t c,
                                                float *temp, float **own, const float **out,
                                                struct rfx_error *err) {
    *own = NULL;
    *out = NULL;
    if (scale < 0) return RFX_OK;
    float *values = temp + RFX_PACKING_CHUNK_ELEMS / 2;
    if (c > RFX_PACKING_CHUNK_ELEMS / 2) {
        size_t bytes = rfx_floats_bytes(c);
        values = *own = rfx_memory_alloc(graph->mem, bytes);
        if (values == NULL) return rfx_memory_fail(graph->mem, "packing scales", bytes, err);
    }
    rfx_weight_read(&graph->weights[scale], 0, c, values);
    rfx_weight_drop_pages(&graph->weights[scale]);
    *out = values;
    return RFX_OK;
}

/* bias[c], slopes[c] of PRELU, then the weights; each part aligned. */
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

/* Writes bias (zeros where there is none) and slopes; returns where the weights go. */
static inline float *rfx_packing_begin(const struct rfx_graph *graph, const struct rfx_act *act,
                                       int64_t c, int bias, void *packed) {
    struct rfx_packed_parts parts = rfx_packing_parts(act, c);
    float *values = packed;
    if (bias < 0) {
        for (int64_t i = 0; i < c; i++) values[i] = 0.0f;
    } else {
        rfx_weight_read(&graph->weights[bias], 0, c, values);
        rfx_weight_drop_pages(&graph->weights[bias]);
    }
    rfx_act_pack(graph, act, c, (float *)(void *)((char *)packed + parts.slope_bytes_at));
    return (float *)(void *)((char *)packed + parts.weights_bytes_at);
}
#endif
