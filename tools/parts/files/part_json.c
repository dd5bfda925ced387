/* Reading the JSON of parts, with a limit on its length. */
#include "tools/parts/files/part_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/parts/files/part_file.h"

/* The longest have a line of about 100 bytes for each of some hundreds of states. */
#define MOST_BYTES ((size_t)4 << 20)

enum rfx_status rfx_part_json_name(const char *path, char *name, size_t size,
                                   struct rfx_error *err) {
    int n = snprintf(name, size, "%s.json", path);
    if (n > 0 && (size_t)n < size) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%.200s...: the name is too long", path);
}

/* The bytes of an open file; *text is to be freed. */
static enum rfx_status read_text(int fd, const char *name, char **text, size_t *length,
                                 struct rfx_error *err) {
    struct stat at;
    if (fstat(fd, &at) != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%.300s: %s", name, strerror(errno));
    if (!S_ISREG(at.st_mode))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.300s: not a regular file", name);
    if (at.st_size > (off_t)MOST_BYTES)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%.300s: %lld bytes long; what is beside a part has at most %zu", name,
                        (long long)at.st_size, MOST_BYTES);
    char *bytes = malloc((size_t)at.st_size + 1);
    if (bytes == NULL) return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "%.300s: no memory", name);
    size_t done = 0;
    while (done < (size_t)at.st_size) {
        ssize_t got = pread(fd, bytes + done, (size_t)at.st_size - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            free(bytes);
            return rfx_fail(err, RFX_STATUS_IO, "%.300s: %s", name, strerror(errno));
        }
        if (got == 0) break;
        done += (size_t)got;
    }
    *text = bytes;
    *length = done;
    return RFX_OK;
}

enum rfx_status rfx_part_json_load(const char *what, const char *path, json_t **out,
                                   struct rfx_error *err) {
    char name[RFX_PART_PATH_CHARS];
    char *text = NULL;
    size_t length = 0;
    json_error_t where;
    enum rfx_status status = rfx_part_json_name(path, name, sizeof name, err);
    if (status != RFX_OK) return status;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (fd < 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "%s '%.200s': '%.200s' beside it, which says what it is of: %s", what, path,
                        name, strerror(errno));
    status = read_text(fd, name, &text, &length, err);
    (void)close(fd);
    if (status != RFX_OK) return status;
    *out = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    free(text);
    if (*out != NULL) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED, "%.200s: line %d: %.120s", name, where.line,
                    where.text);
}
