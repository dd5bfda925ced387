/* Regions of label maps, against flood fill: pixels, order, areas, edges, centroids, scores; and
 * the rings, which are filled again and walked point by point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/label_regions.h"
#include "tests/support/test_util.h"

struct map {
    int64_t h, w;
    int64_t *labels;
    float *scores; /* NULL: none */
};

static void *allocated(size_t count, size_t size) {
    void *block = calloc(count == 0 ? 1 : count, size);
    if (block == NULL) abort();
    return block;
}

static struct map make_map(int64_t h, int64_t w) {
    return (struct map){h, w, allocated((size_t)(h * w), sizeof(int64_t)), NULL};
}

static void free_map(struct map *map) {
    free(map->labels);
    free(map->scores);
}

static void print_map(const struct map *map, const char *what,
                      const struct rfx_regions_options *o) {
    fprintf(stderr, "%s: {%" PRId64 ", %" PRId64 ", connectivity %d, background %d %" PRId64 "} {",
            what, map->h, map->w, o->connectivity, o->has_background, o->background);
    for (int64_t i = 0; i < map->h * map->w && i < 1600; i++)
        fprintf(stderr, "%s%" PRId64 ",", i % map->w == 0 ? "\n  " : " ", map->labels[i]);
    fprintf(stderr, "}\n");
}

/* ---- What is passed on, kept ---- */

struct kept {
    struct rfx_region *regions;
    int64_t n;
};

static enum rfx_status keep(void *user, const struct rfx_region *region, struct rfx_error *err) {
    struct kept *kept = user;
    (void)err;
    if ((kept->n & (kept->n - 1)) == 0) { /* 0 or a power of two: full */
        size_t capacity = kept->n == 0 ? 1 : 2 * (size_t)kept->n;
        kept->regions = realloc(kept->regions, capacity * sizeof *kept->regions);
        if (kept->regions == NULL) abort();
    }
    struct rfx_region *copy = &kept->regions[kept->n++];
    *copy = *region;
    struct rfx_region_ring *rings = allocated((size_t)region->n_rings, sizeof *rings);
    for (int64_t i = 0; i < region->n_rings; i++) {
        rings[i] = region->rings[i];
        int32_t(*points)[2] = allocated((size_t)rings[i].n, sizeof *points);
        memcpy(points, region->rings[i].points, (size_t)rings[i].n * sizeof *points);
        rings[i].points = (const int32_t(*)[2])points;
    }
    copy->rings = rings;
    return RFX_OK;
}

static void free_kept(struct kept *kept) {
    for (int64_t k = 0; k < kept->n; k++) {
        const struct rfx_region *region = &kept->regions[k];
        for (int64_t i = 0; i < region->n_rings; i++)
            free((void *)(uintptr_t)region->rings[i].points);
        free((void *)(uintptr_t)region->rings);
    }
    free(kept->regions);
    *kept = (struct kept){NULL, 0};
}

static bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static bool same_region(const struct rfx_region *a, const struct rfx_region *b) {
    bool same =
        a->label == b->label && a->area == b->area &&
        memcmp(a->edges, b->edges, sizeof a->edges) == 0 && rfx_rect_equal(a->box, b->box) &&
        same_bits(a->centroid[0], b->centroid[0]) && same_bits(a->centroid[1], b->centroid[1]) &&
        same_bits(a->mean_score, b->mean_score) &&
        same_bits((double)a->largest_score, (double)b->largest_score) && a->n_rings == b->n_rings;
    for (int64_t i = 0; same && i < a->n_rings; i++)
        same = a->rings[i].n == b->rings[i].n && a->rings[i].outer == b->rings[i].outer &&
               memcmp(a->rings[i].points, b->rings[i].points,
                      (size_t)a->rings[i].n * sizeof *a->rings[i].points) == 0;
    return same;
}

static bool same_kept(const struct kept *a, const struct kept *b) {
    if (a->n != b->n) return false;
    for (int64_t k = 0; k < a->n; k++)
        if (!same_region(&a->regions[k], &b->regions[k])) return false;
    return true;
}

static enum rfx_status run_map(struct rfx_memory *mem, const struct map *map,
                               const struct rfx_regions_options *options, struct kept *kept,
                               size_t *high, struct rfx_error *err) {
    struct rfx_regions *regions = NULL;
    enum rfx_status status = rfx_regions_create(mem, options, keep, kept, &regions, err);
    for (int64_t y = 0; y < map->h && status == RFX_OK; y++)
        status = rfx_regions_row(regions, map->labels + y * map->w,
                                 options->scored ? map->scores + y * map->w : NULL, err);
    if (status == RFX_OK) status = rfx_regions_end(regions, err);
    if (high != NULL && regions != NULL) *high = rfx_regions_high_water_bytes(regions);
    rfx_regions_free(regions);
    return status;
}

