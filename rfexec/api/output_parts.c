/* Parts of outputs; see output_parts.h.
 *
 * NaN: all leave as the same one. A caller's function is shown the values where they lie, so there
 * they are made one in place: sinks are called between two steps, while nobody reads, and to what
 * reads them later one NaN is as good as another. */
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

/* Shows a rectangle of a map, as many rows at a time as follow each other. */
static enum rfx_status show_map(const struct rfx_job *job, int k, struct rfx_rect rect,
                                const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_area part = {.column = rect.x0,
                            .columns = rfx_rect_cols(rect),
                            .channels = view->c,
                            .row_step = view->row_stride,
                            .column_step = view->c,
                            .channel_step = 1};
    for (int64_t y = rect.y0; y < rect.y1; y = part.row + part.rows) {
        part.row = y;
        part.rows = rfx_view_rows_end(view, y, rect.y1) - y;
        for (int64_t r = y; r < y + part.rows; r++)
            make_nans_one(rfx_view_at(view, r, rect.x0), part.columns * view->c);
        enum rfx_status status = show(job, k, &part, rfx_view_at(view, y, rect.x0), err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Scatters a part of a map, rows x columns x channels, into the caller's array in ONNX order. */
static void scatter(const struct rfx_tensor *t, float *out, struct rfx_rect rect,
                    const struct rfx_view *view) {
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t c = 0; c < t->c; c++)
            for (int64_t x = rect.x0; x < rect.x1; x++)
                out[(c * t->h + y) * t->w + x] = rfx_one_nan(rfx_view_at(view, y, x)[c]);
}

enum rfx_status rfx_output_take_part(void *user, int k, struct rfx_rect rect,
                                     const struct rfx_view *view, struct rfx_error *err) {
    const struct rfx_job *job = user;
    float *out = array_of(job, k);
    if (out != NULL)
        scatter(&job->graph->nodes[job->graph->outputs[k].node].out, out, rect, view);
    else if (job->options.write != NULL)
        return show_map(job, k, rect, view, err);
    return RFX_OK;
}

/* A tensor in ONNX order: a map where it has the shape of one, else one pixel. */
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
    make_nans_one(values, t->elems);
    return show(job, k, &part, values, err);
}

enum rfx_status rfx_output_give_stored(struct rfx_job *job, struct rfx_error *err) {
    for (int k = 0; k < job->graph->n_outputs; k++) {
        const struct rfx_tensor *t = rfx_session_output_tensor(job->session, k);
        float *out = array_of(job, k);
        if (!rfx_session_output_is_stored(job->session, k)) continue;
        if (out != NULL) {
            rfx_session_output_read(job->session, k, 0, t->elems, out);
            continue;
        }
        if (job->options.write == NULL) continue;
        struct rfx_view view = rfx_session_output_view(job->session, k);
        enum rfx_status status = t->layout == RFX_LAYOUT_PLAIN
                                     ? show_plain(job, k, t, view.data, err)
                                     : show_map(job, k, rfx_rect_full(t->h, t->w), &view, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}
