/* The folder of `run --viewer`: a page that shows the image, one output over it and what is found
 * in the outputs, at any size. It needs no other file and no network connection.
 *
 *   index.html               the page (viewer_page.html)
 *   view.js                  sizes, names and places of what it shows
 *   image.dzi, image_files/  the image as tiles (tile_pyramid.h)
 *   map.dzi, map_files/      the colours of the overlay (image_overlay.h) with their opacity
 *   regions.js and so on     the answers: GeoJSON in a call of a function
 *
 * The other scripts are points.js, text.js and boxes.js. They are scripts because a page that comes
 * from a file, not from a server, may load scripts but no data.
 *
 * Regions, points and text are copied from the files of --regions, --points and --text, and so are
 * boxes if the file of --boxes is GeoJSON. Else boxes are those in memory. Invariants: 1. the
 * folder gets its name only from rfx_image_viewer_commit; 2. memory is allocated by open, and for
 * one tile at a time, at most rfx_image_viewer_bytes; 3. the bytes of the files do not depend on
 * the plan. */
#ifndef RFX_TOOLS_REPORT_IMAGE_VIEWER_H
#define RFX_TOOLS_REPORT_IMAGE_VIEWER_H

#include "tools/cli/answers.h"
#include "tools/cli/job.h"
#include "tools/cli/options.h"

struct rfx_image_viewer;

/* Checks that the answers of the run can be drawn. Prints why they cannot. */
RFX_NODISCARD int rfx_image_viewer_check(const struct rfx_cli_run_options *options);

/* Returns an upper bound of the memory. input: the network's input; mapped: a map is shown. */
size_t rfx_image_viewer_bytes(const struct rfx_tensor *input, bool mapped);

/* Opens the folder of --viewer under a temporary name. IO: there is something of that name. The
 * caller frees *out with rfx_image_viewer_free. Options and job are borrowed. */
RFX_NODISCARD enum rfx_status rfx_image_viewer_open(const struct rfx_cli_run_options *options,
                                                    const struct rfx_cli_job *job, bool mapped,
                                                    struct rfx_image_viewer **out,
                                                    struct rfx_error *err);

/* Returns the path that the folder will have, without '/' at its end. */
const char *rfx_image_viewer_path(const struct rfx_image_viewer *viewer);

/* Adds the next row of the image. colours: [w, 3], 0 to 255. */
RFX_NODISCARD enum rfx_status rfx_image_viewer_image(struct rfx_image_viewer *viewer,
                                                     const float *colours, struct rfx_error *err);

/* Adds the next row of the map's colours. rgba: [w, 4], alpha is opacity. */
RFX_NODISCARD enum rfx_status rfx_image_viewer_map(struct rfx_image_viewer *viewer,
                                                   unsigned char *rgba, struct rfx_error *err);

/* Called after the last row, when the files of the answers have their names. Adds the answers and
 * the page and gives the folder its name. shows: describes the map. IO: also, a file of answers
 * cannot be read. */
RFX_NODISCARD enum rfx_status rfx_image_viewer_commit(struct rfx_image_viewer *viewer,
                                                      const struct rfx_cli_answers *answers,
                                                      const char *shows, struct rfx_error *err);

/* Removes what has no name yet. NULL is fine. */
void rfx_image_viewer_free(struct rfx_image_viewer *viewer);
#endif
