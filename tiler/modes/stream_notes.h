/* Rows of all stages that stream from the image, from one walk for each height of bands.
 *
 * How far a node of a stream is after so many steps hangs on what is before it alone. So one walk
 * through all that can be streamed tells of every stage that begins at the image how its nodes move
 * on; what a node has to keep is the most that one of its readers in the stage asks for, which is
 * noted reader by reader. It does not know of stages that begin at maps of earlier stages, nor of
 * those with maps of constants (RFX_OP_REPEAT), which keep the pace of their reader in the stage. */
#ifndef RFX_TILER_MODES_STREAM_NOTES_H
#define RFX_TILER_MODES_STREAM_NOTES_H

#include "tiler/plan/mode.h"

/* Bytes of the notes of a graph, which begin as zeros. */
size_t rfx_stream_notes_bytes(const struct rfx_graph *graph);

/* Fills rows of the nodes that are computed as rfx_stream_measure would; false: the stage is
 * another one than these, or there are no notes of so many heights. O(edges), and a walk when a
 * height is new. */
bool rfx_stream_notes_rows(void *notes, const struct rfx_mode_measure *measure,
                           struct rfx_node_rows *rows);
#endif
