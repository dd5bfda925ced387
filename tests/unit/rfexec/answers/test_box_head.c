/* Heads of detectors: shapes that are recognised, shapes that are not and in which words, and
 * candidates whose boxes, scores and labels are worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/box_head.h"

enum { V8 = RFX_BOX_FORM_YOLOV8, V5 = RFX_BOX_FORM_YOLOV5, V7 = RFX_BOX_FORM_YOLOV7 };
enum { X = RFX_BOX_FORM_YOLOX, V10 = RFX_BOX_FORM_YOLOV10 };
enum { YUNET = RFX_BOX_FORM_YUNET, RFB = RFX_BOX_FORM_RFB };
enum { POSE = RFX_BOX_FORM_POSE, POSE_XY = RFX_BOX_FORM_POSE_XY, SEG = RFX_BOX_FORM_SEG };
enum { OBB = RFX_BOX_FORM_YOLOV8_OBB, END_OBB = RFX_BOX_FORM_YOLO26_OBB };
enum { END_POSE = RFX_BOX_FORM_YOLO26_POSE, END_POSE_XY = RFX_BOX_FORM_YOLO26_POSE_XY };
enum { END_SEG = RFX_BOX_FORM_YOLO26_SEG };

/* ---- shapes ---- */

struct found_case {
    int64_t dims[3], h, w, classes;
    const char *name;
    int form, channel_axis;
    int64_t channels, candidates, want_classes;
    const char *words;
};

