/* States, children and their worth; see packer_skyline.h. */
#include "tiler/packer/packer_skyline.h"

#include <assert.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/packer/packer_hash.h"

/* Capacities in units beyond this are refused, so that sums of two fit an int32_t. MAX_RAISES: how
 * often the place of a section is given up in a row. */
enum { MAX_CAPACITY = 1 << 30, MAX_RAISES = 6 };

struct item {
    int32_t size, align;
    int first, last; /* sections */
    int twin;        /* the previous equal item, or -1 */
    uint64_t hash;
};

/* How the item placed last came there. */
struct step {
    int previous, item; /* -1: nothing was placed */
    int32_t offset;
};

struct state {
    int step;
    float worth; /* the lower, the better */
    uint64_t hash;
};

/* Some states of as many items: their skylines (n_sections each) and what they have placed. */
struct level {
    struct state *states;
    int32_t *bases;
    bool *placed;
    int n;
};

struct skyline {
    struct rfx_memory *mem;
    const struct rfx_skyline_request *request;
    int n, n_sections;
    int32_t capacity;
    struct item *items;
    int32_t *spare;  /* per section: what the capacity leaves at the beginning */
    float *weight;   /* per section: of a unit wasted */
    int32_t *floors; /* per item */
    int32_t *base, *load, *slack, *bottom; /* per section: of the state at hand */
    int32_t *raised;                       /* per section: of the state being expanded */
    int *left, *sorted;                    /* items not placed, by falling floor */
    int n_left;
    struct level now, next;
    struct step *steps;
    int n_steps;
    size_t steps_capacity;
    uint64_t nodes;
};

/* Of a capacity, added to what a section can spare: full sections must not count for everything. */
static const float least_spare = 0.01F;

/* How much chance makes a state seem worse at most, and how large a step may seem small against
 * what can be spared below it. */
static const float chance_share = 0.2F, spare_of_step = 0.5F;

static int32_t item_floor(const struct skyline *k, const struct item *item) {
    int32_t floor = 0;
    for (int s = item->first; s < item->last; s++)
        if (k->base[s] > floor) floor = k->base[s];
    return item->align == 1 ? floor : (floor + item->align - 1) / item->align * item->align;
}

/* Sets the floors of the items listed and puts the list in order of falling floor. */
static void sort_by_floor(struct skyline *k, int *list, int n) {
    for (int a = 0; a < n; a++) {
        int i = list[a];
        int32_t floor = item_floor(k, &k->items[i]);
        int at = a;
        for (; at > 0 && k->floors[list[at - 1]] < floor; at--) list[at] = list[at - 1];
        list[at] = i;
        k->floors[i] = floor;
    }
}

/* What each section can still spare, and where its lowest item starts; for a sorted list. false:
 * less than nothing. */
static bool find_slack(struct skyline *k, const int *list, int n) {
    int32_t least = 0;
    for (int s = 0; s < k->n_sections; s++) {
        k->load[s] = 0;
        k->slack[s] = k->spare[s];
        k->bottom[s] = k->capacity;
    }
    for (int a = 0; a < n; a++) {
        const struct item *item = &k->items[list[a]];
        int32_t above = k->capacity - k->floors[list[a]];
        int32_t low = k->capacity;
        for (int s = item->first; s < item->last; s++) {
            int32_t slack = above - (k->load[s] += item->size);
            k->slack[s] = slack < k->slack[s] ? slack : k->slack[s];
            low = slack < low ? slack : low;
            k->bottom[s] = k->capacity - above;
        }
        if (low < least) return false;
    }
    return true;
}

