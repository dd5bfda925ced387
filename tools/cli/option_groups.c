/* Options that several commands share; see options.h. */
#include <stddef.h>

#include "tools/cli/options.h"

const char rfx_cli_heading_plan[] = "plan options (how the network is run)";
const char rfx_cli_heading_input[] = "input options (how the image is read)";
const char rfx_cli_heading_output[] = "output options (files of the outputs)";
const char rfx_cli_heading_parts[] = "parts options (a part of an output, or many images)";
const char rfx_cli_heading_report[] = "report options (what is shown)";

#define GROUP(name, heading, rows) const struct rfx_cli_group name = RFX_CLI_GROUP(heading, rows)

/* Model. */

#define AT(member) offsetof(struct rfx_cli_model_options, member)

static const struct rfx_cli_option size_rows[] = {
    {.name = "size",
     .kind = RFX_CLI_PAIR,
     .at = AT(size),
     .value = "HxW",
     .help = "image size, rows x columns (default: the model's own size)"},
};
GROUP(rfx_cli_size_group, rfx_cli_heading_plan, size_rows);

static const struct rfx_cli_option seed_rows[] = {
    {.name = "seed",
     .kind = RFX_CLI_SEED,
     .at = AT(seed),
     .value = "N",
     .help = "seed of the random weights of a built-in network (default 0)"},
};
GROUP(rfx_cli_seed_group, rfx_cli_heading_plan, seed_rows);

#define NO_FUSE                                                                              \
    {                                                                                        \
        .name = "no-fuse", .kind = RFX_CLI_FLAG, .at = AT(no_fuse),                          \
        .help = "keep batch norm, activation and Add as separate nodes",                     \
        .excludes = "baseline=fused baseline=coalesced", .because = "it is --baseline eager" \
    }

static const struct rfx_cli_option fuse_rows[] = {
    NO_FUSE,
    {.name = "no-fuse-add",
     .kind = RFX_CLI_FLAG,
     .at = AT(no_fuse_add),
     .help = "keep only the Add of residual connections as a separate node"},
};
GROUP(rfx_cli_fuse_group, rfx_cli_heading_plan, fuse_rows);

static const struct rfx_cli_option no_fuse_rows[] = {NO_FUSE};
GROUP(rfx_cli_no_fuse_group, rfx_cli_heading_plan, no_fuse_rows);

static const struct rfx_cli_option network_rows[] = {
    {.name = "conv",
     .kind = RFX_CLI_CONV,
     .at = AT(conv),
     .value = "direct|openblas|winograd",
     .help = "algorithm of the convolutions; each rounds differently (default direct)"},
    {.name = "pad-to",
     .kind = RFX_CLI_FIT,
     .at = AT(fit),
     .value = "N[,MODE]",
     .help =
         "pad the image at the right and below to multiples of N rows and columns, after --mean "
         "and --std; MODE is reflect (default), edge or zero; output maps are cropped back"},
    {.name = "keep",
     .kind = RFX_CLI_KEEP,
     .at = AT(kept),
     .value = "TENSOR",
     .help = "also output this intermediate tensor; -o F.EXT writes it to F.TENSOR.EXT (may be "
             "given again)"},
};
GROUP(rfx_cli_network_group, rfx_cli_heading_plan, network_rows);

static const struct rfx_cli_option dump_rows[] = {
    {.name = "dump",
     .kind = RFX_CLI_DUMP,
     .at = AT(kept),
     .value = "TENSOR=FILE",
     .help =
         "also output this intermediate tensor to FILE, .npy, .tif, .png or .zarr (may be given "
         "again)"},
};
GROUP(rfx_cli_dump_group, rfx_cli_heading_output, dump_rows);

/* Plan. */

#undef AT
#define AT(member) offsetof(struct rfx_cli_plan_options, member)

