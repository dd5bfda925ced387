/* The option table, its parser and its help; see options.h. What a value looks like:
 * option_values.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "tools/cli/options.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/printable.h"
#include "layers/graph/near_names.h"
#include "tools/cli/command.h"
#include "tools/cli/option_checks.h"

enum option_kind {
    KIND_FLAG,   /* bool */
    KIND_BYTES,  /* size_t */
    KIND_PAIR,   /* struct rfx_cli_pair */
    KIND_GRID,   /* the same, or a count alone */
    KIND_COUNT,  /* int64_t, 1 .. limit */
    KIND_INDEX,  /* int64_t, 0 .. limit */
    KIND_SEED,   /* uint64_t */
    KIND_TEXT,   /* const char * */
    KIND_FLOAT,  /* float */
    KIND_FLOATS, /* struct rfx_cli_numbers */
    KIND_NODATA, /* struct rfx_cli_nodata */
    KIND_SCALE,  /* struct rfx_cli_scale */
    KIND_RANGE,  /* float[2], the first less than the second */
    KIND_BANDS,  /* struct rfx_image_bands */
    KIND_FIT,    /* struct rfx_fit_size */
    KIND_RECT,   /* struct rfx_rect, not empty */
    KIND_KEEP,   /* struct rfx_cli_kept: a tensor more */
    KIND_DUMP,   /* the same, with its file: TENSOR=FILE */
    KIND_CONV,   /* enum rfx_conv_choice */
};

struct option_row {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    unsigned group; /* 0: every command */
    size_t offset;
    const char *value; /* in the help; NULL for flags */
    const char *help;
    int64_t limit;
};

/* Counts beyond these are slips of the finger: no image has so many rows, no network so many
 * classes, and a thread more than processors gains nothing. */
enum { MOST = 1000000, MOST_THREADS = 1024, MOST_PER_PROCESSOR = 8 /* without a word */ };
enum { MOST_PAGES = 100000 }; /* more than are read */
#define MOST_PIXELS ((int64_t)MOST * MOST)

_Static_assert(RFX_CLI_MAX_KEPT == 16, "the messages of --keep and --dump say 16");

_Static_assert(RFX_IMAGE_WHOLE_PIXELS == 100000000, "the help of --max-pixels says so");

_Static_assert(RFX_IMAGE_MAX_BANDS == 512, "the message of --channels says 512");

#define AT(member) offsetof(struct rfx_cli_options, member)

