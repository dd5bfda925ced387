/* Names of sample types, and conversion of stored samples to delivered ones. */
#include "rfexec/image/decode/array_type.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/floats.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian samples are taken as is");

static const struct rfx_zarr_type types[] = {
    {"uint8", 'u', 1},   {"uint16", 'u', 2},  {"uint32", 'u', 4},
    {"int8", 'i', 1},    {"int16", 'i', 2},   {"int32", 'i', 4},
    {"float32", 'f', 4}, {"float64", 'f', 8}, {"float16", 'f', 2},
};
enum { TYPES = sizeof types / sizeof types[0] };

const struct rfx_zarr_type *rfx_zarr_type_named(const char *name) {
    for (int i = 0; i < TYPES; i++)
        if (strcmp(name, types[i].name) == 0) return &types[i];
    return NULL;
}

const struct rfx_zarr_type *rfx_zarr_type_parse(const char *text, bool *big) {
    if (strlen(text) != 3 || strchr("<>|", text[0]) == NULL) return NULL;
    for (int i = 0; i < TYPES; i++) {
        if (text[1] != types[i].kind || text[2] != '0' + types[i].bytes) continue;
        if (text[0] == '|' && types[i].bytes > 1) return NULL;
        *big = text[0] == '>';
        return &types[i];
    }
    return NULL;
}

void rfx_zarr_type_format(const struct rfx_zarr_type *type, char text[RFX_ZARR_TYPE_CHARS]) {
    (void)snprintf(text, RFX_ZARR_TYPE_CHARS, "%c%c%d", type->bytes == 1 ? '|' : '<', type->kind,
                   type->bytes);
}

int rfx_zarr_type_sample_bits(const struct rfx_zarr_type *type) {
    return type->kind == 'u' && type->bytes <= 2 ? 8 * type->bytes : 32;
}

static uint64_t load(const unsigned char *from, int bytes, bool big) {
    uint64_t value = 0;
    memcpy(&value, from, (size_t)bytes);
    return big ? __builtin_bswap64(value) >> (64 - 8 * bytes) : value;
}

static float to_float(const struct rfx_zarr_type *type, uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float narrow;
    double wide;
    if (type->kind == 'u') return (float)low;
    if (type->kind == 'f' && type->bytes == 2) return rfx_float_of_half((uint16_t)bits);
    if (type->kind == 'f' && type->bytes == 4) return memcpy(&narrow, &low, 4), narrow;
    if (type->kind == 'f') return memcpy(&wide, &bits, 8), (float)wide;
    if (type->bytes == 1) return (float)(int8_t)low;
    return type->bytes == 2 ? (float)(int16_t)low : (float)(int32_t)low;
}

void rfx_zarr_type_convert(const struct rfx_zarr_type *type, bool big, const unsigned char *from,
                           size_t step, size_t count, unsigned char *to, size_t to_step) {
    const int bits = rfx_zarr_type_sample_bits(type);
    if (bits == 8) {
        for (size_t i = 0; i < count; i++) to[i * to_step] = from[i * step];
    } else if (bits == 16) {
        for (size_t i = 0; i < count; i++) {
            uint16_t v = (uint16_t)load(from + i * step, 2, big);
            memcpy(to + i * to_step, &v, 2);
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            float v = to_float(type, load(from + i * step, type->bytes, big));
            memcpy(to + i * to_step, &v, 4);
        }
    }
}
