/* Which options go together. */
#ifndef RFX_TOOLS_CLI_OPTION_CHECKS_H
#define RFX_TOOLS_CLI_OPTION_CHECKS_H

#include "tools/cli/options.h"

/* false: the reason is in `why`. */
bool rfx_cli_options_check(const struct rfx_cli_options *options, char *why, size_t why_size);

/* Whether a file is written to standard output ("-"), so that what a command tells must go
 * elsewhere. */
bool rfx_cli_options_use_stdout(const struct rfx_cli_options *options);

/* Whether options are given that are for files of outputs. */
bool rfx_cli_options_of_files(const struct rfx_cli_options *options);

/* Why options of single kinds of files do not suit those that are written, which is said; NULL:
 * they do. `kinds`: bit k for enum rfx_output_kind k. */
const char *rfx_cli_options_misfit(const struct rfx_cli_options *options, unsigned kinds);
#endif
