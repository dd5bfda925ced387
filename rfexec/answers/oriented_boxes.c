/* The list of candidates with an angle, and its suppression.
 *
 * A candidate is dropped if any one before it is similar, so the order in which candidates are
 * decided does not matter. Each of them asks a tree of all candidates of its label. The tree lies
 * over the candidates in the order of a Z-curve through their centres; it is implicit as that of
 * boxes.c. A node holds the rectangle of the centres below it, their largest spread (the sum of the
 * squares of both sides) and the first position, so a node whose candidates all come later is
 * skipped.
 *
 * Why skipping distant boxes is exact. Let S = S1 + S2 be the sum of two covariances, L the sum of
 * their largest eigenvalues, k = 64^2 the largest ratio of eigenvalues of an ordinary box, u =
 * 2^-24 and d the vector between the centres. The similarity is 1 - sqrt(1 - exp(-D) + 1e-7) with D
 * = d' inv(S) d / 4 + log(det S / (4 sqrt(det S1 det S2))) / 2. inv(S) has no eigenvalue below 1 /
 * trace S, and det S >= 4 sqrt(det S1 det S2), so D >= 3 |d|^2 / (spread1 + spread2). Rounded: the
 * elements of S are off by at most 8 u L, det S by 28 u L^2, and det S >= L^2 / (2 k); the
 * quadratic form's two terms are off by 34 u L |d|^2 / det S, against a sum of at least |d|^2 L /
 * (2 k) / det S; so the first part of D is computed with a relative error below 128 u k < 1/32, and
 * the second part, with the 1e-7 in it (det S1 >= (1/48)^2), is above -1/64. Products stay below
 * 2^114 as sides are at most 2^16 and coordinates 2^24. So a pair can only be similar if |d|^2 <=
 * (D' + 1/64) / 3 * 32/31 * (spread1 + spread2), where D' is the largest D that gives more than the
 * threshold; `reach` takes 0.4 (D' + 1/32). D' is at most 20: 1 - exp(-20) + 1e-7 has the root 1 in
 * float32. Boxes that are not ordinary have an infinite spread. */
#include "rfexec/answers/oriented_boxes.h"

#include <assert.h>
#include <math.h>

#include "layers/core/checked.h"
#include "layers/core/heap_sort.h"
#include "layers/core/real_math.h"
#include "layers/kernels/generic/vector_math.h"

enum { LEAF = 16 /* slots of a leaf at most */ };

#define EPSILON 1e-7F /* Ultralytics' */

/* What the similarity needs of a box: the covariance [[a, c], [c, b]], and its spread. */
struct shape {
    float a, b, c, spread;
};

struct node {
    float least[2], most[2]; /* of the centres */
    float spread;            /* the largest */
    uint32_t first;          /* the smallest position */
};

struct rfx_oriented_boxes {
    struct rfx_memory *mem;
    int64_t most, count;
    struct rfx_oriented_box *list;
    struct shape *shapes; /* by position in the list */
    uint32_t *keys;       /* by position: place on the Z-curve */
    uint32_t *order;      /* positions, sorted; slots of the tree */
    bool *kept;           /* by position */
    struct node *nodes;
};

enum { ARRAYS = 6 };

struct tree {
    int64_t begin, n; /* slots order[begin, begin + n) */
    int depth;        /* level of the leaves */
};

static struct tree tree_of(int64_t begin, int64_t n) {
    struct tree tree = {begin, n, 0};
    while (rfx_ceil_div(n, (int64_t)1 << tree.depth) > LEAF) tree.depth++;
    return tree;
}