/* 640 x 640: 80 * 80 + 40 * 40 + 20 * 20 = 8400 cells; 640 x 480: 6300. */
static const struct found_case found[] = {
    {{1, 84, 8400}, 640, 640, 0, NULL, V8, 1, 84, 8400, 80, "YOLOv8 head, 80 classes, 3 levels"},
    {{1, 84, 8400}, 0, 0, 0, NULL, V8, 1, 84, 8400, 80, "YOLOv8 head, 80 classes"},
    {{1, 5, 6300}, 640, 480, 0, NULL, V8, 1, 5, 6300, 1, "YOLOv8 head, 1 class, 3 levels"},
    {{1, 116, 8400},
     640,
     640,
     80,
     NULL,
     V8,
     1,
     116,
     8400,
     80,
     "YOLOv8 head, 80 classes, 3 levels, 32 further channels not used"},
    {{1, 85, 8400},
     640,
     640,
     80,
     NULL,
     V8,
     1,
     85,
     8400,
     80,
     "YOLOv8 head, 80 classes, 3 levels, 1 further channel not used"},
    /* strides 8 to 64, 4 to 32, and 16 and 32 */
    {{1, 84, 34000},
     1280,
     1280,
     0,
     NULL,
     V8,
     1,
     84,
     34000,
     80,
     "YOLOv8 head, 80 classes, 4 levels"},
    {{1, 84, 34000}, 640, 640, 0, NULL, V8, 1, 84, 34000, 80, "YOLOv8 head, 80 classes, 4 levels"},
    {{1, 84, 2000}, 640, 640, 0, NULL, V8, 1, 84, 2000, 80, "YOLOv8 head, 80 classes, 2 levels"},
    /* fewer candidates than channels: the image's size decides */
    {{1, 84, 21}, 32, 32, 0, NULL, V8, 1, 84, 21, 80, "YOLOv8 head, 80 classes, 3 levels"},
    {{1, 84, 84}, 64, 64, 0, "yolov8", V8, 1, 84, 84, 80, "YOLOv8 head, 80 classes, 3 levels"},
    /* a width that is no multiple of 32: levels of 4 x 5, 2 x 3 and 1 x 2 cells */
    {{1, 85, 28}, 32, 33, 0, NULL, V8, 1, 85, 28, 81, "YOLOv8 head, 81 classes, 3 levels"},
    /* transposed */
    {{1, 8400, 84}, 640, 640, 80, NULL, V8, 2, 84, 8400, 80, "YOLOv8 head, 80 classes, 3 levels"},
    {{1, 8400, 84}, 0, 0, 0, "YOLO11", V8, 2, 84, 8400, 80, "YOLOv8 head, 80 classes"},
    {{1, 21, 84}, 32, 32, 0, "yolov8", V8, 2, 84, 21, 80, "YOLOv8 head, 80 classes, 3 levels"},
    {{1, 84, 21}, 0, 0, 80, "yolov8", V8, 1, 84, 21, 80, "YOLOv8 head, 80 classes"},
    {{1, 21, 84}, 0, 0, 80, "yolov8", V8, 2, 84, 21, 80, "YOLOv8 head, 80 classes"},
    {{1, 84, 84}, 0, 0, 0, "yolov8", V8, 1, 84, 84, 80, "YOLOv8 head, 80 classes"},
    {{1, 25200, 85}, 640, 640, 0, NULL, V5, 2, 85, 25200, 80, "YOLOv5 head, 80 classes, 3 levels"},
    {{1, 25200, 117},
     640,
     640,
     80,
     NULL,
     V5,
     2,
     117,
     25200,
     80,
     "YOLOv5 head, 80 classes, 3 levels, 32 further channels not used"},
    {{1, 102000, 85},
     1280,
     1280,
     0,
     NULL,
     V5,
     2,
     85,
     102000,
     80,
     "YOLOv5 head, 80 classes, 4 levels"},
    {{1, 63, 25}, 32, 32, 0, NULL, V5, 2, 25, 63, 20, "YOLOv5 head, 20 classes, 3 levels"},
    {{1, 25200, 85}, 0, 0, 0, "yolov5", V5, 2, 85, 25200, 80, "YOLOv5 head, 80 classes"},
    {{1, 63, 85}, 0, 0, 0, "yolov5", V5, 2, 85, 63, 80, "YOLOv5 head, 80 classes"},
    {{1, 16800, 85}, 640, 640, 0, "yolov5", V5, 2, 85, 16800, 80, "YOLOv5 head, 80 classes"},
    {{1, 25200, 6}, 640, 640, 0, "yolov7", V7, 2, 6, 25200, 1, "YOLOv7 head, 1 class, 3 levels"},
    {{1, 8400, 85}, 640, 640, 80, NULL, X, 2, 85, 8400, 80, "YOLOX head, 80 classes, 3 levels"},
    {{1, 8400, 85}, 640, 640, 0, "yolox", X, 2, 85, 8400, 80, "YOLOX head, 80 classes, 3 levels"},
    {{1, 300, 6}, 640, 640, 0, NULL, V10, 2, 6, 300, 0, "end-to-end head, 300 boxes"},
    {{1, 300, 6}, 0, 0, 80, NULL, V10, 2, 6, 300, 0, "end-to-end head, 300 boxes"},
    {{1, 100, 6}, 0, 0, 0, NULL, V10, 2, 6, 100, 0, "end-to-end head, 100 boxes"},
    {{1, 1000, 6}, 0, 0, 0, "yolo26", V10, 2, 6, 1000, 0, "end-to-end head, 1000 boxes"},
    {{1, 300, 38},
     0,
     0,
     0,
     "yolov10",
     V10,
     2,
     38,
     300,
     0,
     "end-to-end head, 300 boxes, 32 further channels not used"},
    /* cells of strides 8, 16 and 32: 8 * 12 + 4 * 6 + 2 * 3 */
    {{1, 126, 16},
     64,
     96,
     0,
     "yunet",
     YUNET,
     2,
     16,
     126,
     1,
     "YuNet head, 1 class, 3 levels, 5 points"},
    {{1, 17640, 6}, 480, 640, 0, "RFB", RFB, 2, 6, 17640, 1, "RFB head, 1 class"},
    /* numbers behind the classes */
    {{1, 56, 8400},
     640,
     640,
     0,
     "yolov8-pose",
     POSE,
     1,
     56,
     8400,
     1,
     "YOLOv8 head, 1 class, 3 levels, 17 points with scores"},
    {{1, 8400, 135},
     640,
     640,
     80,
     "YOLO11-pose",
     POSE,
     2,
     135,
     8400,
     80,
     "YOLOv8 head, 80 classes, 3 levels, 17 points with scores"},
    {{1, 7, 50}, 0, 0, 0, "yolov8-pose-xy", POSE_XY, 1, 7, 50, 1, "YOLOv8 head, 1 class, 1 point"},
    {{1, 116, 8400},
     640,
     640,
     0,
     "yolov8-seg",
     SEG,
     1,
     116,
     8400,
     80,
     "YOLOv8 head, 80 classes, 3 levels, masks of 32 prototypes"},
    {{1, 8, 8400},
     640,
     640,
     3,
     "yolo11-seg",
     SEG,
     1,
     8,
     8400,
     3,
     "YOLOv8 head, 3 classes, 3 levels, masks of 1 prototype"},
    /* an angle behind the classes: only by name */
    {{1, 20, 8400}, 640, 640, 0, NULL, V8, 1, 20, 8400, 16, "YOLOv8 head, 16 classes, 3 levels"},
    {{1, 20, 8400},
     640,
     640,
     0,
     "yolov8-obb",
     OBB,
     1,
     20,
     8400,
     15,
     "YOLOv8 OBB head, 15 classes, 3 levels"},
    {{1, 8400, 20}, 0, 0, 15, "yolo11-obb", OBB, 2, 20, 8400, 15, "YOLOv8 OBB head, 15 classes"},
    {{1, 6, 6}, 0, 0, 0, "yolov8-obb", OBB, 1, 6, 6, 1, "YOLOv8 OBB head, 1 class"},
    {{1, 22, 8400},
     640,
     640,
     15,
     "yolov8-obb",
     OBB,
     1,
     22,
     8400,
     15,
     "YOLOv8 OBB head, 15 classes, 3 levels, 2 further channels not used"},
    /* chosen by the network */
    {{1, 300, 57},
     640,
     640,
     0,
     "yolo26-pose",
     END_POSE,
     2,
     57,
     300,
     0,
     "end-to-end head, 300 boxes, 17 points with scores"},
    {{1, 9, 8},
     0,
     0,
     3,
     "YOLO26-pose-xy",
     END_POSE_XY,
     2,
     8,
     9,
     0,
     "end-to-end head, 9 boxes, 1 point"},
    {{1, 300, 38},
     640,
     640,
     0,
     "yolo26-seg",
     END_SEG,
     2,
     38,
     300,
     0,
     "end-to-end head, 300 boxes, masks of 32 prototypes"},
    {{1, 300, 7}, 0, 0, 80, "yolo26-obb", END_OBB, 2, 7, 300, 0, "end-to-end OBB head, 300 boxes"},
};

