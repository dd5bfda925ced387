/* Converter of Einsum. An equation of one or two operands without diagonals becomes a series of
 * sums, products, transposes and a MatMul. An axis of both operands is a batch axis of the product
 * if the output has it too; otherwise the product sums over it.
 *
 * A label is a number: first the 52 letters, then the axes that "..." stands for. The last of these
 * axes has the highest number. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

enum { LETTERS = 52, LABELS = LETTERS + RFX_MAX_RANK, MOST_TEXT = 120 };

/* The axes of an operand or of the output. */
struct term {
    int n, axes[RFX_MAX_RANK]; /* labels */
    struct rfx_onnx_operand value;
};

struct einsum {
    const char *text;
    struct term in[2], out;
    int n_in;
    int dots; /* how many axes "..." stands for, at most */
    int64_t extent[LABELS];
};

static int refuse(struct rfx_onnx_import *ctx, const struct einsum *e, enum rfx_status status,
                  const char *why) {
    return rfx_onnx_refuse(ctx, status, "equation '%.*s': %s", MOST_TEXT, e->text, why);
}

static int place_of(const struct term *t, int label) {
    for (int i = 0; i < t->n; i++)
        if (t->axes[i] == label) return i;
    return -1;
}

static bool has(const struct term *t, int label) {
    return place_of(t, label) >= 0;
}

static int letter(char c) {
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

static bool add_axis(struct term *t, int label) {
    if (t->n == RFX_MAX_RANK) return false;
    t->axes[t->n++] = label;
    return true;
}

/* Reads one term, up to a comma, an arrow or the end, and returns its end. "..." stands for `dots`
 * axes; -1: for as many as `rank` has beside the letters. */
static const char *read_term(struct rfx_onnx_import *ctx, struct einsum *e, const char *p, int rank,
                             int dots, struct term *t) {
    int letters = 0;
    bool any = false, fits = true;
    for (const char *q = p; *q != '\0' && *q != ',' && *q != '-'; q++) letters += letter(*q) >= 0;
    for (; *p != '\0' && *p != ',' && *p != '-'; p++) {
        if (*p == ' ') continue;
        if (strncmp(p, "...", 3) == 0 && !any) {
            int n = dots >= 0 ? dots : rank - letters;
            any = true;
            for (int i = 0; i < n; i++) fits = fits && add_axis(t, LABELS - n + i);
            if (n > e->dots) e->dots = n;
            p += 2;
        } else if (letter(*p) < 0) {
            (void)refuse(ctx, e, RFX_STATUS_MALFORMED, "a character that is no label");
        } else if (has(t, letter(*p))) {
            (void)refuse(ctx, e, RFX_STATUS_UNSUPPORTED, "a label twice in one term, a diagonal");
        } else {
            fits = fits && add_axis(t, letter(*p));
        }
    }
    if (!fits) (void)refuse(ctx, e, RFX_STATUS_UNSUPPORTED, "more than 8 axes");
    if (rank >= 0 && t->n != rank)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "equation '%.*s': %d axes of rank %d",
                              MOST_TEXT, e->text, t->n, rank);
    return p;
}

/* Sets the output of an equation without an arrow: "...", then the labels that occur in one term
 * only, in the order of ASCII (capitals first). Returns false when it has more than 8 axes. */
static bool implied_output(struct einsum *e) {
    bool fits = true;
    for (int i = 0; i < e->dots; i++) fits = fits && add_axis(&e->out, LABELS - e->dots + i);
    for (int i = 0; i < LETTERS; i++) {
        int label = (i + 26) % LETTERS;
        int times = has(&e->in[0], label) + (e->n_in > 1 && has(&e->in[1], label));
        if (times == 1) fits = fits && add_axis(&e->out, label);
    }
    return fits;
}

/* Checks that axes with the same label have the same size (axes of "..." may also have size 1),
 * that each label of the output occurs in an operand, and that no axis of "..." is summed over. */
