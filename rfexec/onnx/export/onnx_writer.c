/* Lists of an ONNX model under construction and their protobuf encoding; see the header.
 *
 * A protobuf message is preceded by its size, so each message is encoded twice: into a stream that
 * only counts, then into the file. Counting passes over weights without reading them. Field
 * numbers are those of onnx.proto (IR version 8). */
#include "rfexec/onnx/export/onnx_writer.h"

#include <pb_encode.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rfexec/output/output_file.h"

struct rfx_onnx_text {
    struct rfx_onnx_text *next;
    max_align_t data[];
};

static void *keep(struct rfx_onnx_writer *w, size_t bytes) {
    if (w->status != RFX_OK) return NULL;
    size_t total = sizeof(struct rfx_onnx_text) + bytes;
    struct rfx_onnx_text *block = rfx_memory_calloc(w->mem, 1, total);
    if (block == NULL) {
        w->status = rfx_memory_fail(w->mem, "ONNX writer", total, w->err);
        return NULL;
    }
    block->next = w->texts;
    w->texts = block;
    return block->data;
}

/* Makes a list large enough for one more element. Returns false after an error. */
static bool grow(struct rfx_onnx_writer *w, void *list, int count, int *capacity, size_t size) {
    if (w->status != RFX_OK) return false;
    if (count < *capacity) return true;
    int next = *capacity == 0 ? 64 : *capacity * 2;
    void *old;
    memcpy(&old, list, sizeof old);
    void *block = rfx_memory_realloc(w->mem, old, (size_t)next * size);
    if (block == NULL) {
        w->status = rfx_memory_fail(w->mem, "ONNX writer", (size_t)next * size, w->err);
        return false;
    }
    memcpy(list, &block, sizeof block);
    *capacity = next;
    return true;
}

void rfx_onnx_writer_init(struct rfx_onnx_writer *w, const struct rfx_graph *graph,
                          struct rfx_error *err) {
    *w = (struct rfx_onnx_writer){.graph = graph, .mem = graph->mem, .err = err, .status = RFX_OK};
}

void rfx_onnx_writer_free(struct rfx_onnx_writer *w) {
    while (w->texts != NULL) {
        struct rfx_onnx_text *next = w->texts->next;
        rfx_memory_release(w->mem, w->texts);
        w->texts = next;
    }
    rfx_memory_release(w->mem, w->nodes);
    rfx_memory_release(w->mem, w->constants);
    rfx_memory_release(w->mem, w->inputs);
    rfx_memory_release(w->mem, w->outputs);
}

const char *rfx_onnx_text(struct rfx_onnx_writer *w, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : keep(w, (size_t)length + 1);
    if (text != NULL) (void)vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text == NULL ? "" : text;
}

struct rfx_onnx_node *rfx_onnx_node(struct rfx_onnx_writer *w, const char *op, const char *name,
                                    const char *output, const char *const *in, int n_in) {
    struct rfx_onnx_node *node = keep(w, sizeof *node);
    const char **inputs = keep(w, ((size_t)n_in + 1) * sizeof *inputs);
    if (inputs == NULL || !grow(w, &w->nodes, w->n_nodes, &w->node_capacity, sizeof *w->nodes))
        return node != NULL ? node : &w->unwritten;
    node->op = op;
    node->name = rfx_onnx_text(w, "%s", name);
    node->output = rfx_onnx_text(w, "%s", output);
    node->in = inputs;
    for (int k = 0; k < n_in && in[k] != NULL; k++)
        inputs[node->n_in++] = rfx_onnx_text(w, "%s", in[k]);
    w->nodes[w->n_nodes++] = node;
    return node;
}

static struct rfx_onnx_attr *add_attr(struct rfx_onnx_node *node, const char *name) {
    bool written = node->n_attrs < RFX_ONNX_MAX_ATTRS && node->op != NULL;
    if (!written) return &node->attrs[RFX_ONNX_MAX_ATTRS];
    struct rfx_onnx_attr *attr = &node->attrs[node->n_attrs++];
    attr->name = name;
    return attr;
}

void rfx_onnx_int(struct rfx_onnx_node *node, const char *name, int64_t value) {
    struct rfx_onnx_attr *attr = add_attr(node, name);
    attr->kind = RFX_ONNX_INT;
    attr->ints[0] = value;
}

