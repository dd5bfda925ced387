/* Every file is opened as a picture of its own, stored as it is; joined.c puts their bands
 * together.
 */
#include "rfexec/image/image_backend.h"

#include <inttypes.h>
#include <string.h>

#include "rfexec/image/bands/joined.h"

/* Files while they are opened. */
struct opening {
    int n, c; /* files; bands of all of them */
    struct rfx_image_backend *parts[RFX_IMAGE_MAX_BANDS];
    struct rfx_joined_channel bands[RFX_IMAGE_MAX_BANDS], channels[RFX_IMAGE_MAX_BANDS];
};

static enum rfx_status open_part(struct opening *o, struct rfx_memory *mem, const char *file,
                                 const struct rfx_image_options *options, struct rfx_error *err) {
    struct rfx_image_options one = *options;
    const struct rfx_rect all = {0};
    one.bands = NULL;
    one.region = all;
    one.channels = 0;
    one.max_images = 1;
    one.as_stored = true;
    if (*file == '\0')
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "a file of the bands has no name");
    if (strncmp(file, RFX_IMAGE_BANDS_PREFIX, strlen(RFX_IMAGE_BANDS_PREFIX)) == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: bands of bands", file);
    enum rfx_status status = rfx_image_backend_open(mem, file, &one, &o->parts[o->n], err);
    if (status != RFX_OK) return status;
    const struct rfx_image_backend *part = o->parts[o->n];
    if (part->c > RFX_IMAGE_MAX_BANDS - o->c) {
        o->n++;
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: more than %d bands in all files", file,
                        RFX_IMAGE_MAX_BANDS);
    }
    for (int64_t k = 0; k < part->c; k++)
        o->bands[o->c++] = (struct rfx_joined_channel){(uint16_t)o->n, (uint16_t)k};
    o->n++;
    return RFX_OK;
}

/* `list`: names that end in 0, one behind another, as far as `end`. */
static enum rfx_status open_parts(struct opening *o, struct rfx_memory *mem, const char *list,
                                  const char *end, const struct rfx_image_options *options,
                                  struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (const char *file = list; file < end && status == RFX_OK; file += strlen(file) + 1) {
        if (o->n == RFX_IMAGE_MAX_BANDS)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "more than %d files of bands",
                            RFX_IMAGE_MAX_BANDS);
        status = open_part(o, mem, file, options, err);
    }
    return status;
}

/* Which bands are delivered, and of how many. */
static enum rfx_status choose(struct opening *o, const struct rfx_image_bands *chosen, int *c,
                              struct rfx_error *err) {
    *c = chosen != NULL ? chosen->n : o->c;
    for (int k = 0; k < *c; k++) {
        int band = chosen != NULL ? chosen->numbers[k] - 1 : k;
        if (band >= o->c)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "--channels: band %d of %d in %d files",
                            band + 1, o->c, o->n);
        o->channels[k] = o->bands[band];
    }
    return RFX_OK;
}

/* Closes files of which no band is delivered; the first stays, whose size counts. */
static void close_unread(struct opening *o, int c) {
    for (int p = o->n - 1; p > 0; p--) {
        bool read = false;
        for (int k = 0; k < c; k++) read = read || o->channels[k].part == p;
        if (read) continue;
        o->parts[p]->ops->free(o->parts[p]);
        o->n--;
        memmove(&o->parts[p], &o->parts[p + 1], (size_t)(o->n - p) * sizeof o->parts[0]);
        for (int k = 0; k < c; k++)
            if (o->channels[k].part > p) o->channels[k].part--;
    }
}

static enum rfx_status open_joined(struct opening *o, struct rfx_memory *mem, const char *name,
                                   char *list, const char *end,
                                   const struct rfx_image_options *options,
                                   struct rfx_image_backend **out, struct rfx_error *err) {
    int c = 0;
    enum rfx_status status = open_parts(o, mem, list, end, options, err);
    for (int p = 1; p < o->n && status == RFX_OK; p++)
        status = rfx_image_joined_check(o->parts[0], o->parts[p], err);
    const int bands = o->c;
    if (status == RFX_OK) status = choose(o, options->bands, &c, err);
    if (status == RFX_OK) {
        close_unread(o, c);
        status = rfx_image_joined_open(mem, name, o->parts, o->n, o->channels, c, bands, out, err);
    }
    if (status == RFX_OK) {
        rfx_image_joined_keep(*out, list, (size_t)(end - list));
        return RFX_OK;
    }
    for (int p = 0; p < o->n; p++) o->parts[p]->ops->free(o->parts[p]);
    return status;
}

enum rfx_status rfx_image_file_bands_open(struct rfx_memory *mem, const char *name,
                                          const struct rfx_image_options *options,
                                          struct rfx_image_backend **out, struct rfx_error *err) {
    const char *from = name + strlen(RFX_IMAGE_BANDS_PREFIX);
    struct opening *o = rfx_memory_calloc(mem, 1, sizeof *o);
    char *list = rfx_memory_strdup(mem, from);
    enum rfx_status status;
    if (o == NULL || list == NULL) {
        status = rfx_memory_fail(mem, name, sizeof *o, err);
    } else {
        char *end = list + strlen(list) + 1;
        for (char *at = list; *at != '\0' || at + 1 < end; at++)
            if (*at == ',') *at = '\0';
        status = open_joined(o, mem, name, list, end, options, out, err);
    }
    rfx_memory_release(mem, o);
    if (status != RFX_OK) rfx_memory_release(mem, list);
    return status;
}
