/* The table of convolution backends, the choice among them, and the packing that several share. */
#include "layers/conv/conv_backend.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"

static const struct rfx_conv_backend *const backends[] = {
    &rfx_conv_depthwise,    &rfx_conv_few_outputs,  &rfx_conv_winograd,
    &rfx_conv_direct,       &rfx_conv_few_channels, &rfx_conv_openblas,
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
    const struct rfx_conv_block pixel = {1, 1};
    if (node->op != RFX_OP_CONV) return pixel;
    const struct rfx_conv_backend *backend = rfx_conv_backend_of(graph, node);
    return backend->block == NULL ? pixel : backend->block(graph, node);
}

/* Only one choice has such backends: planners ask millions of times. */
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
    struct rfx_range wide = backend->widen(node, out);
    int64_t extent = axis == 0 ? node->out.h : node->out.w;
    wide.hi = rfx_max_i64(out.hi, rfx_min_i64(wide.hi, extent));
    return wide;
}

int64_t rfx_conv_rows_together(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_backend *backend = widening_backend(graph, node);
    return backend == NULL ? 1 : backend->block(graph, node).h;
}

bool rfx_conv_refuse(char *why, size_t size, const char *format, ...) {
    if (why == NULL) return false;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, size, format, args);
    va_end(args);
    return false;
}

size_t rfx_conv_taps_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    return rfx_align_up(rfx_floats_bytes(graph->weights[node->attr.conv.weight].elems));
}

#define PACK_FILTERS 16 /* filters transposed together: a cache line of stores */

/* Filters o0 .. o0 + n of one group: source [o][i][tap] -> dst [tap][i][o], m filters wide. */
static enum rfx_status pack_filters(const struct rfx_conv_pack_job *job,
                                    struct rfx_packing_reader *reader, int64_t o0, int64_t n,
                                    float *dst, int64_t m) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t icg = a->ic / a->groups, taps = a->kh * a->kw;
    int64_t len = icg * taps, piece = RFX_CONV_PACK_TEMP_ELEMS / PACK_FILTERS;
    const float *scale = job->scale, *temp = job->temp;
    for (int64_t e0 = 0; e0 < len; e0 += piece) {
        int64_t count = rfx_min_i64(piece, len - e0);
        for (int64_t j = 0; j < n; j++) {
            enum rfx_status status =
                rfx_packing_read(reader, (o0 + j) * len + e0, count, job->temp + j * piece);
            if (status != RFX_OK) return status;
        }
        for (int64_t e = 0; e < count; e++) {
            int64_t i = (e0 + e) / taps, tap = (e0 + e) % taps;
            float *to = dst + (tap * icg + i) * m;
            for (int64_t j = 0; j < n; j++)
                to[j] = scale == NULL ? temp[j * piece + e] : temp[j * piece + e] * scale[o0 + j];
        }
    }
    return RFX_OK;
}

enum rfx_status rfx_conv_taps_pack(const struct rfx_conv_pack_job *job, int64_t groups,
                                   struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t m = a->oc / groups, filter = a->ic / a->groups * a->kh * a->kw;
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    enum rfx_status status = RFX_OK;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t o = 0; status == RFX_OK && o < m; o += PACK_FILTERS)
            status = pack_filters(job, &reader, g * m + o, rfx_min_i64(PACK_FILTERS, m - o),
                                  job->weights + g * m * filter + o, m);
    return status;
}

enum rfx_status rfx_conv_parts_pack(const struct rfx_conv_pack_job *job, int64_t part,
                                    struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t ocg = a->oc / a->groups, k = a->ic / a->groups * a->kh * a->kw;
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    enum rfx_status status = RFX_OK;
    for (int64_t g = 0; g < a->groups; g++)
        for (int64_t o = 0; status == RFX_OK && o < ocg; o += part) {
            int64_t n = rfx_min_i64(part, ocg - o), o0 = g * ocg + o;
            status = pack_filters(job, &reader, o0, n, job->weights + o0 * k, n);
        }
    return status;
}

size_t rfx_conv_panels_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    int64_t k = a->kh * a->kw * (a->ic / a->groups);
    return rfx_align_up(rfx_floats_bytes(a->groups * rfx_conv_filled(a->oc / a->groups) * k));
}

/* The panel of filters o0 .. o0 + n, `width` wide with its filling. */
static enum rfx_status pack_panel(const struct rfx_conv_pack_job *job,
                                  struct rfx_packing_reader *reader, int64_t o0, int64_t n,
                                  float *dst, int64_t width) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t k = a->kh * a->kw * (a->ic / a->groups);
    enum rfx_status status = RFX_OK;
    for (int64_t o = 0; status == RFX_OK && o < n; o += PACK_FILTERS)
        status =
            pack_filters(job, reader, o0 + o, rfx_min_i64(PACK_FILTERS, n - o), dst + o, width);
    for (int64_t i = 0; n < width && i < k; i++)
        memset(dst + i * width + n, 0, rfx_floats_bytes(width - n));
    return status;
}

enum rfx_status rfx_conv_panels_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t ocg = a->oc / a->groups, k = a->kh * a->kw * (a->ic / a->groups);
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    enum rfx_status status = RFX_OK;
    float *dst = job->weights;
    for (int64_t g = 0; g < a->groups; g++)
        for (int64_t o = 0; status == RFX_OK && o < ocg; o += RFX_CONV_PANEL) {
            int64_t n = rfx_min_i64(RFX_CONV_PANEL, ocg - o), width = rfx_conv_panel_width(ocg - o);
            status = pack_panel(job, &reader, g * ocg + o, n, dst, width);
            dst += width * k;
        }
    return status;
}
