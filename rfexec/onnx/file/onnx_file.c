/* Opens model files. Each external file is opened only once, however many tensors it contains. */
#include "rfexec/onnx/file/onnx_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/descriptor.h"

struct open_file {
    struct rfx_weight_file as_weights;
    struct open_file *next;
    char *path;
    char *name; /* the location as written in the model; NULL: the model file itself */
    size_t size;
};

struct rfx_onnx_files {
    struct rfx_memory *mem;
    atomic_int users;
    struct open_file *first; /* the model is the last of the list */
    const struct open_file *model;
    void *owner; /* of the bytes of a model that is computed; NULL: none */
    void (*owner_free)(void *owner);
};

static enum rfx_status open_file(const char *path, int flags, struct rfx_weight_file *out,
                                 struct rfx_error *err) {
    /* O_NONBLOCK: opening a named pipe must not wait for a writer */
    int fd = rfx_descriptor_keep(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
    if (fd < 0) return rfx_fail(err, RFX_STATUS_IO, "cannot open '%s': %s", path, strerror(errno));
    enum rfx_status status = RFX_OK;
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = rfx_fail(err, RFX_STATUS_IO, "'%s' is not a regular file", path);
    else if (st.st_size == 0)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "'%s' is empty", path);
    if (status != RFX_OK) {
        close(fd);
        return status;
    }
    out->fd = fd;
    out->size = (size_t)st.st_size;
    out->modified = st.st_mtim;
    out->watched = true;
    return RFX_OK;
}

static void close_file(struct rfx_memory *mem, struct open_file *file) {
    if (file->as_weights.fd >= 0) close(file->as_weights.fd);
    rfx_memory_release(mem, file->path);
    rfx_memory_release(mem, file->name);
    rfx_memory_release(mem, file);
}

static void add(struct rfx_onnx_files *files, struct open_file *file) {
    file->as_weights.path = file->path;
    file->next = files->first;
    files->first = file;
}

