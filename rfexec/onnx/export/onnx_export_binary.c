/* ONNX forms of arithmetic, comparisons and logic of two tensors. */
#include "rfexec/onnx/export/onnx_export.h"

enum { TYPE_FLOAT = 1, TYPE_BOOL = 9 }; /* TensorProto's */

const char *rfx_export_as_bool(struct rfx_exporter *x, const char *node, const char *part,
                               const char *in) {
    const char *name = rfx_onnx_text(&x->writer, "%s#%s_bool", node, part);
    rfx_onnx_int(rfx_export_emit1(x, "Cast", name, name, in), "to", TYPE_BOOL);
    return name;
}

void rfx_export_to_float(struct rfx_exporter *x, const char *name, const char *output,
                         const char *in) {
    rfx_onnx_int(rfx_export_emit1(x, "Cast", name, output, in), "to", TYPE_FLOAT);
}

enum form {
    FORM_NUMBERS,  /* of numbers, gives numbers */
    FORM_COMPARES, /* of numbers, gives booleans */
    FORM_LOGIC,    /* of booleans */
    FORM_CHOOSES,  /* Where with -0 */
};

static const struct {
    const char *op;
    enum form form;
} rows[] = {
    [RFX_BINARY_ADD] = {"Add", FORM_NUMBERS},
    [RFX_BINARY_SUB] = {"Sub", FORM_NUMBERS},
    [RFX_BINARY_MUL] = {"Mul", FORM_NUMBERS},
    [RFX_BINARY_DIV] = {"Div", FORM_NUMBERS},
    [RFX_BINARY_MAX] = {"Max", FORM_NUMBERS},
    [RFX_BINARY_MIN] = {"Min", FORM_NUMBERS},
    [RFX_BINARY_POW] = {"Pow", FORM_NUMBERS},
    [RFX_BINARY_MOD] = {"Mod", FORM_NUMBERS},
    [RFX_BINARY_GREATER] = {"Greater", FORM_COMPARES},
    [RFX_BINARY_GREATER_OR_EQUAL] = {"GreaterOrEqual", FORM_COMPARES},
    [RFX_BINARY_LESS] = {"Less", FORM_COMPARES},
    [RFX_BINARY_LESS_OR_EQUAL] = {"LessOrEqual", FORM_COMPARES},
    [RFX_BINARY_EQUAL] = {"Equal", FORM_COMPARES},
    [RFX_BINARY_AND] = {"And", FORM_LOGIC},
    [RFX_BINARY_OR] = {"Or", FORM_LOGIC},
    [RFX_BINARY_XOR] = {"Xor", FORM_LOGIC},
    [RFX_BINARY_IF] = {"Where", FORM_CHOOSES},
    [RFX_BINARY_UNLESS] = {"Where", FORM_CHOOSES},
};

static void export_choice(struct rfx_exporter *x, enum rfx_binary_kind kind, const char *name,
                          const char *output, const char *condition, const char *value) {
    const char *none = rfx_export_scalar(x, name, "none", -0.0f);
    bool is_if = kind == RFX_BINARY_IF;
    const char *in[3] = {condition, is_if ? value : none, is_if ? none : value};
    (void)rfx_onnx_node(&x->writer, "Where", name, output, in, 3);
}

void rfx_export_join(struct rfx_exporter *x, enum rfx_binary_kind kind, const char *name,
                     const char *output, const char *a, const char *b) {
    enum form form = rows[kind].form;
    if (form == FORM_LOGIC || form == FORM_CHOOSES) a = rfx_export_as_bool(x, name, "a", a);
    if (form == FORM_LOGIC) b = rfx_export_as_bool(x, name, "b", b);
    if (form == FORM_CHOOSES) {
        export_choice(x, kind, name, output, a, b);
        return;
    }
    bool gives_bool = form == FORM_COMPARES || form == FORM_LOGIC;
    const char *made = gives_bool ? rfx_onnx_text(&x->writer, "%s#bool", name) : output;
    struct rfx_onnx_node *n =
        rfx_export_emit2(x, rows[kind].op, gives_bool ? made : name, made, a, b);
    if (kind == RFX_BINARY_MOD) rfx_onnx_int(n, "fmod", 1);
    if (gives_bool) rfx_export_to_float(x, name, output, made);
}

void rfx_export_binary(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    rfx_export_join(x, node->attr.binary.kind, node->name, output, rfx_export_in(x, node, 0),
                    rfx_export_in(x, node, 1));
}
