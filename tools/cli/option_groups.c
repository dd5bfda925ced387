/* Options that several commands share; see options.h. */
#include <stddef.h>

#include "tools/cli/options.h"

const char rfx_cli_heading_plan[] = "plan options (how the network is run)";
const char rfx_cli_heading_input[] = "input options (how the image is read)";
const char rfx_cli_heading_output[] = "output options (files of the outputs)";
const char rfx_cli_heading_answers[] = "answer options (what is found in the outputs)";
const char rfx_cli_heading_parts[] = "parts options (a part of an output, or many images)";
const char rfx_cli_heading_report[] = "report options (what is shown)";

#define GROUP(name, heading, rows) const struct rfx_cli_group name = RFX_CLI_GROUP(heading, rows)

/* Model. */

static const struct rfx_cli_option size_rows[] = {
    RFX_CLI_OPTION(rfx_cli_model_options, "size", PAIR, size, "HxW",
                   "image size, rows x columns (default: the model's own size)"),
};
GROUP(rfx_cli_size_group, rfx_cli_heading_plan, size_rows);

static const struct rfx_cli_option seed_rows[] = {
    RFX_CLI_OPTION(rfx_cli_model_options, "seed", SEED, seed, "N",
                   "seed of the random weights of a built-in network (default 0)"),
};
GROUP(rfx_cli_seed_group, rfx_cli_heading_plan, seed_rows);

static const struct rfx_cli_option int8_rows[] = {
    RFX_CLI_OPTION(rfx_cli_model_options, "int8", INT8, int8, "ort|spec",
                   "arithmetic of 8-bit networks: integers with the bytes of ONNX Runtime (default "
                   "ort), or float32 between DequantizeLinear and QuantizeLinear as in the file"),
};
GROUP(rfx_cli_int8_group, rfx_cli_heading_plan, int8_rows);

#define NO_FUSE                                                             \
    RFX_CLI_OPTION(rfx_cli_model_options, "no-fuse", FLAG, no_fuse, NULL,   \
                   "keep batch norm, activation and Add as separate nodes", \
                   .excludes = "baseline=fused baseline=coalesced",         \
                   .because = "it is --baseline eager")

static const struct rfx_cli_option fuse_rows[] = {
    NO_FUSE,
    RFX_CLI_OPTION(rfx_cli_model_options, "no-fuse-add", FLAG, no_fuse_add, NULL,
                   "keep only the Add of residual connections as a separate node"),
};
GROUP(rfx_cli_fuse_group, rfx_cli_heading_plan, fuse_rows);

static const struct rfx_cli_option no_fuse_rows[] = {NO_FUSE};
GROUP(rfx_cli_no_fuse_group, rfx_cli_heading_plan, no_fuse_rows);

static const struct rfx_cli_option network_rows[] = {
    RFX_CLI_OPTION(rfx_cli_model_options, "conv", CONV, conv, "direct|openblas|winograd",
                   "algorithm of the convolutions; each rounds differently (default direct)"),
    RFX_CLI_OPTION(rfx_cli_model_options, "dequantize", FLAG, dequantize, NULL,
                   "write outputs of uint8 and int8 as float32, (element - zero point) * scale, "
                   "where the scale is known from the model"),
    RFX_CLI_OPTION(
        rfx_cli_model_options, "pad-to", FIT, fit, "N[,MODE]",
        "pad the image at the right and below to multiples of N rows and columns, after --mean and "
        "--std; MODE is reflect (default), edge or zero; output maps are cropped back"),
    RFX_CLI_OPTION(rfx_cli_model_options, "keep", KEEP, kept, "TENSOR",
                   "also output this intermediate tensor; -o F.EXT writes it to F.TENSOR.EXT (may "
                   "be given again)"),
};
GROUP(rfx_cli_network_group, rfx_cli_heading_plan, network_rows);

static const struct rfx_cli_option dump_rows[] = {
    RFX_CLI_OPTION(rfx_cli_model_options, "dump", DUMP, kept, "TENSOR=FILE",
                   "also output this intermediate tensor to FILE, .npy, .tif, .png or .zarr (may "
                   "be given again)"),
};
GROUP(rfx_cli_dump_group, rfx_cli_heading_output, dump_rows);

/* Plan. */

