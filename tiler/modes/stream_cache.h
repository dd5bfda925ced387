/* Row counts of all stages that stream from the image, computed by one walk per band height.
 *
 * The number of rows that a node of a stream has computed after some steps depends only on the
 * nodes before it. So one walk through all nodes that can be streamed gives the progress of the
 * nodes of every stage that begins at the image. A node must keep as many rows as the slowest of
 * its readers in the stage needs; the cache stores the rows for each reader. Not covered are stages
 * that begin at maps of earlier stages, and stages with maps of constants (RFX_OP_REPEAT), whose
 * rows follow the pace of their reader in the stage. */
#ifndef RFX_TILER_MODES_STREAM_CACHE_H
#define RFX_TILER_MODES_STREAM_CACHE_H

#include "tiler/plan/mode.h"

/* Returns the bytes of the cache for a graph; it starts zeroed. */
size_t rfx_stream_cache_bytes(const struct rfx_graph *graph);

/* Fills the rows of the computed nodes with the values of rfx_stream_measure. Returns false if the
 * cache does not cover the stage or has no free entry for another band height. O(edges), and one
 * walk for a new band height. */
bool rfx_stream_cache_rows(void *cache, const struct rfx_mode_measure *measure,
                           struct rfx_node_rows *rows);
#endif
