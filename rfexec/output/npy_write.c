/* Writes .npy files piece by piece; see npy_write.h. */
#include "rfexec/output/npy_write.h"

#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/decode/npy_format.h"
#include "rfexec/output/output_file.h"
#include "rfexec/output/output_sink.h"

#define CHUNK_ELEMS 16384
#define MOST_HEADER_BYTES 512

struct rfx_npy_writer {
    struct rfx_output_file *file; /* NULL: the bytes go to target */
    struct rfx_npy_target target;
    char *name;
    struct rfx_memory *mem;
    struct rfx_shape shape;
    uint64_t elems, done_elems; /* elements of one array; elements written of the present array */
    uint64_t before;            /* elements of the arrays before it in a batch */
    uint64_t images;
    size_t data_offset;
    enum rfx_type type;
    size_t elem_bytes;
    unsigned char *typed; /* buffer of CHUNK_ELEMS elements; NULL: `chunk` is used, for float32 */
    float chunk[CHUNK_ELEMS];
};

size_t rfx_npy_write_typed_bytes(enum rfx_type type) {
    return type == RFX_TYPE_FLOAT32 ? 0 : CHUNK_ELEMS * rfx_type_bytes(type);
}

static bool count_elems(const struct rfx_npy_array *array, uint64_t *out) {
    const struct rfx_shape *shape = &array->shape;
    int64_t elems = 1, bytes;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0 || !rfx_checked_mul_i64(elems, shape->dims[i], &elems)) return false;
    if (!rfx_checked_mul_i64(elems, (int64_t)rfx_type_bytes(array->type), &bytes) ||
        !rfx_checked_add_i64(bytes, 512, &bytes))
        return false;
    *out = (uint64_t)elems;
    return true;
}

/* Makes a writer and its header: data_offset bytes in `header`. */
static enum rfx_status create(struct rfx_memory *mem, const char *path,
                              const struct rfx_npy_array *array,
                              unsigned char header[MOST_HEADER_BYTES], struct rfx_npy_writer **out,
                              struct rfx_error *err) {
    uint64_t elems = 0;
    size_t data_offset = 0, typed = rfx_npy_write_typed_bytes(array->type);
    const struct rfx_shape *shape = &array->shape;
    struct rfx_shape all = *shape;
    if (shape->rank < 0 || shape->rank > RFX_MAX_RANK || !count_elems(array, &elems))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: a shape without a size", path);
    enum rfx_status status = RFX_OK;
    if (array->images > 1) status = rfx_npy_batch_shape(shape, array->images, &all, err);
    if (status == RFX_OK)
        status = rfx_npy_format(&all, array->type, header, MOST_HEADER_BYTES, &data_offset, err);
    if (status != RFX_OK) return status;
    struct rfx_npy_writer *writer = rfx_memory_calloc(mem, 1, sizeof *writer);
    if (writer == NULL) return rfx_memory_fail(mem, path, sizeof *writer, err);
    writer->mem = mem;
    writer->shape = *shape;
    writer->elems = elems;
    writer->images = (uint64_t)rfx_max_i64(array->images, 1);
    writer->data_offset = data_offset;
    writer->type = array->type;
    writer->elem_bytes = rfx_type_bytes(array->type);
    writer->name = rfx_memory_strdup(mem, path);
    *out = writer; /* freed by the caller, whatever the status */
    if (typed > 0) writer->typed = rfx_memory_alloc(mem, typed);
    if (typed > 0 && writer->typed == NULL) return rfx_memory_fail(mem, path, typed, err);
    return writer->name != NULL ? RFX_OK : rfx_memory_fail(mem, path, strlen(path) + 1, err);
}

enum rfx_status rfx_npy_batch_shape(const struct rfx_shape *shape, int64_t images,
                                    struct rfx_shape *out, struct rfx_error *err) {
    bool leads = shape->rank > 0 && shape->dims[0] == 1;
    if (!leads && shape->rank == RFX_MAX_RANK)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%" PRId64 " tensors of rank %d are none of rank %d at most", images,
                        shape->rank, RFX_MAX_RANK);
    *out = (struct rfx_shape){leads ? shape->rank : shape->rank + 1, {images}};
    for (int i = leads ? 1 : 0; i < shape->rank; i++) out->dims[leads ? i : i + 1] = shape->dims[i];
    return RFX_OK;
}

