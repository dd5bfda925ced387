/* Output files: whole or not at all, links, devices, pipes, every failure reported, and nothing
 * left behind; with nameless temporary files, and without them (a system call filter stands for a
 * file system that has none). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/core/temp_file.h"
#include "rfexec/output/output_file.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_output_file.tmp.d"
#define FILE_NAME DIRECTORY "/out.bin"

static void remove_files(void) {
    DIR *dir = opendir(DIRECTORY);
    char path[300];
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        (void)snprintf(path, sizeof path, DIRECTORY "/%s", entry->d_name);
        if (entry->d_type != DT_DIR) (void)unlink(path);
    }
    if (dir != NULL) (void)closedir(dir);
}

static int make_directory(void **state) {
    (void)state;
    remove_files();
    (void)rmdir(DIRECTORY);
    return mkdir(DIRECTORY, 0777);
}

static int remove_directory(void **state) {
    (void)state;
    remove_files();
    return rmdir(DIRECTORY);
}

static void put_file(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect_file(const char *path, const char *text) {
    char got[64] = "";
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("%s is not there", path);
    size_t n = fread(got, 1, sizeof got - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
}

static struct rfx_output_file *open_file(struct rfx_memory *mem, const char *path) {
    struct rfx_output_file *file = NULL;
    struct rfx_error err = {""};
    if (rfx_output_file_open(mem, path, &file, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_string_equal(rfx_output_file_path(file), path);
    return file;
}

static enum rfx_status write_text(struct rfx_memory *mem, const char *path, const char *text,
                                  struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    enum rfx_status status = rfx_output_file_open(mem, path, &file, err);
    if (status == RFX_OK) status = rfx_output_file_append(file, text, strlen(text), err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    rfx_output_file_free(file);
    return status;
}

/* The old file until the commit, nothing of an aborted one, the rights of a plain new file. */
static void whole_or_not_at_all(void) {
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int had_old = 0; had_old <= 1; had_old++) {
        if (had_old) put_file(FILE_NAME, "old");
        struct rfx_output_file *file = open_file(mem, FILE_NAME);
        assert_int_equal(rfx_output_file_append(file, "aborted", 7, NULL), RFX_OK);
        if (had_old) expect_file(FILE_NAME, "old");
        rfx_output_file_free(file);
        assert_int_equal(test_files_in(DIRECTORY), had_old);
        file = open_file(mem, FILE_NAME);
        assert_int_equal(rfx_output_file_append(file, "neXer", 5, NULL), RFX_OK);
        assert_int_equal(rfx_output_file_put(file, "w", 1, 2, NULL), RFX_OK);
        assert_int_equal(rfx_output_file_append(file, "!", 1, NULL), RFX_OK);
        if (had_old) expect_file(FILE_NAME, "old");
        assert_int_equal(rfx_output_file_commit(file, NULL), RFX_OK);
        rfx_output_file_free(file);
        expect_file(FILE_NAME, "newer!");
        assert_int_equal(test_files_in(DIRECTORY), 1);
        if (!had_old) assert_int_equal(unlink(FILE_NAME), 0);
    }
    struct stat info;
    assert_int_equal(stat(FILE_NAME, &info), 0);
    mode_t mask = umask(0);
    (void)umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    rfx_output_file_free(NULL);
    rfx_memory_free(mem);
}

