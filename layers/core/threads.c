/* Trial threads: see threads.h. They have ended before rfx_threads_try returns. Another part of the
 * program may still take the system's last thread between this check and the run. */
#include "layers/core/threads.h"

#include <pthread.h>
#include <stddef.h>

#include "layers/core/team.h"

#define MAX_TRIAL_THREADS 64

static void *do_nothing(void *argument) {
    return argument;
}

static void run_nothing(struct rfx_team *team, void *user) {
    (void)team;
    (void)user;
}

enum rfx_status rfx_threads_try(int threads, struct rfx_error *err) {
    pthread_t started[MAX_TRIAL_THREADS];
    int wanted = threads - 1 < MAX_TRIAL_THREADS ? threads - 1 : MAX_TRIAL_THREADS;
    int n = 0;
    while (n < wanted && pthread_create(&started[n], NULL, do_nothing, NULL) == 0) n++;
    for (int i = 0; i < n; i++) (void)pthread_join(started[i], NULL);
    if (n < wanted)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "only %d of %d threads can be started",
                        n + 1, threads);
    rfx_team_run(threads, run_nothing, NULL);
    return RFX_OK;
}
