/* Makes the items, marks and axes of a placement's chart; see placement_chart.h. */
#include "tools/study/placement_chart.h"

#include <stdio.h>
#include <string.h>

#include "layers/graph/op.h"
#include "tiler/plan/splits.h"

/* MAX_DEPTH: parts of a name that are looked at. */
enum { MAX_KINDS = 8, MAX_DEPTH = 16 };

int rfx_step_name_length(const char *name, int depth) {
    int n = 0;
    for (; name[n] != '\0'; ++n) {
        /* a separator at the beginning ("/features/0") does not end a part */
        if (n > 0 && (name[n] == '.' || name[n] == '/') && --depth == 0) break;
    }
    return n;
}

/* Returns how many different neighbours there are when names are cut after `depth` parts: a run of
 * equal names counts once. */
static int count_runs(const char *const *names, int n, int depth) {
    int runs = 0, before = 0;
    for (int i = 0; i < n; ++i) {
        int length = rfx_step_name_length(names[i], depth);
        runs += i == 0 || length != before || strncmp(names[i], names[i - 1], (size_t)length) != 0;
        before = length;
    }
    return runs;
}

int rfx_step_name_depth(const char *const *names, int n, int most) {
    int depth = 0;
    while (depth < MAX_DEPTH && count_runs(names, n, depth + 1) <= most) ++depth;
    return depth;
}

enum {
    TEXT_CHARS = 200,
    NAME_CHARS = 60,
    MAX_TICS = 25,    /* names along the time axis: more would touch each other */
    TICS_ACROSS = 60, /* number of upright names that fill the axis */
    N_MARKS = 4,      /* series: alive at the peak, bound, arena, arrow */
    MAX_SERIES = MAX_KINDS + N_MARKS,
    SHORTER_NAMES = 3,
    LABEL_ROOM = (2 + SHORTER_NAMES) * (NAME_CHARS + 1) + 40,
};
/* Multiples of the arena's size. HEADROOM: upper end of the y axis, which leaves room for the arrow
 * and its label. ARROW: height of the arrow. */
static const double HEADROOM = 1.10, ARROW = 1.025;

/* A unit of bytes. */
struct unit {
    const char *name;
    double bytes;
};

struct peak {       /* when most bytes are alive */
    int64_t lo, hi; /* from lo to just before hi */
    int section;    /* of the problem */
};

struct rfx_placement_chart {
    struct rfx_memory *mem;
    struct rfx_chart chart;
    struct rfx_chart_series series[MAX_SERIES];
    double *corners;    /* [4, n] x, y, x_end, y_end, sorted by kind */
    double *frames;     /* [4, n] the same, of the items alive at the peak */
    const char **texts; /* [n] labels, sorted by kind */
    char *letters;      /* memory of the labels */
    const char **tics;  /* [n_steps] names along the time axis; NULL: not written */
    char *tic_letters;  /* memory of these names */
    double line_x[2], bound_y[2], arena_y[2], arrow[2];
    char title[TEXT_CHARS], subtitle[TEXT_CHARS], y_label[TEXT_CHARS];
    char bound_name[TEXT_CHARS], arena_name[TEXT_CHARS], arrow_text[TEXT_CHARS];
    const char *arrow_label[1];
};

static struct unit choose_unit(size_t bytes) {
    if (bytes >= (size_t)2 << 30) return (struct unit){"GiB", 1073741824.0};
    if (bytes >= (size_t)1 << 20) return (struct unit){"MiB", 1048576.0};
    if (bytes >= (size_t)10 << 10) return (struct unit){"KiB", 1024.0};
    return (struct unit){"bytes", 1.0};
}

/* Writes a number of bytes such as "5.742 MiB", with as many digits as the papers' tables have.
 * Returns `text`. */
static const char *amount(size_t bytes, char text[32]) {
    struct unit unit = choose_unit(bytes);
    (void)snprintf(text, 32, unit.bytes > 1.0 ? "%.3f %s" : "%.0f %s", (double)bytes / unit.bytes,
                   unit.name);
    return text;
}

