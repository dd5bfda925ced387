/* Sums of XXH3-128 of single elements: addition is what makes the order of no account. */
#include "rfexec/output/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
/* Inlined, as one element is hashed at a time. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "rfexec/output/output_sink.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the fingerprint is defined on little-endian bytes"
#endif

static inline void add_element(struct rfx_fingerprint *fp, int64_t index, float value) {
    uint64_t pair[2] = {(uint64_t)(fp->before + index), 0};
    value = rfx_one_nan(value);
    memcpy(&pair[1], &value, sizeof value);
    XXH128_hash_t hash = XXH3_128bits(pair, sizeof pair);
    fp->high += hash.high64;
    fp->low += hash.low64;
}

void rfx_fingerprint_add(struct rfx_fingerprint *fp, int64_t first, const float *values,
                         int64_t count) {
    struct rfx_fingerprint sum = *fp;
    for (int64_t i = 0; i < count; i++) add_element(&sum, first + i, values[i]);
    *fp = sum;
}

void rfx_fingerprint_add_end(struct rfx_fingerprint *fp, const struct rfx_end *end,
                             struct rfx_rect rect, const struct rfx_view *view) {
    struct rfx_fingerprint sum = *fp;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            const float *pixel = rfx_view_at(view, y, x);
            int64_t first = end->at.first + y * end->at.row_step + x * end->at.column_step;
            for (int64_t c = 0; c < end->channels; c++)
                add_element(&sum, first + c * end->at.channel_step, pixel[c]);
        }
    *fp = sum;
}

void rfx_fingerprint_add_rect(struct rfx_fingerprint *fp, const struct rfx_tensor *map,
                              struct rfx_rect rect, const struct rfx_view *view) {
    const struct rfx_end whole = {.channels = map->c, .at = {0, map->w, 1, map->h * map->w}};
    rfx_fingerprint_add_end(fp, &whole, rect, view);
}

void rfx_fingerprint_hex(const struct rfx_fingerprint *fp, char out[RFX_FINGERPRINT_CHARS]) {
    (void)snprintf(out, RFX_FINGERPRINT_CHARS, "%016" PRIx64 "%016" PRIx64, fp->high, fp->low);
}
