/* Finds the boxes in the output of a detector and writes them as JSON, COCO's results, CSV or
 * GeoJSON.
 *
 * Candidates are taken from the pieces of the output as they are computed, in any order; the output
 * is stored nowhere. Non-maximum suppression is that of the whole picture (boxes.h). */
#ifndef RFX_RFEXEC_ANSWERS_BOXES_FILE_H
#define RFX_RFEXEC_ANSWERS_BOXES_FILE_H

#include "layers/graph/graph.h"
#include "rfexec/answers/answer_options.h"
#include "rfexec/answers/box_head.h"

/* Candidates that are held at most, unless options say otherwise. */
enum { RFX_BOXES_USUAL = 100000 };

struct rfx_boxes_options {
    const char *output; /* name of the output; NULL: the first whose shape is that of a head */
    const char *head;   /* name of the head (box_head.h); NULL: recognise the shape */
    float score;        /* candidates of lower scores are left out */
    double overlap; /* of two boxes that overlap by more, the one of the lower score is dropped */
    bool agnostic;  /* boxes of different classes suppress each other too */
    int64_t most;   /* candidates that are held at most */
    struct rfx_answer_options answer; /* names and coordinates */
};

/* A detector's head and the output that it is. */
struct rfx_boxes_source {
    int output;
    struct rfx_box_head head;
};

/* Finds the output of the graph that has boxes. Statuses of rfx_box_head_find; INVALID_ARGUMENT:
 * there is no such output; UNSUPPORTED: the values of a candidate come from different maps. */
RFX_NODISCARD enum rfx_status rfx_boxes_find(const struct rfx_graph *graph,
                                             const struct rfx_boxes_options *options,
                                             struct rfx_boxes_source *out, struct rfx_error *err);

/* Returns whether the name of a file is one of .json, .coco.json, .csv and .geojson. */
bool rfx_boxes_file_is_known(const char *path);

/* Memory of the list of candidates and of the file. */
size_t rfx_boxes_file_bytes(const struct rfx_boxes_source *source,
                            const struct rfx_boxes_options *options);

struct rfx_boxes_file;

/* Opens the file under a temporary name. `place` is that of the picture's own pixels, geo its
 * georeference or NULL. "-" is standard output, as JSON. */
RFX_NODISCARD enum rfx_status rfx_boxes_file_open(
    struct rfx_memory *mem, const char *path, const struct rfx_boxes_source *source,
    const struct rfx_boxes_options *options, const struct rfx_answer_place *place,
    const struct rfx_georeference *geo, struct rfx_boxes_file **out, struct rfx_error *err);

/* Takes a piece of the output (output_sink.h). BUDGET_IMPOSSIBLE: more candidates than
 * options.most.
 */
RFX_NODISCARD enum rfx_status rfx_boxes_file_take(struct rfx_boxes_file *file,
                                                  const struct rfx_end *end, struct rfx_rect rect,
                                                  const struct rfx_view *view,
                                                  struct rfx_error *err);

/* Suppresses, writes the boxes and gives the file its name. INVALID_ARGUMENT: candidates are
 * missing. */
RFX_NODISCARD enum rfx_status rfx_boxes_file_commit(struct rfx_boxes_file *file,
                                                    struct rfx_error *err);

/* After commit: number of boxes that were written. */
int64_t rfx_boxes_file_count(const struct rfx_boxes_file *file);

/* After commit: the boxes that were written, by falling score. Valid as long as the file. */
const struct rfx_box *rfx_boxes_file_list(const struct rfx_boxes_file *file, int64_t *count);

/* Returns the names of the classes as rfx_names_read makes them, or NULL. Valid as long as the
 * file. */
const char *rfx_boxes_file_names(const struct rfx_boxes_file *file, int64_t *n_names);

/* NULL is fine. */
void rfx_boxes_file_free(struct rfx_boxes_file *file);
#endif
