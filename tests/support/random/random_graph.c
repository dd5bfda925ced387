/* See random_graph.h. A node is drawn, offered to rfx_graph_add, and left out when it refuses. */
#include "tests/support/random/random_graph.h"

#include <stdlib.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/graph/op.h"
#include "tests/support/random/random_heads.h"

enum { MAX_MAP_ELEMS = 40000 }; /* where the options say nothing: thousands of cases take seconds */

struct random_graph_options random_graph_defaults(void) {
    return (struct random_graph_options){.min_size = 1,
                                         .max_size = 97,
                                         .max_c = 9,
                                         .min_nodes = 3,
                                         .max_nodes = 12,
                                         .spatial_only = false,
                                         .wide = true};
}

bool random_graph_only_bytes(void) {
    const char *kind = getenv("RFX_NETWORKS");
    return kind != NULL && strcmp(kind, "quantised") == 0;
}

/* A recent node most of the time. */
static int any_map(struct random_maker *m) {
    int n = m->graph->n_nodes;
    int from = random_chance(m, 70) ? n - 1 : (int)random_draw(m, n > 6 ? n - 6 : 0, n - 1);
    return random_tensor(m, from)->layout == RFX_LAYOUT_NHWC ? from : m->graph->input;
}

static void add_something(struct random_maker *m) {
    int in = any_map(m);
    const struct rfx_tensor *t = random_tensor(m, in);
    if (m->options->bytes > 0 && random_chance(m, m->options->bytes)) {
        (void)random_add_convert(m, in);
        return;
    }
    int64_t most = m->options->max_elems > 0 ? m->options->max_elems : MAX_MAP_ELEMS;
    bool small = t->elems * 9 <= most;
    int64_t pick = random_draw(m, 0, 99);
    if (t->elems > most && pick >= 50) return;
    if (pick < 28)
        (void)random_add_conv(m, in, false);
    else if (pick < 36)
        (void)random_add_residual(m, in);
    else if (pick < 41)
        (void)(small ? random_add_conv(m, in, true) : -1);
    else if (pick < 46)
        (void)random_add_pool(m, in, random_chance(m, 85) ? RFX_OP_POOL_MAX : RFX_OP_POOL_PLACE);
    else if (pick < 50)
        (void)(random_chance(m, 80)
                   ? random_add_pool(m, in, random_chance(m, 60) ? RFX_OP_POOL_AVG : RFX_OP_POOL_LP)
                   : random_add_adaptive(m, in));
    else if (pick < 58)
        (void)random_add_join(m, in, RFX_OP_BINARY);
    else if (pick < 64)
        (void)(t->c <= 33 ? random_add_join(m, in, RFX_OP_CONCAT) : -1);
    else if (pick < 67)
        (void)(small && random_chance(m, 60) ? random_add_window_attention(m, in)
                                             : random_add_select(m, in));
    else if (pick < 71)
        (void)random_add_geometry(m, in, RFX_OP_PAD);
    else if (pick < 74)
        (void)random_add_geometry(m, in, RFX_OP_CROP);
    else if (pick < 77)
        (void)random_add_geometry(m, in, RFX_OP_DEPTH_TO_SPACE);
    else if (pick < 79)
        (void)random_add_geometry(m, in, RFX_OP_SPACE_TO_DEPTH);
    else if (pick < 83)
        (void)(!small                 ? -1
               : random_chance(m, 85) ? random_add_resize(m, in)
                                      : random_add_grid_sample(m, in));
    else if (pick < 87)
        (void)random_add_pointwise(m, in, RFX_OP_AFFINE);
    else if (pick < 92)
        (void)random_add_pointwise(m, in, RFX_OP_ACTIVATION);
    else if (pick < 93)
        (void)random_add_pointwise(m, in,
                                   random_chance(m, 50)   ? RFX_OP_LRN
                                   : random_chance(m, 50) ? RFX_OP_TRIANGLE
                                                          : RFX_OP_RUNNING_SUM);
    else if (pick < 95)
        (void)random_add_pointwise(m, in,
                                   random_chance(m, 60)   ? RFX_OP_CHANNEL_NORM
                                   : random_chance(m, 60) ? RFX_OP_CHANNEL_REDUCE
                                                          : RFX_OP_TOP_K);
    else if (pick < 97)
        (void)random_add_pointwise(m, in, RFX_OP_SOFTMAX);
    else if (pick < 98)
        (void)random_add_squeeze_excite(m, in);
    else
        (void)random_add_space_norm(m, in);
}

static void add_modern(struct random_maker *m) {
    int in = any_map(m);
    bool small = random_tensor(m, in)->elems * 9 <= MAX_MAP_ELEMS;
    int64_t pick = random_draw(m, 0, 99);
    int made = -1;
    if (pick < 45)
        made = random_add_space_norm(m, in);
    else if (pick < 70)
        made = small ? random_add_attention(m, in) : -1;
    else if (pick < 90)
        made = small ? random_add_window_attention(m, in) : -1;
    if (made < 0) (void)random_add_pointwise(m, in, RFX_OP_CHANNEL_NORM);
}

