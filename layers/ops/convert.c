/* CONVERT: converts a map or a PLAIN tensor to another element type.
 *
 * With a scale it is ONNX QuantizeLinear or DequantizeLinear. Without one, float32 becomes the
 * nearest integer, halves round to the even integer, values are clamped to the type's range, and
 * NaN becomes 0 (ONNX QuantizeLinear with scale 1 and zero point 0). Integers become the nearest
 * float32. Every element is converted separately, so any division of the work gives the same bits.
 */
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/kernels.h"

#define PIECE_ELEMS 16384 /* elements of a PLAIN tensor per work item */
#define TYPES (RFX_TYPES_FLOATS_AND_BYTES | RFX_TYPE_BIT(RFX_TYPE_INT32))

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    if (node->n_in != 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Convert '%s': has %d inputs, needs 1",
                        node->name, node->n_in);
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    enum rfx_type to = node->attr.convert.to;
    bool floats = in->type == RFX_TYPE_FLOAT32 || to == RFX_TYPE_FLOAT32;
    bool known = (TYPES >> in->type & 1U) != 0 && (TYPES >> to & 1U) != 0;
    if (in->type == to || !floats || !known)
        return rfx_infer_refuse(node, err, "from %s to %s is no conversion",
                                rfx_type_name(in->type), rfx_type_name(to));
    enum rfx_type other = to == RFX_TYPE_FLOAT32 ? in->type : to;
    float scale = node->attr.convert.scale;
    int32_t zero = node->attr.convert.zero_point;
    if (scale == 0.0f ? zero != 0 : !rfx_type_takes_steps(other, scale, zero))
        return rfx_infer_refuse(node, err, "scale %g and zero point %d of %s", (double)scale,
                                (int)zero, rfx_type_name(other));
    if (in->quant != NULL)
        return rfx_infer_refuse(node, err, "input 0 has scales, which a conversion would ignore");
    node->out = *in;
    node->out.type = to;
    return RFX_OK;
}

static void convert(const struct rfx_node *node, const void *from, enum rfx_type from_type,
                    void *to, enum rfx_type to_type, int64_t n) {
    float scale = node->attr.convert.scale;
    int32_t zero = node->attr.convert.zero_point;
    if (scale != 0.0f && to_type == RFX_TYPE_FLOAT32)
        rfx_kernels_of_bytes(from_type)->dequantise(from, scale, zero, to, n);
    else if (scale != 0.0f)
        (node->attr.convert.shifted
             ? rfx_kernels_of_bytes(to_type)->quantise_shifted
             : rfx_kernels_of_bytes(to_type)->quantise)(from, scale, zero, to, n);
    else if (to_type == RFX_TYPE_FLOAT32)
        rfx_type_load(from_type, from, n, to);
    else
        rfx_type_round(to_type, from, n, to);
}

static void plain_piece(const struct rfx_run_args *args, int64_t index) {
    const struct rfx_view *in = &args->in[0], *out = &args->out;
    int64_t first = index * PIECE_ELEMS,
            n = rfx_min_i64(PIECE_ELEMS, args->node->out.elems - first);
    convert(args->node, (const char *)in->data + (size_t)first * rfx_type_bytes(in->type), in->type,
            (char *)out->data + (size_t)first * rfx_type_bytes(out->type), out->type, n);
}

static void map_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_view *in = &args->in[0], *out = &args->out;
    int64_t c = args->node->out.c, step = in->c == c && out->c == c ? rfx_rect_cols(u) : 1;
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x += step)
            convert(args->node, rfx_view_at(in, y, x), in->type, rfx_view_at(out, y, x), out->type,
                    step * c);
}

static void run(const struct rfx_run_args *args) {
    const struct rfx_tensor *out = &args->node->out;
    if (out->layout == RFX_LAYOUT_PLAIN)
        rfx_op_share(args, rfx_ceil_div(out->elems, PIECE_ELEMS), plain_piece);
    else
        rfx_units_share(args, rfx_units_of_rows(args), 0, map_unit, args);
}

const struct rfx_op_def rfx_op_convert = {
    .name = "Convert",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .types = ~0U, /* infer checks the types */
    .infer = infer,
    .axis_map = rfx_op_map_identity,
    .run = run,
};
