/* Options of the command line: tables of options, structs of their values, parsing and checks.
 *
 * A command names groups of options and, for each group, the place in the command's own struct that
 * takes the group's values (struct rfx_cli_use). Parsing, the checks of which options go together,
 * help, man page and completions all read these tables.
 *
 * Invariants: 1. a value is parsed and its range checked here, or the command line is refused;
 * 2. a value that was not given is zero, NULL or false, and code that uses the value knows the
 * default; 3. the struct of every command begins with struct rfx_cli_words. */
#ifndef RFX_TOOLS_CLI_OPTIONS_H
#define RFX_TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "tools/cli/option_values.h"

/* Kind of an option: the form of its value, and the type of the struct member that stores it. */
enum rfx_cli_kind {
    RFX_CLI_FLAG,      /* bool; the option has no value */
    RFX_CLI_BYTES,     /* size_t */
    RFX_CLI_PAIR,      /* struct rfx_cli_pair */
    RFX_CLI_GRID,      /* struct rfx_cli_pair; a count alone is allowed */
    RFX_CLI_COUNT,     /* int64_t, from `least` (1 where it is 0) to `most` */
    RFX_CLI_INDEX,     /* struct rfx_cli_index, from 0 to `most` */
    RFX_CLI_SIDE,      /* int64_t, a multiple of 16 up to `most` */
    RFX_CLI_THREADS,   /* struct rfx_cli_threads; not given: the processors of this process */
    RFX_CLI_SEED,      /* uint64_t */
    RFX_CLI_TEXT,      /* const char *, not empty */
    RFX_CLI_WORD,      /* const char *, one of the words that `value` lists as "one|two" */
    RFX_CLI_FILE_END,  /* const char *, the end of a name of output files, such as "npy" */
    RFX_CLI_RESULT,    /* const char *, a file that is written; "-" is standard output */
    RFX_CLI_FLOAT,     /* float */
    RFX_CLI_NUMBER,    /* struct rfx_cli_number */
    RFX_CLI_FLOATS,    /* struct rfx_cli_numbers */
    RFX_CLI_DIVISORS,  /* struct rfx_cli_numbers, none of them 0 */
    RFX_CLI_NODATA,    /* struct rfx_cli_nodata */
    RFX_CLI_SCALE,     /* struct rfx_cli_scale */
    RFX_CLI_RANGE,     /* float[2], the first less than the second */
    RFX_CLI_BINS,      /* struct rfx_answer_bins */
    RFX_CLI_QUANTILES, /* struct rfx_answer_quantiles */
    RFX_CLI_BANDS,     /* struct rfx_image_bands */
    RFX_CLI_FIT,       /* struct rfx_fit_size */
    RFX_CLI_RECT,      /* struct rfx_rect, not empty */
    RFX_CLI_KEEP,      /* struct rfx_cli_kept: one more tensor */
    RFX_CLI_DUMP,      /* struct rfx_cli_kept: one more tensor with its file, TENSOR=FILE */
    RFX_CLI_CONV,      /* enum rfx_conv_choice */
    RFX_CLI_INT8,      /* enum rfx_int8_choice */
};

/* An option: a row of a table. excludes, needs and unless list other options: names with spaces
 * between them, or "NAME=VALUE" for an option with this value. Names that the command does not take
 * are ignored. */
struct rfx_cli_option {
    const char *name;
    char letter; /* 0: none */
    enum rfx_cli_kind kind;
    size_t at;         /* of the member in the group's struct */
    const char *value; /* as help shows it; NULL for flags */
    const char *help;
    int64_t least, most;  /* of numbers */
    const char *ends;     /* of results: allowed ends of the name, ".svg .png"; NULL: any */
    const char *excludes; /* options that may not be given together with this one */
    const char *needs;    /* one of these options must be given too */
    const char *unless;   /* `excludes` has no effect when one of these options is given */
    const char *because;  /* reason for `excludes` or `needs`, added to the message; NULL: none */
};

/* Initialiser of one row. type, member: the group's struct and the member that stores the value;
 * option: the name; form: the kind without RFX_CLI_; shown: the value as help shows it. The help
 * text follows, then any other members as designated initialisers. */
#define RFX_CLI_OPTION(type, option, form, member, shown, ...)                       \
    {                                                                                \
        .name = option, .kind = RFX_CLI_##form, .at = offsetof(struct type, member), \
        .value = shown, .help = __VA_ARGS__                                          \
    }

/* Rows whose values are stored in one struct. The help shows groups with the same heading together.
 */
struct rfx_cli_group {
    const char *heading;
    const struct rfx_cli_option *rows;
    int n;
};

/* A group of a command, and where the group's struct begins in the command's struct. */
struct rfx_cli_use {
    const struct rfx_cli_group *group;
    size_t at;
};

