/* Heads of detectors whose output holds decoded boxes: which numbers of an output are which, and
 * how one candidate becomes a box with score and label.
 *
 * The forms stand in one table (box_head.c), each with the rule of the program that its users run:
 *
 *   name               output                              rule of
 *   yolov8             1 x (4 + classes) x candidates      Ultralytics, non_max_suppression
 *   yolov5             1 x candidates x (5 + classes)      YOLOv5, non_max_suppression
 *   yolov7             1 x candidates x (5 + classes)      YOLOv7, non_max_suppression
 *   yolox              1 x candidates x (5 + classes)      YOLOX, postprocess
 *   yolov10            1 x boxes x 6                       Ultralytics, end-to-end output
 *   yunet              1 x cells x 16                      OpenCV, FaceDetectorYN
 *   rfb                1 x candidates x 6                  Ultra-Light-Fast-Generic-Face-Detector
 *   yolov8-pose        1 x (4 + classes + 3 points) x candidates    as yolov8
 *   yolov8-pose-xy     1 x (4 + classes + 2 points) x candidates    as yolov8
 *   yolov8-seg         1 x (4 + classes + coefficients) x candidates    as yolov8
 *   yolov8-obb         1 x (4 + classes + 1) x candidates  Ultralytics, rotated boxes
 *   yolo26-pose        1 x boxes x (6 + 3 points)          as yolov10
 *   yolo26-pose-xy     1 x boxes x (6 + 2 points)          as yolov10
 *   yolo26-seg         1 x boxes x (6 + coefficients)      as yolov10
 *   yolo26-obb         1 x boxes x 7                       as yolov10, rotated boxes
 *
 * The channels of the first four are centre x, centre y, width and height in pixels of the
 * network's input, then (but for yolov8) objectness, then a score for each class; all scores are in
 * 0..1 already. Those of yolov10 are left, top, right, bottom, score and label; the network has
 * suppressed already. yolov8 also takes the transposed output, 1 x candidates x (4 + classes).
 *
 * yunet and rfb are heads of several outputs, which rfexec/run/join_heads.h joins to one; they are
 * never recognised by shape. The channels of yunet are the scores of class and object, the box's
 * centre as its distance from the cell in cells, the logarithms of width and height in cells, and
 * five landmarks, x and y as the centre's. Its cells are those of strides 8, 16 and 32, row by row.
 * The channels of rfb are the scores of background and face, then left, top, right and bottom as
 * shares of the image's width and height.
 *
 * The -pose and -seg heads have the channels of yolov8, then x, y and score of each key point, x
 * and y alone, or the coefficients of the box's mask (box_masks.h). Points are in pixels of the
 * network's input and are written as they are. Unless the number of classes is known, -pose has one
 * class and -seg 32 coefficients. They are never recognised by shape, which cannot tell classes
 * from what is behind them.
 *
 * yolov8-obb is yolov8 with the angle of the box in radians as the last channel (oriented_boxes.h).
 * It looks like yolov8 with one class more, so it is never recognised by shape.
 *
 * The yolo26 forms have the channels of yolov10, then the numbers of the yolov8 forms of the same
 * ending. The first four of yolo26-obb are centre x, centre y, width and height.
 *
 * CenterNet's head is a described one that is recognised by the names of its outputs
 * (rfexec/run/join_centernet.h).
 *
 * A head does not touch files and graphs. Pinned by test_box_head.c and tests/oracle/box_cases.py.
 */
#ifndef RFX_RFEXEC_ANSWERS_BOX_HEAD_H
#define RFX_RFEXEC_ANSWERS_BOX_HEAD_H

#include "layers/core/status.h"
#include "rfexec/answers/boxes.h"
#include "rfexec/answers/oriented_boxes.h"
#include "rfexec/output/detector.h"

enum { RFX_BOX_POINTS = 5 };              /* landmarks of faces */
enum { RFX_BOX_MOST_EXTRAS = 4096 };      /* most numbers of key points or coefficients of a box */
enum { RFX_BOX_USUAL_COEFFICIENTS = 32 }; /* of a -seg head whose number of classes is not known */

/* The head of a CenterNet, and what is wrong where it is asked for and no outputs were joined. */
#define RFX_BOX_CENTERNET "centernet"
#define RFX_BOX_NO_CENTERNET                                                                     \
    "a head 'centernet' has three maps with a cell for each 4 x 4 pixels: 'hm' (classes), 'wh' " \
    "and 'reg' (2 channels each); for other names, describe it in a head file (--head FILE.json)"

