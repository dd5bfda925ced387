/* The families of built-in networks. The names of layers are the module names of torchvision or of
 * the network's original code. */
#ifndef RFX_RFEXEC_BUILTIN_BUILTIN_NETWORKS_H
#define RFX_RFEXEC_BUILTIN_BUILTIN_NETWORKS_H

#include "rfexec/builtin/builtin_builder.h"

/* Parameters by which the members of a family differ. */
struct rfx_builtin_config {
    int blocks[5];    /* resnet, convnext: per stage; vgg: convolutions per stage */
    bool small;       /* mobilenet_v3 */
    bool bottleneck;  /* resnet: 1x1, 3x3, 1x1 with four times the channels */
    double width;     /* mobilenet: multiplier of all channel counts */
    int64_t scale;    /* fsrcnn: output rows per input row */
    int64_t channels; /* channels of the input; 0 means 3 */
    int64_t columns;  /* default number of image columns; 0: as many as rows */
    struct {
        int modules, blocks, convs, channels;
    } toy; /* m, b, n and Cst of paper 003, figure 7 */
};

/* Adds the layers of a network to the builder, from the input node `x` to the output. */
typedef void rfx_builtin_network(struct rfx_builder *b, int x,
                                 const struct rfx_builtin_config *config);

rfx_builtin_network rfx_builtin_mobilenet_v2, rfx_builtin_resnet, rfx_builtin_vgg,
    rfx_builtin_mobilenet_v1, rfx_builtin_mnasnet, rfx_builtin_squeezenet, rfx_builtin_inception_v3,
    rfx_builtin_densenet, rfx_builtin_efficientnet, rfx_builtin_efficientnet_v2,
    rfx_builtin_convnext, rfx_builtin_unet, rfx_builtin_unet_instance, rfx_builtin_fsrcnn,
    rfx_builtin_table1, rfx_builtin_toy, rfx_builtin_inception_v4, rfx_builtin_resnet_v2,
    rfx_builtin_deeplab_v3, rfx_builtin_posenet, rfx_builtin_blazeface, rfx_builtin_srgan,
    rfx_builtin_yolo_v1, rfx_builtin_yolo_v8, rfx_builtin_mobilenet_v3, rfx_builtin_text_detector,
    rfx_builtin_real_esrgan, rfx_builtin_real_esrgan_compact, rfx_builtin_nafnet,
    rfx_builtin_vae_decoder, rfx_builtin_swinir;

/* A row of table 2 of the MobileNetV2 paper: expansion factor, output channels, number of blocks,
 * stride of the first block. */
struct rfx_inverted_stage {
    int64_t expand, channels;
    int blocks;
    int64_t stride;
};
#define RFX_MOBILENET_V2_STAGES 7
extern const struct rfx_inverted_stage rfx_mobilenet_v2_stages[RFX_MOBILENET_V2_STAGES];
#endif
