/* Private: a walk over the markers of a JPEG file, before stb_image sees it.
 *
 * stb_image 2.27 writes past its tables when a Huffman table claims more than 256 codes, so such a
 * file must never reach it. The walk follows the markers exactly as stb_image does. */
#ifndef RFX_RFEXEC_IMAGE_JPEG_H
#define RFX_RFEXEC_IMAGE_JPEG_H

#include <stdbool.h>

#include "rfexec/image_file.h"

struct rfx_jpeg_walk {
    int components;   /* of the frame header; 4 when there is none */
    bool progressive; /* true when there is no frame header */
};

/* Rewinds and walks to the frame header, or with to_end to the end marker. Returns false when a
 * Huffman table is impossible; every other fault is left for the decoder to name. */
bool rfx_jpeg_walk(struct rfx_image_file *file, bool to_end, struct rfx_jpeg_walk *out);
#endif