/* ---- The oracle ---- */

/* Numbers the sets of joined pixels from 0 in the order of their first pixels; -1: background.
 * Returns their number. */
static int64_t flood(const struct map *map, const struct rfx_regions_options *o, int connectivity,
                     int32_t *ids) {
    static const int steps[8][2] = {{0, 1}, {0, -1}, {1, 0},  {-1, 0},
                                    {1, 1}, {1, -1}, {-1, 1}, {-1, -1}};
    int64_t n = map->h * map->w, count = 0, *stack = allocated((size_t)n, sizeof *stack);
    for (int64_t i = 0; i < n; i++) ids[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] >= 0 || (o->has_background && map->labels[i] == o->background)) continue;
        int64_t depth = 0;
        stack[depth++] = i;
        ids[i] = (int32_t)count;
        while (depth > 0) {
            int64_t p = stack[--depth];
            for (int s = 0; s < connectivity; s++) {
                int64_t y = p / map->w + steps[s][0], x = p % map->w + steps[s][1];
                int64_t q = y * map->w + x;
                if (y < 0 || y >= map->h || x < 0 || x >= map->w || ids[q] >= 0) continue;
                if (map->labels[q] != map->labels[i]) continue;
                ids[q] = (int32_t)count;
                stack[depth++] = q;
            }
        }
        count++;
    }
    free(stack);
    return count;
}

struct truth {
    int64_t id, label, area, along, perimeter, twice_x, twice_y,
        last_x; /* last_x: first pixel of last row */
    struct rfx_rect box;
    double sum;
    float largest;
};

static int compare_truths(const void *a, const void *b) {
    const struct truth *p = a, *q = b;
    if (p->box.y1 != q->box.y1) return p->box.y1 < q->box.y1 ? -1 : 1;
    return p->last_x < q->last_x ? -1 : p->last_x > q->last_x;
}

static bool is_outside(const struct map *map, const int32_t *ids, int64_t y, int64_t x,
                       int32_t id) {
    return y < 0 || y >= map->h || x < 0 || x >= map->w || ids[y * map->w + x] != id;
}

static void add_pixel(struct truth *truth, const struct map *map, const int32_t *ids, int64_t y,
                      int64_t x) {
    int64_t i = y * map->w + x;
    int32_t id = ids[i];
    if (truth->area++ == 0) truth->largest = NAN;
    truth->id = id;
    truth->label = map->labels[i];
    int along = is_outside(map, ids, y - 1, x, id) + is_outside(map, ids, y + 1, x, id);
    truth->along += along;
    truth->perimeter +=
        along + is_outside(map, ids, y, x - 1, id) + is_outside(map, ids, y, x + 1, id);
    truth->twice_x += 2 * x + 1;
    truth->twice_y += 2 * y + 1;
    if (truth->box.y1 != y + 1) truth->last_x = x;
    truth->box = rfx_rect_union(truth->box, rfx_rect_make(y, y + 1, x, x + 1));
    if (map->scores == NULL) return;
    truth->sum += (double)map->scores[i];
    if (isnan(truth->largest) || map->scores[i] > truth->largest)
        truth->largest = isnan(map->scores[i]) ? truth->largest : map->scores[i];
}

/* Returns the regions of at least least_area in the order in which they are complete. */
static struct truth *find_truths(const struct map *map, const struct rfx_regions_options *o,
                                 const int32_t *ids, int64_t count, int64_t *n) {
    struct truth *truths = allocated((size_t)count, sizeof *truths);
    for (int64_t i = 0; i < map->h * map->w; i++)
        if (ids[i] >= 0) add_pixel(&truths[ids[i]], map, ids, i / map->w, i % map->w);
    *n = 0;
    for (int64_t k = 0; k < count; k++)
        if (truths[k].area >= o->least_area) truths[(*n)++] = truths[k];
    qsort(truths, (size_t)*n, sizeof *truths, compare_truths);
    return truths;
}

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
            return false;                                               \
        }                                                               \
    } while (0)

/* Walks along a ring: it turns at every point, passes none twice, and begins at its uppermost and
 * there leftmost one. *area: signed, positive if it turns counterclockwise with y upward. `seen` is
 * a grid of (h + 1) x (w + 1) points, and `mark` is not in it. */
