/* A run that is stopped at random moments, or whose disk is full: under the final name there is
 * what was there before, or the whole new file; nothing is left beside it, after SIGKILL where the
 * file system has nameless files. RFX_CASES and
 * RFX_SEED in the environment ask for other moments. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/test_util.h"

#define DIRECTORY "interrupt_work"

static const char old_content[] = "what was there before";

/* The ways to write one output. */
static const struct way {
    const char *path;
    const char *options[4]; /* after the model and the picture */
} ways[] = {
    {DIRECTORY "/whole.npy", {"--untiled"}},
    {DIRECTORY "/bands.npy", {"--bands", "8"}},
    {DIRECTORY "/bands.tif", {"--bands", "8"}},
    {DIRECTORY "/range.png", {"--bands", "8", "--range", "-1,1"}},
    {DIRECTORY "/spool.png", {"--bands", "8"}},
    {DIRECTORY "/spilled.npy", {"--plan", "interrupt_plan.json", "--spill", DIRECTORY}},
};
enum { WAYS = sizeof ways / sizeof ways[0] };
static unsigned char *wanted[WAYS];
static size_t wanted_bytes[WAYS];

static double now_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Starts a run; its messages go to err.txt. file_limit 0: none. */
static pid_t start(const struct way *way, rlim_t file_limit) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    char *args[16] = {(char *)(uintptr_t)RFX_PROGRAM, (char *)(uintptr_t) "run",
                      (char *)(uintptr_t) "fsrcnn",   (char *)(uintptr_t) "synthetic:144x128",
                      (char *)(uintptr_t) "-o",       (char *)(uintptr_t)way->path};
    for (int i = 0; i < 4; i++) args[6 + i] = (char *)(uintptr_t)way->options[i];
    int out = open("/dev/null", O_WRONLY);
    int err = open("interrupt_err.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)signal(SIGHUP, SIG_DFL); /* nohup's children would not catch it */
    const struct rlimit limit = {file_limit, file_limit};
    if (file_limit != 0 && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
    (void)execv(RFX_PROGRAM, args);
    _exit(127);
}

static unsigned char *read_file(const char *path, size_t *bytes) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    unsigned char *data = malloc((size_t)info.st_size + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *bytes = fread(data, 1, (size_t)info.st_size, file);
    data[*bytes] = '\0';
    assert_int_equal(fclose(file), 0);
    return data;
}

/* Files in the directory besides `path`; they are removed. */
static int remove_others(const char *path) {
    DIR *dir = opendir(DIRECTORY);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char name[512];
        (void)snprintf(name, sizeof name, DIRECTORY "/%s", entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (path != NULL && strcmp(name, path) == 0) continue;
        count++;
        assert_int_equal(unlink(name), 0);
    }
    assert_int_equal(closedir(dir), 0);
    return count;
}

static void put_old(const char *path) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(old_content, 1, sizeof old_content, file), sizeof old_content);
    assert_int_equal(fclose(file), 0);
}

/* Whether the final name has the whole new file; fails when it has anything but that or what was
 * there before. */
static bool has_new_file(int w, bool had_old) {
    size_t bytes = 0;
    if (access(ways[w].path, F_OK) != 0) {
        assert_false(had_old);
        return false;
    }
    unsigned char *data = read_file(ways[w].path, &bytes);
    bool is_new = bytes == wanted_bytes[w] && memcmp(data, wanted[w], bytes) == 0;
    bool is_old = had_old && bytes == sizeof old_content && memcmp(data, old_content, bytes) == 0;
    free(data);
    if (!is_new && !is_old)
        fail_msg("%s: %zu bytes, neither the old nor the new file", ways[w].path, bytes);
    return is_new;
}

