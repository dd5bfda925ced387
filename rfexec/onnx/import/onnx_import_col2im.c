/* Conversion of Col2Im: a transposed convolution of each channel by itself, whose weights put value
 * (ky, kx) of a block where it belongs: values that meet are added. */
#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

#define MOST (1 << 20) /* rows or columns of an image, or of a block */

struct blocks {
    int64_t image[2], block[2], strides[2], dilations[2], pads[4];
    int64_t count[2]; /* how many along rows and columns */
};

/* Constant input k: two integers. */
static enum rfx_status read_pair(struct rfx_onnx_import *ctx, size_t k, int64_t *out) {
    struct rfx_onnx_const *c;
    const int64_t *values;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &c);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, c, &values);
    if (status != RFX_OK) return status;
    if (c->elems != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "input %zu has %lld elements; only images of rows and columns are "
                               "supported",
                               k, (long long)c->elems);
    for (int i = 0; i < 2; i++) out[i] = values[i];
    return RFX_OK;
}

static enum rfx_status read_blocks(struct rfx_onnx_import *ctx, struct blocks *b) {
    enum rfx_status status = read_pair(ctx, 1, b->image);
    if (status == RFX_OK) status = read_pair(ctx, 2, b->block);
    if (status == RFX_OK) status = rfx_onnx_attr_ints(ctx, "strides", 2, b->strides);
    if (status == RFX_OK) status = rfx_onnx_attr_ints(ctx, "dilations", 2, b->dilations);
    if (status == RFX_OK) status = rfx_onnx_attr_ints(ctx, "pads", 4, b->pads);
    if (status != RFX_OK) return status;
    for (int i = 0; i < 2; i++) {
        const int64_t values[6] = {b->image[i],     b->block[i],    b->strides[i],
                                   b->dilations[i], b->pads[i] + 1, b->pads[i + 2] + 1};
        for (int k = 0; k < 6; k++)
            if (values[k] < 1 || values[k] > MOST)
                return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                       "a size, stride, dilation or pad out of range");
        int64_t room =
            b->image[i] + b->pads[i] + b->pads[i + 2] - (b->dilations[i] * (b->block[i] - 1) + 1);
        if (room < 0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a block larger than its image");
        b->count[i] = room / b->strides[i] + 1;
    }
    return RFX_OK;
}

/* Weights [channels * block][1][kh][kw]: 1 at the value's own place. */
static enum rfx_status places(struct rfx_onnx_import *ctx, int64_t channels, const int64_t *block,
                              int *out) {
    int64_t area = block[0] * block[1];
    const struct rfx_shape shape = {4, {channels * area, 1, block[0], block[1]}};
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, &shape);
    if (c == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "blocks of %lldx%lld for %lld channels",
                               (long long)block[0], (long long)block[1], (long long)channels);
    double *values = rfx_onnx_const_reals_rw(c);
    for (int64_t i = 0; i < channels * area; i++)
        for (int64_t k = 0; k < area; k++) values[i * area + k] = k == i % area ? 1.0 : 0.0;
    return rfx_onnx_const_weight(ctx, c, out);
}

enum rfx_status rfx_onnx_col2im(struct rfx_onnx_import *ctx) {
    struct blocks b = {.strides = {1, 1}, .dilations = {1, 1}};
    struct rfx_node node = {.op = RFX_OP_CONV_TRANSPOSE};
    struct rfx_conv_attr *a = &node.attr.conv;
    struct rfx_onnx_operand x = {-1, NULL};
    int in, out = -1;
    enum rfx_status status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0), &x.node);
    if (status == RFX_OK) status = read_blocks(ctx, &b);
    if (status != RFX_OK) return status;
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    int64_t area = b.block[0] * b.block[1];
    if (shape.rank != 3 || shape.dims[0] != 1 || shape.dims[1] % area != 0 ||
        shape.dims[2] != b.count[0] * b.count[1])
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "input 0 is not (1, channels * %lld, %lld * %lld)", (long long)area,
                               (long long)b.count[0], (long long)b.count[1]);
    const struct rfx_shape four = {4, {1, shape.dims[1], b.count[0], b.count[1]}};
    status = rfx_onnx_reshape(ctx, x.node, &four, &x.node);
    if (status == RFX_OK) status = rfx_onnx_map(ctx, x, &in);
    if (status == RFX_OK) status = places(ctx, shape.dims[1] / area, b.block, &a->weight);
    if (status != RFX_OK) return status;
    a->groups = a->oc = shape.dims[1] / area;
    a->bias = a->scale = -1;
    a->kh = b.block[0];
    a->kw = b.block[1];
    a->sh = b.strides[0];
    a->sw = b.strides[1];
    a->dh = b.dilations[0];
    a->dw = b.dilations[1];
    a->pads = (struct rfx_pads){b.pads[0], b.pads[1], b.pads[2], b.pads[3]};
    int64_t rest[2];
    for (int i = 0; i < 2; i++)
        rest[i] = b.image[i] + b.pads[i] + b.pads[i + 2] - (b.count[i] - 1) * b.strides[i] -
                  (b.dilations[i] * (b.block[i] - 1) + 1);
    a->out_pad_h = rest[0];
    a->out_pad_w = rest[1];
    status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
