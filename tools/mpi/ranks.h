/* The ranks of a run: starting and ending MPI, what they tell each other, and their messages.
 *
 * Everything is called by the thread that started MPI. Waiting looks at signals and sleeps, so that
 * a rank that has nothing to do leaves its processor to others; what is sent goes in pieces.
 *
 * Messages: as long as all ranks do the same (opening, planning) they are kept until the next
 * rfx_ranks_agree, where rank 0 prints its own and of others what differs from them; then each rank
 * prints its own at once. What one rank alone has to say begins with its number.
 *
 * Invariants: 1. after a failing call other than agree's code the job can only be ended, by
 * rfx_ranks_end_job or with a code other than 0 by rfx_ranks_finish; 2. ranks call what needs all
 * of them in the same order. */
#ifndef RFX_TOOLS_MPI_RANKS_H
#define RFX_TOOLS_MPI_RANKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/status.h"

/* The most that one message holds. */
enum { RFX_RANKS_PIECE_BYTES = 65536 };

/* What MPI takes in a run beyond what it has when the run begins: up to 0.3 MiB more were seen
 * where many other processes ran beside it. */
#define RFX_RANKS_LATER_BYTES ((size_t)1 << 19)

struct rfx_ranks {
    int rank, size;
    bool together; /* all do the same; messages are kept */
    bool broken;   /* no agreeing any more: MPI failed or the program is to stop */
};

/* Starts MPI; ranks above 0 have no standard output from here on. Returns an exit code. There is
 * one job in a process. */
RFX_NODISCARD int rfx_ranks_start(struct rfx_ranks *ranks, int *argc, char ***argv);

/* Ends MPI, after all ranks agreed on the code, or else the whole job. Returns the code. */
int rfx_ranks_finish(struct rfx_ranks *ranks, int code);

/* Ends all ranks at once, with this exit code: for what one rank finds alone. */
_Noreturn void rfx_ranks_end_job(struct rfx_ranks *ranks, int code);

/* To be called before the job is ended that way; one function, async-signal-safe. */
void rfx_ranks_before_end(void (*clean)(void));

/* The largest of all ranks' exit codes, after which messages are printed. */
RFX_NODISCARD int rfx_ranks_agree(struct rfx_ranks *ranks, int code);

/* Copies bytes of rank 0 to all others. */
RFX_NODISCARD enum rfx_status rfx_ranks_spread(struct rfx_ranks *ranks, void *data, size_t bytes,
                                               struct rfx_error *err);

/* Likewise of rank `root`. */
RFX_NODISCARD enum rfx_status rfx_ranks_spread_from(struct rfx_ranks *ranks, int root, void *data,
                                                    size_t bytes, struct rfx_error *err);

/* Sends bytes, which stay as they are, to a rank that receives as many from this one. */
RFX_NODISCARD enum rfx_status rfx_ranks_send(struct rfx_ranks *ranks, int to, void *data,
                                             size_t bytes, struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_ranks_receive(struct rfx_ranks *ranks, int from, void *data,
                                                size_t bytes, struct rfx_error *err);

/* Sums, modulo 2^64, and maxima over all ranks, for rank 0; other ranks' values stay. */
RFX_NODISCARD enum rfx_status rfx_ranks_sum(struct rfx_ranks *ranks, uint64_t *values, int n,
                                            struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_ranks_most(struct rfx_ranks *ranks, uint64_t *values, int n,
                                             struct rfx_error *err);

/* What MPI says of a failure, in one line; `words` is returned. */
enum { RFX_RANKS_WORDS = 200 };
const char *rfx_ranks_words(int mpi_error, char words[RFX_RANKS_WORDS]);

/* A call of MPI in words: IO. */
enum rfx_status rfx_ranks_fail(const char *what, int mpi_error, struct rfx_error *err);
#endif
