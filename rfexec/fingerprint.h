/* A 128-bit fingerprint (XXH3) of the bits of floats, fed in any portions.
 * It tells -0 from 0 and one NaN from another: two outputs with one fingerprint are the same bits.
 */
#ifndef RFX_RFEXEC_FINGERPRINT_H
#define RFX_RFEXEC_FINGERPRINT_H

#include "layers/memory.h"
#include "layers/tensor.h"

#define RFX_FINGERPRINT_CHARS 33 /* 32 hexadecimal digits and the end */

struct rfx_fingerprint;

/* An empty fingerprint, or OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_fingerprint_create(struct rfx_memory *mem,
                                                     struct rfx_fingerprint **out,
                                                     struct rfx_error *err);

/* Adds `count` floats. */
void rfx_fingerprint_add(struct rfx_fingerprint *fp, const float *values, size_t count);

/* Adds `rect` of a map in the order rows, columns, channels (the first c floats of a pixel).
 * Feeding the full-width row bands of a map from the top gives the fingerprint of the whole map. */
void rfx_fingerprint_add_rect(struct rfx_fingerprint *fp, struct rfx_rect rect, int64_t c,
                              const struct rfx_view *view);

/* Writes the fingerprint of everything added so far; more may be added. */
void rfx_fingerprint_hex(const struct rfx_fingerprint *fp, char out[RFX_FINGERPRINT_CHARS]);

/* Frees; NULL is fine. */
void rfx_fingerprint_free(struct rfx_fingerprint *fp);
#endif
