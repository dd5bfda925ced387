/* What formats can hold; see output_format.h. */
#include "rfexec/output/output_format.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define PNG_MAX_SIDE 1000000
#define OME_MAX_CHANNELS 4096 /* a directory each, which readers go through one by one */

bool rfx_output_kind_of(const char *path, enum rfx_output_kind *kind) {
    static const struct {
        const char *end;
        enum rfx_output_kind kind;
    } kinds[] = {{".npy", RFX_OUTPUT_NPY},           {".ome.tif", RFX_OUTPUT_OME_TIFF},
                 {".ome.tiff", RFX_OUTPUT_OME_TIFF}, {".tif", RFX_OUTPUT_TIFF},
                 {".tiff", RFX_OUTPUT_TIFF},         {".png", RFX_OUTPUT_PNG},
                 {".ome.zarr", RFX_OUTPUT_OME_ZARR}, {".zarr", RFX_OUTPUT_ZARR}};
    size_t length = strlen(path);
    *kind = RFX_OUTPUT_NPY;
    if (strcmp(path, "-") == 0) return true;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i].end);
        if (length <= n || strcasecmp(path + length - n, kinds[i].end) != 0) continue;
        *kind = kinds[i].kind;
        return true;
    }
    return false;
}

void rfx_output_declare(struct rfx_output_format *format, const struct rfx_graph *graph, int k) {
    format->stored = graph->outputs[k].stored;
    if (format->stored.reshaped) format->stored.shape = rfx_output_shape(graph, k);
}

static enum rfx_type by_most(int64_t most, enum rfx_type otherwise) {
    if (most > 0 && most <= UINT8_MAX) return RFX_TYPE_UINT8;
    return most > 0 && most <= UINT16_MAX ? RFX_TYPE_UINT16 : otherwise;
}

/* What a file of pictures has for a type; FLOAT32: nothing of its own. */
static enum rfx_type picture_type(enum rfx_output_kind kind, const struct rfx_stored *stored) {
    bool png = kind == RFX_OUTPUT_PNG;
    switch (stored->type) {
        case RFX_TYPE_BOOL:
            return RFX_TYPE_UINT8;
        case RFX_TYPE_INT64:
            return by_most(stored->most, png ? RFX_TYPE_FLOAT32 : RFX_TYPE_INT32);
        case RFX_TYPE_INT8:
        case RFX_TYPE_INT16:
        case RFX_TYPE_INT32:
            return png ? by_most(stored->most, RFX_TYPE_FLOAT32) : stored->type;
        case RFX_TYPE_UINT8:
        case RFX_TYPE_UINT16:
        case RFX_TYPE_FLOAT32:
        case RFX_TYPE_COUNT:
            break;
    }
    return stored->type;
}

/* What the values are as they are; FLOAT32 where bits or a range are asked for. */
static enum rfx_type unscaled_type(const struct rfx_output_format *format) {
    if (format->kind == RFX_OUTPUT_NPY) return format->stored.type;
    if (format->bits != 0 || format->has_range) return RFX_TYPE_FLOAT32;
    return picture_type(format->kind, &format->stored);
}

enum rfx_type rfx_output_sample(const struct rfx_output_format *format) {
    enum rfx_type type = unscaled_type(format);
    if (type != RFX_TYPE_FLOAT32) return type;
    int usual = format->kind == RFX_OUTPUT_PNG ? 8 : 32;
    int bits = format->bits != 0 ? format->bits : usual;
    return bits == 8 ? RFX_TYPE_UINT8 : bits == 16 ? RFX_TYPE_UINT16 : RFX_TYPE_FLOAT32;
}

bool rfx_output_is_scaled(const struct rfx_output_format *format) {
    return unscaled_type(format) == RFX_TYPE_FLOAT32 &&
           rfx_output_sample(format) != RFX_TYPE_FLOAT32;
}

int rfx_output_bits(const struct rfx_output_format *format) {
    return 8 * (int)rfx_type_bytes(rfx_output_sample(format));
}

