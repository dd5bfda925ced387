/* Parsing of single values: text to sizes, counts, grids and numbers.
 *
 * Every function returns false when the text as a whole is not such a value; *out is undefined
 * then. */
#ifndef RFX_TOOLS_CLI_OPTION_VALUES_H
#define RFX_TOOLS_CLI_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rfexec/image/image_source.h"
#include "rfexec/run/fit_size.h"

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

/* An integer of 0 .. limit. */
bool rfx_cli_parse_index(const char *text, int64_t limit, int64_t *out);

/* "4x6", or "16" as {16, 0}. */
bool rfx_cli_parse_grid(const char *text, struct rfx_cli_pair *out);

/* An integer of 64 bits without sign, also 0x... */
bool rfx_cli_parse_seed(const char *text, uint64_t *out);

/* A finite number. */
bool rfx_cli_parse_float(const char *text, float *out);

/* Numbers, one for each channel or one for all. */
struct rfx_cli_numbers {
    int n; /* 0: not given */
    float values[RFX_IMAGE_MAX_BANDS];
};

/* "0.5" or "0.1,0.2,0.3", at most RFX_IMAGE_MAX_BANDS of them. */
bool rfx_cli_parse_floats(const char *text, struct rfx_cli_numbers *out);

/* Samples that are missing, and the value that is read instead. */
struct rfx_cli_nodata {
    bool given, of_file; /* of_file: the value is in the GDAL tag of the image file */
    double value;
    float fill;
};

/* "0=127", "nan=0" or "file=0". */
bool rfx_cli_parse_nodata(const char *text, struct rfx_cli_nodata *out);

/* Factor of samples, which are scaled to 0..255 first or, with raw, taken as they are stored. */
struct rfx_cli_scale {
    bool given;
    float factor;
    bool raw;
};

/* "0.5", "raw" or "raw,0.5". */
bool rfx_cli_parse_scale(const char *text, struct rfx_cli_scale *out);

/* "4,3,2": numbers of bands, 1 to 65,535, in any order and also several times. */
bool rfx_cli_parse_bands(const char *text, struct rfx_image_bands *out);

/* "32": a multiple, 1 to RFX_FIT_MOST, padded by reflecting; "32,edge", "32,zero". */
bool rfx_cli_parse_fit(const char *text, struct rfx_fit_size *out);

/* "-1,1", rising; out: 2. */
bool rfx_cli_parse_range(const char *text, float *out);

/* "0,0,512,768": first row and column, then row and column behind the last. */
bool rfx_cli_parse_rect(const char *text, struct rfx_rect *out);
#endif
