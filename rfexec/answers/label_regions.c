/* Runs of a row, joined with those of the row above: components by sides, groups of components by
 * corners. Each component is a list of rectangles; all that a region is known by follows from them
 * when it is complete, but for scores.
 *
 * Components are merged by union-find. Two finds stand in one entry: `parent` leads to the
 * component that an entry was merged with, `group` to the root of its region, which is never a
 * merged entry. At the end of a row all runs of the row are resolved to roots, so that merged
 * entries are free again. With connectivity 4, every component is its own group. */
#include "rfexec/answers/label_regions.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/kernels/exact_sum.h"
#include "rfexec/answers/region_rings.h"
#include "rfexec/answers/region_simplify.h"
#include "rfexec/answers/region_store.h"
#include "rfexec/answers/region_totals.h"

/* Pixels of one component whose scores are added without overflow (exact_sum.h). */
#define MOST_SCORED ((int64_t)1 << 40)

struct run { /* columns [x0, x1) of a row */
    int64_t label;
    int32_t x0, x1;
    int32_t component;
    int32_t rectangle; /* RFX_REGION_NONE: a run below continues it */
};

struct run_list {
    struct run *runs;
    int64_t n, capacity;
};

struct entry_list {
    int32_t first, last;
};

struct rfx_regions {
    struct rfx_regions_options options;
    rfx_region_fn *take;
    void *user;
    struct rfx_region_memory memory;
    struct rfx_region_pool components, rectangles;
    struct rfx_region_rings rings;
    struct run_list above, here;
    int64_t n_continued;       /* runs of `above` that continue in `here` */
    struct entry_list retired; /* components that are free at the end of the row */
};

/* Components lie before their sums of scores. */
enum { SUM_OFFSET = (sizeof(struct rfx_region_component) + 7) / 8 * 8 };

enum rfx_status rfx_regions_create(struct rfx_memory *mem,
                                   const struct rfx_regions_options *options, rfx_region_fn *take,
                                   void *user, struct rfx_regions **out, struct rfx_error *err) {
    assert(options->width > 0 && options->width <= INT32_MAX);
    assert(options->tolerance >= 0.0 && options->tolerance <= RFX_REGION_MOST_TOLERANCE);
    assert(options->connectivity == 4 || options->connectivity == 8);
    struct rfx_region_memory memory = {.mem = mem, .most_bytes = options->most_bytes};
    void *block;
    enum rfx_status status = rfx_region_allocate(&memory, sizeof(struct rfx_regions), &block, err);
    if (status != RFX_OK) return status;
    struct rfx_regions *regions = block;
    *regions = (struct rfx_regions){.options = *options,
                                    .take = take,
                                    .user = user,
                                    .memory = memory,
                                    .retired = {RFX_REGION_NONE, RFX_REGION_NONE}};
    rfx_region_pool_init(&regions->rectangles, sizeof(struct rfx_region_rectangle));
    rfx_region_pool_init(&regions->components, options->scored
                                                   ? SUM_OFFSET + rfx_exact_sum_bytes(1)
                                                   : sizeof(struct rfx_region_component));
    *out = regions;
    return RFX_OK;
}

void rfx_regions_free(struct rfx_regions *regions) {
    if (regions == NULL) return;
    struct rfx_region_memory *memory = &regions->memory;
    rfx_region_pool_release(memory, &regions->rectangles);
    rfx_region_pool_release(memory, &regions->components);
    rfx_region_rings_release(memory, &regions->rings);
    rfx_region_release(memory, regions->above.runs,
                       (size_t)regions->above.capacity * sizeof(struct run));
    rfx_region_release(memory, regions->here.runs,
                       (size_t)regions->here.capacity * sizeof(struct run));
    assert(memory->used_bytes == sizeof *regions);
    rfx_memory_release(memory->mem, regions);
}

size_t rfx_regions_high_water_bytes(const struct rfx_regions *regions) {
    return regions->memory.high_water_bytes;
}

static struct rfx_region_component *component_at(const struct rfx_regions *regions, int32_t i) {
    return rfx_region_component_at(&regions->components, i);
}

static struct rfx_region_rectangle *rectangle_at(const struct rfx_regions *regions, int32_t i) {
    return rfx_region_rectangle_at(&regions->rectangles, i);
}

