/* Built-in networks: published MACs, numbers of parameters and receptive fields, sizes of maps by
 * layer name, and what the suffixes of names mean. MACs, parameters and sizes are
 * checked with operators fused and not fused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"
#include "rfexec/run/model.h"
#include "tests/support/test_util.h"

static const struct rfx_fuse_options fuse_nothing = {0};

/* mobilenet_v2 to vgg16: as published. squeezenet1_1 to mnasnet1_3: counted on torchvision's
 * modules with hooks (inception_v3 without auxiliary classifier, at 299). The others: summed by
 * hand from the papers' tables. */
static void test_published_figures(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t size;
        uint64_t macs, params;
    } facts[] = {
        {"mobilenet_v2", 0, 300774272u, 3504872u},
        {"resnet18", 0, 1814073344u, 11689512u},
        {"resnet50", 0, 4089184256u, 25557032u},
        {"vgg16", 0, 15470264320u, 138357544u},
        {"mobilenet_v1", 224, 568740352u, 4231976u},
        {"squeezenet1_1", 224, 349151936u, 1235496u},
        {"inception_v3", 299, 5713216096u, 23834568u},
        {"densenet121", 224, 2834161664u, 7978856u},
        {"efficientnet_b0", 224, 385814752u, 5288548u},
        {"mnasnet1_3", 224, 526362432u, 6282256u},
        {"unet", 224, 36881367040u, 31037698u},
        /* 18 convolutions of 9 ic oc weights, oc biases and oc scales and shifts each, 4
         * transposed ones of 4 ic oc + oc, and 32 * 2 + 2, summed in a program of their own
         */
        {"unet_instance", 224, 9243623424u, 7766018u},
        /* parameters as published (scale and shift of a batch norm counted): of timm's
         * inception_v4, Keras' ResNet101V2 (trainable), a PyTorch YOLOv1 without batch
         * norm. MACs: TF-slim states 14.40 G operations for resnet_v2_101; all four by the
         * sums of kernel * channels * outputs per layer, in a program of their own. */
        {"inception_v4", 299, 12253974624u, 42679816u},
        {"resnet_v2_101", 224, 7194476544u, 44577896u},
        {"yolov1", 448, 20285153280u, 271703550u},
        /* 9x9 3->64, 33 of 3x3 64->64, batch norms and biases, 2 of 3x3 64->256, 9x9
         * 64->3: 15616 + 33 * (36928 + 128) + 2 * 147712 + 15555, slopes 19 * 64; MACs at
         * 96: 9216 * (15552 + 33 * 36864) + 9216 * 5 * 147456 + 147456 * 15552 */
        {"srgan", 96,
         9216ull * (15552u + 33u * 36864u) + 9216ull * 5u * 147456u + 147456ull * 15552u,
         15616u + 33u * 37056u + 2u * 147712u + 15555u + 19u * 64u},
        /* 3*25*56 + 56*12 + 4*9*144 + 12*56 + 56*81*3, biases and slopes 4 * 56 + 10 * 12
+ 3 */
        {"fsrcnn", 0, 0, 4200u + 672u + 5184u + 672u + 13608u + 224u + 120u + 3u},
        /* torchvision's */
        {"mobilenet_v3_large", 224, 216589760u, 5483032u},
        {"mobilenet_v3_small", 224, 56510400u, 2542856u},
        /* as published, and 23 * 4 factors of 0.2 */
        {"real_esrgan", 0, 0, 16697987u + 92u},
        /* 1792 + 32 * 36928 + 27696, slopes 33 * 64; MACs at 128: 16384 * 9 * (3*64 + 32 * 64*64
         * + 64*48) */
        {"real_esrgan_compact", 128, 16384ull * 9u * (192u + 32u * 4096u + 3072u), 1213296u},
        /* as diffusers counts it */
        {"vae_decoder", 0, 0, 49490179u},
        /* the paper's table says 878 K, which is without the 24 tables of 225 * 6 biases: 910152 =
         * 4 * (6 * 30810 + 32460) + 3 * 60 + 1680 + 32460 + 6492 + 60; and the three constants of
         * 24 GELUs. MACs of a pixel: 24 layers of 60 * 180 + 2 * 64 * 60 + 60 * 60 + 2 * 60 * 120,
         * 5 convolutions of 9 * 60 * 60, the first of 9 * 3 * 60, the last of 9 * 60 * 12 */
        {"swinir_light", 64, 4096ull * (24u * 36480u + 5u * 32400u + 1620u + 6480u), 910152u + 72u},
        /* as published, fixed bins included; MACs by the sums of its layers, bins included */
        {"yolov8n", 640, 4371993600u, 3157200u},
        /* by the sums of its layers in a program of their own, as PaddleOCR's modules state them */
        {"ppocr_det", 640, 1911763200u, 559977u},
        /* torchvision's (with three numbers more in each of 18 Gaussian units); MACs by the sums of
         * their layers */
        {"efficientnet_v2_s", 384, 8365617152u, 21458488u},
        {"convnext_tiny", 224, 4455531264u, 28589128u + 54u},
        /* as published; MACs by the sums of its layers */
        {"nafnet", 256, 16045035520u, 29159715u},
        /* 9 * (3*32 + 32*32 + 32*64 + 64*64 + 64*128 + 128*128) + 2 * (32 + 64 + 128) */
        {"table1", 32,
         (96u + 1024u) * 9 * 1024 + (2048u + 4096u) * 9 * 256 + (8192u + 16384u) * 9 * 64,
         9u * 31840u + 448u},
        /* stem 3*8; one module of 2 * 2 convolutions of 8*8; 1x1 8*16; no pool */
        {"toy:m=1,b=2,n=2,cst=8", 10, (24u + 256u) * 900 + 128u * 100,
         9u * 280u + 40u + 128u + 16u}};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        for (int fused = 0; fused < 2; fused++) {
            struct rfx_graph *graph = test_builtin(mem, facts[i].name, facts[i].size, facts[i].size,
                                                   1, fused ? NULL : &fuse_nothing);
            if (facts[i].macs != 0) assert_int_equal(test_total_macs(graph), facts[i].macs);
            assert_int_equal(rfx_graph_param_count(graph), facts[i].params);
            assert_int_equal(graph->n_outputs, 1);
            rfx_graph_free(graph);
        }
    }
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* The output of the networks that classify ImageNet has 1000 elements. */
static void test_classes(void **state) {
    (void)state;
    static const char *const names[] = {"mobilenet_v2", "resnet18", "resnet50", "vgg16"};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
        struct rfx_graph *graph =
            test_builtin(mem, names[i / 2], 0, 0, 1, i % 2 == 1 ? NULL : &fuse_nothing);
        assert_string_equal(graph->outputs[0].name, "output");
        const struct rfx_tensor *out = &graph->nodes[graph->outputs[0].node].out;
        assert_int_equal(out->layout, RFX_LAYOUT_PLAIN);
        assert_int_equal(out->elems, 1000);
        rfx_graph_free(graph);
    }
    rfx_memory_free(mem);
}

