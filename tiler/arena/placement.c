/* Places the records of a plan, checks placements, computes the lower bound with slides from the
 * live bytes of each step, and remembers placements. */
#include "tiler/arena/placement.h"

#include <stdint.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/arena/packer.h"

/* Most search nodes of the packer, used if no greedy packer meets the bound. The limits count
 * nodes, not time, so that a placement is a function of the records. Quick placements serve the
 * planner, which compares thousands of plans; the plan that runs gets more nodes. A node looks at
 * each record in each section of time in which the record lives; a look takes about a nanosecond.
 * SEARCH_LOOKS limits the nodes of plans with thousands of records to a fraction of a second. Plans
 * depend on all these values: other values find other arenas. */
enum { QUICK_NODES = 50, SEARCH_NODES = 4000, SEARCH_LOOKS = 80 * 1000 * 1000 };

static struct rfx_place_item item_of(const struct rfx_record *r) {
    struct rfx_place_item item = {r->first, (int64_t)r->last + 1, r->bytes, RFX_ALIGNMENT_BYTES};
    return item;
}

bool rfx_records_overlap(const struct rfx_record *a, const struct rfx_record *b) {
    struct rfx_place_item ia = item_of(a);
    struct rfx_place_item ib = item_of(b);
    return rfx_place_items_overlap(&ia, &ib);
}

static uint64_t count_nodes(const struct rfx_place_problem *problem, bool quick) {
    uint64_t looks = 1, most = quick ? QUICK_NODES : SEARCH_NODES;
    for (int i = 0; i < problem->n; i++) looks += (uint64_t)(problem->last[i] - problem->first[i]);
    uint64_t allowed = 1 + SEARCH_LOOKS / looks;
    return allowed < most ? allowed : most;
}

enum rfx_status rfx_place_records(struct rfx_memory *mem, struct rfx_record *records, int n,
                                  bool quick, size_t *arena_bytes, const char **strategy,
                                  struct rfx_error *err) {
    struct rfx_packer_limits limits = {0};
    struct rfx_packer_result result = {0};
    struct rfx_place_problem *problem = NULL;
    size_t bytes = (size_t)n * (sizeof(struct rfx_place_item) + sizeof(size_t));
    struct rfx_place_item *items = rfx_memory_alloc(mem, bytes);
    if (items == NULL) return rfx_memory_fail(mem, "placement", bytes, err);
    size_t *offsets = (size_t *)(void *)(items + n);
    for (int i = 0; i < n; i++) items[i] = item_of(&records[i]);
    enum rfx_status status = rfx_place_problem_create(mem, items, n, &problem, err);
    if (status == RFX_OK) {
        limits.nodes = count_nodes(problem, quick);
        status = rfx_packer_solve(problem, &limits, offsets, &result, err);
    }
    if (status == RFX_OK) {
        for (int i = 0; i < n; i++)
            records[i].offset = offsets[i]; /* the packer has checked the offsets */
        *arena_bytes = result.arena_bytes;
        *strategy = result.method;
    }
    rfx_place_problem_free(problem);
    rfx_memory_release(mem, items);
    return status;
}

static bool are_apart(const struct rfx_record *a, const struct rfx_record *b) {
    return a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
}

/* Returns whether a slide allows the two records to lie as they do. */
static bool may_slide(const struct rfx_record *records, int i, int j,
                      const struct rfx_slide *slides, int n_slides, const bool *upwards) {
    for (int k = 0; k < n_slides; k++) {
        const struct rfx_slide *s = &slides[k];
        if (!((s->before == i && s->after == j) || (s->before == j && s->after == i))) continue;
        size_t before = records[s->before].offset;
        size_t after = records[s->after].offset;
        return upwards[k] ? after >= before + s->up : before >= after + s->down;
    }
    return false;
}

bool rfx_place_is_valid(const struct rfx_record *records, int n, const struct rfx_slide *slides,
                        int n_slides, const bool *upwards, size_t arena_bytes) {
    for (int i = 0; i < n; i++) {
        const struct rfx_record *a = &records[i];
        if (a->offset % RFX_ALIGNMENT_BYTES != 0) return false;
        if (a->offset > arena_bytes || a->bytes > arena_bytes - a->offset) return false;
        for (int j = 0; j < i; j++) {
            if (!rfx_records_overlap(a, &records[j]) || are_apart(a, &records[j])) continue;
            if (!may_slide(records, i, j, slides, n_slides, upwards)) return false;
        }
    }
    return true;
}

/* Returns the most bytes that the slides of one node save while their maps are live together.
 * Starts at slide *k and advances *k to the next node's slides. When the new map slides down, it
 * shares at most its own bytes from `down` on with an old map. When it slides up, it shares at most
 * the old map's bytes from `up` on. All slides of a node go in one direction. */
static size_t saved_by_slides(const struct rfx_place_job *job, int *k) {
    int after = job->slides[*k].after;
    size_t made = job->records[after].bytes, dying = 0, down = 0, up = 0;
    for (; *k < job->n_slides && job->slides[*k].after == after; ++*k) {
        const struct rfx_slide *slide = &job->slides[*k];
        size_t bytes = job->records[slide->before].bytes;
        size_t below = made > slide->down ? made - slide->down : 0;
        dying += bytes;
        down += below < bytes ? below : bytes;
        up += bytes > slide->up ? bytes - slide->up : 0;
    }
    size_t most = dying < made ? dying : made;
    size_t saved = down > up ? down : up;
    return saved < most ? saved : most;
}

