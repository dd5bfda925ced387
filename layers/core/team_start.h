/* Private: starts the threads of a team (team.c). A build contains one of two implementations:
 * OpenMP or POSIX threads. */
#ifndef RFX_LAYERS_CORE_TEAM_START_H
#define RFX_LAYERS_CORE_TEAM_START_H

/* Calls lead(user, n) in the calling thread and, at the same time, serve(user, k) for all 1 <= k <
 * n, each in another thread. Returns when all calls have returned. n is `threads`, or less if the
 * system gives fewer threads. */
void rfx_team_start(int threads, void (*lead)(void *user, int n), void (*serve)(void *user, int k),
                    void *user);
#endif