#define THREADS(place)                                                                        \
    {                                                                                         \
        .name = "threads", .letter = 'j', .kind = RFX_CLI_THREADS, .at = place, .value = "N", \
        .most = RFX_CLI_MOST_THREADS,                                                         \
        .help = "number of threads (default: the processors that this process may use)"       \
    }

static const struct rfx_cli_option plan_rows[] = {
    {.name = "memory",
     .letter = 'm',
     .kind = RFX_CLI_BYTES,
     .at = AT(memory_bytes),
     .value = "BYTES",
     .help =
         "memory budget of the whole process, such as 64MiB, 1.5GiB, 200MB or 4096; the planner "
         "chooses a plan that fits"},
    {.name = "plan",
     .letter = 'p',
     .kind = RFX_CLI_TEXT,
     .at = AT(plan_file),
     .value = "FILE",
     .help =
         "take the plan from a file that 'rfexec plan -o' wrote; it may have been edited and is "
         "checked",
     .excludes = "tiles bands split untiled row-by-row weights-by-stage no-inplace part "
                 "part-rect",
     .because = "--plan says all of the plan"},
    {.name = "tiles",
     .letter = 't',
     .kind = RFX_CLI_PAIR,
     .at = AT(tiles),
     .value = "RxC",
     .help = "cut the feature map at --split into R rows x C columns of tiles; compute the layers "
             "before it tile by tile"},
    {.name = "split",
     .letter = 's',
     .kind = RFX_CLI_TEXT,
     .at = AT(split),
     .value = "NAME",
     .help = "last layer that is computed by tiles, as 'rfexec analyze' names it (default: the "
             "planner chooses)"},
    {.name = "bands",
     .letter = 'b',
     .kind = RFX_CLI_COUNT,
     .at = AT(bands),
     .value = "ROWS",
     .most = RFX_CLI_MOST,
     .help = "stream the image through the network, so many rows in a step",
     .excludes = "tiles"},
    {.name = "strips",
     .kind = RFX_CLI_COUNT,
     .at = AT(strips),
     .value = "N",
     .most = RFX_CLI_MOST,
     .help = "stream the image in N column strips, one after the other",
     .needs = "bands"},
    {.name = "tight",
     .kind = RFX_CLI_FLAG,
     .at = AT(tight),
     .help = "let new rows of all layers share one staging buffer, and copy rows that are needed "
             "after their step out of it: less memory, more copies",
     .needs = "bands"},
    {.name = "untiled",
     .kind = RFX_CLI_FLAG,
     .at = AT(untiled),
     .help = "compute whole feature maps, layer by layer",
     .excludes = "tiles bands split"},
    {.name = "row-by-row",
     .kind = RFX_CLI_FLAG,
     .at = AT(row_by_row),
     .help = "compute whole feature maps row by row, overwriting input rows that are no longer "
             "needed"},
    {.name = "weights-by-stage",
     .kind = RFX_CLI_FLAG,
     .at = AT(weights_by_stage),
     .help = "hold weights in memory only while their stage of the plan runs"},
    {.name = "spill",
     .kind = RFX_CLI_TEXT,
     .at = AT(spill),
     .value = "DIR",
     .help = "let large feature maps that are needed again wait in nameless files in this folder "
             "(default: all stay in memory)",
     .excludes = "untiled tiles split",
     .needs = "memory bands plan"},
    {.name = "no-inplace",
     .kind = RFX_CLI_FLAG,
     .at = AT(no_inplace),
     .help = "compute no layer in place of its input"},
    {.name = "no-groups",
     .kind = RFX_CLI_FLAG,
     .at = AT(no_groups),
     .help = "compute every layer by itself, instead of several at a time in a core's cache"},
    THREADS(AT(threads)),
};
GROUP(rfx_cli_plan_group, rfx_cli_heading_plan, plan_rows);

static const struct rfx_cli_option threads_rows[] = {THREADS(0)};
GROUP(rfx_cli_threads_group, rfx_cli_heading_plan, threads_rows);

