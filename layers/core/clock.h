/* Clocks of the system in seconds, for measured times and progress. */
#ifndef RFX_LAYERS_CORE_CLOCK_H
#define RFX_LAYERS_CORE_CLOCK_H

#include <time.h>

/* Returns the seconds of a clock: CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID (processor time of all
 * threads) or CLOCK_THREAD_CPUTIME_ID (processor time of this thread). */
static inline double rfx_clock_seconds(clockid_t clock) {
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
#endif
