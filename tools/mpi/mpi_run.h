/* rfexec run, by several processes that each make a share. */
#ifndef RFX_TOOLS_MPI_MPI_RUN_H
#define RFX_TOOLS_MPI_MPI_RUN_H

#include "tools/mpi/exchange_choice.h"
#include "tools/mpi/ranks.h"

/* All ranks together, with the same options. Prints the result on rank 0. Returns an exit code, the
 * same on all ranks. */
RFX_NODISCARD int rfx_mpi_run(struct rfx_ranks *ranks, const struct rfx_mpi_options *options);
#endif
