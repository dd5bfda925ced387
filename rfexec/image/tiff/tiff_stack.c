/* Descriptions are written by other programs: every number is checked against the file, and text
 * that is not understood is ignored. */
#include "rfexec/image/tiff/tiff_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/joined_bands.h"
#include "rfexec/image/tiff/tiff_directories.h"

#define MOST_PLANES INT64_C(1000000000)

/* A file while its directories are read. */
struct look {
    struct rfx_image_file file;
    struct rfx_tiff_library lib;
    struct rfx_tiff_log log;
    struct rfx_tiff_handle handle;
    struct rfx_tiff_stack *stack;
    uint16_t format;
    int compression;
    bool tiled;
};

/* Returns the number with which the text begins; 0: there is none of 1 to MOST_PLANES. */
static int64_t leading_number(const char *text) {
    int64_t value = 0;
    while (*text >= '0' && *text <= '9' && value <= MOST_PLANES) value = value * 10 + *text++ - '0';
    return value <= MOST_PLANES ? value : 0;
}

/* Returns the number of a key in ImageJ's lines of key=value; 0: not there. */
static int64_t line_number(const char *text, const char *key) {
    const size_t length = strlen(key);
    for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
        if (*at == '\n') at++;
        if (strncmp(at, key, length) == 0 && at[length] == '=')
            return leading_number(at + length + 1);
    }
    return 0;
}

/* Returns the value of an XML attribute between `at` and `end`, up to the closing quote; NULL: not
 * there. */
static const char *attribute(const char *at, const char *end, const char *name, size_t *length) {
    const size_t n = strlen(name);
    for (; at + n + 2 < end; at++) {
        if ((*at != ' ' && *at != '\n' && *at != '\t' && *at != '\r') ||
            strncmp(at + 1, name, n) != 0)
            continue;
        const char *value = at + 1 + n;
        if (*value != '=' || (value[1] != '"' && value[1] != '\'')) continue;
        const char *stop = memchr(value + 2, value[1], (size_t)(end - value - 2));
        if (stop == NULL) return NULL;
        *length = (size_t)(stop - value - 2);
        return value + 2;
    }
    return NULL;
}

static int64_t number_attribute(const char *at, const char *end, const char *name) {
    size_t length;
    const char *value = attribute(at, end, name, &length);
    return value != NULL ? leading_number(value) : 0;
}

/* Returns the next element of this name, with any prefix, from `at` on; *end is its '>'. NULL:
 * none. */
static const char *element(const char *at, const char *limit, const char *name, const char **end) {
    const size_t n = strlen(name);
    while ((at = strstr(at, name)) != NULL && at < limit) {
        char before = at[-1], after = at[n];
        const char *from = at;
        at += n;
        if ((before != '<' && before != ':') || (after != ' ' && after != '>' && after != '/' &&
                                                 after != '\n' && after != '\t' && after != '\r'))
            continue;
        *end = strchr(from, '>');
        return *end != NULL ? from : NULL;
    }
    return NULL;
}

/* Stores a channel's name, with XML's five entities replaced by their characters. */
static void keep_name(struct rfx_tiff_stack *s, const char *from, size_t length) {
    static const struct {
        const char *entity;
        char is;
    } entities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    char *to = s->names[s->n_names++];
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < RFX_STACK_NAME_BYTES;) {
        size_t step = 1;
        to[used] = from[i];
        for (size_t k = 0; k < sizeof entities / sizeof entities[0]; k++) {
            size_t n = strlen(entities[k].entity);
            if (i + n > length || strncmp(from + i, entities[k].entity, n) != 0) continue;
            to[used] = entities[k].is;
            step = n;
        }
        used++;
        i += step;
    }
    to[used] = '\0';
}

/* Stores the axes longer than 1, in the given order from the slowest on, such as "TZCYX". */
static void keep_axes(struct rfx_tiff_stack *s, const char *slowest_first) {
    size_t used = 0;
    for (const char *a = slowest_first; *a != '\0' && used + 1 < sizeof s->axes; a++) {
        int64_t size = *a == 'C' ? s->c : *a == 'Z' ? s->z : *a == 'T' ? s->t : 2;
        if (size > 1) s->axes[used++] = *a;
    }
    s->axes[used] = '\0';
}

/* Returns whether TiffData give the pages another order than that of the channels. */
static bool is_reordered(const char *pixels, const char *limit) {
    const char *end = NULL;
    bool first = true;
    for (const char *at = pixels; (at = element(at, limit, "TiffData", &end)) != NULL; at = end) {
        size_t length;
        const char *ifd = attribute(at, end, "IFD", &length);
        const char *channel = attribute(at, end, "FirstC", &length);
        int64_t page = ifd != NULL ? leading_number(ifd) : 0;
        int64_t c = channel != NULL ? leading_number(channel) : 0;
        if ((ifd != NULL || !first) && page != c) return true;
        first = false;
    }
    return false;
}