static bool array_bytes(int64_t most, size_t bytes[ARRAYS]) {
    if (most < 0 || most > RFX_BOXES_MOST) return false;
    size_t n = (size_t)most, nodes = (size_t)2 << tree_of(0, most).depth;
    return rfx_checked_mul_size(n, sizeof(struct rfx_oriented_box), &bytes[0]) &&
           rfx_checked_mul_size(n, sizeof(struct shape), &bytes[1]) &&
           rfx_checked_mul_size(n, sizeof(uint32_t), &bytes[2]) &&
           rfx_checked_mul_size(n, sizeof(uint32_t), &bytes[3]) &&
           rfx_checked_mul_size(n, sizeof(bool), &bytes[4]) &&
           rfx_checked_mul_size(nodes, sizeof(struct node), &bytes[5]);
}

size_t rfx_oriented_boxes_bytes(int64_t most) {
    size_t bytes[ARRAYS], sum = sizeof(struct rfx_oriented_boxes);
    if (!array_bytes(most, bytes)) return SIZE_MAX;
    for (int i = 0; i < ARRAYS; i++)
        if (!rfx_checked_add_size(sum, bytes[i], &sum)) return SIZE_MAX;
    return sum;
}

enum rfx_status rfx_oriented_boxes_create(struct rfx_memory *mem, int64_t most,
                                          struct rfx_oriented_boxes **out, struct rfx_error *err) {
    size_t bytes[ARRAYS], all = rfx_oriented_boxes_bytes(most);
    if (!array_bytes(most, bytes) || all == SIZE_MAX) return rfx_boxes_refuse_most(most, err);
    struct rfx_oriented_boxes *boxes = rfx_memory_calloc(mem, 1, sizeof *boxes);
    if (boxes == NULL) return rfx_memory_fail(mem, "boxes", all, err);
    boxes->mem = mem;
    boxes->most = most;
    boxes->list = rfx_memory_alloc(mem, bytes[0]);
    boxes->shapes = rfx_memory_alloc(mem, bytes[1]);
    boxes->keys = rfx_memory_alloc(mem, bytes[2]);
    boxes->order = rfx_memory_alloc(mem, bytes[3]);
    boxes->kept = rfx_memory_alloc(mem, bytes[4]);
    boxes->nodes = rfx_memory_alloc(mem, bytes[5]);
    if (boxes->list == NULL || boxes->shapes == NULL || boxes->keys == NULL ||
        boxes->order == NULL || boxes->kept == NULL || boxes->nodes == NULL) {
        rfx_oriented_boxes_free(boxes);
        return rfx_memory_fail(mem, "boxes", all, err);
    }
    *out = boxes;
    return RFX_OK;
}

void rfx_oriented_boxes_free(struct rfx_oriented_boxes *boxes) {
    if (boxes == NULL) return;
    rfx_memory_release(boxes->mem, boxes->nodes);
    rfx_memory_release(boxes->mem, boxes->kept);
    rfx_memory_release(boxes->mem, boxes->order);
    rfx_memory_release(boxes->mem, boxes->keys);
    rfx_memory_release(boxes->mem, boxes->shapes);
    rfx_memory_release(boxes->mem, boxes->list);
    rfx_memory_release(boxes->mem, boxes);
}

enum rfx_status rfx_oriented_boxes_add(struct rfx_oriented_boxes *boxes,
                                       const struct rfx_oriented_box *box, struct rfx_error *err) {
    if (boxes->count == boxes->most) return rfx_boxes_refuse_more(boxes->most, err);
    boxes->list[boxes->count++] = *box;
    return RFX_OK;
}

const struct rfx_oriented_box *rfx_oriented_boxes_list(const struct rfx_oriented_boxes *boxes,
                                                       int64_t *count) {
    *count = boxes->count;
    return boxes->list;
}

