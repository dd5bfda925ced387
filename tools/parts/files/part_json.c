/* Reading the JSON of parts, with a limit on its length. */
#include "tools/parts/files/part_json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* Inlined, as in the fingerprints of outputs. */
#define XXH_INLINE_ALL
#include <xxhash.h>

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

enum { SUM_CHARS = 33 };

/* The checksum of the members beside "sum", whatever their order. */
static bool sum_members(const json_t *document, char sum[SUM_CHARS]) {
    json_t *rest = json_object();
    const char *key;
    json_t *value;
    union {
        const json_t *in;
        json_t *out;
    } all = {document};
    bool done = rest != NULL;
    json_object_foreach(all.out, key, value) if (strcmp(key, "sum") != 0) done =
        done && json_object_set(rest, key, value) == 0;
    char *text = done ? json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(rest);
    if (text == NULL) return false;
    XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    (void)snprintf(sum, SUM_CHARS, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
                   (uint64_t)hash.low64);
    free(text);
    return true;
}

bool rfx_part_json_seal(json_t *document) {
    char sum[SUM_CHARS];
    return sum_members(document, sum) &&
           json_object_set_new(document, "sum", json_string(sum)) == 0;
}

bool rfx_part_json_is_sealed(const json_t *document) {
    const char *wanted = json_string_value(json_object_get(document, "sum"));
    char sum[SUM_CHARS];
    return wanted != NULL && sum_members(document, sum) && strcmp(sum, wanted) == 0;
}
