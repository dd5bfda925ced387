/* Writes a map to a file or folder during a run, from the run's rectangles. output_format.h lists
 * the kinds of files.
 *
 * .npy takes rectangles in any order. The other kinds are written from top to bottom. If the first
 * rectangle has the full width, all must be whole rows in order. If it has not (column strips,
 * tiles), or if the range of values is not yet known, the map is stored in a temporary file without
 * a name (output_spool.h) and written at the end. Invariants: 1. the final name is untouched until
 * commit returns RFX_OK (output_file.h); 2. the file's bytes do not depend on how the map was cut;
 * 3. memory is allocated by open and by the first write only, at most rfx_output_stream_bytes; 4.
 * every NaN is written with the same bits. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_STREAM_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_STREAM_H

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/output/output_format.h"

/* Called while stored rows are copied at the end, with `done` of `total` rows. A result other than
 * 0 stops: CANCELLED. */
typedef int rfx_output_progress_fn(void *user, int64_t done, int64_t total);

struct rfx_output_stream;

/* Returns an upper bound of the memory for writing the tensor, including the encoder's. */
size_t rfx_output_stream_bytes(const struct rfx_output_format *format,
                               const struct rfx_tensor *tensor);

/* Returns the description of an .npy file that holds the tensor. */
struct rfx_npy_array rfx_output_array(const struct rfx_output_format *format,
                                      const struct rfx_tensor *tensor);

/* Opens the file under a temporary name. Fails with the statuses of rfx_output_format_check; IO: it
 * cannot be made, or the disk is full. */
RFX_NODISCARD enum rfx_status rfx_output_stream_open(struct rfx_memory *mem, const char *path,
                                                     const struct rfx_output_format *format,
                                                     const struct rfx_tensor *tensor,
                                                     struct rfx_output_stream **out,
                                                     struct rfx_error *err);

/* Call it before the first write, with a view that holds the whole map. Finds the range of the
 * values if the file needs one and none was given. */
void rfx_output_stream_look(struct rfx_output_stream *stream, struct rfx_rect rect,
                            const struct rfx_view *view);

/* Call it before the first write. Rectangles may then come in any order, whatever the first one is.
 * IO: no disk space for storing them beside the file. */
RFX_NODISCARD enum rfx_status rfx_output_stream_any_order(struct rfx_output_stream *stream,
                                                          struct rfx_error *err);

/* Writes `rect` of the map, which lies in the view (NHWC). INVALID_ARGUMENT: `rect` is outside the
 * map or the view, more elements were written than the map has, or rows are out of order. */
RFX_NODISCARD enum rfx_status rfx_output_stream_write(struct rfx_output_stream *stream,
                                                      struct rfx_rect rect,
                                                      const struct rfx_view *view,
                                                      struct rfx_error *err);

/* Like rfx_output_stream_write, for an output's map. For a map that is one of several joined to a
 * tensor, only .npy is possible. A file that needs prototypes (rfx_output_format) takes their
 * pieces too. */
RFX_NODISCARD enum rfx_status rfx_output_stream_write_end(struct rfx_output_stream *stream,
                                                          const struct rfx_end *end,
                                                          struct rfx_rect rect,
                                                          const struct rfx_view *view,
                                                          struct rfx_error *err);

/* Goes to the next image of a batch. INVALID_ARGUMENT: elements of the present image are missing.
 */
RFX_NODISCARD enum rfx_status rfx_output_stream_next(struct rfx_output_stream *stream,
                                                     struct rfx_error *err);

/* Completes the file and gives it its name. progress may be NULL. INVALID_ARGUMENT: elements are
 * missing; CANCELLED: progress returned a result other than 0. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_output_stream_commit(struct rfx_output_stream *stream,
                                                       rfx_output_progress_fn *progress, void *user,
                                                       struct rfx_error *err);

/* Returns the path as it was given to open. It lives as long as the stream. */
const char *rfx_output_stream_path(const struct rfx_output_stream *stream);

/* After commit: returns what was found in the output and written. */
struct rfx_found rfx_output_stream_found(const struct rfx_output_stream *stream);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_output_stream_free(struct rfx_output_stream *stream);
#endif