void rfx_onnx_ints(struct rfx_onnx_node *node, const char *name, const int64_t *values, int count) {
    struct rfx_onnx_attr *attr = add_attr(node, name);
    attr->kind = RFX_ONNX_INTS;
    attr->count = count < RFX_ONNX_MAX_INTS ? count : RFX_ONNX_MAX_INTS;
    memcpy(attr->ints, values, (size_t)attr->count * sizeof *values);
}

void rfx_onnx_float(struct rfx_onnx_node *node, const char *name, float value) {
    struct rfx_onnx_attr *attr = add_attr(node, name);
    attr->kind = RFX_ONNX_FLOAT;
    attr->value = value;
}

void rfx_onnx_string(struct rfx_onnx_node *node, const char *name, const char *text) {
    struct rfx_onnx_attr *attr = add_attr(node, name);
    attr->kind = RFX_ONNX_STRING;
    attr->text = text;
}

static struct rfx_onnx_constant *add_constant(struct rfx_onnx_writer *w, const char *name) {
    for (int i = 0; i < w->n_constants; i++)
        if (strcmp(w->constants[i].name, name) == 0) return NULL;
    if (!grow(w, &w->constants, w->n_constants, &w->constant_capacity, sizeof *w->constants))
        return NULL;
    struct rfx_onnx_constant *c = &w->constants[w->n_constants];
    *c = (struct rfx_onnx_constant){.name = rfx_onnx_text(w, "%s", name), .elems = 1};
    if (w->status != RFX_OK) return NULL;
    w->n_constants++;
    return c;
}

static void set_shape(struct rfx_onnx_constant *c, struct rfx_shape shape) {
    c->shape = shape;
    for (int i = 0; i < shape.rank; i++) c->elems *= shape.dims[i];
}

const char *rfx_onnx_weight(struct rfx_onnx_writer *w, const char *name, int weight,
                            struct rfx_shape shape) {
    struct rfx_onnx_constant *c = add_constant(w, name);
    if (c == NULL) return name;
    c->kind = RFX_ONNX_WEIGHT;
    c->weight = weight;
    set_shape(c, shape);
    return name;
}

const char *rfx_onnx_rounded(struct rfx_onnx_writer *w, const char *name, int weight,
                             struct rfx_shape shape, const struct rfx_onnx_rounding *rounding) {
    struct rfx_onnx_constant *c = add_constant(w, name);
    if (c == NULL) return name;
    c->kind = RFX_ONNX_ROUNDED;
    c->type = RFX_TYPE_INT8;
    c->weight = weight;
    c->rounding = *rounding;
    set_shape(c, shape);
    return name;
}

const char *rfx_onnx_values(struct rfx_onnx_writer *w, const char *name, enum rfx_type type,
                            struct rfx_shape shape, const void *values) {
    size_t bytes = rfx_type_bytes(type);
    for (int i = 0; i < shape.rank; i++) bytes *= (size_t)shape.dims[i];
    void *copy = keep(w, bytes);
    struct rfx_onnx_constant *c = copy == NULL ? NULL : add_constant(w, name);
    if (c == NULL) return name;
    if (bytes != 0) memcpy(copy, values, bytes);
    c->kind = RFX_ONNX_VALUES;
    c->type = type;
    c->values = copy;
    set_shape(c, shape);
    return name;
}

const char *rfx_onnx_int64(struct rfx_onnx_writer *w, const char *name, const int64_t *values,
                           int64_t count) {
    return rfx_onnx_values(w, name, RFX_TYPE_INT64, (struct rfx_shape){1, {count}}, values);
}

const char *rfx_onnx_fill(struct rfx_onnx_writer *w, const char *name, struct rfx_shape shape,
                          float value) {
    struct rfx_onnx_constant *c = add_constant(w, name);
    if (c == NULL) return name;
    c->kind = RFX_ONNX_FILL;
    c->fill = value;
    set_shape(c, shape);
    return name;
}

