/* Makes where fuzzing starts from, with the makers of the tests:
 *
 *     make_corpus FOLDER      writes FOLDER/<target>/<name>; the folders must be there
 * What fuzzing found to reach more lies beside them, named by its sum (run.sh --merge). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

#include "layers/graph/reduction.h"
#include "rfexec/output/tiff_write.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_models.h"
#include "tests/fuzz/make_zarr.h"
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/makers/tiff_maker.h"

static const char *top;

static const char *path_of(const char *target, const char *name) {
    static char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s/%s", top, target, name);
    return path;
}

static void must(bool done, const char *path) {
    if (done) return;
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

static void save(const char *target, const char *name, const void *bytes, size_t size) {
    const char *path = path_of(target, name);
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, path);
}

static void save_text(const char *target, const char *name, const char *text) {
    save(target, name, text, strlen(text));
}

static void make_png(void) {
    static const struct png_maker makers[] = {
        {.h = 9, .w = 7, .bit_depth = 8, .color_type = 2, .seed = 1},
        {.h = 5, .w = 9, .bit_depth = 16, .color_type = 6, .interlaced = true, .seed = 2},
        {.h = 8, .w = 8, .bit_depth = 4, .color_type = 3, .transparent = true, .seed = 3},
        {.h = 9, .w = 17, .bit_depth = 1, .color_type = 0, .interlaced = true, .seed = 4},
        {.h = 6, .w = 6, .bit_depth = 8, .color_type = 4, .seed = 5},
        {.h = 12, .w = 5, .bit_depth = 16, .color_type = 0, .transparent = true, .seed = 6},
        {.h = 7, .w = 7, .bit_depth = 2, .color_type = 0, .seed = 7},
    };
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "kind%zu.png", i);
        const char *path = path_of("png", name);
        must(png_maker_write(&makers[i], path), path);
    }
}

static void make_jpeg(void) {
    static const struct jpeg_maker makers[] = {
        {.h = 9, .w = 17, .components = 3, .h_sampling = 2, .v_sampling = 2},
        {.h = 17, .w = 9, .components = 1, .h_sampling = 1, .v_sampling = 1},
        {.h = 10, .w = 20, .components = 3, .h_sampling = 2, .v_sampling = 1, .progressive = true},
        {.h = 20, .w = 10, .components = 3, .h_sampling = 1, .v_sampling = 1, .rgb = true},
        {.h = 18, .w = 8, .components = 3, .h_sampling = 1, .v_sampling = 2, .restart_interval = 1},
        {.h = 8, .w = 8, .components = 4, .h_sampling = 1, .v_sampling = 1},
        {.h = 8, .w = 9, .components = 3, .h_sampling = 2, .v_sampling = 2, .separate_scans = true},
        {.h = 8, .w = 9, .components = 1, .h_sampling = 1, .v_sampling = 1, .arithmetic = true},
        {.h = 40, .w = 9, .components = 3, .h_sampling = 2, .v_sampling = 1, .orientation = 6},
        {.h = 9, .w = 40, .components = 1, .h_sampling = 1, .v_sampling = 1, .orientation = 3},
    };
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        struct jpeg_maker m = makers[i];
        char name[32];
        m.quality = 40;
        (void)snprintf(name, sizeof name, "kind%zu.jpg", i);
        const char *path = path_of("jpeg", name);
        must(jpeg_maker_write(&m, path), path);
    }
}

/* A colour each, in strips and in tiles, by the codecs in turn. */
static void make_tiff(void) {
    static const int codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_PACKBITS,
                                 COMPRESSION_ADOBE_DEFLATE};
    for (int i = 0; i < TIFF_MAKER_COLOURS; i++) {
        struct tiff_maker m = tiff_maker_of(i, codecs[i % 4]);
        char name[32];
        m.h = 11;
        m.w = 9;
        m.rows = i % 3 == 0 ? 16 : 4;
        m.cols = i % 3 == 0 ? 16 : 0;
        m.big_tiff = i % 5 == 1;
        m.big_endian = i % 4 == 2;
        (void)snprintf(name, sizeof name, "colour%d.tif", i);
        const char *path = path_of("tiff", name);
        must(tiff_maker_write(&m, path), path);
    }
}

