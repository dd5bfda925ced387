/* The chart of `bench --layers --plot`: how fast each layer is compared with the machine's limits,
 * and where the time of a run goes. */
#ifndef RFX_TOOLS_STUDY_LAYER_CHART_H
#define RFX_TOOLS_STUDY_LAYER_CHART_H

#include "tools/study/layer_times.h"
#include "tools/study/machine_speed.h"

/* Writes `path`, .svg or .png. Above: a roofline, operations per second over operations per byte
 * moved at least; layers without multiply-accumulates are not in it. Below: the time of every
 * layer. `model`: as the user named it. Statuses of rfx_chart_write. */
RFX_NODISCARD enum rfx_status rfx_layer_chart(const struct rfx_layer_times *times,
                                              const struct rfx_machine_peak *peak,
                                              const char *model, const char *path,
                                              struct rfx_error *err);
#endif