enum rfx_box_form {
    RFX_BOX_FORM_YOLOV8,
    RFX_BOX_FORM_YOLOV5,
    RFX_BOX_FORM_YOLOV7,
    RFX_BOX_FORM_YOLOX,
    RFX_BOX_FORM_YOLOV10,
    RFX_BOX_FORM_YUNET,
    RFX_BOX_FORM_RFB,
    RFX_BOX_FORM_POSE,
    RFX_BOX_FORM_POSE_XY,
    RFX_BOX_FORM_SEG,
    RFX_BOX_FORM_YOLOV8_OBB,
    RFX_BOX_FORM_YOLO26_POSE,
    RFX_BOX_FORM_YOLO26_POSE_XY,
    RFX_BOX_FORM_YOLO26_SEG,
    RFX_BOX_FORM_YOLO26_OBB,
    RFX_BOX_FORM_COUNT
};

/* What is known of a detector's output. */
struct rfx_box_output {
    int rank;
    const int64_t *dims;      /* in ONNX order */
    int64_t image_h, image_w; /* of the network's input, padding included; 0: not known */
    int64_t classes;          /* 0: not known; all channels behind the fixed ones are classes */
    const char *name;         /* of the head, in upper or lower case; NULL: recognise the shape */
};

struct rfx_box_head {
    enum rfx_box_form form;
    int channel_axis;         /* of the output: 1 or 2; the other one counts the candidates */
    int64_t channels;         /* values of a candidate */
    int64_t candidates;       /* of the output; a candidate's index counts them from 0 */
    int64_t classes;          /* 0: the form does not tell (yolov10) */
    bool suppress;            /* false: the network has suppressed already */
    bool oriented;            /* boxes have an angle */
    int points;               /* landmarks or key points of a box */
    int point_values;         /* of each: 2 (x, y) or 3 (x, y, score) */
    int coefficients;         /* of the mask of a box; 0: boxes have no masks */
    int64_t image_h, image_w; /* of the network's input, padding included; 0: not known */
    /* A head that a file describes, whose candidates detector_boxes.h decodes; NULL: a form. Its
     * `candidates` are the cells, its `channels` the values of a cell. */
    const struct rfx_detector *detector;
    char words[192]; /* "YOLOv8 head, 80 classes, 3 levels", for messages */
};

/* Finds the head of an output. Without a name, the shape must fit one form only. The number of
 * candidates decides where the image's size is known: a form has one or three for each cell of
 * strides 8, 16 and 32 (or 8 to 64, 4 to 32, 16 and 32). INVALID_ARGUMENT: the name is not known,
 * or several forms fit and the text names them. UNSUPPORTED: the shape does not fit the form of the
 * name, or no form. */
RFX_NODISCARD enum rfx_status rfx_box_head_find(const struct rfx_box_output *output,
                                                struct rfx_box_head *head, struct rfx_error *err);

/* Makes the head of an output that was joined by a description, which must stay where it is. */
void rfx_box_head_describe(const struct rfx_detector *detector, struct rfx_box_head *head);

/* Decodes a candidate of a form. channels: its head->channels values. index: number of the
 * candidate. Returns whether it passes the score threshold, and writes *box only then.
 *
 * The label is the class of the largest score, the smallest of equals; a candidate with a NaN among
 * its scores never passes. The score must be larger than the threshold, with yolox and yunet as
 * large. Of yolov5, yolov7 and yolox it is objectness times the class's score, rounded to float32;
 * yolov5 and yolov7 compare the objectness with the threshold first, and yolov7 with one class
 * takes the objectness alone. yolov10 writes its label as a float: one that is not a whole number
 * of 0 or more becomes -1. Each corner is the centre minus or plus half the side, rounded once;
 * corners may be NaN or infinite if the network's values are.
 *
 * yunet: score = sqrt(class * object), both limited to 0..1; centre = (distance + column or row) *
 * stride; side = exp(logarithm) * stride. Every operation rounds to float32 once; exp is rfx_exp
 * (real_math.h), rounded to float32. rfb: corner = share * side of the image, rounded once. */
bool rfx_box_head_take(const struct rfx_box_head *head, const float *channels, int64_t index,
                       float threshold, struct rfx_box *box);

/* Returns how many numbers of a candidate are kept besides its box: those of its points, or the
 * coefficients of its mask. */
static inline int64_t rfx_box_head_extras(const struct rfx_box_head *head) {
    return (int64_t)head->points * head->point_values + head->coefficients;
}

/* Returns these numbers, of a head that has them. Landmarks of yunet are computed into `points`:
 * (distance + column or row) * stride, each operation rounded to float32. Others are returned in
 * `channels`. */
const float *rfx_box_head_numbers(const struct rfx_box_head *head, const float *channels,
                                  int64_t index, float points[2 * RFX_BOX_POINTS]);

/* Returns a candidate that rfx_box_head_take has taken as a box with an angle: the channels as they
 * are. For heads whose boxes have one. */
struct rfx_oriented_box rfx_box_head_orient(const struct rfx_box_head *head, const float *channels,
                                            const struct rfx_box *box);
#endif