/* A plan with a map of 4 MB in a file. */
static void make_plan(const char *path) {
    static const char plan[] =
        "{\"schema\": 1, \"kind\": \"rfexec plan\", \"stages\": [{\"mode\": \"streamed\", "
        "\"targets\": [\"expand.0\"], \"band_rows\": 8, \"spilled\": [\"expand.0\"]}, "
        "{\"mode\": \"streamed\", \"targets\": [\"deconv\"], \"band_rows\": 8}]}";
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(plan, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_references(void **state) {
    (void)state;
    make_plan("interrupt_plan.json");
    (void)mkdir(DIRECTORY, 0777);
    (void)remove_others(NULL);
    for (int w = 0; w < WAYS; w++) {
        int status = -1;
        pid_t child = start(&ways[w], 0);
        if (waitpid(child, &status, 0) != child || status != 0) return -1;
        wanted[w] = read_file(ways[w].path, &wanted_bytes[w]);
        if (unlink(ways[w].path) != 0) return -1;
    }
    return remove_others(NULL);
}

static int forget_references(void **state) {
    (void)state;
    for (int w = 0; w < WAYS; w++) free(wanted[w]);
    (void)remove_others(NULL);
    (void)unlink("interrupt_err.txt");
    (void)unlink("interrupt_plan.json");
    return rmdir(DIRECTORY);
}

static void ways_that_share_a_format_agree(void **state) {
    (void)state;
    for (int w = 1; w < WAYS; w++) {
        if (strstr(ways[w].path, ".npy") == NULL) continue;
        assert_int_equal(wanted_bytes[0], wanted_bytes[w]);
        assert_memory_equal(wanted[0], wanted[w], wanted_bytes[0]);
    }
}

static bool has_nameless_files(void) {
    int fd = open(DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0 && close(fd) == 0;
}

/* Whether the run caught the signal, stopped itself and said so: exit code 5. */
static bool check_end(int w, int signal_number, int status, bool had_old, double delay) {
    bool is_new = has_new_file(w, had_old);
    int others = remove_others(ways[w].path);
    size_t bytes;
    char *words = (char *)read_file("interrupt_err.txt", &bytes);
    bool handled = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 5);
    /* before its handlers are there, a signal ends the process itself */
    bool ended = WIFSIGNALED(status) && WTERMSIG(status) == signal_number;
    if (!handled && !ended)
        fail_msg("%s, signal %d after %.3f s: status %d\n%s", ways[w].path, signal_number, delay,
                 status, words);
    if ((signal_number != SIGKILL || has_nameless_files()) && others != 0)
        fail_msg("%s, signal %d after %.3f s: %d files left", ways[w].path, signal_number, delay,
                 others);
    if (WIFEXITED(status)) assert_int_equal(is_new, WEXITSTATUS(status) == 0);
    bool caught = WIFEXITED(status) && WEXITSTATUS(status) == 5;
    if (caught && strstr(words, "stopped") == NULL)
        fail_msg("%s, signal %d after %.3f s: it said: %s", ways[w].path, signal_number, delay,
                 words);
    free(words);
    return caught;
}

static void any_moment_leaves_the_old_or_the_new_file(void **state) {
    (void)state;
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL, SIGHUP};
    int64_t seed = test_env_int("RFX_SEED", 1), cases = test_env_int("RFX_CASES", 20);
    struct test_rng rng = test_rng_make((uint64_t)seed);
    double begin = now_seconds();
    int status;
    pid_t child = start(&ways[1], 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    float longest = (float)(1.2 * (now_seconds() - begin));
    assert_int_equal(unlink(ways[1].path), 0);
    int stopped = 0;
    for (int64_t i = 0; i < cases; i++) {
        int w = (int)(i % WAYS), signal_number = signals[i / WAYS % 4];
        bool had_old = test_rng_chance(&rng, 50);
        double delay = (double)test_rng_float(&rng, 0.0f, longest);
        (void)remove_others(NULL);
        if (had_old) put_old(ways[w].path);
        child = start(&ways[w], 0);
        const struct timespec pause = {(time_t)delay,
                                       (long)((delay - (double)(time_t)delay) * 1e9)};
        (void)nanosleep(&pause, NULL);
        assert_int_equal(kill(child, signal_number), 0); /* a zombie takes it too */
        assert_int_equal(waitpid(child, &status, 0), child);
        stopped += status != 0;
        (void)check_end(w, signal_number, status, had_old, delay);
    }
    print_message("%d of %d runs were stopped\n", stopped, (int)cases);
    assert_true(stopped > 0);
}

/* Waits until the process has a handler for the signal, as the kernel lists them, or has ended. */
static void wait_until_caught(pid_t child, int signal_number) {
    char path[64], line[256];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    for (double end = now_seconds() + 60; now_seconds() < end;) {
        unsigned long long handlers = 0;
        bool zombie = false;
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        while (fgets(line, sizeof line, file) != NULL) {
            if (strncmp(line, "SigCgt:", 7) == 0) handlers = strtoull(line + 7, NULL, 16);
            if (strncmp(line, "State:", 6) == 0) zombie = strchr(line, 'Z') != NULL;
        }
        assert_int_equal(fclose(file), 0);
        if (zombie || (handlers >> (signal_number - 1) & 1) != 0) return;
    }
    fail_msg("no handler for signal %d within a minute", signal_number);
}

/* Every signal that can be caught, sent as soon as the run catches it: the program itself stops,
 * with exit code 5, words, and nothing left. The run may end first on a busy machine: TRIES. */
static void each_signal_is_caught(void **state) {
    (void)state;
    enum { TRIES = 5 };
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t k = 0; k < sizeof signals / sizeof signals[0]; k++)
        for (int w = 0; w < WAYS; w++) {
            bool caught = false;
            for (int i = 0; i < TRIES && !caught; i++) {
                (void)remove_others(NULL);
                put_old(ways[w].path);
                pid_t child = start(&ways[w], 0);
                wait_until_caught(child, signals[k]);
                int status;
                assert_int_equal(kill(child, signals[k]), 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                caught = check_end(w, signals[k], status, true, 0.0);
            }
            if (!caught)
                fail_msg("%s: signal %d was never caught in %d runs", ways[w].path, signals[k],
                         TRIES);
        }
}

static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    for (int w = 0; w < WAYS - 1; w++) /* the last fills it with more: see below */
        for (int had_old = 0; had_old <= 1; had_old++) {
            (void)remove_others(NULL);
            if (had_old) put_old(ways[w].path);
            int status;
            pid_t child = start(&ways[w], wanted_bytes[w] / 2);
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 5);
            assert_false(has_new_file(w, had_old));
            assert_int_equal(remove_others(ways[w].path), 0);
            size_t bytes;
            char *words = (char *)read_file("interrupt_err.txt", &bytes);
            assert_non_null(strstr(words, "File too large"));
            assert_non_null(strstr(words, ways[w].path));
            free(words);
        }
}

