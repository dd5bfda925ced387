/* Reading tables of fingerprints; see golden.h. */
#include "tools/cli/golden.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "layers/conv/conv_backend.h"

/* data/fingerprints.csv as text, made by the build (tools/cmake/rfx_helpers.cmake). */
extern const char rfx_golden_csv[];

#define HEADER "model,size,conv,output,shape,fingerprint\n"
enum { MOST_BYTES = 1 << 20 };

/* The next field of a line; false where it is empty or too long. */
static bool take_field(const char **at, char end, char *field, size_t size) {
    size_t length = strcspn(*at, ",\n");
    if ((*at)[length] != end || length == 0 || length >= size) return false;
    memcpy(field, *at, length);
    field[length] = '\0';
    *at += length + 1;
    return true;
}

static bool parse_line(const char **at, struct rfx_golden_row *row) {
    char size[32], conv[32], after;
    long long h, w;
    if (!take_field(at, ',', row->model, sizeof row->model) ||
        !take_field(at, ',', size, sizeof size) || !take_field(at, ',', conv, sizeof conv) ||
        !take_field(at, ',', row->output, sizeof row->output) ||
        !take_field(at, ',', row->shape, sizeof row->shape) ||
        !take_field(at, '\n', row->fingerprint, sizeof row->fingerprint) ||
        !rfx_conv_choice_find(conv, &row->conv) ||
        strlen(row->fingerprint) != RFX_FINGERPRINT_CHARS - 1 ||
        sscanf(size, "%9lldx%9lld%c", &h, &w, &after) != 2 || h < 1 || w < 1)
        return false;
    row->h = h;
    row->w = w;
    return true;
}

static enum rfx_status parse(const char *text, const char *name, struct rfx_golden *golden,
                             struct rfx_error *err) {
    int lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++) lines++;
    if (strncmp(text, HEADER, strlen(HEADER)) != 0 || lines < 2)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: not a table of fingerprints", name);
    size_t bytes = (size_t)lines * sizeof *golden->rows;
    golden->rows = rfx_memory_calloc(golden->mem, (size_t)lines, sizeof *golden->rows);
    if (golden->rows == NULL) return rfx_memory_fail(golden->mem, name, bytes, err);
    const char *at = text + strlen(HEADER);
    for (; *at != '\0'; golden->count++)
        if (!parse_line(&at, &golden->rows[golden->count]))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "%s: line %d is not model,ROWSxCOLUMNS,conv,output,shape,fingerprint",
                            name, golden->count + 2);
    return RFX_OK;
}

static enum rfx_status read_text(const char *path, char *text, struct rfx_error *err) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return rfx_fail(err, RFX_STATUS_IO, "%s: %s", path, strerror(errno));
    size_t got = fread(text, 1, MOST_BYTES, file);
    bool bad = ferror(file) != 0;
    (void)fclose(file);
    if (bad) return rfx_fail(err, RFX_STATUS_IO, "%s: cannot be read", path);
    if (got == MOST_BYTES || memchr(text, '\0', got) != NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: not a table of fingerprints", path);
    text[got] = '\0';
    return RFX_OK;
}

enum rfx_status rfx_golden_read(struct rfx_memory *mem, const char *path, struct rfx_golden *golden,
                                struct rfx_error *err) {
    *golden = (struct rfx_golden){.mem = mem};
    if (path == NULL) return parse(rfx_golden_csv, "the program's own table", golden, err);
    char *text = rfx_memory_alloc(mem, MOST_BYTES);
    if (text == NULL) return rfx_memory_fail(mem, path, MOST_BYTES, err);
    enum rfx_status status = read_text(path, text, err);
    if (status == RFX_OK) status = parse(text, path, golden, err);
    rfx_memory_release(mem, text);
    return status;
}

int rfx_golden_run_length(const struct rfx_golden *golden, int first) {
    const struct rfx_golden_row *a = &golden->rows[first];
    int n = 1;
    for (; first + n < golden->count; n++) {
        const struct rfx_golden_row *b = a + n;
        if (strcmp(a->model, b->model) != 0 || a->h != b->h || a->w != b->w || a->conv != b->conv)
            break;
    }
    return n;
}

void rfx_golden_free(struct rfx_golden *golden) {
    if (golden->mem != NULL) rfx_memory_release(golden->mem, golden->rows);
    *golden = (struct rfx_golden){0};
}
