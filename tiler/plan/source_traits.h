/* Properties of an image source that the planner needs: plain data, filled by rfexec/image_source.
 */
#ifndef RFX_TILER_PLAN_SOURCE_TRAITS_H
#define RFX_TILER_PLAN_SOURCE_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Image rows that the executor reads at a time. Few rows keep the window of a top-to-bottom source
 * small; many rows hide the cost of the call. */
#define RFX_READ_BAND_ROWS 16

struct rfx_source_traits {
    int64_t h, w, c;    /* size of the image as the network sees it */
    bool random_access; /* any rectangle can be read at any time, without a window of rows */
    size_t fixed_bytes; /* decoder state, or the whole decoded image where the format requires it */
    size_t window_row_bytes; /* memory per row kept in the window; 0 with random access */
    double pass_picoseconds; /* time to read the image once more, in picoseconds; 0 with random
                                access */
};
#endif
