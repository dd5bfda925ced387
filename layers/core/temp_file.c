/* Uses O_TMPFILE if the file system supports it, else O_EXCL with a random name. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE, O_PATH */
#endif
#include "layers/core/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "layers/core/descriptor.h"

enum { PROC_PATH = 40 };

const char *rfx_temp_folder(const char *folder) {
    if (folder != NULL) return folder;
    const char *named = getenv("TMPDIR");
    return named != NULL && named[0] != '\0' ? named : "/var/tmp";
}

/* Fills n bytes with random numbers; if the system has none ready, with numbers from the clock.
 * O_EXCL detects a name that exists: weak random numbers cost attempts but never overwrite a file.
 */
static void fill_random(unsigned char *bytes, size_t n) {
    if (getrandom(bytes, n, GRND_NONBLOCK) == (ssize_t)n) return;
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t bits = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid() << 40;
    for (size_t i = 0; i < n; i++) {
        bits = bits * 6364136223846793005U + 1442695040888963407U;
        bytes[i] = (unsigned char)(bits >> 56);
    }
}

void rfx_temp_file_name(char name[RFX_TEMP_FILE_NAME]) {
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345", start[] = ".rfexec-";
    enum { START = sizeof start - 1, LETTERS = RFX_TEMP_FILE_NAME - 1 - START };
    unsigned char bytes[LETTERS];
    fill_random(bytes, sizeof bytes);
    memcpy(name, start, START);
    for (int i = 0; i < LETTERS; i++) name[START + i] = digits[bytes[i] & 31];
    name[RFX_TEMP_FILE_NAME - 1] = '\0';
}

/* Writes the /proc path of an open file. Without privileges, only this path can be used to give a
 * nameless file a name. */
static void proc_path(int file, char path[PROC_PATH]) {
    (void)snprintf(path, PROC_PATH, "/proc/self/fd/%d", file);
}

static int open_unnamed(int folder, mode_t mode) {
    char path[PROC_PATH];
    int file = rfx_descriptor_keep(openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
    if (file < 0) return -1;
    proc_path(file, path);
    if (access(path, F_OK) == 0) return file;
    (void)close(file); /* /proc is not mounted: the file could never get a name */
    return -1;
}

int rfx_temp_file_open_at(int folder, mode_t mode, bool named, char name[RFX_TEMP_FILE_NAME]) {
    int file = named ? -1 : open_unnamed(folder, mode);
    name[0] = '\0';
    for (int attempt = 0; file < 0 && attempt < 64; attempt++) {
        rfx_temp_file_name(name);
        const int how = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        file = rfx_descriptor_keep(openat(folder, name, how, mode));
        if (file < 0 && errno != EEXIST) break;
    }
    if (file < 0) name[0] = '\0';
    return file;
}

int rfx_temp_file_open(const char *folder) {
    char name[RFX_TEMP_FILE_NAME];
    int at = rfx_descriptor_keep(open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (at < 0) return -1;
    int fd = rfx_temp_file_open_at(at, 0600, false, name);
    int number = errno;
    if (fd >= 0 && name[0] != '\0') (void)unlinkat(at, name, 0);
    (void)close(at);
    errno = number;
    return fd;
}

int rfx_temp_file_beside(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (length + 2 > sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, length);
    memcpy(folder + length, ".", 2);
    return rfx_temp_file_open(folder);
}

int rfx_temp_file_link(int file, int folder, const char *name) {
    char path[PROC_PATH];
    proc_path(file, path);
    return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW);
}
