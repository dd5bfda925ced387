/* The OME-XML that the first directory of an OME-TIFF has as its ImageDescription.
 *
 * One Image of one Pixels element, its planes in the file's directories one after the other:
 * channels, as there is one Z and one T. Three channels of 8 bits without names are one plane, RGB.
 * Sources: the OME schema 2016-06 and the OME-TIFF specification (docs.openmicroscopy.org). Held
 * against the schema in tests/oracle/ome_tiff.py. */
#ifndef RFX_RFEXEC_OUTPUT_OME_OME_XML_H
#define RFX_RFEXEC_OUTPUT_OME_OME_XML_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

struct rfx_ome_image {
    int64_t h, w, channels;
    int bits;           /* 8 and 16: unsigned samples, 32: float32, unless */
    bool is_signed;     /* samples of 8, 16 or 32 bits are integers with a sign */
    const char *path;   /* of the file, by which the image is called */
    const char *names;  /* of channels: valid UTF-8, a 0 behind each; NULL: none */
    double pixel_um[2]; /* width and height of a pixel in micrometres; 0: not known */
};

/* Whether all channels are one plane of colours. */
bool rfx_ome_is_colour(const struct rfx_ome_image *image);

/* At most so many bytes of text. */
size_t rfx_ome_xml_bytes(const struct rfx_ome_image *image);

/* Writes it. The text belongs to the caller, who releases it. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_ome_xml(struct rfx_memory *mem, const struct rfx_ome_image *image,
                                          char **text, struct rfx_error *err);
#endif
