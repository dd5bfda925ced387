/* Hashes and numbers of orders; see fronts_judge.h. */
#include "tiler/fronts/fronts_judge.h"

#include <math.h>
#include <string.h>

#include "tiler/packer/packer_hash.h"

/* Of polynomials of hashes of children. */
static const uint64_t base = 0x9e3779b97f4a7c15U;

#define UNIT 4294967296.0 /* of logarithms of orders */

/* A tree's hash in its order and in the reverse one, which differ only where it is linked, and its
 * orders, but for the reversal of a linked one. */
struct facts {
    uint64_t forward, backward;
    int64_t orders;
};

/* Of an item from here on, on a side. */
static uint64_t hash_item(const struct rfx_place_problem *problem, int side, int item) {
    int end = side == RFX_FRONT_LATER ? problem->last[item] : problem->first[item];
    return rfx_packer_mix(rfx_packer_mix(problem->items[item].size ^
                                         rfx_packer_mix(2 * (uint64_t)end + (uint64_t)side)));
}

enum rfx_status rfx_front_judge_init(struct rfx_front_judge *j,
                                     const struct rfx_place_problem *problem,
                                     const struct rfx_front_times *times, struct rfx_error *err) {
    size_t children = 2 * (size_t)times->max_live + 3, n = (size_t)problem->n;
    struct rfx_memory *mem = problem->mem;
    double log_orders = 0;
    *j = (struct rfx_front_judge){.mem = mem, .times = times};
    j->hash = rfx_memory_calloc(mem, children, sizeof *j->hash);
    j->log_orders = rfx_memory_calloc(mem, children, sizeof *j->log_orders);
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        j->items[side] = rfx_memory_calloc(mem, n, sizeof *j->items[side]);
    if (j->hash == NULL || j->log_orders == NULL || j->items[0] == NULL || j->items[1] == NULL)
        return rfx_memory_fail(mem, "packer", children * sizeof *j->hash, err);
    for (size_t k = 2; k < children; k++) {
        log_orders += log((double)k);
        j->log_orders[k] = (int64_t)llround(log_orders * UNIT);
    }
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        for (int i = 0; i < problem->n; i++) j->items[side][i] = hash_item(problem, side, i);
    return RFX_OK;
}

void rfx_front_judge_release(struct rfx_front_judge *j) {
    if (j->mem == NULL) return; /* never begun */
    rfx_memory_release(j->mem, j->hash);
    rfx_memory_release(j->mem, j->log_orders);
    for (int side = 0; side < RFX_FRONT_SIDES; side++) rfx_memory_release(j->mem, j->items[side]);
}

/* Adds node i, whose children are hashed: all of it in `forward` and `backward`. */
static void add_node(const struct rfx_front_judge *j, const struct rfx_pq_node *tree, int i,
                     struct facts *f) {
    int end = i + tree[i].span, n = 0;
    uint64_t sum = 0;
    if (tree[i].what == RFX_PQ_P) {
        for (int k = i + 1; k < end; k += tree[k].span, n++) sum += j->hash[k];
        f->forward = f->backward = rfx_packer_mix(sum + 1) / 2;
        f->orders += j->log_orders[n];
        return;
    }
    uint64_t power = 1;
    f->forward = f->backward = 0;
    for (int k = i + 1; k < end; k += tree[k].span) {
        f->forward = f->forward * base + j->hash[k];
        f->backward += j->hash[k] * power;
        power *= base;
    }
    f->forward = rfx_packer_mix(f->forward);
    f->backward = rfx_packer_mix(f->backward);
    f->orders += j->log_orders[2];
}

/* Looks at a tree of a side. */
static struct facts look_at(struct rfx_front_judge *j, int side, const struct rfx_pq_node *tree,
                            bool linked) {
    struct facts f = {0, 0, 0};
    const uint64_t *items = j->items[side];
    if (tree->what >= 0) {
        f.forward = f.backward = items[tree->what];
        return f;
    }
    for (int i = tree->span - 1; i > 0; i--) { /* children come before their parent */
        if (tree[i].what >= 0) {
            j->hash[i] = items[tree[i].what];
            continue;
        }
        add_node(j, tree, i, &f);
        j->hash[i] = rfx_packer_mix(f.forward + f.backward);
    }
    add_node(j, tree, 0, &f);
    if (linked)
        f.orders -= j->log_orders[2]; /* its root is a Q node */
    else
        f.forward = f.backward = f.forward + f.backward;
    return f;
}

