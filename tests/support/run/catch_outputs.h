/* A sink that puts the outputs of a run into arrays, as ONNX orders them. */
#ifndef RFX_TESTS_SUPPORT_RUN_CATCH_OUTPUTS_H
#define RFX_TESTS_SUPPORT_RUN_CATCH_OUTPUTS_H

#include "rfexec/output/output_sink.h"

struct caught_outputs {
    int n;
    int64_t *elems; /* per output; of a part those of the part */
    float **values;
    int64_t *received; /* elements that came in all runs */
    struct rfx_output_sink sink;
};

/* `caught` must stay where it is: the sink points to it. */
void catch_outputs(struct caught_outputs *caught, const struct rfx_graph *graph);

void caught_outputs_free(struct caught_outputs *caught);
#endif
