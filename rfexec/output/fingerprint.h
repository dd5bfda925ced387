/* A 128-bit fingerprint of the bits of an output. It does not depend on the order in which elements
 * are added.
 *
 * It is the sum over all elements, each half modulo 2^64, of the XXH3-128 of 16 bytes: the
 * element's index in ONNX order (NCHW or row-major) and the element's bits, both as little-endian
 * uint64. The bits are those of a float32, or those of a narrower type as in memory. Cost: about 3
 * ns an element. Invariants: 1. rows, strips, tiles and chunks in any order give the same value, as
 * long as every element is added once; 2. -0 and 0 give different values, all NaNs the same value
 * (outputs hold one NaN only); 3. a single wrong element always changes the value; several wrong
 * elements almost certainly do. */
#ifndef RFX_RFEXEC_OUTPUT_FINGERPRINT_H
#define RFX_RFEXEC_OUTPUT_FINGERPRINT_H

#include "layers/graph/graph.h"

#define RFX_FINGERPRINT_CHARS 33 /* 32 hexadecimal digits and the end */

/* The state of a fingerprint. All zero: no elements were added. */
struct rfx_fingerprint {
    uint64_t high, low;
    int64_t before; /* number of elements of a batch that were added before; the indices of further
                       elements begin there */
};

/* Adds elements [first, first + count) of the output in ONNX order. `values` holds them as elements
 * of `type`. */
void rfx_fingerprint_add(struct rfx_fingerprint *fp, enum rfx_type type, int64_t first,
                         const void *values, int64_t count);

/* Adds `rect` of an output piece's map (NHWC), all end->channels channels. The view holds `rect`.
 * Its pixels have at least end->channels elements of the view's type. */
void rfx_fingerprint_add_end(struct rfx_fingerprint *fp, const struct rfx_end *end,
                             struct rfx_rect rect, const struct rfx_view *view);

/* Writes the fingerprint of all elements added so far to `out`. More elements may be added later.
 */
void rfx_fingerprint_hex(const struct rfx_fingerprint *fp, char out[RFX_FINGERPRINT_CHARS]);
#endif
