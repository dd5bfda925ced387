/* Where a stream may write a map that it stores over one that it reads.
 *
 * Both are in rows, made and read from the first to the last: what is written of the one lies below
 * what is still read of the other as long as the other begins so many bytes higher. How many
 * follows from the receptive field alone, however far ahead of each other the nodes between them
 * are. */
#ifndef RFX_TILER_MODES_STREAM_SLIDES_H
#define RFX_TILER_MODES_STREAM_SLIDES_H

#include "tiler/plan/mode.h"

/* Whether all that reads the map of `before` in a stage is the stored map of `after`, or is made
 * for it. marks: scratch of n_nodes. O(edges of the stage behind `before`). */
bool rfx_stream_reads_for(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                          int before, int after, int64_t *marks);

/* Whether `after` itself reads the map of `before`, not only what is made of it. */
bool rfx_stream_reads(const struct rfx_graph *graph, int before, int after);

/* Bytes by which `after`, up to a row, may be longer than what is dead of `before` when that row's
 * turn comes, at most; may be less than 0. Unless `after` reads `before` itself, that holds for the
 * row behind the last one, too. scratch: 2 * n_nodes. Where the rows that are read go on
 * evenly only those near the borders are looked at; else some rows, spread over all, those between
 * taken for the worse of their neighbours. */
int64_t rfx_stream_lag(const struct rfx_graph *graph, int before, int after, int64_t *scratch);

/* Whether nothing of `before` is read any more once all rows of `after` are made. scratch as above.
 */
bool rfx_stream_ends_with(const struct rfx_graph *graph, int before, int after, int64_t *scratch);
#endif
