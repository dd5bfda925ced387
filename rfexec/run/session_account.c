/* Counts the MACs and bytes of a run from the schedule's steps, to compare them with the plan's
 * predictions. */
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rfexec/run/session_state.h"

/* Raises the high-water mark to the end of `bytes` bytes at `offset` of the arena. */
static void count_bytes(size_t offset, size_t bytes, struct rfx_run_report *report) {
    size_t end = offset + rfx_align_up(bytes) + RFX_RED_ZONE_BYTES;
    if (end > report->arena_high_water_bytes) report->arena_high_water_bytes = end;
}

/* Raises the high-water mark to the end of the rows that a step writes. */
static void count_rows(const struct rfx_session *session, const struct rfx_step *step,
                       struct rfx_run_report *report) {
    struct rfx_resident_region region = rfx_schedule_resident_region(session->schedule, step->node);
    const struct rfx_tensor *out = &session->graph->nodes[step->node].out;
    size_t row_bytes = rfx_tensor_pixel_bytes(out, rfx_rect_cols(region.rect));
    bool staging = region.has_staging && step->kind != RFX_STEP_KEEP;
    for (int64_t y = step->rect.y1 - 1; y >= step->rect.y0; y--) {
        int64_t slot = staging                 ? y - region.staging_y0
                       : region.ring_rows != 0 ? y % region.ring_rows
                                               : y - region.rect.y0;
        count_bytes(staging ? region.staging_offset : region.offset, (size_t)(slot + 1) * row_bytes,
                    report);
        if (staging || region.ring_rows == 0)
            return; /* without a ring buffer, the last row has the highest end */
    }
}

void rfx_session_count_step(const struct rfx_session *session, const struct rfx_step *step,
                            struct rfx_run_report *report) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_stage_node *how = &session->plan->stages[step->stage].nodes[step->node];
    switch (step->kind) {
        case RFX_STEP_LOAD:
            count_bytes(how->packed.offset, how->packed.bytes, report);
            return;
        case RFX_STEP_REDUCE_BEGIN:
        case RFX_STEP_REDUCE_ADD:
            count_bytes(how->buffer.offset, how->buffer.bytes, report);
            return;
        case RFX_STEP_RUN:
            report->macs += rfx_op_macs(session->graph, node, step->rect);
            break;
        case RFX_STEP_FETCH:
            report->spill_read += rfx_tensor_pixel_bytes(&node->out, rfx_rect_area(step->rect));
            break;
        case RFX_STEP_KEEP:
        case RFX_STEP_REDUCE_FINISH:
            break;
        case RFX_STEP_SPILL:
            report->spill_written += rfx_tensor_pixel_bytes(&node->out, rfx_rect_area(step->rect));
            return;
        case RFX_STEP_EMIT:
            return;
    }
    count_rows(session, step, report);
}
