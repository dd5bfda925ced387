/* Reads the description of a detector's head from JSON, and writes it; docs/answers.md has the
 * format.
 * Pinned by test_head_file.c. */
#ifndef RFX_RFEXEC_OUTPUT_HEAD_FILE_H
#define RFX_RFEXEC_OUTPUT_HEAD_FILE_H

#include "layers/core/memory.h"
#include "rfexec/output/detector.h"

struct json_t;

/* Whether the value of --head is a file rather than the name of a known head: it ends in ".json".
 */
bool rfx_head_is_file(const char *head);

/* Reads a file. MALFORMED: it cannot be opened, is too long, or is no description; the text names
 * the file and the member. IO, OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_head_file_read(struct rfx_memory *mem, const char *path,
                                                 struct rfx_detector *out, struct rfx_error *err);

/* The same from a text; `name` stands for the file. */
RFX_NODISCARD enum rfx_status rfx_head_file_parse(struct rfx_memory *mem, const char *text,
                                                  size_t length, const char *name,
                                                  struct rfx_detector *out, struct rfx_error *err);

/* The same from a JSON value. */
RFX_NODISCARD enum rfx_status rfx_head_file_take(struct json_t *root, const char *name,
                                                 struct rfx_detector *out, struct rfx_error *err);

/* Returns a new JSON value from which rfx_head_file_take reads the same description; equal
 * descriptions give equal values. NULL: no memory. */
struct json_t *rfx_head_file_json(const struct rfx_detector *head);
#endif
