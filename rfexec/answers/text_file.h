/* Finds the boxes of text in the probability map of a DB network (Liao and others, "Real-time scene
 * text detection with differentiable binarization", 2020) and writes them, row by row.
 *
 * The rule is that of PaddleOCR's DBPostProcess: regions of the pixels above a threshold, connected
 * by sides or corners; the smallest rectangle of the pixels' centres, dropped if a side is shorter
 * than 3 pixels; the mean of the map over the region as the score, dropped if it is below the least
 * score; the rectangle grown on all sides by area * ratio / perimeter, dropped if a side is then
 * shorter than 5. It differs in this: holes of regions are no candidates and do not count in the
 * mean, corners are not rounded to pixels or clipped to the picture, there is no largest number of
 * boxes, and the pixels' centres are at halves of pixels.
 *
 * Rectangles are computed in double (region_rectangle.h); centre, sides and angle are then rounded
 * to float32, and so are the mean and the least score before they are compared. The first corner is
 * the upper one of the two leftmost, and the others follow clockwise. Boxes are in the order in
 * which their regions are complete (label_regions.h). Pinned by test_text_file.c and
 * tests/oracle/text_cases.py. */
#ifndef RFX_RFEXEC_ANSWERS_TEXT_FILE_H
#define RFX_RFEXEC_ANSWERS_TEXT_FILE_H

#include "rfexec/output/output_format.h"

struct rfx_text_file;

/* INVALID_ARGUMENT: the map has several channels or integers, or there are several thresholds. */
RFX_NODISCARD enum rfx_status rfx_text_file_check(const struct rfx_output_format *format,
                                                  const struct rfx_tensor *map, const char *path,
                                                  struct rfx_error *err);

/* Memory of the writer, rows and open regions included. */
size_t rfx_text_file_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map);

/* Opens the file under a temporary name. Statuses of rfx_answer_text_open and rfx_regions_create.
 */
RFX_NODISCARD enum rfx_status rfx_text_file_open(struct rfx_memory *mem, const char *path,
                                                 const struct rfx_output_format *format,
                                                 const struct rfx_tensor *map,
                                                 enum rfx_answer_form form,
                                                 struct rfx_text_file **out, struct rfx_error *err);

/* Takes the next row of samples [w]. Statuses of rfx_regions_row; IO. */
RFX_NODISCARD enum rfx_status rfx_text_file_row(struct rfx_text_file *file, const void *samples,
                                                struct rfx_error *err);

/* Writes the last boxes and gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_text_file_commit(struct rfx_text_file *file,
                                                   struct rfx_error *err);

/* What was written so far. */
struct rfx_found rfx_text_file_found(const struct rfx_text_file *file);

/* NULL is fine. */
void rfx_text_file_free(struct rfx_text_file *file);
#endif