static struct rfx_exact_sum *sum_of(const struct rfx_regions *regions, int32_t component) {
    return (struct rfx_exact_sum *)(void *)((char *)component_at(regions, component) + SUM_OFFSET);
}

static bool joins_corners(const struct rfx_regions *regions) {
    return regions->options.connectivity == 8;
}

/* Scores as integers of the same order, +0 above -0; NaN: NO_SCORE, below all others. */
#define NO_SCORE INT32_MIN

static int32_t key_of_score(float score) {
    int32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return isnan(score) ? NO_SCORE : bits ^ (bits < 0 ? INT32_MAX : 0);
}

static float score_of_key(int32_t key) {
    int32_t bits = key ^ (key < 0 ? INT32_MAX : 0);
    float score;
    memcpy(&score, &bits, sizeof score);
    return key == NO_SCORE ? (float)NAN : score;
}

static void add_scores(struct rfx_regions *regions, int32_t component, const float *scores,
                       int64_t n) {
    int32_t largest = component_at(regions, component)->largest;
    for (int64_t i = 0; i < n; i++) {
        int32_t key = key_of_score(scores[i]);
        largest = key > largest ? key : largest;
    }
    component_at(regions, component)->largest = largest;
    rfx_exact_sum_add(sum_of(regions, component), scores, n);
}

/* Adds the scores of one component to those of another. */
static void merge_scores(struct rfx_regions *regions, int32_t to, int32_t from) {
    int32_t *largest = &component_at(regions, to)->largest;
    if (!regions->options.scored) return;
    if (component_at(regions, from)->largest > *largest)
        *largest = component_at(regions, from)->largest;
    rfx_exact_sum_merge(sum_of(regions, to), sum_of(regions, from));
}

/* Returns the component that `i` was merged with. */
static int32_t find_component(const struct rfx_regions *regions, int32_t i) {
    int32_t *parent = &component_at(regions, i)->parent;
    while (*parent != i) {
        i = *parent = component_at(regions, *parent)->parent;
        parent = &component_at(regions, i)->parent;
    }
    return i;
}

/* Returns the root of the region of component `i`. */
static int32_t find_group(const struct rfx_regions *regions, int32_t i) {
    int32_t *group = &component_at(regions, i)->group;
    while (*group != i) {
        i = *group = component_at(regions, *group)->group;
        group = &component_at(regions, i)->group;
    }
    return i;
}

/* Makes one ring of components of two, or two of one if both components are in it. */
static void splice(struct rfx_regions *regions, int32_t a, int32_t b) {
    int32_t *next_a = &component_at(regions, a)->next, *next_b = &component_at(regions, b)->next;
    int32_t after_a = *next_a;
    *next_a = *next_b;
    *next_b = after_a;
    component_at(regions, *next_a)->previous = a;
    component_at(regions, *next_b)->previous = b;
}

static void join_groups(struct rfx_regions *regions, int32_t a, int32_t b) {
    int32_t to = find_group(regions, a), from = find_group(regions, b);
    if (to == from) return;
    component_at(regions, from)->group = to;
    splice(regions, to, from);
}

/* Frees a list of components at the end of the row. Until then, runs of the row above lead there.
 */
static void retire(struct rfx_regions *regions, int32_t first, int32_t last) {
    struct entry_list *retired = &regions->retired;
    component_at(regions, last)->next = retired->first;
    if (retired->first == RFX_REGION_NONE) retired->last = last;
    retired->first = first;
}

/* Takes `from`, which is being merged with `to` of the same region, out of the region. */
static void leave_group(struct rfx_regions *regions, int32_t from, int32_t to) {
    struct rfx_region_component *leaving = component_at(regions, from);
    if (leaving->group == from)
        leaving->group = component_at(regions, to)->group = to; /* the root is never merged */
    splice(regions, leaving->previous, from);
}

/* Merges two components, given by any of their entries, and returns the root. */
static int32_t join_components(struct rfx_regions *regions, int32_t a, int32_t b) {
    int32_t to = find_component(regions, a), from = find_component(regions, b);
    if (to == from) return to;
    if (joins_corners(regions)) {
        join_groups(regions, to, from);
        leave_group(regions, from, to);
    }
    struct rfx_region_component *kept = component_at(regions, to);
    struct rfx_region_component *merged = component_at(regions, from);
    merged->parent = to;
    rectangle_at(regions, kept->last)->next = merged->first;
    kept->last = merged->last;
    merge_scores(regions, to, from);
    retire(regions, from, from);
    return to;
}

