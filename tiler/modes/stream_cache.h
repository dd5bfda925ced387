/* TODO */
#ifndef RFX_TILER_MODES_STREAM_CACHE_H
#define RFX_TILER_MODES_STREAM_CACHE_H

#include "tiler/plan/mode.h"

/* Bytes of the notes of a graph, which begin as zeros. */
size_t rfx_stream_cache_bytes(const struct rfx_graph *graph);

/* Fills rows of the nodes that are computed as rfx_stream_measure would; false: the stage is
 * another one than these, or there are no notes of so many heights. O(edges), and a walk when a
 * height is new. */
bool rfx_stream_cache_rows(void *cache, const struct rfx_mode_measure *measure,
                           struct rfx_node_rows *rows);
#endif
