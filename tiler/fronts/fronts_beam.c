/* Batches, and what is kept of them; see fronts_beam.h. */
#include "tiler/fronts/fronts_beam.h"

#include <string.h>

enum { NODES_OF_LINE = 64 / sizeof(struct rfx_pq_node) };

/* States that are gone on from before any of what follows them is kept: of the width one in so
 * many; and so many at a time by one thread. Neither hangs on the number of threads. */
enum { BATCHES_OF_WIDTH = 16, STATES_OF_PART = 8 };

/* What a thread makes of a part before the best of it are kept, and one state's more: where states
 * have many groups, most are not worth making once there are enough better ones. */
enum { MADE_AT_ONCE = STATES_OF_PART * BATCHES_OF_WIDTH };

static struct rfx_pq_node *nodes_of(const struct rfx_front_beam *beam,
                                    const struct rfx_front_state *state) {
    return rfx_pq_slots_at(&beam->trees, state->slot);
}

struct rfx_front_state *rfx_front_beam_state(const struct rfx_front_beam *beam, int bucket,
                                             int state) {
    return &beam->states[(size_t)bucket * (size_t)beam->buckets.width + (size_t)state];
}

/* The k-th state of the batch. */
static const struct rfx_front_state *state_of_batch(const struct rfx_front_beam *beam, int k) {
    int bucket = beam->ended % beam->buckets.n;
    return rfx_front_beam_state(beam, bucket,
                                beam->buckets.at[bucket].heap[beam->first_in_heap - k]);
}

/* Puts a state among those of the bucket with `ended` items that ended, with the forest in `nodes`,
 * unless there are enough better ones. false: no memory. */
static bool insert(struct rfx_front_beam *beam, int ended, const struct rfx_front_made *made,
                   const struct rfx_pq_node *nodes) {
    int bucket = ended % beam->buckets.n;
    struct rfx_front_put put =
        rfx_front_buckets_put(&beam->buckets, bucket, made->hash, made->score);
    if (put.left_out) beam->search->complete = false;
    if (put.state < 0) return true;
    struct rfx_front_state *to = rfx_front_beam_state(beam, bucket, put.state);
    int slot = put.instead ? to->slot : rfx_pq_slots_take(&beam->trees);
    if (slot < 0) return false;
    *to = made->state;
    to->slot = slot;
    size_t side = (size_t)beam->trees.slot_nodes / RFX_FRONT_SIDES;
    struct rfx_pq_node *out = nodes_of(beam, to);
    for (size_t k = 0; k < RFX_FRONT_SIDES; k++)
        memcpy(out + k * side, nodes + k * side, (size_t)to->n_nodes[k] * sizeof *out);
    return true;
}

/* Remembers how the states of the batch were reached. false: no memory. */
static bool add_steps(struct rfx_front_beam *beam) {
    struct rfx_front_search *s = beam->search;
    size_t wanted = (size_t)s->n_steps + (size_t)beam->n_batch;
    struct rfx_front_why *steps =
        rfx_memory_reserve(s->mem, s->steps, &s->steps_capacity, wanted, sizeof *s->steps);
    if (steps == NULL) return false;
    s->steps = steps;
    beam->first_step = s->n_steps;
    for (int k = 0; k < beam->n_batch; k++) {
        const struct rfx_front_state *state = state_of_batch(beam, k);
        s->steps[s->n_steps++] = (struct rfx_front_why){state->previous, state->from, state->group};
    }
    return true;
}

/* Asks memory for the forest of a state that comes soon: there are too many for any cache. */
static void expect(const struct rfx_front_beam *beam, const struct rfx_front_state *state) {
    struct rfx_forest forest =
        rfx_front_forest(state, nodes_of(beam, state), beam->trees.slot_nodes);
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        for (int i = 0; i < forest.n_nodes[side]; i += NODES_OF_LINE)
            __builtin_prefetch(&forest.nodes[side][i]);
}

/* Keeps the best of what was made of a batch. false: no memory. */
static bool keep(struct rfx_front_beam *beam, const struct rfx_front_made_of *made) {
    for (int i = 0; i < made->n_parts; i++) {
        const struct rfx_front_part *part = &made->parts[i];
        for (int k = 0; k < part->n; k++) {
            const struct rfx_pq_node *at = &part->nodes[(size_t)k * (size_t)beam->trees.slot_nodes];
            if (!insert(beam, made->ended + part->list[k].n_ends, &part->list[k], at)) return false;
        }
    }
    return true;
}

