/* The largest elements of an output that is a vector of classes, with their labels. */
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

struct rfx_cli_classes { /* the items are sorted by value, largest first */
    struct rfx_memory *mem;
    int count, capacity; /* capacity 0: no classes are wanted */
    struct rfx_cli_class *items;
    char *labels;     /* text of the label file, lines ended by NUL */
    int64_t n_labels; /* lines of the file */
};

/* Returns whether the tensor is a vector: more than one element, all along one dimension. */
bool rfx_cli_is_vector(const struct rfx_tensor *tensor);

/* Returns whether the network's first output is a vector. */
bool rfx_cli_has_classes(const struct rfx_graph *graph);

/* Called before a run. If the first output is a vector, allocates the list of its largest elements.
 */
RFX_NODISCARD enum rfx_status rfx_cli_classes_begin(struct rfx_memory *mem,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_cli_report_options *options,
                                                    struct rfx_cli_classes *classes,
                                                    struct rfx_error *err);

/* Adds the elements of one piece of the first output to the list. The arguments are those of an
 * output sink. */
void rfx_cli_classes_take(struct rfx_cli_classes *classes, const struct rfx_end *end,
                          struct rfx_rect rect, const struct rfx_view *view);

/* Called after the run. Reads the label file of --labels and gives each class its label. */
RFX_NODISCARD enum rfx_status rfx_cli_classes_finish(const struct rfx_cli_report_options *options,
                                                     struct rfx_cli_classes *classes,
                                                     struct rfx_error *err);

void rfx_cli_classes_free(struct rfx_cli_classes *classes);
#endif
