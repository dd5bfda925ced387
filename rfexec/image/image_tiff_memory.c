/* Bounds on what libtiff allocates, which is not ours to count while it runs. */
#include "rfexec/image/image_tiff_memory.h"

#include "layers/core/checked.h"

#define HANDLE_BYTES ((size_t)1 << 18) /* directory, buffers and small tables of the codec */
#define TABLE_BYTES ((size_t)3 << 18)  /* of a codec with larger ones */
#define STRILE_BYTES 32 /* per strip or tile: offset and count, twice while loading */

/* How often a codec may hold a decoded strip or tile, beside the one that it delivers into:
 * dictionaries (LZMA, Zstandard), coefficients of all scans (JPEG), whole pictures (the others). */
static size_t codec_copies(int compression) {
    switch (compression) {
        case COMPRESSION_LZMA:
        case COMPRESSION_ZSTD:
            return 1;
        case COMPRESSION_JPEG:
        case COMPRESSION_JBIG:
            return 3;
        case COMPRESSION_WEBP:
        case COMPRESSION_LERC:
        case COMPRESSION_PIXARLOG:
            return 4;
        default:
            return 0;
    }
}

/* The largest compressed strip or tile, at most the file. */
static size_t largest_raw_bytes(const struct rfx_tiff_library *lib, TIFF *tif, int64_t n_striles,
                                int64_t file_bytes) {
    uint64_t largest = 0;
    for (int64_t i = 0; i < n_striles; i++) {
        int bad = 0;
        uint64_t bytes = lib->TIFFGetStrileByteCountWithErr(tif, (uint32_t)i, &bad);
        if (!bad && bytes > largest) largest = bytes;
    }
    uint64_t all = (uint64_t)file_bytes;
    return (size_t)(largest < all ? largest : all);
}

/* The pages of a codec that are touched: nothing where samples are not compressed, little of zlib
 * (libdeflate) and of libtiff's own. */
static size_t codec_bytes(int compression, bool *has_tables) {
    *has_tables = false;
    switch (compression) {
        case COMPRESSION_NONE:
            return 0;
        case COMPRESSION_LZW:
        case COMPRESSION_PACKBITS:
        case COMPRESSION_DEFLATE:
        case COMPRESSION_ADOBE_DEFLATE:
            return (size_t)1 << 18;
        default:
            *has_tables = true;
            return (size_t)3 << 19;
    }
}

/* Adds `bytes` to the sum; false when either does not fit. */
static bool count(size_t *sum, size_t times, size_t bytes) {
    size_t product;
    return rfx_checked_mul_size(times, bytes, &product) && rfx_checked_add_size(*sum, product, sum);
}

bool rfx_tiff_memory(const struct rfx_tiff_library *lib, TIFF *tif,
                     const struct rfx_tiff_reading *reading, int64_t file_bytes, size_t *out) {
    const struct rfx_tiff_reading *r = reading;
    uint16_t compression = COMPRESSION_NONE;
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &compression);
    bool has_tables;
    size_t sum = RFX_TIFF_SHARED_BYTES + codec_bytes(compression, &has_tables);
    bool fits = count(&sum, r->decoders, HANDLE_BYTES + (has_tables ? TABLE_BYTES : 0)) &&
                count(&sum, r->decoders * (size_t)r->n_striles, STRILE_BYTES);
    if (r->strile_bytes > 0)
        fits = fits &&
               count(&sum, r->decoders, largest_raw_bytes(lib, tif, r->n_striles, file_bytes)) &&
               count(&sum, r->decoders * codec_copies(compression), r->strile_bytes) &&
               count(&sum, 1, r->raw_bytes);
    if (r->cache_rows > 0)
        fits = fits && count(&sum, (size_t)r->cache_rows, r->row_bytes) &&
               count(&sum, (size_t)r->n_across, sizeof(int64_t));
    *out = sum;
    return fits;
}