/* Initialiser of struct rfx_cli_use for a shared group (below). type: the command's struct; member:
 * the member of it that stores the values. */
#define RFX_CLI_USE(name, type, member) \
    { &rfx_cli_##name##_group, offsetof(struct type, member) }

/* Initialisers of the members `uses` and `n_uses` of struct rfx_cli_command. */
#define RFX_CLI_TABLE(table) .uses = table, .n_uses = sizeof table / sizeof table[0]

/* Initialiser of a group from an array of rows. */
#define RFX_CLI_GROUP(heading, rows) \
    { heading, rows, (int)(sizeof rows / sizeof rows[0]) }

struct rfx_cli_command;

/* Limits: positional arguments of most commands, files that rfexec merge takes, and tensors of
 * --keep and --dump. */
enum { RFX_CLI_MAX_ARGS = 16, RFX_CLI_MAX_PARTS = 1024, RFX_CLI_MAX_KEPT = 16 };
enum { RFX_CLI_MAX_OPTIONS = 128 }; /* options of one command */

/* The parsed command line: arguments, all words, and the text of each option. */
struct rfx_cli_words {
    const struct rfx_cli_command *command;
    int n_args;
    const char **args;  /* positional arguments */
    const char **shown; /* the positional arguments in printable form, for reports */
    int n_all;
    char **all; /* every word after the command's name */
    bool help;
    const char *given[RFX_CLI_MAX_OPTIONS]; /* text of each option's value, by its number in the
                                             * command ("" of flags); NULL: not given */
};

struct rfx_cli_index {
    bool given;
    int64_t value; /* 0 where it is not given */
};

struct rfx_cli_number {
    bool given;
    float value; /* 0 where it is not given */
};

struct rfx_cli_threads {
    bool given;
    int64_t n;
};

struct rfx_cli_kept { /* --keep and --dump */
    int n;
    const char *tensors[RFX_CLI_MAX_KEPT];
    const char *files[RFX_CLI_MAX_KEPT]; /* NULL: not written */
};

/* How a network is loaded. */
struct rfx_cli_model_options {
    struct rfx_cli_pair size; /* 0, 0: the model's own */
    uint64_t seed;
    bool no_fuse;     /* batch norm, activation and Add stay separate nodes */
    bool no_fuse_add; /* Add stays a separate node; the others are fused */
    enum rfx_conv_choice conv;
    enum rfx_int8_choice int8;
    bool dequantize;
    struct rfx_fit_size fit;
    struct rfx_cli_kept kept;
    bool class_map; /* as in rfx_load_options; set for --cam */
    /* Set by commands that look into a network, not by options. */
    const struct rfx_fuse_options *fuse; /* NULL: as no_fuse and no_fuse_add say */
    const char *const *tensors;          /* tensors that are kept in place of `kept` */
    int n_tensors;
    unsigned keep_how;                   /* as in rfx_load_options, for `tensors` */
    bool join_heads;                     /* as in rfx_load_options; set for --boxes */
    const struct rfx_detector *detector; /* of --head FILE, as in rfx_load_options */
    bool head_only;
    bool late; /* as in rfx_load_options; set by commands that know late nodes */
};

/* How a network is run. */
struct rfx_cli_plan_options {
    size_t memory_bytes; /* 0: no budget */
    const char *plan_file;
    struct rfx_cli_pair tiles; /* 0, 0: not given */
    const char *split;
    int64_t bands, strips; /* 0: not given */
    bool tight, untiled, row_by_row, weights_by_stage, no_inplace, no_groups, check;
    const char *spill; /* folder for feature maps that are moved out of memory; NULL: none are */
    struct rfx_cli_threads threads;
};

/* How the input image is read. */
struct rfx_cli_input_options {
    struct rfx_cli_index page, level;
    struct rfx_rect region; /* empty: the whole image */
    bool no_orient, bgr;
    struct rfx_image_bands channels; /* n 0: not given */
    const char *bands_from;          /* files of INPUT, one or more bands each */
    int64_t max_pixels;              /* 0: not given */
    struct rfx_cli_scale scale;
    struct rfx_cli_numbers mean, std;
    struct rfx_cli_nodata nodata;
    const char *nodata_mark; /* field (NULL), centre or none */
};

/* What is found in outputs: files of --regions, --points, --summary, --text and --boxes, and of -o
 * that ends in .geojson, .csv or .json. */
struct rfx_cli_answer_options {
    const char *regions, *regions_of;
    const char *points, *points_of;
    int64_t distance; /* 0: not given */
    const char *summary, *summary_of;
    const char *text, *text_of;
    struct rfx_cli_number growth;
    const char *within; /* file of areas */
    struct rfx_answer_bins bins;
    struct rfx_answer_quantiles quantiles;
    const char *boxes, *boxes_of, *head;
    struct rfx_cli_number score, overlap;
    int64_t most_boxes, class_count; /* 0: not given */
    bool agnostic, soft;
    struct rfx_cli_numbers thresholds;
    const char *connect; /* 4 (NULL) or 8 */
    int64_t least_area;  /* 0: not given */
    struct rfx_cli_number tolerance;
    bool all_labels;
    const char *classes;     /* file of class names */
    const char *coordinates; /* pixels or map; NULL: not given */
    size_t memory_bytes;     /* 0: not given */
};

/* Files of outputs. */
struct rfx_cli_output_options {
    const char *file;       /* -o */
    const char *for_output; /* rfexec plan: the -o of the run that is planned; NULL: .npy */
    int64_t bits;           /* bits of a sample; 0: not given */
    float range[2];         /* values of black and white; both 0: not given */
    int64_t tiff_tile;
    const char *tiff_compress, *overviews, *channel_names;
    bool cog;
    int64_t zarr_chunk, zarr_format;
    const char *zarr_compress;
    struct rfx_cli_answer_options answer;
};

/* Parts of an output. */
struct rfx_cli_part_options {
    const char *part, *part_rect, *part_output;
    const char *states;    /* file of the merged states of the earlier rounds */
    const char *mask;      /* mask image of the output pixels to compute; NULL: all */
    bool whole_input_hash; /* the checksum of the image covers all bytes of its file */
    int64_t parts;         /* --parts: number of parts that are planned */
};

/* A run on many images. */
struct rfx_cli_list_options {
    const char *list, *out_dir, *as, *table;
    bool resume;
};

/* Reports about the outputs of a run. */
struct rfx_cli_report_options {
    int64_t top; /* 0: not given */
    const char *labels;
    const char *page;   /* --report */
    const char *viewer; /* folder */
    const char *overlay, *overlay_of, *overlay_output, *cam;
    float overlay_range[2]; /* both 0: not given */
};

/* Options of a run of a network. The commands run, plan, explain, verify, bench and rfexec-mpi
 * share this struct; each command sets only the members for which it has options. */
struct rfx_cli_run_options {
    struct rfx_cli_words words;
    struct rfx_cli_model_options model;
    struct rfx_cli_plan_options plan;
    struct rfx_cli_input_options input;
    struct rfx_cli_output_options output;
    struct rfx_cli_part_options part;
    struct rfx_cli_list_options list;
    struct rfx_cli_report_options report;
    bool json;
    int64_t images; /* not an option. Before the input is opened: the largest batch that the command
                     * accepts. Afterwards: the number of images in the batch. 0: one image */
};

/* The groups of every command that plans a run of a network on an image. The command's struct is,
 * or begins with, struct rfx_cli_run_options. */
#define RFX_CLI_USES_OF_JOB                               \
    RFX_CLI_USE(plan, rfx_cli_run_options, plan),         \
        RFX_CLI_USE(network, rfx_cli_run_options, model), \
        RFX_CLI_USE(fuse, rfx_cli_run_options, model),    \
        RFX_CLI_USE(int8, rfx_cli_run_options, model),    \
        RFX_CLI_USE(seed, rfx_cli_run_options, model),    \
        RFX_CLI_USE(input, rfx_cli_run_options, input)

/* The groups of the options for what is found in outputs. */
#define RFX_CLI_USES_OF_ANSWERS                                    \
    RFX_CLI_USE(boxes, rfx_cli_run_options, output.answer),        \
        RFX_CLI_USE(detector, rfx_cli_run_options, output.answer), \
        RFX_CLI_USE(regions, rfx_cli_run_options, output.answer),  \
        RFX_CLI_USE(points, rfx_cli_run_options, output.answer),   \
        RFX_CLI_USE(answers, rfx_cli_run_options, output.answer)

/* The groups that run and explain take. */
#define RFX_CLI_USES_OF_RUN                                                        \
    RFX_CLI_USES_OF_JOB, RFX_CLI_USE(file, rfx_cli_run_options, output),           \
        RFX_CLI_USE(dump, rfx_cli_run_options, model),                             \
        RFX_CLI_USE(samples, rfx_cli_run_options, output),                         \
        RFX_CLI_USE(format, rfx_cli_run_options, output), RFX_CLI_USES_OF_ANSWERS, \
        RFX_CLI_USE(part, rfx_cli_run_options, part),                              \
        RFX_CLI_USE(list, rfx_cli_run_options, list),                              \
        RFX_CLI_USE(classes, rfx_cli_run_options, report),                         \
        RFX_CLI_USE(pictures, rfx_cli_run_options, report),                        \
        RFX_CLI_USE(json, rfx_cli_run_options, json)

/* Groups that several commands share, and the struct that takes each. */
extern const struct rfx_cli_group rfx_cli_size_group;     /* struct rfx_cli_model_options */
extern const struct rfx_cli_group rfx_cli_seed_group;     /* struct rfx_cli_model_options */
extern const struct rfx_cli_group rfx_cli_int8_group;     /* struct rfx_cli_model_options */
extern const struct rfx_cli_group rfx_cli_fuse_group;     /* struct rfx_cli_model_options */
extern const struct rfx_cli_group rfx_cli_no_fuse_group;  /* struct rfx_cli_model_options */
extern const struct rfx_cli_group rfx_cli_network_group;  /* struct rfx_cli_model_options */
extern const struct rfx_cli_group rfx_cli_dump_group;     /* struct rfx_cli_model_options */
extern const struct rfx_cli_group rfx_cli_plan_group;     /* struct rfx_cli_plan_options */
extern const struct rfx_cli_group rfx_cli_input_group;    /* struct rfx_cli_input_options */
extern const struct rfx_cli_group rfx_cli_file_group;     /* struct rfx_cli_output_options */
extern const struct rfx_cli_group rfx_cli_samples_group;  /* struct rfx_cli_output_options */
extern const struct rfx_cli_group rfx_cli_format_group;   /* struct rfx_cli_output_options */
extern const struct rfx_cli_group rfx_cli_boxes_group;    /* struct rfx_cli_answer_options */
extern const struct rfx_cli_group rfx_cli_detector_group; /* struct rfx_cli_answer_options */
extern const struct rfx_cli_group rfx_cli_regions_group;  /* struct rfx_cli_answer_options */
extern const struct rfx_cli_group rfx_cli_points_group;   /* struct rfx_cli_answer_options */
extern const struct rfx_cli_group rfx_cli_answers_group;  /* struct rfx_cli_answer_options */
extern const struct rfx_cli_group rfx_cli_part_group;     /* struct rfx_cli_part_options */
extern const struct rfx_cli_group rfx_cli_list_group;     /* struct rfx_cli_list_options */
extern const struct rfx_cli_group rfx_cli_classes_group;  /* struct rfx_cli_report_options */
extern const struct rfx_cli_group rfx_cli_pictures_group; /* struct rfx_cli_report_options */
extern const struct rfx_cli_group rfx_cli_json_group;     /* bool */
extern const struct rfx_cli_group rfx_cli_csv_group;      /* bool */
extern const struct rfx_cli_group rfx_cli_threads_group;  /* struct rfx_cli_threads */

/* Headings of groups. */
extern const char rfx_cli_heading_plan[], rfx_cli_heading_input[], rfx_cli_heading_output[],
    rfx_cli_heading_answers[], rfx_cli_heading_parts[], rfx_cli_heading_report[];

/* Largest accepted counts: of rows, classes or runs, and of threads. A larger count is a typing
 * error. */
enum { RFX_CLI_MOST = 1000000, RFX_CLI_MOST_THREADS = 1024 };

/* Returns the k-th option of a command; --help is the last one. Returns NULL when k is too large.
 * use (may be NULL): set to the option's group and the place of the group's struct. */
const struct rfx_cli_option *rfx_cli_option_at(const struct rfx_cli_command *command, int k,
                                               struct rfx_cli_use *use);

/* Returns whether the option may be given several times, and each value counts (--keep, --dump). */
bool rfx_cli_may_come_again(const struct rfx_cli_option *row);

/* Parses argv[0 .. argc) into the command's struct `values`, which must be all zeros, and checks
 * that the options go together. Returns false, with a reason and perhaps a hint in `why`, when the
 * command line is wrong. Texts in `values` point into argv. In "--dump TENSOR=FILE" the '=' is
 * overwritten by NUL. The list of arguments is in static memory, so a process can parse only one
 * command line. */
RFX_NODISCARD bool rfx_cli_options_parse(const struct rfx_cli_command *command, void *values,
                                         int argc, char **argv, char *why, size_t why_size);

/* Returns the number of processors that this process may use. It is the default of --threads. */
int64_t rfx_cli_usable_processors(void);

/* Copies the words of a parsed command line to `out`, except the options named in
 * without[n_without] and their values. At most `most` words are copied. Returns the number of words
 * that there would be without that limit. */
int rfx_cli_options_words(const struct rfx_cli_words *words, const char *const *without,
                          int n_without, const char **out, int most);

/* Returns the text of an option's value ("" for a flag), or NULL when the option was not given. */
const char *rfx_cli_given(const struct rfx_cli_words *words, const char *name);

/* Returns whether a result file is standard output ("-"). Then other text must go to stderr. */
bool rfx_cli_use_stdout(const struct rfx_cli_words *words);

/* Writes the help of an option to `text`, followed by the options that it needs and excludes:
 * "... (needs --bands; not with --tiles)". Options that the command does not take are left out. */
void rfx_cli_option_help(const struct rfx_cli_command *command, const struct rfx_cli_option *row,
                         char *text, size_t size);
#endif
