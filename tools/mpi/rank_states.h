/* States of global operations that all ranks have a share of, added up by messages: what 'rfexec
 * merge' does with files. */
#ifndef RFX_TOOLS_MPI_RANK_STATES_H
#define RFX_TOOLS_MPI_RANK_STATES_H

#include "tools/mpi/ranks.h"
#include "tools/parts/files/state_file.h"

/* Adds the states of this round of all ranks, which have the same list, up; then all have the sum,
 * to the byte. A state is exact, so no order of adding shows. Takes once more the largest state. */
RFX_NODISCARD enum rfx_status rfx_rank_states_merge(struct rfx_ranks *ranks,
                                                    const struct rfx_graph *graph,
                                                    struct rfx_part_states *states,
                                                    struct rfx_error *err);
#endif
