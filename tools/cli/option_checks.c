/* Pairs of options that exclude each other; see option_checks.h. */
#include "tools/cli/option_checks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/study/chart.h"

static bool is_standard_output(const char *file) {
    return file != NULL && strcmp(file, "-") == 0;
}

static bool is_page_name(const char *file) {
    const char *end = strrchr(file, '.');
    return is_standard_output(file) ||
           (end != NULL && (strcasecmp(end, ".html") == 0 || strcasecmp(end, ".htm") == 0));
}

/* A picture, in a file that nothing else of the run goes to. */
static bool check_overlay(const struct rfx_cli_options *o, char *why, size_t why_size) {
    bool more = o->overlay_of != NULL || o->overlay_output != NULL ||
                o->overlay_range[0] < o->overlay_range[1];
    if (o->overlay == NULL && o->report == NULL && more)
        (void)snprintf(why, why_size,
                       "--overlay-of, --overlay-output and --overlay-range need "
                       "--overlay or --report");
    if (o->overlay == NULL) return o->report != NULL || !more;
    const char *end = strrchr(o->overlay, '.');
    bool known = is_standard_output(o->overlay);
    known |= end != NULL && (strcasecmp(end, ".png") == 0 || strcasecmp(end, ".tif") == 0 ||
                             strcasecmp(end, ".tiff") == 0);
    if (!known) {
        (void)snprintf(why, why_size, "--overlay '%s': the name must end in .png, .tif or .tiff",
                       o->overlay);
        return false;
    }
    if (is_standard_output(o->overlay)) return true; /* see check_standard_output */
    bool twice = o->output != NULL && strcmp(o->output, o->overlay) == 0;
    for (int i = 0; i < o->kept.n; ++i)
        twice |= o->kept.files[i] != NULL && strcmp(o->kept.files[i], o->overlay) == 0;
    if (twice)
        (void)snprintf(why, why_size, "--overlay '%s': an output goes to that file", o->overlay);
    return !twice;
}

static int count_standard_output(const struct rfx_cli_options *o) {
    int n = is_standard_output(o->output) + is_standard_output(o->plot) +
            is_standard_output(o->report) + is_standard_output(o->overlay);
    for (int i = 0; i < o->kept.n; ++i) n += is_standard_output(o->kept.files[i]);
    return n;
}

bool rfx_cli_options_use_stdout(const struct rfx_cli_options *options) {
    return count_standard_output(options) > 0;
}

/* One file can be written there, and then nothing else. */
static bool check_standard_output(const struct rfx_cli_options *o, char *why, size_t why_size) {
    int n = count_standard_output(o) + (o->json || o->csv);
    if (n < 2 || !rfx_cli_options_use_stdout(o)) return true;
    (void)snprintf(why, why_size, "only one of --json, --csv and files '-' can be standard output");
    return false;
}

static bool of_tiff(const struct rfx_cli_options *options) {
    return options->tiff_tile != 0 || options->tiff_compress != NULL || options->cog;
}

static bool of_zarr(const struct rfx_cli_options *options) {
    return options->zarr_chunk != 0 || options->zarr_compress != NULL || options->zarr_format != 0;
}

const char *rfx_cli_options_misfit(const struct rfx_cli_options *options, unsigned takes) {
    if ((takes & RFX_OUTPUT_TAKES_NAMES) == 0 && options->channel_names != NULL)
        return "--channel-names is for files of -o that end in .ome.tif";
    if ((takes & RFX_OUTPUT_TAKES_TILES) == 0 && of_tiff(options))
        return "--tiff-tile, --tiff-compress and --cog are for files of -o that end in .tif";
    if ((takes & RFX_OUTPUT_TAKES_COG) == 0 && options->cog)
        return "--cog is for files of -o that end in .tif, not in .ome.tif";
    if ((takes & RFX_OUTPUT_TAKES_CHUNKS) == 0 && of_zarr(options))
        return "options --zarr-... are for folders of -o that end in .zarr";
    if ((takes & RFX_OUTPUT_TAKES_OVERVIEWS) == 0 && options->overviews != NULL)
        return "--overviews are for -o that ends in .tif or .ome.zarr";
    return NULL;
}

bool rfx_cli_options_of_files(const struct rfx_cli_options *options) {
    return options->bits != 0 || options->range[0] < options->range[1] ||
           options->overviews != NULL || options->channel_names != NULL || of_tiff(options) ||
           of_zarr(options);
}

