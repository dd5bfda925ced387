/* Threads that are started for one team and joined at its end. */
#include <pthread.h>

#include "layers/core/team_start.h"

#define MAX_THREADS 1024 /* the largest allowed rfx_run_options.threads */

struct starter {
    void (*serve)(void *user, int k);
    void *user;
    int k;
};

static void *run_server(void *argument) {
    const struct starter *s = argument;
    s->serve(s->user, s->k);
    return NULL;
}

void rfx_team_start(int threads, void (*lead)(void *user, int n), void (*serve)(void *user, int k),
                    void *user) {
    pthread_t started[MAX_THREADS];
    struct starter starters[MAX_THREADS];
    int n = 1;
    for (; n < threads && n < MAX_THREADS; n++) {
        starters[n] = (struct starter){serve, user, n};
        if (pthread_create(&started[n], NULL, run_server, &starters[n]) != 0) break;
    }
    lead(user, n);
    for (int k = 1; k < n; k++) (void)pthread_join(started[k], NULL);
}
