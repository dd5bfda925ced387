/* The image of `run --overlay`: the input with a half-transparent output or the regions of
 * --regions, the boxes of --text, the points of --points and the boxes of --boxes drawn over it.
 * The report of `--report` shows a small copy. If only the small copy is wanted, not every row is
 * drawn. The folder of `--viewer` gets the image and the colours over it apart, without outlines
 * and boxes, which its page draws.
 *
 * While the network runs, one value for each pixel of the map is written to a file without a name,
 * in the folder of the overlay or the report. After the run the input is read again, and image,
 * values and boxes are combined row by row. A float image is read twice, first to find its values
 * of black and white. So the overlay takes only a few rows of memory (rfx_overlay_bytes), whatever
 * the size of the image, and some bytes for each box; they count in the budget. Points and boxes of
 * text are drawn into files of their own while the network runs (mark_layer.h).
 *
 * A region's pixels are tinted as labels are. A pixel of it is opaque, on the outline, if one of
 * the pixels to its left, right, above and below, in the distance of a line's width, belongs to
 * another class or to none, or lies outside of the image. So an outline lies inside of its region.
 *
 * Invariants: 1. no bit of an output changes; 2. the file gets its name only from rfx_overlay_draw;
 * 3. its bytes do not depend on the plan or on the small copy; 4. the small copy has its own lines,
 * one pixel wide, and labels of boxes only if it has all pixels of the image. */
#ifndef RFX_TOOLS_REPORT_IMAGE_OVERLAY_H
#define RFX_TOOLS_REPORT_IMAGE_OVERLAY_H

#include "rfexec/output/output_sink.h"
#include "rfexec/output/output_spool.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/run/class_map.h"
#include "tools/cli/answers.h"
#include "tools/cli/job.h"
#include "tools/cli/options.h"
#include "tools/report/box_drawing.h"
#include "tools/report/image_viewer.h"
#include "tools/report/mark_layer.h"
#include "tools/report/overlay_drawing.h"

/* What is drawn as marks, the lowest first. */
enum { RFX_OVERLAY_TEXT_BOXES, RFX_OVERLAY_POINTS, RFX_OVERLAY_MARKS };

struct rfx_overlay_choice {
    const char *option; /* name for messages: --overlay or --viewer */
    int output;         /* number of the graph's output; -1: no map is shown, only boxes */
    int map;         /* the node whose map is shown; differs from the output's node when that node
                        only reshapes the map */
    int64_t channel; /* counted from 0; -1: labels, regions or no map */
    bool regions;    /* the map's values are classes of --regions, and have outlines */
    int64_t most_boxes;            /* 0: no boxes are drawn */
    int marked[RFX_OVERLAY_MARKS]; /* outputs that have points and text; -1: none is drawn */
    bool activation; /* the map's values are those of a class-activation map (--cam) */
    int64_t label;   /* its class, counted from 0 */
    struct rfx_class_map class_map;
    struct rfx_output_format format;
};

/* Sets *choice from the options, which have passed rfx_cli_answers_check. --boxes, --points and
 * --text are always drawn. The map is that of --regions if there is such an option, none if there
 * are only --boxes, and else the first output that is a map; --overlay-of, --overlay-output and
 * --cam choose another. Of a map without --regions the labels are shown if it has several channels
 * or comes from an ArgMax, otherwise its values. When the options do not suit the network, prints a message and returns RFX_EXIT_USAGE. */
RFX_NODISCARD int rfx_overlay_choose(const struct rfx_graph *graph,
                                     const struct rfx_cli_run_options *options,
                                     struct rfx_overlay_choice *choice);

/* Sets *choice for a report, in which an overlay is optional; *shown: whether the report has one.
 * Without an option such as --overlay-of, --regions or --boxes, the report has no overlay (and no
 * message is printed) when no output is a map, or when the first map may be an image itself (it has
 * three channels or is larger than the input) and has no points or text that are drawn. If the
 * map's channels are independent (sigmoid), its first channel is shown.
 */
