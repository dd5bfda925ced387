/* Boxes and the labels inside them; see chart_boxes.h.
 *
 * Whether a label fits is decided here with an average width of letters, because gnuplot neither
 * measures nor cuts texts. It is on the wide side, so that a reader's other font fits too. */
#include "tools/chart/chart_boxes.h"

#include <string.h>

#include "tools/chart/chart_script.h"

static const double LETTER = 0.61;    /* average width over height of the font */
static const double FONT_PX = 1.15;   /* pixels per unit of the script's font sizes */
static const double LABEL_GAP_PX = 8; /* left free in a box beside its label, both sides together */
static const int font_sizes[] = {12, 11, 10, 9};
enum { N_FONT_SIZES = sizeof font_sizes / sizeof font_sizes[0], MAX_LABEL_BYTES = 160 };

bool rfx_chart_is_boxes(const struct rfx_chart_series *series) {
    return series->style == RFX_CHART_BOXES || series->style == RFX_CHART_FRAMES;
}

void rfx_chart_put_boxes(const struct rfx_chart_series *series, int k, FILE *stream) {
    fprintf(stream, "$s%d << END_OF_DATA\n", k);
    for (int i = 0; i < series->n; ++i)
        fprintf(stream, "%.12g %.12g %.12g %.12g\n", series->x[i], series->y[i], series->x_end[i],
                series->y_end[i]);
    (void)fputs("END_OF_DATA\n", stream);
}

/* Letters of `n` bytes of UTF-8. */
static int count_letters(const char *text, size_t n) {
    int letters = 0;
    for (size_t i = 0; i < n; ++i) letters += ((unsigned char)text[i] & 0xC0) != 0x80;
    return letters;
}

/* The largest font size that fits `letters` letters into so many pixels; 0: none. */
static int fitting_size(int letters, double along_px, double across_px) {
    for (int s = 0; s < N_FONT_SIZES; ++s) {
        double height = font_sizes[s] * FONT_PX;
        if (letters * LETTER * height + LABEL_GAP_PX <= along_px && 1.25 * height <= across_px)
            return font_sizes[s];
    }
    return 0;
}

/* Writes `n` bytes of text into the middle of a box of w x h pixels; false: it does not fit. */
static bool put_label(const struct rfx_chart_series *series, int i, const char *text, size_t n,
                      double w, double h, FILE *stream) {
    char label[MAX_LABEL_BYTES];
    if (n == 0 || n >= sizeof label) return false;
    int letters = count_letters(text, n);
    int level = fitting_size(letters, w, h), upright = fitting_size(letters, h, w);
    if (level == 0 && upright == 0) return false;
    memcpy(label, text, n);
    label[n] = '\0';
    (void)fputs("set label ", stream);
    rfx_chart_quote(label, stream);
    fprintf(stream, " at %.12g,%.12g center%s font ',%d' front textcolor '#111111'\n",
            (series->x[i] + series->x_end[i]) / 2, (series->y[i] + series->y_end[i]) / 2,
            level >= upright ? "" : " rotate by 90", level >= upright ? level : upright);
    return true;
}

void rfx_chart_put_box_labels(const struct rfx_chart_series *series, struct rfx_chart_scale scale,
                              FILE *stream) {
    for (int i = 0; series->labels != NULL && i < series->n; ++i) {
        double w = (series->x_end[i] - series->x[i]) * scale.x;
        double h = (series->y_end[i] - series->y[i]) * scale.y;
        for (const char *text = series->labels[i]; text != NULL;) {
            size_t n = strcspn(text, "\n");
            if (put_label(series, i, text, n, w, h, stream)) break;
            text = text[n] == '\n' ? text + n + 1 : NULL;
        }
    }
}
