/* What is to be found in an output, and in which coordinates it is written. */
#ifndef RFX_RFEXEC_OUTPUT_ANSWER_OPTIONS_H
#define RFX_RFEXEC_OUTPUT_ANSWER_OPTIONS_H

#include "layers/graph/tensor.h"
#include "rfexec/image/geo/georeference.h"

enum rfx_answer_coordinates {
    RFX_ANSWER_AUTO,   /* MAP if the picture has a coordinate system of the earth, else PIXELS */
    RFX_ANSWER_PIXELS, /* pixels of the picture, from its upper left corner */
    RFX_ANSWER_MAP     /* coordinates of the picture's coordinate system */
};

/* Forms of files: GeoJSON has places, COCO's results are boxes. */
enum rfx_answer_form { RFX_ANSWER_GEOJSON, RFX_ANSWER_CSV, RFX_ANSWER_JSON, RFX_ANSWER_COCO };

/* Memory that is planned for regions that are open at a time if nothing else is said; their limit
 * if a budget is set. */
#define RFX_ANSWER_BYTES ((size_t)8 << 20)

/* Bins of a histogram (value_bins.h). */
struct rfx_answer_bins {
    int64_t n; /* 0: no histogram is wanted */
    double low, high;
};
#define RFX_ANSWER_MOST_BINS 65536

/* Quantiles of values (value_quantiles.h), each from 0 to 1. */
enum { RFX_ANSWER_MOST_QUANTILES = 16 };
struct rfx_answer_quantiles {
    int n; /* 0: none are wanted */
    double at[RFX_ANSWER_MOST_QUANTILES];
};

/* Sees each point and each box of text when it is written, in the order of the file. */
struct rfx_answer_watch {
    /* corners: x and y of a point (n is 1) or of each of the four corners around a box (n is 4), in
     * pixels of the map, from the outer corner of its first pixel. A status other than RFX_OK ends
     * the run. NULL: nobody watches. */
    enum rfx_status (*take)(void *user, const double *corners, int n, int32_t label,
                            struct rfx_error *err);
    void *user;
};

struct rfx_answer_options { /* zeros are the defaults, but for score, overlap, text_score, growth */
    const char *names;      /* path of a file with a class name a line; borrowed while the file is
                               opened; NULL: none */
    size_t most_bytes; /* for regions that are open at a time, and for areas with their counts; 0:
                          no limit, and RFX_ANSWER_BYTES are planned for regions */
    enum rfx_answer_coordinates coordinates;
    /* Classes of maps, for regions and summaries. With a threshold, each channel is a class and the
     * pixels above the threshold belong to it. Without, a map of several channels has for each
     * pixel the class of the largest channel, and a map of one channel of integers has labels. */
    const float *thresholds; /* one for all channels, or one for each; borrowed while the file is
                                opened */
    int n_thresholds;        /* 0: none */
    bool corners;            /* pixels that touch at corners are connected too */
    bool all_labels;         /* label 0 is no background (without a threshold) */
    int64_t least_area;      /* in pixels of the map; smaller regions are left out */
    double tolerance;        /* of polygons' points, in pixels of the map (region_simplify.h) */
    /* Points of maps (peaks.h), which need a threshold. */
    int64_t distance; /* of peaks, in pixels of the map; 0: RFX_ANSWER_DISTANCE */
    /* Areas in which pixels are counted once more, for summaries (areas_file.h). */
    const char *within;          /* path of a GeoJSON file, borrowed like names; NULL: none */
    struct rfx_answer_bins bins; /* of the values of summaries */
    struct rfx_answer_quantiles quantiles; /* of the values of summaries */
    /* Boxes of outputs that are no maps. */
    const char *head; /* name of the head (box_head.h), borrowed like names; NULL: recognise the
                         shape */
    float score;      /* candidates with scores up to it are left out */
    double overlap;   /* of two boxes that overlap by more, the one of the lower score is dropped */
    bool agnostic;    /* boxes of different classes suppress each other too */
    bool soft;        /* overlaps lower scores (rfx_boxes_decay); `overlap` is not used */
    int64_t classes;  /* channels of classes; 0: all channels behind the fixed ones (box_head.h) */
    int64_t most_boxes; /* candidates that are held at most; 0: RFX_ANSWER_BOXES */
    /* Boxes of text (text_file.h), whose threshold is RFX_ANSWER_TEXT_THRESHOLD unless there are
     * others. */
    float text_score;                     /* boxes with lower scores are left out */
    double growth;                        /* they grow by area * growth / perimeter on all sides */
    const struct rfx_answer_watch *watch; /* of points and text; borrowed until the file is
                                             complete; NULL: nobody watches */
};

/* Options of boxes unless others are wanted. */
#define RFX_ANSWER_SCORE 0.25F
#define RFX_ANSWER_OVERLAP 0.45
#define RFX_ANSWER_BOXES 100000

/* Options of text unless others are wanted: those of PaddleOCR. */
#define RFX_ANSWER_TEXT_THRESHOLD 0.3F
#define RFX_ANSWER_TEXT_SCORE 0.6F
#define RFX_ANSWER_GROWTH 1.5

/* Limits the memory of open regions, and of areas, in a run with a budget, unless the options do.
 */
static inline void rfx_answer_limit(struct rfx_answer_options *options, bool budget) {
    if (budget && options->most_bytes == 0) options->most_bytes = RFX_ANSWER_BYTES;
}

/* Distance of points unless another is wanted. */
#define RFX_ANSWER_DISTANCE 1

/* What a detector's head is recognised by, besides the output's shape. */
struct rfx_answer_cells {
    int64_t image_h, image_w; /* of the network's input, padding included; 0: not known */
    /* Of the maps that are joined to the output, or of the whole output as one piece. Where pixels
     * have several cells (channel_step 1), the greatest common divisor of their channels. 0: they
     * differ or are not known. */
    int64_t channels, channel_step; /* as in struct rfx_end */
};

/* Pixels of a network's input, in each direction, for one of its prototypes. */
#define RFX_ANSWER_PROTOTYPE_STRIDE 4

/* The map of prototypes of which a detector's masks are made (box_masks.h). */
struct rfx_answer_prototypes {
    bool known;                   /* false: there is none, or the file does not receive it */
    int output;                   /* number of the graph's output */
    struct rfx_tensor map;        /* of floats */
    int64_t picture_h, picture_w; /* pixels of the input, without padding */
};

/* Where the pixels of an output lie, found when its file is opened (output_files.h). */
struct rfx_answer_place {
    bool known;                 /* false: coordinates are those of the output's own pixels */
    struct rfx_geo_affine cell; /* from corners of the output's pixels to the picture's */
};
#endif
