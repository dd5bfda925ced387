/* Strict reading of JSON files of others: every error names the file and the place in it. */
#ifndef RFX_TILER_PLAN_JSON_READER_H
#define RFX_TILER_PLAN_JSON_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "layers/core/memory.h"

#define RFX_JSON_SHOWN 48

struct rfx_json_reader {
    const char *name; /* path of the file */
    struct rfx_error *err;
};

/* Fails with MALFORMED: "file: place: what". A place "" is left out. */
RFX_PRINTF(3, 4)
enum rfx_status rfx_json_refuse(const struct rfx_json_reader *r, const char *place,
                                const char *format, ...);

/* Writes a value as it stands in the file, shortened, and returns `text`. NULL: "nothing". */
const char *rfx_json_shown(const json_t *value, char text[RFX_JSON_SHOWN]);

/* Refuses keys of an object that are not in the NULL-terminated list. MALFORMED. */
RFX_NODISCARD enum rfx_status rfx_json_check_keys(const struct rfx_json_reader *r,
                                                  const char *place, json_t *object,
                                                  const char *const *keys);

/* Reads an integer of [lo, hi]; NULL leaves *out unchanged. MALFORMED. */
RFX_NODISCARD enum rfx_status rfx_json_count(const struct rfx_json_reader *r, const char *place,
                                             const json_t *value, int64_t lo, int64_t hi,
                                             int64_t *out);

/* Reads true or false from member "key" of an object; a missing member leaves *out unchanged.
 * MALFORMED. */
RFX_NODISCARD enum rfx_status rfx_json_flag(const struct rfx_json_reader *r, const char *place,
                                            const json_t *object, const char *key, bool *out);

/* Parses a text; *out is a new reference. MALFORMED: it is not JSON, or an object has a key twice.
 * OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_json_parse(const struct rfx_json_reader *r,
                                             struct rfx_memory *mem, const char *text,
                                             size_t length, json_t **out);

/* Reads the file r->name into a new block that the caller releases. what: first word of messages.
 * MALFORMED: it cannot be opened, or is longer than most_bytes. IO, OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_json_text(const struct rfx_json_reader *r, const char *what,
                                            long most_bytes, struct rfx_memory *mem, char **text,
                                            size_t *length);
#endif
