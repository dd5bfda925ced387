/* The table of built-in networks, and the functions that build and export a network by name. A
 * suffix ":W" scales the channel counts of networks that have a width multiplier. fsrcnn has the
 * suffix ":S" and toy the suffix ":key=value,...". ":int8" is the network on bytes
 * (builtin_int8.h). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/builtin/builtin_int8.h"
#include "rfexec/builtin/builtin_networks.h"
#include "rfexec/run/model.h"

static const struct rfx_builtin builtin_list[] = {
    {"mobilenet_v2", "MobileNetV2, inverted residuals; mobilenet_v2:W scales its width"},
    {"resnet18", "ResNet-18, basic blocks"},
    {"resnet34", "ResNet-34, basic blocks"},
    {"resnet50", "ResNet-50, bottleneck blocks"},
    {"resnet101", "ResNet-101, bottleneck blocks"},
    {"resnet152", "ResNet-152, bottleneck blocks"},
    {"vgg16", "VGG-16 without batch norm, adaptive pool before its classifier"},
    {"mobilenet_v1", "MobileNetV1, depthwise separable; mobilenet_v1:W scales its width"},
    {"squeezenet1_1", "SqueezeNet 1.1, fire modules"},
    {"inception_v3", "Inception-v3 without auxiliary classifier"},
    {"densenet121", "DenseNet-121, concatenated layers"},
    {"efficientnet_b0", "EfficientNet-B0, squeeze-and-excitation"},
    {"mnasnet1_3", "MNASNet-B1 of width 1.3"},
    {"unet", "U-Net, two classes per pixel; skips are concatenated"},
    {"unet_instance", "U-Net with instance norms, nnU-Net's plain form of five stages"},
    {"fsrcnn", "FSRCNN on colour pictures; fsrcnn:S enlarges S times (2 to 4)"},
    {"inception_v4", "Inception-v4, TF-slim's form"},
    {"resnet_v2_101", "ResNet-101 v2 with pre-activation, TF-slim's form"},
    {"deeplab_v3", "DeepLab v3 on MobileNetV2 0.5, output stride 8; deeplab_v3:W scales its width"},
    {"posenet", "PoseNet on MobileNetV1 0.75, four outputs; posenet:W scales its width"},
    {"blazeface", "BlazeFace, front camera: boxes and scores"},
    {"srgan", "SRGAN's generator, enlarges four times"},
    {"yolov1", "YOLOv1, 24 convolutions and two fully connected layers"},
    {"mobilenet_v3_large", "MobileNetV3 large, squeeze-and-excitation and hard swish"},
    {"mobilenet_v3_small", "MobileNetV3 small"},
    {"real_esrgan", "Real-ESRGAN, 23 blocks of dense layers, enlarges four times"},
    {"real_esrgan_compact", "Real-ESRGAN's compact form, enlarges four times"},
    {"swinir_light",
     "SwinIR lightweight, enlarges twice: attention in windows; multiples of 8 pixels"},
    {"nafnet", "NAFNet of width 32, denoises: norms over channels, channel attention"},
    {"vae_decoder",
     "latent diffusion's decoder: group norms, attention; 4 channels, 8 times larger"},
    {"yolov8n", "YOLOv8 nano: boxes and scores of three levels as one tensor"},
    {"efficientnet_v2_s", "EfficientNetV2-S, its first stages without squeeze-and-excitation"},
    {"convnext_tiny", "ConvNeXt tiny: 7x7 by channel, norms over channels"},
    {"ppocr_det", "PP-OCRv2's detector of text, mobile: a pyramid on half a MobileNetV3"},
    {"table1", "the sequential network of the paper's table 1"},
    {"toy", "the paper's parametric network; toy:m=3,b=2,n=3,cst=32 sets its parameters"},
    /* without recipes */
    {"mobilenet_v2:int8", "MobileNetV2 on bytes (8 bits)"},
    {"resnet18:int8", "ResNet-18 on bytes"},
    {"resnet50:int8", "ResNet-50 on bytes"},
    {"unet:int8", "U-Net on bytes; transposed convolutions sum in float32"},
    {"fsrcnn:int8", "FSRCNN on bytes; activations and the last layer in float32"},
    {"deeplab_v3:int8", "DeepLab v3 on bytes; resizes in float32"},
    {"yolov8n:int8", "YOLOv8 nano on bytes; activations and boxes in float32"},
};