static void check_labels(struct rfx_onnx_import *ctx, struct einsum *e) {
    for (int i = 0; i < e->out.n; i++)
        if (!has(&e->in[0], e->out.axes[i]) && !has(&e->in[1], e->out.axes[i]))
            (void)refuse(ctx, e, RFX_STATUS_MALFORMED, "a label of the output in no operand");
    for (int label = LETTERS; label < LABELS; label++)
        if ((has(&e->in[0], label) || has(&e->in[1], label)) && !has(&e->out, label))
            (void)refuse(ctx, e, RFX_STATUS_UNSUPPORTED, "a sum over the axes of '...'");
    for (int k = 0; !rfx_onnx_failed(ctx) && k < e->n_in; k++)
        for (int i = 0; i < e->in[k].n; i++) {
            int label = e->in[k].axes[i];
            int64_t *known = &e->extent[label];
            int64_t n = rfx_onnx_shape(ctx, e->in[k].value)->dims[i];
            bool free = *known == 0 || (label >= LETTERS && (*known == 1 || n == 1));
            if (*known != n && !free)
                (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                                      "equation '%.*s': an axis of %lld and of %lld", MOST_TEXT,
                                      e->text, (long long)*known, (long long)n);
            if (*known <= 1) *known = n;
        }
}

static void read_equation(struct rfx_onnx_import *ctx, struct einsum *e) {
    static const char other_number[] = "another number of terms than operands";
    const char *p = e->text = rfx_onnx_attr_string(ctx, "equation", "");
    e->n_in = (int)ctx->node->n_in;
    if (ctx->node->n_in < 1 || ctx->node->n_in > 2)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "equation '%.*s': %zu operands, only one and two are supported",
                              MOST_TEXT, e->text, ctx->node->n_in);
    for (int k = 0; !rfx_onnx_failed(ctx) && k < e->n_in; k++) {
        struct term *t = &e->in[k];
        t->value = rfx_onnx_need(ctx, (size_t)k);
        if (k > 0 && *p != ',') (void)refuse(ctx, e, RFX_STATUS_MALFORMED, other_number);
        if (k > 0 && *p == ',') p++;
        p = read_term(ctx, e, p, rfx_onnx_shape(ctx, t->value)->rank, -1, t);
    }
    if (rfx_onnx_failed(ctx)) return;
    if (strncmp(p, "->", 2) == 0)
        p = read_term(ctx, e, p + 2, -1, e->dots, &e->out);
    else if (!implied_output(e))
        (void)refuse(ctx, e, RFX_STATUS_UNSUPPORTED, "more than 8 axes");
    if (*p != '\0') (void)refuse(ctx, e, RFX_STATUS_MALFORMED, other_number);
    check_labels(ctx, e);
}

/* Sums a term over the axes that neither the output nor `other` (may be NULL) has. */
static void sum_own(struct rfx_onnx_import *ctx, const struct einsum *e, struct term *t,
                    const struct term *other, const char *suffix) {
    bool axes[RFX_MAX_RANK] = {false}, any = false;
    int kept = 0;
    for (int i = 0; i < t->n; i++) {
        axes[i] = !has(&e->out, t->axes[i]) && (other == NULL || !has(other, t->axes[i]));
        any = any || axes[i];
    }
    if (!any || rfx_onnx_failed(ctx)) return;
    int in = rfx_onnx_any(ctx, t->value);
    t->value = rfx_onnx_of(rfx_onnx_sum_over(ctx, suffix, axes, in));
    for (int i = 0; i < t->n; i++)
        if (!axes[i]) t->axes[kept++] = t->axes[i];
    t->n = kept;
}

/* Transposes a term so that its axes have the order of `labels`, a permutation of its labels. */
static void arrange(struct rfx_onnx_import *ctx, struct term *t, const int *labels) {
    int perm[RFX_MAX_RANK];
    if (rfx_onnx_failed(ctx)) return;
    for (int i = 0; i < t->n; i++) perm[i] = place_of(t, labels[i]);
    t->value = rfx_onnx_permute(ctx, t->value, perm);
    memcpy(t->axes, labels, (size_t)t->n * sizeof *labels);
}

