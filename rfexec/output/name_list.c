/* Converts lines to names; see name_list.h. */
#include "rfexec/output/name_list.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "layers/core/printable.h"
#include "rfexec/output/text_read.h"

enum { MOST_BYTES = 1 << 20, SHOWN = 4 /* most bytes that show one byte */ };

/* Replaces each line's end by a 0. Returns the number of lines; *bytes: their bytes with the zeros.
 */
static int64_t cut_lines(char *text, size_t *bytes) {
    int64_t lines = 0;
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\r' && (p[1] == '\n' || p[1] == '\0')) continue;
        lines += *p == '\n';
        *to++ = *p == '\n' ? '\0' : *p;
    }
    if (to > text && to[-1] != '\0') { /* the last line has no end */
        lines++;
        *to++ = '\0';
    }
    *bytes = (size_t)(to - text);
    return lines;
}

enum rfx_status rfx_names_read(struct rfx_memory *mem, const char *path, const char *what,
                               char **names, int64_t *lines, struct rfx_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    enum rfx_status status = rfx_text_read(mem, path, what, MOST_BYTES, &text, &bytes, err);
    if (status != RFX_OK) return status;
    *lines = cut_lines(text, &bytes);
    char *shown = rfx_memory_alloc(mem, SHOWN * bytes + 1);
    if (shown == NULL) status = rfx_memory_fail(mem, path, SHOWN * bytes + 1, err);
    char *to = shown;
    for (const char *p = text; status == RFX_OK && p < text + bytes; p += strlen(p) + 1) {
        rfx_printable(p, to, SHOWN * (strlen(p) + 1));
        to += strlen(to) + 1;
    }
    rfx_memory_release(mem, text);
    if (status == RFX_OK) *names = shown;
    return status;
}

const char *rfx_name_at(const char *names, int64_t lines, int64_t k) {
    if (k < 0 || k >= lines) return NULL;
    const char *name = names;
    for (; k > 0; k--) name += strlen(name) + 1;
    return name;
}

enum rfx_status rfx_channel_names_read(struct rfx_memory *mem, const char *path, int64_t channels,
                                       char **names, struct rfx_error *err) {
    int64_t lines = 0;
    enum rfx_status status = rfx_names_read(mem, path, "channel names", names, &lines, err);
    if (status != RFX_OK || lines == channels) return status;
    rfx_memory_release(mem, *names);
    *names = NULL;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "channel names '%s': %" PRId64 " lines for %" PRId64 " channels", path, lines,
                    channels);
}

size_t rfx_channel_names_bytes(const char *path) {
    struct stat at;
    if (stat(path, &at) != 0 || at.st_size > MOST_BYTES)
        return 0; /* opening the output will fail */
    return (SHOWN + 1) * ((size_t)at.st_size + RFX_TEXT_END);
}
