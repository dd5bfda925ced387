/* Makes a whole detector, whose file ends in nodes whose sizes depend on data, in the form of
 * torchvision's exports: candidates of each class above a threshold (NonZero, GatherND), boxes of
 * different classes moved apart, an If for no candidates, NonMaxSuppression with an overlap of 0.5,
 * and the outputs "boxes" (N x 4), "scores" (N) and "labels" (N, int64). */
#ifndef RFX_TESTS_SUPPORT_MAKERS_LATE_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_LATE_MAKER_H

#include "tests/support/makers/onnx_maker.h"

enum { LATE_MAKER_CLASSES = 2, LATE_MAKER_STRIDE = 4 };

/* Boxes of two classes are this far apart when they are compared. */
#define LATE_MAKER_APART 1000.0F

/* Adds all nodes and values of the detector to an empty graph, for an image of 3 x h x w (multiples
 * of 4, h * w at most 4096). The tensors "all_boxes" (cells x 4) and "all_scores" (cells x 2) are
 * those behind which the nodes with open sizes begin. */
void late_maker_graph(struct maker *graph, int64_t h, int64_t w, float threshold);

/* Writes it as a model. */
void late_maker_save(const char *path, int64_t h, int64_t w, float threshold);

enum { LATE_MAKER_MOST = 20 };

/* As late_maker_graph, with TensorRT's EfficientNMS_TRT (an overlap of 0.5, LATE_MAKER_MOST boxes)
 * of this domain in place of torchvision's end. Outputs: num_dets (1 x 1, int32), det_boxes (1 x
 * 20 x 4), det_scores and det_classes (1 x 20; int32). */
void late_maker_plugin_graph(struct maker *graph, int64_t h, int64_t w, float threshold,
                             const char *domain);
#endif