/* The last node that depends on the image: a network must. */
static int last_dependent(const struct rfx_graph *graph) {
    bool *depends = calloc((size_t)graph->n_nodes, sizeof *depends);
    int last = 0;
    if (depends == NULL) abort();
    for (int i = 0; i < graph->n_nodes; i++) {
        depends[i] = i == graph->input;
        for (int k = 0; k < graph->nodes[i].n_in; k++)
            depends[i] = depends[i] || depends[graph->nodes[i].in[k]];
        if (depends[i]) last = i;
    }
    free(depends);
    return last;
}

/* Tiles of rows may begin anywhere: networks of this size are too small for much of that. */
static void move_tiles(struct random_maker *m) {
    for (int i = 0; i < m->graph->n_nodes && m->graph->conv == RFX_CONV_WINOGRAD; i++) {
        struct rfx_node *node = &m->graph->nodes[i];
        int64_t rows = rfx_conv_rows_together(m->graph, node).h;
        if (rows > 1) node->attr.conv.tiles_from = random_draw(m, 0, rows - 1);
    }
}

/* A few rows of many columns, which threads take side by side. */
#define FLAT_EACH 8 /* seeds */
static void make_flat(struct rfx_node *image) {
    image->attr.input.w *= 4;
    image->attr.input.h = (image->attr.input.h + 3) / 4;
}

static void add_steps(struct random_maker *m, uint64_t seed, int64_t n) {
    bool modern = m->options->modern > 0 && random_chance(m, m->options->modern);
    int64_t at = modern ? random_draw(m, 0, n - 1) : -1;
    /* Numbers of their own, so that the other networks do not depend on the option. */
    struct test_rng own = test_rng_make(seed ^ 0xb17e5);
    bool quantised = test_rng_chance(&own, m->options->quantised);
    int64_t bytes_at = quantised ? test_rng_int(&own, 0, n - 1) : -1;
    for (int64_t i = 0; i < n; i++) {
        if (i == bytes_at) (void)random_add_quantised(m, any_map(m));
        if (i == at)
            add_modern(m);
        else
            add_something(m);
    }
}

struct rfx_graph *random_graph_make(struct rfx_memory *mem, uint64_t seed,
                                    const struct random_graph_options *options) {
    struct random_maker m = {NULL, test_rng_make(seed), options};
    struct rfx_error err = {{0}};
    if (rfx_graph_create(mem, "random", &m.graph, &err) != RFX_OK) abort();
    m.graph->conv = test_conv_choice();
    struct rfx_node image = {.op = RFX_OP_INPUT};
    image.attr.input.c = random_draw(&m, 1, 4);
    image.attr.input.h = random_draw(&m, options->min_size, options->max_size);
    image.attr.input.w = random_draw(&m, options->min_size, options->max_size);
    if (options->wide && seed % FLAT_EACH == 0) make_flat(&image);
    if (random_add(&m, image) < 0) abort();
    int64_t n = random_draw(&m, options->min_nodes, options->max_nodes);
    if (random_graph_only_bytes())
        random_add_only_bytes(&m, n);
    else
        add_steps(&m, seed, n);
    int last = last_dependent(m.graph);
    bool headed = options->heads > 0 && !random_graph_only_bytes() &&
                  random_chance(&m, options->heads) &&
                  random_tensor(&m, last)->layout == RFX_LAYOUT_NHWC;
    int head = headed ? random_add_head(&m, last) : -1;
    if (head >= 0) last = head;
    int best = head >= 0 && random_chance(&m, 25) ? random_add_best(&m, head) : -1;
    if (best >= 0) last = best;
    if (rfx_graph_add_output(m.graph, last, "out", &err) != RFX_OK) abort();
    if (last > 2 && random_chance(&m, 30) &&
        rfx_graph_add_output(m.graph, (int)random_draw(&m, 1, last - 1), "side", &err) != RFX_OK)
        abort();
    struct rfx_fuse_options fuse = {random_chance(&m, 70), random_chance(&m, 70),
                                    random_chance(&m, 70), true, random_chance(&m, 80)};
    if (rfx_graph_finish(m.graph, &fuse, &err) != RFX_OK) {
        fprintf(stderr, "random graph of seed %llu: %s\n", (unsigned long long)seed, err.text);
        abort();
    }
    move_tiles(&m);
    return m.graph;
}

void random_graph_count(const struct rfx_graph *graph, struct random_graph_kinds *kinds) {
    bool norm = false, attention = false, head = false, quantised = false;
    for (int i = 0; i < graph->n_nodes; i++) {
        enum rfx_op op = graph->nodes[i].op;
        norm = norm || op == RFX_OP_NORMALISE || op == RFX_OP_CHANNEL_NORM;
        attention = attention || op == RFX_OP_WINDOW_ATTENTION || op == RFX_OP_ATTENTION ||
                    op == RFX_OP_MATMUL;
        quantised = quantised || op == RFX_OP_INT_CONV || op == RFX_OP_INT_ADD;
        head = head || op == RFX_OP_JOIN_MAPS || op == RFX_OP_PLAIN_CONCAT;
    }
    kinds->norms += norm;
    kinds->attention += attention;
    kinds->heads += head;
    kinds->quantised += quantised;
    kinds->any += norm || attention || head;
}

