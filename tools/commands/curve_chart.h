/* The pictures of the analysis: trade-off curves and memory over the layers (paper 003, figures 2,
 * 8 and 9). */
#ifndef RFX_TOOLS_COMMANDS_CURVE_CHART_H
#define RFX_TOOLS_COMMANDS_CURVE_CHART_H

#include "tools/commands/curves.h"

/* Memory ratio over MAC ratio, one line per network in the order of MACs, the best aggregation
 * point of each ringed and in the legend; with `front` the Pareto front over all grids as a second
 * line. Writes `path` (.svg or .png). Prints why not and returns the exit code. */
RFX_NODISCARD int rfx_cli_curve_chart(const struct rfx_cli_curves *curves, bool front,
                                      const char *path);

/* Memory over the layers of the first model: parameters, untiled and, when --tiles is given or
 * `split` is not NULL, tiled. Writes `file`. Prints why not and returns the exit code. */
RFX_NODISCARD int rfx_cli_footprint_chart(const struct rfx_cli_curves_asked *asked,
                                          const char *split, const char *file);
#endif
