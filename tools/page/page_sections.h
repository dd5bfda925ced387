/* The sections of a page, each in a file of its own. They write into page->html, which keeps the
 * first failure. */
#ifndef RFX_TOOLS_PAGE_PAGE_SECTIONS_H
#define RFX_TOOLS_PAGE_PAGE_SECTIONS_H

#include "tools/page/run_page.h"

/* What of the process is there all the time, beside the arena. */
size_t rfx_page_fixed_bytes(const struct rfx_plan *plan);

/* Stages across, addresses upwards, a box per buffer. */
void rfx_page_plan_picture(struct rfx_run_page *page);

/* Time across: what is planned for each moment, what the process had, the budget. */
void rfx_page_memory_chart(struct rfx_run_page *page, const struct rfx_run_report *report);

/* A row per layer. */
void rfx_page_layers(struct rfx_run_page *page);

/* The input with an output over it, where there is one. */
void rfx_page_overlay(struct rfx_run_page *page);

/* Figures, histogram and pictures of output k. */
void rfx_page_output(struct rfx_run_page *page, const struct rfx_cli_output *output, int k);
#endif