/* Returns the time in which most bytes are alive: the first section of the largest breadth. */
static struct peak find_peak(const struct rfx_place_problem *problem) {
    struct peak peak = {INT64_MIN, INT64_MAX, 0};
    for (int s = 1; s < problem->n_sections; ++s)
        if (problem->breadth[s] > problem->breadth[peak.section]) peak.section = s;
    for (int i = 0; i < problem->n; ++i) {
        const struct rfx_place_item *item = &problem->items[i];
        /* the section lies between the nearest ends of lifetimes before and after it */
        if (problem->first[i] <= peak.section && item->lo > peak.lo) peak.lo = item->lo;
        if (problem->last[i] <= peak.section && item->hi > peak.lo) peak.lo = item->hi;
        if (problem->first[i] > peak.section && item->lo < peak.hi) peak.hi = item->lo;
        if (problem->last[i] > peak.section && item->hi < peak.hi) peak.hi = item->hi;
    }
    return peak;
}

/* Returns the x coordinate of a time. A step lies around its number, where its name stands. */
static double time_x(const struct rfx_placement_drawing *drawing, int64_t time) {
    return (double)time - (drawing->steps != NULL ? 0.5 : 0.0);
}

/* Returns whether an item is alive at the peak. */
static bool alive(const struct rfx_place_item *item, const struct peak *peak) {
    return item->lo < peak->hi && peak->lo < item->hi;
}

/* Writes the variants of a label, one a line, the longest first: name and size, the name, the name
 * without its first part, and so on. Returns the bytes written, the zero at the end included. */
static size_t put_label(char *to, size_t room, const char *name, size_t bytes) {
    char size[32];
    int used = snprintf(to, room, "%.*s  %s\n%.*s", NAME_CHARS, name, amount(bytes, size),
                        NAME_CHARS, name);
    const char *shorter = name;
    for (int k = 0; k < SHORTER_NAMES; ++k) {
        shorter += rfx_step_name_length(shorter, 1);
        if (*shorter == '\0' || 2 * strlen(++shorter) < strlen(name)) break;
        used += snprintf(to + used, room - (size_t)used, "\n%.*s", NAME_CHARS, shorter);
    }
    return (size_t)used + 1;
}

static enum rfx_status allocate(struct rfx_placement_chart *c,
                                const struct rfx_placement_drawing *drawing,
                                struct rfx_error *err) {
    size_t n = (size_t)drawing->problem->n, n_steps = (size_t)drawing->n_steps;
    c->corners = rfx_memory_calloc(c->mem, 4 * n, sizeof *c->corners);
    c->frames = rfx_memory_calloc(c->mem, 4 * n, sizeof *c->frames);
    c->texts = rfx_memory_calloc(c->mem, n, sizeof *c->texts);
    c->letters = rfx_memory_calloc(c->mem, n, LABEL_ROOM);
    if (c->corners == NULL || c->frames == NULL || c->texts == NULL || c->letters == NULL)
        return rfx_memory_fail(c->mem, "chart", n * LABEL_ROOM, err);
    if (drawing->steps == NULL) return RFX_OK;
    c->tics = rfx_memory_calloc(c->mem, n_steps, sizeof *c->tics);
    c->tic_letters = rfx_memory_calloc(c->mem, n_steps, NAME_CHARS + 1);
    if (c->tics == NULL || c->tic_letters == NULL)
        return rfx_memory_fail(c->mem, "chart", n_steps * (NAME_CHARS + 1), err);
    return RFX_OK;
}

/* Writes the corners of item i into the arrays x, y, x_end, y_end of n entries at `to`. */
static void put_box(const struct rfx_placement_drawing *drawing, int i, double *to) {
    const struct rfx_place_item *item = &drawing->problem->items[i];
    double unit = choose_unit(drawing->result->arena_bytes).bytes;
    size_t n = (size_t)drawing->problem->n;
    to[0] = time_x(drawing, item->lo);
    to[n] = (double)drawing->offsets[i] / unit;
    to[2 * n] = time_x(drawing, item->hi);
    to[3 * n] = (double)(drawing->offsets[i] + item->size) / unit;
}

