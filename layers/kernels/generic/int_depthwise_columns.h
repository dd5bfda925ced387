/* Depthwise 3x3 convolution of bytes with vectors of COLUMNS_BITS bits, which are as many channels
 * as they have bytes. Included by int_depthwise_bytes.c once for each size.
 *
 * Kernels go from column to column: each is interleaved once, and its products go to the sums of
 * all pixels that use it. A pixel is ended with its last column. So the sums of three pixels and
 * all weights stay in registers, and the operations that end a pixel go between the products of the
 * next ones. What limits, for a pixel of stride 1: 12 dot products, 8 interleavings and 18
 * operations that scale and round. A processor that computes 64 bytes in two halves (AMD family 25)
 * is still a fifth faster with them: it schedules half as many operations. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_SIZE(name) JOIN(name##_, COLUMNS_BITS) /* of a function of this file */
#if COLUMNS_BITS == 512
#define OP(name) _mm512_##name
#define BITS(name) _mm512_##name##_si512
#define BYTES __m512i
#define FLOATS __m512
#else
#define OP(name) _mm256_##name
#define BITS(name) _mm256_##name##_si256
#define BYTES __m256i
#define FLOATS __m256
#endif

struct OF_SIZE(columns) {
    const uint8_t *at[3]; /* the next column in each row */
    int64_t step;
    BYTES weights[3][4], zero, bias[4], zero_point, flip;
    FLOATS scales[4];
    bool shifted; /* the zero point is not 0 */
    uint8_t *out;
    int64_t out_stride;
    int64_t channels; /* that are stored, at most */
};

/* Interleaves the bytes of four taps, so that those of a channel are neighbours. */
INLINE void OF_SIZE(interleave)(const BYTES taps[4], BYTES out[4]) {
    const BYTES low01 = OP(unpacklo_epi8)(taps[0], taps[1]);
    const BYTES high01 = OP(unpackhi_epi8)(taps[0], taps[1]);
    const BYTES low23 = OP(unpacklo_epi8)(taps[2], taps[3]);
    const BYTES high23 = OP(unpackhi_epi8)(taps[2], taps[3]);
    out[0] = OP(unpacklo_epi16)(low01, low23);
    out[1] = OP(unpackhi_epi16)(low01, low23);
    out[2] = OP(unpacklo_epi16)(high01, high23);
    out[3] = OP(unpackhi_epi16)(high01, high23);
}

/* Reads four numbers of each RFX_INT_LANES channels, as interleaving arranges channels. */
INLINE BYTES OF_SIZE(numbers)(const void *numbers, int i) {
    const __m128i *at = (const __m128i *)numbers + i;
    BYTES all = BITS(setzero)();
    UNROLL for (int k = 0; k < COLUMNS_BITS / 128; k++) {
        const __m128i four = _mm_loadu_si128(at + 4 * k);
#if COLUMNS_BITS == 512
        all = _mm512_mask_broadcast_i32x4(all, (__mmask16)(0xf << 4 * k), four);
#else
        all =
            k == 0 ? _mm256_inserti128_si256(all, four, 0) : _mm256_inserti128_si256(all, four, 1);
#endif
    }
    return all;
}

/* Reads and interleaves the next column. */
INLINE void OF_SIZE(next_column)(struct OF_SIZE(columns) * s, BYTES x[4]) {
    BYTES taps[4];
    UNROLL for (int i = 0; i < 3; i++) {
        taps[i] = BITS(loadu)((const void *)s->at[i]);
        VECTOR_KEEP(taps[i]);
        s->at[i] += s->step;
    }
    taps[3] = s->zero;
    OF_SIZE(interleave)(taps, x);
}

/* sum = from + the products of a column, which is column kx of the sum's pixel. */
INLINE void OF_SIZE(add_column)(const struct OF_SIZE(columns) * s, BYTES sum[4],
                                const BYTES from[4], const BYTES x[4], int kx) {
    UNROLL for (int i = 0; i < 4; i++) {
        BYTES made = from[i];
        __asm__("vpdpbusd %2, %1, %0" : "+v"(made) : "v"(x[i]), "v"(s->weights[kx][i]));
        sum[i] = made;
    }
}

/* Scales, rounds and stores the next pixel. */
INLINE void OF_SIZE(end_pixel)(struct OF_SIZE(columns) * s, const BYTES sum[4]) {
    BYTES whole[4];
    UNROLL for (int i = 0; i < 4; i++) whole[i] =
        OP(cvtps_epi32)(OP(mul_ps)(OP(cvtepi32_ps)(sum[i]), s->scales[i]));
    BYTES left = OP(packs_epi32)(whole[0], whole[1]);
    BYTES right = OP(packs_epi32)(whole[2], whole[3]);
    if (s->shifted) {
        left = OP(adds_epi16)(left, s->zero_point);
        right = OP(adds_epi16)(right, s->zero_point);
    }
    const BYTES bytes = BITS(xor)(OP(packus_epi16)(left, right), s->flip);
    if (s->channels >= COLUMNS_BITS / 8) {
        BITS(storeu)((void *)s->out, bytes);
    } else {
        uint8_t made[COLUMNS_BITS / 8];
        BITS(storeu)((void *)made, bytes);
        copy_elements(made, COLUMNS_BITS / 8, 1, s->channels, s->out, 0);
    }
    s->out += s->out_stride;
}

