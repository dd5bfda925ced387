/* Which options go together. */
#ifndef RFX_TOOLS_CLI_OPTION_CHECKS_H
#define RFX_TOOLS_CLI_OPTION_CHECKS_H

#include "tools/cli/options.h"

/* false: the reason is in `why`. */
bool rfx_cli_options_check(const struct rfx_cli_options *options, char *why, size_t why_size);

/* Whether a file is written to standard output ("-"), so that what a command tells must go
 * elsewhere. */
bool rfx_cli_options_use_stdout(const struct rfx_cli_options *options);
#endif
