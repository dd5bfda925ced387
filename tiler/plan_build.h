/* Building one plan for given stages, and measuring candidates without building them.
 *
 * The planner's search and the final plan share these functions, so that what was compared is what
 * is allocated. Private to tiler/. */
#ifndef RFX_TILER_PLAN_BUILD_H
#define RFX_TILER_PLAN_BUILD_H

#include "tiler/placement.h"
#include "tiler/plan.h"
#include "tiler/streaming.h"
#include "tiler/tiling.h"

/* A streamed head. */
struct rfx_stream_choice {
    int64_t band_rows;
    bool ends_in_pools; /* the split's map feeds global pools row by row and is not stored */
    struct rfx_stream_ring *rings;
};

/* What does not depend on the candidate, and scratch tables. */
struct rfx_plan_context {
    const struct rfx_graph *graph;
    const struct rfx_plan_request *request;
    int *last_use;
    size_t weights_bytes, scratch_bytes;
    uint64_t macs_untiled;
    struct rfx_axis_region *regions;
    struct rfx_record *records;
    size_t *live;
    const struct rfx_stream_choice *stream; /* of the candidate at hand; NULL: tiles */
    uint64_t *node_macs_tail;               /* MACs of nodes [i, n) run whole */
};

RFX_NODISCARD enum rfx_status rfx_plan_context_init(struct rfx_plan_context *context,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_plan_request *request,
                                                    struct rfx_error *err);
void rfx_plan_context_release(struct rfx_plan_context *context);

/* One axis of a tiling: extents per head node and the input overlap. */
struct rfx_axis_tiling {
    int64_t n;
    struct rfx_tile_extent *extents;
    struct rfx_tile_overlap overlap;
};

/* MACs of head tiles plus whole tail; or of the stream's rows; split -1: untiled. Streams ignore
 * rows, cols. */
uint64_t rfx_plan_count_macs(const struct rfx_plan_context *context, int split,
                             const struct rfx_axis_tiling *rows,
                             const struct rfx_axis_tiling *cols);

/* Fills context->records with the buffers of the plan and returns their number. */
int rfx_plan_list_records(struct rfx_plan_context *context, int split,
                          const struct rfx_axis_tiling *rows, const struct rfx_axis_tiling *cols);

/* Rows of the image that the source has to keep. */
int64_t rfx_plan_window_rows(const struct rfx_plan_context *context, int split,
                             const struct rfx_axis_tiling *rows,
                             const struct rfx_axis_tiling *cols);

/* Everything but the arena. */
size_t rfx_plan_fixed_bytes(const struct rfx_plan_context *context, int64_t window_rows);

/* Places the buffers and makes the plan. */
RFX_NODISCARD enum rfx_status rfx_plan_build(struct rfx_plan_context *context, int split,
                                             const struct rfx_axis_tiling *rows,
                                             const struct rfx_axis_tiling *cols,
                                             struct rfx_plan **out, struct rfx_error *err);
#endif
