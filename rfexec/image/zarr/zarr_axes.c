/* Axes by names and by places. */
#include "rfexec/image/zarr/zarr_axes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MOST_LAST = 4, TEXT_CHARS = 160 };

static bool is_one_of(const char *name, const char *const *words) {
    for (int i = 0; words[i] != NULL; i++)
        if (strcasecmp(name, words[i]) == 0) return true;
    return false;
}

/* "t 1, y 20, x 30", or the lengths alone. */
static void describe(int rank, const int64_t *shape, const char *const *names,
                     char text[TEXT_CHARS]) {
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < rank && at < TEXT_CHARS; i++)
        at += (size_t)snprintf(text + at, TEXT_CHARS - at, "%s%.12s%s%" PRId64, i > 0 ? ", " : "",
                               names != NULL ? names[i] : "", names != NULL ? " " : "", shape[i]);
}

static enum rfx_status fail(int rank, const int64_t *shape, const char *const *names,
                            const char *why, struct rfx_error *err) {
    char text[TEXT_CHARS];
    describe(rank, shape, names, text);
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "axes (%s): %s", text, why);
}

/* Sets an axis that is not set. */
static bool take(int *axis, int i) {
    bool first = *axis < 0;
    *axis = i;
    return first;
}

static enum rfx_status settle_named(int rank, const int64_t *shape, const char *const *names,
                                    struct rfx_zarr_axes *axes, struct rfx_error *err) {
    static const char *const rows[] = {"y", "row", "rows", "height", "lat", "latitude", NULL},
                             *const columns[] = {"x",     "column", "columns",   "col",
                                                 "width", "lon",    "longitude", NULL},
                             *const channels[] = {"c",    "channel", "channels",
                                                  "band", "bands",   NULL};
    bool once = true, ones = true;
    for (int i = 0; i < rank; i++) {
        if (is_one_of(names[i], rows))
            once = take(&axes->y, i) && once;
        else if (is_one_of(names[i], columns))
            once = take(&axes->x, i) && once;
        else if (is_one_of(names[i], channels))
            once = take(&axes->c, i) && once;
        else
            ones = shape[i] == 1 && ones;
    }
    if (axes->y < 0 || axes->x < 0 || !once)
        return fail(rank, shape, names, "one must be called y and one x, and at most one c", err);
    if (!ones) return fail(rank, shape, names, "but for c, y and x each must have length 1", err);
    return RFX_OK;
}

static enum rfx_status settle_places(int rank, const int64_t *shape, struct rfx_zarr_axes *axes,
                                     struct rfx_error *err) {
    *axes = (struct rfx_zarr_axes){rank - 2, rank - 1, rank >= 3 ? rank - 3 : -1};
    if (rank < 2 || rank > 5)
        return fail(rank, shape, NULL, "2 to 5 axes without names are read", err);
    if (rank == 3) {
        bool first = shape[0] <= MOST_LAST, last = shape[2] <= MOST_LAST;
        if (first && last)
            return fail(rank, shape, NULL,
                        "c, y, x or y, x, c: without names of the axes nobody can know", err);
        if (last) *axes = (struct rfx_zarr_axes){0, 1, 2};
    }
    if (rank == 4 && shape[3] <= MOST_LAST && shape[1] > MOST_LAST)
        return fail(rank, shape, NULL, "without names (1, c, y, x) is read", err);
    if (rank == 4 && shape[0] != 1)
        return fail(rank, shape, NULL,
                    "without names (1, c, y, x) is read: images of a batch are run one by one",
                    err);
    if (rank == 5) axes->c = 1;
    if (rank == 5 && (shape[0] != 1 || shape[2] != 1))
        return fail(rank, shape, NULL, "without names (t, c, z, y, x) with t and z 1 is read", err);
    return RFX_OK;
}

enum rfx_status rfx_zarr_axes_settle(int rank, const int64_t *shape, const char *const *names,
                                     struct rfx_zarr_axes *out, struct rfx_error *err) {
    struct rfx_zarr_axes axes = {-1, -1, -1};
    bool named = names != NULL;
    for (int i = 0; i < rank && named; i++) named = names[i] != NULL;
    enum rfx_status status = named ? settle_named(rank, shape, names, &axes, err)
                                   : settle_places(rank, shape, &axes, err);
    if (status == RFX_OK) *out = axes;
    return status;
}
