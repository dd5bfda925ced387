/* The table of convolution backends, the choice among them, and the packing that several share. */
#include "layers/conv/conv_backend.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"

static const struct rfx_conv_backend *const backends[] = {
    &rfx_conv_depthwise, &rfx_conv_few_outputs,  &rfx_conv_grouped,  &rfx_conv_winograd,
    &rfx_conv_direct,    &rfx_conv_few_channels, &rfx_conv_openblas,
};
#define N_BACKENDS ((int)(sizeof backends / sizeof backends[0]))

const struct rfx_conv_backend *const *rfx_conv_backends(int *count) {
    *count = N_BACKENDS;
    return backends;
}

const struct rfx_conv_backend *rfx_conv_backend_of(const struct rfx_graph *graph,
                                                   const struct rfx_node *node) {
    assert(node->op == RFX_OP_CONV);
    for (int i = 0; i < N_BACKENDS - 1; i++)
        if (backends[i]->accepts(graph, node, NULL, 0)) return backends[i];
    assert(backends[N_BACKENDS - 1]->accepts(graph, node, NULL, 0));
    return backends[N_BACKENDS - 1];
}

static const char *const choice_names[] = {[RFX_CONV_DIRECT] = "direct",
                                           [RFX_CONV_OPENBLAS] = "openblas",
                                           [RFX_CONV_WINOGRAD] = "winograd"};
_Static_assert(sizeof choice_names / sizeof *choice_names == RFX_CONV_COUNT, "a name per choice");

const char *rfx_conv_choice_name(enum rfx_conv_choice choice) {
    return choice_names[choice];
}

bool rfx_conv_choice_find(const char *name, enum rfx_conv_choice *choice) {
    for (int c = 0; c < RFX_CONV_COUNT; c++) {
        if (strcmp(name, choice_names[c]) != 0) continue;
        *choice = (enum rfx_conv_choice)c;
        return true;
    }
    return false;
}

enum rfx_conv_choice rfx_conv_choice_of(const struct rfx_graph *graph) {
    return rfx_kernels()->conv == NULL ? RFX_CONV_OPENBLAS : graph->conv;
}

struct rfx_conv_block rfx_conv_block_of(const struct rfx_graph *graph,
                                        const struct rfx_node *node) {
    const struct rfx_conv_block pixel = {1, 1, 0};
    /* a shortcut, as planners call this millions of times: direct backends have no block */
    if (node->op != RFX_OP_CONV || rfx_conv_choice_of(graph) == RFX_CONV_DIRECT) return pixel;
    const struct rfx_conv_backend *backend = rfx_conv_backend_of(graph, node);
    return backend->block == NULL ? pixel : backend->block(graph, node);
}

/* Returns the node's backend if it has a `widen` function, else NULL. Only the choice "winograd"
 * has such backends. */
static const struct rfx_conv_backend *widening_backend(const struct rfx_graph *graph,
                                                       const struct rfx_node *node) {
    if (graph->conv != RFX_CONV_WINOGRAD || node->op != RFX_OP_CONV) return NULL;
    const struct rfx_conv_backend *backend = rfx_conv_backend_of(graph, node);
    return backend->widen == NULL ? NULL : backend;
}

struct rfx_range rfx_conv_widen(const struct rfx_graph *graph, const struct rfx_node *node,
                                int axis, struct rfx_range out) {
    const struct rfx_conv_backend *backend = widening_backend(graph, node);
    if (backend == NULL || out.lo >= out.hi) return out;
    struct rfx_range wide = backend->widen(node, axis, out);
    int64_t extent = axis == 0 ? node->out.h : node->out.w;
    wide.lo = rfx_min_i64(out.lo, rfx_max_i64(wide.lo, 0));
    wide.hi = rfx_max_i64(out.hi, rfx_min_i64(wide.hi, extent));
    return wide;
}

struct rfx_conv_block rfx_conv_rows_together(const struct rfx_graph *graph,
                                             const struct rfx_node *node) {
    const struct rfx_conv_block row = {1, 1, 0};
    const struct rfx_conv_backend *backend = widening_backend(graph, node);
    return backend == NULL ? row : backend->block(graph, node);
}

