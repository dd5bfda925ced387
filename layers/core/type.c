/* Sizes, names and conversions of element types. */
#include "layers/core/type.h"

#include <string.h>

struct row {
    size_t bytes;
    const char *name, *descr;
    float lo, hi;
};

static const struct row rows[] = {
    [RFX_TYPE_FLOAT32] = {4, "float32", "<f4", 0.0f, 0.0f},
    [RFX_TYPE_UINT8] = {1, "uint8", "|u1", 0.0f, 255.0f},
    [RFX_TYPE_INT8] = {1, "int8", "|i1", -128.0f, 127.0f},
    [RFX_TYPE_UINT16] = {2, "uint16", "<u2", 0.0f, 65535.0f},
    [RFX_TYPE_INT16] = {2, "int16", "<i2", -32768.0f, 32767.0f},
    [RFX_TYPE_INT32] = {4, "int32", "<i4", -0x1p31f, 0x1p31f},
    [RFX_TYPE_INT64] = {8, "int64", "<i8", -0x1p63f, 0x1p63f},
    [RFX_TYPE_BOOL] = {1, "bool", "|b1", 0.0f, 1.0f},
};
_Static_assert(sizeof rows / sizeof rows[0] == RFX_TYPE_COUNT, "a row per type");

size_t rfx_type_bytes(enum rfx_type type) {
    return rows[type].bytes;
}

const char *rfx_type_name(enum rfx_type type) {
    return rows[type].name;
}

const char *rfx_type_descr(enum rfx_type type) {
    return rows[type].descr;
}

void rfx_type_limits(enum rfx_type type, float *lo, float *hi) {
    *lo = rows[type].lo;
    *hi = rows[type].hi;
}

/* NaN becomes 0. Above INT64_MAX a float has no int64. */
static int64_t whole_of(float value, int64_t lo, int64_t hi) {
    if (value >= 0x1p63f) return hi;
    if (value < -0x1p63f) return lo;
    int64_t whole = value == value ? (int64_t)value : 0;
    return whole < lo ? lo : whole > hi ? hi : whole;
}

#define STORE(element, lo, hi)                                                   \
    do {                                                                         \
        element *out = to;                                                       \
        for (int64_t i = 0; i < count; i++)                                      \
            out[i] = (element)whole_of(values[i], (int64_t)(lo), (int64_t)(hi)); \
    } while (0)

static void store_bools(const float *values, int64_t count, uint8_t *to) {
    for (int64_t i = 0; i < count; i++) to[i] = values[i] != 0.0f;
}

void rfx_type_store(enum rfx_type type, const float *values, int64_t count, void *to) {
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
        case RFX_TYPE_COUNT:
            memcpy(to, values, (size_t)count * sizeof *values);
            break;
    }
}