/* Signed, wide and many bands, in planes and in pixels. */
static void make_tiff_bands(void) {
    static const int kinds[][3] = {{8, SAMPLEFORMAT_INT, 1},     {16, SAMPLEFORMAT_INT, 4},
                                   {32, SAMPLEFORMAT_UINT, 2},   {32, SAMPLEFORMAT_INT, 1},
                                   {64, SAMPLEFORMAT_IEEEFP, 5}, {16, SAMPLEFORMAT_UINT, 7}};
    for (int i = 0; i < 6; i++) {
        struct tiff_maker m = tiff_maker_of(0, i % 2 == 0 ? COMPRESSION_NONE : COMPRESSION_LZW);
        char name[32];
        m.h = 11;
        m.w = 9;
        m.bits = kinds[i][0];
        m.format = kinds[i][1];
        m.samples = kinds[i][2];
        m.no_alpha = true;
        m.rows = i % 3 == 0 ? 16 : 4;
        m.cols = i % 3 == 0 ? 16 : 0;
        m.separate = i >= 3 && m.samples > 1;
        m.big_endian = i % 2 == 0;
        (void)snprintf(name, sizeof name, "bands%d.tif", i);
        const char *path = path_of("tiff", name);
        must(tiff_maker_write(&m, path), path);
    }
}

/* A pyramid: copies as SubIFDs and as pages of their own. */
static void make_tiff_pages(void) {
    struct tiff_maker pages[4];
    for (int i = 0; i < 4; i++) {
        pages[i] = tiff_maker_of(i, COMPRESSION_LZW);
        pages[i].h = 16 - 3 * i;
        pages[i].w = 17 - 4 * i;
        pages[i].rows = pages[i].cols = 16;
        pages[i].reduced = i > 0;
    }
    pages[0].subs = 2;
    const char *path = path_of("tiff", "pages.tif");
    must(tiff_maker_write_pages(pages, 4, path), path);
}

/* GeoTIFFs: by scale and tie point, and by a matrix, with GDAL's texts. */
static void make_tiff_geo(bool by_matrix) {
    static double scale[] = {2, 0.5, 0}, points[] = {0, 0, 0, 1e6, 2e6, 0};
    static double matrix[] = {1, 2, 0, 3, 4, 5, 0, 6, 0, 0, 1, 0, 0, 0, 0, 1};
    static uint16_t keys[] = {1, 1, 0, 1, 1025, 0, 1, 2};
    static char texts[] = "WGS 84|", no_data[] = "-9999",
                metadata[] =
                    "<GDALMetadata>\n  <Item name=\"A\">a</Item>\n  <Item name=\"B\" "
                    "sample=\"0\">b</Item>\n</GDALMetadata>\n";
    struct rfx_georeference geo = {.has_scale = !by_matrix,
                                   .scale = {scale[0], scale[1], scale[2]},
                                   .has_matrix = by_matrix,
                                   .n_points = by_matrix ? 0 : 6,
                                   .points = points,
                                   .n_keys = 8,
                                   .keys = keys,
                                   .n_params = 3,
                                   .params = scale,
                                   .texts = texts,
                                   .no_data = no_data,
                                   .metadata = metadata};
    memcpy(geo.matrix, matrix, sizeof matrix);
    const struct rfx_tiff_picture picture = {.h = 3, .w = 4, .channels = 1, .bits = 8, .geo = &geo};
    const char *path = path_of("tiff", by_matrix ? "geo_matrix.tif" : "geo_scale.tif");
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer = NULL;
    struct rfx_error err;
    must(rfx_tiff_write_open(mem, path, &picture, &writer, &err) == RFX_OK, path);
    for (int y = 0; y < 3; y++) must(rfx_tiff_write_row(writer, "abcd", &err) == RFX_OK, path);
    must(rfx_tiff_write_commit(writer, &err) == RFX_OK, path);
    rfx_tiff_write_free(writer);
    rfx_memory_free(mem);
}

