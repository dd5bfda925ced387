/* Which names of a long row of operators are written along an axis. */
#ifndef RFX_TOOLS_CHART_STEP_NAMES_H
#define RFX_TOOLS_CHART_STEP_NAMES_H

/* Parts of a name are separated by '.' or '/': the length of its first `depth` parts. */
int rfx_step_name_length(const char *name, int depth);

/* The most parts, at least 1, with which no more than `most` runs of equal names remain; 0: even
 * with one part there are more. */
int rfx_step_name_depth(const char *const *names, int n, int most);
#endif
