/* Memory and MACs curves of the models on a command line, for curve, advise and the chart of
 * analyze.
 *
 * Invariants: 1. every graph is fused as its baseline requires; 2. a function that returns an exit
 * code other than RFX_EXIT_DONE has printed a message. */
#ifndef RFX_TOOLS_COMMANDS_CURVES_H
#define RFX_TOOLS_COMMANDS_CURVES_H

#include <jansson.h>

#include "layers/graph/graph.h"
#include "tools/cli/command.h"
#include "tools/study/curve.h"
#include "tools/study/curve_formulas.h"

/* Options that analyze, curve and advise share. */
struct rfx_cli_curves_asked {
    struct rfx_cli_words words;
    struct rfx_cli_model_options model;
    struct rfx_cli_pair tiles; /* 0, 0: not given */
    const char *baseline;      /* NULL: not given */
};

/* The options --tiles and --baseline, stored in struct rfx_cli_curves_asked. */
extern const struct rfx_cli_group rfx_cli_curves_group;

struct rfx_cli_curves {
    struct rfx_memory *mem;
    enum rfx_baseline baseline;
    bool as_executed; /* graphs are fused as in a run: residual additions are inside convolutions;
                         each fused node makes one tensor, as in baseline FUSED */
    int64_t tiles_y, tiles_x;
    int count;
    const char *models[RFX_CLI_MAX_ARGS]; /* printable names; owned by the options */
    struct rfx_graph *graphs[RFX_CLI_MAX_ARGS];
    struct rfx_curve *curves[RFX_CLI_MAX_ARGS];
    struct rfx_curve_formulas *formulas[RFX_CLI_MAX_ARGS];
};

/* Loads every model named in the arguments and computes its curve. as_executed: without --baseline,
 * fuse each graph as in a run. The caller frees the curves with rfx_cli_curves_free, also after a
 * failure. */
RFX_NODISCARD int rfx_cli_curves_open(struct rfx_cli_curves *curves,
                                      const struct rfx_cli_curves_asked *asked, bool pareto,
                                      bool as_executed);

/* Writes the name of the baseline, such as "as executed" or "fused baseline", which tells what
 * counts as a tensor. Returns `text`. */
const char *rfx_cli_curves_baseline(const struct rfx_cli_curves *curves, char text[32]);

void rfx_cli_curves_free(struct rfx_cli_curves *curves);

/* Returns the name of the layer at which the point cuts the network, or "untiled". */
const char *rfx_cli_point_label(const struct rfx_curve *curve, const struct rfx_curve_point *point);

/* Returns a new JSON object about a point, owned by the caller: "split", "tiles", "macs_ratio",
 * "memory_ratio", "macs", "peak_bytes", "head_bytes", "tail_bytes", "peak_layer". */
json_t *rfx_cli_point_json(const struct rfx_curve *curve, const struct rfx_curve_point *point);
#endif