static bool check_ring(const struct map *map, const struct rfx_region_ring *ring, int32_t *seen,
                       int32_t mark, int64_t *area) {
    CHECK(ring->n >= 4 && ring->n % 2 == 0);
    const int32_t(*p)[2] = ring->points;
    *area = 0;
    for (int64_t i = 0; i < ring->n; i++) {
        const int32_t *a = p[i], *b = p[(i + 1) % ring->n], *c = p[(i + 2) % ring->n];
        CHECK(a[0] >= 0 && a[0] <= map->w && a[1] >= 0 && a[1] <= map->h);
        CHECK((a[0] == b[0]) != (a[1] == b[1]));
        CHECK((a[0] == b[0]) != (b[0] == c[0]));
        CHECK(a[1] > p[0][1] || (a[1] == p[0][1] && a[0] >= p[0][0]));
        int32_t dx = (b[0] > a[0]) - (b[0] < a[0]), dy = (b[1] > a[1]) - (b[1] < a[1]);
        for (int32_t x = a[0], y = a[1]; x != b[0] || y != b[1]; x += dx, y += dy) {
            CHECK(seen[y * (map->w + 1) + x] != mark);
            seen[y * (map->w + 1) + x] = mark;
        }
        *area += (int64_t)a[0] * b[1] - (int64_t)b[0] * a[1];
    }
    *area /= 2;
    return true;
}

/* Toggles the pixels on the right of the ring's vertical edges: filled twice, holes are empty. */
static void toggle_ring(const struct map *map, const struct rfx_region_ring *ring,
                        unsigned char *in) {
    for (int64_t i = 0; i < ring->n; i++) {
        const int32_t *a = ring->points[i], *b = ring->points[(i + 1) % ring->n];
        for (int32_t y = a[1] < b[1] ? a[1] : b[1]; a[0] == b[0] && y < (a[1] < b[1] ? b[1] : a[1]);
             y++)
            if (a[0] < map->w) in[y * map->w + a[0]] ^= 1;
    }
}

/* Whether the toggled rows, filled, are the pixels of one set of ids (4-connected), of `area`
 * pixels. Clears them. */
static bool check_fill(const struct map *map, struct rfx_rect box, const int32_t *ids, int64_t area,
                       unsigned char *in) {
    int64_t filled = 0;
    int32_t id = -1;
    for (int64_t y = box.y0; y < box.y1; y++) {
        unsigned char inside = 0;
        for (int64_t x = box.x0; x < box.x1; x++) {
            inside ^= in[y * map->w + x];
            in[y * map->w + x] = 0;
            if (!inside) continue;
            if (id < 0) id = ids[y * map->w + x];
            CHECK(id >= 0 && ids[y * map->w + x] == id);
            filled++;
        }
        if (box.x1 < map->w) in[y * map->w + box.x1] = 0;
    }
    CHECK(filled == area);
    return true;
}

/* The oracle's maps: ids of regions, ids of sets joined by sides, points seen, pixels toggled. */
struct work {
    int32_t *regions, *sides, *seen;
    unsigned char *in;
    int32_t mark;
    int64_t *side_areas;
};

/* Checks the rings of a region whose polygons are sets joined by sides: each is filled again. */
static bool check_rings(const struct map *map, const struct rfx_region *region,
                        const struct truth *truth, struct work *work) {
    int64_t area = 0, perimeter = 0;
    CHECK(region->n_rings > 0 && region->rings[0].outer);
    for (int64_t i = 0; i < region->n_rings;) {
        int64_t polygon = 0, first = i;
        do {
            const struct rfx_region_ring *ring = &region->rings[i];
            int64_t signed_area;
            CHECK(check_ring(map, ring, work->seen, ++work->mark, &signed_area));
            CHECK(ring->outer == (signed_area > 0));
            polygon += signed_area;
            for (int64_t k = 0; k < ring->n; k++) {
                const int32_t *a = ring->points[k], *b = ring->points[(k + 1) % ring->n];
                perimeter += abs(a[0] - b[0]) + abs(a[1] - b[1]);
            }
            /* Outer rings follow the outer ring before them, and holes the ring before them. */
            const struct rfx_region_ring *before = ring - 1;
            if (ring->outer)
                while (before >= region->rings && !before->outer) before--;
            if (before >= region->rings)
                CHECK(before->points[0][1] < ring->points[0][1] ||
                      (before->points[0][1] == ring->points[0][1] &&
                       before->points[0][0] < ring->points[0][0]));
            toggle_ring(map, ring, work->in);
        } while (++i < region->n_rings && !region->rings[i].outer);
        const int32_t *corner = region->rings[first].points[0];
        CHECK(check_fill(map, region->box, work->sides, polygon, work->in));
        int32_t side = work->sides[corner[1] * map->w + corner[0]];
        CHECK(side >= 0 && work->side_areas[side] == polygon);
        work->side_areas[side] = 0; /* each set once */
        CHECK(work->regions[corner[1] * map->w + corner[0]] == truth->id);
        area += polygon;
    }
    CHECK(area == truth->area && perimeter == truth->perimeter);
    return true;
}

