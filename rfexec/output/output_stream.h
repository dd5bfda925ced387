/* A map written to a file or folder (output_format.h has the kinds) from the rectangles of a run,
 * while it goes on.
 *
 * .npy takes rectangles in any order. The others are written from top to bottom: when the first
 * rectangle has the full width, all must be whole rows in order; when it has not (column strips,
 * tiles), or when the range of values is not yet known, the map is put down in a nameless file
 * (output_spool.h) and written at the end.
 * Invariants: 1. the final name is untouched until commit returns RFX_OK (output_file.h);
 * 2. the file's bytes do not depend on how the map was cut; 3. memory is allocated by open and by
 * the first write only, at most rfx_output_stream_bytes; 4. every NaN is written as the same one.
 */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_STREAM_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_STREAM_H

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/output/output_format.h"

/* Called while rows are copied at the end; done of total rows. Non-zero stops: CANCELLED. */
typedef int rfx_output_progress_fn(void *user, int64_t done, int64_t total);

struct rfx_output_stream;

/* At most so many bytes are held for writing the tensor: the encoder's too. */
size_t rfx_output_stream_bytes(const struct rfx_output_format *format,
                               const struct rfx_tensor *tensor);

/* What an .npy file of the tensor holds. */
struct rfx_npy_array rfx_output_array(const struct rfx_output_format *format,
                                      const struct rfx_tensor *tensor);

/* Opens the file, without its name yet. Statuses of format_check; IO: it cannot be made or the
 * disk has no room for it. */
RFX_NODISCARD enum rfx_status rfx_output_stream_open(struct rfx_memory *mem, const char *path,
                                                     const struct rfx_output_format *format,
                                                     const struct rfx_tensor *tensor,
                                                     struct rfx_output_stream **out,
                                                     struct rfx_error *err);

/* Before the first write: all of the map lies in the view, whose range is looked for where the file
 * needs one that was not given. */
void rfx_output_stream_look(struct rfx_output_stream *stream, struct rfx_rect rect,
                            const struct rfx_view *view);

/* Before the first write: rectangles come in any order, whatever the first one is. IO: no room for
 * them beside the file. */
RFX_NODISCARD enum rfx_status rfx_output_stream_any_order(struct rfx_output_stream *stream,
                                                          struct rfx_error *err);

/* Writes `rect` of the map, which lies in the view (NHWC). INVALID_ARGUMENT: outside of the map or
 * the view, more elements than the map has, or rows out of order. */
RFX_NODISCARD enum rfx_status rfx_output_stream_write(struct rfx_output_stream *stream,
                                                      struct rfx_rect rect,
                                                      const struct rfx_view *view,
                                                      struct rfx_error *err);

/* The same for an output's map, also one of those that a tensor is joined of; then .npy only. */
RFX_NODISCARD enum rfx_status rfx_output_stream_write_end(struct rfx_output_stream *stream,
                                                          const struct rfx_end *end,
                                                          struct rfx_rect rect,
                                                          const struct rfx_view *view,
                                                          struct rfx_error *err);

/* Of a batch: what is written from now on is of the next image. INVALID_ARGUMENT: elements are
 * missing. */
RFX_NODISCARD enum rfx_status rfx_output_stream_next(struct rfx_output_stream *stream,
                                                     struct rfx_error *err);

/* Completes the file and gives it its name. progress may be NULL. INVALID_ARGUMENT: elements are
 * missing; CANCELLED: progress said so. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_output_stream_commit(struct rfx_output_stream *stream,
                                                       rfx_output_progress_fn *progress, void *user,
                                                       struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_output_stream_free(struct rfx_output_stream *stream);
#endif
