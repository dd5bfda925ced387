/* Sums of XXH3-128 of single elements. Because they are sums, the order of the elements does not
 * matter. */
#include "rfexec/output/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
/* Inlined, because each call hashes one element only. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "layers/core/floats.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the fingerprint is defined on little-endian bytes"
#endif

static inline void add_bits(struct rfx_fingerprint *fp, int64_t index, uint64_t bits) {
    const uint64_t pair[2] = {(uint64_t)(fp->before + index), bits};
    XXH128_hash_t hash = XXH3_128bits(pair, sizeof pair);
    fp->high += hash.high64;
    fp->low += hash.low64;
}

/* Adds elements whose indices in the output are `step` apart. */
static inline void add_floats(struct rfx_fingerprint *fp, int64_t first, int64_t step,
                              const float *values, int64_t count) {
    struct rfx_fingerprint sum = *fp;
    for (int64_t i = 0; i < count; i++) {
        float value = rfx_one_nan(values[i]);
        uint64_t bits = 0;
        memcpy(&bits, &value, sizeof value);
        add_bits(&sum, first + i * step, bits);
    }
    *fp = sum;
}

static void add_run(struct rfx_fingerprint *fp, enum rfx_type type, int64_t first, int64_t step,
                    const void *values, int64_t count) {
    size_t bytes = rfx_type_bytes(type);
    if (type == RFX_TYPE_FLOAT32) {
        add_floats(fp, first, step, values, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const unsigned char *)values + (size_t)i * bytes, bytes);
        add_bits(fp, first + i * step, bits);
    }
}

void rfx_fingerprint_add(struct rfx_fingerprint *fp, enum rfx_type type, int64_t first,
                         const void *values, int64_t count) {
    add_run(fp, type, first, 1, values, count);
}

void rfx_fingerprint_add_end(struct rfx_fingerprint *fp, const struct rfx_end *end,
                             struct rfx_rect rect, const struct rfx_view *view) {
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            int64_t first = end->at.first + y * end->at.row_step + x * end->at.column_step;
            add_run(fp, view->type, first, end->at.channel_step, rfx_view_at(view, y, x),
                    end->channels);
        }
}

void rfx_fingerprint_hex(const struct rfx_fingerprint *fp, char out[RFX_FINGERPRINT_CHARS]) {
    (void)snprintf(out, RFX_FINGERPRINT_CHARS, "%016" PRIx64 "%016" PRIx64, fp->high, fp->low);
}
