/* Rows of a map, given to somebody who counts from the first row and column of a part. */
#ifndef RFX_TOOLS_PARTS_PART_ROWS_H
#define RFX_TOOLS_PARTS_PART_ROWS_H

#include "layers/core/status.h"
#include "layers/graph/tensor.h"

typedef enum rfx_status rfx_part_put_fn(void *user, struct rfx_rect rect,
                                        const struct rfx_view *view, struct rfx_error *err);

/* Hands `rect` of the map, which lies in the view and in the part, to `put`: such rows as lie one
 * behind the other in the view at a time, as a view of their own. */
RFX_NODISCARD enum rfx_status rfx_part_put_rows(struct rfx_rect part, struct rfx_rect rect,
                                                const struct rfx_view *view, rfx_part_put_fn *put,
                                                void *user, struct rfx_error *err);
#endif
