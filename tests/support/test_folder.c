/* The folder's name is the test's state. */
#include "tests/support/test_folder.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

int test_remove_all(const char *path) {
    return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

int test_folder_make(void **state) {
    (void)test_remove_all(*state);
    return mkdir(*state, 0777);
}

int test_folder_remove(void **state) {
    return rmdir(*state);
}