void rfx_onnx_value(struct rfx_onnx_writer *w, bool output, const struct rfx_onnx_value *value) {
    if (output) {
        if (grow(w, &w->outputs, w->n_outputs, &w->output_capacity, sizeof *value))
            w->outputs[w->n_outputs++] = *value;
    } else if (grow(w, &w->inputs, w->n_inputs, &w->input_capacity, sizeof *value)) {
        w->inputs[w->n_inputs++] = *value;
    }
}

/* ---- models that are not written ---- */

/* The values of one constant, which are computed when they are read. */
struct left_out {
    struct rfx_onnx_constant constant; /* its name is gone */
    size_t at, bytes;                  /* in the file */
    size_t before;                     /* bytes of all values that are left out before these */
};

/* The bytes of the file without the values that are left out. */
struct rfx_onnx_made {
    struct rfx_memory *mem;
    const struct rfx_graph *graph;
    unsigned char *held;
    size_t n_held, size;       /* size: of the file */
    struct left_out *left_out; /* in the order of the file */
    int n_left_out;
};

/* Stream callback: keeps bytes of the file. */
static bool hold_bytes(pb_ostream_t *s, const pb_byte_t *data, size_t count) {
    struct rfx_onnx_made *made = s->state;
    memcpy(made->held + made->n_held, data, count);
    made->n_held += count;
    return true;
}

/* Passes over the values of a constant, and notes where they are in the file. */
static bool leave_out(pb_ostream_t *s, const struct rfx_onnx_constant *c, size_t bytes) {
    struct rfx_onnx_made *made = s->state;
    made->left_out[made->n_left_out++] =
        (struct left_out){.constant = *c,
                          .at = s->bytes_written,
                          .bytes = bytes,
                          .before = s->bytes_written - made->n_held};
    s->bytes_written += bytes;
    return true;
}

/* ---- encoding ---- */

struct part { /* a message: what to encode and the writer it belongs to */
    struct rfx_onnx_writer *w;
    const void *what;
};
typedef bool encode_function(pb_ostream_t *s, const struct part *part);

static bool put_int(pb_ostream_t *s, uint32_t tag, int64_t value) {
    return pb_encode_tag(s, PB_WT_VARINT, tag) && pb_encode_varint(s, (uint64_t)value);
}

static bool put_text(pb_ostream_t *s, uint32_t tag, const char *text) {
    return pb_encode_tag(s, PB_WT_STRING, tag) &&
           pb_encode_string(s, (const pb_byte_t *)text, strlen(text));
}

static bool put_message(pb_ostream_t *s, uint32_t tag, encode_function *encode,
                        struct rfx_onnx_writer *w, const void *what) {
    struct part part = {w, what};
    pb_ostream_t count = PB_OSTREAM_SIZING;
    if (!encode(&count, &part) || !pb_encode_tag(s, PB_WT_STRING, tag) ||
        !pb_encode_varint(s, count.bytes_written))
        return false;
    return s->callback == NULL ? pb_write(s, NULL, count.bytes_written) : encode(s, &part);
}

static bool encode_attr(pb_ostream_t *s, const struct part *part) {
    static const int types[] = {2, 7, 1, 3}; /* AttributeProto.AttributeType */
    const struct rfx_onnx_attr *attr = part->what;
    bool ok = put_text(s, 1, attr->name);
    if (attr->kind == RFX_ONNX_INT) ok = ok && put_int(s, 3, attr->ints[0]);
    for (int i = 0; attr->kind == RFX_ONNX_INTS && i < attr->count; i++)
        ok = ok && put_int(s, 8, attr->ints[i]);
    if (attr->kind == RFX_ONNX_FLOAT)
        ok = ok && pb_encode_tag(s, PB_WT_32BIT, 2) && pb_encode_fixed32(s, &attr->value);
    if (attr->kind == RFX_ONNX_STRING) ok = ok && put_text(s, 4, attr->text);
    return ok && put_int(s, 20, types[attr->kind]);
}

static bool encode_node(pb_ostream_t *s, const struct part *part) {
    const struct rfx_onnx_node *node = part->what;
    bool ok = true;
    for (int k = 0; k < node->n_in; k++) ok = ok && put_text(s, 1, node->in[k]);
    if (node->unused != NULL) ok = ok && put_text(s, 2, node->unused);
    ok = ok && put_text(s, 2, node->output) && put_text(s, 3, node->name) &&
         put_text(s, 4, node->op);
    for (int i = 0; i < node->n_attrs; i++)
        ok = ok && put_message(s, 5, encode_attr, part->w, &node->attrs[i]);
    return ok;
}

