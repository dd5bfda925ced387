/* Transposes planes into pixels, and pixels into planes. */
#include "layers/kernels/generic/variant.h"

/* Compilers make vectors of the loop for three channels. */
void VARIANT_NAME(interleave)(const float *planes, int64_t plane, int64_t c, int64_t pixels,
                              float *restrict out) {
    if (c == 3) {
        const float *first = planes, *second = planes + plane, *third = planes + 2 * plane;
        for (int64_t p = 0; p < pixels; p++) {
            out[3 * p] = first[p];
            out[3 * p + 1] = second[p];
            out[3 * p + 2] = third[p];
        }
        return;
    }
    for (int64_t i = 0; i < c; i++)
        for (int64_t p = 0; p < pixels; p++) out[p * c + i] = planes[i * plane + p];
}

#ifdef VARIANT_HAS_FMA

#define INLINE static inline __attribute__((always_inline))
#define QUADS (VECTOR_FLOATS / 4)

/* Indices for a shuffle within each quad of lanes: floats i0 .. i3, where 0 .. 3 are from a and 4
 * .. 7 from b. */
#define AT(i, quad) ((i) < 4 ? (i) + 4 * (quad) : VECTOR_FLOATS + (i)-4 + 4 * (quad))
#define QUAD(quad, i0, i1, i2, i3) AT(i0, quad), AT(i1, quad), AT(i2, quad), AT(i3, quad)
#if QUADS == 4
#define PICK(a, b, ...)                                                       \
    __builtin_shufflevector(a, b, QUAD(0, __VA_ARGS__), QUAD(1, __VA_ARGS__), \
                            QUAD(2, __VA_ARGS__), QUAD(3, __VA_ARGS__))
#elif QUADS == 2
#define PICK(a, b, ...) __builtin_shufflevector(a, b, QUAD(0, __VA_ARGS__), QUAD(1, __VA_ARGS__))
#else
#define PICK(a, b, ...) __builtin_shufflevector(a, b, QUAD(0, __VA_ARGS__))
#endif

/* Transposes VECTOR_FLOATS pixels of four channels into planes. */
INLINE void transpose(const float *x, int64_t x_stride, float *out, int64_t plane) {
    int64_t step = 4 * x_stride; /* the four pixels of a quad of lanes are consecutive */
    vector p0 = VECTOR_QUADS(x, step), p1 = VECTOR_QUADS(x + x_stride, step);
    vector p2 = VECTOR_QUADS(x + 2 * x_stride, step), p3 = VECTOR_QUADS(x + 3 * x_stride, step);
    vector low01 = PICK(p0, p1, 0, 4, 1, 5), high01 = PICK(p0, p1, 2, 6, 3, 7);
    vector low23 = PICK(p2, p3, 0, 4, 1, 5), high23 = PICK(p2, p3, 2, 6, 3, 7);
    VECTOR_STORE(out, PICK(low01, low23, 0, 1, 4, 5));
    VECTOR_STORE(out + plane, PICK(low01, low23, 2, 3, 6, 7));
    VECTOR_STORE(out + 2 * plane, PICK(high01, high23, 0, 1, 4, 5));
    VECTOR_STORE(out + 3 * plane, PICK(high01, high23, 2, 3, 6, 7));
}

void VARIANT_NAME(planes)(const float *x, int64_t x_stride, int64_t pixels, int64_t c, float *out,
                          int64_t plane) {
    if (pixels < VECTOR_FLOATS || c < 4) {
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t i = 0; i < c; i++) out[i * plane + p] = x[p * x_stride + i];
        return;
    }
    for (int64_t p = 0; p < pixels; p += VECTOR_FLOATS) {
        int64_t at = p + VECTOR_FLOATS <= pixels ? p : pixels - VECTOR_FLOATS;
        /* The last four may overlap the channels before them. */
        for (int64_t i = 0; i < c; i += 4) {
            int64_t ch = i + 4 <= c ? i : c - 4;
            transpose(x + at * x_stride + ch, x_stride, out + ch * plane + at, plane);
        }
    }
}
#endif
