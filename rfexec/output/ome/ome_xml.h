/* The OME-XML text that is the ImageDescription of an OME-TIFF's first directory.
 *
 * It describes one Image with one Pixels element. The planes are in the file's directories one
 * after the other: they are channels, because there is one Z and one T. Three channels of 8 bits
 * without names are one RGB plane. Sources: the OME schema 2016-06 and the OME-TIFF specification
 * (docs.openmicroscopy.org). Held against the schema in tests/oracle/ome_tiff.py. */
#ifndef RFX_RFEXEC_OUTPUT_OME_OME_XML_H
#define RFX_RFEXEC_OUTPUT_OME_OME_XML_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

struct rfx_ome_image {
    int64_t h, w, channels;
    int bits;           /* 8 and 16: unsigned samples, 32: float32, if not is_signed */
    bool is_signed;     /* samples of 8, 16 or 32 bits are integers with a sign */
    const char *path;   /* path of the file; its name is the name of the image */
    const char *names;  /* names of channels: valid UTF-8, each followed by a 0; NULL: none */
    double pixel_um[2]; /* width and height of a pixel in micrometres; 0: not known */
};

/* Returns whether all channels form one RGB plane. */
bool rfx_ome_is_colour(const struct rfx_ome_image *image);

/* Returns an upper bound of the text's bytes. */
size_t rfx_ome_xml_bytes(const struct rfx_ome_image *image);

/* Writes the text to a new block in *text, which the caller releases. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_ome_xml(struct rfx_memory *mem, const struct rfx_ome_image *image,
                                          char **text, struct rfx_error *err);
#endif
