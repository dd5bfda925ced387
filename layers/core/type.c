/* The table of element types, and conversions from and to float32. */
#include "layers/core/type.h"

#include <assert.h>
#include <string.h>

#include "layers/core/floats.h"

struct row {
    size_t bytes;
    const char *name, *descr;
    int32_t onnx;
    bool integer;
    float lo, hi; /* the range of a cast to the type */
};

static const struct row rows[] = {
    [RFX_TYPE_FLOAT32] = {4, "float32", "<f4", 1, false, 0.0f, 0.0f},
    [RFX_TYPE_UINT8] = {1, "uint8", "|u1", 2, true, 0.0f, 255.0f},
    [RFX_TYPE_INT8] = {1, "int8", "|i1", 3, true, -128.0f, 127.0f},
    [RFX_TYPE_UINT16] = {2, "uint16", "<u2", 4, true, 0.0f, 65535.0f},
    [RFX_TYPE_INT16] = {2, "int16", "<i2", 5, true, -32768.0f, 32767.0f},
    [RFX_TYPE_INT32] = {4, "int32", "<i4", 6, true, -0x1p31f, 0x1p31f},
    [RFX_TYPE_INT64] = {8, "int64", "<i8", 7, true, -0x1p63f, 0x1p63f},
    [RFX_TYPE_BOOL] = {1, "bool", "|b1", 9, false, 0.0f, 1.0f},
    [RFX_TYPE_FLOAT16] = {2, "float16", "<f2", 10, false, 0.0f, 0.0f},
    [RFX_TYPE_BFLOAT16] = {2, "bfloat16", NULL, 16, false, 0.0f, 0.0f},
    [RFX_TYPE_FLOAT64] = {8, "float64", "<f8", 11, false, 0.0f, 0.0f},
    [RFX_TYPE_UINT32] = {4, "uint32", "<u4", 12, true, 0.0f, 0x1p32f},
    [RFX_TYPE_UINT64] = {8, "uint64", "<u8", 13, true, 0.0f, 0x1p64f},
};
_Static_assert(sizeof rows / sizeof rows[0] == RFX_TYPE_COUNT, "a row per type");

size_t rfx_type_bytes(enum rfx_type type) {
    return rows[type].bytes;
}

const char *rfx_type_name(enum rfx_type type) {
    return type < RFX_TYPE_COUNT ? rows[type].name : "an unknown type";
}

const char *rfx_type_descr(enum rfx_type type) {
    return rows[type].descr;
}

int32_t rfx_type_onnx(enum rfx_type type) {
    return rows[type].onnx;
}

enum rfx_type rfx_type_of_onnx(int32_t number) {
    for (int t = 0; t < RFX_TYPE_COUNT; t++)
        if (rows[t].onnx == number) return (enum rfx_type)t;
    return RFX_TYPE_COUNT;
}

bool rfx_type_is_integer(enum rfx_type type) {
    return rows[type].integer;
}

void rfx_type_limits(enum rfx_type type, float *lo, float *hi) {
    *lo = rows[type].lo;
    *hi = rows[type].hi;
}

bool rfx_type_takes_steps(enum rfx_type type, float scale, int32_t zero_point) {
    float lo, hi, zero = (float)zero_point;
    if (!rfx_type_is_byte(type)) return false;
    rfx_type_limits(type, &lo, &hi);
    return scale > 0.0f && isfinite(scale) && zero >= lo && zero <= hi;
}

/* Returns the value truncated to an integer and clamped to [lo, hi]; 0 for NaN. Values of 2^63 and
 * above are compared first because no int64 can hold them. */
static int64_t whole_of(float value, int64_t lo, int64_t hi) {
    if (value >= 0x1p63f) return hi;
    if (value < -0x1p63f) return lo;
    int64_t whole = value == value ? (int64_t)value : 0;
    return whole < lo ? lo : whole > hi ? hi : whole;
}

/* Returns the nearest whole number, the even one of two. Adding 2^23, or subtracting it from a
 * negative number, leaves no bits for a fraction. Larger numbers are already whole. */
static float even_of(float value) {
    if (!(value > -0x1p23f && value < 0x1p23f)) return value;
    return value < 0.0f ? (value - 0x1p23f) + 0x1p23f : (value + 0x1p23f) - 0x1p23f;
}

/* Stores the nearest integers of one byte, without branches. Adding 1.5 * 2^23 leaves no bits for
 * a fraction. */
#define STORE_NEAREST(element, lo, hi)                                        \
    do {                                                                      \
        element *out = to;                                                    \
        for (int64_t i = 0; i < count; i++) {                                 \
            float value = values[i] == values[i] ? values[i] : 0.0f;          \
            value = value > (lo) ? value : (lo);                              \
            value = value < (hi) ? value : (hi);                              \
            out[i] = (element)(int32_t)((value + 12582912.0f) - 12582912.0f); \
        }                                                                     \
    } while (0)

#define STORE(element, lo, hi)                                                                  \
    do {                                                                                        \
        element *out = to;                                                                      \
        for (int64_t i = 0; i < count; i++)                                                     \
            out[i] = (element)whole_of(nearest ? even_of(values[i]) : values[i], (int64_t)(lo), \
                                       (int64_t)(hi));                                          \
    } while (0)

static void store_bools(const float *values, int64_t count, uint8_t *to) {
    for (int64_t i = 0; i < count; i++) to[i] = values[i] != 0.0f;
}