#define THREADS(type, member)                                                               \
    RFX_CLI_OPTION(type, "threads", THREADS, member, "N",                                   \
                   "number of threads (default: the processors that this process may use)", \
                   .letter = 'j', .most = RFX_CLI_MOST_THREADS)

static const struct rfx_cli_option plan_rows[] = {
    RFX_CLI_OPTION(rfx_cli_plan_options, "memory", BYTES, memory_bytes, "BYTES",
                   "memory budget of the whole process, such as 64MiB, 1.5GiB, 200MB or 4096; the "
                   "planner chooses a plan that fits",
                   .letter = 'm'),
    RFX_CLI_OPTION(
        rfx_cli_plan_options, "plan", TEXT, plan_file, "FILE",
        "take the plan from a file that 'rfexec plan -o' wrote; it may have been edited and is "
        "checked",
        .letter = 'p',
        .excludes =
            "tiles bands split untiled row-by-row weights-by-stage no-inplace part part-rect",
        .because = "--plan says all of the plan"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "tiles", PAIR, tiles, "RxC",
                   "cut the feature map at --split into R rows x C columns of tiles; compute the "
                   "layers before it tile by tile",
                   .letter = 't'),
    RFX_CLI_OPTION(rfx_cli_plan_options, "split", TEXT, split, "NAME",
                   "last layer that is computed by tiles, as 'rfexec analyze' names it (default: "
                   "the planner chooses)",
                   .letter = 's'),
    RFX_CLI_OPTION(rfx_cli_plan_options, "bands", COUNT, bands, "ROWS",
                   "stream the image through the network, so many rows in a step", .letter = 'b',
                   .most = RFX_CLI_MOST, .excludes = "tiles"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "strips", COUNT, strips, "N",
                   "stream the image in N column strips, one after the other", .most = RFX_CLI_MOST,
                   .needs = "bands"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "tight", FLAG, tight, NULL,
                   "let new rows of all layers share one staging buffer, and copy rows that are "
                   "needed after their step out of it: less memory, more copies",
                   .needs = "bands"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "untiled", FLAG, untiled, NULL,
                   "compute whole feature maps, layer by layer", .excludes = "tiles bands split"),
    RFX_CLI_OPTION(
        rfx_cli_plan_options, "row-by-row", FLAG, row_by_row, NULL,
        "compute whole feature maps row by row, overwriting input rows that are no longer needed"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "weights-by-stage", FLAG, weights_by_stage, NULL,
                   "hold weights in memory only while their stage of the plan runs"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "spill", TEXT, spill, "DIR",
                   "let large feature maps that are needed again wait in nameless files in this "
                   "folder (default: all stay in memory)",
                   .excludes = "untiled tiles split", .needs = "memory bands plan"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "no-inplace", FLAG, no_inplace, NULL,
                   "compute no layer in place of its input"),
    RFX_CLI_OPTION(rfx_cli_plan_options, "no-groups", FLAG, no_groups, NULL,
                   "compute every layer by itself, instead of several at a time in a core's cache"),
    THREADS(rfx_cli_plan_options, threads),
};
GROUP(rfx_cli_plan_group, rfx_cli_heading_plan, plan_rows);

struct threads { /* of commands that have no plan options */
    struct rfx_cli_threads threads;
};
static const struct rfx_cli_option threads_rows[] = {THREADS(threads, threads)};
GROUP(rfx_cli_threads_group, rfx_cli_heading_plan, threads_rows);

/* Input. */

enum { MOST_PAGES = 100000 }; /* more than the number of pages that can be read */

_Static_assert(RFX_IMAGE_WHOLE_PIXELS == 100000000, "the help of --max-pixels says so");

