/* Private: opens files of a Zarr folder by their paths in it.
 *
 * Nothing outside the folder is read: symbolic links inside the folder are refused, and so are
 * paths with "..". The path to the folder itself may contain links. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZARR_FOLDER_H
#define RFX_RFEXEC_IMAGE_ZARR_ZARR_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

/* Opens the folder `name`. IO. */
RFX_NODISCARD enum rfx_status rfx_zarr_folder_open(const char *name, int *folder,
                                                   struct rfx_error *err);

/* Opens a folder in the folder. MALFORMED: it does not exist, or is no folder. Error texts of these
 * functions name `path` only. */
RFX_NODISCARD enum rfx_status rfx_zarr_folder_enter(int folder, const char *path, int *inner,
                                                    struct rfx_error *err);

/* Opens a regular file; *fd -1: it does not exist. MALFORMED: it is no file, or a link. */
RFX_NODISCARD enum rfx_status rfx_zarr_file_open(int folder, const char *path, int *fd,
                                                 int64_t *bytes, struct rfx_error *err);

/* Reads the first `bytes` bytes of the file. MALFORMED: it has fewer. */
RFX_NODISCARD enum rfx_status rfx_zarr_file_read(int fd, const char *path, void *to, size_t bytes,
                                                 struct rfx_error *err);

/* Reads the JSON object of a metadata file, which the caller releases with json_decref. *out NULL:
 * the file does not exist. Adds the memory for reading it to *held. */
RFX_NODISCARD enum rfx_status rfx_zarr_file_json(struct rfx_memory *mem, int folder,
                                                 const char *path, json_t **out, size_t *held,
                                                 struct rfx_error *err);
#endif
