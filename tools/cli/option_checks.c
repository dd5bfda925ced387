/* Pairs of options that exclude each other; see option_checks.h. */
#include "tools/cli/option_checks.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/chart/chart.h"

static bool is_standard_output(const char *file) {
    return file != NULL && strcmp(file, "-") == 0;
}

static bool is_page_name(const char *file) {
    const char *end = strrchr(file, '.');
    return is_standard_output(file) ||
           (end != NULL && (strcasecmp(end, ".html") == 0 || strcasecmp(end, ".htm") == 0));
}

static int count_standard_output(const struct rfx_cli_options *o) {
    int n =
        is_standard_output(o->output) + is_standard_output(o->plot) + is_standard_output(o->report);
    for (int i = 0; i < o->kept.n; ++i) n += is_standard_output(o->kept.files[i]);
    return n;
}

bool rfx_cli_options_use_stdout(const struct rfx_cli_options *options) {
    return count_standard_output(options) > 0;
}

/* One file can be written there, and then nothing else. */
static bool check_standard_output(const struct rfx_cli_options *o, char *why, size_t why_size) {
    int n = count_standard_output(o) + (o->json || o->csv);
    if (n < 2 || !rfx_cli_options_use_stdout(o)) return true;
    (void)snprintf(why, why_size, "only one of --json, --csv and files '-' can be standard output");
    return false;
}

bool rfx_cli_options_check(const struct rfx_cli_options *o, char *why, size_t why_size) {
    if (o->untiled && (o->tiles.y != 0 || o->split != NULL || o->bands != 0)) {
        (void)snprintf(why, why_size, "--untiled excludes --tiles, --bands and --split");
        return false;
    }
    if ((o->strips != 0 || o->tight) && o->bands == 0) {
        (void)snprintf(why, why_size, "--%s needs --bands", o->strips != 0 ? "strips" : "tight");
        return false;
    }
    bool by_hand = o->untiled || o->tiles.y != 0 || o->split != NULL || o->bands != 0;
    if (o->plan_file != NULL &&
        (by_hand || o->row_by_row || o->weights_by_stage || o->no_inplace)) {
        (void)snprintf(why, why_size,
                       "--plan says all of the plan: it excludes --tiles, --bands, --strips, "
                       "--split, --untiled, --row-by-row, --weights-by-stage and --no-inplace");
        return false;
    }
    if (o->spill != NULL && (o->untiled || o->tiles.y != 0 || o->split != NULL)) {
        (void)snprintf(why, why_size, "--spill excludes --untiled, --tiles and --split");
        return false;
    }
    bool by_bands = o->memory_bytes != 0 || o->bands != 0 || o->plan_file != NULL || o->pareto;
    if (o->spill != NULL && !by_bands) {
        (void)snprintf(why, why_size,
                       "--spill needs --memory, --bands or --plan: else no map is "
                       "made in parts");
        return false;
    }
    if (o->bands != 0 && o->tiles.y != 0) {
        (void)snprintf(why, why_size, "--bands excludes --tiles");
        return false;
    }
    if (o->plot != NULL && !rfx_chart_name_ok(o->plot)) {
        (void)snprintf(why, why_size, "--plot '%s': charts are .svg or .png", o->plot);
        return false;
    }
    if (o->report != NULL && !is_page_name(o->report)) {
        (void)snprintf(why, why_size, "--report '%s': the name must end in .html or .htm",
                       o->report);
        return false;
    }
    if (o->naive && o->kept.n != 0) {
        (void)snprintf(why, why_size, "--naive excludes --keep");
        return false;
    }
    for (int i = 0; i < 3; ++i) {
        if (o->std[i] != 0.0F) continue;
        (void)snprintf(why, why_size, "option '--std': 0 cannot be divided by");
        return false;
    }
    if (o->no_fuse && o->baseline != NULL && strcmp(o->baseline, "eager") != 0) {
        (void)snprintf(why, why_size, "--no-fuse is --baseline eager, not '%s'", o->baseline);
        return false;
    }
    if (o->json && o->csv) {
        (void)snprintf(why, why_size, "--json excludes --csv");
        return false;
    }
    return check_standard_output(o, why, why_size);
}