/* State while a bound is computed, step by step. */
struct finder {
    size_t *live;   /* per step: bytes that begin minus bytes that have ended. The differences are
                       modulo 2^64; each prefix sum is a true size */
    size_t current; /* live bytes of the current step */
    size_t bound;   /* most live bytes so far; `rest`: most from step rest_first on */
    size_t rest;
    int rest_first;
};

static void clear(const struct finder *f, struct rfx_place_span span) {
    memset(f->live + span.begin, 0, (size_t)(span.end - span.begin) * sizeof *f->live);
}

static void pass(struct finder *f, struct rfx_place_span span) {
    for (int t = span.begin; t < span.end; t++) {
        f->current += f->live[t];
        if (f->current > f->bound) f->bound = f->current;
        if (f->current > f->rest && t >= f->rest_first) f->rest = f->current;
    }
}

size_t rfx_place_slides_bound(const struct rfx_place_job *job, int rest_first, size_t *live,
                              size_t *rest) {
    struct finder f = {.live = live, .rest_first = rest_first};
    const struct rfx_place_span all = {0, job->n_steps};
    int n = job->spans == NULL ? 1 : job->n_spans;
    const struct rfx_place_span *spans = job->spans == NULL ? &all : job->spans;
    for (int s = 0; s < n; s++) clear(&f, spans[s]);
    for (int i = 0; i < job->n; i++) {
        const struct rfx_record *r = &job->records[i];
        live[r->first] += r->bytes;
        if (r->last + 1 < job->n_steps) live[r->last + 1] -= r->bytes;
    }
    for (int k = 0; k < job->n_slides;) { /* bytes are shared from the step where one map begins to
                                             the step where the others end */
        const struct rfx_slide *slide = &job->slides[k];
        int end = job->records[slide->before].last + 1;
        size_t saved = saved_by_slides(job, &k);
        live[job->records[slide->after].first] -= saved;
        if (end < job->n_steps) live[end] += saved;
    }
    for (int s = 0; s < n; s++) pass(&f, spans[s]);
    *rest = f.rest;
    return f.bound;
}

/* Mixes a value into both halves of a key. The multipliers are odd and come from the fractions of
 * square roots. */
static void mix(struct rfx_place_key *key, uint64_t value) {
    uint64_t low = (key->low ^ value) * 0x6a09e667f3bcc909U;
    uint64_t high = (key->high + value) * 0xbb67ae8584caa73bU;
    key->low = low ^ (low >> 29);
    key->high = (high << 31 | high >> 33) ^ low;
}

static uint64_t pair(int a, int b) {
    return (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
}

struct rfx_place_key rfx_place_key_of(const struct rfx_place_job *job, bool quick) {
    struct rfx_place_key key = {pair(job->n, job->n_slides), quick};
    for (int i = 0; i < job->n; i++) {
        const struct rfx_record *r = &job->records[i];
        mix(&key, pair(r->first, r->last));
        mix(&key, r->bytes);
    }
    for (int k = 0; k < job->n_slides; k++) {
        const struct rfx_slide *s = &job->slides[k];
        mix(&key, pair(s->before, s->after));
        mix(&key, pair(s->stage, s->node));
        mix(&key, s->down);
        mix(&key, s->up);
    }
    return key;
}

size_t rfx_place_memo_find(const struct rfx_place_memo *memo, struct rfx_place_key key) {
    const struct rfx_place_memo *entry = &memo[key.low % RFX_PLACE_MEMO_ENTRIES];
    bool same = entry->key.low == key.low && entry->key.high == key.high;
    return same ? entry->arena : 0;
}

void rfx_place_memo_add(struct rfx_place_memo *memo, struct rfx_place_key key, size_t arena) {
    memo[key.low % RFX_PLACE_MEMO_ENTRIES] = (struct rfx_place_memo){key, arena};
}

bool rfx_place_saved_init(struct rfx_place_saved *saved, struct rfx_memory *mem, int capacity) {
    *saved = (struct rfx_place_saved){.capacity = capacity};
    saved->offsets = rfx_memory_calloc(mem, (size_t)capacity, sizeof *saved->offsets);
    saved->upwards = rfx_memory_calloc(mem, (size_t)capacity, sizeof *saved->upwards);
    return saved->offsets != NULL && saved->upwards != NULL;
}

void rfx_place_saved_release(struct rfx_place_saved *saved, struct rfx_memory *mem) {
    rfx_memory_release(mem, saved->offsets);
    rfx_memory_release(mem, saved->upwards);
}

void rfx_place_saved_offer(struct rfx_place_saved *saved, struct rfx_place_key key,
                           const struct rfx_place_job *job, const bool *upwards, size_t arena,
                           const char *strategy, size_t peak) {
    if (saved->arena != 0 && saved->peak <= peak) return;
    if (job->n > saved->capacity || job->n_slides > saved->capacity) return;
    for (int i = 0; i < job->n; i++) saved->offsets[i] = job->records[i].offset;
    for (int k = 0; k < job->n_slides; k++) saved->upwards[k] = upwards[k];
    saved->key = key;
    saved->arena = arena;
    saved->peak = peak;
    saved->strategy = strategy;
}

bool rfx_place_saved_find(const struct rfx_place_saved *saved, struct rfx_place_key key,
                          const struct rfx_place_job *job, struct rfx_record *records,
                          bool *upwards) {
    if (saved->arena == 0 || saved->key.low != key.low || saved->key.high != key.high) return false;
    for (int i = 0; i < job->n; i++) records[i].offset = saved->offsets[i];
    for (int k = 0; k < job->n_slides; k++) upwards[k] = saved->upwards[k];
    return true;
}