static enum rfx_status make_component(struct rfx_regions *regions, int32_t *out,
                                      struct rfx_error *err) {
    int32_t i;
    enum rfx_status status = rfx_region_pool_take(&regions->memory, &regions->components, &i, err);
    if (status != RFX_OK) return status;
    *component_at(regions, i) = (struct rfx_region_component){.next = i,
                                                              .previous = i,
                                                              .parent = i,
                                                              .group = i,
                                                              .first = RFX_REGION_NONE,
                                                              .last = RFX_REGION_NONE,
                                                              .seen = -1,
                                                              .largest = NO_SCORE};
    if (regions->options.scored) (void)rfx_exact_sum_reset(sum_of(regions, i), 1);
    *out = i;
    return RFX_OK;
}

static enum rfx_status begin_rectangle(struct rfx_regions *regions, struct run *run,
                                       struct rfx_error *err) {
    int32_t i;
    enum rfx_status status = rfx_region_pool_take(&regions->memory, &regions->rectangles, &i, err);
    if (status != RFX_OK) return status;
    *rectangle_at(regions, i) = (struct rfx_region_rectangle){
        .next = RFX_REGION_NONE, .x0 = run->x0, .x1 = run->x1, .y0 = (int32_t)regions->memory.row};
    struct rfx_region_component *component = component_at(regions, run->component);
    if (component->last == RFX_REGION_NONE)
        component->first = i;
    else
        rectangle_at(regions, component->last)->next = i;
    component->last = run->rectangle = i;
    return RFX_OK;
}

/* Makes room for another run. Near the limit the list grows by little. */
static enum rfx_status reserve_run(struct rfx_regions *regions, struct rfx_error *err) {
    struct run_list *list = &regions->here;
    if (list->n < list->capacity) return RFX_OK;
    int64_t more = rfx_max_i64(64, list->capacity / 2), capacity;
    void *grown;
    enum rfx_status status;
    do {
        capacity = rfx_min_i64(list->capacity + more, regions->options.width);
        status = rfx_region_allocate(&regions->memory, (size_t)capacity * sizeof(struct run),
                                     &grown, err);
        more /= 4;
    } while (status == RFX_STATUS_BUDGET_IMPOSSIBLE && more >= 64);
    if (status != RFX_OK) return status;
    if (list->n > 0) memcpy(grown, list->runs, (size_t)list->n * sizeof(struct run));
    rfx_region_release(&regions->memory, list->runs, (size_t)list->capacity * sizeof(struct run));
    list->runs = grown;
    list->capacity = capacity;
    return RFX_OK;
}

/* Joins the run with the runs of its label above it, from run `first` on: those that share a side
 * with it, and then those that only touch a corner of it. Continues a rectangle if it can. */
static enum rfx_status join_above(struct rfx_regions *regions, struct run *run, int64_t first,
                                  struct rfx_error *err) {
    struct run *corners[2];
    int n_corners = 0;
    struct run *end = regions->above.runs + regions->above.n;
    for (struct run *above = regions->above.runs + first; above < end && above->x0 <= run->x1;
         above++) {
        if (above->label != run->label) continue;
        if (above->x1 == run->x0 || above->x0 == run->x1) {
            corners[n_corners++] = above;
            continue;
        }
        run->component = run->component == RFX_REGION_NONE
                             ? find_component(regions, above->component)
                             : join_components(regions, run->component, above->component);
        if (above->x0 != run->x0 || above->x1 != run->x1) continue;
        run->rectangle = above->rectangle;
        above->rectangle = RFX_REGION_NONE;
        regions->n_continued++;
    }
    enum rfx_status status = RFX_OK;
    if (run->component == RFX_REGION_NONE) status = make_component(regions, &run->component, err);
    for (int i = 0; joins_corners(regions) && i < n_corners && status == RFX_OK; i++)
        join_groups(regions, run->component, find_component(regions, corners[i]->component));
    if (run->rectangle == RFX_REGION_NONE && status == RFX_OK)
        status = begin_rectangle(regions, run, err);
    return status;
}

