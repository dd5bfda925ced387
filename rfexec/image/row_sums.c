/* Checksums of rows; see row_sums.h. */
#include "rfexec/image/row_sums.h"

#include <string.h>

#include "layers/core/checked.h"

struct row {
    uint64_t sum;
    int64_t next; /* the columns before this one have been added; -1: there was a gap */
};

enum { BLOCK = 1024 }; /* values of a block */

struct rfx_row_sums {
    struct rfx_memory *mem;
    struct rfx_rect rect;
    uint32_t keys[BLOCK];
    struct row rows[];
};

size_t rfx_row_sums_bytes(int64_t rows) {
    return sizeof(struct rfx_row_sums) + (size_t)rows * sizeof(struct row);
}

/* The output function of splitmix64. */
static uint64_t mix(uint64_t i) {
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

enum rfx_status rfx_row_sums_create(struct rfx_memory *mem, struct rfx_rect rect,
                                    struct rfx_row_sums **out, struct rfx_error *err) {
    int64_t rows = rfx_rect_rows(rect);
    struct rfx_row_sums *sums = rfx_memory_calloc(mem, 1, rfx_row_sums_bytes(rows));
    if (sums == NULL) return rfx_memory_fail(mem, "sums of rows", rfx_row_sums_bytes(rows), err);
    sums->mem = mem;
    sums->rect = rect;
    for (int64_t i = 0; i < rows; i++) sums->rows[i].next = rect.x0;
    for (uint64_t i = 0; i < BLOCK; i++) sums->keys[i] = (uint32_t)(mix(~i) >> 32) | 1;
    *out = sums;
    return RFX_OK;
}

void rfx_row_sums_free(struct rfx_row_sums *sums) {
    if (sums != NULL) rfx_memory_release(sums->mem, sums);
}

/* Returns the sum of one block's values. Compilers vectorise this loop. */
static uint64_t sum_block(const uint32_t *keys, const float *values, int64_t n) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum += (uint64_t)keys[i] * bits;
    }
    return sum;
}

/* Returns the sum of `n` values of a row, the first of which is value `first` of the row. */
static uint64_t sum_values(const struct rfx_row_sums *sums, const float *values, int64_t n,
                           int64_t first) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n;) {
        int64_t at = (first + i) % BLOCK, some = rfx_min_i64(BLOCK - at, n - i);
        uint64_t factor = mix((uint64_t)((first + i) / BLOCK)) | 1;
        sum += factor * sum_block(sums->keys + at, values + i, some);
        i += some;
    }
    return sum;
}

void rfx_row_sums_add(struct rfx_row_sums *sums, struct rfx_rect rect,
                      const struct rfx_view *view) {
    int64_t y0 = rfx_max_i64(rect.y0, sums->rect.y0), y1 = rfx_min_i64(rect.y1, sums->rect.y1);
    int64_t x1 = rfx_min_i64(rect.x1, sums->rect.x1);
    for (int64_t y = y0; y < y1; y++) {
        struct row *row = &sums->rows[y - sums->rect.y0];
        if (row->next < 0 || row->next >= x1) continue;
        if (rect.x0 > row->next) {
            row->next = -1;
            continue;
        }
        row->sum += sum_values(sums, rfx_view_f32_at(view, y, row->next),
                               (x1 - row->next) * view->c, row->next * view->c);
        row->next = x1;
    }
}

bool rfx_row_sums_get(const struct rfx_row_sums *sums, int64_t y, uint32_t *sum) {
    if (y < sums->rect.y0 || y >= sums->rect.y1) return false;
    const struct row *row = &sums->rows[y - sums->rect.y0];
    if (row->next != sums->rect.x1) return false;
    *sum = (uint32_t)(mix(row->sum) >> 32);
    return true;
}
