/* The list of candidates and its suppression.
 *
 * Suppression goes through the candidates by falling score. For each of them it asks a k-d tree
 * whether a kept box overlaps it by more than the threshold. The tree is built once over all
 * candidates, split at the median of one corner at each node. A node holds bounds of the *kept*
 * candidates below it, so a node without kept boxes ends the search at once.
 *
 * The tree is implicit: node 1 is the root, nodes 2 k and 2 k + 1 are the children of node k, and
 * node k of level l covers the slots [k n >> l, (k + 1) n >> l). A slot holds the position of a
 * candidate in the sorted list.
 *
 * Why skipping a node is exact: float32 operations are monotone. The largest possible intersection
 * and the smallest possible union of a node are computed by the same operations as those of a pair,
 * so their quotient is no smaller than the overlap of any pair in it, rounding included. */
#include "rfexec/answers/boxes.h"

#include <assert.h>
#include <math.h>

#include "layers/core/checked.h"
#include "layers/core/heap_sort.h"
#include "layers/core/real_math.h"

enum { LEAF = 16 /* slots of a leaf at most */ };

/* Bounds of the kept boxes below a node. Without kept boxes: EMPTY. While scores decay: bounds of
 * all boxes below it, and the best one that is not chosen yet. */
struct node {
    float left, top, right, bottom;
    union {
        struct {
            float least_area, most_area;
        };
        uint32_t best; /* position; NONE: all are chosen */
    };
};
#define NONE UINT32_MAX

static const struct node EMPTY = {INFINITY, INFINITY, -INFINITY, -INFINITY, {{INFINITY, 0}}};

struct rfx_boxes {
    struct rfx_memory *mem;
    int64_t most, count;
    struct rfx_box *list;
    bool *kept;      /* by position in the list */
    uint32_t *order; /* slot of the tree -> position */
    uint32_t *slots; /* position -> slot */
    struct node *nodes;
};

struct tree {
    int64_t n; /* slots */
    int depth; /* level of the leaves */
};

static struct tree tree_of(int64_t n) {
    struct tree tree = {n, 0};
    while (rfx_ceil_div(n, (int64_t)1 << tree.depth) > LEAF) tree.depth++;
    return tree;
}

static int64_t n_nodes(struct tree tree) {
    return (int64_t)2 << tree.depth;
}

/* First slot of node k of a level; k = 2^level gives the end of the last one. */
static int64_t first_slot(struct tree tree, int level, int64_t k) {
    return k * tree.n >> level;
}

static int64_t leaf_of_slot(struct tree tree, int64_t slot) {
    int64_t leaves = (int64_t)1 << tree.depth;
    return leaves + ((slot + 1) * leaves - 1) / tree.n;
}

/* Sizes of the five arrays; false: they do not fit size_t. */
static bool array_bytes(int64_t most, size_t bytes[5]) {
    if (most < 0 || most > RFX_BOXES_MOST) return false;
    size_t n = (size_t)most;
    return rfx_checked_mul_size(n, sizeof(struct rfx_box), &bytes[0]) &&
           rfx_checked_mul_size(n, sizeof(bool), &bytes[1]) &&
           rfx_checked_mul_size(n, sizeof(uint32_t), &bytes[2]) &&
           rfx_checked_mul_size(n, sizeof(uint32_t), &bytes[3]) &&
           rfx_checked_mul_size((size_t)n_nodes(tree_of(most)), sizeof(struct node), &bytes[4]);
}

size_t rfx_boxes_bytes(int64_t most) {
    size_t bytes[5], sum = sizeof(struct rfx_boxes);
    if (!array_bytes(most, bytes)) return SIZE_MAX;
    for (int i = 0; i < 5; i++)
        if (!rfx_checked_add_size(sum, bytes[i], &sum)) return SIZE_MAX;
    return sum;
}

enum rfx_status rfx_boxes_refuse_most(int64_t most, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "boxes: a list of %lld candidates is not possible: 0 to %lld are",
                    (long long)most, (long long)RFX_BOXES_MOST);
}

