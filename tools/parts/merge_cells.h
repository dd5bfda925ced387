/* rfexec merge, of parts that are cells of an output joined of several maps. */
#ifndef RFX_TOOLS_PARTS_MERGE_CELLS_H
#define RFX_TOOLS_PARTS_MERGE_CELLS_H

#include "rfexec/output/output_stream.h"
#include "tools/cli/progress.h"
#include "tools/parts/merge_parts.h"

/* The whole output. */
struct rfx_tensor rfx_merge_cells_tensor(const struct rfx_merge_parts *parts);

/* Writes all parts, each of which is checked, into the stream of that tensor. */
RFX_NODISCARD enum rfx_status rfx_merge_cells(struct rfx_merge_parts *parts,
                                              struct rfx_output_stream *stream,
                                              struct rfx_cli_progress *progress,
                                              struct rfx_error *err);
#endif
