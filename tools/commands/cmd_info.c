/* rfexec info: lists the images of a file, page by page. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/printable.h"
#include "rfexec/image/image_kind.h"
#include "rfexec/image/image_pages.h"
#include "rfexec/image/tiff/tiff_stack.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/table.h"

struct info {
    struct rfx_table *table; /* NULL with --json */
    json_t *pages;
    int n, n_tiff;
};

/* Adds the table cells that describe a page: its parent, its layout, its orientation, and the
 * reason if it cannot be read. */
static void add_words(struct rfx_table *table, const struct rfx_image_page *page) {
    char of[48] = "", way[48] = "", turned[32] = "", shown[4 * sizeof page->refusal.text];
    if (page->parent >= 0) (void)snprintf(of, sizeof of, "SubIFD of %d, ", page->parent);
    if (page->tile_w > 0)
        (void)snprintf(way, sizeof way, "tiles of %" PRId64 "x%" PRId64 ", ", page->tile_h,
                       page->tile_w);
    else if (page->tile_h > 0)
        (void)snprintf(way, sizeof way, "strips of %" PRId64 ", ", page->tile_h);
    if (page->orientation != 1)
        (void)snprintf(turned, sizeof turned, ", orientation %d", page->orientation);
    rfx_printable(page->refusal.text, shown, sizeof shown);
    rfx_table_cell(table, "%s%s%s%s%s%s%s", page->reduced ? "reduced, " : "", of, way,
                   page->compression != NULL ? page->compression : page->kind, turned,
                   shown[0] != '\0' ? "; not read: " : "", shown);
}

static json_t *page_json(const struct rfx_image_page *page) {
    json_t *object = json_pack(
        "{s:i, s:s, s:I, s:I, s:i, s:i, s:i, s:s, s:b, s:i, s:s?}", "page", page->number, "kind",
        page->kind, "rows", (json_int_t)page->h, "columns", (json_int_t)page->w, "bands",
        page->bands, "alpha", page->n_alpha, "bits", page->bits, "type", page->type, "reduced",
        page->reduced, "orientation", page->orientation, "compression", page->compression);
    char shown[4 * sizeof page->refusal.text];
    rfx_printable(page->refusal.text, shown, sizeof shown);
    (void)json_object_set_new(object, "parent",
                              page->parent >= 0 ? json_integer(page->parent) : json_null());
    if (page->tile_w > 0)
        (void)json_object_set_new(
            object, "tiles", json_pack("[II]", (json_int_t)page->tile_h, (json_int_t)page->tile_w));
    (void)json_object_set_new(object, "refused",
                              shown[0] != '\0' ? json_string(shown) : json_null());
    return object;
}

static void add_page(void *user, const struct rfx_image_page *page) {
    struct info *info = user;
    info->n++;
    if (page->tile_h > 0) info->n_tiff++; /* the page is a TIFF directory */
    if (info->pages != NULL) {
        (void)json_array_append_new(info->pages, page_json(page));
        return;
    }
    rfx_table_cell(info->table, "%d", page->number);
    rfx_table_cell(info->table, "%" PRId64 "x%" PRId64, page->h, page->w);
    if (page->n_alpha > 0)
        rfx_table_cell(info->table, "%d (%d alpha)", page->bands, page->n_alpha);
    else
        rfx_table_cell(info->table, "%d", page->bands);
    rfx_table_cell(info->table, "%d-bit %s", page->bits, page->type);
    add_words(info->table, page);
}

/* Writes the known names of channels as a list, or "" when none is known. */
static void name_channels(const struct rfx_tiff_stack *s, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < s->n_names && used + 1 < size; i++) {
        char shown[4 * RFX_STACK_NAME_BYTES];
        rfx_printable(s->names[i], shown, sizeof shown);
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", shown);
    }
}

/* Prints how the pages of a TIFF belong together, and how they are read without --page. */
static void print_stack(const struct rfx_tiff_stack *s) {
    char words[160], names[1024];
    rfx_tiff_stack_words(s, words, sizeof words);
    name_channels(s, names, sizeof names);
    printf("%s%s%s: %s\n", words, names[0] != '\0' ? "; channels " : "", names,
           rfx_tiff_stack_is_bands(s)     ? "read as bands"
           : rfx_tiff_stack_planes(s) > 1 ? "not read as one picture: --page takes one of them"
                                          : "page 0 is read");
}