static const struct rfx_cli_option check_rows[] = {
    {.name = "check",
     .kind = RFX_CLI_FLAG,
     .at = AT(check),
     .help = "check the plan with a checker that shares no code with the planner (always done with "
             "--plan)"},
};
GROUP(rfx_cli_check_group, rfx_cli_heading_plan, check_rows);

/* Input. */

#undef AT
#define AT(member) offsetof(struct rfx_cli_input_options, member)

enum { MOST_PAGES = 100000 }; /* more than are read */

_Static_assert(RFX_IMAGE_WHOLE_PIXELS == 100000000, "the help of --max-pixels says so");

static const struct rfx_cli_option input_rows[] = {
    {.name = "page",
     .kind = RFX_CLI_INDEX,
     .at = AT(page),
     .value = "K",
     .most = MOST_PAGES,
     .help =
         "page of a TIFF file, or level of a slide or Zarr folder, as 'rfexec info' numbers them "
         "(default 0; grey pages of one size are read together as bands)"},
    {.name = "level",
     .kind = RFX_CLI_INDEX,
     .at = AT(level),
     .value = "L",
     .most = MOST_PAGES,
     .help =
         "level of a slide or Zarr folder, 0 is the largest; reads a tiled TIFF of any name with "
         "OpenSlide",
     .excludes = "page",
     .unless = "page=0"},
    {.name = "region",
     .kind = RFX_CLI_RECT,
     .at = AT(region),
     .value = "Y0,X0,Y1,X1",
     .help = "read only this rectangle of the image: rows Y0 to Y1-1, columns X0 to X1-1"},
    {.name = "no-orient",
     .kind = RFX_CLI_FLAG,
     .at = AT(no_orient),
     .help = "read the image as it is stored, not turned as its EXIF or TIFF orientation says"},
    {.name = "channels",
     .kind = RFX_CLI_BANDS,
     .at = AT(channels),
     .value = "B,B,...",
     .help = "read these bands (of a TIFF with grey pages of one size: pages), counted from 1, in "
             "this order (default: all but alpha)",
     .excludes = "bgr",
     .because = "--channels says the order"},
    {.name = "bands-from",
     .kind = RFX_CLI_TEXT,
     .at = AT(bands_from),
     .value = "FILE,FILE,...",
     .help = "instead of INPUT: read the bands from these files of one size, such as satellites "
             "have"},
    {.name = "max-pixels",
     .kind = RFX_CLI_COUNT,
     .at = AT(max_pixels),
     .value = "N",
     .most = (int64_t)RFX_CLI_MOST * RFX_CLI_MOST,
     .help = "largest image that is decoded as a whole (default 100000000 pixels; with --memory: "
             "what fits)"},
    {.name = "scale",
     .kind = RFX_CLI_SCALE,
     .at = AT(scale),
     .value = "F|raw[,F]",
     .help = "multiply samples of 0..255 (16-bit samples are divided by 257 first) by F (default "
             "1/255); raw: multiply samples as they are stored by F (default 1)"},
    {.name = "mean",
     .kind = RFX_CLI_FLOATS,
     .at = AT(mean),
     .value = "M[,M,...]",
     .help = "then subtract this: one number, or one for each channel (default: ImageNet's "
             "0.485,0.456,0.406; 0 with --scale raw and for other than 1 or 3 channels)"},
    {.name = "std",
     .kind = RFX_CLI_DIVISORS,
     .at = AT(std),
     .value = "S[,S,...]",
     .help = "then divide by this: one number, or one for each channel (default: ImageNet's "
             "0.229,0.224,0.225; 1 with --scale raw and for other than 1 or 3 channels)"},
    {.name = "bgr",
     .kind = RFX_CLI_FLAG,
     .at = AT(bgr),
     .help = "give the network blue, green, red channels; --mean and --std are in this order too"},
    {.name = "nodata",
     .kind = RFX_CLI_NODATA,
     .at = AT(nodata),
     .value = "V|nan|file=F",
     .help =
         "V=F: samples of value V are missing and read as F; nan=F: every NaN is; file=F: those "
         "of the file's GDAL no-data tag; output pixels that depend on them become NaN",
     .excludes = "list mask part part-rect bits=8 bits=16",
     .unless = "nodata-mark=none",
     .because = "it marks output pixels as NaN; --nodata-mark none only fills the image"},
    {.name = "nodata-mark",
     .kind = RFX_CLI_WORD,
     .at = AT(nodata_mark),
     .value = "field|centre|none",
     .help =
         "output pixels that --nodata sets to NaN: those with a missing sample in their receptive "
         "field (default), those with one at its centre, or none",
     .needs = "nodata"},
};
GROUP(rfx_cli_input_group, rfx_cli_heading_input, input_rows);

