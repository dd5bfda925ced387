/* Parses single option values: sizes, counts, grids and numbers.
 *
 * Every function returns true and sets *out when the whole text is one value of its kind. Otherwise
 * it returns false and *out is undefined. The comment on each function shows texts that it accepts.
 */
#ifndef RFX_TOOLS_CLI_OPTION_VALUES_H
#define RFX_TOOLS_CLI_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rfexec/image/image_source.h"
#include "rfexec/output/answer_options.h"
#include "rfexec/run/fit_size.h"

struct rfx_cli_pair { /* "4x6": y = 4 rows, x = 6 columns; a single count "16": y = 16, x = 0 */
    int64_t y, x;
};

/* Parses a number of bytes: "64MiB", "1.5GiB", "200MB", "4096", "64M" (binary). The arithmetic is
 * exact and uses no floats. Returns false also for zero and for a size above SIZE_MAX. */
bool rfx_cli_parse_bytes(const char *text, size_t *out);

/* "4x6", "1024X768": two positive integers. */
bool rfx_cli_parse_pair(const char *text, struct rfx_cli_pair *out);

/* An integer of 1 .. limit. */
bool rfx_cli_parse_count(const char *text, int64_t limit, int64_t *out);

/* An integer of 0 .. limit. */
bool rfx_cli_parse_index(const char *text, int64_t limit, int64_t *out);

/* "4x6" gives {4, 6}; a count alone is accepted too: "16" gives {16, 0}. */
bool rfx_cli_parse_grid(const char *text, struct rfx_cli_pair *out);

/* "1/4": *index 1 and *count 4; part 1 of 4, counted from 1. */
bool rfx_cli_parse_share(const char *text, int64_t *index, int64_t *count);

/* An unsigned 64-bit integer, decimal or hexadecimal ("0x1f"). */
bool rfx_cli_parse_seed(const char *text, uint64_t *out);

/* A finite number. */
bool rfx_cli_parse_float(const char *text, float *out);

/* Numbers, one for each channel or one for all. */
struct rfx_cli_numbers {
    int n; /* 0: not given */
    float values[RFX_IMAGE_MAX_BANDS];
};

/* "0.5" or "0.1,0.2,0.3": at most RFX_IMAGE_MAX_BANDS numbers. */
bool rfx_cli_parse_floats(const char *text, struct rfx_cli_numbers *out);

/* Value of missing samples, and the value that replaces them. */
struct rfx_cli_nodata {
    bool given, of_file; /* of_file: take the value of missing samples from the GDAL tag of the
                            image file */
    double value;
    float fill;
};

/* "0=127", "nan=0" or "file=0". */
bool rfx_cli_parse_nodata(const char *text, struct rfx_cli_nodata *out);

/* Factor that multiplies the samples. raw: multiply samples as stored; otherwise samples are scaled
 * to 0..255 first. */
struct rfx_cli_scale {
    bool given;
    float factor;
    bool raw;
};

/* "0.5", "raw" or "raw,0.5". */
bool rfx_cli_parse_scale(const char *text, struct rfx_cli_scale *out);

/* "4,3,2": band numbers from 1 to 65,535, in any order; a band may occur several times. */
bool rfx_cli_parse_bands(const char *text, struct rfx_image_bands *out);

/* "32", "32,edge" or "32,zero": a multiple from 1 to RFX_FIT_MOST and a padding mode (default
 * reflect). */
bool rfx_cli_parse_fit(const char *text, struct rfx_fit_size *out);

/* "-1,1": two numbers, the first less than the second; out: array of 2 floats. */
bool rfx_cli_parse_range(const char *text, float *out);

/* "10,0,1": a number of bins from 1 to RFX_ANSWER_MOST_BINS, and the ends of the first and the last
 * one. */
bool rfx_cli_parse_bins(const char *text, struct rfx_answer_bins *out);

/* "0.05,0.5": rising numbers from 0 to 1, at most RFX_ANSWER_MOST_QUANTILES. */
bool rfx_cli_parse_quantiles(const char *text, struct rfx_answer_quantiles *out);

/* "0,0,512,768": first row, first column, last row + 1, last column + 1. */
bool rfx_cli_parse_rect(const char *text, struct rfx_rect *out);
#endif
