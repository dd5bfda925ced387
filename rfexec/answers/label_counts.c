/* A table with open addressing, of twice as many places as labels; see label_counts.h. */
#include "rfexec/answers/label_counts.h"

#include <stdbool.h>

#include "layers/core/heap_sort.h"

struct rfx_label_counts {
    struct rfx_memory *mem;
    int64_t n, most;
    int bits; /* there are 2^bits = 2 most places, so at most half of them are used */
    bool listed;
    struct rfx_label_count places[]; /* pixels 0: free; after listing: n counts in order */
};

size_t rfx_label_counts_bytes(int64_t most) {
    return sizeof(struct rfx_label_counts) + 2 * (size_t)most * sizeof(struct rfx_label_count);
}

enum rfx_status rfx_label_counts_create(struct rfx_memory *mem, int64_t most,
                                        struct rfx_label_counts **out, struct rfx_error *err) {
    size_t bytes = rfx_label_counts_bytes(most);
    struct rfx_label_counts *counts = rfx_memory_calloc(mem, 1, bytes);
    if (counts == NULL) return rfx_memory_fail(mem, "counts of labels", bytes, err);
    counts->mem = mem;
    counts->most = most;
    while ((INT64_C(1) << counts->bits) < 2 * most) counts->bits++;
    *out = counts;
    return RFX_OK;
}

/* Returns the place of a label, or the free one where it belongs. */
static struct rfx_label_count *find(struct rfx_label_counts *counts, int64_t label) {
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / golden ratio */
    size_t at = (size_t)(((uint64_t)label * golden) >> (64 - counts->bits));
    while (counts->places[at].pixels > 0 && counts->places[at].label != label)
        at = (at + 1) & ((size_t)2 * (size_t)counts->most - 1);
    return &counts->places[at];
}

enum rfx_status rfx_label_counts_add_run(struct rfx_label_counts *counts, int64_t label,
                                         int64_t pixels, struct rfx_error *err) {
    struct rfx_label_count *place = find(counts, label);
    if (place->pixels == 0 && counts->n == counts->most)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "the map has more than %lld different labels, which is the most that a "
                        "summary counts; 'run -o labels.npy' writes the map itself",
                        (long long)counts->most);
    counts->n += place->pixels == 0;
    place->label = label;
    place->pixels += pixels;
    return RFX_OK;
}

enum rfx_status rfx_label_counts_add(struct rfx_label_counts *counts, const int64_t *labels,
                                     int64_t n, int64_t none, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t x = 0, end; x < n && status == RFX_OK; x = end) {
        for (end = x + 1; end < n && labels[end] == labels[x];) end++;
        if (labels[x] != none) status = rfx_label_counts_add_run(counts, labels[x], end - x, err);
    }
    return status;
}

static bool has_smaller_label(const void *context, const void *a, const void *b) {
    (void)context;
    return ((const struct rfx_label_count *)a)->label < ((const struct rfx_label_count *)b)->label;
}

const struct rfx_label_count *rfx_label_counts_list(struct rfx_label_counts *counts, int64_t *n) {
    int64_t kept = 0;
    for (int64_t i = 0; !counts->listed && i < 2 * counts->most; i++)
        if (counts->places[i].pixels > 0) counts->places[kept++] = counts->places[i];
    if (!counts->listed)
        rfx_heap_sort(counts->places, kept, sizeof *counts->places, has_smaller_label, NULL);
    counts->listed = true;
    *n = counts->n;
    return counts->places;
}

void rfx_label_counts_free(struct rfx_label_counts *counts) {
    if (counts != NULL) rfx_memory_release(counts->mem, counts);
}