static void make_stb(void) {
    static const unsigned char gif[] = {
        'G', 'I',  'F', '8', '9', 'a', 2, 0, 2, 0, 0x80, 0, 0, 0,    0,    0,    255, 255,
        255, 0x2c, 0,   0,   0,   0,   2, 0, 2, 0, 0,    2, 3, 0x44, 0x02, 0x05, 0,   0x3b};
    unsigned char bmp[54 + 4 * 12] = {'B', 'M', 102, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40,
                                      0,   0,   0,   4, 0, 0, 0, 4, 0, 0, 0,  1, 0, 24};
    unsigned char tga[18 + 4 * 3 * 4] = {0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 4, 0, 24, 0x20};
    unsigned char psd[26 + 14 + 12] = {'8', 'B', 'P', 'S', 0, 1, 0, 0, 0, 0, 0, 0, 0,
                                       3,   0,   0,   0,   2, 0, 0, 0, 2, 0, 8, 0, 3};
    for (size_t i = 54; i < sizeof bmp; i++) bmp[i] = (unsigned char)(i * 7);
    for (size_t i = 18; i < sizeof tga; i++) tga[i] = (unsigned char)(i * 11);
    for (size_t i = 40; i < sizeof psd; i++) psd[i] = (unsigned char)(i * 13);
    save("stb", "a.gif", gif, sizeof gif);
    save("stb", "a.bmp", bmp, sizeof bmp);
    save("stb", "a.tga", tga, sizeof tga);
    save("stb", "a.psd", psd, sizeof psd);
    save_text("stb", "a.pgm", "P5\n4 3\n255\nabcdefghijkl");
    save_text("stb", "a.ppm", "P6\n2 2\n# words\n65535\nabcdefghijklmnopqrstuvwx");
    save_text("stb", "a.hdr", "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 2\nabcdefghijklmnop");
}

static void make_npy(void) {
    static const char *const shapes[] = {"(3, 2, 4)", "(1, 1, 3, 8)", "(6,)", "()",
                                         "(1, 3, 99999999999, 2)"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char bytes[128 + 96], name[32];
        memset(bytes, 'x', sizeof bytes);
        memcpy(bytes, "\x93NUMPY\x01\0\x76\0", 10);
        memset(bytes + 10, ' ', 118);
        int n = snprintf(bytes + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
                         shapes[i]);
        bytes[10 + n] = ' ';
        bytes[127] = '\n';
        (void)snprintf(name, sizeof name, "shape%zu.npy", i);
        save("npy", name, bytes, sizeof bytes);
    }
}

static void make_models(void) {
    for (int i = 0; fuzz_model_names[i] != NULL; i++) {
        const struct maker *model = fuzz_model(fuzz_model_names[i]);
        save("model", fuzz_model_names[i], model->bytes, model->size);
    }
}

static void make_plans(void) {
#define HEAD "{\"schema\": 1, \"kind\": \"rfexec plan\", "
    save_text("plan", "whole",
              HEAD "\"stages\": [{\"mode\": \"whole\", \"targets\": [\"y\", \"m\"]}]}");
    save_text("plan", "stages",
              HEAD
              "\"model\": \"skips\", \"conv\": \"direct\", \"size\": [12, 12], \"threads\": 2, "
              "\"weights_by_stage\": true, \"in_place\": false, \"stages\": ["
              "{\"mode\": \"tiled\", \"targets\": [\"c\"], \"tiles\": [2, 3]},"
              "{\"mode\": \"streamed\", \"targets\": [\"m\"], \"tiles\": [1, 2], "
              "\"band_rows\": 5, \"tight\": true},"
              "{\"mode\": \"whole\", \"targets\": [\"y\"], \"row_by_row\": true}]}");
    save_text("plan", "tight",
              HEAD
              "\"threads\": 1, \"stages\": [{\"mode\": \"streamed\", \"targets\": "
              "[\"y\", \"m\"], \"band_rows\": 3, \"tight\": true}]}");
    save_text("plan", "groups",
              HEAD
              "\"in_place\": true, \"groups\": [{\"first\": \"j\", \"last\": \"a\", "
              "\"strip_cols\": 8, \"strips\": 2, \"step_rows\": 2}], \"stages\": ["
              "{\"mode\": \"streamed\", \"targets\": [\"y\", \"m\"], \"band_rows\": 4}], "
              "\"predicted\": {\"anything\": [1]}}");
}