static bool is_chosen(int form) {
    return form == V10 || form >= END_POSE;
}

static void recognised_shapes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        const struct found_case *one = &found[i];
        struct rfx_box_output output = {3, one->dims, one->h, one->w, one->classes, one->name};
        struct rfx_box_head head = {.channel_axis = -1};
        struct rfx_error err = {{0}};
        if (rfx_box_head_find(&output, &head, &err) != RFX_OK)
            fail_msg("case %d, '%s': %s", (int)i, one->words, err.text);
        assert_string_equal(head.words, one->words);
        assert_int_equal(head.form, one->form);
        assert_int_equal(head.channel_axis, one->channel_axis);
        assert_int_equal(head.channels, one->channels);
        assert_int_equal(head.candidates, one->candidates);
        assert_int_equal(head.classes, one->want_classes);
        assert_int_equal(head.suppress, !is_chosen(one->form));
    }
}

struct refused_case {
    int rank;
    int64_t dims[4], h, w, classes;
    const char *name;
    enum rfx_status status;
    const char *words;
};

#define UNSUPPORTED RFX_STATUS_UNSUPPORTED
#define INVALID RFX_STATUS_INVALID_ARGUMENT

static const struct refused_case refused[] = {
    {2, {84, 8400}, 0, 0, 0, NULL, UNSUPPORTED, "shape 84x8400; heads of detectors have three"},
    {4, {1, 255, 20, 20}, 0, 0, 0, "yolov5", UNSUPPORTED, "shape 1x255x20x20"},
    {3, {2, 84, 8400}, 0, 0, 0, NULL, UNSUPPORTED, "2x84x8400"},
    {3, {1, 0, 8400}, 0, 0, 0, NULL, UNSUPPORTED, "1x0x8400; heads"},
    {3, {1, 84, 0}, 0, 0, 0, "yolov8", UNSUPPORTED, "1x84x0; heads"},
    {3, {1, 1LL << 31, 1LL << 32}, 0, 0, 0, NULL, UNSUPPORTED, "no known head"},
    {0, {0}, 0, 0, 0, NULL, UNSUPPORTED, "single number"},
    {3, {1, 4, 8400}, 640, 640, 0, NULL, UNSUPPORTED, "1x4x8400 has no known head; known are"},
    {3, {1, 84, 8400}, 640, 640, 81, NULL, UNSUPPORTED, "1x84x8400 has no known head"},
    {3, {1, 84, 8400}, 640, 640, 81, "yolov8", UNSUPPORTED, "1x84x8400 and 81 classes"},
    {3, {1, 84, 8400}, 0, 0, 81, "yolov8", UNSUPPORTED, "1x84x8400 and 81 classes"},
    {3, {1, 4, 4}, 0, 0, 0, "yolov8", UNSUPPORTED, "1 x (4 + classes) x candidates; the output"},
    {3, {1, 8400, 5}, 0, 0, 0, "yolov7", UNSUPPORTED, "1 x candidates x (5 + classes)"},
    {3, {1, 300, 5}, 0, 0, 0, "yolov10", UNSUPPORTED, "1 x boxes x 6; the output has 1x300x5"},
    {3, {1, 300, 8}, 0, 0, 0, "yolo26-obb", UNSUPPORTED, "1 x boxes x 7; the output has 1x300x8"},
    {3, {1, 300, 6}, 0, 0, 0, "yolo26-obb", UNSUPPORTED, "1 x boxes x 7; the output has 1x300x6"},
    {3, {1, 300, 8}, 0, 0, 0, "yolo26-pose", UNSUPPORTED, "1 x boxes x (6 + 3 points)"},
    {3, {1, 300, 6}, 0, 0, 0, "yolo26-pose-xy", UNSUPPORTED, "1 x boxes x (6 + 2 points)"},
    {3, {1, 300, 6}, 0, 0, 80, "yolo26-seg", UNSUPPORTED, "1 x boxes x (6 + coefficients)"},
    {3, {1, 84, 8400}, 0, 0, 0, "yolo", INVALID, "'yolo' is not known; there are yolov8, yolov5"},
    {3, {1, 84, 8400}, 0, 0, 0, "", INVALID, "'' is not known"},
    {3, {1, 84, 8400}, 0, 0, 0, "yolov8 yolov9", INVALID, "not known; there are"},
    /* several forms fit */
    {3, {1, 25200, 85}, 0, 0, 0, NULL, INVALID, "1x25200x85 can have several heads"},
    {3, {1, 25200, 85}, 0, 0, 0, NULL, INVALID, "(yolov8, yolov5, yolox)"},
    {3, {1, 8400, 85}, 640, 640, 0, NULL, INVALID, "(yolov8, yolox)"},
    {3, {1, 25200, 6}, 640, 640, 0, NULL, INVALID, "(yolov5, yolov7)"},
    {3, {1, 25200, 6}, 640, 640, 1, NULL, INVALID, "(yolov5, yolov7)"},
    {3, {1, 84, 84}, 64, 64, 80, NULL, INVALID, "(yolov8)"},
    {3, {1, 1000, 6}, 0, 0, 1, NULL, INVALID, "(yolov5, yolov7, yolox, yolov10)"},
    /* heads of joined outputs: by name only, with their own shape, on an image of known size */
    {3, {1, 126, 16}, 64, 96, 0, NULL, INVALID, "(yolov8, yolox)"},
    {3, {1, 17640, 6}, 480, 640, 0, NULL, INVALID, "yolox, yolov10)"},
    {3, {1, 127, 16}, 64, 96, 0, "yunet", UNSUPPORTED, "strides 8, 16 and 32 x 16; the output has"},
    {3, {1, 126, 17}, 64, 96, 0, "yunet", UNSUPPORTED, "the output has 1x126x17"},
    {3, {1, 126, 16}, 0, 0, 0, "yunet", UNSUPPORTED, "the output has 1x126x16"},
    {3, {1, 16, 126}, 64, 96, 0, "yunet", UNSUPPORTED, "the output has 1x16x126"},
    {3, {1, 100, 6}, 0, 0, 0, "rfb", UNSUPPORTED, "of an image of known size; the output has"},
    {3, {1, 100, 7}, 64, 96, 0, "rfb", UNSUPPORTED, "1x100x7"},
    /* what is behind the classes: whole points, coefficients, not too many */
    {3, {1, 57, 8400}, 640, 640, 0, "yolov8-pose", UNSUPPORTED, "3 points) x candidates; the"},
    {3, {1, 5, 8400}, 640, 640, 0, "yolov8-pose", UNSUPPORTED, "the output has 1x5x8400"},
    {3, {1, 56, 8400}, 640, 640, 0, "yolov8-pose-xy", UNSUPPORTED, "2 points) x candidates; the"},
    {3, {1, 36, 8400}, 640, 640, 0, "yolov8-seg", UNSUPPORTED, "coefficients) x candidates; the"},
    {3, {1, 84, 8400}, 640, 640, 80, "yolov8-seg", UNSUPPORTED, "1x84x8400 and 80 classes"},
    {3, {1, 4105, 8400}, 640, 640, 4, "yolov8-seg", UNSUPPORTED, "1x4105x8400"},
    {3,
     {1, 5, 8400},
     640,
     640,
     0,
     "yolov8-obb",
     UNSUPPORTED,
     "(4 + classes + 1) x candidates; the"},
    {3, {1, 20, 8400}, 640, 640, 16, "yolov8-obb", UNSUPPORTED, "1x20x8400 and 16 classes"},
};

