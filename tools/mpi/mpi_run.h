/* States of global operations that all ranks have a share of, added up by messages: what 'rfexec
 * merge' does with files. */
/* rfexec run, by several processes that each make a share. */
#ifndef RFX_TOOLS_MPI_MPI_RUN_H
#define RFX_TOOLS_MPI_MPI_RUN_H

#include "rfexec/shards/shard_states.h"
#include "tools/cli/options.h"
#include "tools/mpi/ranks.h"

/* All ranks together, with the same options. Prints the result on rank 0. Returns an exit code, the
 * same on all ranks. */
RFX_NODISCARD int rfx_mpi_run(struct rfx_ranks *ranks, const struct rfx_cli_options *options);
#endif