void rfx_oriented_corners(const struct rfx_oriented_box *box, float corner[4][2]) {
    static const float signs[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    const float cosine = math_cos(box->angle), sine = math_sin(box->angle);
    const float half[2] = {box->side[0] / 2, box->side[1] / 2};
    const float along[2] = {half[0] * cosine, half[0] * sine};
    const float across[2] = {-half[1] * sine, half[1] * cosine};
    for (int i = 0; i < 4; i++)
        for (int axis = 0; axis < 2; axis++) {
            float sum = box->centre[axis] + signs[i][0] * along[axis];
            corner[i][axis] = sum + signs[i][1] * across[axis];
        }
}

/* ---- sorting ---- */

static bool has_larger_score(const void *context, const void *a, const void *b) {
    const struct rfx_oriented_box *x = a, *y = b;
    (void)context;
    return x->score != y->score ? x->score > y->score : x->index < y->index;
}

static bool has_smaller_label(const void *context, const void *a, const void *b) {
    int32_t x = ((const struct rfx_oriented_box *)a)->label;
    int32_t y = ((const struct rfx_oriented_box *)b)->label;
    return x != y ? x < y : has_larger_score(context, a, b);
}

static void sort_list(struct rfx_oriented_boxes *boxes, rfx_comes_before *before) {
    rfx_heap_sort(boxes->list, boxes->count, sizeof *boxes->list, before, NULL);
}

/* Compares positions of the list. */
static bool has_smaller_key(const void *boxes, const void *a, const void *b) {
    const uint32_t *keys = ((const struct rfx_oriented_boxes *)boxes)->keys;
    return keys[*(const uint32_t *)a] < keys[*(const uint32_t *)b];
}

/* ---- similarity ---- */

static float square(float x) {
    return x * x;
}

static bool is_ordinary(const struct rfx_oriented_box *box) {
    const float most_centre = 0x1p24F, least_side = 0.5F, most_side = 0x1p16F, most_ratio = 64;
    float w = fabsf(box->side[0]), h = fabsf(box->side[1]);
    return fabsf(box->centre[0]) <= most_centre && fabsf(box->centre[1]) <= most_centre &&
           w >= least_side && h >= least_side && w <= most_side && h <= most_side &&
           w <= most_ratio * h && h <= most_ratio * w && fabsf(box->angle) < INFINITY;
}

static struct shape shape_of(const struct rfx_oriented_box *box) {
    const float cosine = math_cos(box->angle), sine = math_sin(box->angle);
    const float cosine2 = square(cosine), sine2 = square(sine);
    const float a = square(box->side[0]) / 12, b = square(box->side[1]) / 12;
    float spread = square(box->side[0]) + square(box->side[1]);
    return (struct shape){a * cosine2 + b * sine2, a * sine2 + b * cosine2, (a - b) * cosine * sine,
                          is_ordinary(box) ? spread : INFINITY};
}

static float determinant(const struct shape *shape) {
    float value = shape->a * shape->b - square(shape->c);
    return value < 0 ? 0 : value;
}

/* Distance of two Gaussians in parts: first + log(ratio) / 2. */
struct parts {
    float first, ratio;
};

static struct parts parts_of(const float *p, const struct shape *s, const float *q,
                             const struct shape *t) {
    const float a = s->a + t->a, b = s->b + t->b, c = s->c + t->c;
    const float both = a * b - square(c);
    const float t1 = (a * square(p[1] - q[1]) + b * square(p[0] - q[0])) / (both + EPSILON);
    const float t2 = c * (q[0] - p[0]) * (p[1] - q[1]) / (both + EPSILON);
    const float mean = 4 * sqrtf(determinant(s) * determinant(t)) + EPSILON;
    return (struct parts){t1 * 0.25F + t2 * 0.5F, both / mean + EPSILON};
}

static float similarity_of(struct parts parts) {
    float distance = parts.first + (float)rfx_log((double)parts.ratio) * 0.5F;
    distance = math_clamp(distance, EPSILON, 100.0F);
    return 1 - sqrtf(1 - (float)rfx_exp(-(double)distance) + EPSILON);
}

float rfx_oriented_similarity(const struct rfx_oriented_box *a, const struct rfx_oriented_box *b) {
    const struct shape s = shape_of(a), t = shape_of(b);
    return similarity_of(parts_of(a->centre, &s, b->centre, &t));
}

/* What "more similar than the threshold" means. */
struct limit {
    float threshold;
    double distance; /* boxes of a larger distance are less similar */
    double reach;    /* largest square of the distance of two ordinary boxes' centres, divided by
                        the sum of their spreads; see the top of the file */
};

static struct limit limit_of(float threshold) {
    const double most = 20.0, rounding = 1e-6, rest = 1.0 - (double)threshold;
    double least_exp = 1.0 - rest * rest - rounding;
    double distance = least_exp > 2.1e-9 ? -rfx_log(least_exp) : most;
    return (struct limit){threshold, distance, 0.4 * (distance + 1.0 / 32.0)};
}

/* Whether two boxes are more similar than the threshold. log(x) / 2 >= (x - 1) / (x + 1) for x >= 1
 * spares most pairs the logarithm. */
static bool are_similar(struct parts parts, const struct limit *limit) {
    const float rounding = 1e-3F, x = parts.ratio;
    if (x >= 1 && parts.first + (x - 1) / (x + 1) > (float)limit->distance + rounding) return false;
    return similarity_of(parts) > limit->threshold;
}

/* ---- tree ---- */

/* Returns the 16 bits of x with a zero before each. */
static uint32_t spread_bits(uint32_t x) {
    x = (x | x << 8) & 0x00ff00ffU;
    x = (x | x << 4) & 0x0f0f0f0fU;
    x = (x | x << 2) & 0x33333333U;
    return (x | x << 1) & 0x55555555U;
}

/* Sets keys of the positions [begin, end). Any keys give the same boxes. */
static void set_keys(struct rfx_oriented_boxes *boxes, int64_t begin, int64_t end) {
    float least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};
    for (int64_t i = begin; i < end; i++)
        for (int axis = 0; axis < 2 && boxes->shapes[i].spread < INFINITY; axis++) {
            least[axis] = fminf(least[axis], boxes->list[i].centre[axis]);
            most[axis] = fmaxf(most[axis], boxes->list[i].centre[axis]);
        }
    for (int64_t i = begin; i < end; i++) {
        uint32_t key[2] = {0, 0};
        for (int axis = 0; axis < 2 && boxes->shapes[i].spread < INFINITY; axis++) {
            float share = (boxes->list[i].centre[axis] - least[axis]) / (most[axis] - least[axis]);
            key[axis] = share > 0 ? (uint32_t)(share * 65535) : 0;
        }
        boxes->keys[i] = spread_bits(key[0]) | spread_bits(key[1]) << 1;
    }
}