/* By hand from the definitions; odd sizes too. */
static void test_module_names(void **state) {
    (void)state;
    static const struct {
        const char *network, *module;
        int64_t size, c, h;
    } cases[] = {
        {"mobilenet_v2", "features.0", 224, 32, 112},
        {"mobilenet_v2", "features.6", 224, 32, 28},
        {"mobilenet_v2", "features.7", 224, 64, 14},
        {"mobilenet_v2", "features.18", 224, 1280, 7},
        {"mobilenet_v2:0.5", "features.6", 224, 16, 28},
        {"resnet18", "layer2.1", 224, 128, 28},
        {"resnet34", "layer3.5", 224, 256, 14},
        {"resnet50", "layer2.3", 224, 512, 28},
        {"resnet50", "layer3.0", 224, 1024, 14},
        {"resnet50", "maxpool", 224, 64, 56},
        {"resnet152", "layer3.35", 224, 1024, 14},
        {"vgg16", "features.16", 224, 256, 28},
        {"vgg16", "features.29", 224, 512, 14},
        {"vgg16", "features.30", 224, 512, 7},
        {"mobilenet_v1", "Conv2d_13_pointwise", 224, 1024, 7},
        {"mobilenet_v1:0.25", "Conv2d_3_depthwise", 224, 32, 56},
        {"squeezenet1_1", "features.3", 224, 128, 55},
        {"squeezenet1_1", "features.12", 224, 512, 13},
        {"inception_v3", "Mixed_5d", 299, 288, 35},
        {"inception_v3", "Mixed_6a", 299, 768, 17},
        {"inception_v3", "Mixed_7c", 299, 2048, 8},
        {"densenet121", "features.denseblock2", 224, 512, 28},
        {"densenet121", "features.transition3", 224, 512, 7},
        {"densenet121", "features.denseblock4", 224, 1024, 7},
        {"efficientnet_b0", "features.0", 224, 32, 112},
        {"efficientnet_b0", "features.3.1", 224, 40, 28},
        {"efficientnet_b0", "features.8", 224, 1280, 7},
        {"mnasnet1_3", "layers.10.2", 224, 104, 14},
        {"inception_v4", "Mixed_3a", 299, 160, 73},
        {"inception_v4", "Mixed_4a", 299, 192, 71},
        {"inception_v4", "Mixed_5e", 299, 384, 35},
        {"inception_v4", "Mixed_6h", 299, 1024, 17},
        {"inception_v4", "Mixed_7d", 299, 1536, 8},
        {"resnet_v2_101", "block1/unit_2", 224, 256, 56},
        {"resnet_v2_101", "block1/unit_3", 224, 256, 28},
        {"resnet_v2_101", "block1/unit_3", 225, 256, 29},
        {"resnet_v2_101", "block4/unit_3", 224, 2048, 7},
        {"deeplab_v3", "expanded_conv_1", 257, 12, 65},
        {"deeplab_v3", "expanded_conv_16", 257, 160, 33},
        {"deeplab_v3:1", "expanded_conv_16", 256, 320, 32},
        {"deeplab_v3", "ResizeBilinear_2", 257, 21, 257},
        {"posenet", "Conv2d_13_pointwise", 257, 384, 17},
        {"posenet", "mid_offsets", 353, 64, 23},
        {"blazeface", "block10", 128, 88, 16},
        {"blazeface", "block15", 127, 96, 8},
        {"srgan", "up0", 21, 64, 42},
        {"srgan", "tail.conv", 21, 3, 84},
        {"yolov1", "conv20", 448, 1024, 14},
        {"yolov1", "conv24", 511, 1024, 8},
        {"unet", "down4", 75, 1024, 4},
        {"unet", "up1", 75, 512, 9},
        {"unet", "up4", 75, 64, 75},
        {"unet_instance", "encoder.stages.4", 75, 512, 5},
        {"unet_instance", "decoder.stages.0", 75, 256, 10},
        {"unet_instance", "decoder.stages.1", 75, 128, 19},
        {"fsrcnn", "deconv", 21, 3, 42},
        {"fsrcnn:3", "deconv", 21, 3, 63},
        {"fsrcnn:4", "deconv", 21, 3, 84},
        {"efficientnet_v2_s", "features.3.0", 225, 64, 29},
        {"ppocr_det", "backbone.stage0.2", 129, 16, 40},
        {"ppocr_det", "backbone.stage1.2", 129, 24, 20},
        {"ppocr_det", "backbone.stage2.5", 129, 56, 10},
        {"ppocr_det", "backbone.stage3.3.act", 129, 480, 5},
        {"ppocr_det", "neck.fuse", 129, 96, 40},
        {"ppocr_det", "cropped", 129, 1, 129},
        {"efficientnet_v2_s", "features.6.14", 384, 256, 12},
        {"convnext_tiny", "features.4", 225, 384, 14},
        {"convnext_tiny", "features.7.2", 224, 768, 7},
        {"yolov8n", "model.4", 640, 64, 80},
        {"yolov8n", "model.9", 600, 256, 19},
        {"yolov8n", "model.15", 640, 64, 80},
        {"yolov8n", "model.21", 641, 256, 21},
        {"table1", "maxpool2", 32, 64, 8},
        {"toy:m=3,b=2,n=3,cst=32", "module2.block2", 64, 64, 32},
        {"toy:cst=16", "module3", 64, 128, 16},
    };
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int fused = 0; fused < 2; fused++) {
            struct rfx_graph *graph = test_builtin(mem, cases[i].network, cases[i].size,
                                                   cases[i].size, 1, fused ? NULL : &fuse_nothing);
            int node = rfx_graph_find(graph, cases[i].module);
            if (node < 0) fail_msg("%s has no %s", cases[i].network, cases[i].module);
            assert_int_equal(graph->nodes[node].out.c, cases[i].c);
            assert_int_equal(graph->nodes[node].out.h, cases[i].h);
            assert_int_equal(graph->nodes[node].out.w, cases[i].h);
            rfx_graph_free(graph);
        }
    }
    rfx_memory_free(mem);
}

