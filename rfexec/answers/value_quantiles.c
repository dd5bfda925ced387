/* Ranks among values, found from their highest bits to their lowest. */
#include "rfexec/answers/value_quantiles.h"

#include <math.h>
#include <string.h>

#include "rfexec/output/output_spool.h"

enum { STEPS = 3, COUNTS = 1 << 11 };

/* Bits of a key below those of each step, and the counts of a step. */
static const int below[STEPS] = {21, 10, 0};
static const uint32_t counts_of[STEPS] = {COUNTS, COUNTS, COUNTS / 2};

/* A sorted value that is looked for. */
struct rank {
    int64_t left;  /* values before it among those that share its bits found so far */
    uint32_t bits; /* found so far */
};

/* Quantile k of channel c lies between ranks [c][k][0] and [c][k][1], of which the second one may
 * lie behind the last value: then the first is the quantile. While values arrive, the
 * counts of a channel's first rank are those of all its values. */
struct rfx_value_quantiles {
    struct rfx_memory *mem;
    struct rfx_answer_quantiles list;
    struct rfx_tensor map;
    struct rfx_output_spool *spool;
    int64_t y;            /* rows that have come */
    float *row;           /* [w, c] */
    struct rank *ranks;   /* [c, n, 2] */
    int64_t *counts;      /* [c, n, 2, COUNTS] */
    int64_t *channel_sum; /* [c]: values that are not NaN */
};

static int64_t ranks_of(const struct rfx_answer_quantiles *list, const struct rfx_tensor *map) {
    return 2 * list->n * map->c;
}

static size_t row_floats(const struct rfx_tensor *map) {
    return (size_t)(map->w * map->c);
}

size_t rfx_value_quantiles_bytes(const struct rfx_answer_quantiles *list,
                                 const struct rfx_tensor *map) {
    if (list->n == 0) return 0;
    return sizeof(struct rfx_value_quantiles) + RFX_OUTPUT_SPOOL_BYTES +
           row_floats(map) * sizeof(float) + (size_t)map->c * sizeof(int64_t) +
           (size_t)ranks_of(list, map) * (sizeof(struct rank) + COUNTS * sizeof(int64_t));
}

enum rfx_status rfx_value_quantiles_create(struct rfx_memory *mem, const char *path,
                                           const struct rfx_answer_quantiles *list,
                                           const struct rfx_tensor *map,
                                           struct rfx_value_quantiles **out,
                                           struct rfx_error *err) {
    struct rfx_value_quantiles *q = rfx_memory_calloc(mem, 1, sizeof *q);
    if (q == NULL) return rfx_memory_fail(mem, "quantiles", sizeof *q, err);
    size_t n = (size_t)ranks_of(list, map);
    q->mem = mem;
    q->list = *list;
    q->map = *map;
    q->map.type = RFX_TYPE_FLOAT32;
    q->row = rfx_memory_alloc(mem, row_floats(map) * sizeof *q->row);
    q->ranks = rfx_memory_calloc(mem, n, sizeof *q->ranks);
    q->counts = rfx_memory_calloc(mem, n * COUNTS, sizeof *q->counts);
    q->channel_sum = rfx_memory_calloc(mem, (size_t)map->c, sizeof *q->channel_sum);
    bool made = q->row != NULL && q->ranks != NULL && q->counts != NULL && q->channel_sum != NULL;
    enum rfx_status status =
        made ? rfx_output_spool_open(mem, path, &q->map, &q->spool, err)
             : rfx_memory_fail(mem, "quantiles", rfx_value_quantiles_bytes(list, map), err);
    if (status != RFX_OK) {
        rfx_value_quantiles_free(q);
        return status;
    }
    *out = q;
    return RFX_OK;
}

/* Returns the bits of a float such that larger values have larger bits. */
static uint32_t key_of(float value) {
    uint32_t bits;
    value += 0.0F; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits >> 31 != 0 ? ~bits : bits | UINT32_C(1) << 31;
}