/* Reshapes the term's tensor. */
static void reshape(struct rfx_onnx_import *ctx, struct term *t, const struct rfx_shape *shape) {
    if (rfx_onnx_failed(ctx) || rfx_onnx_same_shape(rfx_onnx_shape(ctx, t->value), shape)) return;
    if (t->value.constant != NULL)
        t->value.constant = rfx_onnx_const_view(ctx, t->value.constant, shape);
    else
        t->value.node = rfx_onnx_plain_as(ctx, t->value.node, shape);
}

/* Gives a term all axes of `order`. Axes that the term did not have get size 1. */
static void spread(struct rfx_onnx_import *ctx, struct term *t, const struct term *order) {
    struct rfx_shape shape = {order->n, {0}};
    int own[RFX_MAX_RANK], n = 0;
    for (int i = 0; i < order->n; i++)
        if (has(t, order->axes[i])) own[n++] = order->axes[i];
    arrange(ctx, t, own);
    for (int i = 0, k = 0; i < order->n; i++) {
        bool mine = k < t->n && t->axes[k] == order->axes[i];
        shape.dims[i] = mine ? rfx_onnx_shape(ctx, t->value)->dims[k] : 1;
        k += mine;
    }
    reshape(ctx, t, &shape);
}

/* Multiplies the operands element by element, then sums over the axes that the output does not
 * have.
 */
static struct term by_elements(struct rfx_onnx_import *ctx, struct einsum *e) {
    struct term made = e->in[0].n >= e->in[1].n ? e->in[0] : e->in[1];
    bool sums = false;
    for (int i = 0; i < made.n; i++) sums = sums || !has(&e->out, made.axes[i]);
    if (!sums) made = e->out;
    for (int k = 0; k < 2; k++) spread(ctx, &e->in[k], &made);
    made.value = rfx_onnx_of(rfx_onnx_combine(ctx, RFX_BINARY_MUL, sums ? "/product" : "",
                                              e->in[0].value, e->in[1].value));
    sum_own(ctx, e, &made, NULL, "");
    return made;
}

/* The labels of a product in four lists, as MatMul needs them. BATCH: labels of both operands and
 * the output. ROWS: of the first operand and the output. INNER: of both operands but not the
 * output. COLUMNS: of the second operand and the output. */
enum part { BATCH, ROWS, INNER, COLUMNS, PARTS };
struct parts {
    int n[PARTS], labels[PARTS][RFX_MAX_RANK];
};

static struct parts parts_of(const struct einsum *e) {
    struct parts p = {{0}, {{0}}};
    for (int i = 0; i < e->out.n; i++) {
        int label = e->out.axes[i];
        bool a = has(&e->in[0], label), b = has(&e->in[1], label);
        enum part part = a && b ? BATCH : a ? ROWS : COLUMNS;
        p.labels[part][p.n[part]++] = label;
    }
    for (int i = 0; i < e->in[0].n; i++) {
        int label = e->in[0].axes[i];
        if (!has(&e->out, label)) p.labels[INNER][p.n[INNER]++] = label;
    }
    return p;
}

/* Transposes a term to the axes of BATCH, then those of two other lists. If `joined`, each of the
 * two lists becomes one axis. */
static void as_matrices(struct rfx_onnx_import *ctx, struct term *t, const struct parts *p,
                        enum part rows, enum part columns, bool joined) {
    const enum part parts[3] = {BATCH, rows, columns};
    int order[RFX_MAX_RANK], n = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < p->n[parts[i]]; k++) order[n++] = p->labels[parts[i]][k];
    arrange(ctx, t, order);
    if (!joined || rfx_onnx_failed(ctx)) return;
    const struct rfx_shape had = *rfx_onnx_shape(ctx, t->value);
    int batch = p->n[BATCH], split = batch + p->n[rows];
    struct rfx_shape shape = had;
    shape.rank = batch + 2;
    shape.dims[batch] = rfx_shape_product(&had, batch, split);
    shape.dims[batch + 1] = rfx_shape_product(&had, split, had.rank);
    reshape(ctx, t, &shape);
}