/* Returns a series of `count` boxes whose corners begin at `from`. */
static struct rfx_chart_series box_series(const struct rfx_placement_drawing *drawing,
                                          const double *from, int count) {
    size_t n = (size_t)drawing->problem->n;
    return (struct rfx_chart_series){.style = RFX_CHART_BOXES,
                                     .n = count,
                                     .x = from,
                                     .y = from + n,
                                     .x_end = from + 2 * n,
                                     .y_end = from + 3 * n};
}

/* Appends a series of the items whose kind is `index`. used: number of items in the series before
 * it. Returns the number of its items. */
static int add_kind(struct rfx_placement_chart *c, const struct rfx_placement_drawing *drawing,
                    const struct rfx_placement_kind *kind, int index, int used,
                    const struct peak *peak, char **letters) {
    const struct rfx_place_problem *problem = drawing->problem;
    int count = 0;
    for (int i = 0; i < problem->n; ++i) {
        const struct rfx_place_item *item = &problem->items[i];
        int own = drawing->kinds != NULL ? drawing->kinds[i] : alive(item, peak) ? 0 : 1;
        if (own != index) continue;
        put_box(drawing, i, c->corners + used + count);
        c->texts[used + count++] = *letters;
        *letters += put_label(*letters, LABEL_ROOM, drawing->names[i], item->size);
    }
    if (count == 0) return 0;
    struct rfx_chart_series *series = &c->series[c->chart.n_series++];
    *series = box_series(drawing, c->corners + used, count);
    series->name = kind->name;
    series->labels = c->texts + used;
    series->color = kind->color;
    return count;
}

/* Adds a series for each kind of item. Without kinds, items alive at the peak and others differ. */
static void add_items(struct rfx_placement_chart *c, const struct rfx_placement_drawing *drawing,
                      const struct peak *peak) {
    static const struct rfx_placement_kind plain[] = {{"alive at the peak", 2}, {"others", 6}};
    bool given = drawing->kinds != NULL;
    const struct rfx_placement_kind *kind = given ? drawing->kind : plain;
    int n_kinds = given ? drawing->n_kinds : 2, used = 0;
    char *letters = c->letters;
    if (n_kinds > MAX_KINDS) n_kinds = MAX_KINDS;
    for (int k = 0; k < n_kinds; ++k)
        used += add_kind(c, drawing, &kind[k], k, used, peak, &letters);
}

/* Adds frames around the items that are alive at the peak, and the lines of lower bound and arena.
 */
static void add_marks(struct rfx_placement_chart *c, const struct rfx_placement_drawing *drawing,
                      const struct peak *peak) {
    size_t arena = drawing->result->arena_bytes, bound = drawing->problem->lower_bound;
    double unit = choose_unit(arena).bytes;
    char text[32];
    int count = 0;
    for (int i = 0; i < drawing->problem->n; ++i)
        if (alive(&drawing->problem->items[i], peak)) put_box(drawing, i, c->frames + count++);
    c->bound_y[0] = c->bound_y[1] = (double)bound / unit;
    c->arena_y[0] = c->arena_y[1] = (double)arena / unit;
    (void)snprintf(c->bound_name, TEXT_CHARS, "lower bound %s", amount(bound, text));
    (void)snprintf(c->arena_name, TEXT_CHARS, "arena %s", amount(arena, text));
    struct rfx_chart_series *frames = &c->series[c->chart.n_series++];
    *frames = box_series(drawing, c->frames, count);
    frames->style = RFX_CHART_FRAMES;
    frames->color = 7;
    if (drawing->kinds != NULL) frames->name = "alive at the peak";
    c->series[c->chart.n_series++] = (struct rfx_chart_series){.name = c->bound_name,
                                                               .style = RFX_CHART_LINES,
                                                               .n = 2,
                                                               .x = c->line_x,
                                                               .y = c->bound_y,
                                                               .color = 7,
                                                               .dashed = true};
    if (arena == bound) return;
    c->series[c->chart.n_series++] = (struct rfx_chart_series){.name = c->arena_name,
                                                               .style = RFX_CHART_LINES,
                                                               .n = 2,
                                                               .x = c->line_x,
                                                               .y = c->arena_y,
                                                               .color = 8};
}

