/* Failing, files in memory and limits of the fuzz targets. */
#include "tests/fuzz/fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef RFX_SANITIZE_ADDRESS
#include <sanitizer/lsan_interface.h>
#endif

#define STOP_SECONDS 0.5
#define FILE_NUMBER 100 /* above what a process opens by itself */
#define FILE_PATH "/proc/self/fd/100"

void fuzz_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)fputs("\nfinding: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    abort();
}

void fuzz_check_status(enum rfx_status status, const struct rfx_error *err) {
    bool known = status >= RFX_OK && status < RFX_STATUS_INTERNAL;
    if (!known) fuzz_fail("status '%s': %s", rfx_status_name(status), err->text);
    if (status != RFX_OK && err->text[0] == '\0')
        fuzz_fail("status '%s' without a word", rfx_status_name(status));
}

static void open_file(void) {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || dup2(fd, FILE_NUMBER) < 0 || close(fd) != 0) fuzz_fail("no file in memory");
}

const char *fuzz_file(const uint8_t *data, size_t size) {
    static bool opened;
    if (!opened) open_file();
    opened = true;
    if (ftruncate(FILE_NUMBER, 0) != 0 || pwrite(FILE_NUMBER, data, size, 0) != (ssize_t)size)
        fuzz_fail("cannot write %zu bytes into memory", size);
    return FILE_PATH;
}

/* Of the processor, so that a busy machine changes nothing. */
static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_late(void *user) {
    const double *end = user;
    return seconds() > *end;
}

struct rfx_memory *fuzz_memory(size_t limit_bytes) {
    static double end; /* one input at a time */
    struct rfx_memory *mem = rfx_memory_create(limit_bytes);
    if (mem == NULL) fuzz_fail("no allocator");
    end = seconds() + STOP_SECONDS;
    rfx_memory_set_stop(mem, is_late, &end);
    return mem;
}

void fuzz_keep(bool on) {
#ifdef RFX_SANITIZE_ADDRESS
    (on ? __lsan_disable : __lsan_enable)();
#else
    (void)on;
#endif
}

void fuzz_values(float *values, int64_t count) {
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
}

uint64_t fuzz_sum(uint64_t sum, const void *bytes, size_t count) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < count; i++) sum = (sum ^ b[i]) * UINT64_C(0x100000001b3);
    return sum;
}
