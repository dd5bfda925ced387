/* Private: starting the threads of a team (team.c). One file does it by OpenMP, another by POSIX
 * threads; a build has one of them. */
#ifndef RFX_LAYERS_CORE_TEAM_START_H
#define RFX_LAYERS_CORE_TEAM_START_H

/* Calls lead(user, n) in the calling thread and, at the same time, serve(user, k) for all
 * 1 <= k < n in n - 1 others; returns when all calls have. n is `threads`, or less where the system
 * gives fewer. */
void rfx_team_start(int threads, void (*lead)(void *user, int n), void (*serve)(void *user, int k),
                    void *user);
#endif
