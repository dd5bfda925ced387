/* Results that commands print, as JSON and as text for people.
 *
 * Every JSON document is one object with "schema" (RFX_JSON_SCHEMA, which rises when a key changes
 * its meaning) and "command". Sizes are in bytes, times in seconds. */
#ifndef RFX_TOOLS_CLI_REPORT_H
#define RFX_TOOLS_CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "rfexec/run/session.h"
#include "tiler/plan/plan.h"
#include "tiler/search/plan_survey.h"

#define RFX_JSON_SCHEMA 1

enum { RFX_HUMAN_CHARS = 32 };

/* Writes a size such as "12.3 MiB" or "7 B" to text[RFX_HUMAN_CHARS] and returns `text`. */
char *rfx_human_bytes(size_t bytes, char *text);

/* Writes a count such as "4.09 G", "300.77 M", "12 k" or "7" to text[RFX_HUMAN_CHARS] and returns
 * `text`. */
char *rfx_human_count(uint64_t count, char *text);

/* Writes a shape such as "1x3x224x224" to `text` and returns `text`. */
char *rfx_human_shape(const struct rfx_shape *shape, char text[96]);

/* Called once, before any JSON document is made. Notes every failed allocation of the JSON library.
 * After a failure no document is printed, so every printed document is complete. */
void rfx_report_watch_memory(void);

/* The first function notes that a part of a report is missing for lack of memory. The second
 * returns whether that was noted. */
void rfx_report_note_no_memory(void);
bool rfx_report_lacks_memory(void);

/* Returns a new JSON object with "schema", "command" and "model". The caller owns the reference. */
json_t *rfx_report_document(const char *command, const char *model);

/* Adds "conv": the algorithm of the network's convolutions on this processor, named as in --conv.
 */
void rfx_report_conv(json_t *document, const struct rfx_graph *graph);

/* Prints a document and a newline to stdout and drops the reference. Returns RFX_EXIT_DONE, or
 * RFX_EXIT_SYSTEM when there is no memory or stdout cannot be written. */
int rfx_report_print(json_t *document);

/* Returns the object "plan": stages, groups, split, tiles, peak_bytes, breakdown, macs, ... A group
 * has first, last, layers, strip_cols, strips, step_rows, ring_bytes (of one thread), steps (number
 * of steps in which the plan runs the group) and items_per_thread (column strips of one thread in
 * one step). */
json_t *rfx_report_plan(const struct rfx_plan *plan);

/* Returns a JSON object about one plan: "kind", "text", "peak_bytes", "macs", "macs_ratio",
 * "predicted_time_ratio", "predicted_seconds". */
json_t *rfx_report_summary(const struct rfx_plan_survey *survey,
                           const struct rfx_plan_summary *summary, int threads);

/* Returns part / untiled: the MACs or predicted time of a plan divided by those of the untiled run.
 * Returns 1 when `untiled` is 0. */
double rfx_report_ratio(uint64_t part, uint64_t untiled);

/* Returns the object "measured". */
json_t *rfx_report_measured(const struct rfx_run_report *report);

/* Prints a field of CSV on stdout, quoted. */
void rfx_report_csv_text(const char *text);

/* Returns an array such as [1, 3, 224, 224]. */
json_t *rfx_report_shape(const struct rfx_shape *shape);

/* Returns a JSON number, or the string "nan", "inf" or "-inf" for a value that JSON numbers cannot
 * express. */
json_t *rfx_report_number(double value);

/* Report the peak bytes of a whole-image run of the executed (fused) graph, and the layer of the
 * peak: the live feature maps, the image included, and all parameters as float32. The first
 * function prints a line on stdout. The second adds "untiled": {"maps_and_parameters_bytes",
 * "peak_layer"} to `document`. Without memory for the computation both report nothing, and the
 * program's exit code becomes RFX_EXIT_SYSTEM. */
void rfx_report_untiled_text(const struct rfx_graph *graph);
void rfx_report_untiled(json_t *document, const struct rfx_graph *graph);

/* Prints a line about the late nodes of a network (rfexec/late/late.h), if it has any. */
void rfx_report_late_text(const struct rfx_graph *graph);

/* Prints the plan in lines on stdout. */
void rfx_report_plan_text(const struct rfx_plan *plan);

/* Prints a table of the plan's groups on stdout, if there are any. */
void rfx_report_groups_text(const struct rfx_plan *plan);

struct rfx_cli_least;

/* Prints two smallest budgets: that of the given options (`smallest`) and that of any options
 * (`least`). Prints on stderr and, with `json`, also a document on stdout. */
void rfx_report_smallest(const char *command, const char *model, size_t budget_bytes,
                         const struct rfx_plan *smallest, const struct rfx_cli_least *least,
                         bool json);

/* Prints the smallest budget. Called after a run without a budget that ran out of memory. */
void rfx_report_no_budget(const struct rfx_plan *plan, const struct rfx_cli_least *least);

/* Returns the resident set of this process now (VmRSS), in bytes; 0: unknown. */
size_t rfx_resident_bytes(void);

/* Returns the peak resident set of this process so far (VmHWM), in bytes; 0: unknown. */
size_t rfx_peak_rss_bytes(void);

/* Returns the bytes that can be allocated without swapping (the kernel's MemAvailable); 0: unknown.
 */
size_t rfx_available_bytes(void);
#endif
