/* Part by part, run by run of elements that lie together in the part and in the output, so that
 * what is in memory does not hang on the output's size. */
#include "tools/parts/merge_cells.h"

#include <unistd.h>

#include "layers/core/checked.h"

struct rfx_tensor rfx_merge_cells_tensor(const struct rfx_merge_parts *parts) {
    const struct rfx_part_file *first = &parts->files[0];
    int64_t elems = first->cells.of * first->cells.channels;
    return (struct rfx_tensor){.layout = RFX_LAYOUT_PLAIN,
                               .shape = first->shape,
                               .c = elems,
                               .h = 1,
                               .w = 1,
                               .elems = elems,
                               .type = RFX_TYPE_FLOAT32};
}

/* Elements that follow each other in the output: a row of a map of one channel. */
static enum rfx_status put(struct rfx_output_stream *stream, float *values, int64_t to,
                           int64_t count, struct rfx_error *err) {
    struct rfx_end end = {.channels = 1, .at = {to, count, 1, INT64_MAX}};
    struct rfx_rect row = rfx_rect_make(0, 1, 0, count);
    struct rfx_view view = rfx_view_dense(values, row, 1);
    return rfx_output_stream_write_end(stream, &end, row, &view, err);
}

static enum rfx_status copy_run(struct rfx_merge_parts *parts, const struct rfx_merge_array *array,
                                struct rfx_part_run run, struct rfx_output_stream *stream,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < run.count && status == RFX_OK; i += RFX_MERGE_CHUNK) {
        int64_t n = rfx_min_i64(RFX_MERGE_CHUNK, run.count - i);
        status = rfx_merge_parts_take(parts, array, run.from + i, run.to + i, 1, n, err);
        if (status == RFX_OK) status = put(stream, parts->chunk, run.to + i, n, err);
    }
    return status;
}

static enum rfx_status copy_part(struct rfx_merge_parts *parts, int part,
                                 struct rfx_output_stream *stream, struct rfx_error *err) {
    const struct rfx_part_cells *cells = &parts->files[part].cells;
    struct rfx_merge_array array;
    enum rfx_status status = rfx_merge_parts_open(parts, part, &array, err);
    if (status != RFX_OK) return status;
    for (int64_t i = 0; i < rfx_part_cells_runs(cells) && status == RFX_OK; i++)
        status = copy_run(parts, &array, rfx_part_cells_run(cells, i), stream, err);
    (void)close(array.fd);
    return status == RFX_OK ? rfx_merge_parts_check(parts, part, err) : status;
}

enum rfx_status rfx_merge_cells(struct rfx_merge_parts *parts, struct rfx_output_stream *stream,
                                struct rfx_cli_progress *progress, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < parts->n && status == RFX_OK; i++) {
        status = copy_part(parts, i, stream, err);
        if (status == RFX_OK && rfx_cli_progress_step(progress, i + 1, parts->n) != 0)
            status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    }
    return status;
}
