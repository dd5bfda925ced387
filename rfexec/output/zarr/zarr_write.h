/* Zarr arrays written row by row: float32, 8 or 16 bit, chunks of one channel, uncompressed or by
 * zstd. Built on rfexec/output/output_folder.h: the folder appears on commit or not at all.
 *
 * A row of chunks is held until it is full, as they lie in the files: what the last ones have
 * beyond the map is 0, the fill value. */
#ifndef RFX_RFEXEC_OUTPUT_ZARR_ZARR_WRITE_H
#define RFX_RFEXEC_OUTPUT_ZARR_ZARR_WRITE_H

#include "layers/core/memory.h"
#include "rfexec/output/zarr/zarr_array.h"

struct rfx_zarr_writer;

/* Opens an array. INVALID_ARGUMENT: other bits or formats, chunks of other than 1 ... 4096 rows or
 * of more than 2^26 samples, no pixels; IO: no folder can be made, there is something of that name,
 * or no libzstd. */
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

/* At most so many bytes the writer, and libzstd for it, hold. */
size_t rfx_zarr_write_bytes(const struct rfx_zarr_array *array);
#endif
