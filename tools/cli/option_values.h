/* What the values of options look like: text to sizes, counts, grids and numbers.
 *
 * Every function returns false when the whole text is not such a value; *out is of no use then. */
#ifndef RFX_TOOLS_CLI_OPTION_VALUES_H
#define RFX_TOOLS_CLI_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rfx_cli_pair { /* "4x6": rows, columns; where a count is allowed, "16": y 16, x 0 */
    int64_t y, x;
};

/* Bytes: "64MiB", "1.5GiB", "200MB", "4096", "64M" (binary). Exact: no floats; false when it is
 * not a size, is zero or does not fit. */
bool rfx_cli_parse_bytes(const char *text, size_t *out);

/* "4x6", "1024X768": two positive integers. */
bool rfx_cli_parse_pair(const char *text, struct rfx_cli_pair *out);

/* An integer of 1 .. limit. */
bool rfx_cli_parse_count(const char *text, int64_t limit, int64_t *out);

/* "4x6", or "16" as {16, 0}. */
bool rfx_cli_parse_grid(const char *text, struct rfx_cli_pair *out);

/* An integer of 64 bits without sign, also 0x... */
bool rfx_cli_parse_seed(const char *text, uint64_t *out);

/* A finite number. */
bool rfx_cli_parse_float(const char *text, float *out);

/* "0.5" for all three or "0.1,0.2,0.3"; out: 3. */
bool rfx_cli_parse_floats(const char *text, float *out);

/* "-1,1", rising; out: 2. */
bool rfx_cli_parse_range(const char *text, float *out);
#endif
