/* Reads a list as a whole and splits it at line ends; see batch_list.h. */
#include "tools/commands/batch_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_kind.h"

/* Reads up to `room` bytes. Returns the number of bytes, or -1 with errno. */
static ssize_t read_some(int file, char *to, size_t room) {
    ssize_t n;
    do {
        n = read(file, to, room);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* Reads the whole file into list->text. The buffer is doubled when it is full. */
static enum rfx_status read_text(struct rfx_batch_list *list, int file, const char *path,
                                 struct rfx_error *err) {
    size_t room = 65536, filled = 0;
    list->text = rfx_memory_alloc(list->mem, room);
    if (list->text == NULL) return rfx_memory_fail(list->mem, path, room, err);
    for (;;) {
        if (filled + 1 == room) {
            if (room >= RFX_BATCH_LIST_MOST_BYTES)
                return rfx_fail(err, RFX_STATUS_MALFORMED, "list '%.200s': more than %zu bytes",
                                path, RFX_BATCH_LIST_MOST_BYTES);
            room *= 2;
            char *more = rfx_memory_realloc(list->mem, list->text, room);
            if (more == NULL) return rfx_memory_fail(list->mem, path, room, err);
            list->text = more;
        }
        ssize_t n = read_some(file, list->text + filled, room - 1 - filled);
        if (n < 0) return rfx_fail(err, RFX_STATUS_IO, "list '%.200s': %s", path, strerror(errno));
        if (n == 0) break;
        filled += (size_t)n;
    }
    list->text[filled] = '\0';
    list->bytes = room;
    if (strlen(list->text) != filled)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "list '%.200s': byte %zu is zero: this is no list of paths", path,
                        strlen(list->text));
    return RFX_OK;
}

/* Splits the text into lines and lists them. While list->paths is NULL, only counts them. */
static void cut_lines(struct rfx_batch_list *list) {
    list->n = 0;
    for (char *line = list->text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] != '\0');
        size_t end = length > 0 && line[length - 1] == '\r' ? length - 1 : length;
        if (end > 0 && list->paths != NULL) {
            line[end] = '\0';
            list->paths[list->n] = line;
        }
        list->n += end > 0;
        line = next;
    }
}

enum rfx_status rfx_batch_list_read(struct rfx_memory *mem, const char *path,
                                    struct rfx_batch_list *list, struct rfx_error *err) {
    *list = (struct rfx_batch_list){.mem = mem};
    bool own = strcmp(path, "-") != 0;
    int file = own ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (file < 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "list '%.200s': %s", path, strerror(errno));
    enum rfx_status status = read_text(list, file, path, err);
    if (own) (void)close(file);
    if (status != RFX_OK) return status;
    cut_lines(list);
    if (list->n == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "list '%.200s' has no paths", path);
    size_t bytes = list->n * sizeof *list->paths; /* cannot overflow: one path for each text line */
    list->paths = rfx_memory_alloc(mem, bytes);
    if (list->paths == NULL) return rfx_memory_fail(mem, path, bytes, err);
    list->bytes += 2 * bytes; /* a sorted copy is made later */
    cut_lines(list);
    return RFX_OK;
}

/* Writes the paths of a folder's files to `text`, each ended by a zero byte. With `text` NULL only
 * counts. Sets *n to the number of paths and returns the bytes. */
