/* Writes rectangles to files. The first rectangle decides whether rows are written directly or
 * stored first. */
#include "rfexec/output/output_stream.h"

#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/output/output_spool.h"

#define BAND_BYTES ((size_t)256 * 1024)
#define SMALL_ROW_BYTES 16384            /* largest row of one channel that is written in bands */
#define FILES_BYTES ((size_t)160 * 1024) /* the writers' own buffers */

enum route { ROUTE_UNSETTLED, ROUTE_DIRECT, ROUTE_SPOOL };

struct rfx_output_stream {
    struct rfx_memory *mem;
    char *name;
    struct rfx_output_format format;
    struct rfx_tensor tensor;
    int64_t done_elems, next_row;
    enum route route;
    struct rfx_npy_writer *npy;
    void *writer; /* writer of rows, for kinds other than .npy */
    struct rfx_output_spool *spool;
    enum rfx_type sample; /* sample type of the file */
    bool scaled;          /* values are scaled to all bits of a sample */
    void *row;     /* for kinds other than .npy: a row, elements [w, c] of the tensor's type */
    void *samples; /* the row as samples; NULL: row and samples are float32 */
    unsigned char *band; /* for .npy of narrow maps: rows [band_y, band_y + band_filled) */
    int64_t band_rows, band_y, band_filled;
    struct rfx_value_range seen;
};

static size_t row_elems(const struct rfx_tensor *tensor) {
    return (size_t)(tensor->w * tensor->c);
}

static size_t row_bytes(const struct rfx_tensor *tensor) {
    return rfx_tensor_pixel_bytes(tensor, tensor->w);
}

/* Returns the number of rows of a narrow map that are gathered before they are written; 0: none. */
static int64_t band_rows(const struct rfx_tensor *tensor) {
    if (tensor->layout != RFX_LAYOUT_NHWC ||
        tensor->w > SMALL_ROW_BYTES / (int64_t)rfx_type_bytes(tensor->type))
        return 0;
    int64_t rows = rfx_min_i64((int64_t)(BAND_BYTES / row_bytes(tensor)), tensor->h);
    return rows > 1 ? rows : 0;
}

struct rfx_npy_array rfx_output_array(const struct rfx_output_format *format,
                                      const struct rfx_tensor *tensor) {
    const struct rfx_stored *stored = &format->stored;
    return (struct rfx_npy_array){.shape = stored->reshaped ? stored->shape : tensor->shape,
                                  .type = stored->type,
                                  .images = format->images};
}

/* Returns whether the output is no map and is passed to the writer piece by piece. */
static bool in_pieces(const struct rfx_output_format *format, const struct rfx_tensor *tensor) {
    return tensor->layout != RFX_LAYOUT_NHWC && format->kind->take != NULL;
}

size_t rfx_output_stream_bytes(const struct rfx_output_format *format,
                               const struct rfx_tensor *tensor) {
    size_t bytes = FILES_BYTES;
    if (in_pieces(format, tensor)) return bytes + format->kind->bytes(format, tensor);
    if (format->kind->write_row == NULL)
        return bytes + (size_t)band_rows(tensor) * row_bytes(tensor) +
               rfx_npy_write_typed_bytes(format->stored.type);
    bytes += row_bytes(tensor) + row_elems(tensor) * (size_t)rfx_output_bits(format) / 8;
    return bytes + format->kind->bytes(format, tensor);
}

static enum rfx_status open_buffers(struct rfx_output_stream *stream, struct rfx_error *err) {
    const struct rfx_tensor *t = &stream->tensor;
    if (in_pieces(&stream->format, t)) return RFX_OK;
    if (stream->format.kind->write_row == NULL) {
        stream->band_rows = band_rows(t);
        size_t bytes = (size_t)stream->band_rows * row_bytes(t);
        if (bytes == 0) return RFX_OK;
        stream->band = rfx_memory_alloc(stream->mem, bytes);
        return stream->band != NULL ? RFX_OK
                                    : rfx_memory_fail(stream->mem, stream->name, bytes, err);
    }
    stream->row = rfx_memory_alloc(stream->mem, row_bytes(t));
    if (stream->row == NULL) return rfx_memory_fail(stream->mem, stream->name, row_bytes(t), err);
    if (stream->sample == RFX_TYPE_FLOAT32 && t->type == RFX_TYPE_FLOAT32) return RFX_OK;
    size_t bytes = row_elems(t) * rfx_type_bytes(stream->sample);
    stream->samples = rfx_memory_alloc(stream->mem, bytes);
    return stream->samples != NULL ? RFX_OK
                                   : rfx_memory_fail(stream->mem, stream->name, bytes, err);
}

