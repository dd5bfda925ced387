/* Sizes of caches as the system reports them. */
#include <unistd.h>

#include "tiler/plan/plan.h"

#define USUAL_SECOND_BYTES ((size_t)512 << 10) /* where the system does not say */
#define USUAL_SHARED_BYTES ((size_t)8 << 20)

static size_t cache_bytes(int name, size_t usual) {
    long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : usual;
}

struct rfx_caches rfx_machine_caches(void) {
    struct rfx_caches caches = {cache_bytes(_SC_LEVEL2_CACHE_SIZE, USUAL_SECOND_BYTES),
                                cache_bytes(_SC_LEVEL3_CACHE_SIZE, USUAL_SHARED_BYTES)};
    return caches;
}
