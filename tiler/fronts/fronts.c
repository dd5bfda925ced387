/* The beam; see fronts.h. */
#include "tiler/fronts/fronts.h"

#include <string.h>

#include "tiler/fronts/fronts_buckets.h"
#include "tiler/fronts/fronts_makers.h"
#include "tiler/fronts/fronts_way.h"
#include "tiler/packer/packer_slots.h"

enum { NODES_OF_LINE = 64 / sizeof(struct rfx_pq_node) };

/* States that are gone on from before any of what follows them is kept: of the width one in so
 * many; and so many at a time by one thread. Neither hangs on the number of threads. */
enum { BATCHES_OF_WIDTH = 16, STATES_OF_PART = 8 };

/* Why a step was made. */
struct step {
    int previous, boundary;
    struct rfx_front_group group;
};

/* What was made of a batch of states with `ended` items that ended, in parts that one thread makes
 * at a time. */
struct made {
    struct rfx_front_batch *parts; /* [room] */
    int n_parts, room, ended;
    bool failed; /* no memory */
};

struct fronts {
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_fronts_request *request;
    struct rfx_front_times *times;
    struct rfx_front_maker *makers; /* [n_makers]: per thread */
    int n_makers;
    int batch_states;
    struct made made[2];              /* of the batch and of the one before */
    struct rfx_front_buckets buckets; /* by how many items ended; as many as one boundary has ends,
                                         and one more: none wraps around */
    struct rfx_front_state *states;   /* [width] of each bucket */
    struct step *steps;
    int n_steps;
    size_t steps_capacity;
    struct rfx_pq_slots trees; /* a slot has both sides */
    int last;                  /* the bucket of the states that got to the end; -1: none did */
    int deepest;               /* the first step to what the last bucket with any states had */
    bool complete;             /* no state and no group listed was left out so far */
    /* the batch: n_batch states from first_in_heap down, of the bucket with `ended` items that
     * ended; their steps from first_step on */
    int ended, first_in_heap, n_batch, first_step;
    int at; /* the batch in `made`; what the other one has is still to be kept */
    float least[RFX_FRONT_MAX_SIDE + 1]; /* scores of what is kept of so many ends more */
};

static struct rfx_pq_node *nodes_of(const struct fronts *f, const struct rfx_front_state *state) {
    return rfx_pq_slots_at(&f->trees, state->slot);
}

static struct rfx_front_state *state_at(const struct fronts *f, int bucket, int state) {
    return &f->states[(size_t)bucket * (size_t)f->buckets.width + (size_t)state];
}

/* The k-th state of the batch. */
static const struct rfx_front_state *state_of_batch(const struct fronts *f, int k) {
    int bucket = f->ended % f->buckets.n;
    return state_at(f, bucket, f->buckets.at[bucket].heap[f->first_in_heap - k]);
}

/* Puts a state among those of the bucket with `ended` items that ended, with the forest in `nodes`,
 * unless there are enough better ones. false: no memory. */
static bool insert(struct fronts *f, int ended, const struct rfx_front_made *made,
                   const struct rfx_pq_node *nodes) {
    int bucket = ended % f->buckets.n;
    struct rfx_front_put put = rfx_front_buckets_put(&f->buckets, bucket, made->hash, made->score);
    if (put.left_out) f->complete = false;
    if (put.state < 0) return true;
    struct rfx_front_state *to = state_at(f, bucket, put.state);
    int slot = put.instead ? to->slot : rfx_pq_slots_take(&f->trees);
    if (slot < 0) return false;
    *to = made->state;
    to->slot = slot;
    size_t side = (size_t)f->trees.slot_nodes / RFX_FRONT_SIDES;
    struct rfx_pq_node *out = nodes_of(f, to);
    for (size_t k = 0; k < RFX_FRONT_SIDES; k++)
        memcpy(out + k * side, nodes + k * side, (size_t)to->n_nodes[k] * sizeof *out);
    return true;
}

