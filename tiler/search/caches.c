/* Sizes of caches as the system reports them. */
#include <stdio.h>
#include <unistd.h>

#include "layers/core/descriptor.h"
#include "tiler/plan/plan.h"

#define USUAL_SECOND_BYTES ((size_t)512 << 10) /* where the system does not say */
#define USUAL_SHARED_BYTES ((size_t)8 << 20)
#define DEEPEST 8 /* caches that a processor lists, at most */

/* A number from a file of one line, times 1024 where it ends in K; 0: there is none. */
static size_t read_number(int index, const char *what) {
    char path[80];
    unsigned long long value = 0;
    char unit = ' ';
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
    FILE *file = rfx_descriptor_stream(path);
    if (file == NULL) return 0;
    int n = fscanf(file, "%llu%c", &value, &unit);
    (void)fclose(file);
    if (n < 1) return 0;
    return (size_t)value * (n == 2 && unit == 'K' ? 1024U : 1U);
}

/* What the kernel lists of one level, which knows of virtual machines, or else what the C library
 * has from the processor, or 0. */
static size_t level_bytes(size_t level, int name) {
    for (int i = 0; i < DEEPEST; i++)
        if (read_number(i, "level") == level) {
            size_t bytes = read_number(i, "size");
            if (bytes != 0) return bytes;
        }
    long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : 0;
}

struct rfx_caches rfx_machine_caches(void) {
    struct rfx_caches caches = {level_bytes(2, _SC_LEVEL2_CACHE_SIZE),
                                level_bytes(3, _SC_LEVEL3_CACHE_SIZE)};
    if (caches.second_bytes == 0) caches.second_bytes = USUAL_SECOND_BYTES;
    if (caches.shared_bytes == 0) caches.shared_bytes = USUAL_SHARED_BYTES;
    return caches;
}
