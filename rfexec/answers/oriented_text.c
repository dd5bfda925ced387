/* Text of boxes with four corners; see oriented_text.h. */
#include "rfexec/answers/oriented_text.h"

#include <inttypes.h>
#include <math.h>

#include "layers/kernels/generic/vector_math.h"

enum { PLACES = 5 }; /* of a box: four corners and the centre */

/* A box in the file's coordinates. */
struct shown {
    double place[PLACES][2], side[2], angle;
    bool own; /* the numbers are float32 */
};

/* Returns the angle of a vector, -pi to pi. */
static double angle_of(double x, double y) {
    const double pi = 3.14159265358979323846;
    double a = math_atan_of(fabs(y / x));
    return copysign(x < 0.0 ? pi - a : a, y);
}

/* Measures the edge from the first corner to corner `to`. */
static double edge_of(const struct shown *shown, int to, double *angle) {
    double x = shown->place[to][0] - shown->place[0][0],
           y = shown->place[to][1] - shown->place[0][1];
    if (angle != NULL) *angle = angle_of(x, y);
    return sqrt(x * x + y * y);
}

static struct shown show(const struct rfx_answer_text *text, const struct rfx_oriented_box *box) {
    const struct rfx_geo_affine *a = &text->affine;
    struct shown shown = {.side = {(double)box->side[0], (double)box->side[1]},
                          .angle = (double)box->angle,
                          .own = rfx_answer_own_pixels(text)};
    float corner[PLACES][2];
    rfx_oriented_corners(box, corner);
    for (int i = 0; i < PLACES; i++) {
        const float *from = i < 4 ? corner[i] : box->centre;
        double x = (double)from[0], y = (double)from[1];
        shown.place[i][0] = shown.own ? x : a->x[0] * x + a->x[1] * y + a->x[2];
        shown.place[i][1] = shown.own ? y : a->y[0] * x + a->y[1] * y + a->y[2];
    }
    if (shown.own) return shown;
    shown.side[0] = edge_of(&shown, 1, &shown.angle);
    shown.side[1] = edge_of(&shown, 3, NULL);
    return shown;
}

static void put(struct rfx_answer_text *text, const struct shown *shown, double value) {
    if (shown->own)
        rfx_answer_float(text, (float)value);
    else
        rfx_answer_number(text, value);
}

static void put_pair(struct rfx_answer_text *text, const struct shown *shown,
                     const double pair[2]) {
    put(text, shown, pair[0]);
    rfx_answer_put(text, ",");
    put(text, shown, pair[1]);
}

/* Appends the member "size" and "angle". */
static void put_size(struct rfx_answer_text *text, const struct shown *shown) {
    rfx_answer_put(text, "\"size\":[");
    put_pair(text, shown, shown->side);
    rfx_answer_put(text, "],\"angle\":");
    put(text, shown, shown->angle);
}

static void put_json(struct rfx_answer_text *text, const struct shown *shown,
                     const struct rfx_oriented_box *box) {
    rfx_answer_put(text, "{\"corners\":[");
    for (int i = 0; i < 4; i++) {
        rfx_answer_put(text, i > 0 ? ",[" : "[");
        put_pair(text, shown, shown->place[i]);
        rfx_answer_put(text, "]");
    }
    rfx_answer_put(text, "],\"centre\":[");
    put_pair(text, shown, shown->place[4]);
    rfx_answer_put(text, "],");
    put_size(text, shown);
    rfx_answer_put(text, ",\"score\":");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, ",");
    rfx_answer_class_json(text, box->label);
    rfx_answer_put(text, ",\"index\":%" PRId64 "}", box->index);
}

/* COCO's bbox is the upright rectangle around the box: left, top, width and height. */
static void put_coco(struct rfx_answer_text *text, const struct shown *shown,
                     const struct rfx_oriented_box *box) {
    double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++)
        for (int axis = 0; axis < 2; axis++) {
            least[axis] = fmin(least[axis], shown->place[i][axis]);
            most[axis] = fmax(most[axis], shown->place[i][axis]);
        }
    const double side[2] = {most[0] - least[0], most[1] - least[1]};
    rfx_answer_put(text, "{\"image_id\":0,\"category_id\":%" PRId32 ",\"bbox\":[", box->label);
    put_pair(text, shown, least);
    rfx_answer_put(text, ",");
    put_pair(text, shown, side);
    rfx_answer_put(text, "],\"segmentation\":[[");
    for (int i = 0; i < 4; i++) {
        rfx_answer_put(text, i > 0 ? "," : "");
        put_pair(text, shown, shown->place[i]);
    }
    rfx_answer_put(text, "]],\"score\":");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, "}");
}

static void put_feature(struct rfx_answer_text *text, const struct shown *shown,
                        const struct rfx_oriented_box *box) {
    rfx_answer_put(text,
                   "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[");
    for (int i = 0; i < 5; i++) {
        rfx_answer_put(text, i > 0 ? ",[" : "[");
        put_pair(text, shown, shown->place[(text->mirrored ? 4 - i : i) % 4]);
        rfx_answer_put(text, "]");
    }
    rfx_answer_put(text, "]]}");
    rfx_answer_properties(text, "detection", box->label);
    rfx_answer_put(text, ",\"score\":");
    rfx_answer_float(text, box->score);
    rfx_answer_put(text, ",");
    put_size(text, shown);
    rfx_answer_put(text, "}}");
}

static void put_line(struct rfx_answer_text *text, const struct shown *shown,
                     const struct rfx_oriented_box *box) {
    rfx_answer_class_csv(text, box->label);
    rfx_answer_float(text, box->score);
    for (int i = 0; i < PLACES; i++) {
        rfx_answer_put(text, ",");
        put_pair(text, shown, shown->place[i]);
    }
    rfx_answer_put(text, ",");
    put_pair(text, shown, shown->side);
    rfx_answer_put(text, ",");
    put(text, shown, shown->angle);
    rfx_answer_put(text, "\n");
}

void rfx_oriented_begin(struct rfx_answer_text *text, enum rfx_answer_form form, const char *head) {
    if (form == RFX_ANSWER_CSV)
        rfx_answer_put(text,
                       "label,name,score,x1,y1,x2,y2,x3,y3,x4,y4,centre_x,centre_y,width,"
                       "height,angle\n");
    rfx_answer_boxes_begin(text, form, head);
}

void rfx_oriented_put(struct rfx_answer_text *text, enum rfx_answer_form form,
                      const struct rfx_oriented_box *box, int64_t count) {
    const struct shown shown = show(text, box);
    if (form != RFX_ANSWER_CSV) rfx_answer_put(text, count > 0 ? ",\n" : "\n");
    if (form == RFX_ANSWER_CSV) put_line(text, &shown, box);
    if (form == RFX_ANSWER_COCO) put_coco(text, &shown, box);
    if (form == RFX_ANSWER_GEOJSON) put_feature(text, &shown, box);
    if (form == RFX_ANSWER_JSON) put_json(text, &shown, box);
}