/* Adds the arrow at the peak and its text. */
static void add_arrow(struct rfx_placement_chart *c, const struct rfx_placement_drawing *drawing,
                      const struct peak *peak) {
    char text[32];
    double x = (time_x(drawing, peak->lo) + time_x(drawing, peak->hi)) / 2;
    c->arrow[0] = x;
    c->arrow[1] = c->arena_y[0] * ARROW;
    c->arrow_label[0] = c->arrow_text;
    (void)amount(drawing->problem->lower_bound, text);
    if (drawing->steps != NULL)
        (void)snprintf(c->arrow_text, TEXT_CHARS, "peak: %s alive at %.*s", text, NAME_CHARS,
                       drawing->steps[peak->lo]);
    else
        (void)snprintf(c->arrow_text, TEXT_CHARS, "peak: %s alive from %lld to %lld", text,
                       (long long)peak->lo, (long long)peak->hi);
    c->series[c->chart.n_series++] =
        (struct rfx_chart_series){.style = RFX_CHART_ARROWS,
                                  .n = 1,
                                  .x = &c->arrow[0],
                                  .y = &c->arrow[1],
                                  .labels = c->arrow_label,
                                  .labels_before = x > (c->line_x[0] + c->line_x[1]) / 2,
                                  .color = 7};
}

/* Returns whether the name of the stage that begins at step `at` is written. It is not written when
 * it would touch the name of a longer stage, or of an equally long stage before it. length[n]:
 * steps of the stage that begins at each step; 0: no stage begins there. */
static bool is_written(const int *length, int n, int at) {
    for (int i = 0; i < n; ++i) {
        if (i == at || length[i] == 0) continue;
        int distance = i < at ? at - i : i - at;
        if (distance * TICS_ACROSS >= n) continue;
        if (length[i] > length[at] || (length[i] == length[at] && i < at)) return false;
    }
    return true;
}

/* Writes the name of each stage where the stage begins. A stage is a run of steps whose names begin
 * with the same parts. */
static enum rfx_status add_tics(struct rfx_placement_chart *c,
                                const struct rfx_placement_drawing *drawing,
                                struct rfx_error *err) {
    int n = drawing->n_steps, depth = rfx_step_name_depth(drawing->steps, n, MAX_TICS), stage = 0;
    int *length = rfx_memory_calloc(c->mem, (size_t)n, sizeof *length);
    if (length == NULL) return rfx_memory_fail(c->mem, "chart", (size_t)n, err);
    for (int i = 0; i < n; ++i) {
        char *name = c->tic_letters + i * (NAME_CHARS + 1);
        const char *step = drawing->steps[i];
        int letters = depth > 0 ? rfx_step_name_length(step, depth) : (int)strlen(step);
        (void)snprintf(name, NAME_CHARS + 1, "%.*s", letters, step);
        if (i == 0 || strcmp(name, c->tic_letters + stage * (NAME_CHARS + 1)) != 0) stage = i;
        length[stage]++;
    }
    for (int i = 0; i < n; ++i)
        if (length[i] > 0 && is_written(length, n, i))
            c->tics[i] = c->tic_letters + i * (NAME_CHARS + 1);
    rfx_memory_release(c->mem, length);
    c->chart.x = (struct rfx_chart_axis){
        .label = "operators in the order they run", .categories = c->tics, .n_categories = n};
    return RFX_OK;
}