/* Two labels, for a processor that compares them at once. */
typedef int64_t label_pair __attribute__((vector_size(16)));

/* Returns the bits in which the pair of labels at `at` differs. */
static inline label_pair differences_of(const int64_t *at, label_pair labels) {
    label_pair pair;
    memcpy(&pair, at, sizeof pair);
    return pair ^ labels;
}

/* Returns the end of the run of equal labels that begins at column x. */
static int64_t run_end(const int64_t *labels, int64_t x, int64_t width) {
    enum { BLOCK = 8 };
    const int64_t label = labels[x];
    const label_pair both = {label, label};
    if (++x < width && labels[x] != label) return x;
    for (; x + BLOCK <= width; x += BLOCK) {
        label_pair differences =
            differences_of(labels + x, both) | differences_of(labels + x + 2, both) |
            differences_of(labels + x + 4, both) | differences_of(labels + x + 6, both);
        if ((differences[0] | differences[1]) != 0) break;
    }
    while (x < width && labels[x] == label) x++;
    return x;
}

/* Makes the runs of a row and joins them with those above. */
static enum rfx_status add_runs(struct rfx_regions *regions, const int64_t *labels,
                                const float *scores, struct rfx_error *err) {
    const struct rfx_regions_options *options = &regions->options;
    const struct run_list *above = &regions->above;
    int64_t i = 0, end;
    for (int64_t x = 0; x < options->width; x = end) {
        end = run_end(labels, x, options->width);
        if (options->has_background && labels[x] == options->background) continue;
        while (i < above->n && above->runs[i].x1 < x) i++;
        enum rfx_status status = reserve_run(regions, err);
        if (status != RFX_OK) return status;
        struct run *run = &regions->here.runs[regions->here.n];
        *run = (struct run){labels[x], (int32_t)x, (int32_t)end, RFX_REGION_NONE, RFX_REGION_NONE};
        status = join_above(regions, run, i, err);
        if (status != RFX_OK) return status;
        regions->here.n++;
        if (options->scored) add_scores(regions, run->component, scores + x, end - x);
    }
    return RFX_OK;
}

/* ---- junctions ---- */

/* Stands for what is outside the map. */
static const struct run outside;

/* A row of runs, or what is outside; `next` is the first run that does not end before a column. */
struct row_view {
    const struct run_list *list; /* NULL: outside the map */
    int64_t next;
};

/* Returns the run at column x; NULL: the background. Columns must not fall from call to call. */
static const struct run *run_at(struct row_view *row, int64_t x, int64_t width) {
    if (row->list == NULL || x < 0 || x == width) return &outside;
    while (row->next < row->list->n && row->list->runs[row->next].x1 <= x) row->next++;
    if (row->next == row->list->n || row->list->runs[row->next].x0 > x) return NULL;
    return &row->list->runs[row->next];
}

/* Returns the first column behind x where a run begins or ends. */
static int64_t next_end(const struct row_view *row, int64_t x, int64_t width) {
    if (row->list == NULL) return width;
    for (int64_t i = row->next; i < row->list->n; i++) {
        if (row->list->runs[i].x0 > x) return row->list->runs[i].x0;
        if (row->list->runs[i].x1 > x) return row->list->runs[i].x1;
    }
    return width;
}

static bool differ(const struct run *a, const struct run *b) {
    if (a == b) return false;
    return a == NULL || b == NULL || a == &outside || b == &outside || a->label != b->label;
}

/* Adds a junction to each component around it. */
static enum rfx_status add_junction(struct rfx_regions *regions, const struct run *const around[4],
                                    int64_t x, struct rfx_error *err) {
    int32_t components[4];
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < 4 && status == RFX_OK; i++) {
        const struct run *run = around[i];
        bool any = run != NULL && run != &outside;
        components[i] = any ? find_component(regions, run->component) : RFX_REGION_NONE;
        for (int k = 0; k < i; k++) any &= components[k] != components[i];
        if (!any) continue;
        struct run place = {.x0 = (int32_t)x, .x1 = (int32_t)x, .component = components[i]};
        status = begin_rectangle(regions, &place, err);
        if (status == RFX_OK)
            rectangle_at(regions, place.rectangle)->y1 = (int32_t)regions->memory.row;
    }
    return status;
}