static const struct rfx_cli_option input_rows[] = {
    RFX_CLI_OPTION(rfx_cli_input_options, "page", INDEX, page, "K",
                   "page of a TIFF file, or level of a slide or Zarr folder, as 'rfexec info' "
                   "numbers them (default 0; grey pages of one size are read together as bands)",
                   .most = MOST_PAGES),
    RFX_CLI_OPTION(rfx_cli_input_options, "level", INDEX, level, "L",
                   "level of a slide or Zarr folder, 0 is the largest; reads a tiled TIFF of any "
                   "name with OpenSlide",
                   .most = MOST_PAGES, .excludes = "page", .unless = "page=0"),
    RFX_CLI_OPTION(rfx_cli_input_options, "region", RECT, region, "Y0,X0,Y1,X1",
                   "read only this rectangle of the image: rows Y0 to Y1-1, columns X0 to X1-1"),
    RFX_CLI_OPTION(
        rfx_cli_input_options, "no-orient", FLAG, no_orient, NULL,
        "read the image as it is stored, not turned as its EXIF or TIFF orientation says"),
    RFX_CLI_OPTION(rfx_cli_input_options, "channels", BANDS, channels, "B,B,...",
                   "read these bands (of a TIFF with grey pages of one size: pages), counted from "
                   "1, in this order (default: all but alpha)",
                   .excludes = "bgr", .because = "--channels says the order"),
    RFX_CLI_OPTION(
        rfx_cli_input_options, "bands-from", TEXT, bands_from, "FILE,FILE,...",
        "instead of INPUT: read the bands from these files of one size, such as satellites have"),
    RFX_CLI_OPTION(rfx_cli_input_options, "max-pixels", COUNT, max_pixels, "N",
                   "largest image that is decoded as a whole (default 100000000 pixels; with "
                   "--memory: what fits)",
                   .most = (int64_t)RFX_CLI_MOST * RFX_CLI_MOST),
    RFX_CLI_OPTION(rfx_cli_input_options, "scale", SCALE, scale, "F|raw[,F]",
                   "multiply samples of 0..255 (16-bit samples are divided by 257 first) by F "
                   "(default 1/255); raw: multiply samples as they are stored by F (default 1)"),
    RFX_CLI_OPTION(rfx_cli_input_options, "mean", FLOATS, mean, "M[,M,...]",
                   "then subtract this: one number, or one for each channel (default: ImageNet's "
                   "0.485,0.456,0.406; 0 with --scale raw and for other than 1 or 3 channels)"),
    RFX_CLI_OPTION(rfx_cli_input_options, "std", DIVISORS, std, "S[,S,...]",
                   "then divide by this: one number, or one for each channel (default: ImageNet's "
                   "0.229,0.224,0.225; 1 with --scale raw and for other than 1 or 3 channels)"),
    RFX_CLI_OPTION(
        rfx_cli_input_options, "bgr", FLAG, bgr, NULL,
        "give the network blue, green, red channels; --mean and --std are in this order too"),
    RFX_CLI_OPTION(
        rfx_cli_input_options, "nodata", NODATA, nodata, "V|nan|file=F",
        "V=F: samples of value V are missing and read as F; nan=F: every NaN is; file=F: those of "
        "the file's GDAL no-data tag; output pixels that depend on them become NaN",
        .excludes = "list mask part part-rect bits=8 bits=16", .unless = "nodata-mark=none",
        .because = "it marks output pixels as NaN; --nodata-mark none only fills the image"),
    RFX_CLI_OPTION(rfx_cli_input_options, "nodata-mark", WORD, nodata_mark, "field|centre|none",
                   "output pixels that --nodata sets to NaN: those with a missing sample in their "
                   "receptive field (default), those with one at its centre, or none",
                   .needs = "nodata"),
};
GROUP(rfx_cli_input_group, rfx_cli_heading_input, input_rows);

/* Files of outputs. */

static const struct rfx_cli_option file_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_output_options, "output", RESULT, file, "FILE",
        "file to write, - for standard output; it appears under its name when it is complete",
        .letter = 'o'),
};
GROUP(rfx_cli_file_group, rfx_cli_heading_output, file_rows);

static const struct rfx_cli_option samples_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_output_options, "bits", COUNT, bits, "N",
        "bits of a sample: PNG 8 (default) or 16, TIFF and Zarr 8, 16 or 32 (default, float)",
        .most = 32),
    RFX_CLI_OPTION(rfx_cli_output_options, "range", RANGE, range, "LO,HI",
                   "values that become black and white in samples of 8 and 16 bits (default: "
                   "smallest and largest value of the output)"),
};
GROUP(rfx_cli_samples_group, rfx_cli_heading_output, samples_rows);