static enum rfx_status add_axes(struct rfx_placement_chart *c,
                                const struct rfx_placement_drawing *drawing,
                                struct rfx_error *err) {
    struct unit unit = choose_unit(drawing->result->arena_bytes);
    const struct rfx_place_problem *problem = drawing->problem;
    int64_t lo = problem->items[0].lo, hi = problem->items[0].hi;
    for (int i = 1; i < problem->n; ++i) {
        if (problem->items[i].lo < lo) lo = problem->items[i].lo;
        if (problem->items[i].hi > hi) hi = problem->items[i].hi;
    }
    c->line_x[0] = drawing->steps != NULL ? -0.5 : (double)lo;
    c->line_x[1] = drawing->steps != NULL ? drawing->n_steps - 0.5 : (double)hi;
    c->chart.x = (struct rfx_chart_axis){.label = "time", .min = c->line_x[0], .max = c->line_x[1]};
    (void)snprintf(c->y_label, TEXT_CHARS, "address [%s]", unit.name);
    c->chart.y = (struct rfx_chart_axis){
        .label = c->y_label, .max = (double)drawing->result->arena_bytes / unit.bytes * HEADROOM};
    return drawing->steps != NULL ? add_tics(c, drawing, err) : RFX_OK;
}

static void add_title(struct rfx_placement_chart *c, const struct rfx_placement_drawing *drawing) {
    const struct rfx_packer_result *result = drawing->result;
    char arena[32], sum[32], bound[32];
    (void)snprintf(c->title, TEXT_CHARS, "%.80s: %d %.20s in %s", drawing->subject,
                   drawing->problem->n, drawing->items, amount(result->arena_bytes, arena));
    (void)amount(drawing->problem->sum_bytes, sum);
    if (result->optimal)
        (void)snprintf(c->subtitle, TEXT_CHARS,
                       "strategy %s; proven: no arena can be smaller. Without sharing: %s",
                       result->method, sum);
    else
        (void)snprintf(c->subtitle, TEXT_CHARS,
                       "strategy %s; proven lower bound %s. Without sharing: %s", result->method,
                       amount(result->lower_bound_bytes, bound), sum);
    c->chart.title = c->title;
    c->chart.subtitle = c->subtitle;
}

enum rfx_status rfx_placement_chart_create(struct rfx_memory *mem,
                                           const struct rfx_placement_drawing *drawing,
                                           struct rfx_placement_chart **out,
                                           struct rfx_error *err) {
    if (drawing->problem->n == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: no %s to draw", drawing->subject,
                        drawing->items);
    struct rfx_placement_chart *c = rfx_memory_calloc(mem, 1, sizeof *c);
    if (c == NULL) return rfx_memory_fail(mem, "chart", sizeof *c, err);
    c->mem = mem;
    enum rfx_status status = allocate(c, drawing, err);
    if (status == RFX_OK) status = add_axes(c, drawing, err);
    if (status != RFX_OK) {
        rfx_placement_chart_free(c);
        return status;
    }
    struct peak peak = find_peak(drawing->problem);
    c->chart.series = c->series;
    add_title(c, drawing);
    add_items(c, drawing, &peak);
    add_marks(c, drawing, &peak);
    add_arrow(c, drawing, &peak);
    *out = c;
    return RFX_OK;
}

const struct rfx_chart *rfx_placement_chart_get(const struct rfx_placement_chart *chart) {
    return &chart->chart;
}

void rfx_placement_chart_free(struct rfx_placement_chart *chart) {
    if (chart == NULL) return;
    struct rfx_memory *mem = chart->mem;
    rfx_memory_release(mem, chart->tic_letters);
    rfx_memory_release(mem, chart->tics);
    rfx_memory_release(mem, chart->letters);
    rfx_memory_release(mem, chart->texts);
    rfx_memory_release(mem, chart->frames);
    rfx_memory_release(mem, chart->corners);
    rfx_memory_release(mem, chart);
}

