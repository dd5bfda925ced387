/* TIFF and OME-TIFF files of a map, as formats ask for them. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_TIFF_OPEN_H
#define RFX_RFEXEC_OUTPUT_TIFF_TIFF_OPEN_H

#include "rfexec/output/output_format.h"

/* Opens the writer of a file that holds the tensor. Statuses of rfx_tiff_write_open. */
RFX_NODISCARD enum rfx_status rfx_tiff_open(struct rfx_memory *mem, const char *path,
                                            const struct rfx_output_format *format,
                                            const struct rfx_tensor *tensor,
                                            struct rfx_tiff_writer **out, struct rfx_error *err);

/* At most so many bytes it and what it is opened with take. */
size_t rfx_tiff_bytes(const struct rfx_output_format *format, const struct rfx_tensor *tensor);
#endif