/* Tiles that TIFF has, packings that there are. */
static bool check_tiff(const struct rfx_cli_options *o, char *why, size_t why_size) {
    const char *kind = o->tiff_compress, *levels = o->overviews;
    if (levels != NULL && strcmp(levels, "mean") != 0 && strcmp(levels, "nearest") != 0) {
        (void)snprintf(why, why_size, "--overviews '%.100s': mean or nearest", levels);
        return false;
    }
    if (o->tiff_tile % 16 != 0) {
        (void)snprintf(why, why_size, "--tiff-tile %lld: tiles have 16, 32, ... rows and columns",
                       (long long)o->tiff_tile);
        return false;
    }
    if (kind == NULL || strcmp(kind, "none") == 0 || strcmp(kind, "deflate") == 0 ||
        strcmp(kind, "zstd") == 0)
        return true;
    (void)snprintf(why, why_size, "--tiff-compress '%.100s': deflate, zstd or none", kind);
    return false;
}

/* Versions and packings of Zarr that are written. */
static bool check_zarr(const struct rfx_cli_options *o, char *why, size_t why_size) {
    const char *kind = o->zarr_compress;
    bool known = kind == NULL || strcmp(kind, "none") == 0 || strcmp(kind, "zstd") == 0;
    if (o->zarr_format == 1)
        (void)snprintf(why, why_size, "--zarr-format 1: 2 or 3");
    else if (!known)
        (void)snprintf(why, why_size, "--zarr-compress '%.100s': zstd or none", kind);
    return known && o->zarr_format != 1;
}

/* Many pictures have results of their own names, and no page, plot or classes. */
static bool check_list(const struct rfx_cli_options *o, char *why, size_t why_size) {
    char name[32], ends[RFX_OUTPUT_ENDS];
    (void)snprintf(name, sizeof name, "x.%s", o->as != NULL ? o->as : "npy");
    bool known = rfx_output_kind_of(name) != NULL;
    if (o->list == NULL && (o->out_dir != NULL || o->as != NULL || o->resume)) {
        (void)snprintf(why, why_size, "--out-dir, --as and --resume need --list");
        return false;
    }
    if (o->list == NULL) return true;
    if (o->out_dir == NULL) {
        (void)snprintf(why, why_size, "--list needs --out-dir");
        return false;
    }
    if (!known) {
        (void)snprintf(why, why_size, "--as '%s': results are %s", o->as, rfx_output_ends(ends));
        return false;
    }
    bool dumps = false;
    for (int i = 0; i < o->kept.n; ++i) dumps |= o->kept.files[i] != NULL;
    if (o->output == NULL && o->report == NULL && o->overlay == NULL && o->top < 0 &&
        o->labels == NULL && !dumps)
        return true;
    (void)snprintf(why, why_size,
                   "--list excludes -o, --report, --overlay, --dump, --top and --labels");
    return false;
}

bool rfx_cli_options_mark(const struct rfx_cli_options *o) {
    return o->nodata.given && (o->nodata_mark == NULL || strcmp(o->nodata_mark, "none") != 0);
}

/* Marks are those of one picture's outputs, written as floats. */
static bool check_nodata(const struct rfx_cli_options *o, char *why, size_t why_size) {
    const char *mark = o->nodata_mark;
    bool known = mark == NULL || strcmp(mark, "field") == 0 || strcmp(mark, "centre") == 0 ||
                 strcmp(mark, "none") == 0;
    const char *other = o->list != NULL                           ? "--list"
                        : o->mask != NULL                         ? "--mask"
                        : o->part != NULL || o->part_rect != NULL ? "--part"
                        : o->bits != 0 && o->bits != 32           ? "--bits 8 and 16"
                                                                  : NULL;
    if (!known)
        (void)snprintf(why, why_size, "--nodata-mark '%.100s': field, centre or none", mark);
    else if (mark != NULL && !o->nodata.given)
        (void)snprintf(why, why_size, "--nodata-mark needs --nodata");
    else if (rfx_cli_options_mark(o) && other != NULL)
        (void)snprintf(why, why_size,
                       "--nodata marks output pixels as NaN, which %s excludes: --nodata-mark none "
                       "fills the picture alone",
                       other);
    else
        return true;
    return false;
}