enum rfx_status rfx_placement_chart_write(struct rfx_memory *mem,
                                          const struct rfx_placement_drawing *drawing,
                                          const char *path, struct rfx_error *err) {
    struct rfx_placement_chart *chart = NULL;
    enum rfx_status status = rfx_placement_chart_create(mem, drawing, &chart, err);
    if (status == RFX_OK) status = rfx_chart_write(&chart->chart, mem, path, err);
    rfx_placement_chart_free(chart);
    return status;
}

enum { SUBJECT_CHARS = 120 };

enum kind { POINTWISE, DEPTHWISE, CONVOLUTION, POOLING, JOIN, ELEMENTWISE, OTHER, KIND_COUNT };

/* Kinds of operators and their colours, which are the same in the charts of all networks. */
static const struct rfx_placement_kind operator_kinds[] = {
    {"1x1 convolution", 6},      {"depthwise, grouped", 5}, {"convolution", 1}, {"pooling", 3},
    {"sum, product, concat", 4}, {"norm, activation", 2},   {"other", 8},
};
_Static_assert(sizeof operator_kinds / sizeof operator_kinds[0] == KIND_COUNT, "one row per kind");

bool rfx_memory_is_step(const struct rfx_graph *graph, int node) {
    const struct rfx_node *n = &graph->nodes[node];
    return !rfx_node_is_input(n) && !rfx_node_is_constant(n) && !rfx_node_is_joined(n);
}

static enum kind conv_kind(const struct rfx_conv_attr *conv) {
    if (conv->groups > 1) return DEPTHWISE;
    return conv->kh == 1 && conv->kw == 1 ? POINTWISE : CONVOLUTION;
}

static enum kind node_kind(const struct rfx_node *node) {
    switch (rfx_op_def(node->op)->kind) {
        case RFX_CLASS_CONVOLUTION:
            return conv_kind(&node->attr.conv);
        case RFX_CLASS_POOLING:
            return POOLING;
        case RFX_CLASS_JOIN:
            return JOIN;
        case RFX_CLASS_ELEMENTWISE:
            return ELEMENTWISE;
        case RFX_CLASS_OTHER:
            break;
    }
    return OTHER;
}

enum rfx_status rfx_memory_chart(struct rfx_memory *mem,
                                 const struct rfx_memory_placement *placement, const char *path,
                                 struct rfx_error *err) {
    const struct rfx_graph *graph = placement->graph;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    size_t n = (size_t)placement->problem->n, n_nodes = (size_t)graph->n_nodes;
    char subject[SUBJECT_CHARS];
    const char **names = rfx_memory_calloc(mem, n + n_nodes, sizeof *names);
    int *of_kind = rfx_memory_calloc(mem, n, sizeof *of_kind);
    enum rfx_status status = RFX_OK;
    if (names == NULL || of_kind == NULL) {
        status = rfx_memory_fail(mem, "chart", (n + n_nodes) * sizeof *names, err);
        goto done;
    }
    const char **steps = names + n;
    int n_steps = 0;
    for (int i = 0; i < graph->n_nodes; ++i)
        if (rfx_memory_is_step(graph, i)) steps[n_steps++] = rfx_split_label(graph, i);
    for (size_t i = 0; i < n; ++i) {
        names[i] = rfx_split_label(graph, placement->nodes[i]);
        of_kind[i] = (int)node_kind(&graph->nodes[placement->nodes[i]]);
    }
    (void)snprintf(subject, sizeof subject, "%.80s, %lldx%lld", placement->model, (long long)in->h,
                   (long long)in->w);
    struct rfx_placement_drawing drawing = {.subject = subject,
                                            .items = "tensors",
                                            .problem = placement->problem,
                                            .offsets = placement->offsets,
                                            .result = &placement->result,
                                            .names = names,
                                            .kinds = of_kind,
                                            .kind = operator_kinds,
                                            .n_kinds = KIND_COUNT,
                                            .steps = steps,
                                            .n_steps = n_steps};
    status = rfx_placement_chart_write(mem, &drawing, path, err);
done:
    rfx_memory_release(mem, of_kind);
    rfx_memory_release(mem, names);
    return status;
}
