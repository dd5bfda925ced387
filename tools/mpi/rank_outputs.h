/* Writes the outputs of a run by several MPI ranks. A rank's share of an output is the part of its
 * rows that the rank computes.
 *
 * An .npy file with a name in a folder is written by all ranks through MPI, each its own rows, into
 * one temporary file that gets the final name at the end. All ranks must see the folder. Every
 * other file (TIFF, PNG, standard output, a device) is written by rank 0: the other ranks keep
 * their shares in files without names and send them, band by band, when the network has run. An
 * output that is not a map is computed by rank 0 alone. Invariants: 1. fingerprints and files are
 * the same as in a run by one process, whatever the number of ranks; 2. a file gets its name after
 * all ranks have succeeded and every element was received once; 3. when the job ends early,
 * temporary files without a name vanish, and a temporary file with a name is removed by any rank
 * that still runs, even in a signal handler. */
#ifndef RFX_TOOLS_MPI_RANK_OUTPUTS_H
#define RFX_TOOLS_MPI_RANK_OUTPUTS_H

#include "layers/core/memory.h"
#include "rfexec/output/output_spool.h"
#include "rfexec/run/session.h"
#include "tools/cli/outputs.h"
#include "tools/mpi/ranks.h"

struct rfx_shared_file;

struct rfx_rank_outputs {
    struct rfx_ranks *ranks;
    struct rfx_memory *mem;
    const struct rfx_graph *whole;
    const struct rfx_cli_run_options *options;
    const struct rfx_geo_source *source; /* georeference, as for rfx_cli_outputs_open */
    const char *folder;                  /* folder for the files of waiting shares */
    struct rfx_cli_outputs outputs;      /* outputs of the whole network, this rank's streams */
    struct rfx_shared_file **shared;     /* [outputs] files that all ranks write; NULL: none */
    struct rfx_npy_target *targets;      /* [outputs] */
    struct rfx_output_spool *
        *waiting; /* [ends] this rank's share for rank 0; NULL: nothing waits */
    float *band;  /* rows on their way to rank 0 */
    int *ends;    /* [ends of the share's graph] which end of the whole graph each is */
};

/* Returns the bytes of memory that the outputs take while the network runs. */
size_t rfx_rank_outputs_bytes(const struct rfx_ranks *ranks, const struct rfx_graph *whole,
                              const struct rfx_cli_run_options *options,
                              const struct rfx_geo_source *source);

/* Checks, before rounds that may take hours, that the files of -o can be created: rank 0 opens and
 * discards them. Returns the same exit code on all ranks. */
RFX_NODISCARD int rfx_rank_outputs_check(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                         const struct rfx_graph *whole,
                                         const struct rfx_cli_run_options *options);

/* Opens all files and buffers. All ranks must call it together. Returns the same exit code on all
 * ranks; prints a message when it is not RFX_EXIT_DONE. rfx_rank_outputs_free may be called after
 * any exit code. */
RFX_NODISCARD int rfx_rank_outputs_open(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                        const struct rfx_graph *whole,
                                        const struct rfx_cli_run_options *options,
                                        const struct rfx_geo_source *source,
                                        struct rfx_rank_outputs *outputs);

/* Returns a sink for the outputs of this rank's share. Valid as long as `outputs`. */
struct rfx_output_sink rfx_rank_outputs_sink(struct rfx_rank_outputs *outputs);

/* Called after the run by all ranks together. Sends waiting shares to rank 0, adds up the
 * fingerprints on rank 0, and completes the files. Returns the same exit code on all ranks. */
RFX_NODISCARD int rfx_rank_outputs_finish(struct rfx_rank_outputs *outputs);

void rfx_rank_outputs_free(struct rfx_rank_outputs *outputs);
#endif