static size_t list_files(DIR *folder, const char *path, char *text, size_t room, size_t *n) {
    size_t filled = 0;
    *n = 0;
    rewinddir(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        struct stat info;
        size_t bytes = strlen(path) + strlen(entry->d_name) + 2;
        if (entry->d_name[0] == '.' || fstatat(dirfd(folder), entry->d_name, &info, 0) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (text != NULL && filled + bytes > room) break; /* a file was added meanwhile */
        if (text != NULL) (void)snprintf(text + filled, bytes, "%s/%s", path, entry->d_name);
        filled += bytes;
        ++*n;
    }
    return filled;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns whether `path` is a picture: a file with a zero byte at its beginning is no list. */
static bool is_picture(const char *path) {
    char head[64];
    const size_t prefix = strlen(RFX_IMAGE_SYNTHETIC_PREFIX);
    if (strncmp(path, RFX_IMAGE_SYNTHETIC_PREFIX, prefix) == 0 || rfx_is_zarr(path)) return true;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t n = read_some(file, head, sizeof head);
    (void)close(file);
    return n > 0 && memchr(head, 0, (size_t)n) != NULL;
}

/* Makes a list of one path. */
static enum rfx_status list_one(struct rfx_batch_list *list, const char *path,
                                struct rfx_error *err) {
    const size_t bytes = strlen(path) + 1;
    list->bytes = bytes + sizeof *list->paths;
    list->text = rfx_memory_alloc(list->mem, bytes);
    list->paths = rfx_memory_alloc(list->mem, sizeof *list->paths);
    if (list->text == NULL || list->paths == NULL)
        return rfx_memory_fail(list->mem, path, list->bytes, err);
    memcpy(list->text, path, bytes);
    list->paths[list->n++] = list->text;
    return RFX_OK;
}

enum rfx_status rfx_batch_list_read_images(struct rfx_memory *mem, const char *path,
                                           struct rfx_batch_list *list, struct rfx_error *err) {
    *list = (struct rfx_batch_list){.mem = mem};
    if (is_picture(path)) return list_one(list, path, err);
    DIR *folder = opendir(path);
    if (folder == NULL && (errno == ENOTDIR || errno == ENOENT))
        return rfx_batch_list_read(mem, path, list, err);
    if (folder == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "folder '%.200s': %s", path, strerror(errno));
    size_t n, bytes = list_files(folder, path, NULL, 0, &n);
    list->text = rfx_memory_alloc(mem, bytes + 1);
    list->paths = rfx_memory_alloc(mem, (n + 1) * sizeof *list->paths);
    list->bytes = bytes + n * sizeof *list->paths;
    if (list->text != NULL && list->paths != NULL)
        (void)list_files(folder, path, list->text, bytes, &list->n);
    (void)closedir(folder);
    if (list->text == NULL || list->paths == NULL)
        return rfx_memory_fail(mem, path, list->bytes, err);
    if (list->n == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "folder '%.200s' has no files", path);
    char *at = list->text;
    for (size_t i = 0; i < list->n; at += strlen(at) + 1) list->paths[i++] = at;
    qsort(list->paths, list->n, sizeof *list->paths, compare_paths);
    return RFX_OK;
}

const char *rfx_batch_list_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int compare_bases(const void *a, const void *b) {
    return strcmp(rfx_batch_list_base(*(char *const *)a), rfx_batch_list_base(*(char *const *)b));
}

enum rfx_status rfx_batch_list_check_bases(const struct rfx_batch_list *list,
                                           struct rfx_error *err) {
    size_t bytes = list->n * sizeof *list->paths;
    char **sorted = rfx_memory_alloc(list->mem, bytes);
    if (sorted == NULL) return rfx_memory_fail(list->mem, "list", bytes, err);
    memcpy(sorted, list->paths, bytes);
    qsort(sorted, list->n, sizeof *sorted, compare_bases);
    enum rfx_status status = RFX_OK;
    for (size_t i = 1; i < list->n && status == RFX_OK; ++i)
        if (compare_bases(&sorted[i - 1], &sorted[i]) == 0)
            status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                              "list: results of '%.150s' and '%.150s' would have the same name",
                              sorted[i - 1], sorted[i]);
    rfx_memory_release(list->mem, sorted);
    return status;
}

void rfx_batch_list_free(struct rfx_batch_list *list) {
    if (list->mem == NULL) return;
    rfx_memory_release(list->mem, list->paths);
    rfx_memory_release(list->mem, list->text);
    *list = (struct rfx_batch_list){0};
}
