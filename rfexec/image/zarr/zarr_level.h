/* Private: the array of a Zarr folder that is read: the folder itself, or a level of the picture
 * that its OME-Zarr metadata describe ("multiscales", 0.1 to 0.5, the first of them). */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZARR_LEVEL_H
#define RFX_RFEXEC_IMAGE_ZARR_ZARR_LEVEL_H

#include "layers/core/memory.h"
#include "rfexec/image/zarr/zarr_layout.h"

struct rfx_zarr_level {
    int folder; /* of the array, the caller's to close */
    int levels; /* that there are; 1 of an array by itself */
    struct rfx_zarr_layout layout;
    size_t held; /* bytes that reading the metadata takes, at most */
};

/* Opens level `number` of the folder `name`. UNSUPPORTED: there is no such level, or no picture in
 * the group. Texts begin with the name. On failure out->levels is still set, 0: not known. */
RFX_NODISCARD enum rfx_status rfx_zarr_level_open(struct rfx_memory *mem, const char *name,
                                                  int64_t number, struct rfx_zarr_level *out,
                                                  struct rfx_error *err);
#endif
