/* Private: the sample types of Zarr arrays, with their names in format 3 ("uint16") and format 2
 * ("<u2"). Source: the Zarr specifications 2 and 3 (zarr-specs.readthedocs.io). */
#ifndef RFX_RFEXEC_IMAGE_DECODE_ARRAY_TYPE_H
#define RFX_RFEXEC_IMAGE_DECODE_ARRAY_TYPE_H

#include <stdbool.h>
#include <stddef.h>

struct rfx_zarr_type {
    const char *name; /* name in format 3 */
    char kind;        /* letter in format 2: 'u', 'i' or 'f' */
    int bytes;
};

/* Returns the type of this name in format 3, or NULL for an unknown name. */
const struct rfx_zarr_type *rfx_zarr_type_named(const char *name);

/* Returns the type of this name in format 2, or NULL for an unknown name. *big: samples are
 * big-endian. */
const struct rfx_zarr_type *rfx_zarr_type_parse(const char *text, bool *big);

enum { RFX_ZARR_TYPE_CHARS = 8 };

/* Writes the name of a little-endian type in format 2. */
void rfx_zarr_type_format(const struct rfx_zarr_type *type, char text[RFX_ZARR_TYPE_CHARS]);

/* Returns the bits of delivered samples: 8 or 16 for unsigned samples of 8 and 16 bits, which are
 * delivered as they are; 32 for all others, which are delivered as floats. */
int rfx_zarr_type_sample_bits(const struct rfx_zarr_type *type);

/* Converts `count` samples, `step` bytes apart, to delivered samples at `to`, `to_step` bytes
 * apart. Floats are the nearest to the stored value. big: the stored samples are big-endian. */
void rfx_zarr_type_convert(const struct rfx_zarr_type *type, bool big, const unsigned char *from,
                           size_t step, size_t count, unsigned char *to, size_t to_step);
#endif