/* How bad the state at hand is. */
static float worth_of(const struct skyline *k) {
    float waste = 0;
    float steps = 0;
    for (int s = 0; s < k->n_sections; s++) {
        waste += k->weight[s] * (float)(k->spare[s] - k->slack[s]);
        if (s == 0 || k->bottom[s] == k->bottom[s - 1]) continue;
        int low = k->bottom[s] < k->bottom[s - 1] ? s : s - 1;
        float step = (float)(k->bottom[2 * s - 1 - low] - k->bottom[low]);
        float spare = k->request->rough ? spare_of_step * (float)k->slack[low] : 0;
        steps += step / (step + spare);
    }
    return waste + steps;
}

static uint64_t hash_of(const struct skyline *k, const int *list, int n) {
    uint64_t hash = 0;
    for (int a = 0; a < n; a++)
        hash += rfx_packer_mix(k->items[list[a]].hash ^ (uint64_t)k->floors[list[a]]);
    return hash;
}

/* Where a new state goes: -1: it is known or too bad. */
static int find_place(struct level *level, const struct state *state, int width) {
    int worst = 0;
    for (int i = 0; i < level->n; i++) {
        if (level->states[i].hash == state->hash) return -1;
        if (level->states[i].worth > level->states[worst].worth) worst = i;
    }
    if (level->n < width) return level->n++;
    return state->worth < level->states[worst].worth ? worst : -1;
}

/* false: no memory. */
static bool add_step(struct skyline *k, struct step step) {
    struct step *steps = rfx_memory_reserve(k->mem, k->steps, &k->steps_capacity,
                                            (size_t)k->n_steps + 1, sizeof *k->steps);
    if (steps == NULL) return false;
    k->steps = steps;
    k->steps[k->n_steps++] = step;
    return true;
}

/* Puts item x on the raised skyline of a state, and the outcome among the next states. false: no
 * memory. */
static bool try_item(struct skyline *k, const struct state *state, const bool *placed, int x,
                     int32_t offset) {
    const struct item *item = &k->items[x];
    int n = 0;
    if (rfx_place_must_stop(k->mem, k->request->stop)) return true; /* and search stops */
    memcpy(k->base, k->raised, (size_t)k->n_sections * sizeof *k->base);
    for (int s = item->first; s < item->last; s++) k->base[s] = offset + item->size;
    for (int a = 0; a < k->n_left; a++)
        if (k->left[a] != x) k->sorted[n++] = k->left[a];
    sort_by_floor(k, k->sorted, n);
    k->nodes++;
    if (!find_slack(k, k->sorted, n)) return true;
    struct state next = {.worth = worth_of(k), .hash = hash_of(k, k->sorted, n)};
    if (k->request->seed != 0) {
        uint64_t chance = rfx_packer_mix(next.hash ^ k->request->seed) >> 40;
        next.worth *= 1 + chance_share * (float)chance * 0x1p-24F;
    }
    int at = find_place(&k->next, &next, k->request->width);
    if (at < 0) return true;
    struct step step = {state->step, x, offset};
    next.step = k->n_steps;
    if (!add_step(k, step)) return false;
    k->next.states[at] = next;
    memcpy(&k->next.bases[(size_t)at * (size_t)k->n_sections], k->base,
           (size_t)k->n_sections * sizeof *k->base);
    bool *to = &k->next.placed[(size_t)at * (size_t)k->n];
    memcpy(to, placed, (size_t)k->n * sizeof *to);
    to[x] = true;
    return true;
}

/* A section of the lowest place, with the fewest items that rest there; the list is sorted. */
static int choose_section(struct skyline *k, int32_t level) {
    int best = -1;
    for (int s = 0; s < k->n_sections; s++) k->load[s] = 0;
    for (int a = k->n_left - 1; a >= 0 && k->floors[k->left[a]] == level; a--) {
        const struct item *item = &k->items[k->left[a]];
        for (int s = item->first; s < item->last; s++) k->load[s]++;
    }
    for (int s = 0; s < k->n_sections; s++) {
        if (k->load[s] == 0) continue;
        if (best < 0 || k->load[s] < k->load[best] ||
            (k->load[s] == k->load[best] && k->slack[s] < k->slack[best]))
            best = s;
    }
    assert(best >= 0);
    return best;
}

