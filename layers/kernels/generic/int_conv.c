/* Integer convolutions: sums of products of int16, which are requantised to elements of one byte.
 * Sums are exact, so every instruction set gives the same bytes. */
#include "layers/kernels/generic/variant.h"

#define INLINE static inline __attribute__((always_inline))

/* Writes the elements of n <= RFX_INT_LANES channels from channel c on. */
INLINE void requantise(const struct rfx_requantise *to, int64_t c, const int32_t *sums, int64_t n,
                       uint8_t *out) {
    const float lo = (float)(to->lo - to->zero_point), hi = (float)(to->hi - to->zero_point);
    const float magic = 12582912.0f; /* 1.5 * 2^23: the sum has no bits for fractions */
    uint8_t made[RFX_INT_LANES];
    for (int i = 0; i < RFX_INT_LANES; i++) {
        float v = (float)(sums[i] + to->bias[c + i]) * to->scales[c + i];
        v = v < lo ? lo : v;
        v = v > hi ? hi : v;
        made[i] = (uint8_t)((int32_t)((v + magic) - magic) + to->zero_point);
    }
    for (int64_t i = 0; i < n; i++) out[i] = made[i];
}

/* Returns the number of channels of the block that begins at channel c. */
INLINE int64_t channels_of(const struct rfx_int_conv_args *a, int64_t c) {
    return a->m - c < RFX_INT_LANES ? a->m - c : RFX_INT_LANES;
}

void VARIANT_NAME(int_conv)(const struct rfx_int_conv_args *a) {
    const int64_t tap = a->pairs * RFX_INT_LANES * 2, filter = a->kh * a->kw * tap;
    for (int64_t c = 0; c < a->m; c += RFX_INT_LANES)
        for (int64_t p = 0; p < a->pixels; p++) {
            int32_t sums[RFX_INT_LANES] = {0};
            for (int64_t ky = 0; ky < a->kh; ky++) {
                if (a->rows[ky] == NULL) continue;
                for (int64_t kx = 0; kx < a->kw; kx++) {
                    const int16_t *x = a->rows[ky] + p * a->x_stride + kx * a->tap_stride;
                    const int16_t *w =
                        a->weights + c / RFX_INT_LANES * filter + (ky * a->kw + kx) * tap;
                    for (int64_t k = 0; k < a->pairs; k++, w += 2 * RFX_INT_LANES)
                        for (int i = 0; i < RFX_INT_LANES; i++)
                            sums[i] += x[2 * k] * w[2 * i] + x[2 * k + 1] * w[2 * i + 1];
                }
            }
            requantise(&a->to, c, sums, channels_of(a, c), a->out + p * a->out_stride + c);
        }
}

void VARIANT_NAME(int_depthwise)(const struct rfx_int_conv_args *a) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    for (int64_t p = 0; p < a->pixels; p++)
        for (int64_t c = 0; c < a->m; c += RFX_INT_LANES) {
            int32_t sums[RFX_INT_LANES] = {0};
            for (int64_t ky = 0; ky < a->kh; ky++) {
                if (a->rows[ky] == NULL) continue;
                for (int64_t kx = 0; kx < a->kw; kx++) {
                    const int16_t *x = a->rows[ky] + p * a->x_stride + kx * a->tap_stride + c;
                    const int16_t *w = a->weights + (ky * a->kw + kx) * filled + c;
                    for (int i = 0; i < RFX_INT_LANES; i++) sums[i] += x[i] * w[i];
                }
            }
            requantise(&a->to, c, sums, channels_of(a, c), a->out + p * a->out_stride + c);
        }
}
