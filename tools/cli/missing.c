/* Finds the marks in one pass over the rows of the image. For each image row the pass finds the
 * output columns whose receptive fields contain a missing pixel of that row. Those columns are then
 * marked in every output row whose receptive field contains the image row. */
#include "tools/cli/missing.h"

#include <math.h>

#include "layers/core/checked.h"
#include "rf_analysis/analysis.h"
#include "rf_analysis/grid.h"

/* State while the image is read. */
struct finding {
    struct rfx_missing *missing;
    const struct rfx_graph *graph;
    struct rfx_range *fields; /* receptive fields: of each map its rows, then its columns */
    struct rfx_range *nodes;  /* scratch of rfx_field_at, one range for each node */
    int64_t *before;     /* before[x]: missing pixels of the row in columns [0, x); w + 1 entries */
    float *pixels;       /* a row of the image */
    unsigned char *wide; /* a row of marks of an output */
    int64_t h, w, c;     /* of the image */
    bool middle;
};

void rfx_missing_release(struct rfx_missing *missing) {
    if (missing->mem == NULL) return;
    for (int k = 0; missing->maps != NULL && k < missing->n; k++)
        rfx_memory_release(missing->mem, missing->maps[k].bits);
    rfx_memory_release(missing->mem, missing->maps);
    rfx_memory_release(missing->mem, missing->row);
    *missing = (struct rfx_missing){0};
}

size_t rfx_missing_bytes(const struct rfx_missing *missing) {
    size_t bytes = (size_t)missing->n * sizeof *missing->maps + missing->row_bytes;
    for (int k = 0; k < missing->n; k++)
        bytes += (size_t)missing->maps[k].h * missing->maps[k].row_bytes;
    return bytes;
}

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int k) {
    return &graph->nodes[graph->outputs[k].node].out;
}

static void measure(struct finding *f) {
    struct rfx_missing *m = f->missing;
    for (int k = 0; k < m->n; k++) {
        const struct rfx_tensor *t = tensor_of(f->graph, k);
        if (t->layout != RFX_LAYOUT_NHWC) continue;
        m->maps[k].h = t->h;
        m->maps[k].w = t->w;
        m->maps[k].row_bytes = (size_t)rfx_ceil_div(t->w, 8);
        size_t row = (size_t)(t->w * t->c) * sizeof *m->row;
        m->row_bytes = row > m->row_bytes ? row : m->row_bytes;
    }
}

/* Allocates all buffers and the marks. BUDGET_IMPOSSIBLE: together with reading_bytes, the bytes
 * that reading the image takes, they exceed most_bytes. */
static enum rfx_status make_room(struct finding *f, size_t reading_bytes, size_t most_bytes,
                                 struct rfx_error *err) {
    struct rfx_missing *m = f->missing;
    size_t sides = 0, widest = 1;
    for (int k = 0; k < m->n; k++) {
        sides += (size_t)(m->maps[k].h + m->maps[k].w);
        widest = m->maps[k].row_bytes > widest ? m->maps[k].row_bytes : widest;
    }
    size_t pixels = (size_t)(f->w * f->c) * sizeof *f->pixels;
    size_t bytes = rfx_missing_bytes(m) + sides * sizeof *f->fields + pixels + widest +
                   (size_t)f->graph->n_nodes * sizeof *f->nodes +
                   (size_t)(f->w + 1) * sizeof *f->before + reading_bytes;
    if (most_bytes != 0 && bytes > most_bytes)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "--nodata: finding the missing ones of %lld x %lld pixels takes %zu bytes, "
                        "the budget is %zu",
                        (long long)f->h, (long long)f->w, bytes, most_bytes);
    f->fields = rfx_memory_calloc(m->mem, sides + 1, sizeof *f->fields);
    f->nodes = rfx_memory_calloc(m->mem, (size_t)f->graph->n_nodes, sizeof *f->nodes);
    f->before = rfx_memory_calloc(m->mem, (size_t)f->w + 1, sizeof *f->before);
    f->pixels = rfx_memory_alloc(m->mem, pixels);
    f->wide = rfx_memory_alloc(m->mem, widest);
    m->row = rfx_memory_alloc(m->mem, m->row_bytes + 1);
    bool all = f->fields != NULL && f->nodes != NULL && f->before != NULL && f->pixels != NULL &&
               f->wide != NULL && m->row != NULL;
    for (int k = 0; k < m->n; k++) {
        struct rfx_missing_map *map = &m->maps[k];
        if (map->h == 0) continue;
        map->bits = rfx_memory_calloc(m->mem, (size_t)map->h, map->row_bytes);
        all = all && map->bits != NULL;
    }
    return all ? RFX_OK : rfx_memory_fail(m->mem, "missing pixels", bytes, err);
}

