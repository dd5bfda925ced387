/* Copies a pipe to a file; see standard_input.h. File descriptor 0 is replaced by the copy, so that
 * opening /dev/stdin opens the copy. */
#include "tools/cli/standard_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/temp_file.h"

/* Returns whether standard input is a regular file, at offset 0, that can be opened again. */
static bool is_whole_file(void) {
    struct stat info;
    if (fstat(STDIN_FILENO, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    return lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 && access(RFX_STANDARD_INPUT, R_OK) == 0;
}

static enum rfx_status write_all(int file, const char *folder, const char *from, size_t bytes,
                                 int64_t before, struct rfx_error *err) {
    while (bytes > 0) {
        ssize_t n = write(file, from, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return rfx_fail(err, RFX_STATUS_IO,
                            "standard input is kept in a file in '%.200s': cannot write after %lld "
                            "bytes: %s (TMPDIR is another folder)",
                            folder, (long long)before, strerror(n == 0 ? ENOSPC : errno));
        from += n;
        bytes -= (size_t)n;
        before += n;
    }
    return RFX_OK;
}

static enum rfx_status copy(int file, const char *folder, int64_t most, bool (*stopped)(void),
                            int64_t *kept, struct rfx_error *err) {
    char buffer[16384];
    for (;;) {
        if (stopped != NULL && stopped())
            return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped while standard input was read");
        ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rfx_fail(err, RFX_STATUS_IO, "standard input: %s", strerror(errno));
        if (n == 0) return RFX_OK;
        if (n > most - *kept)
            return rfx_fail(err, RFX_STATUS_IO,
                            "standard input: more than %lld bytes; save the picture as a file",
                            (long long)most);
        enum rfx_status status = write_all(file, folder, buffer, (size_t)n, *kept, err);
        if (status != RFX_OK) return status;
        *kept += n;
    }
}

enum rfx_status rfx_standard_input(const char *folder, int64_t most, bool (*stopped)(void),
                                   int64_t *kept, struct rfx_error *err) {
    *kept = 0;
    if (is_whole_file()) return RFX_OK;
    if (isatty(STDIN_FILENO))
        return rfx_fail(err, RFX_STATUS_IO,
                        "standard input is a terminal, from which no picture comes");
    int file = rfx_temp_file_open(folder);
    if (file < 0)
        return rfx_fail(err, RFX_STATUS_IO, "standard input is kept in a file in '%.200s': %s",
                        folder, strerror(errno));
    enum rfx_status status = copy(file, folder, most, stopped, kept, err);
    if (status == RFX_OK && dup2(file, STDIN_FILENO) < 0)
        status = rfx_fail(err, RFX_STATUS_IO, "standard input: %s", strerror(errno));
    (void)close(file);
    return status;
}
