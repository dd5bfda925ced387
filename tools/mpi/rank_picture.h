/* Whether ranks have read one image: their sums of rows are compared, as merge compares parts'. */
#ifndef RFX_TOOLS_MPI_RANK_PICTURE_H
#define RFX_TOOLS_MPI_RANK_PICTURE_H

#include "rfexec/image/row_sums.h"
#include "tools/mpi/ranks.h"

/* All ranks together, after each has read its rows of the image (sums NULL: none), in `rect`. Ends
 * the job where two ranks have read other values of one row in the same columns. */
void rfx_rank_picture_compare(struct rfx_ranks *ranks, const struct rfx_row_sums *sums,
                              struct rfx_rect rect);
#endif