static bool check_region(const struct map *map, const struct rfx_regions_options *o,
                         const struct rfx_region *region, const struct truth *truth,
                         struct work *work) {
    CHECK(region->label == truth->label);
    CHECK(region->area == truth->area);
    CHECK(region->edges[0] + region->edges[1] == truth->perimeter);
    CHECK(region->edges[0] == truth->along);
    CHECK(rfx_rect_equal(region->box, truth->box));
    double twice = 2.0 * (double)truth->area;
    CHECK(region->centroid[0] == (double)truth->twice_x / twice);
    CHECK(region->centroid[1] == (double)truth->twice_y / twice);
    CHECK(same_bits(region->mean_score, o->scored ? truth->sum / (double)truth->area : 0.0));
    CHECK(same_bits((double)region->largest_score, o->scored ? (double)truth->largest : 0.0));
    return check_rings(map, region, truth, work);
}

static bool check_kept(const struct map *map, const struct rfx_regions_options *o,
                       const struct kept *kept) {
    size_t pixels = (size_t)(map->h * map->w);
    struct work work = {.regions = allocated(pixels, sizeof(int32_t)),
                        .sides = allocated(pixels, sizeof(int32_t)),
                        .seen = allocated((size_t)((map->h + 1) * (map->w + 1)), sizeof(int32_t)),
                        .in = allocated(pixels, 1),
                        .side_areas = allocated(pixels, sizeof(int64_t))};
    int64_t n, count = flood(map, o, o->connectivity, work.regions);
    (void)flood(map, o, 4, work.sides);
    for (size_t i = 0; i < pixels; i++)
        if (work.sides[i] >= 0) work.side_areas[work.sides[i]]++;
    struct truth *truths = find_truths(map, o, work.regions, count, &n);
    bool good = n == kept->n;
    if (!good) fprintf(stderr, "%" PRId64 " regions, not %" PRId64 "\n", kept->n, n);
    for (int64_t k = 0; k < n && good; k++)
        good = check_region(map, o, &kept->regions[k], &truths[k], &work);
    free(truths);
    free(work.regions);
    free(work.sides);
    free(work.seen);
    free(work.in);
    free(work.side_areas);
    return good;
}

/* Runs a map and compares everything with the oracle. */
static void check_map(const struct map *map, const struct rfx_regions_options *base,
                      const char *what) {
    struct rfx_regions_options options = *base;
    options.width = map->w;
    options.scored = map->scores != NULL;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct kept kept = {NULL, 0};
    struct rfx_error err = {""};
    size_t high = 0;
    assert_int_equal(run_map(mem, map, &options, &kept, &high, &err), RFX_OK);
    assert_int_equal(high, rfx_memory_high_water_bytes(mem));
    rfx_memory_free(mem);
    bool good = check_kept(map, &options, &kept);
    if (!good) print_map(map, what, &options);
    free_kept(&kept);
    assert_true(good);
}

/* ---- Maps ---- */

/* Random maps of several textures: noise, boxes that overlap, copies of the row above. */
static struct map random_map(struct test_rng *rng, int64_t most) {
    struct map map = make_map(test_rng_int(rng, 1, most), test_rng_int(rng, 1, most));
    int64_t labels = test_rng_int(rng, 1, 5);
    int kind = (int)test_rng_int(rng, 0, 3), density = (int)test_rng_int(rng, 0, 100);
    for (int64_t i = 0; i < map.h * map.w; i++) {
        bool copies = kind == 2 && i >= map.w && test_rng_chance(rng, 80);
        if (copies)
            map.labels[i] = map.labels[i - map.w];
        else if (kind == 3)
            map.labels[i] = (i / map.w + i % map.w) % 2 == 0 || test_rng_chance(rng, 5);
        else if (kind != 1 && test_rng_chance(rng, density))
            map.labels[i] = test_rng_int(rng, 1, labels);
    }
    for (int k = 0; kind == 1 && k < 12; k++) {
        int64_t y = test_rng_int(rng, 0, map.h - 1), x = test_rng_int(rng, 0, map.w - 1);
        int64_t y1 = test_rng_int(rng, y + 1, map.h), x1 = test_rng_int(rng, x + 1, map.w);
        int64_t label = test_rng_int(rng, 0, labels);
        for (int64_t i = y; i < y1; i++)
            for (int64_t j = x; j < x1; j++) map.labels[i * map.w + j] = label;
    }
    return map;
}

static struct rfx_regions_options random_options(struct test_rng *rng) {
    return (struct rfx_regions_options){
        .connectivity = test_rng_chance(rng, 50) ? 4 : 8,
        .has_background = test_rng_chance(rng, 60),
        .background = test_rng_chance(rng, 90) ? 0 : 1,
        .least_area = test_rng_chance(rng, 80) ? test_rng_int(rng, 0, 1) : test_rng_int(rng, 2, 9)};
}

