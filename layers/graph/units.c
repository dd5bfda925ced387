/* Cuts work into units and distributes them; see units.h. */
#include "layers/graph/units.h"

#include "layers/core/checked.h"

#define UNIT_ROWS 8
/* Bounds the time of a unit: a team calls its stop callback between units, at least every 100 ms.
 */
#define MOST_ROWS 64
#define LEAST_COLS 32
#define BESIDE_COLS 56 /* least columns of a thread: four blocks of the widest kernel */

/* Returns the number of units that is enough for all threads; 1 for a single thread. */
static int64_t enough_units(const struct rfx_run_args *args) {
    return args->threads == 1 ? 1 : (int64_t)RFX_UNITS_PER_THREAD * args->threads;
}

int64_t rfx_units_beside(int64_t cols, int threads) {
    return cols / threads >= BESIDE_COLS ? threads : 1;
}

struct rfx_units rfx_units_into(struct rfx_rect rect, int parts) {
    int64_t beside = rfx_units_beside(rfx_rect_cols(rect), parts);
    return (struct rfx_units){parts / beside, beside};
}

struct rfx_rect rfx_units_part(struct rfx_rect rect, struct rfx_units grid, int64_t index) {
    return rfx_rect_part(rect, index % grid.down, grid.down, index / grid.down, grid.across);
}

struct rfx_units rfx_units_of_rows(const struct rfx_run_args *args) {
    int64_t h = rfx_rect_rows(args->rect), w = rfx_rect_cols(args->rect);
    int64_t beside = rfx_units_beside(w, args->threads);
    int64_t rows = rfx_min_i64(UNIT_ROWS, h * beside / (RFX_UNITS_PER_THREAD * args->threads));
    struct rfx_units grid = {.down = rfx_ceil_div(h, rfx_max_i64(rows, 1))};
    int64_t cols = rfx_ceil_div(w, rfx_ceil_div(enough_units(args), grid.down));
    grid.across = rfx_ceil_div(w, rfx_max_i64(cols, rfx_min_i64(w, LEAST_COLS)));
    grid.across = rfx_ceil_div(grid.across, beside) * beside;
    return grid;
}

struct rfx_units rfx_units_at_least(const struct rfx_run_args *args, int64_t down, int64_t across) {
    int64_t h = rfx_rect_rows(args->rect), want = rfx_ceil_div(enough_units(args), across);
    want = rfx_max_i64(want, rfx_ceil_div(h, MOST_ROWS));
    return (struct rfx_units){rfx_max_i64(down, rfx_min_i64(h, want)), across};
}

struct unit_loop {
    const struct rfx_run_args *args;
    struct rfx_units grid;
    size_t scratch_bytes;
    rfx_units_make *make;
    const void *user;
};

static void one_unit(void *user, int64_t index, int thread) {
    const struct unit_loop *loop = user;
    struct rfx_rect unit = rfx_units_part(loop->args->rect, loop->grid, index);
    char *scratch = loop->args->scratch;
    if (loop->scratch_bytes != 0) scratch += (size_t)thread * loop->scratch_bytes;
    loop->make(loop->user, unit, scratch);
}

void rfx_units_share(const struct rfx_run_args *args, struct rfx_units grid, size_t scratch_bytes,
                     rfx_units_make *make, const void *user) {
    struct unit_loop loop = {args, grid, scratch_bytes, make, user};
    rfx_team_for(args->team, grid.down * grid.across, one_unit, &loop);
}
