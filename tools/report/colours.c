/* See colours.h. */
#include "tools/report/colours.h"

#include <math.h>
#include <string.h>

const unsigned char rfx_no_value_colour[3] = {210, 30, 30};

void rfx_heat_colour(double share, unsigned char rgb[3]) {
    static const double colours[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    enum { N = sizeof colours / sizeof colours[0] };
    double at = share * (N - 1);
    int i = at < 0 ? 0 : at >= N - 1 ? N - 2 : (int)at;
    double part = fmin(fmax(at - i, 0.0), 1.0);
    for (int k = 0; k < 3; ++k)
        rgb[k] = (unsigned char)lround(colours[i][k] + part * (colours[i + 1][k] - colours[i][k]));
}

/* Of a hue from 0 to 1 (red, yellow, green, cyan, blue, magenta, red) at some lightness. */
static void hue_colour(double hue, double light, unsigned char rgb[3]) {
    for (int k = 0; k < 3; ++k) {
        double at = fmod(hue * 6.0 + 2.0 * (double)((3 - k) % 3), 6.0);
        double part = fmin(fmax(fabs(at - 3.0) - 1.0, 0.0), 1.0);
        rgb[k] = (unsigned char)lround(255.0 * light * (0.15 + 0.85 * part));
    }
}

void rfx_label_colour(int64_t label, unsigned char rgb[3]) {
    static const unsigned char first[][3] = {{230, 159, 0},  {86, 180, 233}, {0, 158, 115},
                                             {240, 228, 66}, {0, 114, 178},  {213, 94, 0},
                                             {204, 121, 167}};
    enum { N = sizeof first / sizeof first[0] };
    static const double golden = 0.61803398874989485;
    if (label >= 1 && label <= N) {
        memcpy(rgb, first[label - 1], 3);
        return;
    }
    int64_t i = label > N ? label - N - 1 : 0;
    hue_colour(fmod(0.08 + (double)i * golden, 1.0), i % 2 == 0 ? 1.0 : 0.7, rgb);
}
