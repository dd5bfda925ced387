/* Masks of a detector's boxes: which pixels inside of a box belong to its object.
 *
 * A network with masks has, besides its candidates, a map of prototypes with one pixel for each 4 x
 * 4 pixels of its input. The mask of a box is the sum of the prototypes, each times a coefficient
 * of the box's candidate, enlarged to the input's pixels, where it is above 0 inside of the box:
 * Ultralytics, ops.process_mask with upsample=True. In float32, each operation rounded once:
 *
 *   value(r, c) = ((k0 p0 + k1 p1) + k2 p2) + ..., by channel, without fused operations
 *   across(r)   = v0 value(r, c) + v1 value(r, c + 1)
 *   pixel(y, x) = u0 across(r) + u1 across(r + 1)
 *   mask(y, x)  = pixel(y, x) > 0 where left <= x < right and top <= y < bottom
 *
 * Here r + u1 is (y + 0.5) / 4 - 0.5, or 0 if that is negative, and u0 = 1 - u1; the same for x, c
 * and v. Behind the last row or column comes that one again (torch's interpolate,
 * align_corners=False). NaN is not above 0. Of padded images, prototypes of the padding are left
 * out: ceil(rows / 4) x ceil(columns / 4) remain.
 *
 * The prototypes are stored in a file without a name beside the answer's, 4 bytes for each channel
 * of a pixel (output_spool.h); masks are made one after the other, from the rows that they need.
 *
 * Pinned by test_box_masks.c and tests/oracle/mask_cases.py. */
#ifndef RFX_RFEXEC_ANSWERS_BOX_MASKS_H
#define RFX_RFEXEC_ANSWERS_BOX_MASKS_H

#include "rfexec/answers/boxes.h"
#include "rfexec/output/answer_options.h"

struct rfx_box_masks;

/* Returns the memory of the masks. */
size_t rfx_box_masks_bytes(const struct rfx_answer_prototypes *prototypes);

/* Makes the file for the prototypes. OUT_OF_MEMORY, IO. Free *out with rfx_box_masks_free. */
RFX_NODISCARD enum rfx_status rfx_box_masks_create(struct rfx_memory *mem, const char *path,
                                                   const struct rfx_answer_prototypes *prototypes,
                                                   struct rfx_box_masks **out,
                                                   struct rfx_error *err);

/* Stores a rectangle of the prototypes, in any order, each pixel once. INVALID_ARGUMENT: it lies
 * outside of the map or the view, or pixels come twice. IO. */
RFX_NODISCARD enum rfx_status rfx_box_masks_take(struct rfx_box_masks *masks, struct rfx_rect rect,
                                                 const struct rfx_view *view,
                                                 struct rfx_error *err);

/* Returns the rows and columns of pixels of all masks: those of the image without padding. */
void rfx_box_masks_size(const struct rfx_box_masks *masks, int64_t *h, int64_t *w);

/* Begins the mask of a box. coefficients: one for each channel of the prototypes, borrowed until
 * the last line. Lines are rows or, if `columns`, columns of the image. Returns the rectangle of
 * pixels inside of the box, which may be empty. INVALID_ARGUMENT: prototypes are missing. */
RFX_NODISCARD enum rfx_status rfx_box_masks_begin(struct rfx_box_masks *masks,
                                                  const struct rfx_box *box,
                                                  const float *coefficients, bool columns,
                                                  struct rfx_rect *inside, struct rfx_error *err);

/* Makes line i of the image, inside of the box; lines come in order, each once. *pixels: 1 or 0 for
 * each pixel of the rectangle in this line, until the next call. IO. */
RFX_NODISCARD enum rfx_status rfx_box_masks_line(struct rfx_box_masks *masks, int64_t i,
                                                 const unsigned char **pixels,
                                                 struct rfx_error *err);

/* NULL is fine. */
void rfx_box_masks_free(struct rfx_box_masks *masks);
#endif
