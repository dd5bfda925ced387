/* A file that all ranks write with MPI's own input and output, each its own bytes, and that gets
 * its name when all have succeeded.
 *
 * * Rank 0 makes the temporary beside the final name, takes the disk for all of it and names it at
 * the end; the others must see the same folder. Invariants: 1. the final name is untouched before
 * commit; 2. when the job ends otherwise nothing is left of a temporary without a name, which all
 * ranks of one machine can share; else any rank that still can removes it, be it in a signal. */
#ifndef RFX_TOOLS_MPI_SHARED_FILE_H
#define RFX_TOOLS_MPI_SHARED_FILE_H

#include "layers/core/memory.h"
#include "tools/mpi/ranks.h"

struct rfx_shared_file;

/* All ranks together; `bytes`: of the whole file. Returns an exit code, the same on all; where it
 * is not RFX_EXIT_DONE the reason was said and there is no file. */
RFX_NODISCARD int rfx_shared_file_open(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                       const char *path, uint64_t bytes,
                                       struct rfx_shared_file **out);

/* Writes bytes at an offset: one rank alone. A put of struct rfx_npy_target; user: the file. */
RFX_NODISCARD enum rfx_status rfx_shared_file_put(void *user, const void *data, size_t bytes,
                                                  uint64_t offset, struct rfx_error *err);

/* All ranks together, each with what it has come to so far: brings what this rank wrote to the
 * disk. */
RFX_NODISCARD enum rfx_status rfx_shared_file_close(struct rfx_shared_file *file,
                                                    struct rfx_error *err);

/* Rank 0, after all have closed: gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_shared_file_commit(struct rfx_shared_file *file,
                                                     struct rfx_error *err);

/* Frees; what has no name is removed. NULL is fine. */
void rfx_shared_file_free(struct rfx_shared_file *file);
#endif