static void make_heads(void) {
#define LIST "{\"names\": [\"list\"], \"axes\": \"yxa v\", "
#define MAPS "{\"names\": [\"map4\", \"map2\"], \"axes\": \"va y x\", "
    save_text(
        "head", "list",
        "{\"outputs\": [" LIST
        "\"values\": [\"box\", \"scores\"]}], \"levels\": "
        "[{\"anchors\": [[1, 2], [3, 4]]}, {\"stride\": 2, \"anchors\": {\"sizes\": [4, 5], "
        "\"ratios\": [0.5], \"round\": true}}], \"decode\": \"deltas\", \"offset\": 0, "
        "\"limit\": 4.135, \"activation\": \"sigmoid\", \"every_class\": true, \"clip\": true}");
    save_text("head", "shares",
              "{\"outputs\": [" LIST
              "\"values\": [\"box\", \"scores\"]}], \"levels\": "
              "[{\"anchors\": [[0.5, 0.5], [1, 0.25]]}, {\"anchors\": [[1, 1], [0.5, 1]]}], "
              "\"decode\": \"deltas\", \"shares\": true, \"weights\": [10, 10, 5, 5], "
              "\"activation\": \"softmax\", \"background\": 0, \"every_class\": true}");
    save_text("head", "maps",
              "{\"outputs\": [" MAPS
              "\"values\": [\"box\", \"objectness\", \"scores\"]}], "
              "\"levels\": [{\"stride\": 1, \"anchors\": [[1, 2], [3, 4]]}, {\"stride\": 2, "
              "\"anchors\": [[1, 2], [3, 4]]}], \"decode\": \"yolov5\", \"activation\": "
              "\"sigmoid\"}");
    save_text("head", "uneven",
              "{\"outputs\": [{\"names\": [\"map4\", \"half\"], \"axes\": \"va y x\", \"values\": "
              "[\"box\", \"scores\"]}], \"levels\": [{\"stride\": 1, \"anchors\": [[1, 2], "
              "[3, 4]]}, {\"stride\": 2, \"anchors\": [[8, 8]]}], \"decode\": \"yolov3\"}");
    save_text("head", "distances",
              "{\"outputs\": [{\"names\": [\"map4\"], \"axes\": \"v y x\", \"values\": [\"box\", "
              "\"objectness\", \"scores\"]}], \"levels\": [{\"stride\": 1}], \"decode\": "
              "\"distances\", \"activation\": \"sigmoid\", \"root\": true}");
    save_text("head", "listed",
              "{\"outputs\": [{\"names\": [\"list\"], \"axes\": \"n v\", \"values\": [\"box\", "
              "\"scores\"]}], \"decode\": \"centre\", \"shares\": true}");
}

#define RUN                                                                   \
    "\"run\": {\"model\": \"\", \"conv\": \"direct\", \"image\": [2, 9, 7], " \
    "\"options\": {\"seed\": 0, \"fused\": \"all\"}}"

static size_t part_json(char *text, size_t size, int y0, int y1, int x0, int x1) {
    int n = snprintf(text, size,
                     "{\"format\": \"rfexec part\", \"version\": 1, " RUN
                     ", \"output\": \"y\", "
                     "\"shape\": [1, 1, 5, 6], \"rows\": [%d, %d], \"columns\": [%d, %d], "
                     "\"georeference\": {\"scale\": [2, 0.5, 0], \"points\": [0, 0, 0, 1e6, 2, 3], "
                     "\"keys\": [1, 1, 0, 0], \"params\": [1.25], \"texts\": \"a|\", \"no_data\": "
                     "\"-1\", \"metadata\": [60, 255]}, \"fingerprint\": "
                     "\"0123456789abcdef0123456789abcdef\"}\xff",
                     y0, y1, x0, x1);
    return (size_t)n;
}

static size_t cells_json(char *text, size_t size, const char *last, const char *ranges) {
    int n = snprintf(text, size,
                     "{\"format\": \"rfexec part\", \"version\": 2, " RUN
                     ", \"output\": \"y\", \"shape\": [1, 2, 9], \"cells\": {\"of\": 9, "
                     "\"channels\": 2, \"last\": %s, \"ranges\": [%s]}, \"fingerprint\": "
                     "\"0123456789abcdef0123456789abcdef\"}\xff",
                     last, ranges);
    return (size_t)n;
}

