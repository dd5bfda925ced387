/* Private: the sample layout of a TIFF directory, and the conversion of stored pixels to delivered
 * ones.
 *
 * Delivered are 8-bit samples (1, 2 and 4 bit grey scaled to 8, palettes expanded), 16-bit samples
 * in host order (also palettes that need them), or float32 (for float32, float64, signed and 32-bit
 * integers; the nearest value). A pixel has all samples except those that the file calls alpha, or
 * the chosen bands. If a dropped alpha is associated (colours are multiplied by it), the colours
 * are divided by it: n-bit samples become min(top, (colour * top + alpha / 2) / alpha) in integers
 * with top 2^n - 1, floats become colour / alpha, and both are 0 where alpha is 0. Min-is-white is
 * inverted. Everything else is refused with an explanation. */
#ifndef RFX_RFEXEC_IMAGE_TIFF_TIFF_LAYOUT_H
#define RFX_RFEXEC_IMAGE_TIFF_TIFF_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "rfexec/image/image_source.h"
#include "rfexec/image/tiff/tiff_library.h"

struct rfx_tiff_layout {
    int64_t h, w;
    int64_t tile_h, tile_w; /* size of a tile; for strips: rows per strip, and w */
    bool tiled, separate;   /* separate: each sample has a plane of its own */
    int compression;
    int bits, stored;   /* bits per stored sample; samples per pixel in the file */
    int format;         /* sample format as in the tag */
    int c, sample_bits; /* channels and bits per sample, as delivered */
    int n_alpha;        /* number of samples that the file calls alpha; none of them is delivered */
    int divisor;        /* the alpha sample by which colours are multiplied; -1: none */
    int colours;        /* number of samples multiplied by it: the first ones */
    int orientation;    /* orientation as in the tag, 1 to 8 */
    bool is_colour;     /* red, green and blue are delivered, also from a palette */
    bool is_palette, is_ycbcr;
    bool white_first;             /* in the first sample, 0 is white */
    bool lsb_first;               /* the bits of a byte are reversed (uncompressed data only) */
    uint16_t palette[256][3];     /* colours with sample_bits bits */
    struct rfx_image_bands bands; /* for each of the c channels its sample, from 0 */
};

/* Reads the current directory. chosen: bands from 1, in the order of delivery. NULL: all samples if
 * the file has exactly `wanted` of them, else all but alpha. wanted 0: the network takes any
 * number. MALFORMED or UNSUPPORTED; the text does not have the file's name. */
RFX_NODISCARD enum rfx_status rfx_tiff_layout_read(const struct rfx_tiff_library *lib, TIFF *tif,
                                                   const struct rfx_image_bands *chosen,
                                                   int64_t wanted, struct rfx_tiff_layout *out,
                                                   struct rfx_error *err);

/* Returns the samples that are delivered, from 0, each once and ascending. For separate planes
 * these are the planes to read. */
struct rfx_image_bands rfx_tiff_layout_samples(const struct rfx_tiff_layout *layout);

/* Returns the number of planes that hold a pixel's samples: 1, or `stored` if separate. */
int rfx_tiff_layout_planes(const struct rfx_tiff_layout *layout);

/* Returns the bytes of `cols` pixels in one plane of the file, rounded up to whole bytes. */
int64_t rfx_tiff_layout_row_bytes(const struct rfx_tiff_layout *layout, int64_t cols);

/* Returns the bytes of one delivered pixel. */
int64_t rfx_tiff_layout_pixel_bytes(const struct rfx_tiff_layout *layout);

/* Converts `cols` pixels of one plane. src: packed samples in host byte order, from a whole byte
 * on: all samples of a pixel, or if separate those of plane `plane`. dst: [cols, c]. A plane that
 * is not delivered changes nothing in dst. */
void rfx_tiff_layout_convert(const struct rfx_tiff_layout *layout, const unsigned char *src,
                             int plane, int64_t cols, void *dst);
#endif
