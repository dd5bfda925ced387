/* Constant tensors of a model and where their values come from.
 *
 * A weight is never copied before it is packed: it points into the mapped model file, or at values
 * that the graph owns, or is a formula (seed, distribution) evaluated on reading. All are read
 * through rfx_weight_read, in any order, any number of times, with the same values. */
#ifndef RFX_LAYERS_WEIGHT_H
#define RFX_LAYERS_WEIGHT_H

#include <stdint.h>

#include "layers/status.h"
#include "layers/tensor.h"

enum rfx_weight_source {
    RFX_WEIGHT_OWNED,     /* float32, the graph owns `data` */
    RFX_WEIGHT_MAPPED,    /* `data` points into a mapping that outlives the graph's use of it */
    RFX_WEIGHT_GENERATED, /* element i is uniform in [lo, hi), a function of (seed, i) alone */
};

enum rfx_dtype { /* of MAPPED data, little endian */
                 RFX_DTYPE_F32,
                 RFX_DTYPE_F64,
                 RFX_DTYPE_F16,
                 RFX_DTYPE_BF16,
                 RFX_DTYPE_I8,
                 RFX_DTYPE_U8,
                 RFX_DTYPE_I32,
                 RFX_DTYPE_I64,
                 RFX_DTYPE_COUNT
};

struct rfx_weight {
    enum rfx_weight_source source;
    enum rfx_dtype dtype;
    const void *data; /* OWNED, MAPPED; may be unaligned when MAPPED */
    uint64_t seed;    /* GENERATED */
    float lo, hi;     /* GENERATED */
    int64_t mirror;   /* GENERATED: n > 0: of each 2 n elements the last n are the first n mirrored,
                         lo + hi - x, so that they cancel */
    struct rfx_shape shape;
    int64_t elems;
};

/* Size of one element in bytes. */
size_t rfx_dtype_bytes(enum rfx_dtype dtype);

/* Reads elements [first, first + count) as float32 into out; the range must lie in the weight
 * (asserted). O(count). */
void rfx_weight_read(const struct rfx_weight *weight, int64_t first, int64_t count, float *out);

/* Tells the system that the mapped pages of this weight are not needed for now, so that they leave
 * the resident set; a later read brings them back. Does nothing for other sources. */
void rfx_weight_drop_pages(const struct rfx_weight *weight);

/* The same for the pages of elements [lo, hi) and what the kernel maps around them, as far as the
 * weight reaches. */
void rfx_weight_drop_range(const struct rfx_weight *weight, int64_t lo, int64_t hi);
#endif
