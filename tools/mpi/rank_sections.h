/* A rank's way through the network, section by section (exchange_choice.h): of each cut it makes
 * its share of the rows, which wait in a file without a name, and is sent those that the next
 * section reads beyond them. A round of states, and in the end the outputs, are made from the last
 * cut that was reached, or from the image.
 *
 * Invariant: the sections on the way to a round or to the outputs are planned inside the budget
 * before the first of them is run. */
#ifndef RFX_TOOLS_MPI_RANK_SECTIONS_H
#define RFX_TOOLS_MPI_RANK_SECTIONS_H

#include "rfexec/session/session.h"
#include "tools/cli/job.h"
#include "tools/mpi/exchange_choice.h"
#include "tools/mpi/row_store.h"
#include "tools/parts/part_round.h"

struct rfx_rank_sections {
    struct rfx_ranks *ranks;
    const struct rfx_mpi_options *options;
    struct rfx_cli_job *job; /* its graph: the whole one; while a section is planned that one's */
    size_t outputs_bytes;    /* that outputs hold while they are made */

    const struct rfx_part_before *before; /* of the way at hand */
    struct rfx_exchange exchange;
    struct rfx_graph *graphs[RFX_EXCHANGE_MOST_CUTS + 1]; /* NULL: nothing for this rank */
    struct rfx_plan *plans[RFX_EXCHANGE_MOST_CUTS + 1];
    struct rfx_part_round round;   /* at the end of the way: planned */
    struct rfx_part_states states; /* of it */
    char what[64];                 /* it is called so while it runs */
    struct rfx_error refused;      /* why another way does not fit the budget */

    struct rfx_row_sums *sums; /* of the image rows that a section reads; NULL: none does now */
    struct rfx_rect sums_rect;

    int from;                    /* the last cut that was reached, or RFX_PART_OUTER */
    struct rfx_row_store *store; /* of its rows; NULL: the image */
    struct rfx_image *picture;   /* of the store */
    int64_t window_rows;         /* that the image holds since it was read */

    int cuts[RFX_EXCHANGE_MOST_CUTS],
        n_cuts;              /* that were reached; listed as far as there is room */
    uint64_t macs, received; /* of the sections that were run; bytes from others */
    double seconds;
    int64_t macs_saved; /* by shapes, against starting at the image with halos made again */
};

/* All ranks together: chooses where rows are exchanged on the way to the next round of states
 * (`to`: RFX_PART_STATES) or to the outputs (RFX_PART_OUTER), and plans the sections. Where cuts
 * that were not asked for by name do not fit the budget on some rank there are none, and the way
 * begins at the image. Returns an exit code, the same on all ranks. rfx_rank_sections_release may
 * follow whatever it is. */
RFX_NODISCARD int rfx_rank_sections_plan(struct rfx_rank_sections *sections,
                                         const struct rfx_part_before *before, int to);

/* All ranks together: runs all sections but the last. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_run(struct rfx_rank_sections *sections,
                                                    struct rfx_error *err);

/* The last section, of states: this rank's share of them, into `states`. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_round(struct rfx_rank_sections *sections,
                                                      struct rfx_error *err);

/* What the last section, of outputs, reads. */
struct rfx_image *rfx_rank_sections_image(const struct rfx_rank_sections *sections);

/* Before and after a section that reads the image: what this rank reads of it is summed up, then
 * compared with what others have read; the job ends where they differ. All ranks together. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_begin_sums(struct rfx_rank_sections *sections,
                                                           int i, struct rfx_error *err);
void rfx_rank_sections_compare_sums(struct rfx_rank_sections *sections);

/* Graphs, plans and rows are kept until then; `states` are the caller's. */
void rfx_rank_sections_release(struct rfx_rank_sections *sections);
#endif
