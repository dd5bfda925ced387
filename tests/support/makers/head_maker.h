/* Small networks whose outputs have the form of a detector's head (rfexec/run/join_heads.h,
 * join_detector.h). Every value of a cell is a linear function of the largest
 * values of 3 x 3 pixels. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_HEAD_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_HEAD_MAKER_H

#include <stdbool.h>

#include "tests/support/makers/onnx_maker.h"

/* Makes the graph of YuNet's twelve outputs, for images of any size, opset 13. without: name of an
 * output that is computed but not declared; NULL: none. wide: name of an output of one channel
 * more; NULL: none. */
void maker_yunet(struct maker *graph, const char *without, const char *wide);

/* Makes the graph of the two outputs of the RFB face detector, with three candidates a cell of
 * stride 8 and two of stride 16, opset 13. */
void maker_rfb(struct maker *graph);

/* Makes the graph of a CenterNet's outputs hm (3 channels), wh and reg (2 each), for images of any
 * size, opset 13. Many neighbours in hm are equal. hm: another name of hm. active: behind a
 * sigmoid. */
void maker_centernet(struct maker *graph, const char *hm, bool active);

/* Writes a model with one of these graphs to a file. */
void maker_save_heads(const struct maker *graph, const char *path);

/* How a tensor has the values of its cells' anchors. */
enum maker_order {
    MAKER_LISTED, /* 1 x (rows, columns, anchors) x values, as torchvision's heads */
    MAKER_MAP,    /* 1 x (values, anchors) x rows x columns */
    MAKER_FIVE    /* 1 x anchors x rows x columns x values, as YOLOv5 before decoding */
};

/* Begins a graph without outputs, for images of any size, opset 13. */
void maker_begin_cells(struct maker *graph);

/* Adds a tensor of drawn values of every cell of a stride; no output is declared. */
void maker_cells(struct maker *graph, const char *name, int stride, int anchors, int values,
                 enum maker_order order);
#endif
