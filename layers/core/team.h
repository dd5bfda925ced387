/* A team of threads that shares out loops: entered once per run, so that no loop starts threads.
 *
 * Invariants: 1. the calling thread is thread 0 and runs the body; the others only ever run
 * iterations of its loops; 2. a loop ends when all its iterations have, and what they wrote is
 * visible to the body then; 3. each thread begins with a share of neighbouring iterations, in their
 * order, the same one in all loops of as many, and then takes what is left of others': which
 * thread runs an iteration is left to chance, and results must not depend on it; 4. a thread that
 * waits spins for a moment and then sleeps, so that waiting takes nothing from other work on the
 * machine; 5. a thread that the system does not run holds up no loop, unless it has begun an
 * iteration of it. The threads are OpenMP's, or POSIX threads in builds without OpenMP. */
#ifndef RFX_LAYERS_CORE_TEAM_H
#define RFX_LAYERS_CORE_TEAM_H

#include <stdbool.h>
#include <stdint.h>

struct rfx_team;

/* Runs body(team, user) with a team of `threads` (at least 1; 1: no threads are started), and
 * returns when it does. The OpenMP runtime may give fewer (OMP_THREAD_LIMIT, omp_set_dynamic):
 * rfx_team_threads says how many there are. The body must not leave by other ways. In the body or
 * a loop of a team of several: a team of one. */
void rfx_team_run(int threads, void (*body)(struct rfx_team *team, void *user), void *user);

/* Number of threads; 1 for NULL, which is a team of the calling thread alone. */
int rfx_team_threads(const struct rfx_team *team);

/* Calls work(user, index, thread) for all 0 <= index < count, in any order, several at a time;
 * thread < rfx_team_threads(team), never the same for two calls at a time. Only the body may call
 * it, and work must not, with the same team. A loop of one iteration wakes nobody. */
void rfx_team_for(struct rfx_team *team, int64_t count,
                  void (*work)(void *user, int64_t index, int thread), void *user);

/* Has the team ask wanted(user) before each iteration of its loops, in the thread that would run
 * the iteration. From the first `true` on, loops return without running what is left of them: what
 * they make is then incomplete. NULL: nobody is asked. The body calls it, between loops. */
void rfx_team_set_stop(struct rfx_team *team, bool (*wanted)(void *user), void *user);

/* Asks, as the loops do, and returns whether the team stops: for long iterations, in any thread.
 * NULL: false. */
bool rfx_team_must_stop(struct rfx_team *team);

/* Whether `wanted` has returned true, without asking again. */
bool rfx_team_is_stopped(const struct rfx_team *team);
#endif