/* TensorFlow's SAME by hand: all but ceil(size / stride) windows' worth of padding, the odd row and
 * column at the end. Stride 2 over an even map pads one side only. */
static void test_same_padding(void **state) {
    (void)state;
    static const struct {
        const char *network, *layer;
        int64_t h, w;
        struct rfx_pads pads; /* top, left, bottom, right */
    } cases[] = {
        {"blazeface", "conv0", 128, 127, {1, 2, 2, 2}},
        {"blazeface", "block2/depthwise", 128, 122, {0, 1, 1, 1}}, /* 3x3 of stride 2 on 64 x 61 */
        {"blazeface", "block2/max_pool", 128, 122, {0, 0, 0, 1}},  /* 2x2 of stride 2 */
        {"deeplab_v3", "Conv", 257, 256, {1, 0, 1, 1}},
        {"deeplab_v3",
         "expanded_conv_6/depthwise",
         257,
         257,
         {1, 1, 1, 1}}, /* it loses its stride */
        {"deeplab_v3", "expanded_conv_7/depthwise", 257, 256, {2, 2, 2, 2}}, /* dilation 2 */
        {"deeplab_v3", "expanded_conv_14/depthwise", 257, 256, {4, 4, 4, 4}},
        {"posenet", "Conv2d_2_depthwise", 353, 255, {1, 0, 1, 1}}, /* on 177 x 128 */
        {"resnet_v2_101", "conv1", 224, 225, {3, 3, 3, 3}},
        {"resnet_v2_101", "pool1", 224, 225, {0, 1, 1, 1}}, /* on 112 x 113 */
        {"resnet_v2_101", "block1/unit_3/conv2", 224, 225, {1, 1, 1, 1}},
    };
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_graph *graph =
            test_builtin(mem, cases[i].network, cases[i].h, cases[i].w, 1, NULL);
        int index = rfx_graph_find(graph, cases[i].layer);
        if (index < 0) fail_msg("%s has no %s", cases[i].network, cases[i].layer);
        const struct rfx_node *node = &graph->nodes[index];
        const struct rfx_pads *got =
            node->op == RFX_OP_CONV ? &node->attr.conv.pads : &node->attr.pool.pads;
        const struct rfx_pads *want = &cases[i].pads;
        if (got->top != want->top || got->left != want->left || got->bottom != want->bottom ||
            got->right != want->right)
            fail_msg("%s, %s: pads %lld,%lld,%lld,%lld", cases[i].network, cases[i].layer,
                     (long long)got->top, (long long)got->left, (long long)got->bottom,
                     (long long)got->right);
        rfx_graph_free(graph);
    }
    rfx_memory_free(mem);
}