static void add_to_node(const struct rfx_oriented_boxes *boxes, struct node *node,
                        uint32_t position) {
    const float *centre = boxes->list[position].centre;
    for (int axis = 0; axis < 2; axis++) { /* NaN is in no rectangle; its spread is infinite */
        node->least[axis] = fminf(node->least[axis], centre[axis]);
        node->most[axis] = fmaxf(node->most[axis], centre[axis]);
    }
    node->spread = fmaxf(node->spread, boxes->shapes[position].spread);
    if (position < node->first) node->first = position;
}

/* First slot of leaf k; k = number of leaves gives the end of the last one. */
static int64_t first_slot(struct tree tree, int64_t k) {
    return tree.begin + (k * tree.n >> tree.depth);
}

static struct tree build(struct rfx_oriented_boxes *boxes, int64_t begin, int64_t end) {
    static const struct node empty = {{INFINITY, INFINITY}, {-INFINITY, -INFINITY}, 0, UINT32_MAX};
    struct tree tree = tree_of(begin, end - begin);
    int64_t leaves = (int64_t)1 << tree.depth;
    for (int64_t i = begin; i < end; i++) {
        boxes->shapes[i] = shape_of(&boxes->list[i]);
        boxes->order[i] = (uint32_t)i;
    }
    set_keys(boxes, begin, end);
    rfx_heap_sort(boxes->order + begin, end - begin, sizeof *boxes->order, has_smaller_key, boxes);
    for (int64_t k = 0; k < 2 * leaves; k++) boxes->nodes[k] = empty;
    for (int64_t leaf = 0; leaf < leaves; leaf++)
        for (int64_t s = first_slot(tree, leaf); s < first_slot(tree, leaf + 1); s++)
            for (int64_t k = leaves + leaf; k > 0; k >>= 1)
                add_to_node(boxes, &boxes->nodes[k], boxes->order[s]);
    return tree;
}