static void refused_shapes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct refused_case *one = &refused[i];
        struct rfx_box_output output = {one->rank, one->dims,    one->h,
                                        one->w,    one->classes, one->name};
        struct rfx_box_head head = {.channel_axis = -1};
        struct rfx_error err = {{0}};
        enum rfx_status status = rfx_box_head_find(&output, &head, &err);
        if (status != one->status || strstr(err.text, one->words) == NULL)
            fail_msg("case %d: %s, '%s', wanted '%s' (%s)", (int)i, rfx_status_name(status),
                     err.text, one->words, head.words);
        assert_int_equal(head.channel_axis, -1);
    }
}

static void huge_shapes_and_long_names(void **state) {
    (void)state;
    int64_t dims[9] = {1, INT64_MAX, INT64_MAX, 1, 1, 1, INT64_MAX, INT64_MAX, INT64_MAX};
    char name[300];
    memset(name, 'y', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct rfx_box_output output = {3, dims, INT64_MAX, INT64_MAX, INT64_MAX - 9, NULL};
    struct rfx_box_head head;
    struct rfx_error err;
    assert_int_equal(rfx_box_head_find(&output, &head, &err), UNSUPPORTED);
    output.classes = 0;
    assert_int_equal(rfx_box_head_find(&output, &head, &err), UNSUPPORTED);
    output.rank = 9;
    assert_int_equal(rfx_box_head_find(&output, &head, &err), UNSUPPORTED);
    output.rank = 3;
    output.name = name;
    assert_int_equal(rfx_box_head_find(&output, &head, &err), INVALID);
    assert_non_null(strstr(err.text, "there are yolov8"));
}

static void names(void **state) {
    static const char *const names_of[RFX_BOX_FORM_COUNT] = {
        [V8] = "yolov8 yolov9 yolov11 yolo11 yolov12 yolo12",
        [V5] = "yolov5",
        [V7] = "yolov7",
        [X] = "yolox",
        [V10] = "yolov10 yolo26 end-to-end",
        [YUNET] = "yunet",
        [RFB] = "rfb",
        [OBB] = "yolov8-obb yolov9-obb yolov11-obb yolo11-obb yolov12-obb yolo12-obb",
        [POSE] = "yolov8-pose yolov11-pose yolo11-pose",
        [POSE_XY] = "yolov8-pose-xy yolov11-pose-xy yolo11-pose-xy",
        [SEG] = "yolov8-seg yolov9-seg yolov11-seg yolo11-seg",
        [END_POSE] = "yolo26-pose",
        [END_POSE_XY] = "yolo26-pose-xy",
        [END_SEG] = "yolo26-seg",
        [END_OBB] = "yolo26-obb"};
    static const int channels_of[RFX_BOX_FORM_COUNT] = {
        [YUNET] = 16,    [RFB] = 6,          [POSE] = 56,    [POSE_XY] = 39,
        [END_POSE] = 57, [END_POSE_XY] = 40, [END_SEG] = 38, [END_OBB] = 7};
    static const int points_of[RFX_BOX_FORM_COUNT] = {
        [YUNET] = 5, [POSE] = 17, [POSE_XY] = 17, [END_POSE] = 17, [END_POSE_XY] = 17};
    (void)state;
    for (int form = 0; form < RFX_BOX_FORM_COUNT; form++) {
        const int64_t dims[3] = {1, 8400, channels_of[form] > 0 ? channels_of[form] : 85};
        char list[96], *rest = list;
        (void)snprintf(list, sizeof list, "%s", names_of[form]);
        for (const char *name; (name = strtok_r(rest, " ", &rest)) != NULL;) {
            struct rfx_box_output output = {3, dims, 640, 640, 0, name};
            struct rfx_box_head head;
            struct rfx_error err;
            assert_int_equal(rfx_box_head_find(&output, &head, &err), RFX_OK);
            assert_int_equal(head.form, form);
            assert_int_equal(head.points, points_of[form]);
            assert_int_equal(head.coefficients, form == SEG || form == END_SEG ? 32 : 0);
            assert_int_equal(head.oriented, form == OBB || form == END_OBB);
        }
    }
}

/* ---- candidates ---- */

struct take_case {
    const char *what;
    int form;
    int64_t classes;
    float channels[8], threshold;
    bool passes;
    float corner[4], score;
    int label;
};

#define BOX 100, 50, 30, 20
#define CORNERS \
    { 85, 40, 115, 60 }
#define NONE \
    { 0, 0, 0, 0 }

static const struct take_case taken[] = {
    {"best class", V8, 3, {BOX, 0.25f, 0.75f, 0.5f}, 0.25f, true, CORNERS, 0.75f, 1},
    {"first of equals", V8, 3, {BOX, 0.5f, 0.75f, 0.75f}, 0.25f, true, CORNERS, 0.75f, 1},
    {"above, not at the threshold", V8, 2, {BOX, 0.25f, 0.125f}, 0.25f, false, NONE, 0, 0},
    {"just above", V8, 2, {BOX, 0x1.000002p-2f, 0}, 0.25f, true, CORNERS, 0x1.000002p-2f, 0},
    {"threshold in float32", V8, 1, {BOX, 0.1f}, 0.1f, false, NONE, 0, 0},
    {"channels behind the classes", V8, 1, {BOX, 0.5f, 0.9f, NAN}, 0.25f, true, CORNERS, 0.5f, 0},
    {"NaN before", V8, 2, {BOX, NAN, 0.9f}, 0.25f, false, NONE, 0, 0},
    {"NaN behind", V8, 2, {BOX, 0.9f, NAN}, 0.25f, false, NONE, 0, 0},
    {"threshold below all", V8, 2, {BOX, -2, -1}, -3, true, CORNERS, -1, 1},
    {"each corner rounded once", /* spacing 1 below 2^24 and 2 above; ties go to the even number */
     V8,
     1,
     {0x1p24f, 0.25f, 3, 0.5f, 1},
     0,
     true,
     {16777214, 0, 16777218, 0.5f},
     1,
     0},
    {"sides may be negative", V8, 1, {1, 1, -4, -2, 1}, 0, true, {3, 2, -1, 0}, 1, 0},
    {"infinite side", V8, 1, {1, 1, INFINITY, 2, 1}, 0, true, {-INFINITY, 0, INFINITY, 2}, 1, 0},

    {"product", V5, 2, {BOX, 0.5f, 0.75f, 0.875f}, 0.25f, true, CORNERS, 0.4375f, 1},
    {"product in float32",
     V5,
     1,
     {BOX, 0x1.000002p-1f, 0x1.000002p-1f},
     0.25f,
     true,
     CORNERS,
     0x1.000004p-2f,
     0},
    {"product at the threshold", V5, 1, {BOX, 0.5f, 0.5f}, 0.25f, false, NONE, 0, 0},
    {"objectness at the threshold", V5, 1, {BOX, 0.25f, 2}, 0.25f, false, NONE, 0, 0},
    {"objectness above", V5, 1, {BOX, 0x1.000002p-2f, 1}, 0.25f, true, CORNERS, 0x1.000002p-2f, 0},
    {"equal products: the first",
     V5,
     2,
     {BOX, 0x1.000002p-1f, 0x1.fffffcp-1f, 0x1.fffffep-1f},
     0.25f,
     true,
     CORNERS,
     0.5f,
     0},
    {"NaN objectness", V5, 1, {BOX, NAN, 0.9f}, 0.25f, false, NONE, 0, 0},
    {"NaN class", V5, 2, {BOX, 0.9f, 0.9f, NAN}, 0.25f, false, NONE, 0, 0},
    {"products below 0", V5, 2, {BOX, 0.5f, -0.75f, -0.5f}, -1, true, CORNERS, -0.25f, 1},

    {"two classes of YOLOv7", V7, 2, {BOX, 0.5f, 0.75f, 0.875f}, 0.25f, true, CORNERS, 0.4375f, 1},
    {"one class of YOLOv7", V7, 1, {BOX, 0.5f, 0.125f}, 0.25f, true, CORNERS, 0.5f, 0},
    {"one class at the threshold", V7, 1, {BOX, 0.25f, 1}, 0.25f, false, NONE, 0, 0},

    {"YOLOX at the threshold", X, 1, {BOX, 0.5f, 0.5f}, 0.25f, true, CORNERS, 0.25f, 0},
    {"YOLOX below", X, 1, {BOX, 0.5f, 0x1.fffffep-2f}, 0.25f, false, NONE, 0, 0},
    {"YOLOX with small objectness", X, 1, {BOX, 0.25f, 2}, 0.5f, true, CORNERS, 0.5f, 0},
    {"YOLOX compares classes",
     X,
     2,
     {BOX, 0x1.000002p-1f, 0x1.fffffcp-1f, 0x1.fffffep-1f},
     0.25f,
     true,
     CORNERS,
     0.5f,
     1},
    {"YOLOX: first of equals", X, 2, {BOX, 1, 0.5f, 0.5f}, 0.25f, true, CORNERS, 0.5f, 0},
    {"YOLOX: NaN class", X, 2, {BOX, 1, 0.5f, NAN}, 0.25f, false, NONE, 0, 0},
    {"YOLOX: NaN objectness", X, 1, {BOX, NAN, 0.5f}, 0.25f, false, NONE, 0, 0},

    {"corners", V10, 0, {1, 2, 3, 4, 0.5f, 79}, 0.25f, true, {1, 2, 3, 4}, 0.5f, 79},
    {"row at the threshold", V10, 0, {1, 2, 3, 4, 0.25f, 79}, 0.25f, false, NONE, 0, 0},
    {"row with a NaN score", V10, 0, {1, 2, 3, 4, NAN, 79}, 0.25f, false, NONE, 0, 0},
    {"label NaN", V10, 0, {1, 2, 3, 4, 0.5f, NAN}, 0.25f, true, {1, 2, 3, 4}, 0.5f, -1},
    {"label below 0", V10, 0, {1, 2, 3, 4, 0.5f, -2}, 0.25f, true, {1, 2, 3, 4}, 0.5f, -1},
    {"label too large", V10, 0, {1, 2, 3, 4, 0.5f, 0x1p31f}, 0.25f, true, {1, 2, 3, 4}, 0.5f, -1},
    {"half a label", V10, 0, {1, 2, 3, 4, 0.5f, 1.5f}, 0.25f, true, {1, 2, 3, 4}, 0.5f, -1},
};

static void candidates_by_hand(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const struct take_case *one = &taken[i];
        struct rfx_box_head head = {.form = (enum rfx_box_form)one->form, .classes = one->classes};
        struct rfx_box box, untouched, want;
        memset(&box, 0x5a, sizeof box);
        memset(&untouched, 0x5a, sizeof untouched);
        memset(&want, 0, sizeof want);
        memcpy(want.corner, one->corner, sizeof want.corner);
        want.score = one->score;
        want.label = one->label;
        want.index = INT64_C(1) << 40;
        bool passes = rfx_box_head_take(&head, one->channels, want.index, one->threshold, &box);
        if (passes != one->passes) fail_msg("%s: passes %d", one->what, passes);
        if (memcmp(&box, passes ? &want : &untouched, sizeof box) != 0)
            fail_msg("%s: %.9g %.9g %.9g %.9g, score %.9g, label %d, index %lld", one->what,
                     (double)box.corner[0], (double)box.corner[1], (double)box.corner[2],
                     (double)box.corner[3], (double)box.score, (int)box.label,
                     (long long)box.index);
    }
}