/* Returns whether the second operand is a constant matrix and exactly one of its axes is summed
 * over.
 */
static bool is_by_matrix(const struct einsum *e, const struct parts *p) {
    const struct rfx_onnx_const *b = e->in[1].value.constant;
    return b != NULL && b->shape.rank == 2 && p->n[BATCH] == 0 && p->n[INNER] == 1 &&
           p->n[COLUMNS] == 1 && p->n[ROWS] > 0;
}

/* Multiplies the operands as matrices. The axes of the result are BATCH, ROWS, COLUMNS. */
static struct term by_matrices(struct rfx_onnx_import *ctx, struct einsum *e) {
    struct parts p = parts_of(e);
    struct rfx_shape shape = {0, {0}};
    struct term made = {.n = 0};
    bool matrix = is_by_matrix(e, &p);
    as_matrices(ctx, &e->in[0], &p, ROWS, INNER, !matrix);
    if (matrix) {
        bool turned = e->in[1].axes[1] == p.labels[INNER][0];
        made.value.node = rfx_onnx_by_matrix(ctx, e->in[0].value, e->in[1].value.constant, turned);
    } else {
        as_matrices(ctx, &e->in[1], &p, INNER, COLUMNS, true);
        int left = rfx_onnx_plain(ctx, e->in[0].value), right = rfx_onnx_plain(ctx, e->in[1].value);
        made.value.node = rfx_shape_product_of(ctx, "", left, right);
    }
    for (enum part part = BATCH; part < PARTS; part++)
        for (int k = 0; part != INNER && k < p.n[part]; k++) {
            made.axes[made.n++] = p.labels[part][k];
            shape.dims[shape.rank++] = e->extent[p.labels[part][k]];
        }
    reshape(ctx, &made, &shape);
    return made;
}

/* Exchanges the operands so that a constant comes second. Of two computed operands, the one whose
 * axes come later in the output is second. */
static void choose_order(struct einsum *e) {
    bool exchange = e->in[0].value.constant != NULL;
    if (e->in[0].value.constant == NULL && e->in[1].value.constant == NULL)
        for (int i = e->out.n - 1; i >= 0; i--) { /* the first axis of only one operand decides */
            bool a = has(&e->in[0], e->out.axes[i]), b = has(&e->in[1], e->out.axes[i]);
            if (a != b) exchange = b;
        }
    if (!exchange) return;
    struct term first = e->in[0];
    e->in[0] = e->in[1];
    e->in[1] = first;
}

/* Multiplies two operands. Each axis must be an axis of the other operand or of the output. */
static struct term product(struct rfx_onnx_import *ctx, struct einsum *e) {
    choose_order(e);
    struct parts p = parts_of(e);
    bool elements = p.n[INNER] == 0 || (p.n[ROWS] == 0 && p.n[COLUMNS] == 0);
    return elements ? by_elements(ctx, e) : by_matrices(ctx, e);
}

int rfx_onnx_einsum(struct rfx_onnx_import *ctx) {
    struct einsum e = {.n_in = 0};
    read_equation(ctx, &e);
    if (rfx_onnx_failed(ctx)) return -1;
    const struct term *second = e.n_in > 1 ? &e.in[1] : NULL;
    sum_own(ctx, &e, &e.in[0], second, "/sum");
    if (second != NULL) sum_own(ctx, &e, &e.in[1], &e.in[0], "/sum");
    if (rfx_onnx_failed(ctx)) return -1;
    struct term made = second != NULL ? product(ctx, &e) : e.in[0];
    arrange(ctx, &made, e.out.axes);
    return rfx_onnx_set(ctx, 0, made.value);
}
