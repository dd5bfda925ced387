/* Scores the detector's maps against the truth of a made inspection picture.
 *
 *     rfx-score-defects MAPS.npy TRUTH.csv [--threshold T] [--require SHARE]
 *                       [--image IN.png --overlay OUT.png [--side PIXELS]]
 *
 * Prints planted, found, missed and false per kind; the rule is in defect_truth.h. Exit codes: 0
 * done, 1 a smaller share than --require was found, 2 usage, 3 a file cannot be read or written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "defect_truth.h"
#include "marks.h"
#include "overlay.h"
#include "words.h"

#define CELL_PX 8 /* output stride of data/defect_net.onnx */

/* Spots of fewer cells are dropped: a scratch is at least 48 px long, a stain 36 px wide. */
static const int least_cells[DEFECT_KINDS] = {2, 1, 4};

struct options {
    const char *maps, *truth, *image, *overlay;
    double threshold, require;
    int64_t side;
};

static int usage(void) {
    fprintf(stderr,
            "usage: rfx-score-defects MAPS.npy TRUTH.csv [--threshold T] [--require SHARE]\n"
            "                         [--image IN.png --overlay OUT.png [--side PIXELS]]\n");
    return 2;
}

static int parse_options(int argc, char **argv, struct options *o) {
    *o = (struct options){.threshold = 0.5, .side = 1500};
    const struct demo_option options[] = {{"--threshold", DEMO_REAL, &o->threshold},
                                          {"--require", DEMO_REAL, &o->require},
                                          {"--side", DEMO_WHOLE, &o->side},
                                          {"--image", DEMO_TEXT, &o->image},
                                          {"--overlay", DEMO_TEXT, &o->overlay}};
    if (argc < 3 || demo_read_options(argc - 3, argv + 3, options, 5) != 0) return -1;
    o->maps = argv[1];
    o->truth = argv[2];
    return (o->overlay && !o->image) || o->side < 16 || o->side > 20000 ? -1 : 0;
}

struct tally {
    size_t planted, found, wrong;
};

static void print_tally(const char *name, struct tally t) {
    printf("%-8s  %7zu  %5zu  %6zu  %5zu\n", name, t.planted, t.found, t.planted - t.found,
           t.wrong);
}

/* Prints the table and returns the share of the planted defects that was found. */
static double print_score(const struct truth *truth, const struct defect_spots *spots) {
    struct tally kind[DEFECT_KINDS] = {{0}}, all = {0};
    for (size_t i = 0; i < truth->count; i++) {
        kind[truth->defect[i].kind].planted++;
        kind[truth->defect[i].kind].found += truth->defect[i].found != 0;
    }
    for (size_t i = 0; i < spots->count; i++) {
        kind[spots->spot[i].kind].wrong += spots->spot[i].truth < 0;
    }
    printf("%-8s  %7s  %5s  %6s  %5s\n", "kind", "planted", "found", "missed", "false");
    for (int k = 0; k < DEFECT_KINDS; k++) {
        print_tally(demo_mark_name((enum mark_kind)k), kind[k]);
        all.planted += kind[k].planted;
        all.found += kind[k].found;
        all.wrong += kind[k].wrong;
    }
    print_tally("all", all);
    return all.planted ? (double)all.found / (double)all.planted : 1.0;
}

int main(int argc, char **argv) {
    struct options o;
    struct defect_map map = {0};
    struct defect_spots spots = {0};
    struct truth truth = {0};
    int code = 3;
    if (parse_options(argc, argv, &o) != 0) return usage();
    if (demo_map_read(o.maps, &map) != 0 || demo_truth_read(o.truth, &truth) != 0 ||
        demo_spots_find(&map, (float)o.threshold, least_cells, &spots) != 0) {
        goto done;
    }
    demo_truth_match(&truth, &spots, &map, CELL_PX);
    double share = print_score(&truth, &spots);
    if (o.overlay && demo_overlay_write(o.image, o.overlay, o.side, &truth, &spots, CELL_PX) != 0) {
        goto done;
    }
    code = share < o.require ? 1 : 0;
    if (code == 1) fprintf(stderr, "found %.3f of the defects, %.3f wanted\n", share, o.require);
done:
    demo_truth_free(&truth);
    demo_spots_free(&spots);
    demo_map_free(&map);
    return code;
}
