/* Rows of a map move from the ranks that have made them to those that read them. */
#ifndef RFX_TOOLS_MPI_ROW_EXCHANGE_H
#define RFX_TOOLS_MPI_ROW_EXCHANGE_H

#include "layers/graph/graph.h"
#include "tools/mpi/ranks.h"
#include "tools/mpi/row_store.h"

/* Bytes that moving rows of such a map takes while it goes on. */
size_t rfx_row_exchange_bytes(const struct rfx_ranks *ranks, const struct rfx_tensor *map);

/* All ranks together, each with the rows of its share (rfx_part_map_rows) in its store, whose rows
 * include those that it needs: `need`, which may be empty. Then they are there. The store may be
 * NULL where the rank has no rows and needs none. *received: bytes that came from other ranks. */
RFX_NODISCARD enum rfx_status rfx_row_exchange(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                               const struct rfx_graph *whole, int map,
                                               struct rfx_range need, struct rfx_row_store *store,
                                               uint64_t *received, struct rfx_error *err);
#endif