bool rfx_conv_refuse(char *why, size_t size, const char *format, ...) {
    if (why == NULL) return false;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, size, format, args);
    va_end(args);
    return false;
}

bool rfx_conv_own_kernels(const struct rfx_graph *graph, char *why, size_t size) {
    if (rfx_conv_choice_of(graph) != RFX_CONV_OPENBLAS) return true;
    if (rfx_kernels()->conv == NULL)
        return rfx_conv_refuse(why, size, "the %s kernels have no fused multiply-add",
                               rfx_kernels()->name);
    return rfx_conv_refuse(why, size, "openblas is asked for");
}

size_t rfx_conv_taps_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    return rfx_align_up(rfx_floats_bytes(graph->weights[node->attr.conv.weight].elems));
}

#define PACK_FILTERS RFX_PACKING_TILE /* filters transposed together: a cache line of stores */

/* Stores one weight of each of n filters to `to`, times the filter's scale if `scale` is not
 * NULL. */
static void store_line(const float *restrict line, int64_t n, const float *restrict scale,
                       float *restrict to) {
    if (n == PACK_FILTERS && scale != NULL) { /* a constant length, for which compilers unroll */
        for (int j = 0; j < PACK_FILTERS; j++) to[j] = line[j] * scale[j];
    } else if (n == PACK_FILTERS) {
        memcpy(to, line, PACK_FILTERS * sizeof *to);
    } else {
        for (int64_t j = 0; j < n; j++) to[j] = scale == NULL ? line[j] : line[j] * scale[j];
    }
}

/* Packs elements e0 .. e0 + count of up to PACK_FILTERS filters into dst [tap][i][o], whose rows
 * are m filters wide. The filters lie `step` floats apart. Multiplies them by their scales if
 * `scale` is not NULL. */
static void store_filters(const struct rfx_conv_attr *a, const float *filters, int64_t step,
                          int64_t n, int64_t e0, int64_t count, const float *scale, float *dst,
                          int64_t m) {
    int64_t icg = a->ic / a->groups, taps = a->kh * a->kw, i = e0 / taps, tap = e0 % taps;
    float tile[RFX_PACKING_TILE][RFX_PACKING_TILE];
    for (int64_t e = 0; e < count; e += RFX_PACKING_TILE) {
        int64_t rows = rfx_min_i64(RFX_PACKING_TILE, count - e);
        rfx_packing_tile(filters + e, step, n, rows, tile);
        for (int64_t r = 0; r < rows; r++) {
            store_line(tile[r], n, scale, dst + (tap * icg + i) * m);
            i += ++tap == taps;
            tap = tap == taps ? 0 : tap;
        }
    }
}

/* Packs at most PACK_FILTERS filters that do not fit the temporary buffer: `piece` elements of each
 * filter at a time. */
static enum rfx_status pack_long_filters(const struct rfx_conv_pack_job *job,
                                         struct rfx_packing_reader *reader, int64_t o0, int64_t n,
                                         int64_t piece, float *dst, int64_t m) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t len = a->ic / a->groups * a->kh * a->kw, step = piece;
    for (int64_t e0 = 0; e0 < len; e0 += piece) {
        int64_t count = rfx_min_i64(piece, len - e0);
        for (int64_t j = 0; j < n; j++) {
            enum rfx_status status =
                rfx_packing_read(reader, (o0 + j) * len + e0, count, job->temp + j * step);
            if (status != RFX_OK) return status;
        }
        store_filters(a, job->temp, step, n, e0, count, job->scale == NULL ? NULL : job->scale + o0,
                      dst, m);
    }
    return RFX_OK;
}

/* Packs filters o0 .. o0 + n of one group: source [o][i][tap] -> dst [tap][i][o], whose rows are m
 * filters wide. Reads as many filters at a time as fit the temporary buffer. */
