/* A team of threads that share the iterations of loops. The threads are started once per run, so no
 * loop has to start threads.
 *
 * Invariants: 1. The calling thread is thread 0 and runs the body; the other threads run only
 * iterations of its loops. 2. A loop ends when all its iterations have ended; the body then sees
 * everything that they wrote. 3. Each thread begins with a share of neighbouring iterations, in
 * ascending order. Loops with equal counts have equal shares. Then the thread takes iterations that
 * are left in the shares of others. Which thread runs an iteration is left to chance, so results
 * must not depend on the thread. 4. A thread that waits spins for a moment and then sleeps, so that
 * waiting takes no processor time from other programs. 5. A loop does not wait for a thread that
 * the system does not run, unless that thread has begun an iteration. The threads are OpenMP's, or
 * POSIX threads in builds without OpenMP. */
#ifndef RFX_LAYERS_CORE_TEAM_H
#define RFX_LAYERS_CORE_TEAM_H

#include <stdbool.h>
#include <stdint.h>

struct rfx_team;

/* Runs body(team, user) with a team of `threads` >= 1 threads and returns when the body returns.
 * With 1, no threads are started. The OpenMP runtime may give fewer threads (OMP_THREAD_LIMIT,
 * omp_set_dynamic); rfx_team_threads returns the actual number. The body must not leave except by
 * returning. A call from the body or a loop of a team of several threads gets a team of one. */
void rfx_team_run(int threads, void (*body)(struct rfx_team *team, void *user), void *user);

/* Returns the number of threads of the team; 1 for NULL, which means the calling thread alone. */
int rfx_team_threads(const struct rfx_team *team);

/* Calls work(user, index, thread) for all 0 <= index < count, in any order, several at a time.
 * `thread` is below rfx_team_threads(team) and differs between calls that run at the same time.
 * Only the body may call this function; `work` must not call it with the same team. A loop of one
 * iteration wakes no other thread. */
void rfx_team_for(struct rfx_team *team, int64_t count,
                  void (*work)(void *user, int64_t index, int thread), void *user);

/* Sets the stop callback of the team; NULL: none. Before each iteration, the thread that would run
 * the iteration calls wanted(user). Once `wanted` has returned true, loops return without running
 * the remaining iterations, so their results are incomplete. The body calls this function between
 * loops. */
void rfx_team_set_stop(struct rfx_team *team, bool (*wanted)(void *user), void *user);

/* Calls the stop callback and returns whether the team stops; for long iterations, in any thread.
 * Returns false for NULL. */
bool rfx_team_must_stop(struct rfx_team *team);

/* Whether the stop callback has returned true; does not call it. */
bool rfx_team_is_stopped(const struct rfx_team *team);
#endif
