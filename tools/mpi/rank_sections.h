/* Runs a rank's share of the network in sections. Between sections, ranks exchange rows at the
 * borders of their shares instead of computing the halos twice.
 *
 * Rows can be exchanged at a cut: a map such that all later layers depend on the image only through
 * this map (rf_analysis/part_ends.h). Cuts divide the network into sections. At the end of a
 * section a rank has its share of the rows of the next cut, in a file without a name. The rank then
 * receives the further rows that the next section needs. A round of states, and finally the
 * outputs, are computed from the last cut reached, or from the image.
 *
 * The cost of a section is the predicted time (tiler/cost/cost.h) of its slowest rank: computing
 * the rows, moving them over a link of a given bandwidth, writing and reading them. The chain of
 * sections with the smallest sum of costs is chosen; the chain without cuts is a candidate too.
 * Before a round of states the cost includes the work of the later rounds, because they begin at
 * this round's last cut. */
#ifndef RFX_TOOLS_MPI_RANK_SECTIONS_H
#define RFX_TOOLS_MPI_RANK_SECTIONS_H

#include "rf_analysis/part_graph.h"
#include "rfexec/image/row_sums.h"
#include "rfexec/run/session.h"
#include "rfexec/shards/shard_rounds.h"
#include "tiler/plan/plan.h"
#include "tools/cli/job.h"
#include "tools/cli/options.h"
#include "tools/mpi/rank_rows.h"
#include "tools/mpi/ranks.h"

/* Largest number of cuts. If a network has more, only every second (third, ...) cut is considered.
 */
enum { RFX_EXCHANGE_MOST_CUTS = 64 };

struct rfx_exchange {
    struct rfx_part_section ends;
    int n; /* number of cuts; 0: rows are not exchanged */
    int cuts[RFX_EXCHANGE_MOST_CUTS];
    bool asked; /* the cuts were named by --exchange, not chosen */
};

/* Options of rfexec-mpi. */
struct rfx_mpi_options {
    struct rfx_cli_run_options run;
    const char *exchange; /* maps whose rows ranks exchange: auto (NULL), never, or tensor names */
    size_t link_bytes;    /* bytes a second between ranks; 0: not given */
};

struct rfx_rank_sections {
    struct rfx_ranks *ranks;
    const struct rfx_mpi_options *options;
    /* job->graph: the whole network; while a section is planned, the section. */
    struct rfx_cli_job *job;
    size_t outputs_bytes; /* that the outputs hold while they are made */

    const struct rfx_shard_before *before; /* the rounds of states completed before */
    struct rfx_exchange exchange;
    struct rfx_graph *graphs[RFX_EXCHANGE_MOST_CUTS + 1]; /* NULL: this rank has nothing to do */
    struct rfx_plan *plans[RFX_EXCHANGE_MOST_CUTS + 1];
    struct rfx_shard_round round;   /* the planned round after the last section */
    struct rfx_shard_states states; /* states of that round */
    char what[64];                  /* word before the progress bar */
    struct rfx_error refused;       /* reason why another choice of cuts exceeds the budget */

    struct rfx_row_sums *sums; /* of the image rows that a section reads; NULL: none reads now */
    struct rfx_rect sums_rect;

    int from;                    /* the last cut reached, or RFX_PART_OUTER */
    struct rfx_row_store *store; /* rows of the last cut; NULL: the image is read */
    struct rfx_image *map_image; /* image of the store */
    int64_t window_rows;         /* rows in the image's window since it was read */

    int cuts[RFX_EXCHANGE_MOST_CUTS], n_cuts; /* reached so far, as far as there is room */
    uint64_t macs, received; /* of the sections run so far; bytes from other ranks */
    double seconds;
    int64_t macs_saved; /* MACs saved against computing halos again from the image; from shapes */
};

/* Chooses the cuts up to the next round of states (`to`: RFX_PART_STATES) or up to the outputs
 * (RFX_PART_OUTER). Plans all sections within the budget before the first one is run. All ranks
 * must call it together. If chosen cuts exceed the budget of any rank, the ranks start from the
 * image without cuts; cuts named by --exchange are kept. Returns the same exit code on all ranks.
 * rfx_rank_sections_release may be called after any exit code. */
RFX_NODISCARD int rfx_rank_sections_plan(struct rfx_rank_sections *sections,
                                         const struct rfx_shard_before *before, int to);

/* Runs all sections except the last. All ranks must call it together. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_run(struct rfx_rank_sections *sections,
                                                    struct rfx_error *err);

/* Runs the last section, a round of states. Stores this rank's contribution in sections->states. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_round(struct rfx_rank_sections *sections,
                                                      struct rfx_error *err);

/* Returns the image that the last section, which computes the outputs, reads. */
struct rfx_image *rfx_rank_sections_image(const struct rfx_rank_sections *sections);

/* Called by all ranks together before and after a section that reads the image. The first function
 * starts checksums of the image rows that this rank reads. The second compares the checksums with
 * those of the other ranks and ends the job when they differ. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_begin_sums(struct rfx_rank_sections *sections,
                                                           int i, struct rfx_error *err);
void rfx_rank_sections_compare_sums(struct rfx_rank_sections *sections);

/* Frees graphs, plans and rows. The caller owns `states`. */
void rfx_rank_sections_release(struct rfx_rank_sections *sections);
#endif