static const struct recipe {
    rfx_builtin_network *build;
    struct rfx_builtin_config config; /* width 0: the network has no width multiplier */
    int64_t size;                     /* default number of rows and columns */
} recipes[] = {
    {rfx_builtin_mobilenet_v2, {.width = 1.0}, 224},
    {rfx_builtin_resnet, {.blocks = {2, 2, 2, 2}}, 224},
    {rfx_builtin_resnet, {.blocks = {3, 4, 6, 3}}, 224},
    {rfx_builtin_resnet, {.blocks = {3, 4, 6, 3}, .bottleneck = true}, 224},
    {rfx_builtin_resnet, {.blocks = {3, 4, 23, 3}, .bottleneck = true}, 224},
    {rfx_builtin_resnet, {.blocks = {3, 8, 36, 3}, .bottleneck = true}, 224},
    {rfx_builtin_vgg, {.blocks = {2, 2, 3, 3, 3}}, 224},
    {rfx_builtin_mobilenet_v1, {.width = 1.0}, 224},
    {rfx_builtin_squeezenet, {.width = 0}, 224},
    {rfx_builtin_inception_v3, {.width = 0}, 299},
    {rfx_builtin_densenet, {.blocks = {6, 12, 24, 16}}, 224},
    {rfx_builtin_efficientnet, {.width = 0}, 224},
    {rfx_builtin_mnasnet, {.width = 0}, 224},
    {rfx_builtin_unet, {.width = 0}, 256},
    {rfx_builtin_unet_instance, {.width = 0}, 256},
    {rfx_builtin_fsrcnn, {.scale = 2}, 224},
    {rfx_builtin_inception_v4, {.width = 0}, 299},
    {rfx_builtin_resnet_v2, {.blocks = {3, 4, 23, 3}}, 224},
    {rfx_builtin_deeplab_v3, {.width = 0.5}, 257},
    {rfx_builtin_posenet, {.width = 0.75, .columns = 257}, 353},
    {rfx_builtin_blazeface, {.width = 0}, 128},
    {rfx_builtin_srgan, {.width = 0}, 96},
    {rfx_builtin_yolo_v1, {.width = 0}, 448},
    {rfx_builtin_mobilenet_v3, {.width = 0}, 224},
    {rfx_builtin_mobilenet_v3, {.small = true}, 224},
    {rfx_builtin_real_esrgan, {.width = 0}, 128},
    {rfx_builtin_real_esrgan_compact, {.width = 0}, 128},
    {rfx_builtin_swinir, {.width = 0}, 64},
    {rfx_builtin_nafnet, {.width = 0}, 256},
    {rfx_builtin_vae_decoder, {.channels = 4}, 64},
    {rfx_builtin_yolo_v8, {.width = 0}, 640},
    {rfx_builtin_efficientnet_v2, {.width = 0}, 384},
    {rfx_builtin_convnext, {.blocks = {3, 3, 9, 3}}, 224},
    {rfx_builtin_text_detector, {.width = 0}, 640},
    {rfx_builtin_table1, {.width = 0}, 32},
    {rfx_builtin_toy, {.toy = {.modules = 3, .blocks = 2, .convs = 3, .channels = 32}}, 224},
};

enum {
    BUILTIN_COUNT = sizeof builtin_list / sizeof builtin_list[0],
    RECIPES = sizeof recipes / sizeof recipes[0],
    INT8_NETWORKS = 7
};
_Static_assert(RECIPES + INT8_NETWORKS == BUILTIN_COUNT, "one recipe per network in float32");

const struct rfx_builtin *rfx_builtin_list(int *count) {
    *count = BUILTIN_COUNT;
    return builtin_list;
}

/* Returns the recipe of the network `name`, without a suffix from a colon on; -1: none. */
static int find_builtin(const char *name) {
    size_t length = strcspn(name, ":");
    for (int i = 0; i < RECIPES; i++)
        if (strlen(builtin_list[i].name) == length &&
            strncmp(builtin_list[i].name, name, length) == 0)
            return i;
    return -1;
}

bool rfx_builtin_exists(const char *name) {
    return find_builtin(name) >= 0;
}

static enum rfx_status read_width(const char *name, struct rfx_builtin_config *config,
                                  struct rfx_error *err) {
    const char *suffix = strchr(name, ':');
    if (suffix == NULL) return RFX_OK;
    if (config->width == 0.0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "built-in '%s': this network has no width multiplier", name);
    char *end;
    double width = strtod(suffix + 1, &end);
    if (end == suffix + 1 || *end != '\0' || !(width >= 0.05 && width <= 8.0))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "built-in '%s': the width multiplier '%s' is not a number from 0.05 to 8",
                        name, suffix + 1);
    config->width = width;
    return RFX_OK;
}

/* Reads the suffix ":S", one digit, into config->scale. */
static enum rfx_status read_scale(const char *name, struct rfx_builtin_config *config,
                                  struct rfx_error *err) {
    const char *suffix = strchr(name, ':');
    if (suffix == NULL) return RFX_OK;
    if (suffix[1] < '2' || suffix[1] > '4' || suffix[2] != '\0')
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "built-in '%s': the scale '%s' is not 2, 3 or 4", name, suffix + 1);
    config->scale = suffix[1] - '0';
    return RFX_OK;
}