enum rfx_status rfx_boxes_refuse_more(int64_t most, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "boxes: there are more than %lld candidates, which is the largest number to "
                    "hold: raise that number or the score threshold",
                    (long long)most);
}

enum rfx_status rfx_boxes_create(struct rfx_memory *mem, int64_t most, struct rfx_boxes **out,
                                 struct rfx_error *err) {
    size_t bytes[5], all = rfx_boxes_bytes(most);
    if (!array_bytes(most, bytes) || all == SIZE_MAX) return rfx_boxes_refuse_most(most, err);
    struct rfx_boxes *boxes = rfx_memory_calloc(mem, 1, sizeof *boxes);
    if (boxes == NULL) return rfx_memory_fail(mem, "boxes", all, err);
    boxes->mem = mem;
    boxes->most = most;
    boxes->list = rfx_memory_alloc(mem, bytes[0]);
    boxes->kept = rfx_memory_alloc(mem, bytes[1]);
    boxes->order = rfx_memory_alloc(mem, bytes[2]);
    boxes->slots = rfx_memory_alloc(mem, bytes[3]);
    boxes->nodes = rfx_memory_alloc(mem, bytes[4]);
    if (boxes->list == NULL || boxes->kept == NULL || boxes->order == NULL ||
        boxes->slots == NULL || boxes->nodes == NULL) {
        rfx_boxes_free(boxes);
        return rfx_memory_fail(mem, "boxes", all, err);
    }
    *out = boxes;
    return RFX_OK;
}

void rfx_boxes_free(struct rfx_boxes *boxes) {
    if (boxes == NULL) return;
    rfx_memory_release(boxes->mem, boxes->nodes);
    rfx_memory_release(boxes->mem, boxes->slots);
    rfx_memory_release(boxes->mem, boxes->order);
    rfx_memory_release(boxes->mem, boxes->kept);
    rfx_memory_release(boxes->mem, boxes->list);
    rfx_memory_release(boxes->mem, boxes);
}

enum rfx_status rfx_boxes_add(struct rfx_boxes *boxes, const struct rfx_box *box,
                              struct rfx_error *err) {
    if (boxes->count == boxes->most) return rfx_boxes_refuse_more(boxes->most, err);
    boxes->list[boxes->count++] = *box;
    return RFX_OK;
}

const struct rfx_box *rfx_boxes_list(const struct rfx_boxes *boxes, int64_t *count) {
    *count = boxes->count;
    return boxes->list;
}

/* ---- sorting ---- */

static bool comes_before(const struct rfx_box *a, const struct rfx_box *b, bool labels_first) {
    if (labels_first && a->label != b->label) return a->label < b->label;
    bool a_is_nan = isnan(a->score), b_is_nan = isnan(b->score);
    if (a_is_nan != b_is_nan) return a_is_nan;
    if (!a_is_nan && a->score != b->score) return a->score > b->score;
    if (a->index != b->index) return a->index < b->index;
    return a->label < b->label;
}

static bool comes_first(const void *labels_first, const void *a, const void *b) {
    return comes_before(a, b, *(const bool *)labels_first);
}

static void sort(struct rfx_box *list, int64_t n, bool labels_first) {
    rfx_heap_sort(list, n, sizeof *list, comes_first, &labels_first);
}

void rfx_boxes_sort(struct rfx_boxes *boxes) {
    sort(boxes->list, boxes->count, false);
}

/* ---- overlap ---- */

static float smaller(float a, float b) {
    return b < a ? b : a;
}

static float larger(float a, float b) {
    return a < b ? b : a;
}

static float area_of(const struct rfx_box *box) {
    return (box->corner[2] - box->corner[0]) * (box->corner[3] - box->corner[1]);
}

/* Whether the box can overlap another one by more than 0. For all others, torchvision's formula
 * gives NaN or a number of 0 or less, whatever the second box is. Both corners exchanged give an
 * area above 0; their intersection with any box is 0. */
