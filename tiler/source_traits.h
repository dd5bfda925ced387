/* What the planner needs to know of an image source: plain data, filled by rfexec/image_source. */
#ifndef RFX_TILER_SOURCE_TRAITS_H
#define RFX_TILER_SOURCE_TRAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows asked of a source at a time: the executor reads in bands of them, and a plan's window has at
 * least as many. */
#define RFX_READ_BAND_ROWS 16

struct rfx_source_traits {
    int64_t h, w, c;    /* the picture as the network sees it */
    bool random_access; /* any rectangle at any time, without a window of rows */
    size_t fixed_bytes; /* decoder state, or the whole decoded picture where the format forces it */
    bool by_caller; /* the picture lies in the caller's memory as the network reads it (h, w, c) */
    size_t window_row_bytes; /* memory per row kept in the window; 0 with random access */
};
#endif
