/* The output of data/phase_net.onnx, read from an .npy file. */
#ifndef RFX_TOOLS_DEMO_PHASE_MAP_H
#define RFX_TOOLS_DEMO_PHASE_MAP_H

#include <stdint.h>

struct phase_map {
    int64_t h, w;
    float *value; /* [PHASES, h, w]; owned */
};

/* Reads float32 [1, PHASES, h, w] (or [PHASES, h, w]). Returns 0, or -1 after printing the reason
 * to stderr. Free with demo_phase_map_free. */
int demo_phase_map_read(const char *path, struct phase_map *out);
void demo_phase_map_free(struct phase_map *map);
#endif
