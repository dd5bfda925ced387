/* Overflow-checked size arithmetic: the one place where sizes are multiplied and summed.
 * Each function returns false (and leaves *out alone) when the result does not fit. */
#ifndef RFX_LAYERS_CORE_CHECKED_H
#define RFX_LAYERS_CORE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool rfx_checked_mul_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rfx_checked_add_i64(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rfx_checked_mul_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

static inline bool rfx_checked_add_size(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/* Return a / b rounded towards minus infinity and towards plus infinity; b > 0. */
static inline int64_t rfx_floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return (a % b != 0 && a < 0) ? q - 1 : q;
}

static inline int64_t rfx_ceil_div(int64_t a, int64_t b) {
    return -rfx_floor_div(-a, b);
}

static inline int64_t rfx_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t rfx_max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Returns the greatest common divisor of a >= 0 and b >= 0; if one of them is 0, it is the other
 * one. */
static inline int64_t rfx_gcd_i64(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

#define RFX_ALIGNMENT_BYTES 64 /* for every buffer: a cache line or AVX-512 register */

/* Returns `bytes` rounded up to RFX_ALIGNMENT_BYTES. The caller keeps `bytes` far from SIZE_MAX. */
static inline size_t rfx_align_up(size_t bytes) {
    return (bytes + (RFX_ALIGNMENT_BYTES - 1)) & ~(size_t)(RFX_ALIGNMENT_BYTES - 1);
}
#endif