/* Reads the suffix ":key=value,..." with any of the keys m, b, n, cst into config->toy. */
static enum rfx_status read_toy(const char *name, struct rfx_builtin_config *config,
                                struct rfx_error *err) {
    const struct {
        const char *key;
        int *value;
        int most;
    } keys[] = {{"m=", &config->toy.modules, 8},
                {"b=", &config->toy.blocks, 64},
                {"n=", &config->toy.convs, 64},
                {"cst=", &config->toy.channels, 512}};
    const char *text = strchr(name, ':');
    while (text != NULL && *text != '\0') {
        const char *item = text + 1;
        char *end = NULL;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0] && end == NULL; i++) {
            size_t length = strlen(keys[i].key);
            if (strncmp(item, keys[i].key, length) != 0) continue;
            if (item[length] < '0' || item[length] > '9') break;
            long value = strtol(item + length, &end, 10);
            if (value < 1 || value > keys[i].most)
                return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                "built-in '%s': %s%ld is not in 1 to %d", name, keys[i].key, value,
                                keys[i].most);
            *keys[i].value = (int)value;
        }
        if (end == NULL || (*end != ',' && *end != '\0'))
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "built-in '%s': '%s' is not like m=3,b=2,n=3,cst=32", name, item);
        text = end;
    }
    return RFX_OK;
}

static enum rfx_status read_suffix(const char *name, struct rfx_builtin_config *config,
                                   struct rfx_error *err) {
    if (config->scale != 0) return read_scale(name, config, err);
    if (config->toy.modules != 0) return read_toy(name, config, err);
    return read_width(name, config, err);
}

static enum rfx_status build_layers(struct rfx_graph *graph, const struct recipe *recipe,
                                    const struct rfx_builtin_config *config,
                                    const struct rfx_load_options *options, struct rfx_error *err) {
    struct rfx_builder builder;
    rfx_builder_init(&builder, graph, options->seed, err);
    int64_t channels = config->channels != 0 ? config->channels : 3;
    int x = rfx_builder_input(&builder, channels, options->h, options->w, &options->fit);
    recipe->build(&builder, x, config);
    rfx_builder_free(&builder);
    return builder.status == RFX_OK ? rfx_model_finish(graph, options, err) : builder.status;
}

/* Finds the recipe of a network, and copies the options with a size. */
static enum rfx_status read_name(const char *name, const struct rfx_load_options *options,
                                 const struct recipe **recipe, struct rfx_load_options *sized,
                                 struct rfx_error *err) {
    int row = find_builtin(name);
    if (row < 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "'%s' is not a built-in network", name);
    if (options->h < 0 || options->w < 0 || options->h > INT_MAX || options->w > INT_MAX)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "built-in '%s': an image of %lld x %lld is not possible", name,
                        (long long)options->h, (long long)options->w);
    *recipe = &recipes[row];
    int64_t rows = recipes[row].size, columns = recipes[row].config.columns;
    *sized = *options;
    if (sized->h == 0) sized->h = rows;
    if (sized->w == 0) sized->w = columns != 0 ? columns : rows;
    return RFX_OK;
}

static enum rfx_status build_floats(struct rfx_memory *mem, const char *name,
                                    const struct recipe *recipe,
                                    const struct rfx_load_options *options, struct rfx_graph **out,
                                    struct rfx_error *err) {
    struct rfx_builtin_config config = recipe->config;
    enum rfx_status status = read_suffix(name, &config, err);
    if (status != RFX_OK) return status;
    struct rfx_graph *graph;
    status = rfx_graph_create(mem, name, &graph, err);
    if (status != RFX_OK) return status;
    graph->conv = options->conv;
    status = build_layers(graph, recipe, &config, options, err);
    if (status != RFX_OK) {
        rfx_graph_free(graph);
        return rfx_fail_within(err, status, "built-in '%s'", name);
    }
    *out = graph;
    return RFX_OK;
}

enum rfx_status rfx_builtin_build(struct rfx_memory *mem, const char *name,
                                  const struct rfx_load_options *options, struct rfx_graph **out,
                                  struct rfx_error *err) {
    const struct recipe *recipe;
    struct rfx_load_options sized;
    enum rfx_status status = read_name(name, options, &recipe, &sized, err);
    if (status != RFX_OK) return status;
    return rfx_builtin_is_int8(name) ? rfx_builtin_int8_build(mem, name, &sized, out, err)
                                     : build_floats(mem, name, recipe, &sized, out, err);
}

enum rfx_status rfx_builtin_export(struct rfx_memory *mem, const char *name,
                                   const struct rfx_load_options *options, const char *path,
                                   struct rfx_error *err) {
    /* No fusing, so that batch norms and activations are separate nodes, as other readers of ONNX
     * expect. */
    static const struct rfx_fuse_options no_fusing = {0};
    const struct recipe *recipe;
    struct rfx_load_options sized;
    struct rfx_graph *graph = NULL;
    enum rfx_status status = read_name(name, options, &recipe, &sized, err);
    if (status != RFX_OK) return status;
    if (rfx_builtin_is_int8(name)) return rfx_builtin_int8_export(mem, name, &sized, path, err);
    sized.fuse = &no_fusing;
    status = build_floats(mem, name, recipe, &sized, &graph, err);
    if (status == RFX_OK) status = rfx_onnx_export(graph, path, err);
    rfx_graph_free(graph);
    return status;
}