static bool is_in(const struct item *item, int section) {
    return section >= item->first && section < item->last;
}

/* The next place of a section when nothing starts at its level: where an item's floor is, or would
 * be on an item that is not in the section. */
static int32_t next_level(const struct skyline *k, int section, int32_t level) {
    int32_t next = MAX_CAPACITY;
    for (int a = 0; a < k->n_left; a++) {
        int i = k->left[a];
        const struct item *item = &k->items[i];
        if (!is_in(item, section)) continue;
        if (k->floors[i] > level) {
            if (k->floors[i] < next) next = k->floors[i];
            continue;
        }
        for (int b = 0; b < k->n_left; b++) {
            const struct item *under = &k->items[k->left[b]];
            if (is_in(under, section)) continue;
            if (under->first >= item->last || item->first >= under->last) continue;
            int32_t at = k->floors[k->left[b]] + under->size;
            if (at < next) next = at;
        }
    }
    return next;
}

/* All children of a state. false: no memory. */
static bool expand(struct skyline *k, int index) {
    const struct state *state = &k->now.states[index];
    const bool *placed = &k->now.placed[(size_t)index * (size_t)k->n];
    size_t sections = (size_t)k->n_sections;
    memcpy(k->raised, &k->now.bases[(size_t)index * sections], sections * sizeof *k->raised);
    for (int raises = 0; raises <= MAX_RAISES; raises++) {
        memcpy(k->base, k->raised, sections * sizeof *k->base);
        k->n_left = 0;
        for (int i = 0; i < k->n; i++)
            if (!placed[i]) k->left[k->n_left++] = i;
        sort_by_floor(k, k->left, k->n_left);
        if (!find_slack(k, k->left, k->n_left)) return true;
        int32_t level = k->floors[k->left[k->n_left - 1]];
        int section = choose_section(k, level);
        int32_t rise = next_level(k, section, level);
        int n_resting = 0; /* of the list's end: try_item changes floors */
        while (n_resting < k->n_left && k->floors[k->left[k->n_left - 1 - n_resting]] == level)
            n_resting++;
        for (int a = k->n_left - n_resting; a < k->n_left; a++) {
            int i = k->left[a];
            const struct item *item = &k->items[i];
            if (!is_in(item, section) || (item->twin >= 0 && !placed[item->twin])) continue;
            if (!try_item(k, state, placed, i, level)) return false;
        }
        if (rise >= k->capacity) return true;
        k->raised[section] = rise;
    }
    return true;
}

static void set_items(struct skyline *k, const struct rfx_place_problem *problem) {
    int32_t unit = (int32_t)k->request->unit_bytes;
    for (int i = 0; i < k->n; i++) {
        const struct rfx_place_item *from = &problem->items[i];
        struct item *item = &k->items[i];
        item->size = (int32_t)(from->size / (size_t)unit);
        item->align =
            from->alignment % (size_t)unit == 0 ? (int32_t)(from->alignment / (size_t)unit) : 1;
        item->first = problem->first[i];
        item->last = problem->last[i];
        item->hash =
            rfx_packer_mix((uint64_t)item->size ^
                           rfx_packer_mix(((uint64_t)item->first << 32) ^ (uint64_t)item->last));
        item->twin = -1;
        for (int j = i - 1; j >= 0 && item->twin < 0; j--)
            if (k->items[j].hash == item->hash) item->twin = j;
    }
    for (int s = 0; s < k->n_sections; s++) {
        k->spare[s] = k->capacity - (int32_t)(problem->breadth[s] / (size_t)unit);
        k->weight[s] = 1.0F / ((float)k->spare[s] + least_spare * (float)k->capacity);
    }
}