static const struct rfx_cli_option format_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_output_options, "tiff-tile", SIDE, tiff_tile, "N",
        "write a TIFF file in tiles of N x N pixels, such as 256 or 512 (default: strips of rows)",
        .most = 4096),
    RFX_CLI_OPTION(
        rfx_cli_output_options, "tiff-compress", WORD, tiff_compress, "deflate|zstd|none",
        "compress a TIFF file, in tiles (of 256 x 256 unless --tiff-tile is given) (default none)"),
    RFX_CLI_OPTION(rfx_cli_output_options, "overviews", WORD, overviews, "mean|nearest",
                   "add smaller copies for viewers to a tiled TIFF, .ome.tif or .ome.zarr, made by "
                   "the mean or, for labels, the nearest pixel"),
    RFX_CLI_OPTION(rfx_cli_output_options, "cog", FLAG, cog, NULL,
                   "write a TIFF file as a cloud optimized GeoTIFF (COG): tiles, overviews (mean "
                   "unless --overviews is given), tables first"),
    RFX_CLI_OPTION(rfx_cli_output_options, "channel-names", TEXT, channel_names, "FILE",
                   "read names for the channels of an .ome.tif from this file, one name a line"),
    RFX_CLI_OPTION(
        rfx_cli_output_options, "zarr-chunk", COUNT, zarr_chunk, "N",
        "write a Zarr folder in chunks of N x N pixels of a channel (default: 65536 pixels)",
        .most = 4096),
    RFX_CLI_OPTION(rfx_cli_output_options, "zarr-compress", WORD, zarr_compress, "zstd|none",
                   "compress a Zarr folder (default none)"),
    RFX_CLI_OPTION(rfx_cli_output_options, "zarr-format", COUNT, zarr_format, "N",
                   "write a Zarr folder in this version of Zarr, 2 or 3 (default 3)", .least = 2,
                   .most = 3),
};
GROUP(rfx_cli_format_group, rfx_cli_heading_output, format_rows);

/* What is found in outputs. */

static const struct rfx_cli_option boxes_rows[] = {
    RFX_CLI_OPTION(rfx_cli_answer_options, "boxes", RESULT, boxes, "FILE",
                   "find the boxes in a detector's output, suppress those that overlap over the "
                   "whole picture, and write them as .json, .coco.json, .csv or .geojson",
                   .ends = ".json .csv .geojson"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "boxes-of", TEXT, boxes_of, "NAME",
                   "output that has the boxes (default: the first whose shape is a detector's)",
                   .needs = "boxes"),
};
GROUP(rfx_cli_boxes_group, rfx_cli_heading_answers, boxes_rows);

static const struct rfx_cli_option detector_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_answer_options, "head", TEXT, head, "NAME|FILE.json",
        "form of the detector's output: yolov8 (also 9, 11, 12), yolov8-seg with masks, "
        "yolov8-pose or -pose-xy with key points, yolov8-obb with angles, yolov5, yolov7, "
        "yolox, yolov10, yolo26 (also with these endings), yunet, rfb or centernet (default: the "
        "one that the shape or the outputs' names fit); or a file that describes any other head, "
        "such as that of SSD, RetinaNet or FCOS "
        "(docs/answers.md)",
        .needs = "boxes output as parts"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "class-count", COUNT, class_count, "N",
                   "number of classes, where further channels, of masks or key points, are behind "
                   "them (default: all channels behind the box are classes; with yolov8-pose 1, "
                   "with yolov8-seg all but 32)",
                   .most = RFX_CLI_MOST, .needs = "boxes output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "score", NUMBER, score, "S",
                   "leave out boxes with scores up to S (default 0.25), of --text those below S "
                   "(default 0.6)",
                   .needs = "boxes text output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "iou", NUMBER, overlap, "T",
                   "of two boxes whose intersection is more than T of their union, keep the one of "
                   "the higher score (default 0.45)",
                   .needs = "boxes output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "agnostic", FLAG, agnostic, NULL,
                   "let boxes of different classes suppress each other",
                   .needs = "boxes output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "soft-nms", FLAG, soft, NULL,
                   "lower the scores of boxes that overlap one of a higher score, by a Gaussian of "
                   "sigma 0.5, in place of dropping them; slow where many boxes overlap",
                   .needs = "boxes output as", .excludes = "iou"),
    RFX_CLI_OPTION(
        rfx_cli_answer_options, "max-boxes", COUNT, most_boxes, "N",
        "candidates above the score that are held at most, in 48 bytes each, with an "
        "angle in 76; with points or masks 16 more and 4 for each number (default 100000)",
        .most = 1000000000, .needs = "boxes output as"),
};
GROUP(rfx_cli_detector_group, rfx_cli_heading_answers, detector_rows);

