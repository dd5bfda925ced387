/* Where ranks exchange rows at the borders of their shares instead of computing the halos again.
 *
 * Rows can be exchanged at a cut: a map that everything behind it depends on through that map alone
 * (rf_analysis/part_cuts.h). There every rank computes its share of the rows and receives the rows
 * that it needs beyond them. Cuts divide the network into sections. The cost of a section is the
 * predicted time (tiler/cost/cost.h) of its slowest rank: computing the rows, moving them over a
 * link of a given bandwidth, writing and reading them. Of all chains of sections, including the one
 * without cuts, the one with the smallest sum is taken. Before a round of states the work of the
 * later rounds counts too, because they begin at this round's last cut. */
#ifndef RFX_TOOLS_MPI_EXCHANGE_CHOICE_H
#define RFX_TOOLS_MPI_EXCHANGE_CHOICE_H

#include "rf_analysis/part_graph.h"
#include "tiler/plan/plan.h"
#include "tools/cli/options.h"
#include "tools/mpi/ranks.h"

/* Of a longer list of cuts only every second, third, ... is considered. */
enum { RFX_EXCHANGE_MOST_CUTS = 64 };

/* Bandwidth of the link without --link-bandwidth; delay of a message; time to write or read one
 * byte of rows that wait in a file, which the system keeps in memory (0.1 to 0.5 ns were measured).
 */
#define RFX_EXCHANGE_LINK_BYTES 1e9
#define RFX_EXCHANGE_MESSAGE_NS 50e3
#define RFX_EXCHANGE_FILE_BYTE_NS 0.5

struct rfx_exchange {
    struct rfx_part_section ends;
    int n; /* number of cuts; 0: rows are not exchanged */
    int cuts[RFX_EXCHANGE_MOST_CUTS];
    bool asked; /* the cuts were named by --exchange, not chosen */
};

/* What the ranks make next: the next round's states or, when no round is left, the outputs. */
struct rfx_exchange_network {
    const struct rfx_graph *whole;
    const struct rfx_part_known *known; /* results of global operations so far */
    int n_known;
    struct rfx_part_section ends; /* from the map that they have rows of */
    int limit;                    /* cuts must come before this node: the next global operation */
    int rounds; /* later rounds of states, and the round of outputs, which begin where this one ends
                 */
    int threads;
    struct rfx_caches caches;
};

/* All ranks together; rank 0's options count. Returns the same exit code on all ranks, after a
 * message; USAGE: --exchange names something that is not a cut. */
RFX_NODISCARD int rfx_exchange_choose(struct rfx_ranks *ranks,
                                      const struct rfx_exchange_network *network,
                                      const struct rfx_cli_options *options,
                                      struct rfx_exchange *out);

/* Section s of the chain, 0 to n. */
struct rfx_part_section rfx_exchange_section(const struct rfx_exchange *exchange, int s);

/* Multiply-accumulates of a shard's graph; 0 of NULL. */
uint64_t rfx_exchange_macs(const struct rfx_graph *part);
#endif
