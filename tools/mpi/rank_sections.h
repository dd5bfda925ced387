/* A rank's way through the network, section by section, and where ranks exchange rows at the
 * borders of their shares instead of computing the halos again.
 *
 * Rows can be exchanged at a cut: a map that everything behind it depends on through that map alone
 * (rf_analysis/part_ends.h). Cuts divide the network into sections. At the end of a section a rank
 * has its share of the rows of the next cut, which wait in a file without a name, and receives the
 * rows that the next section needs beyond them. A round of states, and finally the outputs, are
 * made from the last cut reached, or from the image.
 *
 * The cost of a section is the predicted time (tiler/cost/cost.h) of its slowest rank: computing
 * the rows, moving them over a link of a given bandwidth, writing and reading them. Of all chains
 * of sections, including the one without cuts, the one with the smallest sum is taken. Before a
 * round of states the work of the later rounds counts too, because they begin at this round's last
 * cut. */
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

/* Of a longer list of cuts only every second, third, ... is considered. */
enum { RFX_EXCHANGE_MOST_CUTS = 64 };

struct rfx_exchange {
    struct rfx_part_section ends;
    int n; /* number of cuts; 0: rows are not exchanged */
    int cuts[RFX_EXCHANGE_MOST_CUTS];
    bool asked; /* the cuts were named by --exchange, not chosen */
};

/* What rfexec-mpi is asked. */
struct rfx_mpi_options {
    struct rfx_cli_run_options run;
    const char *exchange; /* maps of which ranks exchange rows: auto (NULL), never or tensors */
    size_t link_bytes;    /* bytes a second between ranks; 0: not given */
};

struct rfx_rank_sections {
    struct rfx_ranks *ranks;
    const struct rfx_mpi_options *options;
    /* Its graph: the whole network's, and a section's while that is planned. */
    struct rfx_cli_job *job;
    size_t outputs_bytes; /* that the outputs hold while they are made */

    const struct rfx_shard_before *before; /* the rounds before this way */
    struct rfx_exchange exchange;
    struct rfx_graph *graphs[RFX_EXCHANGE_MOST_CUTS + 1]; /* NULL: this rank has nothing to do */
    struct rfx_plan *plans[RFX_EXCHANGE_MOST_CUTS + 1];
    struct rfx_shard_round round;   /* the planned round at the end of the way */
    struct rfx_shard_states states; /* of that round */
    char what[64];                  /* how the progress bar calls it */
    struct rfx_error refused;       /* why another way does not fit the budget */

    struct rfx_row_sums *sums; /* of the image rows that a section reads; NULL: none reads now */
    struct rfx_rect sums_rect;

    int from;                    /* the last cut reached, or RFX_PART_OUTER */
    struct rfx_row_store *store; /* of its rows; NULL: the image */
    struct rfx_image *map_image; /* of the store */
    int64_t window_rows;         /* that the image has kept since it was read */

    int cuts[RFX_EXCHANGE_MOST_CUTS], n_cuts; /* reached so far, as far as there is room */
    uint64_t macs, received; /* of the sections run so far; bytes from other ranks */
    double seconds;
    int64_t macs_saved; /* by shapes: less than from the image with halos computed again */
};

/* All ranks together: chooses where rows are exchanged on the way to the next round of states
 * (`to`: RFX_PART_STATES) or to the outputs (RFX_PART_OUTER), and plans all sections inside the
 * budget before the first is run. Where chosen cuts do not fit the budget of some rank, the way
 * begins at the image without cuts; cuts named by --exchange stay. Returns the same exit code on
 * all ranks. rfx_rank_sections_release may follow whatever it is. */
RFX_NODISCARD int rfx_rank_sections_plan(struct rfx_rank_sections *sections,
                                         const struct rfx_shard_before *before, int to);

/* All ranks together: runs all sections but the last. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_run(struct rfx_rank_sections *sections,
                                                    struct rfx_error *err);

/* Runs the last section, a round of states; this rank's share comes into `states`. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_round(struct rfx_rank_sections *sections,
                                                      struct rfx_error *err);

/* What the last section, that of the outputs, reads. */
struct rfx_image *rfx_rank_sections_image(const struct rfx_rank_sections *sections);

/* Before and after a section that reads the image. Begin sums up the rows that this rank reads;
 * compare checks them against the other ranks' rows and ends the job where they differ. All ranks
 * together. */
RFX_NODISCARD enum rfx_status rfx_rank_sections_begin_sums(struct rfx_rank_sections *sections,
                                                           int i, struct rfx_error *err);
void rfx_rank_sections_compare_sums(struct rfx_rank_sections *sections);

/* Frees graphs, plans and rows; `states` are the caller's. */
void rfx_rank_sections_release(struct rfx_rank_sections *sections);
#endif