enum rfx_status rfx_npy_write_open(struct rfx_memory *mem, const char *path,
                                   const struct rfx_npy_array *array, struct rfx_npy_writer **out,
                                   struct rfx_error *err) {
    unsigned char header[MOST_HEADER_BYTES];
    struct rfx_npy_writer *writer = NULL;
    int64_t bytes = 0;
    enum rfx_status status = create(mem, path, array, header, &writer, err);
    if (status == RFX_OK &&
        (!rfx_checked_mul_i64((int64_t)writer->elems, (int64_t)writer->elem_bytes, &bytes) ||
         !rfx_checked_mul_i64(bytes, (int64_t)writer->images, &bytes) ||
         !rfx_checked_add_i64(bytes, (int64_t)writer->data_offset, &bytes)))
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: a shape without a size", path);
    if (status == RFX_OK) status = rfx_output_file_open(mem, path, &writer->file, err);
    if (status == RFX_OK) status = rfx_output_file_reserve(writer->file, (uint64_t)bytes, err);
    if (status == RFX_OK)
        status = rfx_output_file_append(writer->file, header, writer->data_offset, err);
    if (status != RFX_OK) {
        rfx_npy_write_free(writer);
        return status;
    }
    *out = writer;
    return RFX_OK;
}

uint64_t rfx_npy_write_bytes(const struct rfx_npy_array *array) {
    unsigned char header[MOST_HEADER_BYTES];
    uint64_t elems = 0;
    size_t data_offset = 0;
    if (!count_elems(array, &elems) || rfx_npy_format(&array->shape, array->type, header,
                                                      sizeof header, &data_offset, NULL) != RFX_OK)
        return 0;
    return data_offset + elems * rfx_type_bytes(array->type);
}

enum rfx_status rfx_npy_write_onto(struct rfx_memory *mem, const char *name,
                                   const struct rfx_npy_array *array,
                                   const struct rfx_npy_target *target, struct rfx_npy_writer **out,
                                   struct rfx_error *err) {
    unsigned char header[MOST_HEADER_BYTES];
    struct rfx_npy_writer *writer = NULL;
    enum rfx_status status = create(mem, name, array, header, &writer, err);
    if (status == RFX_OK) writer->target = *target;
    if (status == RFX_OK && target->header)
        status = target->put(target->user, header, writer->data_offset, 0, err);
    if (status != RFX_OK) {
        rfx_npy_write_free(writer);
        return status;
    }
    *out = writer;
    return RFX_OK;
}

/* Returns the buffer in which elements are gathered: CHUNK_ELEMS elements of the file's type. */
static unsigned char *chunk_of(struct rfx_npy_writer *writer) {
    return writer->typed != NULL ? writer->typed : (unsigned char *)(void *)writer->chunk;
}

/* Writes `count` elements of the buffer to element `first` of the array and after. */
static enum rfx_status put_chunk(struct rfx_npy_writer *writer, int64_t count, int64_t first,
                                 struct rfx_error *err) {
    size_t bytes = (size_t)count * writer->elem_bytes;
    uint64_t offset =
        writer->data_offset + (writer->before + (uint64_t)first) * (uint64_t)writer->elem_bytes;
    const void *elements = chunk_of(writer);
    return writer->file != NULL
               ? rfx_output_file_put(writer->file, elements, bytes, offset, err)
               : writer->target.put(writer->target.user, elements, bytes, offset, err);
}

static enum rfx_status count_in(struct rfx_npy_writer *writer, uint64_t count,
                                struct rfx_error *err) {
    if (count > writer->elems - writer->done_elems)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: %" PRIu64 " elements after %" PRIu64 " of %" PRIu64, writer->name,
                        count, writer->done_elems, writer->elems);
    writer->done_elems += count;
    return RFX_OK;
}

/* Returns the address of element `channel` of the view's pixel (y, x). */
static const unsigned char *element_at(const struct rfx_view *view, int64_t y, int64_t x,
                                       int64_t channel) {
    const unsigned char *pixel = rfx_view_at(view, y, x);
    return pixel + (size_t)channel * rfx_type_bytes(view->type);
}

/* Gathers columns [x, x + count) of one row and channel into the buffer, from element `to` on. */
static void gather_plane(struct rfx_npy_writer *writer, int64_t to, const struct rfx_view *view,
                         int64_t channel, int64_t y, int64_t x, int64_t count) {
    rfx_type_gather(view->type, element_at(view, y, x, channel), view->c, count, writer->type,
                    chunk_of(writer) + (size_t)to * writer->elem_bytes);
}

/* Writes rows of the array's full width of one channel, as many at a time as fit the buffer.
 * `plane`: the element at row 0, column 0. */
