/* REPEAT: a map without inputs, each of whose channels changes along one axis only. Examples are
 * the coordinates of rows and columns and values computed from them.
 *
 * A channel of `across` has one value per column, the same in all rows. A channel of `down` has one
 * value per row. Only these lines of values are packed, pixel by pixel. A step fills the requested
 * rectangle from them. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/graph/units.h"

/* The lines of an axis: their length, their number of channels, and their packed values. */
struct lines {
    int weight;
    int64_t extent, c;
    const float *values; /* [position][channel] */
};

/* Finds the lines of both axes. Axis 0 is `down`, one value per row; axis 1 is `across`, one value
 * per column. `across` is packed first. */
static void find_lines(const struct rfx_graph *graph, const struct rfx_node *node,
                       const float *packed, struct lines lines[2]) {
    for (int axis = 1; axis >= 0; axis--) {
        struct lines *l = &lines[axis];
        l->weight = axis == 0 ? node->attr.repeat.down : node->attr.repeat.across;
        l->extent = axis == 0 ? node->attr.repeat.h : node->attr.repeat.w;
        l->c = l->weight < 0 ? 0 : graph->weights[l->weight].elems / l->extent;
        l->values = packed;
        if (packed != NULL) packed += l->c * l->extent;
    }
}

static enum rfx_status check_weight(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int weight, int64_t extent, struct rfx_error *err) {
    if (weight < -1 || weight >= graph->n_weights)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Repeat '%s': weight %d of %d does not exist",
                        node->name, weight, graph->n_weights);
    if (weight >= 0 && graph->weights[weight].elems % extent != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Repeat '%s': %lld values for %lld positions",
                        node->name, (long long)graph->weights[weight].elems, (long long)extent);
    return RFX_OK;
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    int64_t h = node->attr.repeat.h, w = node->attr.repeat.w, c = node->attr.repeat.count;
    enum rfx_status status = rfx_infer_inputs(graph, node, 0, RFX_LAYOUT_NHWC, err);
    if (status == RFX_OK) status = rfx_infer_set_map(node, c, h, w, err);
    if (status == RFX_OK) status = check_weight(graph, node, node->attr.repeat.across, w, err);
    if (status == RFX_OK) status = check_weight(graph, node, node->attr.repeat.down, h, err);
    if (status != RFX_OK) return status;
    struct lines lines[2];
    find_lines(graph, node, NULL, lines);
    for (int64_t i = 0; i < c; i++)
        if (node->attr.repeat.map[i] < 0 || node->attr.repeat.map[i] >= lines[0].c + lines[1].c)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "Repeat '%s': channel %lld of %lld",
                            node->name, (long long)node->attr.repeat.map[i],
                            (long long)(lines[0].c + lines[1].c));
    return RFX_OK;
}

static size_t packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    struct lines lines[2];
    find_lines(graph, node, NULL, lines);
    return (size_t)(lines[0].c * lines[0].extent + lines[1].c * lines[1].extent) * sizeof(float);
}

/* Packs the lines of one axis. Reads the weight channel by channel through the temporary buffer. */
static enum rfx_status pack_lines(const struct rfx_graph *graph, const struct lines *lines,
                                  float *out, const struct rfx_pack_part *part,
                                  struct rfx_error *err) {
    for (int64_t ch = 0; ch < lines->c; ch++) {
        for (int64_t first = 0; first < lines->extent; first += part->temp_elems) {
            int64_t n = rfx_min_i64(part->temp_elems, lines->extent - first);
            enum rfx_status status = rfx_weight_read(
                &graph->weights[lines->weight], ch * lines->extent + first, n, part->temp, err);
            if (status != RFX_OK) return status;
            for (int64_t i = 0; i < n; i++) out[(first + i) * lines->c + ch] = part->temp[i];
        }
    }
    return RFX_OK;
}

static enum rfx_status pack(const struct rfx_graph *graph, const struct rfx_node *node,
                            void *packed, const struct rfx_pack_part *part, struct rfx_error *err) {
    struct lines lines[2];
    float *out = packed;
    if (part->index > 0) return RFX_OK;
    find_lines(graph, node, NULL, lines);
    enum rfx_status status = pack_lines(graph, &lines[1], out, part, err);
    out += lines[1].c * lines[1].extent;
    return status == RFX_OK ? pack_lines(graph, &lines[0], out, part, err) : status;
}

/* Returns how many output channels, from i on, are consecutive channels of the lines of one
 * axis. */
static int64_t run_of(const int64_t *map, int64_t i, int64_t c, int64_t across) {
    int64_t n = 1;
    while (i + n < c && map[i + n] == map[i] + n && map[i + n] != across) n++;
    return n;
}

static void unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const int64_t *map = args->node->attr.repeat.map;
    struct lines lines[2];
    (void)scratch;
    find_lines(args->graph, args->node, args->packed, lines);
    for (int64_t y = u.y0; y < u.y1; y++) {
        float *row = rfx_view_f32_at(&args->out, y, u.x0);
        for (int64_t i = 0, n; i < args->node->out.c; i += n) {
            bool across = map[i] < lines[1].c;
            int64_t step = across ? lines[1].c : 0;
            const float *from = across ? lines[1].values + u.x0 * step + map[i]
                                       : lines[0].values + y * lines[0].c + map[i] - lines[1].c;
            float *to = row + i;
            n = run_of(map, i, args->node->out.c, lines[1].c);
            for (int64_t x = u.x0; x < u.x1; x++, to += args->out.c, from += step)
                memcpy(to, from, (size_t)n * sizeof *to);
        }
    }
}

static void run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), 0, unit, args);
}

static int64_t **table(struct rfx_node *node, int64_t *count) {
    *count = node->attr.repeat.count;
    return &node->attr.repeat.map;
}

const struct rfx_op_def rfx_op_repeat = {.name = "Repeat",
                                         .spatial = true,
                                         .index_table = table,
                                         .infer = infer,
                                         .packed_bytes = packed_bytes,
                                         .pack = pack,
                                         .run = run};
