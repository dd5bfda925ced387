/* Which options go together. */
#ifndef RFX_TOOLS_CLI_OPTION_CHECKS_H
#define RFX_TOOLS_CLI_OPTION_CHECKS_H

#include "rfexec/output/output_format.h"
#include "tools/cli/options.h"

/* false: the reason is in `why`. */
bool rfx_cli_options_check(const struct rfx_cli_options *options, char *why, size_t why_size);

/* Whether a file is written to standard output ("-"), so that what a command tells must go
 * elsewhere. */
bool rfx_cli_options_use_stdout(const struct rfx_cli_options *options);

/* Whether options are given that are for files of outputs. */
bool rfx_cli_options_of_files(const struct rfx_cli_options *options);

/* Why options of single kinds of files do not suit those that are written, which is said; NULL:
 * they do. `takes`: of all kinds that are written (struct rfx_output_kind). */
const char *rfx_cli_options_misfit(const struct rfx_cli_options *options, unsigned takes);

/* Why options do not suit a batch of images; NULL: they do. */
const char *rfx_cli_options_not_of_batch(const struct rfx_cli_options *options);

/* The format of a file of this name; false: the name has an unknown end. */
bool rfx_cli_output_format(const struct rfx_cli_options *options, const char *path,
                           struct rfx_output_format *format);

/* Whether output pixels that are made of missing samples are marked. */
bool rfx_cli_options_mark(const struct rfx_cli_options *options);
#endif