/* The roots of a tree. */
struct roots {
    const struct rfx_pq_node *of[RFX_FRONT_SIDES];
    bool linked;
};

static struct roots roots_of(const struct rfx_forest *forest, const struct rfx_forest_tree *tree) {
    struct roots r = {.linked = rfx_forest_has(&forest->linked, tree->number)};
    for (int side = 0; side < RFX_FRONT_SIDES; side++)
        r.of[side] = &forest->nodes[side][tree->at[side]];
    return r;
}

static struct rfx_front_sums sums_of(struct rfx_front_judge *j, const struct roots *r) {
    struct facts a = look_at(j, 0, r->of[0], r->linked), b = look_at(j, 1, r->of[1], r->linked);
    struct rfx_front_sums sums = {rfx_packer_mix(rfx_packer_mix(a.forward) ^ b.forward) +
                                      rfx_packer_mix(rfx_packer_mix(a.backward) ^ b.backward),
                                  a.orders + b.orders + (r->linked ? j->log_orders[2] : 0)};
    return sums;
}

struct rfx_front_sums rfx_front_judge_all(struct rfx_front_judge *j,
                                          const struct rfx_forest *forest) {
    struct roots r = {.of = {forest->nodes[0], forest->nodes[1]}};
    struct rfx_front_sums all = {0, 0};
    for (int t = 0; t < forest->n_trees; t++) {
        r.linked = rfx_forest_has(&forest->linked, t);
        struct rfx_front_sums tree = sums_of(j, &r);
        all.hash += tree.hash;
        all.orders += tree.orders;
        for (int side = 0; side < RFX_FRONT_SIDES; side++) r.of[side] += r.of[side]->span;
    }
    return all;
}

void rfx_front_judge_enter(struct rfx_front_judge *j, const struct rfx_front_sums *all) {
    j->all = *all;
    memset(j->is_known, 0, sizeof j->is_known);
}

/* The trees that the last change touched, in all: most trees of most forests never are. */
static struct rfx_front_sums sums_of_touched(struct rfx_front_judge *j,
                                             const struct rfx_forests *forests,
                                             const struct rfx_forest *from) {
    struct rfx_front_sums sums = {0, 0};
    for (int i = 0; i < forests->n_touched; i++) {
        int t = forests->touched[i];
        struct rfx_forest_tree tree = {t, {forests->at[0][t], forests->at[1][t]}};
        struct roots r = roots_of(from, &tree);
        if (!j->is_known[t]) j->trees[t] = sums_of(j, &r);
        j->is_known[t] = true;
        sums.hash += j->trees[t].hash;
        sums.orders += j->trees[t].orders;
    }
    return sums;
}

struct rfx_front_sums rfx_front_judge_change(struct rfx_front_judge *j,
                                             const struct rfx_forests *forests,
                                             const struct rfx_forest *from,
                                             const struct rfx_forest *forest,
                                             const struct rfx_forest_tree *made) {
    struct rfx_front_sums gone = sums_of_touched(j, forests, from);
    struct roots r = roots_of(forest, made);
    struct rfx_front_sums sums = sums_of(j, &r);
    sums.hash += j->all.hash - gone.hash;
    sums.orders += j->all.orders - gone.orders;
    return sums;
}

double rfx_front_orders(const struct rfx_front_judge *j, const struct rfx_front_sums *sums,
                        int n_trees) {
    return (double)(j->log_orders[n_trees] + sums->orders) / UNIT;
}

uint64_t rfx_front_hash(const struct rfx_front_judge *j, const struct rfx_front_sums *sums,
                        const struct rfx_front_left *left) {
    uint64_t hash = (uint64_t)left->boundary + sums->hash;
    if (left->boundary == j->times->n) return hash;
    const struct rfx_front_boundary *b = &j->times->at[left->boundary];
    for (uint64_t rest = left->begins; rest != 0; rest &= rest - 1) {
        int item = j->times->by_begin[b->begins + __builtin_ctzll(rest)];
        hash += rfx_packer_mix(j->items[b->side][item]);
    }
    return hash;
}