/* Replaces weights [first, first + n) by their integers. */
static void round_weights(const struct rfx_onnx_rounding *r, int64_t first, int64_t n,
                          float *values) {
    int64_t channel = first / r->block % r->channels, place = first % r->block;
    for (int64_t i = 0; i < n; i++, place++) {
        if (place == r->block) {
            place = 0;
            channel = channel + 1 == r->channels ? 0 : channel + 1;
        }
        if (r->factors != NULL) values[i] *= r->factors[channel];
        float steps = values[i] / r->scales[channel];
        steps = steps > -127.0f ? steps : -127.0f;
        values[i] = steps < 127.0f ? steps : 127.0f;
    }
}

enum { PIECE = 4096 };

/* Elements of a constant in the form in which a file has them. */
union piece {
    float values[PIECE];
    int8_t rounded[PIECE];
};

/* Computes elements [first, first + n) of a constant that is no VALUES. n is at most PIECE. */
static enum rfx_status compute_piece(const struct rfx_graph *graph,
                                     const struct rfx_onnx_constant *c, int64_t first, int64_t n,
                                     union piece *out, struct rfx_error *err) {
    float values[PIECE];
    float *to = c->kind == RFX_ONNX_ROUNDED ? values : out->values;
    enum rfx_status status = RFX_OK;
    if (c->kind != RFX_ONNX_FILL)
        status = rfx_weight_read(&graph->weights[c->weight], first, n, to, err);
    if (status != RFX_OK) return status;
    for (int64_t i = 0; c->kind == RFX_ONNX_FILL && i < n; i++) to[i] = c->fill;
    if (c->kind == RFX_ONNX_ROUNDED) {
        round_weights(&c->rounding, first, n, to);
        rfx_type_round(RFX_TYPE_INT8, to, n, out->rounded);
    }
    return RFX_OK;
}

/* Encodes a constant's values, little endian, in pieces. */
static bool put_values(pb_ostream_t *s, struct rfx_onnx_writer *w,
                       const struct rfx_onnx_constant *c) {
    size_t bytes = (size_t)c->elems * rfx_type_bytes(c->type);
    if (!pb_encode_tag(s, PB_WT_STRING, 9) || !pb_encode_varint(s, bytes)) return false;
    if (s->callback == NULL) return pb_write(s, NULL, bytes);
    if (c->kind == RFX_ONNX_VALUES) return pb_write(s, c->values, bytes);
    if (s->callback == hold_bytes) return leave_out(s, c, bytes);
    union piece piece;
    for (int64_t first = 0; first < c->elems; first += PIECE) {
        int64_t n = c->elems - first < PIECE ? c->elems - first : PIECE;
        w->status = rfx_memory_check_stop(w->mem, w->err);
        if (w->status == RFX_OK) w->status = compute_piece(w->graph, c, first, n, &piece, w->err);
        if (w->status != RFX_OK) return false;
        if (!pb_write(s, (const pb_byte_t *)&piece, (size_t)n * rfx_type_bytes(c->type)))
            return false;
    }
    return true;
}

static bool encode_constant(pb_ostream_t *s, const struct part *part) {
    const struct rfx_onnx_constant *c = part->what;
    bool ok = true;
    for (int i = 0; i < c->shape.rank; i++) ok = ok && put_int(s, 1, c->shape.dims[i]);
    ok = ok && put_int(s, 2, rfx_type_onnx(c->type));
    return ok && put_text(s, 8, c->name) && put_values(s, part->w, c);
}

struct dimension {
    int64_t value;
    const char *name;
};

static bool encode_dimension(pb_ostream_t *s, const struct part *part) {
    const struct dimension *d = part->what;
    return d->name != NULL ? put_text(s, 2, d->name) : put_int(s, 1, d->value);
}

static bool encode_shape(pb_ostream_t *s, const struct part *part) {
    const struct rfx_onnx_value *v = part->what;
    bool ok = true;
    for (int i = 0; ok && i < v->shape.rank; i++) {
        struct dimension d = {v->shape.dims[i], v->dim_names[i]};
        ok = put_message(s, 1, encode_dimension, part->w, &d);
    }
    return ok;
}