/* Adds the junctions of the line between two rows. last: the lower one is outside the map. */
static enum rfx_status add_junctions(struct rfx_regions *regions, bool last,
                                     struct rfx_error *err) {
    int64_t width = regions->options.width;
    /* Views of the columns before and behind each place. */
    struct row_view above[2] = {{regions->memory.row > 0 ? &regions->above : NULL, 0}};
    struct row_view here[2] = {{last ? NULL : &regions->here, 0}};
    above[1] = above[0];
    here[1] = here[0];
    enum rfx_status status = RFX_OK;
    for (int64_t x = 0, next; status == RFX_OK; x = next) {
        const struct run *const around[4] = {
            run_at(&above[0], x - 1, width), run_at(&above[1], x, width),
            run_at(&here[1], x, width), run_at(&here[0], x - 1, width)};
        int sides = 0;
        for (int i = 0; i < 4; i++) sides += differ(around[i], around[(i + 1) % 4]);
        if (sides > 2) status = add_junction(regions, around, x, err);
        if (x == width) break;
        int64_t a = next_end(&above[1], x, width), b = next_end(&here[1], x, width);
        next = a < b ? a : b;
    }
    return status;
}

/* Adds up the rectangles of a list of components, whose scores are added to the first. */
static struct rfx_region_totals add_up(struct rfx_regions *regions, int32_t first) {
    struct rfx_region_totals totals = {.area = 0};
    for (int32_t i = first; i != RFX_REGION_NONE; i = component_at(regions, i)->next) {
        for (int32_t k = component_at(regions, i)->first, next; k != RFX_REGION_NONE; k = next) {
            const struct rfx_region_rectangle *r = rectangle_at(regions, k);
            rfx_region_totals_add(&totals, rfx_rect_make(r->y0, r->y1, r->x0, r->x1));
            next = r->next;
        }
        if (i != first) merge_scores(regions, first, i);
    }
    return totals;
}

static enum rfx_status fail_scores(const struct rfx_region_totals *totals, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "regions: the region in rows %lld to %lld has %lld pixels; scores of at most "
                    "%lld pixels can be added",
                    (long long)totals->box.y0, (long long)totals->box.y1 - 1,
                    (long long)totals->area, (long long)MOST_SCORED);
}

/* Makes the rings, and sets what their points count. */
static enum rfx_status make_rings(struct rfx_regions *regions, int32_t *first, double *unit,
                                  struct rfx_error *err) {
    const struct rfx_region_pool *components = &regions->components, *pool = &regions->rectangles;
    double tolerance = regions->options.tolerance;
    int32_t junctions = RFX_REGION_NONE;
    if (tolerance > 0.0) junctions = rfx_region_junctions_take(components, pool, *first);
    enum rfx_status status =
        rfx_region_rings_make(&regions->memory, components, pool, first, &regions->rings, err);
    if (status != RFX_OK || !(tolerance > 0.0)) return status;
    *unit = 0.5;
    status =
        rfx_region_simplify(&regions->memory, pool, &junctions, tolerance, &regions->rings, err);
    rfx_region_junctions_give(components, pool, *first, junctions);
    return status;
}

/* Passes on the region of a list of components; *first is the list's new head. */
static enum rfx_status pass_on(struct rfx_regions *regions, int64_t label, int32_t *first,
                               struct rfx_error *err) {
    const struct rfx_region_totals totals = add_up(regions, *first);
    if (totals.area < regions->options.least_area) return RFX_OK;
    struct rfx_region region = {.label = label,
                                .area = totals.area,
                                .box = totals.box,
                                .unit = 1.0,
                                .centroid = {rfx_region_mean(totals.twice_x, totals.area),
                                             rfx_region_mean(totals.twice_y, totals.area)}};
    if (regions->options.scored) {
        if (totals.area > MOST_SCORED) return fail_scores(&totals, err);
        region.mean_score = rfx_exact_sum_total(sum_of(regions, *first), 0) / (double)totals.area;
        region.largest_score = score_of_key(component_at(regions, *first)->largest);
    }
    enum rfx_status status = make_rings(regions, first, &region.unit, err);
    if (status == RFX_OK) {
        memcpy(region.edges, regions->rings.edges, sizeof region.edges);
        region.rings = regions->rings.rings.block;
        region.n_rings = regions->rings.n_rings;
        status = regions->take(regions->user, &region, err);
    }
    rfx_region_rings_trim(&regions->memory, &regions->rings);
    return status;
}

