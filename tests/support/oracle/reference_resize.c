/* The naive Resize, in double; see reference.h. */
#include <math.h>

#include "tests/support/oracle/reference_call.h"

static double resize_coord(const struct rfx_resize_attr *a, int64_t o, double scale, int64_t in,
                           int64_t out) {
    switch (a->coord) {
        case RFX_COORD_HALF_PIXEL:
            return ((double)o + 0.5) / scale - 0.5;
        case RFX_COORD_PYTORCH_HALF_PIXEL:
            return out > 1 ? ((double)o + 0.5) / scale - 0.5 : 0.0;
        case RFX_COORD_ALIGN_CORNERS:
            return out == 1 ? 0.0 : (double)o * (double)(in - 1) / (double)(out - 1);
        case RFX_COORD_ASYMMETRIC:
            return (double)o / scale;
        case RFX_COORD_HALF_PIXEL_SYMMETRIC: {
            double middle = (double)in / 2;
            return middle * (1 - (double)out / (scale * (double)in)) + ((double)o + 0.5) / scale -
                   0.5;
        }
    }
    return NAN;
}

static int64_t clamp_to(int64_t at, int64_t n) {
    return at < 0 ? 0 : at >= n ? n - 1 : at;
}

static int64_t nearest_index(enum rfx_resize_nearest mode, double at, int64_t n) {
    double r = 0;
    switch (mode) {
        case RFX_NEAREST_ROUND_PREFER_FLOOR:
            r = ceil(at - 0.5);
            break;
        case RFX_NEAREST_ROUND_PREFER_CEIL:
            r = floor(at + 0.5);
            break;
        case RFX_NEAREST_FLOOR:
            r = floor(at);
            break;
        case RFX_NEAREST_CEIL:
            r = ceil(at);
            break;
    }
    return clamp_to((int64_t)r, n);
}

/* Catmull-Rom's and its relatives' kernel; or a triangle. */
static double kernel(const struct rfx_resize_attr *r, double distance) {
    double d = fabs(distance), a = (double)r->cubic_a;
    if (r->mode == RFX_RESIZE_LINEAR) return fmax(0, 1 - d);
    if (d < 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
    return d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a : 0;
}

/* The sum over all pixels that the kernel could reach, divided by that of the weights. `at`: the
 * value of a pixel of the axis. */
struct sum {
    const struct rfx_ref_call *call;
    int64_t c, y;
};

static double filtered(const struct rfx_resize_attr *a, double at, double scale, int64_t n,
                       const struct sum *s, double (*value)(const struct sum *, int64_t)) {
    double stretch = a->antialias && scale < 1 ? 1 / scale : 1, sum = 0, total = 0;
    int64_t reach = (int64_t)(2 * stretch) + 2, near = (int64_t)floor(at);
    for (int64_t i = near - reach; i <= near + reach; i++) {
        double w = kernel(a, ((double)i - at) / stretch);
        if (w == 0 || (a->exclude_outside && (i < 0 || i >= n))) continue;
        sum += w * value(s, clamp_to(i, n));
        total += w;
    }
    return sum / total;
}

static double pixel_value(const struct sum *s, int64_t x) {
    return (double)rfx_ref_in_at(s->call, s->c, s->y, x);
}

/* A row's value at the column that is asked for; s->y is the output column. */
static double row_value(const struct sum *s, int64_t y) {
    const struct rfx_resize_attr *a = &s->call->node->attr.resize;
    double scale = (double)a->scale_w;
    double at = resize_coord(a, s->y, scale, s->call->it->w, a->ow);
    const struct sum row = {s->call, s->c, y};
    return filtered(a, at, scale, s->call->it->w, &row, pixel_value);
}

double rfx_ref_resize_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_resize_attr *a = &k->node->attr.resize;
    double fy = resize_coord(a, y, (double)a->scale_h, k->it->h, a->oh);
    double fx = resize_coord(a, x, (double)a->scale_w, k->it->w, a->ow);
    if (a->mode == RFX_RESIZE_NEAREST)
        return (double)rfx_ref_in_at(k, c, nearest_index(a->nearest, fy, k->it->h),
                                     nearest_index(a->nearest, fx, k->it->w));
    if (a->mode == RFX_RESIZE_CUBIC || a->antialias) {
        const struct sum s = {k, c, x};
        return filtered(a, fy, (double)a->scale_h, k->it->h, &s, row_value);
    }
    double by = floor(fy), bx = floor(fx), ty = fy - by, tx = fx - bx;
    int64_t y0 = clamp_to((int64_t)by, k->it->h), y1 = clamp_to((int64_t)by + 1, k->it->h);
    int64_t x0 = clamp_to((int64_t)bx, k->it->w), x1 = clamp_to((int64_t)bx + 1, k->it->w);
    double top =
        (1 - tx) * (double)rfx_ref_in_at(k, c, y0, x0) + tx * (double)rfx_ref_in_at(k, c, y0, x1);
    double low =
        (1 - tx) * (double)rfx_ref_in_at(k, c, y1, x0) + tx * (double)rfx_ref_in_at(k, c, y1, x1);
    return (1 - ty) * top + ty * low;
}