static bool has_area(const struct rfx_box *box) {
    float area = area_of(box);
    return area > 0 && area < INFINITY;
}

/* Intersection over union of two boxes with area. */
static float overlap(const struct rfx_box *a, float a_area, const struct rfx_box *b) {
    float w = smaller(a->corner[2], b->corner[2]) - larger(a->corner[0], b->corner[0]);
    float h = smaller(a->corner[3], b->corner[3]) - larger(a->corner[1], b->corner[1]);
    float inter = larger(0, w) * larger(0, h);
    return inter / (a_area + area_of(b) - inter);
}

/* Whether a kept box below the node may overlap `box` by more than the threshold. */
static bool may_meet(const struct node *node, const struct rfx_box *box, float area,
                     double threshold) {
    float w = smaller(box->corner[2], node->right) - larger(box->corner[0], node->left);
    float h = smaller(box->corner[3], node->bottom) - larger(box->corner[1], node->top);
    if (!(w > 0 && h > 0)) return false;
    float inter = smaller(w * h, smaller(area, node->most_area));
    float both = area + node->least_area - inter;
    return !(both > 0) || (double)(inter / both) > threshold;
}

/* ---- tree ---- */

/* Returns the corner in which the candidates of the slots [lo, hi) differ most. */
static int widest_corner(const struct rfx_boxes *boxes, int64_t lo, int64_t hi) {
    float least[4], most[4];
    for (int c = 0; c < 4; c++) least[c] = most[c] = boxes->list[boxes->order[lo]].corner[c];
    for (int64_t s = lo + 1; s < hi; s++)
        for (int c = 0; c < 4; c++) {
            float value = boxes->list[boxes->order[s]].corner[c];
            least[c] = smaller(least[c], value);
            most[c] = larger(most[c], value);
        }
    int widest = 0;
    for (int c = 1; c < 4; c++)
        if (most[c] - least[c] > most[widest] - least[widest]) widest = c;
    return widest;
}

/* Reorders the slots [lo, hi) so that no corner `c` before slot `mid` is larger than one behind it
 * (Hoare's selection). The pivot is drawn, so that no order of candidates is a slow one. */
static void split(struct rfx_boxes *boxes, int c, int64_t lo, int64_t mid, int64_t hi) {
    const struct rfx_box *list = boxes->list;
    uint32_t *order = boxes->order;
    uint64_t drawn = 1;
    while (hi - lo > 1) {
        drawn = drawn * 6364136223846793005u + 1442695040888963407u;
        float pivot = list[order[lo + (int64_t)(drawn >> 33) % (hi - lo)]].corner[c];
        int64_t i = lo, j = hi - 1;
        while (i <= j) {
            while (list[order[i]].corner[c] < pivot) i++;
            while (list[order[j]].corner[c] > pivot) j--;
            if (i > j) break;
            uint32_t moved = order[i];
            order[i++] = order[j];
            order[j--] = moved;
        }
        if (mid <= j)
            hi = j + 1;
        else if (mid >= i)
            lo = i;
        else
            return; /* all between j and i equal the pivot */
    }
}

/* Builds the tree over the positions in order[0, n), with no box kept. */
static struct tree build(struct rfx_boxes *boxes, int64_t n) {
    struct tree tree = tree_of(n);
    for (int level = 0; level < tree.depth; level++)
        for (int64_t k = 0; k < (int64_t)1 << level; k++) {
            int64_t lo = first_slot(tree, level, k), hi = first_slot(tree, level, k + 1);
            split(boxes, widest_corner(boxes, lo, hi), lo, first_slot(tree, level + 1, 2 * k + 1),
                  hi);
        }
    for (int64_t s = 0; s < n; s++) boxes->slots[boxes->order[s]] = (uint32_t)s;
    for (int64_t k = 0; k < n_nodes(tree); k++) boxes->nodes[k] = EMPTY;
    return tree;
}