/* mobilenet_v1 and inception_v3: the published figures of TF-slim's networks. table1 by hand: two
 * convolutions add 4, a pool 2 and doubles the step: 1 + 4 + 2 + 8 + 4 + 16. */
static void test_receptive_fields(void **state) {
    (void)state;
    static const struct {
        const char *network, *module;
        int64_t size, field, jump;
    } cases[] = {{"mobilenet_v1", "Conv2d_13_pointwise", 224, 315, 32},
                 {"inception_v3", "Mixed_7c", 299, 1311, 32},
                 {"vgg16", "features.30", 224, 212, 32},
                 {"table1", "conv6", 32, 35, 4}};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_graph *graph =
            test_builtin(mem, cases[i].network, cases[i].size, cases[i].size, 1, NULL);
        struct rfx_analysis *analysis = NULL;
        struct rfx_error err = {""};
        assert_int_equal(rfx_analysis_create(graph, &analysis, &err), RFX_OK);
        int node = rfx_graph_find(graph, cases[i].module);
        assert_true(node >= 0);
        for (int axis = 0; axis < 2; axis++) {
            const struct rfx_axis_field *field = &analysis->layers[node].field[axis];
            assert_int_equal(field->size_px, cases[i].field);
            assert_int_equal(field->jump.num, cases[i].jump * field->jump.den);
        }
        rfx_analysis_free(analysis);
        rfx_graph_free(graph);
    }
    rfx_memory_free(mem);
}