void random_graph_print_kinds(const struct random_graph_kinds *kinds, FILE *out) {
    fprintf(out,
            "networks with norms %lld, attention %lld, heads %lld, any of them %lld; with "
            "convolutions or sums of bytes %lld\n",
            (long long)kinds->norms, (long long)kinds->attention, (long long)kinds->heads,
            (long long)kinds->any, (long long)kinds->quantised);
}

static void print_window(FILE *out, const int64_t *v, const struct rfx_pads *p) {
    fprintf(out, " kernel %lldx%lld stride %lldx%lld dilation %lldx%lld pads %lld,%lld,%lld,%lld",
            (long long)v[0], (long long)v[1], (long long)v[2], (long long)v[3], (long long)v[4],
            (long long)v[5], (long long)p->top, (long long)p->left, (long long)p->bottom,
            (long long)p->right);
}

static void print_attr(const struct rfx_node *node, FILE *out) {
    const union rfx_attr *a = &node->attr;
    if (node->op == RFX_OP_CONV || node->op == RFX_OP_CONV_TRANSPOSE ||
        node->op == RFX_OP_INT_CONV) {
        const struct rfx_conv_attr *c = &a->conv;
        print_window(out, (const int64_t[]){c->kh, c->kw, c->sh, c->sw, c->dh, c->dw}, &c->pads);
        fprintf(out, " out_pad %lldx%lld groups %lld bias %d scale %d residual %d",
                (long long)c->out_pad_h, (long long)c->out_pad_w, (long long)c->groups, c->bias,
                c->scale, node->residual);
        if (node->op == RFX_OP_INT_CONV)
            fprintf(out, " zero points %d, %d to %s", (int)a->int_conv.in_zero,
                    (int)a->int_conv.out_zero, rfx_type_name(a->int_conv.to));
    } else if (node->op == RFX_OP_CONVERT) {
        fprintf(out, " to %s scale %g zero point %d", rfx_type_name(a->convert.to),
                (double)a->convert.scale, (int)a->convert.zero_point);
    } else if (node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_PLACE ||
               node->op == RFX_OP_POOL_AVG || node->op == RFX_OP_POOL_LP) {
        const struct rfx_pool_attr *p = &a->pool;
        print_window(out, (const int64_t[]){p->kh, p->kw, p->sh, p->sw, p->dh, p->dw}, &p->pads);
        fprintf(out, " ceil %d count_pad %d", p->ceil_mode, p->count_include_pad);
    } else if (node->op == RFX_OP_RESIZE) {
        fprintf(out, " mode %d coord %d nearest %d scale %gx%g outside %d antialias %d",
                (int)a->resize.mode, (int)a->resize.coord, (int)a->resize.nearest,
                (double)a->resize.scale_h, (double)a->resize.scale_w, !a->resize.exclude_outside,
                a->resize.antialias);
    } else if (node->op == RFX_OP_PAD) {
        fprintf(out, " mode %d pads %lld,%lld,%lld,%lld", (int)a->pad.mode,
                (long long)a->pad.pads.top, (long long)a->pad.pads.left,
                (long long)a->pad.pads.bottom, (long long)a->pad.pads.right);
    } else if (node->op == RFX_OP_WINDOW_ATTENTION) {
        const struct rfx_window_attention_attr *w = &a->window_attention;
        fprintf(out, " window %lldx%lld shift %lldx%lld heads %lld bias %d table %d",
                (long long)w->h, (long long)w->w, (long long)w->shift_h, (long long)w->shift_w,
                (long long)w->heads, w->bias, w->by_table);
    } else if (node->op == RFX_OP_CROP) {
        fprintf(out, " from %lld,%lld step %lld,%lld", (long long)a->crop.y0, (long long)a->crop.x0,
                (long long)a->crop.sy, (long long)a->crop.sx);
    }
    if (node->act.kind != RFX_ACT_NONE) fprintf(out, " act %d", (int)node->act.kind);
}

void random_graph_print(const struct rfx_graph *graph, FILE *out) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        fprintf(out, "%3d '%s' %s(", i, node->name, rfx_op_def(node->op)->name);
        for (int k = 0; k < node->n_in; k++) fprintf(out, k == 0 ? "%d" : ", %d", node->in[k]);
        fprintf(out, ") -> %lld x %lld x %lld", (long long)node->out.c, (long long)node->out.h,
                (long long)node->out.w);
        print_attr(node, out);
        fputc('\n', out);
    }
    for (int i = 0; i < graph->n_outputs; i++)
        fprintf(out, "output '%s' = %d\n", graph->outputs[i].name, graph->outputs[i].node);
}
