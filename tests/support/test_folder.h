/* Tests in a folder of their own, which is made before each of them and must be empty after. */
#ifndef RFX_TESTS_SUPPORT_TEST_FOLDER_H
#define RFX_TESTS_SUPPORT_TEST_FOLDER_H

/* One test in a table of cmocka's; `folder` is a string literal. */
#define test_in_folder(test, folder)                                                     \
    cmocka_unit_test_prestate_setup_teardown(test, test_folder_make, test_folder_remove, \
                                             ((char[]){folder}))

/* What a failed run before left there is removed. */
int test_folder_make(void **state);

/* Fails when anything is left in it. */
int test_folder_remove(void **state);

/* Removes a file, or a folder and all that is in it; 0: done. */
int test_remove_all(const char *path);
#endif
