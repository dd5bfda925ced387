/* Loads models under a baseline and computes their curves; see curves.h. */
#include "tools/commands/curves.h"

#include <stdio.h>
#include <string.h>

#include "tiler/plan/splits.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"

enum { DEFAULT_TILES = 16 }; /* 4 x 4, as in the figures of paper 003; the help has this number */

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(rfx_cli_curves_asked, "tiles", GRID, tiles, "N|RxC",
                   "number of tiles (the most square grid) or rows x columns (default 16)",
                   .letter = 't', .needs = "plot"),
    RFX_CLI_OPTION(rfx_cli_curves_asked, "baseline", WORD, baseline, "eager|fused|coalesced",
                   "what counts as a tensor: eager: batch norm, activation and Add each make one; "
                   "fused: batch norm and activation are inside the convolution; coalesced: Add is "
                   "in place too (default fused; of analyze: as executed)",
                   .needs = "plot"),
};
const struct rfx_cli_group rfx_cli_curves_group = RFX_CLI_GROUP("curve options", rows);

static void settle(struct rfx_cli_curves *curves, const struct rfx_cli_curves_asked *asked) {
    curves->baseline = asked->model.no_fuse ? RFX_BASELINE_EAGER : RFX_BASELINE_FUSED;
    if (asked->baseline != NULL) (void)rfx_baseline_parse(asked->baseline, &curves->baseline);
    curves->tiles_y = asked->tiles.y;
    curves->tiles_x = asked->tiles.x;
    if (asked->tiles.x == 0)
        rfx_curve_square_grid(asked->tiles.y != 0 ? asked->tiles.y : DEFAULT_TILES,
                              &curves->tiles_y, &curves->tiles_x);
}

static int add_model(struct rfx_cli_curves *curves, const struct rfx_cli_curves_asked *asked,
                     int arg, bool pareto) {
    struct rfx_fuse_options fuse = rfx_baseline_fuse(curves->baseline);
    struct rfx_curve_request request = {.baseline = curves->baseline,
                                        .tiles_y = curves->tiles_y,
                                        .tiles_x = curves->tiles_x,
                                        .pareto = pareto};
    int at = curves->count;
    struct rfx_error err = {{0}};
    const struct rfx_fuse_options *how = curves->as_executed ? rfx_cli_fuse(&asked->model) : &fuse;
    int code = rfx_cli_load_fused(curves->mem, asked->words.args[arg], &asked->model, how,
                                  &curves->graphs[at]);
    if (code != RFX_EXIT_DONE) return code;
    curves->models[at] = asked->words.shown[arg];
    curves->count++;
    enum rfx_status status =
        rfx_curve_create(curves->graphs[at], &request, &curves->curves[at], &err);
    if (status == RFX_OK)
        status = rfx_curve_formulas_create(curves->curves[at], &curves->formulas[at], &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

int rfx_cli_curves_open(struct rfx_cli_curves *curves, const struct rfx_cli_curves_asked *asked,
                        bool pareto, bool as_executed) {
    memset(curves, 0, sizeof *curves);
    curves->as_executed = as_executed && asked->baseline == NULL;
    curves->mem = rfx_cli_memory_create();
    if (curves->mem == NULL) return RFX_EXIT_SYSTEM;
    settle(curves, asked);
    int code = RFX_EXIT_DONE;
    for (int i = 0; i < asked->words.n_args && code == RFX_EXIT_DONE; ++i)
        code = add_model(curves, asked, i, pareto);
    return code;
}

const char *rfx_cli_curves_baseline(const struct rfx_cli_curves *curves, char text[32]) {
    if (curves->as_executed)
        (void)snprintf(text, 32, "as executed");
    else
        (void)snprintf(text, 32, "%s baseline", rfx_baseline_name(curves->baseline));
    return text;
}

void rfx_cli_curves_free(struct rfx_cli_curves *curves) {
    for (int i = curves->count - 1; i >= 0; --i) {
        rfx_curve_formulas_free(curves->formulas[i]);
        rfx_curve_free(curves->curves[i]);
        rfx_graph_free(curves->graphs[i]);
    }
    if (curves->mem != NULL) rfx_memory_free(curves->mem);
}

const char *rfx_cli_point_label(const struct rfx_curve *curve,
                                const struct rfx_curve_point *point) {
    return point->split < 0 ? "untiled" : rfx_split_label(curve->graph, point->split);
}

json_t *rfx_cli_point_json(const struct rfx_curve *curve, const struct rfx_curve_point *point) {
    return json_pack("{s:s?, s:[I,I], s:[I,I], s:f, s:f, s:I, s:I, s:I, s:I, s:s}", "split",
                     point->split < 0 ? NULL : rfx_cli_point_label(curve, point), "tiles",
                     (json_int_t)point->tiles_y, (json_int_t)point->tiles_x, "tile_px",
                     (json_int_t)point->tile_h_px, (json_int_t)point->tile_w_px, "macs_ratio",
                     rfx_curve_macs_ratio(curve, point), "memory_ratio",
                     rfx_curve_memory_ratio(curve, point), "macs", (json_int_t)point->macs,
                     "peak_bytes", (json_int_t)point->peak_bytes, "head_bytes",
                     (json_int_t)point->head_bytes, "tail_bytes", (json_int_t)point->tail_bytes,
                     "peak_layer", rfx_split_label(curve->graph, point->peak_node));
}
