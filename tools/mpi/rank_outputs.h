/* What ranks do with the outputs that they have shares of.
 *
 * A .npy that has a name of its own in a folder is written by all ranks, each its rows
 * (shared_file.h). Every other file (TIFF, PNG, standard output, a device) is rank 0's: the others
 * keep their shares in nameless files and send them to it, in bands, when it has made its own. What
 * is no map is rank 0's alone.
 * Invariants: 1. fingerprint and file are those of one process, whatever the number of ranks;
 * 2. files get their names after all ranks have succeeded, and when every element has come once. */
#ifndef RFX_TOOLS_MPI_RANK_OUTPUTS_H
#define RFX_TOOLS_MPI_RANK_OUTPUTS_H

#include "rfexec/output/output_spool.h"
#include "rfexec/session/session.h"
#include "tools/cli/outputs.h"
#include "tools/mpi/shared_file.h"

struct rfx_rank_outputs {
    struct rfx_ranks *ranks;
    struct rfx_memory *mem;
    const struct rfx_graph *whole;
    const struct rfx_cli_run_options *options;
    const struct rfx_geo_source *source; /* of the image, as rfx_cli_outputs_open takes it */
    const char *folder;                  /* for shares that wait */
    struct rfx_cli_outputs outputs;      /* of the whole network, this rank's streams */
    struct rfx_shared_file **shared;     /* per output; NULL: it has none */
    struct rfx_npy_target *targets;      /* per output */
    struct rfx_output_spool **waiting;   /* per end: this rank's share; NULL: none waits */
    float *band;                         /* of rows that are sent */
    int *ends;                           /* of the whole graph, per end of the share's graph */
};

/* Bytes that it holds while the network runs. */
size_t rfx_rank_outputs_bytes(const struct rfx_ranks *ranks, const struct rfx_graph *whole,
                              const struct rfx_cli_run_options *options,
                              const struct rfx_geo_source *source);

/* Whether the files of -o can be made, before hours of rounds: opens and drops those of rank 0.
 * Returns an exit code that all ranks agree on. */
RFX_NODISCARD int rfx_rank_outputs_check(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                         const struct rfx_graph *whole,
                                         const struct rfx_cli_run_options *options);

/* All ranks together: opens everything. Returns an exit code, the same on all ranks, after a
 * message. rfx_rank_outputs_free may follow whatever it is. */
RFX_NODISCARD int rfx_rank_outputs_open(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                        const struct rfx_graph *whole,
                                        const struct rfx_cli_run_options *options,
                                        const struct rfx_geo_source *source,
                                        struct rfx_rank_outputs *outputs);

/* Takes the outputs of this rank's share; valid as long as the outputs. */
struct rfx_output_sink rfx_rank_outputs_sink(struct rfx_rank_outputs *outputs);

/* All ranks together, after the run: shares that wait go to rank 0, hashes are added up
 * there, files are completed. Returns an exit code as open does. */
RFX_NODISCARD int rfx_rank_outputs_finish(struct rfx_rank_outputs *outputs);

void rfx_rank_outputs_free(struct rfx_rank_outputs *outputs);
#endif
