/* Writes .npy files: tensors in C order, complete or not at all (output_file.h). Elements of a view
 * are converted to the file's type (rfx_type_gather). */
#ifndef RFX_RFEXEC_OUTPUT_NPY_WRITE_H
#define RFX_RFEXEC_OUTPUT_NPY_WRITE_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/core/type.h"
#include "layers/graph/graph.h"

struct rfx_npy_writer;

/* A file that belongs to the caller. Several writers may each write some of its elements. */
struct rfx_npy_target {
    enum rfx_status (*put)(void *user, const void *data, size_t bytes, uint64_t offset,
                           struct rfx_error *err);
    void *user;
    bool header; /* the writer also writes the header, when it is opened */
};

/* Content of a file. */
struct rfx_npy_array {
    struct rfx_shape shape;
    enum rfx_type type;
    int64_t images; /* number of arrays of this shape, one after the other; 0: one */
};

/* Returns the memory that a writer of this type takes in addition to that of a float32 writer. */
size_t rfx_npy_write_typed_bytes(enum rfx_type type);

/* Sets *out to the shape of `images` tensors as one array: a leading 1 is replaced by their number;
 * without a leading 1 the number becomes a new first dimension. INVALID_ARGUMENT: the rank is too
 * large. */
RFX_NODISCARD enum rfx_status rfx_npy_batch_shape(const struct rfx_shape *shape, int64_t images,
                                                  struct rfx_shape *out, struct rfx_error *err);

/* Opens the temporary file, reserves its disk space and writes the header. Writes go to the first
 * array until rfx_npy_write_next. INVALID_ARGUMENT: the size of the shape overflows. IO. */
RFX_NODISCARD enum rfx_status rfx_npy_write_open(struct rfx_memory *mem, const char *path,
                                                 const struct rfx_npy_array *array,
                                                 struct rfx_npy_writer **out,
                                                 struct rfx_error *err);

/* Goes to the next array. INVALID_ARGUMENT: elements of the present array are missing. */
RFX_NODISCARD enum rfx_status rfx_npy_write_next(struct rfx_npy_writer *writer,
                                                 struct rfx_error *err);

/* Returns the size of the whole file of one array; 0: there can be no file of this shape. */
uint64_t rfx_npy_write_bytes(const struct rfx_npy_array *array);

/* Makes a writer that writes into the target instead of a file of its own. `name` is used in
 * messages. There is nothing to commit, and elements may be missing because other writers write
 * them. */
RFX_NODISCARD enum rfx_status rfx_npy_write_onto(struct rfx_memory *mem, const char *name,
                                                 const struct rfx_npy_array *array,
                                                 const struct rfx_npy_target *target,
                                                 struct rfx_npy_writer **out,
                                                 struct rfx_error *err);

/* For shapes (C, H, W) and (1, C, H, W): writes `rect` of a map of C channels [y, x, c] to its
 * places in the file, every NaN with the same bits. Rectangles may come in any order; each element
 * must come once. Cost: one write per row and channel; rows of the full width share a write of up
 * to 64 KiB. INVALID_ARGUMENT: `rect` is outside the array or the view. */
RFX_NODISCARD enum rfx_status rfx_npy_write_rect(struct rfx_npy_writer *writer,
                                                 struct rfx_rect rect, const struct rfx_view *view,
                                                 struct rfx_error *err);

/* Like rfx_npy_write_rect, for a map whose elements lie in another order, or which is one of
 * several maps joined to the array. Element (y, x, channel) goes where end->at says. Its channels
 * or its columns must be contiguous in the array. */
RFX_NODISCARD enum rfx_status rfx_npy_write_end(struct rfx_npy_writer *writer,
                                                const struct rfx_end *end, struct rfx_rect rect,
                                                const struct rfx_view *view, struct rfx_error *err);

/* Completes the file. INVALID_ARGUMENT: elements are missing. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_npy_write_commit(struct rfx_npy_writer *writer,
                                                   struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_npy_write_free(struct rfx_npy_writer *writer);
#endif
