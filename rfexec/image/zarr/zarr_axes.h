/* Private: which axes of a Zarr array are rows, columns and channels.
 *
 * By their names, where all of them have some: one of rows, one of columns, at most one of
 * channels, any other of length 1. Without names by their number: y, x; c, y, x, or y, x, c where
 * the last has 1 to 4 and the first more; 1, c, y, x; and t, c, z, y, x as OME-Zarr's first
 * versions, t and z of length 1. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZARR_AXES_H
#define RFX_RFEXEC_IMAGE_ZARR_ZARR_AXES_H

#include <stdint.h>

#include "layers/core/status.h"

enum { RFX_ZARR_MAX_RANK = 8 };

struct rfx_zarr_axes {
    int y, x, c; /* c -1: none, one channel */
};

/* names: NULL, or some of them NULL: none. UNSUPPORTED: in words. */
RFX_NODISCARD enum rfx_status rfx_zarr_axes_settle(int rank, const int64_t *shape,
                                                   const char *const *names,
                                                   struct rfx_zarr_axes *out,
                                                   struct rfx_error *err);
#endif