/* Files of outputs. */

#undef AT
#define AT(member) offsetof(struct rfx_cli_output_options, member)

static const struct rfx_cli_option file_rows[] = {
    {.name = "output",
     .letter = 'o',
     .kind = RFX_CLI_RESULT,
     .at = AT(file),
     .value = "FILE",
     .help = "file to write, - for standard output; it appears under its name when it is complete"},
};
GROUP(rfx_cli_file_group, rfx_cli_heading_output, file_rows);

static const struct rfx_cli_option samples_rows[] = {
    {.name = "bits",
     .kind = RFX_CLI_COUNT,
     .at = AT(bits),
     .value = "N",
     .most = 32,
     .help = "bits of a sample: PNG 8 (default) or 16, TIFF and Zarr 8, 16 or 32 (default, float)"},
    {.name = "range",
     .kind = RFX_CLI_RANGE,
     .at = AT(range),
     .value = "LO,HI",
     .help =
         "values that become black and white in samples of 8 and 16 bits (default: smallest and "
         "largest value of the output)"},
};
GROUP(rfx_cli_samples_group, rfx_cli_heading_output, samples_rows);

static const struct rfx_cli_option format_rows[] = {
    {.name = "tiff-tile",
     .kind = RFX_CLI_SIDE,
     .at = AT(tiff_tile),
     .value = "N",
     .most = 4096,
     .help = "write a TIFF file in tiles of N x N pixels, such as 256 or 512 (default: strips of "
             "rows)"},
    {.name = "tiff-compress",
     .kind = RFX_CLI_WORD,
     .at = AT(tiff_compress),
     .value = "deflate|zstd|none",
     .help = "compress a TIFF file, in tiles (of 256 x 256 unless --tiff-tile is given) (default "
             "none)"},
    {.name = "overviews",
     .kind = RFX_CLI_WORD,
     .at = AT(overviews),
     .value = "mean|nearest",
     .help =
         "add smaller copies for viewers to a tiled TIFF, .ome.tif or .ome.zarr, made by the mean "
         "or, for labels, the nearest pixel"},
    {.name = "cog",
     .kind = RFX_CLI_FLAG,
     .at = AT(cog),
     .help = "write a TIFF file as a cloud optimized GeoTIFF (COG): tiles, overviews (mean unless "
             "--overviews is given), tables first"},
    {.name = "channel-names",
     .kind = RFX_CLI_TEXT,
     .at = AT(channel_names),
     .value = "FILE",
     .help = "read names for the channels of an .ome.tif from this file, one name a line"},
    {.name = "zarr-chunk",
     .kind = RFX_CLI_COUNT,
     .at = AT(zarr_chunk),
     .value = "N",
     .most = 4096,
     .help = "write a Zarr folder in chunks of N x N pixels of a channel (default: 65536 pixels)"},
    {.name = "zarr-compress",
     .kind = RFX_CLI_WORD,
     .at = AT(zarr_compress),
     .value = "zstd|none",
     .help = "compress a Zarr folder (default none)"},
    {.name = "zarr-format",
     .kind = RFX_CLI_COUNT,
     .at = AT(zarr_format),
     .value = "N",
     .least = 2,
     .most = 3,
     .help = "write a Zarr folder in this version of Zarr, 2 or 3 (default 3)"},
};
GROUP(rfx_cli_format_group, rfx_cli_heading_output, format_rows);