static bool has_nameless_files(void) {
    int fd = open(DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0 && close(fd) == 0;
}

static void appears_whole_or_not_at_all(void **state) {
    (void)state;
    whole_or_not_at_all();
}

/* Runs `run` in a process in which a system call fails with `number` if `argument` has any of
 * `bits`. A child, as the filter cannot be taken back; its assertions end it with another code. */
static void run_without(uint32_t call, int argument, uint32_t bits, uint32_t number,
                        void (*run)(void)) {
#if defined(__x86_64__) || defined(__aarch64__)
    const uint32_t at = (uint32_t)offsetof(struct seccomp_data, args[0]) + 8u * (uint32_t)argument;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
#else
    (void)call, (void)argument, (void)bits, (void)number, (void)run;
    skip();
#endif
}

/* As on file systems that have no nameless files. */
static void run_without_nameless_files(void (*run)(void)) {
    run_without(SYS_openat, 2, O_TMPFILE & ~O_DIRECTORY, EOPNOTSUPP, run);
}

static void does_so_without_nameless_files(void **state) {
    (void)state;
    run_without_nameless_files(whole_or_not_at_all);
}

static void write_much(enum rfx_status expected, const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_file *file = open_file(mem, FILE_NAME);
    struct rfx_error err = {""};
    enum rfx_status status = RFX_OK;
    char *data = calloc(1, 1 << 20);
    for (int i = 0; i < 20 && status == RFX_OK; i++)
        status = rfx_output_file_append(file, data, 1 << 20, &err);
    assert_int_equal(status, expected);
    assert_non_null(strstr(err.text, words));
    status = rfx_output_file_commit(file, NULL);
    assert_int_equal(status, expected);
    assert_int_equal(test_files_in(DIRECTORY), expected == RFX_OK);
    rfx_output_file_free(file);
    free(data);
    rfx_memory_free(mem);
}

static void write_much_in_vain(void) {
    write_much(RFX_STATUS_IO, "syncing failed after 16777216 bytes");
}

static void write_much_unsent(void) {
    write_much(RFX_OK, "");
}

/* What is written goes to the disk all along, as nothing can end the last sync before its time. */
static void is_sent_to_the_disk_while_it_is_written(void **state) {
    (void)state;
    run_without(SYS_sync_file_range, 3, SYNC_FILE_RANGE_WRITE, EIO, write_much_in_vain);
    run_without(SYS_sync_file_range, 3, SYNC_FILE_RANGE_WRITE, ENOSYS, write_much_unsent);
}

/* A process that is killed while it writes: nothing is left, and the old file is. */
static void nothing_is_left_when_killed(void **state) {
    (void)state;
    if (!has_nameless_files()) skip();
    put_file(FILE_NAME, "old");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_output_file *file = open_file(mem, FILE_NAME);
        char *data = calloc(1, 100000);
        if (rfx_output_file_append(file, data, 100000, NULL) == RFX_OK) (void)raise(SIGKILL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(test_files_in(DIRECTORY), 1);
    expect_file(FILE_NAME, "old");
}

static void names_cannot_be_foreseen(void **state) {
    (void)state;
    char names[100][RFX_TEMP_FILE_NAME];
    for (int i = 0; i < 100; i++) {
        rfx_temp_file_name(names[i]);
        assert_int_equal(strlen(names[i]), RFX_TEMP_FILE_NAME - 1);
        for (int k = 0; k < i; k++) assert_string_not_equal(names[i], names[k]);
    }
    int folder = open(DIRECTORY, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = rfx_temp_file_open_at(folder, 0600, false, names[0]);
    assert_true(fd >= 0);
    put_file(FILE_NAME, "taken");
    if (names[0][0] == '\0') assert_int_equal(rfx_temp_file_link(fd, folder, "out.bin"), -1);
    expect_file(FILE_NAME, "taken");
    if (names[0][0] != '\0') assert_int_equal(unlinkat(folder, names[0], 0), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(folder), 0);
}

static void links_are_followed(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    struct stat info;
    put_file(DIRECTORY "/real", "old");
    assert_int_equal(symlink("real", DIRECTORY "/link"), 0);
    assert_int_equal(symlink("link", DIRECTORY "/chain"), 0);
    assert_int_equal(symlink("nothing", DIRECTORY "/lost"), 0);
    assert_int_equal(symlink("round", DIRECTORY "/round"), 0);
    assert_int_equal(write_text(mem, DIRECTORY "/chain", "new", &err), RFX_OK);
    expect_file(DIRECTORY "/real", "new");
    assert_int_equal(lstat(DIRECTORY "/chain", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(write_text(mem, DIRECTORY "/lost", "new", &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "symbolic link"));
    assert_int_equal(write_text(mem, DIRECTORY "/round", "new", &err), RFX_STATUS_IO);
    assert_int_equal(test_files_in(DIRECTORY), 5);
    rfx_memory_free(mem);
}

/* What comes under the name while the file is written is not lost. */
static void late_special_files_are_left_alone(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    struct stat info;
    struct rfx_output_file *file = open_file(mem, FILE_NAME);
    assert_int_equal(mkfifo(FILE_NAME, 0600), 0);
    assert_int_equal(rfx_output_file_commit(file, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, FILE_NAME));
    rfx_output_file_free(file);
    assert_int_equal(lstat(FILE_NAME, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(test_files_in(DIRECTORY), 1);
    rfx_memory_free(mem);
}

static void pipes_get_the_whole_file(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct stat info;
    char got[16] = "", name[32];
    int ends[2];
    assert_int_equal(mkfifo(FILE_NAME, 0600), 0);
    int reader = open(FILE_NAME, O_RDONLY | O_NONBLOCK);
    struct rfx_output_file *file = open_file(mem, FILE_NAME);
    assert_int_equal(rfx_output_file_append(file, "hallo", 5, NULL), RFX_OK);
    assert_int_equal(rfx_output_file_put(file, "e", 1, 1, NULL), RFX_OK); /* behind us */
    assert_int_equal(rfx_output_file_commit(file, NULL), RFX_OK);
    rfx_output_file_free(file);
    assert_int_equal(read(reader, got, sizeof got), 5);
    assert_string_equal(got, "hello");
    assert_int_equal(close(reader), 0);
    assert_int_equal(lstat(FILE_NAME, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(test_files_in(DIRECTORY), 1);

    assert_int_equal(pipe(ends), 0);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    assert_int_equal(write_text(mem, name, "by number", NULL), RFX_OK);
    assert_int_equal(read(ends[0], got, sizeof got), 9);
    assert_memory_equal(got, "by number", 9);
    assert_int_equal(close(ends[0]) | close(ends[1]), 0);
    rfx_memory_free(mem);
}

/* A descriptor of a file keeps its place and what was written there before. */
static void descriptors_are_continued(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    char name[48];
    int fd = open(FILE_NAME, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "before ", 7), 7);
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    assert_int_equal(write_text(mem, name, "after", &err), RFX_OK);
    assert_int_equal(close(fd), 0);
    expect_file(FILE_NAME, "before after");
    assert_int_equal(write_text(mem, name, "closed", &err), RFX_STATUS_IO);
    assert_int_equal(test_files_in(DIRECTORY), 1);
    rfx_memory_free(mem);
}

static void devices_are_written_in_place(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    struct stat info;
    assert_int_equal(symlink("/dev/null", DIRECTORY "/null"), 0);
    assert_int_equal(write_text(mem, DIRECTORY "/null", "x", &err), RFX_OK);
    assert_int_equal(stat(DIRECTORY "/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(symlink("/dev/full", DIRECTORY "/full"), 0);
        assert_int_equal(write_text(mem, DIRECTORY "/full", "x", &err), RFX_STATUS_IO);
        assert_non_null(strstr(err.text, "No space left"));
    }
    rfx_memory_free(mem);
}

static void reports_failures(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_file *file = NULL;
    struct rfx_error err = {""};
    char long_name[4500];
    assert_int_equal(rfx_output_file_open(mem, DIRECTORY "/no/such/dir", &file, &err),
                     RFX_STATUS_IO);
    assert_non_null(strstr(err.text, DIRECTORY "/no/such/dir"));
    assert_int_equal(rfx_output_file_open(mem, DIRECTORY, &file, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "directory"));
    assert_int_equal(rfx_output_file_open(mem, DIRECTORY "/new/", &file, &err), RFX_STATUS_IO);
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(rfx_output_file_open(mem, long_name, &file, &err), RFX_STATUS_IO);
    for (size_t i = 20; i < sizeof long_name; i += 21) long_name[i] = '/';
    long_name[sizeof long_name - 1] = '\0';
    assert_int_equal(rfx_output_file_open(mem, long_name, &file, &err), RFX_STATUS_IO);
    /* a name as long as names may be */
    char longest[sizeof DIRECTORY + 256] = DIRECTORY "/";
    memset(longest + sizeof DIRECTORY, 'b', 255);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(write_text(mem, longest, "x", &err), RFX_OK);
    assert_int_equal(unlink(longest), 0);

    /* a full disk, by the file size limit */
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100000;
    char *data = calloc(1, 60000);
    file = open_file(mem, FILE_NAME);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum rfx_status first = rfx_output_file_append(file, data, 60000, &err);
    enum rfx_status second = rfx_output_file_append(file, data, 60000, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(first, RFX_OK);
    assert_int_equal(second, RFX_STATUS_IO);
    assert_non_null(strstr(err.text, FILE_NAME));
    assert_non_null(strstr(err.text, "after 100000 bytes"));
    assert_int_equal(rfx_output_file_commit(file, &err), RFX_STATUS_IO);
    rfx_output_file_free(file);
    assert_int_equal(test_files_in(DIRECTORY), 0);
    free(data);
    rfx_memory_free(mem);
}

static enum rfx_status open_one(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_output_file *file = NULL;
    enum rfx_status status = rfx_output_file_open(mem, context, &file, err);
    rfx_output_file_free(file);
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    char path[] = FILE_NAME;
    assert_int_equal(test_fail_each_allocation(open_one, path), 3); /* file, path, base */
    assert_int_equal(test_files_in(DIRECTORY), 0);
}

/* Others open the temporary by its name, which goes with the commit, or without one. */
static void shares_its_temporary(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int i = 0; i < 4; i++) {
        int commit = i % 2;
        struct rfx_output_file *file = NULL;
        const char *temporary = NULL;
        struct rfx_error err = {""};
        (void)unlink(FILE_NAME);
        if (rfx_output_file_open_shared(mem, FILE_NAME, i < 2, &file, &temporary, &err) != RFX_OK)
            fail_msg("%s", err.text);
        assert_true(temporary[0] == '/' && access(temporary, F_OK) == 0);
        if (i < 2 || !has_nameless_files()) assert_false(rfx_output_file_is_nameless(file));
        if (rfx_output_file_is_nameless(file)) assert_int_equal(test_files_in(DIRECTORY), 0);
        put_file(temporary, "others' bytes"); /* truncates, writes */
        assert_int_equal(access(FILE_NAME, F_OK), -1);
        if (commit) assert_int_equal(rfx_output_file_commit(file, &err), RFX_OK);
        rfx_output_file_free(file);
        assert_int_equal(test_files_in(DIRECTORY), commit);
    }
    expect_file(FILE_NAME, "others' bytes");
    struct rfx_output_file *file = NULL;
    const char *temporary = NULL;
    struct rfx_error err = {""};
    assert_true(rfx_output_file_is_regular(FILE_NAME) && rfx_output_file_is_regular("new.npy"));
    assert_false(rfx_output_file_is_regular("/dev/null") || rfx_output_file_is_regular("-"));
    assert_int_equal(rfx_output_file_open_shared(mem, "/dev/null", true, &file, &temporary, &err),
                     RFX_STATUS_IO);
    assert_int_equal(
        rfx_output_file_open_shared(mem, "/nosuch/folder/out.npy", false, &file, &temporary, &err),
        RFX_STATUS_IO);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(appears_whole_or_not_at_all),
        IN_DIRECTORY(does_so_without_nameless_files),
        IN_DIRECTORY(is_sent_to_the_disk_while_it_is_written),
        IN_DIRECTORY(nothing_is_left_when_killed),
        IN_DIRECTORY(names_cannot_be_foreseen),
        IN_DIRECTORY(links_are_followed),
        IN_DIRECTORY(late_special_files_are_left_alone),
        IN_DIRECTORY(pipes_get_the_whole_file),
        IN_DIRECTORY(descriptors_are_continued),
        IN_DIRECTORY(devices_are_written_in_place),
        IN_DIRECTORY(reports_failures),
        IN_DIRECTORY(survives_failing_allocations),
        IN_DIRECTORY(shares_its_temporary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