static enum rfx_status put_plane_rows(struct rfx_npy_writer *writer, struct rfx_rect rect,
                                      const struct rfx_view *view, int64_t channel, int64_t plane,
                                      struct rfx_error *err) {
    int64_t w = rfx_rect_cols(rect), together = CHUNK_ELEMS / w;
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += together) {
        int64_t rows = rfx_min_i64(together, rect.y1 - y);
        for (int64_t r = 0; r < rows; r++)
            gather_plane(writer, r * w, view, channel, y + r, rect.x0, w);
        status = put_chunk(writer, rows * w, plane + y * w, err);
    }
    return status;
}

/* Writes a part of a row of one channel. `first`: the element at the row's column 0. */
static enum rfx_status put_plane_row(struct rfx_npy_writer *writer, struct rfx_rect row,
                                     const struct rfx_view *view, int64_t channel, int64_t first,
                                     struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t x = row.x0; x < row.x1 && status == RFX_OK; x += CHUNK_ELEMS) {
        int64_t cols = rfx_min_i64(CHUNK_ELEMS, row.x1 - x);
        gather_plane(writer, 0, view, channel, row.y0, x, cols);
        status = put_chunk(writer, cols, first + x, err);
    }
    return status;
}

enum rfx_status rfx_npy_write_rect(struct rfx_npy_writer *writer, struct rfx_rect rect,
                                   const struct rfx_view *view, struct rfx_error *err) {
    if (rfx_rect_is_empty(rect)) return RFX_OK;
    int skip = writer->shape.rank - 3;
    const int64_t *dims = writer->shape.dims + (skip == 1 ? 1 : 0);
    if ((skip != 0 && (skip != 1 || writer->shape.dims[0] != 1)) ||
        !rfx_rect_contains(rfx_rect_full(dims[1], dims[2]), rect) ||
        !rfx_rect_contains(view->rect, rect) || view->c < dims[0])
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: rows %" PRId64 "..%" PRId64 ", columns %" PRId64 "..%" PRId64
                        " do not fit the array or the view",
                        writer->name, rect.y0, rect.y1, rect.x0, rect.x1);
    enum rfx_status status = count_in(writer, (uint64_t)(rfx_rect_area(rect) * dims[0]), err);
    bool together = rfx_rect_cols(rect) == dims[2] && dims[2] <= CHUNK_ELEMS;
    for (int64_t channel = 0; channel < dims[0] && status == RFX_OK; channel++) {
        int64_t plane = channel * dims[1] * dims[2];
        if (together) {
            status = put_plane_rows(writer, rect, view, channel, plane, err);
            continue;
        }
        for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++)
            status = put_plane_row(writer, rfx_rect_make(y, y + 1, rect.x0, rect.x1), view, channel,
                                   plane + y * dims[2], err);
    }
    return status;
}

/* Returns whether the rectangle lies in the array and in the view. */
static bool end_fits(const struct rfx_npy_writer *writer, const struct rfx_end *end,
                     struct rfx_rect rect, const struct rfx_view *view) {
    const struct rfx_spread *at = &end->at;
    int64_t last = at->first + (rect.y1 - 1) * at->row_step + (rect.x1 - 1) * at->column_step +
                   (end->channels - 1) * at->channel_step;
    return rect.y0 >= 0 && rect.x0 >= 0 && last < (int64_t)writer->elems &&
           rfx_rect_contains(view->rect, rect) && view->c >= end->channels;
}

/* Writes `n` elements that are `step` elements apart at `from` and contiguous in the array from
 * element `to` on. */
static enum rfx_status put_run(struct rfx_npy_writer *writer, enum rfx_type type,
                               const unsigned char *from, int64_t step, int64_t n, int64_t to,
                               struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < n && status == RFX_OK; i += CHUNK_ELEMS) {
        int64_t count = rfx_min_i64(CHUNK_ELEMS, n - i);
        rfx_type_gather(type, from + (size_t)(i * step) * rfx_type_bytes(type), step, count,
                        writer->type, chunk_of(writer));
        status = put_chunk(writer, count, to + i, err);
    }
    return status;
}

/* Writes a row of an array (1, cells, channels) or (1, rows, columns, channels): one run per row,
 * or one per pixel if the view has more channels. */
static enum rfx_status put_cells(struct rfx_npy_writer *writer, const struct rfx_end *end,
                                 struct rfx_rect row, const struct rfx_view *view,
                                 struct rfx_error *err) {
    int64_t first = end->at.first + row.y0 * end->at.row_step, c = end->channels;
    int64_t pixels = view->c == c && end->at.column_step == c ? rfx_rect_cols(row) : 1;
    enum rfx_status status = RFX_OK;
    for (int64_t x = row.x0; x < row.x1 && status == RFX_OK; x += pixels)
        status = put_run(writer, view->type, element_at(view, row.y0, x, 0), 1, pixels * c,
                         first + x * end->at.column_step, err);
    return status;
}