/* Room for the output, and none for the map that is spilled. */
static void a_full_disk_for_spilled_maps(void **state) {
    (void)state;
    int w = WAYS - 1, status;
    (void)remove_others(NULL);
    pid_t child = start(&ways[w], 2 * wanted_bytes[w]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 5);
    assert_int_equal(remove_others(NULL), 0);
    size_t bytes;
    char *words = (char *)read_file("interrupt_err.txt", &bytes);
    assert_non_null(strstr(words, "folder '" DIRECTORY "': no room for the 3.9 MiB of 'expand.0'"));
    free(words);
}

/* The device that is always full, under a name that can be written to. */
static void a_full_device_is_an_error(void **state) {
    (void)state;
    static const struct way full = {DIRECTORY "/full.npy", {"--bands", "8"}};
    if (access("/dev/full", W_OK) != 0) skip();
    assert_int_equal(symlink("/dev/full", full.path), 0);
    int status;
    pid_t child = start(&full, 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 5);
    size_t bytes;
    char *words = (char *)read_file("interrupt_err.txt", &bytes);
    assert_non_null(strstr(words, "No space left"));
    free(words);
    assert_int_equal(unlink(full.path), 0);
}

/* Seconds of processor time that a child has used; negative when it is gone. */
static double used_seconds(pid_t child) {
    char path[64];
    unsigned long user = 0, system = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    int n = fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                   &system);
    (void)fclose(file);
    return n == 2 ? (double)(user + system) / (double)sysconf(_SC_CLK_TCK) : -1;
}

/* A model that shrinks while its weights are loaded by stage: an error that names the file, and
 * nothing of the output. */
static void shrinking_models_are_errors(void **state) {
    static const char model[] = DIRECTORY "/shrinks.onnx", output[] = DIRECTORY "/never.npy";
    const struct timespec moment = {0, 2000000};
    int status = -1;
    (void)state;
    (void)remove_others(NULL); /* of the tests before */
    assert_int_equal(system(RFX_PROGRAM " export resnet18 -o " DIRECTORY "/shrinks.onnx"
                                        " > /dev/null 2>&1"),
                     0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (freopen("/dev/null", "wb", stdout) == NULL ||
            freopen("interrupt_err.txt", "wb", stderr) == NULL)
            _exit(126);
        (void)execl(RFX_PROGRAM, "rfexec", "run", model, "synthetic:1200x1200", "--bands", "16",
                    "--weights-by-stage", "-o", output, (char *)NULL);
        _exit(127);
    }
    while (used_seconds(child) < 0.3 && waitpid(child, &status, WNOHANG) == 0)
        (void)nanosleep(&moment, NULL);
    assert_int_equal(truncate(model, 4096), 0); /* the later layers are yet to be loaded */
    assert_int_equal(waitpid(child, &status, 0), child);
    size_t bytes;
    char *text = (char *)read_file("interrupt_err.txt", &bytes);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 5 || strstr(text, "become shorter") == NULL ||
        strstr(text, model) == NULL)
        fail_msg("status %#x: %s", (unsigned)status, text);
    free(text);
    assert_int_equal(remove_others(model), 0);
    assert_int_equal(unlink(model), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_that_share_a_format_agree),
        cmocka_unit_test(any_moment_leaves_the_old_or_the_new_file),
        cmocka_unit_test(each_signal_is_caught),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(a_full_disk_for_spilled_maps),
        cmocka_unit_test(a_full_device_is_an_error),
        cmocka_unit_test(shrinking_models_are_errors),
    };
    return cmocka_run_group_tests(tests, make_references, forget_references);
}
