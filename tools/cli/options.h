/* Options of the command line: one table row per option, one struct of parsed values.
 *
 * Invariants: 1. every option a command accepts is a row of the table, and the help text is printed
 * from the same rows; 2. a value is parsed and range-checked here or the command line is refused;
 * 3. values not given hold the defaults of rfx_cli_options_init. */
#ifndef RFX_TOOLS_CLI_OPTIONS_H
#define RFX_TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "tools/cli/option_values.h"

/* Which options a command takes: bits of rfx_cli_command.groups. */
enum rfx_cli_group {
    RFX_CLI_SIZE = 1 << 0,
    RFX_CLI_PLAN = 1 << 1,  /* how the network is run: --memory, --plan, --tiles, --bands, ... */
    RFX_CLI_IMAGE = 1 << 2, /* preprocessing */
    RFX_CLI_SEED = 1 << 3,
    RFX_CLI_OUTPUT = 1 << 4,
    RFX_CLI_CLASSES = 1 << 5, /* --top, --labels */
    RFX_CLI_NAIVE = 1 << 6,
    RFX_CLI_RUNS = 1 << 7,
    RFX_CLI_JSON = 1 << 8,
    RFX_CLI_CSV = 1 << 9,
    RFX_CLI_CURVE = 1 << 10,   /* --tiles N or RxC, --baseline */
    RFX_CLI_PLOT = 1 << 11,    /* --plot, --split */
    RFX_CLI_CHART = 1 << 12,   /* titles and axes of a chart */
    RFX_CLI_SAMPLES = 1 << 13, /* --bits, --range */
    RFX_CLI_LAYERS = 1 << 14,  /* --layers, and --plot of them */
    RFX_CLI_FOR = 1 << 15,     /* --for-output */
    RFX_CLI_PART = 1 << 16,    /* --part, --part-rect, --part-output */
    RFX_CLI_PARTS = 1 << 17,   /* --parts, --part-output */
    RFX_CLI_MERGE = 1 << 18,   /* --memory of what only copies */
    RFX_CLI_LIST = 1 << 19,    /* --list and what goes with it */
    RFX_CLI_FUSE = 1 << 20,    /* --no-fuse, --no-fuse-add */
    RFX_CLI_EAGER = 1 << 21,   /* --no-fuse alone, where --baseline says the rest */
    RFX_CLI_OVERLAY = 1 << 22, /* --overlay and what goes with it */
    RFX_CLI_RANKS = 1 << 23,   /* --exchange, --link-bandwidth */
    RFX_CLI_PLACE = 1 << 24,   /* --strategy, --capacity, --time-limit, --threads */
    RFX_CLI_PICTURE = 1 << 25, /* --plot of a placement */
    RFX_CLI_DUMP = 1 << 26,    /* --dump */
    RFX_CLI_CHECK = 1 << 27,   /* --check */
    RFX_CLI_FRONT = 1 << 28,   /* --pareto */
    RFX_CLI_GOLDEN = 1 << 29,  /* --all, --table */
    RFX_CLI_PAGE = 1 << 30,    /* --report */
};

/* Of most commands 16; rfexec merge takes as many as parts may be. */
enum { RFX_CLI_MAX_ARGS = 16, RFX_CLI_MAX_PARTS = 1024, RFX_CLI_MAX_KEPT = 16 };

struct rfx_cli_kept { /* --keep and --dump */
    int n;
    const char *tensors[RFX_CLI_MAX_KEPT];
    const char *files[RFX_CLI_MAX_KEPT]; /* NULL: not written */
};