/* Passes on and frees the region of root `group`. */
static enum rfx_status complete(struct rfx_regions *regions, int64_t label, int32_t group,
                                struct rfx_error *err) {
    int32_t first = group, last = RFX_REGION_NONE;
    component_at(regions, component_at(regions, group)->previous)->next = RFX_REGION_NONE;
    enum rfx_status status = pass_on(regions, label, &first, err);
    for (int32_t i = first; i != RFX_REGION_NONE; i = component_at(regions, i)->next) {
        int32_t end = component_at(regions, i)->first, next;
        while ((next = rectangle_at(regions, end)->next) != RFX_REGION_NONE) end = next;
        rfx_region_pool_give(&regions->rectangles, component_at(regions, i)->first, end);
        last = i;
    }
    retire(regions, first, last);
    return status;
}

/* Resolves the runs of the row to roots, and marks their regions with the row. */
static void resolve_runs(struct rfx_regions *regions, int32_t row) {
    for (int64_t i = 0; i < regions->here.n; i++) {
        struct run *run = &regions->here.runs[i];
        run->component = find_component(regions, run->component);
        int32_t group = find_group(regions, run->component);
        component_at(regions, run->component)->group = group;
        component_at(regions, group)->seen = row;
    }
}

/* Completes the regions that have runs in the row above only. */
static enum rfx_status complete_regions(struct rfx_regions *regions, int32_t row,
                                        struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < regions->above.n; i++) {
        const struct run *run = &regions->above.runs[i];
        if (run->rectangle != RFX_REGION_NONE)
            rectangle_at(regions, run->rectangle)->y1 = (int32_t)regions->memory.row;
    }
    for (int64_t i = 0; i < regions->above.n && status == RFX_OK; i++) {
        const struct run *run = &regions->above.runs[i];
        int32_t group = find_group(regions, find_component(regions, run->component));
        if (component_at(regions, group)->seen == row) continue;
        component_at(regions, group)->seen = row;
        status = complete(regions, run->label, group, err);
    }
    return status;
}

/* Ends a row, given its runs. If all runs of the row above continue, no region is complete, and
 * none was joined with another: every other run of the row has other labels above it and above its
 * corners. */
static enum rfx_status end_row(struct rfx_regions *regions, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (regions->n_continued != regions->above.n) {
        int32_t row = (int32_t)regions->memory.row;
        resolve_runs(regions, row);
        status = complete_regions(regions, row, err);
        if (regions->retired.first != RFX_REGION_NONE)
            rfx_region_pool_give(&regions->components, regions->retired.first,
                                 regions->retired.last);
        regions->retired.first = RFX_REGION_NONE;
    }
    const struct run_list above = regions->above;
    regions->above = regions->here;
    regions->here = above;
    regions->here.n = regions->n_continued = 0;
    return status;
}

enum rfx_status rfx_regions_row(struct rfx_regions *regions, const int64_t *labels,
                                const float *scores, struct rfx_error *err) {
    bool halves = regions->options.tolerance > 0.0;
    int64_t most = halves ? RFX_REGION_MOST_SIMPLIFIED : INT32_MAX;
    if (regions->memory.row == most || (halves && regions->options.width > most))
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "regions: the map has more than %lld rows or columns", (long long)most);
    enum rfx_status status = add_runs(regions, labels, scores, err);
    if (status == RFX_OK && regions->options.tolerance > 0.0)
        status = add_junctions(regions, false, err);
    if (status == RFX_OK) status = end_row(regions, err);
    if (status == RFX_OK) regions->memory.row++;
    return status;
}

enum rfx_status rfx_regions_end(struct rfx_regions *regions, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    regions->here.n = 0;
    if (regions->options.tolerance > 0.0) status = add_junctions(regions, true, err);
    return status == RFX_OK ? end_row(regions, err) : status;
}
