/* A spool of some rows; see row_store.h. */
#include "tools/mpi/row_store.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "rfexec/output/output_spool.h"
#include "tools/parts/part_rows.h"

#define SPOOL_BYTES ((size_t)1 << 15) /* more than a spool and a picture hold in memory */

struct rfx_row_store {
    struct rfx_memory *mem;
    struct rfx_tensor map;
    struct rfx_range rows;
    struct rfx_output_spool *spool;
    float *row;           /* [w, c], where a part of one is read */
    struct rfx_error why; /* of a failed reading */
};

size_t rfx_row_store_bytes(const struct rfx_tensor *map) {
    return SPOOL_BYTES + sizeof(struct rfx_row_store) + rfx_tensor_pixel_bytes(map, map->w);
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
    return rfx_part_put_rows(part, rect, view, put_spool, store->spool, err);
}

enum rfx_status rfx_row_store_row(struct rfx_row_store *store, int64_t y, float *row,
                                  struct rfx_error *err) {
    return rfx_output_spool_read(store->spool, y - store->rows.lo, row, err);
}

struct rfx_range rfx_row_store_rows(const struct rfx_row_store *store) {
    return store->rows;
}

enum rfx_status rfx_row_store_copy(struct rfx_row_store *store, struct rfx_row_store *from,
                                   struct rfx_range rows, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = rows.lo; y < rows.hi && status == RFX_OK; y++) {
        struct rfx_rect rect = rfx_rect_make(y, y + 1, 0, store->map.w);
        struct rfx_view view = rfx_view_of(&store->map, store->row, rect);
        status = rfx_row_store_row(from, y, store->row, err);
        if (status == RFX_OK) status = rfx_row_store_put(store, rect, &view, err);
    }
    return status;
}

/* Rows as they lie in the file, or those columns of them. */
static int read_rows(void *user, struct rfx_rect rect, struct rfx_image_steps steps,
                     float *values) {
    struct rfx_row_store *store = user;
    int64_t c = store->map.c;
    bool dense = steps.column == c && rfx_rect_cols(rect) == store->map.w;
    for (int64_t y = rect.y0; y < rect.y1; y++) {
        float *to = values + (y - rect.y0) * steps.row;
        if (rfx_row_store_row(store, y, dense ? to : store->row, &store->why) != RFX_OK) return -1;
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
