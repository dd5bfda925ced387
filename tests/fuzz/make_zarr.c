/* Inputs of the target zarr; see make_zarr.h. */
#include "tests/fuzz/make_zarr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "layers/core/library.h"

enum { MOST_BYTES = 4096, SAMPLES = 48 }; /* 6 x 8 */

struct input {
    const char *name, *array, *group;
    char flags, packing;
};

/* As much of zstd and blosc as is here; a packing whose library is not there gives no bytes. */
static size_t pack(char packing, const unsigned char *from, size_t bytes, unsigned char *to) {
    static const struct rfx_library_function zstd_function = {"ZSTD_compress", 0, false},
                                             blosc_function = {"blosc_compress_ctx", 0, false};
    struct {
        size_t (*pack)(void *to, size_t room, const void *from, size_t bytes, int level);
    } zstd;
    struct {
        int (*pack)(int level, int shuffle, size_t type, size_t bytes, const void *from, void *to,
                    size_t room, const char *codec, size_t block, int threads);
    } blosc;
    uLongf packed = MOST_BYTES;
    if (packing == 'z' && compress(to, &packed, from, bytes) == Z_OK) return packed;
    if (packing == 's' &&
        rfx_library_load("libzstd.so.1", &zstd_function, 1, &zstd, NULL) == RFX_OK)
        return zstd.pack(to, MOST_BYTES, from, bytes, 1);
    if (packing == 'b' &&
        rfx_library_load("libblosc.so.1", &blosc_function, 1, &blosc, NULL) == RFX_OK)
        return (size_t)blosc.pack(5, 1, 2, bytes, from, to, MOST_BYTES, "lz4", 0, 1);
    if (packing != 'n') return 0;
    memcpy(to, from, bytes);
    return bytes;
}

#define V3(shape, chunk, type, rest)                                                          \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":\"" type    \
    "\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" chunk       \
    "}},\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":3,\"codecs\":[{\"name\"" \
    ":\"bytes\",\"configuration\":{\"endian\":\"little\"}}" rest "}"
#define V2(shape, chunk, type, packing, rest)                                       \
    "{\"zarr_format\":2,\"shape\":" shape ",\"chunks\":" chunk ",\"dtype\":\"" type \
    "\",\"compressor\":" packing ",\"fill_value\":0,\"order\":\"C\",\"filters\":null" rest "}"

void make_zarr(void (*save)(const char *target, const char *name, const void *bytes, size_t size)) {
    static const char group3[] =
        "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"ome\":{\"version\":\"0.5\","
        "\"multiscales\":[{\"axes\":[{\"name\":\"y\"},{\"name\":\"x\"}],\"datasets\":[{\"path\":"
        "\"0\"},{\"path\":\"1\"}]}]}}}";
    static const char group2[] =
        "{\"multiscales\":[{\"version\":\"0.3\",\"axes\":[\"c\",\"y\",\"x\"],\"datasets\":["
        "{\"path\":\"0\"}]}]}";
    static const struct input inputs[] = {
        {"v3_plain", V3("[11,15]", "[6,8]", "uint16", "]"), "", '1', 'n'},
        {"v3_zstd", V3("[11,15]", "[6,8]", "uint16", ",{\"name\":\"zstd\"}]"), "", '1', 's'},
        {"v3_blosc", V3("[11,15]", "[6,8]", "int16", ",{\"name\":\"blosc\"}]"), "", '1', 'b'},
        {"v3_names",
         V3("[8,1,6]", "[8,1,6]", "uint16", "],\"dimension_names\":[\"x\",\"t\",\"Y\"]"), "", '3',
         'n'},
        {"v3_group", V3("[6,8]", "[6,8]", "uint16", "]"), group3, '1', 'n'},
        {"v2_plain", V2("[3,6,8]", "[1,6,8]", ">i2", "null", ",\"dimension_separator\":\"/\""), "",
         '2', 'n'},
        {"v2_zlib", V2("[6,16]", "[6,8]", "<u2", "{\"id\":\"zlib\"}", ""), "", '0', 'z'},
        {"v2_group", V2("[1,12,8]", "[1,6,8]", "<u2", "{\"id\":\"zlib\"}", ""), group2, '2', 'z'},
    };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        const struct input *in = &inputs[i];
        unsigned char samples[SAMPLES * 2], bytes[3 * MOST_BYTES];
        for (size_t k = 0; k < sizeof samples; k++) samples[k] = (unsigned char)(k * k / 7);
        int n = snprintf((char *)bytes, 2 * MOST_BYTES, "%c%s\xff%s\xff", in->flags, in->array,
                         in->group);
        size_t packed = pack(in->packing, samples, sizeof samples, bytes + n);
        if (packed > 0) save("zarr", in->name, bytes, (size_t)n + packed);
    }
}
