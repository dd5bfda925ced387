/* A map written to a .npy, TIFF or PNG file from the rectangles of a run, while it goes on.
 *
 * .npy takes rectangles in any order. TIFF and PNG are written from top to bottom: when the first
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
#include "layers/graph/tensor.h"
#include "rfexec/output/samples.h"

enum rfx_output_kind { RFX_OUTPUT_NPY, RFX_OUTPUT_TIFF, RFX_OUTPUT_PNG, RFX_OUTPUT_KIND_COUNT };

struct rfx_output_format {
    enum rfx_output_kind kind;
    int bits; /* 32: float (npy, TIFF); 8, 16: unsigned (TIFF, PNG); 0: 32 or, for PNG, 8 */
    bool has_range;
    struct rfx_value_range range; /* with 8 and 16 bits; not given: the map's extremes */
};

/* Called while rows are copied at the end; done of total rows. Non-zero stops: CANCELLED. */
typedef int rfx_output_progress_fn(void *user, int64_t done, int64_t total);

struct rfx_output_stream;

/* The kind that a file's name asks for: .npy, .tif, .tiff, .png, in any case, and .npy for "-";
 * false: none. */
bool rfx_output_kind_of(const char *path, enum rfx_output_kind *kind);

/* Whether such a file can hold the tensor: INVALID_ARGUMENT in words. PNG: maps of 1 or 3 channels
 * and at most 1,000,000 rows and columns; TIFF: maps of at most 65,535 channels; .npy: everything.
 */
RFX_NODISCARD enum rfx_status rfx_output_format_check(const struct rfx_output_format *format,
                                                      const struct rfx_tensor *tensor,
                                                      const char *path, struct rfx_error *err);

/* At most so many bytes are held for writing the tensor: the encoder's too. */
size_t rfx_output_stream_bytes(const struct rfx_output_format *format,
                               const struct rfx_tensor *tensor);

/* Opens the file, without its name yet. Statuses of format_check; IO: it cannot be made or the
 * disk has no room for it. */
RFX_NODISCARD enum rfx_status rfx_output_stream_open(struct rfx_memory *mem, const char *path,
                                                     const struct rfx_output_format *format,
                                                     const struct rfx_tensor *tensor,
                                                     struct rfx_output_stream **out,
                                                     struct rfx_error *err);

/* Sets the range, before the first write, when it was not given. */
void rfx_output_stream_set_range(struct rfx_output_stream *stream, struct rfx_value_range range);

/* Whether the file is a picture, written from rectangles only. */
bool rfx_output_stream_is_picture(const struct rfx_output_stream *stream);

/* Whether 8 or 16 bits are asked for and the range is not known. */
bool rfx_output_stream_needs_range(const struct rfx_output_stream *stream);

/* Writes `rect` of the map, which lies in the view (NHWC). INVALID_ARGUMENT: outside of the map or
 * the view, more elements than the map has, or rows out of order. */
RFX_NODISCARD enum rfx_status rfx_output_stream_write(struct rfx_output_stream *stream,
                                                      struct rfx_rect rect,
                                                      const struct rfx_view *view,
                                                      struct rfx_error *err);

/* Appends `count` elements in ONNX order instead; .npy only, any layout. */
RFX_NODISCARD enum rfx_status rfx_output_stream_append(struct rfx_output_stream *stream,
                                                       const float *values, size_t count,
                                                       struct rfx_error *err);

/* Completes the file and gives it its name. progress may be NULL. INVALID_ARGUMENT: elements are
 * missing; CANCELLED: progress said so. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_output_stream_commit(struct rfx_output_stream *stream,
                                                       rfx_output_progress_fn *progress, void *user,
                                                       struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_output_stream_free(struct rfx_output_stream *stream);
#endif