/* Everything between convolutions fuses away: 52 convs, input, pool, two flattens and a Gemm. */
static void test_mobilenet_fuses_completely(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "mobilenet_v2", 0, 0, 1, NULL);
    assert_int_equal(graph->n_nodes, 52 + 5);
    int residuals = 0;
    for (int i = 0; i < graph->n_nodes; i++) residuals += graph->nodes[i].residual;
    assert_int_equal(residuals, 10);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Seeds change the weights; the same seed gives the same ones at any image size. */
static void test_seed(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    float values[3][64];
    static const uint64_t seeds[3] = {7, 7, 8};
    for (int i = 0; i < 3; i++) {
        struct rfx_graph *graph = test_builtin(mem, "resnet18", 64 + 32 * i, 96, seeds[i], NULL);
        int node = rfx_graph_find(graph, "layer1.0.conv1");
        assert_true(node >= 0);
        const struct rfx_weight *weight = &graph->weights[graph->nodes[node].attr.conv.weight];
        test_read_weight(weight, 100, 64, values[i]);
        rfx_graph_free(graph);
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_memory_not_equal(values[0], values[2], sizeof values[0]);
    /* He-uniform of fan-in 64 * 9: all within sqrt(6 / 576), not all in its half. */
    float largest = 0.0f;
    for (int i = 0; i < 64; i++) {
        float size = values[0][i] < 0 ? -values[0][i] : values[0][i];
        largest = size > largest ? size : largest;
    }
    assert_true(largest <= 0.10207f && largest > 0.051f);
    rfx_memory_free(mem);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *model, *text;
    } cases[] = {{"mobilenet_v3", "mobilenet_v2"},
                 {"resnet5", "resnet50"},
                 {"ResNet50", "resnet50"},
                 {"mobilenet_v2:x", "width multiplier"},
                 {"mobilenet_v2:0", "from 0.05"},
                 {"resnet18:0.5", "no width multiplier"},
                 {"fsrcnn:5", "2, 3 or 4"},
                 {"fsrcnn:22", "2, 3 or 4"},
                 {"fsrcnn:", "2, 3 or 4"},
                 {"toy:m=0", "1 to 8"},
                 {"toy:m=9", "1 to 8"},
                 {"toy:q=1", "is not like"},
                 {"toy:m=2;b=3", "not like"},
                 {"toy:m=-1", "is not like"},
                 {"toy:m=2,", "is not like"},
                 {"table1:2", "no width multiplier"}};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_load_options options = {.seed = 1};
        struct rfx_error err = {""};
        struct rfx_graph *graph = NULL;
        enum rfx_status status = rfx_model_load(mem, cases[i].model, &options, &graph, &err);
        assert_int_equal(status, RFX_STATUS_INVALID_ARGUMENT);
        assert_null(graph);
        if (strstr(err.text, cases[i].text) == NULL) fail_msg("%s", err.text);
    }
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Each allocation in turn fails: an error, nothing left behind. */
static void test_out_of_memory(void **state) {
    (void)state;
    static const char *const names[] = {"resnet18",    "squeezenet1_1", "fsrcnn",
                                        "unet",        "toy",           "blazeface",
                                        "posenet",     "unet_instance", "mobilenet_v3_small",
                                        "vae_decoder", "swinir_light",  "yolov8n"};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool built = false;
        for (int64_t k = 0; !built; k++) {
            struct rfx_load_options options = {.seed = 1};
            struct rfx_error err = {""};
            struct rfx_graph *graph = NULL;
            rfx_memory_fail_after(mem, k);
            enum rfx_status status = rfx_builtin_build(mem, names[i], &options, &graph, &err);
            rfx_memory_fail_after(mem, -1);
            built = status == RFX_OK;
            if (!built) {
                assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
                assert_true(err.text[0] != '\0');
            }
            rfx_graph_free(graph);
            assert_int_equal(rfx_memory_current_bytes(mem), 0);
        }
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_published_figures),
                                       cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_module_names),
                                       cmocka_unit_test(test_mobilenet_fuses_completely),
                                       cmocka_unit_test(test_seed),
                                       cmocka_unit_test(test_same_padding),
                                       cmocka_unit_test(test_receptive_fields),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
