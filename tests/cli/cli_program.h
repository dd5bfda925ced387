/* Starting the rfexec program from tests and looking at what it says: cmocka assertions throughout.
 */
#ifndef RFX_TESTS_CLI_CLI_PROGRAM_H
#define RFX_TESTS_CLI_CLI_PROGRAM_H

#include <stddef.h>

#include <jansson.h>

enum { TEXT_BYTES = 1 << 20 };
extern char out_text[TEXT_BYTES], err_text[TEXT_BYTES]; /* of the last run */

/* Runs "rfexec <args>" through the shell, fills out_text and err_text, returns the exit code. */
int rfexec(const char *args);

/* Runs it and asserts the exit code; failures must have said why. */
void expect(int code, const char *args);

/* The same, and stderr has these words. */
void expect_says(int code, const char *args, const char *words);

/* The JSON document on stdout of this command; a new reference. */
json_t *document(const char *command);

/* The value at "a.b.c"; fails when a key is missing. */
json_t *at(json_t *doc, const char *path);
long long integer_at(json_t *doc, const char *path);

/* Reads a file of less than 1 MiB into out_text or err_text. */
void read_text(const char *path, char *text);

void write_file(const char *path, const char *text);

/* Reads the float32 elements at the end of a .npy file. */
void read_floats(const char *path, float *values, size_t n);

/* Writes a .npy file of n float32 elements. shape: such as "(1, 1, 300, 400)". */
void write_floats(const char *path, const char *shape, const float *values, size_t n);

/* Asserts that the areas of a summary are the regions of the GeoJSON file: as many pixels, all of
 * the region's class, and its mean score where it has one. Returns their number. */
long long assert_areas_are_regions(const char *summary, const char *regions);

/* Asserts that two files have the same bytes. */
void assert_same_files(const char *a, const char *b);
#endif
