/* Walks the directories in the file's order, then the SubIFDs found on the way. */
#include "rfexec/image/tiff/tiff_directories.h"

#include <stdio.h>
#include <string.h>

/* SubIFDs that are not visited yet. */
struct sub_pages {
    int n;
    struct {
        uint64_t offset;
        int parent;
    } at[RFX_TIFF_MAX_SUB_IFDS];
};

static void note_sub_pages(const struct rfx_tiff_library *lib, TIFF *tif, int parent,
                           struct sub_pages *subs) {
    uint16_t n = 0;
    uint64_t *offsets = NULL;
    if (!lib->TIFFGetField(tif, TIFFTAG_SUBIFD, &n, &offsets)) return;
    for (int i = 0; i < n && subs->n < RFX_TIFF_MAX_SUB_IFDS; i++) {
        subs->at[subs->n].offset = offsets[i];
        subs->at[subs->n++].parent = parent;
    }
}

static enum rfx_status failed(const struct rfx_tiff_log *log, int number, struct rfx_error *err) {
    bool no_memory = rfx_tiff_log_has_no_memory(log);
    return rfx_fail(err, no_memory ? RFX_STATUS_OUT_OF_MEMORY : RFX_STATUS_MALFORMED, "page %d: %s",
                    number,
                    log->words[0] != '\0' ? log->words
                    : no_memory           ? "libtiff has no memory"
                                          : "the directory cannot be read");
}

/* Walks the chain of directories. *next: the first number after it. *stopped: fn returned false. */
static enum rfx_status walk_chain(TIFF *tif, const struct rfx_tiff_library *lib,
                                  struct rfx_tiff_log *log, rfx_tiff_directory_fn *fn, void *user,
                                  struct sub_pages *subs, int *next, bool *stopped,
                                  struct rfx_error *err) {
    for (int i = 0; i < RFX_TIFF_MAX_DIRECTORIES; i++) {
        rfx_tiff_log_clear(log);
        int there = i == 0 ? lib->TIFFSetDirectory(tif, 0) : lib->TIFFReadDirectory(tif);
        *next = i;
        if (there == 0 && i > 0 && !log->complained) return RFX_OK; /* end of the chain */
        if (there == 0 || log->complained) return failed(log, i, err);
        note_sub_pages(lib, tif, i, subs);
        *stopped = !fn(user, i, -1);
        if (*stopped) return RFX_OK;
    }
    *next = RFX_TIFF_MAX_DIRECTORIES;
    return RFX_OK;
}

static enum rfx_status walk(struct sub_pages *subs, TIFF *tif, const struct rfx_tiff_library *lib,
                            struct rfx_tiff_log *log, rfx_tiff_directory_fn *fn, void *user,
                            struct rfx_error *err) {
    bool stopped = false;
    int number = 0;
    enum rfx_status status = walk_chain(tif, lib, log, fn, user, subs, &number, &stopped, err);
    for (int i = 0; i < subs->n && status == RFX_OK && !stopped; i++, number++) {
        rfx_tiff_log_clear(log);
        if (!lib->TIFFSetSubDirectory(tif, subs->at[i].offset) || log->complained)
            return failed(log, number, err);
        stopped = !fn(user, number, subs->at[i].parent);
    }
    return status;
}

enum rfx_status rfx_tiff_directories_walk(struct rfx_memory *mem, struct rfx_tiff_handle *handle,
                                          const struct rfx_tiff_library *lib,
                                          struct rfx_tiff_log *log, rfx_tiff_directory_fn *fn,
                                          void *user, struct rfx_error *err) {
    struct sub_pages *subs = rfx_memory_alloc(mem, sizeof *subs);
    if (subs == NULL) return rfx_memory_fail(mem, "pages", sizeof *subs, err);
    subs->n = 0;
    log->in_header = true;
    enum rfx_status status = walk(subs, handle->tif, lib, log, fn, user, err);
    log->in_header = false;
    rfx_memory_release(mem, subs);
    return status;
}

struct search {
    const struct rfx_tiff_library *lib;
    TIFF *tif;
    int64_t wanted;
    int n; /* number of pages seen */
    bool found;
    char names[300]; /* list of the pages seen, as far as it fits */
};

static bool is_wanted(void *user, int number, int parent) {
    struct search *s = user;
    uint32_t w = 0, h = 0, kind = 0;
    char name[100], of[40] = "";
    s->found = number == s->wanted;
    if (s->found) return false;
    s->n = number + 1;
    (void)s->lib->TIFFGetField(s->tif, TIFFTAG_IMAGEWIDTH, &w);
    (void)s->lib->TIFFGetField(s->tif, TIFFTAG_IMAGELENGTH, &h);
    (void)s->lib->TIFFGetField(s->tif, TIFFTAG_SUBFILETYPE, &kind);
    if (parent >= 0) (void)snprintf(of, sizeof of, ", SubIFD of %d", parent);
    (void)snprintf(name, sizeof name, "%s%d: %ux%u%s%s", number > 0 ? "; " : "", number, h, w,
                   (kind & FILETYPE_REDUCEDIMAGE) != 0 ? ", reduced" : "", of);
    size_t length = strlen(s->names);
    if (length + strlen(name) < sizeof s->names - 8)
        (void)strcpy(s->names + length, name);
    else if (strstr(s->names, "...") == NULL)
        (void)strcpy(s->names + length, "; ...");
    return true;
}

enum rfx_status rfx_tiff_directory_select(struct rfx_memory *mem, struct rfx_tiff_handle *handle,
                                          const struct rfx_tiff_library *lib,
                                          struct rfx_tiff_log *log, int64_t page,
                                          struct rfx_error *err) {
    struct search search = {.lib = lib, .tif = handle->tif, .wanted = page};
    enum rfx_status status =
        rfx_tiff_directories_walk(mem, handle, lib, log, is_wanted, &search, err);
    if (status != RFX_OK || search.found) return status;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "--page %lld of %d ('rfexec info' lists them): %s",
                    (long long)page, search.n, search.names);
}
