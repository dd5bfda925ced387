/* Parses and writes the header of numpy's .npy files (versions 1 to 3), from and to bytes. Source:
 * numpy.lib.format. Does no file access and allocates nothing. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_NPY_FORMAT_H
#define RFX_RFEXEC_IMAGE_DECODE_NPY_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"
#include "layers/core/type.h"
#include "layers/graph/tensor.h"

#define RFX_NPY_MAGIC "\x93NUMPY"
#define RFX_NPY_MAGIC_BYTES 6
#define RFX_NPY_MAX_HEADER_BYTES 4096 /* longer headers are refused */

struct rfx_npy_header {
    struct rfx_shape shape; /* rank 0 is a scalar */
    char descr[16];         /* the dtype, e.g. "<f4" */
    bool fortran_order;
    size_t data_offset; /* bytes before the first element */
};

/* Parses the first `count` bytes of a file (give the first RFX_NPY_MAX_HEADER_BYTES, or all there
 * are). MALFORMED: not npy, header cut off or not a header dictionary; UNSUPPORTED: version,
 * structured dtype, more than RFX_MAX_RANK dimensions, too long. The text does not name the file.
 */
RFX_NODISCARD enum rfx_status rfx_npy_parse(const unsigned char *bytes, size_t count,
                                            struct rfx_npy_header *out, struct rfx_error *err);

/* Writes a version 1 header for little-endian elements of the type in C order; *count receives its
 * length, a multiple of 64. INVALID_ARGUMENT: `capacity` is too small (512 is always enough). */
RFX_NODISCARD enum rfx_status rfx_npy_format(const struct rfx_shape *shape, enum rfx_type type,
                                             unsigned char *bytes, size_t capacity, size_t *count,
                                             struct rfx_error *err);
#endif
