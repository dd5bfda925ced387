/* Makes a detector with the output of YOLOv8, whose boxes follow from the colours of single pixels
 * of the image: one candidate for every cell of 16 x 16 pixels. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_DETECTOR_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_DETECTOR_MAKER_H

#include <stdbool.h>
#include <stdint.h>

/* Writes a model of output "boxes", 1 x (4 + classes) x candidates, for images of any size. Red
 * and green (0 to 1) give a box's middle, from the left to the column w and from the top to the row
 * h; blue gives its sides, of `least` pixels and up to five times as many. classes: 1 to 16. */
void detector_maker_save(const char *path, int64_t h, int64_t w, float least, int classes);

/* The same with `behind` (at most 16) further channels behind the classes, which follow from the
 * same pixel's colours. masks: there is a second output, "prototypes", of as many channels and a
 * pixel for each 4 x 4 pixels of the image, that follow from the colours of one of them. */
void detector_maker_save_more(const char *path, int64_t h, int64_t w, float least, int classes,
                              int behind, bool masks);
#endif
