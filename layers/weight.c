/* Reading constants: conversion from the file's types, and the generator of seeded weights.
 * The generator is counter-based (splitmix64 of seed and index), so any element can be read at any
 * time without state. */
#include "layers/weight.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t dtype_bytes[] = {4, 8, 2, 2, 1, 1, 4, 8};
_Static_assert(sizeof dtype_bytes / sizeof dtype_bytes[0] == RFX_DTYPE_COUNT, "one size per type");

size_t rfx_dtype_bytes(enum rfx_dtype dtype) {
    return dtype_bytes[dtype];
}

static uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    uint32_t bits;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000u | (mantissa << 13);
    } else if (exponent != 0) {
        bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else {
        float tiny = (float)mantissa * 0x1p-24f;
        memcpy(&bits, &tiny, sizeof bits);
        bits |= sign;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float read_element(enum rfx_dtype dtype, const unsigned char *p) {
    union {
        float f32;
        double f64;
        uint32_t u32;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
    } v;
    switch (dtype) {
        case RFX_DTYPE_F32:
            memcpy(&v.f32, p, sizeof v.f32);
            return v.f32;
        case RFX_DTYPE_F64:
            memcpy(&v.f64, p, sizeof v.f64);
            return (float)v.f64;
        case RFX_DTYPE_F16:
            memcpy(&v.u16, p, sizeof v.u16);
            return f16_to_f32(v.u16);
        case RFX_DTYPE_BF16:
            memcpy(&v.u16, p, sizeof v.u16);
            v.u32 = (uint32_t)v.u16 << 16;
            return v.f32;
        case RFX_DTYPE_I8:
            return (float)(int8_t)*p;
        case RFX_DTYPE_U8:
            return (float)*p;
        case RFX_DTYPE_I32:
            memcpy(&v.i32, p, sizeof v.i32);
            return (float)v.i32;
        case RFX_DTYPE_I64:
            memcpy(&v.i64, p, sizeof v.i64);
            return (float)v.i64;
        case RFX_DTYPE_COUNT:
            break;
    }
    return 0.0f;
}

void rfx_weight_read(const struct rfx_weight *weight, int64_t first, int64_t count, float *out) {
    assert(first >= 0 && count >= 0 && count <= weight->elems - first);
    if (weight->source == RFX_WEIGHT_GENERATED) {
        float span = weight->hi - weight->lo;
        for (int64_t i = 0; i < count; i++) {
            int64_t element = first + i;
            bool mirrored = weight->mirror > 0 && element / weight->mirror % 2 != 0;
            if (mirrored) element -= weight->mirror;
            uint64_t bits = mix(weight->seed + (uint64_t)element * 0xd1342543de82ef95u);
            float step = span * ((float)(bits >> 40) * 0x1p-24f);
            out[i] = mirrored ? weight->hi - step : weight->lo + step;
        }
        return;
    }
    size_t size = weight->source == RFX_WEIGHT_OWNED ? sizeof(float) : dtype_bytes[weight->dtype];
    const unsigned char *p = (const unsigned char *)weight->data + (size_t)first * size;
    if (weight->source == RFX_WEIGHT_OWNED || weight->dtype == RFX_DTYPE_F32) {
        memcpy(out, p, (size_t)count * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; i++) out[i] = read_element(weight->dtype, p + (size_t)i * size);
}

#define AROUND_BYTES ((uintptr_t)65536) /* Linux maps this much around a page that is touched */

void rfx_weight_drop_range(const struct rfx_weight *weight, int64_t lo, int64_t hi) {
    if (weight->source != RFX_WEIGHT_MAPPED || hi <= lo) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t data = (uintptr_t)weight->data;
    uintptr_t size = dtype_bytes[weight->dtype];
    /* Whole pages around the weight: a neighbour's page is read again when it is needed. */
    uintptr_t first = data / page * page;
    uintptr_t last = (data + (uintptr_t)weight->elems * size + page - 1) / page * page;
    uintptr_t from = (data + (uintptr_t)lo * size) / AROUND_BYTES * AROUND_BYTES;
    uintptr_t to = (data + (uintptr_t)hi * size + AROUND_BYTES - 1) / AROUND_BYTES * AROUND_BYTES;
    if (from < first) from = first;
    if (to > last) to = last;
    (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

void rfx_weight_drop_pages(const struct rfx_weight *weight) {
    rfx_weight_drop_range(weight, 0, weight->elems);
}
