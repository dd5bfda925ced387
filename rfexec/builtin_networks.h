/* The families of built-in networks. Each function adds the layers of one network to the builder,
 * from the input node `x` to the output, named as torchvision names its modules. */
#ifndef RFX_RFEXEC_BUILTIN_NETWORKS_H
#define RFX_RFEXEC_BUILTIN_NETWORKS_H

#include "rfexec/builtin_builder.h"

/* What distinguishes the members of a family. */
struct rfx_builtin_config {
    int blocks[5];   /* resnet: per stage; vgg: convolutions per stage */
    bool bottleneck; /* resnet: 1x1, 3x3, 1x1 with four times the channels */
    double width;    /* mobilenet: multiplier of all channel counts */
};

void rfx_builtin_mobilenet_v2(struct rfx_builder *b, int x,
                              const struct rfx_builtin_config *config);
void rfx_builtin_resnet(struct rfx_builder *b, int x, const struct rfx_builtin_config *config);
void rfx_builtin_vgg(struct rfx_builder *b, int x, const struct rfx_builtin_config *config);
#endif
