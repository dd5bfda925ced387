/* What commands print: JSON documents and the readable forms of the same figures.
 *
 * Every JSON document is one object with "schema" (RFX_JSON_SCHEMA, raised when a key changes its
 * meaning) and "command". Sizes are bytes, times seconds. */
#ifndef RFX_TOOLS_CLI_REPORT_H
#define RFX_TOOLS_CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#include "rfexec/session/session.h"
#include "tiler/plan/plan.h"
#include "tiler/search/plan_survey.h"

#define RFX_JSON_SCHEMA 1

enum { RFX_HUMAN_CHARS = 32 };

/* "12.3 MiB", "7 B"; text has RFX_HUMAN_CHARS characters and is returned. */
char *rfx_human_bytes(size_t bytes, char *text);

/* "4.09 G", "300.77 M", "12 k", "7". */
char *rfx_human_count(uint64_t count, char *text);

/* "1x3x224x224". */
char *rfx_human_shape(const struct rfx_shape *shape, char text[96]);

/* Once, before any document: from then on a document is not printed when an allocation for one has
 * failed, so that nothing is missing in what is. */
void rfx_report_watch_memory(void);

/* Notes that a part of a report is missing, as there was no memory for it; whether one is. */
void rfx_report_note_no_memory(void);
bool rfx_report_lacks_memory(void);

/* {"schema", "command", "model"}; a new reference. */
json_t *rfx_report_document(const char *command, const char *model);

/* Adds "conv": what computes the network's convolutions on this processor, as --conv has it. */
void rfx_report_conv(json_t *document, const struct rfx_graph *graph);

/* Prints a document and a newline to stdout and drops the reference. The exit code: RFX_EXIT_DONE,
 * or RFX_EXIT_SYSTEM when there is no memory or stdout cannot be written. */
int rfx_report_print(json_t *document);

/* "plan" as architecture.md has it: stages, groups, split, tiles, peak_bytes, breakdown, macs... Of
 * a group: first, last, layers, strip_cols, strips, step_rows, ring_bytes (of a thread), steps (in
 * which the plan runs it), items_per_thread (column strips of such a step). */
json_t *rfx_report_plan(const struct rfx_plan *plan);

/* {"kind", "text", "peak_bytes", "macs", "macs_ratio", "predicted_time_ratio",
 * "predicted_seconds"}. */
json_t *rfx_report_summary(const struct rfx_plan_survey *survey,
                           const struct rfx_plan_summary *summary, int threads);

/* A plan's MACs or predicted time over the untiled run's; 1 where that is 0. */
double rfx_report_ratio(uint64_t part, uint64_t untiled);

/* "measured". */
json_t *rfx_report_measured(const struct rfx_run_report *report);

/* Prints a field of CSV on stdout, quoted. */
void rfx_report_csv_text(const char *text);

/* [1, 3, 224, 224]. */
json_t *rfx_report_shape(const struct rfx_shape *shape);

/* A number; "nan", "inf" or "-inf" where JSON has none. */
json_t *rfx_report_number(double value);

/* What a whole-image run of the graph, as it is executed, holds at most: live maps, the image among
 * them, and all parameters as float32; *node (may be NULL): the layer at which. 0: no memory to
 * find out, which is noted. One figure wherever it is shown: analyze, advise, plan, charts. */
size_t rfx_report_untiled_bytes(const struct rfx_graph *graph, int *node);

/* The same as a line on stdout, and as "untiled": {"maps_and_parameters_bytes", "peak_layer"}. */
void rfx_report_untiled_text(const struct rfx_graph *graph);
void rfx_report_untiled(json_t *document, const struct rfx_graph *graph);

/* The plan in lines, on stdout. */
void rfx_report_plan_text(const struct rfx_plan *plan);

/* A table of the plan's groups, on stdout; nothing when there are none. */
void rfx_report_groups_text(const struct rfx_plan *plan);

struct rfx_cli_least;

/* What would fit, with the options as they are and with any: on stderr, and with json as a document
 * on stdout. */
void rfx_report_smallest(const char *command, const char *model, size_t budget_bytes,
                         const struct rfx_plan *smallest, const struct rfx_cli_least *least,
                         bool json);

/* What would fit, after a plan for which no budget was given did not. */
void rfx_report_no_budget(const struct rfx_plan *plan, const struct rfx_cli_least *least);

/* The resident set of this process now (VmRSS), in bytes; 0 when unknown. */
size_t rfx_resident_bytes(void);

/* The peak resident set of this process so far (VmHWM), in bytes; 0 when unknown. */
size_t rfx_peak_rss_bytes(void);

/* Bytes that the kernel says can be had without swapping (MemAvailable); 0: it does not say. */
size_t rfx_available_bytes(void);
#endif