/* Returns whether all elements of the rectangle are contiguous, both in the view and in the array.
 */
static bool is_one_run(const struct rfx_end *end, struct rfx_rect rect,
                       const struct rfx_view *view) {
    int64_t row = rfx_rect_cols(rect) * end->channels;
    return view->ring_rows == 0 && view->staging == NULL && view->c == end->channels &&
           view->row_stride == row && end->at.row_step == row && end->at.channel_step == 1 &&
           end->at.column_step == end->channels;
}

/* Writes rows of an array (1, channels, cells): one run per channel and row, or as many rows of the
 * full width as the buffer holds. */
static enum rfx_status put_planes(struct rfx_npy_writer *writer, const struct rfx_end *end,
                                  struct rfx_rect rect, const struct rfx_view *view,
                                  struct rfx_error *err) {
    int64_t cols = rfx_rect_cols(rect),
            first = end->at.first + rect.y0 * end->at.row_step + rect.x0;
    enum rfx_status status = RFX_OK;
    for (int64_t c = 0; c < end->channels && status == RFX_OK; c++) {
        int64_t to = first + c * end->at.channel_step;
        if (rfx_rect_rows(rect) == 1) {
            status = put_run(writer, view->type, element_at(view, rect.y0, rect.x0, c), view->c,
                             cols, to, err);
            continue;
        }
        for (int64_t y = rect.y0; y < rect.y1; y++)
            gather_plane(writer, (y - rect.y0) * cols, view, c, y, rect.x0, cols);
        status = put_chunk(writer, rfx_rect_area(rect), to, err);
    }
    return status;
}

enum rfx_status rfx_npy_write_end(struct rfx_npy_writer *writer, const struct rfx_end *end,
                                  struct rfx_rect rect, const struct rfx_view *view,
                                  struct rfx_error *err) {
    if (rfx_rect_is_empty(rect)) return RFX_OK;
    bool planes = end->at.column_step == 1 && (end->at.channel_step != 1 || end->channels == 1);
    if (!end_fits(writer, end, rect, view) || (!planes && end->at.channel_step != 1))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: rows %" PRId64 "..%" PRId64 ", columns %" PRId64 "..%" PRId64
                        " of a level do not fit the array or the view",
                        writer->name, rect.y0, rect.y1, rect.x0, rect.x1);
    int64_t cols = rfx_rect_cols(rect);
    bool together = planes && end->at.row_step == cols && cols <= CHUNK_ELEMS;
    int64_t step = together ? CHUNK_ELEMS / cols : 1;
    enum rfx_status status = count_in(writer, (uint64_t)(rfx_rect_area(rect) * end->channels), err);
    if (status == RFX_OK && is_one_run(end, rect, view))
        return put_run(writer, view->type, element_at(view, rect.y0, rect.x0, 0), 1,
                       rfx_rect_area(rect) * end->channels,
                       end->at.first + rect.y0 * end->at.row_step + rect.x0 * end->at.column_step,
                       err);
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y += step) {
        struct rfx_rect rows = rfx_rect_make(y, rfx_min_i64(y + step, rect.y1), rect.x0, rect.x1);
        status = planes ? put_planes(writer, end, rows, view, err)
                        : put_cells(writer, end, rows, view, err);
    }
    return status;
}

static enum rfx_status need_all(const struct rfx_npy_writer *writer, struct rfx_error *err) {
    if (writer->done_elems == writer->elems) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: %" PRIu64 " of %" PRIu64 " elements written", writer->name,
                    writer->done_elems, writer->elems);
}

enum rfx_status rfx_npy_write_next(struct rfx_npy_writer *writer, struct rfx_error *err) {
    enum rfx_status status = need_all(writer, err);
    writer->done_elems = 0;
    writer->before += writer->elems;
    return status;
}

enum rfx_status rfx_npy_write_commit(struct rfx_npy_writer *writer, struct rfx_error *err) {
    enum rfx_status status = need_all(writer, err);
    if (status == RFX_OK && writer->before != (writer->images - 1) * writer->elems)
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                          "%s: %" PRIu64 " elements before the last array of %" PRIu64,
                          writer->name, writer->before, writer->images);
    return status == RFX_OK ? rfx_output_file_commit(writer->file, err) : status;
}

void rfx_npy_write_free(struct rfx_npy_writer *writer) {
    if (writer == NULL) return;
    rfx_output_file_free(writer->file);
    rfx_memory_release(writer->mem, writer->typed);
    rfx_memory_release(writer->mem, writer->name);
    rfx_memory_release(writer->mem, writer);
}