/* Remembers how the states of the batch were reached. false: no memory. */
static bool add_steps(struct fronts *f) {
    size_t wanted = (size_t)f->n_steps + (size_t)f->n_batch;
    struct step *steps =
        rfx_memory_reserve(f->mem, f->steps, &f->steps_capacity, wanted, sizeof *f->steps);
    if (steps == NULL) return false;
    f->steps = steps;
    f->first_step = f->n_steps;
    for (int k = 0; k < f->n_batch; k++) {
        const struct rfx_front_state *state = state_of_batch(f, k);
        f->steps[f->n_steps++] = (struct step){state->previous, state->from, state->group};
    }
    return true;
}

/* Asks memory for the forest of a state that comes soon: there are too many for any cache. */
static void expect(const struct fronts *f, const struct rfx_front_state *state) {
    struct rfx_forest forest = rfx_front_forest(state, nodes_of(f, state), f->trees.slot_nodes);
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        for (int i = 0; i < forest.n_nodes[side]; i += NODES_OF_LINE)
            __builtin_prefetch(&forest.nodes[side][i]);
}

/* Keeps the best of what was made of a batch. false: no memory. */
static bool keep(struct fronts *f, const struct made *made) {
    for (int i = 0; i < made->n_parts; i++) {
        const struct rfx_front_batch *part = &made->parts[i];
        for (int k = 0; k < part->n; k++) {
            const struct rfx_pq_node *at = &part->nodes[(size_t)k * (size_t)f->trees.slot_nodes];
            if (!insert(f, made->ended + part->list[k].n_ends, &part->list[k], at)) return false;
        }
    }
    return true;
}

/* Makes what follows the states of a part of the batch. */
static void make_part(struct fronts *f, int index, int thread) {
    struct rfx_front_batch *part = &f->made[f->at].parts[index];
    int first = index * STATES_OF_PART;
    int end = first + STATES_OF_PART < f->n_batch ? first + STATES_OF_PART : f->n_batch;
    part->n = 0;
    part->tried = 0;
    part->left_out = rfx_place_must_stop(f->mem, f->request->stop);
    if (part->left_out) return;
    for (int k = first; k < end && !part->has_no_memory; k++) {
        const struct rfx_front_state *state = state_of_batch(f, k);
        if (k + 1 < end) expect(f, state_of_batch(f, k + 1));
        if (!rfx_front_make(&f->makers[thread], state, nodes_of(f, state), f->first_step + k,
                            f->least, part))
            part->has_no_memory = true;
    }
}

/* One thread keeps what was made of the batch before, the others make this one. */
static void share(void *user, int64_t index, int thread) {
    struct fronts *f = user;
    struct made *before = &f->made[1 - f->at];
    if (index > 0)
        make_part(f, (int)index - 1, thread);
    else if (!keep(f, before))
        before->failed = true;
}

/* Goes on from the states of the batch; what follows them is kept with the next one. false: no
 * memory. */
static bool expand(struct fronts *f, uint64_t *nodes) {
    struct made *made = &f->made[f->at];
    struct made *before = &f->made[1 - f->at];
    made->n_parts = (f->n_batch + STATES_OF_PART - 1) / STATES_OF_PART;
    made->ended = f->ended;
    int n_kept = 0;
    for (int i = 0; i < before->n_parts; i++) n_kept += before->parts[i].n;
    /* no slot may move while others look at theirs */
    if (!add_steps(f) || !rfx_pq_slots_reserve(&f->trees, n_kept)) return false;
    for (int k = 0; k < f->buckets.n; k++)
        f->least[k] = rfx_front_buckets_least(&f->buckets, (f->ended + k) % f->buckets.n);
    rfx_team_for(f->request->team, made->n_parts + 1, share, f);
    if (before->failed) return false;
    before->n_parts = 0;
    for (int i = 0; i < made->n_parts; i++) {
        if (made->parts[i].has_no_memory) return false;
        if (made->parts[i].left_out) f->complete = false;
        *nodes += made->parts[i].tried;
    }
    for (int k = 0; k < f->n_batch; k++) rfx_pq_slots_give(&f->trees, state_of_batch(f, k)->slot);
    f->at = 1 - f->at;
    return true;
}