/* Returns the range that holds only the image pixel at the centre of the receptive field of output
 * position `at`. */
static struct rfx_range middle_of(const struct rfx_grid_axis *axis, int64_t at, int64_t extent) {
    int64_t pixel = (int64_t)floor((double)at * axis->step + axis->shift + 0.5);
    pixel = rfx_max_i64(0, rfx_min_i64(pixel, extent - 1));
    return (struct rfx_range){pixel, pixel + 1};
}

/* Computes the receptive fields of output k along both axes. When the positions of the output's
 * pixels in the image are not known, marking by the centre is turned off for the output. */
static enum rfx_status find_fields(struct finding *f, int k, struct rfx_range *fields,
                                   struct rfx_error *err) {
    struct rfx_missing_map *map = &f->missing->maps[k];
    const int node = f->graph->outputs[k].node;
    const int64_t extents[2] = {f->h, f->w};
    struct rfx_grid grid;
    enum rfx_status status = rfx_grid_find(f->graph, node, &grid, err);
    if (status != RFX_OK) return status;
    if (f->middle && !grid.known) map->h = 0;
    for (int axis = 0; axis < 2 && map->h > 0; axis++)
        for (int64_t i = 0; i < (axis == 0 ? map->h : map->w); i++)
            *fields++ = f->middle ? middle_of(&grid.axis[axis], i, extents[axis])
                                  : rfx_field_at(f->graph, node, (enum rfx_axis)axis, i, f->nodes);
    return rfx_memory_check_stop(f->missing->mem, err);
}

/* Fills f->before for the row in f->pixels. Returns the number of missing pixels in the row. */
static int64_t count_row(struct finding *f) {
    const float *pixel = f->pixels;
    for (int64_t x = 0; x < f->w; x++, pixel += f->c) {
        bool any = false;
        for (int64_t c = 0; c < f->c; c++) any |= pixel[c] != 0.0f;
        f->before[x + 1] = f->before[x] + any;
    }
    return f->before[f->w];
}

/* Marks the pixels of a map that depend on missing pixels of image row y, which count_row has
 * counted. */
static void add_row(struct finding *f, struct rfx_missing_map *map, const struct rfx_range *rows,
                    int64_t y) {
    const struct rfx_range *columns = rows + map->h;
    bool widened = false;
    for (int64_t i = 0; i < map->h; i++) {
        if (y < rows[i].lo || y >= rows[i].hi) continue;
        for (int64_t x = 0; x < map->w && !widened; x++) {
            unsigned bit = f->before[columns[x].hi] > f->before[columns[x].lo];
            if (x % 8 == 0) f->wide[x / 8] = 0;
            f->wide[x / 8] = (unsigned char)(f->wide[x / 8] | bit << x % 8);
        }
        widened = true;
        unsigned char *bits = map->bits + (size_t)i * map->row_bytes;
        for (size_t b = 0; b < map->row_bytes; b++) bits[b] = (unsigned char)(bits[b] | f->wide[b]);
    }
}

