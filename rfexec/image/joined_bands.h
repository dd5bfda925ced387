/* Private: one picture whose bands come from several sources: pages of a TIFF, files of a list.
 *
 * All sources have the same sides and samples; channel k of the picture is one channel of one of
 * them. Each source keeps its own window, so bytes held are theirs together and a buffer. */
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