RFX_NODISCARD int rfx_overlay_choose_for_page(const struct rfx_graph *graph,
                                              const struct rfx_cli_run_options *options,
                                              struct rfx_overlay_choice *choice, bool *shown);

/* Rows of the map for a row that is drawn: those at its upper and lower distance of a line's width,
 * for outlines, and its own. */
enum { RFX_OVERLAY_ABOVE, RFX_OVERLAY_HERE, RFX_OVERLAY_BELOW, RFX_OVERLAY_ROWS };

/* The marks of an answer. */
struct rfx_overlay_marks {
    struct rfx_map_place rows, cols;      /* of the pixels of the output's map */
    struct rfx_mark_layer *layer, *small; /* of the file and of the small copy; NULL: none */
    int64_t count;
};

struct rfx_overlay { /* all zeros: no overlay */
    struct rfx_memory *mem;
    const struct rfx_cli_run_options *options; /* borrowed, as is `job` */
    const struct rfx_cli_job *job;
    struct rfx_overlay_choice choice;
    struct rfx_map_place rows, cols;
    struct rfx_output_sink sink;      /* the outputs' own sink; receives all pieces too */
    struct rfx_output_stream *stream; /* NULL: no --overlay */
    struct rfx_small_copy small;      /* zeros: no --report */
    struct rfx_image_viewer *viewer;  /* NULL: no --viewer */
    unsigned char *covers;            /* [w, 4]: colours and opacity over a row, for --viewer */
    struct rfx_output_spool *spool;   /* NULL: no map */
    float *values[RFX_OVERLAY_ROWS];  /* [w of the map]; without outlines only that of HERE */
    int64_t held[RFX_OVERLAY_ROWS];   /* rows of the map that they have; -1: none */
    float *pixel;                     /* [c of the map] */
    float *weights;                   /* [c of the map] of the class; NULL: no --cam */
    float *pixels;                    /* [w, c] of the input */
    float *colours;                   /* [w, 3] of the overlay, 0 to 255 */
    int64_t received;
    struct rfx_value_range range; /* values that are drawn clear and brightest */
    /* Of the file and of the small copy; NULL: without boxes. */
    struct rfx_box_drawing *boxes, *small_boxes;
    int64_t n_boxes;          /* set by rfx_overlay_draw */
    const char *boxes_output; /* name of the output that has them */
    struct rfx_overlay_marks marks[RFX_OVERLAY_MARKS];
};

/* Returns the bytes of memory that the overlay takes during and after the run. */
size_t rfx_overlay_bytes(const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
                         const struct rfx_overlay_choice *choice);

/* Opens the file of --overlay, the small copy for --report and the folder of --viewer, for a
 * planned job. The caller frees the overlay with rfx_overlay_free; an overlay of zeros needs no
 * freeing. */
RFX_NODISCARD enum rfx_status rfx_overlay_open(struct rfx_overlay *overlay,
                                               const struct rfx_cli_run_options *options,
                                               const struct rfx_cli_job *job,
                                               const struct rfx_overlay_choice *choice,
                                               struct rfx_error *err);

/* Called before the run. Replaces *sink by a sink that also stores the values, and watches the
 * points and text of `answers`. The overlay must stay where it is until rfx_overlay_draw. */
void rfx_overlay_watch(struct rfx_overlay *overlay, struct rfx_output_sink *sink,
                       struct rfx_cli_answers *answers);

/* Called after the outputs are complete. Draws the overlay and gives file and folder their names.
 * `answers`: those of the run, complete. CANCELLED: a signal came. */
RFX_NODISCARD enum rfx_status rfx_overlay_draw(struct rfx_overlay *overlay,
                                               const struct rfx_cli_answers *answers,
                                               struct rfx_error *err);

/* Writes a description such as "channel 2 of 'defects': 0.01 clear, 0.98 bright". */
enum { RFX_OVERLAY_TEXT = 1100 };
void rfx_overlay_describe(const struct rfx_overlay *overlay, char text[RFX_OVERLAY_TEXT]);

void rfx_overlay_free(struct rfx_overlay *overlay);
#endif