static enum rfx_status open_writer(struct rfx_output_stream *stream, struct rfx_error *err) {
    const struct rfx_output_format *format = &stream->format;
    const struct rfx_npy_array array = rfx_output_array(format, &stream->tensor);
    if (format->kind->write_row != NULL)
        return format->kind->open(stream->mem, stream->name, format, &stream->tensor,
                                  &stream->writer, err);
    if (format->onto != NULL)
        return rfx_npy_write_onto(stream->mem, stream->name, &array, format->onto, &stream->npy,
                                  err);
    return rfx_npy_write_open(stream->mem, stream->name, &array, &stream->npy, err);
}

enum rfx_status rfx_output_stream_open(struct rfx_memory *mem, const char *path,
                                       const struct rfx_output_format *format,
                                       const struct rfx_tensor *tensor,
                                       struct rfx_output_stream **out, struct rfx_error *err) {
    enum rfx_status status = rfx_output_format_check(format, tensor, path, err);
    if (status != RFX_OK) return status;
    struct rfx_output_stream *stream = rfx_memory_calloc(mem, 1, sizeof *stream);
    if (stream == NULL) return rfx_memory_fail(mem, path, sizeof *stream, err);
    stream->mem = mem;
    stream->format = *format;
    stream->sample = rfx_output_sample(format);
    stream->scaled = rfx_output_is_scaled(format);
    stream->tensor = *tensor;
    stream->seen = rfx_value_range_empty();
    stream->name = rfx_memory_strdup(mem, path);
    if (stream->name == NULL) status = rfx_memory_fail(mem, path, strlen(path) + 1, err);
    if (status == RFX_OK) status = open_buffers(stream, err);
    if (status == RFX_OK) status = open_writer(stream, err);
    stream->format.geo = NULL;
    if (status != RFX_OK) {
        rfx_output_stream_free(stream);
        return status;
    }
    *out = stream;
    return RFX_OK;
}

/* Returns whether values must be scaled and their range is not known yet. */
static bool needs_range(const struct rfx_output_stream *stream) {
    return stream->scaled && !stream->format.has_range;
}

static void set_range(struct rfx_output_stream *stream, struct rfx_value_range range) {
    stream->format.range = rfx_value_range_settle(range);
    stream->format.has_range = true;
}

void rfx_output_stream_look(struct rfx_output_stream *stream, struct rfx_rect rect,
                            const struct rfx_view *view) {
    if (!needs_range(stream)) return;
    struct rfx_value_range range = rfx_value_range_empty();
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            rfx_value_range_add(&range, view->type, rfx_view_at(view, y, x), stream->tensor.c);
    set_range(stream, range);
}

/* Returns stream->row converted to samples. Booleans become 0 and 1, in a PNG 0 and 255. */
static const void *make_samples(struct rfx_output_stream *stream, int64_t count) {
    enum rfx_type type = stream->tensor.type;
    bool truths = stream->format.stored.type == RFX_TYPE_BOOL && !stream->scaled;
    if (stream->samples == NULL) {
        rfx_type_gather(type, stream->row, 1, count, type, stream->row);
        return stream->row;
    }
    if (stream->scaled) {
        int bits = 8 * (int)rfx_type_bytes(stream->sample);
        rfx_samples_of(type, stream->row, count, stream->format.range, bits, stream->samples);
        return stream->samples;
    }
    rfx_type_gather(type, stream->row, 1, count, truths ? RFX_TYPE_BOOL : stream->sample,
                    stream->samples);
    unsigned char *bytes = stream->samples;
    for (int64_t i = 0; truths && stream->format.kind->black_and_white && i < count; i++)
        bytes[i] = (unsigned char)(255 * bytes[i]);
    return stream->samples;
}

/* Writes stream->row as the picture's next row. */
static enum rfx_status write_row(struct rfx_output_stream *stream, struct rfx_error *err) {
    const void *samples = make_samples(stream, (int64_t)row_elems(&stream->tensor));
    stream->next_row++;
    return stream->format.kind->write_row(stream->writer, samples, err);
}

/* Copies row y of the view into `to`, elements [w, c]. */
static void copy_row(const struct rfx_output_stream *stream, const struct rfx_view *view, int64_t y,
                     unsigned char *to) {
    size_t pixel = rfx_tensor_pixel_bytes(&stream->tensor, 1);
    if (view->c == stream->tensor.c) {
        memcpy(to, rfx_view_at(view, y, 0), row_bytes(&stream->tensor));
        return;
    }
    for (int64_t x = 0; x < stream->tensor.w; x++)
        memcpy(to + (size_t)x * pixel, rfx_view_at(view, y, x), pixel);
}

