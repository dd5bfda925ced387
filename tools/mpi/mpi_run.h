/* rfexec run by several processes, each of which makes a share of every output. */
#ifndef RFX_TOOLS_MPI_MPI_RUN_H
#define RFX_TOOLS_MPI_MPI_RUN_H

#include "rfexec/shards/shard_states.h"
#include "tools/cli/options.h"
#include "tools/mpi/ranks.h"

/* All ranks together, with the same options. Rank 0 prints the result. Returns the same exit code
 * on all ranks. */
RFX_NODISCARD int rfx_mpi_run(struct rfx_ranks *ranks, const struct rfx_cli_options *options);
#endif
