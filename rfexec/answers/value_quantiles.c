/* Ranks among values, found from their highest bits to their lowest. */
#include "rfexec/answers/value_quantiles.h"

#include <math.h>
#include <string.h>

#include "rfexec/answers/area_slots.h"
#include "rfexec/output/output_spool.h"

/* Bits of a key, and of those that are counted in a pass: without areas and with them. */
enum { KEY_BITS = 32, MAP_BITS = 11, AREA_BITS = 8 };

/* A sorted value that is looked for. */
struct rank {
    int64_t left;  /* values before it among those that share its bits found so far */
    uint32_t bits; /* found so far */
};

/* Set 0 has the values of the map, set 1 + k those of area k. Quantile i of channel c of a set lies
 * between ranks [set][c][i][0] and [set][c][i][1], of which the second one may lie behind the last
 * value: then the first is the quantile. Table 0 has the counts of the map, table 1 + s those of
 * the area in slot s. In the first pass, the counts of a channel's first rank are those of all its
 * values. */
struct rfx_value_quantiles {
    struct rfx_memory *mem;
    struct rfx_answer_quantiles list;
    struct rfx_tensor map;
    struct rfx_areas *areas; /* NULL: none */
    struct rfx_area_slots *slots;
    struct rfx_output_spool *spool;
    int bits;           /* that are counted in a pass */
    int64_t y;          /* rows that have come */
    float *row;         /* [w, c] */
    struct rank *ranks; /* [sets, c, n, 2] */
    int64_t *counts;    /* [tables, c, n, 2, 2^bits] */
    int64_t *values;    /* [sets, c]: values that are not NaN */
};

/* Ranks of a set. */
static int64_t ranks_of(const struct rfx_answer_quantiles *list, const struct rfx_tensor *map) {
    return 2 * list->n * map->c;
}

static size_t row_floats(const struct rfx_tensor *map) {
    return (size_t)(map->w * map->c);
}

static size_t sets_bytes(const struct rfx_answer_quantiles *list, const struct rfx_tensor *map,
                         int64_t sets, int64_t tables, int bits) {
    size_t ranks = (size_t)ranks_of(list, map), counts = sizeof(int64_t) << bits;
    return (size_t)sets * (ranks * sizeof(struct rank) + (size_t)map->c * sizeof(int64_t)) +
           (size_t)tables * ranks * counts;
}

size_t rfx_value_quantiles_bytes(const struct rfx_answer_quantiles *list,
                                 const struct rfx_tensor *map) {
    if (list->n == 0) return 0;
    return sizeof(struct rfx_value_quantiles) + RFX_OUTPUT_SPOOL_BYTES +
           row_floats(map) * sizeof(float) + sets_bytes(list, map, 1, 1, MAP_BITS);
}

size_t rfx_value_quantiles_area_bytes(const struct rfx_answer_quantiles *list,
                                      const struct rfx_tensor *map, int64_t areas, int64_t open) {
    if (list->n == 0) return 0;
    return rfx_area_slots_bytes(areas, open) + sets_bytes(list, map, areas, open, AREA_BITS);
}

/* Makes the tables of the map and the areas. */
static enum rfx_status make_tables(struct rfx_value_quantiles *q, struct rfx_error *err) {
    int64_t sets = 1, tables = 1;
    enum rfx_status status = RFX_OK;
    if (q->areas != NULL) {
        status = rfx_area_slots_create(q->mem, q->areas, &q->slots, err);
        sets += rfx_areas_count(q->areas);
        tables += rfx_areas_most_at_once(q->areas);
    }
    if (status != RFX_OK) return status;
    size_t n = (size_t)ranks_of(&q->list, &q->map);
    q->row = rfx_memory_alloc(q->mem, row_floats(&q->map) * sizeof *q->row);
    q->ranks = rfx_memory_calloc(q->mem, (size_t)sets * n, sizeof *q->ranks);
    q->counts = rfx_memory_calloc(q->mem, ((size_t)tables * n) << q->bits, sizeof *q->counts);
    q->values = rfx_memory_calloc(q->mem, (size_t)(sets * q->map.c), sizeof *q->values);
    if (q->row != NULL && q->ranks != NULL && q->counts != NULL && q->values != NULL) return RFX_OK;
    return rfx_memory_fail(q->mem, "quantiles",
                           sets_bytes(&q->list, &q->map, sets, tables, q->bits), err);
}

