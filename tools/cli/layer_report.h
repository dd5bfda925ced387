/* The table of `bench --layers`, as text and as JSON. */
#ifndef RFX_TOOLS_CLI_LAYER_REPORT_H
#define RFX_TOOLS_CLI_LAYER_REPORT_H

#include <jansson.h>

#include "tools/study/layer_times.h"
#include "tools/study/machine_speed.h"

/* On stdout: a row per layer, their total, and a row for each thing that a run does besides. */
void rfx_layer_report_text(const struct rfx_layer_times *times,
                           const struct rfx_machine_peak *peak);

/* Adds "machine", "layers", "layers_total" and "rest" to a document. */
void rfx_layer_report_json(const struct rfx_layer_times *times, const struct rfx_machine_peak *peak,
                           json_t *document);
#endif