static const struct rfx_cli_option planned_rows[] = {
    {.name = "for-output",
     .kind = RFX_CLI_TEXT,
     .at = AT(for_output),
     .value = "FILE",
     .help = "the -o of the run that is planned: writing it takes memory (default: a .npy file; "
             "none: no file)"},
};
GROUP(rfx_cli_planned_group, rfx_cli_heading_output, planned_rows);

/* Parts of outputs. */

#undef AT
#define AT(member) offsetof(struct rfx_cli_part_options, member)

/* What a part has none of: --part and --part-rect write the samples of one output to a .npy file.
 */
#define NOT_OF_PART                                                                         \
    "keep dump report overlay top labels bits range tiff-tile tiff-compress overviews cog " \
    "channel-names zarr-chunk zarr-compress zarr-format"
#define BECAUSE_OF_PART "a part is one .npy file; 'rfexec merge' takes options of other files"

static const struct rfx_cli_option part_rows[] = {
    {.name = "part",
     .kind = RFX_CLI_TEXT,
     .at = AT(part),
     .value = "I/N",
     .help =
         "compute only part I of N of the output's rows and what it needs of the image; 'rfexec "
         "merge' puts the files of all parts together",
     .excludes = "part-rect " NOT_OF_PART,
     .because = BECAUSE_OF_PART,
     .needs = "output"},
    {.name = "part-rect",
     .kind = RFX_CLI_TEXT,
     .at = AT(part_rect),
     .value = "Y0,X0,Y1,X1",
     .help = "compute only this rectangle of the output: rows Y0 to Y1-1, columns X0 to X1-1",
     .excludes = NOT_OF_PART,
     .because = BECAUSE_OF_PART,
     .needs = "output"},
    {.name = "part-output",
     .kind = RFX_CLI_TEXT,
     .at = AT(part_output),
     .value = "NAME",
     .help = "output that --part, --part-rect and --mask are about, where there are several"},
    {.name = "states",
     .kind = RFX_CLI_TEXT,
     .at = AT(states),
     .value = "FILE",
     .help = "with --part: file that merge made of the parts of the round before"},
    {.name = "whole-input-hash",
     .kind = RFX_CLI_FLAG,
     .at = AT(whole_input_hash),
     .help = "let parts compare all bytes of the image file, not only up to 256 MiB of it"},
    {.name = "mask",
     .kind = RFX_CLI_TEXT,
     .at = AT(mask),
     .value = "FILE",
     .help = "image that is laid over the output; where it is 0 nothing is computed and 0 (or the "
             "no-data value) is written",
     .excludes =
         "part part-rect states list keep dump top labels report overlay plan untiled tiles "
         "split bands"},
};
GROUP(rfx_cli_part_group, rfx_cli_heading_parts, part_rows);

static const struct rfx_cli_option parts_rows[] = {
    {.name = "parts",
     .kind = RFX_CLI_COUNT,
     .at = AT(parts),
     .value = "N",
     .most = RFX_CLI_MOST,
     .help = "show what each of N parts of the output (run --part I/N) takes",
     .excludes = "output plan for-output"},
    {.name = "part-output",
     .kind = RFX_CLI_TEXT,
     .at = AT(part_output),
     .value = "NAME",
     .help = "output that --parts is about, where there are several"},
};
GROUP(rfx_cli_parts_group, rfx_cli_heading_parts, parts_rows);

static const struct rfx_cli_option hash_rows[] = {
    {.name = "whole-input-hash",
     .kind = RFX_CLI_FLAG,
     .at = AT(whole_input_hash),
     .help = "let processes compare all bytes of the image file, not only up to 256 MiB of it"},
};
GROUP(rfx_cli_hash_group, rfx_cli_heading_parts, hash_rows);

/* Runs on many images. */