static enum rfx_status write_rows(struct rfx_output_stream *stream, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    if (rfx_rect_cols(rect) != stream->tensor.w || rect.y0 != stream->next_row)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: rows %" PRId64 "..%" PRId64 ", columns %" PRId64 "..%" PRId64
                        " where row %" PRId64 " is next",
                        stream->name, rect.y0, rect.y1, rect.x0, rect.x1, stream->next_row);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++) {
        copy_row(stream, view, y, stream->row);
        status = write_row(stream, err);
    }
    return status;
}

/* Writes a rectangle of the map to its place in the array. */
static enum rfx_status put_rect(struct rfx_output_stream *stream, struct rfx_rect rect,
                                const struct rfx_view *view, struct rfx_error *err) {
    const struct rfx_tensor *t = &stream->tensor;
    const struct rfx_stored *stored = &stream->format.stored;
    if (!stored->reshaped) return rfx_npy_write_rect(stream->npy, rect, view, err);
    const struct rfx_end end = {.channels = t->c,
                                .at = rfx_stored_spread(stored, rfx_rect_full(t->h, t->w), t->c)};
    return rfx_npy_write_end(stream->npy, &end, rect, view, err);
}

static enum rfx_status flush_band(struct rfx_output_stream *stream, struct rfx_error *err) {
    if (stream->band_filled == 0) return RFX_OK;
    struct rfx_rect rect =
        rfx_rect_make(stream->band_y, stream->band_y + stream->band_filled, 0, stream->tensor.w);
    struct rfx_view view = rfx_view_of(&stream->tensor, stream->band, rect);
    stream->band_filled = 0;
    return put_rect(stream, rect, &view, err);
}

static enum rfx_status write_npy(struct rfx_output_stream *stream, struct rfx_rect rect,
                                 const struct rfx_view *view, struct rfx_error *err) {
    if (rfx_rect_cols(rect) != stream->tensor.w || rfx_rect_rows(rect) >= stream->band_rows)
        return put_rect(stream, rect, view, err);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++) {
        bool follows = y == stream->band_y + stream->band_filled;
        if (!follows || stream->band_filled == stream->band_rows) status = flush_band(stream, err);
        if (stream->band_filled == 0) stream->band_y = y;
        copy_row(stream, view, y,
                 stream->band + (size_t)stream->band_filled * row_bytes(&stream->tensor));
        stream->band_filled++;
    }
    return status;
}

/* Decides from the first rectangle whether rows are written directly or stored first. */
static enum rfx_status settle(struct rfx_output_stream *stream, struct rfx_rect rect,
                              struct rfx_error *err) {
    bool rows = rect.y0 == 0 && rfx_rect_cols(rect) == stream->tensor.w;
    bool direct = stream->npy != NULL || (rows && !needs_range(stream));
    stream->route = direct ? ROUTE_DIRECT : ROUTE_SPOOL;
    if (direct) return RFX_OK;
    return rfx_output_spool_open(stream->mem, stream->name, &stream->tensor, &stream->spool, err);
}

enum rfx_status rfx_output_stream_any_order(struct rfx_output_stream *stream,
                                            struct rfx_error *err) {
    if (in_pieces(&stream->format, &stream->tensor)) return RFX_OK;
    return settle(stream, rfx_rect_make(1, 1, 0, 0), err);
}

static void widen_range(struct rfx_output_stream *stream, struct rfx_rect rect,
                        const struct rfx_view *view) {
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            rfx_value_range_add(&stream->seen, view->type, rfx_view_at(view, y, x),
                                stream->tensor.c);
}

enum rfx_status rfx_output_stream_write(struct rfx_output_stream *stream, struct rfx_rect rect,
                                        const struct rfx_view *view, struct rfx_error *err) {
    const struct rfx_tensor *t = &stream->tensor;
    if (rfx_rect_is_empty(rect)) return RFX_OK;
    if (t->layout != RFX_LAYOUT_NHWC || !rfx_rect_contains(rfx_rect_full(t->h, t->w), rect) ||
        !rfx_rect_contains(view->rect, rect) || view->c < t->c || view->type != t->type ||
        rfx_rect_area(rect) * t->c > t->elems - stream->done_elems)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: rows %" PRId64 "..%" PRId64 ", columns %" PRId64 "..%" PRId64
                        " do not fit the map of %" PRId64 " x %" PRId64
                        " or the view, or come twice",
                        stream->name, rect.y0, rect.y1, rect.x0, rect.x1, t->h, t->w);
    enum rfx_status status = RFX_OK;
    if (stream->route == ROUTE_UNSETTLED) status = settle(stream, rect, err);
    if (status != RFX_OK) return status;
    if (stream->route == ROUTE_SPOOL) {
        if (needs_range(stream)) widen_range(stream, rect, view);
        status = rfx_output_spool_write(stream->spool, rect, view, err);
    } else {
        status = stream->npy != NULL ? write_npy(stream, rect, view, err)
                                     : write_rows(stream, rect, view, err);
    }
    if (status == RFX_OK) stream->done_elems += rfx_rect_area(rect) * t->c;
    return status;
}

