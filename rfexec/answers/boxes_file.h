/* Finds the boxes in the output of a detector and writes them as JSON, COCO's results, CSV or
 * GeoJSON.
 *
 * Candidates are taken from the pieces of the output as they are computed, in any order; the output
 * is stored nowhere. Points are written in JSON ("points"), COCO's results ("keypoints") and CSV
 * (columns x1, y1, score1, x2 ...); masks in JSON ("mask", run lengths), COCO's results
 * ("segmentation", compressed run lengths) and GeoJSON, where their polygons take the place of the
 * boxes. Non-maximum suppression is that of the whole picture (boxes.h). */
#ifndef RFX_RFEXEC_ANSWERS_BOXES_FILE_H
#define RFX_RFEXEC_ANSWERS_BOXES_FILE_H

#include "rfexec/output/output_format.h"

struct rfx_boxes_file;

/* Checks that the tensor is the output of a known head. Statuses of rfx_box_head_find;
 * INVALID_ARGUMENT: an option is out of its range; UNSUPPORTED: the values of a candidate come from
 * different maps; boxes have masks, and the format has no prototypes, or of another number. */
RFX_NODISCARD enum rfx_status rfx_boxes_file_check(const struct rfx_output_format *format,
                                                   const struct rfx_tensor *tensor,
                                                   const char *path, struct rfx_error *err);

/* Memory of the list of candidates and of the file. */
size_t rfx_boxes_file_bytes(const struct rfx_output_format *format,
                            const struct rfx_tensor *tensor);

/* Opens the file under a temporary name. The format's place and georeference are those of the
 * picture's own pixels. */
RFX_NODISCARD enum rfx_status rfx_boxes_file_open(struct rfx_memory *mem, const char *path,
                                                  const struct rfx_output_format *format,
                                                  const struct rfx_tensor *tensor,
                                                  enum rfx_answer_form form,
                                                  struct rfx_boxes_file **out,
                                                  struct rfx_error *err);

/* Takes a piece of the output (output_sink.h) or, if boxes have masks, of their prototypes.
 * BUDGET_IMPOSSIBLE: there are more candidates than can be held. */
RFX_NODISCARD enum rfx_status rfx_boxes_file_take(struct rfx_boxes_file *file,
                                                  const struct rfx_end *end, struct rfx_rect rect,
                                                  const struct rfx_view *view,
                                                  struct rfx_error *err);

/* Suppresses, writes the boxes and gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_boxes_file_commit(struct rfx_boxes_file *file,
                                                    struct rfx_error *err);

/* After commit: what was written. */
struct rfx_found rfx_boxes_file_found(const struct rfx_boxes_file *file);

/* NULL is fine. */
void rfx_boxes_file_free(struct rfx_boxes_file *file);
#endif