/* Keeps what is left of the last batch of a bucket. false: no memory. */
static bool end_bucket(struct fronts *f) {
    struct made *last = &f->made[1 - f->at];
    if (!keep(f, last)) return false;
    last->n_parts = 0;
    rfx_front_buckets_clear(&f->buckets, f->ended % f->buckets.n);
    return true;
}

/* Puts the state before all boundaries in the first bucket. false: no memory. */
static bool insert_first(struct fronts *f) {
    struct rfx_front_made first = {.state = {.previous = -1}};
    int slot_nodes = f->trees.slot_nodes;
    struct rfx_pq_node *nodes = rfx_memory_calloc(f->mem, (size_t)slot_nodes, sizeof *nodes);
    if (nodes == NULL) return false;
    struct rfx_forest forest = rfx_front_forest(&first.state, nodes, slot_nodes);
    rfx_forest_make(f->problem, f->times->live, f->times->n_live, &forest);
    first.state.n_nodes[0] = first.state.n_nodes[1] = first.state.n_trees = forest.n_trees;
    first.state.sums = rfx_front_judge_all(&f->makers[0].judge, &forest);
    rfx_front_enter(f->times, &first.state, 0);
    bool done = insert(f, 0, &first, nodes);
    rfx_memory_release(f->mem, nodes);
    return done;
}

/* Looks for states after the last boundary: sets last. false: no memory. */
static bool search(struct fronts *f, uint64_t *nodes) {
    int waiting = 1;
    if (!insert_first(f)) return false;
    for (f->ended = 0; waiting > 0; f->ended++) {
        int bucket = f->ended % f->buckets.n;
        const struct rfx_front_bucket *b = &f->buckets.at[bucket];
        if (b->n > 0) f->deepest = f->n_steps;
        /* the best first, more or less */
        for (f->first_in_heap = b->n - 1; f->first_in_heap >= 0; f->first_in_heap -= f->n_batch) {
            int left = f->first_in_heap + 1;
            f->n_batch = left < f->batch_states ? left : f->batch_states;
            if (state_of_batch(f, 0)->left.boundary == f->times->n) { /* all of the bucket are */
                f->last = bucket;
                return true;
            }
            if (*nodes >= f->request->nodes || rfx_place_must_stop(f->mem, f->request->stop)) {
                f->complete = false;
                return true;
            }
            if (!expand(f, nodes)) return false;
        }
        if (!end_bucket(f)) return false;
        waiting = 0;
        for (int i = 0; i < f->buckets.n; i++) waiting += f->buckets.at[i].n;
    }
    return true;
}

static enum rfx_status allocate(struct fronts *f, struct rfx_error *err) {
    struct rfx_memory *mem = f->mem;
    int width = f->request->width;
    int n = 1;
    for (int k = 0; k < f->times->n; k++)
        if (f->times->at[k].n_ends >= n) n = f->times->at[k].n_ends + 1;
    size_t states = (size_t)n * (size_t)width;
    size_t threads = (size_t)rfx_team_threads(f->request->team);
    f->batch_states = (width + BATCHES_OF_WIDTH - 1) / BATCHES_OF_WIDTH;
    size_t parts = (size_t)(f->batch_states + STATES_OF_PART - 1) / STATES_OF_PART;
    f->states = rfx_memory_calloc(mem, states, sizeof *f->states);
    f->makers = rfx_memory_calloc(mem, threads, sizeof *f->makers);
    for (int i = 0; i < 2; i++)
        f->made[i].parts = rfx_memory_calloc(mem, parts, sizeof *f->made[i].parts);
    if (f->states == NULL || f->makers == NULL || f->made[0].parts == NULL ||
        f->made[1].parts == NULL)
        return rfx_memory_fail(mem, "packer", states * sizeof *f->states, err);
    for (int k = 0; k < 2 * (int)parts; k++) {
        struct made *made = &f->made[k % 2];
        made->parts[made->room++].mem = mem;
    }
    enum rfx_status status = rfx_front_buckets_init(&f->buckets, mem, n, width, err);
    while (status == RFX_OK && f->n_makers < (int)threads)
        status =
            rfx_front_maker_init(&f->makers[f->n_makers++], f->problem, f->request, f->times, err);
    return status;
}

