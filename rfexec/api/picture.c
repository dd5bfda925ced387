/* Pictures that are given as bytes. They are copied to a file without a name, which decoders open
 * as /proc/self/fd/N.
 *
 * The copy is on the disk to keep the budget: decoders read files in parts, but a copy in memory
 * would count as a whole. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"
#include "rfexec/api/api_support.h"

enum { BLOCK_BYTES = 64 << 10 };

struct rfx_picture {
    struct rfx_memory *mem;
    int fd;
    char name[32]; /* "/proc/self/fd/7" */
};

void rfx_picture_free(struct rfx_picture *picture) {
    if (picture == NULL) return;
    struct rfx_memory *mem = picture->mem;
    if (picture->fd >= 0) (void)close(picture->fd);
    rfx_memory_release(mem, picture);
    rfx_memory_free(mem);
}

const char *rfx_picture_name(const struct rfx_picture *picture) {
    return picture != NULL ? picture->name : NULL;
}

/* Makes a picture with an empty file. */
static enum rfx_status create(const char *folder, struct rfx_picture **out, struct rfx_error *err) {
    static const struct rfx_memory_hooks system = {0};
    struct rfx_memory *mem;
    struct rfx_picture *picture =
        rfx_api_create(&system, sizeof *picture, "a picture handle", &mem, err);
    if (picture == NULL) return RFX_STATUS_OUT_OF_MEMORY;
    picture->mem = mem;
    folder = rfx_temp_folder(folder);
    picture->fd = rfx_temp_file_open(folder);
    (void)snprintf(picture->name, sizeof picture->name, "/proc/self/fd/%d", picture->fd);
    *out = picture;
    if (picture->fd >= 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_IO, "a file for a picture in '%.200s': %s", folder,
                    strerror(errno));
}

static enum rfx_status append(const struct rfx_picture *picture, const void *bytes, size_t n,
                              struct rfx_error *err) {
    int failure = rfx_descriptor_write(picture->fd, bytes, n, NULL);
    if (failure == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_IO, "copying a picture to a nameless file: %s",
                    strerror(failure));
}

/* Where a picture's bytes come from: a block, or a function that is called until it returns 0. */
struct origin {
    const void *bytes;
    size_t n_bytes;
    int64_t (*read)(void *user, void *to, int64_t most);
    void *user;
};

static enum rfx_status copy_stream(const struct rfx_picture *picture, const struct origin *origin,
                                   struct rfx_error *err) {
    void *block = rfx_memory_alloc(picture->mem, BLOCK_BYTES);
    if (block == NULL) return rfx_memory_fail(picture->mem, "a picture", BLOCK_BYTES, err);
    enum rfx_status status = RFX_OK;
    int64_t got = 1;
    while (status == RFX_OK && got > 0) {
        got = origin->read(origin->user, block, BLOCK_BYTES);
        if (got < 0 || got > BLOCK_BYTES)
            status = rfx_fail(err, RFX_STATUS_IO, "the caller's read function returned %lld of %d",
                              (long long)got, BLOCK_BYTES);
        else if (got > 0)
            status = append(picture, block, (size_t)got, err);
    }
    rfx_memory_release(picture->mem, block);
    return status;
}

static enum rfx_code open_picture(const struct origin *origin, const char *folder,
                                  struct rfx_picture **out, struct rfx_why *why) {
    struct rfx_error err = {{0}};
    struct rfx_picture *picture = NULL;
    enum rfx_status status = rfx_api_need(out, "out", &err);
    if (status == RFX_OK && origin->bytes == NULL && origin->read == NULL)
        status = rfx_fail(&err, RFX_STATUS_INVALID_ARGUMENT, "neither bytes nor a read function");
    if (status == RFX_OK) status = create(folder, &picture, &err);
    if (status == RFX_OK)
        status = origin->bytes != NULL ? append(picture, origin->bytes, origin->n_bytes, &err)
                                       : copy_stream(picture, origin, &err);
    if (status == RFX_OK)
        *out = picture;
    else
        rfx_picture_free(picture);
    return rfx_api_result(status, &err, why);
}

enum rfx_code rfx_picture_from_bytes(const void *bytes, size_t n_bytes, const char *folder,
                                     struct rfx_picture **out, struct rfx_why *why) {
    const struct origin origin = {.bytes = bytes, .n_bytes = n_bytes};
    return open_picture(&origin, folder, out, why);
}

enum rfx_code rfx_picture_from_stream(int64_t (*read)(void *user, void *to, int64_t most),
                                      void *user, const char *folder, struct rfx_picture **out,
                                      struct rfx_why *why) {
    const struct origin origin = {.read = read, .user = user};
    return open_picture(&origin, folder, out, why);
}