/* A candidate of an image of 64 x 96 pixels: 96 cells of stride 8 (12 in a row), 24 of stride 16
 * (6), 6 of stride 32 (3). exp(0x1.62e43p-1) rounds to 2. */
struct face_case {
    const char *what;
    int64_t index;
    float cls, obj, box[4], threshold;
    bool passes;
    float corner[4], score, point[2]; /* of a landmark at the box's distance from the cell */
};

#define LOG2 0x1.62e43p-1F

static const struct face_case faces[] = {
    {"first cell", 0, 0.25F, 1, {0.5F, 0.25F, 0, 0}, 0.25F, true, {0, -2, 8, 6}, 0.5F, {4, 2}},
    {"end of a row", 11, 1, 1, {0, 0, 0, 0}, 0.25F, true, {84, -4, 92, 4}, 1, {88, 0}},
    {"next row", 12, 1, 1, {0, 0, 0, 0}, 0.25F, true, {-4, 4, 4, 12}, 1, {0, 8}},
    {"last of stride 8", 95, 1, 1, {0, 0, 0, 0}, 0.25F, true, {84, 52, 92, 60}, 1, {88, 56}},
    {"first of stride 16", 96, 1, 1, {0, 0, 0, 0}, 0.25F, true, {-8, -8, 8, 8}, 1, {0, 0}},
    {"of stride 16", 103, 1, 1, {0.5F, 0.25F, LOG2, 0}, 0.25F, true, {8, 12, 40, 28}, 1, {24, 20}},
    {"first of stride 32", 120, 1, 1, {0, 0, 0, LOG2}, 0.25F, true, {-16, -32, 16, 32}, 1, {0, 0}},
    {"last cell", 125, 1, 1, {0, 0, 0, 0}, 0.25F, true, {48, 16, 80, 48}, 1, {64, 32}},
    {"root rounded", 0, 0.5F, 1, {0}, 0.25F, true, {-4, -4, 4, 4}, 0x1.6a09e6p-1F, {0, 0}},
    {"product rounded, then its root",
     0,
     0x1.000002p-1F,
     0x1.000002p-1F,
     {0},
     0.25F,
     true,
     {-4, -4, 4, 4},
     0x1.000002p-1F,
     {0, 0}},
    {"at the threshold", 0, 0.25F, 1, {0}, 0.5F, true, {-4, -4, 4, 4}, 0.5F, {0, 0}},
    {"below", 0, 0x1.fffffcp-3F, 1, {0}, 0.5F, false, {0}, 0, {0, 0}},
    {"limited to 1", 0, 1.5F, 0.25F, {0}, 0.25F, true, {-4, -4, 4, 4}, 0.5F, {0, 0}},
    {"limited to 0", 0, -1, -1, {0}, 0.25F, false, {0}, 0, {0, 0}},
    {"NaN", 0, NAN, 1, {0}, 0, false, {0}, 0, {0, 0}},
};