#undef AT
#define AT(member) offsetof(struct rfx_cli_list_options, member)

static const struct rfx_cli_option list_rows[] = {
    {.name = "list",
     .kind = RFX_CLI_TEXT,
     .at = AT(list),
     .value = "FILE",
     .help = "instead of INPUT: run on the images whose paths this file has, one a line (- for "
             "standard input); each image has a result file",
     .needs = "out-dir",
     .excludes = "output report overlay dump top labels"},
    {.name = "out-dir",
     .kind = RFX_CLI_TEXT,
     .at = AT(out_dir),
     .value = "DIR",
     .help = "folder of the results, each named as its image with .npy or the end of --as",
     .needs = "list"},
    {.name = "as",
     .kind = RFX_CLI_FILE_END,
     .at = AT(as),
     .value = "KIND",
     .help = "kind of the result files: npy (default), tif, ome.tif, png, pfm, zarr or ome.zarr",
     .needs = "list"},
    {.name = "resume",
     .kind = RFX_CLI_FLAG,
     .at = AT(resume),
     .help = "skip images whose results are there already",
     .needs = "list"},
};
GROUP(rfx_cli_list_group, rfx_cli_heading_parts, list_rows);

/* Reports. */

#undef AT
#define AT(member) offsetof(struct rfx_cli_report_options, member)

static const struct rfx_cli_option classes_rows[] = {
    {.name = "top",
     .letter = 'k',
     .kind = RFX_CLI_COUNT,
     .at = AT(top),
     .value = "K",
     .most = RFX_CLI_MOST,
     .help = "show the K classes of the largest values, where the output is a vector (default 5)"},
    {.name = "labels",
     .kind = RFX_CLI_TEXT,
     .at = AT(labels),
     .value = "FILE",
     .help = "read names of the classes from this file, one name a line"},
};
GROUP(rfx_cli_classes_group, rfx_cli_heading_report, classes_rows);

#define OF_OVERLAY .needs = "overlay report"

static const struct rfx_cli_option pictures_rows[] = {
    {.name = "report",
     .kind = RFX_CLI_RESULT,
     .at = AT(page),
     .value = "FILE.html",
     .ends = ".html .htm",
     .help =
         "write a page about the run: charts of plan, memory and time, previews of the outputs, "
         "and the input with one output over it"},
    {.name = "overlay",
     .kind = RFX_CLI_RESULT,
     .at = AT(overlay),
     .value = "FILE",
     .ends = ".png .tif .tiff",
     .help = "write the input with an output over it, half transparent, as .png or .tif"},
    {.name = "overlay-of",
     .kind = RFX_CLI_TEXT,
     .at = AT(overlay_of),
     .value = "labels|C",
     .help =
         "labels: show the channel of the largest value, or a map of labels; C: show the values "
         "of channel C, counted from 1 (default: labels where there are several channels)",
     OF_OVERLAY},
    {.name = "overlay-output",
     .kind = RFX_CLI_TEXT,
     .at = AT(overlay_output),
     .value = "NAME",
     .help = "output to show (default: the first that is a map)",
     OF_OVERLAY},
    {.name = "overlay-range",
     .kind = RFX_CLI_RANGE,
     .at = AT(overlay_range),
     .value = "LO,HI",
     .help = "values of the channel that are shown clear and brightest (default: its smallest and "
             "largest value)",
     OF_OVERLAY},
};
GROUP(rfx_cli_pictures_group, rfx_cli_heading_report, pictures_rows);

static const struct rfx_cli_option json_rows[] = {
    {.name = "json", .kind = RFX_CLI_FLAG, .help = "print the result as JSON", .excludes = "csv"},
};
GROUP(rfx_cli_json_group, rfx_cli_heading_report, json_rows);

static const struct rfx_cli_option csv_rows[] = {
    {.name = "csv", .kind = RFX_CLI_FLAG, .help = "print the result as CSV"},
};
GROUP(rfx_cli_csv_group, rfx_cli_heading_report, csv_rows);
