/* Descriptors above 2, and writes that fail instead of ending the process. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "layers/core/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

enum { FIRST_OWN = 3 };

int rfx_descriptor_keep(int fd) {
    if (fd < 0 || fd >= FIRST_OWN) return fd;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN);
    int number = errno;
    (void)close(fd);
    errno = number;
    return copy;
}

FILE *rfx_descriptor_stream(const char *path) {
    int fd = rfx_descriptor_keep(open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0) return NULL;
    FILE *stream = fdopen(fd, "rb");
    if (stream == NULL) {
        int number = errno;
        (void)close(fd);
        errno = number;
    }
    return stream;
}

/* The state of a thread before SIGXFSZ was blocked: begin blocks the signal, end restores the mask.
 */
struct guard {
    sigset_t before, size_signal;
    bool was_pending;
};

static void begin(struct guard *guard) {
    sigset_t pending;
    (void)sigemptyset(&guard->size_signal);
    (void)sigaddset(&guard->size_signal, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &guard->size_signal, &guard->before);
    guard->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

/* Discards the SIGXFSZ that a call which failed with errno `number` has raised; restores the mask.
 */
static void end(const struct guard *guard, int number) {
    const struct timespec at_once = {0, 0};
    if (number == EFBIG && !guard->was_pending)
        (void)sigtimedwait(&guard->size_signal, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

/* Writes all bytes at `offset`, or at the descriptor's current file offset if `offset` is negative.
 * Returns 0 or an errno; sets *written as rfx_descriptor_write does. */
static int write_all(int fd, const void *from, size_t bytes, int64_t offset, size_t *written) {
    const unsigned char *at = from;
    size_t done = 0;
    int number = 0;
    struct guard guard;
    begin(&guard);
    while (done < bytes && number == 0) {
        ssize_t n = offset < 0 ? write(fd, at + done, bytes - done)
                               : pwrite(fd, at + done, bytes - done, (off_t)offset + (off_t)done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0)
            number = ENOSPC;
        else if (errno != EINTR)
            number = errno;
    }
    end(&guard, number);
    if (written != NULL) *written = done;
    return number;
}

int rfx_descriptor_write(int fd, const void *from, size_t bytes, size_t *written) {
    return write_all(fd, from, bytes, -1, written);
}

int rfx_descriptor_write_at(int fd, const void *from, size_t bytes, int64_t offset) {
    return offset < 0 ? EINVAL : write_all(fd, from, bytes, offset, NULL);
}

int rfx_descriptor_read_at(int fd, void *to, size_t bytes, int64_t offset) {
    unsigned char *at = to;
    while (bytes > 0) {
        ssize_t n = pread(fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 ? EIO : errno;
        at += n;
        offset += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int rfx_descriptor_reserve(int fd, int mode, int64_t bytes) {
    int number;
    struct guard guard;
    begin(&guard);
    do {
        number = fallocate(fd, mode, 0, (off_t)bytes) == 0 ? 0 : errno;
    } while (number == EINTR);
    end(&guard, number);
    return number;
}

int rfx_descriptor_truncate(int fd, int64_t bytes) {
    int number;
    struct guard guard;
    begin(&guard);
    do {
        number = ftruncate(fd, (off_t)bytes) == 0 ? 0 : errno;
    } while (number == EINTR);
    end(&guard, number);
    return number;
}
