/* The cost of one pass over a picture that can only be decoded row by row from the top. In plans in
 * which several stages or column strips begin at the image, the picture is decoded that many times.
 * Pictures that can be read at any place cost nothing extra when read again, and count 0.
 *
 * Times are in picoseconds of one thread for a sample of the file, measured by
 * `tools/scripts/measure_decoding.py build/rfexec` on an AMD EPYC (family 25, model 1), libpng
 * 1.6.39 with zlib 1.2.13, libjpeg-turbo 2.1.5, libtiff 4.5.0. They are constants on every machine,
 * so that plans are the same everywhere. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_DECODING_H
#define RFX_RFEXEC_IMAGE_DECODE_DECODING_H

#include <stdint.h>

enum {
    RFX_DECODE_PNG = 4800,
    RFX_DECODE_JPEG = 1200,
    RFX_DECODE_DEFLATE = 5000, /* deflate in a TIFF; also used for codecs that were not measured */
    RFX_DECODE_LZW = 4000,
    RFX_DECODE_PACKBITS = 200
};

/* Returns the time for decoding h rows of w pixels of c samples; sides are at most
 * RFX_IMAGE_MAX_SIDE. */
static inline double rfx_decode_picoseconds(int of_sample, int64_t h, int64_t w, int64_t c) {
    return (double)of_sample * (double)h * (double)w * (double)c;
}
#endif
