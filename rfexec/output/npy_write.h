/* Writes .npy files: tensors in C order, whole or not at all (output_file.h). Elements of
 * a view become elements of the file's type (rfx_type_gather). */
#ifndef RFX_RFEXEC_OUTPUT_NPY_WRITE_H
#define RFX_RFEXEC_OUTPUT_NPY_WRITE_H

#include <stdbool.h>

#include "layers/core/memory.h"
#include "layers/core/type.h"
#include "layers/graph/graph.h"

struct rfx_npy_writer;

/* A file that is somebody else's, of which several writers may each write some. */
struct rfx_npy_target {
    enum rfx_status (*put)(void *user, const void *data, size_t bytes, uint64_t offset,
                           struct rfx_error *err);
    void *user;
    bool header; /* is written too, at once */
};

/* What a file holds. */
struct rfx_npy_array {
    struct rfx_shape shape;
    enum rfx_type type;
    int64_t images; /* arrays of the shape, one after the other; 0: one */
};

/* At most so many bytes does a writer hold beside those of a float32 array. */
size_t rfx_npy_write_typed_bytes(enum rfx_type type);

/* Opens the temporary of a float32 array, takes the disk for all of it and writes the header.
 * INVALID_ARGUMENT: a shape whose size overflows. */
RFX_NODISCARD enum rfx_status rfx_npy_write_open(struct rfx_memory *mem, const char *path,
                                                 const struct rfx_shape *shape,
                                                 struct rfx_npy_writer **out,
                                                 struct rfx_error *err);

/* The shape of `images` tensors of a shape as one array: a leading 1 becomes their number, else it
 * stands in front. INVALID_ARGUMENT: a rank that is too large. */
RFX_NODISCARD enum rfx_status rfx_npy_batch_shape(const struct rfx_shape *shape, int64_t images,
                                                  struct rfx_shape *out, struct rfx_error *err);

/* As rfx_npy_write_open, of elements of any type and of several arrays; all that is written is of
 * the first one until rfx_npy_write_next. */
RFX_NODISCARD enum rfx_status rfx_npy_write_open_array(struct rfx_memory *mem, const char *path,
                                                       const struct rfx_npy_array *array,
                                                       struct rfx_npy_writer **out,
                                                       struct rfx_error *err);

/* What is written from now on is of the next array. INVALID_ARGUMENT: elements are missing. */
RFX_NODISCARD enum rfx_status rfx_npy_write_next(struct rfx_npy_writer *writer,
                                                 struct rfx_error *err);

/* Bytes of the whole file of one array; 0: there is none of this shape. */
uint64_t rfx_npy_write_bytes(const struct rfx_npy_array *array);

/* Writes into the target instead. `name`: for messages. There is nothing to commit, and elements
 * may be missing: the others'. */
RFX_NODISCARD enum rfx_status rfx_npy_write_onto(struct rfx_memory *mem, const char *name,
                                                 const struct rfx_npy_array *array,
                                                 const struct rfx_npy_target *target,
                                                 struct rfx_npy_writer **out,
                                                 struct rfx_error *err);

/* For shapes (C, H, W) and (1, C, H, W): writes `rect` of a map of C channels [y, x, c] to its
 * places in the file, every NaN as the same one. Any order, each element once. Costs one write per
 * row and channel; rows of the full width share one as far as 64 KiB hold them. INVALID_ARGUMENT:
 * outside of the array or the view. */
RFX_NODISCARD enum rfx_status rfx_npy_write_rect(struct rfx_npy_writer *writer,
                                                 struct rfx_rect rect, const struct rfx_view *view,
                                                 struct rfx_error *err);

/* The same for a map whose elements lie otherwise, or of which the array is joined: element (y, x,
 * channel) goes where `at` says. Its channels or its columns must follow each other in the array.
 */
RFX_NODISCARD enum rfx_status rfx_npy_write_end(struct rfx_npy_writer *writer,
                                                const struct rfx_end *end, struct rfx_rect rect,
                                                const struct rfx_view *view, struct rfx_error *err);

/* Completes the file. INVALID_ARGUMENT: elements are missing. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_npy_write_commit(struct rfx_npy_writer *writer,
                                                   struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_npy_write_free(struct rfx_npy_writer *writer);
#endif