enum rfx_status rfx_value_quantiles_create(struct rfx_memory *mem, const char *path,
                                           const struct rfx_answer_quantiles *list,
                                           const struct rfx_tensor *map, struct rfx_areas *areas,
                                           struct rfx_value_quantiles **out,
                                           struct rfx_error *err) {
    struct rfx_value_quantiles *q = rfx_memory_calloc(mem, 1, sizeof *q);
    if (q == NULL) return rfx_memory_fail(mem, "quantiles", sizeof *q, err);
    q->mem = mem;
    q->list = *list;
    q->map = *map;
    q->map.type = RFX_TYPE_FLOAT32;
    q->areas = areas;
    q->bits = areas != NULL ? AREA_BITS : MAP_BITS;
    enum rfx_status status = make_tables(q, err);
    if (status == RFX_OK) status = rfx_output_spool_open(mem, path, &q->map, &q->spool, err);
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

/* Bits of a key below those of a pass, from 0. */
static int below(const struct rfx_value_quantiles *q, int pass) {
    const int bits = KEY_BITS - q->bits * (pass + 1);
    return bits > 0 ? bits : 0;
}

/* Counts of a rank in a pass: fewer if there are fewer bits left. */
static uint32_t counts_of(const struct rfx_value_quantiles *q, int pass) {
    const int left = KEY_BITS - q->bits * pass;
    return UINT32_C(1) << (left < q->bits ? left : q->bits);
}

/* Returns the counts of a rank of a channel, of n ranks. */
static int64_t *counts_at(const struct rfx_value_quantiles *q, int64_t table, int64_t channel,
                          int64_t rank) {
    return q->counts +
           ((table * ranks_of(&q->list, &q->map) + 2 * q->list.n * channel + rank) << q->bits);
}

static void clear_table(struct rfx_value_quantiles *q, int64_t table) {
    size_t n = (size_t)ranks_of(&q->list, &q->map) << q->bits;
    memset(counts_at(q, table, 0, 0), 0, n * sizeof *q->counts);
}

/* Counts values of a set by their first bits. */
static void count_first(struct rfx_value_quantiles *q, int64_t set, int64_t table,
                        const float *values, int64_t pixels) {
    const int shift = below(q, 0);
    int64_t *sum = q->values + set * q->map.c;
    for (int64_t x = 0; x < pixels; x++)
        for (int64_t c = 0; c < q->map.c; c++, values++) {
            if (isnan(*values)) continue;
            counts_at(q, table, c, 0)[key_of(*values) >> shift]++;
            sum[c]++;
        }
}

/* Counts values of a set that share the bits of a rank. */
static void count_shared(struct rfx_value_quantiles *q, int pass, int64_t set, int64_t table,
                         const float *values, int64_t pixels) {
    const int64_t n = 2 * q->list.n;
    const int shift = below(q, pass), found = below(q, pass - 1);
    const uint32_t mask = counts_of(q, pass) - 1;
    for (int64_t x = 0; x < pixels; x++)
        for (int64_t c = 0; c < q->map.c; c++, values++) {
            const struct rank *ranks = q->ranks + (set * q->map.c + c) * n;
            uint32_t key = key_of(*values), digit = key >> shift & mask;
            if (isnan(*values)) continue;
            for (int64_t i = 0; i < n; i++)
                if (key >> found == ranks[i].bits) counts_at(q, table, c, i)[digit]++;
        }
}

static void count(struct rfx_value_quantiles *q, int pass, int64_t set, int64_t table,
                  const float *values, int64_t pixels) {
    if (pass == 0)
        count_first(q, set, table, values, pixels);
    else
        count_shared(q, pass, set, table, values, pixels);
}

/* Returns q (n - 1), at most n - 1. */
static double position_of(const struct rfx_value_quantiles *q, int64_t set, int64_t channel,
                          int64_t k) {
    return q->list.at[k] * (double)(q->values[set * q->map.c + channel] - 1);
}

/* Adds the next bits to those of a rank, by the counts of the values that share its bits. */
static void take_digit(struct rank *rank, const int64_t *counts, uint32_t n) {
    uint32_t digit = 0;
    while (digit < n - 1 && rank->left >= counts[digit]) rank->left -= counts[digit++];
    rank->bits = rank->bits * n + digit;
}

/* Adds the bits of a pass to the ranks of a set. */
static void take_bits(struct rfx_value_quantiles *q, int pass, int64_t set, int64_t table) {
    const int64_t n = 2 * q->list.n;
    for (int64_t c = 0; c < q->map.c; c++)
        for (int64_t i = 0; i < n && q->values[set * q->map.c + c] > 0; i++) {
            struct rank *rank = &q->ranks[(set * q->map.c + c) * n + i];
            if (pass == 0) rank->left = (int64_t)floor(position_of(q, set, c, i / 2)) + i % 2;
            take_digit(rank, counts_at(q, table, c, pass > 0 ? i : 0), counts_of(q, pass));
        }
}

/* Counts the values of a row, and takes the bits of areas that are over. */
static void count_row(struct rfx_value_quantiles *q, int pass, const float *values,
                      const struct rfx_area_span *spans, int64_t n) {
    int64_t slot = 0;
    count(q, pass, 0, 0, values, q->map.w);
    for (int64_t i = 0; i < n; i++) {
        const struct rfx_area_span *span = &spans[i];
        bool is_new;
        int64_t table = 1 + rfx_area_slots_take(q->slots, span->area, &is_new);
        if (is_new) clear_table(q, table);
        count(q, pass, 1 + span->area, table, values + span->x0 * q->map.c, span->x1 - span->x0);
    }
    if (q->slots == NULL) return;
    for (int32_t area; (area = rfx_area_slots_leave(q->slots, &slot)) >= 0;)
        take_bits(q, pass, 1 + area, 1 + slot);
}

enum rfx_status rfx_value_quantiles_row(struct rfx_value_quantiles *q, const float *values,
                                        const struct rfx_area_span *spans, int64_t n,
                                        struct rfx_error *err) {
    const struct rfx_rect rect = rfx_rect_make(q->y, q->y + 1, 0, q->map.w);
    memcpy(q->row, values, row_floats(&q->map) * sizeof *q->row);
    const struct rfx_view view = rfx_view_dense(q->row, rect, q->map.c);
    count_row(q, 0, values, spans, n);
    q->y++;
    return rfx_output_spool_write(q->spool, rect, &view, err);
}

enum rfx_status rfx_value_quantiles_find(struct rfx_value_quantiles *q, struct rfx_error *err) {
    take_bits(q, 0, 0, 0);
    for (int pass = 1; pass * q->bits < KEY_BITS; pass++) {
        clear_table(q, 0);
        if (q->areas != NULL) rfx_areas_rewind(q->areas);
        for (int64_t y = 0; y < q->map.h; y++) {
            int64_t n = 0;
            const struct rfx_area_span *spans =
                q->areas != NULL ? rfx_areas_row(q->areas, &n) : NULL;
            enum rfx_status status = rfx_output_spool_read(q->spool, y, q->row, err);
            if (status != RFX_OK) return status;
            count_row(q, pass, q->row, spans, n);
        }
        take_bits(q, pass, 0, 0);
    }
    return RFX_OK;
}

double rfx_value_quantile(const struct rfx_value_quantiles *q, int64_t area, int64_t channel,
                          int k) {
    const int64_t of = (1 + area) * q->map.c + channel;
    const struct rank *rank = &q->ranks[2 * (q->list.n * of + k)];
    if (q->values[of] == 0) return NAN;
    double low = (double)value_of(rank[0].bits), high = (double)value_of(rank[1].bits);
    double position = position_of(q, 1 + area, channel, k), share = position - floor(position);
    if (!(share > 0 && low < high)) return low;
    return share < 0.5 ? low + (high - low) * share : high - (high - low) * (1 - share);
}

void rfx_value_quantiles_free(struct rfx_value_quantiles *q) {
    if (q == NULL) return;
    rfx_output_spool_free(q->spool);
    rfx_area_slots_free(q->slots);
    rfx_memory_release(q->mem, q->values);
    rfx_memory_release(q->mem, q->counts);
    rfx_memory_release(q->mem, q->ranks);
    rfx_memory_release(q->mem, q->row);
    rfx_memory_release(q->mem, q);
}
