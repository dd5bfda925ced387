/* What Resize reads, from its definition; see influence.h. */
#include <math.h>

#include "tests/support/oracle/influence.h"

static double resize_position(const struct rfx_resize_attr *a, int axis, int64_t o, int64_t n) {
    double scale = (double)(axis == 0 ? a->scale_h : a->scale_w);
    int64_t size = axis == 0 ? a->oh : a->ow;
    switch (a->coord) {
        case RFX_COORD_HALF_PIXEL:
            return ((double)o + 0.5) / scale - 0.5;
        case RFX_COORD_PYTORCH_HALF_PIXEL:
            return size > 1 ? ((double)o + 0.5) / scale - 0.5 : 0.0;
        case RFX_COORD_ALIGN_CORNERS:
            return size > 1 ? (double)o * (double)(n - 1) / (double)(size - 1) : 0.0;
        case RFX_COORD_ASYMMETRIC:
            return (double)o / scale;
        case RFX_COORD_HALF_PIXEL_SYMMETRIC:
            return (double)n / 2 * (1 - (double)size / (scale * (double)n)) +
                   ((double)o + 0.5) / scale - 0.5;
    }
    return NAN;
}

/* All pixels under a kernel of 2 or 4 pixels, wider where antialias stretches it; one pixel alone
 * where a kernel that is not stretched has its middle on it. */
static int64_t kernel_taps(const struct rfx_resize_attr *a, double at, double scale, int64_t n,
                           int64_t *out) {
    double stretch = a->antialias && scale < 1 ? 1 / scale : 1;
    double reach = (a->mode == RFX_RESIZE_CUBIC ? 2 : 1) * stretch;
    int64_t count = 0, first = (int64_t)ceil(at - reach), last = (int64_t)floor(at + reach);
    if (stretch == 1 && at == floor(at)) first = last = (int64_t)at;
    for (int64_t i = first; i <= last; i++) {
        int64_t pixel = i < 0 ? 0 : i >= n ? n - 1 : i;
        bool outside = pixel != i && a->exclude_outside;
        if (fabs((double)i - at) >= reach || outside) continue;
        if (count == 0 || out[count - 1] != pixel) out[count++] = pixel;
    }
    return count;
}

int64_t influence_resize_taps(const struct rfx_node *node, int axis, int64_t o, int64_t n,
                              int64_t *out) {
    const struct rfx_resize_attr *a = &node->attr.resize;
    double at = resize_position(a, axis, o, n);
    if (a->mode == RFX_RESIZE_CUBIC || (a->mode == RFX_RESIZE_LINEAR && a->antialias))
        return kernel_taps(a, at, (double)(axis == 0 ? a->scale_h : a->scale_w), n, out);
    if (a->mode == RFX_RESIZE_NEAREST) {
        if (a->nearest == RFX_NEAREST_ROUND_PREFER_FLOOR) at = ceil(at - 0.5);
        if (a->nearest == RFX_NEAREST_ROUND_PREFER_CEIL) at = floor(at + 0.5);
        if (a->nearest == RFX_NEAREST_FLOOR) at = floor(at);
        if (a->nearest == RFX_NEAREST_CEIL) at = ceil(at);
    }
    at = fmin(fmax(at, 0.0), (double)(n - 1));
    out[0] = (int64_t)at;
    out[1] = out[0] + 1;
    return at > (double)out[0] ? 2 : 1;
}
