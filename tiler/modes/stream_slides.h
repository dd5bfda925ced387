/* Where a stream may write a map that it stores over a map that it reads.
 *
 * Both maps are made and read from the first row to the last. The new rows of one map lie below the
 * rows of the other that are still read, as long as the other map begins a certain number of bytes
 * higher. That number follows from the receptive field alone, no matter how far the nodes between
 * the two maps are ahead of each other. */
#ifndef RFX_TILER_MODES_STREAM_SLIDES_H
#define RFX_TILER_MODES_STREAM_SLIDES_H

#include "tiler/plan/mode.h"

/* Returns whether every reader of the map of `before` in the stage is the stored map of `after` or
 * is computed for it. marks: scratch of n_nodes. O(edges of the stage behind `before`). */
bool rfx_stream_reads_for(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                          int before, int after, int64_t *marks);

/* Returns whether `after` itself reads the map of `before`, not only nodes computed from it. */
bool rfx_stream_reads(const struct rfx_graph *graph, int before, int after);

/* Returns the lag: the largest number of bytes by which `after`, up to some row, is longer than the
 * part of `before` that is no longer needed when that row is computed. May be negative. Unless
 * `after` reads `before` itself, the row behind the last one counts too. scratch: 2 * n_nodes.
 * Where the rows that are read advance evenly, only rows near the borders are looked at; elsewhere
 * a sample of rows, with the worse neighbour standing for the rows between. */
int64_t rfx_stream_lag(const struct rfx_graph *graph, int before, int after, int64_t *scratch);

/* Returns whether no row of `before` is read any more once all rows of `after` are computed.
 * scratch as above. */
bool rfx_stream_ends_with(const struct rfx_graph *graph, int before, int after, int64_t *scratch);
#endif