static void store(enum rfx_type type, const float *values, int64_t count, void *to, bool nearest) {
    if (nearest && type == RFX_TYPE_UINT8) {
        STORE_NEAREST(uint8_t, 0.0f, 255.0f);
        return;
    }
    if (nearest && type == RFX_TYPE_INT8) {
        STORE_NEAREST(int8_t, -128.0f, 127.0f);
        return;
    }
    switch (type) {
        case RFX_TYPE_UINT8:
            STORE(uint8_t, 0, UINT8_MAX);
            break;
        case RFX_TYPE_INT8:
            STORE(int8_t, INT8_MIN, INT8_MAX);
            break;
        case RFX_TYPE_UINT16:
            STORE(uint16_t, 0, UINT16_MAX);
            break;
        case RFX_TYPE_INT16:
            STORE(int16_t, INT16_MIN, INT16_MAX);
            break;
        case RFX_TYPE_INT32:
            STORE(int32_t, INT32_MIN, INT32_MAX);
            break;
        case RFX_TYPE_INT64:
            STORE(int64_t, INT64_MIN, INT64_MAX);
            break;
        case RFX_TYPE_BOOL:
            store_bools(values, count, to);
            break;
        case RFX_TYPE_FLOAT32:
            memcpy(to, values, (size_t)count * sizeof *values);
            break;
        case RFX_TYPE_FLOAT16:
        case RFX_TYPE_BFLOAT16:
        case RFX_TYPE_FLOAT64:
        case RFX_TYPE_UINT32:
        case RFX_TYPE_UINT64:
        case RFX_TYPE_COUNT:
            assert(rfx_type_is_stored(type));
            break;
    }
}

void rfx_type_round(enum rfx_type type, const float *values, int64_t count, void *to) {
    store(type, values, count, to, true);
}

static uint16_t read_half(const unsigned char *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return half;
}

static uint32_t read_word(const unsigned char *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static uint64_t read_long(const unsigned char *p) {
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float read_element(enum rfx_type type, const unsigned char *p) {
    double wide;
    switch (type) {
        case RFX_TYPE_BOOL:
        case RFX_TYPE_UINT8:
            return (float)*p;
        case RFX_TYPE_INT8:
            return (float)(int8_t)*p;
        case RFX_TYPE_UINT16:
            return (float)read_half(p);
        case RFX_TYPE_INT16:
            return (float)(int16_t)read_half(p);
        case RFX_TYPE_INT32:
            return (float)(int32_t)read_word(p);
        case RFX_TYPE_INT64:
            return (float)(int64_t)read_long(p);
        case RFX_TYPE_UINT32:
            return (float)read_word(p);
        case RFX_TYPE_UINT64:
            return (float)read_long(p);
        case RFX_TYPE_FLOAT16:
            return rfx_float_of_half(read_half(p));
        case RFX_TYPE_BFLOAT16:
            return float_of_bits((uint32_t)read_half(p) << 16);
        case RFX_TYPE_FLOAT64:
            memcpy(&wide, p, sizeof wide);
            return (float)wide;
        case RFX_TYPE_FLOAT32:
        case RFX_TYPE_COUNT:
            break;
    }
    return float_of_bits(read_word(p));
}

static void load_uint8(const unsigned char *from, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i++) to[i] = (float)from[i];
}

static void load_int8(const unsigned char *from, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i++) to[i] = (float)(int8_t)from[i];
}

void rfx_type_load(enum rfx_type type, const void *from, int64_t count, float *to) {
    const unsigned char *p = from;
    size_t bytes = rows[type].bytes;
    if (type == RFX_TYPE_FLOAT32)
        memcpy(to, from, (size_t)count * bytes);
    else if (type == RFX_TYPE_UINT8)
        load_uint8(p, count, to);
    else if (type == RFX_TYPE_INT8)
        load_int8(p, count, to);
    else
        for (int64_t i = 0; i < count; i++) to[i] = read_element(type, p + (size_t)i * bytes);
}

static void gather_bytes(const unsigned char *from, size_t step, size_t bytes, int64_t count,
                         unsigned char *to) {
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)i * step, bytes);
}

static void gather_floats(const float *from, int64_t step, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i++) to[i] = rfx_one_nan(from[i * step]);
}

void rfx_type_gather(enum rfx_type from_type, const void *from, int64_t step, int64_t count,
                     enum rfx_type to_type, void *to) {
    enum { PIECE = 256 };
    size_t bytes = rows[from_type].bytes, to_bytes = rows[to_type].bytes;
    if (from_type == RFX_TYPE_FLOAT32 && to_type == RFX_TYPE_FLOAT32) {
        gather_floats(from, step, count, to);
        return;
    }
    if (from_type == to_type) {
        gather_bytes(from, (size_t)step * bytes, bytes, count, to);
        return;
    }
    float floats[PIECE];
    unsigned char piece[PIECE * sizeof(int64_t)];
    for (int64_t i = 0; i < count; i += PIECE) {
        int64_t n = count - i < PIECE ? count - i : PIECE;
        const unsigned char *at = (const unsigned char *)from + (size_t)(i * step) * bytes;
        gather_bytes(at, (size_t)step * bytes, bytes, n, piece);
        rfx_type_load(from_type, piece, n, floats);
        gather_floats(floats, 1, n, floats);
        store(to_type, floats, n, (unsigned char *)to + (size_t)i * to_bytes, false);
    }
}
