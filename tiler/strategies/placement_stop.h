/* When searches for a placement stop. */
#ifndef RFX_TILER_STRATEGIES_PLACEMENT_STOP_H
#define RFX_TILER_STRATEGIES_PLACEMENT_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "layers/core/memory.h"

/* When a search is to stop without an answer, beside what stops all work (rfx_memory_set_stop). */
struct rfx_place_stop {
    int64_t deadline_ns;  /* of CLOCK_MONOTONIC; 0: none */
    atomic_bool *stopped; /* set by whoever wants all to stop; NULL: nobody does */

    /* Asked every so often, by one thread at a time; true: stop. NULL: nobody is asked. */
    bool (*ask)(void *user);
    void *user;
    atomic_flag *asking;          /* with `ask`: held by the thread that asks */
    _Atomic int64_t *asked_at_ns; /* with `ask`: when it was asked last */
};

/* How often `ask` is called at most: ten times as often as anybody could notice. */
#define RFX_PLACE_ASK_EVERY_NS ((int64_t)20 * 1000 * 1000)

/* Of CLOCK_MONOTONIC; 0 when there is none. */
static inline int64_t rfx_place_now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000 * 1000 * 1000 + now.tv_nsec;
}

/* Whether the work on what lies in `mem` is to stop; stop NULL: for no other reason than all work.
 * Looks at the clock only where there is a use for it. */
bool rfx_place_must_stop(const struct rfx_memory *mem, const struct rfx_place_stop *stop);
#endif