#define OF_ANSWER .needs = "regions output as"

static const struct rfx_cli_option regions_rows[] = {
    RFX_CLI_OPTION(rfx_cli_answer_options, "regions", RESULT, regions, "FILE",
                   "find the connected regions of a map and write their polygons, areas and scores "
                   "as .geojson or .csv ('-o FILE.geojson' does the same for each output)",
                   .ends = ".geojson .csv"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "regions-of", TEXT, regions_of, "NAME",
                   "output in which regions are found (default: the first that is a map)",
                   .needs = "regions"),
};
GROUP(rfx_cli_regions_group, rfx_cli_heading_answers, regions_rows);

static const struct rfx_cli_option points_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_answer_options, "points", RESULT, points, "FILE",
        "find the peaks of a map, such as middles of objects in a heat map: pixels above "
        "--threshold that no pixel within --distance exceeds; write them as .geojson or "
        ".csv ('-o FILE.points.geojson' and '-o FILE.points.csv' do the same for each output)",
        .ends = ".geojson .csv"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "points-of", TEXT, points_of, "NAME",
                   "output in which points are found (default: the first that is a map)",
                   .needs = "points"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "summary", RESULT, summary, "FILE",
                   "count pixels, area and share of each class of a map, and its smallest, largest "
                   "and mean value where it is no map of labels; write them as .json or .csv "
                   "('-o FILE.summary.json' and '-o FILE.summary.csv' do the same for each output)",
                   .ends = ".json .csv"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "summary-of", TEXT, summary_of, "NAME",
                   "output that is counted (default: the first that is a map)", .needs = "summary"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "text", RESULT, text, "FILE",
                   "find boxes of text, with any angle, in the probability map of a DB network as "
                   "PaddleOCR does; write them as .json, .csv or .geojson ('-o FILE.text.json', "
                   "'-o FILE.text.csv' and '-o FILE.text.geojson' do the same for each output)",
                   .ends = ".json .csv .geojson"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "text-of", TEXT, text_of, "NAME",
                   "output that has the map (default: the first that is a map of one channel)",
                   .needs = "text"),
};
GROUP(rfx_cli_points_group, rfx_cli_heading_answers, points_rows);

