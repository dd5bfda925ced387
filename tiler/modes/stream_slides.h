/* Computes where a stream may write a map over another map that it reads.
 *
 * Both maps are processed from the first row to the last. If the map that is read begins a certain
 * number of bytes above the map that is written, new rows never overwrite rows that are still read.
 * That number depends only on the receptive field, no matter how far the nodes between the two maps
 * run ahead. */
#ifndef RFX_TILER_MODES_STREAM_SLIDES_H
#define RFX_TILER_MODES_STREAM_SLIDES_H

#include "tiler/plan/mode.h"

/* Returns whether every reader of the map of `before` in the stage is the stored map of `after` or
 * is computed for it. marks: scratch of n_nodes. O(edges of the stage after `before`). */
bool rfx_stream_reads_for(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                          int before, int after, int64_t *marks);

/* Returns whether `after` itself reads the map of `before`, not only nodes computed from it. */
bool rfx_stream_reads(const struct rfx_graph *graph, int before, int after);

/* Returns the lag in bytes, which may be negative. For each row of `after`, take the bytes of
 * `after` up to this row, minus the bytes of `before` that are no longer needed when the row is
 * computed; the lag is the largest of these differences. Unless `after` reads `before` itself, the
 * row after the last one counts too. scratch: 2 * n_nodes. If the rows that are read advance
 * evenly, only rows near the borders are examined. Otherwise a sample of rows is examined, and the
 * worse neighbour stands for the rows between. */
int64_t rfx_stream_lag(const struct rfx_graph *graph, int before, int after, int64_t *scratch);

/* Returns whether no row of `before` is read any more once all rows of `after` are computed.
 * scratch as above. */
bool rfx_stream_ends_with(const struct rfx_graph *graph, int before, int after, int64_t *scratch);
#endif
