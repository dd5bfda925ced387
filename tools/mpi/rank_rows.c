/* Stores of rows, and their exchange between pairs of ranks; see rank_rows.h. */
#include "tools/mpi/rank_rows.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rf_analysis/part_ends.h"
#include "rfexec/output/output_spool.h"
#include "rfexec/shards/shard_place.h"

struct rfx_row_store {
    struct rfx_memory *mem;
    struct rfx_tensor map;
    struct rfx_range rows;
    struct rfx_output_spool *spool;
    float *row;           /* [w, c], for reading some columns of a row */
    struct rfx_error why; /* why reading has failed */
};

size_t rfx_row_store_bytes(const struct rfx_tensor *map) {
    return RFX_OUTPUT_SPOOL_BYTES + sizeof(struct rfx_row_store) +
           rfx_tensor_pixel_bytes(map, map->w);
}

enum rfx_status rfx_row_store_open(struct rfx_memory *mem, const char *folder,
                                   const struct rfx_tensor *map, struct rfx_range rows,
                                   struct rfx_row_store **out, struct rfx_error *err) {
    char path[PATH_MAX];
    struct rfx_tensor part = rfx_tensor_nhwc(map->c, rfx_range_size(rows), map->w);
    struct rfx_row_store *store = rfx_memory_calloc(mem, 1, sizeof *store);
    if (store == NULL) return rfx_memory_fail(mem, "rows", sizeof *store, err);
    store->mem = mem;
    store->map = *map;
    store->rows = rows;
    (void)snprintf(path, sizeof path, "%s/rows", folder);
    enum rfx_status status = RFX_OK;
    size_t bytes = rfx_tensor_pixel_bytes(map, map->w);
    store->row = rfx_memory_alloc(mem, bytes);
    if (store->row == NULL) status = rfx_memory_fail(mem, "rows", bytes, err);
    if (status == RFX_OK) status = rfx_output_spool_open(mem, path, &part, &store->spool, err);
    if (status == RFX_OK)
        *out = store;
    else
        rfx_row_store_free(store);
    return status;
}

static enum rfx_status put_spool(void *user, struct rfx_rect rect, const struct rfx_view *view,
                                 struct rfx_error *err) {
    return rfx_output_spool_write(user, rect, view, err);
}

enum rfx_status rfx_row_store_put(struct rfx_row_store *store, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_rect part = rfx_rect_make(store->rows.lo, store->rows.hi, 0, store->map.w);
    return rfx_shard_put_rows(part, rect, view, put_spool, store->spool, err);
}

/* Reads row y of the map, [w, c]. */
static enum rfx_status row_store_row(struct rfx_row_store *store, int64_t y, float *row,
                                     struct rfx_error *err) {
    return rfx_output_spool_read(store->spool, y - store->rows.lo, row, err);
}

enum rfx_status rfx_row_store_copy(struct rfx_row_store *store, struct rfx_row_store *from,
                                   struct rfx_range rows, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = rows.lo; y < rows.hi && status == RFX_OK; y++) {
        struct rfx_rect rect = rfx_rect_make(y, y + 1, 0, store->map.w);
        struct rfx_view view = rfx_view_of(&store->map, store->row, rect);
        status = row_store_row(from, y, store->row, err);
        if (status == RFX_OK) status = rfx_row_store_put(store, rect, &view, err);
    }
    return status;
}

/* An image reader: whole rows as they lie in the file, or some columns of them. */
static int read_rows(void *user, struct rfx_rect rect, struct rfx_image_steps steps,
                     float *values) {
    struct rfx_row_store *store = user;
    int64_t c = store->map.c;
    bool dense = steps.column == c && rfx_rect_cols(rect) == store->map.w;
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        float *to = values + (y - rect.y0) * steps.row;
        if (row_store_row(store, y, dense ? to : store->row, &store->why) != RFX_OK) return -1;
        for (int64_t x = rect.x0; !dense && x < rect.x1; x++)
            memcpy(to + (x - rect.x0) * steps.column, store->row + x * c, (size_t)c * sizeof *to);
    }
    return 0;
}

enum rfx_status rfx_row_store_image(struct rfx_row_store *store, struct rfx_image **out,
                                    struct rfx_error *err) {
    const struct rfx_image_reader reader = {.read = read_rows, .user = store};
    return rfx_image_from_reader(store->mem, &reader, store->map.c, store->map.h, store->map.w, out,
                                 err);
}

void rfx_row_store_explain(const struct rfx_row_store *store, struct rfx_error *err) {
    if (store->why.text[0] != '\0') *err = store->why;
}

void rfx_row_store_free(struct rfx_row_store *store) {
    if (store == NULL) return;
    rfx_output_spool_free(store->spool);
    rfx_memory_release(store->mem, store->row);
    rfx_memory_release(store->mem, store);
}

/* Pairs of ranks exchange rows one pair after the other, in an order without circular waiting:
 * first ranks that are one apart, then two, and so on; of each distance first every second pair,
 * then the others. */

#define BAND_BYTES ((size_t)1 << 18)

struct exchange {
    struct rfx_ranks *ranks;
    const struct rfx_graph *whole;
    const struct rfx_tensor *map;
    int node;
    struct rfx_row_store *store;
    uint64_t *needs; /* [ranks, 2] first row and end of what each rank needs */
    float *band;
    uint64_t received;
};

