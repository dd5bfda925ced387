/* Text of answer files: numbers, names and coordinates. After a failure nothing more is
 * written, so a caller checks once, with rfx_answer_text_status. */
#ifndef RFX_RFEXEC_ANSWERS_ANSWER_TEXT_H
#define RFX_RFEXEC_ANSWERS_ANSWER_TEXT_H

#include "rfexec/output/answer_options.h"
#include "rfexec/output/output_file.h"

struct rfx_answer_text {
    struct rfx_memory *mem;
    struct rfx_output_file *file;
    struct rfx_geo_affine affine; /* from corners of the output's pixels to coordinates */
    double cell_area;             /* of one pixel, in coordinates */
    double side[2];               /* lengths of its lower and its left edge */
    bool mapped;                  /* coordinates are those of the picture's coordinate system */
    bool mirrored;                /* the affine turns the direction of rings round */
    int epsg;                     /* code of the coordinate system; 0: pixels, or none is known */
    char *names;                  /* of classes (name_list.h); NULL: none */
    int64_t n_names;
    enum rfx_status status;
    struct rfx_error err;
};

/* Opens the file, reads the class names and finds the coordinates. geo: georeference of the
 * output's pixels, or NULL. Statuses of rfx_output_file_open and rfx_names_read; INVALID_ARGUMENT:
 * map coordinates are wanted and the picture has none. Free with rfx_answer_text_close. */
RFX_NODISCARD enum rfx_status rfx_answer_text_open(struct rfx_answer_text *text,
                                                   struct rfx_memory *mem, const char *path,
                                                   const struct rfx_answer_options *options,
                                                   const struct rfx_answer_place *place,
                                                   const struct rfx_georeference *geo,
                                                   struct rfx_error *err);

/* Memory of the text, its names included. */
size_t rfx_answer_text_bytes(const struct rfx_answer_options *options);

/* Appends formatted text of less than 256 bytes. */
void rfx_answer_put(struct rfx_answer_text *text, const char *format, ...) RFX_PRINTF(2, 3);

/* Appends a number with as many digits as are needed to read the same number back; "null" for NaN
 * and infinities. */
void rfx_answer_number(struct rfx_answer_text *text, double value);

/* Like rfx_answer_number, for a float32. */
void rfx_answer_float(struct rfx_answer_text *text, float value);

/* Returns whether coordinates are those of the output's own pixels. */
bool rfx_answer_own_pixels(const struct rfx_answer_text *text);

/* Appends the coordinates of the point (x, y) of the output's pixels with a comma between them. */
void rfx_answer_point(struct rfx_answer_text *text, double x, double y);

/* Returns the name of a class, or NULL. */
const char *rfx_answer_name(const struct rfx_answer_text *text, int64_t label);

/* Appends a name as a JSON string or as a CSV field. */
void rfx_answer_json_string(struct rfx_answer_text *text, const char *name);
void rfx_answer_csv_field(struct rfx_answer_text *text, const char *name);

/* Appends a class and its name, if it has one: as the members "label" and "name" of a JSON object,
 * or as the first two fields of a CSV line, with a comma behind them. */
void rfx_answer_class_json(struct rfx_answer_text *text, int64_t label);
void rfx_answer_class_csv(struct rfx_answer_text *text, int64_t label);

/* Appends the beginning of a feature's "properties": type of the object, "annotation" or
 * "detection", label and classification. */
void rfx_answer_properties(struct rfx_answer_text *text, const char *type, int64_t label);

/* Appends the beginning of a FeatureCollection, with its coordinate system if there is one. */
void rfx_answer_collection(struct rfx_answer_text *text);

/* Append what stands before and behind a list of boxes; nothing in CSV. head: says what the boxes
 * come from (JSON). */
void rfx_answer_boxes_begin(struct rfx_answer_text *text, enum rfx_answer_form form,
                            const char *head);
void rfx_answer_boxes_end(struct rfx_answer_text *text, enum rfx_answer_form form);

/* Returns the first failure since the text was opened. */
enum rfx_status rfx_answer_text_status(const struct rfx_answer_text *text, struct rfx_error *err);

/* Closes the file, which vanishes unless it was committed. A struct of zeros is fine. */
void rfx_answer_text_close(struct rfx_answer_text *text);
#endif
