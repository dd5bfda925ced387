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

struct rfx_cli_classes { /* by falling value */
    struct rfx_memory *mem;
    int count, capacity; /* capacity 0: no classes are wanted */
    struct rfx_cli_class *items;
    char *labels;     /* text of the label file, lines ended by NUL */
    int64_t n_labels; /* lines of the file */
};

/* Whether the tensor has more than one element and all lie along one dimension. */
bool rfx_cli_is_vector(const struct rfx_tensor *tensor);

/* Whether the first output is a vector. */
bool rfx_cli_has_classes(const struct rfx_graph *graph);

/* Called before a run: allocates room for the largest elements of the first output, if it is a
 * vector. */
RFX_NODISCARD enum rfx_status rfx_cli_classes_begin(struct rfx_memory *mem,
                                                    const struct rfx_graph *graph,
                                                    const struct rfx_cli_report_options *options,
                                                    struct rfx_cli_classes *classes,
                                                    struct rfx_error *err);

/* Takes a piece of the first output, with the arguments of a sink. */
void rfx_cli_classes_take(struct rfx_cli_classes *classes, const struct rfx_end *end,
                          struct rfx_rect rect, const struct rfx_view *view);

/* Called after the run: reads the file of --labels. */
RFX_NODISCARD enum rfx_status rfx_cli_classes_finish(const struct rfx_cli_report_options *options,
                                                     struct rfx_cli_classes *classes,
                                                     struct rfx_error *err);

void rfx_cli_classes_free(struct rfx_cli_classes *classes);
#endif
