/* Private: the types of samples of Zarr arrays, as format 3 ("uint16") and 2 ("<u2") name them.
 * Source: the Zarr specifications 2 and 3 (zarr-specs.readthedocs.io). */
#ifndef RFX_RFEXEC_IMAGE_DECODE_ARRAY_TYPE_H
#define RFX_RFEXEC_IMAGE_DECODE_ARRAY_TYPE_H

#include <stdbool.h>
#include <stddef.h>

struct rfx_zarr_type {
    const char *name; /* of format 3 */
    char kind;        /* of format 2: 'u', 'i' or 'f' */
    int bytes;
};

/* NULL: it is none of them. */
const struct rfx_zarr_type *rfx_zarr_type_named(const char *name);

/* Of format 2; *big: bytes of a sample are in big-endian order. NULL: it is none of them. */
const struct rfx_zarr_type *rfx_zarr_type_parse(const char *text, bool *big);

enum { RFX_ZARR_TYPE_CHARS = 8 };

/* The name of format 2 of a type in little-endian order. */
void rfx_zarr_type_format(const struct rfx_zarr_type *type, char text[RFX_ZARR_TYPE_CHARS]);

/* How samples are delivered: 8 and 16 bits without sign as they are, all others as floats: 8, 16 or
 * 32. */
int rfx_zarr_type_sample_bits(const struct rfx_zarr_type *type);

/* Converts `count` samples, `step` bytes apart, to `to`, where delivered ones lie `to_step` bytes
 * apart: floats are the nearest. big: as stored. */
void rfx_zarr_type_convert(const struct rfx_zarr_type *type, bool big, const unsigned char *from,
                           size_t step, size_t count, unsigned char *to, size_t to_step);
#endif
