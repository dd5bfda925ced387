/* The rules for files of several pages; what their pages are: pages/tiff_stack.h. */
#include "rfexec/image/image_backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/bands/joined.h"
#include "rfexec/image/pages/tiff_stack.h"

/* Pages while they are opened. */
struct opening {
    struct rfx_tiff_stack stack;
    struct rfx_image_backend *parts[RFX_IMAGE_MAX_BANDS];
    int page_of[RFX_IMAGE_MAX_BANDS]; /* of the stack, from 0 */
    struct rfx_joined_channel channels[RFX_IMAGE_MAX_BANDS];
    int n;
};

static enum rfx_status open_page(struct rfx_memory *mem, const char *name,
                                 const struct rfx_image_options *options,
                                 const struct rfx_tiff_stack *stack, int64_t number,
                                 struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_options one = *options;
    one.page = stack->in_one ? 0 : number;
    return rfx_image_tiff_open(mem, name, &one, stack->in_one ? number : 0, out, err);
}

/* The place of a page of the stack among the parts, which it joins where it is new. */
static enum rfx_status part_of(struct opening *o, struct rfx_memory *mem, const char *name,
                               const struct rfx_image_options *options, int page, uint16_t *part,
                               struct rfx_error *err) {
    int p = 0;
    while (p < o->n && o->page_of[p] != page) p++;
    *part = (uint16_t)p;
    if (p < o->n) return RFX_OK;
    struct rfx_image_options one = *options;
    one.bands = NULL;
    enum rfx_status status =
        open_page(mem, name, &one, &o->stack, o->stack.numbers[page], &o->parts[p], err);
    if (status != RFX_OK) return status;
    o->page_of[o->n++] = page;
    return RFX_OK;
}

/* All pages, or those that the bands name. */
static enum rfx_status open_bands(struct opening *o, struct rfx_memory *mem, const char *name,
                                  const struct rfx_image_options *options,
                                  struct rfx_image_backend **out, struct rfx_error *err) {
    const struct rfx_image_bands *chosen = options->bands;
    int most = (int)rfx_min_i64(o->stack.n, RFX_IMAGE_MAX_BANDS);
    int c = chosen != NULL ? chosen->n : most;
    enum rfx_status status = RFX_OK;
    if (chosen == NULL && o->stack.n > RFX_IMAGE_MAX_BANDS)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: %" PRId64
                        " pages are channels; up to %d are read: --channels says "
                        "which of the first %d",
                        name, o->stack.n, RFX_IMAGE_MAX_BANDS, RFX_IMAGE_MAX_BANDS);
    for (int k = 0; k < c && status == RFX_OK; k++) {
        int page = chosen != NULL ? chosen->numbers[k] - 1 : k;
        if (page >= most)
            status = rfx_fail(err, RFX_STATUS_UNSUPPORTED, "%s: --channels: page %d of %" PRId64,
                              name, page + 1, o->stack.n);
        else
            status = part_of(o, mem, name, options, page, &o->channels[k].part, err);
    }
    if (status == RFX_OK)
        status = rfx_image_joined_open(mem, name, o->parts, o->n, o->channels, c,
                                       (int)rfx_min_i64(o->stack.n, INT32_MAX), out, err);
    if (status != RFX_OK)
        for (int p = 0; p < o->n; p++) o->parts[p]->ops->free(o->parts[p]);
    return status;
}

static enum rfx_status refuse_stack(const struct rfx_tiff_stack *s, const char *name,
                                    struct rfx_error *err) {
    char words[160], bands[80] = "";
    rfx_tiff_stack_words(s, words, sizeof words);
    if (s->samples == 1)
        (void)snprintf(bands, sizeof bands, ", --channels 1,2%s takes pages as channels",
                       s->n > 2 ? ",3" : "");
    if (rfx_tiff_stack_planes(s) != s->n)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: %s, which is another number of pages: --page K reads one%s ('rfexec "
                        "info' lists them)",
                        name, words, bands);
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "%s: %s: %s: --page K reads one%s ('rfexec info' lists them)", name, words,
                    s->reordered      ? "its channels have another order than its pages"
                    : s->samples != 1 ? "pages of several samples are not joined"
                                      : "the pages are not channels",
                    bands);
}

/* Page 0 by itself, of a file that may have others. */
static enum rfx_status open_first(struct rfx_memory *mem, const char *name,
                                  const struct rfx_image_options *options,
                                  const struct rfx_tiff_stack *stack,
                                  struct rfx_image_backend **out, struct rfx_error *err) {
    enum rfx_status status = rfx_image_tiff_open(mem, name, options, 0, out, err);
    if (status != RFX_OK || stack->n_chain < 2) return status;
    struct rfx_image_backend *b = *out;
    b->other_pages = stack->n_chain - 1;
    if (stack->samples > 1)
        (void)snprintf(b->note, sizeof b->note,
                       "page 0 of %" PRId64 " is read (--page takes another)", stack->n_chain);
    return RFX_OK;
}

static enum rfx_status open_by_stack(struct opening *o, struct rfx_memory *mem, const char *name,
                                     const struct rfx_image_options *options,
                                     struct rfx_image_backend **out, struct rfx_error *err) {
    const struct rfx_tiff_stack *s = &o->stack;
    if (options->page > 0 || options->only_page) {
        if (!s->in_one) return rfx_image_tiff_open(mem, name, options, 0, out, err);
        if (options->page >= s->n)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                            "%s: --page %" PRId64 ": the stack has planes 0 to %" PRId64, name,
                            options->page, s->n - 1);
        return open_page(mem, name, options, s, options->page, out, err);
    }
    const bool stack = s->n > 1, by_bands = options->bands != NULL && s->samples == 1;
    if (stack && (by_bands || rfx_tiff_stack_is_bands(s))) {
        enum rfx_status status = open_bands(o, mem, name, options, out, err);
        if (status == RFX_OK && s->says == NULL && options->bands == NULL)
            (void)snprintf((*out)->note, sizeof(*out)->note,
                           "%" PRId64 " pages of one size are read as bands (--page takes one)",
                           s->n);
        return status;
    }
    bool said = s->says != NULL && rfx_tiff_stack_planes(s) > 1;
    if (said && !(options->bands != NULL && s->n == 1)) return refuse_stack(s, name, err);
    return open_first(mem, name, options, s, out, err);
}

enum rfx_status rfx_image_tiff_pages_open(struct rfx_memory *mem, const char *name,
                                          const struct rfx_image_options *options,
                                          struct rfx_image_backend **out, struct rfx_error *err) {
    struct opening *o = rfx_memory_calloc(mem, 1, sizeof *o);
    if (o == NULL) return rfx_memory_fail(mem, name, sizeof *o, err);
    enum rfx_status status = rfx_tiff_stack_read(mem, name, &o->stack, err);
    if (status == RFX_OK) status = open_by_stack(o, mem, name, options, out, err);
    rfx_memory_release(mem, o);
    return status;
}