static bool encode_tensor_type(pb_ostream_t *s, const struct part *part) {
    const struct rfx_onnx_value *v = part->what;
    return put_int(s, 1, rfx_type_onnx(v->type)) &&
           put_message(s, 2, encode_shape, part->w, part->what);
}

static bool encode_type(pb_ostream_t *s, const struct part *part) {
    return put_message(s, 1, encode_tensor_type, part->w, part->what);
}

static bool encode_value(pb_ostream_t *s, const struct part *part) {
    const struct rfx_onnx_value *v = part->what;
    return put_text(s, 1, v->name) && put_message(s, 2, encode_type, part->w, v);
}

static bool encode_graph(pb_ostream_t *s, const struct part *part) {
    struct rfx_onnx_writer *w = part->w;
    bool ok = true;
    for (int i = 0; i < w->n_nodes; i++) ok = ok && put_message(s, 1, encode_node, w, w->nodes[i]);
    const char *slash = strrchr(w->graph->name, '/'); /* of a model file, the name is its path */
    ok = ok && put_text(s, 2, slash == NULL ? w->graph->name : slash + 1);
    for (int i = 0; i < w->n_constants; i++)
        ok = ok && put_message(s, 5, encode_constant, w, &w->constants[i]);
    for (int i = 0; i < w->n_inputs; i++)
        ok = ok && put_message(s, 11, encode_value, w, &w->inputs[i]);
    for (int i = 0; i < w->n_outputs; i++)
        ok = ok && put_message(s, 12, encode_value, w, &w->outputs[i]);
    return ok;
}

static bool encode_opset(pb_ostream_t *s, const struct part *part) {
    (void)part;
    return put_text(s, 1, "") && put_int(s, 2, 17);
}

static bool encode_model(pb_ostream_t *s, const struct part *part) {
    return put_int(s, 1, 8) && put_text(s, 2, "rfexec") &&
           put_message(s, 7, encode_graph, part->w, NULL) &&
           put_message(s, 8, encode_opset, part->w, NULL);
}

/* The file that encoded bytes are written to. */
struct destination {
    struct rfx_onnx_writer *w;
    struct rfx_output_file *file;
};

static bool write_file(pb_ostream_t *s, const pb_byte_t *data, size_t count) {
    const struct destination *to = s->state;
    enum rfx_status status = rfx_output_file_append(to->file, data, count, to->w->err);
    if (status != RFX_OK) to->w->status = status;
    return status == RFX_OK;
}

static enum rfx_status save_file(struct rfx_onnx_writer *w, const char *path) {
    struct destination to = {w, NULL};
    enum rfx_status status = rfx_output_file_open(w->mem, path, &to.file, w->err);
    if (status != RFX_OK) return status;
    pb_ostream_t stream = {.callback = write_file, .state = &to, .max_size = SIZE_MAX};
    struct part part = {w, NULL};
    if (!encode_model(&stream, &part))
        status = w->status != RFX_OK ? w->status /* a write or the reading of a weight failed */
                                     : rfx_fail(w->err, RFX_STATUS_INTERNAL,
                                                "cannot write '%s': encoding failed", path);
    if (status == RFX_OK) status = rfx_output_file_commit(to.file, w->err);
    rfx_output_file_free(to.file);
    return status;
}

/* Sets *bytes to the size of the file. */
static enum rfx_status count_bytes(struct rfx_onnx_writer *w, size_t *bytes) {
    if (w->status != RFX_OK) return w->status;
    struct part part = {w, NULL};
    pb_ostream_t count = PB_OSTREAM_SIZING;
    if (!encode_model(&count, &part) || count.bytes_written > INT32_MAX)
        return rfx_fail(w->err, RFX_STATUS_UNSUPPORTED,
                        "ONNX export of '%s': %zu bytes, but a protobuf file ends at %d",
                        w->graph->name, count.bytes_written, INT32_MAX);
    *bytes = count.bytes_written;
    return RFX_OK;
}

enum rfx_status rfx_onnx_writer_save(struct rfx_onnx_writer *w, const char *path) {
    size_t bytes;
    enum rfx_status status = count_bytes(w, &bytes);
    return status == RFX_OK ? save_file(w, path) : status;
}

