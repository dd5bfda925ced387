/* Colours that stand for values, and colours that tell labels apart. */
#ifndef RFX_TOOLS_REPORT_COLOURS_H
#define RFX_TOOLS_REPORT_COLOURS_H

#include <stdint.h>

/* Red: of what is no finite value, or no label. */
extern const unsigned char rfx_no_value_colour[3];

/* Dark blue to yellow, lighter with every step, so that it can be read in grey too: of a share from
 * 0 to 1, beyond them as the nearer one. */
void rfx_heat_colour(double share, unsigned char rgb[3]);

/* Of a label from 1 on: the seven of "Color Universal Design" (2008), which colour-blind eyes tell
 * apart, then hues each as far as may be from those just before. */
void rfx_label_colour(int64_t label, unsigned char rgb[3]);
#endif
