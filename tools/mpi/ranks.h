/* The ranks of a run: starting and ending MPI, sending data between ranks, and their messages.
 *
 * All functions are called by the thread that started MPI. A waiting rank watches for signals and
 * sleeps, so that its processor is free for others. Long data is sent in pieces.
 *
 * While all ranks do the same (opening, planning) messages are kept until the next rfx_ranks_agree.
 * Then rank 0 prints its own messages and those messages of other ranks that differ. At other times
 * each rank prints at once. A message of a single rank begins with the number of the rank.
 *
 * Invariants: 1. after a call that failed (an exit code of rfx_ranks_agree aside) the job can only
 * be ended, by rfx_ranks_end_job, or by rfx_ranks_finish with a code other than 0; 2. ranks call
 * the functions that need all of them in the same order. */
#ifndef RFX_TOOLS_MPI_RANKS_H
#define RFX_TOOLS_MPI_RANKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

/* The most bytes of one message. */
enum { RFX_RANKS_PIECE_BYTES = 65536 };

/* Memory that MPI may take after the run has begun. Up to 0.3 MiB were seen where many other
 * processes ran on the machine. */
#define RFX_RANKS_LATER_BYTES ((size_t)1 << 19)

struct rfx_ranks {
    int rank, size;
    bool together; /* all ranks do the same; messages are kept */
    bool broken;   /* ranks can no longer agree, as MPI failed or the program must stop */
};

/* Starts MPI, once per process. Ranks above 0 have no standard output from here on. Returns an exit
 * code. */
RFX_NODISCARD int rfx_ranks_start(struct rfx_ranks *ranks, int *argc, char ***argv);

/* Ends MPI if all ranks have agreed on the code; otherwise ends the whole job. Returns the code. */
int rfx_ranks_finish(struct rfx_ranks *ranks, int code);

/* Ends all ranks at once with this exit code, for a failure of one rank. */
_Noreturn void rfx_ranks_end_job(struct rfx_ranks *ranks, int code);

/* Sets a function, async-signal-safe, that is called before a job is ended that way. */
void rfx_ranks_before_end(void (*clean)(void));

/* Returns the largest exit code of all ranks, after printing their messages. */
RFX_NODISCARD int rfx_ranks_agree(struct rfx_ranks *ranks, int code);

/* Calls rfx_ranks_agree with the exit code of a status. Prints err when the status is not RFX_OK.
 */
RFX_NODISCARD int rfx_ranks_agree_on(struct rfx_ranks *ranks, enum rfx_status status,
                                     const struct rfx_error *err);

/* Copies bytes from rank 0 to all others. */
RFX_NODISCARD enum rfx_status rfx_ranks_spread(struct rfx_ranks *ranks, void *data, size_t bytes,
                                               struct rfx_error *err);

/* Copies bytes from rank `root` to all others. */
RFX_NODISCARD enum rfx_status rfx_ranks_spread_from(struct rfx_ranks *ranks, int root, void *data,
                                                    size_t bytes, struct rfx_error *err);

/* Sends bytes, which are not changed, to a rank that receives as many from this one. */
RFX_NODISCARD enum rfx_status rfx_ranks_send(struct rfx_ranks *ranks, int to, void *data,
                                             size_t bytes, struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_ranks_receive(struct rfx_ranks *ranks, int from, void *data,
                                                size_t bytes, struct rfx_error *err);

/* Replace values[n] on rank 0 by the sums (modulo 2^64) or the maxima over all ranks. The values of
 * other ranks do not change. */
RFX_NODISCARD enum rfx_status rfx_ranks_sum(struct rfx_ranks *ranks, uint64_t *values, int n,
                                            struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_ranks_most(struct rfx_ranks *ranks, uint64_t *values, int n,
                                             struct rfx_error *err);

/* Describes an MPI error in one line and returns `words`. */
enum { RFX_RANKS_WORDS = 200 };
const char *rfx_ranks_words(int mpi_error, char words[RFX_RANKS_WORDS]);

/* IO, with MPI's description of the failed call. */
enum rfx_status rfx_ranks_fail(const char *what, int mpi_error, struct rfx_error *err);
#endif
