/* A rank's way through the network, section by section (exchange_choice.h): of each cut it makes
 * its share of the rows, which wait in a file without a name, and is sent those that the next
 * section reads beyond them. The last section makes its share of the outputs; without cuts it is
 * the only one.
 *
 * Invariant: every section is planned inside the budget before the first is run. */
#ifndef RFX_TOOLS_MPI_RANK_SECTIONS_H
#define RFX_TOOLS_MPI_RANK_SECTIONS_H

#include "rfexec/session/session.h"
#include "tools/cli/job.h"
#include "tools/mpi/exchange_choice.h"
#include "tools/mpi/row_store.h"

struct rfx_rank_sections {
    struct rfx_ranks *ranks;
    const struct rfx_cli_options *options;
    struct rfx_cli_job *job; /* its graph: the whole one; while a section is planned that one's */
    const struct rfx_part_known *known;
    int n_known;
    size_t outputs_bytes; /* that the last section's outputs hold */

    struct rfx_exchange exchange;
    struct rfx_graph *graphs[RFX_EXCHANGE_MOST_CUTS + 1]; /* NULL: nothing for this rank */
    struct rfx_plan *plans[RFX_EXCHANGE_MOST_CUTS + 1];
    struct rfx_row_store *store; /* that the section at hand reads; NULL: the image */
    struct rfx_image *picture;   /* of the store */
    uint64_t macs, received;     /* of the sections that were run; bytes from others */
    double seconds;
    int64_t macs_saved; /* by shapes, against making halos again; of this rank alone may be < 0 */
};

/* All ranks together: chooses the exchange and plans all sections. Where cuts that were not asked
 * for by name do not fit the budget on some rank there are none. Returns an exit code, the same on
 * all ranks. rfx_rank_sections_release may follow whatever it is. */
RFX_NODISCARD int rfx_rank_sections_plan(struct rfx_rank_sections *sections);

/* All ranks together: runs all sections but the last. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_run(struct rfx_rank_sections *sections,
                                                    struct rfx_error *err);

/* What the last section reads. */
struct rfx_image *rfx_rank_sections_image(const struct rfx_rank_sections *sections);

void rfx_rank_sections_release(struct rfx_rank_sections *sections);
#endif
