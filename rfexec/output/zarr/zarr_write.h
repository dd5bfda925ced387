/* Writes Zarr arrays row by row: float32, 8 or 16 bits, chunks of one channel, uncompressed or
 * compressed by zstd. Built on rfexec/output/output_folder.h: the folder appears on commit or not
 * at all.
 *
 * A row of chunks is held in memory, in the layout of the files, until it is full. Parts of the
 * last chunks outside the map are 0, the fill value. */
#ifndef RFX_RFEXEC_OUTPUT_ZARR_ZARR_WRITE_H
#define RFX_RFEXEC_OUTPUT_ZARR_ZARR_WRITE_H

#include "layers/core/memory.h"
#include "rfexec/output/zarr/zarr_array.h"

struct rfx_zarr_writer;

/* Opens an array. INVALID_ARGUMENT: other bits or formats, chunks with a number of rows outside 1
 * ... 4096 or more than 2^26 samples, or no pixels; IO: no folder can be made, something has that
 * name already, or there is no libzstd. */
RFX_NODISCARD enum rfx_status rfx_zarr_write_open(struct rfx_memory *mem, const char *path,
                                                  const struct rfx_zarr_array *array,
                                                  struct rfx_zarr_writer **out,
                                                  struct rfx_error *err);

/* Writes the next row, samples [w, channels]: uint8, uint16 of this machine, or float32.
 * INVALID_ARGUMENT: all rows are written. */
RFX_NODISCARD enum rfx_status rfx_zarr_write_row(struct rfx_zarr_writer *writer,
                                                 const void *samples, struct rfx_error *err);

/* Completes the folder. INVALID_ARGUMENT: rows are missing. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_zarr_write_commit(struct rfx_zarr_writer *writer,
                                                    struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_zarr_write_free(struct rfx_zarr_writer *writer);

/* Returns an upper bound of the memory of the writer, including libzstd's. */
size_t rfx_zarr_write_bytes(const struct rfx_zarr_array *array);
#endif
