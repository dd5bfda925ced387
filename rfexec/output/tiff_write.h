/* TIFF files written row by row: float32, 8 or 16 bit, any number of channels side by side.
 *
 * Uncompressed strips of about 256 KiB; BigTIFF when the file could pass 4 GiB. Built on
 * rfexec/output/output_file.h: the file appears on commit or not at all. libtiff takes its memory
 * from the system: one strip (or row, when that is more) and 32 bytes a strip. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_WRITE_H
#define RFX_RFEXEC_OUTPUT_TIFF_WRITE_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

#define RFX_TIFF_MAX_CHANNELS 65535

struct rfx_tiff_writer;

/* Opens a picture of h rows and w columns; bits 8 and 16 are unsigned samples, 32 is float. Three
 * channels are marked RGB, others as grey with unspecified further channels. Takes the disk for all
 * of it. INVALID_ARGUMENT: other bits, a side outside of 1 ... 2^31 - 1, channels outside of
 * 1 ... 65,535; IO: the file cannot be made. */
RFX_NODISCARD enum rfx_status rfx_tiff_write_open(struct rfx_memory *mem, const char *path,
                                                  int64_t h, int64_t w, int64_t channels, int bits,
                                                  struct rfx_tiff_writer **out,
                                                  struct rfx_error *err);

/* Writes the next row, samples [w, channels]: uint8, uint16 of this machine, or float.
 * INVALID_ARGUMENT: all rows are written. */
RFX_NODISCARD enum rfx_status rfx_tiff_write_row(struct rfx_tiff_writer *writer,
                                                 const void *samples, struct rfx_error *err);

/* Completes the file. INVALID_ARGUMENT: rows are missing. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_tiff_write_commit(struct rfx_tiff_writer *writer,
                                                    struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_tiff_write_free(struct rfx_tiff_writer *writer);

/* At most so many bytes libtiff takes for a file of h rows of `row_bytes`. */
size_t rfx_tiff_write_bytes(int64_t h, size_t row_bytes);

/* Whether a file of h rows of `row_bytes` becomes BigTIFF. */
bool rfx_tiff_write_is_big(int64_t h, size_t row_bytes);
#endif