static const struct rfx_cli_option answers_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_answer_options, "threshold", FLOATS, thresholds, "T[,T...]",
        "each channel is a class of the pixels whose value is above T; one T for all "
        "channels or one for each (default: the class of a pixel is its largest channel, "
        "or its label where there is one channel of integers; with --text: 0.3)",
        .needs = "regions points summary text output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "distance", COUNT, distance, "D",
                   "a peak is the largest value of 2 D + 1 rows and columns of the map around it, "
                   "and the first of equal ones; memory grows with D (default 1)",
                   .most = INT32_MAX, .needs = "points output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "bins", BINS, bins, "N,LOW,HIGH",
                   "add a histogram of each channel to the summary: numbers of values in N equal "
                   "bins from LOW to HIGH, below and above (not for maps of labels)",
                   .needs = "summary output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "quantiles", QUANTILES, quantiles, "Q[,Q...]",
                   "add exact quantiles of each channel to the summary, with --within of each "
                   "polygon too: 0.5 is the median; the values wait in a file without a name "
                   "beside it (not for maps of labels)",
                   .needs = "summary output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "within", TEXT, within, "AREAS",
                   "write the summary once more for each polygon of this GeoJSON file, of the "
                   "pixels whose centres lie inside; its coordinates are those of --coordinates",
                   .needs = "summary output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "unclip", NUMBER, growth, "R",
                   "boxes of text grow on all sides by R times their area over their perimeter "
                   "(default 1.5)",
                   .needs = "text output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "connect", WORD, connect, "4|8",
                   "pixels of a region are connected by their sides, or by sides and corners "
                   "(default 4)",
                   OF_ANSWER),
    RFX_CLI_OPTION(rfx_cli_answer_options, "simplify", NUMBER, tolerance, "T",
                   "draw the polygons of regions with fewer points, at most T pixels of the map "
                   "from the exact ones (up to 0.7); neighbours keep their common edges",
                   OF_ANSWER),
    RFX_CLI_OPTION(rfx_cli_answer_options, "min-area", COUNT, least_area, "N",
                   "leave out regions of fewer than N pixels of the map", .most = INT64_MAX,
                   OF_ANSWER),
    RFX_CLI_OPTION(rfx_cli_answer_options, "all-labels", FLAG, all_labels, NULL,
                   "find regions of label 0, or of the first channel, too (default: it is the "
                   "background)",
                   .excludes = "threshold", OF_ANSWER),
    RFX_CLI_OPTION(rfx_cli_answer_options, "classes", TEXT, classes, "FILE",
                   "read names of the classes from this file, one name a line, label 0 first",
                   .needs = "regions points summary text boxes output as"),
    RFX_CLI_OPTION(rfx_cli_answer_options, "coordinates", WORD, coordinates, "pixels|map",
                   "write coordinates in pixels of the picture or in its coordinate system "
                   "(default: map where the picture has one)",
                   .needs = "regions points summary text boxes output as"),
    RFX_CLI_OPTION(
        rfx_cli_answer_options, "answer-memory", BYTES, memory_bytes, "BYTES",
        "memory for regions of --regions and --text that are not complete yet, for the polygons "
        "of a mask of --boxes, for the areas of --within, or for nodes whose sizes depend on "
        "data; it is a part of the budget (default 8MiB with --memory, for such nodes more; else "
        "no limit)",
        .needs = "regions text boxes within output as"),
};
GROUP(rfx_cli_answers_group, rfx_cli_heading_answers, answers_rows);

/* Parts of outputs. */

/* Options that do not go with --part and --part-rect, which write the samples of one output to a
 * .npy file. */
#define NOT_OF_PART                                                                                \
    "keep dump report viewer overlay top labels bits range tiff-tile tiff-compress overviews cog " \
    "channel-names zarr-chunk zarr-compress zarr-format regions points summary text boxes "        \
    "threshold distance bins quantiles within simplify unclip"
#define BECAUSE_OF_PART "a part is one .npy file; 'rfexec merge' takes options of other files"

static const struct rfx_cli_option part_rows[] = {
    RFX_CLI_OPTION(rfx_cli_part_options, "part", TEXT, part, "I/N",
                   "compute only part I of N of the output's rows and what it needs of the image; "
                   "'rfexec merge' puts the files of all parts together",
                   .excludes = "part-rect " NOT_OF_PART, .because = BECAUSE_OF_PART,
                   .needs = "output"),
    RFX_CLI_OPTION(rfx_cli_part_options, "part-rect", TEXT, part_rect, "Y0,X0,Y1,X1",
                   "compute only this rectangle of the output: rows Y0 to Y1-1, columns X0 to X1-1",
                   .excludes = NOT_OF_PART, .because = BECAUSE_OF_PART, .needs = "output"),
    RFX_CLI_OPTION(rfx_cli_part_options, "part-output", TEXT, part_output, "NAME",
                   "output that --part, --part-rect and --mask are about, where there are several"),
    RFX_CLI_OPTION(rfx_cli_part_options, "states", TEXT, states, "FILE",
                   "with --part: file that merge made of the parts of the round before"),
    RFX_CLI_OPTION(rfx_cli_part_options, "whole-input-hash", FLAG, whole_input_hash, NULL,
                   "let parts compare all bytes of the image file, not only up to 256 MiB of it"),
    RFX_CLI_OPTION(rfx_cli_part_options, "mask", TEXT, mask, "FILE",
                   "image that is laid over the output; where it is 0 nothing is computed and 0 "
                   "(or the no-data value) is written",
                   .excludes =
                       "part part-rect states list keep dump top labels report viewer overlay "
                       "regions points summary text boxes plan untiled tiles split bands"),
};
GROUP(rfx_cli_part_group, rfx_cli_heading_parts, part_rows);

/* Runs on many images. */

