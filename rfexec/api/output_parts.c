/* Parts of outputs; see output_parts.h.
 *
 * NaN: every NaN of an output gets the same bits. options.write receives a pointer to the values in
 * the arena, so the NaNs are replaced in place there. That is safe: sinks are called between two
 * steps, while no other thread reads, and later layers treat all NaNs alike. */
#include "rfexec/api/output_parts.h"

#include <math.h>

#include "layers/graph/view_rows.h"
#include "rfexec/output/output_sink.h"

static float *array_of(const struct rfx_job *job, int k) {
    return job->outputs != NULL ? job->outputs[k] : NULL;
}

static void make_nans_one(float *values, int64_t n) {
    int found = 0;
    for (int64_t i = 0; i < n; i++) found |= values[i] != values[i];
    if (found == 0) return;
    for (int64_t i = 0; i < n; i++)
        if (values[i] != values[i]) values[i] = NAN;
}

static enum rfx_status show(const struct rfx_job *job, int k, const struct rfx_area *part,
                            const float *values, struct rfx_error *err) {
    int result = job->options.write(job->options.user, k, part, values);
    if (result == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_IO,
                    "the caller's write function returned %d for rows %lld..%lld, columns "
                    "%lld..%lld of output '%.200s'",
                    result, (long long)part->row, (long long)(part->row + part->rows),
                    (long long)part->column, (long long)(part->column + part->columns),
                    job->graph->outputs[k].name);
}

/* Passes a rectangle of a map to options.write. Each call passes as many rows as are contiguous in
 * memory. */
static enum rfx_status show_map(const struct rfx_job *job, int k, struct rfx_rect rect,
                                const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_rect whole = job->graph->outputs[k].part;
    struct rfx_area part = {.column = rect.x0 - whole.x0,
                            .columns = rfx_rect_cols(rect),
                            .channels = view->c,
                            .row_step = view->row_stride,
                            .column_step = view->c,
                            .channel_step = 1};
    for (int64_t y = rect.y0; y < rect.y1; y += part.rows) {
        part.row = y - whole.y0;
        part.rows = rfx_view_rows_end(view, y, rect.y1) - y;
        for (int64_t r = y; r < y + part.rows; r++)
            make_nans_one(rfx_view_f32_at(view, r, rect.x0), part.columns * view->c);
        enum rfx_status status = show(job, k, &part, rfx_view_f32_at(view, y, rect.x0), err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Passes a rectangle of a map to options.write, where the output (1, channels, cells) or (1, cells,
 * channels) is joined from several maps. The caller sees rows and columns of a map of one channel.
 * Each call passes as many rows of the map as are contiguous both in memory and in the output. */
static enum rfx_status show_cells(const struct rfx_job *job, const struct rfx_end *end,
                                  struct rfx_rect rect, const struct rfx_view *view,
                                  struct rfx_error *err) {
    const struct rfx_graph *graph = job->graph;
    bool planes = end->at.channel_step > end->at.column_step;
    int64_t cols = rfx_rect_cols(rect), channels = end->channels, cell_step = 1;
    bool follow =
        end->at.row_step == cols * end->at.column_step && view->row_stride == cols * view->c;
    if (!planes)
        cell_step = channels = graph->nodes[graph->outputs[end->output].node].out.shape.dims[2];
    int64_t anchors = end->channels / channels; /* cells of a pixel */
    for (int64_t y = rect.y0, rows; y < rect.y1; y += rows) {
        rows = follow ? rfx_view_rows_end(view, y, rect.y1) - y : 1;
        int64_t cell = (end->at.first + y * end->at.row_step) / cell_step + rect.x0 * anchors;
        struct rfx_area part = {.channels = 1, .channel_step = 1};
        *(planes ? &part.column : &part.row) = cell;
        *(planes ? &part.columns : &part.rows) = rows * cols * anchors;
        *(planes ? &part.column_step : &part.row_step) = view->c / anchors;
        *(planes ? &part.rows : &part.columns) = channels;
        *(planes ? &part.row_step : &part.column_step) = 1;
        for (int64_t r = y; r < y + rows; r++)
            make_nans_one(rfx_view_f32_at(view, r, rect.x0), cols * view->c);
        enum rfx_status status =
            show(job, end->output, &part, rfx_view_f32_at(view, y, rect.x0), err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Passes a tensor in ONNX order to options.write: as a map if it has four dimensions, as a map of
 * one channel if it has three dimensions, else as one pixel. */
static enum rfx_status show_plain(const struct rfx_job *job, int k, const struct rfx_tensor *t,
                                  float *values, struct rfx_error *err) {
    struct rfx_area part = {.rows = 1, .columns = 1, .channels = t->elems, .channel_step = 1};
    const int64_t *dims = t->shape.dims;
    if (t->shape.rank == 4 && dims[0] == 1)
        part = (struct rfx_area){.rows = dims[2],
                                 .columns = dims[3],
                                 .channels = dims[1],
                                 .row_step = dims[3],
                                 .column_step = 1,
                                 .channel_step = dims[2] * dims[3]};
    if (t->shape.rank == 3 && dims[0] == 1)
        part = (struct rfx_area){.rows = dims[1],
                                 .columns = dims[2],
                                 .channels = 1,
                                 .row_step = dims[2],
                                 .column_step = 1,
                                 .channel_step = 1};
    make_nans_one(values, t->elems);
    return show(job, k, &part, values, err);
}

static enum rfx_status show_end(const struct rfx_job *job, const struct rfx_end *end,
                                struct rfx_rect rect, const struct rfx_view *view,
                                struct rfx_error *err) {
    const struct rfx_tensor *t = &job->graph->nodes[end->node].out;
    if (t->layout == RFX_LAYOUT_PLAIN)
        return show_plain(job, end->output, t, rfx_view_f32(view), err);
    if (rfx_node_is_joined(&job->graph->nodes[job->graph->outputs[end->output].node]))
        return show_cells(job, end, rect, view, err);
    return show_map(job, end->output, rect, view, err);
}

void rfx_output_look(void *user, const struct rfx_end *end, struct rfx_rect rect,
                     const struct rfx_view *view) {
    const struct rfx_job *job = user;
    const struct rfx_result_files_item *file = rfx_result_files_item(&job->files, end->output);
    if (file != NULL) rfx_output_stream_look(file->stream, rect, view);
}

enum rfx_status rfx_output_take_part(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                     const struct rfx_view *view, struct rfx_error *err) {
    const struct rfx_job *job = user;
    void *out = array_of(job, end->output);
    enum rfx_type type = job->options.typed_outputs != 0
                             ? job->graph->outputs[end->output].stored.type
                             : RFX_TYPE_FLOAT32;
    bool written = false;
    if (out != NULL) rfx_end_scatter(end, type, out, rect, view);
    for (int i = 0; i < job->files.n; i++) {
        const struct rfx_result_files_item *file = &job->files.items[i];
        const struct rfx_answer_prototypes *other = &file->format.prototypes;
        written = written || file->output == end->output;
        if (file->output != end->output && !(other->known && other->output == end->output))
            continue;
        enum rfx_status status = rfx_output_stream_write_end(file->stream, end, rect, view, err);
        if (status != RFX_OK) return status;
    }
    if (written) return RFX_OK;
    if (out == NULL && job->options.write != NULL) return show_end(job, end, rect, view, err);
    return RFX_OK;
}
