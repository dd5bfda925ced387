/* The rfexec program: finds the command, parses its options, runs it and maps failures to exit
 * codes. stdout carries the result alone; messages go to stderr as "rfexec: ...".
 *
 * Before anything else the process replaces itself by itself (tools/program), once: a debugger, a
 * profiler or a service manager sees two programs start under one process id. What the library
 * does to a process is docs/host_process.md. */
#include <stdio.h>
#include <string.h>

#include "layers/core/temp_file.h"
#include "tools/cli/command.h"
#include "tools/cli/option_checks.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/inputs/standard_input.h"
#include "tools/program/program.h"
#include "tools/words/help.h"
#include "tools/words/reference.h"

static const struct rfx_cli_command commands[] = {
    {"analyze",
     "MODEL [--size HxW] [--no-fuse] [--json|--csv] [--plot FILE [--tiles N|RxC] [--split NAME]]",
     "receptive field, MACs, parameters and memory of every layer",
     "MODEL is an .onnx file or a built-in name. Batch norm, activations and residual adds are\n"
     "shown fused into the convolutions that execute them. Layers where the network can be cut\n"
     "(--split) are marked with *. rf, jump and padding are rows x columns in image pixels.\n"
     "--plot draws the memory over the layers: parameters and live activations.\n",
     "rfexec analyze mobilenet_v2\n"
     "rfexec analyze net.onnx --size 2048x3072 --csv\n"
     "rfexec analyze mobilenet_v2 --size 1024x1024 --plot memory.svg --tiles 16\n",
     RFX_CLI_FUSE | RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_JSON | RFX_CLI_CSV | RFX_CLI_CURVE |
         RFX_CLI_PLOT,
     1, 1, rfx_cmd_analyze},
    {"plan",
     "MODEL [INPUT] [--size HxW] [PLAN OPTIONS] [--for-output FILE] [--parts N] [-o plan.json]"
     " [--json]",
     "how a run would be done and what memory it would take",
     "Runs nothing. With INPUT the plan is for that picture, else for a .npy one of --size. What "
     "a\n"
     "run with -o map.npy holds to write it counts, so that such a run does the same with the "
     "same\n"
     "budget; --for-output says another file, or none.\n"
     "-o writes the plan as JSON; its stages (mode, targets, tiles, band_rows, row_by_row, "
     "forgets)\n"
     "and flags can be edited, and run, verify, bench and plan take it with --plan. What it "
     "predicts and\n"
     "where buffers lie is calculated anew, and a checker walks the plan before it is used.\n"
     "--parts N: what each of N parts of the output takes (run --part I/N): its rows, those of "
     "the\n"
     "image, MACs with the halo, memory; and each round that global operations take before. With\n"
     "--json also what parts would fetch of each other's rows if nothing were made twice.\n",
     "rfexec plan mobilenet_v2 --size 4096x4096 --memory 256MiB -o plan.json\n"
     "rfexec plan mobilenet_v2 --size 4096x4096 --plan plan.json\n"
     "rfexec plan resnet50 --size 2048x2048 --tiles 4x4 --split layer2.3 --json\n"
     "rfexec plan fsrcnn --size 8192x8192 --memory 64MiB --parts 8\n",
     RFX_CLI_FUSE | RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_PLAN | RFX_CLI_IMAGE | RFX_CLI_OUTPUT |
         RFX_CLI_FOR | RFX_CLI_CHECK | RFX_CLI_PARTS | RFX_CLI_JSON,
     1, 2, rfx_cmd_plan},
    {"curve",
     "MODEL [MODEL ...] [--size HxW] [--tiles N|RxC] [--baseline NAME] [--json|--csv]"
     " [-o FILE] [--pareto]",
     "what tiling costs in MACs and buys in memory, for every place to cut",
     "Runs nothing. For each aggregation point: MACs and peak memory over those of the "
     "whole-image\n"
     "run, weights counted. Baselines: eager (batch norm, activation and Add each make a tensor),\n"
     "fused (batch norm and activation inside the convolution), coalesced (Add in place as well).\n"
     "The Pareto front is over all points and all grids. -o draws a chart, .svg or .png.\n"
     "--pareto answers for whole processes and every kind of plan (streams, strips, tiles, ...):\n"
     "each row is what the planner takes from that budget on, with one thread.\n",
     "rfexec curve mobilenet_v2 --size 1024x1024 --tiles 16\n"
     "rfexec curve resnet18 resnet50 --size 1024x1024 --tiles 4x4 --baseline eager --csv\n"
     "rfexec curve vgg16 resnet18 mobilenet_v2 --size 1024x1024 -o curves.svg\n"
     "rfexec curve mobilenet_v2 --size 4096x4096 --pareto -o front.svg\n",
     RFX_CLI_EAGER | RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_CURVE | RFX_CLI_OUTPUT | RFX_CLI_JSON |
         RFX_CLI_CSV | RFX_CLI_FRONT,
     1, RFX_CLI_MAX_ARGS, rfx_cmd_curve},
    {"advise", "MODEL [--size HxW] [--tiles N|RxC] [--baseline NAME] [--json]",
     "which layer holds a network back, and the best cut and tiles for each budget",
     "Runs nothing. The cases are those of section 3.3 of the paper: 1 before the peak, 2 ratio\n"
     "unchanged, 3 ratio rises, 4 ratio falls. Budgets of the table count weights and activations\n"
     "of the network; 'run --memory' is what that command does with so many bytes for the whole\n"
     "process.\n",
     "rfexec advise mobilenet_v2 --size 1024x1024\n"
     "rfexec advise net.onnx --size 4096x4096 --json\n",
     RFX_CLI_EAGER | RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_CURVE | RFX_CLI_JSON, 1, 1,
     rfx_cmd_advise},
    {"run",
     "MODEL INPUT [PLAN OPTIONS] [-o FILE] [--part I/N] [--report FILE.html] [--overlay FILE]"
     " [--top K --labels FILE] [--json]\n"
     "       rfexec run MODEL --list FILE --out-dir DIR [--as KIND] [--resume] [PLAN OPTIONS] "
     "[--json]",
     "run a network on an image",
     "INPUT is a picture (png, jpg, tif, bmp, ...), a Zarr folder, a .npy file (CxHxW or 1xCxHxW\n"
     "float32, taken as it is), '-' (a file from standard input), bands:FILE,FILE,... (a file for\n"
     "each band, all of one size; --bands-from is the same) or synthetic:HxW[:seed]. Of a .npy\n"
     "file of NxCxHxW the images are run one by one in the memory of one, and each output is a "
     ".npy\n"
     "file of N. With --memory the peak resident memory of the whole process stays within the\n"
     "budget; without any plan option the network runs untiled. -o writes .npy, .tif (float maps;\n"
     "BigTIFF above 4 GiB), .png (maps "
     "of\n"
     "1 or 3 channels, smallest value black, largest white), .pfm (float maps of 1 or 3 "
     "channels),\n"
     "or a folder .zarr (float maps) or .ome.zarr (the same for viewers); several outputs go to\n"
     "NAME.<output>.EXT. The file appears under its name only\n"
     "when it is complete: after an error, SIGINT, SIGTERM or SIGHUP (exit code 5) there is none.\n"
     "'-o -' writes .npy to standard output, and the report to standard error.\n"
     "Maps that are not stored are written while the run goes on; a .png without --range, and\n"
     "pictures that come in column strips, then need the map's size in floats on the disk "
     "besides.\n--report writes one page that needs no other file and no network: plan, memory "
     "and\n"
     "time in pictures, the outputs' histograms and first channels; what it holds (below 3 MiB "
     "for\n"
     "most networks) counts against the budget, and it gets its name after the outputs.\n"
     "--overlay draws labels (label 0 clear) or a channel's values (small ones clear) over the "
     "input,\n"
     "at its full size, row by row: within the budget whatever the size. Each value lies where "
     "the\n"
     "pixels are that it sees; besides, the disk needs four bytes for each of the map's pixels.\n"
     "--part 2/4 makes the second quarter of the output's rows and computes only what these need;\n"
     "-o PART.npy gets a JSON beside it that says what run it is of, 'rfexec merge' puts parts\n"
     "together. A part that is there already is not made again.\n"
     "--list runs the network on many pictures: it is loaded once for pictures of one size, a\n"
     "picture that fails does not stop the others, and the exit code is that of the first "
     "failure.\n"
     "With --json there is a line for each picture, and one for all.\n"
     "--mask lays a picture over the output: where it is 0 nothing is computed, but behind global\n"
     "pools and norms, and 0 is written, or the no-data number of a GeoTIFF.\n",
     "rfexec run mobilenet_v2 photo.png --memory 64MiB --top 5\n"
     "rfexec run net.onnx photo.png --memory 64MiB -o map.npy --report report.html\n"
     "rfexec run segment.onnx scan.tif --memory 256MiB --overlay seen.png\n"
     "rfexec run mobilenet_v2 synthetic:4096x4096 --memory 256MiB --json\n"
     "rfexec run net.onnx image.png --tiles 4x4 --split features.6 -o map.npy\n"
     "rfexec run fsrcnn huge.png --memory 64MiB --part 2/4 -o part2.npy\n"
     "rfexec run net.onnx slide.tif --mask tissue.png --memory 1GiB -o map.tif\n"
     "ls scans/*.tif | rfexec run net.onnx --list - --out-dir maps --memory 1GiB --resume\n",
     RFX_CLI_FUSE | RFX_CLI_PLAN | RFX_CLI_IMAGE | RFX_CLI_SEED | RFX_CLI_OUTPUT | RFX_CLI_SAMPLES |
         RFX_CLI_CLASSES | RFX_CLI_DUMP | RFX_CLI_PAGE | RFX_CLI_OVERLAY | RFX_CLI_PART |
         RFX_CLI_LIST | RFX_CLI_JSON,
     1, 2, rfx_cmd_run},
    {"merge",
     "PART.npy [PART.npy ...] -o FILE [--memory BYTES] [--json]\n"
     "       rfexec merge --status DIR [--json]",
     "put the parts of an output together that 'run --part' made",
     "The parts must be of one run: model, input, version and options that change bits, as the "
     "JSON\n"
     "beside each says; they must make up the output without gap or overlap, and be as they were\n"
     "made. FILE is written in bands of rows inside the budget, as run's -o would be; the hash is\n"
     "that of a single run. Exit code 3 when parts are missing, doubled, changed or of other "
     "runs.\n"
     "--status reads the parts in a folder, such as OUT.parts of run_parts.sh, to the last byte\n"
     "and says which are there, missing, damaged or in the way, and the commands that make the\n"
     "others. Exit code 0 when all are there, else 3.\n",
     "rfexec merge part1.npy part2.npy part3.npy -o map.npy\n"
     "rfexec merge part*.npy -o large.tif --memory 64MiB\n"
     "rfexec merge --status large.npy.parts\n",
     RFX_CLI_OUTPUT | RFX_CLI_SAMPLES | RFX_CLI_MERGE | RFX_CLI_JSON, 0, RFX_CLI_MAX_PARTS,
     rfx_cmd_merge},
    {"verify", "MODEL INPUT [PLAN OPTIONS] [--against BYTES] [--naive] [--json]",
     "compare a tiled or streamed run with the untiled one, bit by bit",
     "Exit code 1 when any bit of any output differs. Without --memory, --tiles and --untiled the\n"
     "tiles are 4x4. --naive also shows what the same tiles would have given without halos.\n",
     "rfexec verify mobilenet_v2 synthetic:1537x2049 --tiles 4x4 --split features.6\n"
     "rfexec verify resnet50 photo.png --memory 320MiB --naive\n",
     RFX_CLI_FUSE | RFX_CLI_PLAN | RFX_CLI_IMAGE | RFX_CLI_SEED | RFX_CLI_NAIVE | RFX_CLI_JSON, 2,
     2, rfx_cmd_verify},
    {"bench",
     "MODEL [INPUT] [--size HxW] [PLAN OPTIONS] [--runs N] [--layers [--plot FILE]] [--json]",
     "time a network",
     "One run to warm up, then --runs timed ones. --layers adds a row per layer: the time of all "
     "its\n"
     "steps in a run (median), its share of the run, the multiply-accumulates made (halos as "
     "often\n"
     "as they are made), GFLOP/s (two operations each), their share of the processor's peak of "
     "fused\n"
     "multiply-adds, and the bytes that inputs, output and packed weights of its steps have: what "
     "is\n"
     "moved at least. The peak is measured before and after the runs with as many threads, the\n"
     "memory's bandwidth after them; that takes 64 MiB, which are not in the peak RSS shown.\n",
     "rfexec bench resnet50 --size 1024x1024 --threads 2\n"
     "rfexec bench mobilenet_v2 --size 2048x2048 --memory 64MiB --layers --plot layers.svg\n",
     RFX_CLI_FUSE | RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_PLAN | RFX_CLI_IMAGE | RFX_CLI_RUNS |
         RFX_CLI_LAYERS | RFX_CLI_JSON,
     1, 2, rfx_cmd_bench},
    {"export", "BUILTIN -o FILE.onnx [--seed N] [--size HxW]", "write a built-in network as ONNX",
     "", "rfexec export mobilenet_v2 -o mobilenet_v2.onnx\n",
     RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_OUTPUT, 1, 1, rfx_cmd_export},
    {"alloc",
     "PROBLEM.csv [--strategy NAME] [--capacity BYTES] [--time-limit SECONDS] [-o FILE]"
     " [--plot FILE] [--json]",
     "pack buffers of given sizes and lifetimes into one arena",
     "Each item needs size bytes from time lower up to, not including, upper. PROBLEM.csv:\n"
     "  id,lower,upper,size,alignment      alignment may be left out\n"
     "  a,0,2,4096,64\n"
     "  b,1,3,1024,64\n"
     "The answer is the same table with an offset for each item, on stdout or in -o. Without\n"
     "--strategy the best greedy placement is taken; where it is above the lower bound, an exact\n"
     "search on all processors improves it for at most --time-limit seconds. With more than 4,096\n"
     "items there is no search. tight, loose, fronts, sections, canonical, skyline, overlaps and\n"
     "clauses, which were searches of their own in earlier versions, mean exact.\n"
     "Exit code 4 when nothing fits --capacity; the message says whether that is proven. A signal\n"
     "ends it with exit code 5 and no output.\n",
     "rfexec alloc problem.csv -o placed.csv --plot placed.svg\n"
     "rfexec alloc problem.csv --strategy by-size --json\n"
     "rfexec alloc problem.csv --capacity 1MiB\n",
     RFX_CLI_PLACE | RFX_CLI_OUTPUT | RFX_CLI_PICTURE | RFX_CLI_JSON, 1, 1, rfx_cmd_alloc},
    {"chart", "DATA.csv -o FILE [--title TEXT] [--x-label TEXT] [--y-label TEXT]",
     "draw lines from a table",
     "DATA.csv ('-': standard input) has rows series,x,y or series,x,y,label; -o is .svg or "
     ".png.\n",
     "rfexec chart ratios.csv -o ratios.svg --x-label 'image size [px]' --y-label ratio --log-y\n",
     RFX_CLI_OUTPUT | RFX_CLI_CHART, 1, 1, rfx_cmd_chart},
    {"memory", "MODEL [--size HxW] [--no-fuse] [--plot FILE] [--json]",
     "what the tensors between layers need with every placement strategy, side by side",
     "For a run of whole maps. Shared objects: tensors take turns in buffers of their own. One\n"
     "arena: each tensor has an offset in it. Below: no arena is smaller than the lower bound,\n"
     "naive is every tensor by itself. The image and the outputs do not count. Row by row: each\n"
     "layer makes its map in steps of rows, and the map may lie over dead rows of its inputs.\n",
     "rfexec memory mobilenet_v2 --size 224x224\n"
     "rfexec memory net.onnx --size 512x512 --plot placement.svg\n",
     RFX_CLI_FUSE | RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_PICTURE | RFX_CLI_JSON, 1, 1,
     rfx_cmd_memory},
    {"selftest", "[MODEL ...] [--all] [--table FILE] [--threads N] [--json]",
     "whether this machine computes the same bits as every other",
     "Built-in networks run on synthetic pictures, on whole maps and in tiles, and the "
     "fingerprints\n"
     "of their outputs are compared with those that every processor with fused multiply-add must\n"
     "give (AVX2, AVX-512, NEON): some networks, in seconds; --all: all of them at two sizes; "
     "MODEL:\n"
     "those alone. Exit code 1 when one differs. On processors without fused multiply-add\n"
     "convolutions are OpenBLAS's, and only that all plans agree is checked.\n",
     "rfexec selftest\n"
     "rfexec selftest --all --threads 8\n"
     "rfexec selftest mobilenet_v2 resnet50 --json\n",
     RFX_CLI_GOLDEN | RFX_CLI_JSON, 0, RFX_CLI_MAX_ARGS, rfx_cmd_selftest},
    {"check", "MODEL [--size HxW] [--json]",
     "whether a model can be run: its operators, its shapes, whether rows stream through it",
     "Runs nothing. Lists all operators that are not supported, with the number of their nodes,\n"
     "where another tool stops at the first. If there are none the model is loaded for --size, or\n"
     "its own size (512x512 where it leaves that open), and the layers are named that keep its\n"
     "maps from being streamed row by row. Exit code 3 when the model cannot be run.\n",
     "rfexec check net.onnx --size 2048x3072\n"
     "rfexec check resnet50 --json\n",
     RFX_CLI_SIZE | RFX_CLI_SEED | RFX_CLI_JSON, 1, 1, rfx_cmd_check},
    {"info", "INPUT [--json]", "the pictures of a file: sizes, bands and types, page by page",
     "A TIFF may hold several, which --page K chooses for the other commands: first those of the\n"
     "file's chain, then the SubIFDs of each, which pyramids have. Of slides (.svs, .ndpi, .mrxs,\n"
     ".scn, .vms, .vmu, .bif, .svslide) and of Zarr folders they are the levels. Only headers are\n"
     "read.\n",
     "rfexec info slide.tif\n", RFX_CLI_JSON, 1, 1, rfx_cmd_info},
    {"explain", "MODEL [INPUT] [--size HxW] [options of run] [--json]",
     "what a run would do and why, in sentences",
     "Runs nothing. Says how the network would be run with these options: in which stages, what\n"
     "is kept between them, what is computed twice, what takes the memory, and how the time\n"
     "compares with the whole-image run. It takes the options of run, with the same figures: -o,\n"
     "--report and --overlay count and write nothing. Without INPUT a .npy picture is read.\n",
     "rfexec explain mobilenet_v2 --size 4096x4096 --memory 64MiB\n"
     "rfexec explain net.onnx photo.png --tiles 4x4 -o map.tif\n",
     RFX_CLI_FUSE | RFX_CLI_SIZE | RFX_CLI_PLAN | RFX_CLI_IMAGE | RFX_CLI_SEED | RFX_CLI_OUTPUT |
         RFX_CLI_SAMPLES | RFX_CLI_CLASSES | RFX_CLI_DUMP | RFX_CLI_PAGE | RFX_CLI_OVERLAY |
         RFX_CLI_PART | RFX_CLI_LIST | RFX_CLI_JSON,
     1, 2, rfx_cmd_explain},
    {"models", "[--json]", "the built-in networks", "", "rfexec models\n", RFX_CLI_JSON, 0, 0,
     rfx_cmd_models},
    {"operators", "", "which operators of ONNX model files may have, and what streams",
     "A table in Markdown, that of docs/operators.md.\n", "rfexec operators\n", 0, 0, 0,
     rfx_cmd_operators},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

/* Where the input is '-': its bytes may have to be kept, which is said. */
static int take_standard_input(const struct rfx_cli_command *command,
                               struct rfx_cli_options *options) {
    int at = command->run == rfx_cmd_info ? 0 : (command->groups & RFX_CLI_IMAGE) != 0 ? 1 : -1;
    if (at < 0 || at >= options->n_args || strcmp(options->args[at], "-") != 0)
        return RFX_EXIT_DONE;
    const char *folder = rfx_temp_folder(options->spill);
    struct rfx_error err = {{0}};
    int64_t kept;
    enum rfx_status status = rfx_standard_input(folder, RFX_STANDARD_INPUT_MOST,
                                                rfx_cli_progress_cancelled, &kept, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (kept > 0)
        rfx_cli_message("standard input: %lld bytes, kept in a nameless file in '%s'",
                        (long long)kept, folder);
    options->args[at] = RFX_STANDARD_INPUT;
    return RFX_EXIT_DONE;
}

static int run_command(const struct rfx_cli_command *command, int argc, char **argv) {
    static struct rfx_cli_options options; /* large for a stack */
    int code;
    if (!rfx_cli_take_words(command, argc, argv, &options, &code)) return code;
    rfx_cli_progress_catch_signals();
    code = take_standard_input(command, &options);
    if (code != RFX_EXIT_DONE) return code;
    bool writes = command->run != rfx_cmd_explain;
    if (writes && rfx_cli_options_use_stdout(&options))
        stdout = stderr; /* what it tells beside the file */
    return command->run(&options);
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        rfx_cli_print_usage(stderr, commands, N_COMMANDS);
        return RFX_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (rfx_cli_is_help(name)) return rfx_cli_help(commands, N_COMMANDS, argc - 2, argv + 2);
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("rfexec %s\n", rfx_version());
        return RFX_EXIT_DONE;
    }
    if (strcmp(name, "reference") == 0 && argc == 3) /* for the build; not shown in help */
        return rfx_cli_reference(commands, N_COMMANDS, argv[2]);
    const struct rfx_cli_command *command = rfx_cli_find_command(commands, N_COMMANDS, name);
    return command != NULL ? run_command(command, argc - 2, argv + 2)
                           : rfx_cli_refuse_command(commands, N_COMMANDS, name);
}

int main(int argc, char **argv) {
    rfx_program_begin(argv);
    return rfx_program_end(dispatch(argc, argv));
}
