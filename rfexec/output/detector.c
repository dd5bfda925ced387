/* Where a candidate has its values; see detector.h. */
#include "rfexec/output/detector.h"

/* Numbers of a kind of values; scores have one for each class. */
static const int64_t lengths[RFX_DETECTOR_VALUES] = {[RFX_DETECTOR_BOX] = 4,
                                                     [RFX_DETECTOR_OBJECTNESS] = 1,
                                                     [RFX_DETECTOR_POINTS] = 10,
                                                     [RFX_DETECTOR_BOX_CENTRE] = 2,
                                                     [RFX_DETECTOR_BOX_SIDES] = 2};

int64_t rfx_detector_fixed(const struct rfx_detector_output *out, bool *scores) {
    int64_t fixed = 0;
    *scores = false;
    for (int k = 0; k < out->n_values; k++) {
        fixed += lengths[out->values[k]];
        *scores |= out->values[k] == RFX_DETECTOR_SCORES;
    }
    return fixed;
}

/* Sets the places of the values of an output. Returns whether it has as many as are described. */
static bool place_values(struct rfx_detector *d, int o) {
    const struct rfx_detector_output *out = &d->outputs[o];
    int64_t at = 0;
    bool scores;
    int64_t fixed = rfx_detector_fixed(out, &scores);
    if (scores ? out->channels <= fixed : out->channels != fixed) return false;
    for (int k = 0; k < out->n_values; k++) {
        int64_t n = lengths[out->values[k]];
        if (out->values[k] == RFX_DETECTOR_SCORES) n = out->channels - fixed;
        d->places[out->values[k]] = (struct rfx_detector_place){o, at, n};
        at += n;
    }
    return true;
}

int rfx_detector_settle(struct rfx_detector *detector) {
    detector->channels = 0;
    detector->most_anchors = 0;
    for (int k = 0; k < RFX_DETECTOR_VALUES; k++)
        detector->places[k] = (struct rfx_detector_place){.output = -1};
    for (int o = 0; o < detector->n_outputs; o++) {
        detector->outputs[o].first = detector->channels;
        detector->channels += detector->outputs[o].channels;
        if (!place_values(detector, o)) return o;
    }
    detector->peaks = detector->channels;
    if (detector->decode == RFX_DETECTOR_CENTERNET)
        detector->channels += detector->places[RFX_DETECTOR_SCORES].n;
    for (int l = 0; l < detector->n_levels; l++)
        if (detector->levels[l].anchors > detector->most_anchors)
            detector->most_anchors = detector->levels[l].anchors;
    return -1;
}
