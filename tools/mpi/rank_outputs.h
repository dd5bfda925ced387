/* What ranks do with their shares of the outputs.
 *
 * An .npy file with a name in a folder is written by all ranks through MPI, each its own rows, into
 * one temporary file that gets the final name at the end. All ranks must see the folder. Every
 * other file (TIFF, PNG, standard output, a device) is written by rank 0: the other ranks keep
 * their shares in files without names and send them, band by band, when the network has run. What
 * is not a map is computed by rank 0 alone. Invariants: 1. fingerprints and files are those of one
 * process, whatever the number of ranks; 2. a file gets its name after all ranks have succeeded and
 * every element has come once; 3. when the job ends early nothing is left of a temporary without a
 * name; one with a name is removed by any rank that still can, even in a signal handler. */
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
    const struct rfx_geo_source *source; /* of the image, as for rfx_cli_outputs_open */
    const char *folder;                  /* for shares that wait */
    struct rfx_cli_outputs outputs;      /* of the whole network, with this rank's streams */
    struct rfx_shared_file **shared;     /* [outputs] files that all ranks write; NULL: none */
    struct rfx_npy_target *targets;      /* [outputs] */
    struct rfx_output_spool *
        *waiting; /* [ends] this rank's share for rank 0; NULL: nothing waits */
    float *band;  /* rows on their way to rank 0 */
    int *ends;    /* [ends of the share's graph] which end of the whole graph each is */
};

/* Bytes that the outputs hold while the network runs. */
size_t rfx_rank_outputs_bytes(const struct rfx_ranks *ranks, const struct rfx_graph *whole,
                              const struct rfx_cli_run_options *options,
                              const struct rfx_geo_source *source);

/* Whether the files of -o can be made, before hours of rounds: rank 0 opens and drops them. Returns
 * an exit code that all ranks agree on. */
RFX_NODISCARD int rfx_rank_outputs_check(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                         const struct rfx_graph *whole,
                                         const struct rfx_cli_run_options *options);

/* All ranks together: opens everything. Returns the same exit code on all ranks, after a message.
 * rfx_rank_outputs_free may follow whatever it is. */
RFX_NODISCARD int rfx_rank_outputs_open(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                        const struct rfx_graph *whole,
                                        const struct rfx_cli_run_options *options,
                                        const struct rfx_geo_source *source,
                                        struct rfx_rank_outputs *outputs);

/* Takes the outputs of this rank's share. Valid as long as the outputs. */
struct rfx_output_sink rfx_rank_outputs_sink(struct rfx_rank_outputs *outputs);

/* All ranks together, after the run: sends waiting shares to rank 0, adds the fingerprints up there
 * and completes the files. Returns an exit code as open does. */
RFX_NODISCARD int rfx_rank_outputs_finish(struct rfx_rank_outputs *outputs);

void rfx_rank_outputs_free(struct rfx_rank_outputs *outputs);
#endif