enum rfx_status rfx_conv_filters_pack(const struct rfx_conv_pack_job *job,
                                      struct rfx_packing_reader *reader, int64_t o0, int64_t n,
                                      float *dst, int64_t m) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t len = a->ic / a->groups * a->kh * a->kw;
    int64_t room = job->temp_elems;
    int64_t together = rfx_max_i64(room / len / PACK_FILTERS, 1) * PACK_FILTERS;
    enum rfx_status status = RFX_OK;
    for (int64_t o = 0; status == RFX_OK && o < n; o += together) {
        int64_t count = rfx_min_i64(together, n - o);
        if (count * len > room) {
            status = pack_long_filters(job, reader, o0 + o, count, room / PACK_FILTERS, dst + o, m);
            continue;
        }
        status = rfx_packing_read(reader, (o0 + o) * len, count * len, job->temp);
        for (int64_t j = 0; status == RFX_OK && j < count; j += PACK_FILTERS)
            store_filters(a, job->temp + j * len, len, rfx_min_i64(PACK_FILTERS, count - j), 0, len,
                          job->scale == NULL ? NULL : job->scale + o0 + o + j, dst + o + j, m);
    }
    return status;
}

enum rfx_status rfx_conv_taps_pack(const struct rfx_conv_pack_job *job, int64_t groups,
                                   struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t m = a->oc / groups, filter = a->ic / a->groups * a->kh * a->kw;
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    enum rfx_status status = RFX_OK;
    if (groups == 1) { /* shards begin at a multiple of PACK_FILTERS outputs; with more groups,
                          between groups */
        struct rfx_range lines = rfx_pack_units(job->part, rfx_ceil_div(m, PACK_FILTERS));
        int64_t lo = lines.lo * PACK_FILTERS, hi = rfx_min_i64(lines.hi * PACK_FILTERS, m);
        return rfx_conv_filters_pack(job, &reader, lo, hi - lo, job->weights + lo, m);
    }
    struct rfx_range some = rfx_pack_units(job->part, groups);
    for (int64_t g = some.lo; status == RFX_OK && g < some.hi; g++)
        status = rfx_conv_filters_pack(job, &reader, g * m, m, job->weights + g * m * filter, m);
    return status;
}

enum rfx_status rfx_conv_parts_pack(const struct rfx_conv_pack_job *job, int64_t part,
                                    struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t ocg = a->oc / a->groups, k = a->ic / a->groups * a->kh * a->kw;
    int64_t parts = rfx_ceil_div(ocg, part);
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    struct rfx_range some = rfx_pack_units(job->part, a->groups * parts);
    enum rfx_status status = RFX_OK;
    for (int64_t p = some.lo; status == RFX_OK && p < some.hi; p++) {
        int64_t o = p % parts * part, n = rfx_min_i64(part, ocg - o), o0 = p / parts * ocg + o;
        status = rfx_conv_filters_pack(job, &reader, o0, n, job->weights + o0 * k, n);
    }
    return status;
}

size_t rfx_conv_panels_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    int64_t k = a->kh * a->kw * (a->ic / a->groups);
    return rfx_align_up(rfx_floats_bytes(a->groups * rfx_conv_filled(a->oc / a->groups) * k));
}

/* Packs the panel of filters o0 .. o0 + n. Its rows are `width` wide, padded with zeros. */
static enum rfx_status pack_panel(const struct rfx_conv_pack_job *job,
                                  struct rfx_packing_reader *reader, int64_t o0, int64_t n,
                                  float *dst, int64_t width) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t k = a->kh * a->kw * (a->ic / a->groups);
    enum rfx_status status = rfx_conv_filters_pack(job, reader, o0, n, dst, width);
    for (int64_t i = 0; n < width && i < k; i++)
        memset(dst + i * width + n, 0, rfx_floats_bytes(width - n));
    return status;
}

enum rfx_status rfx_conv_panels_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t ocg = a->oc / a->groups, k = a->kh * a->kw * (a->ic / a->groups);
    int64_t panels = rfx_ceil_div(ocg, RFX_CONV_PANEL), group = rfx_conv_filled(ocg) * k;
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    struct rfx_range some = rfx_pack_units(job->part, a->groups * panels);
    enum rfx_status status = RFX_OK;
    for (int64_t p = some.lo; status == RFX_OK && p < some.hi; p++) {
        int64_t g = p / panels, o = p % panels * RFX_CONV_PANEL;
        status = pack_panel(job, &reader, g * ocg + o, rfx_min_i64(RFX_CONV_PANEL, ocg - o),
                            job->weights + g * group + o * k, rfx_conv_panel_width(ocg - o));
    }
    return status;
}