static void read_ome(struct rfx_tiff_stack *s, const char *text) {
    const char *limit = text + strlen(text), *end = NULL, *stop = NULL;
    const char *pixels = element(text + 1, limit, "Pixels", &end);
    if (pixels == NULL) return;
    s->c = number_attribute(pixels, end, "SizeC");
    s->z = number_attribute(pixels, end, "SizeZ");
    s->t = number_attribute(pixels, end, "SizeT");
    size_t length = 0;
    const char *order = attribute(pixels, end, "DimensionOrder", &length);
    char slowest_first[8] = "TZCYX";
    for (size_t i = 0; order != NULL && length == 5 && i < 5; i++)
        slowest_first[i] = order[length - 1 - i];
    if (s->c == 0 || s->z == 0 || s->t == 0) return;
    s->says = "OME-XML";
    keep_axes(s, slowest_first);
    const char *next = element(end, limit, "Pixels", &stop); /* end tag of Pixels */
    if (next != NULL) limit = next;
    s->reordered = s->z == 1 && s->t == 1 && is_reordered(end, limit);
    for (const char *at = end;
         s->n_names < RFX_STACK_NAMES && (at = element(at, limit, "Channel", &stop)) != NULL;
         at = stop) {
        if (at[-1] == '/') continue;
        const char *name = attribute(at, stop, "Name", &length);
        keep_name(s, name != NULL ? name : "", name != NULL ? length : 0);
    }
}

/* Reads ImageJ's description. It has only the sizes that are not 1; a simple stack has "images" and
 * "slices". */
static void read_imagej(struct rfx_tiff_stack *s, const char *text) {
    int64_t images = line_number(text, "images");
    s->c = rfx_max_i64(line_number(text, "channels"), 1);
    s->z = rfx_max_i64(line_number(text, "slices"), 1);
    s->t = rfx_max_i64(line_number(text, "frames"), 1);
    if (s->c * s->z > MOST_PLANES || s->c * s->z * s->t > MOST_PLANES) return;
    if (images > 1 && s->c * s->z * s->t == 1) s->z = images;
    s->says = "ImageJ metadata";
    keep_axes(s, "TZCYX");
}

/* Reads tifffile's description: {"shape": [3, 64, 80], "axes": "CYX"}. It has axes only if the
 * writer gave them. */
static void read_shaped(struct rfx_tiff_stack *s, const char *text) {
    int64_t sizes[8], planes = 1;
    int n = 0;
    const char *shape = strstr(text, "\"shape\": ["), *axes = strstr(text, "\"axes\": \"");
    if (shape == NULL || axes == NULL) return;
    for (const char *at = shape + 10; n < 8 && *at >= '0' && *at <= '9'; n++) {
        sizes[n] = leading_number(at);
        at += strspn(at, "0123456789");
        at += strspn(at, ", ");
    }
    axes += 9;
    if (strcspn(axes, "\"") != (size_t)n) return;
    s->c = s->z = s->t = 1;
    for (int i = 0; i < n; i++) {
        if (axes[i] == 'Y' || axes[i] == 'X' || axes[i] == 'S') continue;
        if (sizes[i] < 1 || !rfx_checked_mul_i64(planes, sizes[i], &planes)) return;
        if (axes[i] == 'Q' || axes[i] == 'I' || planes > MOST_PLANES)
            return; /* the axes have no known meaning */
        *(axes[i] == 'C' ? &s->c : axes[i] == 'T' ? &s->t : &s->z) *= sizes[i];
    }
    s->says = "tifffile metadata";
    (void)snprintf(s->axes, sizeof s->axes, "%.*s", n, axes);
}

static void read_description(struct look *l) {
    const char *text = NULL;
    if (!l->lib.TIFFGetField(l->handle.tif, TIFFTAG_IMAGEDESCRIPTION, &text) || text == NULL)
        return;
    if (strncmp(text, "ImageJ=", 7) == 0)
        read_imagej(l->stack, text);
    else if (strstr(text, "OME") != NULL && strstr(text, "Pixels") != NULL)
        read_ome(l->stack, text);
    else if (strncmp(text, "{\"shape\": [", 11) == 0)
        read_shaped(l->stack, text);
    if (l->stack->says != NULL) return;
    l->stack->c = l->stack->z = l->stack->t = 0;
    l->stack->n_names = 0;
}

static bool look_at(void *user, int number, int parent) {
    struct look *l = user;
    struct rfx_tiff_stack *s = l->stack;
    const struct rfx_tiff_library *lib = &l->lib;
    TIFF *tif = l->handle.tif;
    uint32_t w = 0, h = 0, kind = 0;
    uint16_t samples = 1, bits = 1, format = SAMPLEFORMAT_UINT, compression = COMPRESSION_NONE;
    if (parent >= 0) return false;
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &w);
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &h);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SUBFILETYPE, &kind);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &samples);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &bits);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLEFORMAT, &format);
    if (number == 0) {
        (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &compression);
        *s = (struct rfx_tiff_stack){.h = h, .w = w, .samples = samples, .bits = bits};
        l->format = format;
        l->compression = compression;
        l->tiled = lib->TIFFIsTiled(tif) != 0;
        read_description(l);
    } else if ((kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0) {
        return true;
    }
    s->n_chain++;
    if (h != s->h || w != s->w || samples != s->samples || bits != s->bits || format != l->format)
        return true;
    if (s->n < RFX_IMAGE_MAX_BANDS) s->numbers[s->n] = number;
    s->n++;
    return true;
}

