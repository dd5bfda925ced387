/* Row counts of all stages that stream from the image, from one walk for each band height.
 *
 * How many rows a node of a stream has computed after some steps depends only on the nodes before
 * it. So one walk through everything that can be streamed tells how the nodes of every stage that
 * begins at the image progress. The rows that a node has to keep are the most that any of its
 * readers in the stage needs, which the cache stores per reader. Not covered: stages that begin at
 * maps of earlier stages, and stages with maps of constants (RFX_OP_REPEAT), which follow the pace
 * of their reader in the stage. */
#ifndef RFX_TILER_MODES_STREAM_CACHE_H
#define RFX_TILER_MODES_STREAM_CACHE_H

#include "tiler/plan/mode.h"

/* Returns the bytes of the cache for a graph; it starts zeroed. */
size_t rfx_stream_cache_bytes(const struct rfx_graph *graph);

/* Fills rows of the computed nodes as rfx_stream_measure would. Returns false when the cache does
 * not cover the stage, or has no room for another band height. O(edges), and one walk when a band
 * height is new. */
bool rfx_stream_cache_rows(void *cache, const struct rfx_mode_measure *measure,
                           struct rfx_node_rows *rows);
#endif
