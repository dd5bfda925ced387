/* Private: one image whose bands come from several sources: pages of a TIFF, or a file for each
 * band.
 *
 * All sources have the same size and type of samples. Channel k of the image is one channel of one
 * source. Each source keeps its own window: the image holds the bytes of all of them and a buffer.
 */
#ifndef RFX_RFEXEC_IMAGE_JOINED_BANDS_H
#define RFX_RFEXEC_IMAGE_JOINED_BANDS_H

#include "rfexec/image/image_backend.h"

/* Where a channel comes from: the source's place in the list, and its channel there, from 0. */
struct rfx_joined_channel {
    uint16_t part, channel;
};

/* The picture of c channels. It owns the n parts when this succeeds; the arrays are copied.
 * `bands`: of how many bands the channels are. UNSUPPORTED: sides, samples or orientations differ,
 * in words that name both files. */
RFX_NODISCARD enum rfx_status rfx_image_joined_open(struct rfx_memory *mem, const char *name,
                                                    struct rfx_image_backend *const *parts, int n,
                                                    const struct rfx_joined_channel *channels,
                                                    int c, int bands,
                                                    struct rfx_image_backend **out,
                                                    struct rfx_error *err);
#endif
