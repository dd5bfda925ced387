#include "tests/support/run/catch_outputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/test_util.h"

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct caught_outputs *caught = user;
    (void)err;
    rfx_end_scatter(end, RFX_TYPE_FLOAT32, caught->values[end->output], rect, view);
    caught->received[end->output] += rfx_rect_area(rect) * end->channels;
    return RFX_OK;
}

void catch_outputs(struct caught_outputs *caught, const struct rfx_graph *graph) {
    size_t n = (size_t)graph->n_outputs;
    *caught = (struct caught_outputs){.n = graph->n_outputs,
                                      .elems = calloc(n, sizeof(int64_t)),
                                      .values = calloc(n, sizeof(float *)),
                                      .received = calloc(n, sizeof(int64_t)),
                                      .sink = {.write = receive, .user = caught}};
    assert_true(caught->elems != NULL && caught->values != NULL && caught->received != NULL);
    for (int k = 0; k < caught->n; k++) {
        const struct rfx_output *output = &graph->outputs[k];
        const struct rfx_tensor *t = &graph->nodes[output->node].out;
        caught->elems[k] =
            t->layout == RFX_LAYOUT_NHWC ? rfx_rect_area(output->part) * t->c : t->elems;
        caught->values[k] = test_floats(caught->elems[k]);
    }
}

void caught_outputs_free(struct caught_outputs *caught) {
    for (int k = 0; k < caught->n; k++) free(caught->values[k]);
    free(caught->values);
    free(caught->elems);
    free(caught->received);
    *caught = (struct caught_outputs){0};
}
