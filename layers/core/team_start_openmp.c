/* Runs a team in one parallel region. The runtime keeps its threads for the next region. */
#include <omp.h>

#include "layers/core/team_start.h"

void rfx_team_start(int threads, void (*lead)(void *user, int n), void (*serve)(void *user, int k),
                    void *user) {
#pragma omp parallel num_threads(threads)
    {
        if (omp_get_thread_num() == 0) {
            lead(user, omp_get_num_threads());
        } else {
            omp_set_num_threads(1); /* for this region: functions that an iteration calls must not
                                       use more threads */
            serve(user, omp_get_thread_num());
        }
    }
}