bool rfx_output_is_signed(const struct rfx_output_format *format) {
    enum rfx_type type = rfx_output_sample(format);
    return type == RFX_TYPE_INT8 || type == RFX_TYPE_INT16 || type == RFX_TYPE_INT32;
}

const char *rfx_output_end(const char *path) {
    static const char *const ends[] = {".ome.zarr", ".ome.tif", ".ome.tiff"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n = strlen(ends[i]);
        if (length > n && strcasecmp(path + length - n, ends[i]) == 0) return path + length - n;
    }
    return strrchr(path, '.');
}

bool rfx_output_is_zarr(enum rfx_output_kind kind) {
    return kind == RFX_OUTPUT_ZARR || kind == RFX_OUTPUT_OME_ZARR;
}

bool rfx_output_is_tiff(enum rfx_output_kind kind) {
    return kind == RFX_OUTPUT_TIFF || kind == RFX_OUTPUT_OME_TIFF;
}

const char *rfx_output_kind_name(enum rfx_output_kind kind) {
    static const char *const names[] = {".npy file", "TIFF",       "tiled OME-TIFF",
                                        "PNG",       "Zarr array", "Zarr array"};
    _Static_assert(sizeof names / sizeof names[0] == RFX_OUTPUT_KIND_COUNT, "a name each");
    return names[kind];
}

enum rfx_status rfx_output_format_check(const struct rfx_output_format *format,
                                        const struct rfx_tensor *tensor, const char *path,
                                        struct rfx_error *err) {
    const char *name = rfx_output_kind_name(format->kind);
    int usual = format->kind == RFX_OUTPUT_PNG ? 8 : 32;
    int bits = format->bits != 0 ? format->bits : usual;
    bool picture = format->kind != RFX_OUTPUT_NPY;
    if ((bits != 8 && bits != 16 && bits != 32) || (format->kind == RFX_OUTPUT_PNG && bits == 32) ||
        (!picture && bits != 32))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: a %s has samples of %s bits, not %d",
                        path, name,
                        format->kind == RFX_OUTPUT_PNG ? "8 or 16"
                        : picture                      ? "8, 16 or 32"
                                                       : "32",
                        bits);
    if (format->has_range && (bits == 32 || !(format->range.lo < format->range.hi)))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a range of values needs samples of 8 or 16 bits and a lower end below "
                        "the upper one",
                        path);
    if (format->kind == RFX_OUTPUT_OME_TIFF && format->packing == RFX_TIFF_ZSTD)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: Bio-Formats does not read an OME-TIFF with libtiff's zstd; deflate is "
                        "read by all",
                        path);
    if (!picture) return RFX_OK;
    if (format->images > 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: the outputs of a batch of %" PRId64
                        " images are one .npy file, not a %s; run --list makes a file of each "
                        "picture",
                        path, format->images, name);
    if (tensor->layout != RFX_LAYOUT_NHWC)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a %s takes a map of rows, columns and channels; use .npy", path, name);
    if (format->kind != RFX_OUTPUT_PNG) {
        int most = format->kind == RFX_OUTPUT_OME_TIFF ? OME_MAX_CHANNELS : RFX_TIFF_MAX_CHANNELS;
        if (tensor->c <= most && tensor->h <= INT32_MAX && tensor->w <= INT32_MAX) return RFX_OK;
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a %s has at most %d channels and 2147483647 rows and columns, "
                        "the map is %" PRId64 " x %" PRId64 " x %" PRId64 "; use .npy",
                        path, name, most, tensor->c, tensor->h, tensor->w);
    }
    if (tensor->c != 1 && tensor->c != 3)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a PNG has 1 or 3 channels, the map has %" PRId64 "; use .tif or .npy",
                        path, tensor->c);
    if (tensor->h > PNG_MAX_SIDE || tensor->w > PNG_MAX_SIDE)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a PNG has at most %d rows and columns, the map is %" PRId64
                        " x %" PRId64 "; use .tif or .npy",
                        path, PNG_MAX_SIDE, tensor->h, tensor->w);
    return RFX_OK;
}