/* Scores whose sums are exact in double, and some NaN. */
static void add_random_scores(struct test_rng *rng, struct map *map) {
    map->scores = allocated((size_t)(map->h * map->w), sizeof(float));
    int nan = test_rng_chance(rng, 50) ? 3 : 0;
    for (int64_t i = 0; i < map->h * map->w; i++)
        map->scores[i] =
            test_rng_chance(rng, nan) ? NAN : (float)test_rng_int(rng, -999, 999) / 64.0f;
}

static void random_maps_equal_flood_fill(void **state) {
    (void)state;
    int64_t seed = test_env_int("RFX_SEED", 1), cases = test_env_int("RFX_CASES", 6000);
    for (int64_t k = 0; k < cases; k++) {
        struct test_rng rng = test_rng_make((uint64_t)(seed * 1000003 + k));
        struct map map = random_map(&rng, k % 2 == 0 ? 8 : 40);
        struct rfx_regions_options options = random_options(&rng);
        if (test_rng_chance(&rng, 25)) add_random_scores(&rng, &map);
        char what[64];
        snprintf(what, sizeof what, "seed %" PRId64 " case %" PRId64, seed, k);
        check_map(&map, &options, what);
        free_map(&map);
    }
}

/* All maps of 3 x 4 pixels with two labels, and of 4 x 4 with one and background. */
static void all_small_maps_equal_flood_fill(void **state) {
    (void)state;
    for (int k = 0; k < 1 << 16; k++) {
        struct map map = make_map(k < 1 << 12 ? 3 : 4, 4);
        for (int i = 0; i < map.h * map.w; i++) map.labels[i] = k >> i & 1;
        for (int connectivity = 4; connectivity <= 8; connectivity += 4) {
            struct rfx_regions_options options = {.connectivity = connectivity,
                                                  .has_background = k >= 1 << 12};
            check_map(&map, &options, "small");
        }
        free_map(&map);
    }
}

/* A line of one pixel from the upper left corner inwards, with gaps of one pixel. */
static struct map spiral(int64_t size) {
    struct map map = make_map(size, size);
    int64_t y = 0, x = 0, dy = 0, dx = 1, left = size, turns = 0;
    map.labels[0] = 7;
    for (int64_t length = size - 1; length > 0; turns++) {
        for (left = length; left > 0; left--) {
            y += dy;
            x += dx;
            map.labels[y * size + x] = 7;
        }
        int64_t turn = dy;
        dy = dx;
        dx = -turn;
        if (turns >= 2 ? turns % 2 == 0 : false) length -= 2;
    }
    return map;
}

/* Lines of one pixel, upright or level, that a line joins on one side or on alternating sides. */
static struct map comb(int64_t size, bool upright, bool alternating) {
    struct map map = make_map(size, size);
    for (int64_t a = 0; a < size; a++)
        for (int64_t b = 0; b < size; b++) {
            bool line = a % 2 == 0;
            bool joint = alternating ? b == (a % 4 == 1 ? 0 : size - 1) : b == 0;
            map.labels[upright ? b * size + a : a * size + b] = line || joint ? -3 : 0;
        }
    return map;
}

/* Squares in squares, which touch at a corner if `shifted`. */
static struct map nested(int64_t size, bool shifted) {
    struct map map = make_map(size, size);
    for (int64_t y = 0; y < size; y++)
        for (int64_t x = 0; x < size; x++) {
            int64_t edge = y < x ? y : x, far = size - 1 - (y > x ? y : x);
            map.labels[y * size + x] =
                shifted ? (y / 2 + x / 2) % 2 : (edge < far ? edge : far) % 2;
        }
    return map;
}

static void check_with_both(struct map map, const char *what) {
    for (int connectivity = 4; connectivity <= 8; connectivity += 4)
        for (int background = 0; background < 2; background++) {
            struct rfx_regions_options options = {.connectivity = connectivity,
                                                  .has_background = background != 0};
            check_map(&map, &options, what);
        }
    free_map(&map);
}

static void figures_equal_flood_fill(void **state) {
    (void)state;
    for (int64_t size = 1; size < 70; size += size < 10 ? 1 : 7) {
        check_with_both(spiral(size), "spiral");
        for (int k = 0; k < 4; k++) check_with_both(comb(size, k % 2 != 0, k > 1), "comb");
        check_with_both(nested(size, false), "nested");
        check_with_both(nested(size, true), "touching");
    }
}