static const struct rfx_cli_option list_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_list_options, "list", TEXT, list, "FILE",
        "instead of INPUT: run on the images whose paths this file has, one a line (- "
        "for standard input); each image has a result file",
        .needs = "out-dir",
        .excludes =
            "output report viewer overlay dump top labels regions points summary text boxes"),
    RFX_CLI_OPTION(rfx_cli_list_options, "out-dir", TEXT, out_dir, "DIR",
                   "folder of the results, each named as its image with .npy or the end of --as",
                   .needs = "list"),
    RFX_CLI_OPTION(
        rfx_cli_list_options, "as", FILE_END, as, "KIND",
        "kind of the result files: npy (default), tif, ome.tif, png, pfm, zarr, ome.zarr, or "
        "what is found as geojson, csv, json, coco.json, boxes.geojson, boxes.csv, points.geojson, "
        "points.csv, summary.json, summary.csv, text.json, text.csv or text.geojson",
        .needs = "list"),
    RFX_CLI_OPTION(
        rfx_cli_list_options, "table", RESULT, table, "FILE",
        "with --as csv, boxes.csv, points.csv, summary.csv or text.csv: write the lines of all "
        "result files to this .csv file too, with the path of the image in a first column",
        .needs = "as", .ends = ".csv"),
    RFX_CLI_OPTION(rfx_cli_list_options, "resume", FLAG, resume, NULL,
                   "skip images whose results are there already", .needs = "list"),
};
GROUP(rfx_cli_list_group, rfx_cli_heading_parts, list_rows);

/* Reports. */

static const struct rfx_cli_option classes_rows[] = {
    RFX_CLI_OPTION(
        rfx_cli_report_options, "top", COUNT, top, "K",
        "show the K classes of the largest values, where the output is a vector (default 5)",
        .letter = 'k', .most = RFX_CLI_MOST),
    RFX_CLI_OPTION(rfx_cli_report_options, "labels", TEXT, labels, "FILE",
                   "read names of the classes from this file, one name a line"),
};
GROUP(rfx_cli_classes_group, rfx_cli_heading_report, classes_rows);

#define OF_OVERLAY .needs = "overlay report viewer"

static const struct rfx_cli_option pictures_rows[] = {
    RFX_CLI_OPTION(rfx_cli_report_options, "report", RESULT, page, "FILE.html",
                   "write a page about the run: charts of plan, memory and time, previews of the "
                   "outputs, and the input with one output over it",
                   .ends = ".html .htm"),
    RFX_CLI_OPTION(rfx_cli_report_options, "viewer", TEXT, viewer, "DIR",
                   "write a new folder with a page, index.html, that shows the input at any size, "
                   "as tiles, with an output over it and what --regions, --points, --text and "
                   "--boxes find"),
    RFX_CLI_OPTION(
        rfx_cli_report_options, "overlay", RESULT, overlay, "FILE",
        "write the input with an output over it, half transparent, as .png or .tif; with "
        "--boxes the boxes and their labels, with --regions the regions and their "
        "outlines, with --points rings, with --text the outlines of the boxes",
        .ends = ".png .tif .tiff"),
    RFX_CLI_OPTION(
        rfx_cli_report_options, "overlay-of", TEXT, overlay_of, "labels|C",
        "labels: show the channel of the largest value, or a map of labels; C: show the values of "
        "channel C, counted from 1 (default: what --regions and --boxes find; else labels where "
        "there are several channels)",
        OF_OVERLAY),
    RFX_CLI_OPTION(rfx_cli_report_options, "overlay-output", TEXT, overlay_output, "NAME",
                   "output to show (default: that of --regions, or the first that is a map)",
                   OF_OVERLAY),
    RFX_CLI_OPTION(rfx_cli_report_options, "cam", TEXT, cam, "CLASS",
                   "show where a classifier sees class CLASS, numbered as --top prints it: its "
                   "class-activation map, the last map weighted by the last layer",
                   .excludes = "overlay-of overlay-output regions boxes", OF_OVERLAY),
    RFX_CLI_OPTION(rfx_cli_report_options, "overlay-range", RANGE, overlay_range, "LO,HI",
                   "values of the channel that are shown clear and brightest (default: its "
                   "smallest and largest value)",
                   OF_OVERLAY),
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
