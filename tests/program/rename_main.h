/* CMake includes this header before each test file of a joint program and defines RFX_TEST_MAIN as
 * <file name>_main. Each test file keeps an ordinary main function; here the function gets a name
 * of its own, so that one program can hold many test files. run_tests.c calls these functions. */
int RFX_TEST_MAIN(void);
#define main RFX_TEST_MAIN
