/* Each rank in turn sends its sums to all; see rank_picture.h. */
#include "tools/mpi/rank_picture.h"

#include "layers/core/checked.h"
#include "tools/cli/command.h"

enum { ROWS = 1024 }; /* in a message */
#define HAS_SUM (UINT64_C(1) << 32)

static uint64_t sum_of(const struct rfx_row_sums *sums, int64_t y) {
    uint32_t sum;
    return sums != NULL && rfx_row_sums_get(sums, y, &sum) ? HAS_SUM | sum : 0;
}

/* The first row from y on that this rank has read otherwise; `end`: there is none. */
static int64_t find_other(const struct rfx_row_sums *sums, const uint64_t *theirs, int64_t y,
                          int64_t end) {
    for (int64_t i = 0; y + i < end; i++) {
        uint64_t mine = sum_of(sums, y + i);
        if (mine != 0 && theirs[i] != 0 && mine != theirs[i]) return y + i;
    }
    return end;
}

/* Rows that rank `root` has read, to all. *row: the first that differs here, or -1. */
static enum rfx_status compare_with(struct rfx_ranks *ranks, int root,
                                    const struct rfx_row_sums *sums, struct rfx_rect rect,
                                    int64_t *row, struct rfx_error *err) {
    uint64_t theirs[ROWS];
    struct rfx_rect of_root = rect;
    enum rfx_status status = rfx_ranks_spread_from(ranks, root, &of_root, sizeof of_root, err);
    bool alike = of_root.x0 == rect.x0 && of_root.x1 == rect.x1;
    for (int64_t y = of_root.y0; y < of_root.y1 && status == RFX_OK; y += ROWS) {
        int64_t end = rfx_min_i64(y + ROWS, of_root.y1);
        for (int64_t i = 0; ranks->rank == root && y + i < end; i++)
            theirs[i] = sum_of(sums, y + i);
        status =
            rfx_ranks_spread_from(ranks, root, theirs, (size_t)(end - y) * sizeof *theirs, err);
        int64_t other = status == RFX_OK && alike ? find_other(sums, theirs, y, end) : end;
        if (other < end && *row < 0) *row = other;
    }
    return status;
}

void rfx_rank_picture_compare(struct rfx_ranks *ranks, const struct rfx_row_sums *sums,
                              struct rfx_rect rect) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK, found = RFX_OK;
    int code = RFX_EXIT_DONE;
    ranks->together = true; /* rank 0 prints */
    for (int root = 0; root < ranks->size && status == RFX_OK; root++) {
        int64_t row = -1;
        status = compare_with(ranks, root, sums, rect, &row, &err);
        if (status != RFX_OK || row < 0 || found != RFX_OK || root > ranks->rank) continue;
        found = rfx_fail(&err, RFX_STATUS_MALFORMED,
                         "has not read one image with rank %d: row %lld was another one when the "
                         "two read it",
                         root, (long long)row);
        code = rfx_cli_fail(found, &err);
    }
    if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    code = rfx_ranks_agree(ranks, code);
    ranks->together = false;
    if (code == RFX_EXIT_DONE) return;
    if (ranks->rank > 0) code = rfx_ranks_agree(ranks, code); /* until rank 0 has ended the job */
    rfx_ranks_end_job(ranks, code);
}
