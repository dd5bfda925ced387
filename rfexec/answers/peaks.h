/* Finds the peaks of maps of floats, from their rows in order: middles of cells in heat maps and
 * density maps.
 *
 * A pixel of a channel is a peak if
 * 1. its value is above the channel's threshold;
 * 2. no pixel within the distance has a larger value;
 * 3. no pixel within the distance that is before it, in rows and then in columns, has an equal one.
 * Pixels are within distance D of each other if their rows and their columns differ by at most D: a
 * square window of side 2 D + 1, of which the map's edges cut off what is outside. NaN is no peak
 * and is not larger than or equal to any value. So a plateau has a peak at its first pixel, and
 * more of them if it is larger than D. Two peaks of a channel are more than D apart.
 *
 * Peaks are passed on by rows, then by columns, then by channels: those of row y when row y + D
 * has come, or at the end.
 *
 * A row has one candidate at most in D + 1 columns. So a row takes O(width * channels) however
 * large D is: two running maxima (van Herk, "A fast algorithm for local minimum and maximum filters
 * on rectangular and octagonal kernels", 1992) find the candidates along the row, and each of these
 * is compared with one value of each of the D rows above and below. Memory: the largest value of
 * the row's part of the window for each pixel of D + 1 rows, in floats, and the candidates of these
 * rows. Tests: test_peaks.c, tests/oracle/answers.py. */
#ifndef RFX_RFEXEC_ANSWERS_PEAKS_H
#define RFX_RFEXEC_ANSWERS_PEAKS_H

#include "layers/core/memory.h"

struct rfx_peak {
    int64_t x, y;
    int32_t channel;
    float value;
};

/* Takes a peak. A status other than RFX_OK ends the work with that status. */
typedef enum rfx_status rfx_peak_fn(void *user, const struct rfx_peak *peak, struct rfx_error *err);

struct rfx_peaks_options {
    int64_t width, height;   /* of the map, each 1 to 2^31 - 1 */
    int64_t channels;        /* 1 to 2^31 - 1 */
    int64_t distance;        /* 0 or more */
    const float *thresholds; /* of each channel; copied */
};

struct rfx_peaks;

/* Returns the memory of struct rfx_peaks; SIZE_MAX / 4 if it is more. */
size_t rfx_peaks_bytes(const struct rfx_peaks_options *options);

/* OUT_OF_MEMORY. Free *out with rfx_peaks_free. */
RFX_NODISCARD enum rfx_status rfx_peaks_create(struct rfx_memory *mem,
                                               const struct rfx_peaks_options *options,
                                               rfx_peak_fn *take, void *user,
                                               struct rfx_peaks **out, struct rfx_error *err);

/* Takes the next row, [width, channels]. INVALID_ARGUMENT: more rows come than the height. Statuses
 * of `take`, after which only rfx_peaks_free may be called. */
RFX_NODISCARD enum rfx_status rfx_peaks_row(struct rfx_peaks *peaks, const float *values,
                                            struct rfx_error *err);

/* Passes on the peaks of the last rows. Statuses of `take`. */
RFX_NODISCARD enum rfx_status rfx_peaks_end(struct rfx_peaks *peaks, struct rfx_error *err);

/* NULL is fine. */
void rfx_peaks_free(struct rfx_peaks *peaks);
#endif