enum rfx_status rfx_output_stream_write_end(struct rfx_output_stream *stream,
                                            const struct rfx_end *end, struct rfx_rect rect,
                                            const struct rfx_view *view, struct rfx_error *err) {
    if (stream->tensor.layout == RFX_LAYOUT_NHWC)
        return rfx_output_stream_write(stream, rect, view, err);
    bool pieces = in_pieces(&stream->format, &stream->tensor);
    if (stream->npy == NULL && !pieces)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: a %s is not written by levels",
                        stream->name, stream->format.kind->name);
    stream->route = ROUTE_DIRECT;
    enum rfx_status status = pieces
                                 ? stream->format.kind->take(stream->writer, end, rect, view, err)
                                 : rfx_npy_write_end(stream->npy, end, rect, view, err);
    const struct rfx_answer_prototypes *other = &stream->format.prototypes;
    if (status == RFX_OK && !(other->known && other->output == end->output))
        stream->done_elems += rfx_rect_area(rect) * end->channels;
    return status;
}

static enum rfx_status drain(struct rfx_output_stream *stream, rfx_output_progress_fn *progress,
                             void *user, struct rfx_error *err) {
    int64_t h = stream->tensor.h;
    if (needs_range(stream)) set_range(stream, stream->seen);
    for (int64_t y = 0; y < h; y++) {
        if (progress != NULL && progress(user, y, h) != 0)
            return rfx_fail(err, RFX_STATUS_CANCELLED,
                            "%s: stopped after %" PRId64 " of %" PRId64 " rows", stream->name, y,
                            h);
        enum rfx_status status = rfx_output_spool_read(stream->spool, y, stream->row, err);
        if (status == RFX_OK) status = write_row(stream, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

static enum rfx_status need_all(const struct rfx_output_stream *stream, struct rfx_error *err) {
    if (stream->done_elems == stream->tensor.elems) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: %" PRId64 " of %" PRId64 " elements written", stream->name,
                    stream->done_elems, stream->tensor.elems);
}

enum rfx_status rfx_output_stream_next(struct rfx_output_stream *stream, struct rfx_error *err) {
    enum rfx_status status = need_all(stream, err);
    if (status == RFX_OK) status = flush_band(stream, err);
    stream->done_elems = 0;
    return status == RFX_OK ? rfx_npy_write_next(stream->npy, err) : status;
}

enum rfx_status rfx_output_stream_commit(struct rfx_output_stream *stream,
                                         rfx_output_progress_fn *progress, void *user,
                                         struct rfx_error *err) {
    if (stream->format.onto != NULL) return flush_band(stream, err);
    enum rfx_status status = need_all(stream, err);
    if (status != RFX_OK) return status;
    status =
        stream->route == ROUTE_SPOOL ? drain(stream, progress, user, err) : flush_band(stream, err);
    if (status != RFX_OK) return status;
    if (stream->npy != NULL) return rfx_npy_write_commit(stream->npy, err);
    return stream->format.kind->commit(stream->writer, err);
}

const char *rfx_output_stream_path(const struct rfx_output_stream *stream) {
    return stream->name;
}

struct rfx_found rfx_output_stream_found(const struct rfx_output_stream *stream) {
    const struct rfx_output_kind *kind = stream->format.kind;
    return kind->found != NULL ? kind->found(stream->writer) : (struct rfx_found){.what = NULL};
}

void rfx_output_stream_free(struct rfx_output_stream *stream) {
    if (stream == NULL) return;
    rfx_output_spool_free(stream->spool);
    if (stream->writer != NULL) stream->format.kind->free(stream->writer);
    rfx_npy_write_free(stream->npy);
    rfx_memory_release(stream->mem, stream->band);
    rfx_memory_release(stream->mem, stream->samples);
    rfx_memory_release(stream->mem, stream->row);
    rfx_memory_release(stream->mem, stream->name);
    rfx_memory_release(stream->mem, stream);
}