/* Marks the box at a position as kept, in the list and in all nodes above it. */
static void keep(struct rfx_boxes *boxes, struct tree tree, int64_t position) {
    const struct rfx_box *box = &boxes->list[position];
    float area = area_of(box);
    boxes->kept[position] = true;
    for (int64_t k = leaf_of_slot(tree, boxes->slots[position]); k > 0; k >>= 1) {
        struct node *node = &boxes->nodes[k];
        node->left = smaller(node->left, box->corner[0]);
        node->top = smaller(node->top, box->corner[1]);
        node->right = larger(node->right, box->corner[2]);
        node->bottom = larger(node->bottom, box->corner[3]);
        node->least_area = smaller(node->least_area, area);
        node->most_area = larger(node->most_area, area);
    }
}

static bool leaf_meets(const struct rfx_boxes *boxes, struct tree tree, int64_t leaf,
                       const struct rfx_box *box, float area, double threshold) {
    int64_t k = leaf - ((int64_t)1 << tree.depth), end = first_slot(tree, tree.depth, k + 1);
    for (int64_t s = first_slot(tree, tree.depth, k); s < end; s++) {
        uint32_t position = boxes->order[s];
        if (boxes->kept[position] && (double)overlap(box, area, &boxes->list[position]) > threshold)
            return true;
    }
    return false;
}

/* Whether a kept box overlaps `box` by more than the threshold. Visits the tree in depth-first
 * order without a stack: the next node after a left child is its sibling. */
static bool is_met(const struct rfx_boxes *boxes, struct tree tree, const struct rfx_box *box,
                   double threshold) {
    float area = area_of(box);
    int64_t leaves = (int64_t)1 << tree.depth;
    for (int64_t k = 1; k > 0;) {
        if (may_meet(&boxes->nodes[k], box, area, threshold)) {
            if (k < leaves) {
                k *= 2;
                continue;
            }
            if (leaf_meets(boxes, tree, k, box, area, threshold)) return true;
        }
        while (k & 1) k >>= 1;
        if (k > 0) k++;
    }
    return false;
}

/* Sets kept[] of the boxes at positions [begin, end), which are sorted and suppress each other. */
static void suppress(struct rfx_boxes *boxes, int64_t begin, int64_t end, double threshold) {
    int64_t n = 0;
    for (int64_t i = begin; i < end; i++) {
        bool in_tree = has_area(&boxes->list[i]);
        boxes->kept[i] = !in_tree;
        if (in_tree) boxes->order[n++] = (uint32_t)i;
    }
    if (n == 0) return;
    struct tree tree = build(boxes, n);
    for (int64_t i = begin; i < end; i++)
        if (!boxes->kept[i] && !is_met(boxes, tree, &boxes->list[i], threshold))
            keep(boxes, tree, i);
}

/* ---- decay ---- */

static uint32_t better(const struct rfx_boxes *boxes, uint32_t a, uint32_t b) {
    if (a == NONE || b == NONE) return a == NONE ? b : a;
    return comes_before(&boxes->list[b], &boxes->list[a], false) ? b : a;
}

/* Finds the best box of a leaf and of the nodes above it again. */
static void find_best(struct rfx_boxes *boxes, struct tree tree, int64_t leaf) {
    int64_t k = leaf - ((int64_t)1 << tree.depth), end = first_slot(tree, tree.depth, k + 1);
    uint32_t best = NONE;
    for (int64_t s = first_slot(tree, tree.depth, k); s < end; s++)
        if (!boxes->kept[boxes->order[s]]) best = better(boxes, best, boxes->order[s]);
    boxes->nodes[leaf].best = best;
    for (k = leaf >> 1; k > 0; k >>= 1)
        boxes->nodes[k].best =
            better(boxes, boxes->nodes[2 * k].best, boxes->nodes[2 * k + 1].best);
}