static void faces_by_hand(void **state) {
    (void)state;
    struct rfx_box_head head = {
        .form = RFX_BOX_FORM_YUNET, .points = 5, .image_h = 64, .image_w = 96};
    for (size_t i = 0; i < sizeof faces / sizeof *faces; i++) {
        const struct face_case *one = &faces[i];
        float channels[16] = {one->cls, one->obj}, points[10];
        struct rfx_box box = {.label = -1};
        memcpy(channels + 2, one->box, sizeof one->box);
        for (int p = 0; p < 10; p++) channels[6 + p] = one->box[p % 2] + (float)(p / 2);
        if (rfx_box_head_take(&head, channels, one->index, one->threshold, &box) != one->passes)
            fail_msg("%s", one->what);
        if (!one->passes) continue;
        if (memcmp(box.corner, one->corner, sizeof box.corner) != 0 || box.score != one->score)
            fail_msg("%s: %g %g %g %g, score %.9g", one->what, (double)box.corner[0],
                     (double)box.corner[1], (double)box.corner[2], (double)box.corner[3],
                     (double)box.score);
        assert_int_equal(box.label, 0);
        assert_int_equal(box.index, one->index);
        assert_ptr_equal(rfx_box_head_numbers(&head, channels, one->index, points), points);
        float stride = one->index < 96 ? 8 : one->index < 120 ? 16 : 32;
        for (int p = 0; p < 10; p++)
            assert_true(points[p] == one->point[p % 2] + (float)(p / 2) * stride);
    }
}

