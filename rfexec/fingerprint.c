/* Streaming XXH3-128 over float bits; the state lives in the tracked allocator. */
#include "rfexec/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
/* The state's size is needed to place it in a tracked block: xxHash's own way to ask for it. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

struct rfx_fingerprint {
    XXH3_state_t state; /* first: it wants 64-byte alignment */
    struct rfx_memory *mem;
};

enum rfx_status rfx_fingerprint_create(struct rfx_memory *mem, struct rfx_fingerprint **out,
                                       struct rfx_error *err) {
    struct rfx_fingerprint *fp = rfx_memory_calloc(mem, 1, sizeof *fp);
    if (fp == NULL) return rfx_memory_fail(mem, "fingerprint", sizeof *fp, err);
    fp->mem = mem;
    XXH3_INITSTATE(&fp->state);
    (void)XXH3_128bits_reset(&fp->state);
    *out = fp;
    return RFX_OK;
}

void rfx_fingerprint_add(struct rfx_fingerprint *fp, const float *values, size_t count) {
    if (count > 0) (void)XXH3_128bits_update(&fp->state, values, count * sizeof *values);
}

void rfx_fingerprint_add_rect(struct rfx_fingerprint *fp, struct rfx_rect rect, int64_t c,
                              const struct rfx_view *view) {
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        if (view->c == c) {
            rfx_fingerprint_add(fp, rfx_view_at(view, y, rect.x0),
                                (size_t)(rfx_rect_cols(rect) * c));
            continue;
        }
        for (int64_t x = rect.x0; x < rect.x1; x++)
            rfx_fingerprint_add(fp, rfx_view_at(view, y, x), (size_t)c);
    }
}

void rfx_fingerprint_hex(const struct rfx_fingerprint *fp, char out[RFX_FINGERPRINT_CHARS]) {
    XXH128_hash_t hash = XXH3_128bits_digest(&fp->state);
    (void)snprintf(out, RFX_FINGERPRINT_CHARS, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
                   (uint64_t)hash.low64);
}

void rfx_fingerprint_free(struct rfx_fingerprint *fp) {
    if (fp != NULL) rfx_memory_release(fp->mem, fp);
}
