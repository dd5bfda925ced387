/* Heaps, and lists by hash; see fronts_buckets.h. */
#include "tiler/fronts/fronts_buckets.h"

#include <math.h>

static void clear_lists(const struct rfx_front_buckets *buckets, struct rfx_front_bucket *b) {
    for (size_t k = 0; k < buckets->n_lists; k++) b->first[k] = -1;
}

enum rfx_status rfx_front_buckets_init(struct rfx_front_buckets *buckets, struct rfx_memory *mem,
                                       int n, int width, struct rfx_error *err) {
    *buckets = (struct rfx_front_buckets){.mem = mem, .n = n, .width = width, .n_lists = 1};
    size_t states = (size_t)width;
    while (buckets->n_lists < states) buckets->n_lists *= 2;
    size_t numbers = 3 * states + buckets->n_lists;
    size_t count = (size_t)n;
    buckets->at = rfx_memory_calloc(mem, count, sizeof *buckets->at);
    buckets->hashes = rfx_memory_calloc(mem, count * states, sizeof *buckets->hashes);
    buckets->scores = rfx_memory_calloc(mem, count * states, sizeof *buckets->scores);
    buckets->numbers = rfx_memory_calloc(mem, count * numbers, sizeof *buckets->numbers);
    if (buckets->at == NULL || buckets->hashes == NULL || buckets->scores == NULL ||
        buckets->numbers == NULL)
        return rfx_memory_fail(mem, "packer", count * numbers * sizeof *buckets->numbers, err);
    for (size_t k = 0; k < count; k++) {
        int *own = &buckets->numbers[k * numbers];
        buckets->at[k] = (struct rfx_front_bucket){.hashes = &buckets->hashes[k * states],
                                                   .scores = &buckets->scores[k * states],
                                                   .heap = own,
                                                   .place = own + states,
                                                   .next = own + 2 * states,
                                                   .first = own + 3 * states};
        clear_lists(buckets, &buckets->at[k]);
    }
    return RFX_OK;
}

void rfx_front_buckets_release(struct rfx_front_buckets *buckets) {
    if (buckets->mem == NULL) return; /* never begun */
    rfx_memory_release(buckets->mem, buckets->at);
    rfx_memory_release(buckets->mem, buckets->hashes);
    rfx_memory_release(buckets->mem, buckets->scores);
    rfx_memory_release(buckets->mem, buckets->numbers);
}

static void lay(struct rfx_front_bucket *b, int place, int state) {
    b->heap[place] = state;
    b->place[state] = place;
}

/* A state whose score is a new one goes where it belongs in the heap. */
static void sift(struct rfx_front_bucket *b, int state) {
    float score = b->scores[state];
    int place = b->place[state];
    for (int above = (place - 1) / 2; place > 0 && b->scores[b->heap[above]] > score;
         above = (place - 1) / 2) {
        lay(b, place, b->heap[above]);
        place = above;
    }
    for (int below = 2 * place + 1; below < b->n; below = 2 * place + 1) {
        if (below + 1 < b->n && b->scores[b->heap[below + 1]] < b->scores[b->heap[below]]) below++;
        if (b->scores[b->heap[below]] >= score) break;
        lay(b, place, b->heap[below]);
        place = below;
    }
    lay(b, place, state);
}

static int *list_of(const struct rfx_front_buckets *buckets, const struct rfx_front_bucket *b,
                    uint64_t hash) {
    return &b->first[hash & (buckets->n_lists - 1)];
}

static void unlist(const struct rfx_front_buckets *buckets, struct rfx_front_bucket *b, int state) {
    int *at = list_of(buckets, b, b->hashes[state]);
    while (*at != state) at = &b->next[*at];
    *at = b->next[state];
}

struct rfx_front_put rfx_front_buckets_put(struct rfx_front_buckets *buckets, int bucket,
                                           uint64_t hash, float score) {
    struct rfx_front_bucket *b = &buckets->at[bucket];
    int *first = list_of(buckets, b, hash);
    int state = *first;
    while (state >= 0 && b->hashes[state] != hash) state = b->next[state];
    if (state >= 0) { /* the same, perhaps better reached */
        if (score <= b->scores[state]) return (struct rfx_front_put){.state = -1};
        b->scores[state] = score;
        sift(b, state);
        return (struct rfx_front_put){.state = state, .instead = true};
    }
    bool full = b->n == buckets->width;
    if (full && score <= b->scores[b->heap[0]])
        return (struct rfx_front_put){.state = -1, .left_out = true};
    if (full) {
        state = b->heap[0];
        unlist(buckets, b, state);
    } else {
        state = b->n++;
        b->place[state] = state;
    }
    b->hashes[state] = hash;
    b->scores[state] = score;
    b->next[state] = *first;
    *first = state;
    sift(b, state);
    return (struct rfx_front_put){.state = state, .instead = full, .left_out = full};
}

float rfx_front_buckets_least(const struct rfx_front_buckets *buckets, int bucket) {
    const struct rfx_front_bucket *b = &buckets->at[bucket];
    return b->n < buckets->width ? -INFINITY : b->scores[b->heap[0]];
}

void rfx_front_buckets_clear(struct rfx_front_buckets *buckets, int bucket) {
    struct rfx_front_bucket *b = &buckets->at[bucket];
    if (b->n > 0) clear_lists(buckets, b);
    b->n = 0;
}
