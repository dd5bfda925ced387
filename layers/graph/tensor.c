/* Comparing shapes, and writing them for messages; see tensor.h. */
#include "layers/graph/tensor.h"

#include <inttypes.h>
#include <stdio.h>

bool rfx_shape_equal(const struct rfx_shape *a, const struct rfx_shape *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->dims[i] == b->dims[i];
    return same;
}

const char *rfx_shape_text(const struct rfx_shape *shape, const char *between,
                           char text[RFX_SHAPE_TEXT]) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < shape->rank && used < RFX_SHAPE_TEXT; i++)
        used += (size_t)snprintf(text + used, RFX_SHAPE_TEXT - used, "%s%" PRId64,
                                 i > 0 ? between : "", shape->dims[i]);
    return text;
}