static void release(struct fronts *f) {
    rfx_pq_slots_release(&f->trees);
    rfx_front_buckets_release(&f->buckets);
    for (int i = 0; i < f->n_makers; i++) rfx_front_maker_release(&f->makers[i]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < f->made[i].room; k++) rfx_front_batch_release(&f->made[i].parts[k]);
    rfx_front_times_free(f->times);
    void *const blocks[] = {f->states, f->steps, f->makers, f->made[0].parts, f->made[1].parts};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(f->mem, blocks[i]);
}

/* Adds the groups on the way to a step, the last first, to n that are listed; their number. */
static int list_way(const struct fronts *f, int step, struct rfx_front_step *way, int n) {
    for (int k = step; k > 0; k = f->steps[k].previous)
        way[n++] = (struct rfx_front_step){f->steps[k].boundary, f->steps[k].group};
    return n;
}

/* The offsets of the way to a state. */
static enum rfx_status reconstruct(struct fronts *f, const struct rfx_front_state *last,
                                   struct rfx_front_step *way, size_t *offsets,
                                   struct rfx_error *err) {
    int n = 0;
    if (last->previous >= 0) way[n++] = (struct rfx_front_step){last->from, last->group};
    n = list_way(f, last->previous, way, n);
    return rfx_front_way(f->problem, f->times, &f->makers[0].forests, way, n, offsets, err);
}

/* The offsets of what is placed on the way to a step. `placed`: per item, false; so after it. */
static enum rfx_status reconstruct_part(struct fronts *f, int step, struct rfx_front_step *way,
                                        bool *placed, size_t *offsets, struct rfx_error *err) {
    int n = list_way(f, step, way, 0);
    for (int i = 0; i < f->times->n_live; i++) placed[f->times->live[i]] = true;
    for (int k = 0; k < n; k++) {
        const struct rfx_front_boundary *b = &f->times->at[way[k].boundary];
        for (uint64_t rest = way[k].group.begins; rest != 0; rest &= rest - 1)
            placed[f->times->by_begin[b->begins + __builtin_ctzll(rest)]] = true;
    }
    enum rfx_status status =
        rfx_front_way(f->problem, f->times, &f->makers[0].forests, way, n, offsets, err);
    for (int i = 0; i < f->problem->n; i++) {
        if (!placed[i]) offsets[i] = SIZE_MAX;
        placed[i] = false;
    }
    return status;
}

/* Tells of the states of the last bucket, evenly from the best to the worst. */
static enum rfx_status list_parts(struct fronts *f, struct rfx_error *err) {
    struct rfx_fronts_parts *parts = f->request->parts;
    size_t n = (size_t)f->problem->n;
    int64_t states = f->n_steps - f->deepest;
    int64_t count = states < parts->most ? states : parts->most;
    enum rfx_status status = RFX_OK;
    bool *placed = rfx_memory_calloc(f->mem, n, sizeof *placed);
    struct rfx_front_step *way = rfx_memory_calloc(f->mem, 2 * n, sizeof *way);
    if (placed == NULL || way == NULL)
        status = rfx_memory_fail(f->mem, "packer", 2 * n * sizeof *way, err);
    for (int64_t k = 0; status == RFX_OK && k < count; k++) {
        if (rfx_place_must_stop(f->mem, f->request->stop)) break;
        int step = f->deepest + (int)(k * states / count);
        size_t *offsets = &parts->offsets[(size_t)k * n];
        status = reconstruct_part(f, step, way, placed, offsets, err);
        if (status == RFX_OK) parts->n++;
    }
    rfx_memory_release(f->mem, placed);
    rfx_memory_release(f->mem, way);
    return status;
}

