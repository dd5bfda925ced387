/* When searches stop; see placement_stop.h. */
#include "tiler/strategies/placement_stop.h"

/* Calls stop->ask if it is time to and no other thread does. */
static bool ask(const struct rfx_place_stop *stop, int64_t now) {
    if (now - atomic_load(stop->asked_at_ns) < RFX_PLACE_ASK_EVERY_NS) return false;
    if (atomic_flag_test_and_set(stop->asking)) return false;
    atomic_store(stop->asked_at_ns, now);
    bool yes = stop->ask(stop->user);
    atomic_flag_clear(stop->asking);
    if (yes && stop->stopped != NULL) atomic_store(stop->stopped, true);
    return yes;
}

bool rfx_place_must_stop(const struct rfx_memory *mem, const struct rfx_place_stop *stop) {
    if (rfx_memory_is_stopped(mem)) return true;
    if (stop == NULL) return false;
    if (stop->stopped != NULL && atomic_load_explicit(stop->stopped, memory_order_relaxed))
        return true;
    if (stop->deadline_ns == 0 && stop->ask == NULL) return false;
    int64_t now = rfx_place_now_ns();
    if (stop->deadline_ns != 0 && now > stop->deadline_ns) return true;
    return stop->ask != NULL && ask(stop, now);
}