/* Lowers the scores of a leaf's boxes that overlap a chosen one. */
static void decay_leaf(struct rfx_boxes *boxes, struct tree tree, int64_t leaf,
                       const struct rfx_box *chosen, float area) {
    int64_t k = leaf - ((int64_t)1 << tree.depth), end = first_slot(tree, tree.depth, k + 1);
    bool any = false;
    for (int64_t s = first_slot(tree, tree.depth, k); s < end; s++) {
        uint32_t position = boxes->order[s];
        struct rfx_box *box = &boxes->list[position];
        if (boxes->kept[position]) continue;
        double share = (double)overlap(chosen, area, box);
        if (!(share > 0)) continue;
        box->score = (float)((double)box->score * rfx_exp(-2 * (share * share)));
        any = true;
    }
    if (any) find_best(boxes, tree, leaf);
}

/* Visits the leaves that the chosen box may overlap, in the order of is_met. */
static void decay_all(struct rfx_boxes *boxes, struct tree tree, const struct rfx_box *chosen) {
    float area = area_of(chosen);
    int64_t leaves = (int64_t)1 << tree.depth;
    for (int64_t k = 1; k > 0;) {
        const struct node *node = &boxes->nodes[k];
        bool meets = node->best != NONE && chosen->corner[0] < node->right &&
                     node->left < chosen->corner[2] && chosen->corner[1] < node->bottom &&
                     node->top < chosen->corner[3];
        if (meets && k < leaves) {
            k *= 2;
            continue;
        }
        if (meets) decay_leaf(boxes, tree, k, chosen, area);
        while (k & 1) k >>= 1;
        if (k > 0) k++;
    }
}

/* Sets kept[] of the boxes at positions [begin, end), whose scores lower each other. */
static void decay(struct rfx_boxes *boxes, int64_t begin, int64_t end, double threshold) {
    int64_t n = 0;
    for (int64_t i = begin; i < end; i++) {
        bool in_tree = has_area(&boxes->list[i]);
        boxes->kept[i] = !in_tree;
        if (in_tree) boxes->order[n++] = (uint32_t)i;
    }
    if (n == 0) return;
    struct tree tree = build(boxes, n);
    for (int64_t i = begin; i < end; i++)
        if (!boxes->kept[i]) keep(boxes, tree, i);
    for (int64_t s = 0; s < n; s++) boxes->kept[boxes->order[s]] = false;
    for (int64_t k = n_nodes(tree) - 1; k > 0; k--) boxes->nodes[k].best = NONE;
    for (int64_t k = 0; k < (int64_t)1 << tree.depth; k++)
        find_best(boxes, tree, ((int64_t)1 << tree.depth) + k);
    for (uint32_t best; (best = boxes->nodes[1].best) != NONE;) {
        const struct rfx_box *chosen = &boxes->list[best];
        if ((double)chosen->score <= threshold) return;
        boxes->kept[best] = true;
        find_best(boxes, tree, leaf_of_slot(tree, boxes->slots[best]));
        decay_all(boxes, tree, chosen);
    }
}

typedef void drop_fn(struct rfx_boxes *boxes, int64_t begin, int64_t end, double threshold);

/* Drops boxes of each label, or of all, and sorts the rest. */
static void drop_boxes(struct rfx_boxes *boxes, drop_fn *drop, double threshold, bool by_label) {
    struct rfx_box *list = boxes->list;
    sort(list, boxes->count, by_label);
    for (int64_t begin = 0, end; begin < boxes->count; begin = end) {
        end = by_label ? begin + 1 : boxes->count;
        while (end < boxes->count && list[end].label == list[begin].label) end++;
        drop(boxes, begin, end, threshold);
    }
    int64_t left = 0;
    for (int64_t i = 0; i < boxes->count; i++)
        if (boxes->kept[i]) list[left++] = list[i];
    boxes->count = left;
    if (by_label || drop == decay) rfx_boxes_sort(boxes);
}

void rfx_boxes_suppress(struct rfx_boxes *boxes, double threshold, bool by_label) {
    assert(threshold >= 0);
    drop_boxes(boxes, suppress, threshold, by_label);
}

void rfx_boxes_decay(struct rfx_boxes *boxes, float score, bool by_label) {
    drop_boxes(boxes, decay, (double)score, by_label);
}