static void numbers_by_hand(void **state) {
    const float channels[9] = {BOX, 0.5F, 0.75F, -7, 1000, 0.125F};
    struct rfx_box_head head = {
        .form = RFX_BOX_FORM_POSE, .channels = 9, .classes = 2, .points = 1, .point_values = 3};
    struct rfx_box box;
    (void)state;
    assert_true(rfx_box_head_take(&head, channels, 7, 0.25F, &box));
    assert_true(box.score == 0.75F && box.label == 1);
    assert_int_equal(rfx_box_head_extras(&head), 3);
    assert_ptr_equal(rfx_box_head_numbers(&head, channels, 7, NULL), channels + 6);
    head = (struct rfx_box_head){
        .form = RFX_BOX_FORM_SEG, .channels = 9, .classes = 1, .coefficients = 4};
    assert_true(rfx_box_head_take(&head, channels, 7, 0.25F, &box));
    assert_true(box.score == 0.5F && box.label == 0);
    assert_int_equal(rfx_box_head_extras(&head), 4);
    assert_ptr_equal(rfx_box_head_numbers(&head, channels, 7, NULL), channels + 5);
}

static void chosen_boxes_by_hand(void **state) {
    const float channels[9] = {BOX, 0.5F, 3, -7, 1000, 0.125F};
    struct rfx_box_head head = {
        .form = RFX_BOX_FORM_YOLO26_POSE, .channels = 9, .points = 1, .point_values = 3};
    struct rfx_box box;
    (void)state;
    assert_true(rfx_box_head_take(&head, channels, 7, 0.25F, &box));
    assert_memory_equal(box.corner, channels, sizeof box.corner);
    assert_true(box.score == 0.5F && box.label == 3 && box.index == 7);
    assert_ptr_equal(rfx_box_head_numbers(&head, channels, 7, NULL), channels + 6);
    head = (struct rfx_box_head){.form = RFX_BOX_FORM_YOLO26_OBB, .channels = 7};
    assert_true(rfx_box_head_take(&head, channels, 7, 0.25F, &box));
    const struct rfx_oriented_box oriented = rfx_box_head_orient(&head, channels, &box);
    assert_memory_equal(oriented.centre, channels, sizeof oriented.centre);
    assert_memory_equal(oriented.side, channels + 2, sizeof oriented.side);
    assert_true(oriented.angle == -7 && oriented.score == 0.5F && oriented.label == 3);
}