/* Makes what follows the states of a part of the batch. */
static void make_part(struct rfx_front_beam *beam, int index, int thread) {
    struct rfx_front_part *part = &beam->made[beam->at].parts[index];
    int first = index * STATES_OF_PART;
    int end = first + STATES_OF_PART < beam->n_batch ? first + STATES_OF_PART : beam->n_batch;
    part->n = 0;
    part->tried = 0;
    part->left_out = rfx_place_must_stop(beam->search->mem, beam->search->request->stop);
    if (part->left_out) beam->done[index] = end - first;
    for (int k = first + beam->done[index]; k < end && part->n < MADE_AT_ONCE; k++) {
        const struct rfx_front_state *state = state_of_batch(beam, k);
        if (k + 1 < end) expect(beam, state_of_batch(beam, k + 1));
        if (!rfx_front_make(&beam->search->makers[thread], state, nodes_of(beam, state),
                            beam->first_step + k, beam->least, part))
            part->has_no_memory = true;
        beam->done[index]++;
    }
}

/* One thread keeps what was made of the batch before, the others make this one. */
static void share(void *user, int64_t index, int thread) {
    struct rfx_front_beam *beam = user;
    struct rfx_front_made_of *before = &beam->made[1 - beam->at];
    if (index > 0)
        make_part(beam, (int)index - 1, thread);
    else if (!keep(beam, before))
        before->failed = true;
}

/* Goes on from states of the batch, from most at once; what follows them is kept with what follows
 * the next ones. Sets *left: states that are left. false: no memory. */
static bool expand(struct rfx_front_beam *beam, int *left) {
    struct rfx_front_search *s = beam->search;
    struct rfx_front_made_of *made = &beam->made[beam->at];
    struct rfx_front_made_of *before = &beam->made[1 - beam->at];
    made->n_parts = (beam->n_batch + STATES_OF_PART - 1) / STATES_OF_PART;
    made->ended = beam->ended;
    int n_kept = 0;
    for (int i = 0; i < before->n_parts; i++) n_kept += before->parts[i].n;
    /* no slot may move while others look at theirs */
    if (!rfx_pq_slots_reserve(&beam->trees, n_kept)) return false;
    for (int k = 0; k < beam->buckets.n; k++)
        beam->least[k] =
            rfx_front_buckets_least(&beam->buckets, (beam->ended + k) % beam->buckets.n);
    rfx_team_for(s->request->team, made->n_parts + 1, share, beam);
    if (before->failed) return false;
    before->n_parts = 0;
    *left = beam->n_batch;
    for (int i = 0; i < made->n_parts; i++) {
        if (made->parts[i].has_no_memory) return false;
        if (made->parts[i].left_out) s->complete = false;
        s->nodes += made->parts[i].tried;
        *left -= beam->done[i];
    }
    beam->at = 1 - beam->at;
    return true;
}

/* Goes on from all states of the batch. false: no memory. */
static bool expand_all(struct rfx_front_beam *beam) {
    int left = beam->n_batch;
    if (!add_steps(beam)) return false;
    for (int i = 0; i * STATES_OF_PART < beam->n_batch; i++) beam->done[i] = 0;
    while (left > 0)
        if (!expand(beam, &left)) return false;
    for (int k = 0; k < beam->n_batch; k++)
        rfx_pq_slots_give(&beam->trees, state_of_batch(beam, k)->slot);
    return true;
}

/* Keeps what is left of the last batch of a bucket, and goes to the next one. false: no memory. */
static bool end_bucket(struct rfx_front_beam *beam) {
    struct rfx_front_made_of *last = &beam->made[1 - beam->at];
    if (!keep(beam, last)) return false;
    last->n_parts = 0;
    rfx_front_buckets_clear(&beam->buckets, beam->ended % beam->buckets.n);
    beam->ended++;
    beam->waiting = 0;
    for (int i = 0; i < beam->buckets.n; i++) beam->waiting += beam->buckets.at[i].n;
    return true;
}

bool rfx_front_beam_pass(struct rfx_front_beam *beam) {
    struct rfx_front_search *s = beam->search;
    int bucket = beam->ended % beam->buckets.n;
    int n = beam->buckets.at[bucket].n;
    if (n > 0) {
        beam->deepest = s->n_steps;
        beam->n_deepest = 0;
    }
    /* the best first, more or less */
    for (beam->first_in_heap = n - 1; beam->first_in_heap >= 0;
         beam->first_in_heap -= beam->n_batch) {
        int left = beam->first_in_heap + 1;
        beam->n_batch = left < beam->batch_states ? left : beam->batch_states;
        if (state_of_batch(beam, 0)->left.boundary == s->times->n) { /* all of the bucket are */
            beam->last = bucket;
            beam->waiting = 0;
            return true;
        }
        if (s->nodes >= s->request->nodes || rfx_place_must_stop(s->mem, s->request->stop)) {
            s->complete = false;
            beam->waiting = 0;
            return true;
        }
        if (!expand_all(beam)) return false;
        beam->n_deepest = s->n_steps - beam->deepest;
    }
    return end_bucket(beam);
}

