/* What one pass over a picture takes that can only be decoded row by row from the top: plans in
 * which several stages or column strips begin at the image decode it as often. Pictures that are
 * read at any place cost no more for being read again, and count 0.
 *
 * Picoseconds of one thread for a sample of the file, measured by
 * `tools/scripts/measure_decoding.py build/rfexec` on an AMD EPYC (family 25, model 1), libpng
 * 1.6.39 with zlib 1.2.13, libjpeg-turbo 2.1.5, libtiff 4.5.0. They are the same on every machine,
 * as plans are. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_DECODING_H
#define RFX_RFEXEC_IMAGE_DECODE_DECODING_H

#include <stdint.h>

enum {
    RFX_DECODE_PNG = 4800,
    RFX_DECODE_JPEG = 1200,
    RFX_DECODE_DEFLATE = 5000, /* of a TIFF; of codecs that were not measured too */
    RFX_DECODE_LZW = 4000,
    RFX_DECODE_PACKBITS = 200
};

/* Of rows of w pixels of c samples; sides are at most RFX_IMAGE_MAX_SIDE. */
static inline double rfx_decode_picoseconds(int of_sample, int64_t h, int64_t w, int64_t c) {
    return (double)of_sample * (double)h * (double)w * (double)c;
}
#endif