static json_t *stack_json(const struct rfx_tiff_stack *s) {
    json_t *names = json_array();
    for (int i = 0; i < s->n_names; i++) {
        char shown[4 * RFX_STACK_NAME_BYTES];
        rfx_printable(s->names[i], shown, sizeof shown);
        (void)json_array_append_new(names, json_string(shown));
    }
    return json_pack("{s:I, s:s, s:I, s:I, s:I, s:s?, s:o, s:b, s:b}", "pages", (json_int_t)s->n,
                     "axes", s->axes, "c", (json_int_t)s->c, "z", (json_int_t)s->z, "t",
                     (json_int_t)s->t, "by", s->says, "channels", names, "in one page", s->in_one,
                     "bands", rfx_tiff_stack_is_bands(s));
}

/* Reports the stack of a TIFF file whose pages form a stack, or whose description names several
 * planes. */
static enum rfx_status add_stack(struct rfx_memory *mem, const char *path, json_t *document,
                                 struct rfx_error *err) {
    if (rfx_is_zarr(path)) return RFX_OK; /* the levels of a Zarr folder are not a stack */
    struct rfx_tiff_stack *s = rfx_memory_alloc(mem, sizeof *s);
    if (s == NULL) return rfx_memory_fail(mem, path, sizeof *s, err);
    enum rfx_status status = rfx_tiff_stack_read(mem, path, s, err);
    if (status == RFX_OK && (s->n > 1 || rfx_tiff_stack_planes(s) > 1)) {
        if (document != NULL)
            (void)json_object_set_new(document, "stack", stack_json(s));
        else
            print_stack(s);
    }
    rfx_memory_release(mem, s);
    return status;
}

struct info_options {
    struct rfx_cli_words words;
    bool json;
};

static int run(void *given) {
    const struct info_options *options = given;
    static const struct rfx_table_column columns[] = {{"page", RFX_TABLE_NUMBER},
                                                      {"rows x columns", RFX_TABLE_NUMBER},
                                                      {"bands", RFX_TABLE_MARK},
                                                      {"samples", RFX_TABLE_MARK},
                                                      {"", RFX_TABLE_WORDS}};
    struct rfx_error err = {{0}};
    struct info info = {0};
    struct rfx_memory *mem = rfx_cli_memory_create();
    if (mem == NULL) return RFX_EXIT_SYSTEM;
    if (options->json)
        info.pages = json_array();
    else
        info.table = rfx_table_create(mem, columns, sizeof columns / sizeof columns[0]);
    enum rfx_status status = rfx_image_pages(mem, options->words.args[0], add_page, &info, &err);
    int code = RFX_EXIT_DONE;
    if (info.table != NULL && info.n > 0)
        rfx_table_print(info.table, stdout, rfx_table_terminal_width());
    if (info.table != NULL && info.n_tiff > 0 && status == RFX_OK)
        status = add_stack(mem, options->words.args[0], NULL, &err);
    if (options->json && info.n == 0) {
        json_decref(info.pages);
    } else if (options->json) {
        json_t *document = rfx_report_document("info", NULL);
        (void)json_object_set_new(document, "input", json_string(options->words.shown[0]));
        (void)json_object_set_new(document, "pages", info.pages);
        if (info.n_tiff > 0 && status == RFX_OK)
            status = add_stack(mem, options->words.args[0], document, &err);
        code = rfx_report_print(document);
    }
    /* as in a run: an input that cannot be opened is a refused input */
    if (status == RFX_STATUS_IO && access(options->words.args[0], R_OK) != 0)
        status = RFX_STATUS_MALFORMED;
    if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    rfx_table_free(info.table);
    rfx_memory_free(mem);
    return code;
}

static struct info_options values;

static const struct rfx_cli_use uses[] = {RFX_CLI_USE(json, info_options, json)};

const struct rfx_cli_command rfx_cmd_info = {
    .name = "info",
    .args = "INPUT [--json]",
    .summary = "list the images of a file: sizes, bands and types, page by page",
    .details =
        "A TIFF file may hold several images, of which the other commands read the one of --page\n"
        "K: first the pages of the file's chain, then the SubIFDs of each page, which pyramids\n"
        "have. For slides (.svs, .ndpi, .mrxs, .scn, .vms, .vmu, .bif, .svslide) and Zarr folders\n"
        "the levels are listed. Only headers are read.\n",
    .examples = "rfexec info slide.tif\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 1,
    .input = 1,
    .values = &values,
    .run = run,
};