/* Cells of an output that is joined of maps: all of it, as many but not all, too many. */
static void make_cells(void) {
    char bytes[4096];
    size_t n = cells_json(bytes, sizeof bytes, "true", "[0, 4], [6, 8]");
    n += cells_json(bytes + n, sizeof bytes - n, "true", "[4, 6], [8, 9]");
    save("part", "cells", bytes, n);
    n = cells_json(bytes, sizeof bytes, "false", "[0, 4], [6, 8]");
    n += cells_json(bytes + n, sizeof bytes - n, "false", "[3, 6]");
    save("part", "cells_overlap", bytes, n);
    n = cells_json(bytes, sizeof bytes, "true", "[0, 4], [6, 10]");
    save("part", "cells_outside", bytes, n);
}

/* One part and its array, and several that make up a map or do not. */
static void make_parts(void) {
    char bytes[4096];
    size_t n = part_json(bytes, sizeof bytes, 1, 3, 0, 6);
    char *npy = bytes + n;
    memset(npy, ' ', 128 + 48);
    memcpy(npy, "\x93NUMPY\x01\0\x76\0", 10);
    int used = snprintf(npy + 10, 118, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
                        "(1, 1, 2, 6)");
    npy[10 + used] = ' ';
    npy[127] = '\n';
    save("part", "array", bytes, n + 128 + 48);
    n = part_json(bytes, sizeof bytes, 0, 3, 0, 6);
    n += part_json(bytes + n, sizeof bytes - n, 3, 5, 0, 2);
    save("part", "gap", bytes, n);
    n += part_json(bytes + n, sizeof bytes - n, 3, 5, 2, 6);
    save("part", "map", bytes, n);
    n += part_json(bytes + n, sizeof bytes - n, 3, 4, 5, 6);
    save("part", "overlap", bytes, n);
    save_text("part", "run_is_text",
              "{\"format\": \"rfexec part\", \"version\": 1, \"run\": \"georeference\", "
              "\"output\": \"y\", \"shape\": [1, 1, 5, 6], \"rows\": [1, 3], "
              "\"columns\": [0, 6], \"fingerprint\": \"0123456789abcdef0123456789abcdef\"}");
}

/* The states of one round, of pixels that were added. */
static void make_states(const char *name, const char *head, const char *const *nodes) {
    const struct rfx_graph *graph = fuzz_model_graph("normed");
    static char bytes[8192];
    static float values[9 * 7 * 4];
    union {
        int64_t align;
        char bytes[4096];
    } state;
    size_t n = (size_t)snprintf(bytes, sizeof bytes,
                                "{\"format\": \"rfexec states\", \"version\": 1, %s, " RUN
                                ", \"output\": \"y\", \"hash\": \"\", \"about\": {\"model\": "
                                "\"\"}, \"states\": [",
                                head);
    for (int i = 0; nodes[i] != NULL; i++) {
        const struct rfx_node *node = &graph->nodes[rfx_graph_find(graph, nodes[i])];
        n += (size_t)snprintf(bytes + n, sizeof bytes - n,
                              "%s{\"node\": \"%s\", \"round\": %d, \"bytes\": %zu}",
                              i > 0 ? ", " : "", nodes[i], i == 0 ? 1 : 2,
                              rfx_node_reduction(node)->state_bytes(node));
    }
    n += (size_t)snprintf(bytes + n, sizeof bytes - n, "]}\xff");
    fuzz_values(values, (int64_t)(sizeof values / sizeof values[0]));
    for (int i = 0; nodes[i] != NULL; i++) {
        const struct rfx_node *node = &graph->nodes[rfx_graph_find(graph, nodes[i])];
        const struct rfx_reduction *reduction = rfx_node_reduction(node);
        const struct rfx_tensor *in = &graph->nodes[node->in[0]].out;
        struct rfx_rect all = rfx_rect_full(in->h, in->w);
        struct rfx_view view = rfx_view_of(in, values, all);
        size_t size = reduction->state_bytes(node);
        must(size <= sizeof state && n + size <= sizeof bytes, name);
        reduction->begin(node, &state);
        reduction->add(node, &state, &view, all);
        memcpy(bytes + n, &state, size);
        n += size;
    }
    save("states", name, bytes, n);
}

