/* Packs the filters of Winograd convolutions, times their scale: as transformed weights (factors),
 * [factor][panel][ic][filter of the panel]; or, if they are transformed during the run,
 * untransformed: [panel][ic][tap][filter of the panel]. */
#include "layers/conv/winograd/conv_winograd.h"
#include "layers/core/checked.h"

#define TAPS RFX_WINOGRAD_TAPS
#define SOME 4 /* input channels whose taps are transposed together */

struct pack {
    const struct rfx_conv_pack_job *job;
    int64_t outputs;
    bool makes_factors;
};

/* A panel of filters: n filters from o0 on, padded to `width`. */
struct panel {
    int64_t o0, n, width;
    float scale[RFX_CONV_PANEL];
};

/* Packs all transformed weights of `c` input channels from i0 on. */
static void pack_factors(const struct pack *p, const struct panel *panel, const float *taps,
                         int64_t i0, int64_t c) {
    const struct rfx_conv_attr *a = &p->job->node->attr.conv;
    const struct rfx_winograd_filters filters = {
        .taps = taps,
        .out = p->job->weights + panel->o0 * a->ic + i0 * panel->width,
        .c = c,
        .width = panel->width,
        .step = rfx_conv_filled(a->oc) * a->ic,
        .outputs = p->outputs,
    };
    rfx_kernels()->winograd_filters(&filters);
}

/* Packs `count` input channels, from i0 on, of each filter of the panel. `from` has them in the
 * model's order. */
static void pack_channels(const struct pack *p, const struct panel *panel, const float *from,
                          int64_t i0, int64_t count) {
    float turned[SOME * TAPS * RFX_CONV_PANEL] = {0};
    int64_t ic = p->job->node->attr.conv.ic;
    for (int64_t i = 0; i < count; i += SOME) {
        int64_t c = rfx_min_i64(SOME, count - i);
        float *packed = p->job->weights + (panel->o0 * ic + (i0 + i) * panel->width) * TAPS;
        float *to = p->makes_factors ? packed : turned;
        for (int64_t e = 0; e < c * TAPS; e++)
            for (int64_t j = 0; j < panel->width; j++)
                to[e * panel->width + j] =
                    j < panel->n ? from[(j * count + i) * TAPS + e] * panel->scale[j] : 0.0f;
        if (!p->makes_factors) pack_factors(p, panel, turned, i0 + i, c);
    }
}

static enum rfx_status pack_panel(const struct pack *p, struct rfx_packing_reader *reader,
                                  int64_t o0) {
    const struct rfx_conv_pack_job *job = p->job;
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    int64_t piece = job->temp_elems / RFX_CONV_PANEL / TAPS;
    struct panel panel = {.o0 = o0,
                          .n = rfx_min_i64(RFX_CONV_PANEL, a->oc - o0),
                          .width = rfx_conv_panel_width(a->oc - o0)};
    for (int64_t j = 0; j < panel.width; j++)
        panel.scale[j] = job->scale != NULL && j < panel.n ? job->scale[o0 + j] : 1.0f;
    for (int64_t i0 = 0; i0 < a->ic; i0 += piece) {
        int64_t count = rfx_min_i64(piece, a->ic - i0);
        for (int64_t j = 0; j < panel.n; j++) {
            enum rfx_status status = rfx_packing_read(reader, ((o0 + j) * a->ic + i0) * TAPS,
                                                      count * TAPS, job->temp + j * count * TAPS);
            if (status != RFX_OK) return status;
        }
        pack_channels(p, &panel, job->temp, i0, count);
    }
    return RFX_OK;
}

enum rfx_status rfx_winograd_pack(const struct rfx_conv_pack_job *job, int64_t outputs,
                                  bool makes_factors, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    struct pack p = {job, outputs, makes_factors};
    enum rfx_status status = RFX_OK;
    struct rfx_range panels = rfx_pack_units(job->part, rfx_ceil_div(a->oc, RFX_CONV_PANEL));
    for (int64_t i = panels.lo; status == RFX_OK && i < panels.hi; i++)
        status = pack_panel(&p, &reader, i * RFX_CONV_PANEL);
    return status;
}
