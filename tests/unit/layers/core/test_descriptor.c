/* Descriptors stay above 2 where the standard ones are closed, and a limit on file sizes is an
 * error instead of a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layers/core/descriptor.h"

#define PATH "test_descriptor.bin"

/* Runs in a process of its own, which ends with the number that work() returns. */
static int in_child(int (*work)(void)) {
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(work());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status)); /* no signal */
    return WEXITSTATUS(status);
}

static int open_with_standard_closed(void) {
    for (int fd = 0; fd < 3; fd++) (void)close(fd);
    int first = rfx_descriptor_keep(open("/dev/null", O_RDWR | O_CLOEXEC));
    int second = rfx_descriptor_keep(open("/dev/null", O_RDWR | O_CLOEXEC));
    FILE *stream = rfx_descriptor_stream("/dev/null");
    if (first < 3 || second < 3 || stream == NULL || fileno(stream) < 3) return 1;
    if ((fcntl(first, F_GETFD) & FD_CLOEXEC) == 0) return 2;
    for (int fd = 0; fd < 3; fd++) /* the ones that open() gave are closed again */
        if (fcntl(fd, F_GETFD) != -1) return 3;
    return 0;
}

static void test_above_standard(void **state) {
    (void)state;
    assert_int_equal(in_child(open_with_standard_closed), 0);
    errno = 0;
    assert_int_equal(rfx_descriptor_keep(open("there/is/no/such/file", O_RDONLY)), -1);
    assert_int_equal(errno, ENOENT);
    assert_null(rfx_descriptor_stream("there/is/no/such/file"));
    assert_int_equal(errno, ENOENT);
}

enum { LIMIT = 1000 };

static int write_beyond_limit(void) {
    static const char bytes[2 * LIMIT];
    const struct rlimit limit = {LIMIT, LIMIT};
    size_t written = 7;
    sigset_t before, after;
    int fd = open(PATH, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &before);
    if (rfx_descriptor_write(fd, bytes, sizeof bytes, &written) != EFBIG) return 2;
    if (written != LIMIT) return 3;
    if (rfx_descriptor_write_at(fd, bytes, 10, LIMIT) != EFBIG) return 4;
    if (rfx_descriptor_write_at(fd, bytes, 10, LIMIT - 10) != 0) return 5;
    if (rfx_descriptor_truncate(fd, LIMIT + 1) != EFBIG) return 6;
    int number = rfx_descriptor_reserve(fd, 0, LIMIT + 1);
    if (number != EFBIG && number != EOPNOTSUPP) return 7;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &after); /* and no signal waits to be delivered */
    if (sigismember(&before, SIGXFSZ) != sigismember(&after, SIGXFSZ)) return 8;
    return 0;
}

/* A host that blocks the signal and waits for it by itself keeps the one that it has raised. */
static int keep_pending(void) {
    static const char bytes[2 * LIMIT];
    const struct rlimit limit = {LIMIT, LIMIT};
    sigset_t own, pending;
    int fd = open(PATH, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    (void)sigemptyset(&own);
    (void)sigaddset(&own, SIGXFSZ);
    if (fd < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (pthread_sigmask(SIG_BLOCK, &own, NULL) != 0 || raise(SIGXFSZ) != 0) return 2;
    if (rfx_descriptor_write(fd, bytes, sizeof bytes, NULL) != EFBIG) return 3;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1 ? 0 : 4;
}

static void test_size_limit(void **state) {
    (void)state;
    assert_int_equal(in_child(write_beyond_limit), 0);
    assert_int_equal(in_child(keep_pending), 0);
    assert_int_equal(unlink(PATH), 0);
}

static void test_read_and_write(void **state) {
    (void)state;
    char back[8] = {0};
    int fd = open(PATH, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(rfx_descriptor_write_at(fd, "world", 5, 3), 0);
    assert_int_equal(rfx_descriptor_write(fd, "abc", 3, NULL), 0);
    assert_int_equal(rfx_descriptor_read_at(fd, back, 8, 0), 0);
    assert_memory_equal(back, "abcworld", 8);
    assert_int_equal(rfx_descriptor_read_at(fd, back, 8, 1), EIO); /* a byte short */
    assert_int_equal(rfx_descriptor_write_at(fd, "x", 1, -1), EINVAL);
    assert_int_equal(close(fd), 0);
    assert_int_equal(rfx_descriptor_read_at(fd, back, 1, 0), EBADF);
    assert_int_equal(unlink(PATH), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_above_standard),
        cmocka_unit_test(test_size_limit),
        cmocka_unit_test(test_read_and_write),
    };
    return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