enum rfx_status rfx_onnx_writer_make(struct rfx_onnx_writer *w, struct rfx_onnx_made **out) {
    size_t bytes, held;
    enum rfx_status status = count_bytes(w, &bytes);
    if (status != RFX_OK) return status;
    held = bytes;
    for (int i = 0; i < w->n_constants; i++) {
        const struct rfx_onnx_constant *c = &w->constants[i];
        if (c->kind != RFX_ONNX_VALUES) held -= (size_t)c->elems * rfx_type_bytes(c->type);
    }
    struct rfx_onnx_made *made = rfx_memory_calloc(w->mem, 1, sizeof *made);
    if (made == NULL) return rfx_memory_fail(w->mem, "model", sizeof *made, w->err);
    *made = (struct rfx_onnx_made){.mem = w->mem, .graph = w->graph, .size = bytes};
    made->held = rfx_memory_alloc(w->mem, held);
    made->left_out = rfx_memory_calloc(w->mem, (size_t)w->n_constants + 1, sizeof *made->left_out);
    if (made->held == NULL || made->left_out == NULL) {
        rfx_onnx_made_free(made);
        return rfx_memory_fail(w->mem, "model", held, w->err);
    }
    pb_ostream_t stream = {.callback = hold_bytes, .state = made, .max_size = SIZE_MAX};
    struct part part = {w, NULL};
    if (!encode_model(&stream, &part) || stream.bytes_written != bytes || made->n_held != held) {
        rfx_onnx_made_free(made);
        return rfx_fail(w->err, RFX_STATUS_INTERNAL, "cannot make '%s': encoding failed",
                        w->graph->name);
    }
    *out = made;
    return RFX_OK;
}

void rfx_onnx_made_free(struct rfx_onnx_made *made) {
    if (made == NULL) return;
    rfx_memory_release(made->mem, made->held);
    rfx_memory_release(made->mem, made->left_out);
    rfx_memory_release(made->mem, made);
}

/* Computes the bytes from `first` on of values that are left out, as far as one piece has them.
 * Sets *n to their number, at most `most`. */
static enum rfx_status make_values(const struct rfx_onnx_made *made, const struct left_out *left,
                                   size_t first, unsigned char *out, size_t most, size_t *n,
                                   struct rfx_error *err) {
    const struct rfx_onnx_constant *c = &left->constant;
    size_t size = rfx_type_bytes(c->type), within = first % size;
    int64_t elem = (int64_t)(first / size), elems = c->elems - elem;
    if (elems > PIECE) elems = PIECE;
    if ((uint64_t)elems > (within + most + size - 1) / size)
        elems = (int64_t)((within + most + size - 1) / size);
    union piece piece;
    enum rfx_status status = compute_piece(made->graph, c, elem, elems, &piece, err);
    if (status != RFX_OK) return status;
    *n = (size_t)elems * size - within;
    if (*n > most) *n = most;
    memcpy(out, (const unsigned char *)&piece + within, *n);
    return RFX_OK;
}

static enum rfx_status make_bytes(const void *maker, uint64_t offset, void *out, size_t bytes,
                                  struct rfx_error *err) {
    const struct rfx_onnx_made *made = maker;
    unsigned char *to = out;
    size_t at = (size_t)offset, n = 0, skipped = 0;
    const struct left_out *left = made->left_out, *end = left + made->n_left_out;
    for (; bytes > 0; at += n, to += n, bytes -= n) {
        for (; left < end && at >= left->at + left->bytes; left++)
            skipped = left->before + left->bytes;
        if (left < end && at >= left->at) {
            enum rfx_status status = make_values(made, left, at - left->at, to, bytes, &n, err);
            if (status != RFX_OK) return status;
            continue;
        }
        n = left < end && left->at - at < bytes ? left->at - at : bytes;
        memcpy(to, made->held + (at - skipped), n);
    }
    return RFX_OK;
}

struct rfx_weight_file rfx_onnx_made_file(const struct rfx_onnx_made *made) {
    return (struct rfx_weight_file){
        .fd = -1, .make = make_bytes, .maker = made, .size = made->size};
}
