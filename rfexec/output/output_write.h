/* Output files that appear whole or not at all: written under a temporary name beside the final
 * one ("NAME.tmp-XXXXXX") and renamed on commit; .npy tensors on top of it.
 *
 * Invariants: 1. until commit returns RFX_OK the final name is untouched; 2. freeing without commit
 * removes the temporary; 3. every write, the sync, the close and the rename are checked, a failure
 * is IO with the name, the system's words and the bytes written; 4. memory is allocated in open
 * only. A final name that exists and is no regular file (/dev/null, a pipe) is written in place. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_WRITE_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_WRITE_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

struct rfx_output_file;

RFX_NODISCARD enum rfx_status rfx_output_file_open(struct rfx_memory *mem, const char *path,
                                                   struct rfx_output_file **out,
                                                   struct rfx_error *err);

/* Appends bytes, through a buffer. */
RFX_NODISCARD enum rfx_status rfx_output_file_append(struct rfx_output_file *file, const void *data,
                                                     size_t bytes, struct rfx_error *err);

/* Writes bytes at an offset, after the buffer; the place of the next append does not move. IO for a
 * file that cannot seek. */
RFX_NODISCARD enum rfx_status rfx_output_file_put(struct rfx_output_file *file, const void *data,
                                                  size_t bytes, uint64_t offset,
                                                  struct rfx_error *err);

/* Takes `bytes` of the disk for the file at once, where the file system can, so that a full disk is
 * found before the work and not after it: IO with the number of bytes. Changes nothing else. */
RFX_NODISCARD enum rfx_status rfx_output_file_reserve(struct rfx_output_file *file, uint64_t bytes,
                                                      struct rfx_error *err);

/* Syncs, closes and renames. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_output_file_commit(struct rfx_output_file *file,
                                                     struct rfx_error *err);

/* Frees; without a successful commit before, removes the temporary. NULL is fine. */
void rfx_output_file_free(struct rfx_output_file *file);

/* A float32 .npy file in C order. */
struct rfx_npy_writer;

/* Opens the temporary, takes the disk for all of it and writes the header. INVALID_ARGUMENT: a
 * shape whose size overflows. */
RFX_NODISCARD enum rfx_status rfx_npy_write_open(struct rfx_memory *mem, const char *path,
                                                 const struct rfx_shape *shape,
                                                 struct rfx_npy_writer **out,
                                                 struct rfx_error *err);

/* Appends `count` elements in the array's order. INVALID_ARGUMENT: more than the shape holds. */
RFX_NODISCARD enum rfx_status rfx_npy_write_append(struct rfx_npy_writer *writer,
                                                   const float *values, size_t count,
                                                   struct rfx_error *err);

/* For shapes (C, H, W) and (1, C, H, W): writes `rect` of a map of C channels [y, x, c] to its
 * places in the file, every NaN as the same one. Any order, each element once; not together with
 * append. Costs one write per row and channel; rows of the full width share one as far as 64 KiB
 * hold them. INVALID_ARGUMENT: outside of the array or the view. */
RFX_NODISCARD enum rfx_status rfx_npy_write_rect(struct rfx_npy_writer *writer,
                                                 struct rfx_rect rect, const struct rfx_view *view,
                                                 struct rfx_error *err);

/* Completes the file. INVALID_ARGUMENT: elements are missing. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_npy_write_commit(struct rfx_npy_writer *writer,
                                                   struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_npy_write_free(struct rfx_npy_writer *writer);
#endif