static void make_rounds(void) {
    const struct rfx_graph *graph = fuzz_model_graph("normed");
    const char *nodes[4] = {NULL};
    int n = 0;
    for (int i = 0; i < graph->n_nodes && n < 3; i++)
        if (rfx_node_reduction(&graph->nodes[i]) != NULL) nodes[n++] = graph->nodes[i].name;
    must(n == 3, "the model of states");
    make_states("rounds", "\"round\": 2, \"part\": [1, 3]", nodes);
    nodes[1] = NULL;
    make_states("first", "\"round\": 1, \"part\": [2, 2]", nodes);
    make_states("merged", "\"round\": 1, \"part\": [0, 0]", nodes);
}

static void make_texts(void) {
    save_text("csv", "plain", "id,lower,upper,size\na,0,3,100\nb,1,4,50\nc,3,9,7\n");
    save_text(
        "csv", "answer",
        "# words\r\nsize,alignment,offset,id,upper,lower\r\n64,64,0,x,5,-2\r\n\r\n1,1,64,y,2,1");
    save_text("csv", "long",
              "id,lower,upper,size,alignment\n1,0,9223372036854775807,4611686018427387904,4096\n");
    save_text("labels", "lines", "tench\ngoldfish\r\nwhite shark\n\nray, electric\nf\ng\nh\ni\n");
    save_text("labels", "bytes", "caf\xc3\xa9\n\x1b[31mred\n\xe2\x80\xae\n\xff\xfe\n\t\r\n");
    save_text("synthetic", "size", "8x9");
    save_text("synthetic", "seed", "1000000x999999:18446744073709551615");
    save("api", "open_run", "\6\0\1\0\0\0\0\0\0\4\0\377\0\0\0\0\0\0", 18);
    save("api", "all",
         "\6\1\1\0\0\0\0\0\1\2\1\1\1\1\0\0\3\1\4\1\0\0\0\0\0\0\5\1\377\5\2\0\0\0\0\0\1", 38);
    save("api", "two", "\6\0\1\0\0\0\0\0\2\7\1\1\3\0\1\0\0\5\4\1\377\6\0\0\0\0\0\4\0\0\2\0\0\0\0",
         36);
}

#define SQUARE(type, open, close)                  \
    "{\"type\":\"" type "\",\"coordinates\":" open \
    "[[0.5,0.5],[6.5,0.5],[6.5,4],[0.5,"           \
    "4],[0.5,0.5]],[[2,1],[2,3],[4.25,2],[2,1]]" close "}"

static void make_areas(void) {
    save_text("areas", "polygon", SQUARE("Polygon", "[", "]"));
    save_text("areas", "behind", SQUARE("Polygon", "[", "]") " {}");
    save_text("areas", "feature",
              "{\"type\":\"Feature\",\"id\":7,\"bbox\":[0,0,1,1],\"geometry\":" SQUARE(
                  "MultiPolygon", "[[", "],[[[-1e9,-3],[9,2.125],[3,1e9],[-1e9,-3]]]]") "}");
    save_text("areas", "collection",
              "{\"type\":\"FeatureCollection\",\"crs\":{\"type\":\"name\",\"properties\":{\"name\":"
              "\"urn:ogc:def:crs:EPSG::25832\"}},\n\"features\":[]}");
    save_text(
        "areas", "names",
        "{ \"features\": [\r\n{\"properties\": {\"name\": \"caf\\u00e9\", \"classification\": "
        "{\"name\": \"a\", \"color\": [1, -2, 3e0]}}, \"geometry\": {\"coordinates\": "
        "[[[0, 0, 9], [3, 0, 9], [0, 5, 9], [0, 0, 9]]], \"type\": \"Polygon\"}, \"type\": "
        "\"Feature\"},\n{\"type\": \"Feature\", \"properties\": null, \"id\": \"b\", "
        "\"geometry\": " SQUARE("Polygon", "[", "]") "}],\n\"type\": \"FeatureCollection\" }\n");
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    top = argv[1];
    make_png();
    make_jpeg();
    make_tiff();
    make_tiff_bands();
    make_tiff_pages();
    make_tiff_geo(false);
    make_tiff_geo(true);
    make_stb();
    make_npy();
    make_zarr(save);
    make_models();
    make_plans();
    make_heads();
    make_parts();
    make_cells();
    make_rounds();
    make_texts();
    make_areas();
    return 0;
}