struct rfx_cli_options {
    struct rfx_cli_pair size, tiles; /* 0, 0: not given */
    int64_t max_pixels;              /* 0: not given */
    size_t memory_bytes;             /* 0: no budget */
    const char *split, *output, *labels, *baseline;
    const char *plot, *title, *subtitle, *x_label, *y_label;
    const char *strategy;      /* of placement; NULL: the best */
    size_t capacity_bytes;     /* of the arena; 0: not given */
    float time_limit;          /* of a search, seconds; 0: not given */
    bool no_fuse, no_fuse_add; /* of batch norm, activation and Add; of Add alone */
    const char *report;        /* of a run: its page; NULL: none */
    const char *overlay, *overlay_output, *overlay_of; /* of a run: the picture; NULL: not given */
    float overlay_range[2];                            /* of its values; both 0: not given */
    const char *part, *part_rect, *part_output;        /* of an output; NULL: not given */
    const char *mask;                                  /* of what is wanted; NULL: everything */
    const char *states;                                /* of rounds before; NULL: none */
    int64_t parts;                                     /* that plans are made for; 0: not given */
    const char *exchange;            /* of rows between ranks: auto (NULL), never or tensors */
    size_t link_bytes;               /* a second between ranks; 0: not given */
    const char *list, *out_dir, *as; /* of a run on many pictures; NULL: not given */
    bool resume;
    const char *plan_file;
    const char *spill;      /* folder for spilled maps; NULL: none are */
    const char *for_output; /* of plans: what the run will write; NULL: .npy */
    struct rfx_cli_kept kept;
    bool tight, row_by_row, weights_by_stage, no_inplace, check, threads_given;
    bool pareto;           /* of curves: all kinds of plans */
    bool all;              /* of selftest: every network and size */
    const char *table;     /* of selftest: another table of fingerprints */
    bool layers;           /* of a benchmark: the time of each */
    size_t against_bytes;  /* 0: not given */
    bool no_orient;        /* pictures as they are stored */
    bool whole_input_hash; /* parts are known by all bytes of the picture */
    struct rfx_fit_size fit;
    bool no_groups; /* every layer by itself */
    bool untiled, bgr, naive, json, csv, log_x, log_y, help;
    int64_t threads, bands, strips, top, runs; /* bands, strips 0, top -1: not given */
    uint64_t seed;
    enum rfx_conv_choice conv;
    struct rfx_cli_scale scale;
    struct rfx_cli_numbers mean, std;
    struct rfx_cli_nodata nodata;    /* of the picture */
    const char *nodata_mark;         /* field (NULL), centre or none */
    int64_t page;                    /* of the picture; -1: not given */
    int64_t level;                   /* of a slide; -1: not given */
    struct rfx_rect region;          /* of the picture; empty: all of it */
    struct rfx_image_bands channels; /* of the picture; n 0: not given */
    const char *bands_from;          /* files of INPUT, one for each band; NULL: not given */
    int64_t images; /* the most of a batch that the command takes, and once it is opened those that
                     * it has; 0: one */
    int64_t bits;   /* of samples in the output file; 0: not given */
    bool cog;       /* TIFF files in that order */
    const char *channel_names;       /* of .ome.tif: a file with a line for each; NULL: none */
    int64_t tiff_tile;               /* rows and columns of tiles of TIFF files; 0: not given */
    const char *tiff_compress;       /* of TIFF files; NULL: not given */
    const char *overviews;           /* of TIFF files and OME-Zarr; NULL: not given */
    const char *zarr_compress;       /* of Zarr folders; NULL: not given */
    int64_t zarr_chunk, zarr_format; /* of Zarr folders; 0: not given */
    float range[2];                  /* of values, black and white; both 0: not given */
    const char *status;              /* of merge: a folder of parts; NULL: not given */
    int n_words;
    char **words;    /* of the command, as they were given */
    unsigned groups; /* that the command takes */
    int n_args;
    const char *args[RFX_CLI_MAX_PARTS];  /* positional */
    const char *shown[RFX_CLI_MAX_PARTS]; /* the same in printable form, for reports */
};

/* Defaults: ImageNet's preprocessing, as many threads as the process may use processors. */
void rfx_cli_options_init(struct rfx_cli_options *options);

/* Parses argv[0 .. argc) for a command that takes `groups` and at most `max_args` positional
 * arguments. false: the reason, with a hint where one helps, is in `why`. Texts borrow from argv;
 * of "--dump TENSOR=FILE" the '=' becomes the tensor's end. */
bool rfx_cli_options_parse(struct rfx_cli_options *options, unsigned groups, int max_args, int argc,
                           char **argv, char *why, size_t why_size);

/* The words of a command that was parsed, but the options named in without[n_without] and their
 * values: the first `most` of them into out. The number of all. */
int rfx_cli_options_words(const struct rfx_cli_options *options, const char *const *without,
                          int n_without, const char **out, int most);

/* A row of the table as help, man pages and completions show it. */
struct rfx_cli_option_info {
    const char *name, *value, *help; /* value NULL: none is taken */
    char letter;                     /* 0: none */
    bool again;                      /* may be given several times */
};

/* The next row of these groups from *at on, which moves behind it; false: there is none. */
bool rfx_cli_options_next(int *at, unsigned groups, struct rfx_cli_option_info *info);

/* The page that is read: 0 where none is given. */
static inline int64_t rfx_cli_page(const struct rfx_cli_options *options) {
    return options->page > 0 ? options->page : 0;
}

/* Preprocessing as the image source takes it, which borrows the options; channels 0: as the file
 * has them. */
struct rfx_image_options rfx_cli_image_options(const struct rfx_cli_options *options,
                                               int64_t channels);
#endif
