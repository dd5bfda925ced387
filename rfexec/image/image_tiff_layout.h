/* Private: what a TIFF directory says of its samples, and turning stored pixels into delivered
 * ones.
 *
 * Delivered: 8-bit samples (1, 2 and 4 bit grey scaled to 8, palettes expanded), 16-bit ones in
 * host order (also palettes that need them), or float32; 1 or 3 per pixel. One more sample per
 * pixel (alpha) is dropped. Min-is-white is turned round. Everything else is refused in words. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_TIFF_LAYOUT_H
#define RFX_RFEXEC_IMAGE_IMAGE_TIFF_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "rfexec/image/tiff_library.h"

struct rfx_tiff_layout {
    int64_t h, w;
    int64_t tile_h, tile_w; /* of strips: rows per strip and w */
    bool tiled, separate;   /* separate: each sample in a plane of its own */
    int compression;
    int bits, stored;   /* per sample; samples per pixel in the file */
    int c, sample_bits; /* delivered */
    bool is_palette, is_ycbcr;
    bool white_first;         /* 0 is white */
    bool lsb_first;           /* bits of a byte in the other order (uncompressed data only) */
    uint16_t palette[256][3]; /* in sample_bits */
};

/* Reads the current directory. MALFORMED or UNSUPPORTED, the text without the file's name. */
RFX_NODISCARD enum rfx_status rfx_tiff_layout_read(const struct rfx_tiff_library *lib, TIFF *tif,
                                                   struct rfx_tiff_layout *out,
                                                   struct rfx_error *err);

/* Planes that a pixel's samples are spread over: 1, or `stored` when separate. */
int rfx_tiff_layout_planes(const struct rfx_tiff_layout *layout);

/* Bytes of `cols` pixels in one plane of the file, rounded up to whole bytes. */
int64_t rfx_tiff_layout_row_bytes(const struct rfx_tiff_layout *layout, int64_t cols);

/* Bytes of one delivered pixel. */
int64_t rfx_tiff_layout_pixel_bytes(const struct rfx_tiff_layout *layout);

/* Converts `cols` pixels of one plane. src: packed samples in host byte order, starting at a whole
 * byte: all samples of a pixel, or those of plane `plane` when separate. dst: [cols, c]; a plane
 * that is not delivered (alpha) changes nothing. */
void rfx_tiff_layout_convert(const struct rfx_tiff_layout *layout, const unsigned char *src,
                             int plane, int64_t cols, void *dst);
#endif
