/* Private: what the boxes and the SIZ marker of a JPEG 2000 file say, read without a library, so
 * that what decoding takes is known before it begins. Source: ISO/IEC 15444-1, annexes A and I. */
#ifndef RFX_RFEXEC_IMAGE_JP2_JP2_HEADER_H
#define RFX_RFEXEC_IMAGE_JP2_JP2_HEADER_H

#include "rfexec/image/image_file.h"

enum { RFX_JP2_MOST_TILES = 65535, RFX_JP2_MOST_BANDS = 512 };

struct rfx_jp2_header {
    bool boxes;                               /* a JP2 file; else a codestream alone */
    int64_t x0, y0, x1, y1;                   /* of the picture on the reference grid */
    int64_t tile_x0, tile_y0, tile_w, tile_h; /* of the first tile, and of each */
    int64_t n_across, n_down;                 /* tiles */
    int bands, bits;                          /* bits: of a sample */
    bool is_signed;
    int alpha;          /* the band that is; -1: none */
    bool premultiplied; /* colours are multiplied with it */
    int colours;        /* as the colr box counts them; 0: not known */
};

/* UNSUPPORTED: palettes, YCC and CMYK, bands of different sizes or types; MALFORMED; the text
 * without the file's name. */
RFX_NODISCARD enum rfx_status rfx_jp2_header_read(struct rfx_image_file *file,
                                                  struct rfx_jp2_header *out,
                                                  struct rfx_error *err);
#endif
