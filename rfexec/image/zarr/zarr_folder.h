/* Private: files of a Zarr folder by their paths in it.
 *
 * Nothing outside the folder is read: symbolic links below it are refused, and so are paths with
 * "..". The folder itself may be named through links. */
#ifndef RFX_RFEXEC_IMAGE_ZARR_ZARR_FOLDER_H
#define RFX_RFEXEC_IMAGE_ZARR_ZARR_FOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

/* Opens the folder. IO. */
RFX_NODISCARD enum rfx_status rfx_zarr_folder_open(const char *name, int *folder,
                                                   struct rfx_error *err);

/* Opens a folder in it. MALFORMED: there is none, or not as a folder; texts of these functions name
 * `path` alone. */
RFX_NODISCARD enum rfx_status rfx_zarr_folder_enter(int folder, const char *path, int *inner,
                                                    struct rfx_error *err);

/* Opens a regular file; *fd -1: there is none. MALFORMED: it is no file, or a link. */
RFX_NODISCARD enum rfx_status rfx_zarr_file_open(int folder, const char *path, int *fd,
                                                 int64_t *bytes, struct rfx_error *err);

/* Reads `bytes` from the file's start. MALFORMED: it has fewer. */
RFX_NODISCARD enum rfx_status rfx_zarr_file_read(int fd, const char *path, void *to, size_t bytes,
                                                 struct rfx_error *err);

/* The object that a file of metadata has, the caller's to json_decref; NULL: there is no such file.
 * *held grows by what reading it takes. */
RFX_NODISCARD enum rfx_status rfx_zarr_file_json(struct rfx_memory *mem, int folder,
                                                 const char *path, json_t **out, size_t *held,
                                                 struct rfx_error *err);
#endif
