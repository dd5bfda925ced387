/* Mapping of model files. Each external file is mapped once, whatever the number of tensors in it.
 */
#include "rfexec/onnx_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/checked.h"

struct mapped_file {
    struct mapped_file *next;
    char *name; /* as in the model; NULL: the model itself */
    void *data;
    size_t size;
};

struct rfx_onnx_files {
    struct rfx_memory *mem;
    char *path;
    struct mapped_file *first; /* the model is the last of the list */
    struct rfx_onnx_span model;
};

static enum rfx_status map_file(const char *path, void **data, size_t *size,
                                struct rfx_error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not wait for a writer */
    if (fd < 0) return rfx_fail(err, RFX_STATUS_IO, "cannot open '%s': %s", path, strerror(errno));
    enum rfx_status status = RFX_OK;
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        status = rfx_fail(err, RFX_STATUS_IO, "'%s' is not a regular file", path);
    } else if (st.st_size == 0) {
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "'%s' is empty", path);
    } else {
        void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) {
            status = rfx_fail(err, RFX_STATUS_IO, "cannot map '%s': %s", path, strerror(errno));
        } else {
            *data = at;
            *size = (size_t)st.st_size;
        }
    }
    close(fd);
    return status;
}

static enum rfx_status add_file(struct rfx_onnx_files *files, const char *path, const char *name,
                                struct rfx_error *err) {
    struct mapped_file *file = rfx_memory_calloc(files->mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(files->mem, "mapped file", sizeof *file, err);
    enum rfx_status status = RFX_OK;
    if (name != NULL && (file->name = rfx_memory_strdup(files->mem, name)) == NULL)
        status = rfx_memory_fail(files->mem, "file name", strlen(name) + 1, err);
    if (status == RFX_OK) status = map_file(path, &file->data, &file->size, err);
    if (status != RFX_OK) {
        rfx_memory_release(files->mem, file->name);
        rfx_memory_release(files->mem, file);
        return status;
    }
    file->next = files->first;
    files->first = file;
    return RFX_OK;
}

enum rfx_status rfx_onnx_files_open(struct rfx_memory *mem, const char *path,
                                    struct rfx_onnx_files **out, struct rfx_error *err) {
    struct rfx_onnx_files *files = rfx_memory_calloc(mem, 1, sizeof *files);
    if (files == NULL) return rfx_memory_fail(mem, "model files", sizeof *files, err);
    files->mem = mem;
    files->path = rfx_memory_strdup(mem, path);
    enum rfx_status status = RFX_OK;
    if (files->path == NULL) status = rfx_memory_fail(mem, "model path", strlen(path) + 1, err);
    if (status == RFX_OK) status = add_file(files, path, NULL, err);
    if (status != RFX_OK) {
        rfx_onnx_files_free(files);
        return status;
    }
    files->model.data = files->first->data;
    files->model.size = files->first->size;
    *out = files;
    return RFX_OK;
}

void rfx_onnx_files_free(void *handle) {
    struct rfx_onnx_files *files = handle;
    if (files == NULL) return;
    struct rfx_memory *mem = files->mem;
    while (files->first != NULL) {
        struct mapped_file *next = files->first->next;
        munmap(files->first->data, files->first->size);
        rfx_memory_release(mem, files->first->name);
        rfx_memory_release(mem, files->first);
        files->first = next;
    }
    rfx_memory_release(mem, files->path);
    rfx_memory_release(mem, files);
}

struct rfx_onnx_span rfx_onnx_files_model(const struct rfx_onnx_files *files) {
    return files->model;
}

/* Relative, without any ".." part. */
static bool location_is_inside(const char *location) {
    if (location[0] == '/') return false;
    for (const char *part = location; part != NULL; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return false;
    }
    return true;
}

/* The mapped external file of that name, mapping it when it is new. */
static enum rfx_status find_file(struct rfx_onnx_files *files, const char *location,
                                 const struct mapped_file **out, struct rfx_error *err) {
    for (const struct mapped_file *f = files->first; f != NULL; f = f->next) {
        if (f->name == NULL || strcmp(f->name, location) != 0) continue;
        *out = f;
        return RFX_OK;
    }
    const char *slash = strrchr(files->path, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - files->path) + 1;
    size_t length = strlen(location);
    char *path = rfx_memory_alloc(files->mem, folder + length + 1);
    if (path == NULL) return rfx_memory_fail(files->mem, "file path", folder + length + 1, err);
    if (folder != 0) memcpy(path, files->path, folder);
    memcpy(path + folder, location, length + 1);
    enum rfx_status status = add_file(files, path, location, err);
    rfx_memory_release(files->mem, path);
    if (status == RFX_OK) *out = files->first;
    return status;
}

enum rfx_status rfx_onnx_files_attach(struct rfx_onnx_files *files, struct rfx_onnx_tensor *tensor,
                                      struct rfx_error *err) {
    if (!location_is_inside(tensor->location))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "onnx: tensor '%s': external data '%s' lies outside of the model's folder",
                        tensor->name, tensor->location);
    const struct mapped_file *file = NULL;
    enum rfx_status status = find_file(files, tensor->location, &file, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "onnx: tensor '%s'", tensor->name);
    size_t bytes = 0;
    bool fits =
        rfx_checked_mul_size((size_t)tensor->elems, rfx_onnx_type_bytes(tensor->type), &bytes) &&
        (tensor->length < 0 || (size_t)tensor->length == bytes) &&
        (size_t)tensor->offset <= file->size && bytes <= file->size - (size_t)tensor->offset;
    if (!fits)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "onnx: tensor '%s': %zu bytes at %lld (length %lld) of external data '%s', "
                        "which has %zu bytes",
                        tensor->name, bytes, (long long)tensor->offset, (long long)tensor->length,
                        tensor->location, file->size);
    tensor->raw.data = (const uint8_t *)file->data + tensor->offset;
    tensor->raw.size = bytes;
    return RFX_OK;
}

void rfx_onnx_files_drop_pages(const void *opened) {
    const struct rfx_onnx_files *files = opened;
    for (const struct mapped_file *f = files->first; f != NULL; f = f->next)
        (void)madvise(f->data, f->size, MADV_DONTNEED);
}