static float value_of(uint32_t key) {
    uint32_t bits = key >> 31 != 0 ? key & ~(UINT32_C(1) << 31) : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum rfx_status rfx_value_quantiles_row(struct rfx_value_quantiles *q, const float *values,
                                        struct rfx_error *err) {
    const struct rfx_rect rect = rfx_rect_make(q->y, q->y + 1, 0, q->map.w);
    memcpy(q->row, values, row_floats(&q->map) * sizeof *q->row);
    const struct rfx_view view = rfx_view_dense(q->row, rect, q->map.c);
    for (int64_t x = 0; x < q->map.w; x++)
        for (int64_t c = 0; c < q->map.c; c++, values++) {
            if (isnan(*values)) continue;
            q->counts[2 * q->list.n * c * COUNTS + (key_of(*values) >> below[0])]++;
            q->channel_sum[c]++;
        }
    q->y++;
    return rfx_output_spool_write(q->spool, rect, &view, err);
}

/* Returns q (n - 1), at most n - 1. */
static double position_of(const struct rfx_value_quantiles *q, int64_t channel, int k) {
    return q->list.at[k] * (double)(q->channel_sum[channel] - 1);
}

/* Adds a step's bits to those of a rank, by the counts of the values that share its bits. */
static void take_bits(struct rank *rank, const int64_t *counts, int step) {
    uint32_t digit = 0;
    while (digit < counts_of[step] - 1 && rank->left >= counts[digit])
        rank->left -= counts[digit++];
    rank->bits = rank->bits * counts_of[step] + digit;
}

static void take_first_bits(struct rfx_value_quantiles *q, int64_t channel) {
    int64_t at = 2 * q->list.n * channel;
    for (int k = 0; k < q->list.n; k++)
        for (int side = 0; side < 2; side++) {
            struct rank *rank = &q->ranks[at + 2 * k + side];
            rank->left = (int64_t)floor(position_of(q, channel, k)) + side;
            take_bits(rank, &q->counts[at * COUNTS], 0);
        }
}

/* Counts the values of a row that share the bits of a rank. */
static void count_row(struct rfx_value_quantiles *q, int step) {
    int64_t n = 2 * q->list.n;
    const float *value = q->row;
    for (int64_t x = 0; x < q->map.w; x++)
        for (int64_t c = 0; c < q->map.c; c++, value++) {
            uint32_t key = key_of(*value), digit = key >> below[step] & (counts_of[step] - 1);
            if (isnan(*value)) continue;
            for (int64_t i = c * n; i < (c + 1) * n; i++)
                if (key >> below[step - 1] == q->ranks[i].bits) q->counts[i * COUNTS + digit]++;
        }
}

enum rfx_status rfx_value_quantiles_find(struct rfx_value_quantiles *q, struct rfx_error *err) {
    int64_t n = ranks_of(&q->list, &q->map);
    for (int64_t c = 0; c < q->map.c; c++)
        if (q->channel_sum[c] > 0) take_first_bits(q, c);
    for (int step = 1; step < STEPS; step++) {
        memset(q->counts, 0, (size_t)n * COUNTS * sizeof *q->counts);
        for (int64_t y = 0; y < q->map.h; y++) {
            enum rfx_status status = rfx_output_spool_read(q->spool, y, q->row, err);
            if (status != RFX_OK) return status;
            count_row(q, step);
        }
        for (int64_t i = 0; i < n; i++) take_bits(&q->ranks[i], &q->counts[i * COUNTS], step);
    }
    return RFX_OK;
}

double rfx_value_quantile(const struct rfx_value_quantiles *q, int64_t channel, int k) {
    const struct rank *rank = &q->ranks[2 * (q->list.n * channel + k)];
    if (q->channel_sum[channel] == 0) return NAN;
    double low = (double)value_of(rank[0].bits), high = (double)value_of(rank[1].bits);
    double position = position_of(q, channel, k), share = position - floor(position);
    if (!(share > 0 && low < high)) return low;
    return share < 0.5 ? low + (high - low) * share : high - (high - low) * (1 - share);
}

void rfx_value_quantiles_free(struct rfx_value_quantiles *q) {
    if (q == NULL) return;
    rfx_output_spool_free(q->spool);
    rfx_memory_release(q->mem, q->channel_sum);
    rfx_memory_release(q->mem, q->counts);
    rfx_memory_release(q->mem, q->ranks);
    rfx_memory_release(q->mem, q->row);
    rfx_memory_release(q->mem, q);
}