/* Ends the pixel of `last` with the next column and goes on with those of `middle` and `first`. */
INLINE void OF_SIZE(one_further)(struct OF_SIZE(columns) * s, BYTES last[4], BYTES middle[4],
                                 BYTES first[4]) {
    BYTES x[4];
    OF_SIZE(next_column)(s, x);
    OF_SIZE(add_column)(s, last, last, x, 2);
    OF_SIZE(add_column)(s, middle, middle, x, 1);
    OF_SIZE(add_column)(s, first, s->bias, x, 0);
    OF_SIZE(end_pixel)(s, last);
}

/* As one_further with the next two columns; kernels of stride 2. */
INLINE void OF_SIZE(two_further)(struct OF_SIZE(columns) * s, BYTES last[4], BYTES first[4]) {
    BYTES x[4];
    OF_SIZE(next_column)(s, x);
    OF_SIZE(add_column)(s, last, last, x, 1);
    OF_SIZE(next_column)(s, x);
    OF_SIZE(add_column)(s, last, last, x, 2);
    OF_SIZE(add_column)(s, first, s->bias, x, 0);
    OF_SIZE(end_pixel)(s, last);
}

INLINE struct OF_SIZE(columns) OF_SIZE(columns_of)(const struct rfx_int_conv_args *a, int64_t c) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    const struct ends ends = ends_of(&a->to);
    struct OF_SIZE(columns) s = {.step = a->tap_stride,
                                 .zero = BITS(setzero)(),
                                 .zero_point = OP(set1_epi32)((int32_t)ends.zero_points),
                                 .flip = OP(set1_epi32)((int32_t)ends.flip),
                                 .shifted = ends.zero_points != 0,
                                 .out = a->out + c,
                                 .out_stride = a->out_stride,
                                 .channels = a->m - c};
    VECTOR_KEEP(s.zero);
    for (int kx = 0; kx < 3; kx++) {
        BYTES taps[4] = {s.zero, s.zero, s.zero, s.zero};
        s.at[kx] = (const uint8_t *)a->rows[kx] + c;
        UNROLL for (int ky = 0; ky < 3; ky++) taps[ky] =
            BITS(loadu)((const void *)((const int8_t *)a->weights + (ky * 3 + kx) * filled + c));
        OF_SIZE(interleave)(taps, s.weights[kx]);
        UNROLL for (int i = 0; i < 4; i++) VECTOR_KEEP(s.weights[kx][i]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        s.bias[i] = OF_SIZE(numbers)(a->to.bias + c, i);
        s.scales[i] = (FLOATS)OF_SIZE(numbers)(a->to.scales + c, i);
        VECTOR_KEEP(s.bias[i]);
    }
    return s;
}

/* Computes the channels from c on of all pixels, with stride 1. */
static void OF_SIZE(columns_1)(const struct rfx_int_conv_args *a, int64_t c) {
    struct OF_SIZE(columns) s = OF_SIZE(columns_of)(a, c);
    BYTES x[4], sums[3][4];
    OF_SIZE(next_column)(&s, x);
    OF_SIZE(add_column)(&s, sums[0], s.bias, x, 0);
    OF_SIZE(next_column)(&s, x);
    OF_SIZE(add_column)(&s, sums[0], sums[0], x, 1);
    OF_SIZE(add_column)(&s, sums[1], s.bias, x, 0);
    for (int64_t left = a->pixels;;) {
        OF_SIZE(one_further)(&s, sums[0], sums[1], sums[2]);
        if (--left == 0) break;
        OF_SIZE(one_further)(&s, sums[1], sums[2], sums[0]);
        if (--left == 0) break;
        OF_SIZE(one_further)(&s, sums[2], sums[0], sums[1]);
        if (--left == 0) break;
    }
}

/* As columns_1, with stride 2. */
static void OF_SIZE(columns_2)(const struct rfx_int_conv_args *a, int64_t c) {
    struct OF_SIZE(columns) s = OF_SIZE(columns_of)(a, c);
    BYTES x[4], sums[2][4];
    OF_SIZE(next_column)(&s, x);
    OF_SIZE(add_column)(&s, sums[0], s.bias, x, 0);
    for (int64_t left = a->pixels;;) {
        OF_SIZE(two_further)(&s, sums[0], sums[1]);
        if (--left == 0) break;
        OF_SIZE(two_further)(&s, sums[1], sums[0]);
        if (--left == 0) break;
    }
}

#undef COLUMNS_BITS
#undef JOIN_
#undef JOIN
#undef OF_SIZE
#undef OP
#undef BITS
#undef BYTES
#undef FLOATS
