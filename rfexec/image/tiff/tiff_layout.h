/* Private: what a TIFF directory says of its samples, and turning stored pixels into delivered
 * ones.
 *
 * Delivered: 8-bit samples (1, 2 and 4 bit grey scaled to 8, palettes expanded), 16-bit ones in
 * host order (also palettes that need them), or float32 (of float32, float64, signed and 32-bit
 * integers, the nearest). All samples of a pixel but those that the file itself calls alpha, or the
 * bands that are chosen. Where alpha that colours are multiplied with (associated) is dropped, they
 * are divided by it: of n bits min(top, (colour * top + alpha / 2) / alpha) in integers, top 2^n -
 * 1, of floats colour / alpha; 0 where alpha is 0. Min-is-white is turned round. Everything else is
 * refused in words. */
#ifndef RFX_RFEXEC_IMAGE_TIFF_TIFF_LAYOUT_H
#define RFX_RFEXEC_IMAGE_TIFF_TIFF_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "rfexec/image/image_source.h"
#include "rfexec/image/tiff/tiff_library.h"

struct rfx_tiff_layout {
    int64_t h, w;
    int64_t tile_h, tile_w; /* of strips: rows per strip and w */
    bool tiled, separate;   /* separate: each sample in a plane of its own */
    int compression;
    int bits, stored;   /* per sample; samples per pixel in the file */
    int format;         /* as in the tag */
    int c, sample_bits; /* delivered */
    int n_alpha;        /* samples that the file calls alpha, none of which is delivered */
    int divisor;        /* of them the one that colours are multiplied with; -1: none */
    int colours;        /* samples that it was multiplied with: the first ones */
    int orientation;    /* as in the tag, 1 to 8 */
    bool is_colour;     /* red, green, blue are delivered, or a palette's */
    bool is_palette, is_ycbcr;
    bool white_first;             /* 0 is white, of the first sample */
    bool lsb_first;               /* bits of a byte in the other order (uncompressed data only) */
    uint16_t palette[256][3];     /* in sample_bits */
    struct rfx_image_bands bands; /* c of them: the sample of each channel, from 0 */
};

/* Reads the current directory. chosen: bands from 1, in the order in which they are delivered;
 * NULL: all but alpha, or all where there are as many as are wanted (0: any number). MALFORMED or
 * UNSUPPORTED, the text without the file's name. */
RFX_NODISCARD enum rfx_status rfx_tiff_layout_read(const struct rfx_tiff_library *lib, TIFF *tif,
                                                   const struct rfx_image_bands *chosen,
                                                   int64_t wanted, struct rfx_tiff_layout *out,
                                                   struct rfx_error *err);

/* The samples from 0 that are delivered, each once and rising: of separate planes those to read. */
struct rfx_image_bands rfx_tiff_layout_samples(const struct rfx_tiff_layout *layout);

/* Planes that a pixel's samples are spread over: 1, or `stored` when separate. */
int rfx_tiff_layout_planes(const struct rfx_tiff_layout *layout);

/* Bytes of `cols` pixels in one plane of the file, rounded up to whole bytes. */
int64_t rfx_tiff_layout_row_bytes(const struct rfx_tiff_layout *layout, int64_t cols);

/* Bytes of one delivered pixel. */
int64_t rfx_tiff_layout_pixel_bytes(const struct rfx_tiff_layout *layout);

/* Converts `cols` pixels of one plane. src: packed samples in host byte order, starting at a whole
 * byte: all samples of a pixel, or those of plane `plane` when separate. dst: [cols, c]; a plane
 * that is not delivered changes nothing. */
void rfx_tiff_layout_convert(const struct rfx_tiff_layout *layout, const unsigned char *src,
                             int plane, int64_t cols, void *dst);
#endif