bool rfx_cli_options_check(const struct rfx_cli_options *o, char *why, size_t why_size) {
    if (o->untiled && (o->tiles.y != 0 || o->split != NULL || o->bands != 0)) {
        (void)snprintf(why, why_size, "--untiled excludes --tiles, --bands and --split");
        return false;
    }
    if (o->level >= 0 && o->page > 0) {
        (void)snprintf(why, why_size, "--level excludes --page");
        return false;
    }
    if ((o->strips != 0 || o->tight) && o->bands == 0) {
        (void)snprintf(why, why_size, "--%s needs --bands", o->strips != 0 ? "strips" : "tight");
        return false;
    }
    bool by_hand = o->untiled || o->tiles.y != 0 || o->split != NULL || o->bands != 0;
    if (o->plan_file != NULL &&
        (by_hand || o->row_by_row || o->weights_by_stage || o->no_inplace)) {
        (void)snprintf(why, why_size,
                       "--plan says all of the plan: it excludes --tiles, --bands, --strips, "
                       "--split, --untiled, --row-by-row, --weights-by-stage and --no-inplace");
        return false;
    }
    if (o->spill != NULL && (o->untiled || o->tiles.y != 0 || o->split != NULL)) {
        (void)snprintf(why, why_size, "--spill excludes --untiled, --tiles and --split");
        return false;
    }
    bool by_bands = o->memory_bytes != 0 || o->bands != 0 || o->plan_file != NULL || o->pareto;
    if (o->spill != NULL && !by_bands) {
        (void)snprintf(why, why_size,
                       "--spill needs --memory, --bands or --plan: else no map is "
                       "made in parts");
        return false;
    }
    if (o->bands != 0 && o->tiles.y != 0) {
        (void)snprintf(why, why_size, "--bands excludes --tiles");
        return false;
    }
    if (o->plot != NULL && !rfx_chart_name_ok(o->plot)) {
        (void)snprintf(why, why_size, "--plot '%s': charts are .svg or .png", o->plot);
        return false;
    }
    if (o->report != NULL && !is_page_name(o->report)) {
        (void)snprintf(why, why_size, "--report '%s': the name must end in .html or .htm",
                       o->report);
        return false;
    }
    if (!check_list(o, why, why_size) || !check_overlay(o, why, why_size)) return false;
    if (!check_tiff(o, why, why_size) || !check_zarr(o, why, why_size)) return false;
    if (!check_nodata(o, why, why_size)) return false;
    if (o->bgr && o->channels.n != 0) {
        (void)snprintf(why, why_size, "--channels says the order: it excludes --bgr");
        return false;
    }
    if (o->naive && o->kept.n != 0) {
        (void)snprintf(why, why_size, "--naive excludes --keep");
        return false;
    }
    for (int i = 0; i < o->std.n; ++i) {
        if (o->std.values[i] != 0.0F) continue;
        (void)snprintf(why, why_size, "option '--std': 0 cannot be divided by");
        return false;
    }
    if (o->no_fuse && o->baseline != NULL && strcmp(o->baseline, "eager") != 0) {
        (void)snprintf(why, why_size, "--no-fuse is --baseline eager, not '%s'", o->baseline);
        return false;
    }
    if (o->json && o->csv) {
        (void)snprintf(why, why_size, "--json excludes --csv");
        return false;
    }
    return check_standard_output(o, why, why_size);
}

const char *rfx_cli_options_not_of_batch(const struct rfx_cli_options *options) {
    if (options->report != NULL) return "--report is the page of one image, not of a batch";
    if (options->overlay != NULL) return "--overlay is drawn over one image, not over a batch";
    if (options->top > 0 || options->labels != NULL)
        return "--top and --labels show the classes of one image, not of a batch";
    return NULL;
}

static bool is_word(const char *given, const char *word) {
    return given != NULL && strcmp(given, word) == 0;
}

bool rfx_cli_output_format(const struct rfx_cli_options *options, const char *path,
                           struct rfx_output_format *format) {
    *format = (struct rfx_output_format){
        .images = options->images,
        .bits = (int)options->bits,
        .has_range = options->range[0] < options->range[1],
        .range = {(double)options->range[0], (double)options->range[1]},
        .zarr_format = (int)options->zarr_format,
        .chunk = options->zarr_chunk,
        .zstd = is_word(options->zarr_compress, "zstd"),
        .cog = options->cog,
        .channel_names = options->channel_names,
    };
    if (options->cog || is_word(options->overviews, "mean")) format->overviews = RFX_OVERVIEW_MEAN;
    if (is_word(options->overviews, "nearest")) format->overviews = RFX_OVERVIEW_NEAREST;
    format->kind = rfx_output_kind_of(path);
    if (format->kind == NULL) return false;
    if ((format->kind->takes & RFX_OUTPUT_TAKES_TILES) == 0) return true;
    if (is_word(options->tiff_compress, "deflate")) format->packing = RFX_TIFF_DEFLATE;
    if (is_word(options->tiff_compress, "zstd")) format->packing = RFX_TIFF_ZSTD;
    format->tile = (int)options->tiff_tile;
    rfx_output_format_settle(format);
    return true;
}