static bool allocate_level(struct skyline *k, struct level *level) {
    size_t width = (size_t)k->request->width;
    level->states = rfx_memory_calloc(k->mem, width, sizeof *level->states);
    level->bases = rfx_memory_calloc(k->mem, width * (size_t)k->n_sections, sizeof *level->bases);
    level->placed = rfx_memory_calloc(k->mem, width * (size_t)k->n, sizeof *level->placed);
    return level->states != NULL && level->bases != NULL && level->placed != NULL;
}

static bool allocate(struct skyline *k) {
    size_t n = (size_t)k->n;
    size_t sections = (size_t)k->n_sections;
    k->steps_capacity = n + 1;
    k->items = rfx_memory_calloc(k->mem, n, sizeof *k->items);
    k->floors = rfx_memory_calloc(k->mem, n, sizeof *k->floors);
    k->left = rfx_memory_calloc(k->mem, n, sizeof *k->left);
    k->sorted = rfx_memory_calloc(k->mem, n, sizeof *k->sorted);
    k->steps = rfx_memory_calloc(k->mem, k->steps_capacity, sizeof *k->steps);
    k->weight = rfx_memory_calloc(k->mem, sections, sizeof *k->weight);
    k->spare = rfx_memory_calloc(k->mem, 6 * sections, sizeof *k->spare);
    if (k->items == NULL || k->floors == NULL || k->left == NULL || k->sorted == NULL ||
        k->steps == NULL || k->weight == NULL || k->spare == NULL)
        return false;
    k->base = k->spare + sections;
    k->load = k->base + sections;
    k->slack = k->load + sections;
    k->bottom = k->slack + sections;
    k->raised = k->bottom + sections;
    return allocate_level(k, &k->now) && allocate_level(k, &k->next);
}

static void release(struct skyline *k) {
    void *const blocks[] = {k->items,      k->floors,     k->left,        k->sorted,
                            k->steps,      k->weight,     k->spare,       k->now.states,
                            k->now.bases,  k->now.placed, k->next.states, k->next.bases,
                            k->next.placed};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        rfx_memory_release(k->mem, blocks[i]);
}

/* Level by level; *last: the step of a whole packing, or -1. false: no memory. */
static bool search(struct skyline *k, int *last) {
    *last = -1;
    k->now.n = 1;
    k->now.states[0].step = -1;
    for (int placed = 0; placed < k->n; placed++) {
        struct level swap = k->now;
        k->next.n = 0;
        for (int i = 0; i < k->now.n; i++) {
            if (rfx_place_must_stop(k->mem, k->request->stop)) return true;
            if (!expand(k, i)) return false;
        }
        k->now = k->next;
        k->next = swap;
        if (k->now.n == 0) return true;
    }
    *last = k->now.states[0].step;
    return true;
}

enum rfx_status rfx_skyline_place(const struct rfx_place_problem *problem,
                                  const struct rfx_skyline_request *request, size_t *offsets,
                                  bool *found, uint64_t *nodes, struct rfx_error *err) {
    struct skyline k = {.mem = problem->mem,
                        .request = request,
                        .n = problem->n,
                        .n_sections = problem->n_sections};
    enum rfx_status status = RFX_OK;
    int last = -1;
    *found = false;
    if (problem->n == 0 || request->capacity_bytes / request->unit_bytes > MAX_CAPACITY)
        return RFX_OK;
    k.capacity = (int32_t)(request->capacity_bytes / request->unit_bytes);
    bool enough = allocate(&k);
    if (enough) {
        set_items(&k, problem);
        enough = search(&k, &last);
    }
    if (!enough)
        status = rfx_memory_fail(k.mem, "packer", (size_t)k.n * (size_t)request->width, err);
    if (enough && last >= 0) {
        for (; last >= 0; last = k.steps[last].previous)
            offsets[k.steps[last].item] = (size_t)k.steps[last].offset * request->unit_bytes;
        *found = true;
    }
    *nodes += k.nodes;
    release(&k);
    return status;
}