static const struct option_row rows[] = {
    {"size", 0, KIND_PAIR, RFX_CLI_SIZE, AT(size), "HxW",
     "image size, rows x columns (default: the model's own)", 0},
    {"memory", 'm', KIND_BYTES, RFX_CLI_PLAN | RFX_CLI_MERGE, AT(memory_bytes), "BYTES",
     "budget of the whole process: 64MiB, 1.5GiB, 200MB, 4096; the planner chooses", 0},
    {"tiles", 't', KIND_PAIR, RFX_CLI_PLAN, AT(tiles), "RxC",
     "tiles over the map where the network is cut, rows x columns", 0},
    {"tiles", 't', KIND_GRID, RFX_CLI_CURVE, AT(tiles), "N|RxC",
     "number of tiles (the most square grid) or rows x columns (default 16)", 0},
    {"baseline", 0, KIND_TEXT, RFX_CLI_CURVE, AT(baseline), "NAME",
     "what counts as a tensor: eager, fused (default; of analyze: as executed) or coalesced", 0},
    {"split", 's', KIND_TEXT, RFX_CLI_PLAN, AT(split), "NAME",
     "where the network is cut (see analyze; default: the planner chooses)", 0},
    {"split", 's', KIND_TEXT, RFX_CLI_PLOT, AT(split), "NAME",
     "where the network is cut (default: where the least memory is needed)", 0},
    {"plot", 0, KIND_TEXT, RFX_CLI_PLOT, AT(plot), "FILE",
     "also draw the memory over the layers, .svg or .png; tiled with --tiles or --split", 0},
    {"plot", 0, KIND_TEXT, RFX_CLI_PICTURE, AT(plot), "FILE",
     "also draw the best placement, .svg or .png: time across, address up", 0},
    {"plot", 0, KIND_TEXT, RFX_CLI_LAYERS, AT(plot), "FILE",
     "with --layers: also draw the roofline and the time of every layer, .svg or .png", 0},
    {"title", 0, KIND_TEXT, RFX_CLI_CHART, AT(title), "TEXT", "above the chart", 0},
    {"subtitle", 0, KIND_TEXT, RFX_CLI_CHART, AT(subtitle), "TEXT", "below the title", 0},
    {"x-label", 0, KIND_TEXT, RFX_CLI_CHART, AT(x_label), "TEXT", "what x is, with its unit", 0},
    {"y-label", 0, KIND_TEXT, RFX_CLI_CHART, AT(y_label), "TEXT", "what y is, with its unit", 0},
    {"log-x", 0, KIND_FLAG, RFX_CLI_CHART, AT(log_x), NULL, "logarithmic x", 0},
    {"log-y", 0, KIND_FLAG, RFX_CLI_CHART, AT(log_y), NULL, "logarithmic y", 0},
    {"bands", 'b', KIND_COUNT, RFX_CLI_PLAN, AT(bands), "ROWS",
     "stream the rows of the image through the network, so many a step", MOST},
    {"strips", 0, KIND_COUNT, RFX_CLI_PLAN, AT(strips), "N",
     "with --bands: in so many column strips, one after the other", MOST},
    {"tight", 0, KIND_FLAG, RFX_CLI_PLAN, AT(tight), NULL,
     "with --bands: new rows share bytes, those that outlive their step are copied away", 0},
    {"untiled", 0, KIND_FLAG, RFX_CLI_PLAN, AT(untiled), NULL, "run whole maps", 0},
    {"row-by-row", 0, KIND_FLAG, RFX_CLI_PLAN, AT(row_by_row), NULL,
     "maps are made row by row, over dead rows of what they are made of where that saves memory",
     0},
    {"weights-by-stage", 0, KIND_FLAG, RFX_CLI_PLAN, AT(weights_by_stage), NULL,
     "weights are in memory only while their stage runs", 0},
    {"spill", 0, KIND_TEXT, RFX_CLI_PLAN, AT(spill), "DIR",
     "large maps that are needed again may wait in nameless files in this folder (default: none)",
     0},
    {"no-inplace", 0, KIND_FLAG, RFX_CLI_PLAN, AT(no_inplace), NULL,
     "no tensor takes over the bytes of another", 0},
    {"no-groups", 0, KIND_FLAG, RFX_CLI_PLAN, AT(no_groups), NULL,
     "every layer by itself, not several at a time in a core's cache", 0},
    {"plan", 'p', KIND_TEXT, RFX_CLI_PLAN, AT(plan_file), "FILE",
     "stages and flags from a file that 'rfexec plan -o' wrote, perhaps edited; it is checked", 0},
    {"pareto", 0, KIND_FLAG, RFX_CLI_FRONT, AT(pareto), NULL,
     "all kinds of plans instead: which budget buys how few MACs and how little time", 0},
    {"for-output", 0, KIND_TEXT, RFX_CLI_FOR, AT(for_output), "FILE",
     "what run's -o will be: writing it counts (default: some .npy); none: no file", 0},
    {"check", 0, KIND_FLAG, RFX_CLI_CHECK, AT(check), NULL,
     "walk the plan with a checker that knows nothing of the planner (with --plan: always)", 0},
    {"keep", 0, KIND_KEEP, RFX_CLI_PLAN, AT(kept), "TENSOR",
     "keep an intermediate tensor as one more output, written by -o F.EXT to F.TENSOR.EXT (again "
     "for more)",
     0},
    {"dump", 0, KIND_DUMP, RFX_CLI_DUMP, AT(kept), "TENSOR=FILE",
     "keep an intermediate tensor and write it to a file: .npy, .tif, .png or .zarr (again for "
     "more)",
     0},
    {"conv", 0, KIND_CONV, RFX_CLI_PLAN, AT(conv), "direct|openblas|winograd",
     "what computes convolutions; each has its own roundings (default: direct)", 0},
    {"threads", 'j', KIND_COUNT, RFX_CLI_PLAN | RFX_CLI_GOLDEN | RFX_CLI_PLACE, AT(threads), "N",
     "threads (default: the processors this process may use)", MOST_THREADS},
    {"output", 'o', KIND_TEXT, RFX_CLI_OUTPUT, AT(output), "FILE",
     "file to write, - for standard output; it appears under its name only when complete", 0},
    {"report", 0, KIND_TEXT, RFX_CLI_PAGE, AT(report), "FILE.html",
     "also a page about the run: plan, memory and time in pictures, previews of the outputs, and "
     "the input with one of them over it",
     0},
    {"overlay", 0, KIND_TEXT, RFX_CLI_OVERLAY, AT(overlay), "FILE",
     "also the input with an output over it, half transparent: .png or .tif", 0},
    {"overlay-of", 0, KIND_TEXT, RFX_CLI_OVERLAY, AT(overlay_of), "labels|C",
     "labels: the largest channel, or a map of labels; or the values of channel C, from 1 "
     "(default: "
     "labels where there are several channels)",
     0},
    {"overlay-output", 0, KIND_TEXT, RFX_CLI_OVERLAY, AT(overlay_output), "NAME",
     "the output that is shown (default: the first that is a map)", 0},
    {"overlay-range", 0, KIND_RANGE, RFX_CLI_OVERLAY, AT(overlay_range), "LO,HI",
     "values of a channel that are clear and brightest (default: its extremes)", 0},
    {"part", 0, KIND_TEXT, RFX_CLI_PART, AT(part), "I/N",
     "only rows I of N of the output and what they need of the image, into a file for 'merge'", 0},
    {"whole-input-hash", 0, KIND_FLAG, RFX_CLI_PART | RFX_CLI_RANKS, AT(whole_input_hash), NULL,
     "of parts and ranks: compare all bytes of the image's file, not only up to 256 MiB of it", 0},
    {"part-rect", 0, KIND_TEXT, RFX_CLI_PART, AT(part_rect), "Y0,X0,Y1,X1",
     "likewise a rectangle of the output", 0},
    {"part-output", 0, KIND_TEXT, RFX_CLI_PART | RFX_CLI_PARTS, AT(part_output), "NAME",
     "the output that parts are of, where there are several", 0},
    {"states", 0, KIND_TEXT, RFX_CLI_PART, AT(states), "FILE",
     "with --part: what merge made of the parts of the round before", 0},
    {"mask", 0, KIND_TEXT, RFX_CLI_PART, AT(mask), "FILE",
     "picture laid over the output: where it is 0 nothing is computed, and 0 written (or no-data)",
     0},
    {"parts", 0, KIND_COUNT, RFX_CLI_PARTS, AT(parts), "N",
     "what each of N parts of the output (run --part I/N) would take", MOST},
    {"list", 0, KIND_TEXT, RFX_CLI_LIST, AT(list), "FILE",
     "instead of INPUT: paths of pictures, one a line (- for standard input), one result each", 0},
    {"out-dir", 0, KIND_TEXT, RFX_CLI_LIST, AT(out_dir), "DIR",
     "with --list: folder of the results, each named as its picture and .npy", 0},
    {"as", 0, KIND_TEXT, RFX_CLI_LIST, AT(as), "KIND",
     "with --list: results are npy (default), tif, ome.tif, png, pfm, zarr or ome.zarr files", 0},
    {"resume", 0, KIND_FLAG, RFX_CLI_LIST, AT(resume), NULL,
     "with --list: results that are there already are not made again", 0},
    {"status", 0, KIND_TEXT, RFX_CLI_MERGE, AT(status), "DIR",
     "merge nothing: say which parts in this folder are there, missing or damaged, and which "
     "commands make the others",
     0},
    {"bits", 0, KIND_COUNT, RFX_CLI_SAMPLES, AT(bits), "N",
     "bits of a sample in the file: PNG 8 (default) or 16, TIFF and Zarr 8, 16 or 32 (default, "
     "float)",
     32},
    {"range", 0, KIND_RANGE, RFX_CLI_SAMPLES, AT(range), "LO,HI",
     "values that become black and white with 8 and 16 bits (default: the output's extremes)", 0},
    {"tiff-tile", 0, KIND_COUNT, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(tiff_tile), "N",
     "a TIFF file in tiles of N x N pixels, such as 256 or 512 (default: strips of rows)", 4096},
    {"tiff-compress", 0, KIND_TEXT, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(tiff_compress), "KIND",
     "a TIFF file compressed by deflate or zstd, in tiles (of 256 unless given); none (default)",
     0},
    {"overviews", 0, KIND_TEXT, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(overviews), "KIND",
     "a tiled TIFF, .ome.tif or .ome.zarr with smaller copies for viewers, by mean or, of labels, "
     "nearest",
     0},
    {"cog", 0, KIND_FLAG, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(cog), NULL,
     "a TIFF file as a cloud optimized GeoTIFF (COG): tiles, overviews (mean unless given), tables "
     "first",
     0},
    {"channel-names", 0, KIND_TEXT, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(channel_names), "FILE",
     "names of the channels of an .ome.tif, one a line", 0},
    {"zarr-chunk", 0, KIND_COUNT, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(zarr_chunk), "N",
     "a Zarr folder in chunks of N x N pixels of a channel (default: of 65536 pixels)", 4096},
    {"zarr-compress", 0, KIND_TEXT, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(zarr_compress), "KIND",
     "a Zarr folder compressed by zstd; none (default)", 0},
    {"zarr-format", 0, KIND_COUNT, RFX_CLI_SAMPLES | RFX_CLI_FOR, AT(zarr_format), "N",
     "version of Zarr that a folder is written in: 2 or 3 (default)", 3},
    {"top", 'k', KIND_COUNT, RFX_CLI_CLASSES, AT(top), "K",
     "how many classes to show when the output is a vector (default 5)", MOST},
    {"labels", 0, KIND_TEXT, RFX_CLI_CLASSES, AT(labels), "FILE", "class names, one a line", 0},
    {"naive", 0, KIND_FLAG, RFX_CLI_NAIVE, AT(naive), NULL,
     "also show the error of the same tiles cut without halos", 0},
    {"against", 0, KIND_BYTES, RFX_CLI_NAIVE, AT(against_bytes), "BYTES",
     "compare with the plan for this budget instead of the untiled run, where that does not fit",
     0},
    {"runs", 'n', KIND_COUNT, RFX_CLI_RUNS, AT(runs), "N", "timed runs (default 5)", MOST},
    {"layers", 0, KIND_FLAG, RFX_CLI_LAYERS, AT(layers), NULL,
     "time, speed and traffic of every layer, and what the machine can do at most", 0},
    {"max-pixels", 0, KIND_COUNT, RFX_CLI_IMAGE, AT(max_pixels), "N",
     "largest picture that is decoded whole (default 100000000; with --memory: what fits)",
     MOST_PIXELS},
    {"page", 0, KIND_INDEX, RFX_CLI_IMAGE, AT(page), "K",
     "picture of a TIFF file, or level of a slide or Zarr folder, as 'rfexec info' numbers them "
     "(default 0; of grey pages of one size all, as bands)",
     MOST_PAGES},
    {"level", 0, KIND_INDEX, RFX_CLI_IMAGE, AT(level), "L",
     "level of a slide or Zarr folder, 0 the largest; also reads a tiled TIFF of any name by "
     "OpenSlide",
     MOST_PAGES},
    {"region", 0, KIND_RECT, RFX_CLI_IMAGE, AT(region), "Y0,X0,Y1,X1",
     "read this rectangle of the picture only: rows Y0 to Y1-1, columns X0 to X1-1", 0},
    {"no-orient", 0, KIND_FLAG, RFX_CLI_IMAGE, AT(no_orient), NULL,
     "read pictures as they are stored: not turned as EXIF or TIFF's tag say", 0},
    {"channels", 0, KIND_BANDS, RFX_CLI_IMAGE, AT(channels), "B,B,...",
     "bands of the picture (pages of a TIFF with grey pages of one size) to take, counted from 1, "
     "in this order (default: all but alpha)",
     0},
    {"bands-from", 0, KIND_TEXT, RFX_CLI_IMAGE, AT(bands_from), "FILE,FILE,...",
     "instead of INPUT: files of one size that have one or more bands each, as satellites' have",
     0},
    {"pad-to", 0, KIND_FIT, RFX_CLI_PLAN, AT(fit), "N[,MODE]",
     "fill pictures up to multiples of N at the right and below, by reflect (default), edge or "
     "zero "
     "(after mean and std); maps that come out are cut back",
     0},
    {"scale", 0, KIND_SCALE, RFX_CLI_IMAGE, AT(scale), "F|raw[,F]",
     "samples 0..255 (16-bit ones divided by 257) are multiplied by this (default 1/255); raw: "
     "samples as they are stored, times F (default 1)",
     0},
    {"mean", 0, KIND_FLOATS, RFX_CLI_IMAGE, AT(mean), "M[,M,...]",
     "then this is subtracted: one number, or one for each channel (default ImageNet's "
     "0.485,0.456,0.406; 0 with --scale raw and for other than 1 or 3 channels)",
     0},
    {"std", 0, KIND_FLOATS, RFX_CLI_IMAGE, AT(std), "S[,S,...]",
     "and this is divided by: one number, or one for each channel (default ImageNet's "
     "0.229,0.224,0.225; 1 with --scale raw and for other than 1 or 3 channels)",
     0},
    {"bgr", 0, KIND_FLAG, RFX_CLI_IMAGE, AT(bgr), NULL,
     "channels in blue, green, red order (mean and std too)", 0},
    {"nodata", 0, KIND_NODATA, RFX_CLI_IMAGE, AT(nodata), "V|nan|file=F",
     "samples V (nan: every NaN; file: those of the picture's GDAL no-data tag) are missing: F is "
     "read in their place, and output pixels made of them become NaN",
     0},
    {"nodata-mark", 0, KIND_TEXT, RFX_CLI_IMAGE, AT(nodata_mark), "field|centre|none",
     "which output pixels --nodata marks: those with a missing sample in their receptive field "
     "(default), or in its centre, or none",
     0},
    {"seed", 0, KIND_SEED, RFX_CLI_SEED, AT(seed), "N",
     "seed of a built-in network's weights (default 0)", 0},
    {"no-fuse", 0, KIND_FLAG, RFX_CLI_FUSE | RFX_CLI_EAGER, AT(no_fuse), NULL,
     "batch norm, activation and Add stay nodes of their own (curves: as --baseline eager)", 0},
    {"no-fuse-add", 0, KIND_FLAG, RFX_CLI_FUSE, AT(no_fuse_add), NULL,
     "only the addition of residual connections stays a node of its own", 0},
    {"strategy", 0, KIND_TEXT, RFX_CLI_PLACE, AT(strategy), "NAME",
     "by-size, by-breadth, strip-packing, first-fit, best-fit, longer-first, bigger-first (greedy); "
     "best, exact: the best of them, improved by an exact search (default)",
     0},
    {"capacity", 0, KIND_BYTES, RFX_CLI_PLACE, AT(capacity_bytes), "BYTES",
     "bytes the arena may have: stops as soon as it is known whether that is enough", 0},
    {"time-limit", 0, KIND_FLOAT, RFX_CLI_PLACE, AT(time_limit), "SECONDS",
     "how long to search at most (default 10)", 0},
    {"all", 0, KIND_FLAG, RFX_CLI_GOLDEN, AT(all), NULL,
     "every network at both sizes (about a minute, 1.1 GiB)", 0},
    {"table", 0, KIND_TEXT, RFX_CLI_GOLDEN, AT(table), "FILE",
     "fingerprints to compare with, as data/fingerprints.csv (default: the program's own)", 0},
    {"exchange", 0, KIND_TEXT, RFX_CLI_RANKS, AT(exchange), "auto|never|TENSOR,...",
     "maps of which ranks exchange rows instead of making halos again: those that are predicted to "
     "pay (auto, the default), none, or these",
     0},
    {"link-bandwidth", 0, KIND_BYTES, RFX_CLI_RANKS, AT(link_bytes), "BYTES",
     "bytes a second between ranks, for --exchange auto (default 1GB); a message is taken to wait "
     "50 us",
     0},
    {"json", 0, KIND_FLAG, RFX_CLI_JSON, AT(json), NULL, "result as JSON on stdout", 0},
    {"csv", 0, KIND_FLAG, RFX_CLI_CSV, AT(csv), NULL, "result as CSV on stdout", 0},
    {"help", 'h', KIND_FLAG, 0, AT(help), NULL, "this text", 0},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static int64_t usable_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

void rfx_cli_options_init(struct rfx_cli_options *options) {
    struct rfx_image_options image = rfx_image_default_options();
    *options = (struct rfx_cli_options){.top = -1, .runs = 5, .level = -1, .page = -1};
    options->scale.factor = image.scale;
}

struct rfx_image_options rfx_cli_image_options(const struct rfx_cli_options *options,
                                               int64_t channels) {
    struct rfx_image_options image = rfx_image_default_options();
    image.scale = options->scale.factor;
    image.raw = options->scale.raw;
    image.nodata = (struct rfx_image_nodata){.given = options->nodata.given,
                                             .value = options->nodata.value,
                                             .fill = options->nodata.fill};
    if (options->mean.n > 0) image.mean = options->mean.values;
    if (options->std.n > 0) image.std = options->std.values;
    image.n_mean = options->mean.n;
    image.n_std = options->std.n;
    image.bgr = options->bgr;
    /* A budget limits pictures by itself. */
    if (options->memory_bytes != 0) image.max_pixels = 0;
    if (options->max_pixels != 0) image.max_pixels = options->max_pixels;
    image.channels = channels;
    image.max_images = options->images;
    image.slide = options->level >= 0;
    image.page = image.slide ? options->level : rfx_cli_page(options);
    image.only_page = options->page >= 0;
    image.region = options->region;
    image.as_stored = options->no_orient;
    image.folder = options->spill;
    if (options->channels.n > 0) image.bands = &options->channels;
    return image;
}

static bool store_kept(char *text, bool dump, struct rfx_cli_kept *kept) {
    char *mark = dump ? strrchr(text, '=') : NULL;
    bool whole = dump ? mark != NULL && mark != text && mark[1] != '\0' : text[0] != '\0';
    if (!whole || kept->n == RFX_CLI_MAX_KEPT) return false;
    if (dump) *mark = '\0';
    kept->tensors[kept->n] = text;
    kept->files[kept->n++] = dump ? mark + 1 : NULL;
    return true;
}

static bool store(const struct option_row *row, char *text, struct rfx_cli_options *options) {
    void *at = (char *)options + row->offset;
    switch (row->kind) {
        case KIND_FLAG:
            *(bool *)at = true;
            return true;
        case KIND_BYTES:
            return rfx_cli_parse_bytes(text, at);
        case KIND_PAIR:
            return rfx_cli_parse_pair(text, at);
        case KIND_GRID:
            return rfx_cli_parse_grid(text, at);
        case KIND_COUNT:
            return rfx_cli_parse_count(text, row->limit, at);
        case KIND_INDEX:
            return rfx_cli_parse_index(text, row->limit, at);
        case KIND_SEED:
            return rfx_cli_parse_seed(text, at);
        case KIND_TEXT:
            *(const char **)at = text;
            return *text != '\0';
        case KIND_FLOAT:
            return rfx_cli_parse_float(text, at);
        case KIND_FLOATS:
            return rfx_cli_parse_floats(text, at);
        case KIND_NODATA:
            return rfx_cli_parse_nodata(text, at);
        case KIND_SCALE:
            return rfx_cli_parse_scale(text, at);
        case KIND_RANGE:
            return rfx_cli_parse_range(text, at);
        case KIND_BANDS:
            return rfx_cli_parse_bands(text, at);
        case KIND_FIT:
            return rfx_cli_parse_fit(text, at);
        case KIND_RECT:
            return rfx_cli_parse_rect(text, at);
        case KIND_KEEP:
            return store_kept(text, false, at);
        case KIND_DUMP:
            return store_kept(text, true, at);
        case KIND_CONV:
            return rfx_conv_choice_find(text, at);
    }
    return false;
}

static bool row_taken(const struct option_row *row, unsigned groups) {
    return row->group == 0 || (row->group & groups) != 0;
}

/* The row of an option by name or letter: this command's, or else any command's. */
static const struct option_row *find_row(const char *name, size_t length, unsigned groups) {
    const struct option_row *other = NULL;
    for (int i = 0; i < N_ROWS; ++i) {
        bool by_name = strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0;
        bool by_letter = length == 1 && rows[i].letter == name[0];
        if (!by_name && !by_letter) continue;
        if (row_taken(&rows[i], groups)) return &rows[i];
        if (other == NULL) other = &rows[i];
    }
    return other;
}

static bool refuse_unknown(const char *arg, const char *name, size_t length, unsigned groups,
                           char *why, size_t why_size) {
    char word[32]; /* longer than any option */
    (void)snprintf(word, sizeof word, "%.*s", length < 31 ? (int)length : 31, name);
    struct rfx_nearest nearest = {.word = word};
    for (int i = 0; i < N_ROWS; ++i)
        if (row_taken(&rows[i], groups)) rfx_nearest_consider(&nearest, rows[i].name);
    if (nearest.name != NULL)
        (void)snprintf(why, why_size, "unknown option '%s': did you mean '--%s'?", arg,
                       nearest.name);
    else
        (void)snprintf(why, why_size, "unknown option '%s'", arg);
    return false;
}

/* What a value of this option looks like. */
static const char *form_of(const struct option_row *row, char *room, size_t size) {
    static const char *const forms[] = {
        [KIND_BYTES] = "a positive number of bytes such as 64MiB",
        [KIND_DUMP] = "TENSOR=FILE, or more than 16 are kept",
        [KIND_KEEP] = "a tensor, or more than 16 are kept",
        [KIND_PAIR] = "rows x columns such as 4x6",
        [KIND_BANDS] = "bands from 1 on such as 4,3,2 (at most 512)",
        [KIND_FIT] = "a multiple such as 32, or 32,edge (reflect, edge or zero)",
        [KIND_RECT] = "a rectangle Y0,X0,Y1,X1 such as 0,0,512,768",
        [KIND_FLOATS] =
            "a number such as 0.5, or one for each channel such as 0.1,0.2 (at most 512)",
        [KIND_NODATA] = "a sample or file, and what replaces it, such as -9999=0, nan=0 or file=0",
        [KIND_SCALE] = "a number such as 0.5, or raw, or raw,0.0001",
        [KIND_RANGE] = "two rising numbers such as 0,1",
        [KIND_GRID] = "a number of tiles or rows x columns such as 4x6",
        [KIND_CONV] = NULL, /* the last */
    };
    if (row->kind != KIND_COUNT && row->kind != KIND_INDEX)
        return forms[row->kind] != NULL ? forms[row->kind] : row->value;
    (void)snprintf(room, size, "a whole number from %d to %lld", row->kind == KIND_COUNT,
                   (long long)row->limit);
    return room;
}

/* Parses the option at argv[*i] and moves *i to the last word it used; `given` are the rows seen.
 */
static bool parse_option(struct rfx_cli_options *options, unsigned groups, int argc, char **argv,
                         int *i, bool given[N_ROWS], char *why, size_t why_size) {
    char *arg = argv[*i];
    bool is_long = arg[1] == '-';
    char *name = arg + (is_long ? 2 : 1);
    size_t length = is_long ? strcspn(name, "=") : 1;
    const struct option_row *row = find_row(name, length, groups);
    if (row != NULL && is_long && length == 1) row = NULL; /* --m is not -m */
    if (row == NULL) return refuse_unknown(arg, name, length, groups, why, why_size);
    if (!row_taken(row, groups)) {
        (void)snprintf(why, why_size, "option '--%s' is not one of this command's", row->name);
        return false;
    }
    char *value = name[length] != '\0' ? name + length + (is_long ? 1 : 0) : NULL;
    if (row->kind == KIND_FLAG && value != NULL) {
        (void)snprintf(why, why_size, "option '--%s' takes no value: '%s'", row->name, arg);
        return false;
    }
    if (row->kind != KIND_FLAG && value == NULL) {
        if (*i + 1 >= argc) {
            (void)snprintf(why, why_size, "option '--%s' needs a value: %s", row->name, row->value);
            return false;
        }
        value = argv[++*i];
    }
    bool again = row->kind == KIND_KEEP || row->kind == KIND_DUMP || row->kind == KIND_FLAG;
    if (given[row - rows] && !again)
        rfx_cli_message("option '--%s' is given twice: the last one counts", row->name);
    given[row - rows] = true;
    if (!store(row, value, options)) {
        char room[48];
        (void)snprintf(why, why_size, "option '--%s': '%s' is not %s", row->name, value,
                       form_of(row, room, sizeof room));
        return false;
    }
    return true;
}

/* The printable form of argument k, cut where it is very long. */
static const char *show(const char *arg, int k) {
    static char forms[RFX_CLI_MAX_PARTS][1024];
    if (rfx_is_printable(arg)) return arg;
    rfx_printable(arg, forms[k], sizeof forms[k]);
    return forms[k];
}

/* --bands-from is the INPUT "bands:FILE,FILE,...". */
static bool take_bands_from(struct rfx_cli_options *options, int max_args, char *why,
                            size_t why_size) {
    static char spec[65536];
    if (options->bands_from == NULL) return true;
    if (options->n_args != 1 || max_args < 2) {
        (void)snprintf(why, why_size, "--bands-from takes the place of INPUT%s",
                       options->n_args > 1 ? ": leave one of them out" : "");
        return false;
    }
    if (snprintf(spec, sizeof spec, "bands:%s", options->bands_from) >= (int)sizeof spec) {
        (void)snprintf(why, why_size, "--bands-from has more than 65000 characters");
        return false;
    }
    options->shown[options->n_args] = show(spec, options->n_args);
    options->args[options->n_args++] = spec;
    return true;
}

bool rfx_cli_options_parse(struct rfx_cli_options *options, unsigned groups, int max_args, int argc,
                           char **argv, char *why, size_t why_size) {
    bool only_args = false, given[N_ROWS] = {false};
    options->n_words = argc;
    options->words = argv;
    options->groups = groups;
    for (int i = 0; i < argc; ++i) {
        const char *arg = argv[i];
        if (!only_args && strcmp(arg, "--") == 0) {
            only_args = true;
        } else if (!only_args && arg[0] == '-' && arg[1] != '\0') {
            if (!parse_option(options, groups, argc, argv, &i, given, why, why_size)) return false;
        } else if (options->n_args >= max_args) {
            (void)snprintf(why, why_size, "one argument too many: '%s'", arg);
            return false;
        } else {
            options->shown[options->n_args] = show(arg, options->n_args);
            options->args[options->n_args++] = arg;
        }
    }
    options->threads_given = options->threads != 0;
    int64_t usable = usable_processors();
    if (!options->threads_given) options->threads = usable;
    if (options->threads > MOST_PER_PROCESSOR * usable)
        rfx_cli_message(
            "--threads %lld: %lld processors may be used; more threads take memory only",
            (long long)options->threads, (long long)usable);
    return options->help || (take_bands_from(options, max_args, why, why_size) &&
                             rfx_cli_options_check(options, why, why_size));
}

/* The row of a word that is an option, and whether the next word is its value. */
static const struct option_row *row_of_word(const char *word, unsigned groups, bool *value) {
    bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    size_t length = is_long ? strcspn(name, "=") : 1;
    const struct option_row *row = find_row(name, length, groups);
    *value = row != NULL && row->kind != KIND_FLAG && name[length] == '\0';
    return row;
}

int rfx_cli_options_words(const struct rfx_cli_options *options, const char *const *without,
                          int n_without, const char **out, int most) {
    int n = 0;
    bool only_args = false;
    for (int i = 0; i < options->n_words; ++i) {
        const char *word = options->words[i];
        bool value = false, drop = false;
        bool option = !only_args && word[0] == '-' && word[1] != '\0';
        only_args = only_args || strcmp(word, "--") == 0;
        const struct option_row *row =
            option && !only_args ? row_of_word(word, options->groups, &value) : NULL;
        for (int k = 0; row != NULL && k < n_without; ++k)
            drop = drop || strcmp(row->name, without[k]) == 0;
        for (int last = i + value; i <= last && i < options->n_words; ++i) {
            if (!drop && n < most) out[n] = options->words[i];
            n += !drop;
        }
        --i;
    }
    return n;
}

bool rfx_cli_options_next(int *at, unsigned groups, struct rfx_cli_option_info *info) {
    while (*at < N_ROWS && !row_taken(&rows[*at], groups)) ++*at;
    if (*at == N_ROWS) return false;
    const struct option_row *row = &rows[(*at)++];
    *info = (struct rfx_cli_option_info){row->name, row->value, row->help, row->letter,
                                         row->kind == KIND_KEEP || row->kind == KIND_DUMP};
    return true;
}