static void shares_by_hand(void **state) {
    (void)state;
    struct rfx_box_head head = {.form = RFX_BOX_FORM_RFB, .image_h = 480, .image_w = 640};
    const float channels[6] = {0.9F, 0.5F, 0.25F, 0.5F, 0.75F, 1}, want[4] = {160, 240, 480, 480};
    struct rfx_box box;
    assert_false(rfx_box_head_take(&head, channels, 7, 0.5F, &box));
    assert_true(rfx_box_head_take(&head, channels, 7, 0.25F, &box));
    assert_memory_equal(box.corner, want, sizeof want);
    assert_true(box.score == 0.5F);
    assert_int_equal(box.label, 0);
    assert_int_equal(box.index, 7);
}

static void oriented_boxes_have_the_channels(void **state) {
    static const float channels[8] = {100, 50, 30, 20, 0.25f, 0.75f, 0.9f, -0.5f};
    const struct rfx_box_head head = {.form = RFX_BOX_FORM_YOLOV8_OBB, .channels = 8, .classes = 2};
    struct rfx_box box;
    (void)state;
    assert_true(rfx_box_head_take(&head, channels, 7, 0.5f, &box));
    const struct rfx_oriented_box oriented = rfx_box_head_orient(&head, channels, &box);
    assert_memory_equal(oriented.centre, channels, sizeof oriented.centre);
    assert_memory_equal(oriented.side, channels + 2, sizeof oriented.side);
    assert_true(oriented.angle == -0.5f && oriented.score == 0.75f);
    assert_true(oriented.label == 1 && oriented.index == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recognised_shapes),
        cmocka_unit_test(refused_shapes),
        cmocka_unit_test(huge_shapes_and_long_names),
        cmocka_unit_test(names),
        cmocka_unit_test(candidates_by_hand),
        cmocka_unit_test(faces_by_hand),
        cmocka_unit_test(numbers_by_hand),
        cmocka_unit_test(chosen_boxes_by_hand),
        cmocka_unit_test(shares_by_hand),
        cmocka_unit_test(oriented_boxes_have_the_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