static enum rfx_status add_file(struct rfx_onnx_files *files, const char *path, const char *name,
                                struct rfx_error *err) {
    struct open_file *file = rfx_memory_calloc(files->mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(files->mem, "model file", sizeof *file, err);
    enum rfx_status status = RFX_OK;
    file->as_weights.fd = -1;
    file->path = rfx_memory_strdup(files->mem, path);
    if (file->path == NULL)
        status = rfx_memory_fail(files->mem, "file path", strlen(path) + 1, err);
    if (name != NULL && (file->name = rfx_memory_strdup(files->mem, name)) == NULL)
        status = rfx_memory_fail(files->mem, "file name", strlen(name) + 1, err);
    /* The links of an external file's path have been resolved. O_NOFOLLOW refuses a link that was
     * put in its place since then. */
    int flags = name != NULL ? O_NOFOLLOW : 0;
    if (status == RFX_OK) status = open_file(path, flags, &file->as_weights, err);
    file->size = file->as_weights.size;
    if (status != RFX_OK) {
        close_file(files->mem, file);
        return status;
    }
    add(files, file);
    return RFX_OK;
}

/* Adds the model itself as a file without a descriptor: in memory, or of a maker. */
static enum rfx_status add_bytes(struct rfx_onnx_files *files, const char *name,
                                 const struct rfx_weight_file *bytes, struct rfx_error *err) {
    if (bytes->size == 0) return rfx_fail(err, RFX_STATUS_MALFORMED, "%s is empty", name);
    struct open_file *file = rfx_memory_calloc(files->mem, 1, sizeof *file);
    if (file == NULL) return rfx_memory_fail(files->mem, "model file", sizeof *file, err);
    file->path = rfx_memory_strdup(files->mem, name);
    file->size = bytes->size;
    file->as_weights = *bytes;
    file->as_weights.fd = -1;
    if (file->path == NULL) {
        close_file(files->mem, file);
        return rfx_memory_fail(files->mem, "file path", strlen(name) + 1, err);
    }
    add(files, file);
    return RFX_OK;
}

/* Opens the model file `path`, or (bytes not NULL) the model with these bytes and this name. */
static enum rfx_status open_model(struct rfx_memory *mem, const char *path,
                                  const struct rfx_weight_file *bytes, struct rfx_onnx_files **out,
                                  struct rfx_error *err) {
    struct rfx_onnx_files *files = rfx_memory_calloc(mem, 1, sizeof *files);
    if (files == NULL) return rfx_memory_fail(mem, "model files", sizeof *files, err);
    files->mem = mem;
    atomic_init(&files->users, 1);
    enum rfx_status status =
        bytes == NULL ? add_file(files, path, NULL, err) : add_bytes(files, path, bytes, err);
    if (status != RFX_OK) {
        rfx_onnx_files_free(files);
        return status;
    }
    files->model = files->first;
    *out = files;
    return RFX_OK;
}

enum rfx_status rfx_onnx_files_open(struct rfx_memory *mem, const char *path,
                                    struct rfx_onnx_files **out, struct rfx_error *err) {
    return open_model(mem, path, NULL, out, err);
}

enum rfx_status rfx_onnx_files_open_bytes(struct rfx_memory *mem, const void *bytes, size_t size,
                                          struct rfx_onnx_files **out, struct rfx_error *err) {
    const struct rfx_weight_file file = {.bytes = bytes, .size = size};
    return open_model(mem, "the model in memory", &file, out, err);
}

enum rfx_status rfx_onnx_files_open_made(struct rfx_memory *mem, const char *name,
                                         const struct rfx_weight_file *file, void *owner,
                                         void (*owner_free)(void *), struct rfx_onnx_files **out,
                                         struct rfx_error *err) {
    enum rfx_status status = open_model(mem, name, file, out, err);
    if (status != RFX_OK) return status;
    (*out)->owner = owner;
    (*out)->owner_free = owner_free;
    return RFX_OK;
}

void rfx_onnx_files_keep(struct rfx_onnx_files *files) {
    (void)atomic_fetch_add(&files->users, 1);
}

bool rfx_onnx_files_are_bytes(const struct rfx_onnx_files *files) {
    return files->model->as_weights.bytes != NULL;
}

void rfx_onnx_files_free(void *handle) {
    struct rfx_onnx_files *files = handle;
    if (files == NULL || atomic_fetch_sub(&files->users, 1) != 1) return;
    struct rfx_memory *mem = files->mem;
    while (files->first != NULL) {
        struct open_file *next = files->first->next;
        close_file(mem, files->first);
        files->first = next;
    }
    if (files->owner != NULL) files->owner_free(files->owner);
    rfx_memory_release(mem, files);
}

static struct rfx_onnx_bytes bytes_of(const struct open_file *file, uint64_t offset, size_t size) {
    return (struct rfx_onnx_bytes){NULL, &file->as_weights, offset, size};
}

struct rfx_onnx_bytes rfx_onnx_files_model(const struct rfx_onnx_files *files) {
    return bytes_of(files->model, 0, files->model->size);
}

/* Returns whether a location is a relative path without any ".." part. */
static bool location_is_inside(const char *location) {
    if (location[0] == '/') return false;
    for (const char *part = location; part != NULL; part = strchr(part, '/')) {
        if (*part == '/') part++;
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return false;
    }
    return true;
}

/* Returns whether a path is below a folder. Both are absolute and contain no links. */
static bool is_below(const char *path, const char *folder) {
    size_t n = strlen(folder);
    while (n > 0 && folder[n - 1] == '/') n--; /* "/" becomes the empty text */
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Removes the last part of a path. A path without a slash becomes ".". */
static void cut_to_folder(char path[PATH_MAX]) {
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        memcpy(path, ".", 2);
    else
        slash[slash == path ? 1 : 0] = '\0';
}

/* Resolves the symbolic links of an external file's path. The resolved path must be below one of
 * two folders: the folder of the path by which the model was opened, or the folder of the model
 * file itself after resolving links. The second is needed for model caches, which keep all files in
 * one folder and link to them. */
static enum rfx_status resolve(const char *model, const char *path, char resolved[PATH_MAX],
                               struct rfx_error *err) {
    char named[PATH_MAX], folder[PATH_MAX], own[PATH_MAX];
    if (strlen(model) >= sizeof named)
        return rfx_fail(err, RFX_STATUS_IO, "cannot open '%s': %s", model, strerror(ENAMETOOLONG));
    memcpy(named, model, strlen(model) + 1);
    cut_to_folder(named);
    if (realpath(path, resolved) == NULL || realpath(named, folder) == NULL ||
        realpath(model, own) == NULL)
        return rfx_fail(err, RFX_STATUS_IO, "cannot open '%s': %s", path, strerror(errno));
    cut_to_folder(own);
    if (is_below(resolved, folder) || is_below(resolved, own)) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "external data '%s' is a link that leads outside of the model's folder", path);
}

/* Sets *out to the external file of this location. Opens the file when it is not open yet. */
static enum rfx_status find_file(struct rfx_onnx_files *files, const char *location,
                                 const struct open_file **out, struct rfx_error *err) {
    for (const struct open_file *f = files->first; f != NULL; f = f->next) {
        if (f->name == NULL || strcmp(f->name, location) != 0) continue;
        *out = f;
        return RFX_OK;
    }
    const char *model = files->model->path;
    const char *slash = strrchr(model, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - model) + 1;
    size_t length = strlen(location);
    char *path = rfx_memory_alloc(files->mem, folder + length + 1);
    if (path == NULL) return rfx_memory_fail(files->mem, "file path", folder + length + 1, err);
    if (folder != 0) memcpy(path, model, folder);
    memcpy(path + folder, location, length + 1);
    char resolved[PATH_MAX];
    enum rfx_status status = resolve(model, path, resolved, err);
    if (status == RFX_OK) status = add_file(files, resolved, location, err);
    rfx_memory_release(files->mem, path);
    if (status == RFX_OK) *out = files->first;
    return status;
}

enum rfx_status rfx_onnx_files_attach(struct rfx_onnx_files *files, struct rfx_onnx_tensor *tensor,
                                      struct rfx_error *err) {
    if (files->model->as_weights.fd < 0)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "onnx: the values of tensor '%s' are in a file of their own, '%s', which a "
                        "model in memory cannot name: open the model's file, or save it with its "
                        "values inside",
                        tensor->name, tensor->location);
    if (!location_is_inside(tensor->location))
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "onnx: tensor '%s': external data '%s' lies outside of the model's folder",
                        tensor->name, tensor->location);
    const struct open_file *file = NULL;
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
    tensor->raw = bytes_of(file, (uint64_t)tensor->offset, bytes);
    return RFX_OK;
}
