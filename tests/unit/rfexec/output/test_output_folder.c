/* Folders that appear whole or not at all: names that are taken, writes that fail, what is left. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/output/output_folder.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_output_folder.tmp.d"
#define NAME DIRECTORY "/a"

static void remove_made(void) {
    assert_int_equal(unlink(NAME "/0/1/2"), 0);
    assert_int_equal(unlink(NAME "/0/1/3"), 0);
    assert_int_equal(unlink(NAME "/plain"), 0);
    assert_int_equal(rmdir(NAME "/0/1"), 0);
    assert_int_equal(rmdir(NAME "/0"), 0);
    assert_int_equal(rmdir(NAME), 0);
}

static enum rfx_status put_three(struct rfx_output_folder *folder, struct rfx_error *err) {
    enum rfx_status status = rfx_output_folder_put(folder, "0/1/2", "abc", 3, err);
    if (status == RFX_OK) status = rfx_output_folder_put(folder, "0/1/3", "", 0, err);
    if (status == RFX_OK) status = rfx_output_folder_append(folder, "plain", "def", 3, err);
    return status == RFX_OK ? rfx_output_folder_append(folder, "plain", "g", 1, err) : status;
}

static enum rfx_status write_folder(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_output_folder *folder = NULL;
    (void)context;
    enum rfx_status status = rfx_output_folder_open(mem, NAME, &folder, err);
    if (status == RFX_OK) status = put_three(folder, err);
    if (status == RFX_OK && access(NAME, F_OK) == 0) status = RFX_STATUS_COUNT; /* too early */
    if (status == RFX_OK) status = rfx_output_folder_commit(folder, err);
    rfx_output_folder_free(folder);
    return status;
}

static void check_file(const char *path, const char *wanted) {
    char got[16];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), strlen(wanted));
    assert_memory_equal(got, wanted, strlen(wanted));
    assert_int_equal(fclose(file), 0);
}

static void appears_on_commit(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    mode_t before = umask(027);
    enum rfx_status status = write_folder(mem, NULL, &err);
    (void)umask(before);
    if (status != RFX_OK) fail_msg("%d %s", status, err.text);
    check_file(NAME "/0/1/2", "abc");
    check_file(NAME "/0/1/3", "");
    check_file(NAME "/plain", "defg");
    struct stat info;
    assert_int_equal(stat(NAME, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0750);
    assert_int_equal(stat(NAME "/0/1/2", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(stat(NAME "/plain", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    /* what is there stays as it is */
    assert_int_equal(write_folder(mem, NULL, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, NAME ": is there already"));
    check_file(NAME "/plain", "defg");
    remove_made();
    rfx_memory_free(mem);
}

static void taken_names_are_refused(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    assert_int_equal(symlink("nothing", NAME), 0);
    assert_int_equal(write_folder(mem, NULL, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "is there already"));
    assert_int_equal(unlink(NAME), 0);
    /* taken in the meantime */
    struct rfx_output_folder *folder = NULL;
    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, &err), RFX_OK);
    assert_int_equal(put_three(folder, &err), RFX_OK);
    assert_int_equal(mkdir(NAME, 0777), 0);
    assert_int_equal(mkdir(NAME "/theirs", 0777), 0);
    assert_int_equal(rfx_output_folder_commit(folder, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, NAME ": renaming failed: "));
    rfx_output_folder_free(folder);
    assert_int_equal(rmdir(NAME "/theirs"), 0);
    assert_int_equal(rmdir(NAME), 0);
    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, &err), RFX_OK);
    assert_int_equal(put_three(folder, &err), RFX_OK);
    assert_int_equal(mkdir(NAME, 0777), 0); /* an empty one stays, too */
    assert_int_equal(rfx_output_folder_commit(folder, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, NAME ": renaming failed: File exists"));
    rfx_output_folder_free(folder);
    assert_int_equal(rmdir(NAME), 0);
    /* no folder to write into */
    assert_int_equal(rfx_output_folder_open(mem, DIRECTORY "/none/a", &folder, &err),
                     RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "No such file"));
    rfx_memory_free(mem);
}

