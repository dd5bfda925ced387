/* Private: one image whose bands come from several sources: pages of a TIFF, or a file for each
 * band.
 *
 * All sources have the same size and sample type. Channel k of the image is one channel of one
 * source. Each source keeps its own window: the image holds the memory of all sources and a buffer.
 */
#ifndef RFX_RFEXEC_IMAGE_JOINED_BANDS_H
#define RFX_RFEXEC_IMAGE_JOINED_BANDS_H

#include "rfexec/image/image_backend.h"

/* The origin of a channel: `part`, the source's place in the list, and `channel`, the channel of
 * that source, from 0. */
struct rfx_joined_channel {
    uint16_t part, channel;
};

/* Makes a picture of c channels. It owns the n parts after success; the arrays are copied. `bands`:
 * the number of bands from which the channels were chosen. UNSUPPORTED: sides, samples or
 * orientations differ; the text names both files. */
RFX_NODISCARD enum rfx_status rfx_image_joined_open(struct rfx_memory *mem, const char *name,
                                                    struct rfx_image_backend *const *parts, int n,
                                                    const struct rfx_joined_channel *channels,
                                                    int c, int bands,
                                                    struct rfx_image_backend **out,
                                                    struct rfx_error *err);
#endif
