/* Runs a fuzz target without libFuzzer: every file of a corpus, every beginning of it, and changes
 * of it, the same ones each time.
 *
 *     fuzz_png CORPUS [CHANGES]     changes of each file; by default 100
 *     fuzz_png FILE                 one input, as libFuzzer keeps it
 *
 * When the target fails, the input is left as "<program>.finding". */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 16, MOST_FILES = 4096, CHANGES = 100, MOST_CUTS = 400 };

static struct {
    uint8_t *bytes; /* of exactly this size, so that a sanitizer sees a step too far */
    size_t size;
    long count;
    char finding[256];
} run;

/* Keeps the input that was being run; only calls that signal handlers may make. */
static void keep_input(int number) {
    static const char words[] = ": the input is kept\n";
    int fd = open(run.finding, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd >= 0 && write(fd, run.bytes, run.size) == (ssize_t)run.size) {
        ssize_t told = write(STDERR_FILENO, run.finding, strlen(run.finding));
        if (told > 0) told = write(STDERR_FILENO, words, sizeof words - 1);
    }
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void run_input(const uint8_t *bytes, size_t size) {
    run.bytes = malloc(size > 0 ? size : 1);
    if (run.bytes == NULL) abort();
    memcpy(run.bytes, bytes, size);
    run.size = size;
    (void)LLVMFuzzerTestOneInput(run.bytes, size);
    run.count++;
    free(run.bytes);
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* One to four places get another bit, byte or the byte of another place. */
static void run_change(const uint8_t *bytes, size_t size, uint32_t *state) {
    static uint8_t copy[MOST_BYTES];
    memcpy(copy, bytes, size);
    for (uint32_t n = 1 + next_random(state) % 4; n > 0; n--) {
        size_t at = next_random(state) % size;
        uint32_t kind = next_random(state) % 3, value = next_random(state);
        if (kind == 0) copy[at] = (uint8_t)(copy[at] ^ 1u << value % 8);
        if (kind == 1) copy[at] = (uint8_t)value;
        if (kind == 2) copy[at] = bytes[value % size];
    }
    run_input(copy, size);
}

static size_t read_file(const char *path, uint8_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t size = fread(bytes, 1, MOST_BYTES, file);
    if (ferror(file) || !feof(file)) {
        fprintf(stderr, "%s: not a file of less than %d bytes\n", path, MOST_BYTES);
        exit(2);
    }
    (void)fclose(file);
    return size;
}

static void run_file(const char *path, long changes, uint32_t seed) {
    static uint8_t bytes[MOST_BYTES];
    size_t size = read_file(path, bytes), step = size / MOST_CUTS + 1;
    run_input(bytes, size);
    for (size_t cut = 0; changes > 0 && cut < size; cut += step) run_input(bytes, cut);
    for (long i = 0; size > 0 && i < changes; i++) run_change(bytes, size, &seed);
}

static int is_file(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void run_corpus(const char *folder, long changes) {
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_file, alphasort);
    if (n <= 0) {
        fprintf(stderr, "%s: no corpus\n", folder);
        exit(2);
    }
    for (int i = 0; i < n; i++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        run_file(path, changes, (uint32_t)i);
        free(entries[i]);
    }
    free(entries);
    printf("%d files, %ld inputs, no finding\n", n, run.count);
}

int main(int argc, char **argv) {
    struct stat info;
    if (argc < 2 || argc > 3 || stat(argv[1], &info) != 0) {
        fprintf(stderr, "usage: %s CORPUS [CHANGES] or FILE\n", argv[0]);
        return 2;
    }
    const char *slash = strrchr(argv[0], '/');
    (void)snprintf(run.finding, sizeof run.finding, "%s.finding",
                   slash != NULL ? slash + 1 : argv[0]);
    (void)signal(SIGABRT, keep_input);
#ifndef RFX_SANITIZE /* whose own words come with this signal */
    (void)signal(SIGSEGV, keep_input);
    (void)signal(SIGFPE, keep_input);
    (void)signal(SIGBUS, keep_input);
#endif
    if (S_ISDIR(info.st_mode))
        run_corpus(argv[1], argc == 3 ? atol(argv[2]) : CHANGES);
    else
        run_file(argv[1], 0, 0);
    return 0;
}
