/* The main function of a program that holds the test files of a folder:
 *
 *     unit_layers_core                       # every test file
 *     unit_layers_core test_rect test_pool   # these test files
 *     unit_layers_core --list                # the names of the test files
 *
 * One test file runs in this process, where a debugger stops in it. Several test files run one
 * after the other, each in a child process: none sees what another one left in memory, in the
 * environment or in the limits of its process. CMake generates RFX_TEST_LIST, a header with one
 * line for each test file: TEST_FILE(test_rect). */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_FILE(name) int name##_main(void);
#include RFX_TEST_LIST
#undef TEST_FILE

struct test_file {
    const char *name;
    int (*run)(void); /* returns the number of failed tests, or SKIPPED */
};

static const struct test_file files[] = {
#define TEST_FILE(name) {#name, name##_main},
#include RFX_TEST_LIST
#undef TEST_FILE
};
enum {
    N_FILES = sizeof files / sizeof files[0],
    SKIPPED = 77 /* exit code of a test file that this processor cannot run */
};

static const struct test_file *find(const char *name) {
    for (int i = 0; i < N_FILES; ++i)
        if (strcmp(files[i].name, name) == 0) return &files[i];
    return NULL;
}

static int usage(const char *program, const char *unknown) {
    (void)fprintf(stderr, "%s: there is no test file '%s'; --list prints the names\n", program,
                  unknown);
    return 2;
}

/* Runs the test file in a child process; true when all its tests passed or were skipped. */
static bool passes_in_child(const struct test_file *file) {
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return false;
    }
    if (child == 0) {
        int code = file->run();
        exit(code == 0 || code == SKIPPED ? code : 1); /* exit, not _exit: it looks for leaks */
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return false;
    if (WIFSIGNALED(status))
        (void)fprintf(stderr, "%s: ended by signal %d\n", file->name, WTERMSIG(status));
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SKIPPED);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < N_FILES; ++i) (void)puts(files[i].name);
        return 0;
    }
    for (int i = 1; i < argc; ++i)
        if (find(argv[i]) == NULL) return usage(argv[0], argv[i]);
    if (argc == 2) return find(argv[1])->run();
    int n = argc > 1 ? argc - 1 : N_FILES, n_failed = 0;
    for (int i = 0; i < n; ++i) {
        const struct test_file *file = argc > 1 ? find(argv[i + 1]) : &files[i];
        if (passes_in_child(file)) continue;
        (void)fprintf(stderr, "FAILED: %s\n", file->name);
        ++n_failed;
    }
    (void)printf("%d test files passed, %d failed\n", n - n_failed, n_failed);
    return n_failed == 0 ? 0 : 1;
}
