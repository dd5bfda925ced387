/* rfexec chart: draws a CSV file of series,x,y[,label], for figures that combine several results.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/study/chart.h"

/* FIELDS: columns of the CSV file. More series or points than the limits cannot be distinguished in
 * a chart. */
enum { FIELDS = 4, MAX_SERIES = 32, MAX_POINTS = 100000 };

struct chart_options {
    struct rfx_cli_words words;
    const char *file, *title, *subtitle, *x_label, *y_label;
    bool log_x, log_y;
};

struct points {
    char *name;
    int n, capacity;
    double *x, *y;
    char **labels; /* malloc'ed by strdup, entries may be NULL */
};

struct table {
    struct rfx_memory *mem;
    const char *path;
    int n;
    struct points items[MAX_SERIES];
};

/* Splits a line such as a,"b ""c""",d into fields, in place. Returns false when there are more than
 * FIELDS fields or a quote is not closed. */
static bool split_line(char *line, char *fields[FIELDS], int *count) {
    char *read = line, *write;
    *count = 0;
    do {
        if (*count == FIELDS) return false;
        while (*read == ' ') ++read;
        bool quoted = *read == '"';
        read += quoted;
        if (quoted && *read == '\0') return false;
        fields[(*count)++] = write = read;
        while (*read != '\0' && (quoted || *read != ',')) {
            if (quoted && *read == '"' && *++read != '"') break;
            *write++ = *read++;
            if (quoted && *read == '\0') return false;
        }
        while (*read != '\0' && *read != ',') ++read;
        bool more = *read == ',';
        *write = '\0';
        if (!more) return true;
        ++read;
    } while (true);
}

static bool parse_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    while (isspace((unsigned char)*end)) ++end;
    return end != text && *end == '\0';
}

static struct points *find_series(struct table *table, const char *name) {
    for (int i = 0; i < table->n; ++i)
        if (strcmp(table->items[i].name, name) == 0) return &table->items[i];
    if (table->n == MAX_SERIES) return NULL;
    char *copy = rfx_memory_strdup(table->mem, name);
    if (copy == NULL) return NULL;
    table->items[table->n].name = copy;
    return &table->items[table->n++];
}

static bool grow(struct table *table, struct points *p) {
    size_t capacity = p->capacity > 0 ? (size_t)p->capacity * 2 : 64;
    double *x = rfx_memory_realloc(table->mem, p->x, capacity * sizeof *x);
    if (x == NULL) return false;
    p->x = x;
    double *y = rfx_memory_realloc(table->mem, p->y, capacity * sizeof *y);
    if (y == NULL) return false;
    p->y = y;
    char **labels = rfx_memory_realloc(table->mem, p->labels, capacity * sizeof *labels);
    if (labels == NULL) return false;
    p->labels = labels;
    p->capacity = (int)capacity;
    return true;
}

static enum rfx_status add_row(struct table *table, char *line, long number,
                               struct rfx_error *err) {
    char *fields[FIELDS];
    int count;
    double x, y;
    if (!split_line(line, fields, &count) || count < 3)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s:%ld: not series,x,y or series,x,y,label",
                        table->path, number);
    bool numbers = parse_number(fields[1], &x) && parse_number(fields[2], &y);
    if (!numbers && number == 1) return RFX_OK; /* the first line may contain column names */
    if (!numbers)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s:%ld: x and y must be numbers: '%s', '%s'",
                        table->path, number, fields[1], fields[2]);
    struct points *p = find_series(table, fields[0]);
    if (p == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s:%ld: more than %d series", table->path,
                        number, MAX_SERIES);
    if (p->n == MAX_POINTS)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s:%ld: more than %d points", table->path,
                        number, MAX_POINTS);
    if (p->n == p->capacity && !grow(table, p))
        return rfx_memory_fail(table->mem, "points", (size_t)p->n * sizeof *p->x, err);
    p->x[p->n] = x;
    p->y[p->n] = y;
    p->labels[p->n] = NULL;
    if (count == FIELDS && fields[3][0] != '\0') {
        p->labels[p->n] = rfx_memory_strdup(table->mem, fields[3]);
        if (p->labels[p->n] == NULL)
            return rfx_memory_fail(table->mem, "label", strlen(fields[3]), err);
    }
    p->n++;
    return RFX_OK;
}