static double gap(float x, float least, float most) {
    return x < least ? (double)least - (double)x : x > most ? (double)x - (double)most : 0.0;
}

/* Whether a box at a position may be similar to one that comes before it and lies below the node.
 */
static bool may_meet(const struct rfx_oriented_boxes *boxes, const struct node *node,
                     uint32_t position, const struct limit *limit) {
    const float *centre = boxes->list[position].centre;
    if (node->first >= position) return false;
    double x = gap(centre[0], node->least[0], node->most[0]);
    double y = gap(centre[1], node->least[1], node->most[1]);
    double spread = (double)boxes->shapes[position].spread + (double)node->spread;
    return !(x * x + y * y > limit->reach * spread);
}

static bool leaf_meets(const struct rfx_oriented_boxes *boxes, struct tree tree, int64_t leaf,
                       uint32_t position, const struct limit *limit) {
    int64_t k = leaf - ((int64_t)1 << tree.depth), end = first_slot(tree, k + 1);
    for (int64_t s = first_slot(tree, k); s < end; s++) {
        uint32_t i = boxes->order[s];
        const float *p = boxes->list[i].centre, *q = boxes->list[position].centre;
        const struct node alone = {{p[0], p[1]}, {p[0], p[1]}, boxes->shapes[i].spread, i};
        if (may_meet(boxes, &alone, position, limit) &&
            are_similar(parts_of(p, &boxes->shapes[i], q, &boxes->shapes[position]), limit))
            return true;
    }
    return false;
}

/* Whether a box before the position is similar to it. Visits the tree in depth-first order without
 * a stack: the next node after a left child is its sibling. */
static bool is_met(const struct rfx_oriented_boxes *boxes, struct tree tree, uint32_t position,
                   const struct limit *limit) {
    int64_t leaves = (int64_t)1 << tree.depth;
    for (int64_t k = 1; k > 0;) {
        if (may_meet(boxes, &boxes->nodes[k], position, limit)) {
            if (k < leaves) {
                k *= 2;
                continue;
            }
            if (leaf_meets(boxes, tree, k, position, limit)) return true;
        }
        while (k & 1) k >>= 1;
        if (k > 0) k++;
    }
    return false;
}

void rfx_oriented_boxes_sort(struct rfx_oriented_boxes *boxes) {
    sort_list(boxes, has_larger_score);
}

void rfx_oriented_boxes_suppress(struct rfx_oriented_boxes *boxes, float threshold, bool by_label) {
    assert(threshold >= 0);
    const struct limit limit = limit_of(threshold);
    struct rfx_oriented_box *list = boxes->list;
    int64_t left = 0;
    sort_list(boxes, by_label ? has_smaller_label : has_larger_score);
    for (int64_t begin = 0, end; begin < boxes->count; begin = end) {
        end = by_label ? begin + 1 : boxes->count;
        while (end < boxes->count && list[end].label == list[begin].label) end++;
        struct tree tree = build(boxes, begin, end);
        for (int64_t i = begin; i < end; i++)
            boxes->kept[i] = !is_met(boxes, tree, (uint32_t)i, &limit);
    }
    for (int64_t i = 0; i < boxes->count; i++)
        if (boxes->kept[i]) list[left++] = list[i];
    boxes->count = left;
    if (by_label) sort_list(boxes, has_larger_score);
}