bool rfx_front_beam_begin(struct rfx_front_beam *beam) {
    struct rfx_front_search *s = beam->search;
    struct rfx_front_made first = {.state = {.previous = -1}};
    int slot_nodes = beam->trees.slot_nodes;
    struct rfx_pq_node *nodes = rfx_memory_calloc(s->mem, (size_t)slot_nodes, sizeof *nodes);
    if (nodes == NULL) return false;
    struct rfx_forest forest = rfx_front_forest(&first.state, nodes, slot_nodes);
    rfx_forest_make(s->problem, s->times->live, s->times->n_live, &forest);
    first.state.n_nodes[0] = first.state.n_nodes[1] = first.state.n_trees = forest.n_trees;
    first.state.sums = rfx_front_judge_all(&s->makers[0].judge, &forest);
    rfx_front_enter(s->times, &first.state, 0);
    bool done = insert(beam, 0, &first, nodes);
    beam->waiting = 1;
    rfx_memory_release(s->mem, nodes);
    return done;
}

static void drop_states(struct rfx_front_beam *beam) {
    for (int b = 0; b < beam->buckets.n; b++) rfx_front_buckets_clear(&beam->buckets, b);
    rfx_pq_slots_give_all(&beam->trees);
    beam->made[0].n_parts = beam->made[1].n_parts = 0;
}

bool rfx_front_beam_take_over(struct rfx_front_beam *beam, const struct rfx_front_beam *from) {
    drop_states(beam);
    beam->ended = from->ended;
    beam->waiting = from->waiting;
    beam->last = -1;
    for (int k = 0; k < from->buckets.n; k++) {
        int bucket = (from->ended + k) % from->buckets.n;
        const struct rfx_front_bucket *b = &from->buckets.at[bucket];
        for (int i = 0; i < b->n; i++) {
            struct rfx_front_made made = {.state = *rfx_front_beam_state(from, bucket, i),
                                          .hash = b->hashes[i],
                                          .score = b->scores[i]};
            if (!insert(beam, from->ended + k, &made, nodes_of(from, &made.state))) return false;
        }
    }
    return true;
}

enum rfx_status rfx_front_beam_init(struct rfx_front_beam *beam, struct rfx_front_search *search,
                                    int width, struct rfx_error *err) {
    struct rfx_memory *mem = search->mem;
    const struct rfx_front_times *times = search->times;
    int n = 1;
    *beam =
        (struct rfx_front_beam){.search = search,
                                .trees = {.mem = mem, .slot_nodes = rfx_front_slot_nodes(times)},
                                .batch_states = (width + BATCHES_OF_WIDTH - 1) / BATCHES_OF_WIDTH,
                                .last = -1};
    for (int k = 0; k < times->n; k++)
        if (times->at[k].n_ends >= n) n = times->at[k].n_ends + 1;
    size_t states = (size_t)n * (size_t)width;
    size_t parts = (size_t)(beam->batch_states + STATES_OF_PART - 1) / STATES_OF_PART;
    beam->states = rfx_memory_calloc(mem, states, sizeof *beam->states);
    beam->done = rfx_memory_calloc(mem, parts, sizeof *beam->done);
    for (int i = 0; i < 2; i++) {
        struct rfx_front_made_of *made = &beam->made[i];
        made->parts = rfx_memory_calloc(mem, parts, sizeof *made->parts);
        if (beam->states == NULL || beam->done == NULL || made->parts == NULL)
            return rfx_memory_fail(mem, "packer", states * sizeof *beam->states, err);
        for (; made->room < (int)parts; made->room++) made->parts[made->room].mem = mem;
    }
    return rfx_front_buckets_init(&beam->buckets, mem, n, width, err);
}

void rfx_front_beam_release(struct rfx_front_beam *beam) {
    if (beam->search == NULL) return; /* never begun */
    rfx_pq_slots_release(&beam->trees);
    rfx_front_buckets_release(&beam->buckets);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < beam->made[i].room; k++)
            rfx_front_part_release(&beam->made[i].parts[k]);
        rfx_memory_release(beam->search->mem, beam->made[i].parts);
    }
    rfx_memory_release(beam->search->mem, beam->states);
    rfx_memory_release(beam->search->mem, beam->done);
}