/* Keeps the lowest of the packings of the states that got to the end, up to the first that fits:
 * how high places that were cut anew have to be is not known to the byte. */
static enum rfx_status settle(struct fronts *f, size_t *offsets, size_t *arena,
                              struct rfx_error *err) {
    const struct rfx_place_problem *problem = f->problem;
    size_t n = (size_t)problem->n;
    enum rfx_status status = RFX_OK;
    size_t *trial = rfx_memory_calloc(f->mem, n, sizeof *trial);
    struct rfx_front_step *way = rfx_memory_calloc(f->mem, 2 * n, sizeof *way);
    if (trial == NULL || way == NULL)
        status = rfx_memory_fail(f->mem, "packer", n * sizeof *trial, err);
    for (int i = 0; status == RFX_OK && i < f->buckets.at[f->last].n; i++) {
        if (*arena <= f->request->capacity_bytes) break;
        if (i > 0 && rfx_place_must_stop(f->mem, f->request->stop)) break;
        status = reconstruct(f, state_at(f, f->last, i), way, trial, err);
        if (status != RFX_OK) break;
        size_t bytes = rfx_place_arena_bytes(problem->items, problem->n, trial);
        if (bytes >= *arena) continue;
        if (!rfx_place_answer_is_valid(problem->items, problem->n, trial, bytes)) {
            status = rfx_place_fail_check("fronts", problem->n, err);
            break;
        }
        *arena = bytes;
        memcpy(offsets, trial, n * sizeof *trial);
    }
    rfx_memory_release(f->mem, trial);
    rfx_memory_release(f->mem, way);
    return status;
}

enum rfx_status rfx_fronts_place(const struct rfx_place_problem *problem,
                                 const struct rfx_fronts_request *request, size_t *offsets,
                                 size_t *arena_bytes, bool *complete, uint64_t *nodes,
                                 struct rfx_error *err) {
    struct fronts f = {.mem = problem->mem,
                       .problem = problem,
                       .request = request,
                       .trees = {.mem = problem->mem},
                       .last = -1,
                       .complete = true};
    uint64_t visited = 0;
    *arena_bytes = SIZE_MAX;
    *complete = true;
    if (request->parts != NULL) request->parts->n = 0;
    if (problem->n == 0 || problem->n > RFX_FRONTS_MAX_ITEMS) return RFX_OK;
    enum rfx_status status = rfx_front_times_create(problem, &f.times, err);
    if (status != RFX_OK || !f.times->possible) goto done;
    if (f.times->n_live > RFX_FOREST_MAX_TREES || f.times->max_live > RFX_FRONTS_MAX_LIVE)
        goto done;
    f.trees.slot_nodes = rfx_front_slot_nodes(f.times);
    status = allocate(&f, err);
    if (status != RFX_OK) goto done;
    if (!search(&f, &visited))
        status = rfx_memory_fail(f.mem, "packer",
                                 2 * f.trees.nodes_capacity * sizeof *f.trees.nodes, err);
    if (status == RFX_OK && f.last >= 0) status = settle(&f, offsets, arena_bytes, err);
    if (status == RFX_OK && f.last < 0 && request->parts != NULL) status = list_parts(&f, err);
    *complete = f.complete && f.last < 0;
    for (int i = 0; i < f.n_makers; i++)
        if (!f.makers[i].groups.complete) *complete = false;
done:
    *nodes += visited;
    release(&f);
    return status;
}