static enum rfx_status read_table(struct table *table, struct rfx_error *err) {
    bool standard = strcmp(table->path, "-") == 0;
    FILE *file = standard ? stdin : fopen(table->path, "r");
    if (file == NULL) return rfx_fail(err, RFX_STATUS_IO, "%s: %s", table->path, strerror(errno));
    static char line[4096];
    enum rfx_status status = RFX_OK;
    for (long number = 1; status == RFX_OK && fgets(line, sizeof line, file) != NULL; ++number) {
        if (strchr(line, '\n') == NULL && !feof(file)) {
            status = rfx_fail(err, RFX_STATUS_MALFORMED, "%s:%ld: line longer than %zu bytes",
                              table->path, number, sizeof line - 2);
            break;
        }
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0' && line[0] != '#') status = add_row(table, line, number, err);
    }
    if (status == RFX_OK && ferror(file) != 0)
        status = rfx_fail(err, RFX_STATUS_IO, "%s: cannot be read", table->path);
    if (!standard) (void)fclose(file);
    return status;
}

static void table_release(struct table *table) {
    for (int i = 0; i < table->n; ++i) {
        struct points *p = &table->items[i];
        for (int k = 0; k < p->n; ++k) rfx_memory_release(table->mem, p->labels[k]);
        rfx_memory_release(table->mem, p->labels);
        rfx_memory_release(table->mem, p->y);
        rfx_memory_release(table->mem, p->x);
        rfx_memory_release(table->mem, p->name);
    }
}

static enum rfx_status draw(const struct table *table, const struct chart_options *options,
                            struct rfx_error *err) {
    struct rfx_chart_series series[MAX_SERIES];
    for (int i = 0; i < table->n; ++i) {
        const struct points *p = &table->items[i];
        series[i] = (struct rfx_chart_series){.name = p->name,
                                              .style = RFX_CHART_LINES_POINTS,
                                              .n = p->n,
                                              .x = p->x,
                                              .y = p->y,
                                              .labels = (const char *const *)p->labels};
    }
    struct rfx_chart chart = {.title = options->title,
                              .subtitle = options->subtitle,
                              .x = {.label = options->x_label, .log = options->log_x},
                              .y = {.label = options->y_label, .log = options->log_y},
                              .n_series = table->n,
                              .series = series};
    return rfx_chart_write(&chart, table->mem, options->file, err);
}

static int run(void *given) {
    const struct chart_options *options = given;
    struct rfx_error err = {{0}};
    struct table table = {.mem = rfx_cli_memory_create(), .path = options->words.args[0]};
    if (table.mem == NULL) return RFX_EXIT_SYSTEM;
    enum rfx_status status = read_table(&table, &err);
    if (status == RFX_OK) status = draw(&table, options, &err);
    table_release(&table);
    rfx_memory_free(table.mem);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(chart_options, "output", RESULT, file, "FILE", "chart to write", .letter = 'o',
                   .ends = ".svg .png"),
    RFX_CLI_OPTION(chart_options, "title", TEXT, title, "TEXT", "title above the chart"),
    RFX_CLI_OPTION(chart_options, "subtitle", TEXT, subtitle, "TEXT", "line below the title"),
    RFX_CLI_OPTION(chart_options, "x-label", TEXT, x_label, "TEXT",
                   "quantity of the x axis, with its unit"),
    RFX_CLI_OPTION(chart_options, "y-label", TEXT, y_label, "TEXT",
                   "quantity of the y axis, with its unit"),
    RFX_CLI_OPTION(chart_options, "log-x", FLAG, log_x, NULL, "logarithmic x axis"),
    RFX_CLI_OPTION(chart_options, "log-y", FLAG, log_y, NULL, "logarithmic y axis"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("chart options", rows);

static struct chart_options values;

static const struct rfx_cli_use uses[] = {{&group, 0}};

const struct rfx_cli_command rfx_cmd_chart = {
    .name = "chart",
    .args = "DATA.csv -o FILE [--title TEXT] [--x-label TEXT] [--y-label TEXT]",
    .summary = "draw lines from a table",
    .details = "DATA.csv ('-': standard input) has rows series,x,y or series,x,y,label.\n",
    .examples =
        "rfexec chart ratios.csv -o ratios.svg --x-label 'image size [px]' --y-label ratio "
        "--log-y\n",
    RFX_CLI_TABLE(uses),
    .needs = "output",
    .min_args = 1,
    .max_args = 1,
    .values = &values,
    .run = run,
};
