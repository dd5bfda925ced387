/* Files of parts in a folder of their own, for the targets that read them. */
#ifndef RFX_TESTS_FUZZ_FUZZ_PARTS_H
#define RFX_TESTS_FUZZ_FUZZ_PARTS_H

#include <stddef.h>
#include <stdint.h>

/* Ends a JSON in an input; no byte of UTF-8. */
#define FUZZ_JSON_END 0xff

/* Path of file number `i` (0 to 15) in a folder that goes when the process does. */
const char *fuzz_part_path(int i);

/* Writes `size` bytes into the file of that path; `end`: what is added to it ("" or ".json"). */
void fuzz_part_write(int i, const char *end, const void *bytes, size_t size);

/* Takes what is before the next FUZZ_JSON_END, or all that is left, from the input. */
size_t fuzz_next_json(const uint8_t **data, size_t *size, const uint8_t **json);
#endif
