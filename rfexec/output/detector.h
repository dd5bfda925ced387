/* A detector's head as a file describes it: where in the network's outputs the values of a
 * candidate are, and how they become a box with score and label. docs/answers.md has the file's
 * format, head_file.h reads it, rfexec/run/join_heads.h joins the outputs, detector_boxes.h decodes
 * candidates.
 *
 * A candidate is one of the anchors of a cell of a level. Candidates are counted level by level,
 * row by row, cell by cell, anchor by anchor. The struct has no pointers and may be copied. */
#ifndef RFX_RFEXEC_OUTPUT_DETECTOR_H
#define RFX_RFEXEC_OUTPUT_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RFX_DETECTOR_OUTPUTS = 8,
    RFX_DETECTOR_LEVELS = 8,
    RFX_DETECTOR_ANCHORS = 32, /* of a cell */
    RFX_DETECTOR_NAME = 128,   /* bytes of an output's name, the last one 0 */
    RFX_DETECTOR_AXES = 8,     /* letters and spaces of an output's axes, and a 0 */
};

enum rfx_detector_value {
    RFX_DETECTOR_BOX,
    RFX_DETECTOR_OBJECTNESS,
    RFX_DETECTOR_SCORES,
    RFX_DETECTOR_POINTS,
    RFX_DETECTOR_BOX_CENTRE, /* x and y: with BOX_SIDES in place of BOX */
    RFX_DETECTOR_BOX_SIDES,
    RFX_DETECTOR_VALUES
};

/* How values become boxes; detector_boxes.h has the formulas. */
enum rfx_detector_decode {
    RFX_DETECTOR_CORNERS,
    RFX_DETECTOR_CENTRE,
    RFX_DETECTOR_DISTANCES,
    RFX_DETECTOR_DELTAS,
    RFX_DETECTOR_CELLS,
    RFX_DETECTOR_YOLOV3,
    RFX_DETECTOR_YOLOV5,
    RFX_DETECTOR_CENTERNET,
    RFX_DETECTOR_DECODES
};

enum rfx_detector_activation {
    RFX_DETECTOR_NONE,
    RFX_DETECTOR_SIGMOID,
    RFX_DETECTOR_SOFTMAX,
    RFX_DETECTOR_ACTIVATIONS
};

/* Outputs of the network that have the same values of all candidates. */
struct rfx_detector_output {
    int n_names; /* 1: one output has all levels; else one for each level */
    char names[RFX_DETECTOR_LEVELS][RFX_DETECTOR_NAME];
    char axes[RFX_DETECTOR_AXES]; /* "yxa v": a word for each axis behind the batch; a letter for
                                     what it runs over, the slowest first: y rows, x columns, a
                                     anchors, v values, n all candidates of a level */
    bool values_first;            /* of the axes: the anchors run faster than the values */
    int n_values;
    enum rfx_detector_value values[RFX_DETECTOR_VALUES];
    /* Set when the outputs are joined: */
    int64_t first, channels; /* the output's values of a candidate, counted over all outputs */
};

/* Where a candidate has the values of a kind. Set when the outputs are joined. */
struct rfx_detector_place {
    int output;    /* -1: the head has no such values */
    int64_t at, n; /* values at to at + n - 1 of the output's */
};

struct rfx_detector_level {
    float stride;                          /* pixels between cells; 0: not given */
    int anchors;                           /* candidates of a cell */
    float anchor[RFX_DETECTOR_ANCHORS][2]; /* width and height, if the detector has anchors */
    /* Set when the outputs are joined: */
    int64_t h, w; /* cells */
};

struct rfx_detector {
    char name[RFX_DETECTOR_NAME]; /* of the file, without folders; printable */
    int n_outputs, n_levels;
    struct rfx_detector_output outputs[RFX_DETECTOR_OUTPUTS];
    struct rfx_detector_level levels[RFX_DETECTOR_LEVELS];
    enum rfx_detector_decode decode;
    enum rfx_detector_activation activation; /* of scores and, if sigmoid, of the objectness */
    bool has_anchors;
    bool shares;        /* boxes (corners, centre) or anchors are shares of the image's sides */
    bool root;          /* the score is the root of score * objectness */
    bool every_class;   /* each class above the threshold gives a box, not the best one alone */
    bool clip;          /* corners are moved into the image */
    int64_t background; /* class that is never a label; -1: none */
    float offset;       /* of a cell's centre, in cells */
    float weights[4];   /* by which deltas are divided */
    float limit;        /* of logarithms of sides; INFINITY: none */
    /* Set when the outputs are joined: */
    int64_t image_h, image_w; /* of the network's input, padding included */
    int64_t channels;         /* values of a candidate, all outputs together, and its peaks */
    int64_t peaks; /* CENTERNET: the first of the largest values of the 3 x 3 cells around it, one
                      for each of its scores; they are behind the values of all outputs */
    struct rfx_detector_place places[RFX_DETECTOR_VALUES];
    /* The joined output has the shape 1 x cells of all levels x (most_anchors x channels). A cell
     * has the values of outputs[0] of all its anchors, then those of outputs[1], and so on, then
     * the peaks, and is filled up with values without meaning. Anchors and values of an output are
     * in the order of its axes. */
    int most_anchors;
};

/* Returns the values of a candidate that an output has besides the scores of classes; *scores:
 * whether it has these, too. */
int64_t rfx_detector_fixed(const struct rfx_detector_output *out, bool *scores);

/* Sets the members that follow from the channels of the outputs and the anchors of the levels: the
 * first values of the outputs, the channels, the places and most_anchors. Returns -1, or the number
 * of the output whose channels are not those of its values. */
int rfx_detector_settle(struct rfx_detector *detector);
#endif
