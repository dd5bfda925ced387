/* The table of activations. */
#include "layers/graph/act.h"

#include <string.h>

static const struct rfx_act_def act_table[] = {
#define RFX_ACT_ROW(kind, onnx, traits, alpha, beta) [kind] = {onnx, traits, alpha, beta},
    RFX_ACT_LIST(RFX_ACT_ROW)
#undef RFX_ACT_ROW
};
_Static_assert(sizeof act_table / sizeof act_table[0] == RFX_ACT_COUNT, "one row per activation");

const struct rfx_act_def *rfx_act_def(enum rfx_act_kind kind) {
    return &act_table[kind];
}

enum rfx_act_kind rfx_act_find(const char *onnx) {
    for (int kind = 0; kind < RFX_ACT_COUNT; kind++)
        if ((act_table[kind].traits & RFX_ACT_HAS_OWN_FORM) == 0 &&
            strcmp(act_table[kind].onnx, onnx) == 0)
            return (enum rfx_act_kind)kind;
    return RFX_ACT_COUNT;
}