static void long_names_are_refused(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_folder *folder = NULL;
    struct rfx_error err = {""};
    char name[300] = DIRECTORY "/";
    memset(name + strlen(name), 'a', 256);
    assert_int_equal(rfx_output_folder_open(mem, name, &folder, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "File name too long"));
    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, &err), RFX_OK);
    for (int i = 0; i < 256; i++) name[i] = i % 2 == 0 ? 'd' : '/';
    name[256] = '\0';
    assert_int_equal(rfx_output_folder_put(folder, name, "1", 1, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "File name too long"));
    name[255] = '\0'; /* deeper than anything that is written */
    assert_int_equal(rfx_output_folder_put(folder, name + 230, "1", 1, &err), RFX_OK);
    rfx_output_folder_free(folder);
    rfx_memory_free(mem);
}

static void without_commit_nothing_is_left(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_folder *folder = NULL;
    int open_before = test_files_in("/proc/self/fd");
    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, NULL), RFX_OK);
    assert_int_equal(put_three(folder, NULL), RFX_OK);
    rfx_output_folder_free(folder);
    rfx_output_folder_free(NULL);
    assert_int_equal(test_files_in("/proc/self/fd"), open_before);
    rfx_memory_free(mem);
}

static void failed_writes_are_told(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_folder *folder = NULL;
    struct rfx_error err = {""};
    static const char data[4096];
    struct rlimit before, small;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, &err), RFX_OK);
    small = before;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum rfx_status status = rfx_output_folder_put(folder, "0/big", data, sizeof data, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, RFX_STATUS_IO);
    assert_non_null(strstr(err.text, NAME "/0/big: writing failed: File too large"));
    assert_int_equal(rfx_output_folder_commit(folder, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "an earlier write failed"));
    rfx_output_folder_free(folder);

    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, &err), RFX_OK);
    assert_int_equal(rfx_output_folder_put(folder, "x", "1", 1, &err), RFX_OK);
    assert_int_equal(rfx_output_folder_put(folder, "x", "2", 1, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, NAME "/x: cannot write: File exists"));
    assert_int_equal(rfx_output_folder_put(folder, "x/y", "2", 1, &err), RFX_STATUS_IO);
    rfx_output_folder_free(folder);
    rfx_memory_free(mem);
}

static void a_full_disk_is_found_before(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_output_folder *folder = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, &err), RFX_OK);
    assert_int_equal(rfx_output_folder_room(folder, 0, &err), RFX_OK);
    assert_int_equal(rfx_output_folder_room(folder, INT64_MAX, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, NAME ": no room for its 9223372036854775807 bytes"));
    assert_int_equal(rfx_output_folder_commit(folder, &err), RFX_STATUS_IO);
    rfx_output_folder_free(folder);
    rfx_memory_free(mem);
}

static bool stop_now(void *user) {
    return *(bool *)user;
}

static void a_stop_comes_before_the_name(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    bool stop = true;
    struct rfx_output_folder *folder = NULL;
    assert_int_equal(rfx_output_folder_open(mem, NAME, &folder, &err), RFX_OK);
    assert_int_equal(put_three(folder, &err), RFX_OK);
    rfx_memory_set_stop(mem, stop_now, &stop);
    assert_int_equal(rfx_output_folder_commit(folder, &err), RFX_STATUS_CANCELLED);
    rfx_output_folder_free(folder);
    rfx_memory_free(mem);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    int open_before = test_files_in("/proc/self/fd");
    assert_true(test_fail_each_allocation(write_folder, NULL) >= 2);
    assert_int_equal(test_files_in("/proc/self/fd"), open_before);
    remove_made();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_in_folder(appears_on_commit, DIRECTORY),
        test_in_folder(taken_names_are_refused, DIRECTORY),
        test_in_folder(long_names_are_refused, DIRECTORY),
        test_in_folder(without_commit_nothing_is_left, DIRECTORY),
        test_in_folder(failed_writes_are_told, DIRECTORY),
        test_in_folder(a_full_disk_is_found_before, DIRECTORY),
        test_in_folder(a_stop_comes_before_the_name, DIRECTORY),
        test_in_folder(survives_failing_allocations, DIRECTORY),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