static int64_t band_rows(const struct rfx_tensor *map) {
    size_t row = rfx_tensor_pixel_bytes(map, map->w);
    return rfx_max_i64(1, (int64_t)(BAND_BYTES / row));
}

static size_t band_bytes(const struct rfx_tensor *map) {
    return rfx_tensor_pixel_bytes(map, map->w * rfx_min_i64(band_rows(map), map->h));
}

static size_t needs_bytes(const struct rfx_ranks *ranks) {
    return 2 * (size_t)ranks->size * sizeof(uint64_t);
}

size_t rfx_row_exchange_bytes(const struct rfx_ranks *ranks, const struct rfx_tensor *map) {
    return band_bytes(map) + needs_bytes(ranks);
}

/* Tells all ranks what each of them needs. */
static enum rfx_status share_needs(struct exchange *e, struct rfx_range need,
                                   struct rfx_error *err) {
    int rank = e->ranks->rank;
    e->needs[2 * rank] = (uint64_t)need.lo;
    e->needs[2 * rank + 1] = (uint64_t)need.hi;
    enum rfx_status status = rfx_ranks_sum(e->ranks, e->needs, 2 * e->ranks->size, err);
    return status == RFX_OK ? rfx_ranks_spread(e->ranks, e->needs, needs_bytes(e->ranks), err)
                            : status;
}

static enum rfx_status send_band(const struct exchange *e, int to, struct rfx_rect rect,
                                 struct rfx_error *err) {
    struct rfx_view view = rfx_view_of(e->map, e->band, rect);
    enum rfx_status status = RFX_OK;
    for (int64_t y = rect.y0; y < rect.y1 && status == RFX_OK; y++)
        status = row_store_row(e->store, y, rfx_view_f32_at(&view, y, 0), err);
    if (status != RFX_OK) return status;
    return rfx_ranks_send(e->ranks, to, e->band,
                          rfx_tensor_pixel_bytes(e->map, rfx_rect_area(rect)), err);
}

static enum rfx_status receive_band(struct exchange *e, int from, struct rfx_rect rect,
                                    struct rfx_error *err) {
    struct rfx_view view = rfx_view_of(e->map, e->band, rect);
    size_t bytes = rfx_tensor_pixel_bytes(e->map, rfx_rect_area(rect));
    enum rfx_status status = rfx_ranks_receive(e->ranks, from, e->band, bytes, err);
    if (status != RFX_OK) return status;
    e->received += bytes;
    return rfx_row_store_put(e->store, rect, &view, err);
}

/* Moves the rows of rank `from` that rank `to` needs; this rank is one of the two. */
static enum rfx_status move_rows(struct exchange *e, int from, int to, struct rfx_error *err) {
    struct rfx_rect rows = rfx_part_map_rows(e->whole, e->node, from, e->ranks->size);
    int64_t lo = rfx_max_i64(rows.y0, (int64_t)e->needs[2 * to]);
    int64_t hi = rfx_min_i64(rows.y1, (int64_t)e->needs[2 * to + 1]), step = band_rows(e->map);
    enum rfx_status status = RFX_OK;
    for (int64_t y = lo; y < hi && status == RFX_OK; y += step) {
        struct rfx_rect rect = rfx_rect_make(y, rfx_min_i64(y + step, hi), 0, e->map->w);
        status =
            e->ranks->rank == from ? send_band(e, to, rect, err) : receive_band(e, from, rect, err);
    }
    return status;
}

static enum rfx_status meet(struct exchange *e, int lower, int upper, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (lower < 0 || upper >= e->ranks->size) return RFX_OK;
    status = move_rows(e, lower, upper, err);
    return status == RFX_OK ? move_rows(e, upper, lower, err) : status;
}

static enum rfx_status move_all(struct exchange *e, struct rfx_error *err) {
    int rank = e->ranks->rank;
    enum rfx_status status = RFX_OK;
    for (int apart = 1; apart < e->ranks->size; apart++)
        for (int turn = 0; turn < 2 && status == RFX_OK; turn++)
            status = rank / apart % 2 == turn ? meet(e, rank, rank + apart, err)
                                              : meet(e, rank - apart, rank, err);
    return status;
}

enum rfx_status rfx_row_exchange(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                 const struct rfx_graph *whole, int map, struct rfx_range need,
                                 struct rfx_row_store *store, uint64_t *received,
                                 struct rfx_error *err) {
    struct exchange e = {
        .ranks = ranks, .whole = whole, .map = &whole->nodes[map].out, .node = map, .store = store};
    e.needs = rfx_memory_calloc(mem, 1, needs_bytes(ranks));
    e.band = rfx_memory_alloc(mem, band_bytes(e.map));
    enum rfx_status status = RFX_OK;
    if (e.needs == NULL || e.band == NULL)
        status = rfx_memory_fail(mem, "rows", rfx_row_exchange_bytes(ranks, e.map), err);
    if (status == RFX_OK) status = share_needs(&e, need, err);
    if (status == RFX_OK) status = move_all(&e, err);
    *received = e.received;
    rfx_memory_release(mem, e.band);
    rfx_memory_release(mem, e.needs);
    return status;
}
