/* See fuzz_parts.h. */
#include "tests/fuzz/fuzz_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { FILES = 16, PATH_CHARS = 64 };

static char folder[32];

static void remove_all(void) {
    char path[PATH_CHARS + 8];
    for (int i = 0; i < FILES; i++) {
        (void)unlink(fuzz_part_path(i));
        (void)snprintf(path, sizeof path, "%.63s.json", fuzz_part_path(i));
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

const char *fuzz_part_path(int i) {
    static char paths[FILES][PATH_CHARS];
    if (folder[0] == '\0') {
        /* In memory, where that is a place for files: each one written is flushed. */
        const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        (void)snprintf(folder, sizeof folder, "%s/fuzz_part.XXXXXX", where);
        if (mkdtemp(folder) == NULL || atexit(remove_all) != 0) fuzz_fail("no folder in %s", where);
    }
    (void)snprintf(paths[i], sizeof paths[i], "%s/p%d", folder, i);
    return paths[i];
}

void fuzz_part_write(int i, const char *end, const void *bytes, size_t size) {
    char path[PATH_CHARS + 8];
    (void)snprintf(path, sizeof path, "%.63s%.7s", fuzz_part_path(i), end);
    FILE *file = fopen(path, "wb");
    bool done = file != NULL && fwrite(bytes, 1, size, file) == size;
    if (file == NULL || fclose(file) != 0 || !done) fuzz_fail("%s cannot be written", path);
}

size_t fuzz_next_json(const uint8_t **data, size_t *size, const uint8_t **json) {
    const uint8_t *end = *size > 0 ? memchr(*data, FUZZ_JSON_END, *size) : NULL;
    size_t length = end == NULL ? *size : (size_t)(end - *data), used = length + (end != NULL);
    *json = *data;
    *data = used > 0 ? *data + used : *data;
    *size -= used;
    return length;
}