static enum rfx_status read_rows(struct finding *f, struct rfx_image *image,
                                 struct rfx_error *err) {
    enum rfx_status status = rfx_image_set_window(image, 1, err);
    for (int64_t y = 0; y < f->h && status == RFX_OK; y++) {
        struct rfx_rect rect = rfx_rect_make(y, y + 1, 0, f->w);
        struct rfx_view view = rfx_view_dense(f->pixels, rect, f->c);
        status = rfx_image_read(image, rect, &view, err);
        int64_t count = status == RFX_OK ? count_row(f) : 0;
        f->missing->pixels += count;
        const struct rfx_range *fields = f->fields;
        for (int k = 0; k < f->missing->n && count > 0; k++) {
            const struct rfx_tensor *t = tensor_of(f->graph, k);
            add_row(f, &f->missing->maps[k], fields, y);
            if (t->layout == RFX_LAYOUT_NHWC) fields += t->h + t->w;
        }
        if (status == RFX_OK) status = rfx_memory_check_stop(f->missing->mem, err);
    }
    return status;
}

static enum rfx_status find(struct finding *f, struct rfx_image *image, size_t most_bytes,
                            struct rfx_error *err) {
    const struct rfx_source_traits t = rfx_image_traits(image);
    f->h = t.h;
    f->w = t.w;
    f->c = t.c;
    measure(f);
    enum rfx_status status = make_room(f, t.fixed_bytes + t.window_row_bytes, most_bytes, err);
    struct rfx_range *fields = f->fields;
    for (int k = 0; k < f->missing->n && status == RFX_OK; k++) {
        const struct rfx_missing_map *map = &f->missing->maps[k];
        int64_t sides = map->h + map->w;
        if (map->h > 0) status = find_fields(f, k, fields, err);
        fields += sides;
    }
    return status == RFX_OK ? read_rows(f, image, err) : status;
}

enum rfx_status rfx_missing_find(struct rfx_memory *mem, const struct rfx_graph *graph,
                                 struct rfx_image *image, bool middle, size_t most_bytes,
                                 struct rfx_missing *out, struct rfx_error *err) {
    struct rfx_missing missing = {.mem = mem, .n = graph->n_outputs};
    struct finding f = {.missing = &missing, .graph = graph, .middle = middle};
    size_t n = (size_t)missing.n;
    missing.maps = rfx_memory_calloc(mem, n, sizeof *missing.maps);
    enum rfx_status status = missing.maps != NULL ? find(&f, image, most_bytes, err)
                                                  : rfx_memory_fail(mem, "missing pixels",
                                                                    n * sizeof *missing.maps, err);
    rfx_memory_release(mem, f.fields);
    rfx_memory_release(mem, f.nodes);
    rfx_memory_release(mem, f.before);
    rfx_memory_release(mem, f.pixels);
    rfx_memory_release(mem, f.wide);
    if (status == RFX_OK)
        *out = missing;
    else
        rfx_missing_release(&missing);
    return status;
}

bool rfx_missing_any(const struct rfx_missing *missing, int k, struct rfx_rect rect) {
    const struct rfx_missing_map *map = &missing->maps[k];
    for (int64_t y = rect.y0; y < rect.y1 && map->h > 0; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++) {
            const unsigned char *byte = map->bits + (size_t)y * map->row_bytes + x / 8;
            if (x % 8 == 0 && *byte == 0)
                x += 7;
            else if ((*byte >> x % 8 & 1) != 0)
                return true;
        }
    return false;
}

static bool is_marked(const struct rfx_missing_map *map, int64_t y, int64_t x) {
    return map->h > 0 &&
           (map->bits[(size_t)y * map->row_bytes + (size_t)(x / 8)] >> x % 8 & 1) != 0;
}

struct rfx_view rfx_missing_row(const struct rfx_missing *missing, int k, int64_t channels,
                                int64_t y, int64_t x0, int64_t x1, const struct rfx_view *view) {
    const struct rfx_missing_map *map = &missing->maps[k];
    struct rfx_view row = rfx_view_dense(missing->row, rfx_rect_make(y, y + 1, x0, x1), channels);
    float *to = missing->row;
    for (int64_t x = x0; x < x1; x++, to += channels) {
        const float *from = rfx_view_f32_at(view, y, x);
        bool marked = is_marked(map, y, x);
        for (int64_t c = 0; c < channels; c++) to[c] = marked ? NAN : from[c];
    }
    return row;
}