/* Recognises ImageJ's large stacks: one uncompressed directory, and a file that is large enough for
 * all planes. */
static void note_planes_in_one(struct look *l) {
    struct rfx_tiff_stack *s = l->stack;
    int64_t planes = rfx_tiff_stack_planes(s), bytes;
    if (s->says == NULL || strcmp(s->says, "ImageJ metadata") != 0 || s->n_chain != 1 ||
        planes < 2 || l->tiled || l->compression != COMPRESSION_NONE || s->bits % 8 != 0)
        return;
    if (!rfx_checked_mul_i64(s->h * s->w, (int64_t)s->samples * (s->bits / 8), &bytes) ||
        !rfx_checked_mul_i64(bytes, planes, &bytes) || bytes > l->file.bytes)
        return;
    s->in_one = true;
    s->n = planes;
    for (int i = 0; i < RFX_IMAGE_MAX_BANDS && i < planes; i++) s->numbers[i] = i;
}

/* Ignores pages beyond the planes of the first picture of an OME-TIFF: they belong to its other
 * pictures. */
static void leave_other_pictures(struct rfx_tiff_stack *s) {
    int64_t planes = rfx_tiff_stack_planes(s);
    if (planes > 0 && s->n > planes) s->n = planes;
}

enum rfx_status rfx_tiff_stack_read(struct rfx_memory *mem, const char *path,
                                    struct rfx_tiff_stack *out, struct rfx_error *err) {
    struct rfx_error chain = {{0}};
    struct look *l = rfx_memory_calloc(mem, 1, sizeof *l);
    if (l == NULL) return rfx_memory_fail(mem, path, sizeof *l, err);
    memset(out, 0, sizeof *out);
    l->stack = out;
    enum rfx_status status = rfx_image_file_open(&l->file, path, err);
    if (status == RFX_OK) {
        status = rfx_tiff_library_load(&l->lib, err);
        if (status != RFX_OK) status = rfx_fail_within(err, status, "%s", path);
    }
    if (status == RFX_OK && rfx_tiff_handle_open(&l->handle, &l->lib, &l->file, true, &l->log)) {
        status = rfx_tiff_directories_walk(mem, &l->handle, &l->lib, &l->log, look_at, l, &chain);
        if (status != RFX_STATUS_OUT_OF_MEMORY)
            status = RFX_OK;
        else
            status = rfx_fail(err, status, "%s: %s", path, chain.text);
    }
    rfx_tiff_handle_close(&l->handle, &l->lib);
    note_planes_in_one(l);
    leave_other_pictures(out);
    rfx_image_file_close(&l->file);
    rfx_memory_release(mem, l);
    return status;
}

int64_t rfx_tiff_stack_planes(const struct rfx_tiff_stack *stack) {
    if (stack->says == NULL) return 0;
    int64_t planes = stack->c * stack->z;
    if (planes > MOST_PLANES || planes * stack->t > MOST_PLANES) return 0;
    planes *= stack->t;
    bool counts_samples = strcmp(stack->says, "OME-XML") == 0;
    return counts_samples && stack->samples > 1 ? planes / stack->samples : planes;
}

bool rfx_tiff_stack_is_bands(const struct rfx_tiff_stack *stack) {
    if (stack->n < 2 || stack->samples != 1) return false;
    if (stack->says == NULL) return true;
    return stack->z == 1 && stack->t == 1 && stack->n == stack->c && !stack->reordered;
}

void rfx_tiff_stack_words(const struct rfx_tiff_stack *s, char *text, size_t size) {
    if (s->says == NULL)
        (void)snprintf(text, size,
                       "%" PRId64 " pages of one size, of which nothing says what they are", s->n);
    else
        (void)snprintf(text, size,
                       "%" PRId64 " %s, axes %s: C %" PRId64 ", Z %" PRId64 ", T %" PRId64 " by %s",
                       s->n,
                       s->in_one   ? "planes in one page"
                       : s->n == 1 ? "page"
                                   : "pages",
                       s->axes, s->c, s->z, s->t, s->says);
}

/* State while pages are opened. */
struct opening {
    struct rfx_tiff_stack stack;
    struct rfx_image_backend *parts[RFX_IMAGE_MAX_BANDS];
    int page_of[RFX_IMAGE_MAX_BANDS]; /* for each part its page of the stack, from 0 */
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

/* Sets *part to the part of a page of the stack. Opens the page if it is new. */
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

/* Opens all pages, or the pages that the chosen bands name. */
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

/* Opens page 0 alone, of a file that may have others. */
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
