/* Reads a file as a whole; see text_read.h. */
#include "rfexec/output/text_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "layers/core/descriptor.h"

enum { END = RFX_TEXT_END };

enum rfx_status rfx_text_read(struct rfx_memory *mem, const char *path, const char *what,
                              size_t most, char **text, size_t *bytes, struct rfx_error *err) {
    FILE *file = rfx_descriptor_stream(path);
    if (file == NULL)
        return rfx_fail(err, RFX_STATUS_IO, "%s '%s': %s", what, path, strerror(errno));
    struct stat at;
    enum rfx_status status = RFX_OK;
    if (fstat(fileno(file), &at) != 0 || !S_ISREG(at.st_mode) || at.st_size > (off_t)most)
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                          "%s '%s': not a file of up to %zu bytes", what, path, most);
    size_t n = status == RFX_OK ? (size_t)at.st_size : 0;
    char *block = status == RFX_OK ? rfx_memory_alloc(mem, n + END) : NULL;
    if (status == RFX_OK && block == NULL) status = rfx_memory_fail(mem, path, n + END, err);
    if (status == RFX_OK && fread(block, 1, n, file) != n)
        status = rfx_fail(err, RFX_STATUS_IO, "%s '%s': cannot be read", what, path);
    (void)fclose(file);
    if (status != RFX_OK) {
        rfx_memory_release(mem, block);
        return status;
    }
    block[n] = '\0';
    *text = block;
    *bytes = n;
    return RFX_OK;
}
