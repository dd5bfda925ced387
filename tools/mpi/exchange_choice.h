/* Where ranks exchange rows instead of making the halos again.
 *
 * At a cut, a map that all goes through (rf_analysis/part_cuts.h), every rank makes its share of
 * the rows, and gets from others those that it needs beyond. Which cuts pay follows from predicted
 * time (tiler/cost/cost.h): of each section between two of them what its slowest rank takes to make
 * its rows, to move them over a link of so many bytes a second, and to write and read them. Of all
 * chains of sections, that without cuts among them, the one with the smallest sum is taken. Before
 * a round of states also counts what the rounds after it make again: they begin at its last cut. */
#ifndef RFX_TOOLS_MPI_EXCHANGE_CHOICE_H
#define RFX_TOOLS_MPI_EXCHANGE_CHOICE_H

#include "rf_analysis/part_graph.h"
#include "tiler/plan/plan.h"
#include "tools/cli/options.h"
#include "tools/mpi/ranks.h"

/* More are not looked at: of a longer list every second, third, ... map. */
enum { RFX_EXCHANGE_MOST_CUTS = 64 };

/* Of the link between ranks, where --link-bandwidth does not say else; what a message waits; a byte
 * of rows that wait in a file, written or read, which the system keeps in memory (0.1 to 0.5 ns
 * were measured). */
#define RFX_EXCHANGE_LINK_BYTES 1e9
#define RFX_EXCHANGE_MESSAGE_NS 50e3
#define RFX_EXCHANGE_FILE_BYTE_NS 0.5

/* What rfexec-mpi is asked. */
struct rfx_mpi_options {
    struct rfx_cli_run_options run;
    const char *exchange; /* maps of which ranks exchange rows: auto (NULL), never or tensors */
    size_t link_bytes;    /* a second, between ranks; 0: not given */
};

struct rfx_exchange {
    struct rfx_part_section ends;
    int n; /* cuts between; 0: none */
    int cuts[RFX_EXCHANGE_MOST_CUTS];
    bool asked; /* for by name: not the planner's choice */
};

/* What ranks are about to make: the next round's states or, when no round is left, the outputs. */
struct rfx_exchange_network {
    const struct rfx_graph *whole;
    const struct rfx_part_known *known; /* results of global operations */
    int n_known;
    struct rfx_part_section ends; /* from what they have rows of */
    int limit;                    /* cuts are before this node: the first global operation left */
    int rounds;                   /* of states, and the one of outputs, that come after this one and
                                     begin where it ends */
    int threads;
    struct rfx_caches caches;
};

/* All ranks together: rank 0's options count. Returns an exit code, the same on all ranks, after a
 * message; USAGE: --exchange names no cut. */
RFX_NODISCARD int rfx_exchange_choose(struct rfx_ranks *ranks,
                                      const struct rfx_exchange_network *network,
                                      const struct rfx_mpi_options *options,
                                      struct rfx_exchange *out);

/* Section s of the chain, from 0 to n. */
struct rfx_part_section rfx_exchange_section(const struct rfx_exchange *exchange, int s);

/* Multiply-accumulates of what is wanted of a part's graph; of NULL none. */
uint64_t rfx_exchange_macs(const struct rfx_graph *part);
#endif
