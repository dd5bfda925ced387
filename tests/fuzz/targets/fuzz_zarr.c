/* Zarr folders: a byte whose lowest bit is the format, 2 or 3; the JSON of the array up to a byte
 * of 0xff; that of a group around it, empty: there is none; then the bytes of each chunk near the
 * first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static const char *const files[] = {"0/zarr.json", "0/.zarray", "zarr.json", ".zattrs",
                                    "0/c/0/0/0",   "0/c/0/0",   "0/0.0.0",   "0/0.0"};
static const char *const folders[] = {"0/c/0/0", "0/c/0", "0/c", "0"};
enum { FILES = sizeof files / sizeof files[0], FOLDERS = sizeof folders / sizeof folders[0] };

static char top[64];

static const char *path_of(const char *name) {
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static void remove_all(void) {
    for (int i = 0; i < FILES; i++) (void)unlink(path_of(files[i]));
    for (int i = 0; i < FOLDERS; i++) (void)rmdir(path_of(folders[i]));
}

static void leave(void) {
    remove_all();
    (void)rmdir(top);
}

static void make_folder(const char *path) {
    if (mkdir(path, 0777) != 0 && errno != EEXIST) fuzz_fail("%s: %s", path, strerror(errno));
}

static void put(const char *name, const uint8_t *data, size_t size) {
    FILE *file = fopen(path_of(name), "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        fuzz_fail("%s: %s", name, strerror(errno));
}

/* Where chunks lie that are numbered by three axes, or by two. */
static void put_chunks(const uint8_t *data, size_t size, bool three) {
    make_folder(path_of("0/c"));
    make_folder(path_of("0/c/0"));
    if (three) make_folder(path_of("0/c/0/0"));
    put(three ? "0/c/0/0/0" : "0/c/0/0", data, size);
    put(three ? "0/0.0.0" : "0/0.0", data, size);
}

/* The bytes up to the next 0xff, behind which *data stands then. */
static size_t next_text(const uint8_t **data, size_t *size) {
    const uint8_t *end = *size > 0 ? memchr(*data, 0xff, *size) : NULL;
    size_t length = end != NULL ? (size_t)(end - *data) : *size;
    size_t taken = end != NULL ? length + 1 : length;
    *data += taken;
    *size -= taken;
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    if (top[0] == '\0') {
        (void)snprintf(top, sizeof top, "/dev/shm/fuzz_zarr.%d", (int)getpid());
        if (atexit(leave) != 0) fuzz_fail("atexit");
    }
    const bool three = data[0] & 2;
    const int format = data[0] & 1;
    data++;
    size--;
    make_folder(top);
    remove_all();
    make_folder(path_of("0"));
    const uint8_t *array = data;
    put(files[1 - format], array, next_text(&data, &size));
    const uint8_t *group = data;
    size_t length = next_text(&data, &size);
    if (length > 0) put(files[3 - format], group, length);
    put_chunks(data, size, three);
    char path[80];
    (void)snprintf(path, sizeof path, "%s%s", top, length > 0 ? "" : "/0");
    fuzz_picture_at(path);
    fuzz_pages_at(path);
    return 0;
}
