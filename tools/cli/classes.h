/* The highest elements of an output that is a vector of classes, with their labels. */
#ifndef RFX_TOOLS_CLI_CLASSES_H
#define RFX_TOOLS_CLI_CLASSES_H

#include "layers/graph/graph.h"
#include "rfexec/output/output_sink.h"
#include "tools/cli/options.h"

struct rfx_cli_class {
    int64_t index;
    float value;
    char *label; /* printable; NULL: no label */
};

struct rfx_cli_classes { /* by falling value */
    struct rfx_memory *mem;
    int count, capacity; /* capacity 0: nothing is looked for */
    struct rfx_cli_class *items;
    char *labels;     /* the label file, lines cut at their ends */
    int64_t n_labels; /* lines of it */
};

/* Whether all elements lie along one dimension, more than one. */
bool rfx_cli_is_vector(const struct rfx_tensor *tensor);

/* Whether the first output is a vector. */
bool rfx_cli_has_classes(const struct rfx_graph *graph);

/* Before a run: room for the highest elements of the first output where it is a vector; none
 * otherwise. */
RFX_NODISCARD enum rfx_status rfx_cli_classes_begin(struct rfx_memory *mem,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_cli_report_options *options,
                                                    struct rfx_cli_classes *classes,
                                                    struct rfx_error *err);

/* Takes a piece of the first output, as a sink gets it. */
void rfx_cli_classes_take(struct rfx_cli_classes *classes, const struct rfx_end *end,
                          struct rfx_rect rect, const struct rfx_view *view);

/* After the run: reads the labels of --labels. */
RFX_NODISCARD enum rfx_status rfx_cli_classes_finish(const struct rfx_cli_report_options *options,
                                                     struct rfx_cli_classes *classes,
                                                     struct rfx_error *err);

void rfx_cli_classes_free(struct rfx_cli_classes *classes);
#endif