static void rings_of_a_known_figure(void **state) {
    (void)state;
    /* The hole of the pixel at (1, 1) touches the one at (2, 2), which is open to the right. */
    static int64_t labels[] = {5, 5, 5, 5, /**/ 5, 0, 5, 5, /**/ 5, 5, 0, 0, /**/ 5, 5, 5, 5};
    const struct map map = {4, 4, labels, NULL};
    static const int32_t outer[][2] = {{0, 0}, {4, 0}, {4, 2}, {2, 2},
                                       {2, 3}, {4, 3}, {4, 4}, {0, 4}};
    static const int32_t hole[][2] = {{1, 1}, {1, 2}, {2, 2}, {2, 1}};
    const struct rfx_regions_options options = {
        .width = 4, .connectivity = 4, .has_background = true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct kept kept = {NULL, 0};
    assert_int_equal(run_map(mem, &map, &options, &kept, NULL, NULL), RFX_OK);
    assert_int_equal(kept.n, 1);
    const struct rfx_region *region = &kept.regions[0];
    assert_int_equal(region->label, 5);
    assert_int_equal(region->area, 13);
    assert_int_equal(region->edges[0] + region->edges[1], 24);
    assert_true(region->centroid[0] == 24.5 / 13 && region->centroid[1] == 25.5 / 13);
    assert_int_equal(region->n_rings, 2);
    assert_true(region->rings[0].outer && !region->rings[1].outer);
    assert_int_equal(region->rings[0].n, 8);
    assert_memory_equal(region->rings[0].points, outer, sizeof outer);
    assert_int_equal(region->rings[1].n, 4);
    assert_memory_equal(region->rings[1].points, hole, sizeof hole);
    free_kept(&kept);
    rfx_memory_free(mem);
}

/* ---- Scores ---- */

static struct rfx_region first_scored(const float *scores, int64_t h, int64_t w) {
    struct map map = make_map(h, w);
    map.scores = allocated((size_t)(h * w), sizeof(float));
    memcpy(map.scores, scores, (size_t)(h * w) * sizeof(float));
    const struct rfx_regions_options options = {.width = w, .connectivity = 8, .scored = true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct kept kept = {NULL, 0};
    assert_int_equal(run_map(mem, &map, &options, &kept, NULL, NULL), RFX_OK);
    assert_int_equal(kept.n, 1);
    struct rfx_region region = kept.regions[0];
    free_kept(&kept);
    free_map(&map);
    rfx_memory_free(mem);
    return region;
}

static void scores_are_exact(void **state) {
    (void)state;
    static const float big[] = {0x1p100f, 3.0f, -0x1p100f, 0.5f};
    for (int turn = 0; turn < 4; turn++) {
        float turned[4];
        for (int i = 0; i < 4; i++) turned[i] = big[(i + turn) % 4];
        assert_true(first_scored(turned, 2, 2).mean_score == 0.875);
        assert_true(first_scored(turned, 4, 1).mean_score == 0.875);
        assert_true(first_scored(turned, 1, 4).largest_score == 0x1p100f);
    }
    static const float nan[] = {-2.0f, NAN, -1.0f, -3.0f}, only_nan[] = {NAN, NAN};
    assert_true(isnan(first_scored(nan, 2, 2).mean_score));
    assert_true(first_scored(nan, 2, 2).largest_score == -1.0f);
    assert_true(isnan(first_scored(only_nan, 2, 1).largest_score));
    static const float zeros[2][2] = {{0.0f, -0.0f}, {-0.0f, 0.0f}};
    for (int i = 0; i < 2; i++) assert_false(signbit(first_scored(zeros[i], 1, 2).largest_score));
    static const float infinite[] = {-INFINITY, -FLT_MAX};
    assert_true(first_scored(infinite, 2, 1).mean_score == -(double)INFINITY);
    assert_true(first_scored(infinite, 2, 1).largest_score == -FLT_MAX);
}

/* ---- Memory and failures ---- */

/* Any limit gives the same regions or an error, and is kept. The most bytes used without a limit
 * are enough. */
static void check_limits(const struct map *map, const struct rfx_regions_options *base) {
    struct rfx_regions_options options = *base;
    options.width = map->w;
    options.scored = map->scores != NULL;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct kept want = {NULL, 0};
    size_t high = 0;
    int failed = 0;
    assert_int_equal(run_map(mem, map, &options, &want, &high, NULL), RFX_OK);
    rfx_memory_free(mem);
    for (size_t limit = 1; limit < high + high / 50;
         limit += limit < high ? high / 50 : 1 + high / 60) {
        struct kept got = {NULL, 0};
        struct rfx_error err = {""};
        mem = rfx_memory_create(0);
        options.most_bytes = limit;
        enum rfx_status status = run_map(mem, map, &options, &got, NULL, &err);
        assert_true(rfx_memory_high_water_bytes(mem) <= limit);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        if (status == RFX_OK) {
            assert_true(same_kept(&got, &want));
        } else {
            assert_int_equal(status, RFX_STATUS_BUDGET_IMPOSSIBLE);
            assert_true(limit < high);
            size_t needed = 0, allowed = 0;
            long long row = -1;
            assert_int_equal(
                sscanf(err.text, "regions: %zu bytes are needed at row %lld, %zu are allowed",
                       &needed, &row, &allowed),
                3);
            assert_true(needed > limit && allowed == limit && row >= 0 && row <= map->h);
            failed++;
        }
        free_kept(&got);
        rfx_memory_free(mem);
    }
    assert_true(failed > 0);
    options.most_bytes = high;
    mem = rfx_memory_create(0);
    struct kept got = {NULL, 0};
    assert_int_equal(run_map(mem, map, &options, &got, NULL, NULL), RFX_OK);
    assert_true(same_kept(&got, &want));
    rfx_memory_free(mem);
    free_kept(&got);
    free_kept(&want);
}

static void limits_are_kept(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 40; k++) {
        struct test_rng rng = test_rng_make(900 + k);
        struct map map = random_map(&rng, 120);
        struct rfx_regions_options options = random_options(&rng);
        if (k % 3 == 0) add_random_scores(&rng, &map);
        check_limits(&map, &options);
        free_map(&map);
    }
    struct map wide = comb(300, true, true);
    check_limits(&wide, &(struct rfx_regions_options){.connectivity = 8});
    free_map(&wide);
    struct map squares = make_map(130, 130);
    for (int64_t i = 0; i < 130 * 130; i++) squares.labels[i] = (i / 130 + i % 130) % 2;
    for (int connectivity = 4; connectivity <= 8; connectivity += 4)
        check_limits(&squares, &(struct rfx_regions_options){.connectivity = connectivity,
                                                             .has_background = true});
    free_map(&squares);
}

struct failing {
    const struct map *map;
    struct rfx_regions_options options;
};

static enum rfx_status build_regions(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct failing *failing = context;
    struct kept kept = {NULL, 0};
    enum rfx_status status = run_map(mem, failing->map, &failing->options, &kept, NULL, err);
    free_kept(&kept);
    return status;
}

static void failing_allocations_are_reported(void **state) {
    (void)state;
    for (uint64_t k = 0; k < 10; k++) {
        struct test_rng rng = test_rng_make(70 + k);
        struct map map = random_map(&rng, 90);
        struct failing failing = {&map, random_options(&rng)};
        failing.options.width = map.w;
        failing.options.scored = k % 2 == 0;
        if (failing.options.scored) add_random_scores(&rng, &map);
        assert_true(test_fail_each_allocation(build_regions, &failing) >= 4);
        free_map(&map);
    }
}

static enum rfx_status refuse(void *user, const struct rfx_region *region, struct rfx_error *err) {
    return --*(int *)user > 0
               ? RFX_OK
               : rfx_fail(err, RFX_STATUS_IO, "region of %lld", (long long)region->area);
}

static void status_of_take_ends_the_work(void **state) {
    (void)state;
    static const int64_t rows[3][6] = {{1, 1, 0, 2, 0, 3}, {0, 0, 0, 2, 0, 0}, {4, 4, 4, 4, 4, 4}};
    const struct rfx_regions_options options = {
        .width = 6, .connectivity = 4, .has_background = true};
    for (int k = 1; k <= 4; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_regions *regions = NULL;
        struct rfx_error err = {""};
        int left = k, y = 0;
        assert_int_equal(rfx_regions_create(mem, &options, refuse, &left, &regions, &err), RFX_OK);
        enum rfx_status status = RFX_OK;
        for (; y < 3 && status == RFX_OK; y++)
            status = rfx_regions_row(regions, rows[y], NULL, &err);
        if (status == RFX_OK) status = rfx_regions_end(regions, &err);
        assert_int_equal(status, RFX_STATUS_IO);
        assert_int_equal(left, 0);
        assert_int_equal(y, k <= 2 ? 2 : 3);
        assert_string_equal(err.text, k == 2   ? "region of 1"
                                      : k == 4 ? "region of 6"
                                               : "region of 2");
        rfx_regions_free(regions);
        rfx_memory_free(mem);
    }
    rfx_regions_free(NULL);
}

/* A region whose rings have 3,000 points, and one of rows that repeat: memory follows the corners.
 */
static void memory_follows_the_corners(void **state) {
    (void)state;
    const struct map maps[] = {spiral(3000), comb(3000, true, true), comb(3000, false, true)};
    for (int k = 0; k < 3; k++) {
        struct map map = maps[k];
        const struct rfx_regions_options options = {.width = map.w,
                                                    .connectivity = k == 1 ? 8 : 4,
                                                    .has_background = true,
                                                    .most_bytes = (size_t)1 << 20};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct kept kept = {NULL, 0};
        struct rfx_error err = {""};
        enum rfx_status status = run_map(mem, &map, &options, &kept, NULL, &err);
        if (status != RFX_OK) fprintf(stderr, "figure %d: %s\n", k, err.text);
        assert_int_equal(status, RFX_OK);
        assert_true(rfx_memory_high_water_bytes(mem) <= (size_t)1 << 20);
        assert_int_equal(kept.n, 1);
        assert_true(check_kept(&map, &options, &kept));
        free_kept(&kept);
        free_map(&map);
        rfx_memory_free(mem);
    }
}

/* Rows that repeat after `period`, so that the same numbers of regions are open again and again. */
static size_t high_water_of_rows(int64_t rows, int64_t period, int connectivity, bool scored) {
    struct test_rng rng = test_rng_make(31);
    struct map map = make_map(period, 200);
    for (int64_t i = 0; i < period * map.w; i++)
        map.labels[i] = i / map.w == 0 ? 0 : test_rng_int(&rng, 0, 2);
    add_random_scores(&rng, &map);
    const struct rfx_regions_options options = {
        .width = map.w, .connectivity = connectivity, .has_background = true, .scored = scored};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_regions *regions = NULL;
    struct kept kept = {NULL, 0};
    assert_int_equal(rfx_regions_create(mem, &options, keep, &kept, &regions, NULL), RFX_OK);
    for (int64_t y = 0; y < rows; y++)
        assert_int_equal(rfx_regions_row(regions, map.labels + y % period * map.w,
                                         map.scores + y % period * map.w, NULL),
                         RFX_OK);
    assert_int_equal(rfx_regions_end(regions, NULL), RFX_OK);
    size_t high = rfx_regions_high_water_bytes(regions);
    assert_int_equal(high, rfx_memory_high_water_bytes(mem));
    rfx_regions_free(regions);
    free_kept(&kept);
    free_map(&map);
    rfx_memory_free(mem);
    return high;
}

static void memory_is_used_again(void **state) {
    (void)state;
    for (int connectivity = 4; connectivity <= 8; connectivity += 4)
        for (int scored = 0; scored < 2; scored++)
            assert_int_equal(high_water_of_rows(60, 30, connectivity, scored != 0),
                             high_water_of_rows(600, 30, connectivity, scored != 0));
}

/* A column of rectangles with steps on both sides: 20 bytes for each rectangle until the region is
 * complete, then 72 more; and no more than the 20 bytes afterwards. */
static void memory_of_a_rectangle(void **state) {
    (void)state;
    enum { RECTANGLES = 40001, SPARE = 32768 };
    static const int64_t rows[3][4] = {{1, 1, 1, 1}, {0, 1, 1, 0}, {0, 0, 0, 0}};
    const struct rfx_regions_options options = {
        .width = 4, .connectivity = 4, .has_background = true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_regions *regions = NULL;
    struct kept kept = {NULL, 0};
    assert_int_equal(rfx_regions_create(mem, &options, keep, &kept, &regions, NULL), RFX_OK);
    for (int y = 0; y < RECTANGLES; y++)
        assert_int_equal(rfx_regions_row(regions, rows[y % 2], NULL, NULL), RFX_OK);
    assert_true(rfx_memory_high_water_bytes(mem) <= (size_t)20 * RECTANGLES + SPARE);
    assert_int_equal(rfx_regions_row(regions, rows[2], NULL, NULL), RFX_OK);
    assert_true(rfx_memory_high_water_bytes(mem) <= (size_t)92 * RECTANGLES + SPARE);
    assert_true(rfx_memory_current_bytes(mem) <= (size_t)20 * RECTANGLES + SPARE);
    assert_int_equal(kept.n, 1);
    assert_int_equal(kept.regions[0].rings[0].n, 4 * RECTANGLES);
    rfx_regions_free(regions);
    rfx_memory_free(mem);
    free_kept(&kept);
}

static void memory_of_a_wide_row(void **state) {
    (void)state;
    const struct map map = make_map(3, (int64_t)1 << 20);
    const struct rfx_regions_options options = {.width = map.w, .connectivity = 8};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct kept kept = {NULL, 0};
    assert_int_equal(run_map(mem, &map, &options, &kept, NULL, NULL), RFX_OK);
    assert_true(rfx_memory_high_water_bytes(mem) <= 32768);
    assert_int_equal(kept.n, 1);
    assert_true(check_kept(&map, &options, &kept));
    free_kept(&kept);
    rfx_memory_free(mem);
    free(map.labels);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_of_a_known_figure),
        cmocka_unit_test(all_small_maps_equal_flood_fill),
        cmocka_unit_test(random_maps_equal_flood_fill),
        cmocka_unit_test(figures_equal_flood_fill),
        cmocka_unit_test(scores_are_exact),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(failing_allocations_are_reported),
        cmocka_unit_test(status_of_take_ends_the_work),
        cmocka_unit_test(memory_follows_the_corners),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(memory_of_a_rectangle),
        cmocka_unit_test(memory_of_a_wide_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
