/* Lists TIFF pages from their directories, other files by opening them. */
#include "rfexec/image/image_pages.h"

#include <inttypes.h>
#include <string.h>

#include "rfexec/image/image_kind.h"
#include "rfexec/image/tiff/tiff_directories.h"
#include "rfexec/image/tiff/tiff_layout.h"

/* A TIFF while its pages are listed. */
struct listing {
    struct rfx_image_file file;
    struct rfx_tiff_library lib;
    struct rfx_tiff_log log;
    struct rfx_tiff_handle handle;
    struct rfx_tiff_layout layout;
    rfx_image_page_fn *fn;
    void *user;
};

static const char *type_name(int format) {
    switch (format) {
        case SAMPLEFORMAT_INT:
            return "signed";
        case SAMPLEFORMAT_IEEEFP:
            return "float";
        case SAMPLEFORMAT_COMPLEXINT:
        case SAMPLEFORMAT_COMPLEXIEEEFP:
            return "complex";
        default:
            return "unsigned";
    }
}

static int count_alpha(const struct rfx_tiff_library *lib, TIFF *tif) {
    uint16_t n = 0, *kinds = NULL;
    int alpha = 0;
    if (!lib->TIFFGetField(tif, TIFFTAG_EXTRASAMPLES, &n, &kinds)) return 0;
    for (int i = 0; i < n; i++)
        alpha += kinds[i] == EXTRASAMPLE_ASSOCALPHA || kinds[i] == EXTRASAMPLE_UNASSALPHA;
    return alpha;
}

static bool tell(void *user, int number, int parent) {
    struct listing *l = user;
    const struct rfx_tiff_library *lib = &l->lib;
    TIFF *tif = l->handle.tif;
    uint32_t w = 0, h = 0, kind = 0, tile_w = 0, tile_h = 0;
    uint16_t bands = 1, bits = 1, format = SAMPLEFORMAT_UINT, compression = COMPRESSION_NONE;
    uint16_t orientation = ORIENTATION_TOPLEFT;
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &w);
    (void)lib->TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &h);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SUBFILETYPE, &kind);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLESPERPIXEL, &bands);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_BITSPERSAMPLE, &bits);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_SAMPLEFORMAT, &format);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &compression);
    (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_ORIENTATION, &orientation);
    if (lib->TIFFIsTiled(tif)) {
        (void)lib->TIFFGetField(tif, TIFFTAG_TILEWIDTH, &tile_w);
        (void)lib->TIFFGetField(tif, TIFFTAG_TILELENGTH, &tile_h);
    } else {
        (void)lib->TIFFGetFieldDefaulted(tif, TIFFTAG_ROWSPERSTRIP, &tile_h);
        if (tile_h > h) tile_h = h;
    }
    const TIFFCodec *codec = lib->TIFFFindCODEC(compression);
    struct rfx_image_page page = {.number = number,
                                  .parent = parent,
                                  .kind = "TIFF",
                                  .h = h,
                                  .w = w,
                                  .bands = bands,
                                  .n_alpha = count_alpha(lib, tif),
                                  .bits = bits,
                                  .type = type_name(format),
                                  .reduced = (kind & FILETYPE_REDUCEDIMAGE) != 0,
                                  .orientation = orientation,
                                  .tile_h = tile_h,
                                  .tile_w = tile_w,
                                  .compression = codec != NULL ? codec->name : "unknown"};
    enum rfx_status read = rfx_tiff_layout_read(lib, tif, NULL, 0, &l->layout, &page.refusal);
    if (read == RFX_OK) page.refusal.text[0] = '\0';
    l->fn(l->user, &page);
    return true;
}

static enum rfx_status list_tiff(struct rfx_memory *mem, struct listing *l, const char *path,
                                 struct rfx_error *err) {
    enum rfx_status status = rfx_tiff_library_load(&l->lib, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", path);
    if (!rfx_tiff_handle_open(&l->handle, &l->lib, &l->file, true, &l->log))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: header: %s", path,
                        l->log.words[0] != '\0' ? l->log.words : "it cannot be read");
    status = rfx_tiff_directories_walk(mem, &l->handle, &l->lib, &l->log, tell, l, err);
    rfx_tiff_handle_close(&l->handle, &l->lib);
    return status == RFX_OK ? status : rfx_fail_within(err, status, "%s", path);
}

/* Lists a file that is one picture. */
static enum rfx_status tell_one(struct rfx_memory *mem, const char *path, rfx_image_page_fn *fn,
                                void *user, struct rfx_error *err) {
    struct rfx_image_options options = rfx_image_default_options();
    struct rfx_image *image = NULL;
    options.channels = options.max_pixels = 0;
    options.as_stored = true;
    enum rfx_status status = rfx_image_open(mem, path, &options, &image, err);
    if (status != RFX_OK) return status;
    struct rfx_image_facts facts = rfx_image_facts(image);
    const struct rfx_image_page page = {.parent = -1,
                                        .kind = facts.kind,
                                        .h = facts.h,
                                        .w = facts.w,
                                        .bands = facts.bands,
                                        .n_alpha = rfx_image_alpha(image, NULL),
                                        .bits = facts.sample_bits,
                                        .type = facts.sample_bits == 32 ? "float" : "unsigned",
                                        .orientation = facts.orientation};
    fn(user, &page);
    rfx_image_free(image);
    return RFX_OK;
}

enum rfx_status rfx_image_pages(struct rfx_memory *mem, const char *path, rfx_image_page_fn *fn,
                                void *user, struct rfx_error *err) {
    unsigned char head[4] = {0, 0, 0, 0};
    struct listing *l = NULL;
    if (strncmp(path, "synthetic:", 10) == 0 || strncmp(path, "bands:", 6) == 0)
        return tell_one(mem, path, fn, user, err);
    if (rfx_is_zarr(path)) return rfx_image_zarr_levels(mem, path, fn, user, err);
    if (rfx_image_is_slide(path)) return rfx_image_slide_levels(mem, path, fn, user, err);
    l = rfx_memory_calloc(mem, 1, sizeof *l);
    if (l == NULL) return rfx_memory_fail(mem, path, sizeof *l, err);
    l->fn = fn;
    l->user = user;
    enum rfx_status status = rfx_image_file_open(&l->file, path, err);
    if (status == RFX_OK && rfx_image_file_pread(&l->file, head, 4, 0) == 4 &&
        rfx_image_is_tiff(head))
        status = list_tiff(mem, l, path, err);
    else if (status == RFX_OK)
        status = tell_one(mem, path, fn, user, err);
    rfx_image_file_close(&l->file);
    rfx_memory_release(mem, l);
    return status;
}
