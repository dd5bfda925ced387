/* A sink that stores the outputs of a run in arrays, in ONNX order. */
#ifndef RFX_TESTS_SUPPORT_RUN_CATCH_OUTPUTS_H
#define RFX_TESTS_SUPPORT_RUN_CATCH_OUTPUTS_H

#include "rfexec/output/output_sink.h"

struct caught_outputs {
    int n;
    int64_t *elems; /* per output; if only a part of it is requested, the elements of the part */
    float **values;
    int64_t *received; /* per output: elements received so far, in all runs together */
    struct rfx_output_sink sink;
};

/* Begins to catch outputs. The sink points to `caught`, which must not be moved. */
void catch_outputs(struct caught_outputs *caught, const struct rfx_graph *graph);

void caught_outputs_free(struct caught_outputs *caught);
#endif
